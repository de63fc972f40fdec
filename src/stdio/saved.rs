//! The file that gets the last message of a single run.

use crate::session::ExitCode;
use crate::support::files;
use crate::support::terminal::escape_control;
use crate::support::threads;
use std::io;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// The file of the last message.
#[derive(Debug)]
pub(crate) struct SavedMessage {
    path: PathBuf,
}

impl SavedMessage {
    /// The message for the file at `path`.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes the message of a run that has finished to the file, at once, if the process ends with a `code` of an
    /// answer, whole or in part. An answer without text replaces nothing: the file may be that of the prompt. In a
    /// thread: its disk may be slow.
    ///
    /// # Errors
    /// If it can't be written, with a message for people; the file is then as it was.
    pub(super) async fn write(self, code: ExitCode, message: Option<String>) -> Result<(), String> {
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
        // A run that was stopped, as when nobody reads its output any more, has no message.
        let Some(mut message) = message.filter(|_| is_answered) else { return Ok(()) };
        let Self { path } = self;
        if message.is_empty() {
            let path = escape_control(&path.display().to_string());
            tracing::warn!("--save: the answer has no text, so {path} is left as it is");
            return Ok(());
        }
        if !message.ends_with('\n') {
            message.push('\n');
        }
        let (done, written) = oneshot::channel();
        let file = path.clone();
        // Nobody waits for it after a signal.
        let write = move || drop(done.send(files::replace(&file, message.as_bytes())));
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
