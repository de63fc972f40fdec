//! A client that is attached to a conversation, here or at another node: its frames, and the way of its requests.

use super::client::ClientId;
use super::conversation::{Mail, Sent};
use super::forwarded::{Forwarded, Open};
use super::refusal::Refusal;
use super::stream::Frames;
use super::tenants::{Held, Tenant};
use crate::protocol::command::CommandFault;
use crate::protocol::id::{Ids, RequestId, SessionId};
use crate::protocol::proto::fleet::ConverseRequest;
use crate::protocol::proto::fleet::converse_request::Message as Member;
use crate::protocol::proto::rpc::RpcRequestLine;
use crate::protocol::wire::{self, BadLine, ClientError, Code, Done, Frame, Request, RequestFault};
use crate::task::settings::CallSettings;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use prost::Message;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

/// Refusals of requests that wait for a client; from there on no more of its requests are read.
const REFUSED_MAX: usize = 16;

/// Frames of another node that wait for a client whose stream outlasts it.
const FRAMES_MAX: usize = 16;

/// A client that is attached.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) hello: Arc<Frame>,
    pub(super) frames: Shown,
    pub(super) asker: Asker,
    /// Closed when the frames are gone.
    pub(super) shown: oneshot::Receiver<Infallible>,
}

impl Attached {
    /// A client of `caller` in this conversation, with its frames and the way of its requests.
    pub(super) fn new(
        hello: Arc<Frame>,
        (from, to): (Source, To),
        session: SessionId,
        (tenant, is_node): (Arc<Tenant>, bool),
    ) -> Self {
        let (refuse, refused) = mpsc::channel(REFUSED_MAX);
        let (held, shown) = oneshot::channel();
        let frames = Shown { refused, from, is_over: false, _watching: None, _held: held };
        let ids = Ids::new(Uuid::new_v4().as_u128());
        let asker = Asker { to, ids, session, tenant, is_node, refuse };
        Self { hello, frames, asker, shown }
    }

    /// The frames for a client that sends nothing.
    pub(super) fn watched(self) -> (Arc<Frame>, Shown) {
        let Self { hello, frames, asker, .. } = self;
        (hello, Shown { _watching: Some(asker), ..frames })
    }
}

/// The frames of a client after hello.
#[derive(Debug)]
pub(super) struct Shown {
    /// Error frames of requests that were refused on their way to the conversation, and why no more requests are read.
    refused: mpsc::Receiver<Result<Arc<Frame>, Refusal>>,
    from: Source,
    is_over: bool,
    /// The way of requests of a client that has none. At another node its end would be the end of the frames.
    _watching: Option<Asker>,
    _held: oneshot::Sender<Infallible>,
}

/// Where the conversation is.
#[derive(Debug)]
pub(super) enum Source {
    Here(Frames),
    There(Box<Forwarded>),
}

impl Stream for Shown {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(refused)) = self.refused.poll_recv(context) {
            self.is_over |= refused.is_err();
            return Poll::Ready(Some(refused));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let given = match &mut self.from {
            Source::Here(frames) => Pin::new(frames).poll_next(context),
            Source::There(frames) => Pin::new(&mut **frames).poll_next(context),
        };
        self.is_over |= matches!(given, Poll::Ready(Some(Err(_))));
        if let Poll::Ready(None) = given {
            self.is_over = true;
            // One that was refused meanwhile has its frames still.
            return self.poll_next(context);
        }
        given
    }
}

impl Shown {
    /// Keeps reading the frames of another node for `time` after the client is gone, as that node
    /// handles the requests of a stream only until the stream ends.
    pub(super) fn outlasting(
        mut self,
        time: Duration,
    ) -> BoxStream<'static, <Self as Stream>::Item> {
        match self.from {
            Source::Here(_) => return self.boxed(),
            Source::There(_) => {}
        }
        let (to, taken) = mpsc::channel(FRAMES_MAX);
        tokio::spawn(async move {
            let reading = async {
                while let Some(frame) = self.next().await {
                    // Who has left needs no frames.
                    to.send(frame).await.ok();
                }
            };
            let leaving = async {
                to.closed().await;
                sleep(time).await;
            };
            tokio::select! {
                biased;
                () = reading => {}
                () = leaving => {}
            }
        });
        ReceiverStream::new(taken).boxed()
    }
}

/// The way of a client's requests.
#[derive(Debug)]
pub(super) struct Asker {
    to: To,
    ids: Ids,
    session: SessionId,
    tenant: Arc<Tenant>,
    /// Another node passes the requests on, and has counted them.
    is_node: bool,
    refuse: mpsc::Sender<Result<Arc<Frame>, Refusal>>,
}

/// Where the conversation is that takes them.
#[derive(Debug)]
pub(super) enum To {
    Here { client: ClientId, mail: mpsc::Sender<Mail>, room: Arc<Semaphore> },
    There { requests: mpsc::Sender<ConverseRequest>, open: Arc<Open> },
}

/// A request for which its tenant has room.
#[derive(Debug)]
pub(super) struct Admitted {
    line: RpcRequestLine,
    held: Held,
}

impl Asker {
    /// Sends a request, unless it is beyond a limit of its tenant; waits while many of the client are open.
    pub(super) async fn send(&mut self, line: RpcRequestLine) {
        let counted = if self.is_node { Ok(()) } else { self.tenant.admit(1) };
        match counted.and_then(|()| self.tenant.receive(line.encoded_len() as u64)) {
            Ok(held) => self.pass_on(Admitted { line, held }).await,
            Err(refusal) => self.refuse(&line.request_id, refusal).await,
        }
    }

    /// Takes all of these requests, or none of them. The call that brings them has counted as the first.
    pub(super) fn admit(&self, lines: Vec<RpcRequestLine>) -> Result<Vec<Admitted>, Refusal> {
        let more = u32::try_from(lines.len()).unwrap_or(u32::MAX).saturating_sub(1);
        self.tenant.admit(more)?;
        let admit = |line: RpcRequestLine| {
            let held = self.tenant.receive(line.encoded_len() as u64)?;
            Ok(Admitted { line, held })
        };
        lines.into_iter().map(admit).collect()
    }

    /// Sends a request for which there is room.
    pub(super) async fn pass_on(&mut self, Admitted { mut line, held }: Admitted) {
        let Self { to, ids, .. } = self;
        match to {
            To::Here { client, mail, room } => {
                let named = std::mem::take(&mut line.request_id);
                let content = hash(&line.encode_to_vec());
                line.request_id = named;
                let request = wire::request(line, || ids.request()).and_then(checked);
                let request = request.map_err(|bad| {
                    let id = bad.id.unwrap_or_else(|| ids.request());
                    BadLine { id: Some(id), ..bad }
                });
                if let Ok(permit) = room.acquire().await {
                    permit.forget();
                }
                // Where the conversation has ended, the stream of the client says why.
                let sent = Sent { client: *client, request, content, held };
                mail.send(Mail::Request(Box::new(sent))).await.ok();
            }
            To::There { requests, open } => {
                match RequestId::parse(&line.request_id) {
                    Ok(Some(id)) => open.asked(id.as_str()),
                    Ok(None) => {
                        let id = ids.request();
                        open.asked(id.as_str());
                        line.request_id = id.as_str().to_owned();
                    }
                    // It is refused there, by an id that is not known here.
                    Err(_) => {}
                }
                requests.send(ConverseRequest { message: Some(Member::Request(line)) }).await.ok();
            }
        }
    }

    /// Answers a request that does not reach the conversation.
    async fn refuse(&mut self, id: &str, refusal: Refusal) {
        let id = RequestId::new(id).unwrap_or_else(|| self.ids.request());
        let (code, message) = (Code::ResourceExhausted, refusal.message);
        let error = ClientError { code, message, detail: String::new(), terminal: false };
        for body in [wire::error(error), wire::done(Done::Failed)] {
            let frame = wire::frame(&self.session, Some(&id), body);
            // Who has left needs no answer.
            self.refuse.send(Ok(Arc::new(frame))).await.ok();
        }
    }

    /// Ends the frames of the client: what it sends can't be read any more.
    pub(super) async fn end(self, refusal: Refusal) {
        self.refuse.send(Err(refusal)).await.ok();
        self.close().await;
    }

    /// The client sends no more requests.
    pub(super) async fn close(self) {
        match self.to {
            To::Here { client, mail, .. } => drop(mail.send(Mail::HalfClosed(client)).await),
            To::There { requests, open } => {
                open.close();
                // The other node sees the end of the stream.
                drop(requests);
            }
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// A request without what a client elsewhere may not choose: headers and members of the body of provider calls
/// may be keys or addresses.
fn checked(request: Request) -> Result<Request, BadLine> {
    let settings = request.command.choice().map(|choice| &choice.settings);
    let mut names = settings.into_iter().flatten().map(|(name, _)| name);
    match names.find(|name| CallSettings::may_hold_key(name)) {
        None => Ok(request),
        Some(name) => {
            let why = format!(
                "this node takes no {name:?} from clients; leave it out, or set it up in a profile of the node"
            );
            Err(bad(request.id, CommandFault::InvalidSettings(why)))
        }
    }
}

fn bad(id: RequestId, fault: CommandFault) -> BadLine {
    BadLine { id: Some(id), fault: RequestFault::Command(fault) }
}
