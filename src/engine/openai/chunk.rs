//! One JSON document of an answer: a piece of a streamed one, or a whole one.
//!
//! The format is that of OpenAI's "Chat completion chunk object" and "Chat completion object"
//! (<https://platform.openai.com/docs/api-reference/chat-streaming>), with what other providers add
//! to it. Fields that are not read here may hold anything.

use super::usage::usage;
use crate::conversation::event::Usage;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::json;
use crate::engine::provider::tool::{ID_BYTES_MAX, OWN_ID_BYTES_MAX, WIRE_ID_BYTES_MAX};
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::fmt;

#[cfg(test)]
mod tests;

/// One document of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    /// The choice with index 0, or without an index: only one is requested.
    #[serde(rename = "choices", deserialize_with = "first_choice")]
    pub(super) choice: Option<Choice>,
    /// Null unless something went wrong.
    pub(super) error: Value,
    usage: Value,
    /// As Groq has it: token counts are in its last one.
    x_groq: Option<Box<Value>>,
}

/// A piece of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    index: Value,
    // Boxed, like what is rare below: each level of the reader moves what it has read.
    delta: Option<Box<Delta>>,
    message: Option<Box<Delta>>,
    /// As the older "completions" have it.
    text: Text,
    finish_reason: Value,
    /// Token counts, where Moonshot has them.
    usage: Option<Box<Value>>,
    /// Null unless something went wrong.
    pub(super) error: Value,
}

/// The next piece of an answer, or all of it. Texts are WTF-8: they may begin and end inside a
/// character.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    content: Content,
    refusal: Text,
    reasoning_content: Text,
    reasoning: Text,
    reasoning_text: Text,
    /// The reasoning once more, in forms to send back.
    reasoning_details: Value,
    thinking_blocks: Value,
    reasoning_opaque: Value,
    tool_calls: Option<Vec<ToolDelta>>,
    /// What `tool_calls` replaced: one call, without an id.
    function_call: Option<Box<Function>>,
}

/// A field of an answer, and of a message of a request, that holds reasoning as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReasoningField {
    /// As DeepSeek, Kimi and LiteLLM have it.
    ReasoningContent,
    /// As vLLM, Groq, Ollama and OpenRouter have it.
    Reasoning,
    /// As GitHub's Copilot has it.
    ReasoningText,
}

/// The next piece of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolDelta {
    index: Value,
    id: Value,
    function: Option<Function>,
    /// What the server adds to the call, as Google's adds a signature.
    extra_content: Value,
    /// The id as the server gave it, if it may be too long for a request to another one.
    #[serde(skip)]
    own_id: Option<String>,
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
        [b'{', ..] => json::read(json).or_else(|why| with_values_as_text(json).ok_or(why)),
        _ => Err(serde_json::Error::custom("not an object")),
    }
}

/// The members of an object as they are written: a number that is read may lose digits.
type Members = BTreeMap<String, Box<RawValue>>;

/// Reads an object that has other values where a text is expected: arguments of calls as objects, pieces of a text
/// as numbers, and calls that are none, as some servers have them.
fn with_values_as_text(json: &[u8]) -> Option<Chunk> {
    let mut chunk = json::read::<Members>(json).ok()?;
    rewrite(chunk.get_mut("choices")?, |choices: &mut Vec<Box<RawValue>>| {
        choices.iter_mut().for_each(|choice| rewrite(choice, write_choice));
    });
    json::read(&serde_json::to_vec(&chunk).ok()?).ok()
}

/// Replaces `value` by what `change` makes of it, if it is a `T`.
fn rewrite<T: DeserializeOwned + Serialize>(
    value: &mut Box<RawValue>,
    change: impl FnOnce(&mut T),
) {
    let Ok(mut read) = json::read(value.get().as_bytes()) else { return };
    change(&mut read);
    replace(value, &read);
}

fn replace(value: &mut Box<RawValue>, new: &(impl Serialize + ?Sized)) {
    // One that can't be written stays as it is, and fails the answer.
    if let Ok(written) = to_raw_value(new) {
        *value = written;
    }
}

fn write_choice(choice: &mut Members) {
    choice.get_mut("text").into_iter().for_each(write_scalar);
    for name in ["delta", "message"] {
        choice.get_mut(name).into_iter().for_each(|piece| rewrite(piece, write_piece));
    }
}

/// Replaces by their texts what `piece` has in place of texts, and leaves out calls that are no objects.
fn write_piece(piece: &mut Members) {
    for name in TEXT_FIELDS {
        piece.get_mut(name).into_iter().for_each(write_scalar);
    }
    if let Some(calls) = piece.get_mut("tool_calls") {
        rewrite(calls, |calls: &mut Vec<Box<RawValue>>| {
            calls.retain(|call| is_object(call));
            calls.iter_mut().for_each(|call| rewrite(call, write_call));
        });
    }
    match piece.get_mut("function_call") {
        Some(function) if is_object(function) => rewrite(function, write_arguments),
        Some(nothing) => replace(nothing, &Value::Null),
        None => {}
    }
}

/// Fields of a piece that hold a text.
const TEXT_FIELDS: [&str; 4] = ["content", "reasoning_content", "reasoning", "reasoning_text"];

/// Replaces a number or a truth value by its text: Cloudflare, for one, sends a token that reads as one so.
fn write_scalar(value: &mut Box<RawValue>) {
    if value.get().starts_with(|c: char| matches!(c, '0'..='9' | '-' | 't' | 'f')) {
        write_text(value);
    }
}

fn write_call(call: &mut Members) {
    call.get_mut("function").into_iter().for_each(|function| rewrite(function, write_arguments));
}

/// Replaces the arguments of a call by their text, if they are an object.
fn write_arguments(function: &mut Members) {
    function.get_mut("arguments").filter(|it| is_object(it)).into_iter().for_each(write_text);
}

/// Replaces `value` by its text as it is written.
fn write_text(value: &mut Box<RawValue>) {
    let text = value.get().to_owned();
    replace(value, &text);
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

impl Chunk {
    /// The object with the token counts: at the top, or else where Moonshot or Groq has it.
    fn counts(&self) -> Option<&Value> {
        let in_choice = || self.choice.as_ref()?.usage.as_deref();
        let in_extension = || self.x_groq.as_ref()?.get("usage");
        let is_object = |usage: &&Value| usage.is_object();
        let at_top = Some(&self.usage).filter(is_object);
        at_top
            .or_else(|| in_choice().filter(is_object))
            .or_else(|| in_extension().filter(is_object))
    }

    /// The token counts, if there are any.
    pub(super) fn usage(&self) -> Option<Usage> {
        usage(self.counts()?)
    }
}

impl Choice {
    /// Why the model stopped, in the provider's words; `None` while it goes on.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_str().filter(|reason| !reason.is_empty())
    }

    /// The piece of the answer in it. A streamed choice has it in `delta`; some servers send `message`
    /// or `text` instead, and some repeat the text of the deltas there: those are read only if no
    /// delta had any text, which `by_delta` records.
    pub(super) fn piece(self, shape: Shape, by_delta: &mut bool) -> Box<Delta> {
        let delta = self.delta.unwrap_or_default();
        *by_delta |= shape == Shape::Piece && !delta.is_empty();
        if *by_delta {
            return delta;
        }
        let text = Delta { content: self.text.into(), ..Delta::default() };
        let others = [self.message.unwrap_or_default(), Box::new(text), delta];
        others.into_iter().find(|piece| !piece.is_empty()).unwrap_or_default()
    }

    /// Providers number choices from 0; other choices than that are alternatives of it.
    fn is_first(&self) -> bool {
        !matches!(self.index.as_u64(), Some(1..))
    }
}

impl Delta {
    /// The model's reasoning, and the name of the field that holds it. Providers that fill more than one
    /// field repeat the text in each.
    pub(super) fn reasoning(&self) -> (&'static str, &[u8]) {
        let by_name = self.reasoning_texts().map(|(field, text)| (field.name(), text));
        let in_content = ("thinking", self.content.thinking.0.as_slice());
        let mut fields = by_name.into_iter().chain([in_content]);
        fields.find(|(_, text)| !text.is_empty()).unwrap_or(("reasoning", &[]))
    }

    /// The model's reasoning in each field that may be sent back.
    pub(super) fn reasoning_texts(&self) -> [(ReasoningField, &[u8]); 3] {
        [
            (ReasoningField::ReasoningContent, &self.reasoning_content.0),
            (ReasoningField::Reasoning, &self.reasoning.0),
            (ReasoningField::ReasoningText, &self.reasoning_text.0),
        ]
    }

    /// The reasoning in the form that OpenRouter wants back; leaves none of it.
    pub(super) fn take_details(&mut self) -> Vec<Value> {
        list(self.reasoning_details.take())
    }

    /// The reasoning in the form that LiteLLM wants back; leaves none of it.
    pub(super) fn take_thinking_blocks(&mut self) -> Vec<Value> {
        list(self.thinking_blocks.take())
    }

    /// The reasoning in the form that Copilot alone can read, if there is any.
    pub(super) fn reasoning_opaque(&self) -> Option<&str> {
        self.reasoning_opaque.as_str().filter(|opaque| !opaque.is_empty())
    }

    /// The text of the answer. A refusal is an answer like any other.
    pub(super) fn text(&self) -> [&[u8]; 2] {
        [&self.content.text.0, &self.refusal.0]
    }

    /// The tool calls that it begins or continues. Some servers have a call of nothing beside each piece of a text.
    pub(super) fn tool_calls(self) -> Vec<ToolDelta> {
        let mut calls = self.tool_calls.unwrap_or_default();
        calls.retain(|call| !call.is_empty());
        match self.function_call {
            Some(function) if calls.is_empty() && !function.is_empty() => {
                let function = Some(*function);
                vec![ToolDelta { index: 0.into(), function, ..ToolDelta::default() }]
            }
            Some(_) | None => calls,
        }
    }

    fn is_empty(&self) -> bool {
        let Content { text, thinking } = &self.content;
        let has_items = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        [text, thinking, &self.refusal].iter().all(|text| text.0.is_empty())
            && self.reasoning_texts().iter().all(|(_, text)| text.is_empty())
            && self.tool_calls.iter().flatten().all(ToolDelta::is_empty)
            && self.function_call.as_ref().is_none_or(|function| function.is_empty())
            && !has_items(&self.reasoning_details)
            && !has_items(&self.thinking_blocks)
            && self.reasoning_opaque().is_none()
    }
}

impl ReasoningField {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::ReasoningText => "reasoning_text",
        }
    }
}

/// The items of `value`, if it is a list.
fn list(value: Value) -> Vec<Value> {
    let Value::Array(items) = value else { return Vec::new() };
    items
}

impl Function {
    /// The tool's name, if given.
    fn name(&self) -> Option<&str> {
        self.name.as_str().filter(|name| !name.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.name().is_none() && self.arguments.0.is_empty()
    }
}

impl ToolDelta {
    /// Whether nothing in it belongs to a call.
    fn is_empty(&self) -> bool {
        self.id().is_none()
            && self.function.as_ref().is_none_or(Function::is_empty)
            && self.extra_content().is_none()
    }

    /// The index of the call in the answer, if given.
    pub(super) fn index(&self) -> Option<u64> {
        self.index.as_u64()
    }

    /// The id, if given.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_str().filter(|id| !id.trim().is_empty())
    }

    /// The tool's name, if given.
    pub(super) fn name(&self) -> Option<&str> {
        self.function.as_ref()?.name()
    }

    /// What the server adds to the call, if anything.
    pub(super) fn extra_content(&self) -> Option<&Value> {
        Some(&self.extra_content).filter(|extra| !extra.is_null())
    }

    /// The id as the server gave it, if it is long.
    pub(super) fn own_id(&self) -> Option<&str> {
        self.own_id.as_deref()
    }

    /// Removes the key from the id and the name, which frames show, and cuts them to their limits.
    pub(super) fn shown(mut self, failures: &Failures) -> Self {
        if let Value::String(id) = &mut self.id {
            self.own_id = (WIRE_ID_BYTES_MAX + 1..=OWN_ID_BYTES_MAX)
                .contains(&id.len())
                .then(|| failures.shown(id, OWN_ID_BYTES_MAX));
            *id = failures.shown(id, ID_BYTES_MAX);
        }
        if let Some(Function { name: Value::String(name), .. }) = &mut self.function {
            *name = failures.shown_tool_name(name);
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

/// A part of a content array. Parts without text (pictures, sounds) are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Text,
    /// As Mistral has it in its parts of the type `thinking`.
    thinking: Text,
}

/// A content: as a [`Text`], in whose parts there may be reasoning too.
#[derive(Debug, Default)]
struct Content {
    text: Text,
    thinking: Text,
}

impl From<Text> for Content {
    fn from(text: Text) -> Self {
        Self { text, thinking: Text::default() }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TextVisitor.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Content, E> {
        TextVisitor.visit_bytes(bytes).map(Content::from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(part) = parts.next_element::<Part>()? {
            content.text.0.extend(part.text.0);
            content.thinking.0.extend(part.thinking.0);
        }
        Ok(content)
    }
}

/// The requested choice; `None` if it is not among them, or if they are null.
fn first_choice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Choice>, D::Error> {
    deserializer.deserialize_option(FirstChoice)
}

struct FirstChoice;

impl<'de> Visitor<'de> for FirstChoice {
    type Value = Option<Choice>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<Choice>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Option<Choice>, A::Error> {
        let mut first = None;
        while first.is_none() {
            match choices.next_element::<Option<Choice>>()? {
                Some(choice) => first = choice.filter(Choice::is_first),
                None => return Ok(None),
            }
        }
        while choices.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }
}
