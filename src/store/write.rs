//! Writes batches of records: all of one or nothing.

use super::Roles;
use super::error::StoreError;
use super::patches::{OpenPatch, place};
use super::sqlite::{Sqlite, now_ms};
use super::turn::{Blobs, change_message, preamble_message, turn_message};
use crate::chat::record::{EventRecord, Record, SessionStart, TurnChange};
use crate::protocol::any::Any;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::store::StoredStep;
use crate::support::fail_point::FailPoint;
use prost::Message;
use rusqlite::{Params, Transaction, TransactionBehavior};

/// Characters of a session's title: the beginning of its first prompt.
const TITLE_CHARS_MAX: usize = 80;

const EVENT: &str = "INSERT INTO events(session, ordinal, turn, call, name, payload, at_ms) \
     VALUES (?, ?, ?, ?, ?, ?, ?)";
const STATE: &str = "INSERT INTO states(session, ordinal, payload) VALUES (?, ?, ?)";
const STEP: &str = "INSERT INTO steps(session, ordinal, turn, payload) VALUES (?, ?, ?, ?)";
const TURN: &str = "INSERT INTO turns(session, turn, ordinal, payload) VALUES (?, ?, ?, ?)";
const DROP_STEPS: &str =
    "DELETE FROM steps WHERE session = ? AND turn = ? RETURNING length(payload)";
/// The patches of a run that ends: the events that ended its segments and completed its calls have their
/// whole text. No earlier event is looked at.
const DROP_PATCHES: &str = "DELETE FROM events WHERE session = ?1 AND turn = ?2 AND name IN ( \
     'pinocchio.chatapp.v1.ChatTextPatch', 'pinocchio.chatapp.v1.ChatReasoningPatch', \
     'pinocchio.chatapp.v1.ChatToolArgumentsPatch') AND ordinal > coalesce( \
     (SELECT max(ordinal) FROM states WHERE session = ?1), 0) RETURNING length(payload)";
const LOOSE: &str = "SELECT loose_states FROM sessions WHERE key = ?";
const LAST_STATES: &str =
    "SELECT ordinal, payload FROM states WHERE session = ? ORDER BY ordinal DESC LIMIT ?";
const DROP_STATES: &str = "DELETE FROM states WHERE session = ? AND ordinal >= ?";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, \
     last_ordinal, turns, preamble) VALUES (?, '', ?, ?, ?, 0, 0, ?)";
const CHANGED: &str = "UPDATE sessions SET updated_ms = ?2, last_ordinal = max(last_ordinal, ?3), \
     turns = max(turns, ?4), title = CASE WHEN title = '' THEN ?5 ELSE title END, \
     bytes = bytes + ?6, loose_states = loose_states + ?7 WHERE key = ?1";
const JOINED: &str = "UPDATE sessions SET loose_states = 0 WHERE key = ?";

/// States that are kept each on its own before they are joined: what loading reads grows with one row for
/// so many turns.
const LOOSE_STATES_MAX: i64 = 128;

impl Sqlite {
    /// Writes a batch for a session that was claimed.
    pub(super) fn write(
        &mut self,
        session: &SessionId,
        batch: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), StoreError> {
        // The end of a turn survives a loss of power, and with it all that was written before.
        self.sync(batch.iter().any(Record::ends_turn))?;
        let key = match self.key {
            Some(key) => Some(key),
            None => self.find(session)?,
        };
        let behavior = TransactionBehavior::Immediate;
        let Self { connection, fault, .. } = self;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let mut writing = Writing::new(&transaction, fault, roles);
        let key = match key {
            Some(key) => key,
            None => writing.begin(session, batch, folder)?,
        };
        writing.session = key;
        for record in batch {
            match record {
                Record::Start(start) => writing.history(start)?,
                Record::Event(event) => writing.event(event)?,
            }
        }
        writing.finish()?;
        transaction.commit()?;
        self.key = Some(key);
        Ok(())
    }
}

/// A batch on its way into the database.
struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    fault: &'a mut FailPoint,
    roles: Roles,
    session: i64,
    at_ms: i64,
    last: Ordinal,
    turns: u32,
    title: String,
    blobs: Blobs,
    /// By how much the size of the session changes.
    bytes: i64,
    /// States that were added.
    states: i64,
    /// The last event, if it is a patch.
    patch: Option<OpenPatch>,
    /// Pieces of a text that are written as one step: the last event, the turn and the text.
    piece: Option<(Ordinal, u32, String)>,
}

impl<'a> Writing<'a> {
    fn new(transaction: &'a Transaction<'a>, fault: &'a mut FailPoint, roles: Roles) -> Self {
        Self {
            transaction,
            fault,
            roles,
            session: 0,
            at_ms: now_ms(),
            last: Ordinal::default(),
            turns: 0,
            title: String::new(),
            blobs: Blobs::new(),
            bytes: 0,
            states: 0,
            patch: None,
            piece: None,
        }
    }

    /// Runs a statement that writes; gives the number of rows that it changed.
    fn run(&mut self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.step_fault()?;
        Ok(self.transaction.prepare_cached(sql)?.execute(values)?)
    }

    /// Runs a statement that deletes rows and gives the size of each.
    fn delete(&mut self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.step_fault()?;
        let mut statement = self.transaction.prepare_cached(sql)?;
        let sizes = statement.query_map(values, |row| row.get::<_, i64>(0))?;
        self.bytes -= sizes.sum::<Result<i64, _>>()?;
        Ok(())
    }

    fn step_fault(&mut self) -> Result<(), StoreError> {
        match self.fault.is_tripped() {
            true => Err(rusqlite::Error::InvalidParameterName("planted fault".to_owned()).into()),
            false => Ok(()),
        }
    }

    fn grows(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add_unsigned(bytes as u64);
    }

    /// Adds the session; gives its row.
    fn begin(
        &mut self,
        session: &SessionId,
        batch: &[Record],
        folder: &str,
    ) -> Result<i64, StoreError> {
        let preamble = batch.iter().find_map(|record| match record {
            Record::Start(start) => Some(preamble_message(&start.preamble)),
            Record::Event(_) => None,
        });
        let preamble = preamble.unwrap_or_default().encode_to_vec();
        let at_ms = self.at_ms;
        self.grows(preamble.len());
        self.run(SESSION, (session.as_str(), folder, at_ms, at_ms, preamble))?;
        Ok(self.transaction.last_insert_rowid())
    }

    /// The earlier messages, as people see them.
    fn history(&mut self, start: &SessionStart) -> Result<(), StoreError> {
        if !self.roles.timeline || start.history.entities.is_empty() {
            return Ok(());
        }
        self.state(0, start.history.encode_to_vec())
    }

    fn state(&mut self, ordinal: i64, payload: Vec<u8>) -> Result<(), StoreError> {
        self.grows(payload.len());
        self.states += 1;
        self.run(STATE, (self.session, ordinal, payload))?;
        Ok(())
    }

    fn event(&mut self, event: &EventRecord) -> Result<(), StoreError> {
        self.last = event.ordinal;
        self.turns = self.turns.max(event.scope.map_or(0, |scope| scope.turn));
        if let Some(TurnChange::Began { prompt, .. }) = &event.change
            && self.title.is_empty()
        {
            let line = prompt.trim().lines().next().unwrap_or_default();
            self.title = line.chars().take(TITLE_CHARS_MAX).collect();
        }
        if self.roles.timeline {
            self.shown(event)?;
        }
        if self.roles.turns
            && let (Some(change), Some(scope)) = (&event.change, event.scope)
        {
            self.change(event.ordinal, scope.turn, change)?;
        }
        Ok(())
    }

    /// What people see of an event.
    fn shown(&mut self, event: &EventRecord) -> Result<(), StoreError> {
        if self.patch.as_mut().is_some_and(|open| open.join(event)) {
            return Ok(());
        }
        self.flush_patch()?;
        self.patch = OpenPatch::of(event);
        if self.patch.is_some() {
            return Ok(());
        }
        self.row(event.ordinal, place(event), &event.payload)?;
        if let Some(state) = &event.state {
            self.delete(DROP_PATCHES, (self.session, event.scope.map(|it| it.turn)))?;
            self.state(signed(event.ordinal), state.encode_to_vec())?;
        }
        Ok(())
    }

    fn flush_patch(&mut self) -> Result<(), StoreError> {
        let Some(OpenPatch { ordinal, place, payload }) = self.patch.take() else { return Ok(()) };
        self.row(ordinal, place, &payload)
    }

    fn row(
        &mut self,
        ordinal: Ordinal,
        (turn, call): (Option<u32>, Option<u32>),
        payload: &Any,
    ) -> Result<(), StoreError> {
        let Some((name, payload)) = payload.to_message() else { return Ok(()) };
        self.grows(payload.len());
        let values = (self.session, signed(ordinal), turn, call, name, payload, self.at_ms);
        self.run(EVENT, values)?;
        Ok(())
    }

    /// What the model is sent of an event.
    fn change(
        &mut self,
        ordinal: Ordinal,
        turn: u32,
        change: &TurnChange,
    ) -> Result<(), StoreError> {
        if let TurnChange::Piece(more) = change {
            let piece = self.piece.get_or_insert_with(|| (ordinal, turn, String::new()));
            piece.0 = ordinal;
            piece.2 += more;
            return Ok(());
        }
        self.flush_piece()?;
        if let TurnChange::Ended(ended) = change {
            self.delete(DROP_STEPS, (self.session, turn))?;
            let Some(ended) = ended else { return Ok(()) };
            let message = turn_message(ended, &mut self.blobs).encode_to_vec();
            self.grows(message.len());
            self.run(TURN, (self.session, turn, signed(ordinal), message))?;
            return Ok(());
        }
        let Some(step) = change_message(change, &mut self.blobs) else { return Ok(()) };
        self.step(ordinal, turn, &step)
    }

    fn flush_piece(&mut self) -> Result<(), StoreError> {
        let Some((ordinal, turn, piece)) = self.piece.take() else { return Ok(()) };
        let step = change_message(&TurnChange::Piece(piece), &mut self.blobs);
        step.map_or(Ok(()), |step| self.step(ordinal, turn, &step))
    }

    fn step(&mut self, ordinal: Ordinal, turn: u32, step: &StoredStep) -> Result<(), StoreError> {
        let step = step.encode_to_vec();
        self.grows(step.len());
        self.run(STEP, (self.session, signed(ordinal), turn, step))?;
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.flush_piece()?;
        self.flush_patch()?;
        for (hash, data) in std::mem::take(&mut self.blobs) {
            self.run(BLOB, (&hash, &*data))?;
            if self.run(BLOB_OF, (self.session, hash))? > 0 {
                self.grows(data.len());
            }
        }
        let title = std::mem::take(&mut self.title);
        let (bytes, states) = (self.bytes, self.states);
        let values =
            (self.session, self.at_ms, signed(self.last), self.turns, title, bytes, states);
        self.run(CHANGED, values)?;
        if states > 0 { self.join_states() } else { Ok(()) }
    }

    /// Joins the states that were not joined yet, once there are many: the entities of one come after
    /// those of the other, so that a tombstone still comes after what it removes.
    fn join_states(&mut self) -> Result<(), StoreError> {
        let loose: i64 =
            self.transaction.prepare_cached(LOOSE)?.query_row([self.session], |row| row.get(0))?;
        if loose < LOOSE_STATES_MAX {
            return Ok(());
        }
        let mut statement = self.transaction.prepare_cached(LAST_STATES)?;
        let rows = statement
            .query_map((self.session, loose), |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        let mut states: Vec<(i64, Vec<u8>)> = rows.collect::<Result<_, _>>()?;
        states.reverse();
        let (Some(&(first, _)), Some(&(last, _))) = (states.first(), states.last()) else {
            return Ok(());
        };
        // Messages of protobuf that follow each other are one message, with the fields of all.
        let joined: Vec<u8> = states.into_iter().flat_map(|(_, payload)| payload).collect();
        self.run(DROP_STATES, (self.session, first))?;
        self.run(STATE, (self.session, last, joined))?;
        self.run(JOINED, [self.session])?;
        Ok(())
    }
}

impl Record {
    fn ends_turn(&self) -> bool {
        match self {
            Self::Start(_) => false,
            Self::Event(event) => event.state.is_some(),
        }
    }
}

/// An ordinal as SQLite's integer. One that does not fit is 292 million years of events away.
fn signed(ordinal: Ordinal) -> i64 {
    i64::try_from(ordinal.0).unwrap_or(i64::MAX)
}
