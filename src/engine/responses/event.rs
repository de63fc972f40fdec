//! One event of an answer (<https://platform.openai.com/docs/api-reference/responses-streaming>), or
//! a whole answer from a server that doesn't stream. Fields that are not read here may hold anything.

use crate::engine::provider::json;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One event. What each holds beside its fields is not read. An index is that of the item in the
/// answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Event {
    /// The answer will come.
    #[serde(rename = "response.created", alias = "response.queued", alias = "response.in_progress")]
    Begun,
    /// Keeps the connection alive.
    #[serde(rename = "keepalive", alias = "ping")]
    Ping,
    /// An item of the answer begins.
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        item: Item,
    },
    /// An item is whole.
    #[serde(rename = "response.output_item.done")]
    ItemDone {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        item: Item,
    },
    /// The next piece of a text. A refusal is an answer like any other.
    #[serde(rename = "response.output_text.delta", alias = "response.refusal.delta")]
    TextDelta {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        /// The number of the part in the message; missing at some servers.
        #[serde(default)]
        content_index: Value,
        delta: String,
    },
    /// The next piece of a summary of the reasoning, which has several parts.
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryDelta {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        #[serde(default, deserialize_with = "or_default")]
        summary_index: u64,
        delta: String,
    },
    /// The next piece of the reasoning itself, as open models show it.
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        #[serde(default, deserialize_with = "or_default")]
        content_index: u64,
        delta: String,
    },
    /// The next piece of a call's arguments.
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        delta: String,
    },
    /// The text of a part that is whole. It repeats its pieces, if there were any.
    #[serde(rename = "response.output_text.done", alias = "response.refusal.done")]
    TextDone {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        /// The number of the part in the message; missing at some servers.
        #[serde(default)]
        content_index: Value,
        #[serde(default)]
        text: Value,
        #[serde(default)]
        refusal: Value,
    },
    /// The arguments of a call that is whole. They repeat their pieces, if there were any.
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        #[serde(default, deserialize_with = "or_default")]
        output_index: u64,
        #[serde(default)]
        arguments: Value,
    },
    /// What repeats the pieces before it, or announces pieces.
    #[serde(
        rename = "response.content_part.added",
        alias = "response.content_part.done",
        alias = "response.output_text.annotation.added",
        alias = "response.reasoning_summary_part.added",
        alias = "response.reasoning_summary_part.done",
        alias = "response.reasoning_summary_text.done",
        alias = "response.reasoning_text.done"
    )]
    Repeated,
    /// The answer is whole.
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    /// The answer was cut off.
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    /// The answer failed, or was cancelled by somebody else.
    #[serde(rename = "response.failed", alias = "response.cancelled")]
    Failed { response: Response },
    /// The end of an answer as some servers send it: its status says how.
    #[serde(rename = "response.done")]
    Done { response: Response },
    /// The answer breaks off. OpenAI documents the error flat and sends it in `error`.
    #[serde(rename = "error")]
    Error(Value),
    /// An event that this program does not know; new ones may come at any time.
    #[serde(other)]
    Unknown,
}

/// The answer as its last event has it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    pub(super) status: Option<String>,
    /// Null unless something went wrong.
    #[serde(default)]
    pub(super) error: Value,
    /// Why it is incomplete.
    #[serde(default)]
    pub(super) incomplete_details: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) output: Vec<Item>,
    #[serde(default)]
    pub(super) usage: Value,
}

/// An item of an answer: as it begins, or whole.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    Message {
        #[serde(default, deserialize_with = "or_default")]
        content: Vec<Part>,
        /// Distinguishes comments between calls from the answer itself; has to be sent back.
        phase: Option<String>,
    },
    FunctionCall {
        /// What its result is assigned by.
        call_id: Option<String>,
        name: Option<String>,
        /// JSON text; some servers send the object itself.
        #[serde(default)]
        arguments: Value,
    },
    Reasoning {
        /// A text; null or missing at some servers.
        #[serde(default)]
        id: Value,
        #[serde(default)]
        summary: Value,
        /// The reasoning itself, as open models show it.
        #[serde(default)]
        content: Value,
        /// The reasoning in a form that only the provider can read.
        encrypted_content: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

/// A part of a message or of a reasoning.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    #[serde(alias = "reasoning_text", alias = "summary_text", alias = "text")]
    OutputText {
        #[serde(default)]
        text: String,
    },
    Refusal {
        #[serde(default)]
        refusal: String,
    },
    #[serde(other)]
    Unknown,
}

impl Part {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::OutputText { text } | Self::Refusal { refusal: text } => text,
            Self::Unknown => "",
        }
    }
}

/// Reads one JSON object of a stream. One that is no event may report an error, as servers in
/// between do.
///
/// # Errors
/// If it is neither.
pub(super) fn decode(json: &[u8]) -> Result<Event, serde_json::Error> {
    json::read(json).or_else(|why| {
        let value = json::read::<Value>(json).unwrap_or_default();
        match value.get("error") {
            Some(error) if !error.is_null() => Ok(Event::Error(value)),
            Some(_) | None => Err(why),
        }
    })
}

/// Reads a body that is one JSON object: a whole answer, or an error.
///
/// # Errors
/// If it is neither.
pub(super) fn decode_whole(json: &[u8]) -> Result<Event, serde_json::Error> {
    let value = json::read::<Value>(json)?;
    match value["object"] == "response" {
        true => Ok(Event::Done { response: serde_json::from_value(value)? }),
        false => decode(json),
    }
}

/// Reads null as what a missing field is.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
