//! What MCP servers can't get: calls that nobody allowed, a call twice, the token of their header in
//! sight, and what the model is sent of their results.

use crate::client_tools::calls;
use crate::frames::{Frame, snapshot, submit};
use crate::mcp_fixture::FILE;
use crate::mcp_http::HttpServer;
use crate::mcp_servers::{assert_gone, config, log, mark};
use crate::provider::{Provider, says};
use crate::server::{Folder, Server, echo, openai};
use serde_json::{Value, json};
use std::fs;

/// The token of a server's header; it may appear nowhere.
const TOKEN: &str = "tok-5f3c9a-that-nobody-may-see";

/// Servers of the fixture with these faults, in a file.
struct Servers {
    mark: String,
    folder: Folder,
}

impl Servers {
    fn new(faults: &[&str]) -> Self {
        let (mark, folder) = (mark(), Folder::new());
        fs::write(folder.path("servers"), config(&mark, faults, &json!({}))).expect("a file");
        Self { mark, folder }
    }

    fn path(&self) -> String {
        self.folder.name("servers")
    }

    /// A conversation whose engine makes one call.
    fn calling(&self, tool: &str, args: &[&str]) -> Server {
        let script = script(&self.folder, tool);
        let servers = self.path();
        let own = ["--mcp-config", &servers, "--echo-script", &script];
        echo(&[&own[..], args].concat()).start()
    }

    /// What the servers were sent.
    fn sent(&self) -> String {
        fs::read_to_string(log(&self.mark)).unwrap_or_default()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        fs::remove_file(log(&self.mark)).ok();
        if !std::thread::panicking() {
            assert_gone(&self.mark);
        }
    }
}

/// The script of an engine that calls `tool` once.
fn script(folder: &Folder, tool: &str) -> String {
    let call = json!({ "tools": [{ "name": tool, "arguments": { "text": "error" } }] });
    let lines = [call, json!({ "text": "Done." })].map(|line| line.to_string());
    fs::write(folder.path("script"), lines.join("\n")).expect("a file");
    folder.name("script")
}

pub(crate) fn approve(id: &str, call: &str, decision: &str) -> String {
    json!({ "requestId": id, "approve": { "toolCallId": call, "decision": decision } }).to_string()
}

fn count(frames: &[Frame], event: &str) -> usize {
    frames.iter().filter(|frame| frame.is_event(event)).count()
}

#[test]
fn a_rule_for_one_server_allows_no_tool_of_another() {
    // The second server calls its tool as the rule calls that of the first.
    let servers = Servers::new(&["none", "spoof"]);
    let args = ["--allow", "none__act", "--extensions", "approvals"];
    let mut server = servers.calling("none__act", &args);
    server.send(submit("run", "go"));
    let asked = server.wait_event("ToolApprovalRequested");
    assert_eq!((asked.payload("server"), asked.payload("toolName")), ("spoof", "none__act"));
    server.send(approve("no", asked.payload("toolCallId"), "DENY"));
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    assert!(!servers.sent().contains("tools/call"), "{}", servers.sent());
    // The tool that the rule names runs without a question.
    let mut server = servers.calling("act", &args);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    assert_eq!(count(&server.finish().frames, "ToolApprovalRequested"), 0);
    assert!(servers.sent().contains("tools/call"));
}

#[test]
fn one_approval_is_one_call_whatever_the_server_answers() {
    let http = HttpServer::start();
    let folder = Folder::new();
    let (url, script) = (http.url("/mcp"), script(&folder, "lost"));
    let args = ["--mcp", &url, "--echo-script", &script, "--extensions", "approvals"];
    let mut server = echo(&args).start();
    server.send(submit("run", "go"));
    let asked = server.wait_event("ToolApprovalRequested");
    server.send(approve("yes", asked.payload("toolCallId"), "ALLOW_ONCE"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let result = frames.iter().find(|frame| frame.is_event("ChatToolResultReady"));
    let result = result.expect("a result").payload("result").to_owned();
    assert!(result.contains("nothing was done"), "{result}");
    assert_eq!((count(&frames, "ToolApprovalRequested"), http.count("tools/call")), (1, 1));
}

#[test]
fn the_token_of_a_header_reaches_neither_client_nor_log_nor_model() {
    let http = HttpServer::start();
    let folder = Folder::new();
    let server = |path: &str| {
        let headers = json!({ "Authorization": "Bearer ${TICKETS_TOKEN}" });
        json!({ "url": http.url(path), "headers": headers })
    };
    let both = json!({ "mcpServers": { "tickets": server("/mcp"), "old": server("/expired") } });
    fs::write(folder.path("servers"), both.to_string()).expect("a file");
    let provider = Provider::start(vec![calls(&[("c", "quoting", "{}")]), says("Done.")]);
    let servers = folder.name("servers");
    let args = [
        "--mcp-config",
        &servers,
        "--allow",
        "*",
        "--extensions",
        "tool-servers",
        "--log-level",
        "trace",
    ];
    // That neither frames nor the log have it is checked at the end.
    let mut server = openai(&provider, &args).secret("TICKETS_TOKEN", TOKEN).start();
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let gone = frames.iter().find(|frame| frame.payload("state") == "UNAVAILABLE");
    let reason = gone.expect("a server that refuses").payload("reason");
    assert!(reason.contains("[redacted] has expired"), "{reason}");
    let body = provider.wait_request(2).body.to_string();
    assert!(body.contains("token [redacted] has expired") && !body.contains(TOKEN), "{body}");
}

#[test]
fn the_model_is_sent_text_and_what_structured_content_has_beyond_it() {
    let servers = Servers::new(&["none"]);
    let made = calls(&[("a", "act", r#"{"text":"file"}"#), ("b", "act", r#"{"text":"more"}"#)]);
    let provider = Provider::start(vec![made, says("Done.")]);
    let path = servers.path();
    let mut server = openai(&provider, &["--mcp-config", &path, "--allow", "*"]).start();
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    let body = provider.wait_request(2).body;
    let messages = body["messages"].as_array().expect("messages");
    let results: Vec<&Value> =
        messages.iter().filter(|it| it["role"] == "tool").map(|it| &it["content"]).collect();
    assert_eq!(results, [&json!(FILE), &json!("It is warm.\n{\"celsius\":23.5}")]);
}

/// The approvals in the snapshot of a request: id, server and tool.
fn approvals<'a>(frames: &'a [Frame], request: &str) -> Vec<[&'a str; 3]> {
    let mut snapshots = frames.iter().filter(|frame| frame.is_snapshot() && frame.id() == request);
    let entities = snapshots.next().expect("a snapshot").0["snapshot"]["entities"].as_array();
    let of_kind = |entity: &&Value| entity["kind"] == "ToolApproval";
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let entities = entities.into_iter().flatten().filter(of_kind);
    let shown = entities.map(|it| {
        [text(&it["id"]), text(&it["payload"]["server"]), text(&it["payload"]["toolName"])]
    });
    shown.collect()
}

#[test]
fn a_snapshot_shows_which_call_waits_for_approval() {
    let servers = Servers::new(&["none"]);
    let mut server = servers.calling("act", &["--extensions", "approvals,history"]);
    server.send(submit("run", "go"));
    let asked = server.wait_event("ToolApprovalRequested");
    let before = asked.ordinal().expect("an ordinal") - 1;
    let part =
        |id: &str, members: Value| json!({ "requestId": id, "snapshot": members }).to_string();
    server.send(snapshot("whole"));
    server.send(part("page", json!({ "limit": 1 })));
    server.send(part("since", json!({ "sinceOrdinal": before.to_string() })));
    server.send(part("later", json!({ "sinceOrdinal": (before + 1).to_string() })));
    server.send(part("earlier", json!({ "beforeOrdinal": before.to_string() })));
    assert_eq!(server.wait_done("earlier"), "ok");
    server.send(approve("yes", asked.payload("toolCallId"), "ALLOW_ONCE"));
    server.send(snapshot("decided"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let waiting = [["call_1:approval", "none", "act"]];
    for request in ["whole", "page", "since"] {
        assert_eq!(approvals(&frames, request), waiting, "{request}");
    }
    for request in ["later", "earlier", "decided", "run"] {
        assert_eq!(approvals(&frames, request), [[""; 3]; 0], "{request}");
    }
}
