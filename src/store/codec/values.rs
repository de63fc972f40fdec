//! The values in events: prompts and attachments, tool calls, token counts, turns of recordings. Pure.

use super::Unreadable;
use crate::conversation::event::{
    Attachments, Ending, Event, FinishClass, ProviderData, Segment, SegmentKind, ToolCall,
    ToolResult, Usage,
};
use crate::conversation::transcript::{HistoryMessage, Preamble, Turn, TurnItem, TurnState};
use crate::conversation::usage::{Cost, Spent};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::Decision;
use crate::protocol::constants::role;
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::store as stored;
use crate::protocol::proto::store::stored_step::Step as Kind;
use crate::protocol::proto::tools::ApprovalDecision;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Role of a message of the system.
const SYSTEM: &str = "system";

/// Bytes by their hash.
pub(in crate::store) type Blobs = BTreeMap<String, Arc<[u8]>>;

/// Adds the bytes of attachments and images that an event needs.
pub(in crate::store) fn add_blobs(event: &Event, blobs: &mut Blobs) {
    each_attachment(event, |attachment| {
        if let Content::Data(data) = &attachment.content {
            blobs.insert(hash(data), Arc::clone(data));
        }
    });
}

/// Adds the hashes of the bytes that an event needs and that were lost.
pub(in crate::store) fn add_lost(event: &Event, lost: &mut BTreeSet<String>) {
    each_attachment(event, |attachment| {
        if let Content::Lost { sha256 } = &attachment.content {
            lost.insert(sha256.clone());
        }
    });
}

/// Gives `take` the attachments and images of an event.
fn each_attachment(event: &Event, take: impl FnMut(&Attachment)) {
    if let Event::PromptAccepted { attachments, .. } | Event::PromptJoined { attachments, .. } =
        event
    {
        attachments.iter().for_each(take);
    } else if let Event::TurnImported(imported) = event
        && let Some(turn) = &imported.turn
    {
        let later = turn.items.iter().flat_map(|item| item.attachments());
        turn.attachments.iter().chain(later).for_each(take);
    } else if let Event::ToolResultReady { result, .. } = event {
        result.images().iter().for_each(take);
    }
}

/// The name of bytes: their SHA-256, in hexadecimal digits.
pub(in crate::store) fn hash(data: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, data).as_ref())
}

pub(super) fn attachments_message(attachments: &[Attachment]) -> Vec<stored::StoredAttachment> {
    let message = |attachment: &Attachment| {
        let shown = Some(attachment.shown.clone());
        let (sha256, url) = match &attachment.content {
            Content::Data(data) => (hash(data), String::new()),
            Content::Url(url) => (String::new(), url.clone()),
            // Files and resources are read before a session gets them.
            Content::File(path) => (String::new(), path.display().to_string()),
            Content::Resource(name) => (String::new(), name.to_string()),
            Content::Lost { sha256 } => (sha256.clone(), String::new()),
        };
        stored::StoredAttachment { shown, sha256, url }
    };
    attachments.iter().map(message).collect()
}

pub(super) fn read_attachments(
    stored: Vec<stored::StoredAttachment>,
    blobs: &Blobs,
) -> Attachments {
    let attachment = |it: stored::StoredAttachment| {
        let content = match it.sha256.as_str() {
            "" => Content::Url(it.url),
            hash => match bytes(hash, blobs) {
                Some(data) => Content::Data(Arc::clone(data)),
                None => Content::Lost { sha256: it.sha256 },
            },
        };
        Attachment { shown: it.shown.unwrap_or_default(), content }
    };
    stored.into_iter().map(attachment).collect()
}

/// The bytes of that hash, if they are there. A file without a byte was never attached.
fn bytes<'a>(sha256: &str, blobs: &'a Blobs) -> Option<&'a Arc<[u8]>> {
    blobs.get(sha256).filter(|data| !data.is_empty())
}

pub(super) fn history_message(message: &HistoryMessage) -> stored::StoredMessage {
    let (role, text) = match message {
        HistoryMessage::ByUser(text) => (role::USER, text),
        HistoryMessage::ByModel(text) => (role::ASSISTANT, text),
        HistoryMessage::BySystem(text) => (SYSTEM, text),
    };
    stored::StoredMessage { role: role.to_owned(), text: text.clone() }
}

pub(super) fn read_preamble(
    system: Option<String>,
    messages: Vec<stored::StoredMessage>,
) -> Preamble {
    let history = messages.into_iter().map(|message| match message.role.as_str() {
        role::ASSISTANT => HistoryMessage::ByModel(message.text),
        SYSTEM => HistoryMessage::BySystem(message.text),
        _ => HistoryMessage::ByUser(message.text),
    });
    Preamble { system, history: history.collect() }
}

pub(super) fn segment_message(segment: Segment) -> stored::StoredSegment {
    stored::StoredSegment {
        number: segment.number,
        is_thinking: segment.kind == SegmentKind::Thinking,
        ..stored::StoredSegment::default()
    }
}

pub(super) fn read_segment(number: u32, is_thinking: bool) -> Segment {
    let kind = if is_thinking { SegmentKind::Thinking } else { SegmentKind::Text };
    Segment { number, kind }
}

pub(super) fn read_ending(status: &str) -> Result<Ending, Unreadable> {
    let endings = [Ending::Finished, Ending::Stopped, Ending::Failed];
    let found = endings.into_iter().find(|ending| ending.as_str() == status);
    found.ok_or(Unreadable::Value("the status of a segment"))
}

pub(super) fn read_class(class: &str) -> Result<FinishClass, Unreadable> {
    let classes = [
        FinishClass::Completed,
        FinishClass::MaxTokens,
        FinishClass::ToolCalls,
        FinishClass::ContentFilter,
        FinishClass::Cancelled,
        FinishClass::Failed,
        FinishClass::Other,
    ];
    let found = classes.into_iter().find(|it| it.as_str() == class);
    found.ok_or(Unreadable::Value("the finish reason of a call"))
}

/// The tool call with its arguments.
pub(super) fn with_input(tool: &ToolCall, input: &str) -> stored::StoredTool {
    stored::StoredTool { input: input.to_owned(), ..super::tool_message(tool) }
}

/// The tool call, its arguments and its server.
pub(super) fn read_tool(tool: stored::StoredTool) -> (ToolCall, String, String) {
    let stored::StoredTool { id, name, input, server } = tool;
    (ToolCall { id: ToolCallId(id), name }, input, server)
}

pub(super) fn decision_message(decision: &Decision) -> (i32, String) {
    let (decision, reason) = match decision {
        Decision::AllowOnce => (ApprovalDecision::AllowOnce, String::new()),
        Decision::AllowSession => (ApprovalDecision::AllowSession, String::new()),
        Decision::Deny { reason } => (ApprovalDecision::Deny, reason.clone()),
    };
    (decision.into(), reason)
}

/// The result with `text` as its text, which may be written elsewhere.
pub(super) fn result_message(text: String, result: &ToolResult) -> stored::StoredToolResult {
    let images = attachments_message(result.images());
    stored::StoredToolResult { text, tool: None, is_error: result.is_error(), images }
}

pub(super) fn read_result(stored: stored::StoredToolResult, blobs: &Blobs) -> ToolResult {
    let stored::StoredToolResult { text, tool: _, is_error, images } = stored;
    // No model can be sent an image whose bytes are lost.
    let is_there = |image: &stored::StoredAttachment| bytes(&image.sha256, blobs).is_some();
    let images = images.into_iter().filter(is_there).collect();
    let images = read_attachments(images, blobs);
    match is_error {
        true => ToolResult::Error(text),
        false if images.is_empty() => ToolResult::Success(text),
        false => ToolResult::WithImages { text, images },
    }
}

pub(super) fn usage_message(usage: &Usage) -> stored::StoredUsage {
    stored::StoredUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cache_creation_tokens: usage.cache_creation_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        reasoning_tokens: usage.reasoning_tokens,
    }
}

pub(super) fn read_usage(stored: &stored::StoredUsage) -> Usage {
    Usage {
        input_tokens: stored.input_tokens,
        output_tokens: stored.output_tokens,
        cached_tokens: stored.cached_tokens,
        cache_creation_tokens: stored.cache_creation_tokens,
        cache_read_tokens: stored.cache_read_tokens,
        reasoning_tokens: stored.reasoning_tokens,
    }
}

pub(super) fn cost_message((cost, currency): &(Cost, Arc<str>)) -> stored::StoredCost {
    stored::StoredCost { picos: cost.0.to_string(), currency: (**currency).to_owned() }
}

pub(super) fn read_spent(
    is_free: bool,
    cost: Option<stored::StoredCost>,
) -> Result<Spent, Unreadable> {
    let cost = cost.map(|it| match it.picos.parse() {
        Ok(picos) => Ok((Cost(picos), it.currency.into())),
        Err(_) => Err(Unreadable::Value("a cost")),
    });
    Ok(Spent { is_free, cost: cost.transpose()? })
}

pub(super) fn provider_data_message(data: &ProviderData) -> stored::StoredProviderData {
    let ProviderData { engine, host, model, json } = data;
    stored::StoredProviderData {
        engine: engine.to_string(),
        host: host.to_string(),
        model: model.to_string(),
        json: json.to_string(),
    }
}

pub(super) fn read_provider_data(stored: stored::StoredProviderData) -> ProviderData {
    let stored::StoredProviderData { engine, host, model, json } = stored;
    ProviderData {
        engine: engine.into(),
        host: host.into(),
        model: model.into(),
        json: json.into(),
    }
}

pub(super) fn turn_message(turn: &Turn) -> stored::StoredTurn {
    stored::StoredTurn {
        prompt: turn.prompt.as_str().to_owned(),
        attachments: attachments_message(&turn.attachments),
        steps: turn.items.iter().map(item_message).collect(),
        interrupted: matches!(turn.state, TurnState::Open | TurnState::Interrupted),
        refused: turn.state == TurnState::Refused,
    }
}

fn item_message(item: &TurnItem) -> stored::StoredStep {
    let (kind, result) = match item {
        TurnItem::Text { text, .. } => (Kind::Text(text.as_str().to_owned()), None),
        TurnItem::Prompt(text, attachments) => {
            let (text, attachments) = (text.as_str().to_owned(), attachments_message(attachments));
            (Kind::Prompt(stored::StoredPrompt { text, attachments, number: 0 }), None)
        }
        TurnItem::ProviderData(data) => (Kind::ProviderData(provider_data_message(data)), None),
        TurnItem::Called { tool, input, result, .. } => {
            let result = result.as_deref().map(|it| result_message(it.text().to_owned(), it));
            (Kind::Call(with_input(tool, input)), result)
        }
    };
    stored::StoredStep { step: Some(kind), round: item.round().unwrap_or(0), result }
}

pub(super) fn read_turn(number: u32, stored: stored::StoredTurn, blobs: &Blobs) -> Turn {
    Turn {
        number,
        prompt: stored.prompt.into(),
        attachments: read_attachments(stored.attachments, blobs),
        items: stored.steps.into_iter().filter_map(|it| read_item(it, blobs)).collect(),
        state: match (stored.interrupted, stored.refused) {
            (true, _) => TurnState::Interrupted,
            (false, true) => TurnState::Refused,
            (false, false) => TurnState::Finished,
        },
    }
}

fn read_item(stored: stored::StoredStep, blobs: &Blobs) -> Option<TurnItem> {
    let stored::StoredStep { step, round, result } = stored;
    Some(match step? {
        Kind::Text(text) => {
            TurnItem::Text { round: Some(round).filter(|round| *round > 0), text: text.into() }
        }
        Kind::Prompt(prompt) => {
            TurnItem::Prompt(prompt.text.into(), read_attachments(prompt.attachments, blobs))
        }
        Kind::ProviderData(data) => TurnItem::ProviderData(read_provider_data(data)),
        Kind::Call(call) => {
            let (tool, input, _) = read_tool(call);
            let result = result.map(|it| read_result(it, blobs).into());
            TurnItem::Called { round, tool, input, result }
        }
    })
}
