//! One provider call with its retries: sends the request, streams the response, and sends its events to the
//! sink. The engine's [`ResponseReader`] decodes the bytes.

use super::body::BodyEnd;
use super::clock::Clock;
use super::failure::{Elapsed, Failure, Failures};
use super::http::Response;
use super::post::{Post, TAIL_TIMEOUT, header};
use super::response::{Completeness, ResponseReader, ResponseState};
use super::settings::Settings;
use crate::engine::{EngineEvent, Retry, Sink};
use crate::support::log_targets::{EVENT, words_of_provider};
use crate::support::millis;
use http::Version;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time limit for the end of the body after the end mark, so that the connection can be used again.
const LINGER_TIMEOUT: Duration = Duration::from_millis(50);

/// One call, with its retries.
pub(in crate::engine) struct ProviderCall<'a, F> {
    settings: &'a Settings,
    pub(in crate::engine) post: Post<'a>,
    failures: &'a Failures,
    sink: &'a Sink,
    /// Makes the reader of a body that ends so.
    new_reader: F,
    /// Number of the current attempt, from 1.
    attempt: u32,
    /// The provider has taken the request, as its status said.
    is_taken: bool,
}

/// A request that failed.
struct Failed {
    failure: Failure,
    /// Part of the answer has been sent to the sink.
    has_output: bool,
}

impl<'a, R: ResponseReader<'a>, F: Fn(BodyEnd) -> R> ProviderCall<'a, F> {
    pub(in crate::engine) fn new(
        settings: &'a Settings,
        post: Post<'a>,
        failures: &'a Failures,
        sink: &'a Sink,
        new_reader: F,
    ) -> Self {
        Self { settings, post, failures, sink, new_reader, attempt: 1, is_taken: false }
    }

    /// Whether the provider has accepted the request of the last run, even if the call failed later.
    pub(in crate::engine) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Makes the call: all events of the answer go to the sink. If it is run again, its attempts are
    /// counted on.
    ///
    /// # Errors
    /// If no answer came, or only a part of one, after as many retries as the settings allow.
    pub(in crate::engine) async fn run(&mut self, clock: &mut Clock) -> Result<(), Failure> {
        // What the request of an earlier run was taken for says nothing about this one.
        self.is_taken = false;
        loop {
            let Err(failed) = self.send(clock).await else { return Ok(()) };
            let Some(wait) = self.retry_wait(&failed, clock) else {
                return Err(failed.failure);
            };
            let attempt = self.attempt;
            let attempts_max = self.settings.retries.saturating_add(1);
            let (class, why) = (failed.failure.class, failed.failure.message());
            let wait_ms = millis(wait);
            tracing::warn!(
                target: EVENT,
                class = class.as_str(),
                why = words_of_provider(why),
                "attempt {attempt} of {attempts_max} failed; trying again in {wait_ms} ms"
            );
            self.attempt += 1;
            let reason = why.to_owned();
            let retry = Retry { attempt: self.attempt, attempts_max, wait_ms, class, reason };
            clock.apart(self.sink.send(EngineEvent::RetryScheduled(retry.clone()))).await;
            sleep(wait).await;
            clock.apart(self.sink.send(EngineEvent::RetryStarted(retry))).await;
        }
    }

    /// How long to wait before the request is sent again; `None` if it is not.
    fn retry_wait(&self, failed: &Failed, clock: &Clock) -> Option<Duration> {
        if failed.has_output || self.is_last_attempt() {
            return None;
        }
        // Processes that were refused together must not come back together.
        let seed = RandomState::new().hash_one(self.sink.call);
        let wait = failed.failure.retry.wait(self.attempt, seed)?;
        (wait < clock.left()).then_some(wait)
    }

    /// Whether the request is not sent again, whatever comes of it.
    fn is_last_attempt(&self) -> bool {
        self.attempt > self.settings.retries
    }

    async fn send(&mut self, clock: &mut Clock) -> Result<(), Failed> {
        // On the heap for as long as it goes on: what it needs for the connection is a large part of the call's memory.
        let response = match Box::pin(self.post.send(clock, self.failures)).await {
            Ok(response) => response,
            Err(failure) => return Err(Failed { failure, has_output: false }),
        };
        clock.apart(self.sink.send(EngineEvent::ResponseStarted)).await;
        self.is_taken = true;
        let mut has_output = false;
        let read = self.read(response, clock, &mut has_output).await;
        read.map_err(|failure| Failed { failure, has_output })
    }

    /// Reads a successful response to its end. Sets `has_output`, also on failure, if part of the
    /// answer was sent to the sink.
    async fn read(
        &self,
        response: Response,
        clock: &mut Clock,
        has_output: &mut bool,
    ) -> Result<(), Failure> {
        let mut reader = (self.new_reader)(body_end(&response));
        reader.response_mut().set_last_attempt(self.is_last_attempt());
        let encoding = header(&response, &CONTENT_ENCODING).map(str::to_owned);
        let read = self.read_with(&mut reader, response, clock, has_output).await;
        let read = read.map_err(|failure| match &encoding {
            Some(encoding) => self.failures.encoded(failure, encoding),
            None => failure,
        });
        if read.is_err()
            && let Some(usage) = reader.take_usage()
        {
            // They are paid for, and no part of the answer: the request may be sent again, and the counts
            // of that replace these.
            clock.apart(self.sink.send(EngineEvent::Usage(usage))).await;
        }
        read
    }

    async fn read_with(
        &self,
        reader: &mut R,
        response: Response,
        clock: &mut Clock,
        has_output: &mut bool,
    ) -> Result<(), Failure> {
        let mut events = Vec::new();
        let idle_timeout = self.settings.idle_timeout;
        let quiet_since = clock.counted();
        let mut body = BodyReader { response, quiet_since, idle_timeout, failures: self.failures };
        while !reader.is_done() {
            let progress = reader.progress();
            let so_far = reader.completeness();
            let pushed = match body.next(clock, so_far).await {
                Ok(Some(bytes)) => reader.push(&bytes, &mut events),
                Ok(None) => break,
                Err(failure) => Err(failure),
            };
            if pushed.is_err() {
                reader.flush(&mut events);
            }
            self.give(&mut events, has_output, clock).await;
            pushed?;
            // After a finish reason, bytes that bring the answer no further don't put off its end.
            if so_far == Completeness::Open || reader.progress() > progress {
                body.quiet_since = clock.counted();
            }
        }
        let linger = reader.is_done();
        let content_type = header(&body.response, &CONTENT_TYPE).unwrap_or("unknown").to_owned();
        let ended = reader.end(&content_type, &mut events);
        note_oddities(reader.response(), ended.is_ok());
        self.give(&mut events, has_output, clock).await;
        if linger {
            // The result does not matter: the answer is complete.
            let end = async { while let Ok(Some(_)) = body.response.chunk().await {} };
            timeout(LINGER_TIMEOUT, end).await.ok();
        }
        ended
    }

    /// Sends `events` to the sink, at the reader's pace: meanwhile nothing is read from the provider.
    async fn give(&self, events: &mut Vec<EngineEvent>, has_output: &mut bool, clock: &mut Clock) {
        *has_output |= !events.is_empty();
        for event in events.drain(..) {
            // There mostly is room, and then no time to count.
            if let Err(event) = self.sink.try_send(event) {
                clock.apart(self.sink.send(event)).await;
            }
        }
    }
}

/// Reads the bytes of a body within the time limits.
struct BodyReader<'a> {
    response: Response,
    /// The time of the clock when the provider last gave a sign of life.
    quiet_since: Duration,
    idle_timeout: Duration,
    failures: &'a Failures,
}

impl BodyReader<'_> {
    /// The next bytes; `None` at the end. Once the answer may end, a broken or silent connection is
    /// an end like any other.
    async fn next(
        &mut self,
        clock: &mut Clock,
        so_far: Completeness,
    ) -> Result<Option<impl Deref<Target = [u8]> + use<>>, Failure> {
        let (limit, may_end) = match so_far {
            Completeness::Open => (self.idle_timeout, false),
            Completeness::Likely => (self.idle_timeout, true),
            Completeness::Settled => (TAIL_TIMEOUT, true),
        };
        let quiet = clock.counted().saturating_sub(self.quiet_since);
        match clock.wait(limit.saturating_sub(quiet), self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) if may_end => Ok(None),
            Ok(Err(error)) => Err(self.failures.network(&error)),
            Err(_) if may_end => {
                tracing::warn!(
                    "the provider gave a finish reason and left the connection open; it was closed \
                     after {limit:?}, and anything sent later was not read"
                );
                Ok(None)
            }
            Err(Elapsed::Idle(_)) => Err(self.failures.timeout(Elapsed::Idle(limit))),
            Err(elapsed @ Elapsed::Total(_)) => Err(self.failures.timeout(elapsed)),
        }
    }
}

/// How the end of the body of `response` is known (RFC 9112, section 6.3).
fn body_end(response: &Response) -> BodyEnd {
    let has = |name| response.headers().contains_key(name);
    match response.version() <= Version::HTTP_11 && !has(CONTENT_LENGTH) && !has(TRANSFER_ENCODING)
    {
        true => BodyEnd::Connection,
        false => BodyEnd::Marked,
    }
}

/// Logs oddities of a response that are no errors.
fn note_oddities(response: &ResponseState<'_>, is_good: bool) {
    let ignored = response.ignored();
    if ignored > 0 {
        tracing::info!(ignored, "events of the answer were ignored: they are no part of an answer");
    }
    if is_good && response.is_blank() {
        tracing::warn!("the answer holds nothing but white space");
    }
    if let (true, Some(why)) = (is_good, response.explanation()) {
        let why = words_of_provider(why);
        let what = if response.has_text() { "withheld the rest of its" } else { "refused to" };
        tracing::warn!(why, "the provider {what} answer");
    }
}
