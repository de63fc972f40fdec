//! The tables of a store in a file: sessions, their logs, and the bytes of attachments.

use super::super::error::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Marks a database as one of this program: "duol".
pub(super) const APPLICATION_ID: i64 = 0x6475_6f6c;

/// The format of these tables. Those before it were of versions that were not released.
pub(super) const FORMAT: i64 = 5;

/// What a list of all sessions needs is in their rows: `bytes` is the size of all that is stored of one,
/// `changed` orders them by their last write, as a clock may be put back. `choices` is a projection, which
/// can be made of the log at any time. `rows` and `head` are the number of rows in the log and the hash of
/// the last of them. Rows of the log are large, and better off in a table with row ids.
const TABLES: &str = "
CREATE TABLE sessions(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    folder TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    last INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    dropped_turns INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    start BLOB NOT NULL,
    choices BLOB,
    rows INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;
CREATE INDEX sessions_by_folder ON sessions(folder, changed);
CREATE INDEX sessions_by_change ON sessions(changed);
CREATE TABLE log(
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    sealed INTEGER NOT NULL,
    previous BLOB NOT NULL,
    hash BLOB NOT NULL,
    events BLOB NOT NULL,
    UNIQUE(session, number)
) STRICT;
CREATE TABLE blobs(
    key INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE session_blobs(
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY(session, sha256)
) STRICT, WITHOUT ROWID;
";

/// Checks whose database it is and whether it has tables; `false` if there are none yet. All is read in one
/// transaction: another process may make the tables at the same moment.
///
/// # Errors
/// If it is another program's, or of another version of this one.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    has_tables(&connection.unchecked_transaction()?, path)
}

/// Like `check`, within a transaction.
fn has_tables(connection: &Transaction<'_>, path: &Path) -> Result<bool, StoreError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) = (pragma("application_id")?, pragma("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let is_empty = || connection.query_row(tables, [], |row| row.get::<_, i64>(0));
    if application != APPLICATION_ID && (application != 0 || found != 0 || is_empty()? != 0) {
        return Err(StoreError::NotAStore(path.to_owned()));
    }
    match found {
        0 => Ok(false),
        FORMAT => Ok(true),
        found if found > FORMAT => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        found => Err(StoreError::Older { path: path.to_owned(), found, known: FORMAT }),
    }
}

/// Makes the tables, if there are none yet.
pub(super) fn create(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if check(connection, path)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made them meanwhile.
    if !has_tables(&transaction, path)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    /// A store of a version that was never released.
    const FIRST: &[u8] = include_bytes!("../../../tests/data/store_format_1.db");

    #[test]
    fn a_store_of_another_version_is_named_and_left_alone() {
        let folder = TestFolder::new();
        let path = folder.path("first");
        std::fs::write(&path, FIRST).expect("a file");
        let mut connection = Connection::open(&path).expect("a database");
        let error = create(&mut connection, &path).expect_err("it is older");
        assert!(matches!(error, StoreError::Older { found: 1, .. }), "{error}");
        connection.pragma_update(None, "user_version", FORMAT + 1).expect("a number");
        let error = create(&mut connection, &path).expect_err("it is newer");
        assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    }

    /// Whoever looks while the tables are made sees none of them, or all.
    #[test]
    fn a_store_that_is_made_meanwhile_is_never_taken_for_another_programs() {
        let folder = TestFolder::new();
        for round in 0..50 {
            let path = &folder.path(format!("store-{round}"));
            let mut made = Connection::open(path).expect("a database");
            let mode = made.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
            mode.expect("a log");
            std::thread::scope(|scope| {
                let looking = scope.spawn(move || {
                    let other = Connection::open(path).expect("a database");
                    while !check(&other, path).expect("a store, or none yet") {}
                });
                create(&mut made, path).expect("it is made");
                looking.join().expect("it was made");
            });
        }
    }
}
