//! From a command that was read to the status of the process: gets it ready, serves it, and tells
//! a person what went wrong.

use crate::config;
use crate::log;
use crate::prepare::{Job, Prepared, Reason, Refusal, Terminal, prepare};
use crate::server::{self, Finish, Requests, Signals, Stdio};
use crate::session::ExitCode;
use anyhow::{Context, Result};
use std::io::{self, IsTerminal, Write};
use tokio::runtime;

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
            Ok(Prepared::Print(text)) => Ok(print(&stdio, &text)),
            Err(refusal) => refuse(refusal, stdio, signals).await,
        }
    });
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    finish
}

/// Tells a person why nothing is asked, and whoever reads standard output in its own form.
async fn refuse(refusal: Refusal, stdio: Stdio, signals: Signals) -> Result<Finish> {
    let requests = match refusal.reason {
        Reason::Usage(help) if !help.use_stderr() => {
            return Ok(print(&stdio, &styled(&help, &stdio.output)));
        }
        Reason::Usage(error) => {
            complain(&styled(&error, &io::stderr()));
            Requests::Refused(config::trouble(plain(&error)))
        }
        Reason::Wrong(error) => {
            complain(&format!("duologue: {error:#}\n"));
            Requests::Refused(config::trouble(format!("{error:#}")))
        }
        Reason::Interrupted(signal) => Requests::Interrupted(signal),
    };
    let settings = config::refused(refusal.command, refusal.mode, requests);
    Ok(server::serve(stdio, signals, settings).await?)
}

/// Prints all there is to be printed.
fn print(stdio: &Stdio, text: &str) -> Finish {
    match (&stdio.output).write_all(text.as_bytes()) {
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
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if to.is_terminal() && !is_plain { text.ansi().to_string() } else { text.to_string() }
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
