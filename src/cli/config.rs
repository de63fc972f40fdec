//! Turns options and environment variables into settings.

mod capabilities;
mod engine;
mod format;
mod store;

use crate::chat::patch::{PatchFields, PatchMode, Patches};
use crate::chat::transcript::{HistoryMessage, Preamble};
use crate::cli::tools::guard;
use crate::cli::{self, CommandMode, Mode, RpcArgs, SessionArgs};
use crate::engine::echo::Echo;
use crate::engine::{Engine, ErrorClass};
use crate::extract::{ResponseType, Schema};
use crate::host::HostSettings;
use crate::protocol::command::Prompt;
use crate::protocol::wire::{ClientError, Code};
use crate::session::{
    Extraction, ExtractionReport, FinalSnapshot, LogRules, OnBusy, Retention, Rules, SessionMode,
    ToolRules,
};
use crate::stdio::{self, DebugFile, Progress, Requests, Settings, Shown, UnreadInput};
#[cfg(debug_assertions)]
use crate::support::fail_point::Place;
use crate::support::fail_point::Plan as Faults;
use crate::support::terminal::escape_control;
use crate::tool::servers::ToolServers;
use anyhow::{Context, Result, ensure};
use capabilities::{capabilities, capabilities_of_nobody};
use engine::engine;
pub(crate) use format::format_of_prompt;
use format::{RunFacts, format};
use store::store;
use tokio::sync::oneshot;

/// Shown when the program was started by hand.
const TERMINAL_READ: &str = "requests are read from this terminal, one JSON object a line, as in \
     {\"submit\":{\"prompt\":\"hello\"}}; Ctrl-D ends, --help explains more";

/// Settings of `duologue rpc`, which reads requests from a terminal or not. `history` is what was
/// said before. Opens the debug file, and looks for the session to continue; touches nothing else.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub(crate) fn rpc(
    args: RpcArgs,
    history: Vec<HistoryMessage>,
    is_terminal: bool,
) -> Result<Settings> {
    let (command, mode) = ("rpc", args.output.mode());
    let requests = stdin(&args.session)?;
    let preamble = Preamble { system: None, history };
    let request = PromptRequest { preamble, ..PromptRequest::default() };
    let plan = Plan { command, mode, session: args.session, request };
    let mut settings = plan.settings(requests)?;
    if is_terminal {
        settings.notices.insert(0, TERMINAL_READ);
    }
    Ok(settings)
}

/// A prompt, or where it will come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The prompt is known.
    Text(String),
    /// The prompt is still being read; what to report instead if that fails.
    Awaited(oneshot::Receiver<Result<Prompt, ClientError>>),
    /// There is no prompt: the model is called with the preceding messages alone.
    Nothing,
}

impl Default for Source {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The request of a single run.
#[derive(Debug, Default)]
pub(crate) struct PromptRequest {
    /// The messages before the prompt.
    pub preamble: Preamble,
    /// The prompt.
    pub prompt: Source,
    /// What to extract from the answer.
    pub response: ResponseType,
    /// The schema that extracted values must match.
    pub schema: Option<Schema>,
    /// Extracted values are also reported in protocol frames.
    pub reports_values: bool,
    /// The name of the command, for the line that names the format of its objects.
    pub name: String,
}

/// A command that runs one prompt.
#[derive(Debug)]
pub(crate) struct Once {
    /// Its name on the command line.
    pub command: &'static str,
    /// The output mode.
    pub mode: Mode,
    /// Standard output is a terminal.
    pub is_shown: bool,
    /// The request.
    pub request: PromptRequest,
    /// Standard input, if nothing was read from it and nothing will be.
    pub unread: Option<UnreadInput>,
}

/// Settings of a command that runs one prompt. Opens the debug file; does no other I/O.
///
/// # Errors
/// If an option, or the file it names, can't be used, or the prompt is blank.
pub(crate) fn once(once: Once, session: SessionArgs) -> Result<Settings> {
    let Once { command, mode, is_shown, mut request, unread } = once;
    ensure!(
        !matches!(mode, Mode::Objects { .. }) || request.response != ResponseType::Text,
        "--output objects prints what a response-type finds in the answer, and there is none; \
         give the command file a `response-type` of json or jsonl"
    );
    let requests = match std::mem::take(&mut request.prompt) {
        Source::Text(prompt) if mode.reads_stdin() => {
            if !prompt.trim().is_empty() {
                request.preamble.history.push(HistoryMessage::ByUser(prompt));
            }
            stdin(&session)?
        }
        Source::Text(text) => Requests::Once(prompt(text)?),
        Source::Nothing if mode.reads_stdin() => stdin(&session)?,
        Source::Nothing => Requests::Once(Prompt::nothing()),
        Source::Awaited(prompt) => Requests::Awaited(prompt),
    };
    let mut settings = Plan { command, mode, session, request }.settings(requests)?;
    settings.unread = unread.filter(|_| !mode.reads_stdin());
    settings.progress = match mode {
        Mode::Text if is_shown => Progress::for_person(Shown::Text),
        Mode::Json | Mode::Yaml if is_shown => Progress::for_person(Shown::Document),
        // What they print would mix with the line.
        Mode::Objects { .. } | Mode::JsonStream if is_shown => None,
        Mode::Text | Mode::Json | Mode::Yaml | Mode::Objects { .. } | Mode::JsonStream => {
            Progress::for_person(Shown::Nothing)
        }
        Mode::OneShot | Mode::Server | Mode::Frames => None,
    };
    Ok(settings)
}

/// Checks that the prompt in `text` is not blank.
///
/// # Errors
/// If it is blank.
pub(crate) fn prompt(text: String) -> Result<Prompt> {
    Ok(Prompt::new(text).ok_or(BlankPrompt)?)
}

/// Settings for reporting an error in the form that the reader expects, without running anything.
pub(crate) fn refused(command_mode: CommandMode, requests: Requests) -> Settings {
    let CommandMode { command, mode } = command_mode;
    Settings {
        host: HostSettings {
            rules: Rules { mode: mode.session_mode(), ..Rules::default() },
            capabilities: capabilities_of_nobody(mode),
            ..HostSettings::new(Engine::Echo(Echo::default()))
        },
        requests,
        format: format(mode, ResponseType::Text, RunFacts::of_nobody(command)),
        progress: None,
        debug_file: None,
        notices: Vec::new(),
        unread: None,
    }
}

/// The prompt is blank.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the prompt is blank, so there is nothing to answer; write a prompt")]
struct BlankPrompt;

/// The error that a client gets if nothing can be run because of `error`.
pub(crate) fn client_error(error: &anyhow::Error) -> ClientError {
    let message = format!("{error:#}");
    if error.is::<BlankPrompt>() {
        return ClientError {
            code: Code::EmptyPrompt,
            message,
            detail: String::new(),
            terminal: true,
        };
    }
    if stdio::is_shortage(error) {
        return stdio::unable(error);
    }
    let detail = format!("{}: {message}", ErrorClass::Config.as_str());
    ClientError { code: Code::EngineInitFailed, message, detail, terminal: true }
}

/// The error that a client gets if preparing the command panicked.
pub(crate) fn defect() -> ClientError {
    let message =
        "preparing the command failed because of a bug in this program, so nothing was run; please \
         report it"
            .to_owned();
    ClientError { code: Code::Internal, message, detail: String::new(), terminal: true }
}

/// A command as it was typed.
struct Plan {
    command: &'static str,
    mode: Mode,
    session: SessionArgs,
    request: PromptRequest,
}

impl Plan {
    fn settings(self, requests: Requests) -> Result<Settings> {
        let mut notices = Vec::new();
        let engine = engine(&self.session, &mut notices)?;
        let (store, session) = store(&self.session)?;
        // Before the debug file is truncated: a wrong option changes no file.
        let tools = self.session.tools.settings(self.mode.session_mode())?;
        let debug_file = debug_file(&self.session)?;
        let extraction = self.extraction();
        let Self { command, mode, session: args, request } = self;
        // The debug file holds all frames; and after tool calls the model is sent its own words.
        let is_kept = mode.is_protocol() || debug_file.is_some() || !tools.servers.is_empty();
        let system = request.preamble.system.or(not_blank(args.system.clone()));
        let format = format(mode, request.response, RunFacts::new(command, request.name, &engine));
        for warning in &tools.warnings {
            tracing::warn!("--mcp-config: {}", escape_control(warning));
        }
        let host = HostSettings {
            capabilities: capabilities(mode, &args, &engine, extraction.as_ref()),
            rules: Rules {
                mode: mode.session_mode(),
                keep: if is_kept { Retention::Everything } else { Retention::Nothing },
                session,
                preamble: Preamble { system, history: request.preamble.history },
                extraction,
                on_busy: args.on_busy.into(),
                // The other formats join the pieces themselves.
                patches: match mode.is_protocol() {
                    true => {
                        Patches { mode: args.patch_mode.into(), fields: args.patch_fields.into() }
                    }
                    false => Patches::default(),
                },
                final_snapshot: args.final_snapshot.into(),
                extensions: args.extensions.iter().copied().collect(),
                log: LogRules {
                    backend_events: args.store.backend_events && mode.is_protocol(),
                    ..LogRules::default()
                },
                tools: ToolRules::new(tools.rules, &tools.limits),
                ..Rules::default()
            },
            servers: ToolServers::new(tools.servers, tools.limits, guard()),
            store,
            faults: faults(),
            ..HostSettings::new(engine)
        };
        let (progress, unread) = (None, None);
        Ok(Settings { host, requests, format, progress, debug_file, notices, unread })
    }

    fn extraction(&self) -> Option<Extraction> {
        let request = &self.request;
        let report = match request.reports_values {
            true => ExtractionReport::Messages,
            false if self.mode.is_protocol() => ExtractionReport::Nothing,
            false => ExtractionReport::Text,
        };
        (request.response != ResponseType::Text).then(|| Extraction {
            response: request.response,
            schema: request.schema.clone(),
            report,
            response_schema: None,
            repairs: 0,
        })
    }
}

fn debug_file(args: &SessionArgs) -> Result<Option<DebugFile>> {
    let Some(path) = &args.debug_events_jsonl else { return Ok(None) };
    let file = DebugFile::open(path)
        .with_context(|| format!("--debug-events-jsonl: {} can't be written", path.display()))?;
    Ok(Some(file))
}

fn stdin(args: &SessionArgs) -> Result<Requests> {
    Ok(Requests::Stdin { line_bytes_max: usize::try_from(args.max_request_bytes)? })
}

/// The failure planted by a test: `<place>:<nth>`, as in `project:3`. Anything else plants none.
#[cfg(debug_assertions)]
fn faults() -> Faults {
    let plan = std::env::var("DUOLOGUE_FAULT").unwrap_or_default();
    let planted = plan
        .split_once(':')
        .and_then(|(place, nth)| Some(Faults::new(Place::named(place)?, nth.parse().ok()?)));
    planted.unwrap_or_default()
}

/// A release build has no planted failures.
#[cfg(not(debug_assertions))]
fn faults() -> Faults {
    Faults::default()
}

/// A variable that is set but empty counts as not set.
fn not_blank(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.trim().is_empty())
}

impl Mode {
    fn is_protocol(self) -> bool {
        matches!(self, Self::Server | Self::OneShot | Self::Frames)
    }

    /// Whether requests come from standard input.
    pub(crate) fn reads_stdin(self) -> bool {
        self.session_mode() == SessionMode::Conversation
    }

    fn session_mode(self) -> SessionMode {
        match self {
            Self::Server | Self::Frames => SessionMode::Conversation,
            Self::Text
            | Self::Json
            | Self::Yaml
            | Self::Objects { .. }
            | Self::OneShot
            | Self::JsonStream => SessionMode::OneShot,
        }
    }
}

impl From<cli::OnBusy> for OnBusy {
    fn from(typed: cli::OnBusy) -> Self {
        match typed {
            cli::OnBusy::Reject => Self::Reject,
            cli::OnBusy::Queue => Self::Queue,
        }
    }
}

impl From<cli::PatchMode> for PatchMode {
    fn from(typed: cli::PatchMode) -> Self {
        match typed {
            cli::PatchMode::Append => Self::Append,
            cli::PatchMode::Snapshot => Self::Snapshot,
        }
    }
}

impl From<cli::PatchFields> for PatchFields {
    fn from(typed: cli::PatchFields) -> Self {
        match typed {
            cli::PatchFields::Full => Self::Full,
            cli::PatchFields::Lean => Self::Lean,
        }
    }
}

impl From<cli::FinalSnapshot> for FinalSnapshot {
    fn from(typed: cli::FinalSnapshot) -> Self {
        match typed {
            cli::FinalSnapshot::Full => Self::Full,
            cli::FinalSnapshot::Turn => Self::Turn,
            cli::FinalSnapshot::None => Self::None,
        }
    }
}
