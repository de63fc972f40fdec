//! Clients that this node passes on to another one: which of their requests are open, so that a node that ends does not
//! cut them.

use super::peers::refusal;
use super::refusal::Refusal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::support::lock;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tonic::Streaming;

/// What the clients that are passed on have in common.
#[derive(Debug)]
pub(super) struct Forwarding {
    ends: watch::Sender<Ends>,
    /// How many of them have an open request.
    busy: watch::Sender<usize>,
}

/// Whose frames end here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    None,
    /// Frames of clients without an open request.
    Idle,
    All,
}

impl Default for Forwarding {
    fn default() -> Self {
        Self { ends: watch::Sender::new(Ends::None), busy: watch::Sender::new(0) }
    }
}

impl Forwarding {
    /// Has each client end as soon as it has no open request.
    pub(super) fn end_idle(&self) {
        self.ends.send_replace(Ends::Idle);
    }

    /// Has all clients end.
    pub(super) fn end_all(&self) {
        self.ends.send_replace(Ends::All);
    }

    /// Waits until no client has an open request.
    pub(super) async fn emptied(&self) {
        // It has a sender as long as it is waited for.
        self.busy.subscribe().wait_for(|busy| *busy == 0).await.map(drop).ok();
    }

    /// The requests of a new client.
    pub(super) fn open(&self) -> Arc<Open> {
        let (ids, is_closed) = Default::default();
        Arc::new(Open { ids, is_closed, busy: self.busy.clone() })
    }

    /// The frames of a client, which another node sends over a connection where they have this place.
    pub(super) fn frames(
        &self,
        frames: Streaming<Frame>,
        open: Arc<Open>,
        place: OwnedSemaphorePermit,
    ) -> Forwarded {
        let ends = self.ends.subscribe();
        let at = *ends.borrow();
        let changes = stream::unfold(ends, |mut ends| async move {
            ends.changed().await.ok()?;
            let at = *ends.borrow_and_update();
            Some((at, ends))
        });
        Forwarded { frames, open, at, changes: changes.boxed(), _place: place }
    }
}

/// The requests of a client that it was shown no done of.
#[derive(Debug)]
pub(super) struct Open {
    ids: Mutex<HashSet<String>>,
    /// The client sends no more of them.
    is_closed: AtomicBool,
    busy: watch::Sender<usize>,
}

impl Open {
    pub(super) fn asked(&self, id: &str) {
        let mut ids = self.lock();
        if ids.is_empty() {
            self.busy.send_modify(|busy| *busy += 1);
        }
        ids.insert(id.to_owned());
    }

    /// The client has closed its side.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn answered(&self, id: &str) {
        let mut ids = self.lock();
        if ids.remove(id) && ids.is_empty() {
            self.busy.send_modify(|busy| *busy -= 1);
        }
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        lock(&self.ids)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.busy.send_modify(|busy| *busy -= 1);
        }
    }
}

/// The frames of a client, as another node sends them.
pub(super) struct Forwarded {
    frames: Streaming<Frame>,
    open: Arc<Open>,
    at: Ends,
    changes: BoxStream<'static, Ends>,
    _place: OwnedSemaphorePermit,
}

impl std::fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarded").field("open", &self.open).finish_non_exhaustive()
    }
}

impl Stream for Forwarded {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(given) = Pin::new(&mut self.frames).poll_next(context) {
            if let Some(Ok(Frame { frame: Some(Body::Done(_)), request_id, .. })) = &given {
                self.open.answered(request_id);
            }
            let given = given.map(|it| it.map(Arc::new).map_err(|status| refusal(&status)));
            return Poll::Ready(given);
        }
        while let Poll::Ready(Some(at)) = self.changes.poll_next_unpin(context) {
            self.at = at;
        }
        let is_over = match self.at {
            Ends::None => false,
            Ends::Idle => self.open.is_empty(),
            Ends::All => true,
        };
        if !is_over {
            return Poll::Pending;
        }
        if self.open.is_empty() && self.open.is_closed.load(Ordering::Acquire) {
            // It has all that it wanted, and would get the same end from the other node.
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
    use crate::protocol::wire::{self, Done};
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

    /// A client that is passed on, and the way of its frames.
    fn client(forwarding: &Forwarding) -> (mpsc::Sender<Frame>, Arc<Open>, Forwarded) {
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
        let open = forwarding.open();
        (to, Arc::clone(&open), forwarding.frames(frames, open, place))
    }

    #[tokio::test]
    async fn clients_end_once_they_have_no_open_request() {
        let forwarding = Forwarding::default();
        let (_idle, _, mut idle) = client(&forwarding);
        let (to, open, mut busy) = client(&forwarding);
        let (_stuck, stuck_open, mut stuck) = client(&forwarding);
        let (to_closed, closed_open, mut closed) = client(&forwarding);
        closed_open.asked("r");
        closed_open.close();
        open.asked("r");
        stuck_open.asked("r");
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
        // One that has closed its side ends well.
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
