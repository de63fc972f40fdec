//! The command line of `run-command` once its command file is known.

use super::{RUN, RUN_COMMAND, RunCommandArgs, help};
use crate::command_file::CommandFile;
use crate::support::terminal::{Escapes, escape_control, visible};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Args};
use std::ffi::OsString;

/// What names the file of `run`, in help.
const PROMPT_NAME: &str = "Name of the prompt; its own flags and arguments follow it";

/// How a command file is run.
pub(super) struct Called {
    pub(super) command: &'static str,
    /// What names the file.
    name: String,
}

impl Called {
    /// How `words` run `file`.
    pub(super) fn of(words: &[OsString], file: &CommandFile) -> Self {
        let stem = file.path.file_stem().and_then(|name| name.to_str());
        match (words.get(1).is_some_and(|word| word == RUN), stem) {
            (true, Some(name)) => Self { command: RUN, name: name.to_owned() },
            (true | false, _) => {
                Self { command: RUN_COMMAND, name: file.path.display().to_string() }
            }
        }
    }
}

/// `run-command` with the flags of `file`, which help lists first. Where the file and this program
/// both have a flag of one name, the file's is used.
pub(super) fn run_command(file: &CommandFile, called: &Called) -> clap::Command {
    let run = RunCommandArgs::augment_args(clap::Command::new(called.command));
    let has_name = |name: &str| file.flags.iter().any(|flag| flag.option() == name);
    let has_letter = |letter| file.flags.iter().any(|flag| flag.short == Some(letter));
    let own = run.get_arguments().map(|arg| {
        let long = arg.get_long().filter(|name| has_name(name));
        let long = long.map(|name| free_name(name, has_name));
        let is_letter_taken = arg.get_short().is_some_and(has_letter);
        let is_headed = arg.is_positional() || arg.get_help_heading().is_some();
        let arg = match arg.get_id() == "file" && called.command == RUN {
            true => arg.clone().value_name("NAME").help(PROMPT_NAME),
            false => arg.clone(),
        };
        let arg = if is_headed { arg } else { arg.help_heading("Options of duologue") };
        let arg = if let Some(long) = long { arg.long(long) } else { arg };
        let arg = without_aliases(arg, has_name);
        if is_letter_taken { arg.short(Resettable::Reset) } else { arg }
    });
    let help = Arg::new("help").long("help").action(ArgAction::Help).help("Print help");
    let help = if has_letter('h') { help } else { help.short('h') };
    let help = if has_name("help") { help.long(free_name("help", has_name)) } else { help };
    let (arguments, flags): (Vec<Arg>, Vec<Arg>) =
        file.clap_args().into_iter().partition(Arg::is_positional);
    let about = if file.short.is_empty() { &file.name } else { &file.short };
    let long_about = if file.long.is_empty() { about } else { &file.long };
    // Help goes to a terminal, and the file may be another's.
    let [about, long_about] = [about, long_about].map(|text| visible(text, Escapes::Text));
    clap::Command::new(run.get_name().to_owned())
        .about(about)
        .long_about(format!("{}\n\n{}", long_about.trim_end(), help::OUTPUT))
        .after_help(help::after(RUN_COMMAND))
        .override_usage(usage(file, called))
        .disable_help_flag(true)
        .args(flags)
        .args(own)
        .args(arguments)
        .arg(help.help_heading("Options of duologue"))
}

/// `arg` without those of its other names that the file has.
fn without_aliases(arg: Arg, is_taken: impl Fn(&str) -> bool) -> Arg {
    let names: Vec<String> =
        arg.get_all_aliases().unwrap_or_default().into_iter().map(str::to_owned).collect();
    if !names.iter().any(|name| is_taken(name)) {
        return arg;
    }
    // Visible names are shown in help; there are none.
    arg.alias(Resettable::Reset).aliases(names.into_iter().filter(|name| !is_taken(name)))
}

/// The usage line, in which names have no control characters: the file comes first, and its flags after it.
fn usage(file: &CommandFile, Called { command, name }: &Called) -> String {
    let flags = file.flags.iter().filter(|flag| flag.required);
    let flags: String = flags.map(|flag| format!(" --{} <{}>", flag.option(), flag.name)).collect();
    let arguments = file.arguments.iter().map(|argument| match argument.required {
        true => format!(" <{}>", argument.name),
        false => format!(" [{}]", argument.name),
    });
    let arguments: String = arguments.collect();
    let name = escape_control(name);
    format!("duologue {command} {name}{flags} [OPTIONS]{arguments}")
}

/// The name of an option whose own name is taken by the file.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = format!("duologue-{name}");
    while is_taken(&name) {
        name.insert_str(0, "duologue-");
    }
    name
}
