//! Selects the engine from options and variables.

use super::not_blank;
use crate::cli::{EngineName, SessionArgs};
use crate::command_file::is_stdin;
use crate::engine::Engine;
use crate::engine::anthropic::Anthropic;
use crate::engine::echo::Echo;
use crate::engine::openai::{OpenAi, Settings};
use crate::engine::responses::Responses;
use crate::support::secret::Secret;
use anyhow::{Result, anyhow, bail, ensure};
use std::env::VarError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variable that holds the key of whichever provider is used; it has precedence over the provider's.
const OWN_KEY_VARIABLE: &str = "DUOLOGUE_API_KEY";

/// Variables from which other programs read the settings of a provider, too.
#[derive(Clone, Copy, Debug)]
struct CommonVariables {
    key: &'static str,
    base_url: &'static str,
}

const OPENAI_VARIABLES: CommonVariables =
    CommonVariables { key: "OPENAI_API_KEY", base_url: "OPENAI_BASE_URL" };

const ANTHROPIC_VARIABLES: CommonVariables =
    CommonVariables { key: "ANTHROPIC_API_KEY", base_url: "ANTHROPIC_BASE_URL" };

/// Shown when no provider is configured.
const ECHO_ANSWERS: &str = "no provider is configured, so the built-in echo engine answers; to talk to a model set \
     OPENAI_API_KEY or ANTHROPIC_API_KEY, or --base-url and --model";

/// The engine, and a note for the user about how it was chosen.
pub(super) fn engine(args: &SessionArgs, notices: &mut Vec<&'static str>) -> Result<Engine> {
    let name = match args.engine {
        Some(name) => name,
        None => default_engine(args, notices)?,
    };
    Ok(match name {
        EngineName::Echo => Engine::Echo(Echo {
            delay: Duration::from_millis(args.engines.echo_delay_ms),
            reasoning: args.engines.echo_reasoning,
            answer: text_file("--echo-answer", args.engines.echo_answer.as_deref())?,
            script: text_file("--echo-script", args.engines.echo_script.as_deref())?,
        }),
        EngineName::Openai => Engine::OpenAi(OpenAi::new(settings(args, OPENAI_VARIABLES)?)),
        EngineName::Responses => {
            Engine::Responses(Responses::new(settings(args, OPENAI_VARIABLES)?))
        }
        EngineName::Anthropic => {
            Engine::Anthropic(Anthropic::new(settings(args, ANTHROPIC_VARIABLES)?))
        }
    })
}

/// The engine that the settings are for. Anthropic's key alone chooses its engine only where no other
/// setting names a provider: a key must not go to a server that it is not for.
fn default_engine(args: &SessionArgs, notices: &mut Vec<&'static str>) -> Result<EngineName> {
    let openai = settings(args, OPENAI_VARIABLES)?;
    let anthropic = settings(args, ANTHROPIC_VARIABLES)?;
    let has_provider = openai.key.is_some() || openai.base_url.is_some();
    if !has_provider && anthropic.key.is_some() {
        return Ok(EngineName::Anthropic);
    }
    if has_provider || openai.model.is_some() {
        return Ok(EngineName::Openai);
    }
    notices.push(ECHO_ANSWERS);
    Ok(EngineName::Echo)
}

/// The settings of a provider whose variables are `common`; our own have precedence.
fn settings(args: &SessionArgs, common: CommonVariables) -> Result<Settings> {
    let base_url = not_blank(args.base_url.clone()).or(not_blank(variable(common.base_url)?));
    Ok(Settings {
        base_url,
        model: not_blank(args.model.clone()),
        key: key(common)?,
        connect_timeout: Duration::from_millis(args.engines.connect_timeout_ms),
        idle_timeout: Duration::from_millis(args.engines.idle_timeout_ms),
        total_timeout: Duration::from_millis(args.engines.total_timeout_ms),
        retries: args.engines.retries,
    })
}

/// A file that the echo engine reads, which must exist before the run starts. It is not opened:
/// opening a named pipe would block.
fn text_file(option: &str, path: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    ensure!(!is_stdin(path), "{option} can't be standard input; name a file");
    let shown = path.display();
    let about = path.metadata().map_err(|error| {
        anyhow!("{option}: {shown} can't be read: {error}; check its name and who may read it")
    })?;
    ensure!(about.is_file(), "{option}: {shown} is not a regular file; name a text file");
    Ok(Some(path.to_owned()))
}

/// The key from the environment.
fn key(common: CommonVariables) -> Result<Option<Secret>> {
    for name in [OWN_KEY_VARIABLE, common.key] {
        if let Some(key) = variable(name)?.as_deref().and_then(Secret::new) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// A variable that is not an option. Its value may be a secret and is never shown.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{name} can't be used: it is not UTF-8"),
    }
}
