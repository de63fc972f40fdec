//! Command files, from their text to the prompt.

mod dates;
mod faults;
mod files;
mod hostile;
mod prompts;
mod types;
mod yaml;

use super::{CommandFile, Outside, Rendered};
use crate::template::{Missing, Values};
use jiff::{Zoned, civil, tz::TimeZone};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::Path;

/// How the file is named.
const PATH: &str = "dir/cmd.yaml";

/// A Sunday afternoon.
fn now() -> Zoned {
    civil::date(2026, 11, 22).at(14, 30, 5, 0).to_zoned(TimeZone::UTC).expect("a date")
}

fn parse(text: &str) -> Result<CommandFile, String> {
    CommandFile::parse(Path::new(PATH), text).map_err(|error| error.to_string())
}

/// The values for what is typed; or the error, as people see it.
fn values(
    file: &CommandFile,
    typed: &[impl Into<OsString> + Clone],
) -> Result<Map<String, Value>, String> {
    let values = taken(file, typed)?;
    Ok(values.into_iter().map(|(name, data)| (name, data.json())).collect())
}

/// The values as templates get them.
fn taken(file: &CommandFile, typed: &[impl Into<OsString> + Clone]) -> Result<Values, String> {
    taken_at(file, typed, &now())
}

fn taken_at(
    file: &CommandFile,
    typed: &[impl Into<OsString> + Clone],
    now: &Zoned,
) -> Result<Values, String> {
    let command = clap::Command::new("duologue").args(file.clap_args());
    let typed = typed.iter().cloned().map(Into::into);
    let typed = std::iter::once("duologue".into()).chain(typed);
    let typed = command.try_get_matches_from(typed).map_err(|error| error.to_string())?;
    let mut stdin = || Ok(b"from stdin\n".to_vec());
    let mut outside = Outside::new(&mut stdin).at(now.clone());
    file.values(&typed, &mut outside).map_err(|error| error.to_string())
}

/// What comes of a file and what is typed for it; or the error, as people see it.
fn run(text: &str, typed: &[&str]) -> Result<Rendered, String> {
    run_at(text, typed, &now())
}

fn run_at(text: &str, typed: &[&str], now: &Zoned) -> Result<Rendered, String> {
    let file = parse(text)?;
    let values = taken_at(&file, typed, now)?;
    file.render(values, now, Missing::Shown).map_err(|error| error.to_string())
}

/// What is typed for a flag `x` whose lines are these gives this value, or an error that has this.
#[track_caller]
fn check(flag: &str, typed: &[&str], expected: Result<Value, &str>) {
    let flag = flag.replace('\n', "\n    ");
    let text = format!("prompt: hi\nflags:\n  - name: x\n    {flag}\n");
    let found = parse(&text).and_then(|file| values(&file, typed));
    match (found, expected) {
        (Ok(values), Ok(expected)) => {
            assert_eq!(values.get("x").unwrap_or(&Value::Null), &expected, "{flag} {typed:?}");
        }
        (Err(error), Err(expected)) => {
            assert!(error.contains(expected), "{flag} {typed:?}\n{error}\nexpected {expected}");
        }
        (found, expected) => panic!("{flag} {typed:?}\n{found:?}\nexpected {expected:?}"),
    }
}
