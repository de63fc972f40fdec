//! Selects the engine from options and variables.

use super::not_blank;
use crate::cli::{EngineName, SessionArgs};
use crate::command_file::is_stdin;
use crate::engine::Engine;
use crate::engine::anthropic::Anthropic;
use crate::engine::echo::Echo;
use crate::engine::gemini::Gemini;
use crate::engine::ollama::{self, Ollama};
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
    /// The first that is set counts.
    keys: &'static [&'static str],
    base_url: &'static str,
}

const OPENAI_VARIABLES: CommonVariables =
    CommonVariables { keys: &["OPENAI_API_KEY"], base_url: "OPENAI_BASE_URL" };

const ANTHROPIC_VARIABLES: CommonVariables =
    CommonVariables { keys: &["ANTHROPIC_API_KEY"], base_url: "ANTHROPIC_BASE_URL" };

/// The second is Google's name for the key of any of its services: it does not choose the engine.
const GEMINI_VARIABLES: CommonVariables =
    CommonVariables { keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"], base_url: "GEMINI_BASE_URL" };

const OLLAMA_VARIABLES: CommonVariables =
    CommonVariables { keys: &["OLLAMA_API_KEY"], base_url: "OLLAMA_HOST" };

/// Shown when no provider is configured.
const ECHO_ANSWERS: &str = "no provider is configured, so the built-in echo engine answers; to talk to a model set \
     OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or --base-url and --model";

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
        EngineName::Gemini => Engine::Gemini(Gemini::new(settings(args, GEMINI_VARIABLES)?)),
        EngineName::Ollama => Engine::Ollama(Ollama::new(ollama_settings(args)?)),
    })
}

/// The engine that the settings are for. The key of Anthropic or Gemini alone chooses its engine only
/// where no other setting names a provider: a key must not go to a server that it is not for.
fn default_engine(args: &SessionArgs, notices: &mut Vec<&'static str>) -> Result<EngineName> {
    let openai = settings(args, OPENAI_VARIABLES)?;
    let anthropic = settings(args, ANTHROPIC_VARIABLES)?;
    let has_provider = openai.key.is_some() || openai.base_url.is_some();
    if !has_provider && anthropic.key.is_some() {
        return Ok(EngineName::Anthropic);
    }
    let gemini_key = GEMINI_VARIABLES.keys.first().map_or(Ok(None), |name| variable(name))?;
    if !has_provider && gemini_key.as_deref().and_then(Secret::new).is_some() {
        return Ok(EngineName::Gemini);
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

/// The settings of Ollama, whose variable for its address may leave out most of it.
fn ollama_settings(args: &SessionArgs) -> Result<Settings> {
    let settings = settings(args, OLLAMA_VARIABLES)?;
    let base_url = match (not_blank(args.base_url.clone()), settings.base_url) {
        (None, Some(host)) => Some(ollama::base_url(&host)),
        (base_url, _) => base_url,
    };
    Ok(Settings { base_url, ..settings })
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
    for name in [OWN_KEY_VARIABLE].iter().chain(common.keys) {
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
