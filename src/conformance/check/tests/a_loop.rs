//! A run with tools of a server and of the client, with approvals, steering and a withdrawn submit.

use super::sample::{
    PROMPT, STDIN, Stream, accepted, done, ended, entity, event, foreign, hello, ids_of, merged,
    prompt_of, started, state,
};
use crate::conformance::check::{Checker, Rule};
use serde_json::{Value, json};

const TOOLS: &str = "duologue.tools";
const CLIENT: &str = "pinocchio.chatapp.frontendtools";

/// The arguments of each call.
const INPUT: &str = "{\"z\":1,\"a\":[2]}";

/// A step of a call of a tool, in the first provider call.
fn call_of(id: &str, name: &str, more: Value) -> Value {
    let payload = json!({ "messageId": "chat-msg-1", "toolCallId": id, "toolName": name });
    let ids = ids_of(1, json!({ "toolCallId": id }));
    merged(merged(payload, ids), more)
}

/// The answers of the client have no ids.
fn of_client(more: Value) -> Value {
    let mut payload = call_of("b", "ask", more);
    payload.as_object_mut().expect("an object").shift_remove("correlation");
    payload
}

/// A run of two provider calls. The first one calls a tool that is allowed and one that the client
/// runs, and a third that is denied; then a prompt joins. A server comes before it and goes during
/// it, and a submit that waits is withdrawn.
pub(super) fn a_loop() -> Stream {
    let mut frames = before_the_run();
    frames.extend(first_call());
    frames.extend(tools());
    frames.extend(steering());
    frames.extend(second_call());
    frames.extend([
        of_run(33, "ChatRunFinished", ended(1, "finished")),
        state("r", 33, entities()),
        done("r", "ok"),
        done("q", "shutdown"),
    ]);
    Stream(frames)
}

fn of_run(ordinal: u64, name: &str, payload: Value) -> Value {
    event("r", ordinal, name, payload)
}

fn status(status: &str) -> Value {
    json!({ "status": status })
}

fn input() -> Value {
    json!({ "input": INPUT })
}

fn server(ordinal: u64, state: &str, tools: Value) -> Value {
    let payload = json!({ "server": "clock", "state": state, "tools": tools });
    foreign("", ordinal, (TOOLS, "ToolServerChanged"), payload)
}

fn before_the_run() -> Vec<Value> {
    let declared = json!({ "tools": [{
        "name": "ask", "mode": "TOOL_EXECUTION_MODE_FRONTEND_HUMAN", "available": true,
    }] });
    vec![
        hello(&STDIN),
        done("e", "ok"),
        server(1, "READY", json!(["clock"])),
        foreign("m", 2, (CLIENT, "FrontendToolManifestUpdated"), declared),
        done("m", "ok"),
    ]
}

/// The first provider call, which makes three tool calls.
fn first_call() -> Vec<Value> {
    let mut frames = vec![
        of_run(3, "ChatUserMessageAccepted", accepted(1)),
        of_run(4, "ChatRunStarted", started(1)),
        of_run(5, "ChatProviderCallStarted", ids_of(1, json!({}))),
    ];
    for (at, (id, name)) in (0..).zip([("a", "clock"), ("b", "ask"), ("c", "clock")]) {
        let begun = call_of(id, name, status("pending"));
        frames.push(of_run(6 + 2 * at, "ChatToolCallStarted", begun.clone()));
        frames.push(of_run(7 + 2 * at, "ChatToolCallRequested", merged(begun, input())));
    }
    let finished = merged(ids_of(1, json!({})), json!({ "finishClass": "tool_calls" }));
    frames.push(of_run(12, "ChatProviderCallFinished", finished));
    frames
}

/// The tools of the round: the client is asked about `a` and `c`, and runs `b`.
fn tools() -> Vec<Value> {
    let ours =
        |ordinal: u64, name: &str, payload: Value| foreign("r", ordinal, (TOOLS, name), payload);
    let theirs =
        |ordinal: u64, name: &str, payload: Value| foreign("r", ordinal, (CLIENT, name), payload);
    let approval = |decision: &str| json!({ "decision": decision });
    let of_server = |id: &str| merged(call_of(id, "clock", input()), json!({ "server": "clock" }));
    let executing = merged(status("executing"), json!({ "executing": true }));
    let executed = |id: &str, name: &str| call_of(id, name, merged(executing.clone(), input()));
    let asked = merged(
        of_client(status("pending")),
        json!({ "input": { "z": 1.0, "a": [2] }, "mode": "TOOL_EXECUTION_MODE_FRONTEND_HUMAN" }),
    );
    let result = |id: &str, name: &str, word: &str| {
        call_of(id, name, merged(status(word), json!({ "result": "noon" })))
    };
    let finished = |id: &str, name: &str| call_of(id, name, status("completed"));
    vec![
        ours(13, "ToolApprovalRequested", of_server("a")),
        of_run(14, "ChatToolExecutionStarted", executed("b", "ask")),
        theirs(15, "FrontendToolCallRequested", asked),
        ours(16, "ToolApprovalRequested", of_server("c")),
        ours(17, "ToolApprovalResolved", call_of("a", "clock", approval("ALLOW_ONCE"))),
        of_run(18, "ChatToolExecutionStarted", executed("a", "clock")),
        done("y", "ok"),
        ours(19, "ToolApprovalResolved", call_of("c", "clock", approval("DENY"))),
        of_run(20, "ChatToolResultReady", result("c", "clock", "error")),
        of_run(21, "ChatToolCallFinished", finished("c", "clock")),
        done("n", "ok"),
        theirs(22, "FrontendToolResultReceived", of_client(status("success"))),
        of_run(23, "ChatToolResultReady", result("b", "ask", "success")),
        of_run(24, "ChatToolCallFinished", finished("b", "ask")),
        done("t", "ok"),
        done("w", "ok"),
        done("v", "stopped"),
        server(25, "GONE", json!([])),
        of_run(26, "ChatToolResultReady", result("a", "clock", "success")),
        of_run(27, "ChatToolCallFinished", finished("a", "clock")),
    ]
}

/// A prompt joins the run.
fn steering() -> Vec<Value> {
    let mut joined = accepted(1);
    joined["messageId"] = "chat-msg-1-user-2".into();
    let steered = json!({ "messageId": "chat-msg-1-user-2", "targetRequestId": "r" });
    let steered = merged(steered, ids_of(1, json!({})));
    vec![
        of_run(28, "ChatUserMessageAccepted", joined),
        foreign("j", 28, ("duologue.session", "SteeringAccepted"), steered),
        done("j", "ok"),
    ]
}

/// The second provider call, which answers.
fn second_call() -> Vec<Value> {
    let text = json!({
        "messageId": "chat-msg-1:text:segment-1", "role": "assistant", "prompt": PROMPT,
    });
    let text = merged(text, ids_of(2, json!({ "segmentId": "segment-1" })));
    let begun = merged(text.clone(), json!({ "status": "streaming", "streaming": true }));
    let whole =
        merged(text, json!({ "status": "finished", "final": true, "finishReason": "stop" }));
    let last = json!({ "finishClass": "completed", "stopReason": "stop" });
    vec![
        of_run(29, "ChatProviderCallStarted", ids_of(2, json!({}))),
        of_run(30, "ChatTextSegmentStarted", begun),
        of_run(31, "ChatTextSegmentFinished", whole),
        of_run(32, "ChatProviderCallFinished", merged(ids_of(2, json!({})), last)),
    ]
}

/// All entities shown by [`a_loop`].
fn entities() -> Vec<Value> {
    let call = |id: &str, name: &str, ordinals: (u64, u64)| {
        let more = json!({ "status": "completed", "input": INPUT });
        entity(("ChatToolCall", "ToolCallEntity"), id, ordinals, call_of(id, name, more))
    };
    let result = |id: &str, name: &str, status: &str, ordinal: u64| {
        let payload = call_of(id, name, json!({ "status": status, "result": "noon" }));
        let kind = ("ChatToolResult", "ToolResultEntity");
        entity(kind, &format!("{id}:result"), (ordinal, ordinal), payload)
    };
    let message = ("ChatMessage", "ChatMessageEntity");
    let mut joined = merged(accepted(1), merged(ids_of(1, json!({})), json!({ "final": true })));
    joined["messageId"] = "chat-msg-1-user-2".into();
    let text = json!({
        "messageId": "chat-msg-1:text:segment-1", "role": "assistant", "prompt": PROMPT,
        "status": "finished", "final": true, "parentMessageId": "chat-msg-1", "segment": 1,
        "segmentType": "text",
    });
    let text = merged(text, ids_of(2, json!({ "segmentId": "segment-1" })));
    vec![
        prompt_of(1, 3),
        call("a", "clock", (6, 27)),
        call("b", "ask", (8, 24)),
        call("c", "clock", (10, 21)),
        result("c", "clock", "error", 20),
        result("b", "ask", "success", 23),
        result("a", "clock", "success", 26),
        entity(message, "chat-msg-1-user-2", (28, 28), joined),
        entity(message, "chat-msg-1:text:segment-1", (30, 31), text),
    ]
}

/// An approval is in a snapshot while its call waits for it, and is missed in none.
#[test]
fn an_approval_is_shown_while_its_call_waits() {
    let rules = |call: &str| {
        let stream = a_loop();
        let is_last_question = |frame: &Value| frame["uiEvent"]["ordinal"] == "16";
        let at = stream.0.iter().position(is_last_question).expect("it is there") + 1;
        let asked = merged(call_of(call, "clock", input()), json!({ "server": "clock" }));
        let kind = ("ToolApproval", "ToolApprovalRequested");
        let mut approval = entity(kind, &format!("{call}:approval"), (13, 13), asked);
        approval["payload"]["@type"] =
            "type.googleapis.com/duologue.tools.v1.ToolApprovalRequested".into();
        let shown =
            stream.inserted(at, done("s", "ok")).inserted(at, state("s", 16, vec![approval]));
        shown.check().into_iter().map(|(_, rule)| rule).collect::<Vec<_>>()
    };
    for waits in ["a", "c"] {
        assert_eq!(rules(waits), [], "{waits}");
    }
    for other in ["b", "d"] {
        assert_eq!(rules(other), [Rule::SnapshotEntity], "{other}");
    }
}

/// A debug file leaves out extensions that nobody named.
#[test]
fn a_prompt_that_joins_needs_its_event_unless_extensions_are_left_out() {
    let joining = |words: &[&str]| {
        let mut frames = vec![hello(words), of_run(1, "ChatUserMessageAccepted", accepted(1))];
        frames.push(of_run(2, "ChatRunStarted", started(1)));
        let second = steering().into_iter().filter(|frame| frame["requestId"] == "r");
        frames.extend(second);
        let mut checker = Checker::new();
        let lines = Stream(frames).lines();
        let mut found: Vec<_> = lines.iter().flat_map(|line| checker.line(line)).collect();
        let ended = of_run(29, "ChatRunFinished", ended(1, "finished")).to_string();
        found.extend(checker.line(ended.as_bytes()));
        let found: Vec<_> = found.into_iter().map(|violation| violation.rule).collect();
        (found, checker.summary().notes.join(" ").contains("SteeringAccepted"))
    };
    let announced = STDIN.into_iter().chain(["steer"]).collect::<Vec<_>>();
    assert_eq!(joining(&announced), (vec![Rule::EventOrder], false));
    assert_eq!(joining(&STDIN), (vec![], true));
}
