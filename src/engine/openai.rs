//! Any provider with OpenAI's chat completions: OpenAI, Ollama, llama.cpp, vLLM, OpenRouter, …
//!
//! What bytes mean is decided in the pure modules of this folder, which stand here in reading order:
//! each uses only those above it. `engine/provider` waits: for bytes, for the reader.

mod chunk;

mod calls;
mod finish;

mod report;
mod request;

mod answer;

#[cfg(test)]
mod tests;

pub use super::provider::settings::Settings;

use super::{CallSettings, CallSpec};
use crate::engine::provider::body::BodyEnd;
use crate::engine::provider::failure::{Failures, SettingSources};
use crate::engine::provider::remote::{Interface, Refused, Remote};
use crate::engine::provider::{address, http};
use crate::support::secret::Secret;
use answer::Answer;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

/// Where OpenAI itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The model where OpenAI itself answers. Other providers have their own names.
pub const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// The options and variables that the command line has for the settings.
const SOURCES: SettingSources = SettingSources {
    base_url_source: "--base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL",
    base_url_example: "http://localhost:11434/v1",
    model_source: "--model or DUOLOGUE_MODEL",
    key_source: "DUOLOGUE_API_KEY or OPENAI_API_KEY",
};

/// The path of the interface, after the base URL.
const ENDPOINT: &str = "/chat/completions";

/// The engine. Clones share one client and its connection.
#[derive(Clone, Debug)]
pub struct OpenAi {
    pub(super) remote: Remote<ChatCompletions>,
}

#[derive(Clone, Debug)]
pub(super) struct ChatCompletions;

impl OpenAi {
    /// An engine with `settings`, and with the root certificates that the environment names.
    /// Reads no file.
    pub fn new(settings: Settings) -> Self {
        Self { remote: Remote::new(settings) }
    }
}

impl Interface for ChatCompletions {
    const PROVIDER: &'static str = "OpenAI";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const MODEL: &'static str = DEFAULT_MODEL;
    const SOURCES: SettingSources = SOURCES;

    type Answer<'a> = Answer<'a>;

    fn url(base_url: &str, _model: &str, has_login: bool) -> Result<Url, String> {
        address::endpoint(base_url, ENDPOINT, has_login)
    }

    fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
        http::headers(key, &AUTHORIZATION, "Bearer ")
    }

    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        request::body(model, &spec.transcript.messages(), &spec.tools).map_err(Refused::Unwritable)
    }

    fn ignored_settings(_model: &str, _settings: &CallSettings) -> Vec<&'static str> {
        Vec::new()
    }

    fn answer<'a>(failures: &'a Failures, _model: &'a str, end: BodyEnd) -> Answer<'a> {
        Answer::new(failures, end)
    }
}
