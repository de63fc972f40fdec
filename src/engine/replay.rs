//! Reads a whole response that comes in any pieces, for tests and fuzz targets.

#[cfg(test)]
mod tests;

use super::provider::body::BodyEnd;
use super::provider::failure::{Failure, Failures};
use super::provider::interface::Interface;
use super::provider::response::ResponseReader;
use super::{EngineEvent, RunError, SettingNames};
use super::{anthropic, gemini, ollama, openai, responses};
use crate::protocol::id::ToolCallId;
use crate::support::cuts::cuts;
use crate::support::secret::Secret;

/// The key of the calls, which no error may repeat.
const KEY: &str = "sk-secret/123456";

/// Reads the response that these pieces are.
pub(crate) type Read = fn(&[&[u8]]) -> Answer;

/// Each engine that reads responses, by its name.
pub(crate) const ENGINES: [(&str, Read); 5] = [
    ("openai", read::<openai::ChatCompletions>),
    ("responses", read::<responses::ResponsesApi>),
    ("anthropic", read::<anthropic::Messages>),
    ("gemini", read::<gemini::GenerateContent>),
    ("ollama", read::<ollama::Chat>),
];

/// What a response says: its events, with adjacent pieces of a text joined, and how it failed.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) events: Vec<EngineEvent>,
    pub(crate) error: Option<RunError>,
}

/// Checks that `body` is read alike however it is cut, and that its events are in order.
pub(crate) fn check(read: Read, body: &[u8]) {
    let [whole, others @ ..] = cuts(body).map(|pieces| read(&pieces));
    for other in others {
        assert_eq!(other, whole, "cut into other pieces");
    }
    check_order(&whole);
    for text in whole.error.iter().flat_map(|error| [&error.message, &error.detail]) {
        assert!(!text.contains(KEY), "{text}");
    }
}

/// Calls begin before their arguments and are requested once; the end is last, and leaves no call open.
fn check_order(Answer { events, error }: &Answer) {
    let mut open: Vec<&ToolCallId> = Vec::new();
    let mut is_at_end = false;
    for event in events {
        assert!(!is_at_end, "after the end: {event:?}");
        if let EngineEvent::ToolCallStarted(tool) = event {
            assert!(!tool.name.is_empty() && !open.contains(&&tool.id), "{events:?}");
            open.push(&tool.id);
        } else if let EngineEvent::ToolArguments { id, .. } = event {
            assert!(open.contains(&id), "no call for the arguments: {events:?}");
        } else if let EngineEvent::ToolCallRequested { id } = event {
            let at = open.iter().position(|open| *open == id).expect("an open call");
            open.remove(at);
        }
        is_at_end = matches!(event, EngineEvent::CallFinished { .. });
    }
    assert!(is_at_end || error.is_some(), "no end: {events:?}");
    assert!(!is_at_end || open.is_empty(), "open calls: {open:?}");
}

fn read<I: Interface>(pieces: &[&[u8]]) -> Answer {
    let key = Secret::new(KEY);
    let failures = Failures::new(&SettingNames::FIELDS, key.as_ref(), "http://host", "m");
    let (events, result) = read_pieces(I::reader(&failures, BodyEnd::Marked, &[]), pieces);
    Answer { events: joined(events), error: result.err().map(Failure::into_error) }
}

/// Reads a body that arrives in `pieces`.
pub(in crate::engine) fn read_pieces<'a>(
    mut reader: impl ResponseReader<'a>,
    pieces: &[&[u8]],
) -> (Vec<EngineEvent>, Result<(), Failure>) {
    let mut events = Vec::new();
    for piece in pieces {
        if reader.is_done() {
            break;
        }
        if let Err(failure) = reader.push(piece, &mut events) {
            reader.flush(&mut events);
            return (events, Err(failure));
        }
    }
    let result = reader.end("text/plain", &mut events);
    (events, result)
}

fn joined(events: Vec<EngineEvent>) -> Vec<EngineEvent> {
    let mut joined: Vec<EngineEvent> = Vec::new();
    for event in events {
        if !joined.last_mut().is_some_and(|last| goes_on(last, &event)) {
            joined.push(event);
        }
    }
    joined
}

/// Adds the text of `event` to `last`, if that is the same text.
fn goes_on(last: &mut EngineEvent, event: &EngineEvent) -> bool {
    if let (EngineEvent::Text(text), EngineEvent::Text(more)) = (&mut *last, event) {
        text.push_str(more);
        return true;
    }
    if let EngineEvent::Reasoning { source, text } = last
        && let EngineEvent::Reasoning { source: same, text: more } = event
        && source == same
    {
        text.push_str(more);
        return true;
    }
    if let EngineEvent::ToolArguments { id, text } = last
        && let EngineEvent::ToolArguments { id: same, text: more } = event
        && id == same
    {
        text.push_str(more);
        return true;
    }
    false
}
