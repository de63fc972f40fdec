//! Lists the events of a stream, one small flat object for each: the output of `list-events`.
//! Pure; only the ordinal of the last event is remembered.

use crate::conformance::check;
use crate::protocol::json::{self, Number};
use serde::de::{Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The first line of a listing as JSON Lines: it names the format of the following lines.
pub const PREAMBLE: &str = r#"{"_format": "jsonl", "_schema": "EventEntry", "_version": 1}"#;

/// The latest time at which an event can have happened, as frames have no timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub ts: u64,
    /// The time in milliseconds, if the stream is read while it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts_ms: Option<u64>,
}

/// One event of a stream. Absent fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// `e` and the ordinal; the second event of one ordinal has the suffix `.2`, and so on.
    pub id: String,
    /// The event's name, as in `ChatTextPatch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened at the latest.
    #[serde(flatten)]
    pub time: EventTime,
    /// Line number of the frame in the stream, from 1.
    pub line: u64,
    /// The request it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The message it is about: a segment, or the root message of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The tool call it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The role: `user`, `assistant`, `thinking`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The status, as in `streaming`; of an approval the decision, of a tool server its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why its run failed or was stopped, a call was denied, or a tool server is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of its text, of its arguments or of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<usize>,
}

/// Lists events line by line.
#[derive(Debug, Default)]
pub(crate) struct Lister {
    line: u64,
    ordinal: u64,
    /// Events of that ordinal so far.
    sharing: u32,
}

/// A line that is not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub(crate) struct BadLine {
    pub(super) line: u64,
    pub(super) reason: String,
    /// The last line is an incomplete frame, as when its writer was killed; not an error.
    pub(crate) is_cut_off: bool,
}

/// The fields of a frame that an entry uses. Others are ignored: the types of extensions need not
/// be known to be listed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    #[serde(alias = "request_id")]
    request_id: Option<String>,
    #[serde(alias = "ui_event")]
    ui_event: Option<UiEvent>,
    hello: Option<IgnoredAny>,
    snapshot: Option<IgnoredAny>,
    #[serde(alias = "backend_event")]
    backend_event: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    done: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct UiEvent {
    ordinal: Option<Number<u64>>,
    name: Option<String>,
    payload: Option<Payload>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    message_id: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    role: Option<String>,
    status: Option<String>,
    error: Option<String>,
    text: Option<TextBytes>,
    arguments: Option<TextBytes>,
    result: Option<Text>,
    /// Of an approval: what was decided.
    decision: Option<String>,
    /// Of a tool server.
    state: Option<String>,
    reason: Option<String>,
}

/// The length of a text, which may have hundreds of megabytes: it is not copied.
struct TextBytes(usize);

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = TextBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextBytes, E> {
        Ok(TextBytes(text.len()))
    }
}

/// A text, or something else that has no length.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(TextBytes),
    Other(IgnoredAny),
}

impl Lister {
    /// A lister for one stream.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Lists the next line, without its line feed, which was there at `time`; returns its event, if
    /// it has one.
    ///
    /// # Errors
    /// If the line is not a frame.
    pub(crate) fn line(&mut self, time: EventTime, line: &[u8]) -> Result<Option<Entry>, BadLine> {
        self.line += 1;
        let frame = read(line).map_err(|reason| self.bad(reason))?;
        let entry = frame.ui_event.map(|event| self.entry(frame.request_id, event));
        Ok(entry.map(|entry| Entry { time, ..entry }))
    }

    /// Reports a line of more than `bytes_max` bytes, which was not buffered.
    pub(crate) fn long_line(&mut self, bytes_max: usize) -> BadLine {
        self.line += 1;
        self.bad(format!("it has more than {bytes_max} bytes and was ignored"))
    }

    /// Lists the text after the last line feed: an event, or an incomplete line.
    ///
    /// # Errors
    /// If it is not a whole frame: either incomplete, or something that can't become one.
    pub(crate) fn tail(&mut self, time: EventTime, tail: &[u8]) -> Result<Option<Entry>, BadLine> {
        self.line(time, tail).map_err(|bad| match check::is_cut_off(tail) {
            false => bad,
            true => BadLine {
                reason: format!("the last line is cut off after {} bytes", tail.len()),
                is_cut_off: true,
                ..bad
            },
        })
    }

    fn bad(&self, reason: String) -> BadLine {
        BadLine { line: self.line, reason, is_cut_off: false }
    }

    fn entry(&mut self, request_id: Option<String>, event: UiEvent) -> Entry {
        let payload = event.payload.unwrap_or_default();
        let result = match payload.result {
            Some(Text::Text(text)) => Some(text.0),
            Some(Text::Other(_)) | None => None,
        };
        // Only these have a status under another name, and then a reason for it.
        let other_status = payload.decision.or(payload.state);
        let reason = other_status.as_ref().and(payload.reason);
        let text_bytes = payload.text.or(payload.arguments).map(|text| text.0).or(result);
        Entry {
            id: self.id(event.ordinal.map_or(0, |ordinal| ordinal.0)),
            kind: event.name.unwrap_or_default(),
            time: EventTime::default(),
            line: self.line,
            request_id,
            message_id: payload.message_id,
            tool_call_id: payload.tool_call_id,
            tool_name: payload.tool_name,
            role: payload.role,
            status: payload.status.or(other_status),
            error: payload.error.or(reason).filter(|error| !error.is_empty()),
            text_bytes,
        }
    }

    fn id(&mut self, ordinal: u64) -> String {
        self.sharing = if ordinal == self.ordinal { self.sharing + 1 } else { 1 };
        self.ordinal = ordinal;
        match self.sharing {
            1 => format!("e{ordinal}"),
            nth => format!("e{ordinal}.{nth}"),
        }
    }
}

fn read(line: &[u8]) -> Result<Frame, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let frame: Frame =
        json::read(text).map_err(|error| format!("it is not a frame of the protocol: {error}"))?;
    let others = [&frame.hello, &frame.snapshot, &frame.backend_event, &frame.error, &frame.done];
    if frame.ui_event.is_none() && others.iter().all(|other| other.is_none()) {
        return Err("it is JSON, but not a frame of the protocol".to_owned());
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ts: u64) -> EventTime {
        EventTime { ts, ts_ms: None }
    }

    #[test]
    fn entries() {
        let patch = r#"{"version":1,"sessionId":"s","requestId":"r","uiEvent":{"ordinal":"7","name":"ChatTextPatch","payload":{"@type":"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch","messageId":"m","role":"assistant","text":"Grüße","status":"streaming"}}}"#;
        let mut lister = Lister::new();
        let hello = br#"{"version":1,"sessionId":"s","hello":{}}"#;
        assert_eq!(lister.line(at(9), hello), Ok(None));
        let entry = lister.line(at(10), patch.as_bytes()).expect("a frame").expect("an event");
        assert_eq!(
            serde_json::to_string(&entry).expect("JSON"),
            r#"{"id":"e7","type":"ChatTextPatch","ts":10,"line":2,"requestId":"r","messageId":"m","role":"assistant","status":"streaming","textBytes":7}"#
        );
        let live = EventTime { ts: 10, ts_ms: Some(10_007) };
        let entry = lister.line(live, patch.as_bytes()).expect("a frame").expect("an event");
        let entry = serde_json::to_string(&entry).expect("JSON");
        let expected = r#"{"id":"e7.2","type":"ChatTextPatch","ts":10,"tsMs":10007,"line":3,"#;
        assert!(entry.starts_with(expected), "{entry}");
    }

    #[test]
    fn events_of_extensions() {
        let mut lister = Lister::new();
        let mut entry = |name: &str, payload: &str| {
            let line = format!(
                r#"{{"uiEvent":{{"ordinal":"1","name":"{name}","payload":{{{payload}}}}}}}"#
            );
            lister.line(at(1), line.as_bytes()).expect("a frame").expect("an event")
        };
        let denied = entry(
            "ToolApprovalResolved",
            r#""toolCallId":"c","toolName":"t","decision":"DENY","reason":"no","correlation":{}"#,
        );
        let of_call = (denied.tool_call_id.as_deref(), denied.tool_name.as_deref());
        assert_eq!(of_call, (Some("c"), Some("t")));
        assert_eq!((denied.status.as_deref(), denied.error.as_deref()), (Some("DENY"), Some("no")));
        let gone = entry("ToolServerChanged", r#""server":"s","state":"GONE","reason":"killed""#);
        assert_eq!((gone.status.as_deref(), gone.error.as_deref()), (Some("GONE"), Some("killed")));
        assert_eq!(gone.request_id, None);
        let asked = entry("FrontendToolCallRequested", r#""input":{"a":[1]},"status":"pending""#);
        assert_eq!((asked.status.as_deref(), asked.text_bytes), (Some("pending"), None));
        let rejected = entry("LineRejected", r#""reason":"no JSON""#);
        assert_eq!(rejected.error, None);
    }

    #[test]
    fn events_of_one_ordinal_have_their_own_ids() {
        let mut lister = Lister::new();
        let mut id = |ordinal: &str| {
            let line = format!(r#"{{"uiEvent":{{"ordinal":{ordinal},"name":"X"}}}}"#);
            lister.line(at(1), line.as_bytes()).expect("a frame").expect("an event").id
        };
        let ids = ["\"1\"", "1", "2", "\"2\"", "2", "3"].map(&mut id);
        assert_eq!(ids, ["e1", "e1.2", "e2", "e2.2", "e2.3", "e3"]);
    }

    #[test]
    fn what_is_no_frame_is_reported_with_its_line() {
        let mut lister = Lister::new();
        let wrong: [&[u8]; 6] =
            [b"", b"x", b"{}", b"[]", b"\xff", br#"{"uiEvent":{"ordinal":"x"}}"#];
        for (line, wrong) in (1..).zip(wrong) {
            let error = lister.line(at(1), wrong).expect_err("no frame").to_string();
            assert!(error.starts_with(&format!("line {line}: ")), "{error}");
        }
        let error = lister.tail(at(1), br#"{"version":1,"ses"#).expect_err("a piece");
        assert_eq!(error.to_string(), "line 7: the last line is cut off after 17 bytes");
        assert!(error.is_cut_off);
        let garbage = lister.tail(at(1), b"garbage");
        assert!(!garbage.expect_err("no frame").is_cut_off);
    }

    /// Clients read the first line to determine the format.
    #[test]
    fn the_preamble_is_as_documented() {
        let preamble: serde_json::Value = serde_json::from_str(PREAMBLE).expect("JSON");
        let expected =
            serde_json::json!({ "_format": "jsonl", "_schema": "EventEntry", "_version": 1 });
        assert_eq!(preamble, expected);
    }
}
