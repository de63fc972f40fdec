//! Accepts the connections of a node, serves gRPC and HTTP on them, and ends the node: first it takes no new
//! conversations, then the runs have their time, and then it ends whatever is left.

use super::after_others::AfterOthers;
use super::auth::{Caller, Fingerprint, fingerprint};
use super::http;
use super::node::Node;
use super::refusal::{Refusal, STORE_UNUSABLE};
use super::rpc::{self, Rpc};
use super::services::Services;
use super::tls::Certificates;
use super::traces::Traces;
use crate::protocol::proto::fleet::DESCRIPTORS;
use crate::protocol::proto::fleet::fleet_server::FleetServer;
use crate::session::{ExitCode, Signal};
use crate::store::{
    FileFault, HEARTBEAT_MAX, Inspected, Library, StorePlace, advertise, fault_of_file,
    taken_sessions,
};
use crate::support::lock;
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::transport::{Finish, Signals, Stdio};
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::convert::Infallible;
use std::fs::File;
use std::future::pending;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tonic::Status;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

/// Time after which a silent client is asked whether it is there, and for its answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_MAX: Duration = Duration::from_secs(10);

/// Time for the handshake of TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Time in which a connection of HTTP/1 may be idle between two requests, and for the head of the next one: longer than
/// proxies and clients hold one for their next request.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// Time limit for the first request of a connection. An HTTP/2 client that connects ahead of its first call gets GOAWAY
/// then, and connects again for the call.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(30);

/// Connections of a node at once, where the system allows so many open files: further ones wait with the system until
/// one has ended.
const CONNECTIONS_MAX: usize = 20_000;

/// Open files that a node has the system allow, as far as its hard limit goes. Not more: some programs that tool
/// servers run close as many at their start.
const OPEN_FILES_WANTED: u64 = 32_768;

/// The part of the open files that connections leave to providers, stores and tool servers, and the least of it.
const OPEN_FILES_RESERVED: u64 = 4;
const OPEN_FILES_RESERVED_MIN: u64 = 64;

/// Streams of a connection at once.
pub(super) const STREAMS_MAX: u32 = 1024;

/// Bytes of requests that wait in a stream, and in all streams of a connection: a connection of another node carries
/// the streams of many clients, and a client that sends more than is taken must not hold up the others.
const STREAM_BYTES_MAX: u32 = 256 * 1024;
const CONNECTION_BYTES_MAX: u32 = STREAM_BYTES_MAX * 64;

/// TCP keepalive for HTTP/1, which has no ping of its own: time between two probes of a silent client, and how many of
/// them may go without an answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES_MAX: u32 = 2;

/// Time before the next attempt to accept a connection after the system had no room for one.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Time between two looks at the clock, and between two that are a pause: the leases of a process are valid for
/// longer.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = HEARTBEAT_MAX.saturating_sub(Duration::from_secs(3));

/// Time between two warnings of calls that are not served.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(60);

/// The service of a node in health checks; the empty name is the node as a whole.
const SERVICE: &str = "duologue.fleet.v1.Fleet";

/// Why a node does not begin.
type NotBegun = (ExitCode, String);

/// Serves clients until a signal ends the process.
pub(crate) async fn serve(stdio: Stdio, signals: &mut Signals, services: Services) -> Finish {
    match begin(stdio, services).await {
        Ok(begun) => {
            serve_until(begun, signals).await;
            Finish { status: ExitCode::Ok.number(), complaint: None }
        }
        Err((code, why)) => Finish { status: code.number(), complaint: Some(why) },
    }
}

/// A node that listens, and the state of its health.
struct Begun {
    node: Arc<Node>,
    listener: TcpListener,
    health: HealthReporter,
    router: Router,
    connections_max: usize,
}

/// Listens, and says where.
async fn begin(stdio: Stdio, mut services: Services) -> Result<Begun, NotBegun> {
    let traces = services.collector.as_ref().map(Traces::new).transpose().map_err(|error| {
        (ExitCode::Usage, format!("--otlp-endpoint: traces can't be sent there: {error:#}"))
    })?;
    check_stores(&services.places)?;
    let connections_max = allow_connections();
    let address = services.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let why = format!(
            "--listen: {address} can't be listened on: {error}; name another address, or end what uses it"
        );
        (ExitCode::Usage, why)
    })?;
    let internal = |why: String| (ExitCode::Internal, why);
    let address = announce(&listener, services.certificates.is_some(), stdio.output);
    let address = address.map_err(|error| internal(error.to_string()))?;
    if let Some(own) = &mut services.peers.own {
        // The port that the system has chosen.
        if let Some(host) = own.strip_suffix(":0") {
            *own = format!("{host}:{}", address.port());
        }
        advertise(own.clone());
    }
    let node = Node::new(services, traces);
    let (health, router) = router(&node).await.map_err(internal)?;
    Ok(Begun { node, listener, health, router, connections_max })
}

/// Checks the files that conversations are to be stored in. A fault that may be mended while the node runs, as a full
/// disk, is only logged. A database server may come later: it is asked beside the start of the node.
fn check_stores(places: &[StorePlace]) -> Result<(), NotBegun> {
    for fault in places.iter().filter_map(fault_of_file) {
        match fault {
            FileFault::Lasting(why) => return Err((ExitCode::Usage, why)),
            FileFault::Passing(why) => tracing::warn!("{STORE_UNUSABLE}: {}", escape_control(&why)),
        }
    }
    let servers = places.iter().filter(|place| place.path().is_none());
    let servers: Vec<_> = servers.cloned().collect();
    if servers.is_empty() {
        return Ok(());
    }
    let ask = move || {
        for Inspected { found, .. } in Library::new(servers).inspect(true) {
            if let Some(Err(why)) = found {
                tracing::warn!("{STORE_UNUSABLE}: {why}");
            }
        }
    };
    threads::spawn("serve-store", ask).map_err(|error| (ExitCode::Internal, error.to_string()))
}

/// Serves clients until a signal comes, and then ends the node.
async fn serve_until(begun: Begun, signals: &mut Signals) {
    let Begun { node, listener, health, router, connections_max } = begun;
    let pauses = tokio::spawn(watch_pauses(Arc::clone(&node)));
    let losses = tokio::spawn(watch_losses(Arc::clone(&node)));
    let turns = Arc::clone(&node.turns);
    let turns = tokio::spawn(async move { turns.give().await });
    let (stage, at_stage) = watch::channel(Stage::Serving);
    let (open, mut closed) = mpsc::channel::<Infallible>(1);
    let connections = Connections { node: Arc::clone(&node), stage: at_stage, _open: open };
    let accepting = tokio::spawn(accept(listener, router, connections, connections_max));
    let signal = end_asked(signals, &node).await;
    tracing::info!(%signal, "the node takes no more conversations and ends after its runs");
    tokio::select! {
        biased;
        // A second signal does not wait for anything.
        _ = end_asked(signals, &node) => {}
        () = async {
            set_not_ready(&health).await;
            stage.send_replace(Stage::Draining);
            node.drain().await;
            tracing::info!("the node holds no conversation any more, and ends its connections");
            accepting.abort();
            stage.send_replace(Stage::Drained);
            // The last frames of the streams: no connection is left once this channel is closed.
            match timeout(node.services.times.flush, closed.recv()).await {
                Ok(_) => tracing::info!("all connections have ended"),
                Err(_) => tracing::warn!("connections that their clients have not ended are cut"),
            }
        } => {}
    }
    pauses.abort();
    losses.abort();
    turns.abort();
    // This blocks, and sends with this runtime.
    spawn_blocking(move || node.traces.iter().for_each(Traces::finish)).await.ok();
}

/// Has the system allow as many open files as a node needs; gives how many connections it may have at once.
fn allow_connections() -> usize {
    let limits = getrlimit(Resource::Nofile);
    let wanted = limits.maximum.map_or(OPEN_FILES_WANTED, |most| most.min(OPEN_FILES_WANTED));
    if limits.current.is_some_and(|files| files < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limits })
    {
        tracing::debug!(%error, "the limit of open files stays");
    }
    let files = getrlimit(Resource::Nofile).current;
    let max = connections_max(files);
    if let Some(files) = files.filter(|_| max < CONNECTIONS_MAX) {
        tracing::warn!(
            "the node has at most {max} connections at once, as the system allows it {files} open files; raise that \
             (LimitNOFILE of systemd, ulimit -n) if more clients come"
        );
    }
    max
}

/// How many connections a node may have at once that may have so many open files; `None`: any number.
fn connections_max(files: Option<u64>) -> usize {
    let Some(files) = files else { return CONNECTIONS_MAX };
    let reserved = (files / OPEN_FILES_RESERVED).max(OPEN_FILES_RESERVED_MIN);
    let max = usize::try_from(files.saturating_sub(reserved)).unwrap_or(CONNECTIONS_MAX);
    max.clamp(1, CONNECTIONS_MAX)
}

/// Waits for a signal that ends the node.
async fn end_asked(signals: &mut Signals, node: &Node) -> Signal {
    loop {
        let signal = signals.next().await;
        if signal != Signal::Hangup {
            return signal;
        }
        reload(node);
    }
}

/// Reads the files again that may have been renewed: of the tenants, the keys of tokens, the certificates, and the
/// token of the nodes. A file that can't be read leaves in place what was read of it before.
fn reload(node: &Node) {
    let Services { authority, certificates, peers, .. } = &node.services;
    let certificates = certificates.as_ref().map_or(Ok(()), Certificates::reload);
    let all = authority.reload().into_iter().chain([certificates, peers.credentials.reload()]);
    node.peers.drop_unused();
    let errors: Vec<_> = all.filter_map(Result::err).collect();
    node.end_unserved(|tenant| authority.serves(tenant));
    for error in &errors {
        tracing::error!("not all was read again, and the node goes on as before: {error:#}");
    }
    if errors.is_empty() {
        tracing::info!("the tenants, keys and certificates were read again");
    }
}

/// Notices that the process did not run for so long that other nodes may have taken its conversations.
async fn watch_pauses(node: Arc<Node>) {
    let is_shared = |place: &StorePlace| matches!(place, StorePlace::Postgres(_));
    if !node.services.places.iter().any(is_shared) {
        return;
    }
    loop {
        let before = Instant::now();
        sleep(LOOK_INTERVAL).await;
        if before.elapsed() > PAUSE_MAX {
            tracing::warn!("the process was stopped for a while, and lets go of its conversations");
            node.was_paused();
        }
    }
}

/// Lets go of the conversations that other nodes have taken while the database had not heard of this one.
async fn watch_losses(node: Arc<Node>) {
    let mut taken = taken_sessions();
    while let Some(sessions) = taken.recv().await {
        let count = sessions.len();
        tracing::warn!(
            count,
            "other nodes have taken conversations of this one, which lets go of them"
        );
        node.has_lost(&sessions);
    }
}

/// Writes the address that is listened on to standard output, for whoever has started the process.
fn announce(listener: &TcpListener, is_tls: bool, mut output: File) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let scheme = if is_tls { "https" } else { "http" };
    if let Err(error) = output.write_all(format!("listening on {scheme}://{address}\n").as_bytes())
    {
        tracing::debug!(%error, "nobody reads the address that is listened on");
    }
    Ok(address)
}

async fn router(node: &Arc<Node>) -> Result<(HealthReporter, Router), String> {
    let (health, checked) = health_reporter();
    health.set_service_status(SERVICE, ServingStatus::Serving).await;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflected = reflection().build_v1().map_err(|error| error.to_string())?;
    // The older name of the service, for which clients of some years ago ask, as ghz does.
    let reflected_alpha = reflection().build_v1alpha().map_err(|error| error.to_string())?;
    let fleet = FleetServer::new(Rpc { node: Arc::clone(node) })
        .max_decoding_message_size(node.services.request_bytes_max);
    let routes = Routes::new(fleet).add_service(reflected).add_service(reflected_alpha);
    // In place of tonic's own fallback, whose answer is 200 also for who does not speak gRPC.
    let router = routes.into_axum_router().fallback(unknown).merge(http::router(node));
    let router = router.layer(middleware::from_fn_with_state(Arc::clone(node), authenticate));
    // Programs that watch a node have no token.
    Ok((health, router.merge(health_checks(checked)).merge(http::watched(node))))
}

fn health_checks<T: Health>(checked: HealthServer<T>) -> Router {
    Router::new().route_service(&format!("/{}/{{*rest}}", HealthServer::<T>::NAME), checked)
}

/// Answers a request to an address that does not exist.
async fn unknown(request: Request) -> Response {
    let refusal = http::nothing_here();
    if is_grpc(&request) {
        Status::unimplemented(refusal.message).into_http()
    } else {
        refusal.into_response()
    }
}

/// Lets requests of callers through that the node serves.
async fn authenticate(State(node): State<Arc<Node>>, mut request: Request, next: Next) -> Response {
    let certificate = request.extensions().get::<Certificate>().map(|it| it.0);
    let Services { authority, peers, .. } = &node.services;
    let caller = authority.caller(request.headers(), request.uri(), certificate, peers);
    match caller {
        Ok(caller) => {
            if let Err(refusal) = admit(&node, &caller) {
                return match is_grpc(&request) {
                    true => rpc::status(refusal).into_http(),
                    false => http::refused(&request, refusal),
                };
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(why) => {
            note_unknown(&node, &request, why);
            match is_grpc(&request) {
                true => Status::unauthenticated(why).into_http(),
                false => http::unauthenticated(why),
            }
        }
    }
}

/// Counts a call that was not authenticated, and logs it, now and then as a warning.
fn note_unknown(node: &Node, request: &Request, why: &str) {
    let peer = request.extensions().get::<Peer>().map(|it| it.0.to_string());
    let peer = peer.unwrap_or_default();
    let counts = &node.counts;
    let total = counts.unauthenticated_total.fetch_add(1, Ordering::Relaxed) + 1;
    let mut warned = lock(&counts.unauthenticated_warned);
    if warned.is_some_and(|at| at.elapsed() < UNKNOWN_INTERVAL) {
        tracing::debug!(peer, "a call was not served: {why}");
    } else {
        *warned = Some(Instant::now());
        tracing::warn!(peer, total, "a call was not served: {why}");
    }
}

fn is_grpc<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Counts a call for its tenant. A call that another node passes on was counted there.
fn admit(node: &Node, caller: &Caller) -> Result<(), Refusal> {
    if caller.is_node { Ok(()) } else { node.tenants.get_or_insert(&caller.tenant).admit(1) }
}

/// The address that a connection comes from.
#[derive(Clone, Copy)]
struct Peer(SocketAddr);

/// The hash of the certificate that a client has shown.
#[derive(Clone, Copy)]
struct Certificate(Fingerprint);

/// How far a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    /// The runs of the node have their time to end.
    Draining,
    /// The node has no conversation any more.
    Drained,
}

/// State that all connections of a node share.
#[derive(Clone)]
struct Connections {
    node: Arc<Node>,
    stage: watch::Receiver<Stage>,
    /// Dropped with each connection; at its end the node waits until all are.
    _open: mpsc::Sender<Infallible>,
}

async fn accept(listener: TcpListener, router: Router, connections: Connections, max: usize) {
    let room = Arc::new(Semaphore::new(max));
    loop {
        if room.available_permits() == 0 {
            tracing::warn!("there are {max} connections, and further ones wait");
        }
        // Nobody closes it.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connected = connect(stream, router.clone(), connections.clone());
                tokio::spawn(AfterOthers::new(async move {
                    connected.await;
                    drop(place);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Serves a connection, over TLS if the node has certificates.
async fn connect(stream: TcpStream, router: Router, connections: Connections) {
    // Frames are small, and each is to arrive at once.
    stream.set_nodelay(true).ok();
    if let Err(error) = probe(&stream) {
        tracing::debug!(%error, "a client that has gone is noticed only when something is written for it");
    }
    let peer = stream.peer_addr().ok().map(Peer);
    // Ends a connection of HTTP/1 whose client reads nothing.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(connections.node.services.times.unread));
    let stream = Box::pin(stream);
    let Some(certificates) = &connections.node.services.certificates else {
        return speak(stream, router, peer, connections.stage.clone()).await;
    };
    match timeout(HANDSHAKE_MAX, certificates.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => {
            let presented = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let presented = presented.map(|certificate| Certificate(fingerprint(certificate)));
            let router = match presented {
                None => router,
                Some(certificate) => router.layer(Extension(certificate)),
            };
            speak(stream, router, peer, connections.stage.clone()).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a connection without TLS that can be used"),
        Err(_) => tracing::debug!("a connection without TLS that can be used: it took too long"),
    }
}

/// Has the system ask a silent client whether it is there.
fn probe(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PING_INTERVAL)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, PROBES_MAX)
}

/// Serves HTTP on a connection. A connection that is open when the node begins to drain is told to make no more
/// requests here; one that comes later brings a client back to its run, and is told so in the end. A connection over
/// which no request comes is ended too: until its client has said which protocol it speaks, nothing else ends it.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static + Send,
    router: Router,
    peer: Option<Peer>,
    mut stage: watch::Receiver<Stage>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_MAX)
        .initial_stream_window_size(STREAM_BYTES_MAX)
        .initial_connection_window_size(CONNECTION_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    let (service, has_asked) = (TowerToHyperService::new(router), Arc::new(AtomicBool::new(false)));
    let asked = Arc::clone(&has_asked);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let outlives_client = !is_grpc(&request) && http::outlives_client(&request);
        let answer = service.call(request);
        // Hyper drops the answer with the connection, also one that it has not polled yet.
        let answer = match outlives_client {
            true => tokio::spawn(answer).left_future(),
            false => answer.map(Ok).right_future(),
        };
        async move {
            let Ok(response) = answer.await?;
            Ok::<_, JoinError>(response)
        }
    });
    let silent = async {
        sleep(FIRST_REQUEST_MAX).await;
        if has_asked.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        tracing::debug!("nothing was asked for over a connection, which is ended");
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = left(&mut stage) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = silent => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection was lost");
    }
}

/// Waits until the node leaves the stage that it is at.
async fn left(stage: &mut watch::Receiver<Stage>) {
    let at = *stage.borrow_and_update();
    // A stage that nobody can change any more is the end.
    stage.wait_for(|stage| *stage > at).await.map(drop).ok();
}

async fn set_not_ready(health: &HealthReporter) {
    health.set_service_status(SERVICE, ServingStatus::NotServing).await;
    health.set_service_status("", ServingStatus::NotServing).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// All bytes that answer `sent` over a connection, once it has ended.
    async fn answer(sent: &[u8]) -> String {
        let answered = || async {
            // Longer than a connection may be silent.
            sleep(FIRST_REQUEST_MAX * 2).await;
            "answered"
        };
        let (mut client, stream) = duplex(1024);
        let (_stage, at_stage) = watch::channel(Stage::Serving);
        client.write_all(sent).await.expect("it is sent");
        let router = Router::new().route("/", get(answered));
        let spoken = speak(stream, router, None, at_stage);
        timeout(FIRST_REQUEST_MAX * 2 + IDLE_MAX * 2, spoken).await.expect("it ends");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an end");
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_be_idle_for_a_while_between_two_requests() {
        let (mut client, stream) = duplex(1024);
        let (_stage, at_stage) = watch::channel(Stage::Serving);
        let router = Router::new().route("/", get(async || "answered"));
        let spoken = tokio::spawn(speak(stream, router, None, at_stage));
        for idle in [Duration::ZERO, IDLE_MAX - Duration::from_secs(1)] {
            sleep(idle).await;
            let request = b"GET / HTTP/1.1\r\nhost: node\r\n\r\n";
            client.write_all(request).await.expect("it is sent");
            let mut answer = Vec::new();
            while !answer.ends_with(b"answered") {
                assert!(client.read_buf(&mut answer).await.expect("bytes") > 0, "it goes on");
            }
        }
        timeout(IDLE_MAX * 2, spoken).await.expect("it ends").expect("no panic");
    }

    #[test]
    fn connections_leave_open_files_to_the_runs() {
        for (files, max) in [
            (Some(16), 1),
            (Some(128), 64),
            (Some(1024), 768),
            (Some(32_768), 20_000),
            (None, 20_000),
        ] {
            assert_eq!(connections_max(files), max, "{files:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_over_which_nothing_is_asked_for_ends() {
        for nothing in ["", "PRI * HTTP/2.0", "GET / HT"] {
            let answer = answer(nothing.as_bytes()).await;
            assert!(!answer.contains("answered"), "{nothing:?}: {answer}");
        }
        let answer = answer(b"GET / HTTP/1.1\r\nhost: node\r\n\r\n").await;
        assert!(answer.ends_with("answered"), "{answer}");
    }
}
