//! What the program says of itself to other programs: its manifest, completions and manual pages,
//! all made from the command line's own definition.

use super::args::{CompletionsArgs, ManArgs};
use super::complete::VARIABLE;
use super::output::{Failure, Out, status};
use crate::manifest;
use clap::Command;
use clap_complete::env::Shells;
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Prints the manifest of `command`; gives the exit status.
pub fn manifest(command: &Command) -> u8 {
    let text = format!("{:#}\n", manifest::manifest(command, manifest::facts));
    status(print(text.as_bytes()))
}

/// Prints what makes a shell complete `command` by asking this program; gives the exit status.
pub fn completions(args: &CompletionsArgs, command: &Command) -> u8 {
    let (name, shell) = (command.get_name(), args.shell.to_string());
    let mut script = Vec::new();
    let written = match Shells::builtins().completer(&shell) {
        Some(shell) => shell.write_registration(VARIABLE, name, name, name, &mut script),
        None => Err(io::Error::other(format!("there is no script for {shell}"))),
    };
    status(written.map_err(Failure::Output).and_then(|()| print(&script)))
}

/// Prints or writes the manual pages of `command`; gives the exit status.
pub fn man(args: &ManArgs, command: &Command) -> u8 {
    status(match &args.out {
        Some(folder) => write_pages(folder, command),
        None => pages(command).map_err(Failure::Output).and_then(|pages| print(&pages)),
    })
}

/// All pages, one after the other: that of the program, then those of its commands.
fn pages(command: &Command) -> io::Result<Vec<u8>> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    Man::new(command.clone()).render(&mut pages)?;
    for each in command.get_subcommands() {
        let name = format!("{}-{}", command.get_name(), each.get_name());
        Man::new(each.clone().display_name(&name)).render(&mut pages)?;
    }
    Ok(pages)
}

fn write_pages(folder: &Path, command: &Command) -> Result<u8, Failure> {
    let command = command.clone().disable_help_subcommand(true);
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| {
            let folder = folder.display();
            Failure::Usage(format!("--out: {folder} can't be written: {error}"))
        })?;
    Ok(0)
}

pub(super) fn print(text: &[u8]) -> Result<u8, Failure> {
    let mut out = Out::new()?;
    out.write(text)?;
    out.flush()?;
    Ok(0)
}
