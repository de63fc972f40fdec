//! Parts of a provider's configuration where no provider is configured: a job that lost the rest of
//! it must not get the answer of the built-in engine.

use super::profile;
use crate::cli::ProviderArgs;
use crate::cli::session::ForeignArgs;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// Variables that configure a provider whatever else is set. One that is empty was to have a value.
const ENOUGH: [&str; 4] =
    ["DUOLOGUE_ENGINE", "DUOLOGUE_MODEL", "DUOLOGUE_BASE_URL", "DUOLOGUE_PROFILE"];

/// Variables that configure one provider, here or in other programs (`AZURE_OPENAI_API_KEY` and `GEMINI_MODEL`). One
/// that is empty was to have a value.
pub(super) const OF_PROVIDERS: [&str; 12] = [
    "DUOLOGUE_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_BASE_URL",
    "GEMINI_MODEL",
    "OLLAMA_API_KEY",
    "OLLAMA_HOST",
];

/// Pinocchio's file of settings is named.
const CONFIG_FILE: &str =
    "--config-file names Pinocchio's settings, which are not read here; write them as a profile";

/// The names of the variables that are set and configure a provider.
pub(crate) fn set_variables() -> Vec<&'static str> {
    let names = ENOUGH.into_iter().chain(OF_PROVIDERS);
    names.filter(|name| is_empty(name) == Some(false)).collect()
}

/// # Errors
/// If variables or a file of settings are a part of a provider's configuration, with what is missing.
pub(crate) fn ensure_unconfigured(foreign: &ForeignArgs) -> Result<()> {
    let foreign = foreign.config_file.iter().map(|_| CONFIG_FILE.to_owned());
    let empty = ENOUGH.iter().filter(|name| is_empty(name) == Some(true)).map(|name| lacks(name));
    let variables = OF_PROVIDERS.iter().filter_map(|name| of_variable(name));
    let found: Vec<_> = empty.chain(variables).chain(foreign).collect();
    refuse(&found)
}

/// # Errors
/// If there is a file of profiles, or it can't be read.
pub(crate) fn ensure_no_profiles(args: &ProviderArgs) -> Result<()> {
    let profiles = profile::read(&args.registries)
        .context("no provider is configured, and the files of profiles can't be read")?;
    let files: Vec<_> = profiles.files().map(|(_, path, _)| path.to_owned()).collect();
    let names: Vec<_> = profiles.names().into_iter().collect();
    refuse(&of_files(&files, &names, profile::name(args)))
}

fn refuse(found: &[String]) -> Result<()> {
    ensure!(
        found.is_empty(),
        "no provider is configured completely, so the model can't be asked: {}; complete that, or \
         choose the built-in engine with --engine echo",
        found.join("; ")
    );
    Ok(())
}

fn lacks(name: &str) -> String {
    format!("{name} is set but empty")
}

/// Whether the variable `name` is empty; `None` if it is not set.
fn is_empty(name: &str) -> Option<bool> {
    std::env::var_os(name).map(|value| value.to_string_lossy().trim().is_empty())
}

/// The error in the variable `name`, if it is set. A key that chooses a provider by itself has
/// done so if it has a value.
fn of_variable(name: &str) -> Option<String> {
    Some(match is_empty(name)? {
        true => lacks(name),
        false => format!("{name} is set, but no engine is chosen ({})", choice_of(name)),
    })
}

/// How the provider of the variable is chosen.
fn choice_of(name: &str) -> &'static str {
    match name.split('_').next() {
        Some("ANTHROPIC") => "--engine anthropic, or DUOLOGUE_ENGINE=anthropic",
        Some("GEMINI" | "GOOGLE") => "--engine gemini, or DUOLOGUE_ENGINE=gemini",
        Some("OLLAMA") => "--engine ollama, or DUOLOGUE_ENGINE=ollama",
        // That of a deployment at Azure has no engine of its own, and its key is read from duologue's variable.
        Some("AZURE") => "its key goes into DUOLOGUE_API_KEY, its address into DUOLOGUE_BASE_URL",
        Some(_) | None => "--engine, DUOLOGUE_ENGINE",
    }
}

fn of_files(files: &[PathBuf], names: &[&str], chosen: Option<&str>) -> Vec<String> {
    let missing = match (chosen, names) {
        (Some(name), _) => format!("the profile {name} names no provider"),
        (None, []) => "it has no profile".to_owned(),
        (None, names) => format!(
            "no profile is chosen (--profile, DUOLOGUE_PROFILE) of those there are: {}",
            names.join(", ")
        ),
    };
    let found = |path: &PathBuf| format!("there is a file of profiles, {}", path.display());
    let mut found: Vec<_> = files.iter().map(found).collect();
    if !found.is_empty() {
        found.push(missing);
    }
    found
}
