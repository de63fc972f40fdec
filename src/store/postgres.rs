//! A store in a database of PostgreSQL, which processes on several machines can share.
//!
//! A session is written under a `lease`, which is valid as long as the `process` has a heartbeat. All sessions of a
//! process are written over one connection, and the heartbeat has another. One that is cut is made anew; what
//! became of the batches that were being written is found out first.

mod address;
mod certificate;
mod dsn;
mod error;
mod inspect;
mod lease;
mod link;
mod load;
#[cfg(test)]
mod model;
mod passfile;
mod payloads;
mod pending;
mod process;
mod reader;
mod round;
mod schema;
mod tls;
mod write;

pub use dsn::Dsn;
pub(super) use error::PostgresError;
pub(super) use inspect::inspect;

use super::Item;
use super::batch::Batch;
use super::error::StoreError;
use super::reading::{Reading, Sink};
use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use address::Address;
pub(super) use lease::LeasedSession;
use lease::Leases;
use link::{Link, Reactor};
#[cfg(any(test, feature = "serve"))]
pub(crate) use process::HEARTBEAT_MAX;
pub(super) use process::OwnProcess;
#[cfg(feature = "serve")]
pub(crate) use process::{advertise, taken_sessions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use write::Synced;

/// How long the release of leases is waited for.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// Attempts to get an answer while connections are cut, and the time between two of them.
const ATTEMPTS_MAX: u32 = 3;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(250);

/// How many connections this process has made.
static LINKS: AtomicU64 = AtomicU64::new(0);

/// A database of PostgreSQL.
#[derive(Debug)]
pub(super) struct Postgres {
    core: Core,
    reactor: Reactor,
}

/// What is done in the reactor.
#[derive(Debug)]
struct Core {
    address: Address,
    /// The connection, if it works.
    link: Option<Link>,
    /// Its number among the connections of this process.
    link_number: u64,
    process: OwnProcess,
    /// Transactions that were committed.
    commits: u64,
    synced: Synced,
    /// Bytes of the batches that were staged since.
    unsynced_bytes: usize,
    fault: FailPoint,
}

impl Postgres {
    /// Connects to the database, and makes the tables if they may be new.
    pub(super) fn open(
        dsn: &Dsn,
        may_be_new: bool,
        process: OwnProcess,
        fault: FailPoint,
    ) -> Result<Self, PostgresError> {
        let address = addressed(dsn)?;
        let reactor = Reactor::new()?;
        let (synced, unsynced_bytes) = Default::default();
        let (link, link_number, commits) = Default::default();
        let mut core =
            Core { address, link, link_number, process, commits, synced, unsynced_bytes, fault };
        reactor.run(core.retried(async |core| {
            let address = core.address.clone();
            schema::prepare(core.link().await?, &address, may_be_new).await
        }))?;
        Ok(Self { core, reactor })
    }

    pub(super) fn claim(&mut self, session: &SessionId) -> Result<LeasedSession, StoreError> {
        check_id(session)?;
        let Self { core, reactor } = self;
        reactor.run(core.claim(session))?
    }

    /// Whether another process may write a session. No lease is acquired.
    pub(super) fn is_held(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        check_id(session)?;
        let ask = async |core: &mut Core| lease::is_held(core.link().await?, session).await;
        self.reactor.run(self.core.retried(ask))
    }

    /// Checks that no process that is known to live has the lease of a session.
    ///
    /// # Errors
    /// Which one has it; or the server can't be asked.
    pub(super) fn check_lease(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let ask = async |core: &mut Core| lease::locked(core.link().await?, session).await;
        match self.reactor.run(self.core.retried(ask))? {
            Some(locked) => Err(locked),
            None => Ok(()),
        }
    }

    /// Releases sessions at once. Where that can't be done the heartbeat does it once it can, or their leases end
    /// with this process.
    pub(super) fn release(&mut self, leased: &[LeasedSession]) {
        leased.iter().for_each(|it| it.let_go(&self.core.process));
        if !self.last(async |link, _| Leases::of(leased.iter()).release(link).await) {
            leased.iter().for_each(|it| it.abandon(&self.core.process));
        }
    }

    /// Releases all that this process has leased.
    pub(super) fn leave(&mut self) {
        // What is left ends with the heartbeat.
        self.last(async |link, process| process.leave(link).await);
    }

    /// Asks the server for something for which nothing waits long; says whether it was done.
    fn last(
        &mut self,
        ask: impl AsyncFnOnce(&Link, &OwnProcess) -> Result<(), PostgresError>,
    ) -> bool {
        let Self { core: Core { link, process, .. }, reactor } = self;
        let Some(link) = link else { return false };
        let asking = async { Ok(timeout(RELEASE_MAX, ask(link, process)).await) };
        matches!(reactor.run(asking), Ok(Ok(Ok(()))))
    }

    pub(super) fn has(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        check_id(session)?;
        self.reactor.run(self.core.retried(async |core| core.has(session).await))
    }

    pub(super) fn load(
        &mut self,
        session: &SessionId,
        sink: Sink,
    ) -> Result<Reading, PostgresError> {
        check_id(session)?;
        // After a cut it is read from the beginning.
        let load = async |core: &mut Core| core.load(session, sink.clone()).await;
        self.reactor.run(self.core.retried(load))
    }

    pub(super) fn choices(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Choices>, PostgresError> {
        self.reactor.run(self.core.retried(async |core| core.choices(session).await))
    }

    /// Notes a batch of a session as the next one that is written.
    pub(super) fn stage(
        &mut self,
        leased: &mut LeasedSession,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) {
        self.core.stage(leased, session, batch, folder);
    }

    /// Writes the batches that were staged.
    pub(super) fn write(&mut self, all: &mut [Item<'_>]) -> Vec<Result<(), StoreError>> {
        let mut leased: Vec<_> = all.iter_mut().filter_map(Item::leased).collect();
        let Self { core, reactor } = self;
        let written = reactor.run(async { Ok(core.write(&mut leased).await) });
        written.unwrap_or_else(|error| vec![Err(error.into())])
    }

    pub(super) fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        self.reactor.run(self.core.retried(async |core| core.latest(folder).await))
    }
}

/// The address with its defaults from variables and the system, and with the passwords of the password file.
fn addressed(dsn: &Dsn) -> Result<Address, PostgresError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = dsn.address(&variable).map_err(PostgresError::Address)?;
    // As in libpq, and before the look-up of the password: each user has its own.
    let mut address = address.with_user(|| whoami::username().ok());
    if address.config.get_password().is_none() {
        passfile::add_passwords(&mut address, &variable);
    }
    Ok(address)
}

/// PostgreSQL has no text with a zero character.
fn check_id(session: &SessionId) -> Result<(), PostgresError> {
    if session.as_str().contains('\0') { Err(PostgresError::ZeroInId) } else { Ok(()) }
}

impl Core {
    /// The connection; a new one if there is none.
    async fn link(&mut self) -> Result<&Link, PostgresError> {
        match &mut self.link {
            Some(link) => Ok(link),
            none => {
                let link = none.insert(Link::open(&self.address).await?);
                self.link_number = LINKS.fetch_add(1, Ordering::Relaxed) + 1;
                Ok(link)
            }
        }
    }

    /// Asks the server, and asks it again over a new connection if the one before was cut. What is asked may
    /// have been done already, as the answer may be what was lost.
    async fn retried<T>(
        &mut self,
        mut ask: impl AsyncFnMut(&mut Self) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        let mut attempts = 0;
        loop {
            let had_link = self.link.is_some();
            let error = match ask(self).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // What was begun there is not committed.
            self.link = None;
            // A connection that was not used for a while may have been cut long ago, which says nothing of the server.
            attempts += u32::from(!had_link);
            if !error.is_cut() || attempts >= ATTEMPTS_MAX {
                return Err(error);
            }
            tracing::debug!(%error, "the store is asked again");
            if !had_link {
                sleep(ATTEMPT_INTERVAL).await;
            }
        }
    }

    async fn claim(
        &mut self,
        session: &SessionId,
    ) -> Result<Result<LeasedSession, StoreError>, PostgresError> {
        // The same for each attempt: one whose answer was lost may have succeeded.
        let token = lease::new_token();
        let claimed = self.retried(async |core| {
            let (address, process) = (core.address.clone(), core.process.clone());
            let link = core.link().await?;
            process.join(link, &address).await?;
            match lease::acquire(link, &process, session, &token).await {
                Err(StoreError::Postgres(error)) => Err(error),
                acquired => Ok(acquired),
            }
        });
        let claimed = claimed.await;
        match &claimed {
            Ok(Ok(_)) => self.process.acquired(session.as_str(), &token),
            Ok(Err(_)) => {}
            Err(_) => self.process.abandon(session.as_str(), &token),
        }
        claimed
    }

    async fn has(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        let sql = "SELECT 1 FROM duologue.sessions WHERE id = $1";
        let row = self.link().await?.row(sql, &[(&session.as_str(), Type::TEXT)]).await?;
        Ok(row.is_some())
    }

    async fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        let sql = "SELECT id FROM duologue.sessions WHERE folder = $1 AND turns > 0 \
                   ORDER BY changed DESC, key DESC LIMIT 1";
        let folder = pending::stored_folder(folder);
        let row = self.link().await?.row(sql, &[(&folder, Type::TEXT)]).await?;
        Ok(row.and_then(|row| SessionId::new(row.get(0))))
    }
}
