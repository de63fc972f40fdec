//! Selects the engine from options and variables.

use super::not_blank;
use crate::cli::{EngineName, SessionArgs};
use crate::command_file::is_stdin;
use crate::engine::Engine;
use crate::engine::echo::Echo;
use crate::engine::openai::{self, OpenAi};
use crate::support::secret::Secret;
use anyhow::{Result, anyhow, bail, ensure};
use std::env::VarError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables that may hold the key of the openai engine; the first one that is set is used.
const KEY_VARIABLES: [&str; 2] = ["DUOLOGUE_API_KEY", "OPENAI_API_KEY"];

/// Variable from which other programs read the base URL; our own has precedence.
const COMMON_BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";

/// Shown when no provider is configured.
const ECHO_ANSWERS: &str = "no provider is configured, so the built-in echo engine answers; to talk to a model set \
     OPENAI_API_KEY, or --base-url and --model";

/// The engine, and a note for the user about how it was chosen.
pub(super) fn engine(args: &SessionArgs, notices: &mut Vec<&'static str>) -> Result<Engine> {
    let key = key()?;
    let common_base_url = variable(COMMON_BASE_URL_VARIABLE)?;
    let base_url = not_blank(args.base_url.clone()).or(not_blank(common_base_url));
    let model = not_blank(args.model.clone());
    let is_configured = key.is_some() || base_url.is_some() || model.is_some();
    let name = match args.engine {
        Some(name) => name,
        None if is_configured => EngineName::Openai,
        None => {
            notices.push(ECHO_ANSWERS);
            EngineName::Echo
        }
    };
    Ok(match name {
        EngineName::Echo => Engine::Echo(Echo {
            delay: Duration::from_millis(args.engines.echo_delay_ms),
            reasoning: args.engines.echo_reasoning,
            answer: text_file("--echo-answer", args.engines.echo_answer.as_deref())?,
            script: text_file("--echo-script", args.engines.echo_script.as_deref())?,
        }),
        EngineName::Openai => Engine::OpenAi(OpenAi::new(openai::Settings {
            base_url: base_url.unwrap_or_else(|| openai::DEFAULT_BASE_URL.to_owned()),
            model,
            key,
            connect_timeout: Duration::from_millis(args.engines.connect_timeout_ms),
            idle_timeout: Duration::from_millis(args.engines.idle_timeout_ms),
            total_timeout: Duration::from_millis(args.engines.total_timeout_ms),
            retries: args.engines.retries,
        })),
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
fn key() -> Result<Option<Secret>> {
    for name in KEY_VARIABLES {
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
