//! Writes batches into a file of SQLite: all of one or nothing.

use super::{Sqlite, TRANSACTION_BYTES, now_ms};
use crate::protocol::id::SessionId;
use crate::store::batch::Batch;
use crate::store::error::StoreError;
use crate::store::row::NewRow;
use crate::support::fail_point::FailPoint;
use rusqlite::blob::{Blob, ZeroBlob};
use rusqlite::{MAIN_DB, Params, ToSql, Transaction, TransactionBehavior, params};

const ROW: &str = "INSERT INTO log(session, number, first, last, sealed, previous, hash, events) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const REPLACED: &str = "DELETE FROM log WHERE session = ? AND number > ? RETURNING length(events)";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, changed, \
     last, turns, dropped_turns, bytes, start, rows, head) \
     VALUES (?1, '', ?2, ?3, ?3, (SELECT coalesce(max(changed), 0) + 1 FROM sessions), \
     0, 0, 0, 0, ?4, 0, x'')";
const ORPHANS: &str = "DELETE FROM log WHERE session = ?";
const ORPHAN_BLOBS: &str = "DELETE FROM session_blobs WHERE session = ?";
const CHANGED: &str = "UPDATE sessions SET updated_ms = max(updated_ms, ?2), \
     changed = CASE WHEN changed < (SELECT max(changed) FROM sessions) \
     THEN (SELECT max(changed) + 1 FROM sessions) ELSE changed END, \
     last = max(last, ?3), turns = max(turns, ?4), title = CASE \
     WHEN title = '' OR turns <= dropped_turns + ?5 THEN ?6 ELSE title END, \
     dropped_turns = dropped_turns + ?5, bytes = bytes + ?7, choices = coalesce(?8, choices), \
     rows = ?9, head = ?10 WHERE key = ?1";

/// Bytes of a value above which no copy of it is made to write it.
const WHOLE_BYTES_MAX: usize = 1024 * 1024;

impl Sqlite {
    /// Writes a batch for a session that was claimed; syncs it (fsync) if it ends a turn.
    pub(in crate::store) fn write(
        &mut self,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) -> Result<(), StoreError> {
        // The end of a turn survives a loss of power, and with it all that was written before.
        self.sync(batch.ends_turn)?;
        let key = match self.key {
            Some(key) => Some(key),
            None => self.find(session)?,
        };
        let behavior = TransactionBehavior::Immediate;
        let Self { connection, fault, .. } = self;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let (session_key, at_ms) = (key.unwrap_or_default(), now_ms());
        let mut writing = Writing {
            transaction: &transaction,
            fault,
            session: session_key,
            at_ms,
            bytes: 0,
            grown: 0,
        };
        if key.is_none() {
            writing.begin(session, batch, folder)?;
        }
        writing.write(batch)?;
        let (key, grown) = (writing.session, writing.grown);
        transaction.commit()?;
        self.key = Some(key);
        self.logged += grown + TRANSACTION_BYTES;
        if batch.ends_turn { self.check_place() } else { Ok(()) }
    }
}

/// A batch on its way into the database.
struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    fault: &'a mut FailPoint,
    session: i64,
    at_ms: i64,
    /// By how much the size of the session changes.
    bytes: i64,
    /// Bytes that are added.
    grown: u64,
}

impl Writing<'_> {
    /// Runs a statement that writes; gives the number of rows that it changed.
    fn run(&mut self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.step_fault()?;
        Ok(self.transaction.prepare_cached(sql)?.execute(values)?)
    }

    fn step_fault(&mut self) -> Result<(), StoreError> {
        if self.fault.is_tripped() {
            return Err(rusqlite::Error::InvalidParameterName("planted fault".to_owned()).into());
        }
        Ok(())
    }

    fn grows(&mut self, bytes: usize) {
        self.grown += bytes as u64;
        self.bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// Adds the session.
    fn begin(
        &mut self,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) -> Result<(), StoreError> {
        let (at_ms, start) = (self.at_ms, batch.start.as_deref().unwrap_or_default());
        self.grows(start.len());
        self.run(SESSION, (session.as_str(), folder, at_ms, start))?;
        self.session = self.transaction.last_insert_rowid();
        // A program that does not check references may have left rows of a session that had this key.
        self.run(ORPHANS, [self.session])?;
        self.run(ORPHAN_BLOBS, [self.session])?;
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if let Some(last) = batch.replaces_after {
            self.replace_after(last)?;
        }
        for row in &batch.rows {
            self.row(row)?;
        }
        for (sha256, data) in &batch.blobs {
            self.blob(sha256, data)?;
            if self.run(BLOB_OF, (self.session, sha256))? > 0 {
                self.grows(data.len());
            }
        }
        let Batch { last, turns, title, dropped_turns, choices, row_count, head, .. } = batch;
        let (session, at_ms, bytes) = (self.session, self.at_ms, self.bytes);
        let (removed, head) = (dropped_turns, head.as_bytes());
        let values =
            params![session, at_ms, last, turns, removed, title, bytes, choices, row_count, head];
        self.run(CHANGED, values)?;
        Ok(())
    }

    /// Removes the rows after that one.
    fn replace_after(&mut self, last: i64) -> Result<(), StoreError> {
        self.step_fault()?;
        let mut statement = self.transaction.prepare_cached(REPLACED)?;
        let mut rows = statement.query((self.session, last))?;
        while let Some(row) = rows.next()? {
            self.bytes -= row.get::<_, i64>(0)?;
        }
        Ok(())
    }

    /// Adds a row. One that is large is written piece by piece into its place.
    fn row(&mut self, row: &NewRow) -> Result<(), StoreError> {
        self.step_fault()?;
        let NewRow { head, hash, events } = row;
        self.grows(events.size());
        let whole;
        let zeros = ZeroBlob(events.size() as u64);
        let is_small = events.size() <= WHOLE_BYTES_MAX;
        let value: &dyn ToSql = match is_small {
            true => {
                whole = events.to_vec();
                &whole
            }
            false => &zeros,
        };
        let (session, previous, hash) = (self.session, head.previous.as_bytes(), hash.as_bytes());
        let numbers = (head.number, head.first, head.last, head.is_sealed);
        let values =
            params![session, numbers.0, numbers.1, numbers.2, numbers.3, previous, hash, value];
        self.transaction.prepare_cached(ROW)?.execute(values)?;
        if is_small {
            return Ok(());
        }
        let mut place = self.place(("log", "events"))?;
        let mut written = 0;
        for piece in events.iter() {
            place.write_all_at(piece, written)?;
            written += piece.len();
        }
        Ok(place.close()?)
    }

    /// Adds bytes that an attachment needs, unless they are there.
    fn blob(&mut self, sha256: &str, data: &[u8]) -> Result<(), StoreError> {
        if data.len() <= WHOLE_BYTES_MAX {
            self.run(BLOB, (sha256, data))?;
            return Ok(());
        }
        if self.run(BLOB, (sha256, ZeroBlob(data.len() as u64)))? > 0 {
            let mut place = self.place(("blobs", "data"))?;
            place.write_all_at(data, 0)?;
            place.close()?;
        }
        Ok(())
    }

    /// The place of the zeros in the row that was added last.
    fn place(&self, (table, column): (&str, &str)) -> Result<Blob<'_>, StoreError> {
        let row = self.transaction.last_insert_rowid();
        Ok(self.transaction.blob_open(MAIN_DB, table, column, row, false)?)
    }
}
