//! A response as it is read: the decoder that each interface implements, and the state that all share.
//! Pure.

use super::body::{Body, BodyEnd, Ignored, Part};
use super::calls::AnswerError;
use super::failure::{Failure, Failures};
use super::halves::Halves;
use super::lines::Lines;
use crate::conversation::event::{FinishClass, ProviderData, Usage};
use crate::engine::EngineEvent;
use serde::de::Error;
use std::borrow::Cow;
use std::mem::take;

/// Bytes of a stop reason that are shown. The longest known word has twenty-nine.
const STOP_REASON_BYTES_MAX: usize = 200;

/// Bytes of what a provider says about an answer that it withholds.
const EXPLANATION_BYTES_MAX: usize = 600;

/// Decodes a response as it streams. The events do not depend on how the bytes are split, except for where a
/// text is cut.
pub(in crate::engine) trait ResponseReader<'a> {
    /// The interface of the server, as errors name it.
    const INTERFACE: &'static str;

    fn response(&self) -> &ResponseState<'a>;

    fn response_mut(&mut self) -> &mut ResponseState<'a>;

    /// Decodes the next part of the body and appends its events to `events`, also if it fails.
    ///
    /// # Errors
    /// If the provider reports one, or the part can't be read.
    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure>;

    /// Decodes the last part of the body, which may be incomplete.
    ///
    /// # Errors
    /// If the answer can't be complete without it, and it can't be read.
    fn last_part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        self.part(part, events).map_err(|failure| self.response().at_end(failure))
    }

    /// Appends the last events to `events` after the end of the body.
    ///
    /// # Errors
    /// If the answer is not complete.
    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure>;

    /// The token counts so far, if they have not been given yet.
    fn take_usage(&mut self) -> Option<Usage>;

    /// Whether the response is complete so far. With most interfaces only its last event ends it.
    fn completeness(&self) -> Completeness {
        Completeness::Open
    }

    /// Emits text that was held back until its other half arrives: nothing more is read. Most interfaces hold
    /// back half a character only, which alone is no text.
    fn flush(&mut self, _events: &mut Vec<EngineEvent>) {}

    /// Decodes the next bytes and appends their events to `events`, also if it fails.
    ///
    /// # Errors
    /// If the provider reports one, or the bytes can't be read.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let (parts, pushed) = self.response_mut().push(bytes);
        for part in parts {
            self.part(part, events)?;
        }
        pushed
    }

    /// The body has ended: appends the last events to `events`. `content_type` is the header of the response.
    ///
    /// # Errors
    /// If the answer is not complete.
    fn end(&mut self, content_type: &str, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        if !self.is_done()
            && let Some(part) = self.response_mut().end_body()?
        {
            self.last_part(part, events)?;
        }
        self.flush(events);
        self.response().check_understood(Self::INTERFACE, content_type)?;
        self.conclude(events)
    }

    /// True when nothing that matters can follow.
    fn is_done(&self) -> bool {
        self.response().done
    }

    /// A counter of progress; bytes that only keep the connection alive don't raise it.
    fn progress(&self) -> u64 {
        self.response().progress()
    }
}

/// Whether a response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Completeness {
    /// More must follow.
    Open,
    /// More may follow. Silence, or a connection that breaks, is an end like any other.
    Likely,
    /// Only token counts and the end mark can follow, without delay; otherwise like [`Self::Likely`].
    Settled,
}

/// The common state of the readers of all interfaces.
#[derive(Debug)]
pub(in crate::engine) struct ResponseState<'a> {
    pub(in crate::engine) failures: &'a Failures,
    /// Nothing that matters can follow.
    pub(in crate::engine) done: bool,
    body: Body,
    body_end: BodyEnd,
    /// The request ended with the results of tools, which did not all fail.
    follows_results: bool,
    /// The request is not sent again, whatever comes of it.
    is_last_attempt: bool,
    /// Some part of the body was decoded.
    understood: bool,
    has_reasoning: bool,
    has_text: bool,
    /// The text holds more than white space.
    has_words: bool,
    /// What the provider says about an answer that it withholds.
    explanation: Option<Box<str>>,
    ignored: Ignored,
    halves: Halves,
    /// See [`ResponseReader::progress`].
    progress: u64,
}

/// The end of a response that the provider has ended.
#[derive(Debug)]
pub(in crate::engine) struct ResponseEnd {
    /// Why the model stopped, in the provider's words.
    pub(in crate::engine) reason: String,
    /// The class of the reason.
    pub(in crate::engine) class: FinishClass,
    /// Token counts, if the provider reported them.
    pub(in crate::engine) usage: Option<Usage>,
    /// Data to send back with the answer.
    pub(in crate::engine) provider_data: Option<ProviderData>,
    /// The model has called tools.
    pub(in crate::engine) has_calls: bool,
}

impl<'a> ResponseState<'a> {
    /// The state before the first byte of a body that ends with `body_end`.
    pub(in crate::engine) fn new(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self {
            failures,
            done: false,
            body: Body::default(),
            body_end,
            follows_results: false,
            is_last_attempt: false,
            understood: false,
            has_reasoning: false,
            has_text: false,
            has_words: false,
            explanation: None,
            ignored: Ignored::default(),
            halves: Halves::default(),
            progress: 0,
        }
    }

    /// Like [`Self::new`], for a body of JSON Lines.
    pub(in crate::engine) fn of_lines(failures: &'a Failures, body_end: BodyEnd) -> Self {
        Self { body: Body::Lines(Lines::default()), ..Self::new(failures, body_end) }
    }

    /// Sets whether the request ended with the results of tools, which did not all fail.
    pub(in crate::engine) fn set_follows_results(&mut self, follows_results: bool) {
        self.follows_results = follows_results;
    }

    /// Sets whether the request is not sent again, whatever comes of it.
    pub(in crate::engine) fn set_last_attempt(&mut self, is_last_attempt: bool) {
        self.is_last_attempt = is_last_attempt;
    }

    /// Whether the request is not sent again, whatever comes of it.
    pub(in crate::engine) fn is_last_attempt(&self) -> bool {
        self.is_last_attempt
    }

    /// Splits the next bytes into parts. Returns the complete parts, and the failure that follows them.
    pub(in crate::engine) fn push(&mut self, bytes: &[u8]) -> (Vec<Part>, Result<(), Failure>) {
        let mut parts = Vec::new();
        let pushed = self.body.push(bytes, &mut parts);
        self.progress += u64::from(self.body.is_filling());
        (parts, pushed.map_err(|part| self.failures.too_long_part(part)))
    }

    /// Returns the last part of a body that has ended.
    ///
    /// # Errors
    /// If the body is empty.
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

    /// Counts progress, if `is_further`.
    pub(in crate::engine) fn advance(&mut self, is_further: bool) {
        self.progress += u64::from(is_further);
    }

    /// Records which kinds of text the new `events` hold.
    pub(in crate::engine) fn note(&mut self, events: &[EngineEvent]) {
        for event in events {
            if let EngineEvent::Reasoning { .. } = event {
                self.has_reasoning = true;
            } else if let EngineEvent::Text(text) = event {
                self.has_text = true;
                self.has_words |= !text.trim().is_empty();
            }
        }
    }

    /// The failure of an answer whose parts can't be put together; `json` is its last event.
    pub(in crate::engine) fn failure_of(&self, error: AnswerError, json: &[u8]) -> Failure {
        match error {
            AnswerError::TooMuch(what) => self.failures.too_long(what),
            AnswerError::NamelessCall => self.failures.nameless_tool(),
            AnswerError::Misplaced(what) => {
                self.failures.unreadable(&serde_json::Error::custom(what), json)
            }
        }
    }

    /// Counts data that is no part of a response.
    pub(in crate::engine) fn ignore(&mut self, data: &[u8]) {
        self.failures.ignore(data, &mut self.ignored);
    }

    /// Number of events that were no part of a response.
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

    /// Records what the provider says about an answer that it withholds, for people.
    pub(in crate::engine) fn explain(&mut self, words: &str) {
        let words = self.failures.shown(words.trim(), EXPLANATION_BYTES_MAX);
        self.explanation = Some(words.into_boxed_str()).filter(|words| !words.is_empty());
    }

    /// What the provider says about an answer that it withholds, if it says something.
    pub(in crate::engine) fn explanation(&self) -> Option<&str> {
        self.explanation.as_deref()
    }

    /// The answer is nothing but white space.
    pub(in crate::engine) fn is_blank(&self) -> bool {
        self.has_text && !self.has_words
    }

    /// Checks that the body was one of a server with `interface`.
    ///
    /// # Errors
    /// If no part of it was understood.
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

    /// The failure of a response that ended without `missing`.
    pub(in crate::engine) fn cut_off(&self, missing: &str) -> Failure {
        self.failures.cut_off(missing, &self.ignored)
    }

    /// `failure`, which the end of the body has caused.
    pub(in crate::engine) fn at_end(&self, failure: Failure) -> Failure {
        self.failures.at_end(failure, self.body_end, &self.ignored)
    }

    /// The end of the body, with which nothing says that the response is whole, may be that of a broken connection.
    pub(in crate::engine) fn may_be_broken_off(&self) -> bool {
        !self.done && self.body_end == BodyEnd::Connection
    }

    /// Whether an answer of this class that says nothing is one all the same: the tools were called for what they do,
    /// and there is nothing to add to their results. To give the prompt again would cost the user their effects once
    /// more.
    pub(in crate::engine) fn may_be_silent(&self, class: FinishClass) -> bool {
        self.follows_results && class == FinishClass::Completed
    }

    /// Adds the last events to `events`.
    ///
    /// # Errors
    /// If the answer is complete and says nothing, except after good results of tools. That it was cut off is reported
    /// with its class.
    pub(in crate::engine) fn finish(
        &self,
        end: ResponseEnd,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), Failure> {
        let ResponseEnd { reason, class, usage, provider_data, has_calls } = end;
        events.extend(usage.map(EngineEvent::Usage));
        let stop_reason = match class == FinishClass::Other {
            true => self.failures.shown(&reason, STOP_REASON_BYTES_MAX),
            // A known word, even if it is the key.
            false => reason,
        };
        let has_answer = self.has_text || class.cuts_off() || has_calls;
        let is_silent = !has_answer && self.may_be_silent(class);
        // There is no message that it could be sent back with.
        let provider_data = provider_data.filter(|_| !is_silent);
        let finished =
            EngineEvent::CallFinished { stop_reason: stop_reason.clone(), class, provider_data };
        events.push(finished);
        match has_answer || is_silent {
            true => Ok(()),
            false => Err(self.failures.no_answer(&stop_reason, self.has_reasoning)),
        }
    }
}
