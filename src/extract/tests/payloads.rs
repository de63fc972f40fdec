//! The payloads that clients receive.

use super::*;
use crate::protocol::any::Any;
use crate::protocol::json;
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::{RpcLine, UiEventFrame, rpc_line};
use prost::Message;

const CORRELATION: &str = r#"{"sessionId":"s","runId":"r"}"#;

fn correlation() -> Option<CorrelationInfo> {
    Some(CorrelationInfo {
        session_id: "s".to_owned(),
        run_id: "r".to_owned(),
        ..CorrelationInfo::default()
    })
}

/// Checks the JSON of a payload, and that it can be parsed again, also from bytes.
#[track_caller]
fn check_payload(payload: &Any, name: &str, fields: &str) {
    let mut line = Vec::new();
    json::write_line(payload, &mut line).expect("has a JSON form");
    let line = String::from_utf8(line).expect("UTF-8");
    let url = format!("type.googleapis.com/duologue.extract.v1.{name}");
    let fields = fields.replace("CORRELATION", CORRELATION);
    assert_eq!(line, format!("{{\"@type\":\"{url}\",{fields}}}\n"));
    assert_eq!(json::read::<Any>(&line).as_ref(), Ok(payload));
    assert_eq!(Any::decode(&*payload.encode_to_vec()).as_ref(), Ok(payload));
}

#[test]
fn a_value() {
    let value = |kind: Option<&str>, json: &str| {
        let kind = kind.map(str::to_owned);
        Found::Value { index: 1, line: 3, kind, json: json.to_owned() }.into_payload(
            "m",
            correlation(),
            true,
        )
    };
    let json = r#"{"z":1.50,"type":"a","n":9007199254740993}"#;
    check_payload(
        &value(Some("a"), json),
        "ObjectExtracted",
        concat!(
            r#""messageId":"m","index":"1","line":"3","type":"a","#,
            r#""object":{"z":1.5,"type":"a","n":9007199254740992},"#,
            r#""json":"{\"z\":1.50,\"type\":\"a\",\"n\":9007199254740993}","correlation":CORRELATION"#
        ),
    );
    for json in ["null", "true", "[]", "-0.5"] {
        let fields = format!(
            r#""messageId":"m","index":"1","line":"3","object":{json},"json":"{json}","correlation":CORRELATION"#
        );
        check_payload(&value(None, json), "ObjectExtracted", &fields);
    }
}

#[test]
fn what_was_no_value() {
    let rejected = Found::Rejected { line: 2, reason: Reason::CutOff };
    let invalid = Found::Invalid { line: 2, reason: Reason::CutOff };
    for found in [rejected, invalid] {
        check_payload(
            &found.into_payload("m", correlation(), true),
            "LineRejected",
            concat!(
                r#""messageId":"m","line":"2","#,
                r#""reason":"cut off: the answer ends before the value does","correlation":CORRELATION"#
            ),
        );
    }
}

#[test]
fn the_end() {
    let payload = finished("m", Tally { values: 2, rejected: 1 }, true, correlation());
    check_payload(
        &payload,
        "ExtractionFinished",
        r#""messageId":"m","objects":"2","rejected":"1","truncated":true,"correlation":CORRELATION"#,
    );
}

/// Protobuf readers, ours included, accept a hundred nested messages.
#[test]
fn a_frame_with_the_deepest_value_can_be_read() {
    for (levels, is_held) in [(30, true), (31, false), (127, false)] {
        for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
            let json = format!("{}\"[{{\\\"\"{}", open.repeat(levels), close.repeat(levels));
            let payload = Found::Value { index: 0, line: 1, kind: None, json: json.clone() }
                .into_payload("m", None, true);
            let Any::ObjectExtracted(object) = &payload else { panic!("{payload:?}") };
            assert_eq!((object.object.is_some(), &object.json), (is_held, &json));
            let event = UiEventFrame { payload: Some(payload), ..UiEventFrame::default() };
            let frame = Some(rpc_line::Frame::UiEvent(event));
            let line = RpcLine { frame, ..RpcLine::default() };
            assert_eq!(RpcLine::decode(&*line.encode_to_vec()).as_ref(), Ok(&line));
        }
    }
}
