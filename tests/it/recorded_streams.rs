//! The streams in `tests/streams`, which a server sends byte by byte: what a client gets is what each is
//! recorded as.

use crate::anthropic::ANTHROPIC;
use crate::frames::{Frame, finished_text, patched_text, submit};
use crate::gemini::GEMINI;
use crate::interface::{Interface, return_results};
use crate::ollama::OLLAMA;
use crate::provider::{Provider, Step, says};
use crate::responses::RESPONSES;
use crate::server::openai;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };

/// The streams of each engine, by the names of their files.
const STREAMS: [&str; 4] = ["calls", "error", "reasoning", "text"];

struct Recorded {
    path: PathBuf,
    stream: Vec<u8>,
    record: Value,
}

fn recorded(interface: &Interface, name: &str) -> Recorded {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(interface.engine);
    let end = if interface.engine == "ollama" { "ndjson" } else { "sse" };
    let path = folder.join(name).with_extension(end);
    let record = fs::read(path.with_extension("json")).expect("a record");
    let record = serde_json::from_slice(&record).expect("JSON");
    Recorded { stream: fs::read(&path).expect("a stream"), record, path }
}

/// The stream byte by byte, as a server with this interface sends it.
fn script(interface: &Interface, stream: &[u8]) -> Vec<Step> {
    let head = match interface.engine {
        "ollama" => "application/x-ndjson",
        _ => "text/event-stream",
    };
    let bytes = stream.iter().map(|byte| Step::Bytes(vec![*byte]));
    [Step::Head(head)].into_iter().chain(bytes).collect()
}

fn check(interface: &Interface, name: &str) {
    let Recorded { path, stream, record } = recorded(interface, name);
    let text = recorded(interface, "text");
    let scripts = vec![script(interface, &stream), script(interface, &text.stream)];
    let provider = Provider::start(scripts);
    let mut server = (interface.launch)(&provider, &["--retries", "0"]).start();
    let calls: Vec<_> = record["calls"].as_array().expect("calls").iter().collect();
    let tool = |call: &&Value| json!({ "name": call["name"], "description": "It.", "inputSchema": { "type": "object" } });
    let tools: Vec<_> = calls.iter().map(tool).collect();
    let declare = json!({ "requestId": "t", "declareTools": { "tools": tools, "revision": 1 } });
    server.send(declare.to_string());
    server.send(submit("r", "hello"));
    let ids: Vec<_> = calls.iter().filter_map(|call| call["id"].as_str()).collect();
    return_results(&mut server, &ids);
    let status = server.wait_done("r");
    let frames = server.finish().frames;
    let after = if calls.is_empty() { String::new() } else { text_of_record(&text.record, "text") };
    check_frames(&frames, &record, &status, &after)
        .unwrap_or_else(|what| panic!("{}: {what} of {frames:#?}", path.display()));
}

/// Compares the frames with the record; `after` is the text that follows the calls. An error names what
/// differs.
fn check_frames(
    frames: &[Frame],
    record: &Value,
    status: &str,
    after: &str,
) -> Result<(), &'static str> {
    let ensure = |is: bool, what| if is { Ok(()) } else { Err(what) };
    let payloads = |name: &'static str| {
        let named = frames.iter().filter(move |frame| frame.is_event(name));
        named.map(|frame| &frame.0["uiEvent"]["payload"])
    };
    let text = text_of_record(record, "text") + after;
    ensure(patched_text(frames, "r") == text, "the pieces of the text")?;
    ensure(finished_text(frames, "r") == text, "the text")?;
    let reasoning = payloads("ChatReasoningPatch").filter_map(|it| it["text"].as_str());
    ensure(reasoning.collect::<String>() == text_of_record(record, "reasoning"), "the reasoning")?;
    let calls = payloads("ChatToolCallRequested").map(
        |it| json!({ "id": it["toolCallId"], "name": it["toolName"], "arguments": it["input"] }),
    );
    ensure(calls.collect::<Value>() == record["calls"], "the calls")?;
    if let Some(class) = record["error"].as_str() {
        let error = frames.iter().find(|frame| frame.error().is_some()).ok_or("the error")?;
        let detail = error.text("/error/detail");
        ensure(detail.starts_with(&format!("{class}:")), "the class of the error")?;
        return ensure(status == "failed", "the status");
    }
    ensure(status == "ok", "the status")?;
    let finished = payloads("ChatProviderCallFinished").next().ok_or("the end of the call")?;
    ensure(finished["stopReason"] == record["finish"]["reason"], "the reason of the end")?;
    ensure(finished["finishClass"] == record["finish"]["class"], "the class of the end")?;
    let counts = [("inputTokens", "input"), ("outputTokens", "output"), ("cachedTokens", "cached")];
    let is_same = |(field, name): &(&str, &str)| {
        finished["usage"][field].as_i64().unwrap_or(0) == record["usage"][name]
    };
    ensure(counts.iter().all(is_same), "the token counts")
}

fn text_of_record(record: &Value, member: &str) -> String {
    record[member].as_str().expect("a text").to_owned()
}

fn check_all(interface: &Interface) {
    STREAMS.iter().for_each(|name| check(interface, name));
}

#[test]
fn a_client_gets_what_a_stream_of_chat_completions_says() {
    check_all(&OPENAI);
}

#[test]
fn a_client_gets_what_a_stream_of_responses_says() {
    check_all(&RESPONSES);
}

#[test]
fn a_client_gets_what_a_stream_of_anthropic_says() {
    check_all(&ANTHROPIC);
}

#[test]
fn a_client_gets_what_a_stream_of_gemini_says() {
    check_all(&GEMINI);
}

#[test]
fn a_client_gets_what_a_stream_of_ollama_says() {
    check_all(&OLLAMA);
}
