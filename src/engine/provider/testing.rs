//! For the tests of every engine: calls as they are given to it, the events of an answer in words, and
//! every way to cut its bytes.

use super::call::Answer;
use super::failure::Failure;
use super::remote::Refused;
use crate::chat::tool::ToolSpec;
use crate::engine::{CallSettings, CallSpec, EngineEvent, ResponseSchema};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::proto::chat::ChatAttachment;
use serde_json::Value;
use std::sync::Arc;

/// A call with these settings, tools and schema, and without a conversation.
pub(in crate::engine) fn spec(
    settings: &Value,
    tools: &[ToolSpec],
    schema: Option<&Value>,
) -> CallSpec {
    let mut read = CallSettings::default();
    for (name, value) in settings.as_object().expect("settings") {
        read.set(name, value).expect("a setting");
    }
    let schema = schema.map(|schema| {
        let schema = schema.as_object().expect("an object").clone();
        Arc::new(ResponseSchema { name: "answer".to_owned(), schema })
    });
    CallSpec { settings: Arc::new(read), tools: tools.into(), schema, ..CallSpec::default() }
}

/// An attachment with the name "it".
pub(in crate::engine) fn attachment(media_type: &str, content: Content) -> Attachment {
    let (media_type, filename) = (media_type.to_owned(), "it".to_owned());
    Attachment { shown: ChatAttachment { media_type, filename, ..Default::default() }, content }
}

/// Why there is no request.
pub(in crate::engine) fn refusal(body: Result<Vec<u8>, Refused>) -> String {
    match body {
        Err(Refused::Unsupported(why)) => why,
        Ok(_) | Err(Refused::Unwritable(_)) => panic!("it is not refused"),
    }
}

/// The events and the result of an answer.
pub(in crate::engine) type Read = (Vec<EngineEvent>, Result<(), Failure>);

/// Reads a body that arrives in `pieces`.
pub(in crate::engine) fn read_pieces(mut answer: impl Answer, pieces: &[&[u8]]) -> Read {
    let mut events = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        if result.is_ok() && !answer.is_done() {
            result = answer.push(piece, &mut events);
        }
    }
    let result = result.and_then(|()| answer.end("text/plain", &mut events));
    (events, result)
}

/// Reads `body` with new answers: whole, split at every byte, and byte by byte. All must give the
/// words `expected`.
#[track_caller]
pub(in crate::engine) fn check<A: Answer>(new: impl Fn() -> A, body: &str, expected: &str) {
    let bytes = body.as_bytes();
    let read = |pieces: &[&[u8]]| words(&read_pieces(new(), pieces));
    assert_eq!(read(&[bytes]), expected, "{body} whole");
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(&[left, right]), expected, "{body} split at {at}");
    }
    assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{body} byte by byte");
}

/// The events in words, adjacent texts joined, and the class of the failure.
pub(in crate::engine) fn words((events, result): &Read) -> String {
    let mut words = String::new();
    let mut last = String::new();
    for event in events {
        let (head, text) = word(event);
        if head != last || !(head.starts_with('<') || head.starts_with('[')) {
            words += &format!(" {head}");
        }
        words += &text;
        last = head;
    }
    if let Err(failure) = result {
        words += &format!(" FAILED {}", failure.class.as_str());
    }
    words.trim_start().to_owned()
}

fn word(event: &EngineEvent) -> (String, String) {
    match event {
        EngineEvent::Text(text) => ("<text>".into(), text.clone()),
        EngineEvent::Reasoning { source, text } => (format!("<{source}>"), text.clone()),
        EngineEvent::ToolCallStarted(tool) => {
            (format!("+{}:{}", tool.id.0, tool.name), String::new())
        }
        EngineEvent::ToolArguments { id, text } => (format!("[{}]", id.0), text.clone()),
        EngineEvent::ToolCallRequested { id } => (format!("!{}", id.0), String::new()),
        EngineEvent::Usage(usage) => {
            (format!("{}/{}", usage.input_tokens, usage.output_tokens), String::new())
        }
        EngineEvent::CallFinished { stop_reason, class, provider_data } => {
            let data = provider_data.as_ref().map_or(String::new(), |data| {
                format!(" {}/{} {}", data.engine, data.model, data.json)
            });
            (format!("END {stop_reason:?} {}{data}", class.as_str()), String::new())
        }
        EngineEvent::CallStarted
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_) => (format!("{event:?}"), String::new()),
    }
}

/// All that the events show of the answer, in order.
pub(in crate::engine) fn texts(events: &[EngineEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        EngineEvent::Text(text)
        | EngineEvent::Reasoning { text, .. }
        | EngineEvent::ToolArguments { text, .. } => Some(text.as_str()),
        EngineEvent::CallStarted
        | EngineEvent::ToolCallStarted(_)
        | EngineEvent::ToolCallRequested { .. }
        | EngineEvent::Usage(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_)
        | EngineEvent::CallFinished { .. } => None,
    });
    texts.collect()
}

/// Cuts `body` at every byte of its first `whole_bytes`: what came of it must be a beginning of the
/// whole, without an end, and `is_expected` of the place and the failure.
#[track_caller]
pub(in crate::engine) fn check_cuts<A: Answer>(
    new: impl Fn() -> A,
    body: &str,
    whole_bytes: usize,
    is_expected: impl Fn(usize, &Failure) -> bool,
) {
    let (whole, _) = read_pieces(new(), &[body.as_bytes()]);
    for bytes in 0..whole_bytes {
        let (events, result) = read_pieces(new(), &[&body.as_bytes()[..bytes]]);
        let failure = result.expect_err("it is cut");
        assert!(is_expected(bytes, &failure), "cut at {bytes}: {failure:?}");
        assert!(texts(&whole).starts_with(&texts(&events)), "cut at {bytes}: {events:?}");
        let finished = |event: &EngineEvent| matches!(event, EngineEvent::CallFinished { .. });
        assert!(!events.iter().any(finished), "cut at {bytes}");
    }
}
