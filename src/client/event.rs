//! Frames as a client reads them: those of a later version are kept, and not an error. Pure.

use crate::protocol::any::{Any, message_from_value, read_written};
use crate::protocol::proto::rpc::{RpcLine, SnapshotEntity, SnapshotFrame, UiEventFrame};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// An event of a run or of the session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the session.
    pub ordinal: u64,
    /// Its name, as `ChatTextPatch`.
    pub name: String,
    /// What it says; `None` if this version of the library does not know its type. [`Self::line`] has all of it.
    pub payload: Option<Any>,
    /// The frame that it came in, as JSON, with the fields that this version of the library does not know.
    pub line: Arc<str>,
}

impl Event {
    pub(super) fn new(event: UiEventFrame, line: &str) -> Self {
        let UiEventFrame { ordinal, name, payload } = event;
        Self { ordinal, name, payload, line: line.into() }
    }

    /// The payload as JSON, with the fields that this version of the library does not know.
    pub fn raw(&self) -> Value {
        let frame: Value = serde_json::from_str(&self.line).unwrap_or_default();
        frame.pointer("/uiEvent/payload").cloned().unwrap_or_default()
    }
}

/// A conversation, or the part of it that was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The ordinal of the last event that it has.
    pub ordinal: u64,
    /// Messages, tool calls and results, oldest first.
    pub entities: Vec<Entity>,
}

/// A message, a tool call or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// `ChatMessage`, `ChatToolCall` or `ChatToolResult`, or what a later version calls it.
    pub kind: String,
    /// Its id, of which there is one in its kind.
    pub id: String,
    /// The ordinal of the event that made it.
    pub created_ordinal: u64,
    /// The ordinal of the last event that changed it.
    pub last_event_ordinal: u64,
    /// It was removed, and has no payload.
    pub is_removed: bool,
    /// What it says; `None` if this version of the library does not know its type. [`Self::json`] has all of it.
    pub payload: Option<Any>,
    /// The whole entity as JSON, with the fields that this version of the library does not know.
    pub json: Arc<str>,
}

impl Entity {
    /// The payload as JSON, with the fields that this version of the library does not know.
    pub fn raw(&self) -> Value {
        let entity: Value = serde_json::from_str(&self.json).unwrap_or_default();
        entity.get("payload").cloned().unwrap_or_default()
    }
}

/// The entities of a snapshot's line, as they are written there.
#[derive(Deserialize)]
struct WrittenLine<'a> {
    #[serde(borrow)]
    snapshot: WrittenSnapshot<'a>,
}

#[derive(Deserialize)]
struct WrittenSnapshot<'a> {
    #[serde(borrow, default)]
    entities: Vec<&'a RawValue>,
}

impl Snapshot {
    /// The snapshot of a frame that was read from this line.
    pub(super) fn new(frame: SnapshotFrame, line: &str) -> Self {
        let written = serde_json::from_str::<WrittenLine<'_>>(line);
        let written = written.map(|it| it.snapshot.entities).unwrap_or_default();
        let written = written.into_iter().map(RawValue::get).chain(std::iter::repeat(""));
        let entities = frame.entities.into_iter().zip(written).map(|(entity, json)| {
            let SnapshotEntity {
                kind,
                id,
                created_ordinal,
                last_event_ordinal,
                tombstone,
                payload,
            } = entity;
            let (is_removed, json) = (tombstone, json.into());
            Entity { kind, id, created_ordinal, last_event_ordinal, is_removed, payload, json }
        });
        Self { ordinal: frame.snapshot_ordinal, entities: entities.collect() }
    }
}

/// The member of a payload with the URL of its type.
const TYPE: &str = "@type";

/// A frame of the server. What is not known in it is left out.
pub(super) fn read_frame(text: &str) -> Result<RpcLine, String> {
    match read_written::<RpcLine>(text) {
        Ok(line) => Ok(line),
        Err(why) => read_newer(text).ok_or_else(|| why.to_string()),
    }
}

/// A frame of a later version: payloads that are not known are left out.
fn read_newer(text: &str) -> Option<RpcLine> {
    let mut frame: Value = serde_json::from_str(text).ok()?;
    let members = frame.as_object_mut()?;
    if let Some(event) = members.get_mut("uiEvent") {
        drop_unknown(event);
    }
    if let Some(entities) = members.get_mut("snapshot").and_then(|it| it.get_mut("entities")) {
        entities.as_array_mut()?.iter_mut().for_each(drop_unknown);
    }
    message_from_value(frame).ok()
}

fn drop_unknown(with_payload: &mut Value) {
    let Some(members) = with_payload.as_object_mut() else { return };
    let is_known = |payload: &Value| Any::deserialize(payload).is_ok();
    let Some(payload) = members.get_mut("payload").filter(|it| !is_known(it)) else { return };
    // A value of a field, as one of an enum, may be newer than the type.
    if let Some(fields) = payload.as_object_mut() {
        let url = fields.get(TYPE).cloned().unwrap_or_default();
        fields.retain(|name, value| {
            name == TYPE || is_known(&json!({ TYPE: url, name.as_str(): value }))
        });
    }
    if !is_known(payload) {
        members.shift_remove("payload");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::rpc::rpc_line::Frame;

    #[test]
    fn an_event_of_a_later_version_is_kept_without_what_is_not_known() {
        let text = r#"{"requestId":"a","uiEvent":{"ordinal":"7","name":"New","payload":{"@type":"x/y.New","deep":[1]}}}"#;
        let Some(Frame::UiEvent(event)) = read_frame(text).expect("a frame").frame else {
            panic!()
        };
        assert_eq!((event.ordinal, event.name.as_str(), event.payload), (7, "New", None));
        let line = Arc::from(text);
        let event = Event { ordinal: 7, name: event.name, payload: None, line };
        assert_eq!(event.raw()["deep"], serde_json::json!([1]));
    }

    #[test]
    fn a_field_with_a_value_of_a_later_version_is_left_out_alone() {
        let text = r#"{"uiEvent":{"ordinal":"7","name":"ChatTextPatch","payload":{
            "@type":"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch","text":"hi","mode":"NEWER"}}}"#;
        let Some(Frame::UiEvent(event)) = read_frame(text).expect("a frame").frame else {
            panic!()
        };
        let Some(Any::ChatTextPatch(patch)) = event.payload else { panic!("{event:?}") };
        assert_eq!((patch.text.as_str(), patch.mode), ("hi", 0));
    }

    #[test]
    fn an_entity_of_a_later_version_has_no_payload() {
        let text = r#"{"snapshot":{"snapshotOrdinal":"3","entities":[{"kind":"New","id":"n","payload":{"@type":"x/y.New"}}]}}"#;
        let Some(Frame::Snapshot(snapshot)) = read_frame(text).expect("a frame").frame else {
            panic!()
        };
        let Snapshot { ordinal, entities } = Snapshot::new(snapshot, text);
        assert_eq!((ordinal, entities.len(), &entities[0].payload), (3, 1, &None));
        assert_eq!(entities[0].raw(), json!({"@type": "x/y.New"}));
        assert!(read_frame("no frame").is_err());
    }
}
