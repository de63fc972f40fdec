//! Worlds are tried, and those that have failed once are tried again.

use super::planted::Planted;
use super::{Counts, play, traced};
use crate::support::world_plan::Plan;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Worlds that are tried each time. `.ci/run` goes on from there.
const WORLDS: u64 = 400;

/// Worlds in which a planted fault must be seen.
const PLANTED_MAX: u64 = 400;

/// Threads that try worlds.
const THREADS: usize = 2;

/// Worlds in which something was wrong once.
const KEPT: &[&str] = &[
    // A sign of life for an event that answers nobody.
    "150:38-41,66-68,73-73,75-75",
    "571",
    // A signal while requests wait for the store to be opened.
    "197:19-21",
    "198:8-9,13-13",
    "213:0-0,6-6,11-11",
    // A process that was killed right before a line feed.
    "3017:89-90,100-100,104-104,109-110,112-113,115-115",
    // A snapshot during a compaction that is not shown.
    "5011:1-1,3-4,25-27,37-37,72-72,75-75,77-77,80-81,83-83,86-86,89-89,92-92,95-95",
    // A snapshot during the call for a compaction between runs.
    "79168:29-29,33-34,42-43,52-52,62-62,82-82,84-84,88-89,97-98,100-100,102-104",
    // A session beside one of which nothing was shown.
    "78007:16-16,26-27,36-36,38-38,54-54,56-57,59-60,65-65",
    // A request that is not valid before one that binds the session.
    "84454:0-0,4-4",
    // A sign of life before the answer to the request for them.
    "7712:8-10,17-17,20-20,26-26,32-32,35-35",
    // ModelSwitched of a resumed session in the middle of a run.
    "16744:12-15,23-23,89-89,98-98,113-113",
    // A cancel during a compaction that is not shown, after a call that was cut off without a word.
    "596911:6-7,9-9,12-13,18-18,21-23,25-27,34-35,37-37",
    "638397:5-5,8-9,11-12,14-14,16-16,19-19,23-23,30-30,32-34,39-39,42-44",
];

/// The kind of a failure: its first words.
fn kind(why: &str) -> String {
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == ':');
    let words: Vec<_> = why.split(' ').filter(is_word).take(5).collect();
    words.join(" ")
}

/// Less of the world that fails in the same way.
fn shrunk(plan: &Plan, planted: Option<Planted>) -> Plan {
    let failure = |plan: &Plan| play(plan, planted).err().map(|why| kind(&why));
    let first = failure(plan);
    plan.clone().shrunk(|plan| failure(plan) == first)
}

/// Plays a world, and shrinks it if it fails.
fn check(plan: &Plan) -> Counts {
    match play(plan, None) {
        Ok(counts) => counts,
        Err(_) => {
            let plan = shrunk(plan, None);
            let (trace, why) = traced(&plan, None);
            let again = format!("DUOLOGUE_WORLD={plan} cargo test --lib world");
            panic!("{}\n{why}\nto play it again: {again}", trace.join("\n"))
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn worlds_hold() {
    if let Ok(plan) = std::env::var("DUOLOGUE_WORLD") {
        check(&plan.parse().expect("a plan"));
        return;
    }
    let (first, worlds) =
        (number("DUOLOGUE_WORLD_FIRST").unwrap_or(0), number("DUOLOGUE_WORLDS").unwrap_or(WORLDS));
    let next = AtomicU64::new(first);
    let try_all = || {
        let mut all = Counts::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + worlds {
                return all;
            }
            all += check(&Plan::new(seed));
        }
    };
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(try_all)).collect();
        let counts = threads.into_iter().map(|thread| match thread.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        counts.reduce(|one, other| one + other).unwrap_or_default()
    });
    // The worlds are no empty ones.
    assert!(all.requests > worlds * 5 && all.frames > worlds * 20, "{all:?}");
    assert!(all.deaths > worlds / 2 && all.processes > worlds * 2, "{all:?}");
}

#[test]
fn worlds_that_have_failed_once_hold() {
    for plan in KEPT {
        check(&plan.parse().expect("a plan"));
    }
}

#[test]
fn a_world_is_the_same_each_time() {
    for seed in 0..20 {
        let once = traced(&Plan::new(seed), None);
        assert_eq!(once, traced(&Plan::new(seed), None), "world {seed}");
    }
}

#[test]
fn planted_faults_are_seen() {
    for fault in Planted::ALL {
        let seen = (0..PLANTED_MAX).map(Plan::new).find(|plan| play(plan, Some(fault)).is_err());
        let seen = seen.unwrap_or_else(|| panic!("{fault:?} was not seen"));
        // It is the fault that was seen, and it is seen in less of the world.
        let shrunk = shrunk(&seen, Some(fault));
        assert!(shrunk.steps.len() < seen.steps.len(), "{fault:?}: {shrunk}");
        assert!(play(&shrunk, None).is_ok(), "{fault:?}: {shrunk}");
    }
}
