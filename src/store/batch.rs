//! What a batch of records changes in the tables of a store, whatever kind of database it is. Pure.

use super::Roles;
use super::content::{Content, EventContent, StepContent};
use super::turn::{Blobs, add_blobs, choices_message, preamble_message};
use crate::chat::choices::Choices;
use crate::chat::event::Scope;
use crate::chat::record::{EventRecord, PatchRecord, Record, SessionStart, TurnChange};
use crate::protocol::any::Any;
use crate::protocol::id::Ordinal;
use prost::Message;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a session's title: the beginning of its first prompt.
const TITLE_CHARS_MAX: usize = 80;

/// The number of the steps that are of no turn.
pub(super) const NO_TURN: u32 = 0;

/// The full names of the messages that a session has one of.
pub(super) const CHOICES: &str = "duologue.store.v1.StoredChoices";
pub(super) const COUNTS: &str = "duologue.session.v1.TokenCounts";

/// A batch as changes of rows, in order, and what it changes in the row of its session.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    /// The preamble of the session, if it begins here.
    pub(super) preamble: Vec<u8>,
    pub(super) changes: Vec<Change<'a>>,
    /// Ordinal of the last event; 0 if there is none.
    pub(super) last: i64,
    /// Number of the last turn; 0 if there is none.
    pub(super) turns: u32,
    /// The title of the session, if a turn begins here.
    pub(super) title: String,
    /// How many turns are dropped.
    pub(super) dropped_turns: i64,
    /// How the numbers of rows change.
    pub(super) rows: RowChanges,
    /// Messages that the session has one of, by name, in the place of earlier ones.
    pub(super) messages: BTreeMap<&'static str, Vec<u8>>,
    /// It must survive a loss of power, and with it all that was written before.
    pub(super) ends_turn: bool,
}

/// How the numbers of a session's rows change that its own row has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowChanges {
    pub(super) turns: i64,
    pub(super) states: i64,
    /// Events after the last state.
    pub(super) tail: RowCount,
    /// Steps of the turn that goes on.
    pub(super) steps: RowCount,
    /// Steps that are of no turn.
    pub(super) drops: i64,
}

/// How a number of rows changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowCount {
    /// It begins with none.
    pub(super) is_reset: bool,
    pub(super) added: i64,
}

impl RowChanges {
    fn add(&mut self, change: &Change<'_>) {
        let none = RowCount { is_reset: true, added: 0 };
        match change {
            Change::Event { .. } => self.tail.added += 1,
            Change::State { .. } => {
                self.states += 1;
                self.tail = none;
            }
            Change::Step { turn: NO_TURN, .. } => self.drops += 1,
            Change::Step { .. } => self.steps.added += 1,
            Change::DropSteps { .. } => self.steps = none,
            Change::Turn { .. } => self.turns += 1,
            // A state follows, which has what they said.
            Change::DropPatches { .. } | Change::Blob { .. } => {}
        }
    }
}

/// A change of rows.
#[derive(Debug)]
pub(super) enum Change<'a> {
    /// An event is added. `place` is its turn and provider call.
    Event { ordinal: i64, place: Option<(u32, u32)>, content: EventContent<'a> },
    /// The patches of a run that ends are removed: the events that ended its segments and completed its
    /// calls have their whole text.
    DropPatches { turn: u32 },
    /// The entities that are new at the end of a run are added.
    State { ordinal: i64, content: Content<'a> },
    /// A step of a turn that goes on is added.
    Step { ordinal: i64, turn: u32, content: StepContent<'a> },
    /// The steps of a turn are removed.
    DropSteps { turn: u32 },
    /// A turn that has ended is added.
    Turn { ordinal: i64, turn: u32, content: Content<'a> },
    /// The session needs these bytes, which another one may have added.
    Blob { sha256: String, data: Arc<[u8]> },
}

impl<'a> Batch<'a> {
    /// What `records` change in a store with these roles. What is large is made of them as it is written.
    pub(super) fn of(records: &'a [Record], roles: Roles) -> Self {
        let mut building =
            Building { roles, batch: Self::default(), blobs: Blobs::new(), piece: None };
        for record in records {
            match record {
                Record::Start(start) => building.start(start),
                Record::Event(event) => building.event(event),
                Record::Patch(patch) => building.patch(patch),
            }
        }
        building.finish()
    }
}

/// A batch on its way.
struct Building<'a> {
    roles: Roles,
    batch: Batch<'a>,
    blobs: Blobs,
    /// Pieces of a text that are one step: the last event, its place and the text.
    piece: Option<(Ordinal, Scope, String)>,
}

impl<'a> Building<'a> {
    /// The session begins; its earlier messages are kept as people see them.
    fn start(&mut self, start: &'a SessionStart) {
        let mut preamble = preamble_message(&start.preamble);
        preamble.without_turns = !self.roles.turns;
        self.batch.preamble = preamble.encode_to_vec();
        if start.choices != Choices::default() {
            self.choices(&start.choices);
        }
        if self.roles.timeline && start.history.len() > 0 {
            let content = Content::State(&start.history);
            self.batch.changes.push(Change::State { ordinal: 0, content });
        }
    }

    fn choices(&mut self, choices: &Choices) {
        if self.roles.turns {
            self.batch.messages.insert(CHOICES, choices_message(choices).encode_to_vec());
        }
    }

    fn event(&mut self, event: &'a EventRecord) {
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
        if let Any::TurnDropped(dropped) = &event.payload {
            self.batch.dropped_turns += i64::try_from(dropped.turn_ids.len()).unwrap_or(i64::MAX);
        }
        if self.roles.turns {
            self.sent(event);
        }
        self.batch.ends_turn |= event.state.is_some();
    }

    /// What the model is sent of an event.
    fn sent(&mut self, event: &'a EventRecord) {
        if let Some(counts) = &event.usage {
            self.batch.messages.insert(COUNTS, counts.encode_to_vec());
        }
        let Some(change) = &event.change else { return };
        let turn = match change {
            TurnChange::Chose(choices) => return self.choices(choices),
            // It is no step of a turn, and stays when turns end.
            TurnChange::Dropped(..) => Some(NO_TURN),
            TurnChange::Began { .. }
            | TurnChange::Piece { .. }
            | TurnChange::Step(_)
            | TurnChange::Result(..)
            | TurnChange::Ended(_) => event.scope.map(|scope| scope.turn),
        };
        if let Some(turn) = turn {
            self.change((event.ordinal, turn), change);
        }
    }

    /// What people see of an event.
    fn shown(&mut self, event: &'a EventRecord) {
        // A type that is not known has no row.
        if !matches!(event.payload, Any::Other(_)) {
            self.row(event.ordinal, place(event), EventContent::Event(&event.payload));
        }
        if let Some(state) = &event.state {
            if let Some(scope) = event.scope {
                self.drop_patches(scope.turn);
            }
            let (ordinal, content) = (signed(event.ordinal), Content::State(state));
            self.batch.changes.push(Change::State { ordinal, content });
        }
    }

    fn patch(&mut self, patch: &'a PatchRecord) {
        let PatchRecord { ordinal, scope, .. } = *patch;
        self.batch.last = signed(ordinal);
        self.batch.turns = self.batch.turns.max(scope.turn);
        if self.roles.timeline {
            self.row(ordinal, Some((scope.turn, scope.call)), EventContent::Patch(patch));
        }
        if self.roles.turns && patch.is_answer() {
            if self.piece.as_ref().is_some_and(|(_, of, _)| *of != scope) {
                self.flush_piece();
            }
            let piece = self.piece.get_or_insert_with(|| (ordinal, scope, String::new()));
            piece.0 = ordinal;
            piece.2 += &patch.text;
        }
    }

    fn row(&mut self, ordinal: Ordinal, place: Option<(u32, u32)>, content: EventContent<'a>) {
        let ordinal = signed(ordinal);
        self.batch.changes.push(Change::Event { ordinal, place, content });
    }

    /// Also those that the batch would only just add.
    fn drop_patches(&mut self, turn: u32) {
        self.batch.changes.retain(|change| match change {
            Change::Event { content: EventContent::Patch(patch), .. } => patch.scope.turn != turn,
            Change::Event { .. }
            | Change::DropPatches { .. }
            | Change::State { .. }
            | Change::Step { .. }
            | Change::DropSteps { .. }
            | Change::Turn { .. }
            | Change::Blob { .. } => true,
        });
        self.batch.changes.push(Change::DropPatches { turn });
    }

    /// Also those that the batch would only just add.
    fn drop_steps(&mut self, ended: u32) {
        self.batch.changes.retain(|change| match change {
            Change::Step { turn, .. } => *turn != ended,
            Change::Event { .. }
            | Change::DropPatches { .. }
            | Change::State { .. }
            | Change::DropSteps { .. }
            | Change::Turn { .. }
            | Change::Blob { .. } => true,
        });
        self.batch.changes.push(Change::DropSteps { turn: ended });
    }

    fn change(&mut self, (ordinal, turn): (Ordinal, u32), change: &'a TurnChange) {
        self.flush_piece();
        add_blobs(change, &mut self.blobs);
        if let TurnChange::Ended(ended) = change {
            self.drop_steps(turn);
            let Some(ended) = ended else { return };
            let (ordinal, content) = (signed(ordinal), Content::Turn(ended));
            self.batch.changes.push(Change::Turn { ordinal, turn, content });
            return;
        }
        self.step(ordinal, turn, Cow::Borrowed(change));
    }

    fn flush_piece(&mut self) {
        let Some((ordinal, scope, text)) = self.piece.take() else { return };
        let piece = TurnChange::Piece { round: scope.call, text };
        self.step(ordinal, scope.turn, Cow::Owned(piece));
    }

    fn step(&mut self, ordinal: Ordinal, turn: u32, step: Cow<'a, TurnChange>) {
        let (ordinal, content) = (signed(ordinal), StepContent::Change(step));
        self.batch.changes.push(Change::Step { ordinal, turn, content });
    }

    fn finish(mut self) -> Batch<'a> {
        self.flush_piece();
        let blobs = self.blobs.into_iter();
        self.batch.changes.extend(blobs.map(|(sha256, data)| Change::Blob { sha256, data }));
        let Batch { changes, rows, .. } = &mut self.batch;
        changes.iter().for_each(|change| rows.add(change));
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
