//! Decodes a response into engine events. Pure.

use super::NAME;
use super::event::{Call, Event, Function, Message, Piece, decode};
use crate::conversation::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{BodyEnd, Part};
use crate::engine::provider::calls::{AnswerError, CallIds, push_text};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::provider_data::{DATA_BYTES_MAX, encode_value};
use crate::engine::provider::response::{ResponseEnd, ResponseReader, ResponseState};
use crate::engine::provider::think::{self, Split, ThinkTag};
use crate::engine::provider::tool::ID_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::mem::take;

#[cfg(test)]
mod tests;

/// The name of the field that holds reasoning.
const REASONING_FIELD: &str = "thinking";

/// The provider data of an answer. The reasoning belongs to the whole message and has no place in it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thinking {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) thinking: String,
    /// The beginning of the text in which the model wrote its reasoning, with the tag around it: the server does not
    /// know it as reasoning, so the template has no other place for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) think: String,
}

#[derive(Debug)]
pub(in crate::engine) struct OllamaReader<'a> {
    response: ResponseState<'a>,
    thinking: String,
    think: ThinkTag,
    ids: CallIds,
    /// Why the model stopped: known with the last line.
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

impl<'a> OllamaReader<'a> {
    /// A reader of a response in a body that ends with `body_end`.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            response: ResponseState::of_lines(failures, body_end),
            thinking: String::new(),
            think: ThinkTag::default(),
            ids: CallIds::default(),
            stop_reason: None,
            usage: None,
        }
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let line = &self.response.joined(line);
        match decode(line).map_err(|why| self.response.failures.unreadable(&why, line))? {
            Event::Piece(piece) => {
                let before = events.len();
                let read = self.piece(piece, line, events);
                self.response.note(&events[before..]);
                read
            }
            Event::Error(error) => Err(self.response.failures.reported(&error)),
            Event::Unknown => {
                self.response.ignore(line);
                Ok(())
            }
        }
    }

    fn piece(
        &mut self,
        mut piece: Piece,
        line: &[u8],
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        self.response.understand();
        self.response.advance(true);
        let Message { content, thinking, tool_calls } = piece.message();
        if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            push_split(self.think.off(), events);
            self.thinking += &text;
            events.push(EngineEvent::Reasoning { source: REASONING_FIELD, text });
        }
        if self.thinking.len() > DATA_BYTES_MAX {
            let what = format!("more than {DATA_BYTES_MAX} bytes of reasoning");
            return Err(self.response.failures.too_long(what));
        }
        push_split(self.think.push(content.unwrap_or_default()), events);
        let calls = tool_calls.unwrap_or_default();
        if !calls.is_empty() {
            push_split(self.think.release(), events);
        }
        for call in calls {
            let read = self.call(call, events);
            read.map_err(|error| self.response.failure_of(error, line))?;
        }
        if piece.done == Some(true) {
            self.response.done = true;
            self.usage = usage(&piece);
            self.stop_reason = Some(piece.done_reason.unwrap_or_default());
        }
        Ok(())
    }

    fn call(&mut self, call: Call, events: &mut Vec<EngineEvent>) -> Result<(), AnswerError> {
        let Call { id, function: Function { name, arguments } } = call;
        // The words of a call are shown.
        let name = self.response.failures.shown_tool_name(&name);
        let given = self.response.failures.shown(id.as_deref().unwrap_or_default(), ID_BYTES_MAX);
        self.ids.whole(given, name, arguments.as_deref(), events)
    }
}

impl<'a> ResponseReader<'a> for OllamaReader<'a> {
    const INTERFACE: &'static str = "Ollama";

    fn response(&self) -> &ResponseState<'a> {
        &self.response
    }

    fn response_mut(&mut self) -> &mut ResponseState<'a> {
        &mut self.response
    }

    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let line = match part {
            Part::Event(event) => event.data,
            Part::Whole(json) => json,
        };
        match line.as_slice() {
            _ if self.response.done => Ok(()),
            [b'{', ..] => self.line(&line, events),
            [..] => {
                self.response.ignore(&line);
                Ok(())
            }
        }
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let Some(reason) = self.stop_reason.take() else {
            return Err(self.response.at_end(self.response.cut_off("a line with done")));
        };
        let has_calls = self.ids.len() > 0;
        let class = finish_class(&reason, has_calls);
        if class == FinishClass::Completed && !has_calls && !self.response.has_text() {
            let before = events.len();
            push_text(EngineEvent::Text(self.think.take_unclosed()), events);
            self.response.note(&events[before..]);
        }
        let thinking = take(&mut self.thinking);
        let data = Thinking { thinking, think: self.think.take_beginning() };
        let provider_data = (data != Thinking::default())
            .then(|| encode_value(NAME, self.response.failures, &data))
            .flatten();
        let usage = self.take_usage();
        let end = ResponseEnd { reason, class, usage, provider_data, has_calls };
        self.response.finish(end, events)
    }

    fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn flush(&mut self, events: &mut Vec<EngineEvent>) {
        let before = events.len();
        push_split(self.think.release(), events);
        self.response.note(&events[before..]);
    }
}

fn push_split(Split { reasoning, answer }: Split, events: &mut Vec<EngineEvent>) {
    push_text(EngineEvent::Reasoning { source: think::SOURCE, text: reasoning }, events);
    push_text(EngineEvent::Text(answer), events);
}

/// The token counts in the last line. A prompt that was in the server's cache may have none.
fn usage(piece: &Piece) -> Option<Usage> {
    piece.prompt_eval_count.or(piece.eval_count)?;
    Some(Usage {
        input_tokens: piece.prompt_eval_count.unwrap_or_default(),
        output_tokens: piece.eval_count.unwrap_or_default(),
        cached_tokens: piece.prompt_eval_cached_count.unwrap_or_default(),
        ..Usage::default()
    })
}

/// The words of `done_reason`; some servers leave it out.
fn finish_class(reason: &str, has_calls: bool) -> FinishClass {
    match reason {
        "stop" | "" if has_calls => FinishClass::ToolCalls,
        "stop" | "" => FinishClass::Completed,
        "length" => FinishClass::MaxTokens,
        _ => FinishClass::Other,
    }
}
