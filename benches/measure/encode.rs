//! Encoding a frame, against structs written by hand that are the same JSON. Nothing else runs.

use crate::frames::{self, MESSAGE, ROOT, SESSION, patch_line, snapshot_line};
use crate::table::{Aim, Unit, least, row};
use duologue::protocol::any::Any;
use duologue::protocol::json;
use duologue::protocol::proto::chat::{
    ChatMessageEntity, ChatStreamPatchMode, ChatTextPatch, CorrelationInfo,
};
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use duologue::protocol::proto::rpc::{RpcLine, SnapshotEntity, SnapshotFrame, UiEventFrame};
use serde::Serialize;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

const REQUEST: &str = "req-0f6c1e2d-1b2a-4c3d-8e9f-a0b1c2d3e4f5";

/// Text of a patch: a word.
const WORD: &str = "conversation ";

const ROUNDS: usize = 60;

const ROUND_TIME: Duration = Duration::from_millis(10);

/// Messages of the snapshot that is encoded.
const ENTITIES: usize = 40;

pub(crate) fn measure() -> io::Result<()> {
    let place = (1204, 1200, 7321);
    compare("a patch", &patch(place), &patch_line(REQUEST, place, WORD));
    let text = WORD.repeat(40);
    let name = format!("a snapshot of {ENTITIES} messages");
    compare(&name, &snapshot(&text), &snapshot_line(REQUEST, ENTITIES, &text));
    Ok(())
}

fn compare(what: &str, ours: &RpcLine, by_hand: &impl Serialize) {
    let ours = |out: &mut Vec<u8>| json::write_line(black_box(ours), out).expect("has a JSON form");
    let by_hand = |out: &mut Vec<u8>| {
        serde_json::to_writer(&mut *out, black_box(by_hand)).expect("has a JSON form");
        out.push(b'\n');
    };
    let bytes = check_same(ours, by_hand);
    let (mut our_times, mut reference_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(micros_each(ours));
        reference_times.push(micros_each(by_hand));
    }
    let (our_time, reference_time) = (least(&our_times), least(&reference_times));
    let what = format!("encode {what}, {bytes} bytes");
    row(&what, Unit::Micros, our_time, Some(reference_time), Aim::Ratio(1.2));
    let per_second = |micros: f64| 1_000_000.0 / micros;
    row(
        &format!("{what}, frames per second"),
        Unit::Count,
        per_second(our_time),
        Some(per_second(reference_time)),
        Aim::None,
    );
}

/// Length of the line, which both write.
fn check_same(ours: impl Fn(&mut Vec<u8>), by_hand: impl Fn(&mut Vec<u8>)) -> usize {
    let (mut our_line, mut reference_line) = (Vec::new(), Vec::new());
    ours(&mut our_line);
    by_hand(&mut reference_line);
    assert_eq!(String::from_utf8_lossy(&our_line), String::from_utf8_lossy(&reference_line));
    our_line.len()
}

fn micros_each(encode: impl Fn(&mut Vec<u8>)) -> f64 {
    let mut out = Vec::new();
    let start = Instant::now();
    let mut count = 0u32;
    while start.elapsed() < ROUND_TIME {
        for _ in 0..16 {
            out.clear();
            encode(&mut out);
            black_box(&out);
        }
        count += 16;
    }
    start.elapsed().as_secs_f64() * 1_000_000.0 / f64::from(count)
}

fn patch((ordinal, sequence, offset): (u64, u64, u64)) -> RpcLine {
    let payload: Any = ChatTextPatch {
        message_id: MESSAGE.to_owned(),
        role: "assistant".to_owned(),
        stream_id: MESSAGE.to_owned(),
        sequence,
        offset,
        text: WORD.to_owned(),
        mode: ChatStreamPatchMode::Append.into(),
        status: "streaming".to_owned(),
        correlation: Some(correlation()),
        ..Default::default()
    }
    .into();
    let name = "ChatTextPatch".to_owned();
    line(Body::UiEvent(UiEventFrame { ordinal, name, payload: Some(payload) }))
}

fn snapshot(text: &str) -> RpcLine {
    let entity = |_| {
        let payload: Any = ChatMessageEntity {
            message_id: MESSAGE.to_owned(),
            role: "assistant".to_owned(),
            text: text.to_owned(),
            content: text.to_owned(),
            status: "finished".to_owned(),
            parent_message_id: ROOT.to_owned(),
            segment: 1,
            segment_type: "text".to_owned(),
            r#final: true,
            correlation: Some(correlation()),
            ..Default::default()
        }
        .into();
        SnapshotEntity {
            kind: "ChatMessage".to_owned(),
            id: MESSAGE.to_owned(),
            created_ordinal: 4,
            last_event_ordinal: 1204,
            tombstone: false,
            payload: Some(payload),
        }
    };
    let entities = (0..ENTITIES).map(entity).collect();
    line(Body::Snapshot(SnapshotFrame { snapshot_ordinal: 1207, entities }))
}

fn correlation() -> CorrelationInfo {
    let ids = frames::correlation();
    CorrelationInfo {
        session_id: ids.session_id.to_owned(),
        run_id: ids.run_id.to_owned(),
        turn_id: ids.turn_id.to_owned(),
        provider_call_id: ids.provider_call_id.to_owned(),
        segment_id: ids.segment_id.to_owned(),
        ..Default::default()
    }
}

fn line(body: Body) -> RpcLine {
    RpcLine {
        version: 1,
        session_id: SESSION.to_owned(),
        request_id: REQUEST.to_owned(),
        frame: Some(body),
    }
}
