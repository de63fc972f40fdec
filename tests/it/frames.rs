//! A frame, as a test asks about it, and request lines.

use serde_json::{Value, json};

/// A line of output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame(pub(crate) Value);

impl Frame {
    pub(crate) fn parse(line: &[u8]) -> Self {
        let text = std::str::from_utf8(line).expect("frames are UTF-8");
        Self(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// The request it answers; empty if none.
    pub(crate) fn id(&self) -> &str {
        self.text("/requestId")
    }

    /// The status of a `done`.
    pub(crate) fn done(&self) -> Option<&str> {
        self.0.get("done").map(|_| self.text("/done/status"))
    }

    /// The code of an error.
    pub(crate) fn error(&self) -> Option<&str> {
        self.0.get("error").map(|_| self.text("/error/code"))
    }

    /// The name of an event.
    pub(crate) fn event(&self) -> Option<&str> {
        self.0.get("uiEvent").map(|_| self.text("/uiEvent/name"))
    }

    pub(crate) fn is_event(&self, name: &str) -> bool {
        self.event() == Some(name)
    }

    pub(crate) fn is_snapshot(&self) -> bool {
        self.0.get("snapshot").is_some()
    }

    /// A `done` of this request.
    pub(crate) fn ends(&self, id: &str) -> bool {
        self.done().is_some() && self.id() == id
    }

    /// A field of an event's payload; empty if it is absent or no text.
    pub(crate) fn payload(&self, field: &str) -> &str {
        self.text(&format!("/uiEvent/payload/{field}"))
    }

    pub(crate) fn ordinal(&self) -> Option<u64> {
        self.event().map(|_| self.text("/uiEvent/ordinal").parse().expect("a number"))
    }

    /// The text at `pointer` (RFC 6901); empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The entities of a snapshot: role and text of each message.
    pub(crate) fn messages(&self) -> Vec<(&str, &str)> {
        let entities = self.0.pointer("/snapshot/entities").and_then(Value::as_array);
        entities.map(|all| all.iter().map(message).collect()).unwrap_or_default()
    }
}

fn message(entity: &Value) -> (&str, &str) {
    let text = |field: &str| entity["payload"][field].as_str().unwrap_or_default();
    (text("role"), text("text"))
}

/// All text that was streamed to the request `id`.
pub(crate) fn patched_text(frames: &[Frame], id: &str) -> String {
    let patches = frames.iter().filter(|frame| frame.id() == id && frame.is_event("ChatTextPatch"));
    patches.map(|frame| frame.payload("text")).collect()
}

/// All text that was complete for the request `id`, segment by segment.
pub(crate) fn finished_text(frames: &[Frame], id: &str) -> String {
    let is_end = |frame: &&Frame| frame.id() == id && frame.is_event("ChatTextSegmentFinished");
    frames.iter().filter(is_end).map(|frame| frame.payload("text")).collect()
}

/// How each request ended, in order.
pub(crate) fn ends(frames: &[Frame]) -> Vec<(String, String)> {
    let ends = frames.iter().filter_map(|frame| Some((frame.id(), frame.done()?)));
    ends.map(|(id, status)| (id.to_owned(), status.to_owned())).collect()
}

/// The codes of the errors of the request `id`.
pub(crate) fn errors<'a>(frames: &'a [Frame], id: &str) -> Vec<&'a str> {
    frames.iter().filter(|frame| frame.id() == id).filter_map(Frame::error).collect()
}

pub(crate) fn submit(id: &str, prompt: &str) -> String {
    json!({ "requestId": id, "submit": { "prompt": prompt } }).to_string()
}

pub(crate) fn cancel(id: &str) -> String {
    json!({ "requestId": id, "cancel": {} }).to_string()
}

pub(crate) fn snapshot(id: &str) -> String {
    json!({ "requestId": id, "snapshot": {} }).to_string()
}

pub(crate) fn shutdown(id: &str) -> String {
    json!({ "requestId": id, "shutdown": {} }).to_string()
}
