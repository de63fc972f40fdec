//! Loads the log of a session from PostgreSQL, as it was at one moment.

use super::Core;
use super::error::PostgresError;
use super::link::{Link, Value, begin_reading, work_limit};
use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::StoredChoices;
use crate::store::codec::choices;
use crate::store::reading::{Reading, SessionRow, Sink};
use crate::store::row::{Hash, RowHead, StoredRow};
use prost::Message;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Rows that are fetched at once, and bytes from which on no more of them are: a slow link has its time for each
/// answer.
const ROWS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 1024 * 1024;

/// Bytes of an answer for which the transaction leaves the server the time from its beginning.
const SMALL_BYTES_MAX: usize = 2 * BYTES_AT_ONCE;

/// Also the size of the largest row of the log or attachment, which the server knows without reading what it keeps
/// apart.
const SESSION: &str = "SELECT key, last, turns, start, rows, head, greatest(0, \
         (SELECT max(octet_length(events)) FROM duologue.log WHERE session = key), \
         (SELECT max(octet_length(data)) FROM duologue.session_blobs b \
          JOIN duologue.blobs USING (sha256) WHERE b.session = key))::bigint \
     FROM duologue.sessions WHERE id = $1";
const BLOBS: &str = "SELECT sha256, data FROM ( \
         SELECT b.sha256, data, sum(octet_length(data)) OVER (ORDER BY b.sha256) \
             - octet_length(data) AS before \
         FROM duologue.session_blobs b LEFT JOIN duologue.blobs USING (sha256) \
         WHERE b.session = $1 AND b.sha256 > $2 ORDER BY b.sha256 LIMIT $3) AS it \
     WHERE coalesce(before, 0) < $4 ORDER BY sha256";
const ROWS: &str = "SELECT number, first, last, sealed, previous, hash, events FROM ( \
         SELECT *, sum(octet_length(events)) OVER (ORDER BY number) \
             - octet_length(events) AS before \
         FROM duologue.log WHERE session = $1 AND number > $2 ORDER BY number LIMIT $3) AS it \
     WHERE before < $4 ORDER BY number";
const CHOICES: &str = "SELECT choices FROM duologue.sessions WHERE id = $1";

impl Core {
    pub(super) async fn load(
        &mut self,
        session: &SessionId,
        sink: Sink,
    ) -> Result<Reading, PostgresError> {
        let mut reading = Reading::new(session, self.address.to_string(), sink);
        let link = self.link().await?;
        link.run(&begin_reading(SMALL_BYTES_MAX)).await?;
        let row = link.row(SESSION, &[(&session.as_str(), Type::TEXT)]).await?;
        if let Some(row) = &row {
            reading.begin(&SessionRow {
                last: row.get(1),
                turns: small(row.get(2)),
                start: row.get(3),
                rows: row.get(4),
                head: row.get(5),
            });
            let key: i64 = row.get(0);
            let answers = Answers::of(link, key, row.get(6)).await?;
            if reading.wants_blobs() {
                answers.blobs_anyhow(&mut reading).await?;
            }
            answers.rows(&mut reading).await?;
        }
        link.run("COMMIT").await?;
        reading.end();
        Ok(reading)
    }

    /// What was chosen in a session, as far as that is cached.
    pub(super) async fn choices(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Choices>, PostgresError> {
        let link = self.link().await?;
        let row = link.row(CHOICES, &[(&session.as_str(), Type::TEXT)]).await?;
        let read = |stored: &[u8]| StoredChoices::decode(stored).map(choices).ok();
        Ok(row.and_then(|row| row.get::<_, Option<&[u8]>>(0).and_then(read)))
    }
}

/// What a session has, in answers of a limited size.
struct Answers<'a> {
    link: &'a Link,
    key: i64,
    /// Bytes of the largest answer: its last row may begin just below the limit.
    bytes: usize,
}

impl<'a> Answers<'a> {
    /// Answers about the session `key`, whose largest row has `largest` bytes. The server gets time in proportion.
    async fn of(link: &'a Link, key: i64, largest: i64) -> Result<Self, PostgresError> {
        let largest = usize::try_from(largest).unwrap_or_default();
        let bytes = largest + BYTES_AT_ONCE;
        if bytes > SMALL_BYTES_MAX {
            link.run(&work_limit(bytes)).await?;
        }
        Ok(Self { link, key, bytes })
    }

    /// The rows after `last`, as many as there may be at once.
    async fn after(&self, sql: &str, last: Value<'_>) -> Result<Vec<Row>, PostgresError> {
        let limit = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let (rows, bytes) = (limit(ROWS_AT_ONCE), limit(BYTES_AT_ONCE));
        let values =
            [(&self.key as _, Type::INT8), last, (&rows, Type::INT8), (&bytes, Type::INT8)];
        self.link.large_rows(sql, &values, self.bytes).await
    }

    /// The bytes of the attachments; up to the first that the server can't read, which must not hide the log.
    async fn blobs_anyhow(&self, reading: &mut Reading) -> Result<(), PostgresError> {
        match self.blobs(reading).await {
            Err(error) if error.is_damage() => {
                reading.unread().stopped(&error);
                // An error ends a transaction.
                self.link.run("ROLLBACK").await?;
                self.link.run(&begin_reading(self.bytes.max(SMALL_BYTES_MAX))).await
            }
            read => read,
        }
    }

    /// The bytes of the attachments.
    async fn blobs(&self, reading: &mut Reading) -> Result<(), PostgresError> {
        let mut last = String::new();
        loop {
            let rows = self.after(BLOBS, (&last, Type::TEXT)).await?;
            let is_end = is_end(&rows, 1);
            for row in rows {
                last = row.get(0);
                reading.blob(last.clone(), row.get(1));
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// The rows of the log.
    async fn rows(&self, reading: &mut Reading) -> Result<(), PostgresError> {
        let mut last: i64 = -1;
        loop {
            let rows = self.after(ROWS, (&last, Type::INT8)).await?;
            for row in &rows {
                last = row.get(0);
                reading.row(&stored(row));
            }
            if is_end(&rows, 6) {
                return Ok(());
            }
        }
    }
}

/// Whether nothing follows these rows, which neither of the limits has cut. `column` has their bytes.
fn is_end(rows: &[Row], column: usize) -> bool {
    let size = |row: &Row| row.get::<_, Option<&[u8]>>(column).map_or(0, <[u8]>::len);
    rows.len() < ROWS_AT_ONCE && rows.iter().map(size).sum::<usize>() < BYTES_AT_ONCE
}

fn stored(row: &Row) -> StoredRow<'_> {
    let hash = |column| Hash::of_bytes(row.get(column)).unwrap_or_default();
    let head = RowHead {
        number: row.get(0),
        first: row.get(1),
        last: row.get(2),
        is_sealed: row.get(3),
        previous: hash(4),
    };
    StoredRow { head, hash: hash(5), events: row.get(6) }
}

/// The number of turns, which was written from one of this size.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
