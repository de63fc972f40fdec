//! Parses a line as a frame, and reports errors in its JSON and its message.

use super::names::shown;
use super::rule::{Report, Rule};
use crate::protocol::any::message_from_value;
use crate::protocol::constants::EXTENSIONS;
use crate::protocol::descriptors::{Field, Kind, Types};
use crate::protocol::json;
use crate::protocol::proto::rpc::RpcLine;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::sync::LazyLock;

/// The message type of a line.
const LINE: &str = "pinocchio.chatapp.rpc.v1.RpcLine";

const ANY: &str = "google.protobuf.Any";

/// The prefix of a type name in an `Any`.
const URL: &str = "type.googleapis.com/";

/// A frame, and the types of the payloads that were removed because they are unknown.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) frame: RpcLine,
    pub(super) strange: Vec<String>,
}

/// The types of the protocol, which are the same for every stream.
pub(super) static TYPES: LazyLock<Types> = LazyLock::new(Types::new);

/// Parses a line without its line feed.
pub(super) fn read(line: &[u8], report: &mut Report) -> Option<Read> {
    separators(line, report);
    let text = std::str::from_utf8(line)
        .map_err(|error| report.add(Rule::InvalidUtf8, format!("the line is not UTF-8: {error}")))
        .ok()?;
    if json::fits(line).is_ok()
        && let Ok(frame) = serde_json::from_str::<RpcLine>(text)
        && frame.frame.is_some()
        && is_as_written_here(&frame, line)
    {
        return Some(Read { frame, strange: Vec::new() });
    }
    read_strictly(text, report)
}

fn read_strictly(text: &str, report: &mut Report) -> Option<Read> {
    let (rule, wrong) = match json::read(text) {
        Ok(Value::Object(value)) => return read_object(value, report),
        Ok(_) => (Rule::InvalidJson, "the line is JSON, but not an object".to_owned()),
        Err(error) => (rule_of(&error), format!("the line can't be read: {error}")),
    };
    report.add(rule, wrong);
    None
}

fn read_object(mut value: Map<String, Value>, report: &mut Report) -> Option<Read> {
    let mut walk = Walk { types: &TYPES, report, strange: Vec::new() };
    walk.message(LINE, &mut value, false);
    let strange = walk.strange;
    if !has_one_frame(&TYPES, &value, report) {
        return None;
    }
    match message_from_value(Value::Object(value)) {
        Ok(frame) => Some(Read { frame, strange }),
        Err(error) => {
            report.add(Rule::WrongValue, format!("a field has a wrong value: {error}"));
            None
        }
    }
}

/// A line that is reproduced byte for byte contains nothing outside the messages.
fn is_as_written_here(frame: &RpcLine, line: &[u8]) -> bool {
    let mut rest = Same(line);
    serde_json::to_writer(&mut rest, frame).is_ok() && rest.0.is_empty()
}

/// Consumes the expected bytes of a line and nothing else, so that no line is held twice.
struct Same<'a>(&'a [u8]);

impl Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.strip_prefix(bytes) {
            Some(rest) => self.0 = rest,
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Characters that some reader takes for the end of a line: those allowed in JSON strings, and CR.
fn separators(line: &[u8], report: &mut Report) {
    let found = memchr::memchr3_iter(b'\r', 0xC2, 0xE2, line).find_map(|at| match &line[at..] {
        [b'\r', ..] => Some("CR"),
        [0xC2, 0x85, ..] => Some("U+0085"),
        [0xE2, 0x80, 0xA8, ..] => Some("U+2028"),
        [0xE2, 0x80, 0xA9, ..] => Some("U+2029"),
        _ => None,
    });
    if let Some(found) = found {
        let message = format!("the line contains a bare {found}; some readers end a line there");
        report.add(Rule::RawSeparator, message);
    }
}

fn rule_of(error: &json::Error) -> Rule {
    match error.to_string().starts_with("duplicate key") {
        true => Rule::DuplicateKey,
        false => Rule::InvalidJson,
    }
}

fn has_one_frame(types: &Types, line: &Map<String, Value>, report: &mut Report) -> bool {
    let fields = types.message(LINE).map_or(&[][..], |message| &message.fields);
    let is_set = |field: &&Field| {
        let value = line.get(&field.json_name).or_else(|| line.get(&field.name));
        field.is_member && value.is_some_and(|value| !value.is_null())
    };
    let frames: Vec<_> = fields.iter().filter(is_set).map(|field| &*field.json_name).collect();
    match frames.len() {
        0 => report.add(Rule::NoFrame, "the line has no frame: none of hello, snapshot, …, done"),
        1 => {}
        _ => report.add(Rule::TwoFrames, format!("the line has {}", frames.join(" and "))),
    }
    frames.len() == 1
}

/// Walks a message and reports what a strict reader rejects.
struct Walk<'a> {
    types: &'a Types,
    report: &'a mut Report,
    strange: Vec<String>,
}

impl Walk<'_> {
    fn message(&mut self, name: &str, object: &mut Map<String, Value>, is_any: bool) {
        let Some(message) = self.types.message(name) else { return };
        for (key, value) in object {
            if is_any && key == "@type" {
                continue;
            }
            let is_it = |field: &&Field| field.json_name == *key || field.name == *key;
            let Some(field) = message.fields.iter().find(is_it) else {
                let message = format!("{name} has no field {:?}", shown(key));
                self.report.add(Rule::UnknownField, message);
                continue;
            };
            if field.json_name != *key {
                let message =
                    format!("{key} of {name} must be written {} in JSON", field.json_name);
                self.report.add(Rule::UnknownField, message);
            }
            self.field(field, value);
        }
    }

    fn field(&mut self, field: &Field, value: &mut Value) {
        if let (Value::Array(values), true) = (&mut *value, field.is_repeated) {
            for value in values {
                self.value(&field.json_name, &field.kind, value);
            }
        } else {
            self.value(&field.json_name, &field.kind, value);
        }
    }

    fn value(&mut self, name: &str, kind: &Kind, value: &mut Value) {
        match (kind, value) {
            (Kind::Int64 | Kind::Uint64, Value::Number(number)) => {
                self.wrong(format!("{name} is the number {number}; 64-bit integers are strings"));
            }
            (Kind::Enum(_), Value::Number(number)) => {
                self.wrong(format!("{name} is the number {number}; enums are written by name"));
            }
            (Kind::Message(of), value) if of == ANY => self.any(value),
            // Any JSON is valid in the well-known types, as far as checked here.
            (Kind::Message(of), Value::Object(object)) if !of.starts_with("google.") => {
                self.message(of, object, false);
            }
            _ => {}
        }
    }

    /// Checks an `Any`; one of an unknown type is removed.
    fn any(&mut self, value: &mut Value) {
        let Value::Object(object) = value else { return };
        let Some(Value::String(url)) = object.get("@type") else { return };
        let url = url.clone();
        let name = url.strip_prefix(URL).unwrap_or_default();
        if self.types.payloads().any(|known| known == name) {
            return self.message(name, object, true);
        }
        if name.starts_with("google.protobuf.") {
            return;
        }
        if !name.starts_with(EXTENSIONS) {
            let message = format!("{:?} is not a type of the protocol", shown(&url));
            self.report.add(Rule::UnknownType, message);
        }
        self.strange.push(name.to_owned());
        *value = Value::Null;
    }

    fn wrong(&mut self, message: String) {
        self.report.add(Rule::WrongValue, message);
    }
}

/// Whether the text after the last line feed is incomplete: more bytes could make it a frame,
/// which is an object. No other JSON ever could.
pub(crate) fn is_cut_off(tail: &[u8]) -> bool {
    let text = match std::str::from_utf8(tail) {
        Ok(text) => text,
        // Half a character at the end is incomplete too.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&tail[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    if !text.trim_start_matches([' ', '\t', '\r']).starts_with('{') {
        return false;
    }
    json::well_formed(text).is_err_and(|_| {
        serde_json::from_str::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof())
    })
}
