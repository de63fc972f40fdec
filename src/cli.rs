//! The command line as it is typed. What it means is `config`'s business.

mod output;
mod session;
mod words;

pub use output::{Disagree, Mode, OutputArgs, OutputName};
pub use session::{
    EngineArgs, EngineName, FinalSnapshot, LogLevel, OnBusy, PatchFields, PatchMode, SessionArgs,
};

use crate::command::CommandFile;
use crate::tools::args::{self, CheckArgs, CompletionsArgs, ListEventsArgs, ManArgs, SchemaArgs};
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "duologue",
    version,
    about = words::ABOUT,
    long_about = words::LONG_ABOUT,
    after_help = words::after("rpc"),
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; `rpc` if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print the command line as JSON, for programs that start this one
    #[arg(long, exclusive = true)]
    pub manifest: bool,
    /// For `rpc`.
    #[command(flatten)]
    pub rpc: RpcArgs,
}

/// What is to be done.
#[derive(Debug)]
pub enum Typed {
    /// This.
    Command(Box<Command>),
    /// The manifest is to be printed.
    Manifest,
}

/// What a command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What is to be done.
    pub command: &'static str,
    /// What its reader expects to be printed.
    pub mode: Mode,
}

/// The command whose words can be read once its file is.
pub const RUN_COMMAND: &str = "run-command";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold one conversation over standard input and output.
    #[command(about = words::RPC_ABOUT, long_about = words::RPC_LONG_ABOUT, after_help = words::after("rpc"))]
    Rpc(RpcArgs),
    /// Run one prompt.
    #[command(about = words::EXEC_ABOUT, long_about = words::exec_long_about(), after_help = words::after("exec"))]
    Exec(ExecArgs),
    /// Run the prompt of a command file.
    #[command(about = words::RUN_ABOUT, long_about = words::run_long_about(), after_help = words::after("run-command"))]
    RunCommand(RunCommandArgs),
    /// Check a stream of the protocol against its contract.
    #[command(long_about = args::CHECK_LONG_ABOUT, after_help = args::CHECK_AFTER)]
    Check(CheckArgs),
    /// List the events of a stream.
    #[command(
        about = args::LIST_EVENTS_ABOUT,
        long_about = args::LIST_EVENTS_LONG_ABOUT,
        after_help = args::LIST_EVENTS_AFTER
    )]
    ListEvents(ListEventsArgs),
    /// Print the protocol's schema.
    Schema(SchemaArgs),
    /// Print what makes a shell complete the command line.
    Completions(CompletionsArgs),
    /// Print the manual pages, in the form that `man` reads.
    Man(ManArgs),
}

/// Options of `rpc`.
#[derive(Args, Debug)]
pub struct RpcArgs {
    /// Don't stream: print one JSON document with all frames at the end
    #[arg(long)]
    pub no_stream: bool,

    /// As for every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Options of `exec`.
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// What to ask; `-`, or nothing, reads standard input
    #[arg(conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read what to ask from this file
    #[arg(long, value_name = "PATH")]
    pub prompt_file: Option<PathBuf>,

    /// Print the prompt and stop; with --output json or yaml also the system prompt
    #[arg(long)]
    pub print_prompt: bool,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,

    /// As for every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Options of `run-command`, besides those of the file.
#[derive(Args, Debug)]
pub struct RunCommandArgs {
    /// Command file; its flags and arguments follow it
    #[arg(value_name = "FILE.yaml")]
    pub file: PathBuf,

    /// Render the prompt, print it and stop; with --output json or yaml also the system prompt and
    /// the messages
    #[arg(long)]
    pub print_prompt: bool,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,

    /// As for every conversation.
    #[command(flatten)]
    pub session: SessionArgs,

    /// --system was typed, and so wins over the file's system prompt; a variable does not.
    #[arg(skip)]
    pub is_system_typed: bool,
}

impl RpcArgs {
    /// What is printed.
    pub fn mode(&self) -> Mode {
        if self.no_stream { Mode::Frames } else { Mode::Server }
    }
}

impl Cli {
    /// Reads a command line and the environment.
    ///
    /// # Errors
    /// If these are wrong, or help is asked for.
    pub fn read(words: &[OsString]) -> Result<Typed, clap::Error> {
        if let Some(command) = Command::read_quickly(words) {
            return Ok(Typed::Command(Box::new(command)));
        }
        let mut command = with_set_variables(Self::command());
        if OutputArgs::guess(words, None).is_flagged() {
            command = command.mut_subcommand("exec", without_output_variable);
        }
        let typed = command.try_get_matches_from_mut(words)?;
        let cli = Self::from_arg_matches(&typed).map_err(|error| error.format(&mut command))?;
        if cli.manifest {
            return Ok(Typed::Manifest);
        }
        let command = cli.command.unwrap_or(Command::Rpc(cli.rpc));
        Ok(Typed::Command(Box::new(command)))
    }

    /// The command file that `words` name, which is needed to read them: what is typed first after
    /// `run-command` that is neither an option of this program nor its value.
    pub fn command_file(words: &[OsString]) -> Option<OsString> {
        let run = RunCommandArgs::augment_args(clap::Command::new(RUN_COMMAND));
        let takes_next = |option: &str| {
            run.get_arguments().any(|arg| {
                let long =
                    option.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
                let short = option.strip_prefix('-').and_then(|rest| rest.chars().next());
                let short = option.len() == 2 && short.is_some() && arg.get_short() == short;
                (long || short) && arg.get_action().takes_values()
            })
        };
        let mut words = words.iter().skip(2);
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--") => return words.next().cloned(),
                Some(option) if option.len() > 1 && option.starts_with('-') => {
                    if takes_next(option) {
                        words.next();
                    }
                }
                Some(_) | None => return Some(word.clone()),
            }
        }
        None
    }

    /// Reads `words` that run a command file, and what was typed for the file's own flags.
    ///
    /// # Errors
    /// If they are wrong, or help is asked for.
    pub fn read_with_file(
        words: &[OsString],
        file: &CommandFile,
    ) -> Result<(RunCommandArgs, ArgMatches), clap::Error> {
        let run = RunCommandArgs::augment_args(clap::Command::new(RUN_COMMAND));
        let mut run = with_set_variables(with_flags(&run, file));
        if OutputArgs::guess(words, Some(file)).is_flagged() {
            run = without_output_variable(run);
        }
        // What is wrong, and help, is told of the whole program's command line.
        let typed = match run.clone().try_get_matches_from(&words[1..]) {
            Ok(typed) => typed,
            Err(_) => {
                let whole = Self::command().mut_subcommand(RUN_COMMAND, |_| run);
                let mut typed = whole.try_get_matches_from(words)?;
                let own = typed.remove_subcommand().map(|(_, own)| own);
                own.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?
            }
        };
        let mut args = RunCommandArgs::from_arg_matches(&typed)?;
        args.is_system_typed = typed.value_source("system") == Some(ValueSource::CommandLine);
        Ok((args, typed))
    }

    /// Where `words`, which can't be read, want the frames copied to.
    pub fn guess_debug_file(words: &[OsString]) -> Option<PathBuf> {
        const OPTION: &str = "--debug-events-jsonl";
        let at = words.iter().rposition(|word| word == OPTION);
        let behind = at.and_then(|at| words.get(at + 1)).map(PathBuf::from);
        let within = || {
            let words = words.iter().rev().filter_map(|word| word.to_str());
            words.filter_map(|word| word.strip_prefix(OPTION)?.strip_prefix('=')).next()
        };
        let variable = || std::env::var_os("DUOLOGUE_DEBUG_EVENTS_JSONL");
        let path = behind.or_else(|| within().map(PathBuf::from));
        path.or_else(|| variable().map(PathBuf::from)).filter(|path| !path.as_os_str().is_empty())
    }

    /// What whoever typed `words`, which can't be read, wants; what is in `file` is not ours.
    pub fn guess(words: &[OsString], file: Option<&CommandFile>) -> Wanted {
        // Options may have been put before the command by mistake.
        let words = words.get(1..).unwrap_or_default();
        let command = words.iter().filter_map(|word| word.to_str()).find_map(named);
        let output = OutputArgs::guess(words, file);
        let is_named = words.first().is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"));
        match command {
            None if is_named => Wanted { command: "", mode: Mode::Text },
            None | Some("rpc") => {
                let mode = if output.no_stream { Mode::Frames } else { Mode::Server };
                Wanted { command: "rpc", mode }
            }
            // Its lines begin with one that names them, whatever comes of it.
            Some("list-events") if output.mode() == Ok(Mode::Text) => {
                let mode = Mode::Objects { has_preamble: true };
                Wanted { command: "EventEntry", mode }
            }
            Some(command) => Wanted { command, mode: output.mode_of_errors() },
        }
    }
}

/// The command of this name, if its output may be more than text.
fn named(word: &str) -> Option<&'static str> {
    ["rpc", "exec", RUN_COMMAND, "check", "list-events"].into_iter().find(|name| *name == word)
}

impl Command {
    /// The command, if it is one that is started often, and `words` are right. All the others, and
    /// help, need a picture of the whole command line, which takes longer to make than most runs.
    fn read_quickly(words: &[OsString]) -> Option<Self> {
        let name = words.get(1).map_or(Some("rpc"), |name| name.to_str());
        let command = clap::Command::new("duologue");
        let typed = |command| {
            let words = words.get(1..).unwrap_or_default();
            with_set_variables(command).no_binary_name(words.is_empty()).try_get_matches_from(words)
        };
        match name {
            Some("rpc") => {
                let typed = typed(RpcArgs::augment_args(command)).ok()?;
                Some(Self::Rpc(RpcArgs::from_arg_matches(&typed).ok()?))
            }
            Some("exec") => {
                let mut exec = ExecArgs::augment_args(command);
                if OutputArgs::guess(words, None).is_flagged() {
                    exec = without_output_variable(exec);
                }
                let typed = typed(exec).ok()?;
                Some(Self::Exec(ExecArgs::from_arg_matches(&typed).ok()?))
            }
            Some(_) | None => None,
        }
    }
}

/// How the file is run: it comes first, and its flags behind it.
fn usage(file: &CommandFile) -> String {
    let flags = file.flags.iter().filter(|flag| flag.required);
    let flags: String = flags.map(|flag| format!(" --{} <{}>", flag.option(), flag.name)).collect();
    let arguments = file.arguments.iter().map(|argument| match argument.required {
        true => format!(" <{}>", argument.name),
        false => format!(" [{}]", argument.name),
    });
    let arguments: String = arguments.collect();
    format!("duologue {RUN_COMMAND} {}{flags} [OPTIONS]{arguments}", file.path.display())
}

/// What an option is called whose name is taken.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = format!("duologue-{name}");
    while is_taken(&name) {
        name.insert_str(0, "duologue-");
    }
    name
}

/// `run` with the flags of `file`, which help shows first. Where both have one of a name, the file's
/// is meant: people's files come first.
fn with_flags(run: &clap::Command, file: &CommandFile) -> clap::Command {
    let has_name = |name: &str| file.flags.iter().any(|flag| flag.option() == name);
    let has_letter = |letter| file.flags.iter().any(|flag| flag.short == Some(letter));
    let own = run.get_arguments().map(|arg| {
        let long = arg.get_long().filter(|name| has_name(name));
        let long = long.map(|name| free_name(name, has_name));
        let is_letter_taken = arg.get_short().is_some_and(has_letter);
        let is_headed = arg.is_positional() || arg.get_help_heading().is_some();
        let arg = arg.clone();
        let arg = if is_headed { arg } else { arg.help_heading("Options of duologue") };
        let arg = if let Some(long) = long { arg.long(long) } else { arg };
        if is_letter_taken { arg.short(Resettable::Reset) } else { arg }
    });
    let help = Arg::new("help").long("help").action(ArgAction::Help).help("Print help");
    let help = if has_letter('h') { help } else { help.short('h') };
    let help = if has_name("help") { help.long(free_name("help", has_name)) } else { help };
    let (arguments, flags): (Vec<Arg>, Vec<Arg>) =
        file.clap_args().into_iter().partition(Arg::is_positional);
    let about = if file.short.is_empty() { &file.name } else { &file.short };
    let long_about = if file.long.is_empty() { about } else { &file.long };
    clap::Command::new(run.get_name().to_owned())
        .about(about)
        .long_about(format!("{}\n\n{}", long_about.trim_end(), words::OUTPUT))
        .after_help(words::after(RUN_COMMAND))
        .override_usage(usage(file))
        .disable_help_flag(true)
        .args(flags)
        .args(own)
        .args(arguments)
        .arg(help.help_heading("Options of duologue"))
}

/// Options of one output that are typed win over the variable of another, whatever it holds.
fn without_output_variable(command: clap::Command) -> clap::Command {
    command.mut_arg("output", |arg| arg.env(Resettable::Reset))
}

/// `command` without the variables that are empty.
fn with_set_variables(command: clap::Command) -> clap::Command {
    if std::env::vars_os().any(|(_, value)| value.is_empty()) {
        return without_empty_variables(command);
    }
    command
}

/// An empty variable is how scripts and CI files say that it is not set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    command
        .mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(without_empty_variables)
}
