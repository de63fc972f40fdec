//! HTTP/1.1 without a proxy. The task that reads a response also polls its connection.
//!
//! The usual client has a task for each connection, which sends each chunk through a channel to the task that reads
//! the response, and wakes it: more work than the chunk itself. Here the response owns its connection until it is read.
//! Then the connection is kept for the next request, without HTTP's buffers, and a task closes it when the server does,
//! or after [`IDLE_MAX`].

use super::connector::{Connect, ConnectError, Io};
use super::woken::Woken;
use crate::support::lock;
use bytes::Bytes;
use futures_util::task::noop_waker_ref;
use http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self, Parts, SendRequest};
use hyper::rt::{Read, ReadBuf, Write};
use reqwest::Url;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::Position;

/// How long a connection without a request is kept.
const IDLE_MAX: Duration = Duration::from_secs(90);

/// Headers of a response: twice as many as a gateway sends that repeats those of the provider behind it. The HTTP
/// library has room for 100 on its stack; for more, it allocates 64 bytes for each of this number whenever it
/// reads a head.
const HEADERS_MAX: usize = 256;

/// A client whose requests go to one provider.
#[derive(Debug)]
pub(in crate::engine) struct Direct {
    connect: Connect,
    idle: Arc<Idle>,
}

/// Reads and writes whenever it is polled; `None` once the connection has ended.
type Work = Option<Pin<Box<http1::Connection<Io, Full<Bytes>>>>>;

/// A connection with the server.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    work: Work,
}

/// Why a request has no response, and the request if the server can't have seen any of it.
type Unsent = (hyper::Error, Option<Request<Full<Bytes>>>);

/// A response whose body is being read, and its connection.
#[derive(Debug)]
pub(in crate::engine) struct Exchange {
    pub(super) response: Response<Incoming>,
    /// `None` once it has gone back to the client.
    connection: Option<Connection>,
    /// Whether the connection has more to do, and its waker.
    woken: Arc<Woken>,
    waker: Waker,
    idle: Arc<Idle>,
}

/// Why a request has no response, or a response no further part.
#[derive(Debug)]
pub(in crate::engine) enum Error {
    Connect(ConnectError),
    Request(http::Error),
    Broken(hyper::Error),
}

impl Error {
    /// What is the matter, in the words of the library.
    pub(super) fn cause(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Connect(ConnectError::Failed(error)) => &**error,
            Self::Connect(error @ ConnectError::TimedOut(_)) => error,
            Self::Request(error) => error,
            Self::Broken(error) => error,
        }
    }
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(error)
    }
}

impl Direct {
    pub(super) fn new(connect: Connect) -> Self {
        Self { connect, idle: Arc::default() }
    }

    /// Sends a request; returns the head of the response. The connection that was used last is used again if
    /// it is still open.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Exchange, Error> {
        let mut request = request(method, url, headers, body).map_err(Error::Request)?;
        if let Some(io) = self.idle.take() {
            match Connection::over(io).await?.send(request).await {
                Ok((response, connection)) => return Ok(self.exchange(response, connection)),
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(error.into()),
            }
        }
        let io = self.connect.to(url).await.map_err(Error::Connect)?;
        let sent = Connection::over(io).await?.send(request).await;
        let (response, connection) = sent.map_err(|(error, _)| error)?;
        Ok(self.exchange(response, connection))
    }

    fn exchange(&self, mut response: Response<Incoming>, connection: Connection) -> Exchange {
        apart(response.headers_mut());
        let woken = Woken::new();
        let waker = Waker::from(Arc::clone(&woken));
        let idle = Arc::clone(&self.idle);
        Exchange { response, connection: Some(connection), woken, waker, idle }
    }
}

/// Copies the values of headers out of the buffer that the connection has read them into, which is used again then.
fn apart(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = copy;
        }
    }
}

impl Connection {
    async fn over(io: Io) -> Result<Self, hyper::Error> {
        let (sender, work) = http1::Builder::new().max_headers(HEADERS_MAX).handshake(io).await?;
        Ok(Self { sender, work: Some(Box::pin(work)) })
    }

    /// Sends `request`; returns the head of the response.
    async fn send(
        mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Self), Unsent> {
        let mut sending = pin!(self.sender.try_send_request(request));
        let work = &mut self.work;
        let sent = poll_fn(|context| {
            advance(work, context);
            sending.as_mut().poll(context)
        });
        match sent.await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => {
                let unsent = error.take_message();
                Err((error.into_error(), unsent))
            }
        }
    }

    /// The socket, with its TLS, if another request may be sent over it.
    fn into_io(mut self) -> Option<Io> {
        advance(&mut self.work, &mut unawaited());
        let work = self.work.take_if(|_| self.sender.is_ready())?;
        let Parts { mut io, read_buf, .. } = Pin::into_inner(work).into_parts();
        // A server that has answered early may be owed a part of the request, which TLS holds.
        let sent = Pin::new(&mut io).poll_flush(&mut unawaited());
        (read_buf.is_empty() && matches!(sent, Poll::Ready(Ok(())))).then_some(io)
    }
}

impl Drop for Connection {
    /// Closes the connection in a task of its own: the system needs longer for it than the end of a cancelled run
    /// for all else.
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(work) });
        }
    }
}

/// Wakes nobody: for what is polled again anyway, or is asked for its state alone.
fn unawaited() -> Context<'static> {
    Context::from_waker(noop_waker_ref())
}

/// Reads and writes as much as the connection can. The response that is read over it ends with an error if the
/// connection does.
fn advance(work: &mut Work, context: &mut Context<'_>) {
    if let Some(working) = work
        && working.as_mut().poll(context).is_ready()
    {
        *work = None;
    }
}

impl Exchange {
    /// The next part of the body; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match poll_fn(|context| self.poll_frame(context)).await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    self.connection = None;
                    return Err(error.into());
                }
                None => {
                    self.keep();
                    return Ok(None);
                }
            }
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // The task is polled for other reasons as well, and taking a part of the body wakes the connection, which is
        // asked for the next part anyway.
        if let Some(connection) = self.connection.as_mut().filter(|_| self.woken.take()) {
            advance(&mut connection.work, &mut Context::from_waker(&self.waker));
        }
        // Only the connection fills the body.
        let polled = Pin::new(self.response.body_mut()).poll_frame(&mut unawaited());
        if polled.is_pending() {
            self.woken.wait(context);
        }
        polled
    }

    /// Keeps the connection for the next request, as its response was read to the end.
    fn keep(&mut self) {
        if let Some(io) = self.connection.take().and_then(Connection::into_io) {
            self.idle.keep(io);
        }
    }
}

/// The connection that no response is read from.
#[derive(Debug, Default)]
struct Idle {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    io: Io,
    /// The task that waits for the connection to be closed.
    watch: Watch,
}

impl Kept {
    /// Ready once the server has closed the connection, or has sent what nobody asked for.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        let mut read = ReadBuf::new(&mut byte);
        Pin::new(&mut self.io).poll_read(context, read.unfilled()).map(drop)
    }
}

/// Ends its task with it.
#[derive(Debug)]
struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Idle {
    fn keep(self: &Arc<Self>, io: Io) {
        // Without a runtime, there is no next request.
        let Ok(runtime) = Handle::try_current() else { return };
        let idle = Arc::downgrade(self);
        let mut kept = self.lock();
        let watching = runtime.spawn(async move {
            let closed = poll_fn(|context| Self::poll_closed(&idle, context));
            timeout(IDLE_MAX, closed).await.ok();
            if let Some(idle) = idle.upgrade() {
                idle.let_go(tokio::task::id());
            }
        });
        *kept = Some(Kept { io, watch: Watch(watching.abort_handle()) });
    }

    /// The connection, if it is open.
    fn take(&self) -> Option<Io> {
        let mut kept = self.lock().take()?;
        kept.poll_closed(&mut unawaited()).is_pending().then_some(kept.io)
    }

    /// Closes the connection that this task watches.
    fn let_go(&self, task: tokio::task::Id) {
        // It may have been taken, and another one kept.
        self.lock().take_if(|kept| kept.watch.0.id() == task);
    }

    fn poll_closed(idle: &Weak<Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(idle) = idle.upgrade() else { return Poll::Ready(()) };
        idle.lock().as_mut().map_or(Poll::Ready(()), |kept| kept.poll_closed(context))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept>> {
        lock(&self.kept)
    }
}

/// The request as HTTP/1.1 has it.
fn request(
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let path: Uri = url[Position::BeforePath..Position::AfterQuery].parse()?;
    let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort])?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = path;
    let all = request.headers_mut();
    all.insert(HOST, host);
    all.insert(USER_AGENT, HeaderValue::from_static(super::USER_AGENT));
    all.insert(ACCEPT, HeaderValue::from_static("*/*"));
    all.extend(login(url).map(|login| (AUTHORIZATION, login)));
    for (name, value) in &headers {
        all.insert(name, value.clone());
    }
    Ok(request)
}

/// The header for the login in `url`, if it has one.
fn login(url: &Url) -> Option<HeaderValue> {
    if !super::has_login(url) {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("Basic {}", super::login_token(url))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests;
