//! Any provider with OpenAI's chat completions: OpenAI, Ollama, llama.cpp, vLLM, OpenRouter, …
//!
//! What bytes mean is decided in the pure modules of this folder, which stand here in reading order:
//! each uses only those above it. This file holds the settings and waits: for bytes, for the reader.

mod chunk;

mod calls;
mod finish;

mod report;
mod request;

mod answer;

#[cfg(test)]
mod tests;

use super::{CallEnd, CallSpec, EngineEvent, RunError, Sink};
use crate::engine::provider::address;
use crate::engine::provider::clock::{Clock, Quiet};
use crate::engine::provider::connection::Connection;
use crate::engine::provider::failure::{Elapsed, Failure, Failures, SettingSources};
use crate::engine::provider::http;
use crate::engine::provider::post::{Post, TAIL_TIMEOUT, Target, header};
use crate::support::secret::Secret;
use answer::Answer;
use finish::Finish;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use reqwest::{Response, Version};
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Where OpenAI itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The model where OpenAI itself answers. Other providers have their own names.
pub const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// Time limit for connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the first byte, and for the time between two parts of an answer; messages that
/// only keep the connection alive don't count. A model may reason for long before it answers.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit for the whole call, its retries included.
pub(crate) const TOTAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How often a request is sent again.
pub(crate) const RETRIES: u32 = 2;

/// Time limit for the end of the body after the end mark, so that the connection can be used again.
const LINGER_TIMEOUT: Duration = Duration::from_millis(50);

/// The options and variables that the command line has for the settings.
const SOURCES: SettingSources = SettingSources {
    base_url_source: "--base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL",
    model_source: "--model or DUOLOGUE_MODEL",
    key_source: "DUOLOGUE_API_KEY or OPENAI_API_KEY",
};

/// Names a file of root certificates, here as in other programs that use TLS.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// The path of the interface, after the base URL.
const ENDPOINT: &str = "/chat/completions";

/// Settings of the engine. Nothing in them is checked before the first run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What comes before `/chat/completions`, or all of the address: `http` or `https`.
    pub base_url: String,
    /// The model's name, in the provider's spelling; may be left out for [`DEFAULT_BASE_URL`].
    pub model: Option<String>,
    /// The key; may be left out for any other provider than OpenAI.
    pub key: Option<Secret>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit for the first byte, and for the time between two parts of an answer.
    pub idle_timeout: Duration,
    /// Time limit for the whole call, its retries included. None of the three limits counts the
    /// time that the reader of the events takes.
    pub total_timeout: Duration,
    /// How often a failed request is sent again. A request is not sent again once part of its
    /// answer has been sent to the sink.
    pub retries: u32,
}

/// The engine. Clones share one client and its connection.
#[derive(Clone, Debug)]
pub struct OpenAi {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    connection: Connection,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            model: None,
            key: None,
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            total_timeout: TOTAL_TIMEOUT,
            retries: RETRIES,
        }
    }
}

impl Settings {
    /// The model that answers; empty if one is required and none is named.
    fn model(&self) -> &str {
        match self.model.as_deref().map(str::trim) {
            Some(model) if !model.is_empty() => model,
            Some(_) | None if self.is_openai() => DEFAULT_MODEL,
            Some(_) | None => "",
        }
    }

    fn is_openai(&self) -> bool {
        address::without_endpoint(&self.base_url, ENDPOINT) == DEFAULT_BASE_URL
    }
}

impl OpenAi {
    /// An engine with `settings`, and with the root certificates that the environment names.
    /// Reads no file.
    pub fn new(settings: Settings) -> Self {
        let roots_file = std::env::var_os(ROOTS_VARIABLE).filter(|path| !path.is_empty());
        Self::with_roots(settings, roots_file.map(PathBuf::from))
    }

    fn with_roots(settings: Settings, roots_file: Option<PathBuf>) -> Self {
        let connection = Connection::new(settings.connect_timeout, roots_file);
        Self { shared: Arc::new(Shared { settings, connection }) }
    }

    /// The model that answers; empty if one is required and none is named.
    pub(crate) fn model(&self) -> &str {
        self.shared.settings.model()
    }

    /// The provider's host, with its port if that is not the scheme's default; empty if the address
    /// can't be parsed.
    pub(crate) fn host(&self) -> String {
        let Settings { base_url, key, .. } = &self.shared.settings;
        let host = address::host(base_url).unwrap_or_default();
        // A host is in lower case, and so is a key that was put in its place by mistake.
        let key = key.as_ref().and_then(|key| Secret::new(&key.expose().to_ascii_lowercase()));
        key.map_or(host.clone(), |key| key.redact(&host))
    }

    /// Answers the last turn of the transcript. Dropped, it closes the connection.
    pub(crate) async fn answer(self, spec: CallSpec, sink: Sink) -> CallEnd {
        match self.run(&spec, &sink).await {
            Ok(()) => CallEnd::Finished,
            Err(error) => CallEnd::Failed(error),
        }
    }

    async fn run(&self, spec: &CallSpec, sink: &Sink) -> Result<(), RunError> {
        let settings = &self.shared.settings;
        let key = settings.key.as_ref();
        let failures = Failures::new(SOURCES, key, &settings.base_url, settings.model());
        let target = target(settings, &failures).map_err(Failure::into_error)?;
        let client = self.shared.connection.client(&target.url, settings.key.is_some(), &failures);
        let client = client.await.map_err(Failure::into_error)?;
        let body = request::body(settings.model(), &spec.transcript.messages(), &spec.tools)
            .map_err(|why| failures.unwritable(&why).into_error())?;
        sink.send(EngineEvent::CallStarted).await;
        let clock = Clock::new(settings.total_timeout);
        let post = Post { client, target, body, idle_timeout: settings.idle_timeout };
        let call = ProviderCall { settings, post, failures: &failures, sink };
        call.run(clock).await.map_err(Failure::into_error)
    }
}

/// Where requests go, checked.
fn target(settings: &Settings, failures: &Failures) -> Result<Target, Failure> {
    let url = address::endpoint(&settings.base_url, ENDPOINT, settings.key.is_none())
        .map_err(|why| failures.bad_base_url(&why))?;
    if settings.key.is_none() && settings.is_openai() {
        return Err(failures.no_key("OpenAI"));
    }
    if settings.model().is_empty() {
        return Err(failures.no_model());
    }
    let headers = http::headers(settings.key.as_ref()).ok_or_else(|| failures.odd_key())?;
    Ok(Target { url, headers })
}

/// One call, with its retries.
struct ProviderCall<'a> {
    settings: &'a Settings,
    post: Post<'a>,
    failures: &'a Failures,
    sink: &'a Sink,
}

/// A request that failed.
struct Failed {
    failure: Failure,
    /// Part of the answer has been sent to the sink.
    has_output: bool,
}

impl ProviderCall<'_> {
    async fn run(&self, mut clock: Clock) -> Result<(), Failure> {
        let mut attempt = 1;
        loop {
            let Err(failed) = self.attempt(&mut clock).await else { return Ok(()) };
            let Some(wait) = self.retry_wait(&failed, attempt, &clock) else {
                return Err(failed.failure);
            };
            tracing::warn!(
                class = failed.failure.class.as_str(),
                why = failed.failure.message(),
                "attempt {attempt} of {} failed; trying again in {} ms",
                self.settings.retries.saturating_add(1),
                wait.as_millis()
            );
            clock.sleep(wait).await;
            attempt += 1;
        }
    }

    /// How long to wait before the request is sent again; `None` if it is not.
    fn retry_wait(&self, failed: &Failed, attempt: u32, clock: &Clock) -> Option<Duration> {
        if failed.has_output || attempt > self.settings.retries {
            return None;
        }
        // Processes that were refused together must not come back together.
        let seed = RandomState::new().hash_one(self.sink.call);
        let wait = failed.failure.retry.wait(attempt, seed)?;
        (wait < clock.left()).then_some(wait)
    }

    async fn attempt(&self, clock: &mut Clock) -> Result<(), Failed> {
        let response = match self.post.send(clock, self.failures).await {
            Ok(response) => response,
            Err(failure) => return Err(Failed { failure, has_output: false }),
        };
        let mut has_output = false;
        let read = self.read(response, clock, &mut has_output).await;
        read.map_err(|failure| Failed { failure, has_output })
    }

    /// Reads a successful response to its end. Sets `has_output`, also on failure, if part of the
    /// answer was sent to the sink.
    async fn read(
        &self,
        mut response: Response,
        clock: &mut Clock,
        has_output: &mut bool,
    ) -> Result<(), Failure> {
        let mut answer = Answer::new(self.failures);
        if ends_with_connection(&response) {
            answer = answer.ending_with_connection();
        }
        let mut events = Vec::new();
        let mut quiet = Quiet::default();
        while !answer.is_done() {
            let progress = answer.progress();
            let pushed = match self.chunk(&mut response, clock, answer.finish(), &mut quiet).await {
                Ok(Some(bytes)) => answer.push(&bytes, &mut events),
                Ok(None) => break,
                Err(failure) => Err(failure),
            };
            if answer.progress() > progress {
                quiet = Quiet::default();
            }
            if pushed.is_err() {
                answer.flush(&mut events);
            }
            self.give(&mut events, has_output).await;
            pushed?;
        }
        let linger = answer.is_done();
        let content_type = header(&response, &CONTENT_TYPE).unwrap_or("unknown").to_owned();
        let ended = answer.end(&content_type, &mut events);
        note_oddities(&answer, ended.is_ok());
        self.give(&mut events, has_output).await;
        if linger {
            // The result does not matter: the answer is complete.
            drop(timeout(LINGER_TIMEOUT, response.chunk()).await);
        }
        ended
    }

    /// The next bytes; `None` at the end. Once the answer may end, a broken or silent connection is
    /// an end like any other.
    async fn chunk(
        &self,
        response: &mut Response,
        clock: &mut Clock,
        finish: Finish,
        quiet: &mut Quiet,
    ) -> Result<Option<impl Deref<Target = [u8]> + use<>>, Failure> {
        let limit = match finish {
            Finish::Open | Finish::Likely | Finish::Doubtful => self.settings.idle_timeout,
            Finish::Settled => TAIL_TIMEOUT,
        };
        let begin = Instant::now();
        let waited = clock.wait(limit.saturating_sub(quiet.time), response.chunk()).await;
        quiet.time += begin.elapsed();
        match waited {
            Ok(Ok(bytes)) => {
                quiet.has_pings = true;
                Ok(bytes)
            }
            Ok(Err(_)) if finish.may_end() => Ok(None),
            Ok(Err(error)) => Err(self.failures.network(&error)),
            Err(_) if finish.may_end() => {
                tracing::warn!(
                    "the provider gave a finish reason and left the connection open; it was closed \
                     after {limit:?}, and anything sent later was not read"
                );
                Ok(None)
            }
            Err(Elapsed::Idle(_)) if quiet.has_pings => {
                Err(self.failures.timeout(Elapsed::Pings(limit)))
            }
            Err(Elapsed::Idle(_)) => Err(self.failures.timeout(Elapsed::Idle(limit))),
            Err(elapsed @ (Elapsed::Pings(_) | Elapsed::Total(_))) => {
                Err(self.failures.timeout(elapsed))
            }
        }
    }

    /// Sends `events` to the sink, at the reader's pace: meanwhile nothing is read from the provider.
    async fn give(&self, events: &mut Vec<EngineEvent>, has_output: &mut bool) {
        *has_output |= !events.is_empty();
        for event in events.drain(..) {
            self.sink.send(event).await;
        }
    }
}

/// Whether nothing but the end of the connection ends the body (RFC 9112, section 6.3).
fn ends_with_connection(response: &Response) -> bool {
    let has = |name| response.headers().contains_key(name);
    response.version() <= Version::HTTP_11 && !has(CONTENT_LENGTH) && !has(TRANSFER_ENCODING)
}

/// Logs what is unusual about an answer without being an error.
fn note_oddities(answer: &Answer, is_good: bool) {
    let ignored = answer.ignored();
    if ignored > 0 {
        tracing::info!(
            ignored,
            "events of the answer were ignored: they are no part of a chat completion"
        );
    }
    if is_good && answer.is_blank() {
        tracing::warn!("the answer holds nothing but white space");
    }
}
