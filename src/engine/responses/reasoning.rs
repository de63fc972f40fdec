//! The reasoning of an answer as people see it. It has several parts, and may come in two forms.

use crate::engine::EngineEvent;
use serde_json::Value;

/// What stands between two parts of a reasoning.
const PART_BREAK: &str = "\n\n";

/// Where the text of a reasoning comes from. A server that sends both says the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// A summary by the provider.
    Summary,
    /// The reasoning itself.
    Text,
}

/// What has been shown of one reasoning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShownReasoning {
    /// The form that came first, with the number of its last part.
    last: Option<(ReasoningField, u64)>,
}

impl ShownReasoning {
    /// The next piece, in its part of that number; adds what is shown of it to `events`.
    pub(super) fn push(
        &mut self,
        field: ReasoningField,
        part: u64,
        text: &str,
        events: &mut Vec<EngineEvent>,
    ) {
        if text.is_empty() || self.last.is_some_and(|(other, _)| other != field) {
            return;
        }
        let is_next = self.last.is_some_and(|(_, last)| last != part);
        let text = if is_next { PART_BREAK.to_owned() + text } else { text.to_owned() };
        self.last = Some((field, part));
        events.push(EngineEvent::Reasoning { source: field.name(), text });
    }

    /// The reasoning is whole; adds it to `events` if no piece of it came.
    pub(super) fn complete(
        &mut self,
        summary: &Value,
        content: &Value,
        events: &mut Vec<EngineEvent>,
    ) {
        if self.last.is_some() {
            return;
        }
        for (field, parts) in [(ReasoningField::Summary, summary), (ReasoningField::Text, content)]
        {
            let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
            for (number, part) in (0..).zip(parts) {
                self.push(field, number, part["text"].as_str().unwrap_or_default(), events);
            }
        }
    }
}

impl ReasoningField {
    /// The name of the field that holds it.
    fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Text => "reasoning_text",
        }
    }
}
