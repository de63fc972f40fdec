//! The form of a request: `GenerateContentRequest` (<https://ai.google.dev/api/generate-content>).
//!
//! Members that change from turn to turn come last: the bodies of two turns then share a prefix, which
//! providers cache.

use super::generation::GenerationConfig;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<[WireTools<'a>; 1]>,
    pub(super) generation_config: GenerationConfig<'a>,
    pub(super) contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTools<'a> {
    pub(super) function_declarations: Vec<WireTool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTool<'a> {
    pub(super) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) parameters_json_schema: Cow<'a, Map<String, Value>>,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<Role>,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(flatten)]
    pub(super) payload: Payload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Payload<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: String,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        mime_type: &'a str,
        file_uri: &'a str,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: Cow<'a, str>,
        args: Box<RawValue>,
    },
    FunctionResponse {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: Cow<'a, str>,
        response: Response<'a>,
        /// Images in the result.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part<'a>>,
    },
}

/// A result, under the names that the provider knows.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Response<'a> {
    Output(&'a str),
    Error(&'a str),
}
