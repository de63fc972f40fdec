//! Queries on all sessions of one file of SQLite, and the deletion of one.

use super::wal::{self, OpenLog};
use super::{Sqlite, find, path as file_path, schema};
use crate::protocol::id::SessionId;
use crate::store::error::StoreError;
use crate::store::inspection::Checked;
use crate::store::library::Summary;
use crate::store::reading::{Sink, Unread};
use crate::support::fail_point::FailPoint;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags, Params, Row, TransactionBehavior};
use rustix::fs::Access;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another process that changes the same file is waited for.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long sessions are read to check them.
const CHECK_MAX: Duration = Duration::from_secs(2);

/// Bytes of a session that is not read for that: the time is looked at after each.
const CHECKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes that may be free in a file after a deletion, if they are also more than a quarter of it.
const FREE_BYTES_MAX: i64 = 1024 * 1024;

/// Bytes that may be left in a file that is made smaller: they are copied in memory, and nobody else writes meanwhile.
const VACUUM_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// How long another process is waited for before the file is made smaller.
const VACUUM_WAIT_MAX: Duration = Duration::from_millis(500);

/// What is written as `%XX` in the URI of a file.
const IN_URI: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

const SUMMARIES: &str =
    "SELECT id, title, folder, turns - dropped_turns, created_ms, updated_ms, bytes, key, changed";

/// The bytes that no other session has.
const DELETE_BLOBS: &str = "DELETE FROM blobs WHERE sha256 IN \
     (SELECT sha256 FROM session_blobs WHERE session = ?1) AND sha256 NOT IN \
     (SELECT sha256 FROM session_blobs WHERE session <> ?1)";

/// The rows of other tables go with it.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE key = ?";

/// Opens a store that there is, for reading only.
pub(in crate::store) fn open(path: &Path) -> Result<Sqlite, StoreError> {
    let path = &*file_path::resolve(path)?;
    let failed = |source| StoreError::Io { path: path.to_owned(), action: "opened", source };
    file_path::check_kind(path, &path.metadata().map_err(failed)?)?;
    file_path::check_access(path, Access::READ_OK)?;
    let log = OpenLog::new(path);
    let opened = read_only(path).or_else(|error| {
        if error.is_half_changed() {
            roll_back(path)?;
            return read_only(path);
        }
        Err(error)
    });
    match opened {
        Ok(opened) => Ok(of_reader(path, opened, log)),
        // What is damaged is read as far as it can be.
        Err(error) if error.is_damage() => Sqlite::open(path, false, FailPoint::default()),
        Err(error) if error.is_unwritable() => unlocked(path, log),
        Err(error) => Err(error),
    }
}

/// Reads the logs of sessions and their attachments, for at most about [`CHECK_MAX`], and compares them with their
/// sums.
pub(super) fn check(path: &Path) -> Checked {
    let mut checked = Checked::default();
    let until = Instant::now() + CHECK_MAX;
    let Ok(mut store) = open(path) else { return checked };
    let mut all = summaries(&store).map(|(all, _)| all).unwrap_or_default();
    all.sort_by_key(|summary| Reverse(summary.changed));
    for Summary { id, bytes, .. } in all {
        if Instant::now() >= until {
            break;
        }
        let Some(session) = SessionId::new(&id).filter(|_| bytes <= CHECKED_BYTES_MAX) else {
            continue;
        };
        let read = store.load(&session, Sink::Check);
        checked.sessions += 1;
        if read.map_or(true, |reading| reading.loss.is_some()) {
            checked.damaged.push(id);
        }
    }
    checked
}

/// Takes back a change of the file that was cut off, which the first connection does that may write.
fn roll_back(path: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    schema::check(&connection, path).map(drop)
}

/// `has_tables`: as in [`Sqlite`].
fn of_reader(path: &Path, (connection, has_tables): (Connection, bool), log: OpenLog) -> Sqlite {
    Sqlite {
        connection,
        path: path.to_owned(),
        is_full: false,
        logged: 0,
        has_tables,
        damage: None,
        log_loss: log.loss,
        _log: log,
        file: None,
        fault: FailPoint::default(),
    }
}

/// Opens a store in a place where nothing can be written, where SQLite can't make the index of its log,
/// as a file that nobody changes.
fn unlocked(path: &Path, log: OpenLog) -> Result<Sqlite, StoreError> {
    let unreadable = |why: &str| {
        let source = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, why);
        StoreError::Io { path: path.to_owned(), action: "read where it is", source }
    };
    if wal::is_used(path) {
        let why = "its newest part is in the log beside it, which can't be read in a folder in which \
                   nothing can be written; copy both to another folder";
        return Err(unreadable(why));
    }
    let encoded = percent_encode(path.as_os_str().as_bytes(), IN_URI);
    let uri = format!("file:{encoded}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let has_tables = schema::check(&connection, path)?;
    Ok(of_reader(path, (connection, has_tables), log))
}

/// Whether there is a file without a byte, which is a store without a session.
pub(in crate::store) fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0)
}

/// A connection for reading, and whether there are tables.
fn read_only(path: &Path) -> Result<(Connection, bool), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    let has_tables = schema::check(&connection, path)?;
    Ok((connection, has_tables))
}

/// All sessions, in no order, and what could not be read of them.
pub(in crate::store) fn summaries(
    sqlite: &Sqlite,
) -> Result<(Vec<Summary>, Option<String>), StoreError> {
    if !sqlite.has_tables {
        return Ok((Vec::new(), None));
    }
    let mut unread = Unread::default();
    let (mut all, mut last) = (BTreeMap::new(), None);
    // In a damaged file, as far as they are found from either end.
    for order in ["ORDER BY key", "ORDER BY key DESC"] {
        let sql = format!("{SUMMARIES} FROM sessions {order}");
        match each_summary(sqlite, (&sql, []), &mut all) {
            Ok(rows) => {
                unread = rows;
                break;
            }
            Err(error) if error.is_damage() || sqlite.damage.is_some() => {
                unread.stopped(&error);
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // Not even one: as far as is known it is no store at all.
    if let Some(error) = last.filter(|_| all.is_empty()) {
        return Err(error);
    }
    let loss = match (&sqlite.damage, unread.is_nothing()) {
        (None, true) => None,
        (Some(damage), true) => Some(sqlite.damaged(damage)),
        (_, false) => Some(sqlite.damaged(&unread.to_string())),
    };
    Ok((all.into_values().collect(), loss))
}

/// One of them; `None` if it is not there, or can't be read.
pub(in crate::store) fn summary_of(
    sqlite: &Sqlite,
    session: &SessionId,
) -> Result<Option<Summary>, StoreError> {
    if !sqlite.has_tables {
        return Ok(None);
    }
    let mut found = BTreeMap::new();
    let sql = format!("{SUMMARIES} FROM sessions WHERE id = ?");
    match each_summary(sqlite, (&sql, [session.as_str()]), &mut found) {
        Ok(_) if sqlite.damage.is_none() => Ok(found.into_values().next()),
        Err(error) if !error.is_damage() && sqlite.damage.is_none() => Err(error),
        // The index may be what is damaged.
        Ok(_) | Err(_) => {
            let (all, _) = summaries(sqlite)?;
            Ok(all.into_iter().find(|it| it.id == session.as_str()))
        }
    }
}

fn each_summary(
    sqlite: &Sqlite,
    (sql, values): (&str, impl Params),
    all: &mut BTreeMap<i64, Summary>,
) -> Result<Unread, StoreError> {
    let mut unread = Unread::default();
    let mut statement = sqlite.connection.prepare(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        match row.get(7).and_then(|key| Ok((key, summary(row)?))) {
            Ok((key, summary)) => {
                all.insert(key, summary);
            }
            Err(error) => unread.left_out(1, &error),
        }
    }
    Ok(unread)
}

fn summary(row: &Row<'_>) -> Result<Summary, rusqlite::Error> {
    let bytes = u64::try_from(row.get::<_, i64>(6)?).unwrap_or_default();
    let text = |column| {
        let bytes = row.get_ref(column)?.as_bytes().unwrap_or_default();
        Ok::<_, rusqlite::Error>(String::from_utf8_lossy(bytes).into_owned())
    };
    Ok(Summary {
        id: row.get(0)?,
        title: text(1)?,
        folder: text(2)?,
        turns: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        changed: row.get(8)?,
        store: 0,
        bytes,
    })
}

/// Deletes a session that was claimed. `false`: another process reads the file, so that its log still
/// has what it had before.
pub(in crate::store) fn delete(
    sqlite: &mut Sqlite,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let Some(key) = find(&sqlite.connection, session)? else { return Ok(true) };
    sqlite.check_writable()?;
    sqlite.sync(true)?;
    let connection = &mut sqlite.connection;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(DELETE_BLOBS, [key])?;
    transaction.execute(DELETE_SESSION, [key])?;
    transaction.commit()?;
    // The deleted pages are zeros now, in the log; this copies them over those in the database.
    let is_overwritten = checkpoint(connection)?;
    // Not before: the end of a file is cut off as it is.
    if is_overwritten {
        shrink(connection);
    }
    Ok(is_overwritten)
}

/// Checkpoints and truncates the write-ahead log; `false` if another process reads the file.
fn checkpoint(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let is_busy = "PRAGMA wal_checkpoint(TRUNCATE)";
    Ok(connection.query_row(is_busy, [], |row| row.get::<_, i64>(0))? == 0)
}

/// Makes the file smaller if much of it is free. No row gets another key: each table has its own, and none relies on
/// SQLite's row ids. Where another process writes, or the disk has no room for the copy, the file stays as it is, and
/// what is free in it is used again.
fn shrink(connection: &Connection) {
    let shrunk = is_wasteful(connection).and_then(|is_wasteful| {
        if is_wasteful {
            connection.busy_timeout(VACUUM_WAIT_MAX)?;
            // Not in a file that nobody would overwrite.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            connection.execute_batch("VACUUM")?;
            checkpoint(connection)?;
        }
        Ok(())
    });
    if let Err(error) = shrunk {
        tracing::debug!(%error, "the file of the store was not made smaller");
    }
    connection.busy_timeout(BUSY_WAIT_MAX).ok();
}

/// Whether the file is worth a copy of all that is left in it.
fn is_wasteful(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (pages, free) = (pragma("page_count")?, pragma("freelist_count")?);
    let page_bytes = pragma("page_size")?;
    let (free_bytes, used_bytes) = (free * page_bytes, (pages - free) * page_bytes);
    Ok(free > pages / 4 && free_bytes > FREE_BYTES_MAX && used_bytes <= VACUUM_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Journal, connect, make};
    use super::*;
    use crate::support::test_folder::TestFolder;
    use std::fs;

    /// As where a process was killed before it has made the tables, and while it makes them.
    #[test]
    fn a_store_without_tables_has_no_sessions() {
        let folder = TestFolder::new();
        let path = folder.path("store");
        make(&path, true).expect("a file");
        let session = SessionId::new("s").expect("an id");
        for mode in ["delete", "wal"] {
            let made = Connection::open(&path).expect("a database");
            made.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())).expect("a mode");
            drop(made);
            let mut sqlite = open(&path).expect("it is opened");
            assert_eq!(summaries(&sqlite).expect("a list"), (Vec::new(), None));
            assert!(!sqlite.has(&session).expect("an answer"));
            assert!(sqlite.choices(&session).expect("an answer").is_none());
            let reading = sqlite.load(&session, Sink::Check).expect("it is read");
            assert!(!reading.is_there() && reading.loss.is_none());
        }
        assert!(!is_empty(&path), "it has a page");
    }

    /// As where a process was killed while it wrote on a network file system.
    #[test]
    fn a_change_that_was_cut_off_is_taken_back_before_the_store_is_read() {
        let folder = TestFolder::new();
        let (path, cut) = (folder.path("store"), folder.path("cut"));
        make(&path, true).expect("a file");
        let connection = connect(&path, Journal::Rollback, BUSY_WAIT_MAX).expect("a store");
        let insert = "INSERT INTO blobs(sha256, data) VALUES ('a', zeroblob(100000))";
        connection.execute(insert, []).expect("a row");
        connection.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE").expect("a change");
        let sql = "UPDATE blobs SET data = randomblob(100000)";
        connection.execute(sql, []).expect("pages that are written early");
        for ending in ["", "-journal"] {
            let named = |path: &Path| format!("{}{ending}", path.display());
            fs::copy(named(&path), named(&cut)).expect("a copy");
        }
        let error = read_only(&cut).expect_err("it can't be read as it is");
        assert!(error.is_half_changed(), "{error}");
        let sqlite = open(&cut).expect("it is taken back");
        let sql = "SELECT data = zeroblob(100000) FROM blobs";
        let is_old = sqlite.connection.query_row(sql, [], |row| row.get::<_, bool>(0));
        assert!(is_old.expect("a row"));
    }
}
