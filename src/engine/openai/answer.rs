//! From the bytes of an answer to what happened. Pure: the same bytes in other pieces give the same
//! events, but for where a text is cut.

use super::body::{Body, Part, TooLong, WHOLE_BYTES_MAX};
use super::calls::{Bad, CALLS_MAX, Calls};
use super::chunk::{Choice, Chunk, Shape, decode};
use super::join::Joiner;
use super::json;
use super::sse;
use super::trouble::{Trouble, Troubles};
use crate::chat::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use std::borrow::Cow;
use std::mem::take;

#[cfg(test)]
mod tests;

/// Bytes of a finish reason that are shown. The longest known word has fourteen.
const STOP_REASON_BYTES_MAX: usize = 200;

/// What follows the last event of a stream.
const DONE: &[u8] = b"[DONE]";

/// One answer as it arrives.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    troubles: &'a Troubles,
    body: Body,
    text: Joiner,
    reasoning: Joiner,
    reasoning_field: &'static str,
    calls: Calls,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    done: bool,
    /// The body has ended: what is read now may have been cut by its end.
    ended: bool,
    /// Some part of it could be read.
    understood: bool,
    /// Something was said.
    has_output: bool,
}

impl<'a> Answer<'a> {
    /// An answer of which nothing has come.
    pub(super) fn new(troubles: &'a Troubles) -> Self {
        Self {
            troubles,
            body: Body::default(),
            text: Joiner::default(),
            reasoning: Joiner::default(),
            reasoning_field: "",
            calls: Calls::default(),
            usage: None,
            finish_reason: None,
            done: false,
            ended: false,
            understood: false,
            has_output: false,
        }
    }

    /// Takes the next bytes; adds what happened to `events`, also if it fails.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Trouble> {
        let mut parts = Vec::new();
        let pushed = self.body.push(bytes, &mut parts);
        for part in parts {
            self.part(part, events)?;
        }
        pushed.map_err(|too_long| match too_long {
            TooLong::Event => self.too_long("an event", sse::EVENT_BYTES_MAX),
            TooLong::Whole => self.too_long("the answer", WHOLE_BYTES_MAX),
        })
    }

    /// True when nothing that matters can follow.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// True when the model has told why it stopped: only token counts can follow.
    pub(super) fn has_finished(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// Nothing follows. Adds the last events to `events`; `content_type` is the provider's name
    /// for what it sent.
    pub(super) fn end(
        mut self,
        content_type: &str,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Trouble> {
        if !self.done {
            self.ended = true;
            let blank = matches!(self.body, Body::Blank);
            let last = take(&mut self.body).end().map_or(Ok(()), |part| self.part(part, events));
            // An answer is not undone by half an event after its end.
            if !self.has_finished() {
                last?;
            }
            if blank {
                return Err(self.troubles.empty());
            }
        }
        self.flush(events);
        if !self.understood {
            return Err(self.troubles.not_an_answer(content_type));
        }
        self.finish(events)
    }

    /// Gives out what was held back for its other half: the answer goes no further.
    pub(super) fn flush(&mut self, events: &mut Vec<EngineEvent>) {
        let text = self.reasoning.end();
        self.reasoned(text, events);
        let text = self.text.end();
        self.said(text, events);
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Trouble> {
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

    fn event(&mut self, event: &sse::Event, events: &mut Vec<EngineEvent>) -> Result<(), Trouble> {
        let data = event.data.trim_ascii();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.done = true;
            return Ok(());
        }
        if event.kind == b"error" {
            return Err(self.reported(data));
        }
        self.chunk(data, Shape::Piece, events)
    }

    /// What an `error` event tells, whose data may be of any form.
    fn reported(&self, data: &[u8]) -> Trouble {
        match json::read::<serde_json::Value>(data) {
            Ok(value) => match value.get("error") {
                Some(error) if !error.is_null() => self.troubles.reported(error),
                Some(_) | None => self.troubles.reported(&value),
            },
            Err(_) => self.troubles.reported_text(&self.quotable(data)),
        }
    }

    /// What may be quoted of `data` that can't be read.
    fn quotable<'d>(&self, data: &'d [u8]) -> Cow<'d, [u8]> {
        match self.ended {
            true => self.troubles.broken_off(data).into(),
            false => data.into(),
        }
    }

    fn chunk(
        &mut self,
        json: &[u8],
        shape: Shape,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Trouble> {
        let chunk =
            decode(json).map_err(|why| self.troubles.unreadable(&why, &self.quotable(json)))?;
        self.usage = chunk.usage().or(self.usage);
        let Chunk { choice, mut error, .. } = chunk;
        if let Some(mut choice) = choice {
            if !is_error(&error) {
                error = take(&mut choice.error);
            }
            self.understood = true;
            self.choice(choice, shape, events)?;
        }
        match is_error(&error) {
            true => Err(self.troubles.reported(&error)),
            false => Ok(()),
        }
    }

    fn choice(
        &mut self,
        choice: Choice,
        shape: Shape,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Trouble> {
        if let Some(reason) = choice.finish_reason() {
            self.finish_reason = Some(reason.to_owned());
        }
        let said = choice.said(shape);
        let (field, reasoning) = said.reasoning();
        if !reasoning.is_empty() {
            self.reasoning_field = field;
            let text = self.reasoning.push(reasoning);
            self.reasoned(text, events);
        }
        for text in said.text() {
            let text = self.text.push(text);
            self.said(text, events);
        }
        for delta in said.tool_calls() {
            self.has_output = true;
            let delta = delta.shown(|word, bytes_max| self.troubles.shown(word, bytes_max));
            self.calls.push(&delta, events).map_err(|bad| self.bad_call(bad))?;
        }
        Ok(())
    }

    fn reasoned(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        if !text.is_empty() {
            self.has_output = true;
            events.push(EngineEvent::Reasoning { source: self.reasoning_field, text });
        }
    }

    fn said(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        if !text.is_empty() {
            self.has_output = true;
            events.push(EngineEvent::Text(text));
        }
    }

    fn finish(mut self, events: &mut Vec<EngineEvent>) -> Result<(), Trouble> {
        let reason = match self.finish_reason.take() {
            Some(reason) if reason == "error" => return Err(self.troubles.gave_up()),
            Some(reason) => reason,
            None if self.done && self.has_output => String::new(),
            None => return Err(self.troubles.cut_off()),
        };
        self.calls.end(events).map_err(|bad| self.bad_call(bad))?;
        events.extend(self.usage.map(EngineEvent::Usage));
        let names = self.calls.names();
        let class = match (reason.as_str(), names.as_slice()) {
            ("", [_, ..]) => FinishClass::ToolCalls,
            (reason, _) => finish_class(reason),
        };
        let stop_reason = match class == FinishClass::Other {
            true => self.troubles.shown(&reason, STOP_REASON_BYTES_MAX),
            // A known word, even if it is the key.
            false => reason,
        };
        events.push(EngineEvent::CallFinished { stop_reason, class });
        // Tools are offered to the model by nobody here: a call can't be answered.
        match names.as_slice() {
            [] => Ok(()),
            names => Err(self.troubles.unknown_tools(names)),
        }
    }

    fn too_long(&self, what: &str, limit_bytes: usize) -> Trouble {
        self.troubles.too_long(format!("{what} is longer than {limit_bytes} bytes"))
    }

    fn bad_call(&self, bad: Bad) -> Trouble {
        match bad {
            Bad::TooMany => {
                self.troubles.too_long(format!("more than {CALLS_MAX} tool calls, or one unnamed"))
            }
            Bad::Nameless => self.troubles.nameless_tool(),
        }
    }
}

/// False for what a provider may put where there is no error.
fn is_error(error: &serde_json::Value) -> bool {
    match error {
        serde_json::Value::Null | serde_json::Value::Bool(false) => false,
        serde_json::Value::String(text) => !text.is_empty(),
        serde_json::Value::Object(fields) => !fields.is_empty(),
        serde_json::Value::Bool(true)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_) => true,
    }
}

/// The words of OpenAI, and those that other providers let through from the model below them.
fn finish_class(reason: &str) -> FinishClass {
    match reason {
        // Empty: the stream said that it was done, and not why.
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "" => FinishClass::Completed,
        "length" | "max_tokens" => FinishClass::MaxTokens,
        "tool_calls" | "tool_use" | "function_call" => FinishClass::ToolCalls,
        "content_filter" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}
