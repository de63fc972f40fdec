//! A store that fails: the conversation goes on, and says what is not stored (fault 25).

use crate::chat::{Person, chat};
use crate::frames::{Frame, errors, finished_text, snapshot, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::process::eventually;
use crate::provider::{Provider, Step};
use crate::server::{Folder, KEY, Launch, Server, Transcript};
use crate::store::{events, resumed, stored, wait_state};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

/// Statements that write in one short turn, and some more.
#[cfg(debug_assertions)]
const STATEMENTS: u32 = 40;

/// The parts of a failure that hold wherever it happens; gives the first event that is not stored.
#[track_caller]
fn check(ended: &Transcript, what: &str) -> u64 {
    assert_eq!(errors(&ended.frames, ""), ["store_failed"], "{what}");
    let error = ended.frames.iter().find(|it| it.error().is_some()).expect("an error");
    assert_ne!(error.0["error"]["terminal"], true, "{what}");
    assert!(ended.stderr.contains("not stored any more"), "{what}: {}", ended.stderr);
    let degraded = ended.frames.iter().find(|it| it.is_event("StoreDegraded")).expect("an event");
    degraded.payload("firstMissingOrdinal").parse().expect("a number")
}

/// What was stored goes on in another process.
#[track_caller]
fn check_rest(folder: &Folder, missing: u64, what: &str) {
    let stored = events(&folder.path("store"));
    assert!(stored.iter().all(|event| event.0 < missing), "{what}: {missing} is missing");
    if stored.is_empty() {
        return;
    }
    let mut next = resumed(folder, &[]).start();
    wait_state(&mut next);
    assert_eq!(next.turn("r9", "go on"), "ok", "{what}");
    assert_eq!(errors(&next.finish().frames, ""), [""; 0], "{what}");
}

#[cfg(debug_assertions)]
#[test]
fn the_nth_write_fails_for_every_n() {
    let mut hits = 0;
    for nth in 1..=STATEMENTS {
        let folder = Folder::new();
        let launch = stored(&folder, &["--extensions", "store", "--echo-delay-ms", "5"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("store:{nth}")).start();
        assert_eq!(server.turn("r1", "two words"), "ok", "at write {nth}");
        assert_eq!(server.turn("r2", "again"), "ok", "at write {nth}");
        server.send(snapshot("s"));
        let state = server.wait("the state", Frame::is_snapshot);
        assert_eq!(state.messages().len(), 4, "at write {nth}");
        let ended = server.finish();
        if errors(&ended.frames, "").is_empty() {
            continue;
        }
        hits += 1;
        let what = format!("at write {nth}");
        check_rest(&folder, check(&ended, &what), &what);
    }
    assert!(hits > 12, "{hits} of the writes failed");
}

#[cfg(debug_assertions)]
#[test]
fn a_defect_while_an_event_is_stored_ends_only_the_storing() {
    for nth in 1..=3 {
        let folder = Folder::new();
        let launch = stored(&folder, &["--extensions", "store"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("persist:{nth}")).start();
        for turn in 1..=3 {
            assert_eq!(server.turn(&format!("r{turn}"), "two words"), "ok", "at batch {nth}");
        }
        let ended = server.finish();
        let what = format!("at batch {nth}");
        check_rest(&folder, check(&ended, &what), &what);
    }
}

/// The system refuses to let the files grow, wherever the store is at that moment.
#[test]
fn a_disk_that_is_full_ends_only_the_storing() {
    for blocks in [150, 200, 300, 500] {
        let folder = Folder::new();
        let place = folder.name("store");
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let args = ["rpc", "--engine", "echo", "--store", &place, "--session-id", "s"];
        let more = ["--extensions", "store", "--final-snapshot", "none"];
        let mut server = Launch::shell(&script, &[&args[..], &more[..]].concat()).start();
        for turn in 1..=3 {
            let prompt = format!("{} ", "word".repeat(25)).repeat(1_000);
            assert_eq!(server.turn(&format!("r{turn}"), &prompt), "ok", "{blocks} blocks");
        }
        let ended = server.finish();
        let what = format!("{blocks} blocks");
        check_rest(&folder, check(&ended, &what), &what);
        let cause = "a limit on the size of files too low";
        assert!(ended.stderr.contains(cause), "{what}: {}", ended.stderr);
    }
}

/// A store that another program keeps locked.
fn locked(folder: &Folder) -> Connection {
    let other = Connection::open(folder.path("store")).expect("a store");
    other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    other
}

/// A server that was sent a signal after its last run, whose frames wait for a store that is locked.
fn signaled_over(folder: &Folder, signal: Signal) -> (Server, Connection) {
    let mut server = stored(folder, &["--log-level", "info"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    let other = locked(folder);
    server.send(submit("r2", "two"));
    server.close_stdin();
    server.wait_log("the engine has answered task=task-2");
    server.wait_log("end of input");
    server.signal(signal);
    server.wait_log("received a signal");
    (server, other)
}

#[test]
fn a_signal_after_the_last_run_leaves_a_store_that_hangs_its_time() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let folder = Folder::new();
        let (server, other) = signaled_over(&folder, signal);
        let ended = server.finish_with(status, Answers::All);
        assert!(finished_text(&ended.frames, "r2").contains("You said: two"));
        assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
        assert!(ended.stderr.contains("4 s after the signal"), "{}", ended.stderr);
        drop(other);
    }
}

#[test]
fn a_store_that_answers_after_a_signal_loses_nothing() {
    let folder = Folder::new();
    let (server, other) = signaled_over(&folder, Signal::TERM);
    other.execute_batch("ROLLBACK").expect("it was locked");
    let ended = server.finish_with(143, Answers::All);
    assert!(finished_text(&ended.frames, "r2").contains("You said: two"));
    assert_eq!(errors(&ended.frames, ""), [""; 0]);
    let last = ended.frames.iter().filter_map(Frame::ordinal).max();
    assert_eq!(events(&folder.path("store")).last().map(|event| event.0), last);
}

#[test]
fn a_second_signal_does_not_wait_for_a_store_that_hangs() {
    let folder = Folder::new();
    let (server, _other) = signaled_over(&folder, Signal::TERM);
    server.signal(Signal::TERM);
    let ended = server.finish_with(143, Answers::Cut);
    assert!(!ended.stderr.contains("after the signal"), "{}", ended.stderr);
    assert!(!ended.frames.iter().any(|frame| frame.ends("r2")));
}

/// A document says how the process ends, and the answer was whole before the signal.
#[test]
fn a_document_that_waits_for_a_store_comes_after_a_signal() {
    for (output, status) in [("text", 143), ("json", 0)] {
        let folder = Folder::new();
        let answer = vec![Step::Text("Four.".to_owned()), Step::Gate, Step::Done];
        let provider = Provider::start(vec![answer]);
        let words = ["exec", "ask", "--engine", "openai", "--model", "m", "--output", output];
        let log = ["--store", "store", "--log-level", "info", "--log-file", "log"];
        let mut command = duologue(&folder, &[&words[..], &log].concat());
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", provider.base_url());
        let mut once = Once::start(command);
        once.close_stdin();
        provider.wait_request(1);
        let _other = locked(&folder);
        provider.open_gate();
        let has_logged = |text: &str| {
            let log = || std::fs::read_to_string(folder.path("log")).unwrap_or_default();
            eventually(text, || log().contains(text).then_some(()));
        };
        has_logged("the engine has answered");
        once.signal(Signal::TERM);
        let ended = once.finish();
        assert_eq!(ended.status, status, "{ended:?}");
        if output == "text" {
            assert_eq!(ended.stdout, "Four.\n");
            continue;
        }
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        assert_eq!((&document["ok"], &document["data"]), (&true.into(), &"Four.".into()));
        assert_eq!(document["meta"]["exit_code"], 0);
        assert_eq!(document["warnings"][0]["code"], "store_failed", "{document}");
    }
}

/// The last prompt of a chat was answered, and the command that leaves has been given.
#[test]
fn a_signal_leaves_the_last_answer_of_a_chat_its_time() {
    let folder = Folder::new();
    let store = folder.name("store");
    let mut person = Person::start(chat(&folder, &["--store", &store]));
    person.sees("/help");
    person.types("one\r");
    person.answered("You said: one");
    let _other = locked(&folder);
    person.types("two\r/quit\r");
    // Both lines are taken at once.
    person.sees("Esc stops");
    person.process().send(Signal::TERM);
    let (status, screen) = person.ends();
    assert_eq!(status, 143);
    assert!(screen.text().contains("You said: two"), "{}", screen.text());
}
