//! Whether a profile can answer now, as far as is known without asking its provider.

use crate::cli::ProviderArgs;
use crate::cli::config::engine::{KeyOrigin, ProviderChoice, engine};
use crate::cli::config::profile::ProfileValues;
use crate::cli::session::EngineArgs;
use crate::engine::KeySource;
use crate::profile::{ProfileError, Resolved};
use anyhow::Result;

/// The facts about a profile.
#[derive(Debug)]
pub(super) struct Readiness {
    /// The engine; `none` if it is not known.
    pub(super) engine: String,
    /// The model; blank if none is named.
    pub(super) model: String,
    /// Its settings are complete.
    pub(super) can_answer: bool,
    /// Why, for people.
    pub(super) why: String,
}

/// Whether `profile` can answer, with no other option or variable than those of providers.
pub(super) fn readiness(profile: Result<Resolved, ProfileError>) -> Readiness {
    let known = profile.map_err(anyhow::Error::from).and_then(|profile| known(&profile));
    known.unwrap_or_else(|error| Readiness {
        engine: "none".to_owned(),
        model: String::new(),
        can_answer: false,
        why: format!("{error:#}"),
    })
}

fn known(profile: &Resolved) -> Result<Readiness> {
    let values = ProfileValues::of(profile)?;
    let args = ProviderArgs::default();
    let choice = ProviderChoice::initial(&args, &values)?;
    let engine = engine(&choice, &EngineArgs::default(), &mut Vec::new())?;
    let fault = engine.fault().map(|fault| fault.message);
    let key = shown(&choice.key_origin(&*engine)?);
    Ok(Readiness {
        engine: engine.name().to_owned(),
        model: engine.model().to_owned(),
        can_answer: fault.is_none(),
        why: fault.unwrap_or(key),
    })
}

/// Where the key of a profile that can answer comes from.
fn shown(key: &KeyOrigin) -> String {
    match key {
        KeyOrigin::Unneeded => "no key is needed".to_owned(),
        KeyOrigin::Variable(name) | KeyOrigin::Source(KeySource::Variable(name)) => {
            format!("the key comes from the variable {name}")
        }
        KeyOrigin::ProfileFile => "the key comes from the profile's own file".to_owned(),
        KeyOrigin::Source(KeySource::Command(_)) => "the key comes from a command".to_owned(),
        KeyOrigin::Source(KeySource::File(_)) => "the key comes from a file".to_owned(),
        KeyOrigin::Option(name) => format!("the key comes from {name}"),
        KeyOrigin::Login => "the base URL has a login".to_owned(),
        KeyOrigin::Unset(_) => "no key is sent".to_owned(),
        KeyOrigin::Withheld(name) => {
            format!("no key is sent: that in {name} is for the provider itself")
        }
    }
}
