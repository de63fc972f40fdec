//! Tools and their calls, in the form that providers take.

use super::parameters::parameters;
use crate::conversation::tool::ToolSpec;
use crate::protocol::command::{TOOL_NAME_BYTES_MAX, is_tool_name};
use crate::protocol::json::object_in_string;
use data_encoding::{BASE32_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Bytes of a call's id that every provider takes, but for OpenAI's chat completions.
pub(in crate::engine) const WIRE_ID_BYTES_MAX: usize = 64;

/// Longest id of a tool call, in bytes; longer ones are cut.
pub(in crate::engine) const ID_BYTES_MAX: usize = 1024;

/// Longest id of a tool call that goes back as the server gave it, in bytes. LiteLLM puts Gemini's signature of a
/// thought into the id.
pub(in crate::engine) const OWN_ID_BYTES_MAX: usize = 16 * 1024;

/// Longest name of a tool, in bytes; longer ones are cut. Providers allow 64 or 128.
pub(in crate::engine) const NAME_BYTES_MAX: usize = 200;

/// Bytes of the hash in a shortened id.
const ID_HASH_BYTES: usize = 8;

/// A tool in the form of OpenAI's chat completions, which Ollama takes as well.
#[derive(Serialize)]
pub(in crate::engine) struct FunctionTool<'a> {
    r#type: &'static str,
    function: FunctionDefinition<'a>,
}

#[derive(Serialize)]
struct FunctionDefinition<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Cow<'a, Map<String, Value>>,
}

impl<'a> FunctionTool<'a> {
    pub(in crate::engine) fn new(spec: &'a ToolSpec) -> Self {
        let (name, description) = (&spec.name, &spec.description);
        let parameters = parameters(&spec.input_schema);
        Self { r#type: "function", function: FunctionDefinition { name, description, parameters } }
    }
}

/// A model may write arguments that are no JSON object. Providers refuse them when they come back,
/// and would refuse every later request of the conversation: they are wrapped into an object. An object within a
/// string is what the tool got, and goes back as it is.
pub(in crate::engine) fn arguments(input: &str) -> Cow<'_, str> {
    if input.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str(input) {
        Ok(Value::Object(_)) => input.into(),
        Ok(_) | Err(_) => object_in_string(input)
            .unwrap_or_else(|| json!({ "unreadable_arguments": input }).to_string())
            .into(),
    }
}

/// The name of a called tool in a form that every provider takes. Models make up names, such as
/// `functions.look`, and providers would refuse every later request of the conversation for them.
pub(in crate::engine) fn wire_name(name: &str) -> Cow<'_, str> {
    if is_tool_name(name) {
        return name.into();
    }
    let is_fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fine = name.chars().map(|c| if is_fine(&c) { c } else { '_' });
    let fine: String = fine.take(TOOL_NAME_BYTES_MAX).collect();
    if fine.is_empty() { "_".into() } else { fine.into() }
}

/// The id of a call, shortened to `bytes_max` if it is longer: the same for the call and its result,
/// and another for every other id.
pub(in crate::engine) fn wire_id(id: &str, bytes_max: usize) -> Cow<'_, str> {
    if id.len() <= bytes_max {
        return id.into();
    }
    let hash = id_hash(id);
    let start = id.floor_char_boundary(bytes_max.saturating_sub(hash.len() + 1));
    format!("{}_{hash}", &id[..start]).into()
}

/// The id of a call with nothing but letters, digits, `_` and `-`, up to [`WIRE_ID_BYTES_MAX`] bytes.
pub(in crate::engine) fn wire_id_word(id: &str) -> Cow<'_, str> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(is_fine) {
        return wire_id(id, WIRE_ID_BYTES_MAX);
    }
    // Without the hash, two ids that differ in one of these characters would be one.
    let hash = id_hash(id);
    let room = WIRE_ID_BYTES_MAX - hash.len() - 1;
    let fine: String = id.chars().map(|c| if is_fine(c) { c } else { '_' }).take(room).collect();
    format!("{fine}_{hash}").into()
}

/// The id of a call with exactly `chars` letters and digits, 52 at most.
pub(in crate::engine) fn wire_id_of_chars(id: &str, chars: usize) -> Cow<'_, str> {
    if id.len() == chars && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.into();
    }
    let mut hash = BASE32_NOPAD.encode(digest(&SHA256, id.as_bytes()).as_ref());
    hash.truncate(chars);
    hash.into()
}

fn id_hash(id: &str) -> String {
    HEXLOWER.encode(&digest(&SHA256, id.as_bytes()).as_ref()[..ID_HASH_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_that_a_model_made_up_takes_the_pattern_of_providers() {
        let check = |name: &str, expected: &str| assert_eq!(wire_name(name), expected);
        check("get_time-2", "get_time-2");
        check("functions.get_time", "functions_get_time");
        check("h\u{e9} llo", "h__llo");
        check("", "_");
        check(&"x".repeat(65), &"x".repeat(64));
        check(&"x".repeat(64), &"x".repeat(64));
    }

    #[test]
    fn long_ids_are_shortened_and_stay_apart() {
        let (one, two) = ("x".repeat(65), "x".repeat(66));
        assert_eq!(wire_id(&one[..64], 64), one[..64]);
        for id in [one.as_str(), &two, &"\u{e9}".repeat(40)] {
            for bytes_max in [40, 64] {
                let short = wire_id(id, bytes_max);
                assert!((bytes_max - 1..=bytes_max).contains(&short.len()), "{short}");
                assert_eq!(wire_id(id, bytes_max), short);
            }
        }
        assert_ne!(wire_id(&one, 64), wire_id(&two, 64));
    }

    #[test]
    fn ids_of_other_forms_take_the_pattern_and_stay_apart() {
        assert_eq!(wire_id_word("toolu_a-1"), "toolu_a-1");
        let ids = ["a:1", "a.1", "a 1", &"\u{e9}".repeat(90), &"x".repeat(90)];
        let words: BTreeSet<_> = ids.iter().map(|id| wire_id_word(id).into_owned()).collect();
        assert_eq!(words.len(), ids.len(), "{words:?}");
        assert!(words.iter().all(|word| is_tool_name(word)), "{words:?}");
        assert_eq!(wire_id_of_chars("D681PevKs", 9), "D681PevKs");
        let ids = ["call_abcd", "call_abc", "D681PevKsX", ""];
        let exact: BTreeSet<_> = ids.iter().map(|id| wire_id_of_chars(id, 9)).collect();
        assert_eq!(exact.len(), ids.len(), "{exact:?}");
        let is_fine = |id: &str| id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric());
        assert!(exact.iter().all(|id| is_fine(id)), "{exact:?}");
    }

    #[test]
    fn arguments_are_always_an_object() {
        let check = |input: &str, expected: &str| assert_eq!(arguments(input), expected);
        check("", "{}");
        check(" {\"a\": 1} ", " {\"a\": 1} ");
        check("{\"a", r#"{"unreadable_arguments":"{\"a"}"#);
        check("[1]", r#"{"unreadable_arguments":"[1]"}"#);
        check(r#""{\"a\": 1}""#, r#"{"a": 1}"#);
        check(r#""[1]""#, r#"{"unreadable_arguments":"\"[1]\""}"#);
        // What a provider could not read either.
        let deep = format!(r#"{{"q":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for object in [r#"{"q":"\ud83d"}"#, &deep] {
            let within = json!(object).to_string();
            check(&within, &json!({ "unreadable_arguments": within }).to_string());
        }
    }
}
