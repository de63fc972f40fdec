//! The other nodes of the fleet: a conversation that one of them holds is reached through it, in one hop.

use super::auth::TENANT_HEADER;
use super::client::Past;
use super::credentials::Credentials;
use super::listener::STREAMS_MAX;
use super::node::{Key, Wanted};
use super::refusal::{Refusal, RefusalKind};
use super::rpc::{OWN_ONLY_HEADER, RETRY_HEADER};
use super::tenants::RETRY_AFTER;
use crate::protocol::id::SessionId;
use crate::protocol::proto::fleet::converse_request::Message;
use crate::protocol::proto::fleet::fleet_client::FleetClient;
use crate::protocol::proto::fleet::{Attach, ConverseRequest, DeleteRequest, Opening};
use crate::protocol::wire::Frame;
use crate::store::{Namespace, OpenMode};
use crate::support::lock;
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// Time for a connection to another node, and for its first answer.
const CONNECT_MAX: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(4);

/// Time after which a silent node is asked whether it is there, and for its answer.
const PING_INTERVAL: Duration = Duration::from_secs(3);
const PING_MAX: Duration = Duration::from_secs(3);

/// Requests of a client that are on their way to another node.
const REQUESTS_MAX: usize = 16;

/// Connections to another node at once.
const CONNECTIONS_MAX: usize = 32;

/// Streams of a connection from which on another connection is opened, and streams of a connection at most: the server
/// allows `STREAMS_MAX`, and counts a stream that was ended a moment longer.
const STREAMS_FEW: usize = 128;
const STREAMS_OWN_MAX: usize = STREAMS_MAX as usize - 64;

/// Time after which a connection without a stream is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Bytes that a client has not taken yet of its stream, and of all streams of a connection: the connection has room for
/// all that its streams may hold, as a client that reads nothing must not hold up the others.
const STREAM_BYTES_MAX: u32 = 64 * 1024;
const CONNECTION_BYTES_MAX: u32 = STREAM_BYTES_MAX * STREAMS_MAX;

/// How a node speaks to the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerRules {
    /// The address of this node, as the others reach it: `http://HOST:PORT`, or `https://…`; `None`: there are no
    /// others.
    pub(crate) own: Option<String>,
    pub(crate) credentials: Arc<Credentials>,
}

/// The way to the other nodes.
#[derive(Debug)]
pub(super) struct Peers {
    rules: PeerRules,
    /// Connections by the address of the node. Unused ones are closed when another is asked for: the node may be gone
    /// for good.
    connections: Mutex<HashMap<String, Vec<Connection>>>,
}

/// A connection to another node.
#[derive(Debug)]
struct Connection {
    channel: Channel,
    /// A permit for each stream that may still begin.
    places: Arc<Semaphore>,
    /// When the newest stream of the connection began.
    used: Instant,
}

/// A client that is attached at another node.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) hello: Frame,
    pub(super) frames: Streaming<Frame>,
    pub(super) requests: mpsc::Sender<ConverseRequest>,
    /// The permit of its stream in the connection to the node.
    pub(super) place: OwnedSemaphorePermit,
}

impl Peers {
    pub(super) fn new(rules: PeerRules) -> Self {
        Self { rules, connections: Mutex::default() }
    }

    pub(super) fn is_own(&self, address: &str) -> bool {
        self.rules.own.as_deref() == Some(address)
    }

    /// Whether this node passes requests on.
    pub(super) fn is_fleet(&self) -> bool {
        self.rules.own.is_some()
    }

    /// Closes the connections that nobody uses: the next ones are made with credentials that were read again.
    pub(super) fn drop_unused(&self) {
        let mut all = lock(&self.connections);
        all.values_mut().for_each(|connections| connections.retain(|it| it.streams() > 0));
    }

    /// A client of the node at `address`, for as long as the permit is held.
    fn client(
        &self,
        address: &str,
    ) -> Result<(FleetClient<Channel>, OwnedSemaphorePermit), Refusal> {
        let mut all = lock(&self.connections);
        all.retain(|_, connections| {
            connections.retain(|it| !it.is_idle());
            !connections.is_empty()
        });
        let connections = all.entry(address.to_owned()).or_default();
        let has_room = connections.iter().any(|it| it.streams() < STREAMS_FEW);
        if !has_room && connections.len() < CONNECTIONS_MAX {
            let why = |error| {
                Refusal::unavailable(format!("the node {address} can't be reached: {error}"))
            };
            connections.push(Connection::new(self.endpoint(address).map_err(why)?.connect_lazy()));
        }
        let chosen = connections.iter_mut().min_by_key(|it| it.streams());
        let (channel, place) = chosen.and_then(Connection::take).ok_or_else(|| {
            let why = "as many clients as may be are passed on to the node that holds the conversation; attach again, \
                       at another node or a little later";
            Refusal::exhausted(why, RETRY_AFTER)
        })?;
        Ok((FleetClient::new(channel).max_decoding_message_size(usize::MAX), place))
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(CONNECT_MAX)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_BYTES_MAX)
            .initial_connection_window_size(CONNECTION_BYTES_MAX)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_MAX)
            .keep_alive_while_idle(true);
        let credential = self.rules.credentials.newest();
        let tls = match &credential.authority {
            None if !address.starts_with("https:") => return Ok(endpoint),
            None => ClientTlsConfig::new().with_native_roots(),
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
        };
        endpoint.tls_config(tls)
    }

    fn signed<T>(&self, message: T, tenant: &Namespace) -> Result<Request<T>, Refusal> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        let name = tenant.tenant().parse();
        let defect =
            |_| Refusal::new(RefusalKind::Internal, "the tenant has no name that can be sent");
        metadata.insert(TENANT_HEADER, name.map_err(defect)?);
        if let Some(token) = &self.rules.credentials.newest().token {
            metadata.insert("authorization", token.clone());
        }
        Ok(request)
    }

    /// Attaches a client to a conversation that the node at `address` holds.
    pub(super) async fn attach(
        &self,
        address: &str,
        key: &Key,
        wanted: &Wanted,
    ) -> Result<Remote, Refusal> {
        let (mut client, place) = self.client(address)?;
        let (requests, to_send) = mpsc::channel(REQUESTS_MAX);
        let first =
            ConverseRequest { message: Some(Message::Attach(message(&key.session, wanted))) };
        // There is room for the first.
        requests.try_send(first).ok();
        let mut request = self.signed(ReceiverStream::new(to_send), &key.namespace)?;
        request.metadata_mut().as_mut().extend(wanted.parent.headers());
        if wanted.is_own_only {
            request.metadata_mut().insert(OWN_ONLY_HEADER, MetadataValue::from_static("1"));
        }
        let attaching = async {
            let mut frames = client.converse(request).await?.into_inner();
            let hello = frames.message().await?;
            hello.map(|hello| (hello, frames)).ok_or_else(|| Status::unavailable("no hello"))
        };
        match timeout(ANSWER_MAX, attaching).await {
            Ok(Ok((hello, frames))) => Ok(Remote { hello, frames, requests, place }),
            Ok(Err(status)) => Err(refusal(&status)),
            Err(_) => Err(Refusal::unavailable(format!("the node {address} does not answer"))),
        }
    }

    /// Has the node at `address` delete a conversation.
    pub(super) async fn delete(
        &self,
        address: &str,
        tenant: &Namespace,
        session: &SessionId,
    ) -> Result<(), Refusal> {
        let session_id = session.as_str().to_owned();
        let request = self.signed(DeleteRequest { session_id }, tenant)?;
        let (mut client, _place) = self.client(address)?;
        let deleted = client.delete(request).await;
        deleted.map(drop).map_err(|status| refusal(&status))
    }
}

fn message(session: &SessionId, wanted: &Wanted) -> Attach {
    let opening = match wanted.mode {
        OpenMode::Either => Opening::Either,
        OpenMode::New => Opening::Create,
        OpenMode::Resume => Opening::Resume,
    };
    Attach {
        session_id: session.as_str().to_owned(),
        opening: opening.into(),
        since_ordinal: match wanted.past {
            Past::Since(ordinal) => Some(ordinal.0),
            Past::Snapshot | Past::Nothing => None,
        },
        extensions: wanted.extensions.iter().map(|it| it.as_str().to_owned()).collect(),
        without_past: wanted.past == Past::Nothing,
    }
}

/// The refusal for a client of this node, from the status that another node has given.
pub(super) fn refusal(status: &Status) -> Refusal {
    // The status is of a connection, and not of the node; its text names parts of this program.
    if let Some(error) = status.source() {
        tracing::debug!(%status, %error, "the connection to another node was lost, or not made");
        let why = "the node that holds the conversation can't be reached; try again";
        return Refusal::unavailable(why);
    }
    let kind = match status.code() {
        Code::InvalidArgument => RefusalKind::Invalid,
        Code::NotFound => RefusalKind::NotFound,
        Code::AlreadyExists => RefusalKind::Exists,
        Code::Aborted => RefusalKind::Locked,
        Code::ResourceExhausted => {
            let after =
                status.metadata().get(RETRY_HEADER).and_then(|it| it.to_str().ok()?.parse().ok());
            let after = after.map(Duration::from_millis);
            return match after {
                Some(after) => Refusal::exhausted(status.message(), after),
                None => Refusal::new(RefusalKind::TooLarge, status.message()),
            };
        }
        Code::FailedPrecondition => RefusalKind::Failed,
        Code::Internal => RefusalKind::Internal,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::PermissionDenied
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unavailable
        | Code::DataLoss => RefusalKind::Unavailable,
        Code::Unauthenticated => {
            let why = format!(
                "the node that holds the conversation does not know this one ({}): its --tenants must have the token of \
                 --node-token-file for @nodes",
                status.message()
            );
            return Refusal::new(RefusalKind::Failed, why);
        }
    };
    Refusal::new(kind, status.message())
}

impl Connection {
    fn new(channel: Channel) -> Self {
        Self { channel, places: Arc::new(Semaphore::new(STREAMS_OWN_MAX)), used: Instant::now() }
    }

    fn streams(&self) -> usize {
        STREAMS_OWN_MAX - self.places.available_permits()
    }

    fn is_idle(&self) -> bool {
        self.streams() == 0 && self.used.elapsed() > IDLE_MAX
    }

    /// Takes the permit for a stream, if there is one left.
    fn take(&mut self) -> Option<(Channel, OwnedSemaphorePermit)> {
        self.used = Instant::now();
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some((self.channel.clone(), place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[test]
    fn a_lost_connection_is_told_in_words_for_clients() {
        let lost = Status::from_error("error reading a body from connection".into());
        let internal = Status::internal("h2 protocol error: http2 error");
        for (status, kind, word) in [
            (lost, RefusalKind::Unavailable, "can't be reached"),
            (Status::unavailable("attach again"), RefusalKind::Unavailable, "attach again"),
            (internal, RefusalKind::Internal, "http2"),
        ] {
            let refusal = refusal(&status);
            assert_eq!(refusal.kind, kind);
            assert!(refusal.message.contains(word), "{refusal:?}");
        }
    }

    /// The first byte of a TLS handshake (RFC 8446, section 5.1).
    const HANDSHAKE: u8 = 22;

    #[tokio::test]
    async fn a_node_with_tls_is_reached_with_the_roots_of_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("https://{}", listener.local_addr().expect("an address"));
        let peers = Peers::new(PeerRules::default());
        let connecting = peers.endpoint(&address).expect("an endpoint");
        let connecting = tokio::spawn(async move { connecting.connect().await });
        let accepted = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.read_u8().await.expect("a byte")
        };
        let first = timeout(CONNECT_MAX, accepted).await.expect("it connects");
        assert_eq!(first, HANDSHAKE);
        connecting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn connections_have_as_many_streams_as_they_may_and_go_when_nobody_uses_them() {
        const NODE: &str = "http://127.0.0.1:1";
        let peers = Peers::new(PeerRules::default());
        let streams = |address: &str| -> Vec<usize> {
            let all = peers.connections.lock().expect("no panic");
            all.get(address).into_iter().flatten().map(Connection::streams).collect()
        };
        let take = |address: &str| peers.client(address).map(|(_, place)| place);
        let few: Vec<_> = (0..STREAMS_FEW).map(|_| take(NODE).expect("a place")).collect();
        assert_eq!(streams(NODE), [STREAMS_FEW]);
        let more: Vec<_> = (0..STREAMS_MAX).map(|_| take(NODE).expect("a place")).collect();
        assert!(streams(NODE).len() > 1 && streams(NODE).iter().all(|it| *it <= STREAMS_OWN_MAX));
        let rest = CONNECTIONS_MAX * STREAMS_OWN_MAX - few.len() - more.len();
        let rest: Vec<_> = (0..rest).map(|_| take(NODE).expect("a place")).collect();
        assert_eq!(streams(NODE), [STREAMS_OWN_MAX; CONNECTIONS_MAX]);
        assert_eq!(take(NODE).expect_err("no place").kind, RefusalKind::Exhausted);
        drop((few, more, rest));
        drop(take(NODE).expect("a place"));
        assert_eq!(streams(NODE), [0; CONNECTIONS_MAX]);
        tokio::time::advance(IDLE_MAX * 2).await;
        drop(take("http://127.0.0.1:2").expect("a place"));
        assert_eq!(streams(NODE), [0; 0], "its address may be none any more");
    }
}
