//! Messages of the protocol: requests, frames, and recordings of them.

use crate::conformance::check::Checker;
use crate::conformance::recording::Recording;
use crate::conversation::copy::CopiedTurns;
use crate::protocol::any::{Any, read_message};
use crate::protocol::id::{Ids, RequestId, SessionId};
use crate::protocol::json;
use crate::protocol::proto::rpc::{RpcLine, RpcRequestLine};
use crate::protocol::wire::{self, BadLine};
use crate::store;
use crate::transport::RawLine;
use crate::transport::fuzzing::lines;
use prost::{Message, Name};
use serde::Serialize;
use std::str::from_utf8;

/// Longest request line, in bytes.
const LINE_BYTES_MAX: usize = 4_096;

/// Requests, as the program reads them from its standard input.
pub(super) fn request_lines(input: &[u8]) {
    for line in lines(input, LINE_BYTES_MAX) {
        match line {
            RawLine::Whole(line) => request(&line),
            RawLine::TooLong { start, end, bytes_max } => {
                bad_line(wire::too_long(&start, &end, bytes_max));
            }
        }
    }
}

fn request(line: &[u8]) {
    let message = from_utf8(line).ok().and_then(|text| read_message::<RpcRequestLine>(text).ok());
    let fresh = || RequestId::new("fresh").expect("an id");
    match (wire::decode(line, fresh), &message) {
        (Ok(_), Some(_)) => {}
        (Err(bad), _) => bad_line(bad),
        (Ok(request), None) => panic!("no message: {request:?}"),
    }
    if let Some(message) = &message {
        round_trip(message);
    }
}

/// The answer to a line that is no request can be written, and read as a frame.
fn bad_line(bad: BadLine) {
    let session = SessionId::new("s").expect("an id");
    let error = wire::error(bad.fault.client_error());
    round_trip(&wire::frame(&session, bad.id.as_ref(), error)).expect("it has a JSON form");
}

/// The JSON of a frame, or of an `Any` alone.
pub(super) fn any(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    if let Ok(frame) = read_message::<RpcLine>(text) {
        round_trip(&frame);
    }
    if let Ok(any) = json::read::<Any>(text) {
        let mut line = Vec::new();
        if json::write_line(&any, &mut line).is_ok() {
            let again: Any = json::read(from_utf8(&line).expect("UTF-8")).expect("its JSON");
            assert_eq!(again.encode_to_vec(), any.encode_to_vec());
        }
    }
}

/// A frame in protobuf's binary form.
pub(super) fn proto(input: &[u8]) {
    if let Ok(frame) = RpcLine::decode(input) {
        round_trip(&frame);
    }
}

/// What is written is one line, which is read as the same message, as are its bytes; `None` if it has no
/// JSON form. Compared as bytes, in which a number that is none equals itself.
fn round_trip<M: Message + Name + Default + Serialize>(message: &M) -> Option<()> {
    let bytes = message.encode_to_vec();
    assert_eq!(bytes.len(), message.encoded_len());
    let decoded = M::decode(bytes.as_slice()).expect("its bytes");
    assert_eq!(decoded.encode_to_vec(), bytes);
    let mut line = b"before".to_vec();
    if json::write_line(message, &mut line).is_err() {
        assert_eq!(line, b"before", "nothing of it is written");
        return None;
    }
    let line = from_utf8(&line["before".len()..]).expect("UTF-8");
    let is_end = |char| matches!(char, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    assert_eq!(line.find(is_end), Some(line.len() - 1), "{line:?}");
    let read = read_message::<M>(line).unwrap_or_else(|why| panic!("{why}: {line}"));
    assert_eq!(read.encode_to_vec(), bytes, "{line}");
    Some(())
}

/// Recorded lines, as `check` and `sessions import` read them.
pub(super) fn recording(input: &[u8]) {
    let (mut checker, mut recording) = (Checker::new(), Recording::default());
    let mut lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
    let tail = lines.pop().unwrap_or_default();
    let mut violations = 0;
    for line in &lines {
        violations += checker.line(line).len();
        // A line that is no frame is skipped.
        drop(recording.line(line));
    }
    violations += checker.finish(Some(tail)).len();
    assert_eq!(checker.summary().violations, violations as u64);
    drop(recording.tail(tail));
    let copy = CopiedTurns::of_shown(recording.finish().shown);
    let numbers: Vec<_> = copy.turns.iter().map(|turn| turn.number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let session = SessionId::new("s").expect("an id");
    store::fuzzing::records(copy.records(&session, &mut Ids::new(1)));
}
