//! Decodes a response into engine events. Pure.

use super::blocks::{Blocks, Unsigned};
use super::event::{Block, End, Event, decode};
use super::usage::Counts;
use crate::conversation::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{BodyEnd, Part};
use crate::engine::provider::calls::AnswerError;
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::provider_data;
use crate::engine::provider::response::{ResponseEnd, ResponseReader, ResponseState};
use crate::engine::provider::sse::SseEvent;
use crate::engine::provider::tool::ID_BYTES_MAX;
use serde_json::Value;
use std::mem::take;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(in crate::engine) struct AnthropicReader<'a> {
    response: ResponseState<'a>,
    blocks: Blocks,
    counts: Counts,
    stop_reason: Option<String>,
}

impl<'a> AnthropicReader<'a> {
    /// A reader of a response in a body that ends with `body_end`.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        let response = ResponseState::new(failures, body_end);
        let blocks = Blocks::new(Unsigned::of(failures.host(), failures.model()));
        Self { response, blocks, counts: Counts::default(), stop_reason: None }
    }

    fn sse_event(
        &mut self,
        event: &SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        match data {
            _ if self.response.done => Ok(()),
            [] => Ok(()),
            [b'{', ..] => self.json(data, events),
            [..] if event.kind == b"error" => Err(self.response.failures.reported_text(data)),
            // An end mark of another interface, or a keep-alive message.
            [..] => {
                self.response.ignore(data);
                Ok(())
            }
        }
    }

    fn json(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let json = &self.response.joined(json);
        let event = decode(json).map_err(|why| self.response.failures.unreadable(&why, json))?;
        if let Event::Error { error } = &event {
            return Err(self.response.failures.reported_as(error, error_status(error)));
        }
        if let Event::Unknown = event {
            self.response.ignore(json);
        }
        if matches!(event, Event::Ping | Event::Unknown) {
            return Ok(());
        }
        self.response.understand();
        self.response.advance(true);
        self.event(event, events).map_err(|error| self.response.failure_of(error, json))
    }

    fn event(&mut self, event: Event, events: &mut Vec<EngineEvent>) -> Result<(), AnswerError> {
        match event {
            // What came of the answer would be taken for a part of the other one.
            Event::MessageStart { .. } if self.blocks.have_begun() => {
                return Err(AnswerError::Misplaced("another answer in the middle of one"));
            }
            Event::MessageStart { message } => self.counts.update(&message.usage),
            Event::ContentBlockStart { index, content_block } => {
                let block = self.shown(content_block);
                self.blocks.begin(index, block, events)?;
            }
            Event::ContentBlockDelta { index, delta } => self.blocks.push(index, delta, events)?,
            Event::ContentBlockStop { index } => self.blocks.finish(index, events),
            Event::MessageDelta { delta, usage } => self.ending(delta, &usage),
            Event::MessageStop => self.finish(events),
            Event::Message { content, end, usage } => {
                for (index, block) in (0..).zip(content) {
                    let block = self.shown(block);
                    self.blocks.begin(index, block, events)?;
                }
                self.ending(end, &usage);
                self.finish(events);
            }
            Event::Ping | Event::Unknown | Event::Error { .. } => {}
        }
        Ok(())
    }

    fn ending(&mut self, End { stop_reason, stop_details }: End, usage: &Value) {
        self.counts.update(usage);
        if let Some(words) = stop_details["explanation"].as_str() {
            self.response.explain(words);
        }
        self.stop_reason = stop_reason.or(self.stop_reason.take());
    }

    fn finish(&mut self, events: &mut Vec<EngineEvent>) {
        self.blocks.finish_all(events);
        self.response.done = true;
    }

    /// Removes the key from the names and ids of the block, which frames show.
    fn shown(&self, block: Block) -> Block {
        let Block::ToolUse { id, name, input } = block else { return block };
        Block::ToolUse {
            id: self.response.failures.shown(&id, ID_BYTES_MAX),
            name: self.response.failures.shown_tool_name(&name),
            input,
        }
    }

    fn cut_off(&self, missing: &str) -> Failure {
        self.response.at_end(self.response.cut_off(missing))
    }
}

impl<'a> ResponseReader<'a> for AnthropicReader<'a> {
    const INTERFACE: &'static str = "messages";

    fn response(&self) -> &ResponseState<'a> {
        &self.response
    }

    fn response_mut(&mut self) -> &mut ResponseState<'a> {
        &mut self.response
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let before = events.len();
        let read = match part {
            Part::Whole(json) => self.json(&json, events),
            Part::Event(event) => self.sse_event(&event, events),
        };
        self.response.note(&events[before..]);
        read
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let reason = match self.stop_reason.take() {
            Some(reason) if self.response.done => reason,
            None if self.response.done => return Err(self.cut_off("a stop reason")),
            Some(_) | None => return Err(self.cut_off("message_stop")),
        };
        let end = ResponseEnd {
            class: finish_class(&reason),
            reason,
            usage: self.take_usage(),
            provider_data: provider_data::encode(self.response.failures, self.blocks.data()),
            has_calls: !self.blocks.has_no_calls(),
        };
        self.response.finish(end, events)
    }

    fn take_usage(&mut self) -> Option<Usage> {
        take(&mut self.counts).usage()
    }
}

/// The words of <https://platform.claude.com/docs/en/api/handling-stop-reasons>. `pause_turn` belongs
/// to tools that run at the provider, of which none is offered.
fn finish_class(reason: &str) -> FinishClass {
    match reason {
        "end_turn" | "stop_sequence" => FinishClass::Completed,
        "max_tokens" | "model_context_window_exceeded" => FinishClass::MaxTokens,
        "tool_use" => FinishClass::ToolCalls,
        "refusal" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}

/// The HTTP status of an error in a stream, which has only a word for it
/// (<https://platform.claude.com/docs/en/api/errors>).
fn error_status(error: &Value) -> Option<u16> {
    match error["type"].as_str()? {
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}
