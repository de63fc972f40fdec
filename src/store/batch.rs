//! What a batch of records changes in the tables of a store, whatever kind of database it is. Pure.

use super::Roles;
use super::patches::OpenPatch;
use super::turn::{Blobs, change_message, preamble_message, turn_message};
use crate::chat::record::{EventRecord, Record, SessionStart, TurnChange};
use crate::protocol::any::Any;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::session::TokenCounts;
use crate::protocol::proto::store::StoredStep;
use prost::Message;
use std::sync::Arc;

/// Characters of a session's title: the beginning of its first prompt.
const TITLE_CHARS_MAX: usize = 80;

/// The number of the steps that are of no turn.
const NO_TURN: u32 = 0;

/// A batch as changes of rows, in order, and what it changes in the row of its session.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The preamble of the session, if it begins here.
    pub(super) preamble: Vec<u8>,
    pub(super) changes: Vec<Change>,
    /// Ordinal of the last event; 0 if there is none.
    pub(super) last: i64,
    /// Number of the last turn; 0 if there is none.
    pub(super) turns: u32,
    /// The title of the session, if a turn begins here.
    pub(super) title: String,
    /// It must survive a loss of power, and with it all that was written before.
    pub(super) ends_turn: bool,
}

/// A change of rows.
#[derive(Debug)]
pub(super) enum Change {
    /// An event is added. `place` is its turn and provider call.
    Event { ordinal: i64, place: Option<(u32, u32)>, name: &'static str, payload: Vec<u8> },
    /// The patches of a run that ends are removed: the events that ended its segments and completed its
    /// calls have their whole text.
    DropPatches { turn: u32 },
    /// The entities that are new at the end of a run are added.
    State { ordinal: i64, payload: Vec<u8> },
    /// A step of a turn that goes on is added.
    Step { ordinal: i64, turn: u32, payload: Vec<u8> },
    /// The steps of a turn are removed.
    DropSteps { turn: u32 },
    /// A turn that has ended is added.
    Turn { ordinal: i64, turn: u32, payload: Vec<u8> },
    /// The session needs these bytes, which another one may have added.
    Blob { sha256: String, data: Arc<[u8]> },
}

impl Batch {
    /// What `records` change in a store with these roles.
    pub(super) fn of(records: &[Record], roles: Roles) -> Self {
        let mut building = Building {
            roles,
            batch: Self::default(),
            blobs: Blobs::new(),
            patch: None,
            piece: None,
        };
        for record in records {
            match record {
                Record::Start(start) => building.start(start),
                Record::Event(event) => building.event(event),
            }
        }
        building.finish()
    }
}

/// A batch on its way.
struct Building {
    roles: Roles,
    batch: Batch,
    blobs: Blobs,
    /// The last event, if it is a patch.
    patch: Option<OpenPatch>,
    /// Pieces of a text that are one step: the last event, the turn and the text.
    piece: Option<(Ordinal, u32, String)>,
}

impl Building {
    /// The session begins; its earlier messages are kept as people see them.
    fn start(&mut self, start: &SessionStart) {
        let mut preamble = preamble_message(&start.preamble);
        preamble.without_turns = !self.roles.turns;
        self.batch.preamble = preamble.encode_to_vec();
        if self.roles.timeline && !start.history.entities.is_empty() {
            let payload = start.history.encode_to_vec();
            self.batch.changes.push(Change::State { ordinal: 0, payload });
        }
    }

    fn event(&mut self, event: &EventRecord) {
        self.batch.last = signed(event.ordinal);
        self.batch.turns = self.batch.turns.max(event.scope.map_or(0, |scope| scope.turn));
        if let Some(TurnChange::Began { prompt, .. }) = &event.change
            && self.batch.title.is_empty()
        {
            let line = prompt.trim().lines().next().unwrap_or_default();
            self.batch.title = line.chars().take(TITLE_CHARS_MAX).collect();
        }
        if self.roles.timeline {
            self.shown(event);
        }
        if self.roles.turns
            && let (Some(change), Some(scope)) = (&event.change, event.scope)
        {
            let turn = match change {
                // It is no step of a turn, and stays when turns end.
                TurnChange::Dropped(..) => NO_TURN,
                TurnChange::Began { .. }
                | TurnChange::Piece(_)
                | TurnChange::Step(_)
                | TurnChange::Result(..)
                | TurnChange::Ended(_) => scope.turn,
            };
            self.change((event.ordinal, turn), change, event.usage.as_ref());
        }
        self.batch.ends_turn |= event.state.is_some();
    }

    /// What people see of an event.
    fn shown(&mut self, event: &EventRecord) {
        if self.patch.as_mut().is_some_and(|open| open.join(event)) {
            return;
        }
        self.flush_patch();
        self.patch = OpenPatch::of(event);
        if self.patch.is_some() {
            return;
        }
        self.row(event.ordinal, place(event), &event.payload);
        if let Some(state) = &event.state {
            if let Some(scope) = event.scope {
                self.batch.changes.push(Change::DropPatches { turn: scope.turn });
            }
            let (ordinal, payload) = (signed(event.ordinal), state.encode_to_vec());
            self.batch.changes.push(Change::State { ordinal, payload });
        }
    }

    fn flush_patch(&mut self) {
        if let Some(OpenPatch { ordinal, place, payload }) = self.patch.take() {
            self.row(ordinal, place, &payload);
        }
    }

    fn row(&mut self, ordinal: Ordinal, place: Option<(u32, u32)>, payload: &Any) {
        if let Some((name, payload)) = payload.to_message() {
            let ordinal = signed(ordinal);
            self.batch.changes.push(Change::Event { ordinal, place, name, payload });
        }
    }

    /// What the model is sent of an event.
    fn change(
        &mut self,
        (ordinal, turn): (Ordinal, u32),
        change: &TurnChange,
        usage: Option<&TokenCounts>,
    ) {
        if let TurnChange::Piece(more) = change {
            let piece = self.piece.get_or_insert_with(|| (ordinal, turn, String::new()));
            piece.0 = ordinal;
            piece.2 += more;
            return;
        }
        self.flush_piece();
        if let TurnChange::Ended(ended) = change {
            self.batch.changes.push(Change::DropSteps { turn });
            let Some(ended) = ended else { return };
            let payload = turn_message(ended, usage, &mut self.blobs).encode_to_vec();
            let ordinal = signed(ordinal);
            self.batch.changes.push(Change::Turn { ordinal, turn, payload });
            return;
        }
        if let Some(step) = change_message(change, &mut self.blobs) {
            self.step(ordinal, turn, &step);
        }
    }

    fn flush_piece(&mut self) {
        if let Some((ordinal, turn, piece)) = self.piece.take()
            && let Some(step) = change_message(&TurnChange::Piece(piece), &mut self.blobs)
        {
            self.step(ordinal, turn, &step);
        }
    }

    fn step(&mut self, ordinal: Ordinal, turn: u32, step: &StoredStep) {
        let (ordinal, payload) = (signed(ordinal), step.encode_to_vec());
        self.batch.changes.push(Change::Step { ordinal, turn, payload });
    }

    fn finish(mut self) -> Batch {
        self.flush_piece();
        self.flush_patch();
        let blobs = self.blobs.into_iter();
        self.batch.changes.extend(blobs.map(|(sha256, data)| Change::Blob { sha256, data }));
        self.batch
    }
}

/// Numbers of the turn and the provider call of an event.
fn place(event: &EventRecord) -> Option<(u32, u32)> {
    event.scope.map(|it| (it.turn, it.call))
}

/// An ordinal as the integer of a database. One that does not fit is 292 million years of events away.
fn signed(ordinal: Ordinal) -> i64 {
    i64::try_from(ordinal.0).unwrap_or(i64::MAX)
}
