//! `duologue doctor`: what is configured, from where, and whether it works. `profiles`, `provider` and
//! `editor` check these, `node` a node of a fleet; stores and tool servers are checked here.

mod editor;
mod node;
mod profiles;
mod provider;

use super::FOUND;
use super::args::DoctorArgs;
use super::document::{print_data, print_text};
use super::envelope::Error;
use super::output::{Failure, status};
use super::tools::{Offered, ask};
use crate::cli::config::profile;
use crate::cli::store::default_place;
use crate::cli::tools::{ProfileTools, ToolSettings};
use crate::cli::{LogLevel, log};
use crate::conversation::log::COPY_ADVICE;
use crate::engine::ErrorClass;
use crate::protocol::constants::command_code;
use crate::session::SessionMode;
use crate::store::{Checked, Inspected, Inspection, Library, Tables, shown_ids};
use crate::support::terminal::escape_control;
use profiles::Chosen;
use serde_json::{Value, json};
use std::time::Instant;

/// Tools of a server that are named; of others only the number is given.
const NAMED_MAX: usize = 8;

/// A check and its result.
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

/// Prints the configuration and its checks; returns the exit status.
pub fn doctor(mut args: DoctorArgs) -> u8 {
    let begun = Instant::now();
    if let Err(error) = log::start(LogLevel::Warn, None) {
        return status(Err(Failure::Usage(format!("{error:#}"))));
    }
    let checks = match &args.node.node {
        Some(node) => {
            let mut checks = Vec::new();
            node::check(node, &args, &mut checks);
            checks
        }
        None => of_configuration(&mut args),
    };
    let fault = fault(&checks);
    let printed = match args.output.is_json() {
        true => print_data(&data(&checks), fault.as_ref(), begun),
        false => print_text(text(&checks).as_bytes()),
    };
    let found = if fault.is_some() { FOUND } else { 0 };
    status(printed.map(|_| found))
}

fn of_configuration(args: &mut DoctorArgs) -> Vec<Check> {
    // The same error is reported when the files are checked.
    let default = profile::choose_default(&mut args.provider);
    let mut checks = checks(args);
    if let Err(error) = default
        && !checks.iter().any(|check| check.state == State::Wrong)
    {
        checks.push(Check::wrong("profile", format!("{error:#}")));
    }
    checks
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
        code: command_code::CHECK_FAILED,
        class: Some(ErrorClass::Config.as_str()),
        message: format!("checks that found something wrong: {}", wrong().count()),
        detail: format!("{}: {}", first.what, first.found),
    })
}

fn checks(args: &DoctorArgs) -> Vec<Check> {
    let mut checks = Vec::new();
    if args.acp {
        editor::check(&mut checks);
    }
    let chosen = profiles::check(&args.provider, &mut checks);
    if let Some(Chosen { values, resolved }) = &chosen {
        provider::check(args, values, resolved.as_ref(), &mut checks);
    }
    check_store(args, &mut checks);
    let of_profile = chosen.map(|chosen| chosen.values.into_tools()).unwrap_or_default();
    check_servers(args, &of_profile, &mut checks);
    checks
}

/// Checks each store that is named, or the default one; none is changed.
fn check_store(args: &DoctorArgs, checks: &mut Vec<Check>) {
    let inspect =
        |places| Library::new(places).inspect_sessions(!args.offline).into_iter().map(of_place);
    match args.places.all().map(|named| (named, default_place())) {
        Err(why) => checks.push(Check::wrong("store", why)),
        Ok((named, None)) if named.is_empty() => checks.push(Check::note(
            "store",
            "none is named (--store, DUOLOGUE_STORE), and neither XDG_DATA_HOME nor HOME is set: nothing is \
             stored",
        )),
        Ok((named, Some(default))) if named.is_empty() => {
            checks.extend(inspect(vec![default]).map(as_default));
        }
        Ok((named, _)) => checks.extend(inspect(named)),
    }
}

/// What of the default store is said. A chat is held without one that can't be used.
fn as_default(Check { what, state, found }: Check) -> Check {
    let found = format!("{found} (the default one, of chat, --continue and --session)");
    match state {
        State::Fine => Check::fine(what, found),
        State::Note | State::Wrong => Check::note(what, found),
    }
}

fn of_place(Inspected { place, found }: Inspected) -> Check {
    match found {
        None => Check::note("store", format!("{place}: not connected to (--offline)")),
        Some(Err(why)) => Check::wrong("store", format!("{place}: {why}")),
        Some(Ok(Inspection { tables, is_remote, is_log_torn })) => {
            if let Some(why) = tables.as_ref().and_then(|tables| damage(&tables.checked)) {
                return Check::wrong("store", format!("{place}: {why}"));
            }
            let foreign_locks = tables.as_ref().map_or(0, |tables| tables.foreign_locks);
            let tables = match tables {
                None => "can be made; no conversation is stored there yet".to_owned(),
                Some(tables) => shown(&tables),
            };
            let found = format!("{place}: {tables}");
            if is_log_torn {
                let why = "its log ends in the middle of a page, as after a full disk; if it is a copy, \
                           changes may be missing";
                return Check::note("store", format!("{found}; {why}"));
            }
            if foreign_locks > 0 {
                let why = format!(
                    "another user owns {foreign_locks} of its locks ({place}.locks), and you can't use their \
                     sessions; change the owner of these files (chown)"
                );
                return Check::note("store", format!("{found}; {why}"));
            }
            match is_remote {
                true => Check::note(
                    "store",
                    format!(
                        "{found}; it is on a network file system, where locks and writes can be lost, \
                         so only one machine should use it"
                    ),
                ),
                false => Check::fine("store", found),
            }
        }
    }
}

/// What is wrong with conversations that were checked.
fn damage(Checked { sessions, damaged }: &Checked) -> Option<String> {
    (!damaged.is_empty()).then(|| {
        format!(
            "of {sessions} sessions that were read {} can't be read as a whole: {}; `duologue sessions show ID` \
             prints the rest of one and says what is missing, and {COPY_ADVICE}",
            damaged.len(),
            shown_ids(damaged)
        )
    })
}

fn shown(tables: &Tables) -> String {
    let Tables { format, sessions, held, holders, checked, foreign_locks: _ } = tables;
    let checked = match checked.sessions {
        0 => String::new(),
        read if read == *sessions => "; all that is stored is whole".to_owned(),
        read => format!("; the {read} sessions that were written last are whole"),
    };
    let sessions = match sessions {
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    let held = match held {
        0 => "none of them is in use".to_owned(),
        held => format!("{held} of them in use by {}", holders.join("; ")),
    };
    format!("can be read and written; {sessions}, {held}; format {format}{checked}")
}

/// Checks the servers: starts them, asks for their tools, and ends them.
fn check_servers(args: &DoctorArgs, of_profile: &ProfileTools, checks: &mut Vec<Check>) {
    let settings = match args.tools.settings(SessionMode::OneShot, of_profile) {
        Ok(settings) => settings,
        Err(error) => {
            checks.push(Check::wrong("tool servers", format!("{error:#}")));
            return;
        }
    };
    let ignored = |warning: &String| Check::note("ignored", format!("--mcp-config: {warning}"));
    checks.extend(settings.warnings.iter().map(ignored));
    if settings.servers.is_empty() {
        checks.push(Check::fine("tool servers", "none is named (--mcp, --mcp-config)"));
    } else if args.offline {
        let names = settings.servers.iter().map(|server| server.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        checks.push(Check::note("tool servers", format!("{names}: not started (--offline)")));
    } else {
        of_servers(settings, checks);
    }
}

fn of_servers(settings: ToolSettings, checks: &mut Vec<Check>) {
    let Offered { tools, failed } = match ask(settings) {
        Ok(offered) => offered,
        Err(error) => {
            let why = format!("events can't be waited for: {error}");
            checks.push(Check::wrong("tool servers", why));
            return;
        }
    };
    for (server, tools) in &tools {
        let mut names: Vec<_> =
            tools.iter().take(NAMED_MAX).map(|tool| tool.name.as_str()).collect();
        if tools.len() > NAMED_MAX {
            names.push("…");
        }
        let names = names.join(", ");
        checks.push(match tools.len() {
            0 => Check::note("tool server", format!("{server}: works, and has no tools")),
            1 => Check::fine("tool server", format!("{server}: works, with the tool {names}")),
            count => {
                Check::fine("tool server", format!("{server}: works, with {count} tools: {names}"))
            }
        });
    }
    let failed = failed.iter();
    checks.extend(
        failed.map(|(server, why)| Check::wrong("tool server", format!("{server}: {why}"))),
    );
}
