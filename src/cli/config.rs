//! Turns options and environment variables into settings.

mod capabilities;
pub(crate) mod chat;
pub(crate) mod engine;
mod engines;
mod format;
pub(crate) mod profile;
mod store;

use crate::chat::patch::{PatchFields, PatchMode, Patches};
use crate::chat::transcript::{HistoryMessage, Preamble};
use crate::cli::answers::AnswerSchema;
use crate::cli::session::ForeignArgs;
use crate::cli::tools::guard;
use crate::cli::{self, CommandMode, Mode, RpcArgs, SessionArgs};
use crate::engine::echo::Echo;
use crate::engine::{Engine, ErrorClass};
use crate::extract::ResponseType;
use crate::host::HostSettings;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Extension, Prompt, Submit};
use crate::protocol::wire::{ClientError, Code};
use crate::session::{
    Extraction, ExtractionReport, FinalSnapshot, LogRules, OnBusy, Retention, Rules, SessionMode,
    ToolRules,
};
use crate::stdio::{
    self, AwaitedPrompt, DebugFile, Progress, Requests, Settings, Shown, UnreadInput,
};
#[cfg(debug_assertions)]
use crate::support::fail_point::Place;
use crate::support::fail_point::Plan as Faults;
use crate::support::terminal::escape_control;
use crate::tool::servers::ToolServers;
use anyhow::{Context, Result, ensure};
use capabilities::{capabilities, capabilities_of_nobody};
use engines::{Chosen, choose};
pub(crate) use format::format_of_prompt;
use format::{RunFacts, format};
use std::collections::BTreeSet;
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
    /// Images and files that go with it, read already.
    pub attachments: Vec<Attachment>,
    /// What to extract from the answer.
    pub response: ResponseType,
    /// The schema that extracted values must match.
    pub schema: Option<AnswerSchema>,
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
pub(crate) fn once(once: Once, mut session: SessionArgs) -> Result<Settings> {
    let Once { command, mode, is_shown, mut request, unread } = once;
    ensure!(
        !matches!(mode, Mode::Objects { .. }) || request.response != ResponseType::Text,
        "--output objects prints what a response-type finds in the answer, and there is none; \
         give the command file a `response-type` of json or jsonl"
    );
    let attachments = std::mem::take(&mut request.attachments);
    let has_attachments = !attachments.is_empty();
    let requests = match std::mem::take(&mut request.prompt) {
        Source::Text(prompt) if mode.reads_stdin() => {
            if !prompt.trim().is_empty() {
                request.preamble.history.push(HistoryMessage::ByUser(prompt));
            }
            stdin(&session)?
        }
        Source::Text(text) => Requests::Once(Submit { attachments, ..Submit::new(prompt(text)?) }),
        Source::Nothing if mode.reads_stdin() => stdin(&session)?,
        Source::Nothing => Requests::Once(Submit { attachments, ..Submit::new(Prompt::nothing()) }),
        Source::Awaited(prompt) => Requests::Awaited(AwaitedPrompt { prompt, attachments }),
    };
    // The option that an extension belongs to turns it on.
    session.extensions.extend(has_attachments.then_some(Extension::Attachments));
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
        format: format(mode, (ResponseType::Text, false), RunFacts::of_nobody(command)),
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
        let Chosen { engines, profile, notices } = choose(&self.session, self.mode.session_mode())?;
        warn_of_foreign(&self.session.foreign);
        let (store, session) = store(&self.session)?;
        // Before the debug file is truncated: a wrong option changes no file.
        let tools = self.session.tools.settings(self.mode.session_mode(), &profile.tools)?;
        let prices = self.session.answers.prices()?;
        let debug_file = debug_file(&self.session)?;
        let extraction = self.extraction();
        let Self { command, mode, session: args, request } = self;
        // The debug file holds all frames; and after tool calls, or to repair its answer, the model is
        // sent its own words.
        let is_sent_again = !tools.servers.is_empty() || args.answers.repair > 0;
        let is_kept = mode.is_protocol() || debug_file.is_some() || is_sent_again;
        let system = request.preamble.system.or(not_blank(args.system.clone()));
        let system = system.or(profile.system);
        let engine = engines.initial();
        let holds_text = args.answers.repair > 0 && request.response == ResponseType::Json;
        let format = format(
            mode,
            (request.response, holds_text),
            RunFacts::new(command, request.name, engine),
        );
        for warning in &tools.warnings {
            tracing::warn!("--mcp-config: {}", escape_control(warning));
        }
        let capabilities = capabilities(mode, &args, engine, extraction.as_ref());
        let mut host = HostSettings::new(engines);
        host.capabilities = capabilities;
        host.rules = Rules {
            mode: mode.session_mode(),
            keep: if is_kept { Retention::Everything } else { Retention::Nothing },
            session,
            preamble: Preamble { system, history: request.preamble.history },
            extraction,
            on_busy: args.on_busy.into(),
            // The other formats join the pieces themselves.
            patches: match mode.is_protocol() {
                true => Patches { mode: args.patch_mode.into(), fields: args.patch_fields.into() },
                false => Patches::default(),
            },
            final_snapshot: match args.final_snapshot {
                Some(typed) => typed.into(),
                // Only a client of the protocol sees it, and how long it is.
                None if mode.is_protocol() => FinalSnapshot::FullUntilLong,
                None => FinalSnapshot::Full,
            },
            extensions: extensions(mode, &args),
            prices,
            repairs: args.answers.repair,
            log: LogRules {
                backend_events: args.store.backend_events && mode.is_protocol(),
                ..LogRules::default()
            },
            tools: ToolRules::new(tools.rules, &tools.limits),
            ..Rules::default()
        };
        if !tools.servers.is_empty() {
            host.servers = ToolServers::new(tools.servers, tools.limits, guard());
        }
        host.store = store;
        host.faults = faults();
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
            schema: request.schema.as_ref().map(|schema| schema.compiled.clone()),
            report,
            // In JSON Lines the schema is that of a line, which no provider knows.
            response_schema: match request.response {
                ResponseType::Json => {
                    request.schema.as_ref().and_then(|it| it.for_provider.clone())
                }
                ResponseType::Text | ResponseType::Jsonl => None,
            },
            repairs: self.session.answers.repair,
        })
    }
}

/// The extensions that are on from the start. A document shows costs where a client would be shown
/// them.
fn extensions(mode: Mode, args: &SessionArgs) -> BTreeSet<Extension> {
    let shows_cost = matches!(mode, Mode::Json | Mode::Yaml) && args.answers.prices.is_some();
    let usage = shows_cost.then_some(Extension::Usage);
    args.extensions.iter().copied().chain(usage).collect()
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

/// Warns of options of Pinocchio that change nothing here.
fn warn_of_foreign(typed: &ForeignArgs) {
    let options = [
        ("--config-file", typed.config_file.is_some(), "write its settings as a profile"),
        ("--log-to-stdout", typed.log_to_stdout, "standard output is for frames; see --log-file"),
        ("--log-format", typed.log_format.is_some(), "the log is text"),
        ("--with-caller", typed.with_caller, "the log has no places"),
        ("--ai-stream", typed.ai_stream.is_some(), "answers are always streamed"),
    ];
    for (option, _, instead) in options.into_iter().filter(|(_, is_typed, _)| *is_typed) {
        tracing::warn!("{option} is ignored: {instead}");
    }
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
