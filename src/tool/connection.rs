//! A connection to one server: the handshake, and what it is asked for (`requests`). Each wait ends with the
//! connection.

mod requests;

pub(crate) use requests::Listings;

use crate::tool::elicitation::{Askable, Asker};
use crate::tool::http::HttpFault;
use crate::tool::incoming;
use crate::tool::progress::{Newest, Reports};
use crate::tool::server_requests::AnsweringTransport;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, ElicitationCapability, ErrorCode,
    FormElicitationCapability, Implementation, ProtocolVersion, ServerResult,
    UrlElicitationCapability,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestHandle,
    RoleClient, RunningService, ServiceError, serve_client,
};
use rmcp::transport::{DynamicTransportError, Transport};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// Time limit for the orderly end of a connection.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// Of a request whose answer is lost, so that the model does not repeat it as one that was not sent.
const UNKNOWN_EFFECT: &str = "whatever was asked for may or may not have been done";

/// How long a call whose connection was closed waits for the reason.
const REASON_MAX: Duration = Duration::from_secs(3);

/// Set by a transport when nothing more comes.
pub(super) type Closed = watch::Sender<Option<Closing>>;

/// Why a server can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotReady {
    /// The connection was closed, or can't be written to; the exit status of the process may say why.
    Closed(String),
    /// The error of the server, or that it did not reply.
    Refused(String),
    /// The server can't be reached, or has a fault of its own: later it may be there.
    Unreached(String),
}

/// Why a transport receives nothing more, if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// It was closed on the other side.
    Remote,
    /// The input can't be parsed any further.
    Fault(String),
}

/// An open connection. The server is notified when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    list_changed: Arc<Notify>,
    closed: watch::Receiver<Option<Closing>>,
    ended: watch::Sender<Option<String>>,
    reports: Reports,
}

/// The part of a connection that a call needs. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Link {
    peer: Peer<RoleClient>,
    closed: watch::Receiver<Option<Closing>>,
    /// Why the connection is no more, once that is known.
    ended: watch::Receiver<Option<String>>,
    reports: Reports,
}

/// Our side, as servers see it: a client that declares no capability but that a person can be asked where one
/// can, so that no server waits for a person who is not there.
#[derive(Debug)]
struct Client {
    config: ClientConfig,
    list_changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.list_changed.notify_one();
        std::future::ready(())
    }
}

impl Client {
    /// Offers `version`, or the latest one that has the handshake which is used here.
    fn new(version: Option<ProtocolVersion>, askable: Askable) -> Self {
        let about = Implementation::new("duologue", env!("CARGO_PKG_VERSION"));
        let version = version.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let mut capabilities = ClientCapabilities::default();
        if askable != Askable::default() {
            let mut elicitation = ElicitationCapability::new();
            elicitation.form = askable.forms.then(FormElicitationCapability::default);
            elicitation.url = askable.urls.then(UrlElicitationCapability::default);
            capabilities.elicitation = Some(elicitation);
        }
        let config = ClientConfig::new(capabilities, about);
        Self { config: config.with_protocol_version(version), list_changed: Arc::default() }
    }
}

impl Connection {
    /// Shakes hands over `transport`, which sets `closed` when nothing more comes. `asker` asks the person what
    /// the server wants to know.
    ///
    /// # Errors
    /// If the server does not answer as it should.
    pub(super) async fn open<T>(
        transport: T,
        version: Option<ProtocolVersion>,
        closed: Closed,
        asker: Option<Asker>,
    ) -> Result<Self, NotReady>
    where
        T: Transport<RoleClient> + 'static,
    {
        let askable = asker.as_ref().map(|asker| asker.questions.askable);
        let client = Client::new(version, askable.unwrap_or_default());
        let list_changed = Arc::clone(&client.list_changed);
        let is_closed = closed.subscribe();
        let reports = Reports::default();
        let transport = AnsweringTransport::new(transport, closed, reports.clone(), asker);
        match serve_client(client, transport).await {
            Ok(service) => {
                let ended = watch::Sender::new(None);
                Ok(Self { service, list_changed, closed: is_closed, ended, reports })
            }
            Err(error) => {
                let fault = fault(&is_closed).map(NotReady::Refused);
                Err(fault.unwrap_or_else(|| not_opened(&error)))
            }
        }
    }

    /// The part of the connection that calls need.
    pub(super) fn link(&self) -> Link {
        let (peer, reports) = (self.service.peer().clone(), self.reports.clone());
        Link { peer, closed: self.closed.clone(), ended: self.ended.subscribe(), reports }
    }

    /// Waits until the server reports a change of its tools. An earlier report counts.
    pub(super) async fn list_changed(&self) {
        self.list_changed.notified().await;
    }

    /// Why there is no list of tools, as far as the connection knows more than `reason`.
    pub(super) fn not_listed(&self, reason: String) -> NotReady {
        let is_closed = self.closed.borrow().is_some();
        match fault(&self.closed) {
            Some(fault) => NotReady::Refused(fault),
            None if is_closed => NotReady::Closed(reason),
            None => NotReady::Refused(reason),
        }
    }

    /// Waits until nothing more comes.
    pub(super) async fn closed(&self) -> Closing {
        let mut closed = self.closed.clone();
        let closing = closed.wait_for(Option::is_some).await.map(|closing| closing.clone());
        // Its sender is gone with the transport.
        closing.ok().flatten().unwrap_or(Closing::Remote)
    }

    /// Ends the connection; open calls fail with `reason`.
    pub(super) async fn close(mut self, reason: &str) {
        self.ended.send_replace(Some(reason.to_owned()));
        // An error would mean that its task panicked: it is closed then as well.
        self.service.close_with_timeout(CLOSE_MAX).await.ok();
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unanswered {
    /// The server does not know its method.
    UnknownMethod(String),
    /// Anything else.
    Failed(String),
}

impl From<String> for Unanswered {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Unanswered> for String {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::UnknownMethod(why) | Unanswered::Failed(why) => why,
        }
    }
}

impl Link {
    /// Sends a request and waits for the answer or the end of the connection. A future that is
    /// dropped meanwhile cancels the request at the server.
    async fn ask(
        &self,
        request: ClientRequest,
        newest: Option<Newest>,
    ) -> Result<Value, Unanswered> {
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_request_with_option(request, options).await;
        let answer = match sent {
            Ok(handle) => {
                let token = &handle.progress_token;
                let _followed = newest.and_then(|newest| self.reports.follow(token, newest));
                self.answer(OpenRequest(Some(handle))).await
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Ok(serde_json::to_value(answer).map_err(|error| error.to_string())?),
            Err(error) if self.is_ending(&error) => {
                // The reason is known a moment after the pipe is closed, when the process has ended.
                let mut ended = self.ended.clone();
                timeout(REASON_MAX, ended.wait_for(Option::is_some)).await.ok();
                Err(self.failed(&error).into())
            }
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                let why = self.failed(&ServiceError::McpError(error));
                Err(Unanswered::UnknownMethod(why))
            }
            Err(error) => Err(self.failed(&error).into()),
        }
    }

    async fn answer(&self, mut open: OpenRequest) -> Result<ServerResult, ServiceError> {
        let mut ended = self.ended.clone();
        let answer = tokio::select! {
            biased;
            answer = open.answer() => answer,
            _ = ended.wait_for(Option::is_some) => Err(ServiceError::TransportClosed),
        };
        // There is nothing left to cancel.
        open.0 = None;
        answer
    }

    fn failed(&self, error: &ServiceError) -> String {
        if let ServiceError::McpError(error) = error {
            let data = error.data.as_ref().map(|data| format!(" ({data})")).unwrap_or_default();
            return format!(
                "the server answered with error {}: {}{data}",
                error.code.0, error.message
            );
        }
        let reason = self.ended.borrow().clone();
        let lost = |why: &str| format!("{why}; {UNKNOWN_EFFECT}");
        match (reason, error) {
            (_, ServiceError::TransportSend(error)) if is_refused(error) => causes(&*error.error),
            (Some(reason), _) => lost(&format!("the server ended before it answered: {reason}")),
            (None, ServiceError::TransportClosed) => lost("the connection was closed"),
            (None, ServiceError::TransportSend(error)) if is_unread(error) => {
                "the server has closed its standard input, so the call did not reach it".to_owned()
            }
            (None, ServiceError::TransportSend(error)) => lost(&causes(&*error.error)),
            (None, error) => error.to_string(),
        }
    }

    /// Whether the connection has ended, or ends: the reason is known a little later. Over HTTP an answer can be lost
    /// without that.
    fn is_ending(&self, error: &ServiceError) -> bool {
        if let ServiceError::TransportSend(error) = error {
            return is_unread(error);
        }
        matches!(error, ServiceError::TransportClosed) && self.closed.borrow().is_some()
    }
}

/// A request whose answer is waited for.
struct OpenRequest(Option<RequestHandle<RoleClient>>);

impl OpenRequest {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.0 {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(async move { handle.cancel(None).await.ok() });
    }
}

/// The fault of a server for which its connection was closed.
fn fault(closed: &watch::Receiver<Option<Closing>>) -> Option<String> {
    match &*closed.borrow() {
        Some(Closing::Fault(why)) => Some(why.clone()),
        Some(Closing::Remote) | None => None,
    }
}

/// Why there is no connection, without the debug text of the SDK.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list of the SDK's errors is open")]
fn not_opened(error: &ClientInitializeError) -> NotReady {
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            return NotReady::Closed("it ended before it was initialized".to_owned());
        }
        ClientInitializeError::TransportError { error, .. } => {
            let why = causes(&*error.error);
            return match error.error.downcast_ref::<HttpFault>() {
                // A server that has lost its new session, as behind a load balancer, may keep the next one.
                Some(HttpFault::Unreached(_) | HttpFault::Lost(_) | HttpFault::SessionEnded(_)) => {
                    NotReady::Unreached(why)
                }
                Some(HttpFault::Refused(_)) => NotReady::Refused(why),
                None => NotReady::Closed(why),
            };
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused to initialize: {}", error.message)
        }
        ClientInitializeError::ExpectedInitResult(Some(ServerResult::CustomResult(result))) => {
            incoming::fault(&result.0)
        }
        ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it did not answer as MCP servers do".to_owned()
        }
        _ => causes(error),
    };
    NotReady::Refused(why)
}

/// Whether the other end is closed, as while a server ends.
fn is_unread(error: &DynamicTransportError) -> bool {
    let kind = error.error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(ErrorKind::BrokenPipe | ErrorKind::NotConnected))
}

/// Whether a server over HTTP has not acted upon the message.
fn is_refused(error: &DynamicTransportError) -> bool {
    let fault = error.error.downcast_ref::<HttpFault>();
    matches!(
        fault,
        Some(HttpFault::Refused(_) | HttpFault::Unreached(_) | HttpFault::SessionEnded(_))
    )
}

/// An error with its causes, each once.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
