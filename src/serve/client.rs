//! A client of a conversation: what it has been shown, and what it is owed. It is given frames as far as its
//! stream takes them, and waits for nobody. Pure, but for the channel to its stream.

#[cfg(test)]
mod tests;

use super::frame_log::{Audience, FRAMES_BYTES_MAX, FrameLog, Logged, Position};
use super::refusal::Refusal;
use super::requests::Requests;
use super::stream::{Link, state_bytes};
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

/// Bytes of frames that it may be behind: what the engine has under way then still fits in the log.
const LAG_BYTES_MAX: usize = FRAMES_BYTES_MAX / 4;

/// Requests of a client without a done; from there on no more of them are read.
pub(super) const OPEN_MAX: usize = 64;

/// A client of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClientId(pub(super) u64);

impl ClientId {
    /// Another one than all before.
    pub(super) fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a client wants to see of what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// The whole conversation, as a snapshot.
    Snapshot,
    /// The events after this one, or else the snapshot.
    Since(Ordinal),
    Nothing,
}

/// What a client is when it attaches.
#[derive(Debug)]
pub(super) struct Attach {
    pub(super) client: ClientId,
    pub(super) extensions: BTreeSet<Extension>,
    pub(super) past: Past,
    /// It is shown hello, and then the frames of its own requests alone.
    pub(super) is_own_only: bool,
    pub(super) to: mpsc::Sender<Arc<Frame>>,
    pub(super) link: Arc<Link>,
    /// Has a permit for each request that the client may still send.
    pub(super) room: Arc<Semaphore>,
    /// Whether the conversation begins or goes on.
    pub(super) mode: OpenMode,
    pub(super) parent: Parent,
}

/// Where a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// It waits for a snapshot, which this request has asked the session for.
    Awaits(RequestId),
    /// It is shown this frame next.
    At(Position),
}

/// How a client ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Closing {
    /// Once each of its requests has its done.
    HalfClosed,
    /// Once each of its requests has its done; then these shutdowns get theirs.
    Shutdown(Vec<RequestId>),
}

/// What became of a client that was given frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// It waits for more.
    Yes,
    /// It was too slow for the frames that are kept, and needs a snapshot.
    NeedsSnapshot,
    /// It has all that it wanted, or has gone.
    Over,
}

/// A request of which the client is to see what came of it, as a snapshot and then its last frames: its own frames are
/// gone, or belong to what the client does not want to see.
#[derive(Clone, Debug)]
struct Owed {
    /// What the session was asked with for the snapshot.
    snapshot: RequestId,
    request: RequestId,
    last: Vec<Arc<Frame>>,
}

/// What a client is shown of a request that has ended and was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Its frames.
    Frames,
    /// Its last frames, once there is a snapshot.
    Snapshot,
}

/// A frame that a client is given before that of its place.
#[derive(Clone, Debug)]
struct First {
    frame: Arc<Frame>,
    /// It refuses a request of which nothing is noted: of another one with its id the client is owed as much as before.
    is_refusal: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    id: ClientId,
    extensions: BTreeSet<Extension>,
    /// Its request that turns heartbeats on, until it is given the done.
    heartbeats_after: Option<RequestId>,
    /// Which events it wants.
    events: EventFilter,
    is_own_only: bool,
    /// The conversation begins with a request of it.
    begins: bool,
    /// It is shown nothing of what was before it.
    has_no_past: bool,
    parent: Parent,
    to: mpsc::Sender<Arc<Frame>>,
    link: Arc<Link>,
    room: Arc<Semaphore>,
    first: VecDeque<First>,
    /// Requests that wait for a snapshot.
    owed: Vec<Owed>,
    /// Where the log ended when the newest state was asked for that it is shown, or owed.
    state_at: Option<Position>,
    place: Place,
    /// Its requests that it was shown no done of, and the place before which their frames are not for it.
    open: HashMap<RequestId, Position>,
    /// Those that it was shown the done of.
    ended: HashSet<String>,
    closing: Option<Closing>,
    /// Since when its stream takes nothing, though there is something for it.
    behind_since: Option<Instant>,
    /// Since when its connection has written no snapshot of those that the stream was given. Where nothing follows
    /// them the stream is never full.
    state_since: Option<Instant>,
}

impl Client {
    /// A client that is shown hello first, and then what follows a place or a snapshot.
    pub(super) fn new(attach: Attach, hello: &Frame, place: Result<Position, RequestId>) -> Self {
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
            first: VecDeque::from([First::of(hello)]),
            owed: Vec::new(),
            state_at: None,
            place: place.map_or_else(Place::Awaits, Place::At),
            extensions,
            heartbeats_after: None,
            events: EventFilter::default(),
            open: HashMap::new(),
            ended: HashSet::new(),
            closing: None,
            behind_since: None,
            state_since: None,
        }
    }

    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    /// Whether the conversation begins with a request of it, if that is not refused.
    pub(super) fn begins(&self) -> bool {
        self.begins
    }

    /// Whether it has turned on this extension.
    pub(super) fn has(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }

    pub(super) fn parent(&self) -> &Parent {
        &self.parent
    }

    /// Whether it waits for the snapshot that this request asked for.
    pub(super) fn awaits(&self, request: &str) -> bool {
        matches!(&self.place, Place::Awaits(id) if id.as_str() == request)
    }

    /// Its stream does not take the frames as fast as they come.
    pub(super) fn is_behind(&self) -> bool {
        self.behind_since.is_some()
    }

    /// Bytes of the snapshots that it was given and has not taken.
    pub(super) fn state_bytes(&self) -> usize {
        self.link.state_bytes()
    }

    /// Since when nothing is taken of its stream, though there is something for it.
    pub(super) fn unread_since(&self) -> Option<Instant> {
        [self.behind_since, self.state_since].into_iter().flatten().min()
    }

    /// The place of the frame that it is shown next; `None` while it waits for a snapshot.
    pub(super) fn place(&self) -> Option<Position> {
        match self.place {
            Place::At(at) => Some(at),
            Place::Awaits(_) => None,
        }
    }

    /// The place of the frame that its stream takes next; `None` while something else comes before that.
    pub(super) fn next_place(&self) -> Option<Position> {
        self.place().filter(|_| self.first.is_empty())
    }

    /// Whether frames of runs are for it: one that is shown its own alone may only wait for its turn.
    pub(super) fn follows_runs(&self, requests: &Requests) -> bool {
        !self.is_own_only || self.open.keys().any(|id| requests.has_run(id.as_str()))
    }

    /// Whether the engine need not wait for it.
    pub(super) fn keeps_up(&self, log: &FrameLog) -> bool {
        match &self.place {
            Place::Awaits(_) => !self.is_behind(),
            Place::At(at) => {
                let lag_frames = log.end().0.saturating_sub(at.0);
                lag_frames < LAG_FRAMES_MAX && log.bytes_from(*at) < LAG_BYTES_MAX
            }
        }
    }

    /// It is shown these events alone from here on.
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

    /// It will send no more requests.
    pub(super) fn half_close(&mut self) {
        self.closing.get_or_insert(Closing::HalfClosed);
    }

    /// It wants to end as soon as its requests have ended.
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

    /// Whether it has said that it ends, so that prompts are refused.
    pub(super) fn is_shutting_down(&self) -> bool {
        matches!(self.closing, Some(Closing::Shutdown(_)))
    }

    /// It has sent a request, whose done it is owed, and whose first frame stands there.
    pub(super) fn asked(
        &mut self,
        (request, extensions): (&RequestId, BTreeSet<Extension>),
        first: Position,
    ) {
        self.turn_on(request, extensions);
        match self.open.entry(request.clone()) {
            Entry::Vacant(open) => drop(open.insert(first)),
            // One done answers both.
            Entry::Occupied(_) => self.room.add_permits(1),
        }
    }

    /// Its request uses these extensions. The heartbeats that another client has turned on wait for no store, but
    /// the done of the request may, and comes first.
    fn turn_on(&mut self, request: &RequestId, mut extensions: BTreeSet<Extension>) {
        let is_answered = self.ended.contains(request.as_str());
        if !is_answered && extensions.remove(&Extension::Heartbeats) {
            self.heartbeats_after.get_or_insert_with(|| request.clone());
        }
        self.extensions.extend(extensions);
    }

    /// It has sent a request again that has no done yet, and whose first frame stands there.
    pub(super) fn asked_while_open(
        &mut self,
        (request, extensions): (&RequestId, BTreeSet<Extension>),
        first: Position,
        log: &FrameLog,
    ) {
        let is_new = !self.open.contains_key(request);
        self.asked((request, extensions), first);
        if self.is_own_only && is_new && log.has(first) {
            self.go_back(request, first);
        }
    }

    /// Has a client that is shown its own frames alone be shown those of a request from the first on, and nothing of
    /// its others again.
    fn go_back(&mut self, request: &RequestId, first: Position) {
        let Place::At(at) = self.place else {
            self.place = Place::At(first);
            return;
        };
        for (_, from) in self.open.iter_mut().filter(|(id, _)| *id != request) {
            *from = at.max(*from);
        }
        self.place = Place::At(at.min(first));
    }

    /// It has sent a request again that has ended; says what it is to be shown.
    pub(super) fn asked_again(
        &mut self,
        (request, extensions): (&RequestId, BTreeSet<Extension>),
        (first, last): (Position, &[Arc<Frame>]),
        (log, has_run): (&FrameLog, bool),
    ) -> Again {
        self.turn_on(request, extensions);
        if self.ended.contains(request.as_str()) || self.open.contains_key(request) {
            // It has its done, or is about to get it.
            self.room.add_permits(1);
            return Again::Frames;
        }
        self.open.insert(request.clone(), first);
        let is_ended_after = |at: Position| log.has_done(at.max(first), request.as_str());
        if self.is_own_only && log.has(first) && is_ended_after(first) {
            self.go_back(request, first);
            return Again::Frames;
        }
        let is_coming = match &self.place {
            Place::At(at) => is_ended_after(*at),
            Place::Awaits(_) => false,
        };
        if is_coming {
            return Again::Frames;
        }
        if !has_run || !self.has_no_past {
            self.first.extend(last.iter().cloned().map(First::of));
            return Again::Frames;
        }
        if !self.is_in_state(request, log) {
            self.state_at = Some(log.end());
            return Again::Snapshot;
        }
        // A state is as long as the conversation, and the one for another request says the same.
        match self.owed.last().map(|owed| owed.snapshot.clone()) {
            Some(snapshot) => self.owe(snapshot, request.clone(), last.to_vec()),
            None => self.first.extend(last.iter().cloned().map(First::of)),
        }
        Again::Frames
    }

    /// Whether a request had ended by the newest state that it is shown, or owed.
    fn is_in_state(&self, request: &RequestId, log: &FrameLog) -> bool {
        self.state_at.is_some_and(|at| log.has(at) && !log.has_done(at, request.as_str()))
    }

    /// It is owed the last frames of a request once the session has given the snapshot that it was asked for.
    pub(super) fn owe(&mut self, snapshot: RequestId, request: RequestId, last: Vec<Arc<Frame>>) {
        self.owed.push(Owed { snapshot, request, last });
    }

    /// Whether it is owed something once this request of a snapshot is answered.
    pub(super) fn is_owed(&self, snapshot: &str) -> bool {
        self.owed.iter().any(|owed| owed.snapshot.as_str() == snapshot)
    }

    /// Pays what it is owed: with the snapshot, or without one if the session has none.
    pub(super) fn pay(&mut self, snapshot: &str, mut frame: Option<Frame>) {
        if frame.is_none() {
            self.state_at = None;
        }
        let all = std::mem::take(&mut self.owed).into_iter();
        let (paid, owed): (Vec<_>, _) = all.partition(|owed| owed.snapshot.as_str() == snapshot);
        self.owed = owed;
        for Owed { request, last, .. } in paid {
            // It answers the first of them, and the others have been said in it.
            let with_id = |it: Frame| Frame { request_id: request.as_str().to_owned(), ..it };
            let all = frame.take().map(with_id).map(Arc::new).into_iter().chain(last);
            self.first.extend(all.map(First::of));
        }
    }

    /// It has sent a request that these frames refuse, and of which nothing is noted.
    pub(super) fn refuse(&mut self, frames: [Frame; 2]) {
        let refuse = |frame| First { frame: Arc::new(frame), is_refusal: true };
        self.first.extend(frames.map(refuse));
    }

    /// The snapshot that it waits for, after which frames follow from `next` on.
    pub(super) fn snapshot(&mut self, state: Arc<Frame>, next: Position, requests: &Requests) {
        self.first.push_back(First::of(state));
        self.place = Place::At(next);
        self.state_at = Some(next);
        // What it has missed while it was too slow.
        let is_owed = |id: &RequestId| self.owed.iter().any(|owed| owed.request == *id);
        let missed = self.open.keys().filter(|id| !is_owed(id));
        let missed = missed.filter_map(|id| requests.last(id.as_str()));
        self.first.extend(missed.flatten().cloned().map(First::of));
    }

    /// It waits for the snapshot of this request.
    pub(super) fn await_snapshot(&mut self, request: RequestId) {
        self.place = Place::Awaits(request);
    }

    /// Gives it what its stream takes.
    pub(super) fn serve(&mut self, log: &FrameLog, session: &SessionId, now: Instant) -> Served {
        let served = self.give_all(log, session, now);
        let is_written = self.link.has_written_state();
        self.state_since = match self.link.state_bytes() {
            0 => None,
            _ if is_written => Some(now),
            _ => self.state_since.or(Some(now)),
        };
        served
    }

    fn give_all(&mut self, log: &FrameLog, session: &SessionId, now: Instant) -> Served {
        loop {
            if let Some(served) = self.give_first(now) {
                return served;
            }
            let Place::At(at) = self.place else { return self.rest() };
            if !log.has(at) {
                return Served::NeedsSnapshot;
            }
            let Some(logged) = log.get(at) else { return self.end(session, now) };
            if self.is_for_it(&logged, at) {
                if let Some(served) = self.give(&logged.frame, now) {
                    return served;
                }
                self.given(&logged.frame);
            }
            self.place = Place::At(Position(at.0 + 1));
        }
    }

    /// Nothing is left to show: it ends if it wanted that.
    fn end(&mut self, session: &SessionId, now: Instant) -> Served {
        if self.to.is_closed() {
            return Served::Over;
        }
        if !self.open.is_empty() {
            return Served::Yes;
        }
        match self.closing.take() {
            None => Served::Yes,
            Some(Closing::HalfClosed) => Served::Over,
            Some(Closing::Shutdown(requests)) => {
                self.closing = Some(Closing::HalfClosed);
                let done = |id| wire::frame(session, Some(id), wire::done(Done::Shutdown));
                self.first.extend(requests.iter().map(|id| First::of(Arc::new(done(id)))));
                // A client that has waited for a shutdown reads.
                self.give_first(now).unwrap_or(Served::Over)
            }
        }
    }

    fn rest(&self) -> Served {
        if self.to.is_closed() { Served::Over } else { Served::Yes }
    }

    /// Gives the frames before that of its place; says what became of it if its stream does not take them.
    fn give_first(&mut self, now: Instant) -> Option<Served> {
        while let Some(First { frame, is_refusal }) = self.first.front().cloned() {
            if let Some(served) = self.give(&frame, now) {
                return Some(served);
            }
            self.first.pop_front();
            match is_refusal {
                false => self.given(&frame),
                true => self.room.add_permits(matches!(frame.frame, Some(Body::Done(_))).into()),
            }
        }
        None
    }

    /// Gives a frame, as far as the client may see it; says what became of it if its stream does not take it.
    fn give(&mut self, frame: &Arc<Frame>, now: Instant) -> Option<Served> {
        let shown = visible(frame, &self.extensions)?;
        let shown = match shown {
            std::borrow::Cow::Borrowed(_) => Arc::clone(frame),
            std::borrow::Cow::Owned(shown) => Arc::new(shown),
        };
        let bytes = state_bytes(&shown);
        let sent = self.to.try_send(shown).or_else(|error| match error {
            TrySendError::Full(shown) => {
                // It may have been emptied before that was noted.
                self.link.await_room();
                self.to.try_send(shown)
            }
            TrySendError::Closed(shown) => Err(TrySendError::Closed(shown)),
        });
        match sent {
            Ok(()) => {
                self.behind_since = None;
                self.link.given(bytes);
                None
            }
            Err(TrySendError::Full(_)) => {
                self.behind_since.get_or_insert(now);
                Some(Served::Yes)
            }
            Err(TrySendError::Closed(_)) => Some(Served::Over),
        }
    }

    /// Whether the frame that stands there is for it, and was not shown to it before.
    fn is_for_it(&self, Logged { frame, audience }: &Logged, at: Position) -> bool {
        let is_for_all = match audience {
            Audience::All => !self.is_own_only,
            Audience::Askers => false,
        };
        let answers =
            |(id, from): (&RequestId, &Position)| id.as_str() == frame.request_id && at >= *from;
        self.wants(frame) && (is_for_all || self.open.iter().any(answers))
    }

    fn given(&mut self, frame: &Frame) {
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

    /// Ends its stream, which nobody reads: what it has not taken is dropped.
    pub(super) fn end_unread(&self, refusal: Refusal) {
        self.link.end(Err(refusal));
        self.link.forget();
    }

    /// Ends its stream.
    pub(super) fn end_with(&self, outcome: Result<(), Refusal>) {
        self.link.end(outcome);
    }
}

impl First {
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
