//! Writes batches into a file of SQLite: all of one or nothing.

use super::{Sqlite, TRANSACTION_BYTES, find, now_ms};
use crate::protocol::id::SessionId;
use crate::store::Item;
use crate::store::batch::Batch;
use crate::store::error::StoreError;
use crate::store::row::{Hash, NewRow};
use crate::support::fail_point::FailPoint;
use rusqlite::blob::{Blob, ZeroBlob};
use rusqlite::{
    MAIN_DB, OptionalExtension, Params, ToSql, Transaction, TransactionBehavior, params,
};

const ROW: &str = "INSERT INTO log(session, number, first, last, sealed, previous, hash, events) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const END: &str = "SELECT rows, head FROM sessions WHERE key = ?";
const REPLACED: &str = "DELETE FROM log WHERE session = ? AND number > ? RETURNING length(events)";
/// A copy that is damaged is mended by the next one.
const BLOB_MENDED: &str = "INSERT INTO blobs(sha256, data) VALUES (?1, ?2) \
     ON CONFLICT(sha256) DO UPDATE SET data = excluded.data WHERE data IS NOT excluded.data";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, changed, \
     last, turns, dropped_turns, bytes, start, rows, head) \
     VALUES (?1, '', ?2, ?3, ?3, (SELECT coalesce(max(changed), 0) + 1 FROM sessions), \
     0, 0, 0, 0, ?4, 0, x'')";
const ORPHANS: &str = "DELETE FROM log WHERE session = ?";
const ORPHAN_BLOBS: &str = "DELETE FROM session_blobs WHERE session = ?";
const RENAMED: &str = "UPDATE sessions SET title = ?2 WHERE key = ?1";
/// The time of the last write does not go back with the clock, unless it is more than a day ahead: then the clock was
/// wrong before.
const CHANGED: &str = "UPDATE sessions SET updated_ms = CASE \
     WHEN ?2 > 0 AND updated_ms > ?2 + 86400000 THEN ?2 ELSE max(updated_ms, ?2) END, \
     changed = CASE WHEN ?11 AND changed < (SELECT max(changed) FROM sessions) \
     THEN (SELECT max(changed) + 1 FROM sessions) ELSE changed END, \
     last = max(last, ?3), turns = max(turns, ?4), title = CASE \
     WHEN ?6 IS NOT NULL AND (title = '' OR turns <= dropped_turns + ?5) THEN ?6 ELSE title END, \
     dropped_turns = dropped_turns + ?5, bytes = bytes + ?7, choices = coalesce(?8, choices), \
     rows = ?9, head = ?10 WHERE key = ?1";

/// Bytes of a value above which no copy of it is made to write it.
const WHOLE_BYTES_MAX: usize = 1024 * 1024;

/// Attempts to write to a database that another program has locked. Each attempt lasts for the
/// database's own timeout, so that a backup or a vacuum of half a minute does not end the storing.
const WRITES_MAX: u32 = 6;

impl Sqlite {
    /// Writes batches of sessions that were claimed, in one transaction; syncs it (fsync) if one of them ends a
    /// turn. Where they can't be written together each is written alone.
    pub(in crate::store) fn write(&mut self, all: &mut [Item<'_>]) -> Vec<Result<(), StoreError>> {
        if all.len() > 1 {
            match patiently(|| self.write_once(all)) {
                Ok(()) => return all.iter().map(|_| Ok(())).collect(),
                // Each would wait as long again; and a file that is gone has all of them.
                Err(error) if error.is_busy() || matches!(error, StoreError::Gone(_)) => {
                    let failed = |_: &Item<'_>| Err(StoreError::Failed(error.to_string()));
                    return all.iter().map(failed).collect();
                }
                Err(error) => tracing::debug!(%error, "sessions are written one by one"),
            }
        }
        all.chunks_mut(1).map(|one| patiently(|| self.write_once(one))).collect()
    }

    fn write_once(&mut self, all: &mut [Item<'_>]) -> Result<(), StoreError> {
        let ends_turn = all.iter().any(|it| it.batch.ends_turn);
        // The end of a turn survives a loss of power, and with it all that was written before.
        self.sync(ends_turn)?;
        let behavior = TransactionBehavior::Immediate;
        let Self { connection, fault, .. } = self;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let (mut keys, mut grown) = (Vec::new(), TRANSACTION_BYTES);
        for item in &mut *all {
            let Item { session, folder, batch, .. } = *item;
            let key = match item.locked().and_then(|it| it.key) {
                Some(key) => Some(key),
                None => find(&transaction, session)?,
            };
            let mut writing = Writing {
                transaction: &transaction,
                fault,
                session: key.unwrap_or_default(),
                at_ms: now_ms(),
                bytes: 0,
                grown: 0,
            };
            if key.is_none() {
                writing.begin(session, batch, folder)?;
            }
            writing.write(batch)?;
            keys.push(writing.session);
            grown += writing.grown;
        }
        transaction.commit()?;
        for (item, key) in all.iter_mut().zip(keys) {
            if let Some(locked) = item.locked() {
                locked.key = Some(key);
            }
        }
        self.logged += grown;
        if ends_turn { self.check_place() } else { Ok(()) }
    }
}

/// Retries a write that failed because another program has locked the database.
fn patiently(mut write: impl FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    for _ in 1..WRITES_MAX {
        match write() {
            Err(error) if error.is_busy() => {
                tracing::warn!("another program has locked the store, so what is new waits");
            }
            written => return written,
        }
    }
    write()
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
        self.check_end(batch)?;
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
        if let Some(title) = &batch.renamed {
            self.run(RENAMED, (self.session, title))?;
        }
        let Batch { last, turns, dropped_turns, choices, row_count, head, .. } = batch;
        let title = (!batch.keeps_title).then_some(&batch.title);
        let is_activity = batch.is_activity;
        let at_ms = if is_activity { self.at_ms } else { 0 };
        let (session, bytes, removed, head) =
            (self.session, self.bytes, dropped_turns, head.as_bytes());
        let values = params![
            session,
            at_ms,
            last,
            turns,
            removed,
            title,
            bytes,
            choices,
            row_count,
            head,
            is_activity
        ];
        self.run(CHANGED, values)?;
        Ok(())
    }

    /// Checks that the log ends where this process left it. Where the lock of the session was removed, another process
    /// may have added rows, which a batch that replaces the open ones would delete.
    fn check_end(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut statement = self.transaction.prepare_cached(END)?;
        let end = statement.query_row([self.session], |row| {
            let head = Hash::of_bytes(row.get_ref(1)?.as_blob().unwrap_or_default());
            Ok((row.get::<_, i64>(0)?, head.unwrap_or_default()))
        });
        match end.optional()? {
            Some(end) if end == batch.follows => Ok(()),
            Some(_) | None => Err(StoreError::Overtaken),
        }
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
            // What can't be read can't be compared: it stays as it is.
            if self.run(BLOB_MENDED, (sha256, data)).is_err() {
                self.run(BLOB, (sha256, data))?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    /// What SQLite reports, with the number of attempts until it does not.
    fn tried(code: i32, failures: u32) -> (Result<(), String>, u32) {
        let mut attempts = 0;
        let result = patiently(|| {
            attempts += 1;
            match attempts > failures {
                true => Ok(()),
                false => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()),
            }
        });
        (result.map_err(|error| error.to_string()), attempts)
    }

    #[test]
    fn a_lock_is_waited_for_and_nothing_else() {
        assert_eq!(tried(ffi::SQLITE_BUSY, 0), (Ok(()), 1));
        assert_eq!(tried(ffi::SQLITE_BUSY, WRITES_MAX - 1), (Ok(()), WRITES_MAX));
        let (result, attempts) = tried(ffi::SQLITE_BUSY, u32::MAX);
        let why = result.expect_err("it stays locked");
        assert!(attempts == WRITES_MAX && why.contains("another program keeps it locked"), "{why}");
        let (result, attempts) = tried(ffi::SQLITE_FULL, 1);
        assert!(attempts == 1 && !result.expect_err("no room").contains("locked"));
    }
}
