//! The other nodes of the fleet: a conversation that one of them holds is reached through it, in one hop.

use super::auth::TENANT_HEADER;
use super::client::Past;
use super::listener::STREAMS_MAX;
use super::node::Wanted;
use super::refusal::{Refusal, RefusalKind};
use super::rpc::{OWN_ONLY_HEADER, RETRY_HEADER};
use crate::protocol::id::SessionId;
use crate::protocol::proto::fleet::converse_request::Message;
use crate::protocol::proto::fleet::fleet_client::FleetClient;
use crate::protocol::proto::fleet::{Attach, ConverseRequest, DeleteRequest, Opening};
use crate::protocol::wire::Frame;
use crate::store::{Namespace, OpenMode};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
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

/// Connections to another node, each of which has as many streams at once as its server allows.
const CONNECTIONS: u64 = 8;

/// Bytes of a stream that its client has not taken yet, and of all streams of a connection: as a client that reads
/// nothing must not hold up the others, the connection has room for what all of its streams may hold.
const STREAM_BYTES_MAX: u32 = 64 * 1024;
const CONNECTION_BYTES_MAX: u32 = STREAM_BYTES_MAX * STREAMS_MAX;

/// How a node speaks to the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerRules {
    /// Its own address, as the others reach it: `http://HOST:PORT`, or `https://…`; `None`: it is alone.
    pub(crate) own: Option<String>,
    /// The token by which nodes know each other.
    pub(crate) token: Option<MetadataValue<Ascii>>,
    /// Certificates (PEM) that the others' are signed by; `None`: those that the system trusts.
    pub(crate) authority: Option<Vec<u8>>,
}

/// The way to the other nodes.
#[derive(Debug)]
pub(super) struct Peers {
    rules: PeerRules,
    /// By the address, and the number of the connection.
    channels: Mutex<HashMap<(String, u64), Channel>>,
}

/// A client that is attached at another node.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) hello: Frame,
    pub(super) frames: Streaming<Frame>,
    pub(super) requests: mpsc::Sender<ConverseRequest>,
}

impl Peers {
    pub(super) fn new(rules: PeerRules) -> Self {
        Self { rules, channels: Mutex::default() }
    }

    pub(super) fn is_own(&self, address: &str) -> bool {
        self.rules.own.as_deref() == Some(address)
    }

    /// Whether this node passes requests on.
    pub(super) fn is_fleet(&self) -> bool {
        self.rules.own.is_some()
    }

    fn client(&self, address: &str, session: &SessionId) -> Result<FleetClient<Channel>, Refusal> {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        let place = (address.to_owned(), hasher.finish() % CONNECTIONS);
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = match channels.get(&place) {
            Some(channel) => channel.clone(),
            None => {
                let why = |error| {
                    Refusal::unavailable(format!("the node {address} can't be reached: {error}"))
                };
                let channel = self.endpoint(address).map_err(why)?.connect_lazy();
                channels.insert(place, channel.clone());
                channel
            }
        };
        Ok(FleetClient::new(channel).max_decoding_message_size(usize::MAX))
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
        let tls = match &self.rules.authority {
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
        if let Some(token) = &self.rules.token {
            metadata.insert("authorization", token.clone());
        }
        Ok(request)
    }

    /// Attaches a client to a conversation that the node at `address` holds.
    pub(super) async fn attach(
        &self,
        address: &str,
        tenant: &Namespace,
        (session, wanted): (&SessionId, &Wanted),
    ) -> Result<Remote, Refusal> {
        let mut client = self.client(address, session)?;
        let (requests, to_send) = mpsc::channel(REQUESTS_MAX);
        let first = ConverseRequest { message: Some(Message::Attach(message(session, wanted))) };
        // There is room for the first.
        requests.try_send(first).ok();
        let mut request = self.signed(ReceiverStream::new(to_send), tenant)?;
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
            Ok(Ok((hello, frames))) => Ok(Remote { hello, frames, requests }),
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
        let deleted = self.client(address, session)?.delete(request).await;
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

/// What another node says, for the client of this one.
pub(super) fn refusal(status: &Status) -> Refusal {
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
        // The connection was lost, or never made.
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

impl Remote {
    pub(super) fn into_parts(
        self,
    ) -> (Arc<Frame>, Streaming<Frame>, mpsc::Sender<ConverseRequest>) {
        (Arc::new(self.hello), self.frames, self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

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
}
