//! A node: what it holds, what it knows of it, and what it asks the server for.

use super::server::{Phase, Server, Transaction};
use super::{Planted, Said};
use crate::store::postgres::HEARTBEAT_MAX;
use crate::store::postgres::lease::LeasedSession;
use crate::store::postgres::pending::Pending;
use crate::store::postgres::write::{Synced, Written};
use std::collections::BTreeMap;

pub(super) struct Node {
    /// A node that was killed comes back as another process.
    pub(super) process: u64,
    /// It gets no time, as a process that was sent SIGSTOP.
    pub(super) is_stopped: bool,
    link: Option<u64>,
    commits: u64,
    synced: Synced,
    held: BTreeMap<usize, Held>,
    /// What it had of sessions that it has lost since the last look.
    lost: BTreeMap<usize, Vec<Said>>,
    /// Logs of sessions that it had once, for a planted fault.
    known: BTreeMap<usize, Vec<Said>>,
    beat_ms: i64,
    planted: Option<Planted>,
}

/// A session that the node holds.
struct Held {
    leased: LeasedSession,
    log: Vec<Said>,
    /// What each of its batches says.
    batches: BTreeMap<i64, Said>,
    /// A transaction of it waits for its answer.
    is_sent: bool,
}

impl Held {
    fn said(&self, pending: &Pending) -> Said {
        self.batches.get(&pending.number).copied().unwrap_or_default()
    }
}

impl Node {
    pub(super) fn new(process: u64, planted: Option<Planted>) -> Self {
        Self {
            process,
            is_stopped: false,
            link: None,
            commits: 0,
            synced: Synced::default(),
            held: BTreeMap::new(),
            lost: BTreeMap::new(),
            known: BTreeMap::new(),
            beat_ms: 0,
            planted,
        }
    }

    /// Its connections are gone; gives the process whose they were.
    pub(super) fn cut(&mut self) -> u64 {
        self.link = None;
        self.held.values_mut().for_each(|held| held.is_sent = false);
        self.process
    }

    fn link(&mut self, server: &mut Server) -> u64 {
        *self.link.get_or_insert_with(|| server.connect())
    }

    pub(super) fn beat(&mut self, server: &mut Server) {
        server.beat(self.process);
        self.beat_ms = server.now_ms;
    }

    /// Takes a session; gives its log if it has got it.
    pub(super) fn claim(&mut self, server: &mut Server, session: usize) -> Option<Vec<Said>> {
        if self.held.contains_key(&session) {
            return None;
        }
        self.beat(server);
        let fence = server.acquire(session, self.process)?;
        let mut leased = LeasedSession::new("s", fence, "");
        leased.is_there = server.row(session).is_some();
        let stale =
            self.known.get(&session).filter(|_| self.planted == Some(Planted::ForgetsTheTail));
        let log = stale.cloned().unwrap_or_else(|| server.log(session));
        let (batches, is_sent) = (BTreeMap::new(), false);
        self.held.insert(session, Held { leased, log: log.clone(), batches, is_sent });
        Some(log)
    }

    /// A client says something, which becomes the next batch.
    pub(super) fn say(&mut self, session: usize, said: Said, is_synced: bool) {
        let Some(held) = self.held.get_mut(&session).filter(|held| !held.is_sent) else { return };
        let number = held.leased.next_number();
        let head = said.to_be_bytes().to_vec();
        held.leased.pending.push(Pending::empty(number, head, is_synced));
        held.batches.insert(number, said);
    }

    /// Begins a transaction with what is not written yet.
    pub(super) fn write(&mut self, server: &mut Server, session: usize) {
        let link = self.link(server);
        let trusts = self.planted == Some(Planted::TrustsTime)
            && server.now_ms - self.beat_ms < i64::try_from(HEARTBEAT_MAX.as_millis()).unwrap_or(0);
        let Some(held) = self.held.get_mut(&session).filter(|held| !held.is_sent) else { return };
        let checks = self.planted != Some(Planted::FenceUnchecked) && !trusts;
        if checks {
            // A transaction of an earlier connection that goes on is waited for.
            if server.is_locked(session) {
                return;
            }
            if !server.is_held(session, held.leased.fence) {
                return self.lose(session);
            }
        }
        if held.leased.link != link && self.planted != Some(Planted::WritesAgain) {
            let row = server.row(session);
            let head = row.and_then(|row| row.log.last()).map(|it| it.0.to_be_bytes());
            let head = head.as_ref().map_or(&[][..], |head| head);
            let row = row.map(|row| Written { fence: row.writer, batch: row.batch, head });
            if !held.leased.found(row, (link, self.commits + 1)) {
                return self.lose(session);
            }
        }
        let unwritten = held.leased.unwritten();
        let batches: Vec<_> = unwritten.iter().map(|it| (it.number, held.said(it))).collect();
        if batches.is_empty() {
            return;
        }
        let is_synced = unwritten.iter().any(|it| it.is_synced);
        held.is_sent = true;
        let (process, fence, phase) = (self.process, held.leased.fence, Phase::Open);
        let transaction = Transaction { process, link, session, fence, batches, is_synced, phase };
        server.open.push(transaction);
    }

    /// What was sent of a session and has no answer.
    pub(super) fn sent(&self, session: usize) -> Vec<Said> {
        let held = self.held.get(&session).filter(|held| held.is_sent);
        held.map_or_else(Vec::new, |held| {
            held.leased.unwritten().iter().map(|it| held.said(it)).collect()
        })
    }

    /// Has its transactions committed, at once unless the server `is_slow`.
    pub(super) fn commit(&mut self, server: &mut Server, is_slow: bool) {
        let own = |it: &Transaction| it.process == self.process && it.phase == Phase::Open;
        while let Some(at) = server.open.iter().position(own) {
            server.open[at].phase = Phase::Committing;
            if !is_slow {
                server.commit(at);
            }
        }
    }

    /// Reads answers; gives what they are about, which may be shown now.
    pub(super) fn answered(&mut self, server: &mut Server) -> Vec<(usize, Said)> {
        let mut shown = Vec::new();
        let own = |it: &Transaction| it.process == self.process;
        while let Some(at) = server.answers.iter().position(own) {
            let Transaction { session, batches, is_synced, link, .. } = server.answers.remove(at);
            let Some(held) = self.held.get_mut(&session) else { continue };
            self.commits += 1;
            if is_synced {
                self.synced = Synced { link, commit: self.commits };
            }
            held.leased.committed(self.commits, self.synced);
            if self.planted == Some(Planted::ForgetsUnsynced) {
                held.leased.pending.clear();
            }
            let leased = &held.leased;
            held.batches.retain(|number, _| leased.pending.iter().any(|it| it.number == *number));
            held.is_sent = false;
            held.log.extend(batches.iter().map(|(_, said)| *said));
            shown.extend(batches.iter().map(|(_, said)| (session, *said)));
        }
        shown
    }

    /// Gives a session away, of which everything is written.
    pub(super) fn hand_over(&mut self, server: &mut Server, session: usize) {
        let is_written = |held: &&Held| held.leased.unwritten().is_empty() && !held.is_sent;
        let link = self.link;
        let is_known =
            |held: &&Held| link == Some(held.leased.link) || held.leased.pending.is_empty();
        let Some(held) = self.held.get(&session).filter(is_written).filter(is_known) else {
            return;
        };
        server.release(session, held.leased.fence);
        self.lose(session);
    }

    fn lose(&mut self, session: usize) {
        let kept = self.kept(session);
        if let Some(held) = self.held.remove(&session) {
            self.known.insert(session, held.log);
            self.lost.entry(session).or_default().extend(kept);
        }
    }

    /// What it had of a session that it has lost, which it will not write again.
    pub(super) fn lost(&mut self, session: usize) -> Option<Vec<Said>> {
        self.lost.remove(&session)
    }

    pub(super) fn holds(&self, session: usize) -> bool {
        self.held.contains_key(&session)
    }

    /// What it can write again.
    pub(super) fn kept(&self, session: usize) -> Vec<Said> {
        let held = self.held.get(&session);
        held.map_or_else(Vec::new, |held| {
            held.leased.pending.iter().map(|it| held.said(it)).collect()
        })
    }
}
