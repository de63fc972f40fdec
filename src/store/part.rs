//! What one store has of a session, as its rows are read, whatever kind of database it is. Pure.

use super::Roles;
use super::batch::{CHOICES, COUNTS, NO_TURN};
use super::search::Search;
use super::states::{States, UnreadStates};
use super::turn::{Blobs, OpenTurn, choices, preamble, turn};
use crate::chat::choices::Choices;
use crate::chat::record::{Loss, Restored, StoredEvent};
use crate::chat::transcript::{Preamble, Turn};
use crate::protocol::any::Any;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::TokenCounts;
use crate::protocol::proto::store::stored_step::Step;
use crate::protocol::proto::store::{
    StoredChoices, StoredDrop, StoredPreamble, StoredStep, StoredTurn,
};
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The store of the timeline was removed, or another one is named.
const NO_TIMELINE: &str = "the store of the timeline has nothing of the session, so what was said \
     before is not shown; the model is sent it all the same";

/// What one store has of a session.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The session is in the store.
    pub(super) is_there: bool,
    /// It began with its turns in another store.
    pub(super) is_without_turns: bool,
    pub(super) ordinal: Ordinal,
    turns: u32,
    pub(super) preamble: Preamble,
    /// Those of the states so far.
    states: States,
    /// What is searched in the states instead.
    search: Option<Search>,
    /// With the tombstones of those that were dropped.
    pub(super) entities: Vec<SnapshotEntity>,
    pub(super) entities_until: Ordinal,
    pub(super) tail: Vec<StoredEvent>,
    pub(super) transcript: BTreeMap<u32, Arc<Turn>>,
    /// The turns of the transcript that go on or were cut off.
    pub(super) open_turns: BTreeSet<u32>,
    /// The turns that have no end yet.
    open: BTreeMap<u32, OpenTurn>,
    dropped: Vec<RangeInclusive<u32>>,
    usage: Option<TokenCounts>,
    pub(super) choices: Choices,
    /// The numbers of rows that there must be.
    expected: RowNumbers,
    /// The numbers of rows that there are, whether they can be read or not.
    pub(super) found: RowNumbers,
    /// Attachments whose bytes are not there.
    pub(super) lost_blobs: i64,
    pub(super) loss: Option<Loss>,
}

/// Numbers of rows of a session that are read when it is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowNumbers {
    pub(super) turns: i64,
    pub(super) states: i64,
    /// Events after the last state.
    pub(super) tail: i64,
    /// Steps of the turn that goes on.
    pub(super) steps: i64,
    /// Steps that are of no turn.
    pub(super) drops: i64,
}

/// The row of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionRow<'a> {
    pub(super) ordinal: i64,
    pub(super) turns: u32,
    pub(super) preamble: &'a [u8],
    pub(super) rows: RowNumbers,
}

impl Part {
    /// One whose entities are searched, each by itself, and not kept.
    pub(super) fn searching(search: Search) -> Self {
        Self { search: Some(search), ..Self::default() }
    }

    /// Whether it is one of these.
    pub(super) fn is_search(&self) -> bool {
        self.search.is_some()
    }

    /// The search, which goes on in the events after the states.
    pub(super) fn take_search(&mut self) -> Option<Search> {
        self.search.take()
    }

    /// Reads the row of the session.
    pub(super) fn begin(&mut self, row: &SessionRow<'_>) -> Result<(), DecodeError> {
        self.is_there = true;
        (self.ordinal, self.turns, self.expected) = (ordinal(row.ordinal), row.turns, row.rows);
        let stored = StoredPreamble::decode(row.preamble)?;
        self.is_without_turns = stored.without_turns;
        self.preamble = preamble(stored);
        Ok(())
    }

    /// Reads a message that the session has one of. One that this program does not know is ignored.
    pub(super) fn message(&mut self, name: &str, payload: &[u8]) -> Result<(), DecodeError> {
        match name {
            CHOICES => self.choices = choices(StoredChoices::decode(payload)?),
            COUNTS => self.usage = Some(TokenCounts::decode(payload)?),
            _ => {}
        }
        Ok(())
    }

    /// Takes in the state at the end of a run.
    pub(super) fn state(&mut self, until: i64, payload: &[u8]) {
        self.found.states += 1;
        let until = ordinal(until);
        match self.search.as_mut().map(|search| search.state(payload)) {
            None => self.states.add(until, payload),
            Some(Ok(())) => self.entities_until = until,
            Some(Err(error)) => self.states.left_out(error),
        }
    }

    /// Reads the states that can be read.
    pub(super) fn end_states(&mut self) -> Result<(), UnreadStates> {
        let states = std::mem::take(&mut self.states);
        states.read(&mut self.entities, &mut self.entities_until)
    }

    /// Ordinal of the last event that the states include: only later ones are read.
    pub(super) fn shown_until(&self) -> i64 {
        i64::try_from(self.entities_until.0).unwrap_or(i64::MAX)
    }

    /// Reads an event after the last state.
    pub(super) fn event(
        &mut self,
        number: i64,
        (turn, call): (Option<u32>, Option<u32>),
        name: &str,
        payload: Vec<u8>,
    ) -> Result<(), DecodeError> {
        self.found.tail += 1;
        let payload = Any::of_message(name, payload)?;
        self.tail.push(StoredEvent { ordinal: ordinal(number), place: turn.zip(call), payload });
        Ok(())
    }

    /// Takes in a turn that has ended. Turns come in their order. In an older store the last of them has
    /// the token counts.
    pub(super) fn turn(&mut self, number: u32, mut stored: StoredTurn, blobs: &Blobs) {
        self.usage = stored.usage.take().or_else(|| self.usage.take());
        self.transcript.insert(number, Arc::new(turn(number, stored, blobs)));
    }

    /// Takes in the next step of a turn that has no end.
    pub(super) fn step(&mut self, number: u32, stored: StoredStep) {
        if let Some(Step::Dropped(StoredDrop { first_turn, last_turn })) = stored.step {
            self.dropped.push(first_turn..=last_turn);
        } else {
            self.open.entry(number).or_default().add(stored);
        }
    }

    /// Ends the turns that were cut off, and leaves those out that were dropped.
    pub(super) fn end_turns(&mut self, blobs: &Blobs) {
        for (number, open) in std::mem::take(&mut self.open) {
            self.open_turns.insert(number);
            self.transcript.insert(number, Arc::new(turn(number, open.cut_off(), blobs)));
        }
        for turns in std::mem::take(&mut self.dropped) {
            self.transcript.retain(|number, _| !turns.contains(number));
        }
    }

    /// Counts a row of a step.
    pub(super) fn found_step(&mut self, turn: u32) {
        match turn {
            NO_TURN => self.found.drops += 1,
            _ => self.found.steps += 1,
        }
    }

    /// Notes if rows were deleted from the store at `place` by another program: those of these roles.
    pub(super) fn check_rows(&mut self, roles: Roles, place: &dyn Display) {
        let (expected, found) = (self.expected, self.found);
        let of_turns = [
            expected.turns - found.turns,
            expected.steps - found.steps,
            expected.drops - found.drops,
            self.lost_blobs,
        ];
        let of_timeline = [expected.states - found.states, expected.tail - found.tail];
        let fewer = |of: &[i64]| of.iter().map(|fewer| (*fewer).max(0)).sum::<i64>();
        let turns = if roles.turns { fewer(&of_turns) } else { 0 };
        let timeline = if roles.timeline { fewer(&of_timeline) } else { 0 };
        if turns + timeline > 0 {
            self.lost(missing(turns, timeline, place), false);
        }
    }

    /// Notes if events are missing at the end of the store at `place`.
    pub(super) fn check_end(&mut self, place: &dyn Display) {
        let last = self.tail.last().map_or(self.entities_until, |event| event.ordinal);
        if last < self.ordinal {
            self.lost(format!("events after {} are missing in the store {place}", last.0), false);
        }
    }

    /// Takes in what another store has.
    pub(super) fn add(&mut self, other: Self) {
        // The turns come first.
        match (self.is_there, other.is_there) {
            (true, true) if self.ordinal != other.ordinal => {
                self.lost(out_of_step(self.ordinal, other.ordinal), false);
            }
            (true, false) if other.loss.is_none() => self.lost(NO_TIMELINE.to_owned(), false),
            (_, true) | (_, false) => {}
        }
        self.is_there |= other.is_there;
        self.ordinal = self.ordinal.max(other.ordinal);
        self.turns = self.turns.max(other.turns);
        if self.preamble == Preamble::default() {
            self.preamble = other.preamble;
        }
        self.entities.extend(other.entities);
        self.entities_until = self.entities_until.max(other.entities_until);
        self.tail.extend(other.tail);
        self.transcript.extend(other.transcript);
        self.open_turns.extend(other.open_turns);
        self.usage = self.usage.take().or(other.usage);
        if self.choices == Choices::default() {
            self.choices = other.choices;
        }
        self.loss = self.loss.take().or(other.loss);
    }

    pub(super) fn lost(&mut self, reason: String, is_closed: bool) {
        self.loss.get_or_insert(Loss { reason, is_closed });
    }
}

/// What it means that rows are missing which were written.
fn missing(turns: i64, timeline: i64, place: &dyn Display) -> String {
    let what = match (turns, timeline) {
        (0, _) => "what people see may lack messages",
        (_, 0) => "the model may be sent less than before",
        (..) => "people may see, and the model may be sent, less than before",
    };
    let records = match turns + timeline {
        1 => "a record of the session is".to_owned(),
        records => format!("{records} records of the session are"),
    };
    format!("{records} missing in the store {place}, deleted by another program: {what}")
}

/// What it means that the turns of a session end at another event than its timeline. Each batch goes
/// to the one and then to the other, so that a crash or a fault can come between.
fn out_of_step(one: Ordinal, other: Ordinal) -> String {
    format!(
        "the turns and the timeline of the session are stored up to different events, {} and {}: the \
         model may be sent more of the last turn than people see of it, or less",
        one.0, other.0
    )
}

/// Whether a stored preamble says that the turns are in another store.
pub(super) fn has_turns_elsewhere(preamble: &[u8]) -> bool {
    StoredPreamble::decode(preamble).is_ok_and(|stored| stored.without_turns)
}

/// The session of these parts.
pub(super) fn restored(session: SessionId, whole: Part) -> Restored {
    Restored {
        session,
        ordinal: whole.ordinal,
        turns: whole.turns,
        preamble: whole.preamble,
        entities: whole.entities,
        entities_until: whole.entities_until,
        tail: whole.tail,
        transcript: whole.transcript.into_values().collect(),
        usage: whole.usage,
        choices: whole.choices,
        loss: whole.loss,
    }
}

/// An ordinal of the integer of a database.
fn ordinal(number: i64) -> Ordinal {
    Ordinal(u64::try_from(number).unwrap_or_default())
}
