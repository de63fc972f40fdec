//! `duologue models`: the models that the provider lists.

use super::args::ModelsArgs;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::config::engine::{Wanted, engine};
use crate::cli::config::profile;
use crate::cli::session::EngineArgs;
use crate::cli::{LogLevel, ProviderArgs, log, shell};
use crate::engine::Engine;
use crate::support::terminal::escape_control;
use anyhow::{Context, Result};
use serde_json::json;

/// Prints the models of the provider that `args` choose; returns the exit status.
pub fn models(args: &ModelsArgs) -> u8 {
    document::print(&args.output, || {
        log::start(LogLevel::Warn, None).map_err(wrong)?;
        let engine = chosen(&args.provider, &args.engines).map_err(wrong)?;
        let mut models = listed(&engine)
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

/// The engine that options, variables and the profile choose.
///
/// # Errors
/// If they can't be used.
pub(super) fn chosen(provider: &ProviderArgs, engines: &EngineArgs) -> Result<Engine> {
    let profile = profile::chosen(provider, &profile::read_if_named(provider)?)?;
    let wanted = Wanted::initial(provider, &profile)?;
    engine(&wanted, engines, &mut Vec::new())
}

/// The models that the provider of `engine` lists, or why it does not.
///
/// # Errors
/// If nothing can be waited for.
pub(super) fn listed(engine: &Engine) -> Result<Result<Vec<String>, crate::engine::RunError>> {
    let runtime = shell::runtime().context("events can't be waited for")?;
    let models = runtime.block_on(engine.models());
    // A pending name look-up must not delay the exit.
    runtime.shutdown_background();
    Ok(models)
}
