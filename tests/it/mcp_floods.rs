//! MCP servers that send without end, also while nothing goes on: memory and requests have limits.

use crate::frames::{Frame, snapshot};
use crate::mcp_http::HttpServer;
use crate::mcp_servers::{assert_gone, config, log, mark};
use crate::process::eventually;
use crate::server::{Folder, Server, echo};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

/// Memory that a server may take beyond what it has when it is idle.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often a server is started in all, and how many of its requests are answered each time.
const STARTS_MAX: usize = 4;
const REQUESTS_MAX: usize = 1_000;

/// A conversation with these servers, in which nothing goes on.
fn idle(args: &[&str]) -> (Server, u64) {
    let mut server = echo(&[args, &["--extensions", "tool-servers"]].concat()).start();
    server.wait_hello();
    let idle_bytes = server.process().memory_bytes();
    server.send(snapshot("begin"));
    assert_eq!(server.wait_done("begin"), "ok");
    (server, idle_bytes)
}

fn wait_unavailable(server: &mut Server) -> Frame {
    server.wait("a server that is given up", |frame| {
        frame.is_event("ToolServerChanged") && frame.payload("state") == "UNAVAILABLE"
    })
}

#[track_caller]
fn check_memory(server: &Server, idle_bytes: u64) {
    let grown_bytes = server.process().peak_memory_bytes().saturating_sub(idle_bytes);
    assert!(grown_bytes < GROWTH_BYTES_MAX, "grown by {grown_bytes}");
}

#[test]
fn requests_whose_answers_nobody_reads_end_the_server() {
    let (mark, folder) = (mark(), Folder::new());
    let faults = ["ping-flood", "sampling-flood"];
    fs::write(folder.path("servers"), config(&mark, &faults, &json!({}))).expect("a file");
    let (mut server, idle_bytes) = idle(&["--mcp-config", &folder.name("servers")]);
    let mut ended = BTreeSet::new();
    for _ in faults {
        let frame = wait_unavailable(&mut server);
        let reason = frame.payload("reason");
        assert!(reason.contains("more than 1000 requests"), "{reason}");
        ended.insert(frame.payload("server").to_owned());
    }
    assert_eq!(ended, faults.map(str::to_owned).into());
    check_memory(&server, idle_bytes);
    server.send(snapshot("alive"));
    assert_eq!(server.wait_done("alive"), "ok");
    server.finish();
    assert_gone(&mark);
    fs::remove_file(log(&mark)).ok();
}

#[test]
fn pings_without_end_over_http_end_the_connection() {
    let http = HttpServer::start();
    let (mut server, idle_bytes) = idle(&["--mcp", &http.url("/pings")]);
    let frame = wait_unavailable(&mut server);
    assert!(frame.payload("reason").contains("more than 1000 requests"), "{frame:?}");
    check_memory(&server, idle_bytes);
    let replies = http.requests();
    let replies = replies.iter().filter(|it| it.message.get("result").is_some()).count();
    assert!(replies <= STARTS_MAX * REQUESTS_MAX, "{replies}");
    server.finish();
}

#[test]
fn a_stream_that_ends_at_once_is_opened_again_with_growing_waits() {
    let http = HttpServer::start();
    let started = Instant::now();
    let (server, _) = idle(&["--mcp", &http.url("/eager")]);
    let opened = || http.requests().iter().filter(|it| it.line.starts_with("GET ")).count();
    eventually("the stream is opened again", || (opened() >= 3).then_some(()));
    // The first one at once, the others after 1 s, 2 s, 4 s.
    let most = 1 + (started.elapsed().as_secs() + 1).ilog2();
    assert!(opened() <= most as usize, "{} in {:?}", opened(), started.elapsed());
    server.finish();
}

#[test]
fn changes_without_end_are_listed_less_and_less() {
    let (mark, folder) = (mark(), Folder::new());
    fs::write(folder.path("servers"), config(&mark, &["list-flood"], &json!({}))).expect("a file");
    let started = Instant::now();
    let (server, idle_bytes) = idle(&["--mcp-config", &folder.name("servers")]);
    let listed = || {
        let sent = fs::read_to_string(log(&mark)).unwrap_or_default();
        sent.matches("tools/list").count()
    };
    eventually("the tools are listed again", || (listed() >= 5).then_some(()));
    // At the start, and after 50 ms, 100 ms, 200 ms ...
    let most = 1 + (started.elapsed().as_millis() / 50 + 1).ilog2();
    assert!(listed() <= most as usize, "{} in {:?}", listed(), started.elapsed());
    check_memory(&server, idle_bytes);
    server.finish();
    assert_gone(&mark);
    fs::remove_file(log(&mark)).ok();
}
