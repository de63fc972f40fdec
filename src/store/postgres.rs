//! A store in a database of PostgreSQL, which processes on several machines can share.
//!
//! A writer needs the `lease` of its session, and has two connections: its own, and that of the lease.
//! One that is cut is made anew; what became of the batch that was being written is found out first.

mod address;
mod certificate;
mod dsn;
mod error;
mod inspect;
mod lease;
mod link;
mod load;
mod machine;
mod passfile;
mod payloads;
mod pending;
mod reader;
mod schema;
mod tls;
mod write;

pub use dsn::Dsn;
pub(super) use error::PostgresError;
pub(super) use inspect::inspect;

use super::batch::Batch;
use super::error::StoreError;
use super::reading::{Reading, Sink};
use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use address::Address;
use lease::Lease;
use link::{Link, Reactor};
use pending::Pending;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

/// How long the end of a session waits for its lease to be freed.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// Attempts to get an answer while connections are cut, and the time between two of them.
const ATTEMPTS_MAX: u32 = 3;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(250);

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
    lease: Option<Lease>,
    /// The session has a row.
    is_there: bool,
    /// Batches that a crash of the server might still undo, oldest first, and the one that is written.
    pending: Vec<Pending>,
    /// Number of the last batch that was written under the lease.
    written: i64,
    /// Number of the last one that survives a crash of the server.
    synced: i64,
    fault: FailPoint,
}

impl Postgres {
    /// Connects to the database, and makes the tables if they may be new.
    pub(super) fn open(
        dsn: &Dsn,
        may_be_new: bool,
        fault: FailPoint,
    ) -> Result<Self, PostgresError> {
        let address = addressed(dsn)?;
        let reactor = Reactor::new()?;
        let mut core = Core {
            address,
            link: None,
            lease: None,
            is_there: false,
            pending: Vec::new(),
            written: 0,
            synced: 0,
            fault,
        };
        reactor.run(core.retried(async |core| {
            let address = core.address.clone();
            schema::prepare(core.link().await?, &address, may_be_new).await
        }))?;
        Ok(Self { core, reactor })
    }

    pub(super) fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        check_id(session)?;
        let Self { core, reactor } = self;
        reactor.run(core.claim(session))?
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
        self.reactor.run(self.core.choices(session))
    }

    /// Writes a batch for a session that was claimed.
    pub(super) fn write(
        &mut self,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) -> Result<(), PostgresError> {
        self.reactor.run(self.core.write(session, batch, folder))
    }

    pub(super) fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        self.reactor.run(self.core.retried(async |core| core.latest(folder).await))
    }
}

/// The address with its defaults from variables, and with the password of the password file.
fn addressed(dsn: &Dsn) -> Result<Address, PostgresError> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut address = dsn.address(&variable).map_err(PostgresError::Address)?;
    if address.config.get_password().is_none()
        && let Some(password) = passfile::password(&address, &variable)
    {
        address.config.password(password);
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
            none => Ok(none.insert(Link::open(&self.address).await?)),
        }
    }

    /// Asks the server, and asks it again over a new connection if the one before was cut. What is asked may
    /// have been done already, as the answer may be what was lost.
    async fn retried<T>(
        &mut self,
        mut ask: impl AsyncFnMut(&mut Self) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        for _ in 1..ATTEMPTS_MAX {
            match ask(self).await {
                Err(error) if error.is_cut() => {
                    tracing::debug!(%error, "the store is asked again");
                    self.link = None;
                    sleep(ATTEMPT_INTERVAL).await;
                }
                answer => return answer,
            }
        }
        ask(self).await
    }

    async fn claim(
        &mut self,
        session: &SessionId,
    ) -> Result<Result<(), StoreError>, PostgresError> {
        let address = self.address.clone();
        // The same for each attempt: one whose answer was lost may have succeeded.
        let token = lease::new_token();
        let acquired = self.retried(async |core| {
            match lease::acquire(core.link().await?, &address, session, &token).await {
                Err(StoreError::Postgres(error)) => Err(error),
                acquired => Ok(acquired),
            }
        });
        Ok(acquired.await?.map(|lease| self.lease = Some(lease)))
    }

    async fn has(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        let sql = "SELECT 1 FROM duologue.sessions WHERE id = $1";
        let row = self.link().await?.row(sql, &[(&session.as_str(), Type::TEXT)]).await?;
        self.is_there = row.is_some();
        Ok(self.is_there)
    }

    async fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        let sql = "SELECT id FROM duologue.sessions WHERE folder = $1 AND turns > 0 \
                   ORDER BY changed DESC, key DESC LIMIT 1";
        let row = self.link().await?.row(sql, &[(&folder, Type::TEXT)]).await?;
        Ok(row.and_then(|row| SessionId::new(row.get(0))))
    }
}

impl Drop for Postgres {
    /// Frees the session at once. Where that can't be done its lease ends by itself.
    fn drop(&mut self) {
        let Self { core: Core { link, lease, .. }, reactor } = self;
        if let (Some(lease), Some(link)) = (lease.take(), &link) {
            let releasing = async {
                timeout(RELEASE_MAX, lease.identity.release(link)).await.ok();
                Ok(())
            };
            reactor.run(releasing).ok();
        }
    }
}
