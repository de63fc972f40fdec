//! The calls to the system under SQLite fail, one after the other, and the power at each of them (fault 25).
//! `io_faults/faults.c` stands between the program and the C library; the program knows nothing of it.

use crate::frames::{Frame, errors, submit};
use crate::oracle::Answers;
use crate::server::{Folder, Launch, Transcript};
use crate::store::{events, kept, wait_state};
use crate::store_kills::{check_events, check_state};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// As a shell reports a process that was ended by SIGKILL.
const KILLED: i32 = 137;

/// One of so many calls fails in the tests that are always run, and the others in the one that takes minutes. The
/// number of calls of a batch is no multiple of it, so each kind of call has its turn.
const STEP: usize = 7;

/// A conversation makes fewer calls than this, or the test doesn't see its end.
const CALLS_MAX: usize = 2_000;

/// A conversation makes more calls than this, or the faults are not under it.
const CALLS_MIN: usize = 60;

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It fails with an error.
    Error,
    /// The disk is full from there on.
    Full,
    /// Half of a write is made, and then the disk is full.
    Short,
    /// Half of a write is made, and the process is killed.
    Torn,
    /// The process is killed, and what was not synced is undone.
    Power,
}

impl How {
    const ALL: [Self; 5] = [Self::Error, Self::Full, Self::Short, Self::Torn, Self::Power];

    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Full => "full",
            Self::Short => "short",
            Self::Torn => "torn",
            Self::Power => "power",
        }
    }

    /// Whether the call `at` fails in the tests that are always run. Each way has other calls.
    const fn is_sampled(self, at: usize) -> bool {
        at % STEP == self as usize + 1
    }

    fn check(self, failed: Failed) {
        match self {
            Self::Error | Self::Full | Self::Short => goes_on(failed),
            Self::Torn => is_whole(failed),
            Self::Power => has_turns(failed),
        }
    }
}

/// The library that makes calls fail, compiled once.
static FAULTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/io_faults/faults.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("io_faults.so");
    let new = folder.join(format!("io_faults.so.{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", "-o"]);
    let status = compiler.arg(&new).arg(&source).status().expect("a C compiler");
    assert!(status.success(), "{} can't be compiled", source.display());
    // Under its name at once: another test process may be using it.
    fs::rename(&new, &library).expect("a folder that can be written");
    library
});

/// A conversation of two turns in which one call fails; nothing if it makes fewer calls.
struct Failed {
    folder: Folder,
    what: String,
    status: i32,
    ended: Transcript,
}

fn failed(how: How, at: usize) -> Option<Failed> {
    let folder = Folder::new();
    let what = format!("{how:?} at call {at}");
    fs::create_dir(folder.path("kept")).expect("a folder");
    let launch = faulty(&folder, how, at);
    let mut server = launch.start();
    server.send_together(&[submit("r1", "two words"), submit("r2", "again")]);
    server.close_stdin();
    let status = server.exit_status().code().unwrap_or(KILLED);
    let answers = match status {
        0 => Answers::All,
        KILLED => Answers::Cut,
        _ => Answers::Some,
    };
    let ended = server.finish_with(status, answers);
    folder.path("mark").exists().then_some(Failed { folder, what, status, ended })
}

fn faulty(folder: &Folder, how: How, at: usize) -> Launch {
    let queue = ["--on-busy", "queue", "--extensions", "store", "--final-snapshot", "none"];
    stored_in(folder, &queue)
        .env("LD_PRELOAD", &*FAULTS)
        .env("IO_FAULTS_UNDER", folder.path("kept"))
        .env("IO_FAULTS_AT", at.to_string())
        .env("IO_FAULTS_HOW", how.word())
        .env("IO_FAULTS_MARK", folder.path("mark"))
}

/// Each of the calls that are sampled in turn, or each of the others, until there are no more.
fn each(how: How, sampled: bool) {
    let mut calls = (1..CALLS_MAX).filter(|at| how.is_sampled(*at) == sampled);
    let end = calls.find(|at| failed(how, *at).map(|failed| how.check(failed)).is_none());
    let end = end.expect("the calls have an end");
    assert!(end > CALLS_MIN, "only {end} calls");
}

/// The conversation goes on without its store, or it is refused before it begins; in either case what was shown
/// as stored is stored.
fn goes_on(failed: Failed) {
    let Failed { folder, what, status, ended } = failed;
    let shown = kept(&ended.frames);
    let stored = numbers(&folder);
    let of_process = errors(&ended.frames, "");
    let missing = match (status, &*of_process) {
        // Not begun. A disk that can't be written is no damaged store.
        (2, ["store_failed"]) => {
            assert_eq!(shown, [0; 0], "{what}");
            let error = ended.frames.iter().find(|frame| frame.error().is_some());
            let message = error.map_or("", |frame| frame.text("/error/message"));
            assert!(
                message.contains("can't be") && !message.contains("damaged"),
                "{what}: {message}"
            );
            None
        }
        // After the end of the conversation, or in what only informs: all is stored.
        (0, []) => {
            assert_eq!(stored, shown, "{what}");
            None
        }
        (0, ["store_failed"]) => Some(check_missing(&ended.frames, &stored, &what)),
        (status, errors) => panic!("{what}: status {status}, {errors:?}"),
    };
    check_next(&folder, &seen(&ended.frames), missing, &what);
}

/// What was shown before the error is stored, and nothing that the event names as missing; gives the first of that.
#[track_caller]
fn check_missing(frames: &[Frame], stored: &[u64], what: &str) -> u64 {
    let error = frames.iter().position(|frame| frame.error().is_some()).expect("an error");
    assert_ne!(frames[error].0["error"]["terminal"], true, "{what}");
    let before = kept(&frames[..error]);
    assert!(before.iter().all(|ordinal| stored.contains(ordinal)), "{what}: {before:?} {stored:?}");
    let last = stored.last().copied().unwrap_or(0);
    // An event has no place after the end of the conversation.
    let event = frames.iter().find(|frame| frame.is_event("StoreDegraded"));
    let named = event.map(|frame| frame.payload("firstMissingOrdinal").parse().expect("a number"));
    assert!(named.is_none_or(|named: u64| last < named), "{what}: {last}, {named:?}");
    last + 1
}

/// A killed process has stored all that it had shown.
fn is_whole(failed: Failed) {
    let Failed { folder, what, status, ended } = failed;
    assert_eq!(status, KILLED, "{what}");
    let seen = seen(&ended.frames);
    if !seen.is_empty() {
        check_events(&events(&folder.path("kept/store")), &seen);
    }
    check_next(&folder, &seen, None, &what);
}

/// After a loss of power each turn whose `done` was shown is stored.
fn has_turns(failed: Failed) {
    let Failed { folder, what, status, ended } = failed;
    assert_eq!(status, KILLED, "{what}");
    let is_done = |id: &str| ended.frames.iter().any(|it| it.id() == id && it.done().is_some());
    let of_turns = ended.frames.iter().filter(|frame| is_done(frame.id())).cloned();
    let seen = seen(&of_turns.collect::<Vec<_>>());
    if !seen.is_empty() {
        check_events(&events(&folder.path("kept/store")), &seen);
    }
    check_next(&folder, &seen, None, &what);
}

/// Another process goes on with the store.
#[track_caller]
fn check_next(folder: &Folder, seen: &BTreeMap<u64, Frame>, missing: Option<u64>, what: &str) {
    let numbers = numbers(folder);
    let mut next = if numbers.is_empty() {
        stored_in(folder, &[]).start()
    } else {
        let mut next = stored_in(folder, &["--resume"]).start();
        let state = wait_state(&mut next);
        let is_stored = |ordinal: u64| missing.is_none_or(|missing| ordinal < missing);
        let seen = seen.iter().filter(|(ordinal, _)| is_stored(**ordinal));
        check_state(&state, &seen.map(|(ordinal, frame)| (*ordinal, frame.clone())).collect());
        next
    };
    assert_eq!(next.turn("r9", "go on"), "ok", "{what}");
    let frames = next.finish().frames;
    assert_eq!(errors(&frames, ""), [""; 0], "{what}");
    let first = frames.iter().find_map(Frame::ordinal).expect("events");
    assert!(numbers.iter().all(|stored| *stored < first), "{what}: {first} is used again");
}

fn stored_in(folder: &Folder, args: &[&str]) -> Launch {
    let place = folder.name("kept/store");
    crate::server::echo(&[&["--store", &place, "--session-id", "s"], args].concat())
}

/// The events that were shown.
fn seen(frames: &[Frame]) -> BTreeMap<u64, Frame> {
    let events = frames.iter().filter(|it| it.event().is_some() && !it.is_event("StoreDegraded"));
    events.filter_map(|frame| Some((frame.ordinal()?, frame.clone()))).collect()
}

/// Ordinals of the events in the store, if it has come to be one.
fn numbers(folder: &Folder) -> Vec<u64> {
    let place = folder.path("kept/store");
    let has_tables = rusqlite::Connection::open(&place)
        .is_ok_and(|store| store.prepare("SELECT 1 FROM log").is_ok());
    if !has_tables {
        return Vec::new();
    }
    events(&place).iter().map(|event| event.0).collect()
}

#[test]
fn a_call_that_fails_ends_only_the_storing() {
    each(How::Error, true);
}

#[test]
fn a_disk_that_is_full_from_a_call_on_ends_only_the_storing() {
    each(How::Full, true);
}

#[test]
fn half_a_write_on_a_full_disk_ends_only_the_storing() {
    each(How::Short, true);
}

#[test]
fn half_a_write_before_a_kill_loses_nothing_that_was_shown() {
    each(How::Torn, true);
}

#[test]
fn a_loss_of_power_at_any_call_keeps_every_turn_that_was_done() {
    each(How::Power, true);
}

#[test]
#[ignore = "takes minutes"]
fn each_other_call_fails_in_each_way() {
    How::ALL.into_iter().for_each(|how| each(how, false));
}
