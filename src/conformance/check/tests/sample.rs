//! Correct streams, frame by frame, to be modified before they are checked.

use super::super::{Checker, Rule};
use serde_json::{Value, json};

pub(super) const STDIN: [&str; 7] =
    ["ui-events", "snapshot", "done", "stdin-rpc", "single-session", "multi-turn", "cancel"];

/// The prompt of a run.
pub(super) const PROMPT: &str = "hi";

/// The frames of a stream.
#[derive(Clone)]
pub(super) struct Stream(pub(super) Vec<Value>);

impl Stream {
    pub(super) fn lines(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|frame| frame.to_string().into_bytes()).collect()
    }

    pub(super) fn check(&self) -> Vec<(u64, Rule)> {
        check_lines(&self.lines(), None)
    }

    /// Changes the value at `pointer` of one frame.
    pub(super) fn with(mut self, frame: usize, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = self.0[frame].pointer_mut(parent).expect("it is there");
        parent[key] = value;
        self
    }

    pub(super) fn without(mut self, frame: usize) -> Self {
        self.0.remove(frame);
        self
    }

    pub(super) fn inserted(mut self, before: usize, frame: Value) -> Self {
        self.0.insert(before, frame);
        self
    }

    pub(super) fn swapped(mut self, one: usize, other: usize) -> Self {
        self.0.swap(one, other);
        self
    }

    pub(super) fn and(mut self, frames: impl IntoIterator<Item = Value>) -> Self {
        self.0.extend(frames);
        self
    }
}

pub(super) fn check_lines(lines: &[Vec<u8>], tail: Option<&[u8]>) -> Vec<(u64, Rule)> {
    let mut checker = Checker::new();
    let mut found = Vec::new();
    for line in lines {
        found.extend(checker.line(line));
    }
    found.extend(checker.finish(tail));
    assert_eq!(checker.summary().violations, found.len() as u64);
    assert!(found.iter().all(|violation| !violation.message.is_empty()));
    found.into_iter().map(|violation| (violation.line, violation.rule)).collect()
}

pub(super) fn hello(words: &[&str]) -> Value {
    let hello = json!({
        "protocol": "pinocchio.chatapp.rpc.v1", "server": "duologue", "capabilities": words,
    });
    json!({ "version": 1, "sessionId": "s", "hello": hello })
}

pub(super) fn frame(id: &str, name: &str, body: Value) -> Value {
    let mut frame = json!({ "version": 1, "sessionId": "s" });
    if !id.is_empty() {
        frame["requestId"] = id.into();
    }
    frame[name] = body;
    frame
}

pub(super) fn event(id: &str, ordinal: u64, name: &str, mut payload: Value) -> Value {
    payload["@type"] = format!("type.googleapis.com/pinocchio.chatapp.v1.{name}").into();
    let event = json!({ "ordinal": ordinal.to_string(), "name": name, "payload": payload });
    frame(id, "uiEvent", event)
}

pub(super) fn done(id: &str, status: &str) -> Value {
    frame(id, "done", json!({ "status": status }))
}

pub(super) fn error(id: &str, code: &str) -> Value {
    frame(id, "error", json!({ "code": code, "message": "m", "detail": "network: d" }))
}

/// An error that ends the process.
pub(super) fn terminal(code: &str) -> Value {
    let error = json!({ "code": code, "message": "m", "detail": "network: d", "terminal": true });
    frame("", "error", error)
}

pub(super) fn state(id: &str, ordinal: u64, entities: Vec<Value>) -> Value {
    frame(id, "snapshot", json!({ "snapshotOrdinal": ordinal.to_string(), "entities": entities }))
}

/// The ids of a run, and more of them.
pub(super) fn ids(run: u64, more: &[&str]) -> Value {
    let mut ids = json!({
        "sessionId": "s", "runId": format!("run-{run}"), "turnId": format!("turn-{run}"),
    });
    for field in more {
        ids[*field] = match *field {
            "providerCallId" => format!("run-{run}:call-1").into(),
            "segmentId" => "segment-1".into(),
            _ => "c".into(),
        };
    }
    ids
}

/// A payload with more fields, or with other ones.
pub(super) fn merged(mut payload: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object: {more}") };
    payload.as_object_mut().expect("an object").extend(more);
    payload
}

pub(super) fn accepted(run: u64) -> Value {
    json!({
        "messageId": format!("chat-msg-{run}-user"), "role": "user", "prompt": PROMPT,
        "text": PROMPT, "content": PROMPT, "status": "accepted",
    })
}

pub(super) fn started(run: u64) -> Value {
    json!({ "messageId": format!("chat-msg-{run}"), "prompt": PROMPT, "correlation": ids(run, &[]) })
}

pub(super) fn ended(run: u64, status: &str) -> Value {
    json!({
        "messageId": format!("chat-msg-{run}"), "status": status, "correlation": ids(run, &[]),
    })
}

pub(super) fn of_call(run: u64) -> Value {
    json!({ "correlation": ids(run, &["providerCallId"]) })
}

fn of_segment(status: &str) -> Value {
    json!({
        "messageId": "chat-msg-1:text:segment-1", "role": "assistant", "status": status,
        "correlation": ids(1, &["providerCallId", "segmentId"]),
    })
}

fn of_tool(status: &str) -> Value {
    json!({
        "messageId": "chat-msg-1", "toolCallId": "c", "toolName": "clock", "status": status,
        "correlation": ids(1, &["providerCallId", "toolCallId"]),
    })
}

pub(super) fn patch(ordinal: u64, sequence: u64, offset: u64, text: &str) -> Value {
    let mut payload = merged(
        of_segment("streaming"),
        json!({
            "streamId": "chat-msg-1:text:segment-1", "sequence": sequence.to_string(),
            "text": text, "mode": "CHAT_STREAM_PATCH_MODE_APPEND",
        }),
    );
    if offset > 0 {
        payload["offset"] = offset.to_string().into();
    }
    event("r", ordinal, "ChatTextPatch", payload)
}

fn tool(ordinal: u64, name: &str, status: &str, more: Value) -> Value {
    event("r", ordinal, name, merged(of_tool(status), more))
}

/// A run with text and a tool call, between `hello` and a shutdown.
pub(super) fn run() -> Stream {
    let arguments = json!({
        "streamId": "c", "sequence": "1", "arguments": "{}",
        "mode": "CHAT_STREAM_PATCH_MODE_APPEND",
    });
    let start = json!({ "prompt": PROMPT, "streaming": true });
    let whole = json!({
        "prompt": PROMPT, "text": "Grüße dich", "content": "Grüße dich", "final": true,
    });
    let finished = merged(of_call(1), json!({ "finishClass": "tool_calls" }));
    let executing = json!({ "input": "{}", "executing": true });
    Stream(vec![
        hello(&STDIN),
        event("r", 1, "ChatUserMessageAccepted", accepted(1)),
        event("r", 2, "ChatRunStarted", started(1)),
        event("r", 3, "ChatProviderCallStarted", of_call(1)),
        event("r", 4, "ChatTextSegmentStarted", merged(of_segment("streaming"), start)),
        patch(5, 1, 0, "Grüße "),
        patch(6, 3, 8, "dich"),
        event("r", 7, "ChatTextSegmentFinished", merged(of_segment("finished"), whole)),
        tool(8, "ChatToolCallStarted", "pending", json!({})),
        tool(9, "ChatToolArgumentsPatch", "streaming_args", arguments),
        tool(10, "ChatToolCallRequested", "pending", json!({ "input": "{}" })),
        event("r", 11, "ChatProviderCallFinished", finished),
        tool(12, "ChatToolExecutionStarted", "executing", executing),
        tool(13, "ChatToolResultReady", "success", json!({ "result": "noon" })),
        tool(14, "ChatToolCallFinished", "completed", json!({})),
        event("r", 15, "ChatRunFinished", ended(1, "finished")),
        full_snapshot("r", 15),
        done("r", "ok"),
        done("q", "shutdown"),
    ])
}

/// An entity: its kind and the name of its payload, its id, its first and last ordinal, its
/// payload.
pub(super) fn entity(
    (kind, name): (&str, &str),
    id: &str,
    (created, last): (u64, u64),
    mut payload: Value,
) -> Value {
    payload["@type"] = format!("type.googleapis.com/pinocchio.chatapp.v1.{name}").into();
    json!({
        "kind": kind, "id": id, "createdOrdinal": created.to_string(),
        "lastEventOrdinal": last.to_string(), "payload": payload,
    })
}

/// The entity of a run's prompt.
pub(super) fn prompt_of(run: u64, ordinal: u64) -> Value {
    let more = json!({ "final": true, "correlation": ids(run, &[]) });
    let id = format!("chat-msg-{run}-user");
    let payload = merged(accepted(run), more);
    entity(("ChatMessage", "ChatMessageEntity"), &id, (ordinal, ordinal), payload)
}

/// The entity of the text that [`run`] streams.
pub(super) fn answer(last: u64, status: &str, text: &str) -> Value {
    let more = json!({
        "prompt": PROMPT, "text": text, "content": text, "parentMessageId": "chat-msg-1",
        "segment": 1, "segmentType": "text",
    });
    let more = match status {
        "streaming" => merged(more, json!({ "streaming": true })),
        _ => merged(more, json!({ "final": true })),
    };
    let payload = merged(of_segment(status), more);
    let kind = ("ChatMessage", "ChatMessageEntity");
    entity(kind, "chat-msg-1:text:segment-1", (4, last), payload)
}

/// The entity of a segment of text.
pub(super) fn segment_entity(number: u64, ordinals: (u64, u64), payload: Value) -> Value {
    let id = format!("chat-msg-1:text:segment-{number}");
    entity(("ChatMessage", "ChatMessageEntity"), &id, ordinals, payload)
}

/// All entities shown by [`run`].
pub(super) fn full_snapshot(id: &str, ordinal: u64) -> Value {
    let call = merged(of_tool("completed"), json!({ "input": "{}" }));
    let result = merged(of_tool("success"), json!({ "result": "noon" }));
    let entities = vec![
        prompt_of(1, 1),
        answer(7, "finished", "Grüße dich"),
        entity(("ChatToolCall", "ToolCallEntity"), "c", (8, 14), call),
        entity(("ChatToolResult", "ToolResultEntity"), "c:result", (13, 13), result),
    ];
    state(id, ordinal, entities)
}

/// A run of the request `id` that ends `status` at once, and its answer.
pub(super) fn turn(id: &str, run: u64, ordinal: u64, end: (&str, &str)) -> Vec<Value> {
    let (name, status) = end;
    vec![
        event(id, ordinal, "ChatUserMessageAccepted", accepted(run)),
        event(id, ordinal + 1, "ChatRunStarted", started(run)),
        event(id, ordinal + 2, name, ended(run, status)),
    ]
}

/// A process of one request, which failed.
pub(super) fn one_shot() -> Stream {
    let mut failed = terminal("run_failed");
    failed["requestId"] = "o".into();
    let failure = json!({
        "messageId": "chat-msg-1", "role": "error", "status": "failed", "text": "it broke",
        "content": "it broke", "error": "it broke", "final": true, "correlation": ids(1, &[]),
    });
    let failure = entity(("ChatMessage", "ChatMessageEntity"), "chat-msg-1", (3, 3), failure);
    let mut stream =
        Stream(vec![hello(&["ui-events", "snapshot", "done"]), frame("", "snapshot", json!({}))])
            .and(turn("o", 1, 1, ("ChatRunFailed", "failed")))
            .and([state("o", 3, vec![prompt_of(1, 1), failure]), failed, done("o", "failed")]);
    stream.0[4]["uiEvent"]["payload"]["error"] = "it broke".into();
    stream
}

/// A server with requests that it can't fulfil.
pub(super) fn refused() -> Stream {
    Stream(vec![
        hello(&STDIN),
        error("", "invalid_request_json"),
        done("", "failed"),
        error("", "line_too_long"),
        done("", "failed"),
        error("c", "no_active_request"),
        done("c", "ok"),
    ])
}

/// A run that is cancelled before any text, after another request was refused.
pub(super) fn cancelled() -> Stream {
    let finished = merged(of_call(1), json!({ "finishClass": "cancelled" }));
    Stream(vec![
        hello(&STDIN),
        event("r", 1, "ChatUserMessageAccepted", accepted(1)),
        event("r", 2, "ChatRunStarted", started(1)),
        event("r", 3, "ChatProviderCallStarted", of_call(1)),
        error("b", "session_busy"),
        done("b", "failed"),
        done("c", "ok"),
        event("r", 4, "ChatProviderCallFinished", finished),
        event("r", 5, "ChatRunStopped", ended(1, "stopped")),
        state("r", 5, vec![prompt_of(1, 1)]),
        done("r", "stopped"),
        error("d", "no_active_request"),
        done("d", "ok"),
        done("q", "shutdown"),
    ])
}

/// An event of a package other than that of the conversation.
pub(super) fn foreign(
    id: &str,
    ordinal: u64,
    (package, name): (&str, &str),
    payload: Value,
) -> Value {
    let mut frame = event(id, ordinal, name, payload);
    frame["uiEvent"]["payload"]["@type"] =
        format!("type.googleapis.com/{package}.v1.{name}").into();
    frame
}

/// The ids of a call of the provider call `call`.
pub(super) fn ids_of(call: u64, more: Value) -> Value {
    let ids = json!({
        "sessionId": "s", "runId": "run-1", "turnId": "turn-1",
        "providerCallId": format!("run-1:call-{call}"),
    });
    json!({ "correlation": merged(ids, more) })
}
