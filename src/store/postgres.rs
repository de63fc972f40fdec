//! A store in a database of PostgreSQL, which processes on several machines can share.
//!
//! A writer needs the `lease` of its session, and has two connections: its own, and that of the lease.
//! One that is cut is made anew; what became of the batch that was being written is found out first.

mod address;
mod dsn;
mod error;
mod inspect;
mod lease;
mod link;
mod load;
mod machine;
mod passfile;
mod pending;
mod reactor;
mod reader;
mod schema;
mod tls;
mod write;

pub use dsn::Dsn;
pub(super) use error::PostgresError;
pub(super) use inspect::inspect;

use super::error::StoreError;
use super::part::{Part, has_turns_elsewhere};
use super::{Roles, batch::Batch};
use crate::chat::record::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use address::Address;
use lease::Lease;
use link::Link;
use pending::Pending;
use reactor::Reactor;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::types::Type;

/// How long the end of a session waits for its lease to be freed.
const RELEASE_MAX: Duration = Duration::from_secs(2);

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
        let link = reactor.run(async {
            let link = Link::open(&address).await?;
            schema::prepare(&link, &address, may_be_new).await?;
            Ok(link)
        })?;
        let core = Core {
            address,
            link: Some(link),
            lease: None,
            is_there: false,
            pending: Vec::new(),
            written: 0,
            synced: 0,
            fault,
        };
        Ok(Self { core, reactor })
    }

    pub(super) fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let Self { core, reactor } = self;
        reactor.run(async { Ok(core.claim(session).await) })?
    }

    pub(super) fn has(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        self.reactor.run(self.core.has(session))
    }

    pub(super) fn load(
        &mut self,
        session: &SessionId,
        roles: Roles,
    ) -> Result<Part, PostgresError> {
        self.reactor.run(self.core.load(session, roles))
    }

    /// Writes a batch for a session that was claimed.
    pub(super) fn write(
        &mut self,
        session: &SessionId,
        records: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), PostgresError> {
        let batch = Batch::of(records, roles);
        self.reactor.run(self.core.write(session, batch, folder))
    }

    pub(super) fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        self.reactor.run(self.core.latest(folder))
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

impl Core {
    /// The connection; a new one if there is none.
    async fn link(&mut self) -> Result<&Link, PostgresError> {
        match &mut self.link {
            Some(link) => Ok(link),
            none => Ok(none.insert(Link::open(&self.address).await?)),
        }
    }

    async fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let address = self.address.clone();
        let acquired = match lease::acquire(self.link().await?, &address, session).await {
            // It may have been cut while the session had no name yet.
            Err(StoreError::Postgres(PostgresError::Unreachable { .. })) => {
                self.link = None;
                lease::acquire(self.link().await?, &address, session).await
            }
            acquired => acquired,
        };
        self.lease = Some(acquired?);
        Ok(())
    }

    async fn has(&mut self, session: &SessionId) -> Result<bool, PostgresError> {
        let sql = "SELECT 1 FROM duologue.sessions WHERE id = $1";
        let row = self.link().await?.row(sql, &[(&session.as_str(), Type::TEXT)]).await?;
        self.is_there = row.is_some();
        Ok(self.is_there)
    }

    async fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, PostgresError> {
        let sql = "SELECT id, preamble FROM duologue.sessions WHERE folder = $1 AND turns > 0 \
                   ORDER BY changed DESC, key DESC LIMIT 1 OFFSET $2";
        let link = self.link().await?;
        let mut skipped: i64 = 0;
        loop {
            let values: [link::Value<'_>; 2] = [(&folder, Type::TEXT), (&skipped, Type::INT8)];
            let Some(row) = link.row(sql, &values).await? else { return Ok(None) };
            if !has_turns_elsewhere(row.get(1)) {
                return Ok(SessionId::new(row.get(0)));
            }
            skipped += 1;
        }
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
