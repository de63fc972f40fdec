//! The engines of a conversation: the one that it begins with, and those that a request can choose.

use super::engine::{Wanted, engine};
use super::profile::{self, ProfileValues};
use crate::cli::{EngineName, SessionArgs};
use crate::engine::{CallSettings, Engine, EngineRef, Engines, Unusable};
use crate::profile::Profiles;
use crate::session::SessionMode;
use anyhow::Result;
use clap::ValueEnum;
use serde_json::Map;
use std::collections::BTreeMap;

/// The engines, what the chosen profile says besides, and notes for the user.
pub(super) struct Chosen {
    pub(super) engines: Engines,
    pub(super) profile: ProfileValues,
    pub(super) notices: Vec<&'static str>,
}

/// What the options, variables and profiles choose for a process of this mode.
///
/// # Errors
/// If they can't be used. A conversation begins without what a profile lacks: its calls fail, and a
/// request can choose another.
pub(super) fn choose(args: &SessionArgs, mode: SessionMode) -> Result<Chosen> {
    let settings = args.calls.settings()?;
    let read = profile::read(&args.provider.registries);
    let mut notices = Vec::new();
    let begun = match &read {
        Ok(profiles) => begin(args, profiles, &mut notices),
        Err(error) if args.provider.profile.is_none() => {
            tracing::warn!("no profile can be used: {error:#}");
            begin(args, &Profiles::default(), &mut notices)
        }
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let (initial, profile) = match begun {
        Ok(begun) => begun,
        Err(error) if mode == SessionMode::Conversation && args.provider.profile.is_some() => {
            let unusable = Engine::Unusable(Unusable::new(&format!("{error:#}")));
            (unusable, ProfileValues::default())
        }
        Err(error) => return Err(error),
    };
    let mut engines = Engines::new(initial, profile.settings.overlay(&settings));
    if mode == SessionMode::Conversation {
        add_named(args, &settings, &mut engines);
        read.iter().for_each(|profiles| add_profiles(args, profiles, &mut engines));
    }
    Ok(Chosen { engines, profile, notices })
}

fn begin(
    args: &SessionArgs,
    profiles: &Profiles,
    notices: &mut Vec<&'static str>,
) -> Result<(Engine, ProfileValues)> {
    let mut profile = profile::chosen(&args.provider, profiles)?;
    let wanted = Wanted::initial(&args.provider, &profile)?;
    if !wanted.is_of_profile {
        // They may hold a key.
        profile.settings = without_additions(profile.settings);
    }
    Ok((engine(&wanted, &args.engines, notices)?, profile))
}

/// Adds the engines that there are, with the settings of the environment.
fn add_named(args: &SessionArgs, settings: &CallSettings, engines: &mut Engines) {
    for name in EngineName::value_variants() {
        let wanted = Wanted::named(&args.provider, *name);
        let known = name.to_possible_value();
        // One whose files or variables can't be used is not offered.
        if let (Some(known), Ok(engine)) = (known, engine(&wanted, &args.engines, &mut Vec::new()))
        {
            let reference = EngineRef::Named(known.get_name().to_owned());
            engines.add(reference, engine, without_additions(settings.clone()));
        }
    }
}

/// `settings` without what is meant for one provider alone.
fn without_additions(settings: CallSettings) -> CallSettings {
    CallSettings { extra_body: Map::new(), extra_headers: BTreeMap::new(), ..settings }
}

/// Adds the engines of all profiles. One that can't be used says why when it is called.
fn add_profiles(args: &SessionArgs, profiles: &Profiles, engines: &mut Engines) {
    for name in profiles.names() {
        let built = profiles.resolve(name).map_err(anyhow::Error::from).and_then(|resolved| {
            let values = ProfileValues::of(&resolved)?;
            let wanted = Wanted::other(&args.provider, &values)?;
            Ok((engine(&wanted, &args.engines, &mut Vec::new())?, values.settings))
        });
        let (engine, settings) = built.unwrap_or_else(|error| {
            let unusable = Unusable::new(&format!("{error:#}"));
            (Engine::Unusable(unusable), CallSettings::default())
        });
        engines.add(EngineRef::Profile(name.to_owned()), engine, settings);
    }
}
