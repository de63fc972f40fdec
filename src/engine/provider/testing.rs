//! For the tests of every engine: calls as they are given to it, every way to cut the bytes of a response,
//! and the events of a response in words.

use super::failure::Failure;
use super::interface::Refused;
use super::response::ResponseReader;
use crate::conversation::event::{ProviderData, ToolCall};
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Message;
pub(in crate::engine) use crate::engine::replay::read_pieces;
use crate::engine::{CallSettings, CallSpec, EngineEvent, ResponseSchema};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::chat::ChatAttachment;
use serde_json::{Value, json};
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

/// A call of the tool "look".
pub(in crate::engine) fn call(id: &str) -> ToolCall {
    ToolCall { id: ToolCallId(id.into()), name: "look".into() }
}

/// The tool "look", with a schema that no provider takes in strict mode.
pub(in crate::engine) fn look() -> ToolSpec {
    let schema = json!({ "properties": { "city": { "type": "string" } }, "oneOf": [{}] });
    let Value::Object(schema) = schema else { panic!("no object") };
    ToolSpec { name: "look".into(), description: "Looks.".into(), input_schema: Arc::new(schema) }
}

/// The provider data of an answer of `engine` and `model` at the host "h".
pub(in crate::engine) fn data(engine: &'static str, model: &str, json: Value) -> ProviderData {
    let json = json.to_string().into();
    ProviderData { engine: engine.into(), host: "h".into(), model: model.into(), json }
}

pub(in crate::engine) fn user(text: &str) -> Message<'_> {
    Message::user(text, &[])
}

/// A message of the model, without calls.
pub(in crate::engine) fn says(text: &str) -> Message<'_> {
    Message::Assistant { text: text.into(), calls: Vec::new(), provider_data: None }
}

/// A conversation with everything that a request can have: `a` succeeds, and `b` has arguments that
/// can't be read, and fails.
pub(in crate::engine) fn conversation<'a>(a: &'a ToolCall, b: &'a ToolCall) -> [Message<'a>; 10] {
    [
        Message::System("be brief"),
        user("q\u{2028}\u{0}"),
        Message::Assistant {
            text: "Let me look.".into(),
            calls: vec![(a, r#" {"city": "Rome", "n": 1.50} "#), (b, "{\"ci")],
            provider_data: None,
        },
        Message::Tool { tool: a, result: "sun".into(), images: &[], is_error: false },
        Message::Tool { tool: b, result: "no".into(), images: &[], is_error: true },
        user("and?"),
        Message::System("be exact"),
        says("done"),
        says(" "),
        user("thanks"),
    ]
}

/// An attachment with the name "it".
pub(in crate::engine) fn attachment(media_type: &str, content: Content) -> Attachment {
    let (media_type, filename) = (media_type.to_owned(), "it".to_owned());
    Attachment { shown: ChatAttachment { media_type, filename, ..Default::default() }, content }
}

/// Why there is no request.
pub(in crate::engine) fn refusal(body: Result<Vec<u8>, Refused>) -> String {
    match body {
        Err(Refused::Unsupported(why) | Refused::OtherEngine(why)) => why,
        Ok(_) | Err(Refused::Unwritable(_)) => panic!("it is not refused"),
    }
}

/// Declares how the tests of an engine read its responses: with failures that hide this key.
macro_rules! response_tests {
    ($reader:ident, $key:expr) => {
        fn failures() -> Failures {
            Failures::new(
                &$crate::engine::SettingNames::FIELDS,
                Secret::new($key).as_ref(),
                "http://host",
                "m",
            )
        }

        /// Reads a body that arrives in `pieces`; returns the events and the failure.
        fn read_pieces(pieces: &[&[u8]], end: BodyEnd) -> testing::Read {
            testing::read_pieces($reader::new(&failures(), end), pieces)
        }

        fn read(pieces: &[&[u8]]) -> String {
            testing::in_words($reader::new(&failures(), BodyEnd::Marked), pieces)
        }

        /// `body` has a call of a tool that has the key as its name: the name stays where the tool is offered.
        #[track_caller]
        fn check_offered(body: &str) {
            let failures = failures().with_tools([$key].into_iter());
            let reader = $reader::new(&failures, BodyEnd::Marked);
            let words = testing::in_words(reader, &[body.as_bytes()]);
            assert!(words.contains(&format!(":{} ", $key)), "{words}");
        }

        /// `body` is read as `expected`, whole, split at every byte, and byte by byte.
        #[track_caller]
        fn check(body: &str, expected: &str) {
            let failures = failures();
            testing::check(|| $reader::new(&failures, BodyEnd::Marked), body, expected);
        }
    };
}

pub(in crate::engine) use response_tests;

/// The events and the result of an answer.
pub(in crate::engine) type Read = (Vec<EngineEvent>, Result<(), Failure>);

/// Like [`read_pieces`]; returns the events in words.
pub(in crate::engine) fn in_words<'a>(reader: impl ResponseReader<'a>, pieces: &[&[u8]]) -> String {
    let (events, result) = read_pieces(reader, pieces);
    words(&events, &result)
}

/// Reads `body` with new readers: whole, split at every byte, and byte by byte. All must give the
/// words `expected`.
#[track_caller]
pub(in crate::engine) fn check<'a, R: ResponseReader<'a>>(
    new: impl Fn() -> R,
    body: &str,
    expected: &str,
) {
    let bytes = body.as_bytes();
    let read = |pieces: &[&[u8]]| in_words(new(), pieces);
    assert_eq!(read(&[bytes]), expected, "{body} whole");
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(&[left, right]), expected, "{body} split at {at}");
    }
    assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{body} byte by byte");
}

/// Cuts `body` at every byte of its first `whole_bytes`: the events must be a prefix of all events, without an
/// end, and `is_expected` of the place and the failure.
#[track_caller]
pub(in crate::engine) fn check_cuts<'a, R: ResponseReader<'a>>(
    new: impl Fn() -> R,
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

/// The events in words, adjacent texts joined, and the class of the failure.
fn words(events: &[EngineEvent], result: &Result<(), Failure>) -> String {
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
            let data =
                provider_data.as_ref().map_or(String::new(), |data| format!(" {}", data.json));
            (format!("END {stop_reason:?} {}{data}", class.as_str()), String::new())
        }
        EngineEvent::CallStarted => ("CALL".into(), String::new()),
        EngineEvent::ResponseStarted => ("RESPONSE".into(), String::new()),
        EngineEvent::ContextTokens(tokens) => (format!("CONTEXT {tokens}"), String::new()),
        EngineEvent::RetryScheduled(_) | EngineEvent::RetryStarted(_) => {
            ("RETRY".into(), String::new())
        }
    }
}

/// All text in the events: of the answer, the reasoning and the arguments.
fn texts(events: &[EngineEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        EngineEvent::Text(text)
        | EngineEvent::Reasoning { text, .. }
        | EngineEvent::ToolArguments { text, .. } => Some(text.as_str()),
        EngineEvent::CallStarted
        | EngineEvent::ResponseStarted
        | EngineEvent::ToolCallStarted(_)
        | EngineEvent::ToolCallRequested { .. }
        | EngineEvent::Usage(_)
        | EngineEvent::ContextTokens(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_)
        | EngineEvent::CallFinished { .. } => None,
    });
    texts.collect()
}
