//! Which key the requests of an engine have, without the key itself: for `doctor`.

use super::stored::stored_key;
use super::{
    ANTHROPIC_VARIABLES, CommonVariables, GEMINI_VARIABLES, KeyChoice, OLLAMA_VARIABLES,
    OPENAI_VARIABLES, OWN_KEY_VARIABLE, ProviderChoice, variable,
};
use crate::cli::{EngineName, ProviderArgs};
use crate::conversation::choices::OriginKey;
use crate::engine::{Engine, KeySource};
use crate::profile::KeyFrom;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
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
    /// This program, this file or this variable, when a call needs the key.
    Source(KeySource),
    /// The option of this name, which was typed.
    Option(&'static str),
    /// The login in the base URL.
    Login,
    /// None of these variables has a value.
    Unset(Vec<&'static str>),
    /// This variable is set, and its key is for the provider itself: the profile names another address.
    Withheld(&'static str),
}

impl ProviderChoice {
    /// The key of the option that stands for the provider's variable.
    pub(super) fn typed_key(&self, common: CommonVariables) -> Option<Secret> {
        self.typed_keys.of(common.keys).map(|(_, key)| key.clone())
    }

    /// The provider's own key: of an option, or in its variables.
    pub(super) fn own_key(&self, common: CommonVariables) -> Result<Option<Secret>> {
        match self.typed_key(common) {
            Some(key) => Ok(Some(key)),
            None => key_in(common.keys),
        }
    }

    /// The key of an option, or else the one that a stored conversation had at the address.
    pub(super) fn key_of_stored(
        &self,
        stored: &OriginKey,
        common: CommonVariables,
    ) -> Result<Option<Secret>> {
        match self.typed_key(common) {
            Some(key) => Ok(Some(key)),
            None => stored_key(stored, self.base_url.as_deref(), common),
        }
    }

    /// Where the key of `engine` comes from, which was made of this choice.
    ///
    /// # Errors
    /// If a variable can't be read.
    pub(crate) fn key_origin(&self, engine: &dyn Engine) -> Result<KeyOrigin> {
        let Some(common) = variables_of(engine) else { return Ok(KeyOrigin::Unneeded) };
        match &self.key {
            Some(KeyChoice::Variable(_, name)) => Ok(KeyOrigin::Variable(name.clone())),
            Some(KeyChoice::InProfile(_)) => Ok(KeyOrigin::ProfileFile),
            Some(KeyChoice::Got(source)) => Ok(KeyOrigin::Source(source.clone())),
            None => self.own_origin(common),
        }
    }

    /// Where the key of a provider with the variables `common` is, if that is none of them.
    pub(super) fn key_place(&self, common: CommonVariables) -> Option<String> {
        let place = match &self.key {
            Some(KeyChoice::Variable(_, name) | KeyChoice::Got(KeySource::Variable(name))) => {
                Some(name.clone())
            }
            Some(KeyChoice::InProfile(_)) => Some("the profile's key".to_owned()),
            Some(KeyChoice::Got(KeySource::File(path))) => {
                Some(format!("the key file {}", escape_control(&path.display().to_string())))
            }
            Some(KeyChoice::Got(KeySource::Command(_))) => {
                Some("what the key command prints".to_owned())
            }
            None => self.typed_keys.of(common.keys).map(|(option, _)| option.to_owned()),
        };
        place.filter(|place| place != OWN_KEY_VARIABLE)
    }

    /// Whether a key that the profile names is used, unless an option names another.
    pub(crate) fn has_key_of_profile(&self) -> bool {
        self.is_of_profile && self.key.is_some()
    }

    /// Like [`Self::key_origin`], if only the provider's own variables can hold a key.
    fn own_origin(&self, common: CommonVariables) -> Result<KeyOrigin> {
        let mut set = None;
        for name in common.keys {
            if set.is_none() && variable(name)?.as_deref().and_then(Secret::new).is_some() {
                set = Some(*name);
            }
        }
        let is_withheld = self.is_address_of_others(common)?;
        if let Some((option, _)) = self.typed_keys.of(common.keys)
            && (!is_withheld || self.sends_typed_key)
        {
            return Ok(KeyOrigin::Option(option));
        }
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
fn variables_of(engine: &dyn Engine) -> Option<CommonVariables> {
    EngineName::from_str(engine.name(), false).ok().and_then(variables_of_name)
}

/// The variables of the provider of an engine; `None` if it has none.
pub(super) fn variables_of_name(engine: EngineName) -> Option<CommonVariables> {
    match engine {
        EngineName::Echo => None,
        EngineName::Openai | EngineName::Responses => Some(OPENAI_VARIABLES),
        EngineName::Anthropic => Some(ANTHROPIC_VARIABLES),
        EngineName::Gemini => Some(GEMINI_VARIABLES),
        EngineName::Ollama => Some(OLLAMA_VARIABLES),
    }
}

/// The key in the first of these variables that has one.
fn key_in(variables: &[&str]) -> Result<Option<Secret>> {
    for name in variables {
        if let Some(key) = variable(name)?.as_deref().and_then(Secret::new) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// The key that an option names the source of.
pub(super) fn key_of_options(args: &ProviderArgs) -> Result<Option<KeyChoice>> {
    if let Some(command) = &args.key_command {
        // Not with its text: arguments may be keys.
        let words = shlex::split(command).context("--key-command: quotes that don't match")?;
        ensure!(!words.is_empty(), "--key-command: there is no command");
        return Ok(Some(KeyChoice::Got(KeySource::Command(words))));
    }
    Ok(args.key_file.clone().map(|path| KeyChoice::Got(KeySource::File(path))))
}

pub(super) fn key_of_profile(from: &KeyFrom) -> Result<KeyChoice> {
    match from {
        KeyFrom::Variable(name) => {
            let key = variable(name)?.as_deref().and_then(Secret::new);
            Ok(match key {
                Some(key) => KeyChoice::Variable(key, name.clone()),
                // Calls fail without a key; what else the profile says is known all the same.
                None => KeyChoice::Got(KeySource::Variable(name.clone())),
            })
        }
        KeyFrom::Command(words) => Ok(KeyChoice::Got(KeySource::Command(words.clone()))),
        KeyFrom::File(path) => Ok(KeyChoice::Got(KeySource::File(path.clone()))),
        KeyFrom::Here(key) => Ok(KeyChoice::InProfile(key.clone())),
    }
}
