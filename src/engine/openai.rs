//! Any provider with OpenAI's chat completions: OpenAI, Ollama, llama.cpp, vLLM, OpenRouter, …
//!
//! The pure modules of this folder build requests and decode responses. They are in reading order: each uses
//! only those above it. `engine/provider` does the I/O.

mod usage;

mod chunk;

mod calls;
mod finish;

mod provider_data;

pub(super) mod model;
mod report;
mod wire;

mod request;

mod response;

#[cfg(test)]
mod tests;

pub use super::provider::settings::Settings;

use super::{CallSettings, CallSpec};
use crate::conversation::tool::ToolSpec;
use crate::engine::provider::body::BodyEnd;
use crate::engine::provider::failure::Failures;
use crate::engine::provider::interface::{Interface, Refused};
use crate::engine::provider::remote::remote_engine;
use crate::engine::provider::{address, http};
use crate::support::secret::Secret;
use request::Server;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use response::OpenAiReader;

/// Where OpenAI itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The model where OpenAI itself answers. Other providers have their own names.
pub const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// The engine's name.
pub(super) const NAME: &str = "openai";

/// The path of the interface, after the base URL.
const ENDPOINT: &str = "/chat/completions";

/// The header for a key of Azure's.
const AZURE_KEY_HEADER: HeaderName = HeaderName::from_static("api-key");

/// In the path of Azure's addresses of deployments.
const AZURE_DEPLOYMENTS: &str = "/openai/deployments/";

/// The beginning of a token of Entra, which is a JSON Web Token.
const TOKEN_BEGINNING: &str = "eyJ";

/// The headers of a request to `url`. The addresses of deployments at Azure take what is no token of Entra in a header
/// of its own.
pub(super) fn headers_at(key: Option<&Secret>, url: &Url) -> Option<HeaderMap> {
    let is_at_azure = Server::at(url.host_str().unwrap_or_default()) == Server::Azure;
    let is_token = key.is_some_and(|key| key.expose().starts_with(TOKEN_BEGINNING));
    match is_at_azure && url.path().contains(AZURE_DEPLOYMENTS) && !is_token {
        true => http::headers(key, &AZURE_KEY_HEADER, ""),
        false => http::headers(key, &AUTHORIZATION, "Bearer "),
    }
}

remote_engine!(OpenAi over ChatCompletions, named NAME);

impl Interface for ChatCompletions {
    const PROVIDER: &'static str = "OpenAI";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const MODEL: &'static str = DEFAULT_MODEL;
    const OPTIONAL_MEMBERS: &'static [&'static str] = &["stream_options"];
    const BASE_URL_EXAMPLE: &'static str = "http://localhost:11434/v1";

    type Reader<'a> = OpenAiReader<'a>;

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
        request::body(model, spec, Server::OpenAi)
    }

    fn body_for_others(model: &str, spec: &CallSpec, host: &str) -> Result<Vec<u8>, Refused> {
        request::body(model, spec, Server::at(host))
    }

    fn with_reasoning_said(body: Vec<u8>) -> Result<Vec<u8>, serde_json::Error> {
        request::with_reasoning_said(body)
    }

    fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
        request::ignored_settings(model, settings)
    }

    fn reader<'a>(failures: &'a Failures, end: BodyEnd, _: &[ToolSpec]) -> OpenAiReader<'a> {
        OpenAiReader::new(failures, end)
    }
}
