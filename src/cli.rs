//! The command line as it is typed. What it means is `config`'s business.

use crate::engine::openai;
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Bytes a request line may have unless told otherwise.
const REQUEST_BYTES_MAX: usize = 10 * 1024 * 1024;

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

  {\"requestId\":\"r1\",\"submit\":{\"prompt\":\"hello\"}}   start a run
  {\"requestId\":\"r2\",\"cancel\":{}}                     stop the active run
  {\"requestId\":\"r3\",\"snapshot\":{}}                   tell the state of the conversation
  {\"requestId\":\"r4\",\"shutdown\":{}}                   end once the active run has ended

Logs go to standard error or to --log-file, never to standard output.";

const RPC_AFTER: &str = "\
Examples:
  echo '{\"submit\":{\"prompt\":\"hello\"}}' | duologue rpc
  cat requests.jsonl | duologue rpc --on-busy queue
  duologue rpc --engine openai --base-url http://localhost:11434/v1 --model llama3.2

Environment:
  DUOLOGUE_API_KEY, OPENAI_API_KEY   key for the openai engine; the first one that is set is used
  Every option has a variable of its own, shown with it; the option wins.

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
    /// For `rpc`.
    #[command(flatten)]
    pub rpc: RpcArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold one conversation over standard input and output.
    #[command(about = RPC_ABOUT, long_about = RPC_LONG_ABOUT, after_help = RPC_AFTER)]
    Rpc(RpcArgs),
}

/// Options of `rpc`.
#[derive(Args, Debug)]
pub struct RpcArgs {
    /// Who answers; openai is any OpenAI-compatible server. Unless told: openai if a key, a base
    /// URL or a model is set, else echo
    #[arg(long, env = "DUOLOGUE_ENGINE", value_enum)]
    pub engine: Option<EngineName>,

    /// Model that answers, for the openai engine
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
        default_value_t = REQUEST_BYTES_MAX
    )]
    pub max_request_bytes: usize,

    /// What happens to a submit while a run is active
    #[arg(long, env = "DUOLOGUE_ON_BUSY", value_enum, default_value_t)]
    pub on_busy: OnBusy,

    /// What a patch carries
    #[arg(long, env = "DUOLOGUE_PATCH_MODE", value_enum, default_value_t)]
    pub patch_mode: PatchMode,

    /// What the snapshot at the end of a run holds
    #[arg(long, env = "DUOLOGUE_FINAL_SNAPSHOT", value_enum, default_value_t)]
    pub final_snapshot: FinalSnapshot,

    /// Copy the frames to this file, which is created or truncated
    #[arg(long, env = "DUOLOGUE_DEBUG_EVENTS_JSONL", value_name = "PATH")]
    pub debug_events_jsonl: Option<PathBuf>,

    /// How much is logged
    #[arg(long, env = "DUOLOGUE_LOG_LEVEL", value_enum, default_value_t)]
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
        default_value_t = millis(openai::CONNECT_TIMEOUT)
    )]
    pub connect_timeout_ms: u64,

    /// Longest time a provider may send nothing
    #[arg(
        long,
        env = "DUOLOGUE_IDLE_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(openai::IDLE_TIMEOUT)
    )]
    pub idle_timeout_ms: u64,

    /// Longest time of a whole answer
    #[arg(
        long,
        env = "DUOLOGUE_TOTAL_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(openai::TOTAL_TIMEOUT)
    )]
    pub total_timeout_ms: u64,

    /// Times a call to a provider is tried again, before any of its answer was shown
    #[arg(
        long,
        env = "DUOLOGUE_RETRIES",
        value_name = "N",
        default_value_t = openai::RETRIES
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
