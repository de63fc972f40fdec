//! The rows of a log, read with the descriptors of the stored form and nothing else of the program.

use duologue::protocol::proto::DESCRIPTORS;
use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// An event: its ordinal, the name of its member in `StoredEvent`, and what that has.
pub(crate) type StoredEvent = (u64, String, Value);

/// The message of that full name, which begins with a dot.
fn message<'a>(files: &'a FileDescriptorSet, name: &str) -> &'a DescriptorProto {
    let of_file = files.file.iter().find_map(|file| {
        let package = format!(".{}.", file.package());
        let own = name.strip_prefix(&package)?;
        file.message_type.iter().find(|message| message.name() == own)
    });
    of_file.unwrap_or_else(|| panic!("no message {name}"))
}

fn read(files: &FileDescriptorSet, name: &str, mut bytes: &[u8]) -> Value {
    let about = message(files, name);
    let mut object = Map::new();
    while bytes.has_remaining() {
        let (tag, wire_type) = decode_key(&mut bytes).expect("a key");
        let number = decode_varint(&mut bytes).expect("a number");
        let field = about.field.iter().find(|field| field.number() == tag.cast_signed());
        let field = field.unwrap_or_else(|| panic!("no field {tag} in {name}"));
        let value = if wire_type == WireType::Varint {
            json!(number)
        } else {
            assert_eq!(wire_type, WireType::LengthDelimited, "{tag} in {name}");
            let (value, rest) = bytes.split_at(usize::try_from(number).expect("a length"));
            bytes = rest;
            let is_other = field.type_name().starts_with(".google.");
            if field.r#type() == Type::Message && !is_other {
                read(files, field.type_name(), value)
            } else if field.r#type() == Type::String {
                json!(std::str::from_utf8(value).expect("a text"))
            } else {
                json!(value.len())
            }
        };
        match field.label() {
            Label::Repeated => {
                let list = object.entry(field.name()).or_insert_with(|| json!([]));
                list.as_array_mut().expect("a list").push(value);
            }
            Label::Optional | Label::Required => {
                drop(object.insert(field.name().to_owned(), value))
            }
        }
    }
    Value::Object(object)
}

/// The events of a row.
pub(crate) fn events_of(row: &[u8]) -> Vec<StoredEvent> {
    static FILES: LazyLock<FileDescriptorSet> =
        LazyLock::new(|| FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors"));
    let events = read(&FILES, ".duologue.store.v1.StoredEvents", row);
    let events = events["events"].as_array().cloned().unwrap_or_default();
    let event = |event: Value| {
        let object = event.as_object().expect("an object");
        let ordinal = object["ordinal"].as_u64().expect("a number");
        let member = object.iter().find(|(name, _)| !matches!(name.as_str(), "ordinal" | "scope"));
        let (name, value) = member.expect("a member");
        (ordinal, name.clone(), value.clone())
    };
    events.into_iter().map(event).collect()
}

/// The events in all rows of the store, in their order.
pub(crate) fn events(store: &Path) -> Vec<StoredEvent> {
    let connection =
        Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("a store");
    let sql = "SELECT events FROM log ORDER BY session, number";
    let mut statement = connection.prepare(sql).expect("a table");
    let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).expect("rows");
    rows.flat_map(|row| events_of(&row.expect("a row"))).collect()
}

/// The member of `StoredEvent` for a UI event.
pub(crate) fn member(ui_event: &str) -> &'static str {
    match ui_event {
        "ChatUserMessageAccepted" => "prompt_accepted",
        "ChatRunStarted" => "run_started",
        "ChatProviderCallStarted" => "call_started",
        "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted" => "segment_started",
        "ChatTextPatch" | "ChatReasoningPatch" => "segment_patched",
        "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => "segment_finished",
        "ChatProviderCallMetadataUpdated" => "call_metadata_updated",
        "ChatProviderCallFinished" => "call_finished",
        "ChatRunFinished" => "run_finished",
        "ChatRunStopped" => "run_stopped",
        "ChatRunFailed" => "run_failed",
        "TurnDropped" => "turn_dropped",
        other => panic!("no member is known for {other}"),
    }
}
