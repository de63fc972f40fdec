//! A front end in memory: a Rust program holds a conversation through method calls.

use super::{Effect, Effects, Host, HostSettings};
use crate::protocol::command::{Cancel, Command, Edit, Page, Prompt, Submit};
use crate::protocol::id::RequestId;
use crate::protocol::wire::Frame;
use crate::session::ExitCode;
use std::collections::VecDeque;
use tokio::task::yield_now;

/// Frames that may wait to be taken before requests are refused.
pub const FRAMES_WAITING_MAX: usize = 1024;

/// Frames that are returned before the other tasks of the thread are polled: an engine that never
/// waits must not delay the conversations beside it.
const FRAMES_AT_ONCE_MAX: usize = 16;

/// A conversation inside this process, with the same frames as over standard output.
///
/// It starts no task but those of tool servers ([`HostSettings::servers`]), and no thread but those of a store
/// ([`HostSettings::store`]) and those that read the files which requests name, if
/// [`HostSettings::files`] allows any. The engine runs while [`Conversation::next_frame`] is awaited,
/// on the tokio runtime (with its time and I/O drivers) of the task that awaits it, so a program
/// that leaves a run unattended also delays it. Dropping the conversation stops its run.
///
/// ```
/// use duologue::engine::echo::Echo;
/// use duologue::host::{HostSettings, memory::Conversation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut conversation = Conversation::start(HostSettings::new(Echo::default()));
/// conversation.submit("Hello")?;
/// conversation.shutdown()?;
/// while let Some(frame) = conversation.next_frame().await {
///     println!("{}", serde_json::to_string(&frame)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Conversation {
    host: Host,
    frames: VecDeque<Frame>,
    /// Frames returned since the other tasks were polled last.
    given: usize,
    exit: Option<ExitCode>,
}

/// Why a request was not taken. The conversation is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The prompt has nothing but white space.
    #[error("the prompt is blank, so there is nothing to answer")]
    BlankPrompt,
    /// [`FRAMES_WAITING_MAX`] frames wait, or as many requests as a session holds.
    #[error("too many frames or requests wait; take frames before the next request")]
    NoRoom,
    /// The conversation has ended.
    #[error("the conversation has ended")]
    Ended,
}

impl Conversation {
    /// Starts a conversation. Its first frame is `hello`.
    pub fn start(settings: HostSettings) -> Self {
        let (host, greeting) = Host::new(settings);
        Self { host, frames: greeting.into(), given: 0, exit: None }
    }

    /// Starts a run that answers `prompt`; returns the id that its frames carry. While another run
    /// is active, the session's `on_busy` rule applies: an error `session_busy`, or the prompt waits.
    ///
    /// # Errors
    /// If the prompt is blank, the conversation has ended, or too much waits.
    pub fn submit(&mut self, prompt: &str) -> Result<RequestId, RequestError> {
        let prompt = Prompt::new(prompt.to_owned()).ok_or(RequestError::BlankPrompt)?;
        self.request(Command::Submit(Submit::new(prompt)))
    }

    /// Stops the active run; its answer so far stays in the conversation.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn cancel(&mut self) -> Result<RequestId, RequestError> {
        self.request(Command::Cancel(Cancel::default()))
    }

    /// Asks for a frame with the state of the conversation.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn snapshot(&mut self) -> Result<RequestId, RequestError> {
        self.history(Page::default())
    }

    /// Asks for a frame with a part of the conversation, as what was changed after an event.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn history(&mut self, page: Page) -> Result<RequestId, RequestError> {
        self.request(Command::Snapshot(page))
    }

    /// Drops turns at the end of the conversation; returns the id that the frames carry, also those of
    /// the run that answers anew.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn edit(&mut self, edit: Edit) -> Result<RequestId, RequestError> {
        self.request(Command::Edit(edit))
    }

    /// Ends the conversation once the active run has ended.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn shutdown(&mut self) -> Result<RequestId, RequestError> {
        self.request(Command::Shutdown)
    }

    /// Waits for the next frame; `None` after the last. Waits for ever if no request is active.
    /// Cancel-safe.
    pub async fn next_frame(&mut self) -> Option<Frame> {
        if self.given >= FRAMES_AT_ONCE_MAX {
            self.given = 0;
            yield_now().await;
        }
        self.given += 1;
        while self.frames.is_empty() && self.exit.is_none() {
            let effects = self.host.next(true).await;
            self.perform(effects);
        }
        self.frames.pop_front()
    }

    /// Ends the conversation's tool servers, within a few seconds. Dropping the conversation ends them
    /// too, but nothing waits for that.
    pub async fn close(&mut self) {
        self.host.close().await;
    }

    /// The status that a process would end with, once the conversation has ended.
    pub fn status(&self) -> Option<ExitCode> {
        self.exit
    }

    /// Makes a request of any kind, as those of the extensions.
    ///
    /// # Errors
    /// If the conversation has ended or too much waits.
    pub fn request(&mut self, command: Command) -> Result<RequestId, RequestError> {
        if self.exit.is_some() {
            return Err(RequestError::Ended);
        }
        if self.frames.len() >= FRAMES_WAITING_MAX || !self.host.wants_input() {
            return Err(RequestError::NoRoom);
        }
        let (id, effects) = self.host.request(command);
        self.perform(effects);
        Ok(id)
    }

    fn perform(&mut self, effects: Effects) {
        for effect in effects.list {
            match effect {
                Effect::Frame(frame) => self.frames.push_back(frame),
                // Frames have no field for token counts; only output formats use them.
                Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
                Effect::Exit(code) | Effect::Abort(code) => self.exit = Some(code),
            }
        }
    }
}
