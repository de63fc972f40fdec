//! Writes batches into PostgreSQL: those of several sessions in one transaction, all of a batch or nothing, and
//! none of them twice.
//!
//! All statements of a transaction are sent at once; it is committed if the leases, which the first of
//! them locks, are still ours. The row of a session has the number of the batch and the hash of the last
//! row of the log. So after a cut connection, or a crash of the server that undid what had not been synced, the
//! next connection sees which batches are there, and the others are written again.

use super::Core;
use super::error::PostgresError;
use super::lease::{LeasedSession, Leases};
use super::link::Link;
use super::pending::Pending;
use super::round::Round;
use crate::protocol::id::SessionId;
use crate::store::batch::Batch;
use crate::store::error::StoreError;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_postgres::types::Type;

/// How long a batch is tried again while the server can't be reached.
const RETRY_MAX: Duration = Duration::from_secs(20);

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of batches that are kept until they are synced; past it, one is synced that need not be.
const UNSYNCED_BYTES_MAX: usize = 1024 * 1024;

const LAST: &str = "SELECT id, writer, batch, head FROM duologue.sessions WHERE id = ANY($1)";

/// The last transaction that was synced, and with it all before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Synced {
    /// The connection it was sent over, and its number there.
    pub(super) link: u64,
    pub(super) commit: u64,
}

impl Core {
    /// Notes a batch as the next one of its session.
    pub(super) fn stage(
        &mut self,
        leased: &mut LeasedSession,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) {
        let number = leased.next_number();
        let mut pending = Pending::new(session, number, batch, folder);
        self.unsynced_bytes += pending.bytes;
        pending.is_synced |= self.unsynced_bytes > UNSYNCED_BYTES_MAX;
        leased.pending.push(pending);
    }

    /// Writes the batches that were staged. While the server can't be reached it is tried again.
    pub(super) async fn write(
        &mut self,
        all: &mut [&mut LeasedSession],
    ) -> Vec<Result<(), StoreError>> {
        self.write_by(all, Instant::now() + RETRY_MAX).await
    }

    /// Writes the batches; tries again until then. Where the sessions can't be written together each is written
    /// alone: what one of them suffers, as a lost lease, is no other's.
    async fn write_by(
        &mut self,
        all: &mut [&mut LeasedSession],
        until: Instant,
    ) -> Vec<Result<(), StoreError>> {
        if all.len() > 1 {
            match self.write_until(all, until).await {
                Ok(()) => return all.iter().map(|_| Ok(())).collect(),
                Err(error) if error.is_silence() => return all_failed(&error, all.len()),
                Err(error) => tracing::debug!(%error, "sessions are written one by one"),
            }
        }
        self.write_each(all, until).await
    }

    /// Writes each session alone. Once the server is away, or this has taken too long, the rest fails with that error:
    /// each would wait as long again, and nobody gets a reply before all are done.
    async fn write_each(
        &mut self,
        all: &mut [&mut LeasedSession],
        until: Instant,
    ) -> Vec<Result<(), StoreError>> {
        let last = Instant::now() + RETRY_MAX;
        let count = all.len();
        let mut results = Vec::new();
        for one in all.chunks_mut(1) {
            match self.write_until(one, until).await {
                Err(error)
                    if error.is_silence() || error.is_passing() && Instant::now() >= last =>
                {
                    let left = count - results.len();
                    results.extend(all_failed(&error, left));
                    return results;
                }
                result => results.push(result.map_err(StoreError::from)),
            }
        }
        results
    }

    async fn write_until(
        &mut self,
        all: &mut [&mut LeasedSession],
        until: Instant,
    ) -> Result<(), PostgresError> {
        let result = loop {
            match self.write_staged(all).await {
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

    async fn write_staged(&mut self, all: &mut [&mut LeasedSession]) -> Result<(), PostgresError> {
        self.link().await?;
        let Self { link: Some(link), link_number, commits, fault, address, .. } = self else {
            return Err(PostgresError::Unclaimed);
        };
        find_written(link, (*link_number, *commits + 1), all).await?;
        let leases = Leases::of(all.iter().map(|it| &**it));
        let rounds = rounds(all);
        let (mut statements, mut ends) = (vec![leases.held()], Vec::new());
        for round in &rounds {
            statements.extend(round.statements());
            // The last one changes the rows of the sessions.
            ends.push((statements.len() - 1, round.batches()));
        }
        let bytes = rounds.iter().map(|it| it.bytes).sum();
        let is_synced = rounds.iter().any(|it| it.is_synced);
        let durability = if is_synced { Pending::SYNCED } else { Pending::UNSYNCED };
        for _ in &statements[1..] {
            if fault.is_tripped() {
                return Err(PostgresError::Planted);
            }
        }
        let sent = link.send(durability, &statements, bytes).await;
        drop(statements);
        drop(rounds);
        let are_ours = match &sent {
            Ok(counts) => leases.are_all(counts.first().copied().unwrap_or_default()),
            Err(error) if error.is_passing() => true,
            // What is in the way may be rows of the process that has the session now.
            Err(_) => all.len() > 1 || all[0].is_held(link).await?,
        };
        if !are_ours {
            return Err(all[0].lost(link).await);
        }
        let counts = sent?;
        let is_written = |(end, batches): &(usize, usize)| {
            counts.get(*end).copied().is_some_and(|rows| usize::try_from(rows) == Ok(*batches))
        };
        if !ends.iter().all(is_written) {
            return Err(PostgresError::Forgotten(address.to_string()));
        }
        link.run("COMMIT").await?;
        self.committed(all, is_synced);
        Ok(())
    }

    /// Notes that what was staged is written.
    fn committed(&mut self, all: &mut [&mut LeasedSession], is_synced: bool) {
        self.commits += 1;
        if is_synced {
            self.synced = Synced { link: self.link_number, commit: self.commits };
            self.unsynced_bytes = 0;
        }
        all.iter_mut().for_each(|leased| leased.committed(self.commits, self.synced));
    }
}

/// The results of so many sessions that can't be written for the same reason.
fn all_failed(error: &PostgresError, count: usize) -> Vec<Result<(), StoreError>> {
    (0..count).map(|_| Err(StoreError::Failed(error.to_string()))).collect()
}

/// The batches that are not written: the first ones of all sessions, then the second ones.
fn rounds<'a>(all: &'a [&mut LeasedSession]) -> Vec<Round<'a>> {
    let mut rounds: Vec<Round<'a>> = Vec::new();
    for leased in all {
        for (at, pending) in leased.unwritten().iter().enumerate() {
            if at == rounds.len() {
                rounds.push(Round::default());
            }
            rounds[at].add(pending, leased.fence, leased.is_there || at > 0);
        }
    }
    rounds
}

/// Finds out, with a new connection, which batches the server has. A transaction of the old one
/// that goes on has the leases locked, so that its end is waited for.
async fn find_written(
    link: &Link,
    (link_number, next_commit): (u64, u64),
    all: &mut [&mut LeasedSession],
) -> Result<(), PostgresError> {
    let mut unknown: Vec<&mut LeasedSession> =
        all.iter_mut().map(|it| &mut **it).filter(|it| it.link != link_number).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let leases = Leases::of(unknown.iter().map(|it| &**it));
    let held = link.send("", &[leases.held()], 0).await?;
    if !leases.are_all(held.first().copied().unwrap_or_default()) {
        return Err(unknown[0].lost(link).await);
    }
    let rows = link.rows(LAST, &[(leases.sessions(), Type::TEXT_ARRAY)]).await?;
    link.run("ROLLBACK").await?;
    let rows: HashMap<&str, _> = rows.iter().map(|row| (row.get(0), row)).collect();
    for leased in &mut unknown {
        let row = rows.get(&*leased.session);
        let row = row.map(|row| Written { fence: row.get(1), batch: row.get(2), head: row.get(3) });
        if !leased.found(row, (link_number, next_commit)) {
            return Err(PostgresError::Forgotten(link.place()));
        }
    }
    Ok(())
}

/// What the row of a session says of the batch that was written last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) fence: i64,
    pub(super) batch: i64,
    /// The hash of the last row of the log.
    pub(super) head: &'a [u8],
}

impl LeasedSession {
    /// The number of the next batch.
    pub(super) fn next_number(&self) -> i64 {
        self.pending.last().map_or(self.written, |it| it.number) + 1
    }

    /// Notes what a new connection of number `link_number` has found, whose next transaction is `next_commit`. False
    /// if the server has something else than was written under this lease.
    pub(super) fn found(
        &mut self,
        row: Option<Written<'_>>,
        (link_number, next_commit): (u64, u64),
    ) -> bool {
        let own = row.filter(|row| row.fence == self.fence);
        let (number, head) = own.map_or((0, &[][..]), |row| (row.batch, row.head));
        let is_known = number == self.synced
            || self.pending.iter().any(|it| it.number == number && it.head == head);
        if !is_known {
            return false;
        }
        (self.written, self.is_there, self.link) = (number, row.is_some(), link_number);
        // What is there is synced with a transaction to come; the rest is written again.
        for pending in &mut self.pending {
            pending.commit = (pending.number <= number).then_some(next_commit);
        }
        true
    }

    /// Notes that what was staged is written, by the transaction `commit`.
    pub(super) fn committed(&mut self, commit: u64, synced: Synced) {
        self.written = self.pending.last().map_or(self.written, |it| it.number);
        self.is_there = true;
        for pending in &mut self.pending {
            pending.commit.get_or_insert(commit);
        }
        self.forget_synced(synced);
    }

    /// The batches that are not written.
    pub(super) fn unwritten(&self) -> &[Pending] {
        let first = self.pending.partition_point(|it| it.number <= self.written);
        &self.pending[first..]
    }

    /// Drops the batches that survive a crash of the server.
    fn forget_synced(&mut self, synced: Synced) {
        if synced.link != self.link {
            return;
        }
        let is_synced = |it: &Pending| it.commit.is_some_and(|commit| commit <= synced.commit);
        if let Some(last) = self.pending.iter().rev().find(|it| is_synced(it)) {
            self.synced = last.number;
        }
        self.pending.retain(|it| !is_synced(it));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::dsn::Dsn;
    use crate::store::postgres::link::Reactor;
    use crate::store::postgres::process::OwnProcess;
    use crate::support::fail_point::FailPoint;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// A server that cuts each connection, and how many there were.
    fn cutting() -> (Core, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let made: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&made);
        thread::spawn(move || {
            for client in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                drop(client);
            }
        });
        let dsn = Dsn::new(&format!("postgres://ada@127.0.0.1:{port}/x?sslmode=disable"));
        let core = Core {
            address: dsn.expect("an address").address(&|_| None).expect("an address"),
            link: None,
            link_number: 0,
            process: OwnProcess::default(),
            commits: 0,
            synced: Synced::default(),
            unsynced_bytes: 0,
            fault: FailPoint::default(),
        };
        (core, made)
    }

    #[test]
    fn a_server_that_is_away_is_not_asked_again_for_each_session() {
        let (mut core, made) = cutting();
        let mut leased: Vec<_> =
            (0..5).map(|number| LeasedSession::new(&number.to_string(), 1, "token")).collect();
        let mut all: Vec<_> = leased.iter_mut().collect();
        // The time in which it is tried again is over.
        let until = Instant::now();
        let reactor = Reactor::new().expect("a runtime");
        for is_group in [true, false] {
            let before = made.load(Ordering::Relaxed);
            let writing = async {
                Ok(if is_group {
                    core.write_by(&mut all, until).await
                } else {
                    core.write_each(&mut all, until).await
                })
            };
            let results = reactor.run(writing).expect("results");
            let is_away = |it: &Result<(), StoreError>| {
                it.as_ref().is_err_and(|error| error.to_string().contains("can't be reached"))
            };
            assert!(results.len() == 5 && results.iter().all(is_away), "{results:?}");
            assert_eq!(made.load(Ordering::Relaxed) - before, 1);
        }
    }
}
