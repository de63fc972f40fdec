//! What a store takes in memory: the conversation and what waits for the store share their texts, and a search
//! keeps no conversation.

use crate::once::run;
use crate::postgres_server::{Database, PASSWORD};
use crate::process::settled;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Launch, echo, openai};
use rusqlite::Connection;
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::Duration;

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
    let sql = "SELECT sum(length(events)) FROM log";
    let size = store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a size");
    assert!(usize::try_from(size).expect("a size") > CALLS * RESULT_BYTES);
    let shown = run(&folder, &["sessions", "show", "s", "--store", &place, "--output", "json"]);
    assert_eq!(shown.status, 0, "{}", shown.stderr);
    assert_eq!(shown.stdout.matches(r#""kind":"ChatToolResult""#).count(), CALLS);
    let resumed = ["exec", "--engine", "echo", "and?", "--resume"];
    let resumed = run(&folder, &[&resumed[..], &store_of(&place)].concat());
    assert!(resumed.status == 0 && resumed.stderr.is_empty(), "{resumed:?}");
}

/// Deltas of one answer, and bytes of each: 36 MiB, so that the memory of a copy goes back to the system when it
/// is freed.
const DELTAS: usize = 576;
const DELTA_BYTES: usize = 64 * 1024;

/// Percent of the memory of a run without a store that a run with one may take: what makes a row of a text is
/// there once more, and never beside the text's frame.
const WITH_FILE_PERCENT_MAX: u64 = 140;

/// The same with a server, to which the text goes in messages that its client copies.
const WITH_SERVER_PERCENT_MAX: u64 = 300;

/// The most memory of a run with one long answer.
fn long_answer_bytes(args: &[&str]) -> u64 {
    let text = "many words of an answer ".repeat(DELTA_BYTES / 24);
    let drip = Step::Drip { text, times: DELTAS, pause: Duration::ZERO };
    let provider =
        Provider::start(vec![vec![drip, Step::Finish("stop", Some((3, 2))), Step::Done]]);
    let options = ["--patch-fields", "full", "--final-snapshot", "none"];
    let launch = openai(&provider, &[&options[..], args].concat());
    let mut server = launch.secret("PGPASSWORD", PASSWORD).start();
    assert_eq!(server.turn("a", "go"), "ok");
    let peak_bytes = server.process().peak_memory_bytes();
    server.close_stdin();
    server.wait_end();
    peak_bytes
}

/// The session goes on, and the model is sent the whole answer.
fn check_answer(options: &[&str]) {
    let provider = Provider::start(vec![says("yes")]);
    let resumed = ["--resume", "--final-snapshot", "none"];
    let launch = openai(&provider, &[&resumed[..], options].concat());
    let mut server = launch.secret("PGPASSWORD", PASSWORD).start();
    assert_eq!(server.turn("b", "is that all?"), "ok");
    server.close_stdin();
    server.wait_end();
    let request = provider.wait_request(1);
    let sent = request.body["messages"][1]["content"].as_str().expect("the answer");
    let expected = "many words of an answer ".repeat(DELTA_BYTES / 24).repeat(DELTAS);
    assert!(sent == expected, "{} of {} bytes", sent.len(), expected.len());
}

#[test]
fn a_long_answer_takes_about_as_much_memory_with_a_store_as_without() {
    let folder = Folder::new();
    let place = folder.name("store");
    let without = long_answer_bytes(&[]);
    let with = long_answer_bytes(&store_of(&place));
    assert!(
        with * 100 < without * WITH_FILE_PERCENT_MAX,
        "{with} bytes, {without} without a store"
    );
    check_answer(&store_of(&place));
}

#[test]
fn a_long_answer_is_copied_for_one_message_to_a_server_at_a_time() {
    needs!(Postgres);
    let database = Database::new();
    let store = database.bare_dsn();
    let without = long_answer_bytes(&[]);
    let with = long_answer_bytes(&store_of(&store));
    assert!(
        with * 100 < without * WITH_SERVER_PERCENT_MAX,
        "{with} bytes, {without} without a store"
    );
    check_answer(&store_of(&store));
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
