//! Loads the log of a session from PostgreSQL, as it was at one moment.

use super::Core;
use super::error::PostgresError;
use super::link::{LIMITS, Link};
use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::StoredChoices;
use crate::store::codec::choices;
use crate::store::reading::{Reading, SessionRow, Sink};
use crate::store::row::{Hash, RowHead, StoredRow};
use prost::Message;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Rows that are fetched at once.
const ROWS_AT_ONCE: usize = 64;

const SESSION: &str =
    "SELECT key, last, turns, start, rows, head FROM duologue.sessions WHERE id = $1";
const BLOBS: &str = "SELECT b.sha256, data FROM duologue.session_blobs b \
     LEFT JOIN duologue.blobs USING (sha256) WHERE b.session = $1";
const ROWS: &str = "SELECT number, first, last, sealed, previous, hash, events FROM duologue.log \
     WHERE session = $1 AND number > $2 ORDER BY number LIMIT $3";
const CHOICES: &str = "SELECT choices FROM duologue.sessions WHERE id = $1";

impl Core {
    pub(super) async fn load(
        &mut self,
        session: &SessionId,
        sink: Sink,
    ) -> Result<Reading, PostgresError> {
        let mut reading = Reading::new(session, self.address.to_string(), sink);
        let link = self.link().await?;
        link.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {LIMITS}")).await?;
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
            if reading.wants_blobs() {
                blobs(link, key, &mut reading).await?;
            }
            rows(link, key, &mut reading).await?;
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

/// The bytes of the attachments.
async fn blobs(link: &Link, key: i64, reading: &mut Reading) -> Result<(), PostgresError> {
    for row in link.rows(BLOBS, &[(&key, Type::INT8)]).await? {
        match row.get::<_, Option<Vec<u8>>>(1) {
            Some(data) => drop(reading.blobs.insert(row.get(0), data.into())),
            None => reading.lost_blobs += 1,
        }
    }
    Ok(())
}

/// The rows of the log, some at a time.
async fn rows(link: &Link, key: i64, reading: &mut Reading) -> Result<(), PostgresError> {
    let limit = i64::try_from(ROWS_AT_ONCE).unwrap_or(i64::MAX);
    let mut last: i64 = -1;
    loop {
        let values = [(&key as _, Type::INT8), (&last as _, Type::INT8), (&limit as _, Type::INT8)];
        let rows = link.rows(ROWS, &values).await?;
        for row in &rows {
            last = row.get(0);
            reading.row(&stored(row));
        }
        if rows.len() < ROWS_AT_ONCE {
            return Ok(());
        }
    }
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
