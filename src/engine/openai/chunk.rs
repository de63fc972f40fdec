//! One JSON document of an answer: a piece of a streamed one, or a whole one.
//!
//! The format is that of OpenAI's "Chat completion chunk object" and "Chat completion object"
//! (<https://platform.openai.com/docs/api-reference/chat-streaming>), with what other providers add
//! to it. Fields that are not read here may hold anything.

use super::json;
use crate::chat::event::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

#[cfg(test)]
mod tests;

/// Bytes of a tool call's id that are kept.
const ID_BYTES_MAX: usize = 1024;

/// Bytes of a tool's name that are kept. OpenAI allows 64.
const NAME_BYTES_MAX: usize = 200;

/// What one document says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    /// Of the choices the first: one is all that is asked for.
    #[serde(rename = "choices", deserialize_with = "first")]
    pub(super) choice: Option<Choice>,
    /// Null unless something went wrong.
    pub(super) error: Value,
    usage: Value,
}

/// What the model says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    delta: Option<Said>,
    message: Option<Said>,
    finish_reason: Value,
    /// Null unless something went wrong.
    pub(super) error: Value,
}

/// The next piece of an answer, or all of it. Texts are WTF-8: they may begin and end inside a
/// character.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    content: Text,
    refusal: Text,
    reasoning_content: Text,
    reasoning: Text,
    tool_calls: Option<Vec<ToolDelta>>,
}

/// The next piece of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolDelta {
    index: Value,
    id: Value,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Value,
    arguments: Text,
}

/// Where the pieces of a choice stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A piece of a streamed answer.
    Piece,
    /// An answer in one piece.
    Whole,
}

/// Reads one JSON object.
pub(super) fn decode(json: &[u8]) -> Result<Chunk, serde_json::Error> {
    // Derived readers take an array for an object, field by field; a provider means no such thing.
    match json.trim_ascii_start() {
        [b'{', ..] => json::read(json),
        _ => Err(serde_json::Error::custom("not an object")),
    }
}

impl Chunk {
    /// The token counts, if it tells any.
    pub(super) fn usage(&self) -> Option<Usage> {
        let count =
            |value: &Value| value.as_u64().map(|count| i32::try_from(count).unwrap_or(i32::MAX));
        let input = count(&self.usage["prompt_tokens"]);
        let output = count(&self.usage["completion_tokens"]);
        let cached = count(&self.usage["prompt_tokens_details"]["cached_tokens"]);
        (input.is_some() || output.is_some()).then(|| Usage {
            input_tokens: input.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cached_tokens: cached.unwrap_or_default(),
        })
    }
}

impl Choice {
    /// Why the model stopped, in the provider's words; `None` while it goes on.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_str().filter(|reason| !reason.is_empty())
    }

    /// What it says, from where `shape` has it.
    pub(super) fn said(self, shape: Shape) -> Said {
        match shape {
            Shape::Piece => self.delta,
            Shape::Whole => self.message,
        }
        .unwrap_or_default()
    }
}

impl Said {
    /// What the model thinks, and the name of the field that holds it. Providers that fill both
    /// fields say the same in both.
    pub(super) fn reasoning(&self) -> (&'static str, &[u8]) {
        match self.reasoning_content.0.as_slice() {
            [] => ("reasoning", &self.reasoning.0),
            text => ("reasoning_content", text),
        }
    }

    /// What the model says. Its refusal is an answer like any other.
    pub(super) fn text(&self) -> [&[u8]; 2] {
        [&self.content.0, &self.refusal.0]
    }

    /// The tool calls it begins or goes on with.
    pub(super) fn tool_calls(self) -> Vec<ToolDelta> {
        self.tool_calls.unwrap_or_default()
    }
}

impl ToolDelta {
    /// Which call of the answer it is, if told.
    pub(super) fn index(&self) -> Option<u64> {
        self.index.as_u64()
    }

    /// The id, if told.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_str().filter(|id| !id.trim().is_empty())
    }

    /// The tool's name, if told.
    pub(super) fn name(&self) -> Option<&str> {
        let name = self.function.as_ref()?.name.as_str()?;
        (!name.is_empty()).then_some(name)
    }

    /// The same with its id and its name as `show` gives them, which takes a text and its limit in
    /// bytes.
    pub(super) fn shown(mut self, show: impl Fn(&str, usize) -> String) -> Self {
        if let Value::String(id) = &mut self.id {
            *id = show(id, ID_BYTES_MAX);
        }
        if let Some(Function { name: Value::String(name), .. }) = &mut self.function {
            *name = show(name, NAME_BYTES_MAX);
        }
        self
    }

    /// The next piece of the arguments, in WTF-8.
    pub(super) fn arguments(&self) -> &[u8] {
        self.function.as_ref().map_or(&[], |function| &function.arguments.0)
    }
}

/// A string, null, or an array of objects with a `text`: as WTF-8, because a lone surrogate is no
/// error here, only half a character.
#[derive(Debug, Default)]
struct Text(Vec<u8>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, null or an array of text parts")
    }

    fn visit_none<E: Error>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        // The one way to ask serde_json for a string that need not be Unicode.
        deserializer.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut text = Vec::new();
        while let Some(part) = parts.next_element::<Part>()? {
            text.extend(part.text.0);
        }
        Ok(Text(text))
    }
}

/// A part of a content array. Parts without text (pictures, sounds) are none of ours.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Text,
}

/// The first element of an array; `None` if it is empty, or null in its stead.
fn first<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(First(PhantomData))
}

struct First<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<T>, A::Error> {
        let first = elements.next_element::<Option<T>>()?.flatten();
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }
}
