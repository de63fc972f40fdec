//! What an answer has given out so far, and its end: the same whatever the interface.

use super::failure::{Failure, Failures};
use crate::chat::event::{FinishClass, ProviderData, Usage};
use crate::engine::EngineEvent;

/// Bytes of a stop reason that are shown. The longest known word has twenty-nine.
const STOP_REASON_BYTES_MAX: usize = 200;

/// What has been given out.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Output {
    has_reasoning: bool,
    has_text: bool,
    /// There is more in the text than white space.
    has_words: bool,
    has_calls: bool,
}

/// The end of an answer.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Ending {
    /// The provider's word.
    pub(in crate::engine) stop_reason: String,
    pub(in crate::engine) class: FinishClass,
    pub(in crate::engine) usage: Option<Usage>,
    pub(in crate::engine) provider_data: Option<ProviderData>,
}

impl Output {
    /// Takes note of `events`, which are new.
    pub(in crate::engine) fn note(&mut self, events: &[EngineEvent]) {
        for event in events {
            match event {
                EngineEvent::Reasoning { .. } => self.has_reasoning = true,
                EngineEvent::Text(text) => {
                    self.has_text = true;
                    self.has_words |= !text.trim().is_empty();
                }
                EngineEvent::ToolCallStarted(_) => self.has_calls = true,
                EngineEvent::CallStarted
                | EngineEvent::ToolArguments { .. }
                | EngineEvent::ToolCallRequested { .. }
                | EngineEvent::Usage(_)
                | EngineEvent::RetryScheduled(_)
                | EngineEvent::RetryStarted(_)
                | EngineEvent::CallFinished { .. } => {}
            }
        }
    }

    /// There is text or a tool call.
    pub(in crate::engine) fn has_answer(self) -> bool {
        self.has_text || self.has_calls
    }

    /// There are tool calls.
    pub(in crate::engine) fn has_calls(self) -> bool {
        self.has_calls
    }

    /// The text is nothing but white space.
    pub(in crate::engine) fn is_blank(self) -> bool {
        self.has_text && !self.has_words
    }

    /// The answer is complete: adds its last events to `events`.
    ///
    /// # Errors
    /// If it holds nothing, and its class does not say why.
    pub(in crate::engine) fn end(
        self,
        failures: &Failures,
        ending: Ending,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let Ending { stop_reason, class, usage, provider_data } = ending;
        events.extend(usage.map(EngineEvent::Usage));
        let stop_reason = match class {
            FinishClass::Other => failures.shown(&stop_reason, STOP_REASON_BYTES_MAX),
            // A known word, even if it is the key.
            FinishClass::Completed
            | FinishClass::MaxTokens
            | FinishClass::ToolCalls
            | FinishClass::ContentFilter
            | FinishClass::Cancelled
            | FinishClass::Failed => stop_reason,
        };
        events.push(EngineEvent::CallFinished {
            stop_reason: stop_reason.clone(),
            class,
            provider_data,
        });
        // That an answer was cut off is reported with its finish class.
        match self.has_answer() || class.cuts_off() {
            true => Ok(()),
            false => Err(failures.no_answer(&stop_reason, self.has_reasoning)),
        }
    }
}
