//! What could come next on a command line, for a shell whose user presses the tab key. The script that
//! `completions` prints runs this program to ask.

use super::document::print_text;
use super::output::status;
use crate::cli::{Cli, RUN_COMMAND};
use crate::command_file::{CommandFile, is_stdin};
use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use std::ffi::OsString;
use std::path::Path;

/// Variable by which the script names its shell. Set in vain it changes nothing: the script also puts
/// `--` before the words.
pub(super) const VARIABLE: &str = "DUOLOGUE_COMPLETE";

/// Prints what could come next if a shell asks by `words`; gives the exit status.
pub fn complete(words: &[OsString]) -> Option<u8> {
    let asked = words.get(1).is_some_and(|word| word == "--");
    let shell = std::env::var(VARIABLE).ok().filter(|_| asked)?;
    let shells = Shells::builtins();
    let shell = shells.completer(&shell)?;
    let typed = words[2..].to_vec();
    let mut command = command(&typed);
    command.build();
    let folder = std::env::current_dir().ok();
    let mut candidates = Vec::new();
    // A shell shows nothing where there is nothing to say, and errors between the words of its user.
    shell.write_complete(&mut command, typed, folder.as_deref(), &mut candidates).ok()?;
    Some(status(print_text(&candidates)))
}

/// The command line that `typed` is the beginning of: with the flags of the command file that it
/// names, if that can be read.
fn command(typed: &[OsString]) -> Command {
    let is_run = typed.get(1).is_some_and(|word| word == RUN_COMMAND);
    let path = is_run.then(|| Cli::command_file(typed)).flatten();
    let path = path.as_deref().map(Path::new);
    // A named pipe would be waited for.
    let path = path.filter(|path| path.is_file() && !is_stdin(path));
    match path.map(CommandFile::load) {
        Some(Ok(file)) => Cli::command_with(&file),
        Some(Err(_)) | None => Cli::command(),
    }
}
