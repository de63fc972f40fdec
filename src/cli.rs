//! The command line as it is typed. `config` turns it into settings.

mod acp;
pub(crate) mod answer_options;
mod attachments;
mod calls;
mod chat;
pub mod commands;
mod compaction;
pub(crate) mod config;
mod file_flags;
mod foreign;
mod help;
pub mod log;
pub(crate) mod manifest;
mod numbers;
mod output;
mod plain;
pub mod prepare;
pub(crate) mod prompts;
mod provider;
#[cfg(feature = "serve")]
mod serve;
mod session;
pub mod shell;
mod store;
mod texts;
mod tips;
pub mod tools;
mod variables;

pub use acp::AcpArgs;
pub use attachments::AttachmentArgs;
pub use chat::{
    Background, BackgroundArgs, BellKind, ChatArgs, Editing, InteractiveArgs, ScreenArgs,
};
pub(crate) use output::{Mode, OutputArgs, RpcOutputArgs};
pub use prompts::RunArgs;
pub(crate) use provider::{ModelOfFile, ModelOption, ProfileFiles, ProviderArgs, TlsRoots};
#[cfg(feature = "serve")]
pub use serve::ServeArgs;
pub(crate) use session::{
    EngineName, FinalSnapshot, LogLevel, OnBusy, PatchFields, PatchMode, SessionArgs,
};

use crate::cli::commands::args::{
    self, CheckArgs, CompletionsArgs, DoctorArgs, ListEventsArgs, ManArgs, McpArgs, ModelsArgs,
    ProfilesArgs, SchemaArgs, ToolsArgs,
};
use crate::cli::commands::sessions::args::{SESSIONS_ABOUT, SESSIONS_EXAMPLES, SessionsArgs};
use crate::command_file::CommandFile;
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use clap_complete::{ArgValueCompleter, PathCompleter};
use file_flags::Called;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// The parsed command line, before help and errors are handled.
#[derive(Debug, Parser)]
#[command(
    name = "duologue",
    version,
    about = help::ABOUT,
    long_about = help::LONG_ABOUT,
    after_help = help::after("rpc"),
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The command to run; `rpc` if none is given.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print the command line as JSON, for programs that start this one
    #[arg(long, exclusive = true)]
    pub manifest: bool,
    /// Options of `rpc` when no command is named.
    #[command(flatten)]
    pub rpc: RpcArgs,
}

/// The command to run, or the manifest.
#[derive(Debug)]
pub enum Invocation {
    /// Run this command.
    Command(Box<Command>),
    /// Print the manifest.
    Manifest,
}

/// A parsed command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandMode {
    /// The command to run.
    pub command: &'static str,
    /// The form in which the reader of standard output expects results and errors.
    pub mode: Mode,
}

/// The command whose own arguments can be parsed only once its command file has been read.
pub const RUN_COMMAND: &str = "run-command";

/// The command that finds its command file by a name.
pub const RUN: &str = "run";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold one conversation over standard input and output.
    #[command(about = help::RPC_ABOUT, long_about = help::RPC_LONG_ABOUT, after_help = help::after("rpc"))]
    Rpc(RpcArgs),
    /// Run one prompt.
    #[command(about = help::EXEC_ABOUT, long_about = help::exec_long_about(), after_help = help::after("exec"))]
    Exec(ExecArgs),
    /// Run the prompt of a command file.
    #[command(about = help::RUN_ABOUT, long_about = help::run_long_about(), after_help = help::after("run-command"))]
    RunCommand(RunCommandArgs),
    /// Run a prompt by its name, or list the prompts.
    #[command(about = help::RUN_NAMED_ABOUT, long_about = help::RUN_NAMED_LONG_ABOUT, after_help = help::after_examples("run", help::RUN_NAMED_EXAMPLES))]
    Run(RunArgs),
    /// Chat with a model at a terminal.
    #[command(about = help::CHAT_ABOUT, long_about = help::CHAT_LONG_ABOUT, after_help = help::after("chat"))]
    Chat(ChatArgs),
    /// Hold conversations for an editor.
    #[command(about = help::ACP_ABOUT, long_about = help::ACP_LONG_ABOUT, after_help = help::after("acp"))]
    Acp(AcpArgs),
    /// Hold the conversations of many clients, over gRPC and HTTP.
    #[cfg(feature = "serve")]
    #[command(about = help::SERVE_ABOUT, long_about = help::SERVE_LONG_ABOUT, after_help = help::after("serve"))]
    Serve(ServeArgs),
    /// Check a stream of the protocol against its contract.
    #[command(long_about = args::CHECK_LONG_ABOUT, after_help = help::after_examples("check", args::CHECK_EXAMPLES))]
    Check(CheckArgs),
    /// List the events of a stream.
    #[command(
        about = args::LIST_EVENTS_ABOUT,
        long_about = args::LIST_EVENTS_LONG_ABOUT,
        after_help = help::after_examples("list-events", args::LIST_EVENTS_EXAMPLES)
    )]
    ListEvents(ListEventsArgs),
    /// List the tools of MCP servers.
    #[command(
        about = args::TOOLS_ABOUT,
        long_about = args::TOOLS_LONG_ABOUT,
        after_help = help::after_examples("tools", args::TOOLS_EXAMPLES)
    )]
    Tools(ToolsArgs),
    /// List the resources and prompts of MCP servers, log in at them, and log out.
    #[command(long_about = args::MCP_LONG_ABOUT, after_help = help::after_examples("mcp", args::MCP_EXAMPLES))]
    Mcp(McpArgs),
    /// List profiles and which of them are complete.
    #[command(
        about = args::PROFILES_ABOUT,
        long_about = args::PROFILES_LONG_ABOUT,
        after_help = help::after_examples("profiles", args::PROFILES_EXAMPLES)
    )]
    Profiles(ProfilesArgs),
    /// List the models of the provider.
    #[command(after_help = help::after_examples("models", args::MODELS_EXAMPLES))]
    Models(ModelsArgs),
    /// Report what is configured and whether it works.
    #[command(
        about = args::DOCTOR_ABOUT,
        long_about = args::DOCTOR_LONG_ABOUT,
        after_help = help::after_examples("doctor", args::DOCTOR_EXAMPLES)
    )]
    Doctor(DoctorArgs),
    /// Work with stored conversations.
    #[command(about = SESSIONS_ABOUT, after_help = help::after_examples("sessions", SESSIONS_EXAMPLES))]
    Sessions(SessionsArgs),
    /// Print the schema of the protocol.
    #[command(after_help = help::statuses("schema"))]
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    #[command(
        long_about = args::COMPLETIONS_LONG_ABOUT,
        after_help = help::after_examples("completions", args::COMPLETIONS_EXAMPLES)
    )]
    Completions(CompletionsArgs),
    /// Print the manual pages in roff, the format that `man` reads.
    #[command(
        long_about = args::MAN_LONG_ABOUT,
        after_help = help::after_examples("man", args::MAN_EXAMPLES)
    )]
    Man(ManArgs),
}

/// Options of `rpc`.
#[derive(Args, Debug, Default)]
pub struct RpcArgs {
    /// Output options.
    #[command(flatten)]
    pub output: RpcOutputArgs,

    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Options of `exec`.
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// Prompt; what is piped in is added to it. Without one, or with -, standard input is the prompt.
    /// After -- it is text, whatever it begins with
    pub prompt: Option<String>,

    /// Read standard input in any case, and wait for it: it must have text
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true)]
    pub piped: Option<String>,

    /// Read the prompt from this file
    #[arg(long, value_name = "PATH")]
    pub prompt_file: Option<PathBuf>,

    /// Append this file, with its name, to the prompt. May be repeated
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub file: Vec<PathBuf>,

    /// Ask also if the text on standard input (-) or in the prompt file is empty
    #[arg(long)]
    pub allow_empty: bool,

    /// Images and files that go with the prompt.
    #[command(flatten)]
    pub attachments: AttachmentArgs,

    /// Ask for JSON that matches the JSON Schema in this file, and check the answer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub schema: Option<PathBuf>,

    /// Print the system prompt, the history and the prompt without running them
    #[arg(long, conflicts_with = "save")]
    pub print_prompt: bool,

    /// Output options.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The terminal's background.
    #[command(flatten)]
    pub background: BackgroundArgs,

    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,

    /// The prompt comes after `--`, so it is text, also where it is `-`.
    #[arg(skip)]
    pub is_prompt_escaped: bool,
}

impl ExecArgs {
    /// Notes whether `words` have the prompt after `--`. No option takes `--` as its value.
    fn note_escape(&mut self, words: &[OsString]) {
        let arguments = usize::from(self.prompt.is_some()) + usize::from(self.piped.is_some());
        let escape = words.iter().position(|word| word == "--");
        let escaped = escape.map(|at| words.len() - at - 1);
        self.is_prompt_escaped = arguments > 0 && escaped >= Some(arguments);
    }
}

/// The files that may be command files, for completions.
fn command_files() -> PathCompleter {
    let is_yaml = |path: &Path| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    PathCompleter::any().filter(is_yaml)
}

/// Options of `run-command`, in addition to the flags of the command file.
#[derive(Args, Debug)]
pub struct RunCommandArgs {
    /// Command file; its own flags and arguments follow it
    #[arg(value_name = "FILE.yaml", add = ArgValueCompleter::new(command_files()))]
    pub file: PathBuf,

    /// Ask also if standard input, which a flag names (-), is empty
    #[arg(long)]
    pub allow_empty: bool,

    /// Images and files that go with the prompt.
    #[command(flatten)]
    pub attachments: AttachmentArgs,

    /// Print the rendered system prompt, messages and prompt without running them
    #[arg(long, conflicts_with = "save")]
    pub print_prompt: bool,

    /// Refuse a template that uses a name without a value, instead of printing `<no value>`
    #[arg(
        long,
        help = "Refuse a template that uses a name without a value, instead of printing <no value>"
    )]
    pub strict: bool,

    /// Whether the prompt begins a chat.
    #[command(flatten, next_help_heading = "Chat options")]
    pub interactive: InteractiveArgs,

    /// How a chat looks.
    #[command(flatten, next_help_heading = "Chat options")]
    pub screen: ScreenArgs,

    /// Output options.
    #[command(flatten, next_help_heading = None)]
    pub output: OutputArgs,

    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,

    /// `--system` or `--system-file` was typed and so overrides the file's system prompt; the variable does not.
    #[arg(skip)]
    pub is_system_typed: bool,
}

impl Cli {
    /// What to type, for a person who has typed the name of the program alone.
    pub const BEGINNING: &str = help::BEGINNING;

    /// Parses a command line of `rpc` that is written as programs write it; `None` if it is not, and
    /// [`Cli::read`] is to parse it.
    pub fn read_plain(words: &[OsString]) -> Option<Box<RpcArgs>> {
        plain::rpc(words, std::env::vars_os())
    }

    /// Parses a command line and the environment.
    ///
    /// # Errors
    /// If they are wrong, or help was requested.
    pub fn read(words: &[OsString]) -> Result<Invocation, clap::Error> {
        // Variables count as options, of which it can have none beside it. It is a document in any case.
        if let [_, manifest, rest @ ..] = words
            && manifest == "--manifest"
            && (rest.is_empty() || rest == ["--no-stream"] || rest == ["--output", "json"])
        {
            return Ok(Invocation::Manifest);
        }
        if let Some(command) = Command::read_quickly(words) {
            return Ok(Invocation::Command(Box::new(command)));
        }
        let mut command = with_set_variables(Self::command());
        if OutputArgs::guess(words, None).is_flagged() {
            command = command.mut_subcommand("exec", without_output_variable);
        }
        if help::short::is_wanted(words) {
            command = help::short::of_program(command);
        }
        let typed = command.try_get_matches_from_mut(words);
        let typed = typed.map_err(|error| tips::advise(error, words, None))?;
        let cli = Self::from_arg_matches(&typed).map_err(|error| error.format(&mut command))?;
        if cli.manifest {
            return Ok(Invocation::Manifest);
        }
        let mut command = cli.command.unwrap_or(Command::Rpc(cli.rpc));
        let own = typed.subcommand().map_or(&typed, |(_, own)| own);
        command.note_typed(own, words);
        Ok(Invocation::Command(Box::new(command)))
    }

    /// Whether `words` run a command file that they name by its path or by its name.
    pub fn runs_file(words: &[OsString]) -> bool {
        match words.get(1).and_then(|word| word.to_str()) {
            Some(RUN_COMMAND) => true,
            Some(RUN) => Self::command_file(words).is_some(),
            Some(_) | None => false,
        }
    }

    /// The command file named in `words`: the first argument after `run-command` that is neither an
    /// option of this program nor the value of one. It must be read before the rest can be parsed.
    pub(crate) fn command_file(words: &[OsString]) -> Option<OsString> {
        let run = RunCommandArgs::augment_args(clap::Command::new(RUN_COMMAND));
        first_argument(words, &run).and_then(|at| words.get(at).cloned())
    }

    /// The whole command line, with the flags of `file` added to the command in `words` that runs it.
    pub(crate) fn command_with(words: &[OsString], file: &CommandFile) -> clap::Command {
        let called = Called::of(words, file);
        Self::command().mut_subcommand(called.command, |_| file_flags::run_command(file, &called))
    }

    /// Parses `words`, which run a command file, and returns the values of the file's own flags as
    /// well.
    ///
    /// # Errors
    /// If they are wrong, or help was requested.
    pub(crate) fn read_with_file(
        words: &[OsString],
        file: &CommandFile,
    ) -> Result<(RunCommandArgs, ArgMatches), clap::Error> {
        let called = Called::of(words, file);
        let mut run = with_set_variables(file_flags::run_command(file, &called));
        if OutputArgs::guess(words, Some(file)).is_flagged() {
            run = without_output_variable(run);
        }
        if help::short::is_wanted(words) {
            run = help::short::of_command_file(run);
        }
        // Errors and help refer to the whole program's command line.
        let typed = match run.clone().try_get_matches_from(&words[1..]) {
            Ok(typed) => typed,
            Err(_) => {
                let whole = Self::command().mut_subcommand(called.command, |_| run);
                let typed = whole.try_get_matches_from(words);
                let mut typed = typed.map_err(|error| tips::advise(error, words, Some(file)))?;
                let own = typed.remove_subcommand().map(|(_, own)| own);
                own.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?
            }
        };
        let mut args = RunCommandArgs::from_arg_matches(&typed)?;
        args.is_system_typed = args.session.system_file.is_some()
            || typed.value_source("system") == Some(ValueSource::CommandLine);
        args.session.note_typed(&typed);
        Ok((args, typed))
    }

    /// The output mode requested by `words`, which could not be parsed; flags of `file` are not
    /// ours.
    pub fn guess(words: &[OsString], file: Option<&CommandFile>) -> CommandMode {
        // Options may have been put before the command by mistake.
        let words = words.get(1..).unwrap_or_default();
        let command = words.iter().filter_map(|word| word.to_str()).find_map(named);
        // A prompt that is named is a command file like any other.
        let command =
            command.map(|name| if name == RUN && file.is_some() { RUN_COMMAND } else { name });
        // The variable applies only to commands that run one prompt.
        let output = match command {
            Some("exec" | RUN_COMMAND | RUN) => OutputArgs::guess(words, file),
            Some(_) | None => OutputArgs::typed(words, None),
        };
        let is_named = words.first().is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"));
        match command {
            None if is_named || is_at_terminal() => {
                CommandMode { command: "", mode: output.mode_of_errors() }
            }
            None | Some("rpc") => CommandMode { command: "rpc", mode: output.mode_of_rpc() },
            // Its output begins with a line that names the format, errors included.
            Some("list-events") if output.mode() == Ok(Mode::Text) => {
                let mode = Mode::Objects { has_preamble: true };
                CommandMode { command: "EventEntry", mode }
            }
            Some(command) => CommandMode { command, mode: output.mode_of_errors() },
        }
    }
}

/// Whether a person, who has typed no command, would be shown the frames of `rpc`.
fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The place in `words` of the first one after the name of `command` that is neither an option nor the value of one.
fn first_argument(words: &[impl AsRef<OsStr>], command: &clap::Command) -> Option<usize> {
    let takes_next = |option: &str| {
        command.get_arguments().any(|arg| {
            let long = option.strip_prefix("--").is_some_and(|name| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(name) || aliases.contains(&name)
            });
            let short = option.strip_prefix('-').and_then(|rest| rest.chars().next());
            let short = option.len() == 2 && short.is_some() && arg.get_short() == short;
            (long || short) && arg.get_action().takes_values()
        })
    };
    let mut at = 2;
    while let Some(word) = words.get(at) {
        match word.as_ref().to_str() {
            Some("--") => return Some(at + 1),
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                at += if takes_next(option) { 2 } else { 1 };
            }
            Some(_) | None => return Some(at),
        }
    }
    None
}

/// The command of this name, if it has output formats other than text.
fn named(word: &str) -> Option<&'static str> {
    let names: &[&'static str] = &[
        "rpc",
        "exec",
        RUN_COMMAND,
        RUN,
        "chat",
        "acp",
        #[cfg(feature = "serve")]
        "serve",
        "check",
        "list-events",
        "tools",
        "mcp",
        "profiles",
        "models",
        "doctor",
        "sessions",
        "schema",
        "completions",
        "man",
    ];
    names.iter().copied().find(|name| *name == word)
}

impl Command {
    /// Notes what of the options of a conversation was typed.
    fn note_typed(&mut self, typed: &ArgMatches, words: &[OsString]) {
        match self {
            Self::Rpc(args) => args.session.note_typed(typed),
            Self::Exec(args) => {
                args.session.note_typed(typed);
                args.note_escape(words);
            }
            Self::Chat(args) => args.session.note_typed(typed),
            Self::Acp(args) => args.session.note_typed(typed),
            #[cfg(feature = "serve")]
            Self::Serve(args) => args.session.note_typed(typed),
            Self::Models(args) => args.provider.note_typed(typed),
            Self::Doctor(args) => args.provider.note_typed(typed),
            // Its options are known once its file was read.
            Self::RunCommand(_)
            | Self::Run(_)
            | Self::Check(_)
            | Self::ListEvents(_)
            | Self::Tools(_)
            | Self::Mcp(_)
            | Self::Profiles(_)
            | Self::Sessions(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_) => {}
        }
    }

    /// Parses the commands that are started often, if `words` are right. The other commands, and
    /// help, need the definition of the whole command line, which takes longer to build than most
    /// runs.
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
                let mut rpc = Self::Rpc(RpcArgs::from_arg_matches(&typed).ok()?);
                rpc.note_typed(&typed, words);
                Some(rpc)
            }
            Some("exec") => {
                let mut exec = ExecArgs::augment_args(command);
                if OutputArgs::guess(words, None).is_flagged() {
                    exec = without_output_variable(exec);
                }
                let typed = typed(exec).ok()?;
                let mut exec = Self::Exec(ExecArgs::from_arg_matches(&typed).ok()?);
                exec.note_typed(&typed, words);
                Some(exec)
            }
            Some("acp") => {
                let typed = typed(AcpArgs::augment_args(command)).ok()?;
                let mut acp = Self::Acp(AcpArgs::from_arg_matches(&typed).ok()?);
                acp.note_typed(&typed, words);
                Some(acp)
            }
            Some(_) | None => None,
        }
    }
}

/// A typed output option overrides the variable of another one, whatever that variable holds.
fn without_output_variable(command: clap::Command) -> clap::Command {
    command.mut_arg("output", |arg| arg.env(Resettable::Reset))
}

/// `command` without environment variables that are set but empty.
fn with_set_variables(command: clap::Command) -> clap::Command {
    if std::env::vars_os().any(|(_, value)| texts::is_blank(&value)) {
        return without_empty_variables(command);
    }
    command
}

/// Scripts and CI files set a variable to the empty string to unset it.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_unset = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| texts::is_unset(arg, &value))
    };
    command
        .mut_args(|arg| if is_unset(&arg) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(without_empty_variables)
}
