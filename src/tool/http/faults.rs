//! Why a message to a server over HTTP has no answer, for people, and whether the server may have acted upon it.

use crate::engine::provider::http::proxy;
use crate::engine::shown_address;
use crate::support::lock;
use crate::tool::connection::{Closed, Closing, causes};
use crate::tool::http_streams::UNAUTHORIZED;
use crate::tool::login;
use reqwest::Url;
use reqwest::header::AUTHORIZATION;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;
use std::sync::Mutex;

/// What servers say that know streamable HTTP at another address only, or not at all.
const NO_ENDPOINT: &str = "there is no streamable HTTP at this address; it may be a server of the older transport \
                           `sse`, which is not supported";

/// The beginnings of what the SDK says of the status of such answers.
const NO_ENDPOINT_STATUSES: [&str; 2] = ["HTTP 404", "HTTP 405"];

/// The beginning of what the SDK says of an answer with a status that rejects the message.
const REJECTED_STATUSES: &str = "HTTP 4";

/// The beginnings for those of them with which a message may have been acted upon: its time was over, or the
/// connection was closed.
const UNFINISHED_STATUSES: [&str; 2] = ["HTTP 408", "HTTP 499"];

/// The one status from 400 to 499 that the SDK returns as a number.
const TOO_MANY_REQUESTS: u16 = 429;

/// Why a connection is closed whose session is unknown to the server.
const SESSION_ENDED: &str =
    "it answered with status 404, or with an error that says so: it no longer knows the session";

/// Why a message has no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::tool) enum HttpFault {
    /// The session is unknown to the server, as after a restart of its own, so that it has not acted upon the message.
    #[error("{}, and nothing was done", SESSION_ENDED)]
    SessionEnded(ClosesConnection),
    /// The message was not sent, as the server can't be reached.
    #[error("{0}")]
    Unreached(String),
    /// The message was not sent, or not accepted: the server has not acted upon it.
    #[error("{0}")]
    Refused(String),
    /// The server may have acted upon the message.
    #[error("{0}")]
    Lost(String),
}

/// Closes the connection when the fault is dropped: the call has its own fault by then, and not that the connection
/// was closed. The server is connected to anew, with a new session and a new list of its tools.
#[derive(Debug)]
pub(in crate::tool) struct ClosesConnection(Closed);

impl Drop for ClosesConnection {
    fn drop(&mut self) {
        self.0.send_replace(Some(Closing::Fault(SESSION_ENDED.to_owned())));
    }
}

/// How a server is reached, as far as people are told.
#[derive(Debug)]
pub(in crate::tool) struct Access {
    url: String,
    closed: Closed,
    /// The configuration has an `Authorization`, in the place of a login.
    has_own_header: bool,
    /// The configuration has a header or a query, which may be a key.
    has_own_key: bool,
    /// Why the notification that ends the handshake was not accepted. The SDK logs that, and says that its channel is
    /// closed.
    handshake: Mutex<Option<HttpFault>>,
}

impl Access {
    /// `closed` is set when the server no longer knows the session.
    pub(super) fn new<'n>(
        url: &Url,
        headers: impl Iterator<Item = &'n str>,
        closed: Closed,
    ) -> Self {
        let headers: Vec<_> = headers.collect();
        Self {
            url: shown(url),
            closed,
            has_own_header: headers
                .iter()
                .any(|it| it.eq_ignore_ascii_case(AUTHORIZATION.as_str())),
            has_own_key: !headers.is_empty() || url.query().is_some(),
            handshake: Mutex::default(),
        }
    }

    /// Keeps the `error` of the notification that ends the handshake, if it has one, as what it means.
    pub(in crate::tool) fn note_handshake(
        &self,
        error: Option<&StreamableHttpError<reqwest::Error>>,
    ) {
        let fault = error.map(|error| self.fault(error, false));
        *lock(&self.handshake) = fault;
    }

    /// What `error` means. `is_first`: of the first message to the server.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the list of the SDK's errors is open")]
    pub(super) fn fault(
        &self,
        error: &StreamableHttpError<reqwest::Error>,
        is_first: bool,
    ) -> HttpFault {
        match error {
            StreamableHttpError::SessionExpired => {
                HttpFault::SessionEnded(ClosesConnection(self.closed.clone()))
            }
            StreamableHttpError::Client(error) => unanswered(error),
            StreamableHttpError::AuthRequired(error) => {
                let is_challenged = !error.www_authenticate_header.starts_with(UNAUTHORIZED);
                HttpFault::Refused(format!("{} ({error})", self.login_required(is_challenged)))
            }
            StreamableHttpError::InsufficientScope(error) => {
                let scope = error.required_scope.as_deref();
                HttpFault::Refused(format!("{} ({error})", self.forbidden(scope)))
            }
            StreamableHttpError::Auth(auth) if login::is_passing(auth) => {
                HttpFault::Unreached(causes(error))
            }
            StreamableHttpError::Auth(_) | StreamableHttpError::ReservedHeaderConflict(_) => {
                HttpFault::Refused(causes(error))
            }
            StreamableHttpError::UnexpectedServerResponse(what)
                if is_first && NO_ENDPOINT_STATUSES.iter().any(|it| what.starts_with(it)) =>
            {
                HttpFault::Refused(format!("{NO_ENDPOINT} ({what})"))
            }
            StreamableHttpError::UnexpectedServerResponse(what) if is_rejected(what) => {
                HttpFault::Refused(causes(error))
            }
            StreamableHttpError::HttpStatus(status) if status.status == TOO_MANY_REQUESTS => {
                HttpFault::Refused(causes(error))
            }
            StreamableHttpError::TransportChannelClosed => {
                let handshake = lock(&self.handshake).take();
                handshake.unwrap_or_else(|| HttpFault::Lost(causes(error)))
            }
            _ => HttpFault::Lost(causes(error)),
        }
    }

    /// The server has answered with status 401, and perhaps said which login it takes.
    fn login_required(&self, is_challenged: bool) -> String {
        if self.has_own_header {
            return "it has not accepted the `Authorization` of its `headers`".to_owned();
        }
        let why = match self.has_own_key && !is_challenged {
            true => {
                "it has not accepted the `headers` or query that it was sent, or requires a login"
            }
            false => "it requires a login, or has not accepted the one that it was sent",
        };
        format!("{why}; `duologue mcp login {}` makes one", self.url)
    }

    /// The server has answered with status 403, and perhaps named a `scope`.
    fn forbidden(&self, scope: Option<&str>) -> String {
        match (scope, self.has_own_header) {
            (_, true) => "the `Authorization` of its `headers` does not permit this".to_owned(),
            (None, false) => "the login does not permit this".to_owned(),
            (Some(scope), false) => format!(
                "the login does not permit this, which needs the scope {scope:?}; \
                 `duologue mcp login {}` with this scope makes one that does",
                self.url
            ),
        }
    }
}

/// Whether `what`, which the SDK says of an answer, is that the server has rejected the message.
fn is_rejected(what: &str) -> bool {
    let is_unfinished = UNFINISHED_STATUSES.iter().any(|it| what.starts_with(it));
    what.starts_with(REJECTED_STATUSES) && !is_unfinished
}

/// What an error of the HTTP client means.
fn unanswered(error: &reqwest::Error) -> HttpFault {
    match error.source() {
        // The rest of its text has the address from which it leads.
        Some(why) if error.is_redirect() => HttpFault::Refused(why.to_string()),
        Some(_) | None if error.is_connect() => HttpFault::Unreached(unreached(error)),
        Some(_) | None if error.is_builder() => HttpFault::Refused(causes(error)),
        Some(_) | None => HttpFault::Lost(causes(error)),
    }
}

/// That no connection could be made, and what to check.
fn unreached(error: &reqwest::Error) -> String {
    let advice = match error.url().and_then(proxy) {
        Some(proxy) => format!(
            "it can't be reached through the proxy {}: check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or exempt its \
             host with NO_PROXY",
            shown_address(&proxy)
        ),
        None => "it can't be reached: check that it runs, its address, and your network".to_owned(),
    };
    format!("{advice} ({})", causes(error))
}

/// `url` for people: others can make one whose query is a key.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for addresses that have no host, and so neither of them.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    shown.set_fragment(None);
    shown.set_query(url.query().map(|_| "..."));
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::transport::auth::AuthError;
    use rmcp::transport::streamable_http_client::HttpStatusError;

    fn access() -> Access {
        let url = Url::parse("http://127.0.0.1/mcp").expect("a URL");
        Access::new(&url, std::iter::empty(), Closed::new(None))
    }

    #[test]
    fn a_login_that_can_not_be_refreshed_now_may_be_later_unless_that_was_refused() {
        for (why, is_passing) in [
            ("Request failed", true),
            ("Server returned error response: temporarily_unavailable: status 500", true),
            ("Server returned error response: server_error", true),
            ("Failed to parse server response", false),
            ("Server returned error response: bad_refresh_token", false),
            ("Server returned error response: invalid_client: unknown", false),
            ("Server returned error response: unauthorized_client", false),
        ] {
            let error = AuthError::TokenRefreshFailed(why.to_owned());
            let fault = access().fault(&StreamableHttpError::Auth(error), false);
            assert_eq!(matches!(fault, HttpFault::Unreached(_)), is_passing, "{why}");
            assert_eq!(matches!(fault, HttpFault::Refused(_)), !is_passing, "{why}");
        }
    }

    #[test]
    fn a_message_that_is_rejected_was_not_acted_upon() {
        let access = access();
        let answered = |what: &str| {
            StreamableHttpError::UnexpectedServerResponse(format!("HTTP {what}: no").into())
        };
        let status = |status| StreamableHttpError::HttpStatus(HttpStatusError::new(status, None));
        for (error, is_refused) in [
            (answered("400 Bad Request"), true),
            (answered("401 Unauthorized"), true),
            (answered("403 Forbidden"), true),
            (answered("404 Not Found"), true),
            (answered("405 Method Not Allowed"), true),
            (answered("413 Payload Too Large"), true),
            (answered("415 Unsupported Media Type"), true),
            (status(429), true),
            (answered("408 Request Timeout"), false),
            (answered("499 <unknown status code>"), false),
            (status(500), false),
            (status(503), false),
            (StreamableHttpError::UnexpectedServerResponse("empty sse stream".into()), false),
        ] {
            let fault = access.fault(&error, false);
            assert_eq!(matches!(fault, HttpFault::Refused(_)), is_refused, "{error}");
            assert_eq!(matches!(fault, HttpFault::Lost(_)), !is_refused, "{error}");
        }
    }
}
