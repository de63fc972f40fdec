//! Queries on all sessions of one file of SQLite, and the deletion of one.

use super::error::StoreError;
use super::library::Summary;
use super::sqlite::Sqlite;
use super::{log_file, path as file_path, schema};
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// How long another process that changes the same file is waited for.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

const SUMMARIES: &str =
    "SELECT id, title, folder, turns, created_ms, updated_ms, bytes FROM sessions";

/// The bytes that no other session has.
const DELETE_BLOBS: &str = "DELETE FROM blobs WHERE sha256 IN \
     (SELECT sha256 FROM session_blobs WHERE session = ?1) AND sha256 NOT IN \
     (SELECT sha256 FROM session_blobs WHERE session <> ?1)";

/// The rows of other tables go with it.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE key = ?";

/// Opens a store that there is, for reading only unless it has an older format.
pub(super) fn open(path: &Path) -> Result<Sqlite, StoreError> {
    let path = &*file_path::resolve(path)?;
    let failed = |source| StoreError::Io { path: path.to_owned(), action: "opened", source };
    file_path::check_kind(path, &path.metadata().map_err(failed)?)?;
    match read_only(path) {
        Ok(Some(connection)) => Ok(Sqlite {
            connection,
            path: path.to_owned(),
            key: None,
            is_full: false,
            damage: None,
            log_loss: log_file::loss(path),
            file: None,
            fault: FailPoint::default(),
            lock: None,
        }),
        // What is damaged is read as far as it can be.
        Err(error) if error.is_damage() => Sqlite::open(path, false, FailPoint::default()),
        Ok(None) => Sqlite::open(path, false, FailPoint::default()),
        Err(error) => Err(error),
    }
}

/// Whether there is a file without a byte, which is a store without a session.
pub(super) fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0)
}

/// The file, if it has the newest format.
fn read_only(path: &Path) -> Result<Option<Connection>, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    let format = schema::check(&connection, path)?;
    Ok((format == schema::FORMAT).then_some(connection))
}

/// All sessions, in no order.
pub(super) fn summaries(sqlite: &Sqlite) -> Result<Vec<Summary>, StoreError> {
    let mut statement = sqlite.connection.prepare(SUMMARIES)?;
    let rows = statement.query_map([], summary)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn summary(row: &Row<'_>) -> Result<Summary, rusqlite::Error> {
    let bytes = u64::try_from(row.get::<_, i64>(6)?).unwrap_or_default();
    Ok(Summary {
        id: row.get(0)?,
        title: row.get(1)?,
        folder: row.get(2)?,
        turns: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        bytes,
    })
}

/// Deletes a session that was claimed. `false`: another process reads the file, so that its log still
/// has what it had before.
pub(super) fn delete(sqlite: &mut Sqlite, session: &SessionId) -> Result<bool, StoreError> {
    let Some(key) = sqlite.find(session)? else { return Ok(true) };
    sqlite.check_writable()?;
    sqlite.sync(true)?;
    let connection = &mut sqlite.connection;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(DELETE_BLOBS, [key])?;
    transaction.execute(DELETE_SESSION, [key])?;
    transaction.commit()?;
    // The deleted pages are zeros now, in the log; this copies them over those in the database.
    let is_busy =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))?;
    Ok(is_busy == 0)
}
