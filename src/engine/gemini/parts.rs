//! The parts of an answer, as they stream.

use super::event::{FunctionCall, Part};
use super::provider_data::AnswerPart;
use crate::engine::EngineEvent;
use crate::engine::provider::calls::{AnswerError, CallIds, push_text};
use crate::engine::provider::provider_data::DATA_BYTES_MAX;

/// Parts of the provider data of one answer. A text without signatures is one, however it came.
const DATA_PARTS_MAX: usize = 10_000;

/// The name of the field that distinguishes reasoning from the answer.
const REASONING_FIELD: &str = "thought";

/// The parts of one answer.
#[derive(Debug, Default)]
pub(super) struct Parts {
    ids: CallIds,
    data: Vec<AnswerPart>,
    data_bytes: usize,
}

impl Parts {
    /// Takes the next part; adds what happened to `events`.
    pub(super) fn push(
        &mut self,
        part: Part,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
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

    /// The provider data, in the order of the answer.
    pub(super) fn data(&self) -> &[AnswerPart] {
        &self.data
    }

    /// The model has called tools.
    pub(super) fn has_calls(&self) -> bool {
        self.ids.len() > 0
    }

    fn thought(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        push_text(EngineEvent::Reasoning { source: REASONING_FIELD, text: text.clone() }, events);
        match signature {
            Some(signature) => {
                let bytes = text.len() + signature.len();
                self.push_data(AnswerPart::Thought { text, signature }, bytes)
            }
            None => Ok(()),
        }
    }

    fn text(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let bytes = text.len();
        push_text(EngineEvent::Text(text), events);
        match (signature, self.data.last_mut()) {
            (None, _) if bytes == 0 => Ok(()),
            (None, Some(AnswerPart::Text { bytes: before, signature: None })) => {
                *before += bytes;
                Ok(())
            }
            (signature, _) => {
                let data_bytes = signature.as_ref().map_or(0, String::len);
                self.push_data(AnswerPart::Text { bytes, signature }, data_bytes)
            }
        }
    }

    fn call(
        &mut self,
        call: FunctionCall,
        signature: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let FunctionCall { id: given, name, args } = call;
        let given = given.filter(|id| !id.is_empty());
        self.ids.whole(given.clone().unwrap_or_default(), name, args.as_deref(), events)?;
        let data_bytes = [&given, &signature].into_iter().flatten().map(String::len).sum();
        self.push_data(AnswerPart::Call { id: given, signature }, data_bytes)
    }

    fn push_data(&mut self, part: AnswerPart, bytes: usize) -> Result<(), AnswerError> {
        self.data_bytes += bytes;
        self.data.push(part);
        if self.data_bytes > DATA_BYTES_MAX || self.data.len() > DATA_PARTS_MAX {
            return Err(AnswerError::TooMuch(format!(
                "more than {DATA_BYTES_MAX} bytes or {DATA_PARTS_MAX} parts with a signature"
            )));
        }
        Ok(())
    }
}
