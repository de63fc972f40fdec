//! Runs a command: prepares it, serves it, reports errors, and returns the exit status of the
//! process.

use crate::acp;
use crate::cli::CommandMode;
use crate::cli::config;
use crate::cli::log::Flush;
use crate::cli::prepare::{Job, Prepared, ReadyChat, Reason, Refusal, Terminal, Waits, prepare};
#[cfg(feature = "serve")]
use crate::serve;
use crate::session::ExitCode;
use crate::stdio::{self, Requests};
use crate::support::files::{self, FileId};
use crate::support::secret::without_userinfo;
use crate::support::stderr;
use crate::support::terminal::{self, escape_control};
use crate::support::threads;
use crate::transport::{self, Finish, Signals, Stdio};
use crate::tui;
use anyhow::{Context, Result, anyhow};
use rustix::io::Errno;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic::{self, catch_unwind};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::runtime::{self, EnterGuard, LocalOptions, LocalRuntime, Runtime};
use tokio::sync::oneshot;

/// Time limit for the reader of the last frames of a process that can't start.
const UNABLE_WRITE_MAX: Duration = Duration::from_secs(5);

/// Events of connections that are taken from the system at a time. A conversation has few.
const IO_EVENTS_MAX: usize = 64;

/// Runs `job`; returns the exit status of the process.
pub fn run(job: Job) -> u8 {
    let command_mode = job.command_mode();
    // First of all, so that no file named on the command line can get the descriptor of standard
    // output.
    let stdio = match Stdio::take() {
        Ok(stdio) => stdio,
        Err(error) => {
            let error = anyhow!(error).context("standard input or output can't be used");
            return unable(command_mode, rustix::stdio::stdout(), &error);
        }
    };
    let (executor, signals, terminal) = match resources(&job, &stdio) {
        Ok(resources) => resources,
        Err(error) => return unable(command_mode, &stdio.output, &error),
    };
    executor.run(serve(job, stdio, signals, terminal)).unwrap_or_else(|error| {
        stderr::message(&format!("duologue: {error:#}\n"));
        ExitCode::Internal.number()
    })
}

/// From here on a file that grows past the limit on its size is an error of the write, and a child's end has a
/// status, for commands that hold no conversation. They do without it if the system has no descriptor left for that.
pub fn take_signals_of_system() {
    let Ok(runtime) = runtime() else { return };
    let _inside = runtime.enter();
    transport::take_signals_of_system().ok();
}

/// Prints clap's text for help or the version.
pub fn help(help: &clap::Error) -> u8 {
    let text = styled(help, &io::stdout());
    let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    let Finish { status, complaint } = finished(written);
    complain(complaint);
    status
}

/// Resources needed by every command that holds a conversation or reads a prompt.
fn resources(job: &Job, stdio: &Stdio) -> Result<(Executor, Signals, Terminal)> {
    let executor = Executor::of(job).context("events can't be waited for")?;
    let inside = executor.enter();
    let signals = Signals::listen().context("signals can't be heard")?;
    drop(inside);
    let terminal = Terminal {
        stdin: stdio.input.try_clone().context("standard input can't be used")?,
        is_typed: stdio.input.is_terminal(),
        is_shown: stdio.output.is_terminal(),
        output: stdio.output.metadata().ok().as_ref().and_then(FileId::of),
    };
    Ok((executor, signals, terminal))
}

/// What runs a command.
enum Executor {
    /// On the thread of the process, which holds one conversation, or those of one person.
    Single(LocalRuntime),
    /// On a thread for each processor: many conversations.
    #[cfg(feature = "serve")]
    Parallel(Runtime),
}

impl Executor {
    fn of(job: &Job) -> io::Result<Self> {
        if job.is_parallel() { Self::parallel() } else { Self::single() }
    }

    fn single() -> io::Result<Self> {
        built(|| builder().build_local(LocalOptions::default())).map(Self::Single)
    }

    #[cfg(feature = "serve")]
    fn parallel() -> io::Result<Self> {
        runtime::Builder::new_multi_thread().enable_all().build().map(Self::Parallel)
    }

    #[cfg(not(feature = "serve"))]
    fn parallel() -> io::Result<Self> {
        Self::single()
    }

    fn enter(&self) -> EnterGuard<'_> {
        match self {
            Self::Single(runtime) => runtime.enter(),
            #[cfg(feature = "serve")]
            Self::Parallel(runtime) => runtime.enter(),
        }
    }

    /// Runs `work` to its end; what else is pending, such as the look-up of a name, does not delay it.
    fn run<T: 'static>(self, work: impl Future<Output = T> + 'static) -> T {
        match self {
            Self::Single(runtime) => {
                // A task of its own: each time that another task, such as a connection, wakes what the runtime
                // blocks on, the runtime asks the system for events first, a system call for every delta.
                let ended = runtime.block_on(runtime.spawn_local(work));
                runtime.shutdown_background();
                ended.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))
            }
            #[cfg(feature = "serve")]
            Self::Parallel(runtime) => {
                let ended = runtime.block_on(work);
                runtime.shutdown_background();
                ended
            }
        }
    }
}

/// The runtime that waits for I/O.
pub(crate) fn runtime() -> io::Result<Runtime> {
    built(|| builder().build())
}

/// What `build` has made. The library panics if some of its descriptors can't be opened.
fn built<R>(build: fn() -> io::Result<R>) -> io::Result<R> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let built = catch_unwind(build);
    panic::set_hook(hook);
    built.unwrap_or_else(|_| Err(Errno::MFILE.into()))
}

fn builder() -> runtime::Builder {
    let mut builder = runtime::Builder::new_current_thread();
    builder.max_io_events_per_tick(IO_EVENTS_MAX).enable_all();
    builder
}

/// Reports that the process can't start; returns its exit status.
fn unable(command_mode: CommandMode, output: impl AsFd, error: &anyhow::Error) -> u8 {
    let client_error = stdio::unable(error);
    complain(Some(client_error.message.clone()));
    let settings = config::refused(command_mode, Requests::Refused(client_error.clone()));
    let (frames, status) = stdio::refusal(settings, client_error);
    // If the frames are not read, the exit status still reports the error.
    files::write_until(output, &frames, Instant::now() + UNABLE_WRITE_MAX).ok();
    status
}

async fn serve(job: Job, stdio: Stdio, mut signals: Signals, terminal: Terminal) -> Result<u8> {
    let mut log = None;
    let mut waits = Waits { signals: &mut signals, output: &stdio.output };
    let finish = match prepare(job, terminal, &mut waits).await {
        Ok(Prepared::Serve(settings, flush)) => {
            log = flush;
            stdio::serve(stdio, &mut signals, settings).await
        }
        Ok(Prepared::Chat(mut ready)) => {
            log = ready.flush.take();
            chat(ready, &mut signals).await?
        }
        Ok(Prepared::Acp(services, flush)) => {
            log = flush;
            editor(stdio, &mut signals, services).await?
        }
        #[cfg(feature = "serve")]
        Ok(Prepared::Fleet(services, flush)) => {
            log = flush;
            Box::pin(serve::serve(stdio, &mut signals, *services)).await
        }
        Ok(Prepared::Print(text)) => print(stdio, &mut signals, text).await?,
        Err(refusal) => refused(refusal, stdio, &mut signals).await?,
    };
    complain(finish.complaint);
    flush(&mut signals, log.as_ref()).await;
    Ok(finish.status)
}

/// The event that ends the process.
type Ending<'a> = Pin<Box<dyn Future<Output = Result<Finish>> + 'a>>;

/// Holds a chat. Apart, as `refused`: what these need of the stack is much, and would be touched
/// before `hello`, a page at a time.
#[inline(never)]
fn chat<'a>(ready: Box<ReadyChat>, signals: &'a mut Signals) -> Ending<'a> {
    Box::pin(async move { Ok(tui::serve(ready.on_screen()?, signals).await) })
}

#[inline(never)]
fn editor<'a>(stdio: Stdio, signals: &'a mut Signals, services: Box<acp::Services>) -> Ending<'a> {
    Box::pin(async move { Ok(acp::serve(stdio, signals, *services).await) })
}

#[inline(never)]
fn refused<'a>(refusal: Refusal, stdio: Stdio, signals: &'a mut Signals) -> Ending<'a> {
    Box::pin(refuse(refusal, stdio, signals))
}

/// Waits until log and messages are written: no longer than the limit, or until a signal.
async fn flush(signals: &mut Signals, log: Option<&Flush>) {
    let stderr = stderr::queue();
    let logged = async {
        if let Some(log) = log {
            log.flushed().await;
        }
    };
    let written = async { tokio::join!(stderr.flushed(), logged) };
    tokio::select! {
        biased;
        _ = signals.next() => {}
        ((), ()) = written => {}
    }
    stderr.abandon();
    if let Some(log) = log {
        log.abandon();
    }
}

/// Reports why nothing is run: to a person, and to the reader of standard output in its own form.
async fn refuse(refusal: Refusal, stdio: Stdio, signals: &mut Signals) -> Result<Finish> {
    let requests = match refusal.reason {
        Reason::Usage(help) if !help.use_stderr() => {
            let text = styled(&help, &stdio.output);
            return print(stdio, signals, text).await;
        }
        Reason::Usage(error) => {
            stderr::message(&styled(&error, &io::stderr()));
            let why = anyhow!(plain(&error));
            Requests::Refused(config::usage_error(refusal.command_mode, &why))
        }
        Reason::Wrong(error) => {
            let client_error = config::client_error(&error);
            complain(Some(escape_control(&client_error.message)));
            Requests::Refused(client_error)
        }
        Reason::Defect => {
            let client_error = config::defect();
            complain(Some(client_error.message.clone()));
            Requests::Refused(client_error)
        }
        Reason::Interrupted(signal) => {
            complain(Some(format!("the process was ended by {signal}")));
            Requests::Interrupted(signal)
        }
        Reason::ReaderGone => return Ok(finished(Ok(()))),
    };
    let settings = config::refused(refusal.command_mode, requests);
    Ok(stdio::serve(stdio, signals, Box::new(settings)).await)
}

/// Prints the whole output. A slow reader is waited for; a signal ends the wait.
async fn print(stdio: Stdio, signals: &mut Signals, text: String) -> Result<Finish> {
    let (written, outcome) = oneshot::channel();
    let mut output = stdio.output;
    // An interrupted command reports no error.
    let write = move || drop(written.send(output.write_all(text.as_bytes())));
    threads::spawn("print", write)?;
    tokio::select! {
        biased;
        signal = signals.next() => {
            Ok(Finish { status: ExitCode::Interrupted(signal).number(), complaint: None })
        }
        outcome = outcome => Ok(finished(outcome?)),
    }
}

fn finished(written: io::Result<()>) -> Finish {
    match written {
        Ok(()) => Finish { status: ExitCode::Ok.number(), complaint: None },
        // The reader has closed standard output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Finish { status: ExitCode::Ok.number(), complaint: None }
        }
        Err(error) => Finish {
            status: ExitCode::OutputFailed.number(),
            complaint: Some(format!("standard output can't be written: {error}")),
        },
    }
}

/// Clap's text, in colour on a terminal.
fn styled(error: &clap::Error, to: &impl IsTerminal) -> String {
    let text = error.render();
    let text = if to.is_terminal() && terminal::has_colour() {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    // What was typed may be an address with a password; help has only placeholders.
    if error.use_stderr() { without_userinfo(&text) } else { text }
}

/// Clap's error text, without the parts meant for a terminal.
fn plain(error: &clap::Error) -> String {
    let text = without_userinfo(&error.render().to_string());
    let is_about_error =
        |part: &&str| !part.starts_with("Usage:") && !part.starts_with("For more information");
    let parts = text.trim_start_matches("error: ").split("\n\n").filter(is_about_error);
    let parts = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join("; ")
}

/// Reports an error on standard error.
fn complain(complaint: Option<String>) {
    if let Some(complaint) = complaint {
        stderr::message(&format!("duologue: {complaint}\n"));
    }
}
