//! Candidates for the next word of a command line, for shell completion. The script printed by
//! `completions` runs this program to get them.

use super::document::print_text;
use super::output::status;
use super::topics::names;
use crate::cli::provider::{models_in, names_in, registry};
use crate::cli::store::{default_place, place};
use crate::cli::{Cli, ProfileFiles, RUN, RUN_COMMAND, RunCommandArgs, prompts};
use crate::command_file::{CommandFile, is_stdin};
use crate::store::{Library, StorePlace, Summary};
use crate::support::files::WorkFolder;
use crate::support::terminal::escape_control;
use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variable in which the script names its shell. Setting it alone changes nothing: the script also
/// puts `--` before the words.
pub(super) const VARIABLE: &str = "DUOLOGUE_COMPLETE";

/// Sessions that are offered at most.
const SESSIONS_MAX: usize = 100;

/// Options that name a store, and their variables. One for turns or timeline alone counts before `--store`.
const STORES: [(&str, &str); 3] = [
    ("--turns-db", "DUOLOGUE_TURNS_DB"),
    ("--timeline-db", "DUOLOGUE_TIMELINE_DB"),
    ("--store", "DUOLOGUE_STORE"),
];

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
    let looked_up: Vec<_> = typed.iter().map(|word| in_home(word)).collect();
    let mut command = with_help(command(&looked_up));
    let files = profile_files(&looked_up);
    if !files.profile_registries.is_empty() {
        command = with_profiles(command, &files);
    }
    if let Some(store) = store(&looked_up) {
        command = with_sessions(command, &store);
    }
    command.build();
    let folder = std::env::current_dir().ok();
    let mut candidates = Vec::new();
    // Without candidates nothing is printed: an error would appear within the user's command line.
    shell.write_complete(&mut command, typed, folder.as_deref(), &mut candidates).ok()?;
    Some(status(print_text(&candidates)))
}

/// `word` as a shell passes it to a command: completions are asked for words as they are typed.
fn in_home(word: &OsStr) -> OsString {
    let rest = word.to_str().and_then(|word| word.strip_prefix("~/"));
    let Some((rest, home)) = rest.zip(std::env::var_os("HOME")) else { return word.to_owned() };
    Path::new(&home).join(rest).into()
}

/// The values of `option` in `words`, apart and joined.
fn values<'a>(words: &'a [OsString], option: &str) -> Vec<&'a str> {
    let words = || words.iter().map(|word| word.to_str().unwrap_or_default());
    let apart = words().zip(words().skip(1)).filter(|(name, _)| *name == option);
    let joined = words().filter_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    apart.map(|(_, value)| value).chain(joined).collect()
}

/// `command`, whose `help` knows the topics beside the commands.
fn with_help(command: Command) -> Command {
    fn helped(command: &Command) -> Command {
        let below = command.get_subcommands().filter(|each| !each.is_hide_set());
        let about = command.get_about().cloned().unwrap_or_default();
        Command::new(command.get_name().to_owned()).about(about).subcommands(below.map(helped))
    }
    let commands = command.get_subcommands().filter(|each| !each.is_hide_set()).map(helped);
    let topics = names().map(|topic| Command::new(topic).about("A page of the documentation"));
    let help = Command::new("help").about("Print the help of a command, or a page");
    let help = help.disable_help_subcommand(true).subcommands(commands).subcommands(topics);
    command.disable_help_subcommand(true).subcommand(help)
}

/// `run` before its prompt is known, whose options may come before the name.
fn of_any_prompt(run: Command) -> Command {
    let about = run.get_about().cloned().unwrap_or_default();
    RunCommandArgs::augment_args(Command::new(RUN).about(about))
}

/// `run` with the names of the prompts as candidates, in place of files, where one is typed.
fn with_prompts(run: Command) -> Command {
    const FILE: &str = "file";
    run.mut_args(|arg| match arg.get_id() == FILE {
        true => Arg::new(FILE).add(ArgValueCandidates::new(prompts::names)),
        false => arg,
    })
}

/// The files of profiles that the command line names, or the variable for them.
fn profile_files(typed: &[OsString]) -> ProfileFiles {
    let found = values(typed, "--profile-registries").into_iter().map(str::to_owned);
    let found: Vec<_> = found.collect();
    let found = match found.is_empty() {
        true => std::env::var("DUOLOGUE_PROFILE_REGISTRIES").into_iter().collect(),
        false => found,
    };
    let paths = found.iter().flat_map(|list| list.split(',')).filter(|path| !path.is_empty());
    let profile_registries = paths.filter_map(|path| registry(path.into()).ok()).collect();
    ProfileFiles { profile_registries, ..ProfileFiles::default() }
}

/// `command` with the profiles of `files`, and their models, as candidates where one is typed.
fn with_profiles(command: Command, files: &ProfileFiles) -> Command {
    let is_show = command.get_name() == "show";
    let add = |arg: Arg| {
        let files = files.clone();
        match arg.get_id().as_str() {
            "profile" => arg.add(ArgValueCandidates::new(move || names_in(&files))),
            "name" if is_show => arg.add(ArgValueCandidates::new(move || names_in(&files))),
            "model" => arg.add(ArgValueCandidates::new(move || models_in(&files))),
            _ => arg,
        }
    };
    command.mut_args(add).mut_subcommands(|command| with_profiles(command, files))
}

/// `command` with the sessions of `store` as candidates where the id of one is typed.
fn with_sessions(command: Command, store: &StorePlace) -> Command {
    let add = |arg: Arg| match arg.get_id().as_str() {
        "session" | "session_id" | "id" | "ids" => {
            let store = store.clone();
            arg.add(ArgValueCandidates::new(move || sessions(&store)))
        }
        _ => arg,
    };
    command.mut_args(add).mut_subcommands(|command| with_sessions(command, store))
}

/// The sessions that were used last, with their titles. An id that a shell would have to quote is left out.
fn sessions(store: &StorePlace) -> Vec<CompletionCandidate> {
    let listing = Library::new(vec![store.clone()]).titles().unwrap_or_default();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._@%+,/-".contains(char);
    let plain = listing
        .sessions
        .into_iter()
        .filter(|session| !session.id.starts_with('-') && session.id.chars().all(is_plain));
    let candidate = |session: Summary| {
        let title = escape_control(&session.title).to_string();
        CompletionCandidate::new(session.id).help(Some(title.into()))
    };
    plain.take(SESSIONS_MAX).map(candidate).collect()
}

/// The file whose sessions are meant: a server is not connected to while somebody types.
fn store(typed: &[OsString]) -> Option<StorePlace> {
    let typed = STORES.iter().flat_map(|(option, _)| values(typed, option)).map(str::to_owned);
    let set = STORES.iter().filter_map(|(_, variable)| std::env::var(variable).ok());
    let place = match typed.chain(set).find(|text| !text.is_empty()) {
        Some(text) => place(&text).ok(),
        None => default_place(),
    };
    place.filter(|place| place.path().is_some())
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
            name.and_then(|name| prompts::find(name, &WorkFolder::default()).ok().flatten())
        }
        Some(_) | None => None,
    };
    let command = match file {
        Some(file) => Cli::command_with(typed, &file),
        None => Cli::command().mut_subcommand(RUN, of_any_prompt),
    };
    command.mut_subcommand(RUN, with_prompts)
}
