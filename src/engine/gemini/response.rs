//! Decodes a response into engine events. Pure.

use super::event::{Chunk, Event, Part, decode, decode_list};
use super::names::Names;
use super::parts::Parts;
use super::usage;
use crate::conversation::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{self, BodyEnd};
use crate::engine::provider::calls::AnswerError;
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::provider_data;
use crate::engine::provider::response::{Completeness, ResponseEnd, ResponseReader, ResponseState};
use crate::engine::provider::sse::SseEvent;
use crate::engine::provider::tool::ID_BYTES_MAX;
use serde_json::Value;
use std::mem::take;

#[cfg(test)]
mod tests;

/// The end mark of other interfaces, which servers in between send here too.
const DONE: &[u8] = b"[DONE]";

/// One answer as it arrives. Nothing marks its end but a finish reason and the end of the body.
#[derive(Debug)]
pub(in crate::engine) struct GeminiReader<'a> {
    response: ResponseState<'a>,
    parts: Parts,
    names: Names,
    usage: Option<Usage>,
    finish: Finish,
    /// What the provider says about the finish reason.
    finish_message: String,
    /// A part can't be shown, as a picture.
    has_unshown: bool,
}

/// Whether and why the model stopped.
#[derive(Clone, Debug, Default)]
enum Finish {
    /// There is no finish reason yet.
    #[default]
    Open,
    /// This finish reason came; only token counts should follow.
    Stopped(String),
    /// This finish reason came before any text, or more of the answer followed: more may follow.
    StoppedEarly {
        reason: String,
        /// More has followed, without a reason of its own.
        has_more: bool,
    },
    /// The provider does not answer this prompt, for this reason.
    Blocked(String),
}

impl<'a> GeminiReader<'a> {
    /// A reader of a response in a body that ends with `body_end`.
    pub(super) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            response: ResponseState::new(failures, body_end),
            parts: Parts::default(),
            names: Names::default(),
            usage: None,
            finish: Finish::default(),
            finish_message: String::new(),
            has_unshown: false,
        }
    }

    /// Sets the names that the tools had in the request.
    pub(super) fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    fn sse_event(
        &mut self,
        event: &SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        match event.data.trim_ascii() {
            _ if self.response.done => Ok(()),
            [] => Ok(()),
            DONE if self.finish.reason().is_some() => {
                self.response.done = true;
                Ok(())
            }
            data @ [b'{', ..] => self.object(data, events),
            data @ [b'[', rest @ ..] if rest.trim_ascii_start().starts_with(b"{") => {
                self.list(data, events)
            }
            data if event.kind == b"error" => Err(self.response.failures.reported_text(data)),
            data => {
                self.response.ignore(data);
                Ok(())
            }
        }
    }

    fn object(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let json = &self.response.joined(json);
        let event = decode(json).map_err(|why| self.response.failures.unreadable(&why, json))?;
        self.event(event, json, events)
    }

    fn list(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let json = &self.response.joined(json);
        let list =
            decode_list(json).map_err(|why| self.response.failures.unreadable(&why, json))?;
        list.into_iter().try_for_each(|event| self.event(event, json, events))
    }

    fn event(
        &mut self,
        event: Event,
        json: &[u8],
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        match event {
            Event::Chunk(chunk) => {
                self.response.understand();
                let read = self.chunk(chunk, events);
                read.map_err(|error| self.response.failure_of(error, json))
            }
            Event::Error(error) => {
                Err(self.response.failures.reported_as(&error, error_status(&error)))
            }
            Event::Unknown => {
                self.response.ignore(json);
                Ok(())
            }
        }
    }

    fn chunk(&mut self, chunk: Chunk, events: &mut Vec<EngineEvent>) -> Result<(), AnswerError> {
        self.usage = usage::usage(&chunk.usage_metadata).or(self.usage);
        if let Some(reason) = chunk.block_reason() {
            self.finish = Finish::Blocked(reason.to_owned());
            self.response.explain(chunk.block_reason_message().unwrap_or_default());
        }
        let mut candidate = chunk.into_candidate();
        if let Some(message) = candidate.finish_message() {
            message.clone_into(&mut self.finish_message);
        }
        let before = events.len();
        for part in candidate.parts() {
            self.has_unshown |= part.is_unshown();
            let part = self.shown(part);
            self.parts.push(part, events)?;
        }
        let new = &events[before..];
        self.response.note(new);
        self.stop(candidate.reason().map(str::to_owned), !new.is_empty());
        Ok(())
    }

    /// Records the finish reason of a chunk, if it has one; the chunk held parts if `has_output`.
    fn stop(&mut self, reason: Option<String>, has_output: bool) {
        self.response.advance(has_output || reason.is_some());
        let has_answer = self.response.has_text() || self.parts.has_calls();
        self.finish = match (take(&mut self.finish), reason) {
            (Finish::Blocked(reason), _) => Finish::Blocked(reason),
            (Finish::Open, None) => Finish::Open,
            (Finish::Open, Some(reason)) if has_answer => Finish::Stopped(reason),
            (Finish::Open, Some(reason)) => Finish::StoppedEarly { reason, has_more: false },
            (Finish::Stopped(before), reason) if !has_output => {
                Finish::Stopped(reason.unwrap_or(before))
            }
            (Finish::Stopped(before), reason) => {
                let has_more = reason.is_none();
                Finish::StoppedEarly { reason: reason.unwrap_or(before), has_more }
            }
            (Finish::StoppedEarly { reason: before, has_more }, reason) => {
                let has_more = reason.is_none() && (has_more || has_output);
                Finish::StoppedEarly { reason: reason.unwrap_or(before), has_more }
            }
        };
    }

    /// The failure of an answer without text and calls. It may be empty by chance: the model wrote a call that could
    /// not be read, or nothing. After the results of tools nothing may be its answer, which is believed at the last
    /// attempt: one before it costs no effect of a tool. An answer that can't be shown is not asked for again: the next
    /// would be alike, and cost as much.
    fn nothing_to_show(&self, reason: &str, class: FinishClass) -> Option<Failure> {
        let has_answer = self.response.has_text() || self.parts.has_calls();
        let is_believed = self.response.is_last_attempt() || self.has_unshown;
        if has_answer || (self.response.may_be_silent(class) && is_believed) {
            return None;
        }
        let failures = self.response.failures;
        match reason {
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                Some(failures.gave_up_because(reason, &self.finish_message))
            }
            "STOP" if self.has_unshown => Some(failures.answer_unshown(reason)),
            // What was shown of its reasoning would be shown again.
            "STOP" if !self.response.has_reasoning() => Some(failures.no_answer_by_chance(reason)),
            _ => None,
        }
    }

    /// Removes the key from the names and ids of the part, which frames show.
    fn shown(&self, mut part: Part) -> Part {
        if let Some(call) = &mut part.function_call {
            call.id = call.id.take().map(|id| self.response.failures.shown(&id, ID_BYTES_MAX));
            let name = self.names.own(take(&mut call.name));
            call.name = self.response.failures.shown_tool_name(&name);
        }
        part
    }
}

impl Finish {
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::Stopped(reason) | Self::StoppedEarly { reason, .. } | Self::Blocked(reason) => {
                Some(reason)
            }
        }
    }
}

impl<'a> ResponseReader<'a> for GeminiReader<'a> {
    const INTERFACE: &'static str = "generateContent";

    fn response(&self) -> &ResponseState<'a> {
        &self.response
    }

    fn response_mut(&mut self) -> &mut ResponseState<'a> {
        &mut self.response
    }

    fn part(&mut self, part: body::Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        match part {
            body::Part::Whole(json) => self.object(&json, events),
            body::Part::Event(event) => self.sse_event(&event, events),
        }
    }

    fn last_part(
        &mut self,
        part: body::Part,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let completeness = self.completeness();
        let read = self.part(part, events);
        match completeness {
            // An answer is not undone by half an event after its end.
            Completeness::Settled => Ok(()),
            Completeness::Open | Completeness::Likely => {
                read.map_err(|failure| self.response.at_end(failure))
            }
        }
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let has_calls = self.parts.has_calls();
        let (reason, class) = match take(&mut self.finish) {
            Finish::Open => {
                return Err(self.response.at_end(self.response.cut_off("a finish reason")));
            }
            Finish::StoppedEarly { has_more: true, .. } if self.response.may_be_broken_off() => {
                let missing = "a finish reason after its last text";
                return Err(self.response.at_end(self.response.cut_off(missing)));
            }
            Finish::Blocked(reason) => (reason, FinishClass::ContentFilter),
            Finish::Stopped(reason) | Finish::StoppedEarly { reason, .. } => {
                let class = finish_class(&reason, has_calls);
                if let Some(failure) = self.nothing_to_show(&reason, class) {
                    return Err(failure);
                }
                if class == FinishClass::ContentFilter {
                    self.response.explain(&self.finish_message);
                }
                (reason, class)
            }
        };
        let provider_data = provider_data::encode(self.response.failures, self.parts.data());
        let usage = self.take_usage();
        let end = ResponseEnd { reason, class, usage, provider_data, has_calls };
        self.response.finish(end, events)
    }

    fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn completeness(&self) -> Completeness {
        match self.finish {
            Finish::Open => Completeness::Open,
            Finish::StoppedEarly { .. } => Completeness::Likely,
            Finish::Stopped(_) | Finish::Blocked(_) => Completeness::Settled,
        }
    }
}

/// The words of `Candidate.FinishReason` (<https://ai.google.dev/api/generate-content>). Tool calls end
/// an answer like any other.
fn finish_class(reason: &str, has_calls: bool) -> FinishClass {
    match reason {
        // Not in the list; some servers that imitate the interface send it.
        "STOP" | "FUNCTION_CALL" if has_calls => FinishClass::ToolCalls,
        "STOP" => FinishClass::Completed,
        "MAX_TOKENS" => FinishClass::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishClass::ContentFilter,
        _ => FinishClass::Other,
    }
}

/// The HTTP status of an error in a stream without a `code`: some servers leave it out and have only the word
/// (<https://google.aip.dev/193>).
fn error_status(error: &Value) -> Option<u16> {
    match error["status"].as_str()? {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => Some(400),
        "UNAUTHENTICATED" => Some(401),
        "PERMISSION_DENIED" => Some(403),
        "NOT_FOUND" => Some(404),
        "ABORTED" | "ALREADY_EXISTS" => Some(409),
        "RESOURCE_EXHAUSTED" => Some(429),
        "CANCELLED" => Some(499),
        "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => Some(500),
        "UNIMPLEMENTED" => Some(501),
        "UNAVAILABLE" => Some(503),
        "DEADLINE_EXCEEDED" => Some(504),
        _ => None,
    }
}
