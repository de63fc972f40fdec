//! Any provider with Google's `generateContent` (<https://ai.google.dev/api/generate-content>).
//!
//! The pure modules of this folder build requests and decode responses. They are in reading order: each uses
//! only those above it. `engine/provider` does the I/O.

mod event;
mod model;
mod names;

mod provider_data;
mod usage;

mod parts;

mod response;

mod generation;

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
use crate::engine::provider::models::{ModelList, gemini_path};
use crate::engine::provider::remote::remote_engine;
use crate::engine::provider::{address, http};
use crate::support::secret::Secret;
use names::Names;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName};
use response::GeminiReader;

/// Where Google itself answers.
pub const DEFAULT_BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// The model where Google itself answers: its name for the newest of the fast ones. Other providers
/// have their own names.
pub const DEFAULT_MODEL: &str = "gemini-flash-latest";

/// The engine's name.
pub(super) const NAME: &str = "gemini";

const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

remote_engine!(Gemini over GenerateContent, named NAME);

impl Interface for GenerateContent {
    const PROVIDER: &'static str = "Gemini";
    const BASE_URL: &'static str = DEFAULT_BASE_URL;
    const MODEL: &'static str = DEFAULT_MODEL;
    const MODELS: ModelList = ModelList::Gemini;

    type Reader<'a> = GeminiReader<'a>;

    fn url(base_url: &str, model: &str, has_login: bool) -> Result<Url, String> {
        let endpoint = format!("/{}:streamGenerateContent", model::path(model));
        let mut base = address::checked(base_url, has_login)?;
        if !base.path().trim_end_matches('/').ends_with(&endpoint) {
            base.set_path(&gemini_path(base.path()));
        }
        let mut url = address::endpoint(base.as_str(), &endpoint, has_login)?;
        // Without it the answer is one list.
        if !url.query_pairs().any(|(name, _)| name == "alt") {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }

    fn can_be_model(model: &str) -> bool {
        model::is_name(model)
    }

    fn headers(key: Option<&Secret>) -> Option<HeaderMap> {
        http::headers(key, &KEY_HEADER, "")
    }

    fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        request::body(model, spec, &spec.transcript.messages())
    }

    fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
        generation::ignored_settings(model, settings)
    }

    fn reader<'a>(failures: &'a Failures, end: BodyEnd, tools: &[ToolSpec]) -> GeminiReader<'a> {
        GeminiReader::new(failures, end).with_names(Names::of(tools))
    }
}
