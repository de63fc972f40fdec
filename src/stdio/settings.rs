//! How a server is to run, and how it ends.

use super::{DebugFile, Progress, UnreadInput};
use crate::engine::Engine;
use crate::output::Format;
use crate::protocol::wire::{ClientError, Prompt};
use crate::session::{Rules, Signal};
use crate::support::fail_point::Plan;
use tokio::sync::oneshot;

/// Where the requests of a session come from.
#[derive(Debug)]
pub enum Requests {
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

/// How a server is to run.
#[derive(Debug)]
pub struct Settings {
    /// How the session behaves.
    pub rules: Rules,
    /// Who answers.
    pub engine: Engine,
    /// What `hello` says the process can do.
    pub capabilities: Vec<String>,
    /// What is asked.
    pub requests: Requests,
    /// What standard output is made of.
    pub format: Format,
    /// What a person sees until the answer comes.
    pub progress: Option<Progress>,
    /// Where frames are copied to.
    pub debug_file: Option<DebugFile>,
    /// Chance, for the ids of the session.
    pub seed: u128,
    /// What a person should know, for the log.
    pub notices: Vec<&'static str>,
    /// Standard input, if the run leaves it alone.
    pub unread: Option<UnreadInput>,
    /// A fault to run into.
    pub faults: Plan,
}

/// How a process ends.
#[derive(Debug)]
pub struct Finish {
    /// Its status.
    pub status: u8,
    /// What went wrong with the only request, for a person.
    pub complaint: Option<String>,
}
