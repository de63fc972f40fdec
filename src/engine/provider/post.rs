//! A request to a provider, up to the head of a successful response.

use super::clock::Clock;
use super::failure::{Failure, Failures, IDENTITY};
use super::http::{ProviderClient, Response};
use super::retry;
use http::Method;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::Url;
use serde_json::Value;
use std::pin::pin;
use std::time::{Duration, SystemTime};

/// Time limit for the token counts and the end mark after a complete answer, and for the body of
/// an error response.
pub(in crate::engine) const TAIL_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of an error response that are read.
pub(in crate::engine) const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// Time limit for the next part of a response other than that of a call.
const GET_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a response other than that of a call.
const GET_BYTES_MAX: usize = 16 * 1024 * 1024;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The `Retry-After` of the provider behind LiteLLM, which has no own one.
const RETRY_AFTER_BEHIND: HeaderName = HeaderName::from_static("llm_provider-retry-after");

/// Whether the request may be sent again, in the words of OpenAI and Anthropic, whose own clients obey it.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Where requests go.
pub(in crate::engine) struct Target {
    pub(in crate::engine) url: Url,
    pub(in crate::engine) headers: HeaderMap,
}

/// A request, which may be sent more than once.
pub(in crate::engine) struct Post<'a> {
    pub(in crate::engine) client: &'a ProviderClient,
    pub(in crate::engine) target: Target,
    pub(in crate::engine) body: Vec<u8>,
    /// Time limit for the first byte of the response.
    pub(in crate::engine) idle_timeout: Duration,
}

impl Post<'_> {
    /// Sends the request; returns the head of a successful response.
    ///
    /// # Errors
    /// If the provider can't be reached, answers with another status than success, or takes too long.
    pub(in crate::engine) async fn send(
        &self,
        clock: &mut Clock,
        failures: &Failures,
    ) -> Result<Response, Failure> {
        let Target { url, headers } = &self.target;
        let sending = pin!(self.client.send(Method::POST, url, headers.clone(), self.body.clone()));
        let response = clock
            .wait(self.idle_timeout, sending)
            .await
            .map_err(|elapsed| failures.timeout(elapsed))?
            .map_err(|error| failures.network(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let location = header(&response, &LOCATION);
            let location = location.and_then(|location| self.target.url.join(location).ok());
            return Err(failures.redirected(status.as_u16(), location.as_ref()));
        }
        let (after, should_retry) = (requested_wait(&response), should_retry(&response));
        let failure = error_status(response, clock, failures, after).await;
        Err(failure.advised(should_retry, after))
    }
}

/// Gets the JSON at `url` with `headers`, within `limit`.
///
/// # Errors
/// If the provider can't be reached, answers with another status than success, takes too long, or
/// sends something else.
pub(in crate::engine) async fn get(
    client: &ProviderClient,
    url: Url,
    headers: HeaderMap,
    clock: &mut Clock,
    failures: &Failures,
) -> Result<Value, Failure> {
    let sending = pin!(client.send(Method::GET, &url, headers, Vec::new()));
    let response = clock.wait(GET_TIMEOUT, sending).await;
    let response = response.map_err(|elapsed| failures.timeout(elapsed))?;
    let mut response = response.map_err(|error| failures.network(&error))?;
    let status = response.status();
    if status.is_redirection() {
        let location = header(&response, &LOCATION);
        let location = location.and_then(|location| url.join(location).ok());
        return Err(failures.redirected(status.as_u16(), location.as_ref()));
    }
    if !status.is_success() {
        return Err(error_status(response, clock, failures, None).await);
    }
    let mut body = Vec::new();
    loop {
        let chunk = clock.wait(GET_TIMEOUT, response.chunk()).await;
        let chunk = chunk.map_err(|elapsed| failures.timeout(elapsed))?;
        match chunk.map_err(|error| failures.network(&error))? {
            Some(bytes) if body.len() + bytes.len() <= GET_BYTES_MAX => body.extend(bytes),
            Some(_) => return Err(failures.no_list()),
            None => break,
        }
    }
    serde_json::from_slice(&body).map_err(|_| failures.no_list())
}

/// The wait that the headers of an error response request.
fn requested_wait(response: &Response) -> Option<Duration> {
    let after = header(response, &RETRY_AFTER).or_else(|| header(response, &RETRY_AFTER_BEHIND));
    retry::retry_after(header(response, &RETRY_AFTER_MS), after, SystemTime::now())
}

fn should_retry(response: &Response) -> Option<bool> {
    header(response, &SHOULD_RETRY)?.trim().parse().ok()
}

/// The failure of an error response that requests the wait `after`. Bytes that are compressed, which was not asked for,
/// are not quoted.
async fn error_status(
    response: Response,
    clock: &mut Clock,
    failures: &Failures,
    after: Option<Duration>,
) -> Failure {
    let status = response.status().as_u16();
    let encoding = header(&response, &CONTENT_ENCODING).map(str::trim);
    let encoding = encoding.filter(|it| !matches!(*it, "" | IDENTITY)).map(str::to_owned);
    let body = error_body(response, clock, failures).await;
    match encoding {
        Some(encoding) if !is_text(&body) => {
            failures.compressed(failures.status(status, b"", after), &encoding)
        }
        Some(_) | None => failures.status(status, &body, after),
    }
}

fn is_text(body: &[u8]) -> bool {
    let is_odd = |c: char| c.is_control() && !c.is_whitespace();
    std::str::from_utf8(body).is_ok_and(|text| !text.contains(is_odd))
}

/// The body of an error response, as far as it comes: the status alone is enough for an error.
async fn error_body(mut response: Response, clock: &mut Clock, failures: &Failures) -> Vec<u8> {
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
    if is_whole { body } else { failures.broken_off(&body) }
}

/// The header `name` of `response`, if it is text.
pub(in crate::engine) fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
