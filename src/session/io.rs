//! What goes into a session, what comes out of it, and how it can be told to behave.

use super::{ExitCode, Extraction, Signal};
use crate::chat::patch::Patches;
use crate::chat::transcript::{Preamble, Transcript};
use crate::engine::{EngineEvent, RunEnd};
use crate::protocol::id::{RunId, SessionId};
use crate::protocol::wire::{BadLine, ClientError, Frame, Request};

/// Milliseconds since the process began. Never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub u64);

/// Everything that can happen to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A line that makes sense arrived.
    Request(Request),
    /// A line that makes none arrived.
    BadLine(BadLine),
    /// No more lines come.
    InputEnded,
    /// Reading lines failed; no more come.
    InputFailed {
        /// Why.
        reason: String,
    },
    /// The engine of a run says something.
    Engine(RunId, EngineEvent),
    /// The engine of a run has ended.
    RunEnded(RunId, RunEnd),
    /// The process is told to end.
    Interrupted(Signal),
    /// Nobody reads the output any more.
    ReaderGone,
    /// There is nothing to ask: the command line, or a file that it names, is wrong.
    Refused(ClientError),
}

/// Everything a session can want done, in this order.
#[must_use]
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// Write this.
    Frame(Frame),
    /// Have the engine answer.
    StartRun {
        /// Goes with all the engine says.
        run: RunId,
        /// What to answer.
        transcript: Transcript,
    },
    /// Drop the engine of the run; the session has ended it already.
    CancelRun(RunId),
    /// Write what is still to be written, then end the process.
    Exit(ExitCode),
    /// End the process now.
    Abort(ExitCode),
}

/// What a session does with a submit while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBusy {
    /// Refuse it.
    #[default]
    Reject,
    /// Let it wait for its turn.
    Queue,
}

/// What the snapshot at the end of a run holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalSnapshot {
    /// The whole conversation.
    #[default]
    Full,
    /// What the run added.
    Turn,
    /// There is none.
    None,
}

/// How long a process talks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// As long as requests come. What goes wrong is the requests', and the process ends well.
    #[default]
    Conversation,
    /// One prompt long. What goes wrong is terminal, and the status of the process tells of it.
    OneShot,
}

/// What a session remembers of what the model says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Everything: for snapshots, and for the model.
    #[default]
    Everything,
    /// Nothing: whoever reads the pieces needs no more, and an answer may be larger than memory.
    /// There are no snapshots, and segments finish without their text.
    Nothing,
}

/// How a session is to behave.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// How long the process talks.
    pub mode: SessionMode,
    /// What is remembered.
    pub keep: Retention,
    /// The session the process is bound to from the start.
    pub session: Option<SessionId>,
    /// How the model is to behave, and what was said before the first turn.
    pub preamble: Preamble,
    /// What is looked for in answers.
    pub extraction: Option<Extraction>,
    /// What happens to a submit during a run.
    pub on_busy: OnBusy,
    /// How text is streamed.
    pub patches: Patches,
    /// What the snapshot at the end of a run holds.
    pub final_snapshot: FinalSnapshot,
}
