//! The session of the protocol's documentation, word for word, and what scripts do with it.

use crate::frames::{Frame, ends, errors, finished_text, submit};
use crate::server::{Folder, KEY, Launch, Server, echo};
use serde_json::json;
use std::fs;

/// The example session.
const SESSION: &str = r#"{"version":1,"sessionId":"demo","requestId":"r1","submit":{"prompt":"first question"}}
{"version":1,"sessionId":"demo","requestId":"r2","submit":{"prompt":"follow-up question"}}
{"version":1,"sessionId":"demo","requestId":"r3","shutdown":{}}
"#;

fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, how)| ((*id).to_owned(), (*how).to_owned())).collect()
}

/// A client that waits for each `done`.
#[test]
fn the_example_session_is_answered_line_by_line() {
    let mut server = Server::start(&[]);
    for (line, id, how) in SESSION
        .lines()
        .zip(["r1", "r2", "r3"])
        .map(|(line, id)| (line, id, if id == "r3" { "shutdown" } else { "ok" }))
    {
        server.send(line);
        assert_eq!(server.wait_done(id), how);
    }
    let frames = server.finish().frames;
    assert!(finished_text(&frames, "r2").contains("Before that you said: first question"));
    assert!(frames[1..].iter().all(|frame| frame.text("/sessionId") == "demo"));
    check_order(&frames, "r1");
    check_order(&frames, "r2");
}

/// The frames of a run, in the order of the contract.
fn check_order(frames: &[Frame], id: &str) {
    let names = frames.iter().filter(|frame| frame.id() == id).map(|frame| match frame.event() {
        Some(name) => name.to_owned(),
        None if frame.is_snapshot() => "snapshot".to_owned(),
        None => frame.done().unwrap_or("?").to_owned(),
    });
    let mut names: Vec<_> = names.collect();
    names.dedup();
    let expected = [
        "ChatUserMessageAccepted",
        "ChatRunStarted",
        "ChatProviderCallStarted",
        "ChatTextSegmentStarted",
        "ChatTextPatch",
        "ChatTextSegmentFinished",
        "ChatProviderCallFinished",
        "ChatRunFinished",
        "snapshot",
        "ok",
    ];
    assert_eq!(names, expected);
}

/// A script that writes all at once: the second submit is refused, as documented.
#[test]
fn the_example_session_at_once_is_busy() {
    let mut server = Server::start(&["--echo-delay-ms", "1"]);
    server.send_raw(SESSION.as_bytes());
    let frames = server.finish().frames;
    assert_eq!(ends(&frames), owned(&[("r2", "failed"), ("r1", "ok"), ("r3", "shutdown")]));
    assert_eq!(errors(&frames, "r2"), ["session_busy"]);
}

#[test]
fn the_example_session_at_once_is_answered_if_submits_may_wait() {
    let mut server = Server::start(&["--echo-delay-ms", "1", "--on-busy", "queue"]);
    server.send_raw(SESSION.as_bytes());
    let frames = server.finish().frames;
    assert_eq!(ends(&frames), owned(&[("r1", "ok"), ("r2", "ok"), ("r3", "shutdown")]));
    check_order(&frames, "r2");
    let capabilities = frames[0].0["hello"]["capabilities"].as_array().expect("a list");
    assert!(capabilities.contains(&json!("queue")), "an extension that is on is announced");
}

/// The shape of the documented patch, member for member.
#[test]
fn a_snapshot_patch_looks_as_documented() {
    let mut server = Server::start(&["--patch-mode", "snapshot", "--session-id", "session-123"]);
    assert_eq!(server.turn("r", "hello"), "ok");
    let frames = server.finish().frames;
    let patches: Vec<_> = frames.iter().filter(|frame| frame.is_event("ChatTextPatch")).collect();
    let last = patches.last().expect("a patch");
    assert_eq!(last.0["version"], 1);
    assert_eq!(last.text("/sessionId"), "session-123");
    assert_eq!(
        last.text("/uiEvent/payload/@type"),
        "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch"
    );
    assert_eq!(last.payload("role"), "assistant");
    assert_eq!(last.payload("mode"), "CHAT_STREAM_PATCH_MODE_SNAPSHOT");
    assert_eq!(last.payload("status"), "streaming");
    assert_eq!(last.payload("text"), "Turn 1. You said: hello");
    let id = last.payload("messageId");
    assert!(id.starts_with("chat-msg-") && id.contains(":text:"), "{id}");
    assert!(
        patches.windows(2).all(|pair| pair[1].payload("text").starts_with(pair[0].payload("text")))
    );
}

/// A recipe of the documentation, over the example session; gives what it prints.
fn jq(args: &str, filter: &str) -> String {
    let script = r#""$0" rpc --engine echo --on-busy queue --patch-mode snapshot <"$1" | jq $3 "$2" >"$4"; cat "$4" >&2"#;
    let folder = Folder::new();
    fs::write(folder.path("session"), SESSION).expect("a file");
    let (session, out) = (folder.name("session"), folder.name("out"));
    let shell = Launch::shell(script, &[&session, filter, args, &out]).start();
    shell.finish();
    fs::read_to_string(&out).expect("what jq printed")
}

#[test]
fn the_documented_recipes_work() {
    needs!(Jq);
    let ordinals = jq("", "select(.uiEvent) | .uiEvent.ordinal | tonumber");
    let ordinals: Vec<u64> = ordinals.lines().map(|line| line.parse().expect("a number")).collect();
    assert!(ordinals.len() > 10 && ordinals.is_sorted());

    let by_name = jq("-r", r#"select(.uiEvent.name == "ChatTextPatch") | .uiEvent.payload.text"#);
    assert!(by_name.starts_with("Turn \nTurn 1. \n"), "{by_name}");
    let by_type = jq(
        "-r",
        r#"select(.uiEvent.payload["@type"] == "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch") | .uiEvent.payload.text"#,
    );
    assert_eq!(by_name, by_type);

    let answers = jq(
        "-r",
        r#"select(.uiEvent.name == "ChatTextSegmentFinished") | select(.uiEvent.payload.role == "assistant") | .uiEvent.payload.content // .uiEvent.payload.text"#,
    );
    let expected = "Turn 1. You said: first question\nTurn 2. You said: follow-up question\nBefore that you said: first question\n";
    assert_eq!(answers, expected);

    let tools = jq(
        "",
        r#"select(.uiEvent.payload["@type"]? | test("pinocchio.chatapp.v1.ChatTool")) | .uiEvent"#,
    );
    assert_eq!(tools, "", "the echo engine calls no tools");
    assert_eq!(jq("-c", "select(.done) | .done.status"), "\"ok\"\n\"ok\"\n\"shutdown\"\n");
    assert_eq!(jq("", "select(.error.terminal == true) | .error"), "");
}

/// The debug file holds what standard output holds, in folders made for it.
#[test]
fn the_debug_file_has_the_frames_of_standard_output() {
    let folder = Folder::new();
    let path = folder.name("events.jsonl");
    for round in 0..2 {
        let mut server = Server::start(&["--debug-events-jsonl", &path, "--echo-delay-ms", "1"]);
        server.turn(&format!("r{round}"), "hello");
        server.send("not JSON");
        let frames = server.finish().frames;
        let copied = fs::read(&path).expect("the debug file");
        let lines = copied.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let copied: Vec<_> = lines.map(Frame::parse).collect();
        assert_eq!(copied, frames, "truncated each time, and the same");
    }
}

/// Logs go to a file if one is named; it is written on, and holds no secret.
#[test]
fn the_log_file_takes_what_standard_error_would_get() {
    let folder = Folder::new();
    let path = folder.name("log");
    for round in 1..=2 {
        let args = ["--log-file", &path, "--log-level", "debug", "--echo-delay-ms", "3600000"];
        let mut server = echo(&args).secret("DUOLOGUE_API_KEY", KEY).start();
        server.send_together(&[submit("r", "hello"), crate::frames::cancel("c")]);
        assert_eq!(server.wait_done("r"), "stopped");
        assert_eq!(server.finish().stderr.trim(), "");
        let log = fs::read_to_string(&path).expect("the log");
        assert_eq!(log.matches("the task is cancelled").count(), round, "{log}");
        assert!(!log.contains(KEY));
    }
}

#[test]
fn a_session_may_be_bound_from_the_start() {
    let mut server = Server::start(&["--session-id", " mine "]);
    assert_eq!(server.wait_hello().text("/sessionId"), "mine");
    server.send(r#"{"sessionId":"demo","requestId":"m","snapshot":{}}"#);
    assert_eq!(server.wait_done("m"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "m"), ["session_mismatch"]);
}

#[test]
fn a_final_snapshot_holds_what_was_asked_for() {
    for (option, expected) in [("full", Some(4)), ("turn", Some(2)), ("none", None)] {
        let mut server = Server::start(&["--final-snapshot", option]);
        server.turn("r1", "one");
        server.turn("r2", "two");
        let frames = server.finish().frames;
        let last = frames.iter().rfind(|frame| frame.is_snapshot());
        assert_eq!(last.map(|frame| frame.messages().len()), expected, "{option}");
    }
}
