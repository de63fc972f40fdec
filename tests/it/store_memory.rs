//! What a store takes in memory: the conversation and what waits for the store share their texts, and a search
//! keeps no conversation.

use crate::once::run;
use crate::process::settled;
use crate::server::{Folder, Launch, echo};
use rusqlite::Connection;
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// Calls of a run, and bytes of the result of each: 24 MiB.
const CALLS: usize = 96;
const RESULT_BYTES: usize = 256 * 1024;

/// What a run with a store may take beyond one without, however many results it has: only a few of them are on
/// their way at a time, however far the disk is behind.
const EXTRA_BYTES_MAX: u64 = 40 * 1024 * 1024;

/// The most memory of a run whose calls a client answers, beyond what the process has when it is idle.
#[track_caller]
fn growth(folder: &Folder, launch: Launch) -> u64 {
    let mut server = launch.start();
    server.wait_hello();
    let idle_bytes = settled("the server waits", || server.process().memory_bytes());
    let schema = json!({ "type": "object" });
    let tool = json!({ "name": "look", "description": "", "inputSchema": schema });
    let declare = json!({ "requestId": "d", "declareTools": { "tools": [tool], "revision": 1 } });
    server.send(declare.to_string());
    assert_eq!(server.wait_done("d"), "ok");
    server.send(crate::frames::submit("r", "look at all"));
    for number in 0..CALLS {
        let asked = server.wait_event("FrontendToolCallRequested");
        let result =
            json!({ "text": format!("{number}").repeat(RESULT_BYTES).get(..RESULT_BYTES) });
        let call = asked.payload("toolCallId");
        let answer = json!({ "toolCallId": call, "result": result });
        server.send(json!({ "requestId": call, "toolResult": answer }).to_string());
    }
    assert_eq!(server.wait_done("r"), "ok", "{}", folder.name(""));
    let grown_bytes = server.process().peak_memory_bytes().saturating_sub(idle_bytes);
    server.finish();
    grown_bytes
}

/// An answer whose calls a client runs, and a last one.
fn script(folder: &Folder) -> String {
    let calls: Vec<_> =
        (0..CALLS).map(|k| json!({ "name": "look", "arguments": { "k": k } })).collect();
    let calls = json!({ "tools": calls });
    fs::write(folder.path("script"), format!("{calls}\n{{\"text\":\"seen\"}}\n")).expect("a file");
    folder.name("script")
}

#[test]
fn a_run_with_large_results_takes_about_as_much_memory_with_a_store_as_without() {
    let folder = Folder::new();
    let (script, place) = (script(&folder), folder.name("store"));
    let options = ["--echo-script", &script, "--final-snapshot", "none"];
    let without = growth(&folder, echo(&options));
    let store = ["--store", &place, "--session-id", "s"];
    let with = growth(&folder, echo(&[&options[..], &store].concat()));
    assert!(with < without + EXTRA_BYTES_MAX, "{with} bytes with a store, {without} without");
    // It was written piece by piece, and is whole.
    let store = Connection::open(folder.path("store")).expect("a store");
    let size = |table| -> usize {
        let sql = format!("SELECT sum(length(payload)) FROM {table}");
        store
            .query_row(&sql, [], |row| row.get::<_, i64>(0))
            .expect("a size")
            .try_into()
            .expect("a size")
    };
    assert!(size("states") > CALLS * RESULT_BYTES && size("turns") > CALLS * RESULT_BYTES);
    let shown = run(&folder, &["sessions", "show", "s", "--store", &place, "--output", "json"]);
    assert_eq!(shown.status, 0, "{}", shown.stderr);
    assert_eq!(shown.stdout.matches(r#""kind":"ChatToolResult""#).count(), CALLS);
    let resumed = ["exec", "--engine", "echo", "and?", "--resume"];
    let resumed = run(&folder, &[&resumed[..], &store_of(&place)].concat());
    assert!(resumed.status == 0 && resumed.stderr.is_empty(), "{resumed:?}");
}

fn store_of(place: &str) -> [&str; 4] {
    ["--store", place, "--session-id", "s"]
}

/// Turns of a recording, and bytes of the answer of each: 24 MiB in all, and several times that in messages.
const TURNS: usize = 12;
const ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// KiB of data that a search may have: far less than the text.
const SEARCH_KIB: usize = 40 * 1024;

/// A recording of a conversation with long answers. Each answer has `needle-<turn>` in its middle.
fn recording() -> String {
    let mut lines = String::new();
    let mut ordinal = 0;
    let mut event = |name: &str, mut payload: serde_json::Value| {
        ordinal += 1;
        payload["@type"] = json!(format!("type.googleapis.com/pinocchio.chatapp.v1.{name}"));
        let event = json!({ "ordinal": ordinal.to_string(), "name": name, "payload": payload });
        let line = json!({ "version": 1, "sessionId": "s", "uiEvent": event });
        writeln!(lines, "{line}").expect("written");
    };
    for turn in 1..=TURNS {
        let uuid = format!("00000000-0000-4000-8000-{turn:012}");
        let root = format!("chat-msg-{uuid}");
        let ids = json!({ "sessionId": "s", "runId": format!("run-{uuid}"), "turnId": format!("turn-{turn}") });
        let half = "many words of an answer ".repeat(ANSWER_BYTES / 2 / 24);
        let text = format!("{half}needle-{turn} {half}");
        event(
            "ChatUserMessageAccepted",
            json!({ "messageId": format!("{root}-user"), "role": "user", "text": "go on" }),
        );
        event(
            "ChatRunStarted",
            json!({ "messageId": root, "prompt": "go on", "correlation": ids }),
        );
        event(
            "ChatTextSegmentFinished",
            json!({ "messageId": format!("{root}:text:segment-1"), "role": "assistant", "text": text, "content": text, "status": "finished", "final": true, "correlation": ids }),
        );
        event(
            "ChatRunFinished",
            json!({ "messageId": root, "status": "finished", "correlation": ids }),
        );
    }
    lines
}

#[test]
fn a_search_keeps_no_conversation() {
    let folder = Folder::new();
    fs::write(folder.path("lines"), recording()).expect("a file");
    let place = folder.name("store");
    let imported = run(&folder, &["sessions", "import", "lines", "--store", &place]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let forked = run(&folder, &["sessions", "fork", "s", "--as", "copy", "--store", &place]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let limit = format!("ulimit -d {SEARCH_KIB}; exec \"$0\" \"$@\"");
    let search = |words: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", &limit, env!("CARGO_BIN_EXE_duologue"), "sessions", "search"]);
        let output = command.args([words, "--store", &place]).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {stderr}");
        String::from_utf8(output.stdout).expect("a text")
    };
    let found = search(&format!("needle-{TURNS}"));
    assert_eq!(found.lines().count(), 2, "{found}");
    let expected = format!("turn {TURNS}  assistant: …many words of an answer needle-{TURNS} many");
    assert!(found.contains(&expected), "{found}");
    assert_eq!(search("answer needle").lines().count(), 2 * TURNS);
    assert_eq!(search("nowhere"), "");
}
