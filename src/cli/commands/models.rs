//! `duologue models`: the models that the provider lists.

use super::args::ModelsArgs;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::calls::CallArgs;
use crate::cli::config::engine::{ProviderChoice, engine};
use crate::cli::config::profile::{self, ProfileValues};
use crate::cli::session::EngineArgs;
use crate::cli::{LogLevel, ProviderArgs, SessionArgs, log, shell};
use crate::engine::{CallSettings, Engine, ListedModel, RunError};
use crate::protocol::command::ModelChoice;
use crate::support::terminal::escape_control;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::sync::Arc;

/// Prints the models of the provider that `args` choose; returns the exit status.
pub fn models(args: ModelsArgs) -> u8 {
    let ModelsArgs { mut provider, output, calls, engines } = args;
    document::print(&output, || {
        log::start(LogLevel::Warn, None).map_err(wrong)?;
        profile::choose_default(&mut provider).map_err(wrong)?;
        let (engine, settings) = chosen(&provider, &calls, &engines).map_err(wrong)?;
        let mut models =
            listed(&*engine, &settings).map_err(wrong)?.map_err(Failure::Unanswered)?;
        models.sort_unstable();
        let text: String = models.iter().map(|it| escape_control(&it.name) + "\n").collect();
        let data = models.iter().map(document_of).collect();
        Ok(Document { text: text.into_bytes(), data })
    })
}

/// The models of a provider in a chat whose conversation has the options `session`: of the one that a choice in the
/// chat names, else of that of the options.
///
/// # Errors
/// Why they are not listed.
pub(crate) fn names(session: SessionArgs, choice: &ModelChoice) -> Result<Vec<String>, String> {
    let SessionArgs { mut provider, calls, engines, .. } = session;
    if !choice.profile.is_empty() {
        let ProviderArgs { registries, tls_roots, .. } = provider;
        let profile = Some(choice.profile.clone());
        provider = ProviderArgs { registries, tls_roots, profile, ..ProviderArgs::default() };
    }
    let shown = |error: anyhow::Error| format!("{error:#}");
    profile::choose_default(&mut provider).map_err(shown)?;
    let (engine, settings) = chosen(&provider, &calls, &engines).map_err(shown)?;
    let models = listed(&*engine, &settings).map_err(shown)?;
    let mut models = models.map_err(|error| error.message)?;
    models.sort_unstable();
    Ok(models.into_iter().map(|it| it.name).collect())
}

fn document_of(model: &ListedModel) -> Value {
    match model.context_tokens {
        Some(tokens) => json!({ "id": model.name, "contextTokens": tokens }),
        None => json!({ "id": model.name }),
    }
}

fn wrong(error: anyhow::Error) -> Failure {
    Failure::Usage(escape_control(&format!("{error:#}")))
}

/// The engine that options, variables and the profile choose, and the settings of its calls.
fn chosen(
    args: &ProviderArgs,
    calls: &CallArgs,
    engines: &EngineArgs,
) -> Result<(Arc<dyn Engine>, CallSettings)> {
    let profiles = profile::read_if_named(args)?;
    let profile = profile::chosen(args, &profiles)?;
    let choice = ProviderChoice::initial(args, &profile)?;
    let settings = settings(&choice, &profile, calls)?;
    let mut notices = Vec::new();
    let engine = engine(&choice, engines, &mut notices)?;
    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    Ok((engine, settings))
}

/// The settings of the options, with the headers of the profile if they are for the provider.
///
/// # Errors
/// If they can't be used.
pub(super) fn settings(
    choice: &ProviderChoice,
    profile: &ProfileValues,
    calls: &CallArgs,
) -> Result<CallSettings> {
    let extra_headers = choice.settings_of(profile).extra_headers;
    let headers = CallSettings { extra_headers, ..CallSettings::default() };
    Ok(headers.overlay(&calls.settings()?))
}

/// The models that the provider of `engine` lists, or why it does not.
///
/// # Errors
/// If nothing can be waited for.
pub(super) fn listed(
    engine: &dyn Engine,
    settings: &CallSettings,
) -> Result<Result<Vec<ListedModel>, RunError>> {
    let runtime = shell::runtime().context("events can't be waited for")?;
    let models = runtime.block_on(engine.models(settings));
    // A pending name look-up must not delay the exit.
    runtime.shutdown_background();
    Ok(models)
}
