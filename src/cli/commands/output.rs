//! Standard output as a tool writes it, and how a tool ends.

use super::{OUTPUT, USAGE};
use crate::support::files;
use crate::support::stderr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 * 1024;

/// Why a tool can't go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Nobody reads standard output any more, so that nobody needs the rest.
    #[error("nobody reads standard output")]
    Gone,
    /// Standard output can't be written.
    #[error("standard output could not be written: {0}; what was printed is not whole")]
    Output(io::Error),
    /// Something named on the command line can't be used.
    #[error("{0}")]
    Usage(String),
    /// A file that is to be made can't be written.
    #[error("{0}")]
    Unwritten(String),
}

/// Standard output, buffered.
#[derive(Debug)]
pub(super) struct Out(BufWriter<Patient>);

/// Waits for a reader that is slow, whatever the flags of the pipe.
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

/// The status of a tool, which is told to people if something is wrong.
pub(super) fn status(result: Result<u8, Failure>) -> u8 {
    let failure = match result {
        Ok(status) => return status,
        Err(failure) => failure,
    };
    let status = match &failure {
        Failure::Gone => return 0,
        Failure::Output(_) => OUTPUT,
        Failure::Usage(_) | Failure::Unwritten(_) => USAGE,
    };
    tell(&failure.to_string());
    status
}

/// Tells people something on standard error.
pub(super) fn tell(text: &str) {
    stderr::message(&format!("duologue: {text}\n"));
}
