//! One process writes a session. It holds a lease: a row with a fencing number that no other lease has,
//! which every writing transaction locks and compares. The lease lasts for [`LEASE_DURATION`] and is
//! renewed by a thread and a connection of its own, so that nothing else can delay it. A process that
//! was not heard of for so long may lose the lease to another one, and then can't write any more.

use super::address::Address;
use super::error::PostgresError;
use super::link::{BEGIN, Link, Reactor, Statement, Value};
use super::machine;
use crate::protocol::id::SessionId;
use crate::store::error::StoreError;
use crate::store::sqlite::own_name;
use crate::support::threads;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// How long a lease lasts after it was renewed.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(10);

/// Time between two renewals.
const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// Time between two attempts to renew once one has failed.
const RENEW_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A lease that has ended may be taken over, and so may that of a process that is known to have ended.
const ACQUIRE: &str = "INSERT INTO duologue.leases AS held \
     (session, fence, token, holder, machine, expires_at) \
     VALUES ($1, nextval('duologue.fences'), $2, $3, $4, \
             clock_timestamp() + $5 * interval '1 millisecond') \
     ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, token = excluded.token, \
         holder = excluded.holder, machine = excluded.machine, \
         expires_at = clock_timestamp() + $5 * interval '1 millisecond' \
     WHERE held.expires_at < clock_timestamp() OR held.token = $6 \
     RETURNING fence";

/// How long a lease is waited for that a transaction of its holder has locked.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = 2000; ";

const HOLDER: &str = "SELECT holder, machine, token FROM duologue.leases WHERE session = $1";

const RENEW: &str = "UPDATE duologue.leases \
     SET expires_at = clock_timestamp() + $4 * interval '1 millisecond' \
     WHERE session = $1 AND fence = $2 AND token = $3";

const RELEASE: &str =
    "DELETE FROM duologue.leases WHERE session = $1 AND fence = $2 AND token = $3";

/// The lease, if it is still ours. No other process gets it before this transaction has ended.
const HELD: &str = "SELECT 1 FROM duologue.leases \
     WHERE session = $1 AND fence = $2 AND token = $3 FOR UPDATE";

/// What identifies a lease.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    session: String,
    pub(super) fence: i64,
    /// Beside the number, as a server that was restored from a copy may give a number again.
    token: String,
}

/// A lease, which is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) identity: Identity,
    /// Dropped with this, which ends the thread.
    _renewing: SyncSender<()>,
}

/// The token of a new lease.
pub(super) fn new_token() -> String {
    Uuid::new_v4().to_string()
}

/// Gets the lease of a session, also if an attempt with the same token has got it already.
pub(super) async fn acquire(
    link: &Link,
    address: &Address,
    session: &SessionId,
    token: &str,
) -> Result<Lease, StoreError> {
    let session = session.as_str().to_owned();
    let identity = match attempt(link, (&session, token), token).await? {
        Ok(identity) => identity,
        Err(held) if machine::has_ended(&held.machine) => {
            match attempt(link, (&session, token), &held.token).await? {
                Ok(identity) => identity,
                Err(held) => return Err(held.locked()),
            }
        }
        Err(held) => return Err(held.locked()),
    };
    let (renewing, ended) = sync_channel(0);
    let (renewed, address) = (identity.clone(), address.clone());
    threads::spawn("lease", move || renew(&renewed, &address, &ended))
        .map_err(|error| PostgresError::Runtime(std::io::Error::other(error)))?;
    Ok(Lease { identity, _renewing: renewing })
}

/// A lease of another process. It is empty if it was freed in this moment.
#[derive(Default)]
struct Held {
    holder: String,
    machine: String,
    token: String,
}

impl Held {
    fn locked(self) -> StoreError {
        let seconds = LEASE_DURATION.as_secs();
        let holder = match self.holder.as_str() {
            "" => "it has just ended",
            holder => holder,
        };
        StoreError::Locked(format!("{holder} (freed {seconds} seconds after its process ends)"))
    }
}

/// Tries to get the lease once. `free` is the token of a lease that is ours, or whose process is known to
/// have ended.
async fn attempt(
    link: &Link,
    (session, token): (&str, &str),
    free: &str,
) -> Result<Result<Identity, Held>, PostgresError> {
    let acquired = match insert(link, session, token, free).await {
        // Its holder writes, or was stopped while it wrote.
        Err(error) if error.has_code(&[SqlState::LOCK_NOT_AVAILABLE]) => {
            link.run("ROLLBACK").await?;
            None
        }
        acquired => acquired?,
    };
    if let Some(fence) = acquired {
        let (session, token) = (session.to_owned(), token.to_owned());
        return Ok(Ok(Identity { session, fence, token }));
    }
    let row = link.row(HOLDER, &[(&session, Type::TEXT)]).await?;
    Ok(Err(row.map_or_else(Held::default, |row| Held {
        holder: row.get(0),
        machine: row.get(1),
        token: row.get(2),
    })))
}

/// Gives the number of the lease; `None` if another process has it.
async fn insert(
    link: &Link,
    session: &str,
    token: &str,
    free: &str,
) -> Result<Option<i64>, PostgresError> {
    let (holder, machine) = (own_name(), machine::own());
    let values: [Value<'_>; 6] = [
        (&session, Type::TEXT),
        (&token, Type::TEXT),
        (&holder, Type::TEXT),
        (&machine, Type::TEXT),
        (&duration_ms(), Type::FLOAT8),
        (&free, Type::TEXT),
    ];
    // A number that is in use must never be given again, so this is synced.
    link.run(&format!("{BEGIN}{LOCK_LIMIT}SET LOCAL synchronous_commit = on")).await?;
    let row = link.row(ACQUIRE, &values).await?;
    link.run("COMMIT").await?;
    Ok(row.map(|row| row.get(0)))
}

fn duration_ms() -> f64 {
    LEASE_DURATION.as_secs_f64() * 1000.0
}

impl Identity {
    fn values(&self) -> Vec<Value<'_>> {
        vec![(&self.session, Type::TEXT), (&self.fence, Type::INT8), (&self.token, Type::TEXT)]
    }

    /// The fence: a statement that locks the lease, and gives one row if it is still ours.
    pub(super) fn held(&self) -> Statement<'_> {
        Statement { sql: HELD, values: self.values() }
    }

    /// Whether the lease is still ours, after a statement has failed.
    pub(super) async fn is_held(&self, link: &Link) -> Result<bool, PostgresError> {
        link.run("ROLLBACK").await?;
        Ok(link.execute(HELD, &self.values()).await? == 1)
    }

    /// The error of a process that does not have the lease any more.
    pub(super) async fn lost(&self, link: &Link) -> PostgresError {
        let row = link.row(HOLDER, &[(&self.session, Type::TEXT)]).await;
        let holder = match row {
            Ok(Some(row)) => row.get(0),
            Ok(None) | Err(_) => "it has ended since".to_owned(),
        };
        PostgresError::Lost { limit: LEASE_DURATION, holder }
    }

    /// Frees the session.
    pub(super) async fn release(&self, link: &Link) -> Result<(), PostgresError> {
        link.execute(RELEASE, &self.values()).await.map(drop)
    }
}

/// Renews the lease until `ended` is closed, or it is lost.
fn renew(identity: &Identity, address: &Address, ended: &Receiver<()>) {
    // Without it the lease ends, and each write finds out whether it is ours still.
    let Ok(reactor) = Reactor::new() else { return };
    let mut link = None;
    let mut interval = RENEW_INTERVAL;
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        match reactor.run(renew_once(identity, address, &mut link)) {
            Ok(true) => interval = RENEW_INTERVAL,
            // Another process has it: the next write reports that.
            Ok(false) => return,
            Err(error) => {
                tracing::debug!(%error, "the lease of the session could not be renewed");
                link = None;
                interval = RENEW_RETRY_INTERVAL;
            }
        }
    }
}

async fn renew_once(
    identity: &Identity,
    address: &Address,
    link: &mut Option<Link>,
) -> Result<bool, PostgresError> {
    let link = match link {
        Some(link) => link,
        None => link.insert(Link::open(address).await?),
    };
    let duration = duration_ms();
    let mut values = identity.values();
    values.push((&duration, Type::FLOAT8));
    let begin = format!("{BEGIN}SET LOCAL synchronous_commit = off");
    let renewed = link.send(&begin, &[Statement { sql: RENEW, values }], 0).await?;
    link.run("COMMIT").await?;
    Ok(renewed == [1])
}
