//! Long conversations in a store: its files stay in proportion to what was said, and it loads as a whole.

use crate::frames::Frame;
use crate::process::eventually;
use crate::server::{Folder, Server};
use crate::store::{events, kill, resumed, stored, wait_state};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

/// Turns of a long conversation.
const TURNS: usize = 300;

/// Bytes that the log of a store may have while it is written: as many pages as SQLite collects before it
/// copies them, and a batch.
const LOG_BYTES_MAX: u64 = 6 * 1024 * 1024;

#[track_caller]
fn talk(server: &mut Server, turns: std::ops::Range<usize>) {
    for turn in turns {
        assert_eq!(server.turn(&format!("r{turn}"), &format!("prompt {turn}")), "ok");
    }
}

fn snapshot(server: &mut Server) -> Value {
    server.send(crate::frames::snapshot("all"));
    let state = server.wait("the state", Frame::is_snapshot);
    state.0["snapshot"]["entities"].clone()
}

#[test]
fn a_long_conversation_is_loaded_as_it_was() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--final-snapshot", "none"]).start();
    talk(&mut server, 0..TURNS);
    let before = snapshot(&mut server);
    let log = || fs::metadata(folder.path("store-wal")).map_or(0, |about| about.len());
    assert!(log() < LOG_BYTES_MAX, "{} bytes of log", log());
    // With nothing to do, the store gives its log back.
    eventually("the log is empty", || (log() == 0).then_some(()));
    talk(&mut server, TURNS..TURNS + 1);
    kill(server);
    let mut next = resumed(&folder, &[]).start();
    let state = wait_state(&mut next).0["snapshot"]["entities"].clone();
    let (state, before) = (state.as_array().expect("a list"), before.as_array().expect("a list"));
    assert_eq!(state.len(), 2 * (TURNS + 1));
    assert_eq!(state[..before.len()], before[..]);
    assert_eq!(next.turn("last", "and then?"), "ok");
    next.finish();
    let connection = Connection::open(folder.path("store")).expect("a store");
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let rows = i64::try_from(TURNS + 2).expect("a number");
    assert_eq!(count("SELECT count(*) FROM log").expect("a number"), rows, "a row for each turn");
    let sizes =
        "SELECT (SELECT sum(length(events)) FROM log) + length(start) - bytes FROM sessions";
    let difference = connection.query_row(sizes, [], |row| row.get::<_, i64>(0));
    assert_eq!(difference.expect("a number"), 0, "the size in the row of the session");
}

/// An answer of many small pieces takes no more room in the end than its text and a few events.
#[test]
fn pieces_of_an_answer_are_not_kept_once_its_whole_text_is() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--final-snapshot", "none"]).start();
    let prompt = "word ".repeat(5_000);
    assert_eq!(server.turn("r1", &prompt), "ok");
    server.finish();
    let stored = events(&folder.path("store"));
    assert!(stored.iter().all(|event| !event.1.ends_with("patched")), "{} events", stored.len());
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "SELECT sum(length(events)) FROM log";
    let bytes = store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a size");
    let bytes = usize::try_from(bytes).expect("a size");
    // The prompt once, and the answer that repeats it.
    assert!(bytes < 3 * prompt.len(), "{bytes} bytes for a prompt of {}", prompt.len());
}

/// The entities of a turn.
fn said(turn: usize) -> [Value; 2] {
    let uuid = format!("{turn:08x}-0000-4000-8000-000000000000");
    let (root, run) = (format!("chat-msg-{uuid}"), format!("run-{uuid}"));
    let entity = |id: String, (created, changed): (usize, usize), payload: Value| {
        let (created, changed) = (turn * 10 + created, turn * 10 + changed);
        json!({ "kind": "ChatMessage", "id": id, "createdOrdinal": created.to_string(),
                "lastEventOrdinal": changed.to_string(), "payload": payload })
    };
    let url = "type.googleapis.com/pinocchio.chatapp.v1.ChatMessageEntity";
    let turn_id = format!("turn-{turn}");
    let (question, answer) = (format!("{root}-user"), format!("{root}:text:segment-1"));
    let user = json!({ "@type": url, "messageId": question, "role": "user", "prompt": "t", "text": "t",
        "content": "t", "status": "accepted", "final": true,
        "correlation": { "sessionId": "s", "runId": run, "turnId": turn_id } });
    let model = json!({ "@type": url, "messageId": answer, "role": "assistant", "prompt": "t", "text": "t",
        "content": "t", "status": "finished", "final": true, "parentMessageId": root, "segment": 1,
        "segmentType": "text", "correlation": { "sessionId": "s", "runId": run, "turnId": turn_id,
        "providerCallId": format!("{run}:call-1"), "segmentId": "segment-1" } });
    [entity(question, (0, 0), user), entity(answer, (3, 5), model)]
}

/// A snapshot of everything after each run of a long session is only written for who asks for it.
#[test]
fn a_long_session_ends_its_runs_with_a_snapshot_of_the_turn() {
    let folder = Folder::new();
    // A session over the limit, made of lines.
    let turns = (1..=1_002).flat_map(said).collect::<Vec<_>>();
    let snapshot = json!({ "snapshotOrdinal": "10022", "entities": turns });
    let lines = json!({ "version": 1, "sessionId": "s", "snapshot": snapshot }).to_string() + "\n";
    fs::write(folder.path("lines"), lines).expect("a file");
    let place = folder.name("store");
    let imported = crate::once::run(&folder, &["sessions", "import", "lines", "--store", &place]);
    assert_eq!(imported.status, 0, "{imported:?}");
    for (options, sizes, notices) in
        [(&[][..], [2, 2], 1), (&["--final-snapshot", "full"], [2_010, 2_012], 0)]
    {
        let mut server = resumed(&folder, options).start();
        wait_state(&mut server);
        for (number, size) in sizes.into_iter().enumerate() {
            let id = format!("r{number}");
            server.send(crate::frames::submit(&id, "more"));
            let last = server.wait("the last snapshot", Frame::is_snapshot);
            assert_eq!(last.0["snapshot"]["entities"].as_array().map(Vec::len), Some(size));
            assert_eq!(server.wait_done(&id), "ok");
        }
        let ended = server.finish();
        let notice = "--final-snapshot full has the whole";
        assert_eq!(ended.stderr.matches(notice).count(), notices, "{}", ended.stderr);
    }
}

/// SQLite would take some names for addresses with options.
#[test]
fn the_name_of_a_store_is_the_name_of_a_file() {
    let folder = Folder::new();
    let place = "./file:odd?mode=memory";
    let words = ["exec", "--engine", "echo", "--store", place, "--session-id", "s", "hello"];
    assert_eq!(crate::once::run(&folder, &words).status, 0);
    assert!(folder.path(place).exists());
}
