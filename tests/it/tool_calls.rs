//! A client's tools, prompts that join a run, and cancels of one request, over real pipes. What is
//! written is also held against the contract and listed.

use crate::frames::{Frame, ends, finished_text, submit};
use crate::server::{Folder, Server};
use duologue::conformance::check::Checker;
use serde_json::{Value, json};
use std::fs;

/// Two provider calls: one that calls two tools, and the answer.
const SCRIPT: &str = r#"{"reasoning":"The time is wanted.","text":"Let me look.","tools":[{"name":"get_time","arguments":{"zone":"UTC"}},{"name":"get_date","arguments":{}}]}
{"text":"It is noon."}
"#;

fn declare(names: &[&str]) -> String {
    let tools = names.iter().map(|name| {
        let schema = json!({ "type": "object", "properties": {} });
        json!({ "name": name, "description": "d", "inputSchema": schema })
    });
    let tools: Vec<_> = tools.collect();
    json!({ "requestId": "d", "declareTools": { "tools": tools, "revision": "1" } }).to_string()
}

fn result(id: &str, call: &str) -> String {
    let result = json!({ "toolCallId": call, "result": { "time": "12:00" } });
    json!({ "requestId": id, "toolResult": result }).to_string()
}

/// A submit that joins the run of `r1`.
fn joining(id: &str) -> String {
    let submit = json!({ "prompt": "And tomorrow?", "targetRequestId": "r1" });
    json!({ "requestId": id, "submit": submit }).to_string()
}

fn scripted(folder: &Folder, args: &[&str]) -> Server {
    fs::write(folder.path("script.jsonl"), SCRIPT).expect("a file");
    let script = folder.name("script.jsonl");
    Server::start(&[&["--echo-script", &script], args].concat())
}

fn done(id: &str, status: &str) -> (String, String) {
    (id.to_owned(), status.to_owned())
}

/// The codes of all errors.
fn errors(frames: &[Frame]) -> Vec<&str> {
    frames.iter().filter_map(Frame::error).collect()
}

fn index(frames: &[Frame], name: &str) -> usize {
    frames.iter().position(|frame| frame.event() == Some(name)).expect("the event")
}

#[test]
fn a_client_runs_two_tools_and_a_prompt_joins() {
    let folder = Folder::new();
    let mut server = scripted(&folder, &[]);
    server.send(declare(&["get_time", "get_date"]));
    server.send(submit("r1", "What time is it?"));
    let first = server.wait_event("FrontendToolCallRequested");
    assert_eq!(first.text("/uiEvent/payload/toolCallId"), "call_1");
    server.wait_event("FrontendToolCallRequested");
    server.send(joining("s1"));
    server.send(result("t2", "call_2"));
    server.send(result("t1", "call_1"));
    server.send(result("t3", "call_1"));
    assert_eq!(server.wait_done("r1"), "ok");
    let frames = server.finish().frames;
    let mut seen = ends(&frames);
    seen.sort();
    let expected = [
        done("d", "ok"),
        done("r1", "ok"),
        done("s1", "ok"),
        done("t1", "ok"),
        done("t2", "ok"),
        done("t3", "failed"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(errors(&frames), ["unknown_tool_call"]);
    assert!(finished_text(&frames, "r1").contains("It is noon."));
    // The joined prompt and its request's event are one step.
    let at = index(&frames, "SteeringAccepted");
    assert_eq!(frames[at].id(), "s1");
    assert_eq!(frames[at].text("/uiEvent/ordinal"), frames[at - 1].text("/uiEvent/ordinal"));
    assert!(frames[at].text("/uiEvent/payload/messageId").ends_with("-user-2"));
    assert!(index(&frames, "ChatToolCallFinished") < at);
}

/// A snapshot after an event that is of no run includes its ordinal.
#[test]
fn a_snapshot_knows_of_declared_tools() {
    let mut server = Server::start(&[]);
    server.send(declare(&["get_time"]));
    server.send(r#"{"requestId":"s","snapshot":{}}"#);
    assert_eq!(server.wait_done("s"), "ok");
    let frames = server.finish().frames;
    let snapshot = frames.iter().find(|frame| frame.is_snapshot()).expect("a snapshot");
    assert_eq!(snapshot.text("/snapshot/snapshotOrdinal"), "1");
}

#[test]
fn a_cancel_names_what_it_stops() {
    let mut server = Server::start(&["--on-busy", "queue", "--echo-delay-ms", "60000"]);
    server.send(submit("r1", "one"));
    server.send(submit("r2", "two"));
    server.send(submit("r3", "three"));
    server.wait_event("ChatProviderCallStarted");
    server.send(r#"{"requestId":"c1","cancel":{"targetRequestId":"r2"}}"#);
    assert_eq!(server.wait_done("r2"), "stopped");
    server.send(r#"{"requestId":"c2","cancel":{"targetRequestId":"r2"}}"#);
    assert_eq!(server.wait_done("c2"), "ok");
    server.send(r#"{"requestId":"c3","cancel":{"waiting":true}}"#);
    assert_eq!(server.wait_done("r3"), "stopped");
    server.send(r#"{"requestId":"c4","cancel":{"targetRequestId":"r1"}}"#);
    assert_eq!(server.wait_done("r1"), "stopped");
    assert_eq!(errors(&server.finish().frames), ["no_active_request"]);
}

#[test]
fn what_can_not_be_turned_on_or_declared_has_its_error() {
    let mut server = Server::start(&[]);
    server.send(r#"{"requestId":"a","enable":{"extensions":["approvals","poetry"]}}"#);
    server.send(declare(&["no spaces"]));
    server.send(r#"{"requestId":"b","approve":{"toolCallId":"c","decision":"DENY"}}"#);
    server.send(r#"{"requestId":"c","enable":{"extensions":["approvals"]}}"#);
    assert_eq!(server.wait_done("c"), "ok");
    let codes = ["unknown_extension", "invalid_tools", "unknown_tool_call"];
    assert_eq!(errors(&server.finish().frames), codes);
}

/// A change of the stream of a run with tools is reported.
#[test]
fn a_changed_stream_of_a_run_with_tools_is_reported() {
    let folder = Folder::new();
    let mut server = scripted(&folder, &[]);
    server.send(declare(&["get_time", "get_date"]));
    server.send(submit("r1", "What time is it?"));
    server.wait_event("FrontendToolCallRequested");
    server.wait_event("FrontendToolCallRequested");
    server.send(result("t1", "call_1"));
    server.send(result("t2", "call_2"));
    assert_eq!(server.wait_done("r1"), "ok");
    let frames: Vec<Value> = server.finish().frames.into_iter().map(|frame| frame.0).collect();
    let violations = |frames: &[Value]| {
        let mut checker = Checker::new();
        let found: Vec<_> =
            frames.iter().flat_map(|frame| checker.line(frame.to_string().as_bytes())).collect();
        found.len() + checker.finish(None).len()
    };
    assert_eq!(violations(&frames), 0);
    let is_of_tools = |frame: &Value| {
        let name = frame["uiEvent"]["name"].as_str().unwrap_or_default();
        name.contains("Tool") && !name.contains("Patch")
    };
    for at in (0..frames.len()).filter(|at| is_of_tools(&frames[*at])) {
        let mut without = frames.clone();
        without.remove(at);
        assert!(violations(&without) > 0, "without {}", frames[at]);
    }
}
