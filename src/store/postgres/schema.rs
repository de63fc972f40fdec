//! The tables of a store in PostgreSQL. They are in a schema of their own, `duologue`, and no statement relies
//! on the search path.

use super::address::Address;
use super::error::PostgresError;
use super::link::{Link, begin};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// The format of these tables. Those before it were of versions that were not released.
const FORMAT: i64 = 5;

/// The names of the formats, from the first on, in the table that has them.
const NAMES: [&str; 5] = ["sessions", "session_rows", "session_order", "log", "processes"];

/// What texts are stored in: others lack characters that a conversation may have.
const ENCODING: &str = "UTF8";

/// Attempts to make the tables while another process makes them.
const ATTEMPTS_MAX: u32 = 10;

/// Only where there is none: the server asks for the right to make a schema also for one that is there.
const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS duologue";

const BEGINNING: &str = "CREATE TABLE IF NOT EXISTS duologue.migrations( \
         number bigint PRIMARY KEY, \
         name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp() \
     ); \
     LOCK TABLE duologue.migrations IN ACCESS EXCLUSIVE MODE";

/// The row of a session names the last batch that was written: by which lease (`writer`) and its number
/// there. So a writer whose connection was cut knows what became of it. `changed` orders sessions by the
/// last beginning or end of a turn, with numbers of the sequence that also numbers leases. `choices` is a projection
/// of the log. A lease belongs to a process, which has an address if it can be reached at one.
const TABLES: &str = "
CREATE SEQUENCE duologue.fences;
CREATE TABLE duologue.processes(
    id text PRIMARY KEY,
    generation bigint NOT NULL,
    address text NOT NULL,
    holder text NOT NULL,
    machine text NOT NULL,
    started_at timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL
);
CREATE TABLE duologue.leases(
    session text PRIMARY KEY,
    fence bigint NOT NULL,
    token text NOT NULL,
    process text NOT NULL
);
CREATE INDEX leases_by_process ON duologue.leases(process);
CREATE TABLE duologue.sessions(
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    title text NOT NULL,
    folder text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    changed bigint NOT NULL,
    last bigint NOT NULL,
    turns bigint NOT NULL,
    dropped_turns bigint NOT NULL,
    start bytea NOT NULL,
    choices bytea,
    rows bigint NOT NULL,
    head bytea NOT NULL,
    writer bigint NOT NULL,
    batch bigint NOT NULL,
    word_rules bigint NOT NULL
);
CREATE INDEX sessions_by_folder ON duologue.sessions(folder, changed);
CREATE TABLE duologue.log(
    session bigint NOT NULL REFERENCES duologue.sessions ON DELETE CASCADE,
    number bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    sealed boolean NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    events bytea NOT NULL,
    PRIMARY KEY(session, number)
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
    number bigint NOT NULL,
    terms tsvector NOT NULL
);
CREATE INDEX words_by_session ON duologue.words(session, number);
CREATE INDEX words_by_term ON duologue.words USING gin(terms);
";

/// Checks that the database has the tables, in the format that is known; makes them if they may be new.
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
        let created = create(link, address).await;
        if created.is_err() {
            // If it is broken as well, so is the next attempt.
            link.run("ROLLBACK").await.ok();
        }
        match created {
            Err(error) if attempts < ATTEMPTS_MAX && is_race(&error) => {}
            created => return created,
        }
    }
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
pub(super) async fn format(link: &Link, address: &Address) -> Result<Option<i64>, PostgresError> {
    let sql = "SELECT to_regclass('duologue.migrations') IS NOT NULL, \
               (SELECT count(*) FROM pg_tables WHERE schemaname = 'duologue'), \
               current_setting('server_encoding')";
    let Some(row) = link.row(sql, &[]).await? else { return Ok(None) };
    let (is_there, count, encoding) = (row.get(0), row.get(1), row.get::<_, &str>(2));
    if encoding != ENCODING {
        let (place, found) = (address.to_string(), encoding.to_owned());
        return Err(PostgresError::Encoding { place, found });
    }
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
    if !NAMES.contains(&rows[0].get::<_, &str>(1)) {
        return Err(foreign());
    }
    let found = last.get(0);
    if found > FORMAT {
        let place = address.to_string();
        return Err(PostgresError::Newer { place, found, known: FORMAT });
    }
    if found < FORMAT {
        let place = address.to_string();
        return Err(PostgresError::Older { place, found, known: FORMAT });
    }
    Ok(Some(found))
}

/// Makes the tables, all or none.
async fn create(link: &Link, address: &Address) -> Result<(), PostgresError> {
    link.run(&begin(0)).await?;
    let sql = "SELECT to_regnamespace('duologue') IS NOT NULL";
    if !link.row(sql, &[]).await?.is_some_and(|row| row.get(0)) {
        link.run(SCHEMA).await?;
    }
    link.run(BEGINNING).await?;
    // Another process may have made them meanwhile.
    if format(link, address).await?.is_none() {
        link.run(TABLES).await?;
        let applied = "INSERT INTO duologue.migrations(number, name) VALUES ($1, $2)";
        let name = NAMES.last().copied().unwrap_or_default();
        link.execute(applied, &[(&FORMAT, Type::INT8), (&name, Type::TEXT)]).await?;
    }
    link.run("COMMIT").await
}
