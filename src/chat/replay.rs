//! Replays stored events: what was stored becomes the event again that the projections apply; and
//! closes a run that was cut off. Pure.

use super::event::{
    Attachments, Ending, Event, FinishClass, Recorded, Scope, Segment, SegmentKind, ToolCall,
    ToolResult,
};
use super::record::StoredEvent;
use super::timeline::{Timeline, turn_number};
use super::transcript::INTERRUPTED_TOOL;
use crate::protocol::any::Any;
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::Decision;
use crate::protocol::id::{RunId, ToolCallId};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::words::{finish, tool_result};
use crate::support::text::Text;
use std::collections::HashSet;

/// Why a run that was cut off is stopped, for people.
pub(super) const CUT_OFF: &str = "the process ended before the run did";

/// The end of a conversation, as its events are replayed.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    open: Option<OpenRun>,
}

/// A run without an end.
#[derive(Debug)]
struct OpenRun {
    scope: Scope,
    has_call: bool,
    has_tool_calls: bool,
    /// Calls that the model has made.
    requested: HashSet<ToolCallId>,
    /// Calls that wait for approval.
    asked: Vec<ToolCall>,
}

impl Replay {
    /// Applies a stored event to `timeline`.
    pub(crate) fn apply(&mut self, stored: &StoredEvent, timeline: &mut Timeline) {
        let recorded = stored.place.and_then(|place| self.recorded(stored, place));
        match recorded {
            Some(recorded) => {
                self.follow(&recorded);
                timeline.apply(&recorded);
            }
            // It changes nothing of what people see.
            None => timeline.pass(stored.ordinal),
        }
    }

    /// The events that close the run which was cut off, with its scope.
    pub(crate) fn closing(self, timeline: &Timeline) -> Vec<(Scope, Event)> {
        let Some(open) = self.open else { return Vec::new() };
        let mut parts = timeline.open_parts(open.scope.run);
        let mut events = Vec::new();
        if let Some((segment, prompt, text)) = parts.segment.take() {
            let (status, finish_reason) = (Ending::Stopped, finish::CANCELLED.to_owned());
            let is_cut_off = false;
            events.push(Event::SegmentFinished {
                segment,
                status,
                prompt,
                text,
                finish_reason,
                is_cut_off,
            });
        }
        if open.has_call {
            events.push(Event::CallFinished {
                stop_reason: finish::CANCELLED.to_owned(),
                class: FinishClass::Cancelled,
                usage: None,
                duration_ms: 0,
                has_tool_calls: open.has_tool_calls,
                provider_data: None,
            });
        }
        let mut events: Vec<_> = events.into_iter().map(|event| (open.scope, event)).collect();
        let after_call = Scope { call: 0, ..open.scope };
        for tool in parts.tools {
            for event in closing_of_tool(&open, tool, &parts.with_result) {
                events.push((open.scope, event));
            }
        }
        events.push((after_call, Event::RunStopped { reason: CUT_OFF.to_owned() }));
        events
    }

    fn follow(&mut self, recorded: &Recorded) {
        if let Event::PromptAccepted { .. } = recorded.event {
            self.open = Some(OpenRun::new(recorded.scope));
        }
        let Some(open) = &mut self.open else { return };
        if recorded.event.ends_run() {
            self.open = None;
            return;
        }
        open.scope = recorded.scope;
        open.follow(&recorded.event);
    }

    /// The event that was stored, as far as the timeline needs it.
    fn recorded(&self, stored: &StoredEvent, (turn, call): (u32, u32)) -> Option<Recorded> {
        let run = if let Any::ChatUserMessageAccepted(it) = &stored.payload {
            RunId::of_root(&it.message_id)?
        } else if let Any::TurnDropped(it) = &stored.payload {
            RunId::of_root(&it.prompt_message_id)?
        } else {
            self.open.as_ref()?.scope.run
        };
        let scope = Scope { run, turn, call };
        Some(Recorded { ordinal: stored.ordinal, scope, event: event(&stored.payload)? })
    }
}

impl OpenRun {
    fn new(scope: Scope) -> Self {
        let (requested, asked) = (HashSet::new(), Vec::new());
        Self { scope, has_call: false, has_tool_calls: false, requested, asked }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::CallStarted => (self.has_call, self.has_tool_calls) = (true, false),
            Event::CallFinished { .. } => self.has_call = false,
            Event::ToolCallStarted { .. } => self.has_tool_calls = true,
            Event::ToolCallRequested { tool, .. } => {
                self.requested.insert(tool.id.clone());
            }
            Event::ApprovalRequested { tool, .. } => self.asked.push(tool.clone()),
            Event::ApprovalResolved { tool, .. } => self.asked.retain(|it| it.id != tool.id),
            Event::PromptAccepted { .. }
            | Event::PromptJoined { .. }
            | Event::RepairRequested { .. }
            | Event::RunStarted { .. }
            | Event::SegmentStarted { .. }
            | Event::SegmentPatched { .. }
            | Event::SegmentFinished { .. }
            | Event::ToolArgumentsPatched { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolResultReady { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::TurnDropped { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped { .. }
            | Event::RunFailed { .. }
            | Event::Call(_)
            | Event::Session(_) => {}
        }
    }
}

fn closing_of_tool(open: &OpenRun, tool: ToolCall, with_result: &[ToolCallId]) -> Vec<Event> {
    let mut events = Vec::new();
    if open.asked.iter().any(|asked| asked.id == tool.id) {
        let decision = Decision::Deny { reason: "the run has ended".to_owned() };
        events.push(Event::ApprovalResolved { tool: tool.clone(), decision });
    }
    if open.requested.contains(&tool.id) && !with_result.contains(&tool.id) {
        let result = ToolResult::Error(INTERRUPTED_TOOL.to_owned()).into();
        events.push(Event::ToolResultReady { tool: tool.clone(), result });
    }
    events.push(Event::ToolCallFinished { tool });
    events
}

/// The event in `payload`; `None` if the timeline has no use for it.
fn event(payload: &Any) -> Option<Event> {
    let whole = payload.clone().into_whole();
    message_event(&whole).or_else(|| tool_event(&whole)).or_else(|| run_event(&whole))
}

/// Events of prompts and segments.
fn message_event(payload: &Any) -> Option<Event> {
    let none = Text::default;
    if let Any::ChatUserMessageAccepted(it) = payload {
        let (prompt, attachments) = (it.text.as_str().into(), attachments(&it.attachments));
        return Some(match number_of_prompt(&it.message_id) {
            None => Event::PromptAccepted { prompt, attachments },
            Some(number) => Event::PromptJoined { prompt, attachments, number },
        });
    }
    if let Any::ChatTextSegmentStarted(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Text)?;
        return Some(Event::SegmentStarted { segment, prompt: it.prompt.as_str().into() });
    }
    if let Any::ChatReasoningSegmentStarted(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Thinking)?;
        return Some(Event::SegmentStarted { segment, prompt: none() });
    }
    if let Any::ChatTextPatch(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Text)?;
        return Some(patched(segment, it.sequence, it.offset, &it.text));
    }
    if let Any::ChatReasoningPatch(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Thinking)?;
        return Some(patched(segment, it.sequence, it.offset, &it.text));
    }
    if let Any::ChatTextSegmentFinished(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Text)?;
        return Some(finished(segment, &it.status, &it.text));
    }
    if let Any::ChatReasoningSegmentFinished(it) = payload {
        let segment = segment(&it.message_id, SegmentKind::Thinking)?;
        return Some(finished(segment, &it.status, &it.text));
    }
    None
}

/// Events of tool calls.
fn tool_event(payload: &Any) -> Option<Event> {
    let call = |id: &str, name: &str| ToolCall { id: ToolCallId(id.into()), name: name.into() };
    if let Any::ChatToolCallStarted(it) = payload {
        return Some(Event::ToolCallStarted { tool: call(&it.tool_call_id, &it.tool_name) });
    }
    if let Any::ChatToolArgumentsPatch(it) = payload {
        return Some(Event::ToolArgumentsPatched {
            tool: call(&it.tool_call_id, &it.tool_name),
            sequence: it.sequence,
            offset_bytes: it.offset,
            text: it.arguments.clone(),
        });
    }
    if let Any::ChatToolCallRequested(it) = payload {
        let tool = call(&it.tool_call_id, &it.tool_name);
        return Some(Event::ToolCallRequested { tool, input: it.input.clone() });
    }
    if let Any::ToolApprovalRequested(it) = payload {
        let tool = call(&it.tool_call_id, &it.tool_name);
        let (server, input) = (it.server.clone(), it.input.clone());
        return Some(Event::ApprovalRequested { tool, server, input });
    }
    if let Any::ToolApprovalResolved(it) = payload {
        let tool = call(&it.tool_call_id, &it.tool_name);
        return Some(Event::ApprovalResolved { tool, decision: Decision::AllowOnce });
    }
    if let Any::ChatToolExecutionStarted(it) = payload {
        let tool = call(&it.tool_call_id, &it.tool_name);
        return Some(Event::ToolExecutionStarted { tool, input: it.input.clone() });
    }
    if let Any::ChatToolResultReady(it) = payload {
        let tool = call(&it.tool_call_id, &it.tool_name);
        let result = match it.status == tool_result::ERROR {
            true => ToolResult::Error(it.result.clone()),
            false => ToolResult::Success(it.result.clone()),
        };
        return Some(Event::ToolResultReady { tool, result: result.into() });
    }
    if let Any::ChatToolCallFinished(it) = payload {
        return Some(Event::ToolCallFinished { tool: call(&it.tool_call_id, &it.tool_name) });
    }
    None
}

/// Events of provider calls, of the run and of turns.
fn run_event(payload: &Any) -> Option<Event> {
    if let Any::ChatProviderCallStarted(_) = payload {
        return Some(Event::CallStarted);
    }
    if let Any::ChatProviderCallFinished(it) = payload {
        return Some(Event::CallFinished {
            stop_reason: it.stop_reason.clone(),
            class: finish_class(&it.finish_class),
            usage: None,
            duration_ms: 0,
            has_tool_calls: it.has_tool_calls,
            provider_data: None,
        });
    }
    if let Any::ChatRunFinished(_) = payload {
        return Some(Event::RunFinished { duration_ms: 0, cut_off: None });
    }
    if let Any::TurnDropped(it) = payload {
        return Some(Event::TurnDropped {
            message_ids: it.message_ids.clone(),
            tool_call_ids: it.tool_call_ids.clone(),
            turns: it.turn_ids.iter().filter_map(|id| turn_number(id)).collect(),
        });
    }
    if let Any::ChatRunStopped(it) = payload {
        return Some(Event::RunStopped { reason: it.error.clone() });
    }
    if let Any::ChatRunFailed(it) = payload {
        return Some(Event::RunFailed { error: it.error.clone() });
    }
    None
}

fn patched(segment: Segment, sequence: u64, offset_bytes: u64, text: &str) -> Event {
    Event::SegmentPatched { segment, sequence, offset_bytes, text: text.to_owned() }
}

fn finished(segment: Segment, status: &str, text: &str) -> Event {
    let endings = [Ending::Finished, Ending::Stopped, Ending::Failed];
    let status = endings.into_iter().find(|it| it.as_str() == status).unwrap_or(Ending::Stopped);
    let (prompt, text) = (Text::default(), text.into());
    // What the provider cut off is known of runs that have ended, whose entities are stored.
    let (finish_reason, is_cut_off) = (String::new(), false);
    Event::SegmentFinished { segment, status, prompt, text, finish_reason, is_cut_off }
}

fn finish_class(class: &str) -> FinishClass {
    match class {
        finish::COMPLETED => FinishClass::Completed,
        finish::MAX_TOKENS => FinishClass::MaxTokens,
        finish::TOOL_CALLS => FinishClass::ToolCalls,
        finish::CONTENT_FILTER => FinishClass::ContentFilter,
        finish::CANCELLED => FinishClass::Cancelled,
        _ => FinishClass::Other,
    }
}

/// The segment in a message id: `chat-msg-<uuid>:text:segment-1`.
fn segment(message_id: &str, kind: SegmentKind) -> Option<Segment> {
    let (_, number) = message_id.rsplit_once(":segment-")?;
    Some(Segment { number: number.parse().ok()?, kind })
}

/// The number in the message id of a prompt that joined a run: `chat-msg-<uuid>-user-2`.
fn number_of_prompt(message_id: &str) -> Option<u32> {
    message_id.rsplit_once("-user-")?.1.parse().ok()
}

/// Attachments as people see them. Their bytes are kept for the model only.
fn attachments(shown: &[ChatAttachment]) -> Attachments {
    let content = || Content::Url(String::new());
    shown.iter().map(|shown| Attachment { shown: shown.clone(), content: content() }).collect()
}
