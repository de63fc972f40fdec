//! Gets a command ready to be served: reads what it names, and decides what is asked and what is
//! printed. That may wait for standard input or a named pipe, and so is done in a thread of its
//! own, while the process listens to signals.

mod command;
mod history;
mod shown;
mod text;

use crate::chat::transcript::Preamble;
use crate::cli::{Cli, ExecArgs, RpcArgs, Wanted};
use crate::command::{Rendered, is_stdin};
use crate::config::{self, Asked, Once, Source};
use crate::log::{self, Flush};
use crate::server::{Settings, Signals};
use crate::session::Signal;
use crate::threads;
use anyhow::{Context, Result, anyhow};
use shown::{Unasked, shown};
use std::ffi::OsString;
use std::fs::File;
use tokio::sync::oneshot;

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
    Wrong(Wanted, clap::Error),
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
    pub wanted: Wanted,
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
    pub fn wanted(&self) -> Wanted {
        match self {
            Self::Rpc(args) => Wanted { command: "rpc", mode: args.output.mode() },
            Self::Exec(args) => Wanted { command: "exec", mode: args.output.mode_of_errors() },
            Self::RunCommand(words) => Cli::guess(words, None),
            Self::Wrong(wanted, _) => *wanted,
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
    let wanted = job.wanted();
    match job {
        Job::Rpc(args) => {
            let reads = args.session.history.is_some();
            let work = move || rpc(args, &terminal).map_err(|reason| Refusal { wanted, reason });
            // Where it reads nothing it is not worth a thread.
            if reads { in_thread(signals, wanted, work).await } else { work() }
        }
        Job::Wrong(_, error) => Err(Refusal { wanted, reason: Reason::Usage(error) }),
        Job::Exec(args) => {
            let work = move || exec(args, terminal).map_err(|reason| Refusal { wanted, reason });
            in_thread(signals, wanted, work).await
        }
        Job::RunCommand(words) => {
            in_thread(signals, wanted, move || command::run(&words, terminal)).await
        }
    }
}

/// Does `work`, unless a signal comes first.
async fn in_thread(
    signals: &mut Signals,
    wanted: Wanted,
    work: impl FnOnce() -> Result<Prepared, Refusal> + Send + 'static,
) -> Result<Prepared, Refusal> {
    let refuse = |reason| Err(Refusal { wanted, reason });
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
        return Ok(Source::Known(read()?));
    }
    let (done, prompt) = oneshot::channel();
    let work = move || {
        let prompt = read().and_then(config::prompt);
        // Whoever was interrupted does not want to know.
        drop(done.send(prompt.map_err(|error| config::trouble(&error))));
    };
    threads::spawn("prompt", work)?;
    Ok(Source::Awaited(prompt))
}

fn exec(args: ExecArgs, terminal: Terminal) -> Result<Prepared, Reason> {
    let is_shown = terminal.is_shown;
    let mode = args.output.mode()?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    let history = history::read(args.session.history.as_deref())?;
    let is_needed_now = mode.reads_stdin() || args.print_prompt;
    let prompt = match (args.prompt, args.prompt_file) {
        (Some(prompt), _) if prompt != "-" => Source::Known(prompt),
        (None, Some(path)) if !is_stdin(&path) => later(is_needed_now, move || {
            text::from_file(&path, text::PROMPT_BYTES_MAX).context("--prompt-file")
        })?,
        // Standard input belongs to the requests, or to a person who waits for something else.
        (None, None) if mode.reads_stdin() => Source::default(),
        (None, None) if terminal.is_typed => {
            return Err(anyhow!(
                "there is no prompt; write it behind `exec`, name a file with --prompt-file, or \
                 pipe it in"
            )
            .into());
        }
        (_, _) if mode.reads_stdin() => {
            return Err(anyhow!(
                "standard input can't hold both the prompt and the requests; write the prompt \
                 behind `exec`, or name a file with --prompt-file"
            )
            .into());
        }
        (_, _) => later(is_needed_now, move || text::from_stdin(terminal.stdin))?,
    };
    if let (true, Source::Known(prompt)) = (args.print_prompt, &prompt) {
        let system = args.session.system;
        let rendered = Rendered { system, messages: history, prompt: prompt.clone() };
        let session_id = args.session.session_id.as_deref();
        let unasked = Unasked { command: "exec", mode, session_id };
        return Ok(Prepared::Print(shown(&rendered, &unasked)?));
    }
    let preamble = Preamble { system: None, said: history::said(history) };
    let asked = Asked { preamble, prompt, name: "exec".to_owned(), ..Asked::default() };
    let once = Once { command: "exec", mode, is_shown, asked };
    let settings = config::once(once, args.session)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}
