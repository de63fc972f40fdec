//! What the command line means: options and environment → settings, once.

use crate::chat::ui::PatchMode;
use crate::cli::{self, EngineName, RpcArgs};
use crate::engine::Engine;
use crate::engine::echo::Echo;
use crate::engine::openai::{self, OpenAi};
#[cfg(debug_assertions)]
use crate::fault::Place;
use crate::fault::Plan;
use crate::id::SessionId;
use crate::secret::Secret;
use crate::server::{DebugFile, Settings};
use crate::session::{FinalSnapshot, OnBusy, Rules};
use anyhow::{Context, Result, bail, ensure};
use std::env::VarError;
use std::time::Duration;

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

/// The extension that lets submits wait.
const QUEUE: &str = "queue";

/// Settings of `duologue rpc`, which reads requests from a terminal or not. Opens the debug file;
/// touches nothing else.
pub fn rpc(args: RpcArgs, is_terminal: bool) -> Result<Settings> {
    let mut notices = Vec::new();
    if is_terminal {
        notices.push(TERMINAL_READ);
    }
    let engine = engine(&args, &mut notices)?;
    let session = match &args.session_id {
        Some(id) => {
            let id = SessionId::new(id);
            ensure!(id.is_some(), "--session-id is blank; name the session or leave it out");
            id
        }
        None => None,
    };
    let capabilities = capabilities(&args, &engine);
    let debug_file = args.debug_events_jsonl.as_deref().map(|path| {
        DebugFile::create(path)
            .with_context(|| format!("--debug-events-jsonl: {} can't be written", path.display()))
    });
    Ok(Settings {
        rules: Rules {
            session,
            system: not_blank(args.system),
            on_busy: args.on_busy.into(),
            patch_mode: args.patch_mode.into(),
            final_snapshot: args.final_snapshot.into(),
        },
        engine,
        capabilities,
        line_bytes_max: usize::try_from(args.max_request_bytes)?,
        debug_file: debug_file.transpose()?,
        seed: uuid::Uuid::new_v4().as_u128(),
        notices,
        faults: faults(),
    })
}

fn engine(args: &RpcArgs, notices: &mut Vec<&'static str>) -> Result<Engine> {
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
fn faults() -> Plan {
    let plan = std::env::var("DUOLOGUE_FAULT").unwrap_or_default();
    let planted = plan
        .split_once(':')
        .and_then(|(place, nth)| Some(Plan::new(Place::named(place)?, nth.parse().ok()?)));
    planted.unwrap_or_default()
}

/// Nothing plants a fault in a release.
#[cfg(not(debug_assertions))]
fn faults() -> Plan {
    Plan::default()
}

/// A variable that is set to nothing says as much as one that is not set.
fn not_blank(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.trim().is_empty())
}

fn capabilities(args: &RpcArgs, engine: &Engine) -> Vec<String> {
    let extension = match args.on_busy {
        cli::OnBusy::Reject => None,
        cli::OnBusy::Queue => Some(QUEUE.to_owned()),
    };
    let settings = [
        format!("server-version={}", env!("CARGO_PKG_VERSION")),
        format!("engine={}", engine.name()),
        format!("model={}", engine.model()),
        format!("max-request-bytes={}", args.max_request_bytes),
    ];
    CAPABILITIES.map(str::to_owned).into_iter().chain(settings).chain(extension).collect()
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
