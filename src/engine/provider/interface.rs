//! The interface of a provider: addresses, headers, requests and responses.

use super::body::BodyEnd;
use super::failure::Failures;
use super::models::ModelList;
use super::response::ResponseReader;
use crate::conversation::tool::ToolSpec;
use crate::engine::{CallSettings, CallSpec};
use crate::protocol::attachment::Attachment;
use crate::support::secret::Secret;
use reqwest::Url;
use reqwest::header::HeaderMap;

pub(in crate::engine) trait Interface {
    /// The provider whose interface it is, as errors name it.
    const PROVIDER: &'static str;

    /// Where that provider answers.
    const BASE_URL: &'static str;

    /// The provider requires a key.
    const REQUIRES_KEY: bool = true;

    /// The model there, if none is named; empty if one has to be. Other providers have their own
    /// names.
    const MODEL: &'static str;

    /// Members of a request that a server may not know, and that a call can do without.
    const OPTIONAL_MEMBERS: &'static [&'static str] = &[];

    /// How the provider lists its models.
    const MODELS: ModelList = ModelList::OpenAi;

    /// A base URL, for a message.
    const BASE_URL_EXAMPLE: &'static str = Self::BASE_URL;

    /// The decoder of its responses.
    type Reader<'a>: ResponseReader<'a>;

    /// Where requests to `model` go; with the login in `base_url` if `has_login`.
    ///
    /// # Errors
    /// If the address can't be used: the reason, for a message.
    fn url(base_url: &str, model: &str, has_login: bool) -> Result<Url, String>;

    /// Whether a model can have that name.
    fn can_be_model(_model: &str) -> bool {
        true
    }

    /// The headers of a request; `None` if the key can't be in one.
    fn headers(key: Option<&Secret>) -> Option<HeaderMap>;

    /// Like [`Interface::headers`], for a request to `url`.
    fn headers_at(key: Option<&Secret>, _url: &Url) -> Option<HeaderMap> {
        Self::headers(key)
    }

    /// The request, as JSON.
    ///
    /// # Errors
    /// If the provider does not support a part of it, or it can't be serialized.
    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused>;

    /// Like [`Interface::body`], for a server of another provider at `host`.
    ///
    /// # Errors
    /// As [`Interface::body`].
    fn body_for_others(model: &str, spec: &CallSpec, _host: &str) -> Result<Vec<u8>, Refused> {
        Self::body(model, spec)
    }

    /// `body` in which each answer without reasoning says that it has none, if the interface has a member for it.
    ///
    /// # Errors
    /// If it is no object.
    fn with_reasoning_said(body: Vec<u8>) -> Result<Vec<u8>, serde_json::Error> {
        Ok(body)
    }

    /// Names of the settings that are set and that this interface, or the model, doesn't take.
    fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str>;

    /// Why the provider would refuse each request that offers `tool`, and what to do, for people; `None` if it takes
    /// the tool.
    fn tool_fault(_tool: &ToolSpec) -> Option<String> {
        None
    }

    /// A reader of the response to a request with `tools`, whose names the request may have changed.
    fn reader<'a>(failures: &'a Failures, end: BodyEnd, tools: &[ToolSpec]) -> Self::Reader<'a>;
}

/// Why there is no request.
#[derive(Debug)]
pub(in crate::engine) enum Refused {
    /// The provider, or its interface, can't take a part of the conversation: what, and what to do.
    Unsupported(String),
    /// Like [`Self::Unsupported`], but another engine can take it: what, up to "choose another engine".
    OtherEngine(String),
    /// The request can't be encoded, which is a defect.
    Unwritable(serde_json::Error),
}

impl Refused {
    /// `attachment` can't be sent to `provider`, which accepts `taken`.
    pub(in crate::engine) fn attachment(
        provider: &str,
        attachment: &Attachment,
        taken: &str,
    ) -> Self {
        let what = match (attachment.url(), attachment.shown.media_type.as_str()) {
            (Some(_), "") => "named by its address".to_owned(),
            (Some(_), media_type) => format!("{media_type}, named by its address"),
            (None, "") => "of an unknown type".to_owned(),
            (None, media_type) => media_type.to_owned(),
        };
        Self::OtherEngine(format!(
            "the attachment {:?} ({what}) can't be sent to {provider}, which takes {taken}: leave it out, \
             or choose another engine",
            attachment.filename()
        ))
    }
}
