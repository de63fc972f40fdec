//! The JSON object that commands print instead of a stream: data, error, warnings and counts.

use super::output::{Failure, Out};
use crate::protocol::constants::{code, command_code};
use crate::protocol::json;
use serde::Serialize;
use serde_json::Value;
use std::time::Instant;

/// Bytes of data that are buffered so that `ok` can be written first. Past that, `data` is written
/// first, as it is produced: a listing of any length needs no more memory than this.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Warnings that are reported one by one; the others are counted.
const WARNINGS_MAX: usize = 100;

/// Collects the result of one command.
#[derive(Debug)]
pub(super) struct Envelope {
    begun: Instant,
    data: Vec<u8>,
    total: u64,
    is_streaming: bool,
    warnings: Vec<Warning>,
    warnings_omitted: u64,
}

/// A warning about a result that is otherwise usable.
#[derive(Debug, Serialize)]
struct Warning {
    code: &'static str,
    message: String,
}

/// An error.
#[derive(Debug, Serialize)]
pub(super) struct Error {
    /// Machine-readable code.
    pub(super) code: &'static str,
    /// The error class; `None` where the code implies it.
    pub(super) class: Option<&'static str>,
    /// Message for people.
    pub(super) message: String,
    /// More for a bug report: the system's message, or the first of several errors.
    pub(super) detail: String,
}

/// Counts that are written next to `total` and `duration_ms`.
#[derive(Debug, Serialize)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) frames: u64,
    pub(super) events: u64,
    pub(super) requests: u64,
}

#[derive(Serialize)]
struct Whole<'a, T> {
    ok: bool,
    data: &'a T,
    error: Option<&'a Error>,
    warnings: &'a [Warning],
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Rest<'a> {
    ok: bool,
    error: Option<&'a Error>,
    warnings: &'a [Warning],
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    duration_ms: u128,
    #[serde(flatten)]
    counts: Option<&'a Counts>,
}

impl Envelope {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            data: Vec::new(),
            total: 0,
            is_streaming: false,
            warnings: Vec::new(),
            warnings_omitted: 0,
        }
    }

    pub(super) fn push(&mut self, entry: &impl Serialize, out: &mut Out) -> Result<(), Failure> {
        if self.total > 0 {
            self.data.push(b',');
        }
        self.total += 1;
        json(entry, &mut self.data)?;
        if self.data.len() > HELD_BYTES_MAX {
            self.stream(out)?;
        }
        Ok(())
    }

    pub(super) fn warn(&mut self, code: &'static str, message: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Warning { code, message });
        } else {
            self.warnings_omitted += 1;
        }
    }

    /// Writes the object. `ok` is true if there is no error.
    pub(super) fn finish(
        mut self,
        error: Option<&Error>,
        counts: Option<&Counts>,
        out: &mut Out,
    ) -> Result<(), Failure> {
        if self.warnings_omitted > 0 {
            let message = format!("and {} more warnings", self.warnings_omitted);
            self.warnings.push(Warning { code: "more", message });
        }
        let meta =
            Meta { total: Some(self.total), duration_ms: self.begun.elapsed().as_millis(), counts };
        let rest =
            Rest { ok: error.is_none(), error: documented(error), warnings: &self.warnings, meta };
        let mut text = Vec::new();
        json(&rest, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        // `ok` is the first member, and its value has at most five letters.
        let (ok, others) = text.split_once(',').unwrap_or((&text, ""));
        if self.is_streaming {
            self.stream(out)?;
            out.line(&format!("],{},{others}", ok.trim_start_matches('{')))?;
        } else {
            out.write(format!("{ok},\"data\":[").as_bytes())?;
            out.write(&self.data)?;
            out.line(&format!("],{others}"))?;
        }
        out.flush()
    }

    /// Writes the object with one value as its data, and without a list.
    pub(super) fn finish_value(
        self,
        data: &impl Serialize,
        error: Option<&Error>,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let meta =
            Meta { total: None, duration_ms: self.begun.elapsed().as_millis(), counts: None };
        let mut text = Vec::new();
        let error = documented(error);
        let whole = Whole { ok: error.is_none(), data, error, warnings: &self.warnings, meta };
        json(&whole, &mut text)?;
        out.write(&text)?;
        out.write(b"\n")?;
        out.flush()
    }

    /// Writes the data collected so far; from then on `data` is the first member.
    fn stream(&mut self, out: &mut Out) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_streaming, true) {
            out.write(b"{\"data\":[")?;
        }
        out.write(&self.data)?;
        self.data.clear();
        Ok(())
    }
}

/// Prints a result that is one value and not a list; null if there is only an error.
pub(super) fn print_value(
    data: &Value,
    error: Option<&Error>,
    begun: Instant,
    out: &mut Out,
) -> Result<(), Failure> {
    let total = data.as_array().and_then(|list| u64::try_from(list.len()).ok());
    let meta = Meta { total, duration_ms: begun.elapsed().as_millis(), counts: None };
    let mut text = Vec::new();
    let error = documented(error);
    let whole = Whole { ok: error.is_none(), data, error, warnings: &[], meta };
    json(&whole, &mut text)?;
    out.write(&text)?;
    out.write(b"\n")?;
    out.flush()
}

/// The error, whose code the documents list.
fn documented(error: Option<&Error>) -> Option<&Error> {
    let is_listed = |code: &str| [command_code::ALL, code::ALL].concat().contains(&code);
    debug_assert!(error.is_none_or(|error| is_listed(error.code)), "an unlisted code");
    error
}

/// Without the line feed.
fn json(value: &impl Serialize, text: &mut Vec<u8>) -> Result<(), Failure> {
    json::write_line(value, text)
        .map_err(|error| Failure::Usage(format!("the result has no JSON form: {error}")))?;
    text.pop();
    Ok(())
}
