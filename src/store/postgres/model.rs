//! Nodes of a fleet, their leases, the server, its clock and the network as a model, in which everything follows from
//! a number: nodes that are killed, that stop and go on, connections that are cut before, in and after a commit, a
//! server that crashes and loses what was not synced. `DUOLOGUE_WORLDS` is how many are tried.
//!
//! What a node decides is its own code: the number of a batch, what of it is written and what is written again
//! (`LeasedSession`). What the server decides stands in SQL (`lease`, `write`), and here once more (`server`): who
//! gets a lease, and whether a transaction is one of its holder.

mod node;
mod server;

use crate::support::dice::Dice;
use crate::support::world_plan::Plan;
use node::Node;
use server::Server;
use std::collections::BTreeSet;

/// Nodes, and the sessions that they share.
const NODES: usize = 3;
const SESSIONS: usize = 2;

/// Worlds that are tried each time.
const WORLDS: u64 = 3_000;

/// Worlds in which a planted fault must be seen.
const PLANTED_MAX: u64 = 3_000;

/// A fault that is planted, to show that the model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// A transaction is committed whoever has the lease.
    FenceUnchecked,
    /// A node that has had its heartbeat in time, by its own clock, does not ask whether it has the lease.
    TrustsTime,
    /// A node that gets a session again goes on with what it knew of its log.
    ForgetsTheTail,
    /// After a cut what has no answer is written again, without a look at what is there.
    WritesAgain,
    /// What is written is shown before its commit is answered.
    ShowsEarly,
    /// A lease that is taken has the number of the one before.
    FenceUsedAgain,
    /// What a crash of the server may undo is not kept.
    ForgetsUnsynced,
}

const ALL: [Planted; 7] = [
    Planted::FenceUnchecked,
    Planted::TrustsTime,
    Planted::ForgetsTheTail,
    Planted::WritesAgain,
    Planted::ShowsEarly,
    Planted::FenceUsedAgain,
    Planted::ForgetsUnsynced,
];

/// Something that a client says, different from everything else.
type Said = u64;

struct Fleet {
    server: Server,
    nodes: Vec<Node>,
    said: Said,
    /// What clients were shown, by session; it must never be gone.
    shown: Vec<BTreeSet<Said>>,
    planted: Option<Planted>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Claim,
    Say,
    Write,
    Commit,
    Answer,
    Beat,
    Wait,
    PutBack,
    Cut,
    Stop,
    GoOn,
    Kill,
    HandOver,
    Crash,
}

const ACTIONS: [(usize, Action); 14] = [
    (12, Action::Claim),
    (20, Action::Say),
    (18, Action::Write),
    (16, Action::Commit),
    (10, Action::Answer),
    (8, Action::Beat),
    (6, Action::Wait),
    (1, Action::PutBack),
    (5, Action::Cut),
    (2, Action::Stop),
    (3, Action::GoOn),
    (1, Action::Kill),
    (3, Action::HandOver),
    (1, Action::Crash),
];

impl Fleet {
    fn new(planted: Option<Planted>) -> Self {
        Self {
            server: Server::new(SESSIONS, planted),
            nodes: (0..NODES).map(|at| Node::new(at as u64, planted)).collect(),
            said: 0,
            shown: vec![BTreeSet::new(); SESSIONS],
            planted,
        }
    }

    fn step(&mut self, dice: &mut Dice) -> Result<(), String> {
        let (at, session) = (dice.below(NODES), dice.below(SESSIONS));
        let action = dice.weighted(&ACTIONS);
        if self.nodes[at].is_stopped
            && !matches!(
                action,
                Action::GoOn
                    | Action::Kill
                    | Action::Wait
                    | Action::PutBack
                    | Action::Crash
                    | Action::Answer
                    | Action::Cut
            )
        {
            return Ok(());
        }
        let (node, server) = (&mut self.nodes[at], &mut self.server);
        match action {
            Action::Claim => {
                if let Some(log) = node.claim(server, session) {
                    // The server has lost what it had not synced, and the node that would have written it again
                    // has lost the session: these are two faults.
                    self.shown[session]
                        .retain(|said| log.contains(said) || !server.was_undone(*said));
                    let missing = self.shown[session].iter().find(|said| !log.contains(said));
                    if let Some(said) = missing {
                        return Err(format!("node {at} has session {session} without {said}"));
                    }
                }
            }
            Action::Say => {
                self.said += 1;
                node.say(session, self.said, dice.once_in(3));
            }
            Action::Write => {
                node.write(server, session);
                if self.planted == Some(Planted::ShowsEarly) {
                    self.shown[session].extend(node.sent(session));
                }
            }
            Action::Commit => node.commit(server, dice.once_in(3)),
            Action::Answer => server.go_on(dice),
            Action::Beat => node.beat(server),
            Action::Wait => server.now_ms += dice.pick(&[500, 3_000, 11_000]),
            // The clock of the server; a heartbeat that was written before is of the future.
            Action::PutBack => server.now_ms -= 3_600_000,
            Action::Cut => server.cut(node.cut(), dice),
            Action::Stop => node.is_stopped = true,
            Action::GoOn => node.is_stopped = false,
            Action::Kill => self.kill(at, dice),
            Action::HandOver => node.hand_over(server, session),
            Action::Crash => self.crash(dice),
        }
        self.answers();
        self.check()
    }

    /// Nodes get the answers of the server, and show what they are about.
    fn answers(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.is_stopped) {
            for (session, said) in node.answered(&mut self.server) {
                self.shown[session].insert(said);
            }
        }
    }

    /// What only this node could write again is lost with it, as its machine's and the server's crash are two.
    fn kill(&mut self, at: usize, dice: &mut Dice) {
        let next = self.nodes.iter().map(|node| node.process).max().unwrap_or_default() + 1;
        let killed = std::mem::replace(&mut self.nodes[at], Node::new(next, self.planted));
        self.server.cut(killed.process, dice);
        self.excuse(&killed);
    }

    fn excuse(&mut self, gone: &Node) {
        for session in 0..SESSIONS {
            let log = self.server.log(session);
            let kept = gone.kept(session);
            self.shown[session].retain(|said| log.contains(said) || !kept.contains(said));
        }
    }

    fn crash(&mut self, dice: &mut Dice) {
        let before: Vec<_> = (0..SESSIONS).map(|session| self.server.log(session)).collect();
        self.server.crash(dice);
        for node in &mut self.nodes {
            node.cut();
        }
        for (session, before) in before.iter().enumerate() {
            let after = self.server.log(session);
            let undone = before.iter().filter(|said| !after.contains(said));
            for said in undone {
                // Whoever has written it has it still, unless that one was killed or has lost the session.
                let author = self.server.author(session, *said);
                let is_there = self
                    .nodes
                    .iter()
                    .any(|node| Some(node.process) == author && node.holds(session));
                if !is_there {
                    self.shown[session].remove(said);
                }
            }
        }
    }

    fn check(&mut self) -> Result<(), String> {
        for session in 0..SESSIONS {
            // A node that has learned that the session is not its own any more writes nothing of it again.
            for at in 0..NODES {
                if let Some(lost) = self.nodes[at].lost(session) {
                    let log = self.server.log(session);
                    self.shown[session].retain(|said| log.contains(said) || !lost.contains(said));
                }
            }
            self.server.check(session)?;
            let log = self.server.log(session);
            for said in self.shown[session].iter().filter(|said| !log.contains(said)) {
                if !self.nodes.iter().any(|node| node.kept(session).contains(said)) {
                    return Err(format!("{said} was shown in session {session} and is gone"));
                }
            }
        }
        Ok(())
    }

    /// Everything works again: each session is taken by somebody, with all that was shown.
    fn settle(&mut self, dice: &mut Dice) -> Result<(), String> {
        for node in &mut self.nodes {
            node.is_stopped = false;
            self.server.cut(node.cut(), dice);
        }
        for _ in 0..10 {
            self.server.go_on(dice);
            self.answers();
            self.check()?;
        }
        for session in 0..SESSIONS {
            for node in &mut self.nodes {
                node.write(&mut self.server, session);
                node.commit(&mut self.server, false);
            }
            self.server.go_on(dice);
            self.answers();
            self.check()?;
            for node in &mut self.nodes {
                node.hand_over(&mut self.server, session);
            }
        }
        // Nobody renews what nobody has handed over.
        self.server.now_ms += 60_000;
        for session in 0..SESSIONS {
            let log = self.nodes[0].claim(&mut self.server, session);
            let log = log.ok_or_else(|| format!("nobody gets session {session}"))?;
            if let Some(said) = self.shown[session].iter().find(|said| !log.contains(said)) {
                return Err(format!(
                    "{said} was shown in session {session} and is gone in the end"
                ));
            }
        }
        Ok(())
    }
}

/// Plays a world; gives how much was shown in it, or what was wrong.
fn play(plan: &Plan, planted: Option<Planted>) -> Result<usize, String> {
    let mut fleet = Fleet::new(planted);
    for step in &plan.steps {
        let mut dice = Dice::of(plan.seed, *step);
        fleet.step(&mut dice).map_err(|why| format!("{why} (in step {step})"))?;
    }
    fleet.settle(&mut Dice::of(plan.seed, u64::MAX - 1))?;
    Ok(fleet.shown.iter().map(BTreeSet::len).sum())
}

/// A world of this model has more steps than others, as they do less.
fn plan(seed: u64) -> Plan {
    Plan { seed, steps: (0..400).collect() }
}

#[test]
fn fleets_lose_nothing_and_never_write_a_session_twice() {
    let wanted = std::env::var("DUOLOGUE_WORLDS").ok().and_then(|it| it.parse().ok());
    let mut shown = 0;
    let worlds = wanted.unwrap_or(WORLDS);
    for seed in 0..worlds {
        let plan = plan(seed);
        shown += play(&plan, None).unwrap_or_else(|_| {
            let plan = plan.shrunk(|plan| play(plan, None).is_err());
            panic!("{plan}: {:?}", play(&plan, None))
        }) as u64;
    }
    assert!(shown > worlds * 5, "only {shown}");
}

#[test]
fn planted_faults_of_nodes_are_seen() {
    for fault in ALL {
        let seen = (0..PLANTED_MAX).map(plan).find(|plan| play(plan, Some(fault)).is_err());
        let seen = seen.unwrap_or_else(|| panic!("{fault:?} was not seen"));
        let shrunk = seen.shrunk(|plan| play(plan, Some(fault)).is_err());
        assert!(shrunk.steps.len() < 40, "{fault:?}: {shrunk}");
        assert!(play(&shrunk, None).is_ok(), "{fault:?}: {shrunk}");
    }
}
