//! A request as it is written: OpenAI's "Create a model response"
//! (<https://platform.openai.com/docs/api-reference/responses/create>).

use crate::engine::provider::media::Detail;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    pub(super) store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<WireReasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<WireText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) instructions: String,
    pub(super) input: Vec<WireItem<'a>>,
}

#[derive(Serialize)]
pub(super) struct WireReasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct WireText<'a> {
    pub(super) format: WireFormat<'a>,
}

#[derive(Serialize)]
pub(super) struct WireFormat<'a> {
    pub(super) r#type: &'static str,
    pub(super) name: &'a str,
    pub(super) schema: &'a Map<String, Value>,
    pub(super) strict: bool,
}

#[derive(Serialize)]
pub(super) struct WireTool<'a> {
    pub(super) r#type: &'static str,
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Map<String, Value>>,
    /// Without it the provider makes every parameter a required one.
    pub(super) strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireItem<'a> {
    Message {
        role: Role,
        content: Vec<WirePart<'a>>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        summary: Value,
        #[serde(skip_serializing_if = "Value::is_null")]
        content: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResultOutput<'a>,
    },
    /// A text of the model, as `EasyInputMessage`. Strict servers want a message of parts to have the
    /// `id`, `status` and `annotations` of an answer of their own.
    #[serde(untagged)]
    Answer {
        role: Role,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    System,
    User,
    Assistant,
}

/// What a tool returned.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultOutput<'a> {
    Text(&'a str),
    /// Images, and then a text.
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum WirePart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: Cow<'a, str>, detail: Detail },
    #[serde(rename = "input_file")]
    File {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
    },
}
