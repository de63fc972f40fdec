//! Decodes a response into engine events. Pure.

use super::event::{Event, Item, Response, decode, decode_whole};
use super::items::Items;
use super::reasoning::ReasoningField;
use super::report;
use crate::conversation::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{BodyEnd, Part};
use crate::engine::provider::calls::AnswerError;
use crate::engine::provider::error_words;
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::provider_data;
use crate::engine::provider::response::{ResponseEnd, ResponseReader, ResponseState};
use crate::engine::provider::sse::SseEvent;
use crate::engine::provider::tool::ID_BYTES_MAX;
use serde_json::Value;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(in crate::engine) struct ResponsesReader<'a> {
    response: ResponseState<'a>,
    items: Items,
    usage: Option<Usage>,
    /// The provider's word for the end of the answer.
    reason: Option<String>,
}

impl<'a> ResponsesReader<'a> {
    /// A reader of a response in a body that ends with `body_end`.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        let response = ResponseState::new(failures, body_end);
        Self { response, items: Items::default(), usage: None, reason: None }
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
            [b'{', ..] => {
                let data = &self.response.joined(data);
                self.event(decode(data), data, events)
            }
            [..] if event.kind == b"error" => Err(self.response.failures.reported_text(data)),
            // An end mark of another interface, or a keep-alive message.
            [..] => {
                self.response.ignore(data);
                Ok(())
            }
        }
    }

    fn event(
        &mut self,
        event: Result<Event, serde_json::Error>,
        json: &[u8],
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let event = event.map_err(|why| self.response.failures.unreadable(&why, json))?;
        match event {
            Event::Ping => Ok(()),
            Event::Unknown => {
                self.response.ignore(json);
                Ok(())
            }
            Event::Error(event) => Err(self.reported(report::error(&event))),
            Event::Begun => {
                // Some servers repeat it to keep the connection alive.
                let is_first = self.response.understand();
                self.response.advance(is_first);
                Ok(())
            }
            Event::Completed { response } => {
                // Some servers end every answer with this event, also one that was cut off.
                let is_whole = response.status.as_deref() != Some("incomplete");
                let status = if is_whole { "completed" } else { "incomplete" };
                self.ended(status, response, json, events)
            }
            Event::Incomplete { response } => self.ended("incomplete", response, json, events),
            Event::Failed { response } => self.ended("failed", response, json, events),
            Event::Done { mut response } => {
                let status = response.status.take();
                let status = status.as_deref().unwrap_or("completed");
                self.ended(status, response, json, events)
            }
            event @ (Event::ItemAdded { .. }
            | Event::ItemDone { .. }
            | Event::TextDelta { .. }
            | Event::SummaryDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::ArgumentsDelta { .. }
            | Event::TextDone { .. }
            | Event::ArgumentsDone { .. }
            | Event::Repeated) => {
                self.response.understand();
                self.response.advance(true);
                let read = self.item_event(event, events);
                read.map_err(|error| self.response.failure_of(error, json))
            }
        }
    }

    fn item_event(
        &mut self,
        event: Event,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        match event {
            Event::ItemAdded { output_index, item } => {
                let item = self.shown(item);
                self.items.begin(output_index, item, events)
            }
            Event::ItemDone { output_index, item } => {
                let item = self.shown(item);
                self.items.finish(output_index, item, events)
            }
            Event::TextDelta { output_index, content_index, delta } => {
                self.items.push_text(output_index, content_index.as_u64(), delta, events)
            }
            Event::SummaryDelta { output_index, summary_index, delta } => {
                let field = ReasoningField::Summary;
                self.items.push_reasoning(output_index, field, summary_index, &delta, events)
            }
            Event::ReasoningDelta { output_index, content_index, delta } => {
                let field = ReasoningField::Text;
                self.items.push_reasoning(output_index, field, content_index, &delta, events)
            }
            Event::ArgumentsDelta { output_index, delta } => {
                self.items.push_arguments(output_index, delta, events)
            }
            Event::TextDone { output_index, content_index, text, refusal } => {
                let text = text.as_str().or(refusal.as_str()).unwrap_or_default();
                self.items.finish_text(output_index, content_index.as_u64(), text, events)
            }
            Event::ArgumentsDone { output_index, arguments } => {
                self.items.finish_arguments(output_index, arguments);
                Ok(())
            }
            Event::Begun
            | Event::Ping
            | Event::Repeated
            | Event::Completed { .. }
            | Event::Incomplete { .. }
            | Event::Failed { .. }
            | Event::Done { .. }
            | Event::Error(_)
            | Event::Unknown => Ok(()),
        }
    }

    /// The answer has ended, with this status of the provider's.
    fn ended(
        &mut self,
        status: &str,
        response: Response,
        json: &[u8],
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let Response { error, incomplete_details, output, usage, .. } = response;
        self.response.understand();
        self.response.advance(true);
        // Also those of an answer that failed.
        self.usage = super::usage::usage(&usage);
        match status {
            "failed" if !error.is_null() => return Err(self.reported(&error)),
            "failed" | "cancelled" => {
                return Err(self.response.failures.gave_up(&format!("status {status:?}")));
            }
            // Not an end: a server that does not stream answers before it has an answer.
            "queued" | "in_progress" => return Ok(()),
            _ => {}
        }
        let detail = incomplete_details["reason"].as_str().filter(|_| status == "incomplete");
        self.reason = Some(detail.unwrap_or(status).to_owned());
        let output = output.into_iter().map(|item| self.shown(item)).collect();
        let read = self.items.finish_all(output, events);
        read.map_err(|error| self.response.failure_of(error, json))?;
        self.response.done = true;
        Ok(())
    }

    /// Removes the key from the names and ids of the item, which frames show.
    fn shown(&self, item: Item) -> Item {
        let failures = self.response.failures;
        match item {
            Item::FunctionCall { call_id, name, arguments } => Item::FunctionCall {
                call_id: call_id.map(|id| failures.shown(&id, ID_BYTES_MAX)),
                name: name.map(|name| failures.shown_tool_name(&name)),
                arguments,
            },
            item @ (Item::Message { .. } | Item::Reasoning { .. } | Item::Unknown) => item,
        }
    }

    fn reported(&self, error: &Value) -> Failure {
        self.response.failures.reported_as(error, error_words::status(error))
    }
}

impl<'a> ResponseReader<'a> for ResponsesReader<'a> {
    const INTERFACE: &'static str = "responses";

    fn response(&self) -> &ResponseState<'a> {
        &self.response
    }

    fn response_mut(&mut self) -> &mut ResponseState<'a> {
        &mut self.response
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let before = events.len();
        let read = match part {
            Part::Whole(json) => self.event(decode_whole(&json), &json, events),
            Part::Event(event) => self.sse_event(&event, events),
        };
        self.response.note(&events[before..]);
        read
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let Some(reason) = self.reason.take() else {
            let failure = self.response.cut_off("response.completed");
            return Err(self.response.at_end(failure));
        };
        let has_calls = self.items.has_calls();
        let end = ResponseEnd {
            class: finish_class(&reason, has_calls),
            reason,
            usage: self.take_usage(),
            provider_data: provider_data::encode(self.response.failures, self.items.data()),
            has_calls,
        };
        self.response.finish(end, events)
    }

    fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }
}

/// The statuses of an answer, and the reasons for which one is incomplete.
fn finish_class(reason: &str, has_calls: bool) -> FinishClass {
    match reason {
        "completed" if has_calls => FinishClass::ToolCalls,
        "completed" => FinishClass::Completed,
        // The second is the status without a reason: a limit is what mostly ends an answer so.
        "max_output_tokens" | "incomplete" => FinishClass::MaxTokens,
        "content_filter" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}
