//! Ollama's own interface (<https://docs.ollama.com/api/chat>), which has what its OpenAI-compatible one
//! leaves out: reasoning, options of the model, and images and schemas for every model that takes them.
//!
//! The pure modules of this folder build requests and decode responses. They are in reading order: each uses
//! only those above it. `engine/provider` does the I/O.

mod event;

mod host;

mod request;
mod response;

#[cfg(test)]
mod tests;

pub use super::provider::settings::Settings;
pub use host::base_url;

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
use reqwest::header::{AUTHORIZATION, HeaderMap};
use response::OllamaReader;

/// Where Ollama answers on this machine.
pub const DEFAULT_BASE_URL: &str = "http://127.0.0.1:11434";

/// The engine's name.
pub(super) const NAME: &str = "ollama";

remote_engine!(Ollama over Chat, named NAME);

impl Interface for Chat {
    const PROVIDER: &'static str = "Ollama";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const REQUIRES_KEY: bool = false;
    /// Each installation has its own models.
    const MODEL: &'static str = "";
    const MODELS: ModelList = ModelList::Ollama;

    type Reader<'a> = OllamaReader<'a>;

    fn url(base_url: &str, _model: &str, has_login: bool) -> Result<Url, String> {
        address::prefixed_endpoint(base_url, "/api", "/chat", has_login)
    }

    fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
        http::headers(key, &AUTHORIZATION, "Bearer ")
    }

    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        request::body(model, spec, &spec.transcript.messages())
    }

    fn ignored_settings(_model: &str, settings: &CallSettings) -> Vec<&'static str> {
        let budget = settings.reasoning_budget.map(|_| "reasoning_budget");
        let summary = settings.reasoning_summary.as_ref().map(|_| "reasoning_summary");
        budget.into_iter().chain(summary).collect()
    }

    fn reader<'a>(failures: &'a Failures, end: BodyEnd, _: &[ToolSpec]) -> OllamaReader<'a> {
        OllamaReader::new(failures, end)
    }
}
