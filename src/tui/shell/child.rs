//! The person's own editor, which has the terminal while it runs.

use super::files::PROMPT_BYTES_MAX;
use crate::support::files::read_limited;
use crate::support::terminal::escape_control;
use crate::tool::guard;
use crate::tui::model::EditorFailure;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::future::pending;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{self, Command};
use tokio::time::timeout;

/// The longest prompt that is read back, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The editor if no variable names one.
const USUAL_EDITOR: &str = "vi";

/// How long an editor may take to end when the chat ends.
const HANG_UP_TIME: Duration = Duration::from_secs(1);

/// An editor that runs.
pub(super) struct Child {
    process: process::Child,
    path: PathBuf,
    /// What it was given to edit.
    given: String,
}

/// The file of an editor that did not end before the chat.
pub(super) struct Left {
    pub(super) path: PathBuf,
    pub(super) saved: Saved,
}

/// What an editor has saved in its file.
pub(super) enum Saved {
    /// Nothing that the person has written there.
    Nothing,
    Text(String),
    /// Something that can't be read as a prompt.
    Unreadable,
}

impl Child {
    /// Starts the editor that `VISUAL` or `EDITOR` names with `text` in a file that only this user can
    /// read.
    ///
    /// # Errors
    /// If the file can't be made or the editor can't be started.
    pub(super) fn start(text: &str, terminal: (File, File)) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("duologue-{}.md", uuid::Uuid::new_v4()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        let (input, output) = terminal;
        let errors = output.try_clone()?;
        // A shell, because the variable may hold options.
        let mut command = Command::new("/bin/sh");
        let script = format!("{} \"$1\"", editor().to_string_lossy());
        command.args(["-c", &script, "sh"]).arg(&path);
        let process = command.stdin(Stdio::from(input)).stdout(output).stderr(errors).spawn();
        match process {
            Ok(process) => Ok(Self { process, path, given: text.to_owned() }),
            Err(error) => {
                fs::remove_file(&path).ok();
                Err(error)
            }
        }
    }

    /// The text, once the editor has ended with this status. The file stays if nobody has its text.
    fn text(self, status: io::Result<ExitStatus>) -> Result<String, EditorFailure> {
        let failure = match status {
            Ok(status) if status.success() => None,
            Ok(status) => {
                Some(format!("the editor has failed ({status}); the prompt is as it was"))
            }
            Err(error) => Some(format!("the editor can't be waited for: {error}")),
        };
        let path = escape_control(&self.path.display().to_string());
        let (why, saved) = match (failure, self.saved()) {
            (None, Ok(text)) => {
                fs::remove_file(&self.path).ok();
                return Ok(text);
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                (format!("what the editor wrote can't be read: {error}"), None)
            }
            (None, Err(error)) => {
                (format!("what the editor wrote can't be read: {error}; it is in {path}"), None)
            }
            // Older prompts have no longer one.
            (Some(why), Ok(text)) if self.is_new(&text) && text.len() > PROMPT_BYTES_MAX => {
                (format!("{why}; what was saved in the editor is in {path}"), None)
            }
            (Some(why), Ok(text)) if self.is_new(&text) => {
                fs::remove_file(&self.path).ok();
                (format!("{why}; the up key brings back what was saved in the editor"), Some(text))
            }
            (Some(why), Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                (format!("{why}; what was saved in the editor is in {path}"), None)
            }
            (Some(why), Ok(_) | Err(_)) => {
                fs::remove_file(&self.path).ok();
                (why, None)
            }
        };
        Err(EditorFailure { why, saved })
    }

    /// The text in the file.
    fn saved(&self) -> io::Result<String> {
        let (text, _) = read_limited(&self.path, TEXT_BYTES_MAX)?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Whether the person has written `text` in the editor.
    fn is_new(&self, text: &str) -> bool {
        text != self.given.trim_end_matches('\n') && !text.trim().is_empty()
    }

    /// The chat ends while the editor runs: the editor gets SIGHUP, as if its terminal were closed.
    pub(super) async fn hang_up(mut self) -> Left {
        if let Some(id) = self.process.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // The shell may wait for the editor, and would end without it.
            let editors = guard::descendants(id).unwrap_or_default();
            for process in editors.into_iter().chain([id]) {
                kill_process(process, Signal::HUP).ok();
            }
        }
        timeout(HANG_UP_TIME, self.process.wait()).await.ok();
        let saved = match self.saved() {
            Ok(text) if self.is_new(&text) => Saved::Text(text),
            Ok(_) => Saved::Nothing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Saved::Nothing,
            Err(_) => Saved::Unreadable,
        };
        Left { path: self.path, saved }
    }
}

impl Left {
    /// The text is elsewhere, or there is none.
    pub(super) fn remove(self) {
        fs::remove_file(&self.path).ok();
    }
}

/// Waits until the editor, if there is one, has ended; returns the text.
pub(super) async fn left(child: &mut Option<Child>) -> Result<String, EditorFailure> {
    let Some(running) = child else { return pending().await };
    let status = running.process.wait().await;
    match child.take() {
        Some(child) => child.text(status),
        None => pending().await,
    }
}

fn editor() -> OsString {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| USUAL_EDITOR.into())
}
