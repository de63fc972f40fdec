//! The gRPC service: brings the messages of clients to conversations, and frames to clients.

use super::attached::{Asker, Attached, Shown};
use super::auth::Caller;
use super::client::Past;
use super::node::{Key, Node, Wanted};
use super::refusal::{Refusal, RefusalKind};
use super::stored;
use crate::protocol::command::Extension;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::fleet::converse_request::Message;
use crate::protocol::proto::fleet::fleet_server::Fleet;
use crate::protocol::proto::fleet::{
    self, ConverseRequest, DeleteRequest, DeleteResponse, ExportRequest, ForkRequest, ForkResponse,
    GetRequest, ListRequest, ListResponse, ServerInfoRequest, ServerInfoResponse,
};
use crate::protocol::wire::{Frame, PROTOCOL, SERVER};
use crate::store::OpenMode;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::{Request, Response, Status, Streaming};

/// The header by which a node says that its client wants the frames of its own requests alone.
pub(super) const OWN_ONLY_HEADER: &str = "x-duologue-own-only";

/// The service, over the conversations of a node.
pub(super) struct Rpc {
    pub(super) node: Arc<Node>,
}

/// Frames for a client.
type Lines = BoxStream<'static, Result<Frame, Status>>;

#[tonic::async_trait]
impl Fleet for Rpc {
    type ConverseStream = Lines;
    type WatchStream = Lines;
    type ExportStream = Lines;

    async fn converse(
        &self,
        request: Request<Streaming<ConverseRequest>>,
    ) -> Result<Response<Lines>, Status> {
        let caller = caller(&request);
        let is_own_only = caller.is_node && request.metadata().contains_key(OWN_ONLY_HEADER);
        let mut messages = request.into_inner();
        let attach = match messages.message().await?.and_then(|it| it.message) {
            Some(Message::Attach(attach)) => attach,
            Some(Message::Request(_)) | None => {
                let why = "the first message of a stream must attach: send attach, with the session_id of the \
                           conversation or without one";
                return Err(Status::invalid_argument(why));
            }
        };
        let wanted = Wanted { is_own_only, ..wanted(attach)? };
        let attached = self.node.attach(&caller, wanted).await.map_err(status)?;
        let Attached { hello, frames, asker } = attached;
        tokio::spawn(ask(asker, messages));
        Ok(Response::new(lines(hello, frames)))
    }

    async fn watch(&self, request: Request<fleet::Attach>) -> Result<Response<Lines>, Status> {
        let caller = caller(&request);
        let wanted = wanted(request.into_inner())?;
        let attached = self.node.attach(&caller, wanted).await.map_err(status)?;
        let Attached { hello, frames, .. } = attached;
        Ok(Response::new(lines(hello, frames)))
    }

    async fn server_info(
        &self,
        _: Request<ServerInfoRequest>,
    ) -> Result<Response<ServerInfoResponse>, Status> {
        Ok(Response::new(info(&self.node)))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let caller = caller(&request);
        let page = stored::list(&self.node, &caller, request.into_inner()).await;
        page.map(Response::new).map_err(status)
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<fleet::Session>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        stored::get(&self.node, key).await.map(Response::new).map_err(status)
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<DeleteResponse>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        stored::delete(&self.node, key, caller(&request).is_node).await.map_err(status)?;
        Ok(Response::new(DeleteResponse {}))
    }

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Lines>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        let frames = stored::export(&self.node, key).await.map_err(status)?;
        Ok(Response::new(stream::iter(frames.into_iter().map(Ok)).boxed()))
    }

    async fn fork(&self, request: Request<ForkRequest>) -> Result<Response<ForkResponse>, Status> {
        let ForkRequest { session_id, new_session_id } = request.get_ref();
        let (from, to) = (key(&request, session_id)?, named(new_session_id)?);
        stored::fork(&self.node, from, to).await.map(Response::new).map_err(status)
    }
}

/// Passes the requests of a client on, to the end of its side of the stream.
async fn ask(mut asker: Asker, mut messages: Streaming<ConverseRequest>) {
    while let Ok(Some(ConverseRequest { message })) = messages.message().await {
        match message {
            Some(Message::Request(line)) => asker.send(line).await,
            // It is answered as a line without a member.
            Some(Message::Attach(_)) | None => asker.send(Default::default()).await,
        }
    }
    asker.close().await;
}

fn lines(hello: Arc<Frame>, frames: Shown) -> Lines {
    let own = |frame: Arc<Frame>| Arc::unwrap_or_clone(frame);
    let frames = frames.map(move |frame| frame.map(own).map_err(status));
    stream::iter([Ok(own(hello))]).chain(frames).boxed()
}

/// What an attach message wants.
fn wanted(attach: fleet::Attach) -> Result<Wanted, Status> {
    let mode = match fleet::Opening::try_from(attach.opening) {
        Ok(fleet::Opening::Either) => OpenMode::Either,
        Ok(fleet::Opening::Create) => OpenMode::New,
        Ok(fleet::Opening::Resume) => OpenMode::Resume,
        Err(_) => return Err(Status::invalid_argument("opening must be EITHER, CREATE or RESUME")),
    };
    let past = match attach.since_ordinal {
        _ if attach.without_past => Past::Nothing,
        Some(ordinal) => Past::Since(Ordinal(ordinal)),
        None => Past::Snapshot,
    };
    let extensions = extensions(attach.extensions.iter().map(String::as_str)).map_err(status)?;
    let session = named(&attach.session_id)?;
    Ok(Wanted { session, mode, extensions, past, is_own_only: false })
}

/// The extensions of these names.
pub(super) fn extensions<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<Extension>, Refusal> {
    let known = |name: &str| {
        Extension::named(name).ok_or_else(|| {
            let known = Extension::ALL.map(Extension::as_str).join(", ");
            let why = format!("there is no extension {name:?}; there are: {known}");
            Refusal::new(RefusalKind::Invalid, why)
        })
    };
    names.map(known).collect()
}

/// The session of this id; `None` if it is empty.
fn named(id: &str) -> Result<Option<SessionId>, Status> {
    SessionId::parse(id).map_err(|error| Status::invalid_argument(format!("session_id: {error}")))
}

/// Who has sent a request: nobody's are let through.
fn caller<T>(request: &Request<T>) -> Caller {
    request.extensions().get().cloned().unwrap_or_default()
}

fn key<T>(request: &Request<T>, id: &str) -> Result<Key, Status> {
    let why = "session_id is empty; name a conversation";
    let session = named(id)?.ok_or_else(|| Status::invalid_argument(why))?;
    Ok(Key { namespace: caller(request).tenant, session })
}

/// What the node is, and how much it holds.
pub(super) fn info(node: &Node) -> ServerInfoResponse {
    let counts = &node.counts;
    ServerInfoResponse {
        server: SERVER.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL.to_owned(),
        conversations: node.conversations() as u64,
        runs: counts.runs.load(Ordering::Relaxed),
        clients: counts.clients.load(Ordering::Relaxed),
        draining: node.is_draining(),
    }
}

/// A refusal as gRPC has it.
pub(super) fn status(refusal: Refusal) -> Status {
    let Refusal { kind, message, .. } = refusal;
    match kind {
        RefusalKind::Invalid => Status::invalid_argument(message),
        RefusalKind::NotFound => Status::not_found(message),
        RefusalKind::Exists => Status::already_exists(message),
        RefusalKind::Locked => Status::aborted(message),
        RefusalKind::Exhausted => Status::resource_exhausted(message),
        RefusalKind::Unavailable | RefusalKind::Ending => Status::unavailable(message),
        RefusalKind::Failed => Status::failed_precondition(message),
        RefusalKind::Internal => Status::internal(message),
    }
}
