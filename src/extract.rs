//! JSON in a model's answer, found while the answer streams: a value on each line, or one document.
//! What is wrong with a line costs that line alone, and an answer that is cut off still gives every
//! whole value.

mod document;
mod lines;
mod payload;
mod read;
mod schema;

#[cfg(test)]
mod tests;

pub use payload::finished;
pub use schema::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, Schema, SchemaError};

use document::Document;
use lines::{Line, LineScanner};
use read::Fault;
use serde_json::Value;

/// Bytes of a line that is read, from its first character that is no white space; what is longer is
/// rejected without being held in memory.
pub const LINE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Bytes of an answer in which one document is looked for.
pub const DOCUMENT_BYTES_MAX: usize = LINE_BYTES_MAX;

/// What a line that opens or closes a block of code begins with.
const FENCE: &str = "```";

/// The member that says what an object is, where there are several kinds.
const TYPE: &str = "type";

/// What a command wants of an answer: its `response-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseType {
    /// Any text; nothing is looked for.
    #[default]
    Text,
    /// One JSON document, in a fenced block or alone.
    Json,
    /// One JSON value on each line.
    Jsonl,
}

impl ResponseType {
    /// The type of this name, as commands write it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
        }
    }
}

/// What was found in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A value that is whole and fits the schema.
    Value {
        /// Its number in the answer, from 0.
        index: u64,
        /// Line of the answer it begins on, from 1.
        line: u64,
        /// Its member `type`, if it is an object that has a string there.
        kind: Option<String>,
        /// Its text as the model wrote it, but on one line.
        json: String,
    },
    /// A line that costs only itself.
    Rejected {
        /// Which, from 1.
        line: u64,
        /// What is wrong with it.
        reason: Reason,
    },
    /// Of [`ResponseType::Json`] alone: the answer is not the document that was asked for.
    Invalid {
        /// The line that shows it, from 1.
        line: u64,
        /// What is wrong.
        reason: Reason,
    },
}

/// Why a line or a document does not count. Shown, it is a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is not one JSON value. RFC 8259 read strictly, no key twice in an object, and no deeper
    /// than [`crate::protocol::json::DEPTH_MAX`].
    #[error("not JSON: {what} (byte {column})")]
    NotJson {
        /// What is wrong.
        what: String,
        /// Where, in bytes from 1, counted from the line's first character that is no white space.
        column: usize,
    },
    /// It breaks off, because the answer does; whether or not the provider knows.
    #[error("cut off: the answer ends before the value does")]
    CutOff,
    /// It is longer than [`LINE_BYTES_MAX`], or the answer than [`DOCUMENT_BYTES_MAX`].
    #[error("too long: more than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// It is JSON, but not what the schema describes.
    #[error("does not match the schema: {what}{}", at(pointer))]
    Schema {
        /// JSON pointer (RFC 6901) into the value; empty for all of it.
        pointer: String,
        /// What is wrong there.
        what: String,
    },
    /// Text beside the fenced block that holds the document.
    #[error("passed over: text outside of the block that holds the document")]
    Prose,
    /// There is no document, because there is no answer.
    #[error("the answer is empty where a JSON document was asked for")]
    Empty,
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" (at {pointer})") }
}

/// How much was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Values.
    pub values: u64,
    /// Lines that were rejected, and documents that were not valid.
    pub rejected: u64,
}

/// Looks for JSON in one answer.
#[derive(Clone, Debug)]
pub struct Extractor {
    schema: Option<Schema>,
    search: Search,
    tally: Tally,
    is_cut_off: bool,
}

/// What the end of a text tells of the value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More came after it: that is all there is of the value.
    Told,
    /// The answer ends there, and is said to be whole.
    Open,
    /// The answer ends there, because something cut it off.
    CutOff,
}

#[derive(Clone, Debug)]
enum Search {
    Nothing,
    LineScanner(LineScanner),
    Document(Document),
}

impl Extractor {
    /// One that looks for this, and gives only what fits the schema. Of [`ResponseType::Jsonl`] it
    /// describes each line, of [`ResponseType::Json`] the document.
    pub fn new(response: ResponseType, schema: Option<Schema>) -> Self {
        let search = match response {
            ResponseType::Text => Search::Nothing,
            ResponseType::Json => Search::Document(Document::default()),
            ResponseType::Jsonl => Search::LineScanner(LineScanner::default()),
        };
        Self { schema, search, tally: Tally::default(), is_cut_off: false }
    }

    /// Takes the next piece of the answer, cut anywhere, and gives what is found by then.
    pub fn push(&mut self, text: &str) -> Vec<Found> {
        let mut ended = Vec::new();
        match &mut self.search {
            Search::Nothing => {}
            Search::LineScanner(lines) => lines.push(text, |line| ended.push(line)),
            Search::Document(document) => document.push(text),
        }
        ended.into_iter().filter_map(|line| self.line(line, End::Told)).collect()
    }

    /// The answer is over; `is_cut_off` if it was a token limit, a stop or a failure that ended it.
    /// Nothing is found after this.
    pub fn finish(&mut self, is_cut_off: bool) -> Vec<Found> {
        let end = if is_cut_off { End::CutOff } else { End::Open };
        match std::mem::replace(&mut self.search, Search::Nothing) {
            Search::Nothing => Vec::new(),
            Search::LineScanner(mut lines) => self.line(lines.end(), end).into_iter().collect(),
            Search::Document(Document::TooLong) => {
                let reason = Reason::TooLong { bytes_max: DOCUMENT_BYTES_MAX };
                vec![self.invalid(1, reason)]
            }
            Search::Document(Document::Text(text)) => self.document(&text, end),
        }
    }

    /// How much was found until now.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether the answer is over and has ended in the middle of a value. Providers say that an
    /// answer is whole when it is not.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    fn line(&mut self, Line { number, text }: Line, end: End) -> Option<Found> {
        let Some(json) = text else {
            let reason = Reason::TooLong { bytes_max: LINE_BYTES_MAX };
            return Some(self.rejected(number, reason));
        };
        if json.is_empty() || json.starts_with(FENCE) {
            return None;
        }
        Some(match self.value(&json, end) {
            Ok(value) => self.found(number, &value, &json),
            Err((_, reason)) => self.rejected(number, reason),
        })
    }

    fn document(&mut self, answer: &str, end: End) -> Vec<Found> {
        let place = document::place(answer);
        if place.text.is_empty() {
            let reason = if end == End::CutOff { Reason::CutOff } else { Reason::Empty };
            return vec![self.invalid(place.line, reason)];
        }
        let end = if end == End::Open && !place.is_open { End::Told } else { end };
        let prose = place.prose.map(|line| self.rejected(line, Reason::Prose));
        let document = match self.value(place.text, end) {
            Ok(value) => self.found(place.line, &value, place.text),
            Err((line, reason)) => self.invalid(place.line + line, reason),
        };
        prose.into_iter().chain([document]).collect()
    }

    /// Reads a text, and says how many lines into it the fault is if there is one.
    fn value(&self, json: &str, end: End) -> Result<Value, (u64, Reason)> {
        let value = read::read(json).map_err(|fault| fault_told(fault, end))?;
        // 12 may be the beginning of 123; every other value says where it ends.
        if end == End::CutOff && value.is_number() {
            return Err((0, Reason::CutOff));
        }
        match self.schema.as_ref().map(|schema| schema.check(&value, json.len())) {
            None | Some(Ok(())) => Ok(value),
            Some(Err(reason)) => Err((0, reason)),
        }
    }

    fn found(&mut self, line: u64, value: &Value, json: &str) -> Found {
        let index = self.tally.values;
        self.tally.values += 1;
        let kind = value.get(TYPE).and_then(Value::as_str).map(str::to_owned);
        Found::Value { index, line, kind, json: document::on_one_line(json) }
    }

    fn rejected(&mut self, line: u64, reason: Reason) -> Found {
        self.is_cut_off |= reason == Reason::CutOff;
        self.tally.rejected += 1;
        Found::Rejected { line, reason }
    }

    fn invalid(&mut self, line: u64, reason: Reason) -> Found {
        self.is_cut_off |= reason == Reason::CutOff;
        self.tally.rejected += 1;
        Found::Invalid { line, reason }
    }
}

fn fault_told(fault: Fault, end: End) -> (u64, Reason) {
    let Fault { what, line, column, is_cut } = fault;
    let is_cut = is_cut && end != End::Told;
    let reason = if is_cut { Reason::CutOff } else { Reason::NotJson { what, column } };
    (line.saturating_sub(1) as u64, reason)
}
