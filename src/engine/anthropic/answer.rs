//! From the bytes of an answer to what happened. Pure.

use super::blocks::{Bad, Blocks};
use super::event::{Block, End, Event, decode};
use super::usage::Counts;
use super::{kept, report};
use crate::chat::event::FinishClass;
use crate::engine::EngineEvent;
use crate::engine::provider::answer;
use crate::engine::provider::body::{BodyEnd, Part};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::reading::{AnswerEnd, Reading};
use crate::engine::provider::sse::SseEvent;
use crate::engine::provider::tool::{ID_BYTES_MAX, NAME_BYTES_MAX};
use serde::de::Error;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// One answer as it arrives.
#[derive(Debug)]
pub(in crate::engine) struct Answer<'a> {
    reading: Reading<'a>,
    model: &'a str,
    blocks: Blocks,
    counts: Counts,
    stop_reason: Option<String>,
}

impl<'a> Answer<'a> {
    /// An answer of `model` of which nothing has come, in a body that ends so.
    pub(super) fn new(failures: &'a Failures, model: &'a str, body_end: BodyEnd) -> Self {
        Self {
            reading: Reading::new(failures, body_end),
            model,
            blocks: Blocks::default(),
            counts: Counts::default(),
            stop_reason: None,
        }
    }

    fn sse_event(
        &mut self,
        event: &SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        match data {
            _ if self.reading.done => Ok(()),
            [] => Ok(()),
            [b'{', ..] => self.json(data, events),
            [..] if event.kind == b"error" => Err(self.reading.failures.reported_text(data)),
            // An end mark of another interface, or a keep-alive message.
            [..] => {
                self.reading.ignore(data);
                Ok(())
            }
        }
    }

    fn json(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let json = &self.reading.joined(json);
        let event = decode(json).map_err(|why| self.reading.failures.unreadable(&why, json))?;
        match &event {
            Event::Ping => return Ok(()),
            Event::Unknown => {
                self.reading.ignore(json);
                return Ok(());
            }
            Event::Error { error } => return Err(self.reported(error)),
            Event::MessageStart { .. }
            | Event::ContentBlockStart { .. }
            | Event::ContentBlockDelta { .. }
            | Event::ContentBlockStop { .. }
            | Event::MessageDelta { .. }
            | Event::MessageStop
            | Event::Message { .. } => {}
        }
        self.reading.understand();
        self.reading.advance(true);
        self.event(event, events).map_err(|bad| self.bad(bad, json))
    }

    fn event(&mut self, event: Event, events: &mut Vec<EngineEvent>) -> Result<(), Bad> {
        match event {
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

    fn ending(&mut self, End { stop_reason }: End, usage: &Value) {
        self.counts.update(usage);
        self.stop_reason = stop_reason.or(self.stop_reason.take());
    }

    fn finish(&mut self, events: &mut Vec<EngineEvent>) {
        self.blocks.finish_all(events);
        self.reading.done = true;
    }

    /// The same block without the key in its words, which are shown.
    fn shown(&self, block: Block) -> Block {
        match block {
            Block::ToolUse { id, name, input } => Block::ToolUse {
                id: self.reading.failures.shown(&id, ID_BYTES_MAX),
                name: self.reading.failures.shown(&name, NAME_BYTES_MAX),
                input,
            },
            block @ (Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Unknown) => block,
        }
    }

    fn cut_off(&self, missing: &str) -> Failure {
        self.reading.at_end(self.reading.cut_off(missing))
    }

    fn reported(&self, error: &Value) -> Failure {
        self.reading.failures.reported_as(error, report::status(error))
    }

    fn bad(&self, bad: Bad, json: &[u8]) -> Failure {
        match bad {
            Bad::Calls | Bad::Blocks | Bad::Kept => self.reading.failures.too_long(bad.words()),
            Bad::Nameless => self.reading.failures.nameless_tool(),
            Bad::Unopened | Bad::WrongKind => {
                self.reading.failures.unreadable(&serde_json::Error::custom(bad.words()), json)
            }
        }
    }
}

impl<'a> answer::Answer<'a> for Answer<'a> {
    const INTERFACE: &'static str = "messages";

    fn reading(&self) -> &Reading<'a> {
        &self.reading
    }

    fn reading_mut(&mut self) -> &mut Reading<'a> {
        &mut self.reading
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let before = events.len();
        let read = match part {
            Part::Whole(json) => self.json(&json, events),
            Part::Event(event) => self.sse_event(&event, events),
        };
        self.reading.note(&events[before..]);
        read
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let reason = match self.stop_reason.take() {
            Some(reason) if self.reading.done => reason,
            None if self.reading.done => return Err(self.cut_off("a stop reason")),
            Some(_) | None => return Err(self.cut_off("message_stop")),
        };
        let end = AnswerEnd {
            class: finish_class(&reason),
            reason,
            usage: self.counts.usage(),
            provider_data: kept::provider_data(
                self.reading.failures.host(),
                self.model,
                self.blocks.kept(),
            ),
            has_calls: !self.blocks.has_no_calls(),
        };
        self.reading.finish(end, events)
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
