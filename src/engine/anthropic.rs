//! Any provider with Anthropic's Messages (<https://platform.claude.com/docs/en/api/messages>).
//!
//! The pure modules of this folder build requests and decode responses. They are in reading order: each uses
//! only those above it. `engine/provider` does the I/O.

mod event;

mod provider_data;
mod usage;

mod blocks;

mod response;

mod generation;
mod media;

mod wire;

mod request;

#[cfg(test)]
mod tests;

pub use super::provider::settings::Settings;

use super::{CallSettings, CallSpec};
use crate::conversation::tool::ToolSpec;
use crate::engine::provider::body::BodyEnd;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::interface::{Interface, Refused};
use crate::engine::provider::models::ModelList;
use crate::engine::provider::remote::remote_engine;
use crate::engine::provider::{address, http};
use crate::support::secret::Secret;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use response::AnthropicReader;

/// Where Anthropic itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The model where Anthropic itself answers. Other providers have their own names.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5";

/// The engine's name.
pub(super) const NAME: &str = "anthropic";

const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");

/// The version that every server with this interface knows. What later ones leave out (settings of
/// the sampling, documents in answers) is not sent here.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

remote_engine!(Anthropic over Messages, named NAME);

impl Interface for Messages {
    const PROVIDER: &'static str = "Anthropic";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const MODEL: &'static str = DEFAULT_MODEL;
    const MODELS: ModelList = ModelList::Anthropic;

    type Reader<'a> = AnthropicReader<'a>;

    fn url(base_url: &str, _model: &str, has_login: bool) -> Result<Url, String> {
        // Anthropic's own clients have the version in the path, those of other providers in the base.
        address::prefixed_endpoint(base_url, "/v1", "/messages", has_login)
    }

    fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
        let mut headers = http::headers(key, &KEY_HEADER, "")?;
        headers.insert(VERSION_HEADER, VERSION);
        Some(headers)
    }

    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        request::body(model, spec, &spec.transcript.messages())
    }

    fn tool_fault(tool: &ToolSpec) -> Option<String> {
        request::tool_fault(tool)
    }

    fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
        generation::ignored_settings(model, settings)
    }

    fn reader<'a>(failures: &'a Failures, end: BodyEnd, _: &[ToolSpec]) -> AnthropicReader<'a> {
        AnthropicReader::new(failures, end)
    }
}
