//! The engine, the key, the network and the provider.

use super::Check;
use crate::cli::commands::args::DoctorArgs;
use crate::cli::commands::models::{listed, settings};
use crate::cli::commands::output::complaint;
use crate::cli::config::engine::{
    DefaultEngine, ECHO_ANSWERS, KeyOrigin, ProviderChoice, default_engine, engine,
};
use crate::cli::config::missing;
use crate::cli::config::profile::ProfileValues;
use crate::cli::session::ForeignArgs;
use crate::cli::{EngineName, ProviderArgs, TlsRoots};
use crate::engine::{CallSettings, Engine, ErrorClass, KeySource, RunError, is_same_model};
use crate::profile::{Item, Resolved};
use anyhow::Result;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// Variables that change how a provider is reached. Their values may hold passwords.
const NETWORK_VARIABLES: [&str; 9] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The provider that the options and the profile choose.
struct Built {
    engine: Arc<dyn Engine>,
    choice: ProviderChoice,
    /// What decides for the engine, if nothing names it.
    default: Option<DefaultEngine>,
    settings: CallSettings,
}

/// Checks the choice of the options and `profile`, and queries the provider.
pub(super) fn check(
    args: &DoctorArgs,
    values: &ProfileValues,
    profile: Option<&Resolved>,
    checks: &mut Vec<Check>,
) {
    match build(args, values) {
        Ok(Some(built)) => of_engine(args, &built, profile, checks),
        Ok(None) => checks.push(of_nothing(args)),
        Err(error) => checks.push(Check::wrong("settings", format!("{error:#}"))),
    }
}

/// `None` if no provider is configured.
fn build(args: &DoctorArgs, values: &ProfileValues) -> Result<Option<Built>> {
    let choice = ProviderChoice::initial(&args.provider, values)?;
    let settings = settings(&choice, values, &args.calls)?;
    let mut notices = Vec::new();
    let engine = engine(&choice, &args.engines, &mut notices)?;
    if !notices.is_empty() {
        return Ok(None);
    }
    let default = default_engine(&choice, &args.engines)?;
    Ok(Some(Built { engine, choice, default, settings }))
}

/// Where no provider is configured: as in a conversation that begins here.
fn of_nothing(args: &DoctorArgs) -> Check {
    let part = missing::ensure_unconfigured(&ForeignArgs::default())
        .and_then(|()| missing::ensure_no_profiles(&args.provider));
    match part {
        Err(error) if is_attended() && !args.require_provider => Check::note(
            "settings",
            format!("{ECHO_ANSWERS}; without a terminal it is an error: {error:#}"),
        ),
        Err(error) => Check::wrong("settings", format!("{error:#}")),
        Ok(()) if args.require_provider => {
            Check::wrong("settings", format!("{ECHO_ANSWERS} (--require-provider)"))
        }
        Ok(()) => Check::note("settings", ECHO_ANSWERS),
    }
}

/// Whether one of the three standard streams is a terminal, so that a person sees which engine answers.
fn is_attended() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

fn of_engine(
    args: &DoctorArgs,
    Built { engine, choice, default, settings }: &Built,
    profile: Option<&Resolved>,
    checks: &mut Vec<Check>,
) {
    let source = |field, option, variable| source(&args.provider, profile, field, option, variable);
    let engine_from = match default {
        Some(default) => format!("chosen by {}", default.by),
        None => source("engine", args.provider.engine.is_some(), "DUOLOGUE_ENGINE"),
    };
    checks.push(Check::fine("engine", format!("{} ({engine_from})", engine.name())));
    let model_from = source("model", args.provider.model.is_some(), "DUOLOGUE_MODEL");
    if !engine.model().is_empty() {
        checks.push(Check::fine("model", format!("{} ({model_from})", engine.model())));
    }
    let name = EngineName::from_str(engine.name(), false).ok();
    let url_from = match name.and_then(|name| args.provider.own_address(name)) {
        Some((option, _)) => option.to_owned(),
        None => source("base-url", args.provider.base_url.is_some(), "DUOLOGUE_BASE_URL"),
    };
    checks.push(Check::fine("provider", format!("{} ({url_from})", engine.provider())));
    let fault = engine.fault();
    checks.push(key(args, choice, &**engine, profile));
    checks.extend(default.iter().flat_map(unused_keys));
    let roots = match args.provider.tls_roots {
        TlsRoots::Builtin => "built in",
        TlsRoots::System => "the system's",
    };
    checks.push(Check::fine("root certificates", roots));
    let set = NETWORK_VARIABLES.into_iter();
    let set: Vec<_> =
        set.filter(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty())).collect();
    if !set.is_empty() {
        checks.push(Check::fine("variables", format!("{} (values not shown)", set.join(", "))));
    }
    match fault {
        // The check of the key reports it.
        Some(RunError { class: ErrorClass::Auth, .. }) => {}
        Some(fault) => checks.push(Check::wrong("settings", fault.message)),
        None if args.offline => {}
        None => checks.push(answer(&**engine, settings)),
    }
}

/// Which key requests have, and whether it is there; never the key.
fn key(
    args: &DoctorArgs,
    choice: &ProviderChoice,
    engine: &dyn Engine,
    profile: Option<&Resolved>,
) -> Check {
    if let Some(RunError { class: ErrorClass::Auth, message, .. }) = engine.fault() {
        return Check::wrong("key", message);
    }
    if let Err(why) = choice.check_key() {
        return Check::wrong("key", why);
    }
    let origin = match choice.key_origin(engine) {
        Ok(origin) => origin,
        Err(error) => return Check::wrong("key", format!("{error:#}")),
    };
    Check::fine("key", shown(origin, &chosen_by(args, choice, profile)))
}

/// Keys of other providers, of which one may be meant where nothing names the engine.
fn unused_keys(default: &DefaultEngine) -> Vec<Check> {
    let unused = match ProviderChoice::unused_keys(default.name) {
        Ok(unused) => unused,
        Err(error) => return vec![Check::wrong("key", format!("{error:#}"))],
    };
    let unused = unused.into_iter().filter_map(|(variable, engine)| {
        let engine = engine.to_possible_value()?;
        let engine = engine.get_name();
        let found = format!("{variable} is set and not used: --engine {engine} uses it");
        Some(Check::note("key", found))
    });
    unused.collect()
}

/// The origin of a key for people; `by` is what names it.
fn shown(origin: KeyOrigin, by: &str) -> String {
    match origin {
        KeyOrigin::Unneeded => "none is needed".to_owned(),
        KeyOrigin::Variable(name) => format!("the variable {name}, which is set{by}"),
        KeyOrigin::ProfileFile => format!("the profile's own file{by}"),
        KeyOrigin::Source(KeySource::Command(words)) => {
            // Not the other words: one of them may be a key.
            let program = words.first().map_or("", String::as_str);
            format!("the output of {program}, which is run when a call needs the key{by}")
        }
        KeyOrigin::Source(KeySource::File(path)) => {
            format!("the file {}, which only its owner can read{by}", path.display())
        }
        KeyOrigin::Source(KeySource::Variable(name)) => format!("the variable {name}{by}"),
        KeyOrigin::Option(option) => format!("the option {option}"),
        KeyOrigin::Login => "the login in the base URL".to_owned(),
        KeyOrigin::Unset(names) => {
            format!("none is sent, as none of these variables has a value: {}", names.join(", "))
        }
        KeyOrigin::Withheld(name) => format!(
            "none is sent: {name} is set, but its key is not for the address that the profile names; \
             if the server needs a key, name it in the profile"
        ),
    }
}

/// Which option or profile names the key, for people; blank if a variable is looked for by itself.
fn chosen_by(args: &DoctorArgs, choice: &ProviderChoice, profile: Option<&Resolved>) -> String {
    let provider = &args.provider;
    if provider.key_command.is_some() {
        return " (--key-command)".to_owned();
    }
    if provider.key_file.is_some() {
        return " (--key-file)".to_owned();
    }
    let values = profile.into_iter().flat_map(|profile| &profile.values);
    let named = values.filter(|_| choice.has_key_of_profile());
    let named = named.into_iter().find(|value| matches!(value.item, Item::Key(_)));
    match (named, profile) {
        (Some(value), Some(profile)) => {
            let (file, line) = (value.origin.file.display(), value.origin.line);
            format!(" (profile {}, {file}:{line})", profile.name)
        }
        (Some(_) | None, _) => String::new(),
    }
}

/// Where a setting comes from, for people.
fn source(
    args: &ProviderArgs,
    profile: Option<&Resolved>,
    field: &str,
    is_given: bool,
    variable: &str,
) -> String {
    let of_variable = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if is_given {
        return match of_variable {
            true => format!("--{field} or {variable}"),
            false => format!("--{field}"),
        };
    }
    let values = profile.into_iter().flat_map(|profile| &profile.values);
    let origin = values.into_iter().find(|value| value.item.name() == field);
    match (origin, &args.profile) {
        (Some(value), Some(name)) => {
            let (file, line) = (value.origin.file.display(), value.origin.line);
            format!("profile {name}, {file}:{line}")
        }
        (Some(_) | None, _) => "by default, or a variable of the provider".to_owned(),
    }
}

/// Whether the provider answers, and has the model.
fn answer(engine: &dyn Engine, settings: &CallSettings) -> Check {
    let model = engine.model();
    match listed(engine, settings) {
        Ok(Ok(models)) if models.iter().any(|it| is_same_model(&it.name, model)) => Check::fine(
            "answer",
            format!("the provider lists the model {model}; no prompt was sent"),
        ),
        Ok(Ok(models)) => Check::note(
            "answer",
            format!(
                "the provider answers; {model} is none of the {} models that it lists, which may be \
                 fine if it has other names for it",
                models.len()
            ),
        ),
        Ok(Err(error)) if error.is_no_list() => Check::note(
            "answer",
            format!(
                "a server answers, but lists no models, so that it could not be checked whether it has \
                 the model {model}, or whether the base URL is right; `duologue exec hi` asks it ({})",
                complaint(&error)
            ),
        ),
        Ok(Err(error)) => Check::wrong("answer", complaint(&error)),
        Err(error) => Check::wrong("answer", format!("{error:#}")),
    }
}
