//! How frames are written as the body of a response.

use crate::protocol::json;
use crate::protocol::wire::Frame;
use crate::serve::frame_log::ordinal;
use crate::serve::refusal::{Refusal, RefusalKind};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The type of a stream of JSON Lines.
pub(super) const LINES: &str = "application/x-ndjson";

/// The type of server-sent events.
const EVENTS: &str = "text/event-stream";

/// Time in which no event comes before a comment is sent in its place: proxies end a response that is silent for a
/// minute, as nginx does.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// First line of a stream of events: the milliseconds after which a browser connects again.
const RETRY: &[u8] = b"retry: 2000\n\n";

/// The response header that turns off buffering in nginx.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An item of a stream: a frame, or the refusal with which it ends.
pub(super) type Given = Result<Arc<Frame>, Refusal>;

/// How frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Lines,
    Events,
}

impl Form {
    /// The form that `format` names, or else the headers.
    pub(super) fn of(format: Option<&str>, headers: &HeaderMap) -> Result<Self, Refusal> {
        let accepted = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
        match format {
            Some("lines") => Ok(Self::Lines),
            Some("sse") => Ok(Self::Events),
            None if accepted.is_some_and(|it| it.contains(EVENTS)) => Ok(Self::Events),
            None => Ok(Self::Lines),
            Some(other) => {
                let why = format!("format={other:?}: write lines or sse");
                Err(Refusal::new(RefusalKind::Invalid, why))
            }
        }
    }

    /// A response with these frames.
    pub(super) fn response(
        self,
        first: Option<Given>,
        frames: impl Stream<Item = Given> + Send + 'static,
    ) -> Response {
        let content = match self {
            Self::Lines => LINES,
            Self::Events => EVENTS,
        };
        let lines = stream::iter(first).chain(frames).map(move |given| match given {
            Ok(frame) => self.frame(&frame),
            Err(refusal) => self.refusal(&refusal),
        });
        let lines = match self {
            Self::Lines => lines.boxed(),
            Self::Events => {
                let retry = Bytes::from_static(RETRY);
                stream::iter([retry]).chain(with_comments(lines.boxed())).boxed()
            }
        };
        let headers = [
            (header::CONTENT_TYPE, content),
            (header::CACHE_CONTROL, "no-store"),
            (UNBUFFERED, "no"),
        ];
        (headers, Body::from_stream(lines.map(Ok::<_, Infallible>))).into_response()
    }

    /// A refusal, before there is a stream. A browser's `EventSource` never connects again after another status
    /// than 200 (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), so one that may come again gets a
    /// stream that ends.
    pub(super) fn refused(self, refusal: Refusal) -> Response {
        let may_come_again = match refusal.kind {
            RefusalKind::Unavailable | RefusalKind::Ending | RefusalKind::Exhausted => true,
            RefusalKind::Invalid
            | RefusalKind::NotFound
            | RefusalKind::Exists
            | RefusalKind::Locked
            | RefusalKind::TooLarge
            | RefusalKind::NoStore
            | RefusalKind::Failed
            | RefusalKind::Internal => false,
        };
        match self {
            Self::Events if may_come_again => self.response(Some(Err(refusal)), stream::empty()),
            Self::Events | Self::Lines => refusal.into_response(),
        }
    }

    pub(super) fn frame(self, frame: &Frame) -> Bytes {
        let mut line = Vec::new();
        if self == Self::Events {
            if let Some(at) = ordinal(frame) {
                line.extend_from_slice(format!("id: {}\n", at.0).as_bytes());
            }
            line.extend_from_slice(b"data: ");
        }
        if let Err(error) = json::write_line(frame, &mut line) {
            tracing::error!(%error, "a frame has no JSON; please report it");
            return Bytes::new();
        }
        if self == Self::Events {
            line.push(b'\n');
        }
        line.into()
    }

    /// The refusal with which a stream ends, as its last line: no frame can say it.
    fn refusal(self, refusal: &Refusal) -> Bytes {
        let error = super::error(refusal);
        match self {
            Self::Lines => format!("{error}\n"),
            Self::Events => format!("event: end\ndata: {error}\n\n"),
        }
        .into()
    }
}

/// Server-sent events with a comment as keepalive while there are none, so that no proxy closes the stream as idle.
fn with_comments(events: BoxStream<'static, Bytes>) -> BoxStream<'static, Bytes> {
    let next = |mut events: BoxStream<'static, Bytes>| async move {
        let given = match timeout(COMMENT_INTERVAL, events.next()).await {
            Ok(given) => given?,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((given, events))
    };
    stream::unfold(events, next).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_browser_is_sent_comments_while_nothing_happens() {
        let events = stream::iter([Bytes::from_static(b"data: 1\n\n")]).chain(stream::pending());
        let sent: Vec<_> = with_comments(events.boxed()).take(3).collect().await;
        assert_eq!(sent, ["data: 1\n\n", ":\n\n", ":\n\n"]);
        let all: Vec<_> = with_comments(stream::empty().boxed()).collect().await;
        assert!(all.is_empty());
    }
}
