//! The engines of a conversation: the one that it begins with, and those that a request can choose.

use super::engine::{ProviderChoice, engine, without_additions};
use super::profile::{self, ProfileValues};
use super::resume;
use crate::cli::session::EngineArgs;
use crate::cli::{EngineName, ProviderArgs, SessionArgs};
use crate::conversation::choices::Origin;
use crate::engine::{CallSettings, Engine, EngineRef, Engines, Unusable};
use crate::profile::Profiles;
use crate::session::SessionMode;
use crate::store::OpenMode;
use anyhow::Result;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The engines, the other settings of the chosen profile, and notes for the user.
pub(super) struct Chosen {
    pub(super) engines: Engines,
    pub(super) profile: ProfileValues,
    pub(super) notices: Vec<&'static str>,
    /// The stored form of the choice; `None` if nothing was chosen, or it can't be used.
    pub(super) origin: Option<Origin>,
}

/// The choice of options, variables and profiles for a process of this mode.
///
/// # Errors
/// If they can't be used. A conversation begins without what a profile lacks: its calls fail, and a
/// request can choose another.
pub(super) fn choose(args: &SessionArgs, mode: SessionMode) -> Result<Chosen> {
    let settings = args.calls.settings()?;
    let of_engines = OfEngines(args.calls.settings_of_engines()?);
    // Without a profile their files are not read before `hello`: they may be on a slow disk.
    let read = names_profile(args).then(|| profile::read(&args.provider.registries)).transpose();
    let mut notices = Vec::new();
    let nothing = Profiles::default();
    let begun = match &read {
        Ok(profiles) => begin(args, profiles.as_ref().unwrap_or(&nothing), &mut notices),
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let (initial, profile, origin) = match begun {
        Ok(begun) => begun,
        Err(error) if mode == SessionMode::Conversation && can_be_mended(args) => {
            if !names_profile(args) {
                tracing::warn!("{error:#}");
            }
            let unusable: Arc<dyn Engine> = Arc::new(Unusable::new(&format!("{error:#}")));
            (unusable, ProfileValues::default(), None)
        }
        Err(error) => return Err(error),
    };
    warn_of_unused(args, initial.name());
    let initial_settings = of_engines.over(profile.settings.overlay(&settings), initial.name());
    let initial_name = initial.name().to_owned();
    let mut engines = Engines::new(initial, initial_settings);
    engines.note_context(&EngineRef::Initial, profile.context_tokens);
    // A stored conversation may have been switched to another one.
    if mode == SessionMode::Conversation || args.store.mode() != OpenMode::New {
        let read = read.ok().flatten();
        let others = Arc::new(OtherEngines {
            provider: args.provider.clone(),
            engines: args.engines.clone(),
            settings: without_additions(settings),
            of_engines,
            initial: initial_name,
        });
        let named = Arc::clone(&others);
        engines.add_named_later(move |engines| named.add_named(engines));
        engines.add_profiles_later(move |engines| others.add_profiles(read, engines));
    }
    Ok(Chosen { engines, profile, notices, origin })
}

fn names_profile(args: &SessionArgs) -> bool {
    profile::name(&args.provider).is_some()
}

/// Whether a request can choose another engine than one that can't be used.
fn can_be_mended(args: &SessionArgs) -> bool {
    names_profile(args) || args.provider.stored_key.is_some()
}

fn begin(
    args: &SessionArgs,
    profiles: &Profiles,
    notices: &mut Vec<&'static str>,
) -> Result<(Arc<dyn Engine>, ProfileValues, Option<Origin>)> {
    let mut profile = profile::chosen(&args.provider, profiles)?;
    let choice = ProviderChoice::initial(&args.provider, &profile)?;
    profile.settings = choice.settings_of(&profile);
    let engine = engine(&choice, &args.engines, notices)?;
    // Without a provider there is no choice that the conversation could resume with.
    let origin = match notices.is_empty() {
        true => Some(resume::origin(args, &choice, &*engine)?),
        false => None,
    };
    Ok((engine, profile, origin))
}

/// The settings of the engines that a request can choose.
struct OtherEngines {
    provider: ProviderArgs,
    engines: EngineArgs,
    /// Typed options, which win over each profile.
    settings: CallSettings,
    of_engines: OfEngines,
    /// The name of the engine that the conversation begins with.
    initial: String,
}

/// Settings that were typed for one engine alone, by the engine's name.
struct OfEngines(BTreeMap<String, CallSettings>);

impl OfEngines {
    /// `settings` with the typed options for the engine `name`.
    fn over(&self, settings: CallSettings, name: &str) -> CallSettings {
        self.0.get(name).map_or_else(|| settings.clone(), |own| settings.overlay(own))
    }
}

/// How much the model of the engine `name` reasons that has the settings `own`, unless a request says it. Typed options
/// win, as in the calls; what is wrong with them is reported there.
pub(super) fn configured_effort(
    args: &SessionArgs,
    own: &CallSettings,
    name: &str,
) -> Option<String> {
    let typed = args.calls.settings().unwrap_or_default();
    let of_engines = OfEngines(args.calls.settings_of_engines().unwrap_or_default());
    of_engines.over(own.overlay(&typed), name).reasoning_effort
}

/// Warns of typed options that are for another engine than the one of this name.
fn warn_of_unused(args: &SessionArgs, engine: &str) {
    let Ok(name) = EngineName::from_str(engine, false) else { return };
    for (option, of) in args.calls.foreign.unused(name) {
        let of = of.to_possible_value();
        let of = of.as_ref().map_or("", |of| of.get_name());
        tracing::warn!(
            "{option} is not used: it is for the engine {of}, and the engine is {engine}"
        );
    }
    for option in args.provider.addresses.unused(name) {
        tracing::warn!("{option} is not used: it is for another provider than the engine {engine}");
    }
}

impl OtherEngines {
    /// Adds the engines that there are, with the settings of the environment.
    fn add_named(&self, engines: &mut Engines) {
        for name in EngineName::value_variants() {
            let choice = ProviderChoice::named(&self.provider, *name);
            let known = name.to_possible_value();
            // One whose files or variables can't be used is not offered.
            if let (Some(known), Ok(engine)) =
                (known, engine(&choice, &self.engines, &mut Vec::new()))
            {
                let reference = EngineRef::Named(known.get_name().to_owned());
                let settings = self.of_engines.over(self.settings.clone(), known.get_name());
                engines.add(reference, engine, settings);
            }
        }
    }

    /// Adds the engines of all profiles: of those in `read`, or in the files if those were not read.
    fn add_profiles(&self, read: Option<Profiles>, engines: &mut Engines) {
        let read = read.map_or_else(|| profile::read(&self.provider.registries), Ok);
        match read {
            Ok(profiles) => {
                profiles
                    .names()
                    .into_iter()
                    .for_each(|name| self.add_one(name, &profiles, engines));
            }
            Err(error) => tracing::warn!("no profile can be used: {error:#}"),
        }
    }

    /// Adds the engine of the profile `name`. One that can't be used says why when it is called.
    fn add_one(&self, name: &str, profiles: &Profiles, engines: &mut Engines) {
        let reference = EngineRef::Profile(name.to_owned());
        let resolved = profiles.resolve(name).map_err(anyhow::Error::from);
        let added = resolved.and_then(|resolved| {
            let values = ProfileValues::of(&resolved)?;
            let mut notes: Vec<_> = resolved.warnings().collect();
            notes.extend(self.unused(name, &values));
            if values.has_provider() {
                let choice = ProviderChoice::other(&self.provider, &values)?;
                let engine = engine(&choice, &self.engines, &mut Vec::new())?;
                let settings = values.settings.overlay(&self.settings);
                let settings = self.of_engines.over(settings, engine.name());
                engines.add(reference.clone(), engine, settings);
            } else {
                // Its headers and members of the body are for a provider that it does not name.
                let settings = without_additions(values.settings.clone()).overlay(&self.settings);
                let settings = self.of_engines.over(settings, &self.initial);
                engines.add_variant(reference.clone(), values.model.clone(), settings);
            }
            engines.note_context(&reference, values.context_tokens);
            engines.note(reference.clone(), notes);
            Ok(())
        });
        if let Err(error) = added {
            let unusable = Unusable::new(&format!("{error:#}"));
            engines.add(reference, unusable, CallSettings::default());
        }
    }

    /// The parts of the profile that do not apply when a conversation switches to it.
    fn unused(&self, name: &str, values: &ProfileValues) -> Option<String> {
        if profile::name(&self.provider) == Some(name) {
            return None;
        }
        let unused = values.unused_by_switch();
        (!unused.is_empty()).then(|| {
            format!(
                "the profile `{name}` has {}, which a switch does not change: they stay as the \
                 conversation began; to use them, begin it with --profile",
                unused.join(", ")
            )
        })
    }
}
