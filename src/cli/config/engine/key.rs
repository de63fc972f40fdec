//! Which key the requests of an engine have, without the key itself: for `doctor`.

use super::{
    ANTHROPIC_VARIABLES, CommonVariables, GEMINI_VARIABLES, KeyChoice, OLLAMA_VARIABLES,
    OPENAI_VARIABLES, OWN_KEY_VARIABLE, ProviderChoice, variable,
};
use crate::engine::{Engine, KeySource};
use crate::support::secret::Secret;
use anyhow::Result;
use std::iter;

/// Where a key comes from, or why requests have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// The built-in engine sends no requests.
    Unneeded,
    /// The variable of this name, which is set.
    Variable(String),
    /// The file of the profile.
    ProfileFile,
    /// This program, or this file, when a call needs the key.
    Source(KeySource),
    /// The login in the base URL.
    Login,
    /// None of these variables has a value.
    Unset(Vec<&'static str>),
    /// This variable is set, and its key is for the provider itself: the profile names another address.
    Withheld(&'static str),
}

impl ProviderChoice {
    /// Where the key of `engine` comes from, which was made of this choice.
    ///
    /// # Errors
    /// If a variable can't be read.
    pub(crate) fn key_origin(&self, engine: &Engine) -> Result<KeyOrigin> {
        let Some(common) = variables_of(engine) else { return Ok(KeyOrigin::Unneeded) };
        match &self.key {
            Some(KeyChoice::Variable(_, name)) => Ok(KeyOrigin::Variable(name.clone())),
            Some(KeyChoice::InProfile(_)) => Ok(KeyOrigin::ProfileFile),
            Some(KeyChoice::Got(source)) => Ok(KeyOrigin::Source(source.clone())),
            None => self.own_origin(common),
        }
    }

    /// Whether a key that the profile names is used, unless an option names another.
    pub(crate) fn has_key_of_profile(&self) -> bool {
        self.is_of_profile && self.key.is_some()
    }

    /// The same where nothing but the provider's own variables can have a key.
    fn own_origin(&self, common: CommonVariables) -> Result<KeyOrigin> {
        let mut set = None;
        for name in common.keys {
            if set.is_none() && variable(name)?.as_deref().and_then(Secret::new).is_some() {
                set = Some(*name);
            }
        }
        let is_withheld = self.is_address_of_others(common)?;
        Ok(match set {
            Some(name) if !is_withheld => KeyOrigin::Variable(name.to_owned()),
            Some(_) | None if self.has_login(common)? => KeyOrigin::Login,
            Some(name) => KeyOrigin::Withheld(name),
            None => KeyOrigin::Unset(
                iter::once(OWN_KEY_VARIABLE).chain(common.keys.iter().copied()).collect(),
            ),
        })
    }

    /// Whether the base URL has a user or a password in it.
    fn has_login(&self, common: CommonVariables) -> Result<bool> {
        let url = match (&self.base_url, self.has_own_additions) {
            (Some(url), _) => Some(url.clone()),
            (None, true) => None,
            (None, false) => variable(common.base_url)?,
        };
        let url = url.and_then(|url| url::Url::parse(url.trim()).ok());
        Ok(url.is_some_and(|url| !url.username().is_empty() || url.password().is_some()))
    }
}

/// The provider's own variables; `None` if no requests are sent.
fn variables_of(engine: &Engine) -> Option<CommonVariables> {
    match engine {
        Engine::OpenAi(_) | Engine::Responses(_) => Some(OPENAI_VARIABLES),
        Engine::Anthropic(_) => Some(ANTHROPIC_VARIABLES),
        Engine::Gemini(_) => Some(GEMINI_VARIABLES),
        Engine::Ollama(_) => Some(OLLAMA_VARIABLES),
        Engine::Echo(_) | Engine::Unusable(_) => None,
    }
}
