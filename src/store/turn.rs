//! Turns and steps as messages of `duologue.store.v1`, and back. The bytes of attachments are kept
//! apart, by their hash. Pure.

use super::origin::{origin, origin_message};
use crate::chat::choices::{Choices, ChosenModel};
use crate::chat::event::{Attachments, ProviderData, ToolCall, ToolResult};
use crate::chat::record::TurnChange;
use crate::chat::transcript::{HistoryMessage, Preamble, Step, Turn, TurnState};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::id::ToolCallId;
use crate::protocol::pieces::Pieces;
use crate::protocol::proto::store::stored_step::Step as Kind;
use crate::protocol::proto::store::{
    StoredAttachment, StoredChoices, StoredDrop, StoredMessage, StoredModel, StoredPreamble,
    StoredPrompt, StoredProviderData, StoredStep, StoredToolCall, StoredToolResult, StoredTurn,
};
use crate::protocol::words::role;
use crate::support::text::Text;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Role of a message of the system.
const SYSTEM: &str = "system";

/// Names of engines that are kept: far more than there are.
const ENGINE_NAMES_MAX: usize = 64;

/// Numbers of fields whose texts are shared with the conversation.
mod tag {
    pub(super) const PROMPT_OF_TURN: u32 = 1;
    pub(super) const TEXT_OF_PROMPT: u32 = 1;
    pub(super) const TEXT: u32 = 1;
    pub(super) const PROMPT: u32 = 2;
    pub(super) const BEGAN: u32 = 7;
}

/// Bytes by their hash.
pub(super) type Blobs = BTreeMap<String, Arc<[u8]>>;

pub(super) fn preamble_message(preamble: &Preamble) -> StoredPreamble {
    let history = preamble.history.iter().map(|message| {
        let (role, text) = match message {
            HistoryMessage::ByUser(text) => (role::USER, text),
            HistoryMessage::ByModel(text) => (role::ASSISTANT, text),
            HistoryMessage::BySystem(text) => (SYSTEM, text),
        };
        StoredMessage { role: role.to_owned(), text: text.clone() }
    });
    StoredPreamble {
        system: preamble.system.clone().unwrap_or_default(),
        history: history.collect(),
        without_turns: false,
    }
}

pub(super) fn preamble(stored: StoredPreamble) -> Preamble {
    let history = stored.history.into_iter().map(|message| match message.role.as_str() {
        role::ASSISTANT => HistoryMessage::ByModel(message.text),
        SYSTEM => HistoryMessage::BySystem(message.text),
        _ => HistoryMessage::ByUser(message.text),
    });
    let system = Some(stored.system).filter(|system| !system.is_empty());
    Preamble { system, history: history.collect() }
}

/// What the client has chosen.
pub(super) fn choices_message(choices: &Choices) -> StoredChoices {
    let Choices { model, tools, origin } = choices;
    let model = model.clone().map(|it| StoredModel {
        profile: it.profile,
        engine: it.engine,
        model: it.model,
        settings: match it.settings.is_empty() {
            true => String::new(),
            false => Value::Object(it.settings).to_string(),
        },
        partial: it.is_partial,
        host: it.host,
    });
    let origin = origin.clone().map(origin_message);
    StoredChoices { model, tools: tools.clone(), origin }
}

pub(super) fn choices(stored: StoredChoices) -> Choices {
    let model = stored.model.map(|it| ChosenModel {
        profile: it.profile,
        engine: it.engine,
        host: it.host,
        model: it.model,
        settings: serde_json::from_str(&it.settings).unwrap_or_default(),
        is_partial: it.partial,
    });
    Choices { model, tools: stored.tools, origin: stored.origin.map(origin) }
}

/// A turn without its steps.
pub(super) fn turn_head(turn: &Turn) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.text(tag::PROMPT_OF_TURN, &turn.prompt);
    pieces.fields(&StoredTurn {
        prompt: String::new(),
        attachments: attachments_message(&turn.attachments),
        steps: Vec::new(),
        interrupted: turn.state != TurnState::Finished,
        usage: None,
    });
    pieces
}

/// Adds the bytes of attachments that a change needs.
pub(super) fn add_blobs(change: &TurnChange, blobs: &mut Blobs) {
    match change {
        TurnChange::Began { attachments, .. } => add_data(attachments, blobs),
        TurnChange::Step(step) => add_data_of_step(step, blobs),
        TurnChange::Ended(Some(turn)) => {
            add_data(&turn.attachments, blobs);
            turn.steps.iter().for_each(|step| add_data_of_step(step, blobs));
        }
        TurnChange::Ended(None)
        | TurnChange::Piece { .. }
        | TurnChange::Result(..)
        | TurnChange::Dropped(..)
        | TurnChange::Chose(_) => {}
    }
}

fn add_data_of_step(step: &Step, blobs: &mut Blobs) {
    match step {
        Step::Prompt(_, attachments) => add_data(attachments, blobs),
        Step::Text { .. } | Step::ProviderData(_) | Step::Called { .. } => {}
    }
}

fn add_data(attachments: &[Attachment], blobs: &mut Blobs) {
    for attachment in attachments {
        if let Content::Data(data) = &attachment.content {
            blobs.insert(hash(data), Arc::clone(data));
        }
    }
}

/// The name of bytes.
fn hash(data: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, data).as_ref())
}

/// A change of the turn that goes on, as a `StoredStep`; `None` if it is kept in another way.
pub(super) fn change_pieces(change: &TurnChange) -> Option<Pieces> {
    let (kind, text_round) = match change {
        TurnChange::Began { prompt, attachments } => {
            let mut pieces = Pieces::default();
            pieces.message(tag::BEGAN, prompt_pieces(prompt, attachments));
            return Some(pieces);
        }
        TurnChange::Step(step) => return Some(step_pieces(step)),
        TurnChange::Piece { round, text } => (Kind::Piece(text.clone()), *round),
        TurnChange::Result(id, result) => (Kind::Result(result_message(id, result)), 0),
        TurnChange::Dropped(first_turn, last_turn) => {
            (Kind::Dropped(StoredDrop { first_turn: *first_turn, last_turn: *last_turn }), 0)
        }
        TurnChange::Ended(_) | TurnChange::Chose(_) => return None,
    };
    Some(Pieces::of(&StoredStep { step: Some(kind), text_round }))
}

/// A step as a `StoredStep`.
pub(super) fn step_pieces(step: &Step) -> Pieces {
    let mut pieces = Pieces::default();
    let kind = match step {
        Step::Text { round, text } => {
            pieces.chosen_text(tag::TEXT, text);
            pieces.fields(&StoredStep { step: None, text_round: round.unwrap_or(0) });
            return pieces;
        }
        Step::Prompt(text, attachments) => {
            pieces.message(tag::PROMPT, prompt_pieces(text, attachments));
            return pieces;
        }
        Step::ProviderData(ProviderData { engine, host, model, json }) => {
            Kind::ProviderData(StoredProviderData {
                engine: (*engine).to_owned(),
                host: host.to_string(),
                model: model.to_string(),
                json: json.to_string(),
            })
        }
        Step::Called { round, tool, input, result } => Kind::Call(StoredToolCall {
            round: *round,
            id: tool.id.0.clone(),
            name: tool.name.clone(),
            input: input.clone(),
            result: result.as_deref().map(|result| result_message(&tool.id, result)),
        }),
    };
    Pieces::of(&StoredStep { step: Some(kind), text_round: 0 })
}

/// A prompt as a `StoredPrompt`.
fn prompt_pieces(text: &Text, attachments: &[Attachment]) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.text(tag::TEXT_OF_PROMPT, text);
    let attachments = attachments_message(attachments);
    pieces.fields(&StoredPrompt { text: String::new(), attachments });
    pieces
}

fn result_message(id: &ToolCallId, result: &ToolResult) -> StoredToolResult {
    let failed = matches!(result, ToolResult::Error(_));
    StoredToolResult { id: id.0.clone(), text: result.text().to_owned(), failed }
}

fn attachments_message(attachments: &[Attachment]) -> Vec<StoredAttachment> {
    let message = |attachment: &Attachment| {
        let shown = Some(attachment.shown.clone());
        let (sha256, url) = match &attachment.content {
            Content::Data(data) => (hash(data), String::new()),
            Content::Url(url) => (String::new(), url.clone()),
            // Files are read before a session gets them.
            Content::File(path) => (String::new(), path.display().to_string()),
        };
        StoredAttachment { shown, sha256, url }
    };
    attachments.iter().map(message).collect()
}

/// The hashes of the bytes that a turn needs.
pub(super) fn hashes_of_turn(stored: &StoredTurn) -> BTreeSet<&str> {
    let of_steps = stored.steps.iter().flat_map(hashes_of_step);
    let all = stored.attachments.iter().map(|it| it.sha256.as_str()).chain(of_steps);
    all.filter(|hash| !hash.is_empty()).collect()
}

/// The hashes of the bytes that a step needs.
pub(super) fn hashes_of_step(stored: &StoredStep) -> Vec<&str> {
    match &stored.step {
        Some(Kind::Prompt(prompt) | Kind::Began(prompt)) => {
            let hashes = prompt.attachments.iter().map(|it| it.sha256.as_str());
            hashes.filter(|hash| !hash.is_empty()).collect()
        }
        Some(
            Kind::Text(_)
            | Kind::ProviderData(_)
            | Kind::Call(_)
            | Kind::Result(_)
            | Kind::Piece(_)
            | Kind::Dropped(_),
        )
        | None => Vec::new(),
    }
}

/// The turn of a message, which is that of this number.
pub(super) fn turn(number: u32, stored: StoredTurn, blobs: &Blobs) -> Turn {
    Turn {
        number,
        prompt: stored.prompt.into(),
        attachments: attachments(stored.attachments, blobs),
        steps: stored.steps.into_iter().filter_map(|it| step(it, blobs)).collect(),
        state: if stored.interrupted { TurnState::Interrupted } else { TurnState::Finished },
    }
}

fn step(stored: StoredStep, blobs: &Blobs) -> Option<Step> {
    let round = Some(stored.text_round).filter(|round| *round > 0);
    Some(match stored.step? {
        Kind::Text(text) | Kind::Piece(text) => Step::Text { round, text: text.into() },
        Kind::Prompt(prompt) | Kind::Began(prompt) => {
            Step::Prompt(prompt.text.into(), attachments(prompt.attachments, blobs))
        }
        Kind::ProviderData(data) => Step::ProviderData(ProviderData {
            engine: engine_name(&data.engine)?,
            host: data.host.into(),
            model: data.model.into(),
            json: data.json.into(),
        }),
        Kind::Call(call) => Step::Called {
            round: call.round,
            tool: ToolCall { id: ToolCallId(call.id), name: call.name },
            input: call.input,
            result: call.result.map(|it| result(it).into()),
        },
        Kind::Result(_) | Kind::Dropped(_) => return None,
    })
}

fn result(stored: StoredToolResult) -> ToolResult {
    match stored.failed {
        true => ToolResult::Error(stored.text),
        false => ToolResult::Success(stored.text),
    }
}

fn attachments(stored: Vec<StoredAttachment>, blobs: &Blobs) -> Attachments {
    let attachment = |it: StoredAttachment| {
        let content = match it.sha256.as_str() {
            "" => Content::Url(it.url),
            // Bytes that are lost are an empty file.
            hash => Content::Data(blobs.get(hash).cloned().unwrap_or_default()),
        };
        Attachment { shown: it.shown.unwrap_or_default(), content }
    };
    stored.into_iter().map(attachment).collect()
}

/// A turn that goes on, as its steps are read.
#[derive(Debug, Default)]
pub(super) struct OpenTurn {
    prompt: StoredPrompt,
    steps: Vec<StoredStep>,
    /// The text that has not ended.
    piece: String,
    /// Number of its provider call; 0 if it was stored without one.
    piece_round: u32,
}

impl OpenTurn {
    pub(super) fn add(&mut self, stored: StoredStep) {
        match stored.step {
            Some(Kind::Began(prompt)) => self.prompt = prompt,
            Some(Kind::Piece(piece)) => {
                self.piece += &piece;
                self.piece_round = stored.text_round;
            }
            Some(Kind::Result(result)) => self.returned(result),
            Some(Kind::Text(_)) => {
                self.piece.clear();
                self.steps.push(stored);
            }
            Some(Kind::Prompt(_) | Kind::ProviderData(_) | Kind::Call(_)) => {
                self.steps.push(stored);
            }
            // It is no step of a turn.
            Some(Kind::Dropped(_)) | None => {}
        }
    }

    fn returned(&mut self, returned: StoredToolResult) {
        for step in self.steps.iter_mut().rev() {
            if let Some(Kind::Call(call)) = &mut step.step
                && call.id == returned.id
            {
                call.result = Some(returned);
                return;
            }
        }
    }

    /// The turn, which was cut off here.
    pub(super) fn cut_off(mut self) -> StoredTurn {
        if !self.piece.is_empty() {
            let (step, text_round) = (Some(Kind::Text(self.piece)), self.piece_round);
            self.steps.push(StoredStep { step, text_round });
        }
        let StoredPrompt { text: prompt, attachments } = self.prompt;
        let (steps, usage) = (self.steps, None);
        StoredTurn { prompt, attachments, steps, interrupted: true, usage }
    }
}

/// The name of an engine, as a text that lasts as long as the program: engines compare their data
/// with names of their own. `None` past [`ENGINE_NAMES_MAX`].
fn engine_name(name: &str) -> Option<&'static str> {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(name) {
        return Some(known);
    }
    if known.len() >= ENGINE_NAMES_MAX {
        return None;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    known.insert(name);
    Some(name)
}

#[cfg(test)]
mod tests;
