//! Tools and their calls, in the form that providers take.

use crate::protocol::id::ToolCallId;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Tool calls of one answer.
pub(in crate::engine) const CALLS_MAX: usize = 256;

/// Bytes of a tool call's id that are kept.
pub(in crate::engine) const ID_BYTES_MAX: usize = 1024;

/// Bytes of a tool's name that are kept. Providers allow 64 or 128.
pub(in crate::engine) const NAME_BYTES_MAX: usize = 200;

/// The schema in a form that providers take: one tool that they refuse would have them refuse the
/// whole request. They want an object with its properties, and none of these words at the top.
pub(in crate::engine) fn parameters(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    const NOT_AT_TOP: [&str; 5] = ["allOf", "anyOf", "enum", "not", "oneOf"];
    let is_fine = schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("properties").is_some_and(Value::is_object)
        && NOT_AT_TOP.iter().all(|word| !schema.contains_key(*word));
    if is_fine {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    schema.retain(|word, _| !NOT_AT_TOP.contains(&word.as_str()));
    schema.insert("type".to_owned(), json!("object"));
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    Cow::Owned(schema)
}

/// A model may write arguments that are no JSON object. Providers refuse them when they come back,
/// and would refuse every later request of the conversation: they are wrapped into an object.
pub(in crate::engine) fn arguments(input: &str) -> Cow<'_, str> {
    if input.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str(input) {
        Ok(Value::Object(_)) => input.into(),
        Ok(_) | Err(_) => json!({ "unreadable_arguments": input }).to_string().into(),
    }
}

/// The ids of the calls of one answer, each different.
#[derive(Debug, Default)]
pub(in crate::engine) struct CallIds(Vec<ToolCallId>);

/// More than [`CALLS_MAX`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct TooManyCalls;

impl CallIds {
    /// The id of the next call: the provider's, unless it is missing or would make two calls one.
    pub(in crate::engine) fn next(&mut self, given: &str) -> Result<ToolCallId, TooManyCalls> {
        let number = self.0.len();
        if number == CALLS_MAX {
            return Err(TooManyCalls);
        }
        let given = Some(given).filter(|id| !id.trim().is_empty()).map(str::to_owned);
        let made_up = (number..=number + CALLS_MAX).map(|number| format!("call_{number}"));
        let mut ids = given.into_iter().chain(made_up).map(ToolCallId);
        let id = ids.find(|id| !self.0.contains(id)).ok_or(TooManyCalls)?;
        self.0.push(id.clone());
        Ok(id)
    }

    /// How many calls there are.
    pub(in crate::engine) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_a_schema_that_the_provider_takes() {
        let check = |schema: Value, expected: Value| {
            let Value::Object(schema) = schema else { panic!("no object") };
            assert_eq!(Value::Object(parameters(&schema).into_owned()), expected);
        };
        let whole = json!({ "type": "object", "properties": { "a": { "anyOf": [] } } });
        check(whole.clone(), whole);
        check(json!({}), json!({ "type": "object", "properties": {} }));
        check(
            json!({ "oneOf": [{}], "anyOf": [{}], "required": ["a"], "properties": { "a": {} } }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": {} } }),
        );
    }

    #[test]
    fn each_call_has_an_id_of_its_own() {
        let mut ids = CallIds::default();
        let given = ["", "a", "a", " ", "call_5", ""];
        let next = given.map(|given| ids.next(given).expect("few").0);
        assert_eq!(next, ["call_0", "a", "call_2", "call_3", "call_5", "call_6"]);
        for _ in given.len()..CALLS_MAX {
            ids.next("").expect("few");
        }
        assert_eq!(ids.next("b"), Err(TooManyCalls));
    }

    #[test]
    fn arguments_are_always_an_object() {
        let check = |input: &str, expected: &str| assert_eq!(arguments(input), expected);
        check("", "{}");
        check(" {\"a\": 1} ", " {\"a\": 1} ");
        check("{\"a", r#"{"unreadable_arguments":"{\"a"}"#);
        check("[1]", r#"{"unreadable_arguments":"[1]"}"#);
    }
}
