//! Progress of tool calls, as servers report it.

use crate::frames::{Frame, cancel, submit};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::server::{Folder, Server, echo};
use serde_json::{Value, json};
use std::fs;

/// A conversation whose engine calls `act` of the fixture once, with this text.
struct Scene {
    mark: String,
    folder: Folder,
}

impl Scene {
    fn new(text: &str) -> Self {
        let (mark, folder) = (mark(), Folder::new());
        fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
        let call = json!({ "tools": [{ "name": "act", "arguments": { "text": text } }] });
        let script = format!("{call}\n{}\n", json!({ "text": "Done." }));
        fs::write(folder.path("script"), script).expect("a file");
        Self { mark, folder }
    }

    fn start(&self, args: &[&str]) -> Server {
        let (servers, script) = (self.folder.name("servers"), self.folder.name("script"));
        let own = ["--mcp-config", &servers, "--echo-script", &script, "--allow", "*"];
        echo(&[&own[..], args].concat()).start()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_gone(&self.mark);
        }
    }
}

fn progress(frames: &[Frame]) -> Vec<&Value> {
    let of = frames.iter().filter(|frame| frame.is_event("ToolCallProgressed"));
    of.map(|frame| &frame.0["uiEvent"]["payload"]).collect()
}

#[test]
fn a_client_that_asks_for_it_is_told_how_far_a_call_is() {
    let scene = Scene::new("progress-for-ever");
    let mut server = scene.start(&["--extensions", "tool-progress"]);
    server.send(submit("run", "go"));
    server.wait_event("ToolCallProgressed");
    server.wait_event("ToolCallProgressed");
    server.send(cancel("c"));
    assert_eq!(server.wait_done("run"), "stopped");
    let frames = server.finish().frames;
    let [first, second, ..] = progress(&frames)[..] else { panic!("{frames:?}") };
    let of = |payload: &Value, member: &str| payload[member].clone();
    assert_eq!(of(first, "toolName"), "act");
    assert_eq!((of(first, "total"), of(first, "message")), (json!(10), json!("at it \u{1b}[31m")));
    assert!(of(first, "progress").as_f64() < of(second, "progress").as_f64(), "{first} {second}");
    assert_eq!(of(first, "toolCallId"), first["correlation"]["toolCallId"]);
}

#[test]
fn a_client_that_does_not_ask_sees_nothing_of_it() {
    let scene = Scene::new("progress");
    let mut server = scene.start(&[]);
    assert_eq!(server.turn("run", "go"), "ok");
    let frames = server.finish().frames;
    assert_eq!(progress(&frames), [&Value::Null; 0]);
    let ordinals: Vec<_> = frames.iter().filter_map(Frame::ordinal).collect();
    assert!(ordinals.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{ordinals:?}");
}

/// Twenty thousand reports are a few events, however fast they come.
#[test]
fn a_flood_of_reports_costs_nothing() {
    let scene = Scene::new("progress-flood");
    let mut server = scene.start(&["--extensions", "tool-progress"]);
    assert_eq!(server.turn("run", "go"), "ok");
    let frames = server.finish().frames;
    let result = frames.iter().find(|frame| frame.is_event("ChatToolResultReady"));
    assert_eq!(result.expect("a result").payload("result"), "flooded");
    let count = progress(&frames).len();
    assert!(count < 500, "{count} events");
}

/// It is stored like all events, and gone once the turn has ended.
#[test]
fn a_stored_conversation_goes_on_after_it() {
    let scene = Scene::new("progress");
    let store = scene.folder.name("chat.db");
    let args = ["--extensions", "tool-progress", "--store", &store, "--session", "s"];
    let mut server = scene.start(&args);
    assert_eq!(server.turn("run", "go"), "ok");
    server.finish();
    let mut server = scene.start(&args);
    assert_eq!(server.turn("again", "go on"), "ok");
    server.finish();
}
