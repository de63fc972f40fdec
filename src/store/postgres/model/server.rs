//! The server: what its statements do, and what is left of them after a crash.

use super::{Planted, Said};
use crate::store::postgres::HEARTBEAT_MAX;
use crate::support::dice::Dice;
use std::collections::BTreeMap;

/// The rows that the statements of `lease` and `write` read and change.
#[derive(Clone, Debug, Default)]
struct Tables {
    /// The last number that was given (`duologue.fences`).
    fences: i64,
    /// The last heartbeat of each process.
    processes: BTreeMap<u64, i64>,
    leases: BTreeMap<usize, Lease>,
    sessions: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) fence: i64,
    process: u64,
}

/// The row of a session, and its log.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) writer: i64,
    pub(super) batch: i64,
    /// What was said, with the fence and the process of who wrote it.
    pub(super) log: Vec<(Said, i64, u64)>,
}

/// A transaction between its first statement and its end. It has the lease of its session locked.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) process: u64,
    pub(super) link: u64,
    pub(super) session: usize,
    pub(super) fence: i64,
    /// The batches that it writes: number, and what was said.
    pub(super) batches: Vec<(i64, Said)>,
    pub(super) is_synced: bool,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its statements have been answered.
    Open,
    /// It is to be committed.
    Committing,
    /// It is to be committed, and nobody waits for the answer any more.
    Orphaned,
}

pub(super) struct Server {
    pub(super) now_ms: i64,
    tables: Tables,
    /// What a crash leaves.
    synced: Tables,
    pub(super) open: Vec<Transaction>,
    /// Commits whose answers have not been read.
    pub(super) answers: Vec<Transaction>,
    /// What crashes have undone.
    undone: Vec<(Said, i64, u64)>,
    links: u64,
    planted: Option<Planted>,
}

impl Server {
    pub(super) fn new(sessions: usize, planted: Option<Planted>) -> Self {
        let tables = Tables { sessions: vec![Row::default(); sessions], ..Tables::default() };
        let synced = tables.clone();
        Self {
            now_ms: 0,
            tables,
            synced,
            open: Vec::new(),
            answers: Vec::new(),
            undone: Vec::new(),
            links: 0,
            planted,
        }
    }

    pub(super) fn connect(&mut self) -> u64 {
        self.links += 1;
        self.links
    }

    pub(super) fn beat(&mut self, process: u64) {
        self.tables.processes.insert(process, self.now_ms);
    }

    /// `ACQUIRE`: the fence of a lease whose process has no heartbeat any more, or that nobody has.
    pub(super) fn acquire(&mut self, session: usize, process: u64) -> Option<i64> {
        let held = self.tables.leases.get(&session);
        let limit = i64::try_from(HEARTBEAT_MAX.as_millis()).unwrap_or(i64::MAX);
        let beats = |of: &u64| {
            let at = self.tables.processes.get(of);
            at.is_some_and(|at| (at - self.now_ms).abs() < limit)
        };
        let is_held = held.is_some_and(|lease| beats(&lease.process));
        // Its holder writes.
        if is_held || self.is_locked(session) {
            return None;
        }
        let again = held.filter(|_| self.planted == Some(Planted::FenceUsedAgain));
        let fence = again.map_or(self.tables.fences + 1, |lease| lease.fence);
        self.tables.fences += 1;
        self.tables.leases.insert(session, Lease { fence, process });
        self.synced = self.tables.clone();
        Some(fence)
    }

    /// `HELD`: whether the lease is that of this fence.
    pub(super) fn is_held(&self, session: usize, fence: i64) -> bool {
        self.tables.leases.get(&session).is_some_and(|lease| lease.fence == fence)
    }

    /// `RELEASE`.
    pub(super) fn release(&mut self, session: usize, fence: i64) {
        if self.is_held(session, fence) {
            self.tables.leases.remove(&session);
            self.synced = self.tables.clone();
        }
    }

    /// Whether a transaction has the lease locked: who asks for it waits.
    pub(super) fn is_locked(&self, session: usize) -> bool {
        self.planted != Some(Planted::FenceUnchecked)
            && self.planted != Some(Planted::TrustsTime)
            && self.open.iter().any(|it| it.session == session)
    }

    /// `LAST`: the row of a session; `None` if it has none yet.
    pub(super) fn row(&self, session: usize) -> Option<&Row> {
        self.tables.sessions.get(session).filter(|row| row.writer != 0)
    }

    pub(super) fn log(&self, session: usize) -> Vec<Said> {
        self.tables.sessions[session].log.iter().map(|(said, _, _)| *said).collect()
    }

    /// Who wrote this, as far as a crash has left it or not.
    pub(super) fn author(&self, session: usize, said: Said) -> Option<u64> {
        let logs = self.undone.iter().chain(&self.tables.sessions[session].log);
        logs.into_iter().find(|it| it.0 == said).map(|it| it.2)
    }

    /// Whether a crash has undone this.
    pub(super) fn was_undone(&self, said: Said) -> bool {
        self.undone.iter().any(|it| it.0 == said)
    }

    /// Commits some of the transactions that are to be committed.
    pub(super) fn go_on(&mut self, dice: &mut Dice) {
        let mut at = 0;
        while at < self.open.len() {
            if self.open[at].phase == Phase::Open || dice.once_in(3) {
                at += 1;
            } else {
                self.commit(at);
            }
        }
    }

    /// Commits the transaction at this place.
    pub(super) fn commit(&mut self, at: usize) {
        let transaction = self.open.remove(at);
        let Transaction { process, session, fence, ref batches, is_synced, phase, .. } =
            transaction;
        let row = &mut self.tables.sessions[session];
        row.log.extend(batches.iter().map(|(_, said)| (*said, fence, process)));
        row.writer = fence;
        row.batch = batches.last().map_or(row.batch, |(number, _)| *number);
        if is_synced {
            self.synced = self.tables.clone();
        }
        if phase == Phase::Committing {
            self.answers.push(transaction);
        }
    }

    /// The connections of a process are gone. A transaction that is not to be committed yet is rolled back; one that is
    /// may be committed at any time, or not.
    pub(super) fn cut(&mut self, process: u64, dice: &mut Dice) {
        self.answers.retain(|it| it.process != process);
        self.open.retain(|it| it.process != process || it.phase != Phase::Open);
        let own = |it: &&mut Transaction| it.process == process;
        self.open.iter_mut().filter(own).for_each(|it| it.phase = Phase::Orphaned);
        self.open.retain(|it| it.process != process || !dice.once_in(3));
    }

    /// What was not synced is gone.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        let mut at = 0;
        while at < self.open.len() {
            if self.open[at].phase != Phase::Open && dice.once_in(2) {
                self.commit(at);
            } else {
                at += 1;
            }
        }
        self.open.clear();
        self.answers.clear();
        let before: Vec<_> = self.tables.sessions.iter().flat_map(|row| row.log.clone()).collect();
        self.tables = self.synced.clone();
        let after: Vec<_> = self.tables.sessions.iter().flat_map(|row| row.log.clone()).collect();
        self.undone.extend(before.into_iter().filter(|said| !after.contains(said)));
    }

    /// Each thing is said once, and nobody has written after a later holder of the lease.
    pub(super) fn check(&self, session: usize) -> Result<(), String> {
        let log = &self.tables.sessions[session].log;
        for (at, (said, fence, _)) in log.iter().enumerate() {
            if log[..at].iter().any(|it| it.0 == *said) {
                return Err(format!("{said} is stored twice in session {session}"));
            }
            if log[..at].iter().any(|it| it.1 > *fence) {
                return Err(format!("{said} was written in session {session} by who had lost it"));
            }
        }
        Ok(())
    }
}
