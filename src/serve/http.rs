//! Conversations over plain HTTP, for scripts and browsers: request lines in, frames out, as JSON
//! Lines or as server-sent events (`form`).

mod form;

use self::form::{Form, LINES};
use super::attached::{Admitted, Attached};
use super::auth::Caller;
use super::client::Past;
use super::metrics;
use super::node::{Key, Node, Wanted};
use super::refusal::{Refusal, RefusalKind};
use super::rpc::{extensions, info};
use super::stored;
use super::tenants::{MemoryReservation, RETRY_AFTER, Tenant};
use super::traces::Parent;
use crate::protocol::any::read_message;
use crate::protocol::constants::code;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::fleet::{ListRequest, Session};
use crate::protocol::proto::rpc::RpcRequestLine;
use crate::protocol::proto::rpc::rpc_line::Frame as Frames;
use crate::protocol::wire::Frame;
use crate::store::OpenMode;
use axum::Router;
use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::{Extension, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the first frame is waited for, on which the status of the answer depends.
const FIRST_FRAME_MAX: Duration = Duration::from_secs(1);

/// Time for a body, and bytes of it that come in a second at least: what is large may take longer.
const BODY_MAX: Duration = Duration::from_secs(30);
const BODY_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// Limits of reading on in a body that is too large, so that a client which sends all of it before it reads sees why it
/// is refused: bytes, and the time in which none come.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
const DISCARD_SILENCE_MAX: Duration = Duration::from_millis(500);

/// Mark with which some programs begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The routes.
pub(super) fn router(node: &Arc<Node>) -> Router {
    Router::new()
        .route("/v1/sessions", get(list))
        .route("/v1/sessions/{id}", get(one).delete(delete))
        .route("/v1/sessions/{id}/requests", post(requests))
        .route("/v1/sessions/{id}/events", get(events))
        .route("/v1/sessions/{id}/export", get(export))
        .route("/v1/info", get(about))
        .method_not_allowed_fallback(async || wrong_method())
        .with_state(Arc::clone(node))
}

/// The routes for programs that watch a node.
pub(super) fn watched(node: &Arc<Node>) -> Router {
    Router::new()
        .route("/health/live", get(async || "ok\n"))
        .route("/health/ready", get(ready))
        .route("/metrics", get(async |State(node): OfNode| metrics::text(&node)))
        .method_not_allowed_fallback(async || wrong_method())
        .with_state(Arc::clone(node))
}

/// The answer at an address that nothing is at.
pub(super) fn nothing_here() -> Refusal {
    let why = "there is nothing at this address; check the path: `duologue help fleet` lists those there are";
    Refusal::new(RefusalKind::NotFound, why)
}

/// The answer where there is something for other methods, which the header `Allow` names.
fn wrong_method() -> Response {
    let why =
        "this address does not take this method; use one of the header Allow, or check the path";
    let refusal = Refusal::new(RefusalKind::Invalid, why);
    (StatusCode::METHOD_NOT_ALLOWED, document(&error(&refusal))).into_response()
}

/// A refusal before the request was looked at, in the form that its client reads.
pub(super) fn refused(request: &Request, refusal: Refusal) -> Response {
    match Form::of(None, request.headers()) {
        Ok(form) if request.method() == Method::GET => form.refused(refusal),
        Ok(_) | Err(_) => refusal.into_response(),
    }
}

/// Whether a request is handled to its end though its client has left: those that bring request lines are.
pub(super) fn outlives_client<B>(request: &Request<B>) -> bool {
    request.method() == Method::POST
}

/// The answer to a caller who is not authenticated.
pub(super) fn unauthenticated(why: &str) -> Response {
    let refused = json!({ "refused": { "code": "unauthenticated", "message": why } });
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, scheme, document(&refused)).into_response()
}

type OfNode = State<Arc<Node>>;

/// The parameters of an address. An unknown parameter is refused here, as axum's own rejection is not JSON.
struct Parameters<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = Query::from_request_parts(parts, state).await;
        read.map(|Query(read)| Self(read)).map_err(|why| unreadable(&why.body_text()))
    }
}

/// The parameters of an address that has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

/// Which part of the list is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Page {
    page_size: u32,
    page_token: String,
}

/// Options that a client may give in an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// Show the events after this one.
    since: Option<u64>,
    /// Names of extensions, with commas between them.
    extensions: String,
    /// `either`, `create` or `resume`.
    opening: Option<String>,
    /// `lines` or `sse`.
    format: Option<String>,
}

impl Options {
    fn wanted(
        &self,
        id: &str,
        past: Past,
        is_own_only: bool,
        headers: &HeaderMap,
    ) -> Result<Wanted, Refusal> {
        let invalid = |why: String| Refusal::new(RefusalKind::Invalid, why);
        let mode = match self.opening.as_deref() {
            None | Some("either") => OpenMode::Either,
            Some("create") => OpenMode::New,
            Some("resume") => OpenMode::Resume,
            Some(other) => {
                let why = format!("opening={other:?}: write either, create or resume");
                return Err(invalid(why));
            }
        };
        let names = self.extensions.split(',').map(str::trim).filter(|it| !it.is_empty());
        let (extensions, parent) = (extensions(names)?, Parent::of(headers));
        Ok(Wanted { session: Some(session(id)?), mode, extensions, past, is_own_only, parent })
    }
}

/// The id of the conversation in an address.
struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(id)| Self(id)).map_err(|why| unreadable(&why.body_text()))
    }
}

fn unreadable(why: &str) -> Refusal {
    let why = format!("the address can't be read: {why}; check its path and its parameters");
    Refusal::new(RefusalKind::Invalid, why)
}

fn session(id: &str) -> Result<SessionId, Refusal> {
    let invalid = |why: String| Refusal::new(RefusalKind::Invalid, why);
    let id = SessionId::parse(id).map_err(|error| invalid(format!("the id: {error}")))?;
    id.ok_or_else(|| invalid("the id of the conversation is blank; name one".to_owned()))
}

fn key(caller: &Caller, id: &str) -> Result<Key, Refusal> {
    Ok(Key { namespace: caller.tenant.clone(), session: session(id)? })
}

/// Answers the request lines of a body with the frames of these requests.
async fn requests(
    State(node): OfNode,
    caller: Extension<Caller>,
    Id(id): Id,
    Parameters(options): Parameters<Options>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    if options.since.is_some() {
        let why =
            "since is for …/events; leave it out: the answer has the frames of these requests";
        return Err(Refusal::new(RefusalKind::Invalid, why));
    }
    let (tenant, bytes_max) =
        (node.tenants.get_or_insert(&caller.tenant), node.services.request_bytes_max);
    let (key, length) = (key(&caller, &id)?, body.size_hint().lower());
    if length > bytes_max as u64 {
        // A body that waits for 100 Continue does not come then.
        if !headers.contains_key(header::EXPECT) {
            discard(&mut body.into_data_stream()).await;
        }
        return Err(too_large(bytes_max));
    }
    node.make_room(&key, length).await;
    let (body, reservation) = received(body.into_data_stream(), &tenant, bytes_max).await?;
    let text = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&body);
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let lines: Vec<RpcRequestLine> = lines.map(request).collect::<Result<_, _>>()?;
    if lines.is_empty() {
        let why = "the body has no request; send one JSON object a line, as in {\"submit\":{\"prompt\":\"hello\"}}";
        return Err(Refusal::new(RefusalKind::Invalid, why));
    }
    tenant.check_body(lines.len())?;
    let wanted = options.wanted(&id, Past::Nothing, true, &headers)?;
    let form = Form::of(options.format.as_deref(), &headers)?;
    // From here on each line is counted by itself.
    drop((body, reservation));
    // First, so that no conversation begins for a body that is beyond a limit.
    let taken = Instant::now();
    let lines = Admitted::all(lines, &tenant)?;
    // The client may send all of them again.
    let give_back = |_: &Refusal| Admitted::give_back(&lines, &tenant, taken);
    let attached = node.attach(&caller, wanted).await.inspect_err(give_back);
    let Attached { frames, mut asker, .. } = attached?;
    let mut frames = frames.outlasting(node.services.times.detached);
    let is_one = lines.len() == 1;
    tokio::spawn(async move {
        for line in lines {
            asker.pass_on(line).await;
        }
        asker.close().await;
    });
    // A refusal comes at once; a request that waits for its turn is answered before it has its turn.
    let first = timeout(FIRST_FRAME_MAX, frames.next()).await.ok().flatten();
    let is_refused = is_one && matches!(&first, Some(Ok(frame)) if is_beyond_limit(frame));
    let response = form.response(first, frames);
    Ok(match is_refused {
        false => response,
        true => {
            let after = [(header::RETRY_AFTER, retry(RETRY_AFTER))];
            (StatusCode::TOO_MANY_REQUESTS, after, response).into_response()
        }
    })
}

/// Reads a body; its bytes count for the tenant while it comes.
async fn received(
    mut body: BodyDataStream,
    tenant: &Arc<Tenant>,
    bytes_max: usize,
) -> Result<(Vec<u8>, MemoryReservation), Refusal> {
    let (mut bytes, mut reservation, begin) = (Vec::new(), tenant.reserve(), Instant::now());
    loop {
        let more = Duration::from_secs(bytes.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        let why = match timeout_at(begin + BODY_MAX + more, body.next()).await {
            Ok(Some(Ok(chunk))) if bytes.len() + chunk.len() > bytes_max => {
                drop((bytes, reservation));
                discard(&mut body).await;
                return Err(too_large(bytes_max));
            }
            Ok(Some(Ok(chunk))) => {
                reservation.receive(chunk.len() as u64)?;
                bytes.extend_from_slice(&chunk);
                continue;
            }
            Ok(None) => return Ok((bytes, reservation)),
            Ok(Some(Err(error))) => format!("the body was cut off ({error}); send it again"),
            Err(_) => "the body comes too slowly; send it again".to_owned(),
        };
        return Err(Refusal::new(RefusalKind::Invalid, why));
    }
}

fn too_large(bytes_max: usize) -> Refusal {
    let why = format!("the body has more than {bytes_max} bytes (--max-request-bytes); send less");
    Refusal::new(RefusalKind::TooLarge, why)
}

/// Reads on in a body that is refused, for a while.
async fn discard(body: &mut BodyDataStream) {
    let until = Instant::now() + BODY_MAX;
    let mut discarded = 0;
    while discarded < DISCARDED_BYTES_MAX && Instant::now() < until {
        let Ok(Some(Ok(chunk))) = timeout(DISCARD_SILENCE_MAX, body.next()).await else { return };
        discarded += chunk.len();
    }
}

/// Whether a request was refused because of a limit, and may come again.
fn is_beyond_limit(frame: &Frame) -> bool {
    matches!(&frame.frame, Some(Frames::Error(error)) if error.code == code::RESOURCE_EXHAUSTED)
}

/// The header that says when a request may come again, in whole seconds.
fn retry(after: Duration) -> HeaderValue {
    (after.as_secs() + u64::from(after.subsec_nanos() > 0)).into()
}

/// Parses a request line. One line that can't be parsed refuses the whole body.
fn request(line: &[u8]) -> Result<RpcRequestLine, Refusal> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string());
    let read = text.and_then(|text| read_message(text).map_err(|error| error.to_string()));
    read.map_err(|why| {
        let why = format!(
            "a line of the body is not a request in protobuf JSON, so nothing was run: {why}"
        );
        Refusal::new(RefusalKind::Invalid, why)
    })
}

/// Shows a conversation to a client that only reads.
async fn events(
    State(node): OfNode,
    caller: Extension<Caller>,
    Id(id): Id,
    Parameters(options): Parameters<Options>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    // Sent by a browser that connects again.
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let past = last.or(options.since).map_or(Past::Snapshot, |at| Past::Since(Ordinal(at)));
    let form = Form::of(options.format.as_deref(), &headers)?;
    let wanted = options.wanted(&id, past, false, &headers)?;
    Ok(match node.attach(&caller, wanted).await {
        Ok(attached) => {
            let (hello, frames) = attached.watched();
            form.response(Some(Ok(hello)), frames)
        }
        Err(refusal) => form.refused(refusal),
    })
}

async fn list(
    State(node): OfNode,
    caller: Extension<Caller>,
    Parameters(Page { page_size, page_token }): Parameters<Page>,
) -> Result<Response, Refusal> {
    let page = stored::list(&node, &caller, ListRequest { page_size, page_token }).await?;
    let sessions: Vec<_> = page.sessions.iter().map(session_json).collect();
    let mut answer = json!({ "sessions": sessions });
    if !page.next_page_token.is_empty() {
        answer["nextPageToken"] = json!(page.next_page_token);
    }
    Ok(document(&answer))
}

async fn one(
    State(node): OfNode,
    caller: Extension<Caller>,
    Id(id): Id,
    _: Parameters<NoOptions>,
) -> Result<Response, Refusal> {
    Ok(document(&session_json(&stored::get(&node, key(&caller, &id)?).await?)))
}

async fn delete(
    State(node): OfNode,
    caller: Extension<Caller>,
    Id(id): Id,
    _: Parameters<NoOptions>,
) -> Result<Response, Refusal> {
    stored::delete(&node, key(&caller, &id)?, false).await?;
    Ok(document(&json!({})))
}

async fn export(
    State(node): OfNode,
    caller: Extension<Caller>,
    Id(id): Id,
    _: Parameters<NoOptions>,
) -> Result<Response, Refusal> {
    let frames = stored::export(&node, key(&caller, &id)?).await?;
    let lines: Vec<u8> = frames.iter().flat_map(|frame| Form::Lines.frame(frame)).collect();
    Ok(([(header::CONTENT_TYPE, LINES)], lines).into_response())
}

async fn ready(State(node): OfNode) -> Response {
    match node.is_draining() {
        false => "ok\n".into_response(),
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response(),
    }
}

async fn about(State(node): OfNode, _: Parameters<NoOptions>) -> Response {
    let info = info(&node);
    document(&json!({
        "server": info.server, "version": info.version, "protocol": info.protocol,
        "conversations": info.conversations, "runs": info.runs, "clients": info.clients,
        "draining": info.draining,
    }))
}

fn session_json(session: &Session) -> Value {
    json!({
        "sessionId": session.session_id, "title": session.title, "turns": session.turns,
        // 64-bit integers are strings in protobuf's JSON.
        "bytes": session.bytes.to_string(), "createdMs": session.created_ms.to_string(),
        "updatedMs": session.updated_ms.to_string(),
    })
}

fn document(value: &Value) -> Response {
    let text = format!("{value}\n");
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn error(refusal: &Refusal) -> Value {
    json!({ "refused": { "code": word(refusal.kind), "message": refusal.message } })
}

fn word(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::Invalid => "invalid_argument",
        RefusalKind::NotFound => "not_found",
        RefusalKind::Exists => "already_exists",
        RefusalKind::Locked => "locked",
        RefusalKind::Exhausted | RefusalKind::TooLarge => code::RESOURCE_EXHAUSTED,
        RefusalKind::Unavailable | RefusalKind::Ending => "unavailable",
        RefusalKind::NoStore => "failed_precondition",
        RefusalKind::Failed => "failed",
        RefusalKind::Internal => code::INTERNAL,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.kind {
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            // Not 412, which is about the headers of a conditional request (RFC 9110, section 15.5.13).
            RefusalKind::Exists | RefusalKind::Locked | RefusalKind::NoStore => {
                StatusCode::CONFLICT
            }
            RefusalKind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalKind::Unavailable | RefusalKind::Ending => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Failed | RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = (status, document(&error(&self))).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, retry(after));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::services::Limits;
    use crate::serve::tenants::Tenants;
    use crate::store::Namespace;
    use futures_util::stream;
    use std::convert::Infallible;

    #[tokio::test(start_paused = true)]
    async fn a_body_is_counted_while_it_comes_and_comes_in_time() {
        let limits = Limits { tenant_bytes: Some(100), ..Limits::default() };
        let tenant = Tenants::new(limits, Arc::default()).get_or_insert(&Namespace::default());
        let read = async |chunks: &[&'static str], bytes_max: usize, is_whole: bool| {
            let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, Infallible>(*chunk)).collect();
            let rest = stream::pending().take(usize::from(!is_whole));
            let body = Body::from_stream(stream::iter(chunks).chain(rest));
            let received = received(body.into_data_stream(), &tenant, bytes_max).await;
            received.map_err(|refusal| refusal.kind)
        };
        let (bytes, reservation) = read(&["one", "two"], 6, true).await.expect("a body");
        assert_eq!((bytes.as_slice(), reservation.bytes()), (&b"onetwo"[..], 6));
        drop(reservation);
        let kind = async |chunks: &[&'static str], bytes_max: usize, is_whole: bool| {
            let refused = read(chunks, bytes_max, is_whole).await.expect_err("a refusal");
            assert!(tenant.receive(99).is_ok(), "nothing is reserved any more");
            refused
        };
        assert_eq!(kind(&["one", "two"], 5, true).await, RefusalKind::TooLarge);
        let large = "0123456789012345678901234567890123456789";
        assert_eq!(kind(&[large; 3], 1000, false).await, RefusalKind::Exhausted);
        assert_eq!(kind(&["never finished"], 1000, false).await, RefusalKind::Invalid);
    }
}
