//! A client of a conversation: the frames that it was shown, and those that it is still to be shown. Frames are sent as
//! far as the stream of the client takes them; no client waits for another. Pure, but for the channel to the stream.

#[cfg(test)]
mod tests;

use super::frame_log::{Audience, FRAMES_BYTES_MAX, FrameLog, Logged, Position};
use super::refusal::Refusal;
use super::request_log::{Ended, RequestLog};
use super::stream::{Link, snapshot_bytes};
use super::traces::Parent;
use super::visible::{hello_for, visible};
use crate::protocol::command::Extension;
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{Ordinal, RequestId, SessionId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, Done, Frame};
use crate::store::OpenMode;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

/// Frames that a client may be behind before the engine waits for it, if no other client keeps up.
const LAG_FRAMES_MAX: u64 = 128;

/// Bytes of frames that a client may be behind: the frames that the engine has under way then still fit in the log.
const LAG_BYTES_MAX: usize = FRAMES_BYTES_MAX / 4;

/// Requests of a client without a done; a client that has so many is read no further.
pub(super) const OPEN_MAX: usize = 64;

/// A client of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClientId(pub(super) u64);

impl ClientId {
    /// An id that no client of this process had before.
    pub(super) fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// How much of the past a client wants to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// The whole conversation, as a snapshot.
    Snapshot,
    /// The events after this one, or a snapshot if they are gone.
    Since(Ordinal),
    Nothing,
}

/// A client that is about to attach.
#[derive(Debug)]
pub(super) struct Attach {
    pub(super) client: ClientId,
    pub(super) extensions: BTreeSet<Extension>,
    pub(super) past: Past,
    /// After hello the client is shown the frames of its own requests alone.
    pub(super) is_own_only: bool,
    pub(super) to: mpsc::Sender<Arc<Frame>>,
    pub(super) link: Arc<Link>,
    /// A permit for each request that the client may still send.
    pub(super) room: Arc<Semaphore>,
    /// Whether the conversation begins or goes on.
    pub(super) mode: OpenMode,
    pub(super) parent: Parent,
}

/// What a client is shown next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cursor {
    /// Nothing, until the snapshot that this request has asked the session for.
    AwaitingSnapshot(RequestId),
    /// The frame at this position in the log.
    At(Position),
}

/// A request of a client, and the extensions that it uses.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) extensions: BTreeSet<Extension>,
}

/// How a client ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Closing {
    /// As soon as each of its requests has its done.
    HalfClosed,
    /// As soon as each of its requests has its done; then the done of these shutdowns is sent.
    Shutdown(Vec<RequestId>),
}

/// State of a client after frames were sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The client waits for further frames, or for room in its stream.
    Waiting,
    /// The next frame of the client is not in the log any more: it needs a snapshot.
    NeedsSnapshot,
    /// The client has all that it wanted, or has gone.
    Finished,
}

/// A resent request whose own frames are gone or were never meant for the client: it is answered with a snapshot and
/// its last frames.
#[derive(Clone, Debug)]
struct Replay {
    /// The request by which the session was asked for the snapshot.
    snapshot_request: RequestId,
    request: RequestId,
    last: Vec<Arc<Frame>>,
}

/// How a resent request that has ended is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayWith {
    /// With its frames, which are in the log or queued.
    Frames,
    /// With its last frames, once there is a snapshot.
    Snapshot,
}

/// A frame that is sent before the one at the client's cursor.
#[derive(Clone, Debug)]
struct Priority {
    frame: Arc<Frame>,
    /// The frame refuses a request that was not recorded; an open request with the same id stays open.
    is_refusal: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    id: ClientId,
    extensions: BTreeSet<Extension>,
    /// The request that turned heartbeats on; heartbeats are held back until its done was sent.
    heartbeats_after: Option<RequestId>,
    /// Events that the client wants.
    events: EventFilter,
    is_own_only: bool,
    /// The client has attached to begin the conversation, with a request of its own.
    begins: bool,
    /// The client wants nothing of the past.
    has_no_past: bool,
    parent: Parent,
    to: mpsc::Sender<Arc<Frame>>,
    link: Arc<Link>,
    room: Arc<Semaphore>,
    priority: VecDeque<Priority>,
    /// Resent requests that wait for a snapshot.
    replays: Vec<Replay>,
    /// End of the log when the newest snapshot for this client was requested or sent.
    snapshot_requested_at: Option<Position>,
    cursor: Cursor,
    /// Requests whose done was not sent yet, each with the position from which its frames concern this client.
    open: HashMap<RequestId, Position>,
    /// Requests whose done was sent.
    ended: HashSet<String>,
    closing: Option<Closing>,
    /// Since when the stream takes nothing though there are frames for the client.
    behind_since: Option<Instant>,
    /// Since when the connection has written none of the snapshots it was given; a quiet stream never fills up, so
    /// fullness can't show that.
    snapshot_unwritten_since: Option<Instant>,
}

impl Client {
    /// A client that is shown hello first, and then what follows a position, or the snapshot that a request has asked
    /// for.
    pub(super) fn new(attach: Attach, hello: &Frame, start: Result<Position, RequestId>) -> Self {
        let Attach { client, extensions, past, is_own_only, to, link, room, parent, mode } = attach;
        let hello = Arc::new(hello_for(hello, &extensions));
        Self {
            id: client,
            is_own_only,
            begins: is_own_only && mode == OpenMode::New,
            has_no_past: past == Past::Nothing,
            parent,
            to,
            link,
            room,
            priority: VecDeque::from([Priority::of(hello)]),
            replays: Vec::new(),
            snapshot_requested_at: None,
            cursor: start.map_or_else(Cursor::AwaitingSnapshot, Cursor::At),
            extensions,
            heartbeats_after: None,
            events: EventFilter::default(),
            open: HashMap::new(),
            ended: HashSet::new(),
            closing: None,
            behind_since: None,
            snapshot_unwritten_since: None,
        }
    }

    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    /// Whether the conversation begins with a request of this client, unless the request is refused.
    pub(super) fn begins(&self) -> bool {
        self.begins
    }

    /// Whether the client has turned on this extension.
    pub(super) fn has(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }

    pub(super) fn parent(&self) -> &Parent {
        &self.parent
    }

    /// Whether the client waits for the snapshot that this request has asked for.
    pub(super) fn awaits(&self, request: &str) -> bool {
        matches!(&self.cursor, Cursor::AwaitingSnapshot(id) if id.as_str() == request)
    }

    /// Whether the stream takes frames more slowly than they come.
    pub(super) fn is_behind(&self) -> bool {
        self.behind_since.is_some()
    }

    /// Bytes of the snapshots that were sent to the client and that its connection has not written.
    pub(super) fn unwritten_snapshot_bytes(&self) -> usize {
        self.link.unwritten_snapshot_bytes()
    }

    /// Since when nothing is taken of the stream though there are frames for the client.
    pub(super) fn unread_since(&self) -> Option<Instant> {
        [self.behind_since, self.snapshot_unwritten_since].into_iter().flatten().min()
    }

    /// Position of the frame that the client is shown next; `None` while it waits for a snapshot.
    pub(super) fn position(&self) -> Option<Position> {
        match self.cursor {
            Cursor::At(at) => Some(at),
            Cursor::AwaitingSnapshot(_) => None,
        }
    }

    /// Position of the frame that the stream takes next; `None` while priority frames come first.
    pub(super) fn next_position(&self) -> Option<Position> {
        self.position().filter(|_| self.priority.is_empty())
    }

    /// Whether frames of runs concern the client. A client that is shown its own frames alone may only wait for its
    /// turn.
    pub(super) fn follows_runs(&self, requests: &RequestLog) -> bool {
        !self.is_own_only || self.open.keys().any(|id| requests.has_run(id.as_str()))
    }

    /// Whether the engine need not wait for this client.
    pub(super) fn keeps_up(&self, log: &FrameLog) -> bool {
        match &self.cursor {
            Cursor::AwaitingSnapshot(_) => !self.is_behind(),
            Cursor::At(at) => {
                let lag_frames = log.end().0.saturating_sub(at.0);
                lag_frames < LAG_FRAMES_MAX && log.bytes_from(*at) < LAG_BYTES_MAX
            }
        }
    }

    /// Has the client be shown these events alone from here on.
    pub(super) fn show_events(&mut self, events: EventFilter) {
        self.events = events;
    }

    fn wants(&self, frame: &Frame) -> bool {
        let name = match &frame.frame {
            Some(Body::UiEvent(event)) => &event.name,
            Some(Body::BackendEvent(event)) => &event.name,
            Some(Body::Hello(_) | Body::Snapshot(_) | Body::Error(_) | Body::Done(_)) | None => {
                return true;
            }
        };
        self.events.shows(name)
    }

    /// Notes that the client sends no more requests.
    pub(super) fn half_close(&mut self) {
        self.closing.get_or_insert(Closing::HalfClosed);
    }

    /// Notes that the client wants to end as soon as its requests have ended.
    pub(super) fn shut_down(&mut self, request: RequestId) {
        self.open.remove(&request);
        match &mut self.closing {
            // One done answers both.
            Some(Closing::Shutdown(requests)) if requests.contains(&request) => {}
            Some(Closing::Shutdown(requests)) => requests.push(request),
            closing @ (None | Some(Closing::HalfClosed)) => {
                *closing = Some(Closing::Shutdown(vec![request]));
            }
        }
    }

    /// Whether the client has asked for a shutdown, so that its prompts are refused.
    pub(super) fn is_shutting_down(&self) -> bool {
        matches!(self.closing, Some(Closing::Shutdown(_)))
    }

    /// The client has sent a request; frames from `first` on answer it, up to its done.
    pub(super) fn on_request(&mut self, Asked { id, extensions }: Asked, first: Position) {
        self.turn_on(&id, extensions);
        match self.open.entry(id) {
            Entry::Vacant(open) => drop(open.insert(first)),
            // One done answers both.
            Entry::Occupied(_) => self.room.add_permits(1),
        }
    }

    /// Turns on the extensions that a request uses. Heartbeats that another client has turned on do not wait for a
    /// store, as the done of the request may: they are held back until the done was sent.
    fn turn_on(&mut self, request: &RequestId, mut extensions: BTreeSet<Extension>) {
        let is_answered = self.ended.contains(request.as_str());
        if !is_answered && extensions.remove(&Extension::Heartbeats) {
            self.heartbeats_after.get_or_insert_with(|| request.clone());
        }
        self.extensions.extend(extensions);
    }

    /// The client has resent a request that has no done yet; the first frame of the request is at `first`.
    pub(super) fn on_resent_open(&mut self, asked: Asked, first: Position, log: &FrameLog) {
        let is_new = !self.open.contains_key(&asked.id);
        if self.is_own_only && is_new && log.has(first) {
            self.go_back(&asked.id, first);
        }
        self.on_request(asked, first);
    }

    /// Moves the cursor of a client that is shown its own frames alone back to the first frame of a request. Frames of
    /// its other requests are not shown again.
    fn go_back(&mut self, request: &RequestId, first: Position) {
        let Cursor::At(at) = self.cursor else {
            self.cursor = Cursor::At(first);
            return;
        };
        for (_, from) in self.open.iter_mut().filter(|(id, _)| *id != request) {
            *from = at.max(*from);
        }
        self.cursor = Cursor::At(at.min(first));
    }

    /// The client has resent a request that has ended; says how that is answered.
    pub(super) fn on_resent_ended(
        &mut self,
        Asked { id, extensions }: Asked,
        &Ended { first, ref last, has_run }: &Ended,
        log: &FrameLog,
    ) -> ReplayWith {
        self.turn_on(&id, extensions);
        if self.ended.contains(id.as_str()) || self.open.contains_key(&id) {
            // Its done was sent, or is about to be.
            self.room.add_permits(1);
            return ReplayWith::Frames;
        }
        self.open.insert(id.clone(), first);
        let is_ended_after = |at: Position| log.has_done(at.max(first), id.as_str());
        if self.is_own_only && log.has(first) && is_ended_after(first) {
            self.go_back(&id, first);
            return ReplayWith::Frames;
        }
        let is_coming = match &self.cursor {
            Cursor::At(at) => is_ended_after(*at),
            Cursor::AwaitingSnapshot(_) => false,
        };
        if is_coming {
            return ReplayWith::Frames;
        }
        if !has_run || !self.has_no_past {
            self.priority.extend(last.iter().cloned().map(Priority::of));
            return ReplayWith::Frames;
        }
        if !self.is_in_snapshot(&id, log) {
            self.snapshot_requested_at = Some(log.end());
            return ReplayWith::Snapshot;
        }
        // A snapshot is as long as the conversation, and the one for another request says the same.
        match self.replays.last().map(|replay| replay.snapshot_request.clone()) {
            Some(snapshot) => self.replay_after_snapshot(snapshot, id, last.clone()),
            None => self.priority.extend(last.iter().cloned().map(Priority::of)),
        }
        ReplayWith::Frames
    }

    /// Whether a request had ended when the newest snapshot for this client was requested.
    fn is_in_snapshot(&self, request: &RequestId, log: &FrameLog) -> bool {
        self.snapshot_requested_at
            .is_some_and(|at| log.has(at) && !log.has_done(at, request.as_str()))
    }

    /// Has the last frames of a request follow the snapshot that the session was asked for by `snapshot_request`.
    pub(super) fn replay_after_snapshot(
        &mut self,
        snapshot_request: RequestId,
        request: RequestId,
        last: Vec<Arc<Frame>>,
    ) {
        self.replays.push(Replay { snapshot_request, request, last });
    }

    /// Whether a resent request waits for the snapshot of this request.
    pub(super) fn awaits_replay(&self, snapshot_request: &str) -> bool {
        self.replays.iter().any(|replay| replay.snapshot_request.as_str() == snapshot_request)
    }

    /// Answers the resent requests that waited for this snapshot; without one if the session has none.
    pub(super) fn finish_replay(&mut self, snapshot_request: &str, mut snapshot: Option<Frame>) {
        if snapshot.is_none() {
            self.snapshot_requested_at = None;
        }
        let all = std::mem::take(&mut self.replays).into_iter();
        let (finished, others): (Vec<_>, _) =
            all.partition(|replay| replay.snapshot_request.as_str() == snapshot_request);
        self.replays = others;
        for Replay { request, last, .. } in finished {
            // The snapshot answers the first request; what came of the others is in it too.
            let with_id = |it: Frame| Frame { request_id: request.as_str().to_owned(), ..it };
            let all = snapshot.take().map(with_id).map(Arc::new).into_iter().chain(last);
            self.priority.extend(all.map(Priority::of));
        }
    }

    /// Refuses a request with these frames; the request is not recorded.
    pub(super) fn refuse(&mut self, frames: [Frame; 2]) {
        let refuse = |frame| Priority { frame: Arc::new(frame), is_refusal: true };
        self.priority.extend(frames.map(refuse));
    }

    /// Sends the snapshot that the client waits for, after which frames follow from `next` on.
    pub(super) fn on_snapshot(
        &mut self,
        snapshot: Arc<Frame>,
        next: Position,
        requests: &RequestLog,
    ) {
        self.priority.push_back(Priority::of(snapshot));
        self.cursor = Cursor::At(next);
        self.snapshot_requested_at = Some(next);
        // Frames that the client has missed while it was too slow.
        let is_replayed = |id: &RequestId| self.replays.iter().any(|replay| replay.request == *id);
        let missed = self.open.keys().filter(|id| !is_replayed(id));
        let missed = missed.filter_map(|id| requests.last(id.as_str()));
        self.priority.extend(missed.flatten().cloned().map(Priority::of));
    }

    /// Has the client wait for the snapshot of this request.
    pub(super) fn await_snapshot(&mut self, request: RequestId) {
        self.cursor = Cursor::AwaitingSnapshot(request);
    }

    /// Sends the client what its stream takes.
    pub(super) fn serve(&mut self, log: &FrameLog, session: &SessionId, now: Instant) -> Served {
        let served = self.send_all(log, session, now);
        let is_written = self.link.has_written_snapshot();
        self.snapshot_unwritten_since = match self.link.unwritten_snapshot_bytes() {
            0 => None,
            _ if is_written => Some(now),
            _ => self.snapshot_unwritten_since.or(Some(now)),
        };
        served
    }

    fn send_all(&mut self, log: &FrameLog, session: &SessionId, now: Instant) -> Served {
        loop {
            if let Some(served) = self.send_priority(now) {
                return served;
            }
            let Cursor::At(at) = self.cursor else { return self.closed_or_waiting() };
            if !log.has(at) {
                return Served::NeedsSnapshot;
            }
            let Some(logged) = log.get(at) else { return self.end(session, now) };
            if self.is_for_it(&logged, at) {
                if let Some(served) = self.try_send(&logged.frame, now) {
                    return served;
                }
                self.on_sent(&logged.frame);
            }
            self.cursor = Cursor::At(Position(at.0 + 1));
        }
    }

    /// Ends the client, if it wanted that: nothing is left to show.
    fn end(&mut self, session: &SessionId, now: Instant) -> Served {
        if self.to.is_closed() {
            return Served::Finished;
        }
        if !self.open.is_empty() {
            return Served::Waiting;
        }
        match self.closing.take() {
            None => Served::Waiting,
            Some(Closing::HalfClosed) => Served::Finished,
            Some(Closing::Shutdown(requests)) => {
                self.closing = Some(Closing::HalfClosed);
                let done = |id| wire::frame(session, Some(id), wire::done(Done::Shutdown));
                self.priority.extend(requests.iter().map(|id| Priority::of(Arc::new(done(id)))));
                // A client that has waited for a shutdown reads.
                self.send_priority(now).unwrap_or(Served::Finished)
            }
        }
    }

    fn closed_or_waiting(&self) -> Served {
        if self.to.is_closed() { Served::Finished } else { Served::Waiting }
    }

    /// Sends the priority frames; returns the state of the client if its stream does not take all of them.
    fn send_priority(&mut self, now: Instant) -> Option<Served> {
        while let Some(Priority { frame, is_refusal }) = self.priority.front().cloned() {
            if let Some(served) = self.try_send(&frame, now) {
                return Some(served);
            }
            self.priority.pop_front();
            match is_refusal {
                false => self.on_sent(&frame),
                true => self.room.add_permits(matches!(frame.frame, Some(Body::Done(_))).into()),
            }
        }
        None
    }

    /// Sends a frame, as far as the client may see it; returns the state of the client if its stream does not take it.
    fn try_send(&mut self, frame: &Arc<Frame>, now: Instant) -> Option<Served> {
        let visible = visible(frame, &self.extensions)?;
        let sent = match visible {
            std::borrow::Cow::Borrowed(_) => Arc::clone(frame),
            std::borrow::Cow::Owned(part) => Arc::new(part),
        };
        let bytes = snapshot_bytes(&sent);
        let result = self.to.try_send(sent).or_else(|error| match error {
            TrySendError::Full(sent) => {
                // The stream may have been emptied before the conversation was noted as waiting.
                self.link.await_room();
                self.to.try_send(sent)
            }
            TrySendError::Closed(sent) => Err(TrySendError::Closed(sent)),
        });
        match result {
            Ok(()) => {
                self.behind_since = None;
                self.link.on_sent(bytes);
                None
            }
            Err(TrySendError::Full(_)) => {
                self.behind_since.get_or_insert(now);
                Some(Served::Waiting)
            }
            Err(TrySendError::Closed(_)) => Some(Served::Finished),
        }
    }

    /// Whether the frame at `at` concerns the client, and was not sent to it before.
    fn is_for_it(&self, Logged { frame, audience }: &Logged, at: Position) -> bool {
        let is_for_all = match audience {
            Audience::All => !self.is_own_only,
            Audience::Askers => false,
        };
        let answers =
            |(id, from): (&RequestId, &Position)| id.as_str() == frame.request_id && at >= *from;
        self.wants(frame) && (is_for_all || self.open.iter().any(answers))
    }

    fn on_sent(&mut self, frame: &Frame) {
        if let Some(Body::Done(_)) = frame.frame {
            let turns_on = |id: &mut RequestId| id.as_str() == frame.request_id;
            if self.heartbeats_after.take_if(turns_on).is_some() {
                self.extensions.insert(Extension::Heartbeats);
            }
            let is_own = |id: &RequestId| id.as_str() == frame.request_id;
            if let Some(id) = self.open.keys().find(|id| is_own(id)).cloned() {
                self.open.remove(&id);
                self.room.add_permits(1);
            }
            if self.ended.len() >= OPEN_MAX * 4 {
                self.ended.clear();
            }
            self.ended.insert(frame.request_id.clone());
        }
    }

    /// Ends the stream of the client, which nobody reads: frames in it are dropped.
    pub(super) fn end_unread(&self, refusal: Refusal) {
        self.link.end(Err(refusal));
        self.link.forget();
    }

    /// Ends the stream of the client after the frames in it.
    pub(super) fn end_with(&self, outcome: Result<(), Refusal>) {
        self.link.end(outcome);
    }
}

impl Priority {
    fn of(frame: Arc<Frame>) -> Self {
        Self { frame, is_refusal: false }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Requests that wait until others have their done would wait for ever.
        self.room.close();
    }
}
