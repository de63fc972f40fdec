//! The stream of a client: a conversation fills it, and the connection of the client empties it. Each of them
//! learns why the other has ended.

use super::refusal::Refusal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::support::lock;
use futures_util::Stream;
use prost::Message;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use tokio::sync::{Notify, mpsc};

/// Frames that wait in the stream of a client.
const STREAM_FRAMES_MAX: usize = 32;

/// State that a conversation and the stream of a client share.
#[derive(Debug)]
pub(super) struct Link {
    /// Frames that the stream has still to give.
    queue: Mutex<mpsc::Receiver<Arc<Frame>>>,
    /// The conversation waits for room in the stream.
    is_awaited: AtomicBool,
    /// Bytes of the snapshots that were sent to the stream and that its connection has not written.
    unwritten_snapshot_bytes: AtomicUsize,
    /// The connection has written a snapshot since the conversation has looked.
    has_written_snapshot: AtomicBool,
    /// Wakes the conversation, also when the stream has ended.
    room: Arc<Notify>,
    /// Why the stream ends.
    outcome: OnceLock<Result<(), Refusal>>,
}

/// The frames of a client.
#[derive(Debug)]
pub(super) struct Frames {
    link: Arc<Link>,
    /// Bytes of the snapshot that the connection is writing: it polls for more once that is written.
    writes: usize,
    is_over: bool,
}

impl Frames {
    /// A stream, and the sender that fills it. `room` wakes the conversation.
    pub(super) fn new(room: Arc<Notify>) -> (mpsc::Sender<Arc<Frame>>, Self) {
        let (to, from) = mpsc::channel(STREAM_FRAMES_MAX);
        let link = Link {
            queue: Mutex::new(from),
            is_awaited: AtomicBool::new(false),
            unwritten_snapshot_bytes: AtomicUsize::new(0),
            has_written_snapshot: AtomicBool::new(false),
            room,
            outcome: OnceLock::new(),
        };
        (to, Self { link: Arc::new(link), writes: 0, is_over: false })
    }

    pub(super) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }
}

impl Stream for Frames {
    type Item = Result<Arc<Frame>, Refusal>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Arc<Frame>, Refusal>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.writes > 0 {
            let written = std::mem::take(&mut self.writes);
            self.link.unwritten_snapshot_bytes.fetch_sub(written, Ordering::Relaxed);
            self.link.has_written_snapshot.store(true, Ordering::Relaxed);
            self.link.room.notify_one();
        }
        let Poll::Ready(given) = self.link.queue().poll_recv(context) else { return Poll::Pending };
        if self.link.is_awaited.swap(false, Ordering::AcqRel) {
            self.link.room.notify_one();
        }
        if let Some(frame) = given {
            self.writes = snapshot_bytes(&frame);
            return Poll::Ready(Some(Ok(frame)));
        }
        self.is_over = true;
        let defect = || Err(Refusal::conversation_defect());
        let outcome = self.link.outcome.get_or_init(defect).clone();
        Poll::Ready(outcome.err().map(Err))
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.link.forget();
        self.link.room.notify_one();
    }
}

/// Bytes of a frame if it is a snapshot, which is as long as its conversation; otherwise 0.
pub(super) fn snapshot_bytes(frame: &Frame) -> usize {
    if let Some(Body::Snapshot(_)) = frame.frame { frame.encoded_len() } else { 0 }
}

impl Link {
    /// Has the conversation be woken once the stream takes something.
    pub(super) fn await_room(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    /// Notes that a frame was sent to the stream; of a snapshot, its bytes.
    pub(super) fn on_sent(&self, snapshot_bytes: usize) {
        self.unwritten_snapshot_bytes.fetch_add(snapshot_bytes, Ordering::Relaxed);
    }

    /// Bytes of the snapshots that the connection has not written.
    pub(super) fn unwritten_snapshot_bytes(&self) -> usize {
        self.unwritten_snapshot_bytes.load(Ordering::Relaxed)
    }

    /// Whether the connection has written a snapshot since the last call.
    pub(super) fn has_written_snapshot(&self) -> bool {
        self.has_written_snapshot.swap(false, Ordering::Relaxed)
    }

    /// Notes why the stream ends, which it does after the frames that were sent to it.
    pub(super) fn end(&self, outcome: Result<(), Refusal>) {
        // The first reason counts.
        self.outcome.set(outcome).ok();
    }

    /// Drops the frames that the stream has still to give: nobody takes them.
    pub(super) fn forget(&self) {
        let mut queue = self.queue();
        queue.close();
        while queue.try_recv().is_ok() {}
    }

    fn queue(&self) -> MutexGuard<'_, mpsc::Receiver<Arc<Frame>>> {
        lock(&self.queue)
    }
}
