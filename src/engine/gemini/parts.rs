//! The parts of an answer, as they come.

use super::event::{FunctionCall, Part};
use super::kept::KeptPart;
use crate::chat::event::ToolCall;
use crate::engine::EngineEvent;
use crate::engine::provider::tool::{CALLS_MAX, CallIds, TooManyCalls};

/// Bytes of one answer that are kept only to be sent back.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Parts of one answer that are kept. A text without signatures is one, however it came.
const KEPT_PARTS_MAX: usize = 10_000;

/// The name of the field that distinguishes reasoning from the answer.
const REASONING_FIELD: &str = "thought";

/// The parts of one answer.
#[derive(Debug, Default)]
pub(super) struct Parts {
    ids: CallIds,
    kept: Vec<KeptPart>,
    kept_bytes: usize,
}

/// Why a part can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// More than [`CALLS_MAX`] calls.
    Calls,
    /// More than [`KEPT_BYTES_MAX`] bytes or [`KEPT_PARTS_MAX`] parts to send back.
    Kept,
    /// A call without a name.
    Nameless,
}

impl Bad {
    /// What is wrong, for the detail of an error.
    pub(super) fn words(self) -> String {
        match self {
            Self::Calls => format!("more than {CALLS_MAX} tool calls"),
            Self::Kept => format!(
                "more than {KEPT_BYTES_MAX} bytes or {KEPT_PARTS_MAX} parts with a signature"
            ),
            Self::Nameless => "a tool call without a name".to_owned(),
        }
    }
}

impl Parts {
    /// Takes the next part; adds what happened to `events`.
    pub(super) fn push(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Bad> {
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            return self.call(call, signature, events);
        }
        // A signature may come in a part of its own; its text is empty or left out.
        let text = part.text.unwrap_or_default();
        if part.thought == Some(true) {
            self.thought(text, signature, events)
        } else {
            self.text(text, signature, events)
        }
    }

    /// What is kept, in the order of the answer.
    pub(super) fn kept(&self) -> &[KeptPart] {
        &self.kept
    }

    fn thought(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Bad> {
        if !text.is_empty() {
            events.push(EngineEvent::Reasoning { source: REASONING_FIELD, text: text.clone() });
        }
        match signature {
            Some(signature) => {
                let bytes = text.len() + signature.len();
                self.keep(KeptPart::Thought { text, signature }, bytes)
            }
            None => Ok(()),
        }
    }

    fn text(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Bad> {
        let bytes = text.len();
        if !text.is_empty() {
            events.push(EngineEvent::Text(text));
        }
        match (signature, self.kept.last_mut()) {
            (None, _) if bytes == 0 => Ok(()),
            (None, Some(KeptPart::Text { bytes: before, signature: None })) => {
                *before += bytes;
                Ok(())
            }
            (signature, _) => {
                let kept_bytes = signature.as_ref().map_or(0, String::len);
                self.keep(KeptPart::Text { bytes, signature }, kept_bytes)
            }
        }
    }

    fn call(
        &mut self,
        call: FunctionCall,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Bad> {
        let FunctionCall { id: given, name, args } = call;
        if name.is_empty() {
            return Err(Bad::Nameless);
        }
        let given = given.filter(|id| !id.is_empty());
        let id = self.ids.next(given.as_deref().unwrap_or_default());
        let id = id.map_err(|TooManyCalls| Bad::Calls)?;
        let args = args.as_ref().map_or("{}", |args| args.get());
        let text = if args == "null" { "{}" } else { args }.to_owned();
        events.push(EngineEvent::ToolCallStarted(ToolCall { id: id.clone(), name }));
        events.push(EngineEvent::ToolArguments { id: id.clone(), text });
        events.push(EngineEvent::ToolCallRequested { id });
        let kept_bytes = [&given, &signature].into_iter().flatten().map(String::len).sum();
        self.keep(KeptPart::Call { id: given, signature }, kept_bytes)
    }

    fn keep(&mut self, part: KeptPart, bytes: usize) -> Result<(), Bad> {
        self.kept_bytes += bytes;
        self.kept.push(part);
        match self.kept_bytes > KEPT_BYTES_MAX || self.kept.len() > KEPT_PARTS_MAX {
            true => Err(Bad::Kept),
            false => Ok(()),
        }
    }
}
