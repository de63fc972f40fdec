//! Options of every command that holds a conversation.

use super::answer_options::AnswerOptions;
use super::calls::CallArgs;
use super::compaction::CompactionArgs;
use super::numbers::whole;
use super::provider::ProviderArgs;
use super::store::StoreArgs;
use super::tools::ToolOptions;
use crate::engine;
use crate::protocol::command::Extension;
use crate::protocol::constants::capability::EXTRACT;
use crate::protocol::event_filter::EventFilter;
use crate::session::HEARTBEAT_MS;
use crate::support::files::WorkFolder;
use crate::support::millis;
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum, ValueHint};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

/// Default limit on the length of a request line, in bytes.
const REQUEST_BYTES: u32 = 10 * 1024 * 1024;

/// Largest limit on the length of a request line that can be set: a line is held in memory.
const REQUEST_BYTES_MAX: u32 = 1024 * 1024 * 1024;

/// Most retries of a provider call that can be set.
const RETRIES_MAX: u64 = 10;

/// Options of every command that holds a conversation.
#[derive(Args, Clone, Debug)]
pub struct SessionArgs {
    /// The provider.
    #[command(flatten)]
    pub provider: ProviderArgs,

    /// Refuse to run without a provider, where the built-in echo engine would answer
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_REQUIRE_PROVIDER",
        value_parser = BoolishValueParser::new()
    )]
    pub require_provider: bool,

    /// System prompt: how the model should behave
    #[arg(long, short, env = "DUOLOGUE_SYSTEM", value_name = "TEXT")]
    pub system: Option<String>,

    /// The folder that the conversation belongs to.
    #[arg(skip)]
    pub folder: WorkFolder,

    /// Read the system prompt from this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub system_file: Option<PathBuf>,

    /// Add this to the system prompt, whatever says that one: options, a command file or a profile. May be
    /// repeated
    #[arg(long, value_name = "TEXT")]
    pub append_system: Vec<String>,

    /// Start with the conversation in this file, which has one message a line as JSON:
    /// {"role": "user", "text": "…"}; roles are user, assistant and system
    #[arg(long, env = "DUOLOGUE_HISTORY", value_name = "FILE")]
    pub history: Option<PathBuf>,

    /// Id of the session that begins, or with --resume of the stored one to go on with; --session does either
    #[arg(long, env = "DUOLOGUE_SESSION_ID", value_name = "ID")]
    pub session_id: Option<String>,

    /// Longest accepted request line
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_MAX_REQUEST_BYTES",
        value_name = "BYTES",
        default_value_t = REQUEST_BYTES,
        value_parser = whole::<u32>(1..=u64::from(REQUEST_BYTES_MAX))
    )]
    pub max_request_bytes: u32,

    /// What happens to a submit while a run is active
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_ON_BUSY",
        value_name = "WHAT",
        value_enum,
        default_value_t
    )]
    pub on_busy: OnBusy,

    /// Turn on extensions of the protocol; a client can do the same with an enable request
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_EXTENSIONS",
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = extension,
        add = ArgValueCandidates::new(extension_names),
        help = extensions_help()
    )]
    pub extensions: Vec<Extension>,

    /// Write only these events: names and patterns (*, ?), after a ! those that are not written; a client can
    /// do the same with an enable request
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_EVENTS",
        value_name = "LIST",
        value_parser = EventFilter::parse
    )]
    pub events: Option<EventFilter>,

    /// Silence in a run after which the extension heartbeats reports what the run waits for
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_HEARTBEAT_MS",
        value_name = "MS",
        default_value_t = HEARTBEAT_MS,
        value_parser = whole::<NonZeroU64>(1..=u64::MAX)
    )]
    pub heartbeat_ms: NonZeroU64,

    /// What a patch contains
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_PATCH_MODE",
        value_name = "MODE",
        value_enum,
        default_value_t
    )]
    pub patch_mode: PatchMode,

    /// Which fields a patch has
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_PATCH_FIELDS",
        value_name = "FIELDS",
        value_enum,
        default_value_t
    )]
    pub patch_fields: PatchFields,

    /// What the snapshot at the end of a run contains; without it full, and turn in a stored session that
    /// has become long
    #[arg(
        help_heading = "Protocol options",
        long,
        env = "DUOLOGUE_FINAL_SNAPSHOT",
        value_name = "SPAN",
        value_enum
    )]
    pub final_snapshot: Option<FinalSnapshot>,

    /// Copy the frames to this file, which is created or truncated
    #[arg(
        help_heading = "Log options",
        long,
        env = "DUOLOGUE_DEBUG_EVENTS_JSONL",
        value_name = "PATH"
    )]
    pub debug_events_jsonl: Option<PathBuf>,

    /// How much is logged
    #[arg(
        help_heading = "Log options",
        long,
        env = "DUOLOGUE_LOG_LEVEL",
        value_name = "LEVEL",
        value_enum,
        default_value_t,
        ignore_case = true
    )]
    pub log_level: LogLevel,

    /// Log to the end of this file instead of standard error
    #[arg(help_heading = "Log options", long, env = "DUOLOGUE_LOG_FILE", value_name = "PATH")]
    pub log_file: Option<PathBuf>,

    /// Options about answers.
    #[command(flatten, next_help_heading = "Answer options")]
    pub answers: AnswerOptions,
    /// Options about storing the conversation.
    #[command(flatten, next_help_heading = "Store options")]
    pub store: StoreArgs,

    /// Options about tools.
    #[command(flatten, next_help_heading = "Tool options")]
    pub tools: ToolOptions,

    /// Options about conversations that become too long.
    #[command(flatten, next_help_heading = "Compaction options")]
    pub compaction: CompactionArgs,

    /// Settings of every call.
    #[command(flatten, next_help_heading = "Call options")]
    pub calls: CallArgs,

    /// Options of Pinocchio that change nothing here.
    #[command(flatten)]
    pub foreign: ForeignArgs,

    /// Settings of the engines.
    #[command(flatten, next_help_heading = "Engine options")]
    pub engines: EngineArgs,
}

impl SessionArgs {
    /// Notes what was typed: it wins over a command file, and over what a stored session was switched to.
    pub(super) fn note_typed(&mut self, typed: &ArgMatches) {
        self.provider.note_typed(typed);
        let is_typed = |id: &&str| typed.value_source(id) == Some(ValueSource::CommandLine);
        let ids = typed.ids().map(clap::Id::as_str).filter(is_typed);
        self.calls.typed = ids.map(str::to_owned).collect();
        self.calls.take_foreign();
    }

    /// Has the conversation belong to `folder`, whatever folder the process is in: its project's files, its
    /// tool servers, and its place among the stored ones.
    pub(super) fn belong_to(&mut self, folder: &WorkFolder) {
        self.folder.clone_from(folder);
        self.provider.registries.folder.clone_from(folder);
        self.tools.folder.clone_from(folder);
    }
}

impl Default for SessionArgs {
    fn default() -> Self {
        Self {
            provider: ProviderArgs::default(),
            require_provider: false,
            system: None,
            folder: WorkFolder::default(),
            system_file: None,
            append_system: Vec::new(),
            history: None,
            session_id: None,
            max_request_bytes: REQUEST_BYTES,
            on_busy: OnBusy::default(),
            extensions: Vec::new(),
            events: None,
            heartbeat_ms: HEARTBEAT_MS,
            patch_mode: PatchMode::default(),
            patch_fields: PatchFields::default(),
            final_snapshot: None,
            debug_events_jsonl: None,
            log_level: LogLevel::default(),
            log_file: None,
            answers: AnswerOptions::default(),
            store: StoreArgs::default(),
            tools: ToolOptions::default(),
            compaction: CompactionArgs::default(),
            calls: CallArgs::default(),
            foreign: ForeignArgs::default(),
            engines: EngineArgs::default(),
        }
    }
}

/// Options of Pinocchio that change nothing here. They are taken so that a command line that was
/// written for it works, and each is warned of.
#[derive(Args, Clone, Debug, Default)]
pub struct ForeignArgs {
    /// Its file of settings.
    #[arg(long, hide = true, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Its log goes to standard output.
    #[arg(long, hide = true)]
    pub log_to_stdout: bool,
    /// The form of its log.
    #[arg(long, hide = true, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Its log names places in its source.
    #[arg(long, hide = true)]
    pub with_caller: bool,
    /// It streams.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub ai_stream: Option<Option<String>>,
}

/// Settings of the engines.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// Wait this long before each word of the echo engine
    #[arg(long, env = "DUOLOGUE_ECHO_DELAY_MS", value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0..=u64::MAX))]
    pub echo_delay_ms: u64,

    /// Have the echo engine answer with the text of this file instead of the prompt's, for demos
    /// and tests
    #[arg(long, env = "DUOLOGUE_ECHO_ANSWER", value_name = "PATH")]
    pub echo_answer: Option<PathBuf>,

    /// Have the echo engine play this file: one provider call a line, as in
    /// {"text":"Let me look.","tools":[{"name":"get_time","arguments":{}}]}
    #[arg(long, env = "DUOLOGUE_ECHO_SCRIPT", value_name = "PATH")]
    pub echo_script: Option<PathBuf>,

    /// Stream reasoning before the answer of the echo engine
    #[arg(long, env = "DUOLOGUE_ECHO_REASONING", value_parser = BoolishValueParser::new())]
    pub echo_reasoning: bool,

    /// Longest time to connect to a provider
    #[arg(
        long,
        env = "DUOLOGUE_CONNECT_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(engine::CONNECT_TIMEOUT),
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub connect_timeout_ms: u64,

    /// Longest time without data from a provider
    #[arg(
        long,
        env = "DUOLOGUE_IDLE_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(engine::IDLE_TIMEOUT),
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub idle_timeout_ms: u64,

    /// Longest time for a whole answer
    #[arg(
        long,
        env = "DUOLOGUE_TOTAL_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = millis(engine::TOTAL_TIMEOUT),
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub total_timeout_ms: u64,

    /// Longest time for a whole answer, in seconds, as Pinocchio has it; 0 is no limit.
    #[arg(long, hide = true, value_name = "SECONDS", value_parser = whole::<u64>(0..=u64::MAX))]
    pub timeout: Option<u64>,

    /// How often a failed call to a provider is retried, before any of its answer was shown
    #[arg(
        long,
        env = "DUOLOGUE_RETRIES",
        value_name = "N",
        default_value_t = engine::RETRIES,
        value_parser = whole::<u32>(0..=RETRIES_MAX)
    )]
    pub retries: u32,
}

impl EngineArgs {
    /// Longest time for a whole answer.
    pub(super) fn total_timeout(&self) -> Duration {
        match self.timeout {
            None => Duration::from_millis(self.total_timeout_ms),
            Some(0) => Duration::from_millis(u64::MAX),
            Some(seconds) => Duration::from_millis(seconds.saturating_mul(1_000)),
        }
    }
}

impl Default for EngineArgs {
    fn default() -> Self {
        Self {
            echo_delay_ms: 0,
            echo_answer: None,
            echo_script: None,
            echo_reasoning: false,
            connect_timeout_ms: millis(engine::CONNECT_TIMEOUT),
            idle_timeout_ms: millis(engine::IDLE_TIMEOUT),
            total_timeout_ms: millis(engine::TOTAL_TIMEOUT),
            timeout: None,
            retries: engine::RETRIES,
        }
    }
}

/// Engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Built-in: repeats the prompt; needs no key, account or server
    Echo,
    /// Any OpenAI-compatible chat-completions server
    Openai,
    /// OpenAI, or any server with its Responses
    #[value(aliases = ["openai-responses", "open-responses"])]
    Responses,
    /// Anthropic, or any server with its Messages
    #[value(alias = "claude")]
    Anthropic,
    /// Google's Gemini, or any server with its generateContent
    Gemini,
    /// Ollama, by its own interface; name a model that is installed there
    Ollama,
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

/// What a patch contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PatchMode {
    /// The new text
    #[default]
    Append,
    /// All text so far
    Snapshot,
}

/// Which fields a patch has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PatchFields {
    /// All fields, as clients of the protocol expect
    #[default]
    Full,
    /// Only requestId, sequence, offset, mode, the text, and toolCallId for tool arguments; hello
    /// reports `lean-patches`
    Lean,
}

/// What the snapshot at the end of a run contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FinalSnapshot {
    /// The whole conversation
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
    /// Errors
    #[value(alias = "fatal")]
    Error,
    /// Warnings and errors
    #[default]
    Warn,
    /// Main events as well
    Info,
    /// Details as well
    Debug,
    /// Everything
    Trace,
}

fn extensions_help() -> String {
    let names = Extension::ALL.map(Extension::as_str).join(", ");
    format!(
        "Turn on extensions of the protocol: {names}; a client can do the same with an enable request"
    )
}

/// The names of the extensions, for completions.
fn extension_names() -> Vec<CompletionCandidate> {
    Extension::ALL.map(|extension| CompletionCandidate::new(extension.as_str())).into()
}

/// The extension of that name.
pub(super) fn extension(name: &str) -> Result<Extension, String> {
    // The events of values in answers have a word of their own in `hello`.
    if name.trim() == EXTRACT {
        return Ok(Extension::Structured);
    }
    Extension::named(name.trim()).ok_or_else(|| {
        let known = Extension::ALL.map(Extension::as_str).join(", ");
        format!("there is no such extension; name some of {known}")
    })
}
