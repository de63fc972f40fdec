//! How the front end is to run.

use super::{Drawing, Progress, SavedMessage, TerminalApprovals, UnreadInput};
use crate::host::HostSettings;
use crate::output::Format;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Prompt, Submit};
use crate::protocol::wire::ClientError;
use crate::session::Signal;
use crate::transport::DebugFile;
use tokio::sync::oneshot;

/// Where the requests of a session come from.
#[derive(Debug)]
pub(crate) enum Requests {
    /// Standard input.
    Stdin {
        /// Bytes a line may have.
        line_bytes_max: usize,
    },
    /// One prompt.
    Once(Submit),
    /// The prompt is still being read.
    Awaited(AwaitedPrompt),
    /// There are no requests, because of this error.
    Refused(ClientError),
    /// There is no prompt, because a signal came before it was read.
    Interrupted(Signal),
}

/// A prompt that is still being read.
#[derive(Debug)]
pub(crate) struct AwaitedPrompt {
    /// The prompt. If reading it fails, its error is the answer.
    pub prompt: oneshot::Receiver<Result<Prompt, ClientError>>,
    /// What goes with it.
    pub attachments: Vec<Attachment>,
}

/// Settings of the front end.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How the conversation behaves, and which engine answers.
    pub host: HostSettings,
    /// The requests.
    pub requests: Requests,
    /// The format of standard output.
    pub format: Format,
    /// Draws the answer on a terminal, in place of the format.
    pub drawing: Option<Box<dyn Drawing>>,
    /// The file that gets the last message, if there is one.
    pub saved: Option<SavedMessage>,
    /// Asks the person at the terminal about tool calls.
    pub asking: Option<TerminalApprovals>,
    /// The progress line, if one is shown.
    pub progress: Option<Progress>,
    /// The file that frames are copied to.
    pub debug_file: Option<DebugFile>,
    /// Warnings for the log.
    pub notices: Vec<&'static str>,
    /// Standard input, if the run does not read it.
    pub unread: Option<UnreadInput>,
}
