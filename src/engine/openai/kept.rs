//! What has to be sent back of an answer: the reasoning of servers that expect it. DeepSeek refuses a
//! tool's result without it, and OpenRouter hands it on to the provider that signed it.

use super::NAME;
use crate::chat::event::ProviderData;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes of one answer's reasoning that are kept. Of more, nothing is sent back.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Fields of a reasoning detail that come in pieces.
const TEXTS: [&str; 2] = ["text", "summary"];

/// Fields of a reasoning detail by which the pieces of one are recognized.
const MARKS: [&str; 2] = ["type", "index"];

/// The reasoning in an answer, under the names that servers give it and take it by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KeptReasoning {
    /// As DeepSeek has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    /// As OpenRouter has it: its parts, which may be signed or encrypted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
}

/// The reasoning of an answer as it comes.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    kept: KeptReasoning,
    bytes: usize,
}

impl Keeper {
    /// The next piece of a `reasoning_content`.
    pub(super) fn push_content(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.kept.reasoning_content += text;
        }
    }

    /// The next pieces of `reasoning_details`.
    pub(super) fn push_details(&mut self, details: Vec<Value>) {
        for detail in details {
            let bytes = detail.to_string().len();
            if let Value::Object(detail) = detail
                && self.has_room(bytes)
            {
                self.kept.push_detail(detail);
            }
        }
    }

    /// The data to send back; `None` if there is none, or too much.
    pub(super) fn provider_data(mut self, host: &str, model: &str) -> Option<ProviderData> {
        if !self.has_room(0) || self.kept == KeptReasoning::default() {
            return None;
        }
        if !self.kept.reasoning_details.is_empty() {
            // It says the same.
            self.kept.reasoning_content.clear();
        }
        let json = serde_json::to_string(&self.kept).ok()?;
        Some(ProviderData {
            engine: NAME,
            host: host.into(),
            model: model.into(),
            json: json.into(),
        })
    }

    fn has_room(&mut self, more_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(more_bytes);
        self.bytes <= KEPT_BYTES_MAX
    }
}

impl KeptReasoning {
    /// Adds a detail, or a piece of the last one.
    fn push_detail(&mut self, detail: Map<String, Value>) {
        let is_piece = |last: &Map<String, Value>| {
            MARKS.iter().all(|name| last.get(*name) == detail.get(*name))
                && TEXTS.iter().any(|name| last.contains_key(*name) && detail.contains_key(*name))
        };
        match self.reasoning_details.last_mut().filter(|last| is_piece(last)) {
            Some(last) => detail.into_iter().for_each(|field| add(last, field)),
            None => self.reasoning_details.push(detail),
        }
    }
}

/// Adds a field of the next piece to what has come of a detail.
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

/// The reasoning in `data`, if this engine kept it for `model`; otherwise none.
pub(super) fn reasoning(data: Option<&ProviderData>, model: &str) -> KeptReasoning {
    let own = data.filter(|data| data.engine == NAME && &*data.model == model);
    own.and_then(|data| serde_json::from_str(&data.json).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(keeper: Keeper) -> Option<Value> {
        let data = keeper.provider_data("h", "m")?;
        assert_eq!((data.engine, &*data.host, &*data.model), ("openai", "h", "m"));
        Some(serde_json::from_str(&data.json).expect("JSON"))
    }

    #[test]
    fn the_pieces_of_a_detail_are_one_again() {
        let mut keeper = Keeper::default();
        let text = |text: &str| json!({ "type": "reasoning.text", "text": text, "index": 0 });
        keeper.push_content("so");
        keeper.push_details(vec![text("a"), json!("odd")]);
        keeper.push_details(vec![text("b")]);
        let signed = json!({ "type": "reasoning.text", "text": "", "index": 0, "signature": "s" });
        keeper.push_details(vec![signed]);
        let encrypted =
            |data: &str| json!({ "type": "reasoning.encrypted", "data": data, "index": 1 });
        keeper.push_details(vec![encrypted("x"), encrypted("y"), text("c")]);
        let whole = json!([
            { "type": "reasoning.text", "text": "ab", "index": 0, "signature": "s" },
            encrypted("x"),
            encrypted("y"),
            text("c"),
        ]);
        assert_eq!(kept(keeper), Some(json!({ "reasoning_details": whole })));
    }

    #[test]
    fn nothing_is_kept_of_nothing_or_of_too_much() {
        assert_eq!(kept(Keeper::default()), None);
        let mut keeper = Keeper::default();
        keeper.push_content(&"x".repeat(KEPT_BYTES_MAX));
        keeper.push_content("y");
        assert_eq!(kept(keeper), None);
        let mut keeper = Keeper::default();
        keeper.push_content("a");
        keeper.push_content("b");
        assert_eq!(kept(keeper), Some(json!({ "reasoning_content": "ab" })));
    }
}
