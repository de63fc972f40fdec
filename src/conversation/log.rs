//! The log of a conversation: its start record and its events. A session appends records through a store
//! and is resumed from the projections of its log.

use super::choices::{Choices, ChosenModel};
use super::event::{Event, Recorded};
use super::projections::Projections;
use super::transcript::Preamble;
use crate::protocol::command::ModelChoice;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::rpc::SnapshotEntity;
use prost::Message;

/// Why a run that was cut off is stopped, for people.
pub(crate) const CUT_OFF: &str = "the process ended before the run did";

/// What a person can do about a session that is damaged in its store, a file that may be damaged itself.
pub(crate) const COPY_ADVICE: &str = "a copy of it can be stored again: `duologue sessions fork ID` makes one in the \
     same store, or, where that can't be written, `duologue sessions export ID | duologue sessions import -` in another \
     one that is named";

/// A record that a session appends to its log. Its frames may be shown once it is durable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// The session begins. Before its first event.
    Start(Box<SessionStart>),
    /// An event.
    Event(Recorded),
}

/// The first record of a session: its initial content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionStart {
    /// The session.
    pub session: SessionId,
    /// The messages to the model before the first turn.
    pub preamble: Preamble,
    /// The earlier messages as people see them.
    pub history: Vec<SnapshotEntity>,
    /// The choices of the session that this one copies.
    pub choices: Choices,
}

/// A stored conversation.
#[derive(Clone, Debug)]
pub struct Restored {
    pub(crate) session: SessionId,
    /// The folds of its log.
    pub(crate) projections: Box<Projections>,
    /// The events of the run that has no end, and what happened since: at most a turn.
    pub(crate) open: Vec<Recorded>,
    /// What could not be read.
    pub(crate) loss: Option<Loss>,
}

/// What could not be read of a stored conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// What happened, and what it means, for people.
    pub reason: String,
    /// The store is damaged: nothing more is written to it.
    pub is_closed: bool,
}

/// Why something is not stored, and from where on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    /// What happened, for people.
    pub reason: String,
    /// The first event that is not stored; `None` if nothing is.
    pub first_missing: Option<Ordinal>,
}

impl SessionStart {
    /// The start record of an empty session.
    pub(crate) fn empty(session: SessionId) -> Self {
        let (preamble, history, choices) = Default::default();
        Self { session, preamble, history, choices }
    }
}

impl Record {
    /// Bytes of a tool's result or a patch, which nothing else shares with it; 0 in any other record.
    pub(crate) fn text_bytes(&self) -> usize {
        let Self::Event(recorded) = self else { return 0 };
        if let Event::SegmentPatched { text, .. } | Event::ToolArgumentsPatched { text, .. } =
            &recorded.event
        {
            return text.len();
        }
        if let Event::ToolResultReady { result, .. } = &recorded.event {
            return result.text().len();
        }
        if let Event::ClientResultReceived { result: Some(result), .. } = &recorded.event {
            return result.encoded_len();
        }
        0
    }

    /// Notes when a run began, if this is its beginning.
    pub(crate) fn note_start(&mut self, now_ms: impl FnOnce() -> i64) {
        if let Self::Event(Recorded { event: Event::RunStarted { answerer, .. }, .. }) = self {
            answerer.started_ms = Some(now_ms());
        }
    }

    /// The event in it; `None` if it is the start of the session.
    pub(crate) fn event(&self) -> Option<&Recorded> {
        match self {
            Self::Start(_) => None,
            Self::Event(recorded) => Some(recorded),
        }
    }
}

/// Ordinal of the first event in a batch; `None` if it has none.
pub(crate) fn first_ordinal(batch: &[Record]) -> Option<Ordinal> {
    batch.iter().find_map(Record::event).map(|recorded| recorded.ordinal)
}

impl Restored {
    /// The engine or the profile that the session was switched to, as a request names it.
    pub(crate) fn choice(&self) -> Option<ModelChoice> {
        let ChosenModel { profile, engine, .. } = self.projections.choices.model.as_ref()?;
        let (profile, engine) = (profile.clone(), engine.clone());
        Some(ModelChoice { profile, engine, ..ModelChoice::default() })
    }
}
