//! The tables of a store, as a list of changes that is only ever appended to.

use super::error::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Marks a database as one of this program: "duol".
pub(super) const APPLICATION_ID: i64 = 0x6475_6f6c;

/// A change of the tables.
struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// All changes, oldest first. The format of a database is how many of them it has had.
const MIGRATIONS: [Migration; 4] = [
    Migration { name: "sessions", sql: SESSIONS },
    Migration { name: "session_sizes", sql: SESSION_SIZES },
    Migration { name: "session_rows", sql: SESSION_ROWS },
    Migration { name: "session_order", sql: SESSION_ORDER },
];

/// The newest format.
pub(super) const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Rows of events are small and come in order. Those of states, turns and blobs are large, and better
/// off in tables with row ids.
const SESSIONS: &str = "
CREATE TABLE migrations(
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    folder TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    last_ordinal INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    preamble BLOB NOT NULL
) STRICT;
CREATE INDEX sessions_by_folder ON sessions(folder, updated_ms);
CREATE TABLE events(
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    turn INTEGER,
    call INTEGER,
    name TEXT NOT NULL,
    payload BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY(session, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE states(
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE(session, ordinal)
) STRICT;
CREATE TABLE turns(
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE(session, turn)
) STRICT;
CREATE TABLE steps(
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY(session, ordinal)
) STRICT, WITHOUT ROWID;
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

/// What a list of all sessions needs is in their rows: `bytes` is the size of all that is kept of one.
/// `loose_states` is how many of its states were not joined yet.
const SESSION_SIZES: &str = "
ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN loose_states INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET
    bytes = CAST(length(preamble)
        + (SELECT total(length(payload)) FROM events WHERE session = sessions.key)
        + (SELECT total(length(payload)) FROM states WHERE session = sessions.key)
        + (SELECT total(length(payload)) FROM turns WHERE session = sessions.key)
        + (SELECT total(length(payload)) FROM steps WHERE session = sessions.key)
        + (SELECT total(length(data)) FROM session_blobs JOIN blobs USING (sha256)
           WHERE session = sessions.key) AS INTEGER),
    loose_states = (SELECT count(*) FROM states WHERE session = sessions.key);
";

/// The row of a session has the numbers of its rows in other tables, as far as those are read when it is
/// resumed, so that one that another program has deleted is missed: `tail_rows` of the events after the
/// last state, `step_rows` of the turn that goes on, `drop_rows` of the steps that are of no turn.
/// `session_messages` has what a session has one of, by the names of the messages.
const SESSION_ROWS: &str = "
ALTER TABLE sessions ADD COLUMN dropped_turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN state_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tail_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN step_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN drop_rows INTEGER NOT NULL DEFAULT 0;
CREATE TABLE session_messages(
    session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
    name TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY(session, name)
) STRICT, WITHOUT ROWID;
UPDATE sessions SET
    turn_rows = (SELECT count(*) FROM turns WHERE session = sessions.key),
    state_rows = (SELECT count(*) FROM states WHERE session = sessions.key),
    tail_rows = (SELECT count(*) FROM events WHERE session = sessions.key AND ordinal >
        (SELECT coalesce(max(ordinal), -1) FROM states WHERE session = sessions.key)),
    step_rows = (SELECT count(*) FROM steps WHERE session = sessions.key AND turn <> 0),
    drop_rows = (SELECT count(*) FROM steps WHERE session = sessions.key AND turn = 0);
";

/// `changed` orders sessions by their last write: a clock may be put back. In an older store the times are
/// all there is.
const SESSION_ORDER: &str = "
ALTER TABLE sessions ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET changed = place FROM
    (SELECT key AS of, row_number() OVER (ORDER BY updated_ms, key) AS place FROM sessions)
    WHERE key = of;
DROP INDEX sessions_by_folder;
CREATE INDEX sessions_by_folder ON sessions(folder, changed);
CREATE INDEX sessions_by_change ON sessions(changed);
";

/// The first format in which sessions have an order of their own.
const ORDERED_FORMAT: i64 = 4;

/// The column by which sessions are ordered. A damaged file keeps its older format.
pub(super) fn order(connection: &Connection) -> &'static str {
    let format = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    if format.is_ok_and(|format| format < ORDERED_FORMAT) { "updated_ms" } else { "changed" }
}

/// Checks whose database it is and which format it has; gives the format. All is read in one
/// transaction: another process may make the tables at the same moment.
///
/// # Errors
/// If it is another program's, or newer than this program.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    format_of(&connection.unchecked_transaction()?, path)
}

/// The same within a transaction.
fn format_of(connection: &Transaction<'_>, path: &Path) -> Result<i64, StoreError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) = (pragma("application_id")?, pragma("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let is_empty = || connection.query_row(tables, [], |row| row.get::<_, i64>(0));
    if application != APPLICATION_ID && (application != 0 || found != 0 || is_empty()? != 0) {
        return Err(StoreError::NotAStore(path.to_owned()));
    }
    if found > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    Ok(found)
}

/// Makes the changes that the database has not had.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if check(connection, path)? == FORMAT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made them meanwhile.
    let had = format_of(&transaction, path)?;
    for (number, migration) in (1..).zip(&MIGRATIONS).filter(|(number, _)| *number > had) {
        transaction.execute_batch(migration.sql)?;
        let applied = "INSERT INTO migrations(number, name, applied_ms) VALUES (?, ?, ?)";
        transaction.execute(applied, (number, migration.name, super::sqlite::now_ms()))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    /// The format that a store of the first release had, as bytes of a file.
    const FIRST: &[u8] = include_bytes!("../../tests/data/store_format_1.db");

    /// The statements that made the tables of a database, and the numbers of its format.
    fn shape(connection: &Connection) -> (Vec<String>, i64, Vec<String>) {
        let texts = |sql: &str| {
            let mut statement = connection.prepare(sql).expect("a query");
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("rows");
            rows.map(|row| row.expect("a text")).collect::<Vec<_>>()
        };
        let format = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .expect("a number");
        let made = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name";
        (texts(made), format, texts("SELECT name FROM migrations ORDER BY number"))
    }

    #[test]
    fn a_store_that_was_migrated_is_like_a_new_one() {
        let folder = TestFolder::new();
        let path = folder.path("first");
        std::fs::write(&path, FIRST).expect("a file");
        let mut migrated = Connection::open(&path).expect("a database");
        assert_eq!(check(&migrated, &path).expect("a store"), 1);
        migrate(&mut migrated, &path).expect("it is migrated");
        let mut new = Connection::open_in_memory().expect("a database");
        migrate(&mut new, &path).expect("it is made");
        assert_eq!(shape(&migrated), shape(&new));
        assert_eq!(shape(&new).1, FORMAT);
        let sql = "SELECT bytes, loose_states, (SELECT count(*) FROM states WHERE session = sessions.key), \
                   (SELECT total(length(payload)) FROM events WHERE session = sessions.key) FROM sessions";
        let sizes = migrated.query_row(sql, [], |row| {
            let number = |at| row.get::<_, i64>(at);
            Ok((number(0)?, number(1)?, number(2)?, row.get::<_, f64>(3)?))
        });
        let (bytes, loose, states, events) = sizes.expect("a session");
        assert_eq!(loose, states);
        assert!(bytes > 0 && bytes as f64 > events, "{bytes}, {events}");
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
                    while check(&other, path).expect("a store, or none yet") < FORMAT {}
                });
                migrate(&mut made, path).expect("it is made");
                looking.join().expect("it was made");
            });
        }
    }
}
