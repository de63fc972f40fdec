//! A client that is attached to a conversation, here or at another node: the stream of its frames, and where its
//! requests go.

use super::client::ClientId;
use super::conversation::{Mail, Sent};
use super::forwarded::{Forwarded, Open};
use super::refusal::Refusal;
use super::stream::Frames;
use super::tenants::{MemoryReservation, Tenant};
use crate::protocol::command::CommandFault;
use crate::protocol::id::{Ids, RequestId};
use crate::protocol::proto::fleet::ConverseRequest;
use crate::protocol::proto::fleet::converse_request::Message;
use crate::protocol::proto::rpc::RpcRequestLine;
use crate::protocol::proto::rpc::rpc_request_line::Request as Member;
use crate::protocol::wire::{self, BadLine, Frame, Request, RequestFault};
use crate::task::settings::CallSettings;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use prost::Message as _;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

/// Frames of another node that wait for a client whose stream outlasts it.
const FRAMES_MAX: usize = 16;

/// A client that is attached.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) hello: Arc<Frame>,
    pub(super) frames: FrameStream,
    pub(super) asker: Asker,
    /// Closed when `frames` are dropped.
    pub(super) frames_dropped: oneshot::Receiver<Infallible>,
}

impl Attached {
    /// A client whose frames come from `from` and whose requests go to `to`.
    pub(super) fn new(
        hello: Arc<Frame>,
        from: Source,
        to: To,
        tenant: Arc<Tenant>,
        is_node: bool,
    ) -> Self {
        let (end, ended) = mpsc::channel(1);
        let (dropping, frames_dropped) = oneshot::channel();
        let frames =
            FrameStream { ended, from, is_over: false, _watching: None, _dropping: dropping };
        let ids = Ids::new(Uuid::new_v4().as_u128());
        let asker = Asker { to, ids, tenant, is_node, end };
        Self { hello, frames, asker, frames_dropped }
    }

    /// Hello and the frames, for a client that sends nothing.
    pub(super) fn watched(self) -> (Arc<Frame>, FrameStream) {
        let Self { hello, frames, asker, .. } = self;
        (hello, FrameStream { _watching: Some(asker), ..frames })
    }
}

/// The frames of a client after hello.
#[derive(Debug)]
pub(super) struct FrameStream {
    /// The refusal with which the stream ends once no more requests are read.
    ended: mpsc::Receiver<Refusal>,
    from: Source,
    is_over: bool,
    /// The asker of a client that sends nothing: at another node the end of the requests would be the end of the
    /// frames.
    _watching: Option<Asker>,
    _dropping: oneshot::Sender<Infallible>,
}

/// Where the frames come from: a conversation of this node or of another one.
#[derive(Debug)]
pub(super) enum Source {
    Here(Frames),
    There(Box<Forwarded>),
}

impl Stream for FrameStream {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Some(refusal)) = self.ended.poll_recv(context) {
            self.is_over = true;
            return Poll::Ready(Some(Err(refusal)));
        }
        let given = match &mut self.from {
            Source::Here(frames) => Pin::new(frames).poll_next(context),
            Source::There(frames) => Pin::new(&mut **frames).poll_next(context),
        };
        self.is_over |= matches!(given, Poll::Ready(None | Some(Err(_))));
        if let Poll::Ready(None) = given {
            // The client may have been refused meanwhile.
            return Poll::Ready(self.ended.try_recv().ok().map(Err));
        }
        given
    }
}

impl FrameStream {
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
                    // A client that has left needs no frames.
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

/// Sends the requests of a client to its conversation.
#[derive(Debug)]
pub(super) struct Asker {
    to: To,
    ids: Ids,
    tenant: Arc<Tenant>,
    /// The client is another node, which passes requests on and has counted them.
    is_node: bool,
    end: mpsc::Sender<Refusal>,
}

/// Where the requests go: to a conversation of this node or of another one.
#[derive(Debug)]
pub(super) enum To {
    Here { client: ClientId, mail: mpsc::Sender<Mail>, room: Arc<Semaphore> },
    There { requests: mpsc::Sender<ConverseRequest>, open: Arc<Open> },
}

/// A request that is on its way to its conversation.
#[derive(Debug)]
pub(super) struct Admitted {
    line: RpcRequestLine,
    reservation: MemoryReservation,
    /// Set if the request is beyond a limit of its tenant.
    refused: Option<Refusal>,
}

impl Admitted {
    /// Takes all of these requests, or none of them. The call that brings them has counted as the first.
    pub(super) fn all(
        lines: Vec<RpcRequestLine>,
        tenant: &Arc<Tenant>,
    ) -> Result<Vec<Self>, Refusal> {
        let more = beside_first(lines.len());
        let admit = |line: RpcRequestLine| {
            let reservation = tenant.receive(line.encoded_len() as u64)?;
            Ok(Self { line, reservation, refused: None })
        };
        let admitted = lines.into_iter().map(admit).collect::<Result<_, _>>()?;
        // Last, so that requests that are refused because of their bytes use up nothing of the rate.
        tenant.admit_more(more)?;
        Ok(admitted)
    }

    /// Gives back to the rate what these requests have used up, which were counted at `taken` and came to nothing.
    pub(super) fn give_back(all: &[Self], tenant: &Tenant, taken: Instant) {
        tenant.give_back(beside_first(all.len()), taken);
    }
}

/// Requests of a call that count beside the call itself.
fn beside_first(requests: usize) -> u32 {
    u32::try_from(requests).unwrap_or(u32::MAX).saturating_sub(1)
}

impl Asker {
    /// Sends a request; waits while many requests of the client are open. A request beyond a limit of its tenant is
    /// refused by the conversation, which alone knows the requests that are sent again. For a conversation at another
    /// node the limit of bytes is that node's; the rate is counted here, and the request waits for it.
    pub(super) async fn send(&mut self, line: RpcRequestLine) {
        let (tenant, bytes) = (&self.tenant, line.encoded_len() as u64);
        let admitted = match &self.to {
            To::Here { .. } if self.is_node => tenant.receive(bytes),
            To::Here { .. } => tenant.admit(1).and_then(|()| tenant.receive(bytes)),
            To::There { .. } => {
                tenant.wait_for_rate().await;
                Ok(tenant.reserve_bytes(bytes))
            }
        };
        let (reservation, refused) = match admitted {
            Ok(reservation) => (reservation, None),
            Err(refusal) => (tenant.reserve_bytes(bytes), Some(refusal)),
        };
        self.pass_on(Admitted { line, reservation, refused }).await;
    }

    /// Sends a request to its conversation.
    pub(super) async fn pass_on(&mut self, Admitted { mut line, reservation, refused }: Admitted) {
        let Self { to, ids, .. } = self;
        match to {
            To::Here { client, mail, room } => {
                let content = content(&mut line);
                let request = wire::request(line, || ids.request()).and_then(checked);
                let request = request.map_err(|bad| {
                    let id = bad.id.unwrap_or_else(|| ids.request());
                    BadLine { id: Some(id), ..bad }
                });
                if let Ok(permit) = room.acquire().await {
                    permit.forget();
                }
                let (handling, handled) = oneshot::channel();
                let is_beyond_limit = refused.is_some();
                let refused = refused.map(|refusal| (refusal, handling));
                // Where the conversation has ended, the stream of the client says why.
                let sent = Sent { client: *client, request, content, reservation, refused };
                mail.send(Mail::Request(Box::new(sent))).await.ok();
                // There is no room for those of the client that follow.
                if is_beyond_limit {
                    handled.await.ok();
                }
            }
            To::There { requests, open } => {
                let comes_again = comes_again(&line);
                match RequestId::parse(&line.request_id) {
                    Ok(Some(id)) => open.asked(id.as_str(), comes_again),
                    Ok(None) => {
                        let id = ids.request();
                        open.asked(id.as_str(), comes_again);
                        line.request_id = id.as_str().to_owned();
                    }
                    // The other node refuses the request, by an id that is not known here.
                    Err(_) => {}
                }
                requests.send(ConverseRequest { message: Some(Message::Request(line)) }).await.ok();
            }
        }
    }

    /// Ends the frames of a client whose requests can't be read any more.
    pub(super) async fn end(self, refusal: Refusal) {
        // A client that has left needs no reason.
        self.end.send(refusal).await.ok();
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

/// Hash of what a request asks for, without the names of its conversation and version: a request that names others is
/// refused for that.
fn content(line: &mut RpcRequestLine) -> u64 {
    let (id, session) = (take(&mut line.request_id), take(&mut line.session_id));
    let version = take(&mut line.version);
    let mut hasher = DefaultHasher::new();
    line.encode_to_vec().hash(&mut hasher);
    (line.request_id, line.session_id, line.version) = (id, session, version);
    hasher.finish()
}

/// Whether a request is handled each time that it is sent.
fn comes_again(line: &RpcRequestLine) -> bool {
    matches!(&line.request, Some(Member::Snapshot(_) | Member::Shutdown(_)))
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
