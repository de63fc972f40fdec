//! Turns options and environment variables into settings.

pub(crate) mod acp;
pub(crate) mod chat;
pub(crate) mod engine;
mod engines;
mod format;
mod hints;
pub(crate) mod missing;
mod plan;
mod printed;
pub(crate) mod profile;
mod request;
mod resume;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod store;
mod system;
mod typed;

use crate::cli::prepare::Person;
use crate::cli::{CommandMode, Mode, RUN, RUN_COMMAND, RpcArgs, SessionArgs, tips};
use crate::conversation::transcript::{HistoryMessage, Preamble};
use crate::engine::ErrorClass;
use crate::engine::echo::Echo;
use crate::extract::ResponseType;
use crate::host::HostSettings;
use crate::output::Shown;
use crate::protocol::command::{Extension, Prompt, Submit};
use crate::protocol::wire::{ClientError, Code};
use crate::session::{Rules, SessionMode};
use crate::stdio::{self, AwaitedPrompt, Progress, Requests, SavedMessage, Settings};
use anyhow::{Result, ensure};
pub(crate) use format::format_of_prompt;
use format::{RunFacts, format};
use plan::{Plan, capabilities_of_nobody};
pub(crate) use printed::printed_system;
pub(crate) use request::{Once, PromptRequest, Source};
use std::path::PathBuf;

/// Shown when the program was started by hand.
const TERMINAL_READ: &str = "requests are read from this terminal, one JSON object a line, as in \
     {\"submit\":{\"prompt\":\"hello\"}}; Ctrl-D ends, --help explains more";

/// Settings of `duologue rpc`, which reads requests from a terminal or not, and is started by a person at
/// a terminal or not. `history` is what was said before. Opens the debug file, and looks for the session to
/// continue; touches nothing else.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub(crate) fn rpc(
    args: RpcArgs,
    history: Vec<HistoryMessage>,
    (is_terminal, is_attended): (bool, bool),
) -> Result<Settings> {
    let (command, mode) = ("rpc", args.output.mode());
    let requests = stdin(&args.session)?;
    let preamble = Preamble { system: None, history };
    let request = PromptRequest { preamble, ..PromptRequest::default() };
    let (session, own_extensions) = (args.session, Vec::new());
    let has_client = true;
    let plan = Plan { command, mode, is_attended, has_client, session, own_extensions, request };
    let mut settings = plan.settings(requests)?;
    if is_terminal {
        settings.notices.insert(0, TERMINAL_READ);
    }
    Ok(settings)
}

/// Settings of a command that runs one prompt. Opens the debug file; does no other I/O.
///
/// # Errors
/// If an option, or the file it names, can't be used, or the prompt is blank.
pub(crate) fn once(once: Once, mut session: SessionArgs) -> Result<Settings> {
    let Once { command, mode, person, mut request, unread } = once;
    let Person { is_shown, is_piped, is_attended, drawing, asking, saved } = person;
    ensure!(
        !matches!(mode, Mode::Objects { .. }) || request.response != ResponseType::Text,
        "--output objects prints the JSON values in an answer, and nothing asks for such an answer; add \
         --schema FILE, or name a command file with a `response-type` of json or jsonl"
    );
    let repairs_lines = session.answers.repair > 0 && request.response == ResponseType::Jsonl;
    if repairs_lines && session.calls.typed.iter().any(|id| id == "repair") {
        tracing::warn!(
            "--repair changes nothing: it asks again for a document, and each line of JSON Lines counts by itself; \
             leave it out"
        );
    }
    let attachments = std::mem::take(&mut request.attachments);
    let has_resource = attachments.iter().any(|it| it.as_resource().is_some());
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
    session.extensions.extend(has_resource.then_some(Extension::Resources));
    // An answer that is to be JSON is no Markdown.
    let drawing = drawing.filter(|_| request.response == ResponseType::Text);
    let progress = progress(mode, drawing.is_some(), (is_shown, is_piped));
    let mut own_extensions = plan::extensions_of_document(mode);
    if progress.is_some() {
        own_extensions.extend([Extension::Heartbeats, Extension::ToolProgress]);
    }
    own_extensions.extend(asking.is_some().then_some(Extension::Approvals));
    let has_client = mode.reads_stdin() && mode.is_protocol();
    let plan = Plan { command, mode, is_attended, has_client, session, own_extensions, request };
    let mut settings = plan.settings(requests)?;
    settings.unread = unread.filter(|_| !mode.reads_stdin());
    settings.asking = asking;
    settings.drawing = drawing;
    settings.host.rules.keeps_last_message = saved.is_some();
    settings.saved = saved.map(SavedMessage::new);
    settings.progress = progress;
    Ok(settings)
}

/// The progress line of a single run, if there is one; `is_drawn`: its answer is drawn. A pipe's reader may write
/// what it reads to the terminal.
fn progress(mode: Mode, is_drawn: bool, (is_shown, is_piped): (bool, bool)) -> Option<Progress> {
    match mode {
        Mode::Text if is_drawn => Progress::for_person(stdio::Shown::Lines),
        Mode::Text if is_shown => Progress::for_person(stdio::Shown::Text),
        Mode::Text if is_piped => Progress::for_person(stdio::Shown::Piped),
        Mode::Json | Mode::Yaml if is_shown || is_piped => {
            Progress::for_person(stdio::Shown::Document)
        }
        // Their output would mix with the line.
        Mode::Objects { .. } | Mode::JsonStream if is_shown || is_piped => None,
        Mode::Text | Mode::Json | Mode::Yaml | Mode::Objects { .. } | Mode::JsonStream => {
            Progress::for_person(stdio::Shown::Nothing)
        }
        Mode::OneShot | Mode::Server | Mode::Frames => None,
    }
}

/// Checks that the prompt in `text` is not blank.
///
/// # Errors
/// If it is blank.
pub(crate) fn prompt(text: String) -> Result<Prompt> {
    Ok(Prompt::new(text).ok_or(NothingAsked::Prompt)?)
}

/// Settings for reporting an error in the form that the reader expects, without running anything.
pub(crate) fn refused(command_mode: CommandMode, requests: Requests) -> Settings {
    let CommandMode { command, mode } = command_mode;
    Settings {
        host: HostSettings {
            rules: Rules { mode: mode.session_mode(), ..Rules::default() },
            capabilities: capabilities_of_nobody(mode),
            ..HostSettings::new(Echo::default())
        },
        requests,
        format: format(mode, (ResponseType::Text, Shown::Pieces), RunFacts::of_nobody(command)),
        drawing: None,
        saved: None,
        asking: None,
        progress: None,
        debug_file: None,
        notices: Vec::new(),
        unread: None,
    }
}

/// What there should be text in, and is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NothingAsked {
    /// The prompt as a whole.
    #[error("the prompt is blank, so there is nothing to answer; write a prompt")]
    Prompt,
    /// Standard input, which the command line names.
    #[error(
        "standard input is empty, though it is to be part of the prompt, so nothing was asked; see why \
         the command that writes it printed nothing, or give --allow-empty to ask without it"
    )]
    StandardInput,
    /// The file of `--prompt-file`.
    #[error(
        "--prompt-file: {} is empty, so nothing was asked; write the prompt into it, or give \
         --allow-empty to ask without it",
        .0.display()
    )]
    File(PathBuf),
}

/// The error that a client gets if nothing can be run because of `error`.
pub(crate) fn client_error(error: &anyhow::Error) -> ClientError {
    let message = tips::with_variable(format!("{error:#}"));
    if error.is::<NothingAsked>() {
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

/// The error that the reader of standard output gets if the command line is wrong. A command that holds no
/// conversation has no engine.
pub(crate) fn usage_error(command_mode: CommandMode, why: &anyhow::Error) -> ClientError {
    let CommandMode { command, mode } = command_mode;
    let error = client_error(why);
    let holds = ["rpc", "exec", RUN_COMMAND, RUN, "chat", "acp", "serve"].contains(&command);
    if holds || mode.is_protocol() {
        return error;
    }
    ClientError { code: Code::Usage, detail: error.message.clone(), ..error }
}

/// The error that a client gets if preparing the command panicked.
pub(crate) fn defect() -> ClientError {
    let message =
        "preparing the command failed because of a bug in this program, so nothing was run; please \
         report it"
            .to_owned();
    ClientError { code: Code::Internal, message, detail: String::new(), terminal: true }
}

fn stdin(args: &SessionArgs) -> Result<Requests> {
    Ok(Requests::Stdin { line_bytes_max: usize::try_from(args.max_request_bytes)? })
}

/// A variable that is set but empty counts as not set.
fn not_blank(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.trim().is_empty())
}

impl Mode {
    pub(crate) fn is_protocol(self) -> bool {
        matches!(self, Self::Server | Self::OneShot | Self::Frames)
    }

    /// Whether requests come from standard input.
    pub(crate) fn reads_stdin(self) -> bool {
        self.session_mode() == SessionMode::Conversation
    }

    fn session_mode(self) -> SessionMode {
        let is_conversation = matches!(self, Self::Server | Self::Frames);
        if is_conversation { SessionMode::Conversation } else { SessionMode::OneShot }
    }
}
