//! One object of an answer: `GenerateContentResponse`
//! (<https://ai.google.dev/api/generate-content>). Each holds the next parts of the answer. Fields that
//! are not read here may hold anything.

use crate::engine::provider::json;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// What one JSON object of an answer is.
#[derive(Debug)]
pub(super) enum Event {
    /// The next parts.
    Chunk(Chunk),
    /// The answer breaks off.
    Error(Value),
    /// No part of an answer.
    Unknown,
}

/// The next parts of an answer, or what is known about it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<PromptFeedback>,
    /// Token counts, which later ones replace.
    #[serde(default)]
    pub(super) usage_metadata: Value,
    #[serde(default)]
    error: Value,
}

/// One of the answers to the request; only one is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    content: Option<Content>,
    /// Why the model stopped.
    pub(super) finish_reason: Option<String>,
    /// More about it, for people.
    #[serde(default)]
    finish_message: Value,
}

#[derive(Debug, Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
    /// More about it, for people.
    #[serde(default)]
    block_reason_message: Value,
}

/// A part of an answer. One that holds none of this is of a kind that this program does not know.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    /// The text is a summary of the reasoning.
    pub(super) thought: Option<bool>,
    /// What has to be sent back with this part.
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<FunctionCall>,
    inline_data: Option<IgnoredAny>,
    file_data: Option<IgnoredAny>,
    executable_code: Option<IgnoredAny>,
    code_execution_result: Option<IgnoredAny>,
}

/// A tool call, which always comes whole.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    /// As the provider wrote them.
    pub(super) args: Option<Box<RawValue>>,
}

impl Part {
    /// Whether it is known and can't be shown: a picture, a file, or code that ran at the provider.
    pub(super) fn is_unshown(&self) -> bool {
        let Self { inline_data, file_data, executable_code, code_execution_result, .. } = self;
        [inline_data, file_data, executable_code, code_execution_result]
            .into_iter()
            .any(Option::is_some)
    }
}

impl Chunk {
    /// Why the prompt is not answered at all.
    pub(super) fn block_reason(&self) -> Option<&str> {
        let reason = self.prompt_feedback.as_ref()?.block_reason.as_deref();
        reason.filter(|reason| !reason.is_empty() && *reason != "BLOCK_REASON_UNSPECIFIED")
    }

    /// What the provider says about that.
    pub(super) fn block_reason_message(&self) -> Option<&str> {
        self.prompt_feedback.as_ref()?.block_reason_message.as_str()
    }

    /// The answer's part in it.
    pub(super) fn into_candidate(self) -> Candidate {
        self.candidates.into_iter().flatten().next().unwrap_or_default()
    }

    fn is_known(&self) -> bool {
        let has_feedback = self.prompt_feedback.is_some();
        self.candidates.is_some() || has_feedback || !self.usage_metadata.is_null()
    }
}

impl Candidate {
    /// The parts, which may be none.
    pub(super) fn parts(&mut self) -> Vec<Part> {
        self.content.take().and_then(|content| content.parts).unwrap_or_default()
    }

    /// What the provider says about the reason.
    pub(super) fn finish_message(&self) -> Option<&str> {
        self.finish_message.as_str()
    }

    /// The reason, unless it is a name for none.
    pub(super) fn reason(&self) -> Option<&str> {
        let reason = self.finish_reason.as_deref();
        reason.filter(|reason| !reason.is_empty() && *reason != "FINISH_REASON_UNSPECIFIED")
    }
}

/// Reads one JSON object.
///
/// # Errors
/// If it is no object, or holds something else where an answer has its parts.
pub(super) fn decode(json: &[u8]) -> Result<Event, serde_json::Error> {
    let chunk = match json::read::<Chunk>(json) {
        Ok(chunk) => chunk,
        // An object that can't be decoded may still report an error.
        Err(why) => return json::error_in(json).map(Event::Error).ok_or(why),
    };
    Ok(match chunk {
        Chunk { error, .. } if !error.is_null() => Event::Error(error),
        chunk if chunk.is_known() => Event::Chunk(chunk),
        _ => Event::Unknown,
    })
}

/// Reads a list of JSON objects, as the provider sends them to those who don't ask for events.
///
/// # Errors
/// If it is no list, or holds something else.
pub(super) fn decode_list(json: &[u8]) -> Result<Vec<Event>, serde_json::Error> {
    let items = json::read::<Vec<Box<RawValue>>>(json)?;
    items.iter().map(|item| decode(item.get().as_bytes())).collect()
}
