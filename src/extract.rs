//! Extracts JSON from a model's answer while it streams: a value on each line, or one document. An
//! error in a line affects that line alone, and an answer that is cut off still yields all of its
//! complete values.

mod document;
mod fence;
mod lines;
mod payload;
mod read;
mod schema;

#[cfg(test)]
mod tests;

pub(crate) use document::on_one_line;
pub(crate) use payload::finished;
pub use schema::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, Schema, SchemaError};

use crate::support::named::named_enum;
use document::Document;
use lines::{Line, LineScanner};
use read::Fault;
use serde_json::Value;

/// Longest line, in bytes from its first non-blank character; a longer one is
/// rejected without being held in memory.
pub const LINE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Longest answer in which a document is searched for, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = LINE_BYTES_MAX;

/// The member that names the type of an object, if there are several types.
const TYPE: &str = "type";

named_enum! {
    /// The expected form of an answer: a command's `response-type`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ResponseType {
        /// Any text; nothing is extracted.
        #[default]
        Text = "text",
        /// One JSON document, in a fenced block or alone.
        Json = "json",
        /// One JSON value on each line.
        Jsonl = "jsonl",
    }
}

impl ResponseType {
    /// The type of this name in command files.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// A result of the extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A complete value that matches the schema.
    Value {
        /// Its index in the answer, from 0.
        index: u64,
        /// The line of the answer on which it begins, from 1.
        line: u64,
        /// Its member `type`, if it is an object with a string there.
        kind: Option<String>,
        /// Its text as the model wrote it, on one line.
        json: String,
    },
    /// A rejected line; the extraction continues.
    Rejected {
        /// The line, from 1.
        line: u64,
        /// The error.
        reason: Reason,
    },
    /// For [`ResponseType::Json`] only: the answer is not a valid document.
    Invalid {
        /// The line of the error, from 1.
        line: u64,
        /// The message.
        reason: Reason,
    },
}

/// Why a line or a document is rejected. Displayed as a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is not one JSON value: RFC 8259 without duplicate keys, and not nested deeper
    /// than [`crate::protocol::json::DEPTH_MAX`].
    #[error("not JSON: {what} (byte {column})")]
    NotJson {
        /// The error.
        what: String,
        /// Its place in bytes, from 1: in the first line of a value counted from the value's beginning,
        /// in the others from that of the line.
        column: usize,
    },
    /// It is incomplete because the answer is, even if the provider does not report that.
    #[error("cut off: the answer ends before the value does")]
    CutOff,
    /// It is longer than [`LINE_BYTES_MAX`], or the answer than [`DOCUMENT_BYTES_MAX`].
    #[error("too long: more than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// It is JSON, but does not match the schema.
    #[error("does not match the schema: {what}{}", at(pointer))]
    Schema {
        /// JSON pointer (RFC 6901) to the error; empty for the whole value.
        pointer: String,
        /// The error.
        what: String,
    },
    /// Text outside the fenced block that holds the document.
    #[error("ignored: text outside of the block that holds the document")]
    Prose,
    /// The answer is empty.
    #[error("the answer is empty, but a JSON document is required")]
    Empty,
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" (at {pointer})") }
}

/// Counts of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Extracted values.
    pub values: u64,
    /// Rejected lines, and invalid documents.
    pub rejected: u64,
}

/// Extracts JSON from one answer.
#[derive(Clone, Debug)]
pub struct Extractor {
    response: ResponseType,
    schema: Option<Schema>,
    search: Search,
    tally: Tally,
    is_cut_off: bool,
}

/// The text after a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More text, so the value is complete.
    Followed,
    /// The end of an answer that is reported as complete.
    Open,
    /// The end of an answer that was cut off.
    CutOff,
}

#[derive(Clone, Debug)]
enum Search {
    Nothing,
    LineScanner(LineScanner),
    Document(Document),
}

impl Search {
    fn new(response: ResponseType) -> Self {
        match response {
            ResponseType::Text => Self::Nothing,
            ResponseType::Json => Self::Document(Document::default()),
            ResponseType::Jsonl => Self::LineScanner(LineScanner::default()),
        }
    }
}

impl Extractor {
    /// An extractor for this type that accepts only values matching the schema, which describes
    /// each line of [`ResponseType::Jsonl`], and the document of [`ResponseType::Json`].
    pub fn new(response: ResponseType, schema: Option<Schema>) -> Self {
        let (search, tally) = (Search::new(response), Tally::default());
        Self { response, schema, search, tally, is_cut_off: false }
    }

    /// Ends the open line of JSON Lines, where the text of a provider call ends and another call follows;
    /// `is_cut_off` as for [`Extractor::finish`]. A document goes on.
    pub fn finish_line(&mut self, is_cut_off: bool) -> Option<Found> {
        let Search::LineScanner(lines) = &mut self.search else { return None };
        let line = lines.end();
        self.line(line, if is_cut_off { End::CutOff } else { End::Open })
    }

    /// Drops what is unfinished: the text so far was not the answer, which begins now. What was
    /// extracted stays counted.
    pub fn begin_again(&mut self) {
        self.search = Search::new(self.response);
        self.is_cut_off = false;
    }

    /// Adds the next piece of the answer, split anywhere, and returns what can be extracted so far.
    pub fn push(&mut self, text: &str) -> Vec<Found> {
        let mut ended = Vec::new();
        match &mut self.search {
            Search::Nothing => {}
            Search::LineScanner(lines) => lines.push(text, |line| ended.push(line)),
            Search::Document(document) => document.push(text),
        }
        ended.into_iter().filter_map(|line| self.line(line, End::Followed)).collect()
    }

    /// Ends the answer; `is_cut_off` if it was ended by a token limit, a stop or a failure.
    /// Nothing is extracted after this.
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

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether the answer has ended in the middle of a value. Some providers report an incomplete
    /// answer as complete.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    fn line(&mut self, Line { number, text }: Line, end: End) -> Option<Found> {
        let Some(json) = text else {
            let reason = Reason::TooLong { bytes_max: LINE_BYTES_MAX };
            return Some(self.rejected(number, reason));
        };
        let json = fence::json_of(&json)?;
        Some(match self.value(json, end) {
            Ok(value) => self.found(number, &value, json),
            Err((_, reason)) => self.rejected(number, reason),
        })
    }

    fn document(&mut self, answer: &str, end: End) -> Vec<Found> {
        let place = document::place(answer);
        if place.text.is_empty() {
            let reason = if end == End::CutOff { Reason::CutOff } else { Reason::Empty };
            return vec![self.invalid(place.line, reason)];
        }
        let end = if end == End::Open && !place.is_open { End::Followed } else { end };
        let prose = place.prose.map(|line| self.rejected(line, Reason::Prose));
        let document = match self.value(place.text, end) {
            Ok(value) => self.found(place.line, &value, place.text),
            Err((line, reason)) => self.invalid(place.line + line, reason),
        };
        prose.into_iter().chain([document]).collect()
    }

    /// Parses a text; an error has the line within the text.
    fn value(&self, json: &str, end: End) -> Result<Value, (u64, Reason)> {
        let value = read::read(json).map_err(|fault| reason_of(fault, end))?;
        // 12 may be the beginning of 123; every other value has a visible end.
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

fn reason_of(fault: Fault, end: End) -> (u64, Reason) {
    let Fault { what, line, column, is_cut } = fault;
    let is_cut = is_cut && end != End::Followed;
    let reason = if is_cut { Reason::CutOff } else { Reason::NotJson { what, column } };
    (line.saturating_sub(1) as u64, reason)
}
