//! JSON as it is read and written here: RFC 8259 without leniency, numbers and enums in the
//! spellings of the canonical proto3 mapping, and no characters that end a line for some reader.

mod error_text;
mod memory;
mod numbers;
#[cfg(test)]
mod tests;
mod well_formed;
mod writer;

pub(crate) use memory::{allocated, fits, places};
pub(crate) use numbers::{Float, Number, NumberVisitor, Quoted, has_long_integer};
pub(crate) use well_formed::well_formed;

use crate::support::shorten::first_bytes;
use error_text::plain;
use serde::de::DeserializeOwned;
use serde::ser::Serialize;
use serde_json::{Map, Value};

/// Deepest nesting of arrays and objects: the limit of `serde_json`'s own
/// recursion. Nothing in the protocol comes near it.
pub const DEPTH_MAX: usize = 127;

/// Longest text of an [`Error`], in bytes: serde quotes the rejected value, which may be a whole
/// line.
pub(crate) const ERROR_BYTES_MAX: usize = 240;

/// Why a text was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not what is read: why, with the column in bytes where that is known.
    #[error("{0}")]
    Invalid(String),
    /// The values of the text would take too much memory.
    #[error(
        "it holds so many small values that they would take more than {memory_mib_max} MiB of memory"
    )]
    TooManyValues {
        /// Memory that the values of such a text may take, in MiB.
        memory_mib_max: usize,
    },
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        let text = what(&error) + &place_of(&error);
        Self::Invalid(first_bytes(&text, ERROR_BYTES_MAX).into_owned())
    }
}

/// What is wrong, without its place.
pub(crate) fn what(error: &serde_json::Error) -> String {
    let text = error.to_string();
    plain(text.strip_suffix(&place_of(error)).unwrap_or(&text))
}

/// The end of the text of an error: its place, if that is known.
fn place_of(error: &serde_json::Error) -> String {
    match (error.line(), error.column()) {
        (0, _) => String::new(),
        (line, column) => format!(" at line {line} column {column}"),
    }
}

/// Parses one JSON value.
///
/// # Errors
/// If the text is not one JSON value (RFC 8259) without duplicate keys, is nested deeper than
/// [`DEPTH_MAX`], or is not a `T`.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    well_formed(text)?;
    Ok(serde_json::from_str(text)?)
}

/// The text of the object that the string `json` holds, as some models and servers write the arguments of a call;
/// `None` if it is another value.
pub(crate) fn object_in_string(json: &str) -> Option<String> {
    let text = serde_json::from_str::<String>(json).ok()?;
    // Whole, as what is skipped may hold what no reader takes: half a surrogate pair, or too many levels.
    let is_object = serde_json::from_str::<Map<String, Value>>(&text).is_ok();
    is_object.then_some(text)
}

/// The last members of the object on a line, as the text of an object of their own; `None` if `end`, the last bytes of
/// the line, has none as a whole.
///
/// After a comma within a string an odd number of the quotes follows that begin or end a string, so what is read as
/// members is none of its text; and the brace that ends the line is that of the outermost object.
pub(crate) fn last_members(end: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr_iter(b',', end).find_map(|comma| {
        let object = [&b"{"[..], &end[comma + 1..]].concat();
        serde_json::from_slice::<Map<String, Value>>(&object).is_ok().then_some(object)
    })
}

/// The nesting of arrays and objects of a value, which its reader limits.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
    }
}

/// Appends a message and a line feed; all of the line or, on an error, nothing of it.
///
/// # Errors
/// If the message has no JSON form: an `Any` of unknown type, a NaN in a `Value`, a time out of
/// range.
pub fn write_line<T: Serialize>(message: &T, lines: &mut Vec<u8>) -> Result<(), Error> {
    let before = lines.len();
    if let Err(error) = writer::write(message, lines) {
        lines.truncate(before);
        return Err(error.into());
    }
    escape_separators(lines, before);
    lines.push(b'\n');
    Ok(())
}

/// Appends the content of a string, as `write_line` has it between its quotes.
pub(crate) fn write_escaped(text: &str, line: &mut Vec<u8>) {
    let before = line.len();
    writer::escaped(text, line);
    escape_separators(line, before);
}

/// Appends JSON text that is on one line already, and a line feed.
pub(crate) fn write_raw_line(json: &str, lines: &mut Vec<u8>) {
    let before = lines.len();
    lines.extend_from_slice(json.as_bytes());
    escape_separators(lines, before);
    lines.push(b'\n');
}

/// Appends a message over several lines, for people; all of it or, on an error, nothing of it.
///
/// # Errors
/// As `write_line`.
pub(crate) fn write_pretty<T: Serialize>(message: &T, text: &mut Vec<u8>) -> Result<(), Error> {
    let before = text.len();
    if let Err(error) = serde_json::to_writer_pretty(&mut *text, message) {
        text.truncate(before);
        return Err(error.into());
    }
    escape_separators(text, before);
    text.push(b'\n');
    Ok(())
}

/// Escapes the line separators that JSON allows unescaped (U+0085, U+2028 and U+2029) from
/// `start` on: some readers split on them. They occur in strings only, where any character may be
/// escaped.
fn escape_separators(lines: &mut Vec<u8>, start: usize) {
    let extra =
        separators(&lines[start..]).map(|(_, len, escape)| escape.len() - len).sum::<usize>();
    let mut from = lines.len();
    lines.resize(from + extra, 0);
    let mut to = lines.len();
    // Backwards, so that a long line is not held twice.
    while from < to {
        let Some((at, len, escape)) = separators(&lines[start..from]).next_back() else { return };
        let kept = start + at + len..from;
        to -= kept.len();
        from = start + at;
        lines.copy_within(kept, to);
        to -= escape.len();
        lines[to..to + escape.len()].copy_from_slice(escape);
    }
}

/// The positions of the separators in `text`, their lengths, and their escapes.
fn separators(text: &[u8]) -> impl DoubleEndedIterator<Item = (usize, usize, &'static [u8])> {
    memchr::memchr2_iter(0xC2, 0xE2, text).filter_map(|at| match &text[at..] {
        [0xC2, 0x85, ..] => Some((at, 2, b"\\u0085".as_slice())),
        [0xE2, 0x80, 0xA8, ..] => Some((at, 3, b"\\u2028".as_slice())),
        [0xE2, 0x80, 0xA9, ..] => Some((at, 3, b"\\u2029".as_slice())),
        _ => None,
    })
}
