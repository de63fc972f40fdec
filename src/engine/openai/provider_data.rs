//! Provider data: the reasoning, and what servers add to calls, for servers that expect it back. DeepSeek refuses a
//! tool's result without its reasoning, models that vLLM and Ollama run, as MiniMax's, think on from it, OpenRouter and
//! LiteLLM hand it on to the provider that signed it, and Google refuses a call without its signature.

use super::NAME;
use super::chunk::{Delta, ReasoningField};
use crate::conversation::event::ProviderData;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::join::Joiner;
use crate::engine::provider::provider_data::{DATA_BYTES_MAX, decode_value, encode_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::mem::take;

/// The text of a thinking block.
const THINKING: &str = "thinking";

/// Fields of a reasoning detail, or of a thinking block, that come in pieces.
const TEXTS: [&str; 3] = ["text", "summary", THINKING];

/// The field of a thinking block with which it ends.
const SIGNATURE: &str = "signature";

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
    /// As vLLM has it, which ignores the name that others have.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning: String,
    /// As GitHub's Copilot has it, with the form that it alone can read.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_opaque: String,
    /// As OpenRouter has it: its parts, which may be signed or encrypted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
    /// As LiteLLM has it: Anthropic's blocks, with their signatures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<Map<String, Value>>,
    /// The beginning of the text in which the model wrote its reasoning, with the tag around it: the template of a
    /// model that is not to see it again leaves it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) think: String,
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
    /// What joins the pieces of each text.
    joiners: BTreeMap<ReasoningField, Joiner>,
    bytes: usize,
}

impl ProviderDataBuilder {
    /// The reasoning in the next piece of the answer, under each name that it has there.
    pub(super) fn push(&mut self, piece: &mut Delta) {
        for (field, text) in piece.reasoning_texts() {
            self.push_text(field, text);
        }
        if let Some(opaque) = piece.reasoning_opaque()
            && self.has_room(opaque.len())
        {
            opaque.clone_into(&mut self.data.reasoning_opaque);
        }
        self.push_items(piece.take_details(), ReasoningData::push_detail);
        self.push_items(piece.take_thinking_blocks(), ReasoningData::push_block);
    }

    fn push_text(&mut self, field: ReasoningField, piece: &[u8]) {
        if !piece.is_empty() && self.has_room(piece.len()) {
            let text = self.joiners.entry(field).or_default().push(piece);
            self.data.text_mut(field).push_str(&text);
        }
    }

    fn push_items(&mut self, items: Vec<Value>, add: fn(&mut ReasoningData, Map<String, Value>)) {
        for item in items {
            let bytes = item.to_string().len();
            if let Value::Object(item) = item
                && self.has_room(bytes)
            {
                add(&mut self.data, item);
            }
        }
    }

    /// The beginning of the text, with reasoning in a tag.
    pub(super) fn push_think(&mut self, think: String) {
        if self.has_room(think.len()) {
            self.data.think = think;
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
        for (field, mut joiner) in take(&mut self.joiners) {
            self.data.text_mut(field).push_str(&joiner.end());
        }
        // Anthropic refuses a block without its signature, as the last one of an answer that was cut off.
        self.data.thinking_blocks.retain(|block| !is_unsigned(block));
        if !self.has_room(0) || self.data == ReasoningData::default() {
            return None;
        }
        if !self.data.reasoning_details.is_empty() {
            // The details repeat it.
            self.data.reasoning_content.clear();
            self.data.reasoning.clear();
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

    /// Adds a thinking block, or a piece of the last one, which its signature ends.
    fn push_block(&mut self, block: Map<String, Value>) {
        let last = self.thinking_blocks.last_mut();
        match last.filter(|last| is_unsigned(last) && !block.contains_key(ENCRYPTED)) {
            Some(last) => block.into_iter().for_each(|field| add(last, field)),
            None => self.thinking_blocks.push(block),
        }
    }

    fn text_mut(&mut self, field: ReasoningField) -> &mut String {
        match field {
            ReasoningField::ReasoningContent => &mut self.reasoning_content,
            ReasoningField::Reasoning => &mut self.reasoning,
            ReasoningField::ReasoningText => &mut self.reasoning_text,
        }
    }
}

/// Whether `block` is one of thinking, not a redacted one, and has no signature yet.
fn is_unsigned(block: &Map<String, Value>) -> bool {
    block.contains_key(THINKING) && block.get(SIGNATURE).is_none_or(is_empty)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
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
        assert_eq!((&*data.engine, &*data.host, &*data.model), ("openai", "h", "m"));
        Some(serde_json::from_str(&data.json).expect("JSON"))
    }

    /// The data of an answer of these pieces.
    fn data(pieces: &[Value]) -> Option<Value> {
        let mut builder = ProviderDataBuilder::default();
        for piece in pieces {
            let mut piece: Delta = serde_json::from_str(&piece.to_string()).expect("a piece");
            builder.push(&mut piece);
        }
        built(builder)
    }

    #[test]
    fn the_texts_go_back_under_the_names_that_they_came_by() {
        for name in ["reasoning_content", "reasoning", "reasoning_text"] {
            let data =
                data(&[json!({ name: "h" }), json!({ "content": "x" }), json!({ name: "m" })]);
            assert_eq!(data, Some(json!({ name: "hm" })));
        }
        let both = json!({ "reasoning_content": "hm", "reasoning": "hm" });
        assert_eq!(data(std::slice::from_ref(&both)), Some(both));
        let opaque = json!({ "reasoning_text": "hm", "reasoning_opaque": "b3A=" });
        assert_eq!(data(std::slice::from_ref(&opaque)), Some(opaque));
        assert_eq!(
            data(&[json!({ "content": "x", "reasoning": "", "reasoning_opaque": 1 })]),
            None
        );
        // The details of OpenRouter repeat the text.
        let details = json!([{ "type": "reasoning.text", "text": "hm", "index": 0 }]);
        let piece = json!({ "reasoning": "hm", "reasoning_details": details });
        assert_eq!(data(&[piece]), Some(json!({ "reasoning_details": details })));
    }

    #[test]
    fn a_character_that_was_cut_in_a_text_is_whole_again() {
        let mut builder = ProviderDataBuilder::default();
        for piece in [r#"{"reasoning":"a\ud83d"}"#, r#"{"reasoning":"\ude00\ud83d"}"#] {
            builder.push(&mut serde_json::from_str(piece).expect("a piece"));
        }
        assert_eq!(built(builder), Some(json!({ "reasoning": "a\u{1F600}\u{FFFD}" })));
    }

    /// As LiteLLM sends Claude's.
    #[test]
    fn the_pieces_of_a_thinking_block_are_one_again_up_to_its_signature() {
        let block = |thinking: &str, signature: Value| json!({ "type": "thinking", "thinking": thinking, "signature": signature });
        let piece = |block: &Value| json!({ "thinking_blocks": [block] });
        let redacted = json!({ "type": "redacted_thinking", "data": "eHg=" });
        let pieces = [
            json!({ "reasoning_content": "a", "thinking_blocks": [block("a", json!(""))] }),
            piece(&block("b", Value::Null)),
            piece(&block("", json!("s"))),
            piece(&redacted),
            piece(&redacted),
            piece(&block("c", json!(""))),
            piece(&json!({ "type": "thinking", "signature": "t" })),
            // Whole, and cut off.
            piece(&block("d", json!("u"))),
            piece(&block("e", json!(""))),
        ];
        let blocks = json!([
            block("ab", json!("s")),
            redacted,
            redacted,
            block("c", json!("t")),
            block("d", json!("u"))
        ]);
        let expected = json!({ "reasoning_content": "a", "thinking_blocks": blocks });
        assert_eq!(data(&pieces), Some(expected));
        assert_eq!(data(&[json!({ "thinking_blocks": [block("a", Value::Null)] })]), None);
        assert_eq!(data(&[json!({ "thinking_blocks": "odd" })]), None);
    }

    /// As earlier versions have stored it.
    #[test]
    fn stored_data_is_read() {
        let stored = r#"{"reasoning_content":"hm","calls":[{"id":"a"},{}]}"#;
        let stored: ReasoningData = serde_json::from_str(stored).expect("data");
        assert_eq!((stored.reasoning_content.as_str(), stored.calls.len()), ("hm", 2));
        assert!(stored.reasoning.is_empty() && stored.thinking_blocks.is_empty());
    }

    #[test]
    fn the_pieces_of_a_detail_are_one_again() {
        let text = |text: &str| json!({ "type": "reasoning.text", "text": text, "index": 0 });
        let piece = |details: &[Value]| json!({ "reasoning_details": details });
        let signed = json!({ "type": "reasoning.text", "text": "", "index": 0, "signature": "s" });
        let encrypted =
            |data: &str| json!({ "type": "reasoning.encrypted", "data": data, "index": 1 });
        let pieces = [
            json!({ "reasoning_content": "so" }),
            piece(&[text("a"), json!("odd")]),
            piece(&[text("b")]),
            piece(&[signed]),
            piece(&[encrypted("x"), encrypted("y"), text("c")]),
        ];
        let whole = json!([
            { "type": "reasoning.text", "text": "ab", "index": 0, "signature": "s" },
            encrypted("x"),
            encrypted("y"),
            text("c"),
        ]);
        assert_eq!(data(&pieces), Some(json!({ "reasoning_details": whole })));
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
        let piece = |details: &[Value]| json!({ "reasoning_details": details });
        let pieces = [
            piece(&[detail(0, "text", "a")]),
            piece(&[detail(0, "text", "b")]),
            piece(&[detail(1, "text", "c")]),
            piece(&[detail(0, "signature", "s"), detail(1, "signature", "t")]),
            // What belongs to no other detail stays one.
            piece(&[detail(2, "signature", "u")]),
        ];
        let whole = json!([signed(0, "ab", "s"), signed(1, "c", "t"), detail(2, "signature", "u")]);
        assert_eq!(data(&pieces), Some(json!({ "reasoning_details": whole })));
    }

    #[test]
    fn nothing_is_sent_back_of_nothing_or_of_too_much() {
        assert_eq!(built(ProviderDataBuilder::default()), None);
        let long = "x".repeat(DATA_BYTES_MAX);
        for name in ["reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque"] {
            assert_eq!(data(&[json!({ name: long }), json!({ "reasoning": "y" })]), None, "{name}");
        }
    }
}
