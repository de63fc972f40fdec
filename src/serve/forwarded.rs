//! Clients that this node passes on to another one, and their open requests: a node that ends waits for these.

use super::client::OPEN_MAX;
use super::peers::refusal;
use super::refusal::Refusal;
use crate::protocol::constants::code;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Done, Frame};
use crate::store::Namespace;
use crate::support::lock;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tonic::Streaming;

/// Requests of a client that are remembered when they have ended: as many as the node that answers them remembers.
const ENDED_MAX: usize = OPEN_MAX * 4;

/// State that all clients share that are passed on.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    ends: watch::Sender<Ends>,
    /// Clients with an open request.
    busy: watch::Sender<usize>,
    tenants: Arc<Mutex<Tenants>>,
}

/// How many clients are passed on for each tenant that has some.
type Tenants = HashMap<Namespace, usize>;

/// Clients whose streams this node ends.
#[derive(Clone, Debug, Default)]
struct Ends {
    drained: Drained,
    /// Tenants that are not served any more.
    unserved: Arc<HashSet<Namespace>>,
}

/// Clients whose streams end as the node ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drained {
    #[default]
    None,
    /// Clients without an open request.
    Idle,
    All,
}

impl Forwarding {
    /// Has each client end as soon as it has no open request.
    pub(super) fn end_idle(&self) {
        self.ends.send_modify(|ends| ends.drained = Drained::Idle);
    }

    /// Has all clients end.
    pub(super) fn end_all(&self) {
        self.ends.send_modify(|ends| ends.drained = Drained::All);
    }

    /// Has the clients of the tenants end that are not served any more.
    pub(super) fn end_unserved(&self, is_served: impl Fn(&Namespace) -> bool) {
        let unserved: HashSet<_> =
            lock(&self.tenants).keys().filter(|tenant| !is_served(tenant)).cloned().collect();
        self.ends.send_modify(|ends| ends.unserved = Arc::new(unserved));
    }

    /// Waits until no client has an open request.
    pub(super) async fn emptied(&self) {
        // The sender lives as long as this is waited for.
        self.busy.subscribe().wait_for(|busy| *busy == 0).await.map(drop).ok();
    }

    /// The requests of a new client of this tenant.
    pub(super) fn open(&self, tenant: &Namespace) -> Arc<Open> {
        *lock(&self.tenants).entry(tenant.clone()).or_default() += 1;
        Arc::new(Open {
            ids: Mutex::default(),
            is_closed: AtomicBool::new(false),
            busy: self.busy.clone(),
            tenant: tenant.clone(),
            tenants: Arc::clone(&self.tenants),
        })
    }

    /// The frames of a client, which another node sends over a connection where they have this place.
    pub(super) fn frames(
        &self,
        frames: Streaming<Frame>,
        open: Arc<Open>,
        place: OwnedSemaphorePermit,
    ) -> Forwarded {
        let ends = self.ends.subscribe();
        let at = ends.borrow().clone();
        let changes = stream::unfold(ends, |mut ends| async move {
            ends.changed().await.ok()?;
            let at = ends.borrow_and_update().clone();
            Some((at, ends))
        });
        Forwarded {
            frames,
            open,
            run: String::new(),
            reused: String::new(),
            at,
            changes: changes.boxed(),
            _place: place,
        }
    }
}

/// The requests of a client that is passed on whose done was not shown to it.
#[derive(Debug)]
pub(super) struct Open {
    ids: Mutex<Ids>,
    /// The client sends no more requests.
    is_closed: AtomicBool,
    busy: watch::Sender<usize>,
    tenant: Namespace,
    /// Clients of each tenant, among which this one counts.
    tenants: Arc<Mutex<Tenants>>,
}

/// Ids of requests.
#[derive(Debug, Default)]
struct Ids {
    open: HashSet<String>,
    /// Open requests that were sent once more: if the second one is refused, the first one stays open.
    again: HashSet<String>,
    /// Requests whose done was shown to the client. The other node sends no second done, unless nothing came of the
    /// request.
    ended: HashSet<String>,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Handled,
    /// Nothing has come of the request, so that it is handled when it is sent again.
    Refused,
    /// Another request has the id: what is known of that one stays.
    Reused,
}

impl Open {
    /// Notes a request of the client; `comes_again`: a request that is handled each time that it is sent.
    pub(super) fn asked(&self, id: &str, comes_again: bool) {
        let mut ids = self.lock();
        if ids.ended.contains(id) && !comes_again {
            return;
        }
        if ids.open.is_empty() {
            self.busy.send_modify(|busy| *busy += 1);
        }
        if !ids.open.insert(id.to_owned()) {
            ids.again.insert(id.to_owned());
        }
    }

    /// Notes that the client sends no more requests.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Notes that the client was shown the done of a request; `end` says how the request has ended.
    fn answered(&self, id: &str, end: End) {
        let mut ids = self.lock();
        let stays = ids.again.remove(id) && matches!(end, End::Reused);
        if !stays && ids.open.remove(id) && ids.open.is_empty() {
            self.busy.send_modify(|busy| *busy -= 1);
        }
        match end {
            End::Handled => {
                if ids.ended.len() >= ENDED_MAX {
                    ids.ended.clear();
                }
                ids.ended.insert(id.to_owned());
            }
            End::Refused => {
                ids.ended.remove(id);
            }
            End::Reused => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.lock().open.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        lock(&self.ids)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.busy.send_modify(|busy| *busy -= 1);
        }
        let mut tenants = lock(&self.tenants);
        if let Some(clients) = tenants.get_mut(&self.tenant) {
            *clients -= 1;
            if *clients == 0 {
                tenants.remove(&self.tenant);
            }
        }
    }
}

/// The frames of a client, as another node sends them.
pub(super) struct Forwarded {
    frames: Streaming<Frame>,
    open: Arc<Open>,
    /// The request of the newest event, or of the newest failed run, whose events the client may not be shown.
    run: String,
    /// The newest request that was refused because another request has its id.
    reused: String,
    at: Ends,
    changes: BoxStream<'static, Ends>,
    _place: OwnedSemaphorePermit,
}

impl std::fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarded").field("open", &self.open).finish_non_exhaustive()
    }
}

impl Forwarded {
    /// Notes a frame that the client is shown.
    fn note(&mut self, Frame { request_id, frame, .. }: &Frame) {
        match frame {
            Some(Body::UiEvent(_) | Body::BackendEvent(_)) if self.run != *request_id => {
                self.run.clone_from(request_id);
            }
            Some(Body::Error(error)) => match error.code.as_str() {
                code::RUN_FAILED
                | code::ENGINE_INIT_FAILED
                | code::INVALID_ANSWER
                | code::COMPACTION_FAILED => self.run.clone_from(request_id),
                code::REQUEST_ID_REUSED => self.reused.clone_from(request_id),
                _ => {}
            },
            Some(Body::Done(done)) => {
                let end = self.end(request_id, done.status == Done::Failed.as_str());
                self.open.answered(request_id, end);
            }
            Some(Body::Hello(_) | Body::Snapshot(_) | Body::UiEvent(_) | Body::BackendEvent(_))
            | None => {}
        }
    }

    /// How the request has ended that the client is just shown the done of.
    fn end(&mut self, request: &str, has_failed: bool) -> End {
        if std::mem::take(&mut self.reused) == request {
            return End::Reused;
        }
        if has_failed && self.run != request { End::Refused } else { End::Handled }
    }
}

impl Stream for Forwarded {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(given) = Pin::new(&mut self.frames).poll_next(context) {
            if let Some(Ok(frame)) = &given {
                self.note(frame);
            }
            let given = given.map(|it| it.map(Arc::new).map_err(|status| refusal(&status)));
            return Poll::Ready(given);
        }
        while let Poll::Ready(Some(at)) = self.changes.poll_next_unpin(context) {
            self.at = at;
        }
        if self.at.unserved.contains(&self.open.tenant) {
            return Poll::Ready(Some(Err(Refusal::unserved())));
        }
        let is_over = match self.at.drained {
            Drained::None => false,
            Drained::Idle => self.open.is_empty(),
            Drained::All => true,
        };
        if !is_over {
            return Poll::Pending;
        }
        if self.open.is_empty() && self.open.is_closed.load(Ordering::Acquire) {
            // The client has all that it wanted, and would get the same end from the other node.
            return Poll::Ready(None);
        }
        let why = "the node that the client is connected to ends; attach again, at another node";
        Poll::Ready(Some(Err(Refusal::unavailable(why))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::id::{RequestId, SessionId};
    use crate::protocol::proto::rpc::{ErrorFrame, UiEventFrame};
    use crate::protocol::wire;
    use axum::body::Body as HttpBody;
    use bytes::Bytes;
    use futures_util::poll;
    use prost::Message;
    use std::convert::Infallible;
    use std::pin::pin;
    use tokio::sync::{Semaphore, mpsc};
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::codec::Codec;
    use tonic_prost::ProstCodec;

    /// A client that is passed on, with the sender of its frames.
    fn client(forwarding: &Forwarding) -> (mpsc::Sender<Frame>, Arc<Open>, Forwarded) {
        client_of(&Namespace::default(), forwarding)
    }

    fn client_of(
        tenant: &Namespace,
        forwarding: &Forwarding,
    ) -> (mpsc::Sender<Frame>, Arc<Open>, Forwarded) {
        slow_client_of(tenant, || (), forwarding)
    }

    /// A client that is just being passed on when something else happens.
    fn slow_client_of(
        tenant: &Namespace,
        meanwhile: impl FnOnce(),
        forwarding: &Forwarding,
    ) -> (mpsc::Sender<Frame>, Arc<Open>, Forwarded) {
        let (to, sent) = mpsc::channel::<Frame>(1);
        let sent = ReceiverStream::new(sent).map(|frame| {
            let bytes = frame.encode_to_vec();
            let length = u32::try_from(bytes.len()).expect("a short frame").to_be_bytes();
            // As gRPC has it: not compressed, the length, the message.
            Ok::<_, Infallible>(Bytes::from([&[0], &length[..], &bytes].concat()))
        });
        let decoder = ProstCodec::<Frame, Frame>::default().decoder();
        let body = HttpBody::from_stream(sent);
        let frames = Streaming::new_request(decoder, body, None, None);
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a place");
        let open = forwarding.open(tenant);
        meanwhile();
        (to, Arc::clone(&open), forwarding.frames(frames, open, place))
    }

    /// The end of such a request would be waited for in vain.
    #[tokio::test]
    async fn a_request_that_was_answered_is_not_open_when_it_is_sent_again() {
        let forwarding = Forwarding::default();
        let (to, open, mut frames) = client(&forwarding);
        let session = SessionId::new("s").expect("an id");
        for (status, comes_again, is_open) in [
            (Done::Ok, false, false),
            (Done::Ok, true, true),
            // Nothing came of it, so that it is handled.
            (Done::Failed, false, true),
        ] {
            open.asked("r", true);
            assert!(!open.is_empty());
            let done = wire::frame(&session, RequestId::new("r").as_ref(), wire::done(status));
            to.send(done).await.expect("room");
            assert!(frames.next().await.expect("a done").is_ok() && open.is_empty());
            open.asked("r", comes_again);
            assert_eq!(!open.is_empty(), is_open, "{status:?}");
        }
    }

    /// Requests stay answered when another request with the id is refused, and when a run fails whose events are not
    /// shown.
    #[tokio::test]
    async fn a_request_that_was_answered_is_not_taken_for_a_refused_one() {
        let forwarding = Forwarding::default();
        let (to, open, mut frames) = client(&forwarding);
        let session = SessionId::new("s").expect("an id");
        let mut show = async |id: &str, bodies: Vec<Body>| {
            for body in bodies {
                to.send(wire::frame(&session, RequestId::new(id).as_ref(), body))
                    .await
                    .expect("room");
                assert!(frames.next().await.expect("a frame").is_ok());
            }
        };
        let failed = |code: &str| {
            let error = ErrorFrame { code: code.to_owned(), ..Default::default() };
            vec![Body::Error(error), wire::done(Done::Failed)]
        };
        let is_open = |id: &str, comes_again: bool| {
            open.asked(id, comes_again);
            !open.is_empty()
        };
        assert!(is_open("r", false));
        show("r", vec![wire::done(Done::Ok)]).await;
        assert!(is_open("r2", false));
        show("r2", vec![Body::UiEvent(UiEventFrame::default()), wire::done(Done::Ok)]).await;
        for comes_again in [false, true] {
            assert_eq!(is_open("r", comes_again), comes_again, "another request with the id");
            show("r", failed(code::REQUEST_ID_REUSED)).await;
            assert!(!is_open("r", false));
        }
        for code in [code::RUN_FAILED, code::INVALID_ANSWER, code::COMPACTION_FAILED] {
            assert!(is_open(code, false));
            show(code, failed(code)).await;
            assert!(!is_open(code, false), "it has run");
        }
        assert!(is_open("own", false) && is_open("own", false));
        show("own", failed(code::REQUEST_ID_REUSED)).await;
        assert!(!open.is_empty(), "the first one goes on");
        show("own", vec![wire::done(Done::Ok)]).await;
        assert!(open.is_empty());
        assert!(is_open("other", false));
        show("other", failed(code::REQUEST_ID_REUSED)).await;
        assert!(
            is_open("other", false),
            "that of another client, which this one has not seen the end of"
        );
    }

    #[tokio::test]
    async fn clients_of_a_tenant_that_is_not_served_any_more_end() {
        let forwarding = Forwarding::default();
        let [ann, bob] = ["ann", "bob"].map(Namespace::of_tenant);
        let (_ann, ann_open, mut of_ann) = client_of(&ann, &forwarding);
        let (_bob, _, mut of_bob) = client_of(&bob, &forwarding);
        ann_open.asked("r", false);
        forwarding.end_unserved(|tenant| *tenant != ann);
        let refusal = of_ann.next().await.expect("an end").expect_err("a refusal");
        assert_eq!(refusal, Refusal::unserved());
        assert!(poll!(of_bob.next()).is_pending());
        drop((ann_open, of_ann));
        // A client that is just being passed on.
        let end = || forwarding.end_unserved(|tenant| *tenant != ann);
        let (_ann, _, mut of_ann) = slow_client_of(&ann, end, &forwarding);
        assert_eq!(of_ann.next().await, Some(Err(Refusal::unserved())));
        drop(of_ann);
        // The tenant is served again.
        forwarding.end_unserved(|_| true);
        let (_ann, _, mut of_ann) = client_of(&ann, &forwarding);
        assert!(poll!(of_ann.next()).is_pending() && poll!(of_bob.next()).is_pending());
        drop((of_ann, of_bob));
        assert!(lock(&forwarding.tenants).is_empty());
    }

    #[tokio::test]
    async fn clients_end_once_they_have_no_open_request() {
        let forwarding = Forwarding::default();
        let (_idle, _, mut idle) = client(&forwarding);
        let (to, open, mut busy) = client(&forwarding);
        let (_stuck, stuck_open, mut stuck) = client(&forwarding);
        let (to_closed, closed_open, mut closed) = client(&forwarding);
        closed_open.asked("r", false);
        closed_open.close();
        open.asked("r", false);
        stuck_open.asked("r", false);
        for frames in [&mut idle, &mut busy, &mut stuck, &mut closed] {
            assert!(poll!(frames.next()).is_pending());
        }
        forwarding.end_idle();
        let mut emptied = pin!(forwarding.emptied());
        assert!(poll!(&mut emptied).is_pending());
        assert!(idle.next().await.expect("an end").is_err());
        assert!(poll!(busy.next()).is_pending());
        let (session, id) = (SessionId::new("s").expect("an id"), RequestId::new("r"));
        to.send(wire::frame(&session, id.as_ref(), wire::done(Done::Ok))).await.expect("room");
        assert!(busy.next().await.expect("a done").is_ok());
        assert!(busy.next().await.expect("an end").is_err());
        // A client that has closed its side ends well.
        assert!(poll!(closed.next()).is_pending());
        to_closed
            .send(wire::frame(&session, id.as_ref(), wire::done(Done::Ok)))
            .await
            .expect("room");
        assert!(closed.next().await.expect("a done").is_ok());
        assert!(closed.next().await.is_none());
        assert!(poll!(stuck.next()).is_pending() && poll!(&mut emptied).is_pending());
        forwarding.end_all();
        assert!(stuck.next().await.expect("an end").is_err());
        drop((stuck, stuck_open));
        emptied.await;
    }
}
