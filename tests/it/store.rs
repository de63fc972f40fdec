//! Conversations that are stored, and go on in another process.

use crate::client_tools::calls;
use crate::frames::{Frame, cancel, errors, patched_text, snapshot, submit};
pub(crate) use crate::log_rows::events;
use crate::log_rows::member;
use crate::oracle::Answers;
use crate::process::Process;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Launch, Server, Transcript, echo, openai};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// As a shell reports a process that was ended by SIGKILL.
const KILLED: i32 = 137;

/// `duologue rpc` with the echo engine, for the session `s` in the store `store` of `folder`.
pub(crate) fn stored(folder: &Folder, args: &[&str]) -> Launch {
    let place = folder.name("store");
    echo(&[&["--store", &place, "--session-id", "s"], args].concat())
}

/// The same, which goes on with what is stored.
pub(crate) fn resumed(folder: &Folder, args: &[&str]) -> Launch {
    stored(folder, &[&["--resume"], args].concat())
}

/// Ends the server as nothing but the system can, and gives what it had written.
#[track_caller]
pub(crate) fn kill(server: Server) -> Transcript {
    server.signal(Signal::KILL);
    server.finish_with(KILLED, Answers::Cut)
}

/// Ordinals of the events that were shown and are kept when their runs have ended: all but patches.
pub(crate) fn kept<'a>(frames: impl IntoIterator<Item = &'a Frame>) -> Vec<u64> {
    let kept = frames.into_iter().filter(|frame| !frame.is_event("ChatTextPatch"));
    kept.filter_map(Frame::ordinal).collect()
}

/// The state that a session begins with.
#[track_caller]
pub(crate) fn wait_state(server: &mut Server) -> Frame {
    let hello = server.wait_hello();
    let state = server.wait("the state", |_| true);
    assert!(state.is_snapshot() && state.id().is_empty(), "{state:?} after {hello:?}");
    state
}

fn ordinal_of(state: &Frame) -> u64 {
    state.text("/snapshot/snapshotOrdinal").parse().expect("a number")
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let folder = Folder::new();
    let mut first = stored(&folder, &[]).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    first.send(snapshot("now"));
    let before = first.wait("the state", Frame::is_snapshot);
    let first = first.finish().frames;
    let last = first.iter().filter_map(Frame::ordinal).max().expect("events");

    let mut second = resumed(&folder, &[]).start();
    let state = wait_state(&mut second);
    assert_eq!(state.0["snapshot"], before.0["snapshot"], "the conversation as it was");
    assert_eq!(ordinal_of(&state), last);
    assert_eq!(second.turn("r1", "two"), "ok");
    let second = second.finish().frames;
    let new: Vec<u64> = second.iter().filter_map(Frame::ordinal).collect();
    assert_eq!(new[0], last + 1, "ordinals go on");
    // The engine repeats what the model was sent.
    let answer = patched_text(&second, "r1");
    assert!(answer.contains("Turn 2") && answer.contains("one"), "{answer}");
    let shown = kept(first.iter().chain(&second));
    let numbers: Vec<u64> = events(&folder.path("store")).iter().map(|event| event.0).collect();
    assert_eq!(numbers, shown, "all but the patches of runs that have ended");
}

#[test]
fn token_counts_go_on_where_they_ended() {
    let folder = Folder::new();
    let counts = |frames: &[Frame]| -> Vec<Value> {
        let totals = frames.iter().filter(|frame| frame.is_event("UsageTotals"));
        totals
            .map(|frame| frame.0["uiEvent"]["payload"]["session"]["uncountedCalls"].clone())
            .collect()
    };
    let usage = ["--extensions", "usage", "--final-snapshot", "none"];
    let mut first = stored(&folder, &usage).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    assert_eq!(first.turn("r2", "two"), "ok");
    assert_eq!(counts(&first.finish().frames), [1, 2]);
    // A call that was cut off counts too.
    let mut second = resumed(&folder, &["--echo-delay-ms", "60000"]).start();
    wait_state(&mut second);
    second.send(submit("r3", "three"));
    second.wait_event("ChatProviderCallStarted");
    kill(second);
    let mut third = resumed(&folder, &usage).start();
    wait_state(&mut third);
    third.send(json!({ "requestId": "e", "edit": { "dropLastTurn": {} } }).to_string());
    assert_eq!(third.wait_done("e"), "ok");
    assert_eq!(third.turn("r4", "four"), "ok");
    assert_eq!(counts(&third.finish().frames), [4], "what was dropped was paid for");
}

#[test]
fn files_can_only_be_read_by_their_owner() {
    let folder = Folder::new();
    let place = folder.name("new/store");
    let mut server = echo(&["--store", &place]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    let mode = |name: &str| {
        let about = fs::metadata(folder.path(name)).expect(name);
        about.permissions().mode() & 0o777
    };
    for (name, expected) in [
        ("new", 0o700),
        ("new/store", 0o600),
        ("new/store-wal", 0o600),
        ("new/store-shm", 0o600),
        ("new/store.locks", 0o700),
    ] {
        assert_eq!(mode(name), expected, "{name}");
    }
    server.finish();
    // What is closed is one file.
    assert!(!folder.path("new/store-wal").exists());
}

#[test]
fn turns_and_timeline_may_be_in_files_of_their_own() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    let both = ["--turns-db", &turns, "--timeline-db", &timeline, "--session-id", "s"];
    let mut first = echo(&both).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    first.finish();
    let mut second = echo(&[&both[..], &["--resume"]].concat()).start();
    let state = wait_state(&mut second);
    assert_eq!(state.messages().len(), 2);
    assert_eq!(second.turn("r1", "two"), "ok");
    let second = second.finish().frames;
    assert!(patched_text(&second, "r1").contains("one"));
    let logs = ["turns", "timeline"].map(|name| events(&folder.path(name)));
    assert_eq!(logs[0], logs[1], "both hold the log");
    // Each of them is enough, and no ordinal is used again.
    let last = second.iter().filter_map(Frame::ordinal).max().expect("events");
    let turns_only = ["--turns-db", &turns, "--session-id", "s", "--resume"];
    let mut third = echo(&turns_only).start();
    let state = wait_state(&mut third);
    assert_eq!((ordinal_of(&state), state.messages().len()), (last, 4));
    assert_eq!(third.turn("r1", "three"), "ok");
    let third = third.finish().frames;
    assert!(patched_text(&third, "r1").contains("two"));
    assert_eq!(third.iter().find_map(Frame::ordinal), Some(last + 1));
}

#[test]
fn a_session_that_its_first_request_names_is_stored_under_that_name() {
    let folder = Folder::new();
    let place = folder.name("store");
    let mut first = echo(&["--store", &place]).start();
    first.send(json!({"requestId":"r1","sessionId":"s","submit":{"prompt":"one"}}).to_string());
    assert_eq!(first.wait_done("r1"), "ok");
    first.finish();
    let mut again = echo(&["--store", &place, "--extensions", "store"]).start();
    again.send(json!({"requestId":"r1","sessionId":"s","submit":{"prompt":"two"}}).to_string());
    assert_eq!(again.wait_done("r1"), "ok", "the conversation itself goes on");
    let again = again.finish();
    assert_eq!(errors(&again.frames, ""), ["store_failed"]);
    assert!(again.stderr.contains("name it with --session"), "{}", again.stderr);
    assert!(again.frames.iter().any(|frame| frame.is_event("StoreDegraded")));
    let mut second = resumed(&folder, &[]).start();
    assert_eq!(wait_state(&mut second).messages()[0], ("user", "one"));
    second.finish();
}

#[test]
fn what_can_not_be_resumed_is_an_error_that_says_why() {
    let folder = Folder::new();
    let place = folder.name("store");
    stored(&folder, &[]).start().finish();
    fs::write(folder.path("empty"), "").expect("a file");
    let empty = folder.name("empty");
    Connection::open(folder.path("foreign"))
        .and_then(|it| it.execute_batch("CREATE TABLE notes(text)"))
        .expect("a database");
    let foreign = folder.name("foreign");
    fs::copy(folder.path("store"), folder.path("newer")).expect("a copy");
    Connection::open(folder.path("newer"))
        .and_then(|it| it.pragma_update(None, "user_version", 99))
        .expect("a database");
    let newer = folder.name("newer");
    let other = ["--session-id", "other", "--resume"];
    for (args, why) in [
        (["--resume", "--store", &place].to_vec(), "--session-id"),
        (["--resume", "--session-id", "s"].to_vec(), "needs the store"),
        ([&["--store", &place], &other[..]].concat(), "nothing to resume"),
        ([&["--store", &empty], &other[..]].concat(), "nothing to resume"),
        (["--store", &foreign, "--session-id", "s"].to_vec(), "another program"),
        (["--store", &newer, "--session-id", "s"].to_vec(), "newer version"),
        (["--continue", "--store", &empty].to_vec(), "no session of this folder"),
        (["-c", "--session-id", "s", "--store", &place].to_vec(), "--session-id"),
        (["--store", "postgres://u@localhost:x/y"].to_vec(), "PostgreSQL"),
    ] {
        let ended = echo(&args).start().finish_with(2, Answers::AllAndFarewell);
        let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert!(error.text("/error/message").contains(why), "{args:?}: {error:?}");
    }
    assert_eq!(fs::metadata(folder.path("empty")).expect("a file").len(), 0);
}

#[test]
fn one_process_holds_a_session_until_it_ends() {
    let folder = Folder::new();
    let mut holder = stored(&folder, &[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    let ended = resumed(&folder, &[]).start().finish_with(75, Answers::AllAndFarewell);
    let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert_eq!(error.error(), Some("session_locked"));
    let Process(id) = holder.process();
    assert!(error.text("/error/message").contains(&format!("process {id} on ")), "{error:?}");
    // Another session of the same store is free.
    let place = folder.name("store");
    let mut other = echo(&["--store", &place, "--session-id", "t"]).start();
    assert_eq!(other.turn("r1", "one"), "ok");
    other.finish();
    kill(holder);
    let mut next = resumed(&folder, &[]).start();
    assert_eq!(wait_state(&mut next).messages().len(), 2);
    next.finish();
}

#[test]
fn the_last_session_of_a_folder_is_continued() {
    let folder = Folder::new();
    let place = folder.name("store");
    let run = |prompt: &str, more: &[&str]| {
        let words = [&["exec", "--engine", "echo", "--store", &place, prompt], more].concat();
        let ended = crate::once::run(&folder, &words);
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        ended.stdout
    };
    run("one", &[]);
    run("two", &[]);
    let answer = run("three", &["-c"]);
    assert!(answer.contains("two") && !answer.contains("one"), "{answer}");
    let answer = run("four", &["--continue"]);
    assert!(answer.contains("Turn 3") && answer.contains("three"), "{answer}");
}

#[test]
fn a_cancel_acts_at_once_and_the_partial_answer_is_stored() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--echo-delay-ms", "20"]).start();
    server.send(submit("r1", &"word ".repeat(10_000)));
    server.wait_event("ChatTextPatch");
    server.send(cancel("c"));
    assert_eq!(server.wait_done("c"), "ok");
    assert_eq!(server.wait_done("r1"), "stopped");
    let text = patched_text(&server.finish().frames, "r1");
    let mut next = resumed(&folder, &[]).start();
    let state = wait_state(&mut next);
    assert_eq!(state.messages()[1], ("assistant", &*text));
    next.finish();
}

#[test]
fn each_stored_event_can_be_shown_before_what_is_made_of_it() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--backend-events", "--patch-mode", "snapshot"]).start();
    assert_eq!(server.turn("r1", "two words"), "ok");
    let frames = server.finish().frames;
    let numbered = |pointer: &str| -> Vec<(u64, String)> {
        let events = frames.iter().filter_map(|frame| frame.0.get(pointer));
        let number = |event: &Value| event["ordinal"].as_str().expect("a text").parse();
        let name = |event: &Value| event["name"].as_str().expect("a text").to_owned();
        events.map(|event| (number(event).expect("a number"), name(event))).collect()
    };
    let (backend, shown) = (numbered("backendEvent"), numbered("uiEvent"));
    assert_eq!(backend, shown);
    let stored = events(&folder.path("store"));
    let stored: Vec<_> = stored.iter().map(|(ordinal, name, _)| (*ordinal, &**name)).collect();
    let kept = backend.iter().filter(|(_, name)| !name.ends_with("Patch"));
    assert_eq!(kept.map(|(ordinal, name)| (*ordinal, member(name))).collect::<Vec<_>>(), stored);
    let mut before = None;
    for frame in &frames {
        if frame.event().is_some() {
            assert_eq!(before, frame.ordinal(), "its backend event comes first");
        }
        before = frame
            .0
            .pointer("/backendEvent/ordinal")
            .map(|it| it.as_str().expect("a text").parse().expect("a number"));
    }
}

/// SIGKILL between a tool call and its result, then a resume.
#[test]
fn a_call_without_a_result_is_reported_to_the_model_as_interrupted() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session-id", "s"];
    let provider = Provider::start(vec![
        calls(&[("call_1", "get_time", r#"{"city":"Lima"}"#)]),
        says("I could not look."),
    ]);
    let mut first = openai(&provider, &store).start();
    let tool = json!({ "name": "get_time", "inputSchema": { "type": "object" } });
    let tools = json!({ "tools": [tool], "revision": 1 });
    first.send(json!({ "requestId": "tools", "declareTools": tools }).to_string());
    assert_eq!(first.wait_done("tools"), "ok");
    first.send(submit("r1", "what time is it?"));
    first.wait_event("FrontendToolCallRequested");
    kill(first);

    let mut second = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
    let state = wait_state(&mut second);
    let entities = state.0["snapshot"]["entities"].as_array().expect("entities");
    let result = entities.iter().find(|it| it["kind"] == "ChatToolResult").expect("a result");
    assert_eq!(result["payload"]["status"], "error");
    let call = entities.iter().find(|it| it["kind"] == "ChatToolCall").expect("a call");
    assert_eq!(call["payload"]["status"], "completed");
    assert_eq!(second.turn("r2", "and now?"), "ok");
    second.finish();
    let request = provider.wait_request(2).body;
    let messages = request["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|it| it["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(messages[1]["tool_calls"][0]["id"], "call_1");
    assert!(messages[2]["content"].as_str().is_some_and(|text| text.contains("interrupted")));
    let names: Vec<_> = events(&folder.path("store")).into_iter().map(|event| event.1).collect();
    assert!(names.iter().any(|name| name == "run_stopped"), "{names:?}");
}

/// After a kill the model knows the partial answer and that it was cut off.
#[test]
fn a_run_that_was_cut_off_is_stopped_once() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session-id", "s"];
    let half =
        vec![Step::Text("Half an ".to_owned()), Step::Text("answer".to_owned()), Step::Stall];
    let provider = Provider::start(vec![half, says("Whole.")]);
    let mut first = openai(&provider, &store).start();
    first.send(submit("r1", "tell me"));
    first.wait("the second piece", |frame| frame.payload("text") == "answer");
    let seen = kill(first).frames.iter().filter_map(Frame::ordinal).max().expect("events");
    for _ in 0..3 {
        let mut again = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
        let state = wait_state(&mut again);
        assert_eq!(state.messages(), [("user", "tell me"), ("assistant", "Half an answer")]);
        let frames = again.finish().frames;
        assert!(frames.iter().all(|frame| frame.event().is_none()), "old events are not shown");
    }
    let stops = events(&folder.path("store"));
    let stops = stops.iter().filter(|event| event.1 == "run_stopped");
    let stops: Vec<_> = stops.map(|event| event.0).collect();
    assert_eq!(stops.len(), 1);
    assert!(stops[0] > seen);
    let mut last = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
    assert_eq!(last.turn("r2", "go on"), "ok");
    let frames = last.finish().frames;
    assert_eq!(frames.iter().find_map(Frame::ordinal), Some(stops[0] + 1));
    let body = provider.wait_request(2).body;
    let partial = body["messages"][1]["content"].as_str().expect("a text");
    assert!(partial.starts_with("Half an answer\n\n[This answer was interrupted"), "{partial}");
}

/// No version with a store was released before this format: such a store is named and left alone.
#[test]
fn a_store_of_an_early_version_is_an_error_that_says_so() {
    for format in [1, 2] {
        let folder = Folder::new();
        let data = format!("{}/tests/data/store_format_{format}.db", env!("CARGO_MANIFEST_DIR"));
        fs::copy(&data, folder.path("store")).expect("a copy");
        for launch in [resumed(&folder, &[]), stored(&folder, &[])] {
            let ended = launch.start().finish_with(2, Answers::AllAndFarewell);
            let error = ended.frames.iter().find(|frame| frame.error().is_some());
            let why = error.expect("an error").text("/error/message").to_owned();
            assert!(why.contains(&format!("has format {format}, of an early version")), "{why}");
        }
        let after = fs::read(folder.path("store")).expect("a file");
        assert_eq!(after, fs::read(&data).expect("a file"));
    }
}
