//! Decodes a response into engine events. Pure: the events do not depend on how the bytes are split, except
//! for where a text is cut.

use super::calls::Calls;
use super::chunk::{Choice, Chunk, Delta, Shape, decode};
use super::finish::{Finish, Holds};
use super::provider_data::ProviderDataBuilder;
use super::report::{WithoutChoice, in_list, is_error, without_choice};
use crate::conversation::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{BodyEnd, Part};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::join::Joiner;
use crate::engine::provider::response::{Completeness, ResponseEnd, ResponseReader, ResponseState};
use crate::engine::provider::think::{self, Split, ThinkTag};
use crate::engine::provider::{error_words, json, sse};
use serde_json::Value;
use std::borrow::Cow;
use std::mem::take;

/// The missing end of an answer without a finish reason, as errors name it.
fn missing(has_mark: bool) -> &'static str {
    if has_mark { "a finish reason" } else { "a finish reason and without [DONE]" }
}

#[cfg(test)]
mod tests;

/// Finish reasons of an answer that the server broke off, as OpenRouter, Zhipu, DeepSeek, vLLM and others have
/// them.
const BROKEN_OFF: [&str; 6] = [
    "error",
    "network_error",
    "network-error",
    "insufficient_system_resource",
    "abort",
    "error_finish",
];

/// The mark after the last event of a stream.
const DONE: &[u8] = b"[DONE]";

#[derive(Debug)]
pub(in crate::engine) struct OpenAiReader<'a> {
    response: ResponseState<'a>,
    text: Joiner,
    reasoning: Joiner,
    reasoning_field: &'static str,
    think: ThinkTag,
    provider_data: ProviderDataBuilder,
    calls: Calls,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    finish: Finish,
    /// The body has ended, so the last event may have been cut by its end.
    ended: bool,
    /// The text is that of deltas; what else the chunks hold repeats it.
    by_delta: bool,
}

impl<'a> OpenAiReader<'a> {
    /// A reader of a response in a body that ends with `body_end`.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            response: ResponseState::new(failures, body_end),
            text: Joiner::default(),
            reasoning: Joiner::default(),
            reasoning_field: "",
            think: ThinkTag::default(),
            provider_data: ProviderDataBuilder::default(),
            calls: Calls::default(),
            usage: None,
            finish_reason: None,
            finish: Finish::default(),
            ended: false,
            by_delta: false,
        }
    }

    fn event(
        &mut self,
        event: &sse::SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        if self.response.done || data.is_empty() {
            return Ok(());
        }
        if data.starts_with(DONE) {
            self.response.done = true;
            return Ok(());
        }
        if event.kind == b"error" {
            return self.fail(self.reported_event(data), self.has_ended(), data);
        }
        match data {
            [b'{', ..] => self.chunk(data, Shape::Piece, events),
            [..] => self.other_data(data),
        }
    }

    /// Data that is no JSON object: an error in a list, or nothing that matters.
    fn other_data(&mut self, data: &[u8]) -> Result<(), Failure> {
        if let Some(error) = in_list(data) {
            return self.fail(self.reported(&error), self.has_ended(), data);
        }
        self.response.ignore(data);
        Ok(())
    }

    /// Ends the answer with `failure`, which the server reports in `data`, unless the answer `had_ended` before and
    /// does not go on there: a gateway may report what its own accounting met.
    fn fail(&mut self, failure: Failure, had_ended: bool, data: &[u8]) -> Result<(), Failure> {
        if !had_ended || !self.has_ended() {
            return Err(failure);
        }
        self.response.ignore(data);
        Ok(())
    }

    /// Whether nothing of the answer can follow, and the server did not break it off.
    fn has_ended(&self) -> bool {
        let reason = self.finish_reason.as_deref().unwrap_or_default();
        self.finish == Finish::Settled && !BROKEN_OFF.contains(&reason)
    }

    /// The failure in an `error` event, whose data may have any form.
    fn reported_event(&self, data: &[u8]) -> Failure {
        match json::read::<Value>(data) {
            Ok(value) => match value.get("error") {
                // A text there may be the headline of more.
                Some(error) if !error.is_null() && !error.is_string() => self.reported(error),
                Some(_) | None => self.reported(&value),
            },
            Err(_) => self.response.failures.reported_text(&self.quotable(data)),
        }
    }

    /// The failure that a report stands for, by its number or else by its words.
    fn reported(&self, error: &Value) -> Failure {
        self.response.failures.reported_as(error, error_words::status(error))
    }

    /// What may be quoted of `data` that can't be read.
    fn quotable<'d>(&self, data: &'d [u8]) -> Cow<'d, [u8]> {
        match self.ended {
            true => self.response.failures.broken_off(data).into(),
            false => data.into(),
        }
    }

    fn chunk(
        &mut self,
        json: &[u8],
        shape: Shape,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let chunk = decode(json)
            .map_err(|why| self.response.failures.unreadable(&why, &self.quotable(json)))?;
        self.count(chunk.usage());
        let had_ended = self.has_ended();
        let Chunk { choice, mut error, .. } = chunk;
        if let Some(mut choice) = choice {
            if !is_error(&error) {
                error = take(&mut choice.error);
            }
            let is_first = self.response.understand();
            self.response.advance(is_first);
            self.choice(choice, shape, events)?;
        } else if !is_error(&error) {
            match without_choice(json) {
                WithoutChoice::Error(reported) => error = reported,
                WithoutChoice::Known => {}
                WithoutChoice::Unknown => self.response.ignore(json),
            }
        }
        match is_error(&error) {
            true if error.is_string() => self.fail(self.reported_event(json), had_ended, json),
            true => self.fail(self.reported(&error), had_ended, json),
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
        let (before, held) = (events.len(), self.held());
        let piece = choice.piece(shape, &mut self.by_delta);
        self.piece(piece, events)?;
        let is_output = events.len() > before || self.held() > held;
        let holds = Holds { output: is_output, reason: reason.is_some() };
        let is_new = reason.is_some() && reason != self.finish_reason;
        self.finish = self.finish.after(holds, self.has_answer());
        self.finish_reason = reason.or(self.finish_reason.take());
        self.response.advance(holds.output || is_new);
        Ok(())
    }

    fn piece(
        &mut self,
        mut piece: Box<Delta>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        self.provider_data.push(&mut piece);
        let (field, reasoning) = piece.reasoning();
        if !reasoning.is_empty() {
            let split = self.think.off();
            self.push_split(split, events);
            self.reasoning_field = field;
            let text = self.reasoning.push(reasoning);
            self.push_reasoning(field, text, events);
        }
        for text in piece.text() {
            let text = self.text.push(text);
            self.push_text(text, events);
        }
        let calls = piece.tool_calls();
        if !calls.is_empty() {
            self.release(events);
        }
        for delta in calls {
            let delta = delta.shown(self.response.failures);
            let pushed = self.calls.push(&delta, events);
            pushed.map_err(|error| self.response.failure_of(error, &[]))?;
        }
        Ok(())
    }

    /// Stores the newest token counts. After the end of the answer they are no progress.
    fn count(&mut self, usage: Option<Usage>) {
        let is_new = usage.is_some() && usage != self.usage;
        self.response.advance(is_new && self.finish != Finish::Settled);
        self.usage = usage.or(self.usage);
    }

    /// Whether an answer may go on after its finish reason, with nothing else to say that it has ended. That it was
    /// cut off is believed.
    fn means_no_end(&self, reason: &str) -> bool {
        self.finish == Finish::Doubtful
            && self.response.may_be_broken_off()
            && !finish_class(reason).cuts_off()
    }

    fn has_answer(&self) -> bool {
        self.response.has_text() || self.think.holds_answer() || !self.calls.is_empty()
    }

    /// How much output is held back: calls, and bytes of text.
    fn held(&self) -> usize {
        self.calls.held() + self.think.held_bytes()
    }

    fn push_reasoning(
        &mut self,
        source: &'static str,
        text: String,
        events: &mut Vec<EngineEvent>,
    ) {
        if !text.is_empty() {
            self.send(EngineEvent::Reasoning { source, text }, events);
        }
    }

    fn push_text(&mut self, text: String, events: &mut Vec<EngineEvent>) {
        let split = self.think.push(text);
        self.push_split(split, events);
    }

    /// Emits text that was held back: other output follows it, or the end.
    fn release(&mut self, events: &mut Vec<EngineEvent>) {
        let split = self.think.release();
        self.push_split(split, events);
    }

    fn push_split(&mut self, Split { reasoning, answer }: Split, events: &mut Vec<EngineEvent>) {
        self.push_reasoning(think::SOURCE, reasoning, events);
        if !answer.is_empty() {
            self.send(EngineEvent::Text(answer), events);
        }
    }

    fn send(&mut self, event: EngineEvent, events: &mut Vec<EngineEvent>) {
        self.response.note(std::slice::from_ref(&event));
        events.push(event);
    }
}

impl<'a> ResponseReader<'a> for OpenAiReader<'a> {
    const INTERFACE: &'static str = "chat-completions";

    fn response(&self) -> &ResponseState<'a> {
        &self.response
    }

    fn response_mut(&mut self) -> &mut ResponseState<'a> {
        &mut self.response
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        match part {
            Part::Whole(json) => {
                self.chunk(&json, Shape::Whole, events)?;
                // A whole answer needs no reason: its end is the end of the document.
                self.response.done = true;
                Ok(())
            }
            Part::Event(event) => self.event(&event, events),
        }
    }

    fn last_part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        self.ended = true;
        let finish = self.finish;
        let read = self.part(part, events);
        match finish {
            // An answer is not undone by half an event after its end.
            Finish::Likely | Finish::Settled => Ok(()),
            Finish::Open | Finish::Doubtful => {
                read.map_err(|failure| self.response.at_end(failure))
            }
        }
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let has_output = self.has_answer() || self.response.has_reasoning();
        let reason = match self.finish_reason.take() {
            Some(reason) if BROKEN_OFF.contains(&reason.as_str()) => {
                let detail = format!("finish reason {reason:?}");
                return Err(self.response.failures.gave_up(&detail));
            }
            Some(reason) if self.means_no_end(&reason) => {
                return Err(self.response.at_end(self.response.cut_off("[DONE]")));
            }
            Some(reason) => reason,
            // An event that was not understood may have reported that the answer was cut off.
            None if self.response.done && has_output && self.response.ignored() == 0 => {
                String::new()
            }
            None if self.response.done => return Err(self.response.cut_off(missing(true))),
            None => return Err(self.response.at_end(self.response.cut_off(missing(false)))),
        };
        self.calls.end(events).map_err(|error| self.response.failure_of(error, &[]))?;
        let has_calls = !self.calls.is_empty();
        let class = match reason.as_str() {
            "" if has_calls => FinishClass::ToolCalls,
            reason => finish_class(reason),
        };
        if class == FinishClass::Completed && !has_calls && !self.response.has_text() {
            let text = self.think.take_unclosed();
            self.push_split(Split { answer: text, ..Split::default() }, events);
        }
        let usage = self.take_usage();
        self.provider_data.push_think(self.think.take_beginning());
        self.provider_data.push_calls(self.calls.take_data());
        let provider_data = take(&mut self.provider_data).build(self.response.failures);
        let end = ResponseEnd { reason, class, usage, provider_data, has_calls };
        self.response.finish(end, events)
    }

    fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn completeness(&self) -> Completeness {
        match self.finish {
            Finish::Open | Finish::Doubtful => Completeness::Open,
            Finish::Likely => Completeness::Likely,
            Finish::Settled => Completeness::Settled,
        }
    }

    fn flush(&mut self, events: &mut Vec<EngineEvent>) {
        let text = self.reasoning.end();
        self.push_reasoning(self.reasoning_field, text, events);
        let text = self.text.end();
        self.push_text(text, events);
        self.release(events);
    }
}

/// The words of OpenAI, and those that other providers let through from the model below them.
fn finish_class(reason: &str) -> FinishClass {
    match reason {
        // Empty: the stream ended with its end mark and no reason.
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "" => FinishClass::Completed,
        // The last is Mistral's, for the limit of the model itself.
        "length" | "max_tokens" | "model_length" => FinishClass::MaxTokens,
        "tool_calls" | "tool_use" | "function_call" => FinishClass::ToolCalls,
        "content_filter" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}
