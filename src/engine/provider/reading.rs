//! An answer as it is read: what the answers of all interfaces have in common. Pure.

use super::body::{Body, BodyEnd, Ignored, Part};
use super::failure::{Failure, Failures};
use super::halves::Halves;
use super::lines::Lines;
use crate::chat::event::{FinishClass, ProviderData, Usage};
use crate::engine::EngineEvent;
use std::borrow::Cow;
use std::mem::take;

/// Bytes of a stop reason that are shown. The longest known word has twenty-nine.
const STOP_REASON_BYTES_MAX: usize = 200;

/// One answer as it is read.
#[derive(Debug)]
pub(in crate::engine) struct Reading<'a> {
    pub(in crate::engine) failures: &'a Failures,
    /// Nothing that matters can follow.
    pub(in crate::engine) done: bool,
    body: Body,
    body_end: BodyEnd,
    /// Some part of it could be read.
    understood: bool,
    has_reasoning: bool,
    has_text: bool,
    /// There is more in the text than white space.
    has_words: bool,
    ignored: Ignored,
    halves: Halves,
    /// Rises with all that brings the answer further.
    progress: u64,
}

/// The end of an answer that the provider has ended.
#[derive(Debug)]
pub(in crate::engine) struct AnswerEnd {
    /// Why the model stopped, in the provider's words.
    pub(in crate::engine) reason: String,
    /// The class of the reason.
    pub(in crate::engine) class: FinishClass,
    /// Token counts, if the provider reported them.
    pub(in crate::engine) usage: Option<Usage>,
    /// What has to be sent back with the answer.
    pub(in crate::engine) provider_data: Option<ProviderData>,
    /// The model has called tools.
    pub(in crate::engine) has_calls: bool,
}

impl<'a> Reading<'a> {
    /// An answer of which nothing has come, in a body that ends so.
    pub(in crate::engine) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            failures,
            done: false,
            body: Body::default(),
            body_end,
            understood: false,
            has_reasoning: false,
            has_text: false,
            has_words: false,
            ignored: Ignored::default(),
            halves: Halves::default(),
            progress: 0,
        }
    }

    /// The same, in a body of JSON objects, one on each line.
    pub(in crate::engine) fn of_lines(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self { body: Body::Lines(Lines::default()), ..Self::new(failures, body_end) }
    }

    /// Takes the next bytes. Gives the parts that they complete, and the failure that follows
    /// after these.
    pub(in crate::engine) fn push(&mut self, bytes: &[u8]) -> (Vec<Part>, Result<(), Failure>) {
        let mut parts = Vec::new();
        let pushed = self.body.push(bytes, &mut parts);
        self.progress += u64::from(self.body.is_filling());
        (parts, pushed.map_err(|part| self.failures.too_long_part(part)))
    }

    /// The body has ended: gives the part that it ended in.
    ///
    /// # Errors
    /// If there was nothing in it.
    pub(in crate::engine) fn end_body(&mut self) -> Result<Option<Part>, Failure> {
        match self.body.is_empty() {
            true => Err(self.failures.empty()),
            false => Ok(take(&mut self.body).end()),
        }
    }

    /// The JSON of the next event, with each character whole that the server cut between two events.
    pub(in crate::engine) fn joined<'j>(&mut self, json: &'j [u8]) -> Cow<'j, [u8]> {
        self.halves.join(json)
    }

    /// Records that a part of the answer was understood; true if it was the first.
    pub(in crate::engine) fn understand(&mut self) -> bool {
        !std::mem::replace(&mut self.understood, true)
    }

    /// The answer has got further, if `is_further`.
    pub(in crate::engine) fn advance(&mut self, is_further: bool) {
        self.progress += u64::from(is_further);
    }

    /// Records what the new `events` hold.
    pub(in crate::engine) fn note(&mut self, events: &[EngineEvent]) {
        for event in events {
            match event {
                EngineEvent::Reasoning { .. } => self.has_reasoning = true,
                EngineEvent::Text(text) => {
                    self.has_text = true;
                    self.has_words |= !text.trim().is_empty();
                }
                EngineEvent::CallStarted
                | EngineEvent::ToolCallStarted(_)
                | EngineEvent::ToolArguments { .. }
                | EngineEvent::ToolCallRequested { .. }
                | EngineEvent::Usage(_)
                | EngineEvent::RetryScheduled(_)
                | EngineEvent::ResponseStarted
                | EngineEvent::RetryStarted(_)
                | EngineEvent::CallFinished { .. } => {}
            }
        }
    }

    /// Counts data that is no part of an answer.
    pub(in crate::engine) fn ignore(&mut self, data: &[u8]) {
        self.failures.ignore(data, &mut self.ignored);
    }

    /// How many data were no part of an answer.
    pub(in crate::engine) fn ignored(&self) -> u64 {
        self.ignored.count
    }

    pub(in crate::engine) fn progress(&self) -> u64 {
        self.progress
    }

    pub(in crate::engine) fn has_text(&self) -> bool {
        self.has_text
    }

    pub(in crate::engine) fn has_reasoning(&self) -> bool {
        self.has_reasoning
    }

    /// The answer is nothing but white space.
    pub(in crate::engine) fn is_blank(&self) -> bool {
        self.has_text && !self.has_words
    }

    /// Checks that something was understood of the answer of a server with `interface`.
    ///
    /// # Errors
    /// If nothing was.
    pub(in crate::engine) fn check_understood(
        &self,
        interface: &str,
        content_type: &str,
    ) -> Result<(), Failure> {
        match self.understood {
            true => Ok(()),
            false => Err(self.failures.not_an_answer(interface, content_type, &self.ignored)),
        }
    }

    /// The failure of an answer that ended although `missing` had not come.
    pub(in crate::engine) fn cut_off(&self, missing: &str) -> Failure {
        self.failures.cut_off(missing, &self.ignored)
    }

    /// `failure`, which the end of the body has caused.
    pub(in crate::engine) fn at_end(&self, failure: Failure) -> Failure {
        self.failures.at_end(failure, self.body_end, &self.ignored)
    }

    /// Adds the last events to `events`.
    ///
    /// # Errors
    /// If the answer is complete and says nothing. That it was cut off is reported with its class.
    pub(in crate::engine) fn finish(
        &self,
        end: AnswerEnd,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let AnswerEnd { reason, class, usage, provider_data, has_calls } = end;
        events.extend(usage.map(EngineEvent::Usage));
        let stop_reason = match class == FinishClass::Other {
            true => self.failures.shown(&reason, STOP_REASON_BYTES_MAX),
            // A known word, even if it is the key.
            false => reason,
        };
        let finished =
            EngineEvent::CallFinished { stop_reason: stop_reason.clone(), class, provider_data };
        events.push(finished);
        match self.has_text || class.cuts_off() || has_calls {
            true => Ok(()),
            false => Err(self.failures.no_answer(&stop_reason, self.has_reasoning)),
        }
    }
}
