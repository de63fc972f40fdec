//! Writes batches of records into a file of SQLite: all of one or nothing.

use super::Roles;
use super::batch::{Batch, Change};
use super::error::StoreError;
use super::sqlite::{Sqlite, now_ms};
use crate::chat::record::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use rusqlite::{Params, Transaction, TransactionBehavior};

const EVENT: &str = "INSERT INTO events(session, ordinal, turn, call, name, payload, at_ms) \
     VALUES (?, ?, ?, ?, ?, ?, ?)";
const STATE: &str = "INSERT INTO states(session, ordinal, payload) VALUES (?, ?, ?)";
const STEP: &str = "INSERT INTO steps(session, ordinal, turn, payload) VALUES (?, ?, ?, ?)";
/// With a timeline in another place, the end of a turn may be stored here and not there. The run is closed
/// when the session goes on, and its turn ends again.
const TURN: &str = "INSERT INTO turns(session, turn, ordinal, payload) VALUES (?, ?, ?, ?) \
     ON CONFLICT(session, turn) DO UPDATE SET ordinal = excluded.ordinal, payload = excluded.payload";
const DROP_STEPS: &str = "DELETE FROM steps WHERE session = ? AND turn = ?";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, \
     last_ordinal, turns, preamble) VALUES (?, '', ?, ?, ?, 0, 0, ?)";
const CHANGED: &str = "UPDATE sessions SET updated_ms = max(updated_ms, ?2), last_ordinal = max(last_ordinal, ?3), \
     turns = max(turns, ?4), title = CASE WHEN title = '' THEN ?5 ELSE title END WHERE key = ?1";

impl Sqlite {
    /// Writes a batch for a session that was claimed.
    pub(super) fn write(
        &mut self,
        session: &SessionId,
        records: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), StoreError> {
        let batch = Batch::of(records, roles);
        // The end of a turn survives a loss of power, and with it all that was written before.
        self.sync(batch.ends_turn)?;
        let key = match self.key {
            Some(key) => Some(key),
            None => self.find(session)?,
        };
        let behavior = TransactionBehavior::Immediate;
        let Self { connection, fault, .. } = self;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let mut writing = Writing { transaction: &transaction, fault, session: 0, at_ms: now_ms() };
        writing.session = match key {
            Some(key) => key,
            None => writing.begin(session, &batch, folder)?,
        };
        for change in &batch.changes {
            writing.change(change)?;
        }
        writing.changed(&batch)?;
        let key = writing.session;
        transaction.commit()?;
        self.key = Some(key);
        if batch.ends_turn { self.check_place() } else { Ok(()) }
    }
}

/// A batch on its way into the database.
struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    fault: &'a mut FailPoint,
    session: i64,
    at_ms: i64,
}

impl Writing<'_> {
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
        batch: &Batch,
        folder: &str,
    ) -> Result<i64, StoreError> {
        let at_ms = self.at_ms;
        self.run(SESSION, (session.as_str(), folder, at_ms, at_ms, &batch.preamble))?;
        Ok(self.transaction.last_insert_rowid())
    }

    fn change(&mut self, change: &Change) -> Result<(), StoreError> {
        let session = self.session;
        match change {
            Change::Event { ordinal, place, name, payload } => {
                let (turn, call) = (place.map(|it| it.0), place.map(|it| it.1));
                self.run(EVENT, (session, ordinal, turn, call, name, payload, self.at_ms))
            }
            Change::State { ordinal, payload } => self.run(STATE, (session, ordinal, payload)),
            Change::Step { ordinal, turn, payload } => {
                self.run(STEP, (session, ordinal, turn, payload))
            }
            Change::DropSteps { turn } => self.run(DROP_STEPS, (session, turn)),
            Change::Turn { ordinal, turn, payload } => {
                self.run(TURN, (session, turn, ordinal, payload))
            }
            Change::Blob { sha256, data } => {
                self.run(BLOB, (sha256, &**data))?;
                self.run(BLOB_OF, (session, sha256))
            }
        }
    }

    /// The row of the session.
    fn changed(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let Batch { last, turns, title, .. } = batch;
        self.run(CHANGED, (self.session, self.at_ms, last, turns, title))
    }
}
