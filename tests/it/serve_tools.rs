//! Tools of a node: when its servers start, and what becomes of calls that a client would have to answer which has left.

use crate::client_tools::{calls, declare, result};
use crate::frames::{Frame, errors, snapshot, submit};
use crate::mcp_guarantees::approve;
use crate::mcp_servers::{config, log, mark};
use crate::process::{DEADLINE, eventually};
use crate::provider::{Provider, Step, says};
use crate::serve_node::{Node, Talk, attach, http, wait, with_provider};
use crate::server::Folder;
use duologue::protocol::any::{Kind, Value, read_message};
use duologue::protocol::proto::fleet::Attach;
use duologue::protocol::proto::rpc::RpcRequestLine;
use duologue::protocol::proto::rpc::rpc_request_line::Request as Member;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// A server of the fixture, in a file.
struct Servers {
    mark: String,
    folder: Folder,
}

impl Servers {
    fn new() -> Self {
        let (mark, folder) = (mark(), Folder::new());
        fs::write(folder.path("servers"), config(&mark, &["none"], &json!({}))).expect("a file");
        Self { mark, folder }
    }

    /// Options of a node that has it: a run waits for it, however slow the machine is.
    fn options(&self) -> [String; 4] {
        let wait_ms = DEADLINE.as_millis().to_string();
        [
            "--mcp-config".to_owned(),
            self.folder.name("servers"),
            "--mcp-wait-ms".to_owned(),
            wait_ms,
        ]
    }

    /// How many of its processes have begun.
    fn started(&self) -> usize {
        let sent = fs::read_to_string(log(&self.mark)).unwrap_or_default();
        sent.lines().filter(|line| line.contains(r#""initialize""#)).count()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        fs::remove_file(log(&self.mark)).ok();
    }
}

/// An answer that calls the tool of the fixture.
fn calls_echo() -> Vec<Step> {
    calls(&[("c", "echo", r#"{"text":"hi"}"#)])
}

fn with_approvals(node: &Node, session: &str) -> Talk {
    let extensions = vec!["approvals".to_owned()];
    node.try_attach(Attach { extensions, ..attach(session) }).expect("it is attached")
}

/// The result of the only call of a tool.
fn tool_result(frames: &[Frame]) -> String {
    let ready = frames.iter().filter(|frame| frame.is_event("ChatToolResultReady"));
    let results: Vec<_> = ready.map(|frame| frame.payload("result").to_owned()).collect();
    let [result] = &results[..] else { panic!("one result: {results:?}") };
    result.clone()
}

/// Ends the node, and with it its tool servers.
fn end(mut node: Node) {
    node.server.signal(Signal::TERM);
    node.server.wait_end();
}

#[test]
fn a_conversation_that_is_only_watched_starts_no_tool_server() {
    let servers = Servers::new();
    let options = servers.options();
    let node = Node::start(&options.each_ref().map(String::as_str));
    let mut watched: Vec<_> = (0..4).map(|it| node.attach(&format!("watched{it}"))).collect();
    for talk in &mut watched {
        talk.send(snapshot("q"));
        assert_eq!(talk.wait_done("q"), "ok");
    }
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    // The run has waited for its server.
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    assert_eq!(servers.started(), 1);
    end(node);
}

#[test]
fn a_call_is_refused_where_nobody_who_may_decide_is_attached_any_more() {
    let servers = Servers::new();
    let script = vec![calls_echo(), says("one"), calls_echo(), says("two")];
    let provider = Provider::start(script);
    let options = servers.options();
    let node = with_provider(&provider, &options.each_ref().map(String::as_str));
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let mut gone = with_approvals(&node, "s");
    gone.send(snapshot("q"));
    assert_eq!(gone.wait_done("q"), "ok");
    drop(gone);
    eventually("it has left", || (node.info().clients == 1).then_some(()));
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    let frames = talk.frames();
    let of_second: Vec<_> = frames.into_iter().filter(|it| it.id() == "r2").collect();
    let result = tool_result(&of_second);
    assert!(result.contains("no client that can answer is attached"), "{result}");
    end(node);
}

#[test]
fn a_call_for_a_client_that_has_left_ends_without_it() {
    let call = calls(&[("c", "get_time", "{}")]);
    let provider = Provider::start(vec![call, says("I don't know.")]);
    let node = with_provider(&provider, &[]);
    let url = format!("http://{}/v1/sessions/s/requests", node.address);
    let declared = wait(async {
        let sent = http().post(url).body(declare("tools")).send().await.expect("an answer");
        sent.text().await.expect("a body")
    });
    assert!(declared.contains(r#""done""#), "{declared}");
    let mut talk = node.attach("s");
    talk.send(submit("r", "What time is it?"));
    assert_eq!(talk.wait_done("r"), "ok");
    let result = tool_result(&talk.frames());
    assert!(result.contains("no client that can answer is attached"), "{result}");
}

/// It has as long as a run without clients, and then the others have waited enough.
#[test]
fn a_client_that_could_decide_may_come_back_for_a_while() {
    let servers = Servers::new();
    let provider = Provider::start(vec![calls_echo(), says("It was not allowed.")]);
    let options = servers.options();
    let options = options.each_ref().map(String::as_str);
    let node = with_provider(&provider, &[&options[..], &["--detached-ms", "1"]].concat());
    let mut talk = node.attach("s");
    let mut deciding = with_approvals(&node, "s");
    deciding.send(submit("r", "hello"));
    deciding.wait_event("ToolApprovalRequested");
    drop(deciding);
    assert_eq!(talk.wait_done("r"), "ok");
    let result = tool_result(&talk.frames());
    assert!(result.contains("no client that can answer is attached"), "{result}");
    end(node);
}

/// A browser loses its stream before the model calls the tool, and comes back. The prompt came in another way.
#[test]
fn a_client_that_left_before_the_call_may_come_back_for_it() {
    let servers = Servers::new();
    let script = vec![[vec![Step::Gate], calls_echo()].concat(), says("It was allowed.")];
    let provider = Provider::start(script);
    let options = servers.options();
    let node = with_provider(&provider, &options.each_ref().map(String::as_str));
    let watching = with_approvals(&node, "s");
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    provider.wait_request(1);
    drop(watching);
    eventually("it has left", || (node.info().clients == 1).then_some(()));
    provider.open_gate();
    talk.wait_event("ChatToolCallRequested");
    talk.send(snapshot("q"));
    assert_eq!(talk.wait_done("q"), "ok");
    let extensions = vec!["approvals".to_owned()];
    let again = Attach { extensions, since_ordinal: Some(0), ..attach("s") };
    let mut deciding = node.try_attach(again).expect("it is attached");
    let asked = deciding.wait_event("ToolApprovalRequested");
    deciding.send(approve("yes", asked.payload("toolCallId"), "ALLOW_ONCE"));
    assert_eq!(deciding.wait_done("yes"), "ok", "it still waits");
    assert_eq!(talk.wait_done("r"), "ok");
    let result = tool_result(&talk.frames());
    assert!(!result.contains("no client that can answer is attached"), "{result}");
    end(node);
}

/// A client that knows nothing of compactions waits for nobody who has left.
#[test]
fn a_compaction_that_nobody_who_is_attached_can_decide_about_is_declined() {
    let counted = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((110, 12))), Step::Done]
    };
    let provider = Provider::start(vec![counted("one"), counted("two")]);
    let node = with_provider(&provider, &["--compact", "ask", "--context-tokens", "150"]);
    let extensions = vec!["compaction".to_owned()];
    let deciding = Attach { extensions, ..attach("s") };
    let mut gone = node.try_attach(deciding).expect("it is attached");
    let long = "more and ".repeat(10);
    gone.send(submit("r", &long));
    assert_eq!(gone.wait_done("r"), "ok");
    let mut talk = node.attach("s");
    drop(gone);
    eventually("it has left", || (node.info().clients == 1).then_some(()));
    talk.send(submit("r2", &long));
    assert_eq!(talk.wait_done("r2"), "ok");
    assert_eq!(provider.requests(), 2, "there is no summary");
    end(node);
}

/// Protobuf's binary form has numbers that JSON does not have.
#[test]
fn a_result_that_has_no_json_form_is_refused_and_its_call_goes_on_waiting() {
    let call = calls(&[("c", "get_time", "{}")]);
    let provider = Provider::start(vec![call, says("It is noon.")]);
    let node = with_provider(&provider, &[]);
    let mut talk = node.attach("s");
    talk.send(declare("tools"));
    assert_eq!(talk.wait_done("tools"), "ok");
    talk.send(submit("r", "What time is it?"));
    talk.wait_event("FrontendToolCallRequested");
    for (id, number) in [("nan", f64::NAN), ("infinity", f64::INFINITY)] {
        let line = result(id, "c", json!({}));
        let mut line: RpcRequestLine = read_message(&line).expect("a request");
        let Some(Member::ToolResult(it)) = &mut line.request else { panic!("no result") };
        let fields = &mut it.result.as_mut().expect("a result").fields;
        fields.insert("time".to_owned(), Value { kind: Some(Kind::Number(number)) });
        talk.send_message(line);
        assert_eq!(talk.wait_done(id), "failed");
    }
    talk.send(result("good", "c", json!({ "time": "12:00" })));
    assert_eq!(talk.wait_done("r"), "ok");
    let frames = talk.frames();
    for id in ["nan", "infinity"] {
        assert_eq!(errors(&frames, id), ["invalid_request_json"], "{id}");
    }
    assert_eq!(tool_result(&frames), r#"{"time":"12:00"}"#);
    end(node);
}
