//! Recorded streams have no violation, and every field that the contract fixes is checked: if it is
//! replaced, removed or emptied, that is reported.

use super::super::line::read;
use super::super::rule::Report;
use super::a_loop::a_loop;
use super::asked_again::asked_again;
use super::sample::{STDIN, cancelled, check_lines, one_shot, refused, run};
use super::{Checker, Rule};
use crate::protocol::proto::rpc::RpcLine;
use serde_json::{Value, json};
use std::path::Path;

/// A text that is neither a value of the protocol nor an id of a stream.
const OTHER: &str = "elsewhere";

/// Least number of mutations in the recorded streams and samples, so that none is lost.
const MUTATIONS_MIN: usize = 4_000;

/// A mutation of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    Replaced,
    Removed,
    Emptied,
}

const ALL: [Mutation; 3] = [Mutation::Replaced, Mutation::Removed, Mutation::Emptied];

/// A recorded stream, by the name of its file.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) frames: Vec<Value>,
    /// It is cut off.
    is_open: bool,
}

fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut streams = Vec::new();
    for (folder, read) in [
        (folder.join("golden"), conversations as fn(&str) -> Vec<Vec<Value>>),
        (folder.join("golden_outputs"), outputs),
    ] {
        for file in std::fs::read_dir(folder).expect("the folder") {
            let path = file.expect("a file").path();
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path).expect("a recorded stream");
            for frames in read(&text) {
                let done = frames.last().is_some_and(|last| last.get("done").is_some());
                streams.push(Recorded { name: name.clone(), frames, is_open: !done });
            }
        }
    }
    streams
}

/// The frames of a conversation, with what its file leaves out: the capabilities of a server that
/// reads requests, and the messages of the JSON parser.
fn conversations(text: &str) -> Vec<Vec<Value>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("< "));
    let frames = lines.map(|line| {
        let mut frame: Value = serde_json::from_str(line).expect("a frame");
        if let Some(words) = frame.pointer_mut("/hello/capabilities").and_then(Value::as_array_mut)
        {
            words.retain(|word| word.as_str().is_some_and(|word| !STDIN.contains(&word)));
            words.splice(0..0, STDIN.map(Value::from));
        }
        if frame["error"]["code"] == "invalid_request_json" {
            frame["error"]["detail"] = "d".into();
        }
        frame
    });
    vec![frames.collect()]
}

/// The streams of the protocol among the outputs of commands.
fn outputs(text: &str) -> Vec<Vec<Value>> {
    let outputs = text.split("--- stdout\n").skip(1);
    let outputs = outputs.filter_map(|output| output.split("--- stderr").next());
    let streams = outputs.filter(|output| output.starts_with(r#"{"version":1,"sessionId""#));
    streams
        .map(|stream| {
            stream.lines().map(|line| serde_json::from_str(line).expect("a frame")).collect()
        })
        .collect()
}

fn check(frames: &[Value]) -> Vec<(u64, Rule)> {
    check_lines(&frames.iter().map(line).collect::<Vec<_>>(), None)
}

/// These files are compared as JSON, so they have separators unescaped.
fn line(frame: &Value) -> Vec<u8> {
    let line = frame.to_string().replace('\u{2028}', "\\u2028");
    line.replace('\u{2029}', "\\u2029").replace('\u{85}', "\\u0085").into_bytes()
}

/// The frames of a stream. They are read once: the rest of a stream is checked after each mutation.
pub(super) fn read_frames(frames: &[Value]) -> Vec<RpcLine> {
    let read = frames.iter().map(|frame| {
        let mut report = Report::new(0);
        let read = read(&line(frame), &mut report).expect("a frame");
        assert!(read.strange.is_empty() && report.into_violations().is_empty(), "{frame}");
        read.frame
    });
    read.collect()
}

/// Whether the checker reports a violation in `line` or in `rest`, which follow what it has read.
fn is_reported(mut checker: Checker, line: &[u8], rest: &[RpcLine]) -> bool {
    !checker.line(line).is_empty()
        || rest.iter().any(|frame| !checker.frame(frame.clone()).is_empty())
        || !checker.finish(None).is_empty()
}

#[test]
fn kept_conversations_have_no_violation() {
    let mut streams = 0;
    for Recorded { name, frames, is_open } in recorded() {
        let mut found = check(&frames);
        found.retain(|(_, rule)| !(is_open && *rule == Rule::UnfinishedRequest));
        assert_eq!(found, [], "{name}: {frames:#?}");
        streams += usize::from(frames.len() > 2);
    }
    assert!(streams > 40, "only {streams} streams");
}

/// The streams whose fields are mutated: each recorded conversation once, and the samples.
pub(super) fn to_be_mutated() -> Vec<Recorded> {
    let samples = [run(), one_shot(), refused(), cancelled(), a_loop(), asked_again()].into_iter();
    let samples = samples.map(|stream| Recorded {
        name: "sample".to_owned(),
        frames: stream.0,
        is_open: false,
    });
    let mut names = Vec::new();
    let kept = recorded().into_iter().filter(|stream| {
        let is_new = !names.contains(&stream.name);
        names.push(stream.name.clone());
        is_new && !stream.is_open
    });
    samples.chain(kept).collect()
}

#[test]
fn every_field_that_the_contract_fixes_is_checked() {
    let (mut missed, mut mutations) = (Vec::new(), 0);
    for Recorded { name, frames, .. } in to_be_mutated() {
        let read = read_frames(&frames);
        let mut before = Checker::new();
        for at in 0..frames.len() {
            let mut fields = Vec::new();
            leaves(&frames[at], String::new(), &mut |pointer| fields.push(pointer));
            for (pointer, mutation) in fields.iter().flat_map(|field| ALL.map(|all| (field, all))) {
                let Some(frame) = mutated(&frames[at], pointer, mutation) else { continue };
                if is_free(&frames, at, pointer, mutation) {
                    continue;
                }
                mutations += 1;
                if !is_reported(before.clone(), &line(&frame), &read[at + 1..]) {
                    missed.push(format!("{name}:{}: {pointer} {mutation:?}", at + 1));
                }
            }
            before.frame(read[at].clone());
        }
    }
    assert_eq!(missed, Vec::<String>::new(), "{} of {mutations}", missed.len());
    assert!(mutations >= MUTATIONS_MIN, "only {mutations} mutations");
}

/// The pointers of all values that are neither objects nor lists.
fn leaves(value: &Value, pointer: String, found: &mut impl FnMut(String)) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                leaves(value, format!("{pointer}/{key}"), found);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                leaves(value, format!("{pointer}/{at}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => found(pointer),
    }
}

/// The frame with one field mutated, if that changes anything.
fn mutated(frame: &Value, pointer: &str, mutation: Mutation) -> Option<Value> {
    let mut frame = frame.clone();
    let (parent, key) = pointer.rsplit_once('/')?;
    let parent = frame.pointer_mut(parent)?;
    let value = match parent {
        Value::Object(members) => members.get(key)?.clone(),
        Value::Array(values) => values.get(key.parse::<usize>().ok()?)?.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let new = match mutation {
        Mutation::Removed => None,
        Mutation::Replaced => Some(replaced(key, &value)),
        Mutation::Emptied => Some(emptied(key, &value)),
    };
    // Leaving out false or zero changes nothing.
    let is_default = value == emptied(key, &value);
    if new.as_ref().unwrap_or(&value) == &value && (new.is_some() || is_default) {
        return None;
    }
    match (parent, new) {
        (Value::Object(members), None) => drop(members.shift_remove(key)),
        (Value::Object(members), Some(new)) => drop(members.insert(key.to_owned(), new)),
        (Value::Array(values), None) => drop(values.remove(key.parse().ok()?)),
        (Value::Array(values), Some(new)) => values[key.parse::<usize>().ok()?] = new,
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => return None,
    }
    Some(frame)
}

/// Fields that hold a 64-bit number as a string.
const NUMBERS: [&str; 6] =
    ["ordinal", "sequence", "offset", "snapshotOrdinal", "createdOrdinal", "lastEventOrdinal"];

/// Another value of the same type: an unknown word or id, a lower number.
fn replaced(key: &str, value: &Value) -> Value {
    match value {
        Value::String(number) if NUMBERS.contains(&key) => {
            let number: u64 = number.parse().expect("a number");
            // The one before may be shared by two events, or come from merged deltas.
            json!(number.saturating_sub(2).to_string())
        }
        Value::String(mode) if mode == "CHAT_STREAM_PATCH_MODE_SNAPSHOT" => {
            json!("CHAT_STREAM_PATCH_MODE_APPEND")
        }
        Value::String(_) if key == "mode" => json!("CHAT_STREAM_PATCH_MODE_REPLACE"),
        Value::Number(number) => json!(number.as_f64().expect("a number") as i64 + 1),
        Value::Bool(flag) => json!(!flag),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => json!(OTHER),
    }
}

fn emptied(key: &str, value: &Value) -> Value {
    match value {
        Value::String(_) if NUMBERS.contains(&key) => json!("0"),
        Value::String(_) if key == "mode" => json!("CHAT_STREAM_PATCH_MODE_UNSPECIFIED"),
        Value::Number(_) => json!(0),
        Value::Bool(_) => json!(false),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => json!(""),
    }
}

/// Whether the contract does not fix the field, so that the mutation is no violation.
fn is_free(frames: &[Value], at: usize, pointer: &str, mutation: Mutation) -> bool {
    let frame = &frames[at];
    let key = pointer.rsplit('/').next().unwrap_or_default();
    let is = |known: &[&str]| known.contains(&key);
    // What a client's tool returns is the client's own; the result that the model reads is checked.
    if pointer.contains("/payload/result/") {
        return true;
    }
    // Only a snapshot repeats a result.
    if key == "result" && !frames.iter().any(|frame| frame.get("snapshot").is_some()) {
        return true;
    }
    if pointer.contains("/payload/usage/") || pointer.contains("/payload/object") {
        return true;
    }
    if let Some(word) = pointer.strip_prefix("/hello/capabilities/") {
        let word = frame["hello"]["capabilities"][word.parse::<usize>().expect("an index")].clone();
        // A server may have no version, and announce any extension.
        let is_own = word.as_str().is_some_and(|word| !STDIN.contains(&word));
        return is_own && mutation != Mutation::Emptied;
    }
    match pointer {
        // The first request may bind another session.
        "/sessionId" => frame.get("hello").is_some() && mutation == Mutation::Replaced,
        "/requestId" => is_request_free(frames, at, mutation),
        "/hello/server" | "/error/message" => mutation == Mutation::Replaced,
        "/error/detail" => is_detail_free(frame, mutation),
        _ if pointer.starts_with("/uiEvent/payload/") || pointer.starts_with("/snapshot/") => {
            is(&["durationMs", "hasToolCalls", "waitMs", "firstByteMs"])
                || (key == "firstTokenMs" && mutation != Mutation::Removed)
                || is_error_free(frame, pointer, mutation)
                || is_attempt_free(frames, at, key, mutation)
                || is_model_free(frame, key, mutation)
                || is(&["revision", "description", "available"])
                || is_reason_free(frames, at, key, mutation)
                || is_of_tool_free(frame, pointer, mutation)
                || is(&["index", "line", "type", "json", "reason", "objects", "rejected"])
                || is(&["truncated"])
                || is_payload_free(frame, pointer, mutation)
        }
        _ => false,
    }
}

/// An error is text for people. The contract fixes that there is one where an answer was cut off.
fn is_error_free(frame: &Value, pointer: &str, mutation: Mutation) -> bool {
    let Some(parent) = pointer.strip_suffix("/error") else { return false };
    let payload = frame.pointer(parent).expect("it is there");
    let name = payload["@type"].as_str().unwrap_or_default();
    let is_of_answer = name.ends_with(".ChatRunFinished") || payload["role"] == "assistant";
    !is_of_answer || mutation == Mutation::Replaced
}

/// How many attempts there are at most is known from the first event that says so.
fn is_attempt_free(frames: &[Value], at: usize, key: &str, mutation: Mutation) -> bool {
    let name = |at: usize| frames[at]["uiEvent"]["name"].as_str().unwrap_or_default();
    let is_retry = |at: usize| name(at).starts_with("Retry");
    let is_only = match key {
        "attemptsMax" => !is_retry(at - 1) && !is_retry(at + 1),
        "repairsMax" => true,
        _ => false,
    };
    is_only && mutation == Mutation::Replaced
}

/// Names of models, profiles and hosts are the server's own. There is always an engine.
fn is_model_free(frame: &Value, key: &str, mutation: Mutation) -> bool {
    let is_switch = frame["uiEvent"]["name"] == "ModelSwitched";
    match key {
        "engine" => is_switch && mutation == Mutation::Replaced,
        "profile" | "model" | "host" => is_switch,
        _ => false,
    }
}

/// A finish reason may be unknown until the call ends; then it is the one that was shown before.
fn is_reason_free(frames: &[Value], at: usize, key: &str, mutation: Mutation) -> bool {
    let is_last = frames[at]["uiEvent"]["name"] == "ChatProviderCallFinished";
    match key {
        "stopReason" if is_last => {
            let earlier = frames[..at].iter().rev().map(|frame| &frame["uiEvent"]);
            let mut call = earlier.take_while(|event| event["name"] != "ChatProviderCallStarted");
            // That of reasoning before an answer is none of its call.
            let has = |event: &Value, key: &str| {
                let is_of_reasoning = event["name"] == "ChatReasoningSegmentFinished"
                    && event["payload"]["finishReason"] == "stop";
                !is_of_reasoning
                    && event["payload"][key].as_str().is_some_and(|reason| !reason.is_empty())
            };
            !call.any(|event| has(event, "stopReason") || has(event, "finishReason"))
        }
        "stopReason" | "finishReason" => mutation != Mutation::Replaced,
        _ => false,
    }
}

/// What clients declare, and what servers are, is theirs.
fn is_of_tool_free(frame: &Value, pointer: &str, mutation: Mutation) -> bool {
    let name = frame["uiEvent"]["name"].as_str().unwrap_or_default();
    let key = pointer.rsplit('/').next().unwrap_or_default();
    let is_removed = mutation == Mutation::Removed;
    match (name, key) {
        ("FrontendToolManifestUpdated", "mode") => is_removed,
        ("FrontendToolManifestUpdated", "name") => mutation == Mutation::Replaced,
        ("ToolServerChanged" | "ToolApprovalRequested", "server") => mutation == Mutation::Replaced,
        ("ToolServerChanged", _) if pointer.contains("/tools/") => mutation != Mutation::Emptied,
        _ => false,
    }
}

/// A request that has one frame may have any name, as the stream does not contain the request.
fn is_request_free(frames: &[Value], at: usize, mutation: Mutation) -> bool {
    let id = &frames[at]["requestId"];
    // What the client of an earlier process chose goes on without a request.
    let name = frames[at]["uiEvent"]["name"].as_str().unwrap_or_default();
    let goes_on = ["ModelSwitched", "FrontendToolManifestUpdated"].contains(&name);
    if goes_on && mutation != Mutation::Replaced {
        return true;
    }
    let count = frames.iter().filter(|frame| frame["requestId"] == *id).count();
    // In a process of one request, frames need not name it.
    let is_one_shot = !frames[0]["hello"]["capabilities"].to_string().contains("stdin-rpc");
    count == 1 && mutation == Mutation::Replaced || is_one_shot
}

fn is_detail_free(frame: &Value, mutation: Mutation) -> bool {
    let code = frame["error"]["code"].as_str().unwrap_or_default();
    let has_class = matches!(code, "run_failed" | "engine_init_failed");
    !has_class && mutation == Mutation::Replaced
}

fn is_payload_free(frame: &Value, pointer: &str, mutation: Mutation) -> bool {
    let is_replaced = mutation == Mutation::Replaced;
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match key {
        // The error of a run may be a child of the run's root, or the root itself.
        "parentMessageId" => {
            let payload = frame.pointer(parent).expect("it is there");
            payload["role"] == "error" && !is_replaced
        }
        _ => false,
    }
}
