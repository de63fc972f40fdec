//! One event of an answer (<https://platform.claude.com/docs/en/build-with-claude/streaming>), or a
//! whole answer from a server that doesn't stream. Fields that are not read here may hold anything.

use crate::engine::provider::json;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One event. What each holds beside its fields is not read.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    /// The answer begins.
    MessageStart { message: Start },
    /// The content block with this index begins.
    ContentBlockStart { index: u64, content_block: Block },
    /// The next piece of a block.
    ContentBlockDelta { index: u64, delta: Delta },
    /// A block is whole.
    ContentBlockStop { index: u64 },
    /// The stop reason and usage at the end of the answer.
    MessageDelta {
        #[serde(default, deserialize_with = "or_default")]
        delta: End,
        #[serde(default)]
        usage: Value,
    },
    /// The answer is whole.
    MessageStop,
    /// Keeps the connection alive.
    Ping,
    /// The answer breaks off.
    Error { error: Value },
    /// A whole answer in one document.
    Message {
        content: Vec<Block>,
        #[serde(flatten)]
        end: End,
        #[serde(default)]
        usage: Value,
    },
    /// An event that this program does not know; new ones may come at any time.
    #[serde(other)]
    Unknown,
}

/// The beginning of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Start {
    /// Token counts, which later ones replace.
    #[serde(default)]
    pub(super) usage: Value,
}

/// The end of an answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct End {
    /// Why the model stopped.
    pub(super) stop_reason: Option<String>,
    /// More about a refusal: an `explanation`, for people.
    #[serde(default)]
    pub(super) stop_details: Value,
}

/// A content block as it begins; in a whole answer, all of it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default, deserialize_with = "or_default")]
        text: String,
    },
    Thinking {
        #[serde(default, deserialize_with = "or_default")]
        thinking: String,
        #[serde(default, deserialize_with = "or_default")]
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking { data: String },
    ToolUse {
        #[serde(default, deserialize_with = "or_default")]
        id: String,
        #[serde(default, deserialize_with = "or_default")]
        name: String,
        /// Empty in a stream: the arguments follow as text.
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

/// The next piece of a block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text {
        #[serde(deserialize_with = "or_default")]
        text: String,
    },
    #[serde(rename = "thinking_delta")]
    Thinking {
        #[serde(deserialize_with = "or_default")]
        thinking: String,
    },
    #[serde(rename = "signature_delta")]
    Signature {
        #[serde(deserialize_with = "or_default")]
        signature: String,
    },
    #[serde(rename = "input_json_delta")]
    InputJson {
        #[serde(deserialize_with = "or_default")]
        partial_json: String,
    },
    #[serde(other)]
    Unknown,
}

/// What stands there; as if it were left out where a server has null.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads one JSON object. One that is no event may report an error, as servers in between do.
///
/// # Errors
/// If it is neither.
pub(super) fn decode(json: &[u8]) -> Result<Event, serde_json::Error> {
    json::read(json)
        .or_else(|why| json::error_in(json).map(|error| Event::Error { error }).ok_or(why))
}
