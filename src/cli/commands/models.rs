//! `duologue models`: the models that the provider lists.

use super::args::ModelsArgs;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::calls::CallArgs;
use crate::cli::config::engine::{Wanted, engine};
use crate::cli::config::profile;
use crate::cli::{EngineName, LogLevel, ProviderArgs, log, shell};
use crate::engine::{CallSettings, Engine, RunError, is_same_address};
use crate::profile::{Item, Resolved, Sourced};
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

/// Prints the models of the provider that `args` choose; returns the exit status.
pub fn models(args: &ModelsArgs) -> u8 {
    document::print(&args.output, || {
        log::start(LogLevel::Warn, None).map_err(wrong)?;
        let (engine, settings) = chosen(args).map_err(wrong)?;
        let mut models = listed(&engine, &settings)
            .map_err(wrong)?
            .map_err(|error| Failure::Unanswered(error.class, escape_control(&error.message)))?;
        models.sort_unstable();
        let text: String = models.iter().map(|model| escape_control(model) + "\n").collect();
        let data = models.iter().map(|model| json!({ "id": model })).collect();
        Ok(Document { text: text.into_bytes(), data })
    })
}

fn wrong(error: anyhow::Error) -> Failure {
    Failure::Usage(escape_control(&format!("{error:#}")))
}

/// The engine that options, variables and the profile choose, and the settings of its calls.
fn chosen(args: &ModelsArgs) -> Result<(Engine, CallSettings)> {
    let profiles = profile::read_if_named(&args.provider)?;
    let profile = profile::chosen(&args.provider, &profiles)?;
    let wanted = Wanted::initial(&args.provider, &profile)?;
    let resolved = match &args.provider.profile {
        Some(name) if !name.trim().is_empty() => Some(profiles.resolve(name.trim())?),
        Some(_) | None => None,
    };
    let settings = settings(&args.provider, &args.calls, resolved.as_ref())?;
    Ok((engine(&wanted, &args.engines, &mut Vec::new())?, settings))
}

/// The settings of the options, with the headers of the profile. These belong to its provider and go
/// to no other.
///
/// # Errors
/// If they can't be used.
pub(super) fn settings(
    provider: &ProviderArgs,
    calls: &CallArgs,
    profile: Option<&Resolved>,
) -> Result<CallSettings> {
    let typed = calls.settings()?;
    let Some(profile) = profile else { return Ok(typed) };
    let mut is_its_engine = provider.engine.is_none();
    let typed_url = provider.base_url.as_deref().filter(|url| !url.trim().is_empty());
    let mut is_its_address = typed_url.is_none();
    let mut headers = Map::new();
    for Sourced { item, .. } in &profile.values {
        if let Item::Engine(name) = item {
            is_its_engine |= provider.engine == EngineName::from_str(name, false).ok();
        } else if let (Item::BaseUrl(url), Some(typed)) = (item, typed_url) {
            is_its_address |= is_same_address(typed, url);
        } else if let Item::Header { name, value } = item {
            headers.insert(name.clone(), json!(value.expose()));
        }
    }
    let mut settings = CallSettings::default();
    if is_its_engine && is_its_address {
        let set = settings.set("extra_headers", &Value::Object(headers));
        set.map_err(|why| anyhow!("the profile `{}`: {why}", profile.name))?;
    }
    Ok(settings.overlay(&typed))
}

/// The models that the provider of `engine` lists, or why it does not.
///
/// # Errors
/// If nothing can be waited for.
pub(super) fn listed(
    engine: &Engine,
    settings: &CallSettings,
) -> Result<Result<Vec<String>, RunError>> {
    let runtime = shell::runtime().context("events can't be waited for")?;
    let models = runtime.block_on(engine.models(settings));
    // A pending name look-up must not delay the exit.
    runtime.shutdown_background();
    Ok(models)
}
