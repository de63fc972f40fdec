//! Standard output and exit status of the commands around the protocol.

use super::{FOUND, LATER, OUTPUT, USAGE};
use crate::engine::RunError;
use crate::protocol::error_text::with_detail;
use crate::support::files;
use crate::support::stderr;
use crate::support::terminal::escape_control;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

/// Bytes buffered before they are written.
const WRITE_BYTES: usize = 64 * 1024;

/// Why a command fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The reader of standard output has gone, so the rest is not needed.
    #[error("standard output was closed by its reader")]
    Gone,
    /// Standard output can't be written.
    #[error("standard output could not be written: {0}; the output is incomplete")]
    Output(io::Error),
    /// Something named on the command line can't be used.
    #[error("{0}")]
    Usage(String),
    /// The store can't be read or written.
    #[error("{0}")]
    Store(String),
    /// The provider can't be reached, or replies with an error.
    #[error("{}", escape_control(&complaint(.0)))]
    Unanswered(RunError),
    /// A file given on the command line can't be written.
    #[error("{0}")]
    Unwritten(String),
}

/// An error of the provider, as a single run reports it.
pub(super) fn complaint(error: &RunError) -> String {
    with_detail(&error.message, &format!("{}: {}", error.class.as_str(), error.detail))
}

/// Standard output, buffered.
#[derive(Debug)]
pub(super) struct Out(BufWriter<Patient>);

/// Writes wait for a slow reader, even if the pipe is set to non-blocking.
#[derive(Debug)]
struct Patient(File);

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        files::write_all(&self.0, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    pub(super) fn new() -> Result<Self, Failure> {
        let file = io::stdout().as_fd().try_clone_to_owned().map_err(Failure::Output)?;
        Ok(Self(BufWriter::with_capacity(WRITE_BYTES, Patient(file.into()))))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(failure)
    }

    pub(super) fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.write(line.as_bytes())?;
        self.write(b"\n")
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(failure)
    }
}

fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe { Failure::Gone } else { Failure::Output(error) }
}

/// The exit status of a command; reports the failure, if any, on standard error.
pub(super) fn status(result: Result<u8, Failure>) -> u8 {
    let failure = match result {
        Ok(status) => return status,
        Err(failure) => failure,
    };
    let status = match &failure {
        Failure::Gone => return 0,
        Failure::Output(_) => OUTPUT,
        Failure::Unanswered(error) if error.class.may_pass(&error.detail) => LATER,
        Failure::Unanswered(_) => FOUND,
        Failure::Usage(_) | Failure::Store(_) | Failure::Unwritten(_) => USAGE,
    };
    message(&failure.to_string());
    status
}

/// Writes a message for people to standard error.
pub(super) fn message(text: &str) {
    stderr::message(&format!("duologue: {text}\n"));
}

/// Tells a person at a terminal why a list is empty. A program has asked for what there is, and gets nothing.
pub(super) fn nothing(why: impl FnOnce() -> String) {
    if io::stderr().is_terminal() {
        message(&escape_control(&why()));
    }
}
