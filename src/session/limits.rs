//! Limits on the output of a run, and on how often it repeats its prompt.

use super::client_error::{endless_answer, too_many_segments};
use crate::conversation::event::ToolResult;
use crate::support::text::Text;
use crate::task::limits::ANSWER_BYTES_MAX;
use crate::task::report::{EngineEvent, RunError};

/// Segments of text and reasoning that an answer may have: each is a message of the conversation, and
/// costs far more than its text.
pub(super) const ANSWER_SEGMENTS_MAX: u32 = 10_000;

/// Tool calls that one answer may make: each looks for its own among all of them.
pub(super) const ANSWER_CALLS_MAX: u32 = 10_000;

/// Bytes of prompt that the text segments of a run have together, the first of them included, which has it
/// whatever its length: a long prompt and an answer of many segments must not multiply.
const REPEATED_PROMPT_BYTES_MAX: usize = 1024 * 1024;

/// Limits on the output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerLimits {
    pub(super) bytes: usize,
    pub(super) segments: u32,
    /// Tool calls of one answer.
    pub(super) calls: u32,
}

/// The output of a run so far.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerCount {
    bytes: usize,
    segments: u32,
    repeated_bytes: usize,
    has_text: bool,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { bytes: ANSWER_BYTES_MAX, segments: ANSWER_SEGMENTS_MAX, calls: ANSWER_CALLS_MAX }
    }
}

impl AnswerCount {
    /// Counts an event, which begins a segment or not.
    ///
    /// # Errors
    /// If the answer is past its limits with it.
    pub(super) fn add(
        &mut self,
        event: &EngineEvent,
        begins_segment: bool,
        limits: AnswerLimits,
    ) -> Result<(), RunError> {
        self.bytes += event.text_bytes();
        self.segments += u32::from(begins_segment);
        if let EngineEvent::Text(text) = event {
            self.has_text |= !text.is_empty();
        }
        if self.bytes > limits.bytes {
            return Err(endless_answer(limits.bytes));
        }
        if self.segments > limits.segments {
            return Err(too_many_segments(limits.segments));
        }
        Ok(())
    }

    /// Counts the result of a tool.
    pub(super) fn add_result(&mut self, result: &ToolResult) {
        self.bytes += result.text().len();
    }

    /// Whether the model has written any text that is not reasoning.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Whether the output of the run exceeds the limits.
    pub(super) fn is_past(&self, limits: AnswerLimits) -> bool {
        self.bytes > limits.bytes
    }

    /// The prompt, for a text segment to repeat; nothing if the run's segments have repeated it too
    /// often for its length. The first one always does.
    pub(super) fn repeat(&mut self, prompt: &Text) -> Text {
        let is_first = self.repeated_bytes == 0;
        self.repeated_bytes += prompt.len();
        match is_first || self.repeated_bytes <= REPEATED_PROMPT_BYTES_MAX {
            true => prompt.clone(),
            false => Text::default(),
        }
    }
}
