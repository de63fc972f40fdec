//! Writes batches into PostgreSQL: all of one or nothing, and none of them twice.
//!
//! All statements of a transaction are sent at once; it is committed if the lease, which the first of
//! them locks, is still ours. The row of the session has the number of the batch and the hash of the last
//! row of the log. So after a cut connection, or a crash of the server that undid what had not been synced, the
//! next connection sees which batches are there, and the others are written again.

use super::Core;
use super::error::PostgresError;
use super::link::{BEGIN, Link};
use super::pending::Pending;
use crate::protocol::id::SessionId;
use crate::store::batch::Batch;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_postgres::types::Type;

/// How long a batch is tried again while the server can't be reached.
const RETRY_MAX: Duration = Duration::from_secs(20);

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of batches that are kept until they are synced; past it, one is synced that need not be.
const UNSYNCED_BYTES_MAX: usize = 1024 * 1024;

const LAST: &str = "SELECT writer, batch, head FROM duologue.sessions WHERE id = $1";

impl Core {
    /// Writes a batch. While the server can't be reached it is tried again.
    pub(super) async fn write(
        &mut self,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) -> Result<(), PostgresError> {
        let unsynced: usize = self.pending.iter().map(|it| it.bytes).sum();
        let mut pending = Pending::new(session, self.written + 1, batch, folder);
        pending.is_synced |= unsynced + pending.bytes > UNSYNCED_BYTES_MAX;
        self.pending.push(pending);
        let until = Instant::now() + RETRY_MAX;
        let result = loop {
            match self.write_pending(session).await {
                Err(error) if error.is_passing() && Instant::now() < until => {
                    tracing::debug!(%error, "the store is tried again");
                    self.link = None;
                    sleep(RETRY_INTERVAL).await;
                }
                result => break result,
            }
        };
        if result.is_err() {
            // Whatever is open there is not committed.
            self.link = None;
        }
        result
    }

    /// Writes the batches that are not written.
    async fn write_pending(&mut self, session: &SessionId) -> Result<(), PostgresError> {
        if self.link.is_none() {
            let link = Link::open(&self.address).await?;
            self.find_written(&link, session).await?;
            self.link = Some(link);
        }
        let (Some(link), Some(lease)) = (&self.link, &self.lease) else {
            return Err(PostgresError::Unclaimed);
        };
        let first = self.pending.partition_point(|it| it.number <= self.written);
        for pending in &self.pending[first..] {
            let statements = pending.statements(&lease.identity.fence, self.is_there);
            for _ in &statements {
                if self.fault.is_tripped() {
                    return Err(PostgresError::Planted);
                }
            }
            let mut all = vec![lease.identity.held()];
            all.extend(statements);
            let begin = format!("{BEGIN}{}", pending.durability());
            let sent = link.send(&begin, &all, pending.bytes).await;
            let is_ours = match &sent {
                Ok(counts) => counts.first() == Some(&1),
                Err(error) if error.is_passing() => true,
                // What is in the way may be rows of the process that has the session now.
                Err(_) => lease.identity.is_held(link).await?,
            };
            if !is_ours {
                return Err(lease.identity.lost(link).await);
            }
            // The last one changes the row of the session.
            if sent?.last() != Some(&1) {
                return Err(PostgresError::Forgotten(self.address.to_string()));
            }
            link.run("COMMIT").await?;
            (self.written, self.is_there) = (pending.number, true);
            if pending.is_synced {
                self.synced = pending.number;
            }
        }
        self.pending.retain(|it| it.number > self.synced);
        Ok(())
    }

    /// Finds out, with a new connection, which batches the server has. A transaction of the old one
    /// that goes on has the lease locked, so that its end is waited for.
    async fn find_written(
        &mut self,
        link: &Link,
        session: &SessionId,
    ) -> Result<(), PostgresError> {
        let Some(lease) = &self.lease else { return Err(PostgresError::Unclaimed) };
        let held = lease.identity.held();
        if link.send(BEGIN, &[held], 0).await? != [1] {
            return Err(lease.identity.lost(link).await);
        }
        let row = link.row(LAST, &[(&session.as_str(), Type::TEXT)]).await?;
        link.run("ROLLBACK").await?;
        let (mut number, mut head): (i64, Vec<u8>) = (0, Vec::new());
        if let Some(row) = &row
            && row.get::<_, i64>(0) == lease.identity.fence
        {
            (number, head) = (row.get(1), row.get(2));
        }
        let is_known = number == self.synced
            || self.pending.iter().any(|it| it.number == number && it.head == head);
        if !is_known {
            return Err(PostgresError::Forgotten(self.address.to_string()));
        }
        (self.written, self.is_there) = (number, row.is_some());
        Ok(())
    }
}
