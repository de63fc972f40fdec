//! Clients of a node that others wrote, or that were generated from the published files.

use crate::clients::{SOURCES, installed, python_with_protobuf};
use crate::examples::CONVERSATION;
use crate::serve_node::Node;
use crate::server::Folder;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const DOCUMENT: &str = include_str!("../../docs/fleet.md");
const PYTHON_CLIENT: &str = include_str!("../clients/python/fleet.py");

/// What both generated clients print.
const REST: &str = "\
watched: Turn 1. You said: What is a duologue?
turns: 2
";

/// A node that stores what is said.
fn node(folder: &Folder) -> Node {
    Node::start(&["--store", &folder.name("store.db")])
}

/// What a client prints that is given `input`.
#[track_caller]
fn run(command: &mut Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    client.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = client.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_client_generated_for_python_holds_a_conversation() {
    needs!(PythonProtobuf);
    let (_, quoted) = PYTHON_CLIENT.split_once("# ----\n").expect("a line of dashes");
    let (quoted, _) = quoted.split_once("# ----\n").expect("another one");
    assert!(DOCUMENT.contains(quoted), "docs/fleet.md quotes another client");
    let folder = Folder::new();
    let node = node(&folder);
    let mut command = Command::new(python_with_protobuf());
    command.arg(format!("{SOURCES}/python/fleet.py"));
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/proto"), &node.address, "s"]);
    assert_eq!(run(&mut command, ""), format!("{CONVERSATION}{REST}gone: True\n"));
}

#[test]
fn a_client_generated_for_go_holds_a_conversation() {
    needs!(FleetClients);
    let folder = Folder::new();
    let node = node(&folder);
    let mut command = Command::new(installed("fleet/bin/fleet"));
    command.args([&node.address, "s"]);
    assert_eq!(run(&mut command, ""), format!("{CONVERSATION}{REST}gone: true\n"));
}

/// `grpcurl`, with the services that the node describes.
fn grpcurl(node: &Node, method: &str, messages: &[Value]) -> Vec<Value> {
    let mut command = Command::new(installed("fleet/bin/grpcurl"));
    command.args(["-plaintext", "-format", "json", "-d", "@", &node.address, method]);
    let messages: String = messages.iter().map(Value::to_string).collect();
    let printed = run(&mut command, &messages);
    let read = serde_json::Deserializer::from_str(&printed).into_iter();
    read.map(|value| value.expect("JSON")).collect()
}

#[test]
fn grpcurl_holds_a_conversation() {
    needs!(FleetClients);
    let folder = Folder::new();
    let node = node(&folder);
    let frames = grpcurl(
        &node,
        "duologue.fleet.v1.Fleet/Converse",
        &[
            json!({ "attach": { "session_id": "s" } }),
            json!({ "request": { "request_id": "r", "submit": { "prompt": "hello" } } }),
        ],
    );
    // It knows each message in a frame by what the node describes.
    let is_finished = |frame: &&Value| frame["uiEvent"]["name"] == "ChatTextSegmentFinished";
    let finished = frames.iter().find(is_finished).expect("an answer");
    assert_eq!(finished["uiEvent"]["payload"]["text"], "Turn 1. You said: hello");
    assert_eq!(frames.last().expect("a frame")["done"]["status"], "ok");
    let listed = grpcurl(&node, "duologue.fleet.v1.Fleet/List", &[json!({})]);
    assert_eq!(listed[0]["sessions"][0]["sessionId"], "s");
    let health = grpcurl(&node, "grpc.health.v1.Health/Check", &[json!({})]);
    assert_eq!(health, [json!({ "status": "SERVING" })]);
}

#[test]
fn ghz_has_hundreds_of_conversations() {
    needs!(FleetClients);
    const CALLS: usize = 300;
    let node = Node::start(&[]);
    let attach = json!({ "attach": { "session_id": "s{{.RequestNumber}}" } });
    let submit = json!({ "request": { "request_id": "r", "submit": { "prompt": "hello" } } });
    let mut command = Command::new(installed("fleet/bin/ghz"));
    command.args(["--insecure", "--call", "duologue.fleet.v1.Fleet/Converse"]);
    command.args(["--concurrency", "50", "--total", &CALLS.to_string(), "--format", "json"]);
    command.args(["--data", &json!([attach, submit]).to_string(), &node.address]);
    let report: Value = serde_json::from_str(&run(&mut command, "")).expect("a report");
    assert_eq!(report["statusCodeDistribution"], json!({ "OK": CALLS }), "{report}");
    assert_eq!(node.info().conversations, CALLS as u64);
}
