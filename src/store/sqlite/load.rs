//! Loads the log of a session from a file of SQLite: what can be read of it, in order, without what can't.

use super::{LogLoss, Sqlite};
use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::StoredChoices;
use crate::store::codec::choices;
use crate::store::error::StoreError;
use crate::store::reading::{Reading, SessionRow, Sink};
use crate::store::row::{Hash, RowHead, StoredRow};
use prost::Message;
use rusqlite::{OptionalExtension, Row};

const SESSION: &str = "SELECT last, turns, start, rows, head FROM sessions WHERE key = ?";
const HASHES: &str = "SELECT sha256 FROM session_blobs WHERE session = ?";
const BLOB: &str = "SELECT data FROM blobs WHERE sha256 = ?";
const BLOB_IN_TABLE: &str = "SELECT data FROM blobs NOT INDEXED WHERE sha256 = ?";
const CHOICES: &str = "SELECT choices FROM sessions WHERE key = ?";

impl Sqlite {
    pub(in crate::store) fn load(
        &mut self,
        session: &SessionId,
        sink: Sink,
    ) -> Result<Reading, StoreError> {
        let place = self.path.display().to_string();
        let mut reading = Reading::new(session, place, sink);
        // All of it as it was at one moment.
        self.connection.execute_batch("BEGIN")?;
        let read = self.read(session, &mut reading);
        self.connection.execute_batch("COMMIT").ok();
        // Nothing in a damaged file is as it should be.
        if let Err(error) = self.allow_damage(read)? {
            reading.lost(self.damaged(&error.to_string()), true);
        }
        // Of a torn page it is not known that anything is missing.
        if let Some(loss) = self.log_loss.filter(|loss| *loss != LogLoss::Torn) {
            let path = self.path.display();
            let reason =
                format!("the log of the store {path} {loss}: what was written last is missing");
            reading.lost(reason, false);
        }
        reading.end();
        Ok(reading)
    }

    pub(super) fn damaged(&self, damage: &str) -> String {
        let path = self.path.display();
        format!(
            "the store {path} is damaged: {damage}; what could be read was loaded, and the store is \
             left as it is"
        )
    }

    fn read(&mut self, session: &SessionId, reading: &mut Reading) -> Result<(), StoreError> {
        if !self.has_tables {
            return Ok(());
        }
        let found = self.key_of(session)?;
        // The index of ids may be what is damaged, although all of the session is there.
        if let Some(damage) = &self.damage {
            reading.lost(self.damaged(damage), true);
        }
        let Some(key) = found else { return Ok(()) };
        let mut statement = self.connection.prepare_cached(SESSION)?;
        let mut rows = statement.query([key])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        reading.begin(&SessionRow {
            last: row.get(0)?,
            turns: row.get(1)?,
            start: blob(row, 2)?,
            rows: row.get(3)?,
            head: blob(row, 4)?,
        });
        drop(rows);
        drop(statement);
        if reading.wants_blobs() {
            self.blobs(key, reading)?;
        }
        self.each_row(key, reading)
    }

    /// The bytes of the attachments, each by itself: one that can't be read takes neither the others nor the log with
    /// it.
    fn blobs(&self, key: i64, reading: &mut Reading) -> Result<(), StoreError> {
        let mut hashes: Vec<String> = Vec::new();
        let listed = self.hashes(key, &mut hashes);
        if let Err(error) = self.allow_damage(listed)? {
            reading.unread().stopped(&error);
        }
        for sha256 in hashes {
            match self.allow_damage(self.blob(BLOB, &sha256))? {
                Ok(data) => reading.blob(sha256, data),
                // Their index may be what is damaged.
                Err(error) => match self.blob(BLOB_IN_TABLE, &sha256) {
                    Ok(data) => {
                        reading.unread().why(&error);
                        reading.blob(sha256, data);
                    }
                    Err(_) => reading.unread().left_out(1, &error),
                },
            }
        }
        Ok(())
    }

    /// Adds the hashes of the attachments, as far as they are found.
    fn hashes(&self, key: i64, hashes: &mut Vec<String>) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(HASHES)?;
        let mut rows = statement.query([key])?;
        while let Some(row) = rows.next()? {
            hashes.push(row.get(0)?);
        }
        Ok(())
    }

    /// The bytes of one; `None` if they are not there.
    fn blob(&self, sql: &str, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([sha256], |row| row.get(0)).optional()?)
    }

    /// An outer error is one that ends the reading; after an inner one, of damage, the rest is read.
    pub(super) fn allow_damage<T>(
        &self,
        read: Result<T, StoreError>,
    ) -> Result<Result<T, StoreError>, StoreError> {
        match read {
            Err(error) if !error.is_damage() && self.damage.is_none() => Err(error),
            read => Ok(read),
        }
    }

    /// What was chosen in a session, as far as that is cached.
    pub(in crate::store) fn choices(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Choices>, StoreError> {
        let key = if self.has_tables { self.key_of(session)? } else { None };
        let Some(key) = key else { return Ok(None) };
        let mut statement = self.connection.prepare_cached(CHOICES)?;
        let found = statement.query_row([key], |row| row.get::<_, Option<Vec<u8>>>(0));
        let found = found.optional()?;
        let read = |stored: Vec<u8>| StoredChoices::decode(&*stored).map(choices).ok();
        Ok(found.flatten().and_then(read))
    }
}

/// The row of the log in the columns from `number` on.
pub(super) fn row_of<'a>(row: &'a Row<'_>) -> Result<StoredRow<'a>, StoreError> {
    let hash = |column| Ok::<_, StoreError>(Hash::of_bytes(blob(row, column)?).unwrap_or_default());
    let head = RowHead {
        number: row.get(0)?,
        first: row.get(1)?,
        last: row.get(2)?,
        is_sealed: row.get(3)?,
        previous: hash(4)?,
    };
    Ok(StoredRow { head, hash: hash(5)?, events: blob(row, 6)? })
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], StoreError> {
    Ok(row.get_ref(column)?.as_blob().unwrap_or_default())
}
