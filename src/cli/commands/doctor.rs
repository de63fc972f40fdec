//! `duologue doctor`: what is configured, from where, and whether it works. Each file of `doctor`
//! checks one part: `profiles`, `provider`, `store` and `servers`.

mod profiles;
mod provider;
mod servers;
mod store;

use super::FOUND;
use super::args::DoctorArgs;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::{LogLevel, log};
use crate::support::terminal::escape_control;
use profiles::Chosen;
use serde_json::{Value, json};
use std::cell::Cell;

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
pub fn doctor(args: &DoctorArgs) -> u8 {
    let is_well = Cell::new(true);
    let status = document::print(&args.output, || {
        let started = log::start(LogLevel::Warn, None);
        started.map_err(|error| Failure::Usage(format!("{error:#}")))?;
        let checks = checks(args);
        is_well.set(!checks.iter().any(|check| check.state == State::Wrong));
        Ok(document(&checks))
    });
    if status == 0 && !is_well.get() { FOUND } else { status }
}

fn document(checks: &[Check]) -> Document {
    let line = |check: &Check| {
        let mark = check.state.as_str();
        format!("{mark:<5}  {}: {}\n", check.what, escape_control(&check.found))
    };
    let data = |check: &Check| {
        let Check { what, state, found } = check;
        let ok = *state != State::Wrong;
        json!({ "check": what, "ok": ok, "state": state.as_str(), "found": found })
    };
    let text: String = checks.iter().map(line).collect();
    Document { text: text.into_bytes(), data: checks.iter().map(data).collect::<Value>() }
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
