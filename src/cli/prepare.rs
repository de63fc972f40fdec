//! Gets a command ready to be served: reads what it names, and decides what is asked and what is
//! printed. That may wait for standard input or a named pipe, and so is done in a thread of its
//! own, while the process listens to signals.

mod command;
mod history;
mod inputs;
mod prompt;
mod shown;
mod text;

use crate::chat::transcript::Preamble;
use crate::cli::config::{self, Once, PromptRequest, Source};
use crate::cli::log::{self, Flush};
use crate::cli::{Cli, CommandMode, ExecArgs, Mode, RpcArgs};
use crate::command_file::Rendered;
use crate::session::Signal;
use crate::stdio::{Settings, Signals, UnreadInput};
use crate::support::threads;
use anyhow::{Result, bail};
use inputs::Inputs;
use prompt::Parts;
use shown::{Unasked, shown};
use std::ffi::OsString;
use std::fs::File;
use tokio::sync::oneshot;

/// For a person whose standard input holds data that is not read.
const UNREAD: &str = "standard input has data, and the prompt is asked without it; write - after the prompt to \
     add it, or redirect standard input from /dev/null";

/// A command that serves a conversation or a prompt.
#[derive(Debug)]
pub enum Job {
    /// `rpc`.
    Rpc(RpcArgs),
    /// `exec`.
    Exec(ExecArgs),
    /// `run-command`, whose words can be read once its file is.
    RunCommand(Vec<OsString>),
    /// Words that can't be read, and what their reader seems to expect.
    Wrong(CommandMode, clap::Error),
}

/// Standard input and output, as they were before they were made private.
#[derive(Debug)]
pub struct Terminal {
    /// What comes in.
    pub stdin: File,
    /// A person types it.
    pub is_typed: bool,
    /// A person sees what is printed.
    pub is_shown: bool,
}

/// A command that is ready.
#[derive(Debug)]
pub enum Prepared {
    /// To be served; the log ends when it is dropped.
    Serve(Box<Settings>, Option<Flush>),
    /// Nothing but this is to be printed.
    Print(String),
}

/// Why a command can't be served.
#[derive(Debug)]
pub struct Refusal {
    /// What was to be done, for whom.
    pub command_mode: CommandMode,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a command.
#[derive(Debug)]
pub enum Reason {
    /// The command line. Also a request for help, which is nothing wrong.
    Usage(clap::Error),
    /// What it says or names.
    Wrong(anyhow::Error),
    /// This program.
    Defect,
    /// A signal came first.
    Interrupted(Signal),
}

impl Job {
    /// What is to be done, for whom, as far as that is known before anything is read.
    pub fn command_mode(&self) -> CommandMode {
        match self {
            Self::Rpc(args) => CommandMode { command: "rpc", mode: args.output.mode() },
            Self::Exec(args) => CommandMode { command: "exec", mode: args.output.mode_of_errors() },
            Self::RunCommand(words) => Cli::guess(words, None),
            Self::Wrong(command_mode, _) => *command_mode,
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Reason {
    fn from(error: E) -> Self {
        match error.into().downcast() {
            Ok(usage) => Self::Usage(usage),
            Err(other) => Self::Wrong(other),
        }
    }
}

/// Gets `job` ready.
///
/// # Errors
/// If there is nothing to ask, with what is to be told of it.
pub async fn prepare(
    job: Job,
    terminal: Terminal,
    signals: &mut Signals,
) -> Result<Prepared, Refusal> {
    let command_mode = job.command_mode();
    match job {
        Job::Rpc(args) => {
            let reads = args.session.history.is_some();
            let work =
                move || rpc(args, &terminal).map_err(|reason| Refusal { command_mode, reason });
            // Where it reads nothing it is not worth a thread.
            if reads { in_thread(signals, command_mode, work).await } else { work() }
        }
        Job::Wrong(_, error) => Err(Refusal { command_mode, reason: Reason::Usage(error) }),
        Job::Exec(args) => {
            let work =
                move || exec(args, terminal).map_err(|reason| Refusal { command_mode, reason });
            in_thread(signals, command_mode, work).await
        }
        Job::RunCommand(words) => {
            in_thread(signals, command_mode, move || command::run(&words, terminal)).await
        }
    }
}

/// Does `work`, unless a signal comes first.
async fn in_thread(
    signals: &mut Signals,
    command_mode: CommandMode,
    work: impl FnOnce() -> Result<Prepared, Refusal> + Send + 'static,
) -> Result<Prepared, Refusal> {
    let refuse = |reason| Err(Refusal { command_mode, reason });
    let (ready, outcome) = oneshot::channel();
    // Whoever was interrupted does not want to know.
    let work = move || drop(ready.send(work()));
    if let Err(error) = threads::spawn("prepare", work) {
        return refuse(error.into());
    }
    tokio::select! {
        biased;
        signal = signals.next() => refuse(Reason::Interrupted(signal)),
        outcome = outcome => outcome.unwrap_or_else(|_| refuse(Reason::Defect)),
    }
}

fn rpc(args: RpcArgs, terminal: &Terminal) -> Result<Prepared, Reason> {
    Inputs::of(&args.session, &terminal.stdin).ensure_kept(&args.session)?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    let history = history::said(history::read(args.session.history.as_deref())?);
    let settings = config::rpc(args, history, terminal.is_typed)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

/// A prompt that is read behind the reader's back: whoever writes it may wait for `hello` first. As
/// context of a conversation, or to be printed, it is needed before that.
fn later(
    is_needed_now: bool,
    read: impl FnOnce() -> Result<String> + Send + 'static,
) -> Result<Source> {
    if is_needed_now {
        return Ok(Source::RunFacts(read()?));
    }
    let (done, prompt) = oneshot::channel();
    let work = move || {
        let prompt = read().and_then(config::prompt);
        // Whoever was interrupted does not want to know.
        drop(done.send(prompt.map_err(|error| config::client_error(&error))));
    };
    threads::spawn("prompt", work)?;
    Ok(Source::Awaited(prompt))
}

fn exec(args: ExecArgs, terminal: Terminal) -> Result<Prepared, Reason> {
    let is_shown = terminal.is_shown;
    let mode = args.output.mode()?;
    let mut inputs = Inputs::of(&args.session, &terminal.stdin);
    inputs.add("--prompt-file", args.prompt_file.as_deref());
    args.file.iter().for_each(|path| inputs.add("--file", Some(path)));
    inputs.ensure_kept(&args.session)?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    let history = history::read(args.session.history.as_deref())?;
    let parts = Parts::of(&args)?;
    let unread = (!parts.has_stdin()).then(|| terminal.stdin.try_clone()).transpose()?;
    let unread = unread.map(|stdin| UnreadInput::new(stdin, UNREAD));
    let prompt = source(&args, parts, mode, terminal)?;
    if let (true, Source::RunFacts(prompt)) = (args.print_prompt, &prompt) {
        let system = args.session.system;
        let rendered = Rendered { system, messages: history, prompt: prompt.clone() };
        let session_id = args.session.session_id.as_deref();
        let unasked = Unasked { command: "exec", mode, session_id, is_shown };
        return Ok(Prepared::Print(shown(&rendered, &unasked)?));
    }
    let preamble = Preamble { system: None, said: history::said(history) };
    let asked =
        PromptRequest { preamble, prompt, name: "exec".to_owned(), ..PromptRequest::default() };
    let once = Once { command: "exec", mode, is_shown, asked, unread };
    let settings = config::once(once, args.session)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

/// The prompt that `parts` of `args` make, or where it comes from.
fn source(args: &ExecArgs, parts: Parts, mode: Mode, terminal: Terminal) -> Result<Source> {
    let is_needed_now = mode.reads_stdin() || args.print_prompt;
    let Terminal { stdin, is_typed, .. } = terminal;
    if let Some(prompt) = parts.typed() {
        return Ok(Source::RunFacts(prompt.to_owned()));
    }
    let is_asked_for = args.prompt.is_some() || args.prompt_file.is_some();
    match (parts.has_stdin(), mode.reads_stdin()) {
        // Standard input belongs to the requests.
        (true, true) if !is_asked_for => Ok(Source::default()),
        (true, true) => bail!(
            "standard input can't hold both the prompt and the requests; write the prompt after \
             `exec`, or name a file with --prompt-file or --file"
        ),
        // A person at a terminal waits for something else.
        (true, false) if is_typed && !is_asked_for => bail!(
            "there is no prompt; write it after `exec`, name a file with --prompt-file, or pipe it \
             in"
        ),
        (_, _) => later(is_needed_now, move || parts.read(stdin)),
    }
}
