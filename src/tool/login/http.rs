//! Sends the requests of a login.

use super::is_safe_uri;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Request, StatusCode};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::{Value, json};
use std::io;

/// Longest answer to a request of a login.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The type of requests for tokens (RFC 6749, section 4.1.3); all others ask for or send JSON.
const FORM_TYPE: &[u8] = b"application/x-www-form-urlencoded";

/// A client that follows no redirect, sends no token in the clear and reads no long answer.
pub(super) struct LoginHttp {
    client: Client,
}

impl LoginHttp {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }
}

impl OAuthHttpClient for LoginHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let OAuthHttpRequest { request, timeout, .. } = request;
            if !is_safe_uri(request.uri()) {
                return Err(
                    "an address of the login is neither https:// nor on this machine".into()
                );
            }
            let is_for_tokens = is_form(request.headers());
            let mut request = Request::try_from(request)?;
            *request.timeout_mut() = timeout;
            let mut response = self.client.execute(request).await?;
            let status = response.status();
            let mut answer = http::Response::builder().status(status);
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(response.headers());
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await? {
                if body.len() + piece.len() > ANSWER_BYTES_MAX {
                    let why = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
                    return Err(io::Error::other(why).into());
                }
                body.extend_from_slice(&piece);
            }
            let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            let is_failed = is_for_tokens && is_passing;
            let body = if is_failed { with_error(&body, status) } else { with_seconds(body) };
            Ok(answer.body(body)?)
        })
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(FORM_TYPE))
}

/// The `answer` to a request for tokens with a `status` after which the next one may succeed, as such an error as OAuth
/// has (RFC 6749, section 4.1.2.1): the SDK says the error of an answer and not its status, and of an answer without
/// one that it can't be parsed.
fn with_error(answer: &[u8], status: StatusCode) -> Vec<u8> {
    let mut about = format!("the authorization server answered with status {}", status.as_u16());
    let written = serde_json::from_slice::<Value>(answer).unwrap_or_default();
    if let Some(error) = written["error"].as_str() {
        about += &format!(": {error}");
    }
    json!({ "error": "temporarily_unavailable", "error_description": about }).to_string().into()
}

/// The JSON `answer` with the lifetime of a token as a number (RFC 6749, section 5.1): some servers write it as a text,
/// which the SDK refuses.
fn with_seconds(answer: Vec<u8>) -> Vec<u8> {
    let Ok(Value::Object(mut members)) = serde_json::from_slice(&answer) else { return answer };
    let text = members.get("expires_in").and_then(Value::as_str);
    let Some(seconds) = text.and_then(|text| text.trim().parse::<u64>().ok()) else {
        return answer;
    };
    members.insert("expires_in".to_owned(), seconds.into());
    serde_json::to_vec(&members).unwrap_or(answer)
}
