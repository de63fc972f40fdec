//! The command line as it is typed. What it means is `config`'s business.

mod output;
mod session;
mod words;

pub use output::{Disagree, Mode, OutputArgs, OutputName};
pub use session::{
    EngineArgs, EngineName, FinalSnapshot, LogLevel, OnBusy, PatchMode, SessionArgs,
};

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "duologue",
    version,
    about = words::ABOUT,
    long_about = words::LONG_ABOUT,
    after_help = words::RPC_AFTER,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; `rpc` if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// For `rpc`.
    #[command(flatten)]
    pub rpc: RpcArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold one conversation over standard input and output.
    #[command(about = words::RPC_ABOUT, long_about = words::RPC_LONG_ABOUT, after_help = words::RPC_AFTER)]
    Rpc(RpcArgs),
    /// Run one prompt.
    #[command(about = words::EXEC_ABOUT, long_about = words::EXEC_LONG_ABOUT, after_help = words::EXEC_AFTER)]
    Exec(ExecArgs),
    /// Run the prompt of a command file.
    #[command(about = words::RUN_ABOUT, long_about = words::RUN_LONG_ABOUT, after_help = words::RUN_AFTER)]
    RunCommand(RunCommandArgs),
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

    /// Render the prompt, print it and stop
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
    pub fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        Ok(Self::read_with(words, Self::command())?.0)
    }

    /// The same with a command of the caller's making; also gives what was typed for its own
    /// subcommand.
    pub fn read_with(
        words: &[OsString],
        mut command: clap::Command,
    ) -> Result<(Self, ArgMatches), clap::Error> {
        if std::env::vars_os().any(|(_, value)| value.is_empty()) {
            command = without_empty_variables(command);
        }
        let typed = command.try_get_matches_from_mut(words)?;
        let cli = Self::from_arg_matches(&typed).map_err(|error| error.format(&mut command))?;
        let own = typed.subcommand().map_or_else(|| typed.clone(), |(_, own)| own.clone());
        Ok((cli.with_sources(&own), own))
    }

    /// What whoever typed `words`, which can't be read, wants done, and expects to be printed.
    pub fn guess(words: &[OsString]) -> (&'static str, Mode) {
        let output = || OutputArgs::guess(&words[2..]).mode().unwrap_or(Mode::Text);
        match words.get(1).and_then(|word| word.to_str()) {
            Some("exec") => ("exec", output()),
            Some("run-command") => ("run-command", output()),
            Some("rpc") | None => ("rpc", Mode::Server),
            Some(option) if option.starts_with('-') => ("rpc", Mode::Server),
            Some(_) => ("", Mode::Text),
        }
    }

    /// An option that is typed wins over a variable that asks for something else.
    fn with_sources(mut self, typed: &ArgMatches) -> Self {
        let Some(
            Command::Exec(ExecArgs { output, .. })
            | Command::RunCommand(RunCommandArgs { output, .. }),
        ) = &mut self.command
        else {
            return self;
        };
        let is_variable = typed.value_source("output") == Some(ValueSource::EnvVariable);
        if is_variable && (output.rpc || output.stdin_rpc || output.json_stream || output.no_stream)
        {
            output.output = None;
        }
        self
    }
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
