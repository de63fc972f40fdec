//! `duologue profiles`: the profiles, what they say, and which files of projects are trusted.

mod ask;
mod init;

use super::args::{ProfilesArgs, ProfilesCommand, ShowProfileArgs, TrustArgs};
use super::document::{self, Document};
use super::output::Failure;
use super::readiness::{Readiness, readiness};
use crate::cli::config::profile;
use crate::cli::{ProfileFiles, log};
use crate::profile::files::{PROJECT_FILE, Places};
use crate::profile::trust::Trusted;
use crate::profile::{FILE_BYTES_MAX, Origin, Profiles, Resolved, Sourced};
use crate::support::files::read_limited;
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Runs `duologue profiles` with `args`; returns the exit status.
pub fn profiles(args: &ProfilesArgs) -> u8 {
    let output = match &args.command {
        Some(ProfilesCommand::Init(init)) => &init.output,
        Some(ProfilesCommand::Show(show)) => &show.output,
        Some(ProfilesCommand::Trust(trust) | ProfilesCommand::Untrust(trust)) => &trust.output,
        None => &args.output,
    };
    document::print(output, || {
        log::start(crate::cli::LogLevel::Warn, None).map_err(usage)?;
        let made = match &args.command {
            Some(ProfilesCommand::Init(init)) => init::init(init),
            Some(ProfilesCommand::Show(show)) => self::show(show),
            Some(ProfilesCommand::Trust(trust)) => self::trust(trust),
            Some(ProfilesCommand::Untrust(untrust)) => self::untrust(untrust),
            None => list(&args.registries),
        };
        made.map_err(usage)
    })
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::Usage(escape_control(&format!("{error:#}")))
}

/// A profile in the list.
struct Row {
    name: String,
    engine: String,
    model: String,
    layer: &'static str,
    readiness: Readiness,
}

fn list(files: &ProfileFiles) -> Result<Document> {
    let profiles = profile::read(files)?;
    let warnings = profiles.warnings().chain(profiles.ignored_default());
    warnings.for_each(|warning| tracing::warn!("{}", escape_control(&warning)));
    let default = profiles.default_profile()?;
    let rows: Vec<Row> = profiles.names().into_iter().map(|name| row(&profiles, name)).collect();
    let data = rows.iter().map(|row| {
        json!({
            "name": row.name,
            "engine": row.engine,
            "model": row.model,
            "layer": row.layer,
            "canAnswer": row.readiness.can_answer,
            "why": row.readiness.why,
            "default": default.as_ref().is_some_and(|(name, _)| *name == row.name),
        })
    });
    let mut text = if rows.is_empty() { nothing(files) } else { table(&rows) };
    if let Some((name, Origin { layer, file, line, .. })) = &default {
        let place = format!("{}, {}:{line}", layer.as_str(), file.display());
        text += &escape_control(&format!("default: {name}  ({place})"));
        text.push('\n');
    }
    Ok(Document { data: data.collect(), text: text.into_bytes() })
}

fn row(profiles: &Profiles, name: &str) -> Row {
    let layer = profiles.layer(name).map_or("", crate::profile::Layer::as_str);
    let readiness = readiness(profiles.resolve(name));
    let (engine, model) = (readiness.engine.clone(), readiness.model.clone());
    Row { name: name.to_owned(), engine, model, layer, readiness }
}

/// Where profiles are looked for, if there are none.
fn nothing(files: &ProfileFiles) -> String {
    let places = Places::find(&files.profile_registries, &files.folder);
    let mut text = "There are no profiles. They are read from\n".to_owned();
    for (_, path) in &places.files {
        text += &format!("  {}\n", path.display());
    }
    let project = places.files.iter().any(|(_, path)| path.ends_with(PROJECT_FILE));
    if !project {
        text += &format!("  {PROJECT_FILE} in the working folder, or the nearest one above it\n");
    }
    text
}

fn table(rows: &[Row]) -> String {
    let head = ["NAME", "ENGINE", "MODEL", "LAYER", "COMPLETE"].map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let answer = if row.readiness.can_answer { "yes" } else { "no" };
        let answer = format!("{answer}: {}", row.readiness.why);
        [&row.name, &row.engine, &row.model, row.layer, &answer].map(escape_control)
    });
    let lines: Vec<[String; 5]> = std::iter::once(head).chain(lines).collect();
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for [name, engine, model, layer, answer] in &lines {
        let [w0, w1, w2, w3] = [widths[0], widths[1], widths[2], widths[3]];
        let line = format!("{name:w0$}  {engine:w1$}  {model:w2$}  {layer:w3$}  {answer}");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn show(args: &ShowProfileArgs) -> Result<Document> {
    let profiles = profile::read(&args.registries)?;
    let resolved = profiles.resolve(&args.name)?;
    let readiness = readiness(Ok(resolved.clone()));
    Ok(Document {
        text: shown(&resolved, &readiness).into_bytes(),
        data: data(&resolved, &readiness),
    })
}

fn shown(resolved: &Resolved, readiness: &Readiness) -> String {
    let used = resolved.values.iter().map(|value| (value, ""));
    let withheld = resolved.withheld.iter();
    let withheld = withheld.map(|held| (&held.sourced, "; not used: the file is not trusted"));
    let mut text = String::new();
    for (Sourced { item, origin }, note) in used.chain(withheld) {
        let value = item.shown();
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let layer = origin.layer.as_str();
        let place = format!("{}:{}", origin.file.display(), origin.line);
        let line = format!("{}: {value}  ({layer}, {place}{note})", item.name());
        text += &escape_control(&line);
        text.push('\n');
    }
    let answer = if readiness.can_answer { "complete" } else { "not complete" };
    // A String takes all.
    writeln!(text, "{answer}: {}", escape_control(&readiness.why)).ok();
    text
}

fn data(resolved: &Resolved, readiness: &Readiness) -> Value {
    let value = |Sourced { item, origin }: &Sourced| {
        json!({
            "field": item.name(),
            "value": item.shown(),
            "layer": origin.layer.as_str(),
            "file": origin.file.display().to_string(),
            "line": origin.line,
        })
    };
    json!({
        "name": resolved.name,
        "values": resolved.values.iter().map(value).collect::<Value>(),
        "withheld": resolved.withheld.iter().map(|held| value(&held.sourced)).collect::<Value>(),
        "canAnswer": readiness.can_answer,
        "why": readiness.why,
    })
}

fn trust(args: &TrustArgs) -> Result<Document> {
    let path = file_of(&args.path);
    let read = read_limited(&path, FILE_BYTES_MAX);
    let (text, _) = read.with_context(|| format!("{} can't be read", path.display()))?;
    Trusted::change(|trusted| {
        trusted.add(&path, &text).with_context(|| path.display().to_string())
    })?;
    Ok(done("trusted until it changes", &path))
}

fn untrust(args: &TrustArgs) -> Result<Document> {
    let path = file_of(&args.path);
    Trusted::change(|trusted| {
        ensure!(trusted.remove(&path), "{} was not trusted", path.display());
        Ok(())
    })?;
    Ok(done("no longer trusted", &path))
}

/// The file that a path leads to: that of the project, if it is a folder.
fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(PROJECT_FILE) } else { path.to_owned() }
}

fn done(what: &str, path: &Path) -> Document {
    let shown = path.display().to_string();
    let text = format!("{}: {what}\n", escape_control(&shown));
    Document { text: text.into_bytes(), data: json!({ "path": shown, "state": what }) }
}
