//! From a command that was read to the status of the process: gets it ready, serves it, and tells
//! a person what went wrong.

use crate::cli::Cli;
use crate::config;
use crate::log;
use crate::prepare::{Job, Prepared, Reason, Refusal, Terminal, prepare};
use crate::server::{self, DebugFile, Finish, Requests, Signals, Stdio};
use crate::session::ExitCode;
use crate::terminal::{self, harmless};
use anyhow::{Context, Result, anyhow};
use std::io::{self, IsTerminal, Write};
use std::thread;
use tokio::runtime;
use tokio::sync::oneshot;

/// Does `job`; gives the status of the process.
pub fn run(job: Job) -> u8 {
    // First of all, so that not even a file that is named on the command line can be the reader's.
    let served = Stdio::take()
        .context("standard input or output can't be used")
        .and_then(|stdio| serve(job, stdio));
    let Finish { status, complaint } = served.unwrap_or_else(|error| Finish {
        status: ExitCode::Internal.number(),
        complaint: Some(format!("{error:#}")),
    });
    if let Some(complaint) = complaint {
        complain(&format!("duologue: {complaint}\n"));
    }
    status
}

/// Prints what clap has to say when help, or the version, is asked for.
pub fn help(help: &clap::Error) -> u8 {
    let text = styled(help, &io::stdout());
    finished(io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())).status
}

fn serve(job: Job, stdio: Stdio) -> Result<Finish> {
    std::panic::set_hook(Box::new(log::defect));
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let finish = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let terminal = Terminal {
            stdin: stdio.input.try_clone()?,
            is_typed: stdio.input.is_terminal(),
            is_shown: stdio.output.is_terminal(),
        };
        match prepare(job, terminal, &mut signals).await {
            Ok(Prepared::Serve(settings, _flush_at_end)) => {
                Ok(server::serve(stdio, signals, *settings).await?)
            }
            Ok(Prepared::Print(text)) => print(stdio, &mut signals, text).await,
            Err(refusal) => refuse(refusal, stdio, signals).await,
        }
    });
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    finish
}

/// Tells a person why nothing is asked, and whoever reads standard output in its own form.
async fn refuse(refusal: Refusal, stdio: Stdio, mut signals: Signals) -> Result<Finish> {
    let requests = match refusal.reason {
        Reason::Usage(help) if !help.use_stderr() => {
            let text = styled(&help, &stdio.output);
            return print(stdio, &mut signals, text).await;
        }
        Reason::Usage(error) => {
            complain(&styled(&error, &io::stderr()));
            Requests::Refused(config::trouble(&anyhow!(plain(&error))))
        }
        Reason::Wrong(error) => {
            complain(&format!("duologue: {}\n", harmless(&format!("{error:#}"))));
            Requests::Refused(config::trouble(&error))
        }
        Reason::Defect => {
            let trouble = config::defect();
            complain(&format!("duologue: {}\n", trouble.message));
            Requests::Refused(trouble)
        }
        Reason::Interrupted(signal) => {
            complain(&format!("duologue: the process was ended by {signal}\n"));
            Requests::Interrupted(signal)
        }
    };
    let mut settings = config::refused(refusal.wanted, requests);
    // What an earlier run left there must not pass for this one's. That the file can't be made may
    // be the very thing that is told.
    let words: Vec<_> = std::env::args_os().collect();
    let path = Cli::guess_debug_file(&words);
    settings.debug_file = path.and_then(|path| DebugFile::create(&path).ok());
    Ok(server::serve(stdio, signals, settings).await?)
}

/// Prints all there is to be printed. The reader may take its time; a signal ends the wait.
async fn print(stdio: Stdio, signals: &mut Signals, text: String) -> Result<Finish> {
    let (written, outcome) = oneshot::channel();
    let mut output = stdio.output;
    // Whoever was interrupted does not want to know.
    let write = move || drop(written.send(output.write_all(text.as_bytes())));
    thread::Builder::new().name("print".to_owned()).spawn(write)?;
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
        // Whoever asked has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Finish { status: ExitCode::Ok.number(), complaint: None }
        }
        Err(error) => Finish {
            status: ExitCode::OutputFailed.number(),
            complaint: Some(format!("standard output can't be written: {error}")),
        },
    }
}

/// What clap has to say, in colour where somebody sees it.
fn styled(error: &clap::Error, to: &impl IsTerminal) -> String {
    let text = error.render();
    if to.is_terminal() && terminal::has_colour() {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

/// What clap has to say of an error, without what is for people at a terminal.
fn plain(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let is_about_error =
        |part: &&str| !part.starts_with("Usage:") && !part.starts_with("For more information");
    let parts = text.trim_start_matches("error: ").split("\n\n").filter(is_about_error);
    let parts = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join("; ")
}

fn complain(text: &str) {
    // There is no one else to tell if standard error is gone as well.
    drop(io::stderr().write_all(text.as_bytes()));
}
