//! A node of a fleet, and its clients: gRPC by tonic, HTTP by reqwest.

use crate::frames::Frame;
use crate::oracle::{Answers, Output, check_output};
use crate::process::{DEADLINE, eventually};
use crate::provider::Provider;
use crate::server::{KEY, Launch, Server};
use duologue::protocol::any::read_message;
use duologue::protocol::json;
use duologue::protocol::proto::fleet::converse_request::Message;
use duologue::protocol::proto::fleet::fleet_client::FleetClient;
use duologue::protocol::proto::fleet::{
    Attach, ConverseRequest, ServerInfoRequest, ServerInfoResponse,
};
use duologue::protocol::proto::rpc::{RpcLine, RpcRequestLine};
use std::future::Future;
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, ClientTlsConfig};
use tonic::{Request, Status, Streaming};

/// Drives all clients of the tests.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
});

/// Waits for something of a client.
#[track_caller]
pub(crate) fn wait<T>(what: impl Future<Output = T>) -> T {
    let waited = RUNTIME.block_on(async { timeout(DEADLINE, what).await });
    waited.expect("it came in time")
}

/// A client of plain HTTP.
pub(crate) fn http() -> reqwest::Client {
    with_root(None)
}

/// The same, over TLS with an authority (PEM) of its own.
pub(crate) fn with_root(authority: Option<&[u8]>) -> reqwest::Client {
    // Another test may have installed it.
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut client = reqwest::Client::builder().no_proxy();
    if let Some(pem) = authority {
        let root = reqwest::Certificate::from_pem(pem).expect("a certificate");
        client = client.add_root_certificate(root);
    }
    client.build().expect("a client")
}

/// A node that runs.
pub(crate) struct Node {
    pub(crate) server: Server,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl Node {
    /// `duologue serve <args>` with the echo engine, on a free port.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::launch(Launch::new(&[&["serve", "--engine", "echo"], LISTEN, args].concat()))
    }

    pub(crate) fn launch(launch: Launch) -> Self {
        let server = launch.start();
        let address = eventually("the node listens", || {
            let lines = server.lines();
            let (_, address) = lines.first()?.strip_prefix("listening on ")?.split_once("://")?;
            Some(address.to_owned())
        });
        Self { server, address }
    }

    pub(crate) fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("a URI");
        let _inside = RUNTIME.enter();
        endpoint.connect_lazy()
    }

    pub(crate) fn client(&self) -> FleetClient<Channel> {
        FleetClient::new(self.channel()).max_decoding_message_size(usize::MAX)
    }

    /// Attaches a client to a conversation.
    #[track_caller]
    pub(crate) fn attach(&self, session: &str) -> Talk {
        self.try_attach(attach(session)).expect("it is attached")
    }

    pub(crate) fn try_attach(&self, attach: Attach) -> Result<Talk, Status> {
        self.attach_with(None, attach)
    }

    /// Attaches a client that shows a token, if it has one.
    pub(crate) fn attach_with(&self, token: Option<&str>, attach: Attach) -> Result<Talk, Status> {
        attach_to(self.client(), bearer(token).as_ref(), attach)
    }

    /// Attaches a client that acts for this span.
    pub(crate) fn attach_in_trace(&self, parent: &str, attach: Attach) -> Talk {
        let header = ("traceparent", parent.to_owned());
        attach_to(self.client(), Some(&header), attach).expect("it is attached")
    }

    pub(crate) fn info(&self) -> ServerInfoResponse {
        let mut client = self.client();
        wait(async move { client.server_info(ServerInfoRequest {}).await })
            .expect("it answers")
            .into_inner()
    }
}

/// Attaches a client to a node with TLS; it shows a token, if it has one.
pub(crate) fn attach_over(
    node: &Node,
    tls: ClientTlsConfig,
    token: Option<&str>,
    attach: Attach,
) -> Result<Talk, Status> {
    // Another test may have installed it.
    rustls::crypto::ring::default_provider().install_default().ok();
    let endpoint = Channel::from_shared(format!("https://{}", node.address)).expect("a URI");
    let endpoint = endpoint.tls_config(tls).expect("a configuration");
    let channel = {
        let _inside = RUNTIME.enter();
        endpoint.connect_lazy()
    };
    attach_to(FleetClient::new(channel), bearer(token).as_ref(), attach)
}

/// A header of a call.
type Header = (&'static str, String);

fn bearer(token: Option<&str>) -> Option<Header> {
    token.map(|token| ("authorization", format!("Bearer {token}")))
}

/// Attaches a client over this connection.
pub(crate) fn attach_to(
    mut client: FleetClient<Channel>,
    header: Option<&Header>,
    attach: Attach,
) -> Result<Talk, Status> {
    let (to, requests) = mpsc::channel(64);
    let mut request = Request::new(ReceiverStream::new(requests));
    if let Some((name, value)) = header {
        request.metadata_mut().insert(*name, value.parse().expect("a value"));
    }
    let stream = wait(async move {
        let first = ConverseRequest { message: Some(Message::Attach(attach)) };
        to.send(first).await.expect("room");
        let stream = client.converse(request).await?;
        Ok::<_, Status>((stream.into_inner(), to))
    });
    stream.map(|(stream, to)| Talk { to: Some(to), stream, frames: Vec::new(), asked: Vec::new() })
}

/// A node whose conversations are answered by `provider`.
pub(crate) fn with_provider(provider: &Provider, args: &[&str]) -> Node {
    let base_url = provider.base_url();
    let engine = ["serve", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    Node::launch(Launch::new(&[&engine, LISTEN, args].concat()).secret("DUOLOGUE_API_KEY", KEY))
}

/// Options that every node of a test has.
pub(crate) const LISTEN: &[&str] = &["--listen", "127.0.0.1:0"];

/// An attach message for that conversation.
pub(crate) fn attach(session: &str) -> Attach {
    Attach { session_id: session.to_owned(), ..Attach::default() }
}

/// A conversation as a client holds it.
pub(crate) struct Talk {
    to: Option<mpsc::Sender<ConverseRequest>>,
    stream: Streaming<RpcLine>,
    frames: Vec<Vec<u8>>,
    /// The ids of its requests.
    asked: Vec<String>,
}

impl Talk {
    /// Sends a request line.
    pub(crate) fn send(&mut self, line: impl AsRef<str>) {
        self.send_message(read_message(line.as_ref()).expect("a request"));
    }

    /// Sends a request that may have no JSON form.
    pub(crate) fn send_message(&mut self, line: RpcRequestLine) {
        let to = self.to.as_ref().expect("it is open");
        self.asked.push(line.request_id.clone());
        wait(to.send(ConverseRequest { message: Some(Message::Request(line)) }))
            .expect("it is sent");
    }

    /// The next frame; `None` at the end of the stream.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Status> {
        let Some(frame) = wait(self.stream.message())? else { return Ok(None) };
        let mut line = Vec::new();
        json::write_line(&frame, &mut line).expect("a frame");
        line.pop();
        let frame = Frame::parse(&line);
        self.frames.push(line);
        Ok(Some(frame))
    }

    /// Waits for a frame of which `wanted` holds.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let next = self.next().unwrap_or_else(|status| panic!("waited for {what}: {status}"));
            let frame = next.unwrap_or_else(|| panic!("waited for {what}, and the stream ended"));
            if wanted(&frame) {
                return frame;
            }
        }
    }

    #[track_caller]
    pub(crate) fn wait_event(&mut self, name: &str) -> Frame {
        self.wait(&format!("the event {name}"), |frame| frame.is_event(name))
    }

    /// Waits for the end of a request; gives its status.
    #[track_caller]
    pub(crate) fn wait_done(&mut self, id: &str) -> String {
        let done = self.wait(&format!("the done of {id}"), |frame| frame.ends(id));
        done.done().unwrap_or_default().to_owned()
    }

    /// What the client was shown so far.
    pub(crate) fn frames(&self) -> Vec<Frame> {
        self.frames.iter().map(|line| Frame::parse(line)).collect()
    }

    /// Why the stream ends: what follows until then is ignored.
    #[track_caller]
    pub(crate) fn wait_end(&mut self) -> Result<(), Status> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// Closes the client's side.
    pub(crate) fn close(&mut self) {
        self.to = None;
    }

    /// Closes the client's side and waits for the end; what it was shown keeps to the contract.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Frame> {
        self.close();
        self.wait_end().expect("the stream ends well");
        let dones: Vec<_> = self.frames().into_iter().filter(|it| it.done().is_some()).collect();
        for id in &self.asked {
            assert_eq!(dones.iter().filter(|done| done.id() == id).count(), 1, "the dones of {id}");
        }
        let lines = std::mem::take(&mut self.frames);
        check_output(&Output { lines, rest: Vec::new() }, dones.len(), Answers::All)
    }
}
