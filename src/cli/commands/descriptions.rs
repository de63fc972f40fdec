//! Descriptions of the command line: the manifest, shell completions and manual pages, all
//! generated from its definition.

use super::args::{CompletionsArgs, ManArgs, TextOutputArgs};
use super::complete::VARIABLE;
use super::document::{self, Document};
use super::output::Failure;
use crate::cli::manifest;
use clap::Command;
use clap_complete::env::Shells;
use clap_mangen::Man;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Prints the manifest of `command`; returns the exit status.
pub fn manifest(command: &Command) -> u8 {
    document::print(&TextOutputArgs::default(), || {
        let data = manifest::manifest(command, manifest::facts);
        Ok(Document { text: format!("{data:#}\n").into_bytes(), data })
    })
}

/// Prints the completion script for `command`, which calls this program; returns the exit status.
pub fn completions(args: &CompletionsArgs, command: &Command) -> u8 {
    document::print(&args.output, || {
        let (name, shell) = (command.get_name(), args.shell.to_string());
        let mut script = Vec::new();
        let written = match Shells::builtins().completer(&shell) {
            Some(shell) => shell.write_registration(VARIABLE, name, name, name, &mut script),
            None => Err(io::Error::other(format!("there is no script for {shell}"))),
        };
        written.map_err(Failure::Output)?;
        let data = String::from_utf8_lossy(&script).into();
        Ok(Document { text: script, data })
    })
}

/// Prints or writes the manual pages of `command`; returns the exit status.
pub fn man(args: &ManArgs, command: &Command) -> u8 {
    document::print(&args.output, || match &args.out {
        Some(folder) => write_pages(folder, command),
        None => pages(command).map_err(Failure::Output),
    })
}

/// All pages: that of the program, then those of its commands.
fn pages(command: &Command) -> io::Result<Document> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut document = Document { text: Vec::new(), data: Value::Null };
    let mut list = Vec::new();
    let program = command.get_name().to_owned();
    let commands = command.get_subcommands().map(|each| {
        let name = format!("{program}-{}", each.get_name());
        (each.clone().display_name(&name), name)
    });
    for (command, name) in [(command.clone(), program.clone())].into_iter().chain(commands) {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        list.push(json!({ "name": format!("{name}.1"), "text": String::from_utf8_lossy(&page) }));
        document.text.append(&mut page);
    }
    document.data = list.into();
    Ok(document)
}

fn write_pages(folder: &Path, command: &Command) -> Result<Document, Failure> {
    let command = command.clone().disable_help_subcommand(true);
    let unwritten = |error: io::Error| {
        let folder = folder.display();
        Failure::Unwritten(format!("--out: {folder} can't be written: {error}"))
    };
    std::fs::create_dir_all(folder).map_err(unwritten)?;
    let commands = command.get_subcommands();
    let names = commands.map(|each| format!("-{}", each.get_name()));
    let names = [String::new()].into_iter().chain(names);
    let path = |name: String| folder.join(format!("{}{name}.1", command.get_name()));
    let written: Vec<Value> =
        names.map(|name| path(name).to_string_lossy().into_owned().into()).collect();
    clap_mangen::generate_to(command, folder).map_err(unwritten)?;
    Ok(Document { text: Vec::new(), data: written.into() })
}
