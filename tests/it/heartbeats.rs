//! The extension `heartbeats`: a run in which nothing happens says what it waits for. Nothing is timed: what
//! waits never ends by itself, so that a heartbeat must come.

use crate::frames::{Frame, cancel, submit};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::duologue;
use crate::provider::{Provider, Step};
use crate::server::{Folder, KEY, Server, echo, openai};
use crate::store::stored;
use crate::terminal::on_terminal;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

const ON: [&str; 4] = ["--extensions", "heartbeats", "--heartbeat-ms", "20"];

fn heartbeats(frames: &[Frame]) -> Vec<&Value> {
    let of = frames.iter().filter(|frame| frame.is_event("Heartbeat"));
    of.map(|frame| &frame.0["uiEvent"]["payload"]).collect()
}

/// Waits for a sign that `what` is waited for, twice; then stops the run, and gives its frames.
fn waits_for(mut server: Server, what: &str) -> Vec<Frame> {
    server.send(submit("run", "go"));
    for _ in 0..2 {
        server
            .wait(what, |frame| frame.is_event("Heartbeat") && frame.payload("waitingFor") == what);
    }
    server.send(cancel("c"));
    assert_eq!(server.wait_done("run"), "stopped");
    let frames = server.finish().frames;
    let of_it: Vec<_> =
        heartbeats(&frames).into_iter().filter(|it| it["waitingFor"] == *what).collect();
    let waited =
        |it: &Value| it["waitedMs"].as_str().map_or(0, |ms| ms.parse::<u64>().expect("ms"));
    assert!(of_it.is_sorted_by_key(|it| waited(it)) && waited(of_it[1]) >= 20, "{of_it:?}");
    // Each has the ordinal of the event before it, and none is in the conversation.
    let mut before = 0;
    for frame in frames.iter().filter(|frame| frame.event().is_some()) {
        let ordinal = frame.ordinal().expect("an ordinal");
        assert_eq!(ordinal, if frame.is_event("Heartbeat") { before } else { before + 1 });
        before = ordinal;
    }
    frames
}

#[test]
fn a_provider_that_does_not_respond_falls_silent_or_fails() {
    let scene = |steps: Vec<Step>| Provider::start(vec![steps]);
    let connecting = scene(vec![Step::Stall]);
    waits_for(openai(&connecting, &ON).start(), "PROVIDER_CONNECTING");
    let silent = scene(vec![Step::Text("one".to_owned()), Step::Stall]);
    waits_for(openai(&silent, &ON).start(), "PROVIDER_SILENT");
    let later = vec![("retry-after", "60".to_owned())];
    let failing = scene(vec![Step::Status(503, later, String::new())]);
    waits_for(openai(&failing, &ON).start(), "RETRY");
}

#[test]
fn a_tool_of_a_server_and_a_decision_about_it() {
    let (mark, folder) = (mark(), Folder::new());
    fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
    let call = json!({ "tools": [{ "name": "act", "arguments": { "text": "nothing" } }] });
    fs::write(folder.path("script"), format!("{call}\n")).expect("a file");
    let (servers, script) = (folder.name("servers"), folder.name("script"));
    let own = ["--mcp-config", &servers, "--echo-script", &script];
    for (what, more) in [
        ("TOOL", ["--allow", "*", "--extensions", "heartbeats"]),
        ("APPROVAL", ["--approval", "ask", "--extensions", "heartbeats,approvals"]),
    ] {
        let args = [&own[..], &more, &["--heartbeat-ms", "20"]].concat();
        let frames = waits_for(echo(&args).start(), what);
        let tools = &heartbeats(&frames).last().expect("one")["toolCallIds"];
        assert_eq!(*tools, json!(["call_1"]), "{what}");
    }
    assert_gone(&mark);
}

#[test]
fn a_tool_of_the_client() {
    let folder = Folder::new();
    let call = json!({ "tools": [{ "name": "look", "arguments": {} }] });
    fs::write(folder.path("script"), format!("{call}\n")).expect("a file");
    let script = folder.name("script");
    let mut server = echo(&[&ON[..], &["--echo-script", &script]].concat()).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"look"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    waits_for(server, "CLIENT_TOOL");
}

/// The store holds back what has happened, and not that it is waited for.
#[test]
fn a_store_that_another_program_keeps_locked() {
    let folder = Folder::new();
    let mut server = stored(&folder, &ON).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    let other = Connection::open(folder.path("store")).expect("a store");
    other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    server.send(submit("r2", "two"));
    for _ in 0..2 {
        server.wait("STORE", |frame| frame.id() == "r2" && frame.payload("waitingFor") == "STORE");
    }
    other.execute_batch("ROLLBACK").expect("it was locked");
    assert_eq!(server.wait_done("r2"), "ok");
    server.finish();
}

#[test]
fn a_client_that_does_not_ask_sees_nothing_of_it() {
    let provider = Provider::start(vec![vec![
        Step::Drip { text: "a".to_owned(), times: 1, pause: std::time::Duration::from_millis(60) },
        Step::Finish("stop", None),
        Step::Done,
    ]]);
    let mut server = openai(&provider, &["--heartbeat-ms", "1"]).start();
    assert_eq!(server.turn("run", "go"), "ok");
    assert!(heartbeats(&server.finish().frames).is_empty());
}

#[test]
fn the_progress_line_of_a_person_says_it() {
    let folder = Folder::new();
    let provider = Provider::start(vec![vec![
        Step::Drip {
            text: "late".to_owned(),
            times: 1,
            pause: std::time::Duration::from_millis(900),
        },
        Step::Finish("stop", None),
        Step::Done,
    ]]);
    let words = ["exec", "hi", "--heartbeat-ms", "50"];
    let mut exec = duologue(&folder, &words);
    exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
    exec.env("DUOLOGUE_MODEL", "scripted");
    let seen = on_terminal(exec, true);
    assert!(seen.contains("waiting for the provider to respond"), "{seen:?}");
    assert!(seen.contains("late\r\n"), "{seen:?}");
}
