//! The file that gets the last message of a single run.

use crate::output::LastMessage;
use crate::protocol::wire::Frame;
use crate::session::ExitCode;
use crate::support::files;
use crate::support::threads;
use std::io;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// The last message, and its file.
#[derive(Debug)]
pub(crate) struct SavedMessage {
    path: PathBuf,
    message: LastMessage,
}

impl SavedMessage {
    /// The message for the file at `path`.
    pub(crate) fn new(path: PathBuf, message: LastMessage) -> Self {
        Self { path, message }
    }

    pub(super) fn take(&mut self, frame: &Frame) {
        self.message.frame(frame);
    }

    /// Writes the file, at once, if the run that ends with `code` was answered, as a whole or in part. In a
    /// thread: its disk may be slow.
    ///
    /// # Errors
    /// If it can't be written, with a message for people; the file is then as it was.
    pub(super) async fn write(self, code: ExitCode) -> Result<(), String> {
        let is_answered = match code {
            ExitCode::Ok | ExitCode::CutOff => true,
            ExitCode::RunFailed
            | ExitCode::TryLater
            | ExitCode::InputFailed
            | ExitCode::Usage
            | ExitCode::Internal
            | ExitCode::OutputFailed
            | ExitCode::Interrupted(_) => false,
        };
        if !is_answered {
            return Ok(());
        }
        let Self { path, message } = self;
        let (done, written) = oneshot::channel();
        let file = path.clone();
        // Nobody waits for it after a signal.
        let write = move || drop(done.send(files::replace(&file, message.text().as_bytes())));
        let written = match threads::spawn("save", write) {
            Ok(()) => written.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())),
            Err(error) => Err(io::Error::other(error)),
        };
        written.map_err(|error| {
            let path = path.display();
            format!("--save: {path} can't be written: {error}; the answer was printed alone")
        })
    }
}
