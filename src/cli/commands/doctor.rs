//! `duologue doctor`: what is configured, from where, and whether the provider answers.

use super::FOUND;
use super::args::DoctorArgs;
use super::document::{self, Document};
use super::models::{listed, settings};
use super::output::Failure;
use crate::cli::config::engine::{ProviderChoice, engine};
use crate::cli::config::profile::{self, ProfileValues};
use crate::cli::{LogLevel, ProviderArgs, TlsRoots, log};
use crate::engine::{CallSettings, Engine};
use crate::profile::{Layer, Profiles, Resolved};
use crate::support::terminal::escape_control;
use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use std::cell::Cell;

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

/// What was looked at, and what was found.
struct Check {
    what: &'static str,
    /// Without it nothing works.
    is_fault: bool,
    found: String,
}

impl Check {
    fn fine(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, is_fault: false, found: found.into() }
    }

    fn fault(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, is_fault: true, found: found.into() }
    }
}

/// Prints what is configured; returns the exit status.
pub fn doctor(args: &DoctorArgs) -> u8 {
    let is_well = Cell::new(true);
    let status = document::print(&args.output, || {
        let started = log::start(LogLevel::Warn, None);
        started.map_err(|error| Failure::Usage(format!("{error:#}")))?;
        let checks = checks(args);
        is_well.set(!checks.iter().any(|check| check.is_fault));
        Ok(document(&checks))
    });
    if status == 0 && !is_well.get() { FOUND } else { status }
}

fn document(checks: &[Check]) -> Document {
    let line = |check: &Check| {
        let mark = if check.is_fault { "wrong" } else { "ok" };
        format!("{mark:<5}  {}: {}\n", check.what, escape_control(&check.found))
    };
    let data =
        |check: &Check| json!({ "check": check.what, "ok": !check.is_fault, "found": check.found });
    let text: String = checks.iter().map(line).collect();
    Document { text: text.into_bytes(), data: checks.iter().map(data).collect::<Value>() }
}

fn checks(args: &DoctorArgs) -> Vec<Check> {
    let mut checks = Vec::new();
    let (profiles, resolved) = match of_profiles(args, &mut checks) {
        Ok(found) => found,
        Err(error) => {
            checks.push(Check::fault("profiles", format!("{error:#}")));
            return checks;
        }
    };
    match build(args, &profiles) {
        Ok(built) => of_engine(args, &built, resolved.as_ref(), &mut checks),
        Err(error) => checks.push(Check::fault("settings", format!("{error:#}"))),
    }
    checks
}

/// The files of profiles, and the profile that is chosen.
fn of_profiles(args: &DoctorArgs, checks: &mut Vec<Check>) -> Result<(Profiles, Option<Resolved>)> {
    let profiles = profile::read(&args.provider.registries)?;
    for (layer, path, is_trusted) in profiles.files() {
        let trust = match (layer, is_trusted) {
            (Layer::Project, true) => ", trusted",
            (Layer::Project, false) => ", not trusted",
            (Layer::System | Layer::User | Layer::Named, _) => "",
        };
        checks.push(Check::fine("file", format!("{} ({}{trust})", path.display(), layer.as_str())));
    }
    checks.extend(profiles.warnings().map(|warning| Check::fine("ignored", warning)));
    let Some(name) = &args.provider.profile else {
        checks.push(Check::fine("profile", "none is chosen"));
        return Ok((profiles, None));
    };
    let resolved = profiles.resolve(name)?;
    checks.push(Check::fine("profile", name.clone()));
    checks.extend(resolved.warnings().map(|warning| Check::fine("left out", warning)));
    Ok((profiles, Some(resolved)))
}

/// What the options and the profile come to.
struct Built {
    engine: Engine,
    choice: ProviderChoice,
    settings: CallSettings,
}

fn build(args: &DoctorArgs, profiles: &Profiles) -> Result<Built> {
    let values: ProfileValues = profile::chosen(&args.provider, profiles)?;
    let choice = ProviderChoice::initial(&args.provider, &values)?;
    let settings = settings(&choice, &values, &args.calls)?;
    let mut notices = Vec::new();
    let engine = engine(&choice, &args.engines, &mut notices)?;
    match notices.first() {
        Some(notice) => Err(anyhow!("{notice}")),
        None => Ok(Built { engine, choice, settings }),
    }
}

fn of_engine(
    args: &DoctorArgs,
    Built { engine, choice, settings }: &Built,
    profile: Option<&Resolved>,
    checks: &mut Vec<Check>,
) {
    let source = |field, option, variable| source(&args.provider, profile, field, option, variable);
    let engine_from = source("engine", args.provider.engine.is_some(), "DUOLOGUE_ENGINE");
    checks.push(Check::fine("engine", format!("{} ({engine_from})", engine.name())));
    let model_from = source("model", args.provider.model.is_some(), "DUOLOGUE_MODEL");
    if !engine.model().is_empty() {
        checks.push(Check::fine("model", format!("{} ({model_from})", engine.model())));
    }
    let url_from = source("base-url", args.provider.base_url.is_some(), "DUOLOGUE_BASE_URL");
    checks.push(Check::fine("provider", format!("{} ({url_from})", engine.provider())));
    let key = choice.key_shown();
    let key = key.unwrap_or_else(|| "the provider's own variable, or none".to_owned());
    checks.push(match choice.check_key() {
        Ok(()) => Check::fine("key", key),
        Err(why) => Check::fault("key", why),
    });
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
    match engine.fault() {
        Some(fault) => checks.push(Check::fault("settings", fault.message)),
        None if args.offline => {}
        None => checks.push(answer(engine, settings)),
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

/// Whether the provider answers.
fn answer(engine: &Engine, settings: &CallSettings) -> Check {
    match listed(engine, settings) {
        Ok(Ok(models)) if models.iter().any(|model| model == engine.model()) => Check::fine(
            "answer",
            format!("the provider answers, and has the model {}", engine.model()),
        ),
        Ok(Ok(models)) => {
            let count = models.len();
            let model = engine.model();
            let found = format!(
                "the provider answers; {model} is none of the {count} models that it lists, which may \
                 be fine if it has other names for it"
            );
            Check::fine("answer", found)
        }
        Ok(Err(error)) => Check::fault("answer", error.message),
        Err(error) => Check::fault("answer", format!("{error:#}")),
    }
}
