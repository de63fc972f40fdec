//! What tools print instead of a stream: one JSON object with the data, what went wrong, and counts.

use super::output::{Failure, Out};
use crate::protocol::json;
use serde::Serialize;
use serde_json::Value;
use std::time::Instant;

/// Bytes of data that are held back so that `ok` can stand first. Past that, `data` is written first
/// and as it comes: a listing of any length needs no more memory than this.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Warnings that are told one by one.
const WARNINGS_MAX: usize = 100;

/// Collects one tool's result.
#[derive(Debug)]
pub(super) struct Envelope {
    begun: Instant,
    data: Vec<u8>,
    total: u64,
    is_streaming: bool,
    warnings: Vec<Warning>,
    warnings_untold: u64,
}

/// What should be known of a result that is good as far as it goes.
#[derive(Debug, Serialize)]
struct Warning {
    code: &'static str,
    message: String,
}

/// What went wrong.
#[derive(Debug, Serialize)]
pub(super) struct Error {
    /// For programs.
    pub(super) code: &'static str,
    /// What kind of error it is; `None` where the code says that.
    pub(super) class: Option<&'static str>,
    /// For people.
    pub(super) message: String,
    /// More for a bug report: what the system said, or the first of several faults.
    pub(super) detail: String,
}

/// Counts that stand beside `total` and `duration_ms`.
#[derive(Debug, Serialize)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) frames: u64,
    pub(super) events: u64,
    pub(super) requests: u64,
}

#[derive(Serialize)]
struct Whole<'a> {
    ok: bool,
    data: &'a Value,
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
            warnings_untold: 0,
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
            self.warnings_untold += 1;
        }
    }

    /// Prints it. It is `ok` if there is no error.
    pub(super) fn finish(
        mut self,
        error: Option<&Error>,
        counts: Option<&Counts>,
        out: &mut Out,
    ) -> Result<(), Failure> {
        if self.warnings_untold > 0 {
            let message = format!("and {} more warnings", self.warnings_untold);
            self.warnings.push(Warning { code: "more", message });
        }
        let meta =
            Meta { total: Some(self.total), duration_ms: self.begun.elapsed().as_millis(), counts };
        let rest = Rest { ok: error.is_none(), error, warnings: &self.warnings, meta };
        let mut text = Vec::new();
        json(&rest, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        // `ok` is its first member, and a word of five letters at most.
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

    /// Writes the data so far, which from now on stands before all else.
    fn stream(&mut self, out: &mut Out) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_streaming, true) {
            out.write(b"{\"data\":[")?;
        }
        out.write(&self.data)?;
        self.data.clear();
        Ok(())
    }
}

/// Prints a result that is one value and no list of entries; null if there is only an error.
pub(super) fn print_value(
    data: &Value,
    error: Option<&Error>,
    begun: Instant,
    out: &mut Out,
) -> Result<(), Failure> {
    let total = data.as_array().and_then(|list| u64::try_from(list.len()).ok());
    let meta = Meta { total, duration_ms: begun.elapsed().as_millis(), counts: None };
    let mut text = Vec::new();
    let whole = Whole { ok: error.is_none(), data, error, warnings: &[], meta };
    json(&whole, &mut text)?;
    out.write(&text)?;
    out.write(b"\n")?;
    out.flush()
}

/// Without the line feed.
fn json(value: &impl Serialize, text: &mut Vec<u8>) -> Result<(), Failure> {
    json::write_line(value, text)
        .map_err(|error| Failure::Usage(format!("the result has no JSON form: {error}")))?;
    text.pop();
    Ok(())
}
