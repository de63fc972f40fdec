//! Any provider with OpenAI's Responses (<https://platform.openai.com/docs/api-reference/responses>).
//!
//! The pure modules of this folder build requests and decode responses. They are in reading order: each uses
//! only those above it. `engine/provider` does the I/O.

mod event;

mod provider_data;
mod usage;

mod reasoning;

mod items;
mod report;

mod response;
mod wire;

mod request;

#[cfg(test)]
mod tests;

pub use super::provider::settings::Settings;

use super::openai::{DEFAULT_BASE_URL, DEFAULT_MODEL, headers_at};
use super::{CallSettings, CallSpec};
use crate::conversation::tool::ToolSpec;
use crate::engine::provider::body::BodyEnd;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::interface::{Interface, Refused};
use crate::engine::provider::remote::remote_engine;
use crate::engine::provider::{address, http};
use crate::support::secret::Secret;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use response::ResponsesReader;

/// The engine's name.
pub(super) const NAME: &str = "responses";

/// The path of the interface, after the base URL.
const ENDPOINT: &str = "/responses";

remote_engine!(Responses over ResponsesApi, named NAME);

impl Interface for ResponsesApi {
    const PROVIDER: &'static str = "OpenAI";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const MODEL: &'static str = DEFAULT_MODEL;
    const OPTIONAL_MEMBERS: &'static [&'static str] = &["include"];
    const BASE_URL_EXAMPLE: &'static str = "http://localhost:11434/v1";

    type Reader<'a> = ResponsesReader<'a>;

    fn url(base_url: &str, _model: &str, has_login: bool) -> Result<Url, String> {
        address::endpoint(base_url, ENDPOINT, has_login)
    }

    fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
        http::headers(key, &AUTHORIZATION, "Bearer ")
    }

    fn headers_at(key: Option<&Secret>, url: &Url) -> Option<HeaderMap> {
        headers_at(key, url)
    }

    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        request::body(model, spec)
    }

    fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
        request::ignored_settings(model, settings)
    }

    fn reader<'a>(failures: &'a Failures, end: BodyEnd, _: &[ToolSpec]) -> ResponsesReader<'a> {
        ResponsesReader::new(failures, end)
    }
}
