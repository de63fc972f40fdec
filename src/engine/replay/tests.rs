//! The streams in `tests/streams`, cut at every byte: answers, calls, counts and errors are those that each
//! is recorded with.

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Names further folders of streams, in the form of `tests/streams`.
const FOLDER_VARIABLE: &str = "DUOLOGUE_STREAMS";

/// The streams of an engine: at least these.
const STREAMS: [&str; 4] = ["calls", "error", "reasoning", "text"];

/// An error of any class.
const ANY: &str = "?";

/// Streams with more bytes are cut at so many places.
const CUTS_MAX: usize = 2_048;

/// What an answer is recorded as.
fn recorded(answer: &Answer) -> Value {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut record = json!({ "calls": [], "sentBack": null });
    let calls = |record: &mut Value| record["calls"].as_array_mut().map(std::mem::take);
    for event in &answer.events {
        if let EngineEvent::Text(more) = event {
            text += more;
        } else if let EngineEvent::Reasoning { text: more, .. } = event {
            reasoning += more;
        } else if let EngineEvent::ToolCallStarted(tool) = event {
            let mut all = calls(&mut record).unwrap_or_default();
            all.push(json!({ "id": tool.id.0, "name": tool.name, "arguments": "" }));
            record["calls"] = all.into();
        } else if let EngineEvent::ToolArguments { id, text } = event {
            let mut all = calls(&mut record).unwrap_or_default();
            let call = all.iter_mut().find(|call| call["id"] == *id.0).expect("a call");
            let so_far = call["arguments"].as_str().unwrap_or_default();
            call["arguments"] = format!("{so_far}{text}").into();
            record["calls"] = all.into();
        } else if let EngineEvent::Usage(usage) = event {
            record["usage"] = json!({
                "input": usage.input_tokens, "output": usage.output_tokens,
                "cached": usage.cached_tokens, "written": usage.cache_creation_tokens,
                "reasoning": usage.reasoning_tokens,
            });
        } else if let EngineEvent::CallFinished { stop_reason, class, provider_data } = event {
            record["finish"] = json!({ "reason": stop_reason, "class": class.as_str() });
            if let Some(data) = provider_data {
                record["sentBack"] = serde_json::from_str(&data.json).expect("JSON");
            }
        }
    }
    if let Some(error) = &answer.error {
        record["error"] = error.class.as_str().into();
    }
    (record["text"], record["reasoning"]) = (text.into(), reasoning.into());
    record
}

/// The streams in `folder` with what they are recorded as.
fn streams(folder: &Path) -> Vec<(PathBuf, Vec<u8>, Value)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_stream = |path: &PathBuf| path.extension().is_some_and(|end| end != "json");
    let mut paths: Vec<_> = paths.filter(is_stream).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let expected = fs::read(path.with_extension("json")).expect("what it is recorded as");
        let expected = serde_json::from_slice(&expected).expect("JSON");
        (path.clone(), fs::read(path).expect("a stream"), expected)
    };
    paths.into_iter().map(read).collect()
}

fn check_stream(read: Read, path: &Path, stream: &[u8], expected: &Value) {
    let whole = read(&[stream]);
    let mut found = recorded(&whole);
    if expected["error"] == ANY {
        found["error"] = ANY.into();
    }
    assert_eq!(found, *expected, "{}", path.display());
    check(read, stream);
    let step = stream.len() / CUTS_MAX + 1;
    for at in (0..=stream.len()).step_by(step) {
        let (left, right) = stream.split_at(at);
        assert_eq!(read(&[left, right]), whole, "{} split at {at}", path.display());
    }
}

fn check_engine(name: &str) {
    let (_, read) = ENGINES.iter().find(|(engine, _)| *engine == name).expect("an engine");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name);
    let own = streams(&own);
    let names: Vec<_> = own.iter().filter_map(|(path, ..)| path.file_stem()?.to_str()).collect();
    assert!(STREAMS.iter().all(|name| names.contains(name)), "{names:?}");
    let others = std::env::var_os(FOLDER_VARIABLE).map(|folder| Path::new(&folder).join(name));
    let others = others.filter(|folder| folder.is_dir()).map(|folder| streams(&folder));
    own.iter().for_each(|(path, stream, record)| check_stream(*read, path, stream, record));
    for (path, stream, mut record) in others.unwrap_or_default() {
        // What is sent back is in a form of our own.
        record["sentBack"] = recorded(&read(&[&stream]))["sentBack"].clone();
        check_stream(*read, &path, &stream, &record);
    }
}

#[test]
fn streams_of_chat_completions_are_read_as_recorded() {
    check_engine("openai");
}

#[test]
fn streams_of_responses_are_read_as_recorded() {
    check_engine("responses");
}

#[test]
fn streams_of_anthropic_are_read_as_recorded() {
    check_engine("anthropic");
}

#[test]
fn streams_of_gemini_are_read_as_recorded() {
    check_engine("gemini");
}

#[test]
fn streams_of_ollama_are_read_as_recorded() {
    check_engine("ollama");
}

/// Streams that differ in one thing from those that are recorded are told apart.
#[test]
fn another_stream_is_another_record() {
    let (name, read) = ENGINES[0];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name);
    let (_, stream, expected) = streams(&folder).pop().expect("a stream");
    let text = String::from_utf8(stream).expect("text");
    for (from, to) in [("Köln", "Bonn"), ("1920", "1921"), ("\"stop\"", "\"length\"")] {
        assert!(text.contains(from));
        assert_ne!(recorded(&read(&[text.replace(from, to).as_bytes()])), expected, "{from}");
    }
}
