//! One document at the end: `ok`, `data`, `error`, `warnings`, `meta`. For readers that parse the
//! whole output at once. Always written, failures included.

use super::digits::Digits;
use super::view::{CallBreaks, View, by_name, cut_off, error_document, nothing_found};
use crate::conversation::event::Usage;
use crate::host::CodedWarning;
use crate::protocol::constants::tool_result;
use crate::protocol::json::{self, Error};
use crate::protocol::proto::chat::{ChatToolCallRequested, ChatToolResultReady, UsageInfo};
use crate::protocol::proto::extract::{ExtractionFinished, LineRejected, ObjectExtracted};
use crate::protocol::proto::provider::CallTiming;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::wire::{Code, Frame};
use crate::session::{BLANK_ANSWER, ExitCode, Uptime};
use crate::support::terminal::Escapes;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Version of the document format. Raised when an older reader could not read a new document.
const VERSION: u32 = 1;

/// Most bytes of frames in a document of frames. Further frames are counted and left out.
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Warnings that are written one by one, as an answer may have any number of lines; the others are
/// counted.
const WARNINGS_MAX: usize = 100;

/// The name of the warning about a line of JSON Lines.
const LINE_REJECTED: &str = "line_rejected";

/// Tool calls that are listed; further ones are left out.
const TOOL_CALLS_MAX: usize = 1000;

/// The syntax of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// JSON, each item of a list on a line.
    #[default]
    Json,
    Yaml,
}

/// The content of `data`.
#[derive(Clone, Debug)]
pub(crate) enum EnvelopeData {
    /// The text of all provider calls; null if there is none.
    Text(String),
    /// The document that the text of the last provider call is, or the text of the last one that has any.
    Document(Option<Box<RawValue>>, String),
    /// The values of an answer in JSON Lines.
    Objects(Vec<Box<RawValue>>),
    /// Every frame of the protocol.
    Frames(Vec<Box<RawValue>>),
}

impl Default for EnvelopeData {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The document, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Envelope {
    layout: Layout,
    answer: EnvelopeData,
    breaks: CallBreaks,
    /// The provider call has no text so far.
    is_new_call: bool,
    /// The text so far is an answer that does not match its schema.
    is_rejected: bool,
    tool_calls: Vec<Value>,
    session: String,
    error: Option<Value>,
    warnings: Vec<Value>,
    meta: Map<String, Value>,
    is_truncated: bool,
    is_timed: bool,
    bytes: usize,
    lost: u64,
    omitted: u64,
    /// Warnings left out beside those, about lines of the present provider call.
    omitted_lines: u64,
    reasoning_tokens: Option<i64>,
}

#[derive(Serialize)]
struct Document<'a, D> {
    ok: bool,
    data: D,
    error: &'a Option<Value>,
    warnings: &'a [Value],
    meta: &'a Map<String, Value>,
}

impl Envelope {
    /// A document with `answer` as its initial `data`, and these members in `meta` besides the
    /// fixed ones.
    pub(crate) fn new(layout: Layout, answer: EnvelopeData, meta: Map<String, Value>) -> Self {
        Self { layout, answer, meta, ..Self::default() }
    }

    /// Puts `warnings` first.
    pub(crate) fn with_warnings(mut self, warnings: &[CodedWarning]) -> Self {
        warnings.iter().for_each(|warning| self.coded_warning(warning));
        self
    }

    pub(super) fn escapes(&self) -> Escapes {
        match self.layout {
            Layout::Json => Escapes::Json,
            // Not every string style of YAML has escapes.
            Layout::Yaml => Escapes::Text,
        }
    }

    pub(super) fn frame(&mut self, frame: &Frame) -> Result<(), Error> {
        self.frames(frame)?;
        if self.session != frame.session_id {
            self.session.clone_from(&frame.session_id);
        }
        match View::of(frame) {
            View::CallStarted => self.call_started(),
            View::Text(piece) => self.text(piece),
            View::ToolRequested(call) => self.tool_requested(call),
            View::ToolReturned(result) => self.tool_returned(result),
            View::CallFinished(call) => {
                if let Some(usage) = &call.usage {
                    self.add_usage(usage)?;
                }
                self.is_truncated = false;
                if let Some(why) = cut_off(call) {
                    self.is_truncated = true;
                    self.warn(json!({ "code": "truncated", "message": why }));
                }
            }
            View::Object(object) => self.object(object)?,
            View::Rejected(line) => self.line_rejected(line),
            View::Extracted(tally) => self.extracted(tally),
            View::AnswerRejected(rejected) => {
                self.is_rejected = true;
                self.warn(json!({ "code": "answer_rejected", "message": rejected.reason }));
            }
            View::Timing(timing) => self.timing(timing),
            View::UsageTotals(totals) => self.cost(totals),
            View::Error(error) => self.error(error),
            View::Hello
            | View::RunStarted
            | View::Thinking(_)
            | View::ToolStarted(_)
            | View::Other => {}
        }
        Ok(())
    }

    /// Adds a prompt that is printed instead of run.
    pub(super) fn prompt(&mut self, session: &str, data: &Value) -> Result<(), Error> {
        self.session = session.to_owned();
        let data = serde_json::value::to_raw_value(data)?;
        self.answer = EnvelopeData::Document(Some(data), String::new());
        Ok(())
    }

    /// Reasoning tokens of all calls together, like the rest of `usage`.
    pub(super) fn usage(&mut self, usage: Usage) {
        if let Some(tokens) = usage.reasoning_tokens {
            *self.reasoning_tokens.get_or_insert(0) += i64::from(tokens);
        }
    }

    pub(super) fn coded_warning(&mut self, CodedWarning { code, message }: &CodedWarning) {
        self.warn(json!({ "code": code, "message": message }));
    }

    /// What the values are looked for in is the text of the last call. Earlier text, and the values of JSON Lines, stay
    /// until there is other text: the call may fail, as one that repairs an answer.
    fn call_started(&mut self) {
        self.breaks.call_started();
        self.is_new_call = true;
        if let EnvelopeData::Document(document, _) = &mut self.answer {
            *document = None;
        }
    }

    /// The provider call has text, which takes the place of what an earlier one has brought.
    fn answer_begun(&mut self) {
        if !std::mem::take(&mut self.is_new_call) {
            return;
        }
        match &mut self.answer {
            EnvelopeData::Document(_, text) => text.clear(),
            EnvelopeData::Objects(objects) => {
                objects.clear();
                // Their numbers are of lines of the earlier text.
                self.warnings.retain(|warning| warning["code"] != LINE_REJECTED);
                self.omitted_lines = 0;
            }
            EnvelopeData::Text(_) | EnvelopeData::Frames(_) => {}
        }
    }

    fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.is_rejected = false;
            self.answer_begun();
        }
        match &mut self.answer {
            EnvelopeData::Text(text) => {
                text.push_str(self.breaks.before(piece));
                text.push_str(piece);
            }
            EnvelopeData::Document(_, text) => text.push_str(piece),
            EnvelopeData::Objects(_) | EnvelopeData::Frames(_) => {}
        }
    }

    /// A conversation has its calls among its frames.
    fn lists_tool_calls(&self) -> bool {
        !matches!(self.answer, EnvelopeData::Frames(_))
    }

    fn tool_requested(&mut self, call: &ChatToolCallRequested) {
        if self.lists_tool_calls() && self.tool_calls.len() < TOOL_CALLS_MAX {
            self.tool_calls.push(json!({
                "id": call.tool_call_id, "name": call.tool_name, "input": call.input,
            }));
        }
    }

    fn tool_returned(&mut self, result: &ChatToolResultReady) {
        let is_it = |call: &&mut Value| call["id"] == *result.tool_call_id;
        let Some(call) = self.tool_calls.iter_mut().rev().find(is_it) else { return };
        let success = result.status == tool_result::SUCCESS;
        call["success"] = success.into();
        if !success {
            call["error"] = result.result.as_str().into();
        }
    }

    /// How soon the first provider call was answered of those of which something was shown: a call before it has made a
    /// summary. The built-in engine, which has no first byte, is not timed.
    fn timing(&mut self, timing: &CallTiming) {
        let Some(first_byte_ms) = timing.first_byte_ms.filter(|_| !self.is_timed) else { return };
        self.meta.insert("first_byte_ms".to_owned(), first_byte_ms.into());
        if let Some(first_token_ms) = timing.first_token_ms {
            self.is_timed = true;
            self.meta.insert("first_token_ms".to_owned(), first_token_ms.into());
        }
    }

    /// The cost of the run so far, if it is known.
    fn cost(&mut self, totals: &UsageTotals) {
        let known = totals.run.as_ref().filter(|run| !run.cost.is_empty());
        let cost = known.map(|run| {
            let mut cost = json!({ "amount": run.cost, "currency": run.currency });
            if run.uncounted_calls > 0 {
                cost["uncountedCalls"] = run.uncounted_calls.into();
            }
            cost
        });
        match cost {
            Some(cost) => drop(self.meta.insert("cost".to_owned(), cost)),
            None => drop(self.meta.shift_remove("cost")),
        }
    }

    fn add_usage(&mut self, usage: &UsageInfo) -> Result<(), Error> {
        let sum = self.meta.entry("usage").or_insert_with(|| json!({}));
        if let Value::Object(members) = serde_json::to_value(usage)? {
            for (name, count) in members {
                let so_far = sum[&name].as_i64().unwrap_or(0);
                sum[&name] = so_far.saturating_add(count.as_i64().unwrap_or(0)).into();
            }
        }
        Ok(())
    }

    pub(super) fn end(
        &mut self,
        now: Uptime,
        code: ExitCode,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if matches!(self.answer, EnvelopeData::Objects(_)) && self.error.is_none() {
            // A last call without text has answered with no value.
            self.answer_begun();
        }
        if let EnvelopeData::Text(text) = &self.answer
            && code == ExitCode::Ok
            && !text.is_empty()
            && text.trim().is_empty()
        {
            let message = "the answer holds nothing but white space";
            self.warn(json!({ "code": BLANK_ANSWER, "message": message }));
        }
        let omitted = self.omitted + self.omitted_lines;
        if omitted > 0 {
            let message = format!("and {omitted} more warnings");
            self.warnings.push(json!({ "code": "more", "message": message }));
        }
        if self.lost > 0 {
            let message = format!(
                "{} frames are left out: the output is larger than {FRAME_BYTES_MAX} bytes; read \
                 it as a stream, without --no-stream",
                self.lost
            );
            self.warnings.push(json!({ "code": "left_out", "message": message }));
        }
        if let (Some(tokens), Some(usage)) = (self.reasoning_tokens, self.meta.get_mut("usage")) {
            usage["reasoningTokens"] = tokens.into();
        }
        if let Some(usage) = self.meta.get_mut("usage") {
            *usage = by_name(usage.take());
        }
        if !self.tool_calls.is_empty() {
            let calls = std::mem::take(&mut self.tool_calls).into_iter().map(by_name);
            self.meta.insert("tool_calls".to_owned(), calls.collect());
        }
        self.meta.extend(self.totals(now, code));
        // When each of them became known says nothing: equal runs give equal bytes.
        self.meta.sort_keys();
        match self.layout {
            Layout::Json => self.json(code, out),
            Layout::Yaml => {
                let mut json = Vec::new();
                self.json(code, &mut json)?;
                yaml(&json, out)
            }
        }
    }

    fn totals(&self, now: Uptime, code: ExitCode) -> Map<String, Value> {
        let total = match &self.answer {
            EnvelopeData::Objects(list) | EnvelopeData::Frames(list) => Some(list.len()),
            EnvelopeData::Text(_) | EnvelopeData::Document(..) => None,
        };
        let mut totals = Map::new();
        totals.extend(total.map(|total| ("total".to_owned(), total.into())));
        totals.insert("session_id".to_owned(), self.session.as_str().into());
        totals.insert("duration_ms".to_owned(), now.0.into());
        totals.insert("exit_code".to_owned(), code.number().into());
        let is_truncated = self.is_truncated || code == ExitCode::CutOff || self.is_broken_off();
        totals.insert("truncated".to_owned(), is_truncated.into());
        totals.insert("version".to_owned(), VERSION.into());
        totals
    }

    /// Whether the run failed after a part of its answer. An answer that does not match its schema is whole, also where
    /// its repair failed.
    fn is_broken_off(&self) -> bool {
        let has_part = match &self.answer {
            EnvelopeData::Text(text) => !text.is_empty(),
            EnvelopeData::Document(document, text) => {
                document.is_some() || !text.is_empty() && !self.is_rejected
            }
            EnvelopeData::Objects(list) => !list.is_empty(),
            EnvelopeData::Frames(_) => false,
        };
        let is_whole = |error: &Value| error["code"] == Code::InvalidAnswer.as_str();
        has_part && self.error.as_ref().is_some_and(|error| !is_whole(error))
    }

    fn json(&self, code: ExitCode, out: &mut Vec<u8>) -> Result<(), Error> {
        match &self.answer {
            EnvelopeData::Document(Some(document), _) => self.write(code, document, out),
            EnvelopeData::Text(text) | EnvelopeData::Document(None, text) if text.is_empty() => {
                self.write(code, Value::Null, out)
            }
            EnvelopeData::Text(text) | EnvelopeData::Document(None, text) => {
                self.write(code, text, out)
            }
            EnvelopeData::Objects(list) | EnvelopeData::Frames(list) => self.write(code, list, out),
        }
    }

    fn write(&self, code: ExitCode, data: impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
        json::write_pretty(&self.document(code, data), out)
    }

    fn document<D>(&self, code: ExitCode, data: D) -> Document<'_, D> {
        Document {
            // The partial answer stays when an answer was cut off.
            ok: matches!(code, ExitCode::Ok | ExitCode::CutOff),
            data,
            error: &self.error,
            warnings: &self.warnings,
            meta: &self.meta,
        }
    }

    fn frames(&mut self, frame: &Frame) -> Result<(), Error> {
        let EnvelopeData::Frames(frames) = &mut self.answer else { return Ok(()) };
        let frame = serde_json::value::to_raw_value(frame)?;
        self.bytes += frame.get().len();
        if self.bytes > FRAME_BYTES_MAX {
            self.lost += 1;
        } else {
            frames.push(frame);
        }
        Ok(())
    }

    fn warn(&mut self, warning: Value) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.omitted += 1;
        }
    }

    fn object(&mut self, object: &ObjectExtracted) -> Result<(), Error> {
        let json = || RawValue::from_string(object.json.clone());
        match &mut self.answer {
            EnvelopeData::Document(document, text) => {
                *document = Some(json()?);
                text.clear();
            }
            EnvelopeData::Objects(objects) => objects.push(json()?),
            EnvelopeData::Text(_) | EnvelopeData::Frames(_) => {}
        }
        Ok(())
    }

    fn line_rejected(&mut self, line: &LineRejected) {
        if self.warnings.len() < WARNINGS_MAX {
            let LineRejected { line, reason, .. } = line;
            let warning = json!({ "code": LINE_REJECTED, "line": line, "message": reason });
            self.warnings.push(warning);
        } else {
            self.omitted_lines += 1;
        }
    }

    fn extracted(&mut self, tally: &ExtractionFinished) {
        let objects = match &self.answer {
            EnvelopeData::Objects(_) if self.is_new_call => 0,
            // The tally is of all provider calls, the list has the values of the last one with text.
            EnvelopeData::Objects(objects) => objects.len() as u64,
            EnvelopeData::Text(_) | EnvelopeData::Document(..) | EnvelopeData::Frames(_) => {
                tally.objects
            }
        };
        if let Some(message) = nothing_found(objects, tally) {
            self.warn(json!({ "code": "nothing_found", "message": message }));
        }
    }

    fn error(&mut self, error: &ErrorFrame) {
        // In a conversation an error that does not end the process belongs to its request and is
        // among the frames.
        if matches!(self.answer, EnvelopeData::Frames(_)) && !error.terminal {
            return;
        }
        self.error = Some(error_document(error));
    }
}

/// Appends a JSON document as YAML.
fn yaml(json: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let document: &RawValue = serde_json::from_slice(json)?;
    let text = serde_saphyr::to_string(&Digits::of(document))
        .map_err(|error| Error::from(serde_json::Error::custom(error)))?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
