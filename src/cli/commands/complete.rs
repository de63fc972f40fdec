//! Candidates for the next word of a command line, for shell completion. The script printed by
//! `completions` runs this program to get them.

use super::document::print_text;
use super::output::status;
use crate::cli::{Cli, RUN, RUN_COMMAND, prompts};
use crate::command_file::{CommandFile, is_stdin};
use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use std::ffi::OsString;
use std::path::Path;

/// Variable in which the script names its shell. Setting it alone changes nothing: the script also
/// puts `--` before the words.
pub(super) const VARIABLE: &str = "DUOLOGUE_COMPLETE";

/// Prints the candidates if `words` come from a completion script; returns the exit status.
pub fn complete(words: &[OsString]) -> Option<u8> {
    let is_completion = words.get(1).is_some_and(|word| word == "--");
    if !is_completion {
        return None;
    }
    let shell = std::env::var(VARIABLE).ok()?;
    let shells = Shells::builtins();
    let shell = shells.completer(&shell)?;
    let typed = words[2..].to_vec();
    let mut command = command(&typed);
    command.build();
    let folder = std::env::current_dir().ok();
    let mut candidates = Vec::new();
    // Without candidates nothing is printed: an error would appear within the user's command line.
    shell.write_complete(&mut command, typed, folder.as_deref(), &mut candidates).ok()?;
    Some(status(print_text(&candidates)))
}

/// The definition of the command line that `typed` is the beginning of, with the flags of the
/// command file that it names, if that can be read.
fn command(typed: &[OsString]) -> Command {
    let file = match typed.get(1).and_then(|word| word.to_str()) {
        Some(RUN_COMMAND) => {
            let path = Cli::command_file(typed);
            let path = path.as_deref().map(Path::new);
            // Opening a named pipe would block.
            let path = path.filter(|path| path.is_file() && !is_stdin(path));
            path.and_then(|path| CommandFile::load(path).ok())
        }
        Some(RUN) => {
            let name = Cli::command_file(typed);
            let name = name.as_deref().and_then(|name| name.to_str());
            name.and_then(|name| prompts::find(name).ok().flatten())
        }
        Some(_) | None => None,
    };
    file.map_or_else(Cli::command, |file| Cli::command_with(typed, &file))
}
