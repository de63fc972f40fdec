//! Whether a profile can answer now, as far as is known without asking its provider.

use crate::cli::ProviderArgs;
use crate::cli::config::engine::{ProviderChoice, engine};
use crate::cli::config::profile::ProfileValues;
use crate::cli::session::EngineArgs;
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
    let choice = ProviderChoice::initial(&ProviderArgs::default(), &values)?;
    let engine = engine(&choice, &EngineArgs::default(), &mut Vec::new())?;
    let fault = engine.fault().map(|fault| fault.message);
    let key = match (choice.key_shown(), engine.name()) {
        (_, "echo") => "no key is needed".to_owned(),
        (Some(key), _) => format!("the key comes from {key}"),
        (None, _) => "the key comes from the provider's own variable, if that is set".to_owned(),
    };
    Ok(Readiness {
        engine: engine.name().to_owned(),
        model: engine.model().to_owned(),
        can_answer: fault.is_none(),
        why: fault.unwrap_or(key),
    })
}
