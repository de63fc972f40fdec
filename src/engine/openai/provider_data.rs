//! Provider data: the reasoning, and what servers add to calls, for servers that expect it back. DeepSeek refuses
//! a tool's result without its reasoning, OpenRouter hands it on to the provider that signed it, and Google refuses
//! a call without its signature.

use super::NAME;
use crate::conversation::event::ProviderData;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::provider_data::{DATA_BYTES_MAX, decode_value, encode_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields of a reasoning detail that come in pieces.
const TEXTS: [&str; 2] = ["text", "summary"];

/// The field of a reasoning detail that only its provider can read.
const ENCRYPTED: &str = "data";

/// Fields of a reasoning detail by which the pieces of one are recognized.
const MARKS: [&str; 2] = ["type", "index"];

/// The reasoning in an answer, under the names that servers give it and take it by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReasoningData {
    /// As DeepSeek has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    /// As OpenRouter has it: its parts, which may be signed or encrypted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
    /// Empty if no call has any, else one for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<CallData>,
}

/// What goes back with a call beside what the transcript has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CallData {
    /// The server's own id, if it is too long for other servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// As Google has it: `google.thought_signature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Value>,
}

/// Collects the reasoning of a response. Of more than [`DATA_BYTES_MAX`], nothing is sent back.
#[derive(Debug, Default)]
pub(super) struct ProviderDataBuilder {
    data: ReasoningData,
    bytes: usize,
}

impl ProviderDataBuilder {
    /// The next piece of a `reasoning_content`.
    pub(super) fn push_content(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.data.reasoning_content += text;
        }
    }

    /// The next pieces of `reasoning_details`.
    pub(super) fn push_details(&mut self, details: Vec<Value>) {
        for detail in details {
            let bytes = detail.to_string().len();
            if let Value::Object(detail) = detail
                && self.has_room(bytes)
            {
                self.data.push_detail(detail);
            }
        }
    }

    /// The calls of the answer, in their order.
    pub(super) fn push_calls(&mut self, calls: Vec<CallData>) {
        let bytes = |call: &CallData| {
            let extra_bytes = call.extra_content.as_ref().map_or(0, |it| it.to_string().len());
            call.id.as_ref().map_or(0, String::len) + extra_bytes
        };
        let is_needed = calls.iter().any(|call| *call != CallData::default());
        if is_needed && self.has_room(calls.iter().map(bytes).sum()) {
            self.data.calls = calls;
        }
    }

    /// The provider data of the call of these failures; `None` if there is none, or too much.
    pub(super) fn build(mut self, of: &Failures) -> Option<ProviderData> {
        if !self.has_room(0) || self.data == ReasoningData::default() {
            return None;
        }
        if !self.data.reasoning_details.is_empty() {
            // The details repeat it.
            self.data.reasoning_content.clear();
        }
        encode_value(NAME, of, &self.data)
    }

    fn has_room(&mut self, more_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(more_bytes);
        self.bytes <= DATA_BYTES_MAX
    }
}

impl ReasoningData {
    /// Adds a detail, or a piece of an earlier one.
    fn push_detail(&mut self, detail: Map<String, Value>) {
        let whole = match is_bare(&detail) {
            // A signature may come by itself, and after the beginning of the next detail.
            true => self.reasoning_details.iter_mut().rfind(|whole| have_marks(whole, &detail)),
            false => self.reasoning_details.last_mut().filter(|last| is_piece(last, &detail)),
        };
        match whole {
            Some(last) => detail.into_iter().for_each(|field| add(last, field)),
            None => self.reasoning_details.push(detail),
        }
    }
}

fn have_marks(whole: &Map<String, Value>, detail: &Map<String, Value>) -> bool {
    MARKS.iter().all(|name| whole.get(*name) == detail.get(*name))
}

/// Whether `detail` is the next piece of `last`.
fn is_piece(last: &Map<String, Value>, detail: &Map<String, Value>) -> bool {
    have_marks(last, detail)
        && TEXTS.iter().any(|name| last.contains_key(*name) && detail.contains_key(*name))
}

/// Whether `detail` holds no reasoning, only what is said about some.
fn is_bare(detail: &Map<String, Value>) -> bool {
    let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(str::is_empty);
    TEXTS.iter().chain(&[ENCRYPTED]).all(|name| detail.get(*name).is_none_or(is_empty))
}

/// Adds a field of the next piece to a detail.
fn add(detail: &mut Map<String, Value>, (name, value): (String, Value)) {
    match (detail.get_mut(&name), value) {
        (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&name.as_str()) => {
            *text += &more;
        }
        (Some(_), Value::Null) => {}
        (_, value) => {
            detail.insert(name, value);
        }
    }
}

/// The reasoning in `data`, if this engine wrote it for `model`; otherwise none.
pub(super) fn reasoning(data: Option<&ProviderData>, model: &str) -> ReasoningData {
    decode_value(data, NAME, model).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SettingNames;
    use serde_json::json;

    fn built(builder: ProviderDataBuilder) -> Option<Value> {
        let failures = Failures::new(&SettingNames::FIELDS, None, "http://h", "m");
        let data = builder.build(&failures)?;
        assert_eq!((data.engine, &*data.host, &*data.model), ("openai", "h", "m"));
        Some(serde_json::from_str(&data.json).expect("JSON"))
    }

    #[test]
    fn the_pieces_of_a_detail_are_one_again() {
        let mut builder = ProviderDataBuilder::default();
        let text = |text: &str| json!({ "type": "reasoning.text", "text": text, "index": 0 });
        builder.push_content("so");
        builder.push_details(vec![text("a"), json!("odd")]);
        builder.push_details(vec![text("b")]);
        let signed = json!({ "type": "reasoning.text", "text": "", "index": 0, "signature": "s" });
        builder.push_details(vec![signed]);
        let encrypted =
            |data: &str| json!({ "type": "reasoning.encrypted", "data": data, "index": 1 });
        builder.push_details(vec![encrypted("x"), encrypted("y"), text("c")]);
        let whole = json!([
            { "type": "reasoning.text", "text": "ab", "index": 0, "signature": "s" },
            encrypted("x"),
            encrypted("y"),
            text("c"),
        ]);
        assert_eq!(built(builder), Some(json!({ "reasoning_details": whole })));
    }

    /// As OpenRouter sends Claude's.
    #[test]
    fn a_signature_without_a_text_belongs_to_the_detail_with_its_marks() {
        let detail = |index: u8, name: &str, value: &str| {
            json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": index,
                    name: value })
        };
        let signed = |index: u8, text: &str, signature: &str| {
            json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": index,
                    "text": text, "signature": signature })
        };
        let mut builder = ProviderDataBuilder::default();
        for text in ["a", "b"] {
            builder.push_details(vec![detail(0, "text", text)]);
        }
        builder.push_details(vec![detail(1, "text", "c")]);
        builder.push_details(vec![detail(0, "signature", "s"), detail(1, "signature", "t")]);
        // What belongs to no other detail stays one.
        builder.push_details(vec![detail(2, "signature", "u")]);
        let whole = json!([signed(0, "ab", "s"), signed(1, "c", "t"), detail(2, "signature", "u")]);
        assert_eq!(built(builder), Some(json!({ "reasoning_details": whole })));
    }

    #[test]
    fn nothing_is_sent_back_of_nothing_or_of_too_much() {
        assert_eq!(built(ProviderDataBuilder::default()), None);
        let mut builder = ProviderDataBuilder::default();
        builder.push_content(&"x".repeat(DATA_BYTES_MAX));
        builder.push_content("y");
        assert_eq!(built(builder), None);
        let mut builder = ProviderDataBuilder::default();
        builder.push_content("a");
        builder.push_content("b");
        assert_eq!(built(builder), Some(json!({ "reasoning_content": "ab" })));
    }
}
