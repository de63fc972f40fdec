//! No process of an MCP server outlives ours, however ours or its guard ends.

use crate::frames::submit;
use crate::mcp_command::tools;
use crate::mcp_servers::{Held, MARK_VARIABLE, assert_gone, config, log, mark, wait_until};
use crate::process::{Process, eventually};
use crate::server::{Folder, echo};
use duologue::task::server::ServerState;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// Runs until its servers have started, is ended by `signal`, and leaves nothing behind.
#[track_caller]
fn nothing_survives(signal: Signal) {
    let mark = mark();
    let marked = || Process::marked(&format!("{MARK_VARIABLE}={mark}"));
    let mut child =
        tools(&mark, &["forks", "mute", "none", "stubborn"], &[]).spawn().expect("the binary");
    // Four guards, four servers, four processes that one of them started.
    eventually("all have started", || (marked().len() >= 12).then_some(()));
    Process(child.id()).send(signal);
    let status = child.wait().expect("it ends");
    assert!(!status.success());
    eventually("all are gone", || {
        marked().iter().all(|it| it.command_line().is_empty()).then_some(())
    });
}

#[test]
fn nothing_survives_sigterm() {
    nothing_survives(Signal::TERM);
}

#[test]
fn nothing_survives_sigint() {
    nothing_survives(Signal::INT);
}

#[test]
fn nothing_survives_sigkill() {
    nothing_survives(Signal::KILL);
}

/// In mid-call, of a server that neither answers nor ends.
#[test]
fn nothing_survives_the_end_of_input() {
    let (mark, folder) = (mark(), Folder::new());
    let servers = config(&mark, &["forks", "none", "stubborn"], &json!({}));
    fs::write(folder.path("servers"), servers).expect("a file");
    let call = json!({ "name": "stubborn__act", "arguments": { "text": "nothing" } });
    let script = [json!({ "tools": [call] }), json!({ "text": "Done." })];
    let script = script.map(|line| line.to_string()).join("\n");
    fs::write(folder.path("script"), script).expect("a file");
    let (servers, script) = (folder.name("servers"), folder.name("script"));
    let args = ["--mcp-config", &servers, "--echo-script", &script, "--allow", "*"];
    let mut server = echo(&[&args[..], &["--tool-timeout-ms", "500"]].concat()).start();
    server.send(submit("run", "go"));
    server.wait_event("ChatToolExecutionStarted");
    server.close_stdin();
    assert_eq!(server.wait_done("run"), "ok", "the call ends with its time");
    server.finish();
    assert_gone(&mark);
    fs::remove_file(log(&mark)).expect("the server was asked");
}

#[test]
fn a_guard_that_gets_a_signal_takes_its_server_along() {
    let mark = mark();
    let marked = || Process::marked(&format!("{MARK_VARIABLE}={mark}"));
    let mut child = tools(&mark, &["mute"], &[]).spawn().expect("the binary");
    eventually("it has started", || (marked().len() >= 2).then_some(()));
    let guard = eventually("there is a guard", || {
        marked().into_iter().find(|it| it.command_line().contains("__guard"))
    });
    guard.send(Signal::TERM);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    assert_gone(&mark);
}

#[tokio::test]
async fn a_guard_that_is_killed_does_not_leave_its_server() {
    let mut held = Held::start(&["stubborn"]);
    held.ready().await;
    let marked = Process::marked(&format!("{MARK_VARIABLE}={}", held.mark));
    let is_guard = |process: &&Process| process.command_line().contains("__guard");
    marked.iter().find(is_guard).expect("a guard").send(Signal::KILL);
    let gone = held.changed().await;
    assert_eq!(gone.state, ServerState::Gone { reason: "it was ended by signal 9".to_owned() });
    wait_until("they are gone", || marked.iter().all(|it| it.command_line().is_empty())).await;
    held.close().await;
}

#[test]
fn a_guard_is_small() {
    let mark = mark();
    let marked = || Process::marked(&format!("{MARK_VARIABLE}={mark}"));
    let mut child = tools(&mark, &["mute"], &[]).spawn().expect("the binary");
    eventually("it has started", || (marked().len() >= 2).then_some(()));
    let guard = marked().into_iter().find(|it| it.command_line().contains("__guard"));
    let guard = guard.expect("a guard");
    assert!(guard.memory_bytes() < 32 * 1024 * 1024, "{}", guard.memory_bytes());
    let files: Vec<_> = guard.files().into_iter().map(|it| it.0).collect();
    assert!(files.len() <= 12, "{:?}", guard.files());
    child.kill().expect("it is ended");
    child.wait().expect("it ends");
}
