//! How often streams of events are opened, and what they bring. The SDK opens a stream that has ended again, after the
//! time that the server names, which may be none, and without a limit if opening succeeds.

use crate::support::lock;
use crate::tool::http::Access;
use crate::tool::http_answers::{self, NoAnswer, Posted};
use crate::tool::http_listening::{Listeners, Listening};
use crate::tool::incoming;
use crate::tool::line_transport::MESSAGE_BYTES_MAX;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The beginning of what the SDK says of an answer with status 401 that has no challenge (`WWW-Authenticate`).
pub(super) const UNAUTHORIZED: &str = "HTTP 401";

/// How often a stream of notifications is opened again without having received an event.
pub(super) const RECONNECTS_MAX: u32 = 5;

/// Backoff before a stream without events is opened again; doubles each time.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Longest such wait.
pub(super) const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(30);

/// A stream that was open for so long counts as one that received an event.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// Shortest mean time between two streams.
const STREAM_INTERVAL: Duration = Duration::from_secs(1);

/// Streams that may be opened at once: each of several calls may resume its response in a stream of its own.
const STREAM_BURST: u32 = 16;

/// The result of a POST, as the SDK gets it.
type PostAnswer = Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>>;

/// What a stream brings.
type Event = <BoxedSseResponse as Stream>::Item;

/// An HTTP client that opens streams in limits.
#[derive(Clone, Debug)]
pub(super) struct PacedClient {
    client: Client,
    pace: Arc<Mutex<Pace>>,
    listeners: Listeners,
    access: Arc<Access>,
}

/// A rate limit for streams, by when they were opened and whether they received events.
#[derive(Debug, Default)]
struct Pace {
    /// When all streams so far would have been opened at the shortest mean interval.
    due: Option<Instant>,
    /// Successive streams that ended soon and without an event.
    fruitless: u32,
    /// The end of the last stream.
    ended: Option<Instant>,
}

impl Pace {
    /// When a stream can be opened that is asked for at `now`; `None` if it is not worth it. A stream
    /// that `resumes` another is the rest of an answer that is waited for.
    fn open(&mut self, now: Instant, resumes: bool) -> Option<Instant> {
        if !resumes && self.fruitless > RECONNECTS_MAX {
            return None;
        }
        let due = self.due.map_or(now, |due| due.max(now));
        self.due = Some(due + STREAM_INTERVAL);
        let mean = due.checked_sub(STREAM_INTERVAL * (STREAM_BURST - 1)).unwrap_or(now);
        let delay = match self.fruitless.checked_sub(1) {
            None => Duration::ZERO,
            Some(times) => {
                let factor = 2_u32.saturating_pow(times);
                RECONNECT_DELAY.saturating_mul(factor).min(RECONNECT_DELAY_MAX)
            }
        };
        let after_last = self.ended.map_or(now, |ended| ended + delay);
        Some(now.max(mean).max(after_last))
    }

    /// A stream that was opened at `opened` has ended.
    fn end(&mut self, opened: Instant, now: Instant, brought_event: bool) {
        let is_good = brought_event || now.duration_since(opened) >= STABLE_AFTER;
        self.fruitless = if is_good { 0 } else { self.fruitless.saturating_add(1) };
        self.ended = Some(now);
    }
}

impl PacedClient {
    /// `access` records errors that the SDK does not report.
    pub(super) fn new(client: Client, access: Arc<Access>) -> Self {
        Self { client, pace: Arc::default(), listeners: Listeners::default(), access }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        lock(&self.pace)
    }

    /// `stream`, which answers what was `posted`, with an error in place of an answer that can't be read. Its end is
    /// noted.
    fn observed(
        &self,
        stream: BoxedSseResponse,
        posted: Posted,
        listening: Option<Listening>,
    ) -> BoxedSseResponse {
        let pace = Arc::clone(&self.pace);
        let mut open = OpenStream {
            pace,
            opened: Instant::now(),
            brought_event: false,
            _listening: listening,
        };
        let events = stream.flat_map(move |event| {
            // The time after which the stream is to be opened again is no event.
            if event.as_ref().is_ok_and(|event| event.data.is_some() || event.id.is_some()) {
                open.note_event();
            }
            stream::iter(messages(event, &posted))
        });
        events.boxed()
    }

    /// The answer to what was `posted`, if it is one.
    async fn answer(
        &self,
        answer: StreamableHttpPostResponse,
        posted: Posted,
        in_session: bool,
    ) -> PostAnswer {
        if let StreamableHttpPostResponse::Sse(stream, session_id) = answer {
            let stream = self.observed(stream, posted, None);
            Ok(StreamableHttpPostResponse::Sse(stream, session_id))
        } else if let StreamableHttpPostResponse::Json(message, session_id) = answer {
            let message = posted.answered(message, in_session).map_err(no_answer)?;
            Ok(StreamableHttpPostResponse::Json(message, session_id))
        } else if posted.id().is_some() && !self.listeners.are_there().await {
            // Some servers send the answer over the stream of notifications.
            Err(no_answer(NoAnswer::Wrong("it sent a response without an answer")))
        } else {
            Ok(answer)
        }
    }
}

/// `error`, or that a login is required if the server has said so by its status alone: the challenge that belongs to it
/// is left out by many, and the SDK would neither refresh a token nor say so.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list of the SDK's errors is open")]
fn challenged(error: StreamableHttpError<reqwest::Error>) -> StreamableHttpError<reqwest::Error> {
    let unauthorized = match &error {
        StreamableHttpError::UnexpectedServerResponse(what) if what.starts_with(UNAUTHORIZED) => {
            Some(what.to_string())
        }
        StreamableHttpError::Client(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => {
            Some(UNAUTHORIZED.to_owned())
        }
        _ => None,
    };
    let required = |what| StreamableHttpError::AuthRequired(AuthRequiredError::new(what));
    unauthorized.map_or(error, required)
}

/// `answer`, or that a message without an answer was accepted, whatever the server sent with a status that says so: the
/// specification asks for status 202 and nothing else. The SDK would give the connection up.
fn accepted(answer: PostAnswer, posted: &Posted) -> PostAnswer {
    let is_accepted = match (&answer, posted) {
        (Ok(StreamableHttpPostResponse::Sse(..)), Posted::Initialized) => true,
        // The SDK looks at the type of answers with a good status only.
        (Err(StreamableHttpError::UnexpectedContentType(_)), posted) => posted.id().is_none(),
        (Ok(_) | Err(_), _) => false,
    };
    if is_accepted { Ok(StreamableHttpPostResponse::Accepted) } else { answer }
}

fn no_answer(why: NoAnswer) -> StreamableHttpError<reqwest::Error> {
    match why {
        NoAnswer::SessionEnded => StreamableHttpError::SessionExpired,
        NoAnswer::Wrong(what) => StreamableHttpError::UnexpectedServerResponse(what.into()),
    }
}

/// An event for each message of `event`, which may be a batch.
fn messages(event: Event, posted: &Posted) -> Vec<Event> {
    let mut event = match event {
        Ok(event) => event,
        Err(error) => return vec![Err(error)],
    };
    let Some(data) = event.data.take() else { return vec![Ok(event)] };
    let messages = readable(data, posted).into_iter().map(|data| {
        let mut message = event.clone();
        message.data = Some(data);
        Ok(message)
    });
    messages.collect()
}

/// The messages of an event as the SDK can read them, or an error for the call whose answer one is: the SDK skips what
/// it can't read, and the call would wait for its time limit.
fn readable(data: String, posted: &Posted) -> Vec<String> {
    let mut messages = incoming::read(data.as_bytes(), posted.answer());
    for message in &mut messages {
        if let (JsonRpcMessage::Error(error), Some(id)) = (&mut *message, posted.id()) {
            error.id.get_or_insert_with(|| id.clone());
        }
        http_answers::wrap_result(message);
    }
    let texts: Vec<_> = messages.iter().filter_map(|it| serde_json::to_string(it).ok()).collect();
    if texts.is_empty() { vec![data] } else { texts }
}

/// Notes the end of a stream when it is dropped.
struct OpenStream {
    pace: Arc<Mutex<Pace>>,
    opened: Instant,
    brought_event: bool,
    _listening: Option<Listening>,
}

impl OpenStream {
    fn note_event(&mut self) {
        self.brought_event = true;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut pace = lock(&self.pace);
        pace.end(self.opened, Instant::now(), self.brought_event);
    }
}

impl StreamableHttpClient for PacedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        let max = MESSAGE_BYTES_MAX;
        let posted = self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            headers,
            max,
        );
        posted.await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        let (sent, in_session) = (Posted::new(&message), session_id.is_some());
        let posted = self.client.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            headers,
            max_sse_event_size,
        );
        let ends_handshake = sent == Posted::Initialized;
        let answered = match accepted(posted.await.map_err(challenged), &sent) {
            Ok(answer) => self.answer(answer, sent, in_session).await,
            Err(error) => Err(error),
        };
        if ends_handshake {
            self.access.note_handshake(answered.as_ref().err());
        }
        answered
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.client.delete_session(uri, session_id, auth_header, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        let max = MESSAGE_BYTES_MAX;
        let opened = self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            headers,
            max,
        );
        opened.await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        let mut listening = last_event_id.is_none().then(|| self.listeners.opening());
        let Some(at) = self.pace().open(Instant::now(), last_event_id.is_some()) else {
            tracing::debug!("a stream of notifications is not opened again: it brought nothing");
            // The one error after which the SDK does not try again, and which it does not log.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        sleep_until(at).await;
        let opened = self.client.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            headers,
            max_sse_event_size,
        );
        let stream = opened.await.map_err(challenged)?;
        listening.iter_mut().for_each(Listening::opened);
        Ok(self.observed(stream, Posted::Other, listening))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::RequestId;

    /// Opens streams one after the other, as soon as they may be opened, each of which ends after
    /// `lifetime`. Returns the seconds after which each was opened.
    fn opened(resumes: bool, lifetime: Duration, brings_event: bool) -> Vec<u64> {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let mut now = start;
        let mut seconds = Vec::new();
        while let Some(at) = pace.open(now, resumes)
            && seconds.len() < 40
        {
            assert!(at >= now);
            seconds.push(at.duration_since(start).as_secs());
            now = at + lifetime;
            pace.end(at, now, brings_event);
        }
        seconds
    }

    #[test]
    fn a_stream_that_brings_nothing_is_opened_again_five_times_with_growing_waits() {
        assert_eq!(opened(false, Duration::ZERO, false), [0, 1, 3, 7, 15, 31]);
    }

    #[test]
    fn the_rest_of_an_answer_is_asked_for_with_growing_waits() {
        let opened = opened(true, Duration::ZERO, false);
        assert_eq!(opened[..8], [0, 1, 3, 7, 15, 31, 61, 91]);
        assert_eq!(opened.len(), 40);
    }

    #[test]
    fn a_stream_that_brings_events_or_stays_is_opened_at_once_but_not_more_than_each_second() {
        for resumes in [false, true] {
            let eager = opened(resumes, Duration::ZERO, true);
            assert_eq!(eager[..18], [[0; 16].as_slice(), &[1, 2]].concat());
            assert_eq!(eager.len(), 40);
            let long = opened(resumes, STABLE_AFTER, false);
            assert_eq!(long[..3], [0, 10, 20]);
        }
    }

    #[test]
    fn an_answer_that_can_not_be_read_is_an_error_for_its_call() {
        let posted = Posted::Request(RequestId::Number(7));
        let read = |data: &str| readable(data.to_owned(), &posted).join(" and ");
        let answer = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        let deep = answer(&("[".repeat(200) + &"]".repeat(200)));
        assert!(read(&deep).starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000"#));
        assert_eq!(read("no JSON"), "no JSON");
        let wrapped = |result: &str| answer(&format!(r#"{{"duologue/result":{result}}}"#));
        assert_eq!(read(&answer(r#"{"odd":[1]}"#)), wrapped(r#"{"odd":[1]}"#));
        assert_eq!(read(&answer(r#""cut \ud83d""#)), wrapped("\"cut \u{fffd}\""));
        let batch = format!("[{},{}]", answer("1"), answer("2"));
        assert_eq!(read(&batch), format!("{} and {}", wrapped("1"), wrapped("2")));
        let error = r#"{"code":-32000,"message":"no"}"#;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#);
        for id in [r#""id":null,"#, "", r#""result":null,"id":7,"#] {
            let given = format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#);
            assert_eq!(read(&given), expected, "{given}");
        }
    }
}
