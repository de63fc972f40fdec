//! Stored conversations: lists, exports, copies, deletions. Each runs in a thread, as a store may be slow; threads are
//! limited per tenant and per node.

use super::auth::Caller;
use super::node::{ATTEMPT_INTERVAL, Key, Node, TAKE_OVER_MAX};
use super::refusal::{Refusal, RefusalKind};
use super::tenants::Tenant;
use crate::protocol::id::{Ids, SessionId};
use crate::protocol::proto::fleet::{ForkResponse, ListRequest, ListResponse, Session};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, Frame};
use crate::store::{
    Deleted, Library, Namespace, NotAdded, OpenMode, StoreSettings, Summary, add_session,
};
use crate::support::terminal::escape_control;
use crate::support::threads;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Sessions of a page of the list, and of one without a size.
const PAGE_MAX: usize = 1000;
const PAGE: usize = 100;

/// Start of a page of the list: after the session with this time and id.
type Place = (i64, String);

/// Runs `work` on the library in a thread, once there is one.
async fn find<T: Send + 'static>(
    node: &Node,
    namespace: &Namespace,
    work: impl FnOnce(Library) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let library = node.services.library.clone().ok_or_else(|| {
        let why = "this node stores no conversations; start it with --store";
        Refusal::new(RefusalKind::NoStore, why)
    })?;
    let library = library.within(namespace.clone());
    let tenant = node.tenants.get_or_insert(namespace);
    in_turn(&tenant, &node.lookups, move || work(library)).await
}

/// Runs `work` in a thread, after earlier work of its tenant. The thread keeps its permits if nobody waits for the
/// answer any more.
async fn in_turn<T: Send + 'static>(
    tenant: &Tenant,
    node: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let permits = [permit(&tenant.lookups).await?, permit(node).await?];
    let (to, found) = oneshot::channel();
    let work = move || {
        let answer = work();
        drop(permits);
        drop(to.send(answer));
    };
    threads::spawn("serve-store", work).map_err(|error| failed(error.to_string()))?;
    found.await.map_err(|_| Refusal::defect())?
}

async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(of).acquire_owned().await.map_err(|_| Refusal::defect())
}

fn failed(why: String) -> Refusal {
    Refusal::of_store(why)
}

fn not_found(session: &SessionId) -> Refusal {
    let id = escape_control(session.as_str());
    Refusal::new(
        RefusalKind::NotFound,
        format!("the session {id} is not in the store; list the sessions"),
    )
}

/// A page of the list.
pub(super) async fn list(
    node: &Node,
    caller: &Caller,
    request: ListRequest,
) -> Result<ListResponse, Refusal> {
    let size = match usize::try_from(request.page_size).unwrap_or(PAGE_MAX) {
        0 => PAGE,
        size => size.min(PAGE_MAX),
    };
    let after = after(&request.page_token, node.takes_zeros())?;
    find(node, &caller.tenant, move |library| {
        // One session more shows whether another page follows.
        let listing = library.newest(after.as_ref(), size + 1).map_err(failed)?;
        for loss in &listing.losses {
            tracing::warn!("not all sessions can be listed: {}", escape_control(loss));
        }
        Ok(page(listing.sessions, size, after.as_ref()))
    })
    .await
}

/// Parses a page token; `None`: the first page. `takes_zeros`: whether the id in it may have a NUL.
fn after(token: &str, takes_zeros: bool) -> Result<Option<Place>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let after = token.split_once(':').filter(|(_, id)| takes_zeros || !id.contains('\0'));
    let after = after.and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    let why = "page_token is none that this node has given; leave it out for the first page";
    after.map(Some).ok_or_else(|| Refusal::new(RefusalKind::Invalid, why))
}

fn page(mut all: Vec<Summary>, size: usize, after: Option<&Place>) -> ListResponse {
    let key = |it: &Summary| (it.updated_ms, it.id.clone());
    all.sort_by_key(|it| std::cmp::Reverse(key(it)));
    if let Some(after) = after {
        all.retain(|it| key(it) < *after);
    }
    let is_more = all.len() > size;
    all.truncate(size);
    let last = all.last().filter(|_| is_more);
    let next_page_token =
        last.map_or_else(String::new, |it| format!("{}:{}", it.updated_ms, it.id));
    ListResponse { sessions: all.into_iter().map(session).collect(), next_page_token }
}

fn session(summary: Summary) -> Session {
    let Summary { id, title, turns, bytes, created_ms, updated_ms, .. } = summary;
    Session { session_id: id, title, turns, bytes, created_ms, updated_ms }
}

/// The entry of one conversation in the list.
pub(super) async fn get(node: &Node, key: Key) -> Result<Session, Refusal> {
    node.check(&key)?;
    let Key { namespace, session: wanted } = key;
    find(node, &namespace, move |library| {
        let found = library.summary(&wanted).map_err(failed)?;
        found.map(session).ok_or_else(|| not_found(&wanted))
    })
    .await
}

/// Deletes a conversation. An open one is ended first, here or at the node that holds it.
pub(super) async fn delete(node: &Arc<Node>, key: Key, is_forwarded: bool) -> Result<(), Refusal> {
    node.check(&key)?;
    if node.services.library.is_some() {
        // First, as a conversation that its store can't delete is not ended either.
        let session = key.session.clone();
        let read = move |library: Library| {
            let why = |error| failed(format!("nothing was deleted: {error}"));
            library.check_each(&session).map_err(why)
        };
        find(node, &key.namespace, read).await?;
    }
    // Clients that come back meanwhile are told to wait, and don't have it opened again.
    let _deleting = node.deleting(&key);
    let was_open = node.end(&key, was_deleted()).await;
    // Without a store the conversation is in memory or nowhere.
    if node.services.library.is_none() {
        let why = "there is no such conversation in memory, and this node stores none";
        return was_open.then_some(()).ok_or_else(|| Refusal::new(RefusalKind::NotFound, why));
    }
    let until = Instant::now() + TAKE_OVER_MAX;
    let mut was_there = was_open;
    loop {
        let refusal = match delete_here(node, &key, was_there).await {
            Err(refusal) if refusal.kind == RefusalKind::Locked => refusal,
            deleted => return deleted,
        };
        let refusal = match refusal.holder.as_deref().filter(|_| node.peers.is_fleet()) {
            // The conversation was about to be opened, or to leave memory.
            Some(own) if node.peers.is_own(own) => {
                was_there |= node.end(&key, was_deleted()).await;
                refusal
            }
            Some(holder) if !is_forwarded => match delete_at_holder(node, holder, &key).await {
                ControlFlow::Break(deleted) => return deleted,
                ControlFlow::Continue(there) => {
                    was_there = true;
                    there
                }
            },
            Some(_) | None => return Err(refusal),
        };
        if Instant::now() >= until {
            return Err(refusal);
        }
        sleep(ATTEMPT_INTERVAL).await;
    }
}

/// Has the node that holds a conversation delete it. `Continue`: that node has just let go of the conversation, or is
/// gone, and may have deleted it before.
async fn delete_at_holder(
    node: &Node,
    holder: &str,
    key: &Key,
) -> ControlFlow<Result<(), Refusal>, Refusal> {
    match node.peers.delete(holder, &key.namespace, &key.session).await {
        Err(there) if there.may_pass() => ControlFlow::Continue(there),
        deleted => ControlFlow::Break(deleted),
    }
}

/// The refusal for the clients of a conversation that is deleted.
fn was_deleted() -> Refusal {
    Refusal::new(RefusalKind::NotFound, "the conversation was deleted")
}

/// Deletes a conversation that no other process holds. If it `was_there`, it may be missing by now.
async fn delete_here(node: &Node, key: &Key, was_there: bool) -> Result<(), Refusal> {
    let session = key.session.clone();
    find(node, &key.namespace, move |library| match library.delete_here(&session) {
        Ok(Deleted::Whole | Deleted::ButLog) => Ok(()),
        // The conversation had no turn yet, or another node has deleted it.
        Ok(Deleted::Missing) if was_there => Ok(()),
        Ok(Deleted::Missing) => Err(not_found(&session)),
        Err((message, Some(holder))) => {
            let holder = Some(holder).filter(|holder| !holder.is_empty());
            Err(Refusal { holder, ..Refusal::new(RefusalKind::Locked, message) })
        }
        Err((why, None)) => Err(failed(why)),
    })
    .await
}

/// The frames of an export: hello, and a snapshot.
pub(super) async fn export(node: &Node, key: Key) -> Result<Vec<Frame>, Refusal> {
    node.check(&key)?;
    let Key { namespace, session } = key;
    find(node, &namespace, move |library| {
        let conversation = library.conversation(&session).map_err(failed)?;
        let conversation = conversation.ok_or_else(|| not_found(&session))?;
        if let Some(loss) = &conversation.loss {
            tracing::warn!("not all of a session can be exported: {}", escape_control(loss));
        }
        let words = ["ui-events", "snapshot", "done"].map(str::to_owned);
        let frame = |body: Body| wire::frame(&session, None, body);
        Ok(vec![frame(wire::hello(words.to_vec())), frame(wire::snapshot(conversation.state))])
    })
    .await
}

/// Copies the turns of a conversation that have ended.
pub(super) async fn fork(
    node: &Node,
    from: Key,
    to: Option<SessionId>,
) -> Result<ForkResponse, Refusal> {
    node.check(&from)?;
    let Key { namespace, session: from } = from;
    let session = to.unwrap_or_else(|| Ids::new(Uuid::new_v4().as_u128()).session());
    let to = Key { namespace: namespace.clone(), session: session.clone() };
    node.check_new(&to)?;
    if node.is_open(&to) {
        return Err(is_there());
    }
    let tenant = namespace.clone();
    let (places, folder) = (node.services.places.clone(), String::new());
    find(node, &tenant, move |library| {
        let ended = library.ended_turns(&from).map_err(failed)?.ok_or_else(|| not_found(&from))?;
        if let Some(loss) = &ended.loss {
            tracing::warn!("not all of a session can be copied: {}", escape_control(loss));
        }
        if let Some(omission) = ended.omission() {
            tracing::warn!("not all of a session was copied: {omission}");
        }
        let mut ids = Ids::new(Uuid::new_v4().as_u128());
        let turns = u32::try_from(ended.copy.turns.len()).unwrap_or(u32::MAX);
        let settings = StoreSettings {
            places,
            mode: OpenMode::New,
            folder,
            lock_wait: Duration::ZERO,
            namespace,
        };
        match add_session(settings, &session, ended.copy, &mut ids) {
            Ok(()) => Ok(ForkResponse { session_id: session.as_str().to_owned(), turns }),
            Err(NotAdded::Exists) => Err(is_there()),
            Err(NotAdded::Locked(why)) => Err(Refusal::new(RefusalKind::Locked, why)),
            Err(NotAdded::Failed(why)) => Err(failed(why)),
        }
    })
    .await
}

fn is_there() -> Refusal {
    let why = "there is a conversation of this id already; choose another id";
    Refusal::new(RefusalKind::Exists, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::services::Limits;
    use crate::serve::tenants::Tenants;
    use futures_util::future::join_all;
    use futures_util::poll;
    use std::sync::{Mutex, mpsc};

    fn summary(number: i64) -> Summary {
        Summary { id: format!("s{number}"), updated_ms: number / 7, ..Summary::default() }
    }

    #[test]
    fn pages_have_each_session_once() {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let after = after(&token, true).expect("a token");
            let page = page((0..250).map(summary).collect(), 100, after.as_ref());
            found.extend(page.sessions.into_iter().map(|it| it.session_id));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        let mut unique = found.clone();
        unique.sort();
        unique.dedup();
        assert_eq!((found.len(), unique.len()), (250, 250));
        assert!(after("x", true).is_err() && after("1:\0", false).is_err());
    }

    /// Threads count also when nobody waits for them any more.
    #[tokio::test]
    async fn a_tenant_has_few_threads_at_once() {
        let tenants = Tenants::new(Limits::default(), Arc::default());
        let node = Arc::new(Semaphore::new(4));
        let (started, starts) = mpsc::channel();
        let (open, opened) = mpsc::channel::<()>();
        let opened = Arc::new(Mutex::new(opened));
        let asked = |name: &str| {
            let (tenant, node) =
                (tenants.get_or_insert(&Namespace::of_tenant(name)), Arc::clone(&node));
            let (name, started, opened) = (name.to_owned(), started.clone(), Arc::clone(&opened));
            async move {
                let work = move || {
                    started.send(name).expect("a test");
                    // This fails once the other end is gone.
                    opened.lock().expect("no panic").recv().ok();
                    Ok(())
                };
                in_turn(&tenant, &node, work).await
            }
        };
        let mut left = Box::pin(join_all((0..20).map(|_| asked("ann"))));
        assert!(poll!(&mut left).is_pending());
        drop(left);
        let mut waiting = Box::pin(join_all((0..20).map(|_| asked("ann"))));
        assert!(poll!(&mut waiting).is_pending());
        let mut other = Box::pin(asked("bob"));
        assert!(poll!(&mut other).is_pending());
        let mut first: Vec<_> = (0..3).map(|_| starts.recv().expect("a thread")).collect();
        first.sort();
        assert_eq!(first, ["ann", "ann", "bob"]);
        drop(open);
        assert_eq!(other.await, Ok(()));
        assert!(waiting.await.iter().all(Result::is_ok));
        assert_eq!(starts.try_iter().count(), 20);
    }
}
