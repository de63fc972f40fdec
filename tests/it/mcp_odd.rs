//! Servers that keep to the specification in all but a detail are of use all the same.

use crate::frames::submit;
use crate::mcp_command::command;
use crate::mcp_servers::{Held, assert_gone, config, error, log, mark, success, wait_until};
use crate::server::{Folder, echo};
use serde_json::{Value, json};
use std::fs;

#[tokio::test]
async fn an_answer_that_is_odd_in_a_detail_is_that_of_its_call() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let refused = error(held.act("none", "null beside").await);
    assert!(refused.contains("error -32602: no such table"), "{refused}");
    assert_eq!(success(held.act("none", "half character").await), "cut \u{fffd}");
    assert_eq!(success(held.act("none", "no UTF-8").await), "cut \u{fffd}");
    assert_eq!(success(held.act("none", "batch").await), "of a batch");
    // A request of the server with the id of the call, which it may have.
    assert_eq!(success(held.act("none", "odd request").await), "done");
    // The answer to it may come after the call has ended.
    wait_until("the request of the server is answered", || {
        fs::read_to_string(log(&held.mark)).expect("a log").contains("\"roots\":[]")
    })
    .await;
    held.close().await;
}

#[tokio::test]
async fn the_last_answer_of_a_server_that_ends_counts() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    assert_eq!(success(held.act("none", "last").await), "the last words");
    held.close().await;
}

#[tokio::test]
async fn a_server_that_ends_in_the_middle_of_its_answer_has_not_answered() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let lost = error(held.act("none", "cut off").await);
    assert!(lost.contains("the server ended before it answered"), "{lost}");
    assert!(lost.contains("may or may not have been done"), "{lost}");
    held.close().await;
}

#[tokio::test]
async fn a_handshake_that_is_odd_in_a_detail_begins_a_connection() {
    let mut held = Held::start(&["odd-handshake"]);
    assert_eq!(held.ready().await, ["echo", "act"]);
    held.close().await;
}

#[test]
fn a_server_without_tools_has_its_prompts() {
    let mark = mark();
    let output = command(&mark, &["without-tools"], &["mcp", "prompts"], &[]).output();
    let output = output.expect("the binary");
    assert_gone(&mark);
    assert!(String::from_utf8_lossy(&output.stdout).contains("without-tools:sum"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

/// The script of an engine whose first answers make these calls of `act`, by their texts.
fn script(folder: &Folder, rounds: &[&[&str]]) -> String {
    let call = |text: &&str| json!({ "name": "act", "arguments": { "text": text } });
    let rounds = rounds
        .iter()
        .map(|texts| json!({ "tools": texts.iter().map(call).collect::<Vec<_>>() }).to_string());
    let lines: Vec<_> = rounds.chain([json!({ "text": "Done." }).to_string()]).collect();
    fs::write(folder.path("script"), lines.join("\n")).expect("a file");
    folder.name("script")
}

#[test]
fn a_server_that_has_crashed_is_started_again_by_the_next_call_of_the_run() {
    let (mark, folder) = (mark(), Folder::new());
    fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
    let (servers, script) = (folder.name("servers"), script(&folder, &[&["crash"], &["file"]]));
    let args = ["--mcp-config", &servers, "--echo-script", &script, "--allow", "*"];
    let mut server = echo(&args).start();
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let results = frames.iter().filter(|frame| frame.is_event("ChatToolResultReady"));
    let results: Vec<_> = results.map(|frame| frame.payload("result")).collect();
    assert!(results[0].contains("status 5"), "{results:?}");
    assert!(results[1].contains("fn main()"), "{results:?}");
    assert_gone(&mark);
}

#[test]
fn a_call_that_is_approved_after_the_crash_of_its_server_is_made() {
    let (mark, folder) = (mark(), Folder::new());
    fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
    let (servers, script) = (folder.name("servers"), script(&folder, &[&["crash", "file"]]));
    let extensions = "approvals,tool-servers";
    let args = ["--mcp-config", &servers, "--echo-script", &script, "--extensions", extensions];
    let mut server = echo(&args).start();
    let approve = |id: &str, call: &Value| {
        json!({ "requestId": id, "approve": { "toolCallId": call, "decision": "ALLOW_ONCE" } })
            .to_string()
    };
    server.send(submit("run", "go"));
    let ids: Vec<_> = (0..2)
        .map(|_| json!(server.wait_event("ToolApprovalRequested").payload("toolCallId")))
        .collect();
    server.send(approve("first", &ids[0]));
    let crashed = server.wait_event("ChatToolResultReady");
    assert!(crashed.payload("result").contains("status 5"), "{crashed:?}");
    server.send(approve("second", &ids[1]));
    let made = server.wait_event("ChatToolResultReady");
    assert!(made.payload("result").contains("fn main()"), "{made:?}");
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    assert_gone(&mark);
}
