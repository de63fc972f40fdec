//! Resources of MCP servers that go with a prompt.

use crate::chat_lines::piped;
use crate::frames::{Frame, cancel, errors, finished_text, shutdown, snapshot, submit};
use crate::mcp_fixture_docs::NOTE;
use crate::mcp_servers::{assert_gone, config, log, mark};
use crate::once::{Ended, run};
use crate::process::eventually;
use crate::provider::{Provider, says};
use crate::server::{Folder, Server, echo, openai};
use serde_json::{Value, json};
use std::fs;

/// The fixture as a server named `docs`.
struct Docs {
    mark: String,
    folder: Folder,
}

impl Docs {
    fn new() -> Self {
        let (mark, folder) = (mark(), Folder::new());
        fs::write(folder.path("servers"), config(&mark, &["docs", "none"], &json!({})))
            .expect("a file");
        Self { mark, folder }
    }

    fn start(&self, args: &[&str]) -> Server {
        let servers = self.folder.name("servers");
        echo(&[&["--mcp-config", &servers], args].concat()).start()
    }

    /// `duologue exec` with these words.
    fn exec(&self, words: &[&str]) -> Ended {
        let servers = ["exec", "--engine", "echo", "--mcp-config", "servers"];
        run(&self.folder, &[&servers[..], words].concat())
    }

    /// What the servers were sent.
    fn sent(&self) -> String {
        fs::read_to_string(log(&self.mark)).unwrap_or_default()
    }
}

impl Drop for Docs {
    fn drop(&mut self) {
        fs::remove_file(log(&self.mark)).ok();
        if !std::thread::panicking() {
            assert_gone(&self.mark);
        }
    }
}

/// A submit with these resources, each of a server.
fn with(id: &str, resources: &[(&str, &str)]) -> String {
    let resource = |(server, uri): &(&str, &str)| json!({ "server": server, "uri": uri });
    let resources: Vec<Value> = resources.iter().map(resource).collect();
    let submit = json!({ "prompt": "what?", "resources": resources });
    json!({ "requestId": id, "submit": submit }).to_string()
}

/// The message of the error of a request.
fn why<'f>(frames: &'f [Frame], id: &str) -> &'f str {
    let is_it = |frame: &&Frame| frame.id() == id && frame.error().is_some();
    frames.iter().find(is_it).expect("an error").text("/error/message")
}

#[test]
fn their_contents_go_with_the_prompt() {
    let docs = Docs::new();
    let mut server = docs.start(&[]);
    server.send(with(
        "r",
        &[("docs", "note://1"), ("docs", "note://image"), ("docs", "note://both")],
    ));
    assert_eq!(server.wait_done("r"), "ok");
    let frames = server.finish().frames;
    let accepted = frames.iter().find(|frame| frame.is_event("ChatUserMessageAccepted"));
    let attached = &accepted.expect("the prompt").0["uiEvent"]["payload"]["attachments"];
    let shown = |at: usize| {
        let it = &attached[at];
        json!([it["attachmentId"], it["filename"], it["mediaType"], it["kind"], it["sizeBytes"]])
    };
    let bytes = NOTE.len().to_string();
    assert_eq!(shown(0), json!(["resource-1", "note://1", "text/plain", "file", bytes]));
    assert_eq!(shown(1), json!(["resource-2", "note://image", "image/png", "image", "33"]));
    assert_eq!(shown(2), json!(["resource-3", "note://a", "text/plain", "file", "1"]));
    assert_eq!(shown(3), json!(["resource-3-2", "note://b", "text/plain", "file", "1"]));
    assert!(finished_text(&frames, "r").contains("Attached: note://1 (text/plain,"), "{frames:?}");
}

#[test]
fn the_model_is_sent_their_text() {
    let docs = Docs::new();
    let provider = Provider::start(vec![says("I see.")]);
    let servers = docs.folder.name("servers");
    let mut server = openai(&provider, &["--mcp-config", &servers]).start();
    server.send(with("r", &[("docs", "note://1")]));
    assert_eq!(server.wait_done("r"), "ok");
    server.finish();
    let sent = provider.wait_request(1).body["messages"].to_string();
    assert!(sent.contains("<file name=\\\"note://1\\\">\\nThe first note."), "{sent}");
}

#[test]
fn what_can_not_be_read_is_named_with_its_server() {
    let docs = Docs::new();
    let mut server = docs.start(&[]);
    let cases = [
        ("other", "note://1", "there is no MCP server `other`; there are: docs, none"),
        ("none", "note://1", "the MCP server `none`: it has no resources"),
        (
            "docs",
            "note://unknown",
            "`docs`: the server answered with error -32002: Resource not found",
        ),
        ("docs", "note://empty", "the MCP server `docs`: the resource has no content"),
        (
            "docs",
            "note://large",
            "`docs`: the server answered with error -32000: the answer is longer than",
        ),
        (
            "docs",
            "note://crash",
            "`docs`: the server ended before it answered: it ended with status 6",
        ),
    ];
    for (at, (name, uri, _)) in cases.iter().enumerate() {
        server.send(with(&at.to_string(), &[("docs", "note://1"), (name, uri)]));
        assert_eq!(server.wait_done(&at.to_string()), "failed");
    }
    server.send(with("half", &[("docs", "")]));
    assert_eq!(server.wait_done("half"), "failed");
    assert_eq!(server.turn("last", "hello"), "ok");
    let frames = server.finish().frames;
    for (at, (name, uri, expected)) in cases.iter().enumerate() {
        let id = at.to_string();
        let message = why(&frames, &id);
        assert!(message.contains(&format!("resource {name}:{uri}: ")), "{message}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(errors(&frames, &id), ["invalid_attachment"]);
    }
    assert!(why(&frames, "half").contains("resource 1: set both its server and its uri"));
    assert!(finished_text(&frames, "last").starts_with("Turn 1. "));
}

#[test]
fn a_slow_server_delays_its_own_prompt_alone_and_a_cancel_withdraws_it() {
    let docs = Docs::new();
    let mut server = docs.start(&[]);
    server.send(with("slow", &[("docs", "note://slow")]));
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    assert_eq!(server.turn("other", "hello"), "ok");
    eventually("it is asked for", || docs.sent().contains("note://slow").then_some(()));
    let target = json!({ "requestId": "c", "cancel": { "targetRequestId": "slow" } });
    server.send(target.to_string());
    assert_eq!(server.wait_done("c"), "ok");
    assert_eq!(server.wait_done("slow"), "stopped");
    eventually("it is cancelled", || docs.sent().contains("notifications/cancelled").then_some(()));
    server.send(with("again", &[("docs", "note://1")]));
    assert_eq!(server.wait_done("again"), "ok");
    let frames = server.finish().frames;
    assert!(frames.iter().all(|frame| frame.error().is_none()), "{frames:?}");
    assert!(finished_text(&frames, "again").starts_with("Turn 2. "));
}

#[test]
fn a_run_goes_on_while_a_resource_is_read() {
    let docs = Docs::new();
    let mut server = docs.start(&["--echo-delay-ms", "3600000"]);
    server.send(submit("run", "hello"));
    server.wait_event("ChatProviderCallStarted");
    server.send(with("slow", &[("docs", "note://slow")]));
    server.send(cancel("c"));
    assert_eq!(server.wait_done("run"), "stopped");
    server.send(shutdown("end"));
    assert_eq!(server.wait_done("slow"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "slow"), ["shutting_down"]);
}

/// More than read files at the same time, and none of them names a file.
#[test]
fn many_prompts_may_name_resources() {
    let docs = Docs::new();
    let mut server = docs.start(&["--on-busy", "queue"]);
    let ids: Vec<_> = (0..12).map(|number| format!("r{number}")).collect();
    let lines: Vec<_> = ids.iter().map(|id| with(id, &[("docs", "note://1")])).collect();
    server.send(lines.join("\n"));
    for id in &ids {
        assert_eq!(server.wait_done(id), "ok", "{id}");
    }
    server.finish();
}

#[test]
fn a_client_that_names_none_sees_no_difference() {
    let docs = Docs::new();
    let mut with_servers = docs.start(&[]);
    assert_eq!(with_servers.turn("r", "hello"), "ok");
    let with_servers: Vec<_> = with_servers.finish().frames.iter().map(kind).collect();
    let mut without = echo(&[]).start();
    assert_eq!(without.turn("r", "hello"), "ok");
    let without: Vec<_> = without.finish().frames.iter().map(kind).collect();
    assert_eq!(with_servers, without);
    assert!(!docs.sent().contains("resources/"), "{}", docs.sent());
}

fn kind(frame: &Frame) -> String {
    let members = frame.0.as_object().expect("an object").keys();
    members.cloned().chain(frame.event().map(str::to_owned)).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_option_attaches_one_to_a_single_prompt() {
    let docs = Docs::new();
    let ended = docs.exec(&["--resource", "docs:note://1", "what?"]);
    assert!(ended.stdout.contains("Attached: note://1 (text/plain,"), "{ended:?}");
    assert_eq!(ended.status, 0);
    let ended = docs.exec(&["--resource", "docs:note://unknown", "what?"]);
    assert!(ended.stderr.contains("Resource not found"), "{ended:?}");
    assert_eq!((ended.status, ended.stdout.as_str()), (1, ""));
    let ended = docs.exec(&["--resource", "nosuch:note://1", "what?"]);
    let why =
        "--resource nosuch:note://1: there is no MCP server \"nosuch\"; there are: docs, none";
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert_eq!(ended.status, 2);
    let ended = docs.exec(&["--resource", "docs", "what?"]);
    assert!(ended.stderr.contains("as in --resource docs:file:///notes.md"), "{ended:?}");
    assert_eq!(ended.status, 2);
    let ended = docs.exec(&["--resource", "docs:note://half", "what?"]);
    assert!(ended.stdout.contains("Attached: note://b (text/plain,"), "{ended:?}");
    let ended = docs.exec(&["--resource", "docs:note://1", "--print-prompt", "what?"]);
    assert!(ended.stdout.contains("docs:note://1 (a resource that its server sends)"), "{ended:?}");
}

/// As of an image with its tag.
#[test]
fn the_name_of_a_server_may_have_a_colon() {
    let docs = Docs::new();
    let file = fs::read_to_string(docs.folder.path("servers")).expect("a file");
    let mut file: Value = serde_json::from_str(&file).expect("JSON");
    file["mcpServers"] = json!({"docs:old": file["mcpServers"]["docs"].take()});
    fs::write(docs.folder.path("servers"), file.to_string()).expect("a file");
    let ended = docs.exec(&["--resource", "docs:old:note://1", "what?"]);
    assert!(ended.stdout.contains("Attached: note://1 (text/plain,"), "{ended:?}");
    let options = ["--mcp-config", "servers", "--resource", "docs:old:note://1", "what?"];
    let ended = piped(&docs.folder, &options, "");
    assert!(ended.stdout.to_lowercase().contains("attached: note://1"), "{ended:?}");
}
