//! From the bytes of an answer to what happened. Pure.

use super::event::{Call, Event, Message, Piece, decode};
use super::kept;
use crate::chat::event::{FinishClass, ToolCall, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{self, BodyEnd, Ignored};
use crate::engine::provider::call::{self, Completeness};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::lines::{Lines, TooLong};
use crate::engine::provider::output::{Ending, Output};
use crate::engine::provider::tool::{
    CALLS_MAX, CallIds, ID_BYTES_MAX, NAME_BYTES_MAX, TooManyCalls,
};

#[cfg(test)]
mod tests;

/// What servers of this kind answer, as errors name it.
const INTERFACE: &str = "Ollama";

/// The name of the field that holds reasoning.
const REASONING_FIELD: &str = "thinking";

/// Bytes of one answer that are kept only to be sent back.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One answer as it arrives.
#[derive(Debug)]
pub(in crate::engine) struct Answer<'a> {
    failures: &'a Failures,
    model: &'a str,
    lines: Lines,
    body_end: BodyEnd,
    /// Something but white space has come.
    has_bytes: bool,
    thinking: String,
    ids: CallIds,
    /// The last line.
    end: Option<End>,
    output: Output,
    /// Some part of it could be read.
    understood: bool,
    ignored: Ignored,
    progress: u64,
}

/// What the last line of an answer says.
#[derive(Clone, Debug)]
struct End {
    reason: String,
    usage: Option<Usage>,
}

impl<'a> Answer<'a> {
    /// An answer of `model` of which nothing has come, in a body that ends so.
    pub(super) fn new(failures: &'a Failures, model: &'a str, body_end: BodyEnd) -> Self {
        Self {
            failures,
            model,
            lines: Lines::default(),
            body_end,
            has_bytes: false,
            thinking: String::new(),
            ids: CallIds::default(),
            end: None,
            output: Output::default(),
            understood: false,
            ignored: Ignored::default(),
            progress: 0,
        }
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        if self.end.is_some() {
            return Ok(());
        }
        self.has_bytes = true;
        if !line.starts_with(b"{") {
            self.failures.ignore(line, &mut self.ignored);
            return Ok(());
        }
        match decode(line).map_err(|why| self.failures.unreadable(&why, line))? {
            Event::Piece(piece) => self.piece(piece, events),
            Event::Error(error) => Err(self.failures.reported(&error)),
            Event::Unknown => {
                self.failures.ignore(line, &mut self.ignored);
                Ok(())
            }
        }
    }

    fn piece(&mut self, mut piece: Piece, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        self.understood = true;
        self.progress += 1;
        let before = events.len();
        let Message { content, thinking, tool_calls } = piece.message();
        if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            self.thinking += &text;
            events.push(EngineEvent::Reasoning { source: REASONING_FIELD, text });
        }
        if self.thinking.len() > KEPT_BYTES_MAX {
            let what = format!("more than {KEPT_BYTES_MAX} bytes of reasoning");
            return Err(self.failures.too_long(what));
        }
        events.extend(content.filter(|text| !text.is_empty()).map(EngineEvent::Text));
        for call in tool_calls.unwrap_or_default() {
            self.call(call, events)?;
        }
        self.output.note(&events[before..]);
        if piece.done == Some(true) {
            let usage = usage(&piece);
            self.end = Some(End { reason: piece.done_reason.unwrap_or_default(), usage });
        }
        Ok(())
    }

    fn call(&mut self, call: Call, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let name = self.failures.shown(&call.function.name, NAME_BYTES_MAX);
        if name.is_empty() {
            return Err(self.failures.nameless_tool());
        }
        // The words of a call are shown.
        let given = self.failures.shown(call.id.as_deref().unwrap_or_default(), ID_BYTES_MAX);
        let id = self.ids.next(&given).map_err(|TooManyCalls| {
            self.failures.too_long(format!("more than {CALLS_MAX} tool calls"))
        })?;
        let arguments = call.function.arguments.as_ref().map_or("{}", |arguments| arguments.get());
        let text = if arguments == "null" { "{}" } else { arguments }.to_owned();
        events.push(EngineEvent::ToolCallStarted(ToolCall { id: id.clone(), name }));
        events.push(EngineEvent::ToolArguments { id: id.clone(), text });
        events.push(EngineEvent::ToolCallRequested { id });
        Ok(())
    }

    fn at_end(&self, failure: Failure) -> Failure {
        self.failures.at_end(failure, self.body_end, &self.ignored)
    }
}

impl call::Answer for Answer<'_> {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let mut lines = Vec::new();
        let pushed = self.lines.push(bytes, &mut lines);
        for line in lines {
            self.line(&line, events)?;
        }
        self.progress += u64::from(self.lines.is_in_json());
        pushed.map_err(|TooLong| self.failures.too_long_part(body::TooLong::Event))
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    /// Only the last line ends an answer.
    fn completeness(&self) -> Completeness {
        Completeness::Open
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn ignored(&self) -> u64 {
        self.ignored.count
    }

    fn is_blank(&self) -> bool {
        self.output.is_blank()
    }

    /// Nothing is held back: a text is never cut inside a character.
    fn flush(&mut self, _events: &mut Vec<EngineEvent>) {}

    fn end(&mut self, content_type: &str, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        if self.end.is_none() {
            let last = self.lines.end().map_or(Ok(()), |line| self.line(&line, events));
            last.map_err(|failure| self.at_end(failure))?;
        }
        if !self.has_bytes {
            return Err(self.failures.empty());
        }
        if !self.understood {
            return Err(self.failures.not_an_answer(INTERFACE, content_type, &self.ignored));
        }
        let Some(End { reason, usage }) = self.end.take() else {
            return Err(self.at_end(self.failures.cut_off("a line with done", &self.ignored)));
        };
        let class = finish_class(&reason, self.output.has_calls());
        let provider_data = kept::provider_data(self.model, &self.thinking);
        let ending = Ending { stop_reason: reason, class, usage, provider_data };
        self.output.end(self.failures, ending, events)
    }
}

/// The token counts in the last line. A prompt that was in the server's cache may have none.
fn usage(piece: &Piece) -> Option<Usage> {
    let count = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
    piece.prompt_eval_count.or(piece.eval_count)?;
    Some(Usage {
        input_tokens: count(piece.prompt_eval_count.unwrap_or_default()),
        output_tokens: count(piece.eval_count.unwrap_or_default()),
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
