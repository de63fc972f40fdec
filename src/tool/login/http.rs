//! Sends the requests of a login.

use super::is_safe_uri;
use reqwest::{Client, Request};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use std::io;

/// Longest answer to a request of a login.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

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
            let mut request = Request::try_from(request)?;
            *request.timeout_mut() = timeout;
            let mut response = self.client.execute(request).await?;
            let mut answer = http::Response::builder().status(response.status());
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
            Ok(answer.body(with_seconds(body))?)
        })
    }
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
