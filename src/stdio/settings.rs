//! How the front end is to run, and how it ends.

use super::{DebugFile, Progress, UnreadInput};
use crate::host::HostSettings;
use crate::output::Format;
use crate::protocol::command::Prompt;
use crate::protocol::wire::ClientError;
use crate::session::Signal;
use tokio::sync::oneshot;

/// Where the requests of a session come from.
#[derive(Debug)]
pub(crate) enum Requests {
    /// Standard input.
    Stdin {
        /// Bytes a line may have.
        line_bytes_max: usize,
    },
    /// There is one.
    Once(Prompt),
    /// There is one, which is still being read. What can't be asked is told instead.
    Awaited(oneshot::Receiver<Result<Prompt, ClientError>>),
    /// There is none, because of this.
    Refused(ClientError),
    /// There is none, because a signal came before it was known.
    Interrupted(Signal),
}

/// How the front end is to run.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How the conversation behaves, and which engine answers.
    pub host: HostSettings,
    /// What is asked.
    pub requests: Requests,
    /// What standard output is made of.
    pub format: Format,
    /// What a person sees until the answer comes.
    pub progress: Option<Progress>,
    /// Where frames are copied to.
    pub debug_file: Option<DebugFile>,
    /// What a person should know, for the log.
    pub notices: Vec<&'static str>,
    /// Standard input, if the run leaves it alone.
    pub unread: Option<UnreadInput>,
}

/// How a process ends.
#[derive(Debug)]
pub(crate) struct Finish {
    /// Its status.
    pub status: u8,
    /// What went wrong with the only request, for a person.
    pub complaint: Option<String>,
}
