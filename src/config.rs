//! What the command line means: options and environment → settings, once.

use crate::chat::transcript::{Preamble, Said};
use crate::chat::ui::PatchMode;
use crate::cli::{self, EngineName, Mode, RpcArgs, SessionArgs};
use crate::engine::echo::Echo;
use crate::engine::openai::{self, OpenAi};
use crate::engine::{Engine, ErrorClass};
use crate::extract::{ResponseType, Schema};
#[cfg(debug_assertions)]
use crate::fault::Place;
use crate::fault::Plan as Faults;
use crate::id::SessionId;
use crate::output::{Answer, Beginning, Envelope, Format, JsonStream, Layout, Objects, Text};
use crate::secret::Secret;
use crate::server::{DebugFile, Progress, Requests, Settings};
use crate::session::{Extraction, FinalSnapshot, Keep, Life, OnBusy, Rules, Telling};
use crate::wire::{Code, Prompt, Trouble};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use std::env::VarError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Variables that may hold the key of the openai engine; the first one that is set is used.
const KEY_VARIABLES: [&str; 2] = ["DUOLOGUE_API_KEY", "OPENAI_API_KEY"];

/// Variable that other programs read the base URL from; ours wins.
const COMMON_BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";

/// For whoever has configured nothing.
const ECHO_ANSWERS: &str = "no provider is configured, so the built-in echo engine answers; to talk to a model set \
     OPENAI_API_KEY, or --base-url and --model";

/// For whoever has started the program by hand.
const TERMINAL_READ: &str = "requests are read from this terminal, one JSON object a line, as in \
     {\"submit\":{\"prompt\":\"hello\"}}; Ctrl-D ends, --help tells more";

/// What a process that reads requests can do, in the protocol's words.
const CAPABILITIES: [&str; 7] =
    ["ui-events", "snapshot", "done", "stdin-rpc", "single-session", "multi-turn", "cancel"];

/// How many of them a single run can do.
const ONE_SHOT_CAPABILITIES: usize = 3;

/// The extension that lets submits wait.
const QUEUE: &str = "queue";

/// The extension that tells what is found in an answer.
pub(crate) const EXTRACT: &str = "extract";

/// Settings of `duologue rpc`, which reads requests from a terminal or not. Opens the debug file;
/// touches nothing else.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub fn rpc(args: RpcArgs, is_terminal: bool) -> Result<Settings> {
    let (command, mode) = ("rpc", args.mode());
    let requests = stdin(&args.session)?;
    let plan = Plan { command, mode, session: args.session, asked: Asked::default() };
    let mut settings = plan.settings(requests)?;
    if is_terminal {
        settings.notices.insert(0, TERMINAL_READ);
    }
    Ok(settings)
}

/// A prompt, or where it comes from.
#[derive(Debug)]
pub enum Source {
    /// It is known.
    Known(String),
    /// It is still being read; what is told instead if that fails.
    Awaited(oneshot::Receiver<Result<Prompt, Trouble>>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Known(String::new())
    }
}

/// What a single run asks.
#[derive(Debug, Default)]
pub struct Asked {
    /// What the model is told before the prompt.
    pub preamble: Preamble,
    /// The prompt.
    pub prompt: Source,
    /// What is made of the answer.
    pub response: ResponseType,
    /// What the values in it are to be like.
    pub schema: Option<Schema>,
    /// The protocol tells of the values as well.
    pub tells_values: bool,
    /// What the command is called, for the line that names the format of its objects.
    pub name: String,
}

/// A command that has a prompt of its own.
#[derive(Debug)]
pub struct Once {
    /// What is typed to run it.
    pub command: &'static str,
    /// What is printed.
    pub mode: Mode,
    /// Objects come without a line that names their format.
    pub no_preamble: bool,
    /// Standard output is a terminal.
    pub is_shown: bool,
    /// What is asked.
    pub asked: Asked,
}

/// Settings of a command that has a prompt of its own. Opens the debug file; touches nothing else.
///
/// # Errors
/// If an option, or the file it names, can't be used, or the prompt is blank.
pub fn once(once: Once, session: SessionArgs) -> Result<Settings> {
    let Once { command, mode, no_preamble, is_shown, mut asked } = once;
    ensure!(
        mode != Mode::Objects || asked.response != ResponseType::Text,
        "--output objects prints what a response-type finds in the answer, and there is none; \
         give the command file a `response-type` of json or jsonl"
    );
    let requests = match std::mem::take(&mut asked.prompt) {
        Source::Known(prompt) if mode.reads_stdin() => {
            if !prompt.trim().is_empty() {
                asked.preamble.said.push(Said::ByUser(prompt));
            }
            stdin(&session)?
        }
        Source::Known(text) => Requests::Once(prompt(text)?),
        Source::Awaited(prompt) => Requests::Awaited(prompt),
    };
    let mut settings = Plan { command, mode, session, asked }.settings(requests)?;
    if let Format::Objects(objects) = &mut settings.format {
        objects.has_preamble = !no_preamble;
    }
    settings.progress = match mode {
        Mode::Text => Progress::for_person(is_shown),
        Mode::Json | Mode::Yaml => Progress::for_person(false),
        // What they print would mix with the line.
        Mode::Objects | Mode::JsonStream if is_shown => None,
        Mode::Objects | Mode::JsonStream => Progress::for_person(false),
        Mode::OneShot | Mode::Server | Mode::Frames => None,
    };
    Ok(settings)
}

/// The prompt in `text`.
///
/// # Errors
/// If it is blank.
pub fn prompt(text: String) -> Result<Prompt> {
    Prompt::new(text)
        .context("the prompt is blank, so there is nothing to answer; write what to ask")
}

/// Settings for telling that nothing can be asked, in the form that the reader expects.
pub fn refused(command: &'static str, mode: Mode, requests: Requests) -> Settings {
    let life = mode.life();
    let engine = Engine::Echo(Echo::default());
    // Nobody was to answer yet.
    let beginning = Beginning { model: String::new(), provider: "", ..beginning(command, &engine) };
    let capabilities = words(mode).iter().copied().map(str::to_owned);
    let meta = Map::from_iter([("command".to_owned(), command.into())]);
    let known = Known { beginning, meta, name: command.to_owned() };
    let format = format(mode, ResponseType::Text, known);
    Settings {
        rules: Rules { life, ..Rules::default() },
        engine,
        capabilities: capabilities.chain([server_version()]).collect(),
        requests,
        format,
        progress: None,
        debug_file: None,
        seed: uuid::Uuid::new_v4().as_u128(),
        notices: Vec::new(),
        faults: Faults::default(),
    }
}

/// What a client is told if nothing can be asked.
pub fn trouble(reason: String) -> Trouble {
    Trouble {
        code: Code::EngineInitFailed,
        message: reason,
        detail: format!("{}:", ErrorClass::Config.as_str()),
        terminal: true,
    }
}

/// A command as it was typed.
struct Plan {
    command: &'static str,
    mode: Mode,
    session: SessionArgs,
    asked: Asked,
}

impl Plan {
    fn settings(self, requests: Requests) -> Result<Settings> {
        let Self { command, mode, session: args, asked } = self;
        let mut notices = Vec::new();
        let engine = engine(&args, &mut notices)?;
        let session = match &args.session_id {
            Some(id) => {
                let id = SessionId::new(id);
                ensure!(id.is_some(), "--session-id is blank; name the session or leave it out");
                id
            }
            None => None,
        };
        let mut capabilities = capabilities(mode, &args, &engine);
        let debug_file = args.debug_events_jsonl.as_deref().map(|path| {
            DebugFile::create(path).with_context(|| {
                format!("--debug-events-jsonl: {} can't be written", path.display())
            })
        });
        let debug_file = debug_file.transpose()?;
        let keep = match mode {
            Mode::Server | Mode::OneShot | Mode::Frames => Keep::Everything,
            // A copy of the frames is to be whole.
            _ if debug_file.is_some() => Keep::Everything,
            Mode::Text | Mode::Json | Mode::Yaml | Mode::Objects | Mode::JsonStream => {
                Keep::Nothing
            }
        };
        let patch_mode = match mode {
            Mode::Server | Mode::OneShot | Mode::Frames => args.patch_mode.into(),
            Mode::Text | Mode::Json | Mode::Yaml | Mode::Objects | Mode::JsonStream => {
                PatchMode::Append
            }
        };
        let telling = match asked.tells_values {
            true => Telling::Messages,
            false if mode.is_protocol() => Telling::Nothing,
            false => Telling::Text,
        };
        if asked.response != ResponseType::Text && telling != Telling::Nothing {
            capabilities.push(EXTRACT.to_owned());
        }
        let extraction = (asked.response != ResponseType::Text).then_some(Extraction {
            response: asked.response,
            schema: asked.schema,
            telling,
        });
        let system = asked.preamble.system.or(not_blank(args.system));
        let (beginning, meta) = (beginning(command, &engine), meta(command, &engine));
        Ok(Settings {
            rules: Rules {
                life: mode.life(),
                keep,
                session,
                preamble: Preamble { system, said: asked.preamble.said },
                extraction,
                on_busy: args.on_busy.into(),
                patch_mode,
                final_snapshot: args.final_snapshot.into(),
            },
            format: format(mode, asked.response, Known { beginning, meta, name: asked.name }),
            engine,
            capabilities,
            requests,
            progress: None,
            debug_file,
            seed: uuid::Uuid::new_v4().as_u128(),
            notices,
            faults: faults(),
        })
    }
}

fn stdin(args: &SessionArgs) -> Result<Requests> {
    Ok(Requests::Stdin { line_bytes_max: usize::try_from(args.max_request_bytes)? })
}

fn beginning(command: &'static str, engine: &Engine) -> Beginning {
    let folder = std::env::current_dir().unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Beginning {
        command,
        model: engine.model().to_owned(),
        provider: engine.name(),
        folder: folder.to_string_lossy().into_owned(),
        epoch_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
    }
}

fn meta(command: &str, engine: &Engine) -> Map<String, Value> {
    [("command", command), ("engine", engine.name()), ("model", engine.model())]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// What is known of a run before it begins.
struct Known {
    beginning: Beginning,
    meta: Map<String, Value>,
    name: String,
}

fn format(mode: Mode, response: ResponseType, known: Known) -> Format {
    let answer = match response {
        ResponseType::Text => Answer::Text(String::new()),
        ResponseType::Json => Answer::Document(None),
        ResponseType::Jsonl => Answer::Objects(Vec::new()),
    };
    let envelope =
        |layout, answer| Format::Envelope(Box::new(Envelope::new(layout, answer, known.meta)));
    match mode {
        Mode::Server | Mode::OneShot => Format::Protocol,
        Mode::Text => Format::Text(Text::default()),
        Mode::Json => envelope(Layout::Json, answer),
        Mode::Yaml => envelope(Layout::Yaml, answer),
        Mode::Frames => envelope(Layout::Json, Answer::Frames(Vec::new())),
        Mode::Objects => Format::Objects(Objects { schema: known.name, has_preamble: true }),
        Mode::JsonStream => Format::JsonStream(Box::new(JsonStream::new(known.beginning))),
    }
}

fn engine(args: &SessionArgs, notices: &mut Vec<&'static str>) -> Result<Engine> {
    let key = key()?;
    let common_base_url = variable(COMMON_BASE_URL_VARIABLE)?;
    let base_url = not_blank(args.base_url.clone()).or(not_blank(common_base_url));
    let model = not_blank(args.model.clone());
    let is_configured = key.is_some() || base_url.is_some() || model.is_some();
    let name = match args.engine {
        Some(name) => name,
        None if is_configured => EngineName::Openai,
        None => {
            notices.push(ECHO_ANSWERS);
            EngineName::Echo
        }
    };
    Ok(match name {
        EngineName::Echo => Engine::Echo(Echo {
            delay: Duration::from_millis(args.engines.echo_delay_ms),
            reasoning: args.engines.echo_reasoning,
            answer: args.engines.echo_answer.clone(),
        }),
        EngineName::Openai => Engine::OpenAi(OpenAi::new(openai::Settings {
            base_url: base_url.unwrap_or_else(|| openai::DEFAULT_BASE_URL.to_owned()),
            model,
            key,
            connect_timeout: Duration::from_millis(args.engines.connect_timeout_ms),
            idle_timeout: Duration::from_millis(args.engines.idle_timeout_ms),
            total_timeout: Duration::from_millis(args.engines.total_timeout_ms),
            retries: args.engines.retries,
        })),
    })
}

/// The key in the environment.
fn key() -> Result<Option<Secret>> {
    for name in KEY_VARIABLES {
        if let Some(key) = variable(name)?.as_deref().and_then(Secret::new) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// A variable that is no option. What it holds may be a secret, and is not shown.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{name} can't be used: it is not UTF-8"),
    }
}

/// The fault that a test has planted: `<place>:<nth>`, as in `project:3`. Anything else plants none.
#[cfg(debug_assertions)]
fn faults() -> Faults {
    let plan = std::env::var("DUOLOGUE_FAULT").unwrap_or_default();
    let planted = plan
        .split_once(':')
        .and_then(|(place, nth)| Some(Faults::new(Place::named(place)?, nth.parse().ok()?)));
    planted.unwrap_or_default()
}

/// Nothing plants a fault in a release.
#[cfg(not(debug_assertions))]
fn faults() -> Faults {
    Faults::default()
}

/// A variable that is set to nothing says as much as one that is not set.
fn not_blank(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.trim().is_empty())
}

fn capabilities(mode: Mode, args: &SessionArgs, engine: &Engine) -> Vec<String> {
    let extension = match args.on_busy {
        cli::OnBusy::Reject => None,
        cli::OnBusy::Queue => Some(QUEUE.to_owned()),
    };
    let settings = [
        server_version(),
        format!("engine={}", engine.name()),
        format!("model={}", engine.model()),
        format!("max-request-bytes={}", args.max_request_bytes),
    ];
    words(mode).iter().copied().map(str::to_owned).chain(settings).chain(extension).collect()
}

/// What a process can do, in the protocol's words.
fn words(mode: Mode) -> &'static [&'static str] {
    match mode.life() {
        Life::Conversation => &CAPABILITIES,
        Life::OneShot => &CAPABILITIES[..ONE_SHOT_CAPABILITIES],
    }
}

fn server_version() -> String {
    format!("server-version={}", env!("CARGO_PKG_VERSION"))
}

impl Mode {
    fn is_protocol(self) -> bool {
        matches!(self, Self::Server | Self::OneShot | Self::Frames)
    }

    /// Whether requests come from standard input.
    pub(crate) fn reads_stdin(self) -> bool {
        self.life() == Life::Conversation
    }

    fn life(self) -> Life {
        match self {
            Self::Server | Self::Frames => Life::Conversation,
            Self::Text
            | Self::Json
            | Self::Yaml
            | Self::Objects
            | Self::OneShot
            | Self::JsonStream => Life::OneShot,
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

impl From<cli::FinalSnapshot> for FinalSnapshot {
    fn from(typed: cli::FinalSnapshot) -> Self {
        match typed {
            cli::FinalSnapshot::Full => Self::Full,
            cli::FinalSnapshot::Turn => Self::Turn,
            cli::FinalSnapshot::None => Self::None,
        }
    }
}
