//! The tables of a store in PostgreSQL, as a list of changes that is only ever appended to. They are in
//! a schema of their own, `duologue`, and no statement relies on the search path.

use super::address::Address;
use super::error::PostgresError;
use super::link::{BEGIN, Link};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// A change of the tables.
struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// All changes, oldest first. The format of a database is how many of them it has had.
const MIGRATIONS: [Migration; 3] = [
    Migration { name: "sessions", sql: SESSIONS },
    Migration { name: "session_rows", sql: SESSION_ROWS },
    Migration { name: "session_order", sql: SESSION_ORDER },
];

/// The newest format.
const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Attempts to make the tables while another process makes them.
const ATTEMPTS_MAX: u32 = 10;

const BEGINNING: &str = "CREATE SCHEMA IF NOT EXISTS duologue; \
     CREATE TABLE IF NOT EXISTS duologue.migrations( \
         number bigint PRIMARY KEY, \
         name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp() \
     ); \
     LOCK TABLE duologue.migrations IN ACCESS EXCLUSIVE MODE";

/// The row of a session names the last batch that was written: by which lease (`writer`), its number
/// there, and a hash of its content. So a writer whose connection was cut knows what became of it.
const SESSIONS: &str = "
CREATE SEQUENCE duologue.fences;
CREATE TABLE duologue.leases(
    session text PRIMARY KEY,
    fence bigint NOT NULL,
    token text NOT NULL,
    holder text NOT NULL,
    machine text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE TABLE duologue.sessions(
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    title text NOT NULL,
    folder text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    last_ordinal bigint NOT NULL,
    turns bigint NOT NULL,
    preamble bytea NOT NULL,
    writer bigint NOT NULL,
    batch bigint NOT NULL,
    digest bytea NOT NULL
);
CREATE INDEX sessions_by_folder ON duologue.sessions(folder, updated_ms);
CREATE TABLE duologue.events(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    ordinal bigint NOT NULL,
    turn bigint,
    call bigint,
    name text NOT NULL,
    payload bytea NOT NULL,
    at_ms bigint NOT NULL,
    PRIMARY KEY(session, ordinal)
);
CREATE TABLE duologue.states(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    ordinal bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY(session, ordinal)
);
CREATE TABLE duologue.turns(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    turn bigint NOT NULL,
    ordinal bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY(session, turn)
);
CREATE TABLE duologue.steps(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    ordinal bigint NOT NULL,
    turn bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY(session, ordinal)
);
CREATE TABLE duologue.blobs(
    sha256 text PRIMARY KEY,
    data bytea NOT NULL
);
CREATE TABLE duologue.session_blobs(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    sha256 text NOT NULL REFERENCES duologue.blobs,
    PRIMARY KEY(session, sha256)
);
CREATE INDEX session_blobs_by_hash ON duologue.session_blobs(sha256);
CREATE TABLE duologue.words(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    ordinal bigint NOT NULL,
    terms tsvector NOT NULL
);
CREATE INDEX words_by_session ON duologue.words(session, ordinal);
CREATE INDEX words_by_term ON duologue.words USING gin(terms);
";

/// As in a file: numbers of rows, by which missing ones are known, and messages that a session has one
/// of. Words of sessions from before (`word_rules` 0) were split in another way and are not kept.
const SESSION_ROWS: &str = "
ALTER TABLE duologue.sessions
    ADD COLUMN dropped_turns bigint NOT NULL DEFAULT 0,
    ADD COLUMN turn_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN state_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN tail_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN step_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN drop_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN word_rules bigint NOT NULL DEFAULT 0;
CREATE TABLE duologue.session_messages(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    name text NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY(session, name)
);
UPDATE duologue.sessions s SET
    turn_rows = (SELECT count(*) FROM duologue.turns WHERE session = s.key),
    state_rows = (SELECT count(*) FROM duologue.states WHERE session = s.key),
    tail_rows = (SELECT count(*) FROM duologue.events WHERE session = s.key AND ordinal >
        (SELECT coalesce(max(ordinal), -1) FROM duologue.states WHERE session = s.key)),
    step_rows = (SELECT count(*) FROM duologue.steps WHERE session = s.key AND turn <> 0),
    drop_rows = (SELECT count(*) FROM duologue.steps WHERE session = s.key AND turn = 0);
DELETE FROM duologue.words;
";

/// As in a file: `changed` orders sessions by their last write, with numbers of the sequence that also
/// numbers leases. It has given more of them than there are sessions.
const SESSION_ORDER: &str = "
ALTER TABLE duologue.sessions ADD COLUMN changed bigint NOT NULL DEFAULT 0;
UPDATE duologue.sessions s SET changed = it.place FROM
    (SELECT key, row_number() OVER (ORDER BY updated_ms, key) AS place FROM duologue.sessions) it
    WHERE s.key = it.key;
DROP INDEX duologue.sessions_by_folder;
CREATE INDEX sessions_by_folder ON duologue.sessions(folder, changed);
";

/// Checks that the database has the tables, in a format that is known; makes or changes them if needed.
pub(super) async fn prepare(
    link: &Link,
    address: &Address,
    may_be_new: bool,
) -> Result<(), PostgresError> {
    let found = format(link, address).await?;
    if found == Some(FORMAT) {
        return Ok(());
    }
    if found.is_none() && !may_be_new {
        return Err(PostgresError::Absent(address.to_string()));
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        let migrated = migrate(link, address).await;
        if migrated.is_err() {
            // If it is broken as well, so is the next attempt.
            link.run("ROLLBACK").await.ok();
        }
        match migrated {
            Err(error) if attempts < ATTEMPTS_MAX && is_race(&error) => {}
            migrated => return migrated,
        }
    }
}

/// The format of the database, and the newest that this program knows; `None` if there is no store.
pub(super) async fn formats(
    link: &Link,
    address: &Address,
) -> Result<Option<(i64, i64)>, PostgresError> {
    Ok(format(link, address).await?.map(|found| (found, FORMAT)))
}

/// Another process has made the schema or the table at the same moment.
fn is_race(error: &PostgresError) -> bool {
    error.has_code(&[
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_TABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ])
}

/// The format of the database; `None` if there is no store in it.
async fn format(link: &Link, address: &Address) -> Result<Option<i64>, PostgresError> {
    let sql = "SELECT to_regclass('duologue.migrations') IS NOT NULL, \
               (SELECT count(*) FROM pg_tables WHERE schemaname = 'duologue')";
    let tables = link.row(sql, &[]).await?;
    let (is_there, count) = tables.map_or((false, 0), |row| (row.get::<_, bool>(0), row.get(1)));
    let foreign = || PostgresError::Foreign(address.to_string());
    match (is_there, count) {
        (true, _) => {}
        (false, 0_i64) => return Ok(None),
        (false, _) => return Err(foreign()),
    }
    let sql = "SELECT number::bigint, name::text FROM duologue.migrations ORDER BY number";
    let rows = link.rows(sql, &[]).await.map_err(|error| {
        let is_other = error.has_code(&[SqlState::UNDEFINED_COLUMN]);
        if is_other { foreign() } else { error }
    })?;
    let Some(last) = rows.last() else { return Ok(None) };
    if rows[0].get::<_, &str>(1) != MIGRATIONS[0].name {
        return Err(foreign());
    }
    let found = last.get(0);
    if found > FORMAT {
        let place = address.to_string();
        return Err(PostgresError::Newer { place, found, known: FORMAT });
    }
    Ok(Some(found))
}

/// Makes the changes that the database has not had, all or none.
async fn migrate(link: &Link, address: &Address) -> Result<(), PostgresError> {
    link.run(&format!("{BEGIN}{BEGINNING}")).await?;
    // Another process may have made them meanwhile.
    let had = format(link, address).await?.unwrap_or_default();
    for (number, migration) in (1_i64..).zip(&MIGRATIONS).filter(|(number, _)| *number > had) {
        link.run(migration.sql).await?;
        let applied = "INSERT INTO duologue.migrations(number, name) VALUES ($1, $2)";
        let values = [(&number as _, Type::INT8), (&migration.name as _, Type::TEXT)];
        link.execute(applied, &values).await?;
    }
    link.run("COMMIT").await
}
