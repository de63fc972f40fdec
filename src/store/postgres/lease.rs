//! One process writes a session. It holds a lease: a row with a fencing number (fence) that no other lease has,
//! which every writing transaction locks and compares. A lease belongs to a process and is valid as long as the
//! heartbeat of that process (`process`): after that another process may take it, and the first one can't write
//! the session any more.

use super::error::PostgresError;
use super::link::{Link, Statement, Value, begin};
use super::pending::Pending;
use super::process::{self, HEARTBEAT_MAX, OwnProcess};
use crate::protocol::id::SessionId;
use crate::store::counts::COUNTS;
use crate::store::error::StoreError;
use std::sync::atomic::Ordering;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// A lease may be taken over whose process has no heartbeat any more, or is known to have ended ($5). A heartbeat of
/// the future is none: the server's clock was put back, and a process that lives writes another one soon.
const ACQUIRE: &str = "INSERT INTO duologue.leases AS held (session, fence, token, process) \
     VALUES ($1, nextval('duologue.fences'), $2, $3) \
     ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, token = excluded.token, \
         process = excluded.process \
     WHERE held.token = $2 OR held.process = $5 OR NOT EXISTS (SELECT 1 FROM duologue.processes p \
         WHERE p.id = held.process \
         AND p.heartbeat_at > clock_timestamp() - $4 * interval '1 millisecond' \
         AND p.heartbeat_at < clock_timestamp() + $4 * interval '1 millisecond') \
     RETURNING fence, xmax::text <> '0'";

/// Attempts for a lease that is released again and again while it is asked for.
const ATTEMPTS_MAX: u32 = 10;

/// How long a lease is waited for that a transaction of its holder has locked.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = 2000; ";

/// The last two columns: the process counts as ended, as where the rows of such processes are deleted (a lease without
/// a row of its process may be that of one that makes it again); and its lease can't be taken over, as in [`ACQUIRE`].
const HOLDER: &str = "SELECT coalesce(p.holder, ''), coalesce(p.machine, ''), l.process, coalesce(p.address, ''), \
         coalesce(p.heartbeat_at < clock_timestamp() - interval '1 hour', false), \
         coalesce(p.heartbeat_at > clock_timestamp() - $2 * interval '1 millisecond' \
             AND p.heartbeat_at < clock_timestamp() + $2 * interval '1 millisecond', false) \
     FROM duologue.leases l LEFT JOIN duologue.processes p ON p.id = l.process WHERE l.session = $1";

const RELEASE: &str = "DELETE FROM duologue.leases l \
     USING unnest($1, $2, $3) AS it(session, fence, token) \
     WHERE l.session = it.session AND l.fence = it.fence AND l.token = it.token";

/// Leases that are still ours, locked in one order. No other process gets them before this
/// transaction has ended.
const HELD: &str = "SELECT 1 FROM duologue.leases l \
     JOIN unnest($1, $2, $3) AS it(session, fence, token) USING (session, fence, token) \
     ORDER BY l.session FOR UPDATE OF l";

/// The lease of a session, and what is known of its log in the database.
#[derive(Debug)]
pub(in crate::store) struct LeasedSession {
    pub(super) session: String,
    pub(super) fence: i64,
    /// Beside the fence, as a server that was restored from a copy may give a number again.
    token: String,
    /// The session has a row.
    pub(super) is_there: bool,
    /// Batches that a crash of the server might still undo, oldest first, and the one that is written.
    pub(super) pending: Vec<Pending>,
    /// Number of the last batch that was written under the lease.
    pub(super) written: i64,
    /// Number of the last one that survives a crash of the server.
    pub(super) synced: i64,
    /// The connection over which these numbers were found out or written; 0 before the first.
    pub(super) link: u64,
}

/// Acquires the lease of a session, also if an attempt with the same token has acquired it already.
pub(super) async fn acquire(
    link: &Link,
    process: &OwnProcess,
    session: &SessionId,
    token: &str,
) -> Result<LeasedSession, StoreError> {
    let session = session.as_str();
    let wanted = Wanted { session, token, process: process.id() };
    let mut attempts = 1;
    let fence = loop {
        match attempt(link, &wanted, "").await? {
            Ok(fence) => break fence,
            // It was released after the attempt, and before its holder was asked for.
            Err(held) if held.process.is_empty() && attempts < ATTEMPTS_MAX => attempts += 1,
            Err(held) if process::has_ended(&held.machine) => {
                break attempt(link, &wanted, &held.process).await?.map_err(Held::locked)?;
            }
            Err(held) => return Err(held.locked()),
        }
    };
    Ok(LeasedSession::new(session, fence, token))
}

/// Whether a process has the lease of a session that is not known to have ended. A lease stays with a process that was
/// stopped for longer than its heartbeat is valid, as long as nobody takes it: who only reads must not. As nothing is
/// taken, one that had no heartbeat for an hour counts as ended.
pub(super) async fn is_held(link: &Link, session: &SessionId) -> Result<bool, PostgresError> {
    let held = held(link, session.as_str()).await?;
    Ok(held.is_some_and(|held| !held.is_silent && !process::has_ended(&held.machine)))
}

/// The error of a session whose lease can't be acquired now; `None` if it may be.
pub(super) async fn locked(
    link: &Link,
    session: &SessionId,
) -> Result<Option<StoreError>, PostgresError> {
    let held = held(link, session.as_str()).await?;
    let held = held.filter(|held| held.is_valid && !process::has_ended(&held.machine));
    Ok(held.map(Held::locked))
}

/// The token of a new lease.
pub(super) fn new_token() -> String {
    Uuid::new_v4().to_string()
}

/// A lease that is to be acquired.
struct Wanted<'a> {
    session: &'a str,
    token: &'a str,
    process: &'a str,
}

/// A lease of another process. It is empty if it was released in this moment.
#[derive(Default)]
struct Held {
    holder: String,
    machine: String,
    process: String,
    /// Where it is reached; empty if it is not.
    address: String,
    /// There was no heartbeat for so long that the process counts as ended.
    is_silent: bool,
    /// The heartbeat of the process is no older than a lease is valid.
    is_valid: bool,
}

impl Held {
    fn locked(self) -> StoreError {
        let seconds = HEARTBEAT_MAX.as_secs();
        let holder = match self.holder.as_str() {
            "" => "it has just ended",
            holder => holder,
        };
        StoreError::Locked {
            holder: format!("{holder} (freed {seconds} seconds after its process ends)"),
            address: self.address,
        }
    }
}

/// Tries to acquire a lease once. `ended` is a process that is known to have ended.
async fn attempt(
    link: &Link,
    wanted: &Wanted<'_>,
    ended: &str,
) -> Result<Result<i64, Held>, PostgresError> {
    let acquired = match insert(link, wanted, ended).await {
        // Its holder writes, or was stopped while it wrote.
        Err(error) if error.has_code(&[SqlState::LOCK_NOT_AVAILABLE]) => {
            link.run("ROLLBACK").await?;
            None
        }
        acquired => acquired?,
    };
    if let Some(fence) = acquired {
        return Ok(Ok(fence));
    }
    Ok(Err(held(link, wanted.session).await?.unwrap_or_default()))
}

/// The lease of a session; `None` if no process has one.
async fn held(link: &Link, session: &str) -> Result<Option<Held>, PostgresError> {
    let row = link.row(HOLDER, &holder_of(&session, &process::heartbeat_max_ms())).await?;
    Ok(row.map(|row| Held {
        holder: row.get(0),
        machine: row.get(1),
        process: row.get(2),
        address: row.get(3),
        is_silent: row.get(4),
        is_valid: row.get(5),
    }))
}

/// The values of [`HOLDER`].
fn holder_of<'a>(session: &'a &str, heartbeat_max_ms: &'a f64) -> [Value<'a>; 2] {
    [(session, Type::TEXT), (heartbeat_max_ms, Type::FLOAT8)]
}

/// The fence of the lease; `None` if another process has it.
async fn insert(
    link: &Link,
    wanted: &Wanted<'_>,
    ended: &str,
) -> Result<Option<i64>, PostgresError> {
    let values: [Value<'_>; 5] = [
        (&wanted.session, Type::TEXT),
        (&wanted.token, Type::TEXT),
        (&wanted.process, Type::TEXT),
        (&process::heartbeat_max_ms(), Type::FLOAT8),
        (&ended, Type::TEXT),
    ];
    // A number that is in use must never be given again, so this is synced.
    let begin = begin(0);
    link.run(&format!("{begin}{LOCK_LIMIT}SET LOCAL synchronous_commit = on")).await?;
    let row = link.row(ACQUIRE, &values).await?;
    link.run("COMMIT").await?;
    // Another row was there before: that of a process that has ended.
    if row.as_ref().is_some_and(|row| row.get(1)) {
        COUNTS.takeovers.fetch_add(1, Ordering::Relaxed);
    }
    Ok(row.map(|row| row.get(0)))
}

/// Several leases as the values of a statement.
pub(super) struct Leases<'a> {
    sessions: Vec<&'a str>,
    fences: Vec<i64>,
    tokens: Vec<&'a str>,
}

impl<'a> Leases<'a> {
    pub(super) fn of(leased: impl Iterator<Item = &'a LeasedSession>) -> Self {
        let mut all = Self { sessions: Vec::new(), fences: Vec::new(), tokens: Vec::new() };
        for LeasedSession { session, fence, token, .. } in leased {
            all.sessions.push(session);
            all.fences.push(*fence);
            all.tokens.push(token);
        }
        all
    }

    pub(super) fn sessions(&self) -> &Vec<&'a str> {
        &self.sessions
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.fences, Type::INT8_ARRAY),
            (&self.tokens, Type::TEXT_ARRAY),
        ]
    }

    /// The fence: a statement that locks the leases, and has a row for each that is still ours.
    pub(super) fn held(&self) -> Statement<'_> {
        Statement { sql: HELD, values: self.values() }
    }

    /// Whether all of the leases are ours, by the number of rows of [`Leases::held`].
    pub(super) fn are_all(&self, rows: u64) -> bool {
        u64::try_from(self.sessions.len()) == Ok(rows)
    }

    /// Releases the leases.
    pub(super) async fn release(&self, link: &Link) -> Result<(), PostgresError> {
        link.execute(RELEASE, &self.values()).await.map(drop)
    }
}

impl LeasedSession {
    /// The lease of a session of whose log nothing is known yet.
    pub(in crate::store) fn new(session: &str, fence: i64, token: &str) -> Self {
        Self {
            session: session.to_owned(),
            fence,
            token: token.to_owned(),
            is_there: false,
            pending: Vec::new(),
            written: 0,
            synced: 0,
            link: 0,
        }
    }

    /// Notes for the process that the lease is not used any more.
    pub(super) fn let_go(&self, process: &OwnProcess) {
        process.let_go(&self.session, &self.token);
    }

    /// Has the heartbeat of the process release the lease, where there is no connection to do it at once.
    pub(in crate::store) fn abandon(&self, process: &OwnProcess) {
        process.abandon(&self.session, &self.token);
    }

    /// Whether the lease is still ours, after a statement has failed.
    pub(super) async fn is_held(&self, link: &Link) -> Result<bool, PostgresError> {
        link.run("ROLLBACK").await?;
        let own = Leases::of([self].into_iter());
        Ok(link.execute(HELD, &own.values()).await? == 1)
    }

    /// The error of a process that does not have the lease any more.
    pub(super) async fn lost(&self, link: &Link) -> PostgresError {
        let limit_ms = process::heartbeat_max_ms();
        let row = link.row(HOLDER, &holder_of(&&*self.session, &limit_ms)).await;
        let holder = match row {
            Ok(Some(row)) => row.get(0),
            Ok(None) | Err(_) => String::new(),
        };
        let holder = if holder.is_empty() { "it has ended since".to_owned() } else { holder };
        PostgresError::Lost { limit: HEARTBEAT_MAX, holder }
    }
}
