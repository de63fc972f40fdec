//! The command line as it is typed. What it means is `config`'s business.

use crate::engine::openai;
use crate::tools::args::{self, CheckArgs, CompletionsArgs, ListEventsArgs, ManArgs, SchemaArgs};
use clap::builder::{BoolishValueParser, Resettable};
use clap::{
    Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, value_parser,
};
use std::path::PathBuf;

/// Bytes a request line may have unless told otherwise.
const REQUEST_BYTES: u32 = 10 * 1024 * 1024;

/// Bytes a request line can be allowed to have: it is held in memory.
const REQUEST_BYTES_MAX: u32 = 1024 * 1024 * 1024;

/// Times a call to a provider can be asked to be tried again.
const RETRIES_MAX: i64 = 10;

const ABOUT: &str = "A chat runtime for language models that other programs hold as a subprocess";

const LONG_ABOUT: &str = "\
A chat runtime for language models that other programs hold as a subprocess.

One process is one conversation. It reads one JSON request per line on standard input and writes one
JSON frame per line on standard output. Without a command it does what `duologue rpc` does.";

const RPC_ABOUT: &str = "Hold one conversation over standard input and output; streams JSON Lines";

const RPC_LONG_ABOUT: &str = "\
Hold one conversation over standard input and output.

This command streams JSON Lines: standard output is one JSON object per line (protobuf JSON of
pinocchio.chatapp.rpc.v1.RpcLine), written as things happen. The first line is `hello`, and every
request line gets exactly one `done`, the last line with its requestId. Requests are

  {\"requestId\":\"r1\",\"submit\":{\"prompt\":\"hello\"}}  start a run
  {\"requestId\":\"r2\",\"cancel\":{}}                  stop the active run
  {\"requestId\":\"r3\",\"snapshot\":{}}                tell the state of the conversation
  {\"requestId\":\"r4\",\"shutdown\":{}}                end once what runs and waits has ended

Logs go to standard error or to --log-file, never to standard output.";

const RPC_AFTER: &str = "\
Examples:
  echo '{\"submit\":{\"prompt\":\"hello\"}}' | duologue rpc
  cat requests.jsonl | duologue rpc --on-busy queue
  duologue rpc --engine openai --base-url http://localhost:11434/v1 --model llama3.2

Environment:
  DUOLOGUE_API_KEY, OPENAI_API_KEY   key for the openai engine; the first one that is set is used
  OPENAI_BASE_URL                    its server, if neither --base-url nor DUOLOGUE_BASE_URL is set
  SSL_CERT_FILE                      more root certificates (PEM) for its server
  NO_COLOR                           no colours on a terminal
  Every option has a variable of its own, shown with it; the option wins. A variable that is empty
  counts as not set.

Exit status:
  0    end of input or shutdown, or nobody reads the output any more
  1    standard input could not be read
  2    the command line or a file named on it is wrong
  70   a defect of this program
  74   standard output could not be written
  128+ ended by a signal: 129 SIGHUP, 130 SIGINT, 143 SIGTERM";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "duologue",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = RPC_AFTER,
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

impl Cli {
    /// Reads the command line and the environment. If these are wrong, or help is asked for, the
    /// process ends here.
    pub fn read() -> Self {
        let mut command = Self::command();
        if std::env::vars_os().any(|(_, value)| value.is_empty()) {
            command = without_empty_variables(command);
        }
        let typed = command.get_matches_mut();
        Self::from_arg_matches(&typed).unwrap_or_else(|error| error.format(&mut command).exit())
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

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold one conversation over standard input and output.
    #[command(about = RPC_ABOUT, long_about = RPC_LONG_ABOUT, after_help = RPC_AFTER)]
    Rpc(RpcArgs),
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
    /// Who answers; openai is any OpenAI-compatible server. Unless told: openai if a key, a base
    /// URL or a model is set, else echo
    #[arg(long, env = "DUOLOGUE_ENGINE", value_enum)]
    pub engine: Option<EngineName>,

    /// Model that answers, for the openai engine; OpenAI itself has a default, gpt-4o-mini
    #[arg(long, env = "DUOLOGUE_MODEL")]
    pub model: Option<String>,

    /// Where the openai engine finds its server, for example http://localhost:11434/v1
    #[arg(long, env = "DUOLOGUE_BASE_URL", value_name = "URL", hide_env_values = true)]
    pub base_url: Option<String>,

    /// How the model is to behave
    #[arg(long, env = "DUOLOGUE_SYSTEM", value_name = "TEXT")]
    pub system: Option<String>,

    /// Bind the process to this session from the start
    #[arg(long, env = "DUOLOGUE_SESSION_ID", value_name = "ID")]
    pub session_id: Option<String>,

    /// Longest request line that is read
    #[arg(
        long,
        env = "DUOLOGUE_MAX_REQUEST_BYTES",
        value_name = "BYTES",
        default_value_t = REQUEST_BYTES,
        value_parser = value_parser!(u32).range(1..=i64::from(REQUEST_BYTES_MAX))
    )]
    pub max_request_bytes: u32,

    /// What happens to a submit while a run is active
    #[arg(long, env = "DUOLOGUE_ON_BUSY", value_name = "WHAT", value_enum, default_value_t)]
    pub on_busy: OnBusy,

    /// What a patch carries
    #[arg(long, env = "DUOLOGUE_PATCH_MODE", value_name = "MODE", value_enum, default_value_t)]
    pub patch_mode: PatchMode,

    /// What the snapshot at the end of a run holds
    #[arg(long, env = "DUOLOGUE_FINAL_SNAPSHOT", value_name = "SPAN", value_enum, default_value_t)]
    pub final_snapshot: FinalSnapshot,

    /// Copy the frames to this file, which is created or truncated
    #[arg(long, env = "DUOLOGUE_DEBUG_EVENTS_JSONL", value_name = "PATH")]
    pub debug_events_jsonl: Option<PathBuf>,

    /// How much is logged
    #[arg(long, env = "DUOLOGUE_LOG_LEVEL", value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,

    /// Log to the end of this file instead of standard error
    #[arg(long, env = "DUOLOGUE_LOG_FILE", value_name = "PATH")]
    pub log_file: Option<PathBuf>,

    /// Settings of the engines.
    #[command(flatten, next_help_heading = "Engine options")]
    pub engines: EngineArgs,
}

/// Settings of the engines.
#[derive(Args, Debug)]
pub struct EngineArgs {
    /// Wait this long before each word of the echo engine
    #[arg(long, env = "DUOLOGUE_ECHO_DELAY_MS", value_name = "MS", default_value_t = 0)]
    pub echo_delay_ms: u64,

    /// Let the echo engine reason before it answers
    #[arg(long, env = "DUOLOGUE_ECHO_REASONING", value_parser = BoolishValueParser::new())]
    pub echo_reasoning: bool,

    /// Longest time to connect to a provider
    #[arg(
        long,
        env = "DUOLOGUE_CONNECT_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(openai::CONNECT_TIMEOUT),
        value_parser = value_parser!(u64).range(1..)
    )]
    pub connect_timeout_ms: u64,

    /// Longest time a provider may send nothing
    #[arg(
        long,
        env = "DUOLOGUE_IDLE_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(openai::IDLE_TIMEOUT),
        value_parser = value_parser!(u64).range(1..)
    )]
    pub idle_timeout_ms: u64,

    /// Longest time of a whole answer
    #[arg(
        long,
        env = "DUOLOGUE_TOTAL_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(openai::TOTAL_TIMEOUT),
        value_parser = value_parser!(u64).range(1..)
    )]
    pub total_timeout_ms: u64,

    /// Times a call to a provider is tried again, before any of its answer was shown
    #[arg(
        long,
        env = "DUOLOGUE_RETRIES",
        value_name = "N",
        default_value_t = openai::RETRIES,
        value_parser = value_parser!(u32).range(0..=RETRIES_MAX)
    )]
    pub retries: u32,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The built-in one: repeats the prompt; needs no key, account or server
    Echo,
    /// Any OpenAI-compatible chat-completions server
    Openai,
}

/// What happens to a submit while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnBusy {
    /// It is refused with session_busy
    #[default]
    Reject,
    /// It waits for its turn
    Queue,
}

/// What a patch carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PatchMode {
    /// The new text
    #[default]
    Append,
    /// All text so far
    Snapshot,
}

/// What the snapshot at the end of a run holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FinalSnapshot {
    /// The whole conversation
    #[default]
    Full,
    /// What the run added
    Turn,
    /// There is none
    None,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// What went wrong in this program
    Error,
    /// What a person should know
    #[default]
    Warn,
    /// What happens
    Info,
    /// What happens, in detail
    Debug,
    /// Everything
    Trace,
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
