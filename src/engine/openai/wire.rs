//! A request as it is written: OpenAI's "Create chat completion"
//! (<https://platform.openai.com/docs/api-reference/chat/create>).

use super::provider_data::ReasoningData;
use crate::engine::provider::media::Detail;
use crate::engine::provider::tool::FunctionTool;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    pub(super) settings: WireSettings<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<FunctionTool<'a>>,
    pub(super) messages: Vec<Wire<'a>>,
}

#[derive(Default, Serialize)]
pub(super) struct WireSettings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    /// As OpenAI has it; its reasoning models refuse the other name, also behind a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    /// As other servers have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<i64>,
    /// As Mistral has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) random_seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
pub(super) struct ResponseFormat<'a> {
    pub(super) r#type: &'static str,
    pub(super) json_schema: WireSchema<'a>,
}

#[derive(Serialize)]
pub(super) struct WireSchema<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Map<String, Value>,
    pub(super) strict: bool,
}

#[derive(Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Wire<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// Null if the model only called tools: some providers refuse an empty text.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
        /// The model is to continue this answer; Mistral requires the member.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        prefix: bool,
        #[serde(flatten)]
        reasoning: Box<ReasoningData>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum UserContent<'a> {
    /// Every server takes a plain text.
    Text(&'a str),
    Parts(Vec<WirePart<'a>>),
}

impl<'a> UserContent<'a> {
    /// Puts `parts` before the content.
    pub(super) fn begin_with(&mut self, mut parts: Vec<WirePart<'a>>) {
        if parts.is_empty() {
            return;
        }
        match self {
            Self::Text(text) => parts.push(WirePart::Text { text: (*text).into() }),
            Self::Parts(own) => parts.append(own),
        }
        *self = Self::Parts(parts);
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: WireFile<'a> },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    pub(super) url: Cow<'a, str>,
    pub(super) detail: Detail,
}

#[derive(Serialize)]
pub(super) struct WireFile<'a> {
    pub(super) filename: &'a str,
    pub(super) file_data: String,
}

#[derive(Serialize)]
pub(super) struct WireCall<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) r#type: &'static str,
    pub(super) function: WireFunction<'a>,
    /// As Google's servers have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct WireFunction<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Cow<'a, str>,
}
