//! Writes batches of records: all of one or nothing.

use super::Roles;
use super::error::StoreError;
use super::sqlite::{Sqlite, now_ms};
use super::turn::{Blobs, change_message, preamble_message, turn_message};
use crate::chat::record::{EventRecord, Record, SessionStart, TurnChange};
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::session::TokenCounts;
use crate::protocol::proto::store::StoredStep;
use crate::support::fail_point::FailPoint;
use prost::Message;
use rusqlite::{Params, Transaction, TransactionBehavior};

/// Characters of a session's title: the beginning of its first prompt.
const TITLE_CHARS_MAX: usize = 80;

/// The number of the steps that are of no turn.
const NO_TURN: u32 = 0;

const EVENT: &str = "INSERT INTO events(session, ordinal, turn, call, name, payload, at_ms) \
     VALUES (?, ?, ?, ?, ?, ?, ?)";
const STATE: &str = "INSERT INTO states(session, ordinal, payload) VALUES (?, ?, ?)";
const STEP: &str = "INSERT INTO steps(session, ordinal, turn, payload) VALUES (?, ?, ?, ?)";
const TURN: &str = "INSERT INTO turns(session, turn, ordinal, payload) VALUES (?, ?, ?, ?)";
const DROP_STEPS: &str = "DELETE FROM steps WHERE session = ? AND turn = ?";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, \
     last_ordinal, turns, preamble) VALUES (?, '', ?, ?, ?, 0, 0, ?)";
const CHANGED: &str = "UPDATE sessions SET updated_ms = ?2, last_ordinal = max(last_ordinal, ?3), \
     turns = max(turns, ?4), title = CASE WHEN title = '' THEN ?5 ELSE title END WHERE key = ?1";

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
            piece: None,
        }
    }

    /// Runs a statement that writes.
    fn run(&mut self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        if self.fault.is_tripped() {
            return Err(rusqlite::Error::InvalidParameterName("planted fault".to_owned()).into());
        }
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
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
        self.run(SESSION, (session.as_str(), folder, at_ms, at_ms, preamble))?;
        Ok(self.transaction.last_insert_rowid())
    }

    /// The earlier messages, as people see them.
    fn history(&mut self, start: &SessionStart) -> Result<(), StoreError> {
        if !self.roles.timeline || start.history.entities.is_empty() {
            return Ok(());
        }
        self.run(STATE, (self.session, 0, start.history.encode_to_vec()))
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
            let turn = match change {
                // It is no step of a turn, and stays when turns end.
                TurnChange::Dropped(..) => NO_TURN,
                TurnChange::Began { .. }
                | TurnChange::Piece(_)
                | TurnChange::Step(_)
                | TurnChange::Result(..)
                | TurnChange::Ended(_) => scope.turn,
            };
            self.change((event.ordinal, turn), change, event.usage.as_ref())?;
        }
        Ok(())
    }

    /// What people see of an event.
    fn shown(&mut self, event: &EventRecord) -> Result<(), StoreError> {
        let ordinal = signed(event.ordinal);
        let (turn, call) = (event.scope.map(|it| it.turn), event.scope.map(|it| it.call));
        if let Some((name, payload)) = event.payload.to_message() {
            let values = (self.session, ordinal, turn, call, name, payload, self.at_ms);
            self.run(EVENT, values)?;
        }
        if let Some(state) = &event.state {
            self.run(STATE, (self.session, ordinal, state.encode_to_vec()))?;
        }
        Ok(())
    }

    /// What the model is sent of an event.
    fn change(
        &mut self,
        (ordinal, turn): (Ordinal, u32),
        change: &TurnChange,
        usage: Option<&TokenCounts>,
    ) -> Result<(), StoreError> {
        if let TurnChange::Piece(more) = change {
            let piece = self.piece.get_or_insert_with(|| (ordinal, turn, String::new()));
            piece.0 = ordinal;
            piece.2 += more;
            return Ok(());
        }
        self.flush_piece()?;
        if let TurnChange::Ended(ended) = change {
            self.run(DROP_STEPS, (self.session, turn))?;
            let Some(ended) = ended else { return Ok(()) };
            let message = turn_message(ended, usage, &mut self.blobs).encode_to_vec();
            return self.run(TURN, (self.session, turn, signed(ordinal), message));
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
        self.run(STEP, (self.session, signed(ordinal), turn, step.encode_to_vec()))
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.flush_piece()?;
        for (hash, data) in std::mem::take(&mut self.blobs) {
            self.run(BLOB, (&hash, &*data))?;
            self.run(BLOB_OF, (self.session, hash))?;
        }
        let title = std::mem::take(&mut self.title);
        let values = (self.session, self.at_ms, signed(self.last), self.turns, title);
        self.run(CHANGED, values)
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
