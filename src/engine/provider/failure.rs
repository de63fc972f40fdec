//! Failures of provider calls: a message for people and a class for programs.

mod complaint;
mod quoting;
mod response;
mod setup;
mod status;
mod suspects;
#[cfg(test)]
mod tests;
mod transport;

use super::address;
use super::retry::Retry;
use super::settings::SettingNames;
use crate::engine::{ErrorClass, RunError, Stage};
use crate::support::secret::Secret;
use crate::task::report::status_of;
use quoting::login;
use reqwest::Url;
pub(in crate::engine) use response::IDENTITY;
use status::is_unknown_address;
use std::time::Duration;

/// Characters of the provider's words that a message quotes.
const QUOTE_CHARS_MAX: usize = 300;

/// Characters of the provider's words that a detail holds.
const DETAIL_CHARS_MAX: usize = 2_000;

/// The detail of an answer that should have been a list of models.
const NO_LIST: &str = "no list of models";

/// The advice if a server does not know an address whose base URL lacks the path that most servers have.
const PATH_HINT: &str = "; the base URL of most servers ends in ";

impl RunError {
    /// Of a request for the list of models: the provider has answered, and has no list.
    pub(crate) fn is_no_list(&self) -> bool {
        self.class == ErrorClass::Provider
            && (self.detail == NO_LIST || status_of(&self.detail).is_some_and(is_unknown_address))
    }

    /// Like [`Self::is_no_list`], and the base URL lacks the path that most servers have.
    pub(crate) fn lacks_path(&self) -> bool {
        self.is_no_list() && self.message.contains(PATH_HINT)
    }
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Failure {
    stage: Stage,
    pub(in crate::engine) class: ErrorClass,
    message: String,
    detail: String,
    pub(in crate::engine) retry: Retry,
}

/// Makes the failures of a call. All text that others wrote goes through [`Failures::quote`], so that
/// no failure holds a secret.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Failures {
    /// The key, and what the login in the base URL holds.
    secrets: Vec<Secret>,
    has_key: bool,
    /// Where the key is, if it is known more exactly than `names` say.
    key_place: Option<String>,
    /// Without login and query.
    base_url: String,
    /// Of the base URL.
    host: String,
    /// The model of the calls.
    model: String,
    /// The provider is sent the schema of the answer.
    has_schema: bool,
    /// A base URL of the interface, with the path that most servers have; blank if it is not known.
    base_url_example: &'static str,
    /// The names of the tools that the model may call.
    tool_names: Vec<String>,
    names: &'static SettingNames,
}

/// The time limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Elapsed {
    /// No byte came within this time.
    Idle(Duration),
    /// The call was not complete within this time.
    Total(Duration),
}

impl Failure {
    fn new(class: ErrorClass, message: impl Into<String>, detail: impl Into<String>) -> Self {
        let (stage, retry) = (Stage::Run, Retry::Never);
        Self { stage, class, message: message.into(), detail: detail.into(), retry }
    }

    /// Marks the failure as one before anything was sent.
    fn at_init(self) -> Self {
        Self { stage: Stage::Init, ..self }
    }

    /// Marks the failure as a refusal of the request, before any answer.
    fn at_refusal(self) -> Self {
        Self { stage: Stage::Refused, ..self }
    }

    fn or(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The message, for people; holds no secret.
    pub(in crate::engine) fn message(&self) -> &str {
        &self.message
    }

    /// The error of the run that the call belongs to.
    pub(in crate::engine) fn into_error(self) -> RunError {
        let Self { stage, class, message, detail, retry: _ } = self;
        RunError { stage, class, message, detail }
    }
}

impl Failures {
    /// For calls with these settings.
    pub(in crate::engine) fn new(
        names: &'static SettingNames,
        key: Option<&Secret>,
        base_url: &str,
        model: &str,
    ) -> Self {
        let login = Url::parse(base_url.trim()).map_or(Vec::new(), |url| login(&url));
        Self {
            secrets: key.cloned().into_iter().chain(login).collect(),
            has_key: key.is_some(),
            key_place: None,
            base_url: address::shown(base_url),
            host: address::host(base_url).unwrap_or_default(),
            model: model.to_owned(),
            has_schema: false,
            base_url_example: "",
            tool_names: Vec::new(),
            names,
        }
    }

    /// With the place of the key, if it is known more exactly than the names of settings say.
    pub(in crate::engine) fn of_key_in(self, key_place: Option<String>) -> Self {
        Self { key_place, ..self }
    }

    /// For calls by an interface whose base URLs mostly look like `base_url_example`.
    pub(in crate::engine) fn of_urls_like(self, base_url_example: &'static str) -> Self {
        Self { base_url_example, ..self }
    }

    /// For calls in which the provider is sent the schema of the answer, or not.
    pub(in crate::engine) fn with_schema(self, has_schema: bool) -> Self {
        Self { has_schema, ..self }
    }

    /// For calls in which the model may call the tools of these names.
    pub(in crate::engine) fn with_tools<'t>(self, names: impl Iterator<Item = &'t str>) -> Self {
        Self { tool_names: names.map(str::to_owned).collect(), ..self }
    }

    /// The place of the key that was sent.
    fn key_place(&self) -> &str {
        self.key_place.as_deref().unwrap_or(self.names.key)
    }

    /// The response is no list of models.
    pub(in crate::engine) fn no_list(&self) -> Failure {
        let message = format!(
            "{} answers, but not with a list of models; it may have none, or the base URL may be \
             wrong{}",
            self.base(),
            self.path_hint()
        );
        Failure::new(ErrorClass::Provider, message, NO_LIST)
    }

    /// What to do if the base URL lacks the path that most servers have; blank if it has one.
    fn path_hint(&self) -> String {
        match address::with_path_of(&self.base_url, self.base_url_example) {
            Some((path, url)) => {
                format!("{PATH_HINT}{path}: {}", self.quote(&url, QUOTE_CHARS_MAX))
            }
            None => String::new(),
        }
    }

    /// The host of the provider.
    pub(in crate::engine) fn host(&self) -> &str {
        &self.host
    }

    /// The model of the calls.
    pub(in crate::engine) fn model(&self) -> &str {
        &self.model
    }

    fn base(&self) -> String {
        self.quote(&self.base_url, QUOTE_CHARS_MAX)
    }

    fn malformed(&self, what: &str, detail: impl Into<String>) -> Failure {
        Failure::new(ErrorClass::MalformedStream, format!("{} {what}", self.base()), detail)
    }
}
