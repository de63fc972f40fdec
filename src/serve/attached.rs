//! A client that is attached to a conversation, here or at another node: its frames, and the way of its requests.

use super::client::ClientId;
use super::conversation::Mail;
use super::peers::refusal;
use super::refusal::Refusal;
use super::stream::Frames;
use crate::protocol::command::CommandFault;
use crate::protocol::id::{Ids, RequestId};
use crate::protocol::proto::fleet::ConverseRequest;
use crate::protocol::proto::fleet::converse_request::Message as Member;
use crate::protocol::proto::rpc::RpcRequestLine;
use crate::protocol::wire::{self, BadLine, Frame, Request, RequestFault};
use crate::task::settings::CallSettings;
use futures_util::Stream;
use prost::Message;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, mpsc};
use tonic::Streaming;
use uuid::Uuid;

/// A client that is attached.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) hello: Arc<Frame>,
    pub(super) frames: Shown,
    pub(super) asker: Asker,
}

/// The frames of a client after hello.
#[derive(Debug)]
pub(super) enum Shown {
    Here(Frames),
    There(Box<Streaming<Frame>>),
}

impl Stream for Shown {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut *self {
            Self::Here(frames) => Pin::new(frames).poll_next(context),
            Self::There(frames) => {
                let given = Pin::new(&mut **frames).poll_next(context);
                given.map(|it| it.map(|it| it.map(Arc::new).map_err(|status| refusal(&status))))
            }
        }
    }
}

/// The way of a client's requests.
#[derive(Debug)]
pub(super) struct Asker {
    to: To,
    ids: Ids,
}

#[derive(Debug)]
enum To {
    Here { client: ClientId, mail: mpsc::Sender<Mail>, room: Arc<Semaphore> },
    There(mpsc::Sender<ConverseRequest>),
}

impl Asker {
    pub(super) fn here(client: ClientId, mail: mpsc::Sender<Mail>, room: Arc<Semaphore>) -> Self {
        Self::to(To::Here { client, mail, room })
    }

    pub(super) fn there(requests: mpsc::Sender<ConverseRequest>) -> Self {
        Self::to(To::There(requests))
    }

    fn to(to: To) -> Self {
        Self { to, ids: Ids::new(Uuid::new_v4().as_u128()) }
    }

    /// Sends a request; waits while many of the client are open.
    pub(super) async fn send(&mut self, mut line: RpcRequestLine) {
        let Self { to, ids } = self;
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
                mail.send(Mail::Request(*client, request, content)).await.ok();
            }
            To::There(requests) => {
                requests.send(ConverseRequest { message: Some(Member::Request(line)) }).await.ok();
            }
        }
    }

    /// The client sends no more requests.
    pub(super) async fn close(self) {
        match self.to {
            To::Here { client, mail, .. } => drop(mail.send(Mail::HalfClosed(client)).await),
            // The other node sees the end of the stream.
            To::There(requests) => drop(requests),
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
