//! Tests the JSON mapping with `tests/data/json_mapping.jsonl`, whose expectations come from
//! other implementations of protobuf.

use super::{Any, Duration, FieldMask, Kind, Struct, Timestamp, read_message};
use crate::protocol::json::{self, Error};
use crate::protocol::proto::{
    DESCRIPTORS, chat, extract, frontendtools, provider, rpc, session, tools,
};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

const CORPUS: &str = include_str!("../../../tests/data/json_mapping.jsonl");

/// A line of the corpus: `out` is the canonical form, and missing if `in` is an error.
#[derive(Deserialize)]
struct Row {
    r#type: String,
    r#in: String,
    out: Option<Value>,
    /// It can be read but not written: an enum number without a name has no JSON here.
    #[serde(default)]
    only_read: bool,
}

/// Reads and writes a message.
fn canonical<T>(text: &str) -> Result<Value, Error>
where
    T: Message + prost::Name + Default + Debug + PartialEq + Serialize,
{
    let message: T = read_message(text)?;
    let bytes = message.encode_to_vec();
    assert_eq!(bytes.len(), message.encoded_len());
    assert_eq!(T::decode(&*bytes).as_ref(), Ok(&message), "by way of bytes");
    let mut line = Vec::new();
    json::write_line(&message, &mut line)?;
    let line = String::from_utf8(line).expect("what is written is UTF-8");
    assert_eq!(line.lines().count(), 1, "{line:?}");
    assert!(!line.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{line:?}");
    assert_eq!(read_message::<T>(&line).as_ref(), Ok(&message), "read again");
    Ok(json::read(&line).expect("what is written is well-formed"))
}

/// A function that finds the reader and writer of each message by its full name, and the list of
/// names.
macro_rules! messages {
    ($($module:ident in $package:literal: $($name:ident)*;)*) => {
        const NAMES: &[&str] = &[$($(concat!($package, ".", stringify!($name)),)*)*];

        fn canonical_of(name: &str, text: &str) -> Result<Value, Error> {
            match name {
                $($(concat!($package, ".", stringify!($name)) => canonical::<$module::$name>(text),)*)*
                _ => panic!("the corpus names a type that this test does not: {name}"),
            }
        }
    };
}

messages! {
    rpc in "pinocchio.chatapp.rpc.v1":
        ApproveRequest BackendEventFrame CancelRequest CompactRequest DoneFrame DropLastTurn EditRequest
        EnableRequest ErrorFrame HelloFrame Regenerate ReplacePrompt ResourceReference RpcLine
        RpcRequestLine ShutdownRequest SnapshotEntity SnapshotFrame SnapshotRequest SubmitPromptRequest
        SwitchModelRequest UiEventFrame;
    chat in "pinocchio.chatapp.v1":
        ChatAttachment ChatMessageEntity ChatProviderCallFinished
        ChatProviderCallMetadataUpdated ChatProviderCallStarted ChatReasoningDelta
        ChatReasoningPatch ChatReasoningSegmentFinished ChatReasoningSegmentStarted
        ChatRunFailed ChatRunFinished ChatRunStarted ChatRunStopped ChatTextDelta ChatTextPatch
        ChatTextSegmentFinished ChatTextSegmentStarted ChatToolArgumentsDelta
        ChatToolArgumentsPatch ChatToolCallFinished ChatToolCallRequested ChatToolCallStarted
        ChatToolExecutionStarted ChatToolResultReady ChatUserMessageAccepted CorrelationInfo
        ToolCallEntity ToolResultEntity UsageInfo;
    frontendtools in "pinocchio.chatapp.frontendtools.v1":
        FrontendToolCallEntity FrontendToolCallRequested FrontendToolDescriptor
        FrontendToolManifestCommand FrontendToolManifestUpdated FrontendToolResultCommand
        FrontendToolResultReceived;
    extract in "duologue.extract.v1":
        AnswerRejected ExtractionFinished LineRejected ObjectExtracted;
    tools in "duologue.tools.v1":
        ToolApprovalRequested ToolApprovalResolved ToolCallProgressed ToolServerChanged;
    session in "duologue.session.v1":
        BudgetNearlySpent Compacted CompactionFailed CompactionProposed CompactionStarted
        Heartbeat SteeringAccepted StoreDegraded TokenCounts TurnDropped TurnSummary UsageTotals;
    provider in "duologue.provider.v1":
        AnswerTruncated CallTiming ModelSwitched RetryScheduled RetryStarted;
}

#[test]
fn corpus() {
    let mut wrong = Vec::new();
    for (index, line) in CORPUS.lines().enumerate() {
        let row: Row = serde_json::from_str(line).expect("a row of the corpus");
        let out = canonical_of(&row.r#type, &row.r#in);
        let is_right = match &out {
            Ok(out) => !row.only_read && row.out.as_ref() == Some(out),
            Err(error) if row.only_read => error.to_string().starts_with("Invalid variant"),
            Err(_) => row.out.is_none(),
        };
        if !is_right {
            let expected = row.out.map_or("an error".to_owned(), |out| out.to_string());
            wrong.push(format!(
                "line {}: {}\n  {out:?}\n  expected {expected}",
                index + 1,
                row.r#in
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_corpus_has_every_message() {
    let rows = CORPUS.lines().map(|line| serde_json::from_str::<Row>(line).expect("a row"));
    let seen: BTreeSet<String> = rows.map(|row| row.r#type).collect();
    let files = prost_types::FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
    // Messages of a store's records have no JSON form.
    let has_json =
        |package: &str| !package.starts_with("google.") && package != "duologue.store.v1";
    let ours = files.file.iter().filter(|file| has_json(file.package()));
    let all: BTreeSet<String> = ours
        .flat_map(|file| {
            file.message_type.iter().map(|m| format!("{}.{}", file.package(), m.name()))
        })
        .collect();
    assert_eq!(seen, all);
    assert_eq!(NAMES.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), all);
}

/// The list of payloads matches the packages, and every default survives both forms.
#[test]
fn every_message_is_a_payload() {
    let files = prost_types::FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
    let mut payloads = 0;
    for file in &files.file {
        let others = ["pinocchio.chatapp.rpc.v1", "google.protobuf", "duologue.store.v1"];
        let payload = !others.contains(&file.package());
        for message in &file.message_type {
            let url = format!("type.googleapis.com/{}.{}", file.package(), message.name());
            let read = json::read::<Any>(&format!(r#"{{"@type":"{url}"}}"#));
            if !payload {
                assert!(read.is_err(), "{url}");
                continue;
            }
            let any = read.expect("a payload");
            assert_eq!(any.name(), message.name());
            let bytes = prost_types::Any { type_url: url, value: Vec::new() };
            assert_eq!(any.encode_to_vec(), bytes.encode_to_vec());
            assert_eq!(Any::decode(&*bytes.encode_to_vec()), Ok(any));
            payloads += 1;
        }
    }
    assert_eq!(payloads, 61);
}

/// One line in wire format.
fn written(any: &Any) -> Result<String, Error> {
    let mut line = Vec::new();
    json::write_line(any, &mut line)?;
    Ok(String::from_utf8(line).expect("what is written is UTF-8"))
}

/// A payload with this object in it.
fn any_of(object: &str) -> Any {
    let text = format!(
        r#"{{"input":{object},"@type":"{}FrontendToolCallRequested","messageId":"m"}}"#,
        "type.googleapis.com/pinocchio.chatapp.frontendtools.v1."
    );
    json::read(&text).expect("a payload")
}

fn hash_of(any: &Any) -> u64 {
    let mut state = DefaultHasher::new();
    any.hash(&mut state);
    state.finish()
}

#[test]
fn the_type_is_written_first_and_an_object_keeps_its_order() {
    let any = any_of(r#"{"z":1,"a":{"c":null,"b":[1.5,true]}}"#);
    let expected = concat!(
        r#"{"@type":"type.googleapis.com/pinocchio.chatapp.frontendtools.v1."#,
        r#"FrontendToolCallRequested","messageId":"m","#,
        r#""input":{"z":1,"a":{"c":null,"b":[1.5,true]}}}"#,
        "\n"
    );
    assert_eq!(written(&any).as_deref(), Ok(expected));
    let stored = Any::decode(&*any.encode_to_vec()).expect("a payload");
    assert_eq!(written(&stored).as_deref(), Ok(expected), "by way of bytes");
    let sorted = any_of(r#"{"a":{"b":[1.5,true],"c":null},"z":1}"#);
    assert_eq!((&any, hash_of(&any)), (&sorted, hash_of(&sorted)), "in whatever order");
}

/// In binary an object is a map: a member may lack its key or its value, and the last of a name counts.
#[test]
fn an_object_in_binary_is_any_map() {
    let member = |bytes: &[u8]| [&[0x0a, bytes.len() as u8], bytes].concat();
    let one = |number: u8| [0x0a, 1, b'k', 0x12, 2, 0x20, number];
    let bytes = [member(&one(0)), member(&[0x12, 0]), vec![0x10, 7], member(&one(1))].concat();
    let object = Struct::decode(&*bytes).expect("an object");
    let text = serde_json::to_string(&object).expect("JSON");
    assert_eq!(text, r#"{"k":true,"":null}"#);
    assert!(Struct::decode(&[0x08, 1][..]).is_err(), "fields are messages");
}

#[test]
fn bytes_in_any_order() {
    let patch = chat::ChatTextPatch { text: "a".to_owned(), sequence: 7, ..Default::default() };
    let any = Any::from(patch.clone());
    let url = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch";
    let whole = prost_types::Any { type_url: url.to_owned(), value: patch.encode_to_vec() };
    let value = prost_types::Any { type_url: String::new(), ..whole.clone() }.encode_to_vec();
    let name = prost_types::Any { value: Vec::new(), ..whole.clone() }.encode_to_vec();
    assert_eq!(any.encode_to_vec(), whole.encode_to_vec());
    for bytes in [[&*name, &*value].concat(), [&*value, &*name].concat()] {
        assert_eq!(Any::decode(&*bytes), Ok(any.clone()));
    }
}

#[test]
fn an_unknown_type_is_kept_as_bytes() {
    for (url, value) in [("example.com/x.Y", &b"\xff"[..]), ("", b"\x01"), ("x", b"")] {
        let bytes = prost_types::Any { type_url: url.to_owned(), value: value.to_owned() };
        let any = Any::decode(&*bytes.encode_to_vec()).expect("any bytes will do");
        assert_eq!(any, Any::Other(Box::new(bytes.clone())));
        assert_eq!(any.encode_to_vec(), bytes.encode_to_vec());
        assert!(written(&any).is_err());
    }
    assert_eq!(written(&Any::default()).as_deref(), Ok("{}\n"));
}

#[test]
fn bad_bytes_of_a_known_type_are_an_error() {
    let url = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch".to_owned();
    let bytes = prost_types::Any { type_url: url, value: b"\xff".to_vec() };
    assert!(Any::decode(&*bytes.encode_to_vec()).is_err());
}

/// Each level is built by hand: the recursion under test is the reader's.
#[test]
fn an_any_in_an_any_does_not_overflow_the_stack() {
    let mut bytes = Vec::new();
    for level in 1..=2_000 {
        let url = "type.googleapis.com/google.protobuf.Any".to_owned();
        bytes = prost_types::Any { type_url: url, value: bytes }.encode_to_vec();
        if [1, 100, 101, 2_000].contains(&level) {
            assert_eq!(Any::decode(&*bytes).is_ok(), level <= 100, "{level}");
        }
    }
    let open = r#"{"@type":"type.googleapis.com/google.protobuf.Any","value":"#;
    let text = format!("{}{{}}{}", open.repeat(100_000), "}".repeat(100_000));
    assert!(json::read::<Any>(&text).is_err());
}

#[test]
fn what_has_no_json_form_is_not_written() {
    let value = |kind| Any::Value(Box::new(super::Value { kind: Some(kind) }));
    let time = |seconds, nanos| Any::Timestamp(Box::new(Timestamp { seconds, nanos }));
    let span = |seconds, nanos| Any::Duration(Box::new(Duration { seconds, nanos }));
    let mask = |path: &str| Any::FieldMask(Box::new(FieldMask { paths: vec![path.to_owned()] }));
    let wrong = [
        value(Kind::Number(f64::NAN)),
        value(Kind::Number(f64::NEG_INFINITY)),
        time(253_402_300_800, 0),
        time(-62_135_596_801, 0),
        time(i64::MAX, 0),
        time(0, -1),
        time(0, 1_000_000_000),
        span(315_576_000_001, 0),
        span(i64::MIN, 0),
        span(1, -1),
        span(-1, 1),
        span(0, i32::MIN),
        mask("a__b"),
        mask("a_"),
        mask("aB"),
        mask("a_1"),
        mask(""),
    ];
    for any in wrong {
        assert!(written(&any).is_err(), "{any:?}");
        assert_eq!(Any::decode(&*any.encode_to_vec()).as_ref(), Ok(&any));
    }
}
