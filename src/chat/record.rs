//! What a session wants kept of a conversation, and what it gets back when it is resumed.

use super::choices::{Choices, ChosenModel};
use super::event::{
    Attachments, Event, Recorded, Scope, Segment, SegmentKind, ToolCall, ToolResult,
};
use super::patch::{PatchMode, Piece, lean_arguments_patch, lean_patch};
use super::timeline::RunState;
use super::transcript::{Preamble, Step, Turn, repair_prompt};
use super::ui::message_id;
use crate::protocol::any::Any;
use crate::protocol::command::ModelChoice;
use crate::protocol::id::{Ordinal, SessionId, ToolCallId};
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::TokenCounts;
use crate::support::text::Text;
use std::sync::Arc;

/// Something that a session wants kept. What is shown of it may be shown once it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// The session begins. Before its first event.
    Start(Box<SessionStart>),
    /// An event.
    Event(Box<EventRecord>),
    /// Patches: most of what is kept, so that it is small.
    Patch(PatchRecord),
}

impl Record {
    /// Bytes of a tool's result or a patch, which nothing else shares with it; 0 in any other record.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Event(event) => match &event.change {
                Some(TurnChange::Result(_, result)) => result.text().len(),
                Some(
                    TurnChange::Began { .. }
                    | TurnChange::Piece { .. }
                    | TurnChange::Step(_)
                    | TurnChange::Dropped(..)
                    | TurnChange::Chose(_)
                    | TurnChange::Ended(_),
                )
                | None => 0,
            },
            Self::Patch(patch) => patch.text.len(),
            Self::Start(_) => 0,
        }
    }
}

/// Patches of one text that follow each other: their text, as in one patch that merges them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatchRecord {
    /// Ordinal of the first.
    pub first: Ordinal,
    /// Ordinal of the last.
    pub ordinal: Ordinal,
    pub scope: Scope,
    pub of: Patched,
    /// That of the last.
    pub sequence: u64,
    /// That of the first.
    pub offset_bytes: u64,
    pub text: String,
}

/// What a patch adds text to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Patched {
    Segment(Segment),
    Arguments(ToolCall),
}

/// What a session begins with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionStart {
    /// The session.
    pub session: SessionId,
    /// What the model is sent before the first turn.
    pub preamble: Preamble,
    /// The earlier messages as people see them.
    pub history: RunState,
    /// What was chosen in a session of which this one is a copy.
    pub choices: Choices,
}

/// An event and what it changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventRecord {
    /// Its ordinal.
    pub ordinal: Ordinal,
    /// The run, turn and provider call; `None` outside of runs.
    pub scope: Option<Scope>,
    /// The event as the protocol has it.
    pub payload: Any,
    /// What it changes for the model.
    pub change: Option<TurnChange>,
    /// With the end of a run: the entities that were created since the end of the one before, so that
    /// loading need not replay their events. With dropped turns: their tombstones.
    pub state: Option<RunState>,
    /// With the end of a run: the token counts of the session so far.
    pub usage: Option<TokenCounts>,
}

/// What an event changes of what the model is sent next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TurnChange {
    /// A turn began.
    Began {
        /// The prompt.
        prompt: Text,
        /// What goes with it.
        attachments: Attachments,
    },
    /// The next piece of the open text, which is of that provider call of the run.
    Piece {
        /// Number of the call, from 1.
        round: u32,
        /// The piece.
        text: String,
    },
    /// A step of the turn.
    Step(Step),
    /// The result of a tool call.
    Result(ToolCallId, Arc<ToolResult>),
    /// The turn ended like this; `None` if the model is not sent it.
    Ended(Option<Arc<Turn>>),
    /// The turns from the first number to the last are not sent any more.
    Dropped(u32, u32),
    /// The client has chosen a model or tools: all that is chosen now.
    Chose(Arc<Choices>),
}

/// A stored conversation.
#[derive(Clone, Debug)]
pub struct Restored {
    pub(crate) session: SessionId,
    /// Ordinal of the last event.
    pub(crate) ordinal: Ordinal,
    /// Number of the last turn.
    pub(crate) turns: u32,
    /// What the model was sent before the first turn.
    pub(crate) preamble: Preamble,
    /// The entities of runs that have ended, and tombstones of those that were dropped, in the order
    /// in which they were stored.
    pub(crate) entities: Vec<SnapshotEntity>,
    /// Ordinal of the last event that they include.
    pub(crate) entities_until: Ordinal,
    /// The events after those.
    pub(crate) tail: Vec<StoredEvent>,
    /// The turns. One that was cut off is interrupted.
    pub(crate) transcript: Vec<Arc<Turn>>,
    /// Token counts up to the end of the last turn that has one.
    pub(crate) usage: Option<TokenCounts>,
    /// What the client has chosen.
    pub(crate) choices: Choices,
    /// What could not be read.
    pub(crate) loss: Option<Loss>,
}

/// An event as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredEvent {
    pub ordinal: Ordinal,
    /// The number of its turn and of its provider call; `None` outside of runs.
    pub place: Option<(u32, u32)>,
    pub payload: Any,
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

/// Ordinal of the first event in a batch; `None` if it has none.
pub(crate) fn first_ordinal(batch: &[Record]) -> Option<Ordinal> {
    let ordinals = batch.iter().filter_map(|record| match record {
        Record::Event(event) => Some(event.ordinal),
        Record::Patch(patch) => Some(patch.first),
        Record::Start(_) => None,
    });
    ordinals.min()
}

impl PatchRecord {
    /// The patch in `recorded`; `None` if it is another event.
    pub(crate) fn of(recorded: &Recorded) -> Option<Self> {
        let (of, sequence, offset_bytes, text) = match &recorded.event {
            Event::SegmentPatched { segment, sequence, offset_bytes, text } => {
                (Patched::Segment(*segment), *sequence, *offset_bytes, text.clone())
            }
            Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text } => {
                (Patched::Arguments(tool.clone()), *sequence, *offset_bytes, text.clone())
            }
            Event::PromptAccepted { .. }
            | Event::PromptJoined { .. }
            | Event::RepairRequested { .. }
            | Event::RunStarted { .. }
            | Event::CallStarted
            | Event::SegmentStarted { .. }
            | Event::SegmentFinished { .. }
            | Event::ToolCallStarted { .. }
            | Event::ToolCallRequested { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolResultReady { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::CallFinished { .. }
            | Event::TurnDropped { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped { .. }
            | Event::RunFailed { .. }
            | Event::Call(_)
            | Event::Session(_) => return None,
        };
        let Recorded { ordinal, scope, .. } = *recorded;
        Some(Self { first: ordinal, ordinal, scope, of, sequence, offset_bytes, text })
    }

    /// Takes in the next patch, if it goes on with the same text. Returns whether it does.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let goes_on = self.scope == next.scope && self.of == next.of;
        if goes_on {
            self.text += &next.text;
            (self.ordinal, self.sequence) = (next.ordinal, next.sequence);
        }
        goes_on
    }

    /// The patch as the protocol has it, with the fields of a lean one.
    pub(crate) fn payload(&self) -> Any {
        let Self { sequence, offset_bytes, .. } = *self;
        let piece = Piece { sequence, offset_bytes, text: self.text.clone() };
        match &self.of {
            Patched::Segment(segment) => {
                let id = message_id(&self.scope.run.root(), *segment);
                lean_patch(id, segment.kind, PatchMode::Append, piece)
            }
            Patched::Arguments(tool) => lean_arguments_patch(tool.clone(), piece),
        }
    }

    /// Whether the model is sent the text. It is sent calls once their arguments are complete.
    pub(crate) fn is_answer(&self) -> bool {
        match &self.of {
            Patched::Segment(segment) => segment.kind == SegmentKind::Text,
            Patched::Arguments(_) => false,
        }
    }
}

impl Restored {
    /// The engine or the profile that the session was switched to, as a request names it.
    pub(crate) fn choice(&self) -> Option<ModelChoice> {
        let ChosenModel { profile, engine, .. } = self.choices.model.as_ref()?;
        let (profile, engine) = (profile.clone(), engine.clone());
        Some(ModelChoice { profile, engine, ..ModelChoice::default() })
    }
}

impl TurnChange {
    /// What `recorded` changes, unless it ends its turn.
    pub(crate) fn of(recorded: &Recorded) -> Option<Self> {
        let none = Attachments::default;
        match &recorded.event {
            Event::PromptAccepted { prompt, attachments } => {
                Some(Self::Began { prompt: prompt.clone(), attachments: attachments.clone() })
            }
            Event::PromptJoined { prompt, attachments, .. } => {
                Some(Self::Step(Step::Prompt(prompt.clone(), attachments.clone())))
            }
            Event::RepairRequested { reason, .. } => {
                Some(Self::Step(Step::Prompt(repair_prompt(reason).into(), none())))
            }
            Event::SegmentFinished { segment, text, .. } => {
                let is_kept = segment.kind == SegmentKind::Text && !text.is_empty();
                let round = Some(recorded.scope.call);
                is_kept.then(|| Self::Step(Step::Text { round, text: text.clone() }))
            }
            Event::CallFinished { provider_data, .. } => {
                provider_data.clone().map(|data| Self::Step(Step::ProviderData(data)))
            }
            Event::ToolCallRequested { tool, input } => {
                let (round, tool, input) = (recorded.scope.call, tool.clone(), input.clone());
                Some(Self::Step(Step::Called { round, tool, input, result: None }))
            }
            Event::ToolResultReady { tool, result } => {
                Some(Self::Result(tool.id.clone(), Arc::clone(result)))
            }
            Event::TurnDropped { turns, .. } => {
                let first = recorded.scope.turn;
                Some(Self::Dropped(first, turns.last().copied().unwrap_or(first)))
            }
            Event::RunStarted { .. } | Event::Session(_) => {
                recorded.event.choices().map(|choices| Self::Chose(Arc::clone(choices)))
            }
            // Patches are records of their own.
            Event::SegmentPatched { .. }
            | Event::ToolArgumentsPatched { .. }
            | Event::CallStarted
            | Event::SegmentStarted { .. }
            | Event::ToolCallStarted { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped { .. }
            | Event::RunFailed { .. }
            | Event::Call(_) => None,
        }
    }
}
