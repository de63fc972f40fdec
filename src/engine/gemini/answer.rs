//! From the bytes of an answer to what happened. Pure.

use super::event::{Chunk, Event, Part, decode, decode_list};
use super::parts::{Bad, Parts};
use super::{kept, report, usage};
use crate::chat::event::{FinishClass, Usage};
use crate::engine::EngineEvent;
use crate::engine::provider::body::{self, Body, BodyEnd, Ignored};
use crate::engine::provider::call::{self, Completeness};
use crate::engine::provider::failure::{Failure, Failures};
use crate::engine::provider::output::{Ending, Output};
use crate::engine::provider::sse::SseEvent;
use crate::engine::provider::tool::{ID_BYTES_MAX, NAME_BYTES_MAX};
use serde_json::Value;
use std::mem::take;

#[cfg(test)]
mod tests;

/// What servers of this kind answer, as errors name it.
const INTERFACE: &str = "generateContent";

/// The end mark of other interfaces, which servers in between send here too.
const DONE: &[u8] = b"[DONE]";

/// One answer as it arrives. Nothing marks its end but a finish reason and the end of the body.
#[derive(Debug)]
pub(in crate::engine) struct Answer<'a> {
    failures: &'a Failures,
    model: &'a str,
    body: Body,
    body_end: BodyEnd,
    parts: Parts,
    usage: Option<Usage>,
    finish: Finish,
    done: bool,
    /// Some part of it could be read.
    understood: bool,
    output: Output,
    ignored: Ignored,
    progress: u64,
}

/// Whether and why the model stopped.
#[derive(Clone, Debug, Default)]
enum Finish {
    /// It has not.
    #[default]
    Open,
    /// It gave this reason, after which only token counts should follow.
    Stopped(String),
    /// It gave this reason before any text, or more of the answer followed: more may follow.
    StoppedEarly(String),
    /// The provider does not answer this prompt, for this reason.
    Blocked(String),
}

impl<'a> Answer<'a> {
    /// An answer of `model` of which nothing has come, in a body that ends so.
    pub(super) fn new(failures: &'a Failures, model: &'a str, body_end: BodyEnd) -> Self {
        Self {
            failures,
            model,
            body: Body::default(),
            body_end,
            parts: Parts::default(),
            usage: None,
            finish: Finish::default(),
            done: false,
            understood: false,
            output: Output::default(),
            ignored: Ignored::default(),
            progress: 0,
        }
    }

    fn part(&mut self, part: body::Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        match part {
            body::Part::Whole(json) => self.object(&json, events),
            body::Part::Event(event) => self.sse_event(&event, events),
        }
    }

    fn sse_event(
        &mut self,
        event: &SseEvent,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        match event.data.trim_ascii() {
            _ if self.done => Ok(()),
            [] => Ok(()),
            DONE if self.finish.reason().is_some() => {
                self.done = true;
                Ok(())
            }
            data @ [b'{', ..] => self.object(data, events),
            data @ [b'[', rest @ ..] if rest.trim_ascii_start().starts_with(b"{") => {
                self.list(data, events)
            }
            data if event.kind == b"error" => Err(self.failures.reported_text(data)),
            data => {
                self.failures.ignore(data, &mut self.ignored);
                Ok(())
            }
        }
    }

    fn object(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let event = decode(json).map_err(|why| self.failures.unreadable(&why, json))?;
        self.event(event, json, events)
    }

    fn list(&mut self, json: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let list = decode_list(json).map_err(|why| self.failures.unreadable(&why, json))?;
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
                self.understood = true;
                self.chunk(chunk, events).map_err(|bad| self.bad(bad))
            }
            Event::Error(error) => Err(self.reported(&error)),
            Event::Unknown => {
                self.failures.ignore(json, &mut self.ignored);
                Ok(())
            }
        }
    }

    fn chunk(&mut self, chunk: Chunk, events: &mut Vec<EngineEvent>) -> Result<(), Bad> {
        self.usage = usage::usage(&chunk.usage_metadata).or(self.usage);
        if let Some(reason) = chunk.block_reason() {
            self.finish = Finish::Blocked(reason.to_owned());
        }
        let mut candidate = chunk.into_candidate();
        let before = events.len();
        for part in candidate.parts() {
            let part = self.shown(part);
            self.parts.push(part, events)?;
        }
        let new = &events[before..];
        self.output.note(new);
        self.stop(candidate.reason().map(str::to_owned), !new.is_empty());
        Ok(())
    }

    /// Takes the reason for the end in a chunk, if there is one; the chunk held parts if `has_output`.
    fn stop(&mut self, reason: Option<String>, has_output: bool) {
        self.progress += u64::from(has_output || reason.is_some());
        let has_answer = self.output.has_answer();
        self.finish = match (take(&mut self.finish), reason) {
            (Finish::Blocked(reason), _) => Finish::Blocked(reason),
            (Finish::Open, None) => Finish::Open,
            (Finish::Open, Some(reason)) if has_answer => Finish::Stopped(reason),
            (Finish::Open, Some(reason)) => Finish::StoppedEarly(reason),
            (Finish::Stopped(before), reason) if !has_output => {
                Finish::Stopped(reason.unwrap_or(before))
            }
            (Finish::Stopped(before) | Finish::StoppedEarly(before), reason) => {
                Finish::StoppedEarly(reason.unwrap_or(before))
            }
        };
    }

    /// The same part without the key in its words, which are shown.
    fn shown(&self, part: Part) -> Part {
        let Some(mut call) = part.function_call else { return part };
        call.id = call.id.map(|id| self.failures.shown(&id, ID_BYTES_MAX));
        call.name = self.failures.shown(&call.name, NAME_BYTES_MAX);
        Part { function_call: Some(call), ..part }
    }

    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let (reason, class) = match take(&mut self.finish) {
            Finish::Open => {
                return Err(self.at_end(self.failures.cut_off("a finish reason", &self.ignored)));
            }
            Finish::Blocked(reason) => (reason, FinishClass::ContentFilter),
            Finish::Stopped(reason) | Finish::StoppedEarly(reason) => {
                let class = finish_class(&reason, self.output.has_calls());
                (reason, class)
            }
        };
        let ending = Ending {
            stop_reason: reason,
            class,
            usage: self.usage,
            provider_data: kept::provider_data(self.model, self.parts.kept()),
        };
        self.output.end(self.failures, ending, events)
    }

    fn at_end(&self, failure: Failure) -> Failure {
        self.failures.at_end(failure, self.body_end, &self.ignored)
    }

    fn reported(&self, error: &Value) -> Failure {
        self.failures.reported_as(error, report::status(error))
    }

    fn bad(&self, bad: Bad) -> Failure {
        match bad {
            Bad::Calls | Bad::Kept => self.failures.too_long(bad.words()),
            Bad::Nameless => self.failures.nameless_tool(),
        }
    }
}

impl Finish {
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::Stopped(reason) | Self::StoppedEarly(reason) | Self::Blocked(reason) => {
                Some(reason)
            }
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
            Finish::Open => Completeness::Open,
            Finish::StoppedEarly(_) => Completeness::Likely,
            Finish::Stopped(_) | Finish::Blocked(_) => Completeness::Settled,
        }
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
        if !self.done {
            if matches!(self.body, Body::Blank) {
                return Err(self.failures.empty());
            }
            let last = take(&mut self.body).end().map_or(Ok(()), |part| self.part(part, events));
            // An answer is not undone by half an event after its end.
            if self.finish.reason().is_none() {
                last.map_err(|failure| self.at_end(failure))?;
            }
        }
        if !self.understood {
            return Err(self.failures.not_an_answer(INTERFACE, content_type, &self.ignored));
        }
        self.conclude(events)
    }
}

/// The words of `Candidate.FinishReason` (<https://ai.google.dev/api/generate-content>). Tool calls end
/// an answer like any other.
fn finish_class(reason: &str, has_calls: bool) -> FinishClass {
    match reason {
        "STOP" if has_calls => FinishClass::ToolCalls,
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
