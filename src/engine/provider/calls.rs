//! The tool calls of an answer, and why the parts of an answer can't be put together. Pure.

use crate::conversation::event::ToolCall;
use crate::engine::EngineEvent;
use crate::protocol::id::ToolCallId;
use crate::protocol::json::object_in_string;
use serde_json::value::RawValue;

/// Tool calls of one answer.
pub(in crate::engine) const CALLS_MAX: usize = 256;

/// Why the parts of an answer can't be put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum AnswerError {
    /// There is more of something than a limit allows: the limit, for the detail of an error.
    TooMuch(String),
    /// A tool call has no name.
    NamelessCall,
    /// A piece belongs to no part that has begun, or to one of another kind: what it is.
    Misplaced(&'static str),
}

/// The ids of the calls of one answer.
#[derive(Debug, Default)]
pub(in crate::engine) struct CallIds(Vec<ToolCallId>);

impl CallIds {
    /// The next call begins; `given` is the id that the provider gave it, which may be empty.
    pub(in crate::engine) fn begin(
        &mut self,
        given: String,
        name: String,
        events: &mut Vec<EngineEvent>,
    ) -> Result<ToolCallId, AnswerError> {
        if name.is_empty() {
            return Err(AnswerError::NamelessCall);
        }
        if self.0.len() == CALLS_MAX {
            return Err(AnswerError::TooMuch(format!("more than {CALLS_MAX} tool calls")));
        }
        let id = self.next(given);
        events.push(EngineEvent::ToolCallStarted(ToolCall { id: id.clone(), name }));
        Ok(id)
    }

    /// The next call, which comes whole, with its arguments as the provider wrote them.
    pub(in crate::engine) fn whole(
        &mut self,
        given: String,
        name: String,
        arguments: Option<&RawValue>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let id = self.begin(given, name, events)?;
        let arguments = arguments.map(RawValue::get).filter(|arguments| *arguments != "null");
        let text = arguments.map_or_else(|| "{}".to_owned(), as_object);
        events.push(EngineEvent::ToolArguments { id: id.clone(), text });
        events.push(EngineEvent::ToolCallRequested { id });
        Ok(())
    }

    /// How many calls there are.
    pub(in crate::engine) fn len(&self) -> usize {
        self.0.len()
    }

    /// The id of the next call: the provider's, unless it is missing or would make two calls one.
    pub(in crate::engine) fn next(&mut self, given: String) -> ToolCallId {
        let is_free = |id: &ToolCallId| !self.0.contains(id);
        let made_up = (self.0.len()..).map(|number| ToolCallId(format!("call_{number}")));
        let given = Some(ToolCallId(given)).filter(|id| !id.0.trim().is_empty());
        let id = given.into_iter().chain(made_up).find(is_free);
        let id = id.unwrap_or_else(|| ToolCallId(String::new()));
        self.0.push(id.clone());
        id
    }
}

/// Arguments as an object. Some servers write it into a string, as other interfaces have it.
fn as_object(arguments: &str) -> String {
    object_in_string(arguments).unwrap_or_else(|| arguments.to_owned())
}

/// Adds `event`, unless its text is empty.
pub(in crate::engine) fn push_text(event: EngineEvent, events: &mut Vec<EngineEvent>) {
    if event.text_bytes() > 0 {
        events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_an_id_of_its_own() {
        let mut ids = CallIds::default();
        let given = ["", "a", "a", " ", "call_5", ""];
        let taken = given.map(|given| ids.next(given.to_owned()).0);
        assert_eq!(taken, ["call_0", "a", "call_2", "call_3", "call_5", "call_6"]);
    }

    #[test]
    fn an_object_in_a_string_is_unwrapped() {
        for (arguments, expected) in [
            (r#"{"a":1.50}"#, r#"{"a":1.50}"#),
            (r#""{\"a\": 1.50}""#, r#"{"a": 1.50}"#),
            (r#""{\"a\"""#, r#""{\"a\"""#),
            (r#""[1]""#, r#""[1]""#),
            ("3", "3"),
        ] {
            assert_eq!(as_object(arguments), expected);
        }
    }
}
