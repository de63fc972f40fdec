//! `duologue doctor`: what is configured, from where, and whether it works. Each file of `doctor`
//! checks one part: `profiles`, `provider`, `store` and `servers`.

mod profiles;
mod provider;
mod servers;
mod store;

use super::FOUND;
use super::args::DoctorArgs;
use super::document::{print_data, print_text};
use super::envelope::Error;
use super::output::{Failure, status};
use crate::cli::config::profile;
use crate::cli::{LogLevel, log};
use crate::engine::ErrorClass;
use crate::support::terminal::escape_control;
use profiles::Chosen;
use serde_json::{Value, json};
use std::time::Instant;

/// What was looked at, and what was found.
struct Check {
    what: &'static str,
    state: State,
    found: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It works, as far as it was looked at.
    Fine,
    /// It could not be checked, or something is left out.
    Note,
    /// Without it conversations fail.
    Wrong,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

impl Check {
    fn fine(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, state: State::Fine, found: found.into() }
    }

    fn note(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, state: State::Note, found: found.into() }
    }

    fn wrong(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, state: State::Wrong, found: found.into() }
    }
}

/// Prints what is configured; returns the exit status.
pub fn doctor(mut args: DoctorArgs) -> u8 {
    let begun = Instant::now();
    if let Err(error) = log::start(LogLevel::Warn, None) {
        return status(Err(Failure::Usage(format!("{error:#}"))));
    }
    profile::choose_default(&mut args.provider);
    let checks = checks(&args);
    let fault = fault(&checks);
    let printed = match args.output.is_json() {
        true => print_data(&data(&checks), fault.as_ref(), begun),
        false => print_text(text(&checks).as_bytes()),
    };
    let found = if fault.is_some() { FOUND } else { 0 };
    status(printed.map(|_| found))
}

fn text(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let mark = check.state.as_str();
        format!("{mark:<5}  {}: {}\n", check.what, escape_control(&check.found))
    };
    checks.iter().map(line).collect()
}

fn data(checks: &[Check]) -> Value {
    let one = |Check { what, state, found }: &Check| {
        let ok = *state != State::Wrong;
        json!({ "check": what, "ok": ok, "state": state.as_str(), "found": found })
    };
    checks.iter().map(one).collect()
}

/// The error of a configuration that can't work.
fn fault(checks: &[Check]) -> Option<Error> {
    let wrong = || checks.iter().filter(|check| check.state == State::Wrong);
    let first = wrong().next()?;
    Some(Error {
        code: "check_failed",
        class: Some(ErrorClass::Config.as_str()),
        message: format!("checks that found something wrong: {}", wrong().count()),
        detail: format!("{}: {}", first.what, first.found),
    })
}

fn checks(args: &DoctorArgs) -> Vec<Check> {
    let mut checks = Vec::new();
    let chosen = profiles::check(&args.provider, &mut checks);
    if let Some(Chosen { values, resolved }) = &chosen {
        provider::check(args, values, resolved.as_ref(), &mut checks);
    }
    store::check(args, &mut checks);
    let of_profile = chosen.map(|chosen| chosen.values.into_tools()).unwrap_or_default();
    servers::check(args, &of_profile, &mut checks);
    checks
}
