//! From the bytes of an answer to what happened. Pure: the same bytes in other pieces give the same
//! events, but for where a text is cut.

use super::calls::{Bad, Calls};
use super::chunk::{Choice, Chunk, Delta, Shape, decode};
use super::finish::{Finish, Holds};
use super::report::{WithoutChoice, in_list, is_error, without_choice};
use crate::chat::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{Body, BodyEnd, Ignored, Part};
use crate::engine::provider::call::{self, Completeness};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::join::Joiner;
use crate::engine::provider::tool::CALLS_MAX;
use crate::engine::provider::{json, sse};
use std::borrow::Cow;
use std::mem::take;

/// What servers of this kind answer, as errors name it.
const INTERFACE: &str = "chat-completions";

/// What is missing at the end of an answer without a finish reason, as errors name it.
fn missing(has_mark: bool) -> &'static str {
    if has_mark { "a finish reason" } else { "a finish reason and without [DONE]" }
}

#[cfg(test)]
mod tests;

/// Bytes of a finish reason that are shown. The longest known word has fourteen.
const STOP_REASON_BYTES_MAX: usize = 200;

/// What follows the last event of a stream.
const DONE: &[u8] = b"[DONE]";

/// One answer as it arrives.
#[derive(Debug)]
pub(in crate::engine) struct Answer<'a> {
    failures: &'a Failures,
    body: Body,
    text: Joiner,
    reasoning: Joiner,
    reasoning_field: &'static str,
    calls: Calls,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    finish: Finish,
    done: bool,
    /// The body has ended, so the last event may have been cut by its end.
    ended: bool,
    body_end: BodyEnd,
    /// Some part of it could be read.
    understood: bool,
    /// The text is that of deltas; what else the chunks hold repeats it.
    by_delta: bool,
    has_reasoning: bool,
    has_text: bool,
    /// There is more in the text than white space.
    has_words: bool,
    ignored: Ignored,
    /// Rises with all that brings the answer further.
    progress: u64,
}

impl<'a> Answer<'a> {
    /// An answer of which nothing has come, in a body that ends so.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            failures,
            body: Body::default(),
            text: Joiner::default(),
            reasoning: Joiner::default(),
            reasoning_field: "",
            calls: Calls::default(),
            usage: None,
            finish_reason: None,
            finish: Finish::default(),
            done: false,
            ended: false,
            body_end,
            understood: false,
            by_delta: false,
            has_reasoning: false,
            has_text: false,
            has_words: false,
            ignored: Ignored::default(),
            progress: 0,
        }
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        match part {
            Part::Whole(json) => {
                self.chunk(&json, Shape::Whole, events)?;
                // A whole answer needs no reason: its end is the end of the document.
                self.done = true;
                Ok(())
            }
            Part::Event(event) => self.event(&event, events),
        }
    }

    fn event(
        &mut self,
        event: &sse::SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data.starts_with(DONE) {
            self.done = true;
            return Ok(());
        }
        if event.kind == b"error" {
            return Err(self.reported(data));
        }
        match data {
            [b'{', ..] => self.chunk(data, Shape::Piece, events),
            [..] => self.other_data(data),
        }
    }

    /// Data that is no JSON object: an error in a list, or nothing that matters.
    fn other_data(&mut self, data: &[u8]) -> Result<(), Failure> {
        if let Some(error) = in_list(data) {
            return Err(self.failures.reported(&error));
        }
        self.ignore(data);
        Ok(())
    }

    fn ignore(&mut self, data: &[u8]) {
        self.failures.ignore(data, &mut self.ignored);
    }

    /// The failure in an `error` event, whose data may have any form.
    fn reported(&self, data: &[u8]) -> Failure {
        match json::read::<serde_json::Value>(data) {
            Ok(value) => match value.get("error") {
                Some(error) if !error.is_null() => self.failures.reported(error),
                Some(_) | None => self.failures.reported(&value),
            },
            Err(_) => self.failures.reported_text(&self.quotable(data)),
        }
    }

    /// What may be quoted of `data` that can't be read.
    fn quotable<'d>(&self, data: &'d [u8]) -> Cow<'d, [u8]> {
        match self.ended {
            true => self.failures.broken_off(data).into(),
            false => data.into(),
        }
    }

    fn chunk(
        &mut self,
        json: &[u8],
        shape: Shape,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let chunk =
            decode(json).map_err(|why| self.failures.unreadable(&why, &self.quotable(json)))?;
        self.count(chunk.usage());
        let Chunk { choice, mut error, .. } = chunk;
        if let Some(mut choice) = choice {
            if !is_error(&error) {
                error = take(&mut choice.error);
            }
            self.progress += u64::from(!std::mem::replace(&mut self.understood, true));
            self.choice(choice, shape, events)?;
        } else if !is_error(&error) {
            match without_choice(json) {
                WithoutChoice::Error(reported) => error = reported,
                WithoutChoice::Known => {}
                WithoutChoice::Unknown => self.ignore(json),
            }
        }
        match is_error(&error) {
            true => Err(self.failures.reported(&error)),
            false => Ok(()),
        }
    }

    fn choice(
        &mut self,
        choice: Choice,
        shape: Shape,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let reason = choice.finish_reason().map(str::to_owned);
        let before = events.len();
        let piece = choice.piece(shape, &mut self.by_delta);
        self.piece(piece, events)?;
        let holds = Holds { output: events.len() > before, reason: reason.is_some() };
        let is_new = reason.is_some() && reason != self.finish_reason;
        self.finish = self.finish.after(holds, self.has_answer());
        self.finish_reason = reason.or(self.finish_reason.take());
        self.progress += u64::from(holds.output || is_new);
        Ok(())
    }

    fn piece(&mut self, piece: Delta, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let (field, reasoning) = piece.reasoning();
        if !reasoning.is_empty() {
            self.reasoning_field = field;
            let text = self.reasoning.push(reasoning);
            self.push_reasoning(text, events);
        }
        for text in piece.text() {
            let text = self.text.push(text);
            self.push_text(text, events);
        }
        for delta in piece.tool_calls() {
            let delta = delta.shown(|word, bytes_max| self.failures.shown(word, bytes_max));
            self.calls.push(&delta, events).map_err(|bad| self.bad_call(bad))?;
        }
        Ok(())
    }

    /// Keeps the newest token counts. After the end of the answer they bring it no further.
    fn count(&mut self, usage: Option<Usage>) {
        let is_new = usage.is_some() && usage != self.usage;
        self.progress += u64::from(is_new && self.finish != Finish::Settled);
        self.usage = usage.or(self.usage);
    }

    fn has_answer(&self) -> bool {
        self.has_text || !self.calls.is_empty()
    }

    fn push_reasoning(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        if !text.is_empty() {
            self.has_reasoning = true;
            events.push(EngineEvent::Reasoning { source: self.reasoning_field, text });
        }
    }

    fn push_text(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        if !text.is_empty() {
            self.has_text = true;
            self.has_words |= !text.trim().is_empty();
            events.push(EngineEvent::Text(text));
        }
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let has_output = self.has_answer() || self.has_reasoning;
        let reason = match self.finish_reason.take() {
            Some(reason) if reason == "error" => {
                return Err(self.failures.gave_up("finish reason \"error\""));
            }
            Some(reason) => reason,
            // An event that was not understood may have reported that the answer was cut off.
            None if self.done && has_output && self.ignored.count == 0 => String::new(),
            None if self.done => return Err(self.failures.cut_off(missing(true), &self.ignored)),
            None => {
                let failure = self.failures.cut_off(missing(false), &self.ignored);
                return Err(self.at_end(failure));
            }
        };
        self.calls.end(events).map_err(|bad| self.bad_call(bad))?;
        events.extend(self.usage.map(EngineEvent::Usage));
        let class = match reason.as_str() {
            "" if !self.calls.is_empty() => FinishClass::ToolCalls,
            reason => finish_class(reason),
        };
        let stop_reason = match class == FinishClass::Other {
            true => self.failures.shown(&reason, STOP_REASON_BYTES_MAX),
            // A known word, even if it is the key.
            false => reason,
        };
        let finished = EngineEvent::CallFinished {
            stop_reason: stop_reason.clone(),
            class,
            provider_data: None,
        };
        events.push(finished);
        // That an answer was cut off is reported with its finish class.
        match self.has_text || class.cuts_off() || !self.calls.is_empty() {
            true => Ok(()),
            false => Err(self.failures.no_answer(&stop_reason, self.has_reasoning)),
        }
    }

    fn at_end(&self, failure: Failure) -> Failure {
        self.failures.at_end(failure, self.body_end, &self.ignored)
    }

    fn bad_call(&self, bad: Bad) -> Failure {
        match bad {
            Bad::TooMany => {
                self.failures.too_long(format!("more than {CALLS_MAX} tool calls, or one unnamed"))
            }
            Bad::Nameless => self.failures.nameless_tool(),
        }
    }
}

impl call::Answer for Answer<'_> {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let mut parts = Vec::new();
        let pushed = self.body.push(bytes, &mut parts);
        for part in parts {
            self.part(part, events)?;
        }
        self.progress += u64::from(self.body.is_filling());
        pushed.map_err(|part| self.failures.too_long_part(part))
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn completeness(&self) -> Completeness {
        match self.finish {
            Finish::Open | Finish::Doubtful => Completeness::Open,
            Finish::Likely => Completeness::Likely,
            Finish::Settled => Completeness::Settled,
        }
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn ignored(&self) -> u64 {
        self.ignored.count
    }

    fn is_blank(&self) -> bool {
        self.has_text && !self.has_words
    }

    fn flush(&mut self, events: &mut Vec<EngineEvent>) {
        let text = self.reasoning.end();
        self.push_reasoning(text, events);
        let text = self.text.end();
        self.push_text(text, events);
    }

    fn end(&mut self, content_type: &str, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        if !self.done {
            self.ended = true;
            let blank = matches!(self.body, Body::Blank);
            let last = take(&mut self.body).end().map_or(Ok(()), |part| self.part(part, events));
            // An answer is not undone by half an event after its end.
            if self.finish_reason.is_none() {
                last.map_err(|failure| self.at_end(failure))?;
            }
            if blank {
                return Err(self.failures.empty());
            }
        }
        self.flush(events);
        if !self.understood {
            return Err(self.failures.not_an_answer(INTERFACE, content_type, &self.ignored));
        }
        self.conclude(events)
    }
}

/// The words of OpenAI, and those that other providers let through from the model below them.
fn finish_class(reason: &str) -> FinishClass {
    match reason {
        // Empty: the stream ended with its end mark and no reason.
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "" => FinishClass::Completed,
        "length" | "max_tokens" => FinishClass::MaxTokens,
        "tool_calls" | "tool_use" | "function_call" => FinishClass::ToolCalls,
        "content_filter" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}
