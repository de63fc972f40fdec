//! The gRPC service: brings the messages of clients to conversations, and frames to clients.

use super::attached::{Asker, Attached, FrameStream};
use super::auth::Caller;
use super::client::Past;
use super::node::{Key, Node, Wanted};
use super::refusal::{Refusal, RefusalKind};
use super::stored;
use super::traces::Parent;
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
use crate::support::{millis, sleep_until};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Request, Response, Status, Streaming};

/// The header by which a node says that its client wants the frames of its own requests alone.
pub(super) const OWN_ONLY_HEADER: &str = "x-duologue-own-only";

/// The header by which a status says after how many milliseconds the call may be made again
/// (<https://github.com/grpc/proposal/blob/master/A6-client-retries.md>).
pub(super) const RETRY_HEADER: &str = "grpc-retry-pushback-ms";

/// The header with the time for which a client waits for an answer
/// (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).
const TIMEOUT_HEADER: &str = "grpc-timeout";

/// Time for the first message of a stream: until then its client holds nothing that a limit counts.
const FIRST_MESSAGE_MAX: Duration = Duration::from_secs(30);

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
        let (caller, until) = (caller(&request), deadline(&request));
        let is_own_only = caller.is_node && request.metadata().contains_key(OWN_ONLY_HEADER);
        let (headers, _, mut messages) = request.into_parts();
        let bytes_max = self.node.services.request_bytes_max;
        let attach = match first(&mut messages, bytes_max).await? {
            Some(Message::Attach(attach)) => attach,
            Some(Message::Request(_)) | None => {
                let why = "the first message of a stream must attach: send attach, with the session_id of the \
                           conversation or without one";
                return Err(Status::invalid_argument(why));
            }
        };
        let wanted = Wanted { is_own_only, ..wanted(attach, &headers)? };
        let attached = within(until, self.node.attach(&caller, wanted)).await?;
        let Attached { hello, frames, asker, frames_dropped } = attached;
        tokio::spawn(ask(asker, messages, frames_dropped, bytes_max));
        Ok(Response::new(lines(hello, frames, until)))
    }

    async fn watch(&self, request: Request<fleet::Attach>) -> Result<Response<Lines>, Status> {
        let (caller, until) = (caller(&request), deadline(&request));
        let (headers, _, attach) = request.into_parts();
        let wanted = wanted(attach, &headers)?;
        let attached = within(until, self.node.attach(&caller, wanted)).await?;
        let (hello, frames) = attached.watched();
        Ok(Response::new(lines(hello, frames, until)))
    }

    async fn server_info(
        &self,
        _: Request<ServerInfoRequest>,
    ) -> Result<Response<ServerInfoResponse>, Status> {
        Ok(Response::new(info(&self.node)))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let (caller, until) = (caller(&request), deadline(&request));
        let page = stored::list(&self.node, &caller, request.into_inner());
        within(until, page).await.map(Response::new)
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<fleet::Session>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        within(deadline(&request), stored::get(&self.node, key)).await.map(Response::new)
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<DeleteResponse>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        let deleted = stored::delete(&self.node, key, caller(&request).is_node);
        within(deadline(&request), deleted).await?;
        Ok(Response::new(DeleteResponse {}))
    }

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Lines>, Status> {
        let key = key(&request, &request.get_ref().session_id)?;
        let frames = within(deadline(&request), stored::export(&self.node, key)).await?;
        Ok(Response::new(stream::iter(frames.into_iter().map(Ok)).boxed()))
    }

    async fn fork(&self, request: Request<ForkRequest>) -> Result<Response<ForkResponse>, Status> {
        let ForkRequest { session_id, new_session_id } = request.get_ref();
        let (from, to) = (key(&request, session_id)?, named(new_session_id)?);
        let made = stored::fork(&self.node, from, to);
        within(deadline(&request), made).await.map(Response::new)
    }
}

/// Passes the requests of a client on, to the end of its side of the stream, or until the stream of frames is dropped:
/// a client that leaves its side open would otherwise hold its connection.
async fn ask(
    mut asker: Asker,
    mut messages: Streaming<ConverseRequest>,
    frames_dropped: oneshot::Receiver<Infallible>,
    bytes_max: usize,
) {
    let asking = async {
        loop {
            match messages.message().await {
                Ok(Some(ConverseRequest { message: Some(Message::Request(line)) })) => {
                    asker.send(line).await;
                }
                // The message is answered as a line without a member.
                Ok(Some(_)) => asker.send(Default::default()).await,
                Ok(None) => return None,
                Err(status) => return unreadable(&status, bytes_max),
            }
        }
    };
    let refusal = tokio::select! {
        biased;
        refusal = asking => refusal,
        _ = frames_dropped => None,
    };
    match refusal {
        Some(refusal) => asker.end(refusal).await,
        None => asker.close().await,
    }
}

/// The first message of a stream.
async fn first(
    messages: &mut Streaming<ConverseRequest>,
    bytes_max: usize,
) -> Result<Option<Message>, Status> {
    let Ok(first) = timeout(FIRST_MESSAGE_MAX, messages.message()).await else {
        let why = format!("the first message of a stream must come within {FIRST_MESSAGE_MAX:?}");
        return Err(Status::invalid_argument(why));
    };
    let first = first.map_err(|error| unreadable(&error, bytes_max).map_or(error, status))?;
    Ok(first.and_then(|it| it.message))
}

/// The refusal of a message that can't be read, which ends its stream; `None`: the client has left.
fn unreadable(error: &Status, bytes_max: usize) -> Option<Refusal> {
    let code = error.code();
    if code == Code::Cancelled {
        return None;
    }
    let refusal = if code == Code::OutOfRange {
        let why = format!(
            "a message has more than {bytes_max} bytes (--max-request-bytes), which ends its stream; attach again, and \
             send less"
        );
        Refusal::new(RefusalKind::TooLarge, why)
    } else {
        let why = format!("a message can't be read, which ends its stream: {}", error.message());
        Refusal::new(RefusalKind::Invalid, why)
    };
    Some(refusal)
}

/// The frames of a client, until it stops waiting for them.
fn lines(hello: Arc<Frame>, frames: FrameStream, until: Option<Instant>) -> Lines {
    let own = |frame: Arc<Frame>| Arc::unwrap_or_clone(frame);
    let frames = frames.map(move |frame| frame.map(own).map_err(status));
    let all = stream::iter([Ok(own(hello))]).chain(frames);
    let Some(until) = until else { return all.boxed() };
    let next = move |all: Option<Lines>| async move {
        let mut all = all?;
        match timeout_at(until, all.next()).await {
            Ok(given) => given.map(|given| (given, Some(all))),
            Err(_) => Some((Err(too_late()), None)),
        }
    };
    stream::unfold(Some(all.boxed()), next).boxed()
}

/// Awaits `answer` for as long as the client waits for it.
async fn within<T>(
    until: Option<Instant>,
    answer: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Status> {
    tokio::select! {
        biased;
        given = answer => given.map_err(status),
        () = sleep_until(until) => Err(too_late()),
    }
}

fn too_late() -> Status {
    let why = "the time that the client has given for the call is over; a conversation goes on: attach again";
    Status::deadline_exceeded(why)
}

/// When the client stops waiting; `None` if it has not said so.
fn deadline<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get(TIMEOUT_HEADER)?.to_str().ok()?;
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u32 = count.parse().ok()?;
    let unit = match unit {
        "H" => Duration::from_secs(3600),
        "M" => Duration::from_secs(60),
        "S" => Duration::from_secs(1),
        "m" => Duration::from_millis(1),
        "u" => Duration::from_micros(1),
        "n" => Duration::from_nanos(1),
        _ => return None,
    };
    // A deadline beyond the clock's range means no deadline.
    Instant::now().checked_add(unit.saturating_mul(count))
}

/// The request to attach that an attach message makes.
fn wanted(attach: fleet::Attach, headers: &MetadataMap) -> Result<Wanted, Status> {
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
    let (session, parent) = (named(&attach.session_id)?, Parent::of(headers.as_ref()));
    Ok(Wanted { session, mode, extensions, past, is_own_only: false, parent })
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

/// The caller of a request. Requests without one were refused before.
fn caller<T>(request: &Request<T>) -> Caller {
    request.extensions().get().cloned().unwrap_or_default()
}

fn key<T>(request: &Request<T>, id: &str) -> Result<Key, Status> {
    let why = "session_id is empty; name a conversation";
    let session = named(id)?.ok_or_else(|| Status::invalid_argument(why))?;
    Ok(Key { namespace: caller(request).tenant, session })
}

/// Version and load of the node.
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

/// The gRPC status of a refusal.
pub(super) fn status(refusal: Refusal) -> Status {
    let Refusal { kind, message, retry_after, .. } = refusal;
    let mut status = match kind {
        RefusalKind::Invalid => Status::invalid_argument(message),
        RefusalKind::NotFound => Status::not_found(message),
        RefusalKind::Exists => Status::already_exists(message),
        RefusalKind::Locked => Status::aborted(message),
        RefusalKind::Exhausted | RefusalKind::TooLarge => Status::resource_exhausted(message),
        RefusalKind::Unavailable | RefusalKind::Ending => Status::unavailable(message),
        RefusalKind::NoStore | RefusalKind::Failed => Status::failed_precondition(message),
        RefusalKind::Internal => Status::internal(message),
    };
    if let Some(after) = retry_after {
        let after = MetadataValue::from(millis(after));
        status.metadata_mut().insert(RETRY_HEADER, after);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::attached::{Source, To};
    use crate::serve::forwarded::Forwarding;
    use crate::serve::services::Limits;
    use crate::serve::stream::Frames;
    use crate::serve::tenants::Tenants;
    use crate::store::Namespace;
    use prost::Message as _;
    use tokio::sync::mpsc;
    use tonic::codec::Codec;
    use tonic_prost::ProstCodec;

    #[test]
    fn the_time_of_a_call_is_that_of_its_header() {
        let wanted = |text: &'static str| {
            let mut request = Request::new(());
            request.metadata_mut().insert(TIMEOUT_HEADER, MetadataValue::from_static(text));
            let begin = Instant::now();
            deadline(&request).map(|until| (until - begin).as_secs())
        };
        for (text, seconds) in [("2H", 7200), ("1M", 60), ("5S", 5), ("7000m", 7), ("9000000u", 9)]
        {
            assert_eq!(wanted(text), Some(seconds), "{text}");
        }
        for wrong in ["", "S", "5", "5s", "-1S", "xS"] {
            assert_eq!(wanted(wrong), None, "{wrong:?}");
        }
        assert_eq!(deadline(&Request::new(())), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_message_is_read_in_time_and_is_not_too_large() {
        let attach = fleet::Attach { session_id: "s".to_owned(), ..Default::default() };
        let message = Some(Message::Attach(attach));
        let bytes = ConverseRequest { message: message.clone() }.encode_to_vec();
        let mut frame = vec![0];
        frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        frame.extend_from_slice(&bytes);
        let read = async |sent: &[u8], bytes_max: usize| {
            let sent = stream::iter([Ok::<_, Infallible>(sent.to_vec())]).chain(stream::pending());
            let decoder = ProstCodec::<ConverseRequest, ConverseRequest>::default().decoder();
            let body = axum::body::Body::from_stream(sent);
            let mut messages = Streaming::new_request(decoder, body, None, Some(bytes_max));
            first(&mut messages, bytes_max).await.map_err(|status| status.code())
        };
        assert_eq!(read(&frame, bytes.len()).await, Ok(message));
        assert_eq!(read(&frame, bytes.len() - 1).await, Err(Code::ResourceExhausted));
        assert_eq!(read(&frame[..frame.len() - 1], 100).await, Err(Code::InvalidArgument));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_client_stops_waiting() {
        let (to, frames) = Frames::new(Arc::default());
        let tenant =
            Tenants::new(Limits::default(), Arc::default()).get_or_insert(&Namespace::default());
        let requests = mpsc::channel(1).0;
        let there = To::There { requests, open: Forwarding::default().open(&Namespace::default()) };
        let attached = Attached::new(Arc::default(), Source::Here(frames), there, tenant, false);
        to.send(Arc::default()).await.expect("room");
        let until = Some(Instant::now() + Duration::from_secs(1));
        let given: Vec<_> = lines(attached.hello, attached.frames, until).collect().await;
        let codes: Vec<_> = given.iter().map(|it| it.as_ref().err().map(Status::code)).collect();
        assert_eq!(codes, [None, None, Some(tonic::Code::DeadlineExceeded)]);
    }
}
