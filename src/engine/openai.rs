//! Any provider with OpenAI's chat completions: OpenAI, Ollama, llama.cpp, vLLM, OpenRouter, …
//!
//! What bytes mean is decided in the pure modules of this folder, which stand here in reading order:
//! each uses only those above it. This file holds the settings and waits: for the connection, for
//! bytes, for the reader.

mod address;
mod http;
mod join;
mod json;
mod sse;

mod body;
mod chunk;

mod calls;
mod finish;
mod retry;

mod caution;
mod failure;
mod request;
mod roots;

mod answer;

#[cfg(test)]
mod tests;

use super::{EngineEvent, RunEnd, RunError, Sink};
use crate::chat::transcript::Transcript;
use crate::support::secret::Secret;
use answer::Answer;
use failure::{Elapsed, Failure, Failures};
use finish::Finish;
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER, TRANSFER_ENCODING,
};
use reqwest::{Client, Response, Url, Version};
use roots::RootsFile;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout};

/// Where OpenAI itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The model where OpenAI itself answers. Other providers have their own names.
pub const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// For the connection to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Before the first byte, and between two parts of an answer; messages that only keep the connection
/// alive don't count. A model may think for long before it speaks.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// For the whole call, its retries included.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How often a request is sent again.
pub const RETRIES: u32 = 2;

/// After a finish reason that is believed: for token counts and the end mark, however many bytes
/// come. Also for the body of an error answer.
const TAIL_TIMEOUT: Duration = Duration::from_secs(5);

/// After the end mark: for the end of the body, so that the connection can be used again.
const LINGER_TIMEOUT: Duration = Duration::from_millis(50);

/// Bytes of an error answer that are read.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// Names a file of root certificates, here as in other programs that use TLS.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Settings of the engine. Nothing in them is checked before the first run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What comes before `/chat/completions`, or all of the address: `http` or `https`.
    pub base_url: String,
    /// The model's name, as the provider knows it; may be left out for [`DEFAULT_BASE_URL`].
    pub model: Option<String>,
    /// The key; may be left out for any other provider than OpenAI.
    pub key: Option<Secret>,
    /// For the connection to come about.
    pub connect_timeout: Duration,
    /// Before the first byte, and between two parts of an answer.
    pub idle_timeout: Duration,
    /// For the whole call, its retries included. The time that the reader of the events takes
    /// counts for none of the three.
    pub total_timeout: Duration,
    /// How often a request is sent again, as long as nothing of its answer has been given on.
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
    /// Root certificates beside those built in.
    roots_file: Option<RootsFile>,
    client: OnceLock<Client>,
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
    /// The model that answers; empty if none is named where one must be.
    fn model(&self) -> &str {
        match self.model.as_deref().map(str::trim) {
            Some(model) if !model.is_empty() => model,
            Some(_) | None if self.is_openai() => DEFAULT_MODEL,
            Some(_) | None => "",
        }
    }

    fn is_openai(&self) -> bool {
        address::without_endpoint(&self.base_url) == DEFAULT_BASE_URL
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
        let roots_file = roots_file.map(RootsFile::new);
        Self { shared: Arc::new(Shared { settings, roots_file, client: OnceLock::new() }) }
    }

    /// The model that answers; empty if none is named where one must be.
    pub fn model(&self) -> &str {
        self.shared.settings.model()
    }

    /// The host that is asked, with its port if that is not the scheme's own; empty if the address
    /// can't be read.
    pub fn host(&self) -> String {
        let Settings { base_url, key, .. } = &self.shared.settings;
        let host = address::host(base_url).unwrap_or_default();
        // A host is in lower case, and so is a key that was put in its place by mistake.
        let key = key.as_ref().and_then(|key| Secret::new(&key.expose().to_ascii_lowercase()));
        key.map_or(host.clone(), |key| key.redact(&host))
    }

    /// Answers the last turn of `transcript`. Dropped, it closes the connection.
    pub async fn answer(self, transcript: Transcript, sink: Sink) -> RunEnd {
        match self.run(&transcript, &sink).await {
            Ok(()) => RunEnd::Finished,
            Err(error) => RunEnd::Failed(error),
        }
    }

    async fn run(&self, transcript: &Transcript, sink: &Sink) -> Result<(), RunError> {
        let settings = &self.shared.settings;
        let failures = Failures::new(settings.key.as_ref(), &settings.base_url, settings.model());
        let target = Target::new(settings, &failures).map_err(Failure::into_error)?;
        let client = self.client(&target.url, &failures).await.map_err(Failure::into_error)?;
        let body = request::body(settings.model(), &transcript.messages())
            .map_err(|why| failures.unwritable(&why).into_error())?;
        sink.send(EngineEvent::CallStarted).await;
        let clock = Clock::new(settings);
        let call = Call { settings, client, target, failures: &failures, body, sink };
        call.run(clock).await.map_err(Failure::into_error)
    }

    /// The client, built by the first run that comes here.
    async fn client(&self, url: &Url, failures: &Failures) -> Result<&Client, Failure> {
        let Shared { settings, roots_file, client } = &*self.shared;
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let time_max = settings.connect_timeout;
        let roots = match roots_file {
            Some(file) if url.scheme() == "https" => {
                file.roots(time_max).await.map_err(|why| failures.no_roots(&why))?
            }
            Some(_) | None => roots::mozilla(),
        };
        let built = http::client(url, time_max, roots).map_err(|why| failures.no_client(&*why))?;
        for warning in caution::warnings(url, settings.key.is_some(), |name| std::env::var_os(name))
        {
            tracing::warn!("{warning}");
        }
        Ok(client.get_or_init(|| built))
    }
}

/// Where requests go, checked.
struct Target {
    url: Url,
    headers: HeaderMap,
}

impl Target {
    fn new(settings: &Settings, failures: &Failures) -> Result<Self, Failure> {
        let url = address::endpoint(&settings.base_url, settings.key.is_none())
            .map_err(|why| failures.bad_base_url(&why))?;
        if settings.key.is_none() && settings.is_openai() {
            return Err(failures.no_key());
        }
        if settings.model().is_empty() {
            return Err(failures.no_model());
        }
        let headers = http::headers(settings.key.as_ref()).ok_or_else(|| failures.odd_key())?;
        Ok(Self { url, headers })
    }
}

/// One call, with its retries.
struct Call<'a> {
    settings: &'a Settings,
    client: &'a Client,
    target: Target,
    failures: &'a Failures,
    body: Vec<u8>,
    sink: &'a Sink,
}

/// A request that failed.
struct Failed {
    failure: Failure,
    /// Some of the answer has been given on.
    has_output: bool,
}

impl Call<'_> {
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
        let mut seed = DefaultHasher::new();
        self.sink.run.hash(&mut seed);
        let wait = failed.failure.retry.wait(attempt, seed.finish())?;
        (wait < clock.left).then_some(wait)
    }

    async fn attempt(&self, clock: &mut Clock) -> Result<(), Failed> {
        let response = match self.send(clock).await {
            Ok(response) => response,
            Err(failure) => return Err(Failed { failure, has_output: false }),
        };
        let mut has_output = false;
        let read = self.read(response, clock, &mut has_output).await;
        read.map_err(|failure| Failed { failure, has_output })
    }

    /// Sends the request; gives the head of a good answer.
    async fn send(&self, clock: &mut Clock) -> Result<Response, Failure> {
        let request = self
            .client
            .post(self.target.url.clone())
            .headers(self.target.headers.clone())
            .body(self.body.clone());
        let response = clock
            .wait(self.settings.idle_timeout, request.send())
            .await
            .map_err(|elapsed| self.failures.timeout(elapsed))?
            .map_err(|error| self.failures.network(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let location = header(&response, &LOCATION);
            let location = location.and_then(|location| self.target.url.join(location).ok());
            return Err(self.failures.redirected(status.as_u16(), location.as_ref()));
        }
        let (ms, after) = (header(&response, &RETRY_AFTER_MS), header(&response, &RETRY_AFTER));
        let after = retry::retry_after(ms, after, SystemTime::now());
        let body = self.error_body(response, clock).await;
        Err(self.failures.status(status.as_u16(), &body, after))
    }

    /// What a provider says with an error status, as far as it comes: the status alone is an error
    /// already.
    async fn error_body(&self, mut response: Response, clock: &mut Clock) -> Vec<u8> {
        let mut body = Vec::new();
        let reading = async {
            while body.len() < ERROR_BODY_BYTES_MAX {
                match response.chunk().await {
                    Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
            false
        };
        let is_whole = clock.wait(TAIL_TIMEOUT, reading).await.unwrap_or(false);
        body.truncate(ERROR_BODY_BYTES_MAX);
        if is_whole { body } else { self.failures.broken_off(&body) }
    }

    /// Reads a good answer to its end. `has_output` tells, also if it fails, whether some of it was
    /// given on.
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
            // Whatever comes of it: the answer is whole.
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

    /// Hands over `events`, at the reader's pace: meanwhile nothing is read from the provider.
    async fn give(&self, events: &mut Vec<EngineEvent>, has_output: &mut bool) {
        *has_output |= !events.is_empty();
        for event in events.drain(..) {
            self.sink.send(event).await;
        }
    }
}

fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Whether nothing but the end of the connection ends the body (RFC 9112, section 6.3).
fn ends_with_connection(response: &Response) -> bool {
    let has = |name| response.headers().contains_key(name);
    response.version() <= Version::HTTP_11 && !has(CONTENT_LENGTH) && !has(TRANSFER_ENCODING)
}

/// Logs what a person may want to know of an answer that is no error.
fn note_oddities(answer: &Answer, is_good: bool) {
    let ignored = answer.ignored();
    if ignored > 0 {
        tracing::info!(ignored, "events of the answer were ignored: their data is no JSON");
    }
    if is_good && answer.is_blank() {
        tracing::warn!("the answer holds nothing but white space");
    }
}

/// The time that the provider has taken since its answer last got further.
#[derive(Debug, Default)]
struct Quiet {
    time: Duration,
    /// Bytes came meanwhile.
    has_pings: bool,
}

/// Counts the time that the provider takes, and no other.
struct Clock {
    total: Duration,
    left: Duration,
}

impl Clock {
    fn new(settings: &Settings) -> Self {
        Self { total: settings.total_timeout, left: settings.total_timeout }
    }

    /// Waits for `future`, for `limit` and for what is left of the call.
    async fn wait<T>(
        &mut self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let begin = Instant::now();
        let limit_now = limit.min(self.left);
        // A timeout lets a future through that is ready at once, however little time is left.
        let done = match limit_now.is_zero() {
            true => None,
            false => timeout(limit_now, future).await.ok(),
        };
        self.left = self.left.saturating_sub(begin.elapsed());
        done.ok_or_else(|| match self.left.is_zero() {
            true => Elapsed::Total(self.total),
            false => Elapsed::Idle(limit),
        })
    }

    async fn sleep(&mut self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.left = self.left.saturating_sub(wait);
    }
}
