//! One line of an answer: `ChatResponse` of <https://docs.ollama.com/api/chat>. Each holds the next
//! piece of the message. Fields that are not read here may hold anything.

use crate::engine::provider::json;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What one line of an answer is.
#[derive(Debug)]
pub(super) enum Event {
    /// The next piece.
    Piece(Piece),
    /// The answer breaks off.
    Error(Value),
    /// No part of an answer.
    Unknown,
}

/// The next piece of an answer; the last one says why it is the last.
#[derive(Debug, Deserialize)]
pub(super) struct Piece {
    message: Option<Message>,
    pub(super) done: Option<bool>,
    /// Why the model stopped.
    pub(super) done_reason: Option<String>,
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_eval_count: Option<i32>,
    /// How many of these were read from the cache. Older servers leave it out.
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_eval_cached_count: Option<i32>,
    #[serde(default, deserialize_with = "count")]
    pub(super) eval_count: Option<i32>,
    #[serde(default)]
    error: Value,
}

/// A piece of the model's message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    pub(super) content: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tool_calls: Option<Vec<Call>>,
}

/// A tool call, which always comes whole. Older servers give it no id.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) function: Function,
}

/// The tool and its arguments.
#[derive(Debug, Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub(super) name: String,
    /// An object, as the server wrote it.
    pub(super) arguments: Option<Box<RawValue>>,
}

impl Piece {
    /// The piece of the message, which may be none.
    pub(super) fn message(&mut self) -> Message {
        self.message.take().unwrap_or_default()
    }
}

/// A token count; `None` where something else stands, as the answer does not depend on it.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    Ok(json::tokens(&Value::deserialize(deserializer)?))
}

/// Reads one line.
///
/// # Errors
/// If it is no object, or holds something else where an answer has its pieces.
pub(super) fn decode(json: &[u8]) -> Result<Event, serde_json::Error> {
    let piece = match json::read::<Piece>(json) {
        Ok(piece) => piece,
        // An object that can't be decoded may still report an error.
        Err(why) => return json::error_in(json).map(Event::Error).ok_or(why),
    };
    Ok(match piece {
        Piece { error, .. } if !error.is_null() => Event::Error(error),
        piece if piece.message.is_some() || piece.done.is_some() => Event::Piece(piece),
        _ => Event::Unknown,
    })
}
