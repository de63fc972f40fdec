//! The newest frames of a conversation, in order, for its clients. Most of them are the patches of an answer, which are
//! kept in short (`stretch`). Pure.

mod stretch;

use self::stretch::Stretch;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use prost::Message;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of memory for the frames that are kept.
pub(super) const FRAMES_BYTES_MAX: usize = 512 * 1024;

/// Bytes from which on a snapshot, which is as long as the conversation, does not count to `FRAMES_BYTES_MAX`: only the
/// newest of these is kept.
const LARGE_SNAPSHOT_BYTES: usize = FRAMES_BYTES_MAX / 8;

/// Newest frames that are kept whole while a client has not taken them yet.
const WHOLE_MAX: usize = 32;

/// Bytes that a frame takes in memory beside its encoded ones, roughly: its fields, and the texts of its own.
/// (Measured: 1,150 bytes for each frame of an answer in words.)
const FRAME_BYTES: usize = 800;

/// Clients that a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All clients of the conversation.
    All,
    /// Clients that have sent the request that the frame answers, and have no done of it yet.
    Askers,
}

/// A frame in the log.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) frame: Arc<Frame>,
    pub(super) audience: Audience,
}

/// The position of a frame in the log of its conversation, from 0. Positions only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(pub(super) u64);

/// The newest frames of a conversation.
#[derive(Debug, Default)]
pub(super) struct FrameLog {
    pieces: VecDeque<Piece>,
    /// How many of the oldest pieces have been shortened where that can be done.
    short: usize,
    /// Bytes of all pieces but the large snapshot.
    bytes: usize,
    /// The newest snapshot that does not count to `FRAMES_BYTES_MAX`.
    large: Option<Large>,
    /// Position up to which all clients have taken the frames, and none reads them again.
    taken: Position,
    end: Position,
    /// The newest event that is not in the log any more; all later ones are.
    floor: Ordinal,
    newest: Ordinal,
}

/// A snapshot in the log that is as long as a long conversation.
#[derive(Clone, Copy, Debug)]
struct Large {
    at: Position,
    bytes: usize,
}

/// Frames in the log that follow each other, for the same audience.
#[derive(Debug)]
struct Piece {
    /// Position of its first frame.
    first: Position,
    audience: Audience,
    kept: Kept,
    /// Bytes of the first frame.
    frame_bytes: usize,
}

#[derive(Debug)]
enum Kept {
    One(Arc<Frame>),
    Patches(Box<Stretch>),
}

impl FrameLog {
    /// Notes that the log begins after this event of the conversation.
    pub(super) fn begin(&mut self, at: Ordinal) {
        (self.floor, self.newest) = (self.floor.max(at), self.newest.max(at));
    }

    /// Appends a frame, and returns its bytes.
    pub(super) fn push(&mut self, frame: Arc<Frame>, audience: Audience) -> usize {
        self.newest = self.newest.max(ordinal(&frame).unwrap_or_default());
        let frame_bytes = frame.encoded_len() + FRAME_BYTES;
        let is_snapshot = matches!(frame.frame, Some(Body::Snapshot(_)));
        if is_snapshot && frame_bytes >= LARGE_SNAPSHOT_BYTES {
            self.forget_large();
            self.large = Some(Large { at: self.end, bytes: frame_bytes });
        } else {
            self.bytes += frame_bytes;
        }
        let kept = Kept::One(frame);
        self.pieces.push_back(Piece { first: self.end, audience, kept, frame_bytes });
        self.end.0 += 1;
        while self.pieces.len() - self.short > WHOLE_MAX {
            self.shorten();
        }
        frame_bytes
    }

    /// Drops the large snapshot, as another one is newer. While a client has not taken it, it stays as a frame that
    /// counts, which a client that is too slow misses.
    fn forget_large(&mut self) {
        let Some(Large { at, bytes }) = self.large.take() else { return };
        let place = self.pieces.binary_search_by_key(&at, |piece| piece.first);
        let Some(piece) = place.ok().and_then(|it| self.pieces.get_mut(it)) else { return };
        if at < self.taken {
            // A frame without content is shown to nobody.
            piece.kept = Kept::One(Arc::default());
            piece.frame_bytes = FRAME_BYTES;
            self.bytes += FRAME_BYTES;
        } else {
            self.bytes += bytes;
        }
    }

    /// Notes that the clients have taken the frames before this position, which are kept in short where that can be
    /// done. The position falls when a client reads a run again.
    pub(super) fn taken(&mut self, before: Position) {
        self.taken = before;
        while self.pieces.get(self.short).is_some_and(|piece| piece.first < before) {
            self.shorten();
        }
    }

    /// Whether the oldest frames have to go.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > FRAMES_BYTES_MAX && self.pieces.len() > 1
    }

    /// Drops the oldest frames. One frame always stays, and so do those from `ahead` on, the position of the client
    /// that is furthest ahead: the engine waits until that client has taken them.
    pub(super) fn trim(&mut self, ahead: Option<Position>) {
        while self.is_full() && !ahead.is_some_and(|at| self.stays_for(at)) {
            let Some(gone) = self.pieces.pop_front() else { break };
            // The bytes of the large snapshot are not counted.
            let is_large = self.large.take_if(|large| large.at == gone.first).is_some();
            self.bytes -= if is_large { 0 } else { gone.bytes() };
            self.short = self.short.saturating_sub(1);
            self.floor = self.floor.max(gone.last().unwrap_or_default());
        }
    }

    /// Whether the oldest piece stays for a client at this position. No piece does where the answers to requests take
    /// more than frames may: they come from clients, and do not stop when the engine waits.
    fn stays_for(&self, at: Position) -> bool {
        let end = self.pieces.get(1).map_or(self.end, |next| next.first);
        let is_answer = |piece: &&Piece| {
            let is_large = self.large.is_some_and(|large| large.at == piece.first);
            piece.audience == Audience::Askers && !is_large
        };
        let answers = || self.pieces.iter().filter(is_answer).map(Piece::bytes).sum::<usize>();
        end > at && answers() <= FRAMES_BYTES_MAX
    }

    /// Joins the oldest piece that is not short yet to the piece before it, if both are patches of one segment.
    fn shorten(&mut self) {
        let Some(before) = self.short.checked_sub(1) else {
            self.short = 1;
            return;
        };
        let mut pieces = self.pieces.range_mut(before..=self.short);
        let (Some(before), Some(next)) = (pieces.next(), pieces.next()) else { return };
        let bytes = before.bytes() + next.bytes();
        if before.add(next) {
            self.bytes = self.bytes + before.bytes() - bytes;
            self.pieces.remove(self.short);
        } else {
            self.short += 1;
        }
    }

    /// The newest event that was shown.
    pub(super) fn newest(&self) -> Ordinal {
        self.newest
    }

    /// Bytes of the frames in the log.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.large.map_or(0, |large| large.bytes)
    }

    /// Bytes of the frames from `at` on, roughly, without the large snapshot.
    pub(super) fn bytes_from(&self, at: Position) -> usize {
        let (mut bytes, mut end) = (0, self.end);
        for piece in self.pieces.iter().rev() {
            if end <= at {
                break;
            }
            let (frames, missing) = (end.0 - piece.first.0, end.0 - at.0.max(piece.first.0));
            end = piece.first;
            if self.large.is_none_or(|large| large.at != piece.first) {
                bytes += piece.bytes() as u64 * missing / frames;
            }
        }
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Position of the next frame.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    fn first(&self) -> Position {
        self.pieces.front().map_or(self.end, |it| it.first)
    }

    /// Whether the frame at this position is still in the log, or is to come.
    pub(super) fn has(&self, at: Position) -> bool {
        at >= self.first()
    }

    /// The frame at this position.
    pub(super) fn get(&self, at: Position) -> Option<Logged> {
        let after = self.pieces.partition_point(|it| it.first <= at);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        let frame = piece.get(usize::try_from(at.0 - piece.first.0).ok()?)?;
        Some(Logged { frame, audience: piece.audience })
    }

    /// Position after the last event up to `since`; `None` if later events are gone, or `since` has not happened. Of
    /// several frames with that number a client may have the first alone, so all of them follow.
    pub(super) fn after(&self, since: Ordinal) -> Option<Position> {
        if since < self.floor || since > self.newest {
            return None;
        }
        let known = self.pieces.iter().rev().find_map(|piece| {
            let known = piece.up_to(since) as u64;
            (known > 0).then_some(Position(piece.first.0 + known))
        });
        let known = known.unwrap_or(self.first());
        Some(self.first_of_several(since, known).unwrap_or(known))
    }

    /// Position of the first of several frames before `end` that have this number.
    fn first_of_several(&self, number: Ordinal, end: Position) -> Option<Position> {
        let mut found: Option<(Position, bool)> = None;
        for at in (self.first().0..end.0).rev().map(Position) {
            match ordinal(&self.get(at)?.frame) {
                None => {}
                Some(other) if other == number => {
                    found = Some((at, found.is_some() || number == self.floor));
                }
                Some(_) => break,
            }
        }
        found.and_then(|(at, is_several)| is_several.then_some(at))
    }

    /// Whether the log has the done of this request at or after `from`.
    pub(super) fn has_done(&self, from: Position, request: &str) -> bool {
        let before = self.pieces.partition_point(|it| it.first < from);
        self.pieces.iter().skip(before).any(|it| match &it.kept {
            Kept::One(frame) => {
                frame.request_id == request && matches!(frame.frame, Some(Body::Done(_)))
            }
            Kept::Patches(_) => false,
        })
    }
}

impl Piece {
    /// Adds the next piece; false, with nothing changed, if they are not patches of one segment.
    fn add(&mut self, next: &Self) -> bool {
        let Kept::One(next_frame) = &next.kept else { return false };
        if self.audience != next.audience {
            return false;
        }
        match &mut self.kept {
            Kept::Patches(patches) => patches.add(next_frame),
            Kept::One(frame) => {
                let patches =
                    Stretch::of(frame).and_then(|mut it| it.add(next_frame).then_some(it));
                let Some(patches) = patches else { return false };
                self.kept = Kept::Patches(Box::new(patches));
                true
            }
        }
    }

    fn bytes(&self) -> usize {
        match &self.kept {
            Kept::One(_) => self.frame_bytes,
            Kept::Patches(patches) => self.frame_bytes + patches.bytes(),
        }
    }

    fn get(&self, at: usize) -> Option<Arc<Frame>> {
        match &self.kept {
            Kept::One(frame) => (at == 0).then(|| Arc::clone(frame)),
            Kept::Patches(patches) => patches.get(at),
        }
    }

    /// Number of frames up to the last event that is not after `since`.
    fn up_to(&self, since: Ordinal) -> usize {
        match &self.kept {
            Kept::One(frame) => ordinal(frame).is_some_and(|at| at <= since).into(),
            Kept::Patches(patches) => patches.up_to(since),
        }
    }

    /// The last event of the piece.
    fn last(&self) -> Option<Ordinal> {
        match &self.kept {
            Kept::One(frame) => ordinal(frame),
            Kept::Patches(patches) => Some(patches.last()),
        }
    }
}

/// The number of the event in a frame, if it has one.
pub(super) fn ordinal(frame: &Frame) -> Option<Ordinal> {
    match frame.frame.as_ref()? {
        Body::UiEvent(event) => Some(Ordinal(event.ordinal)),
        Body::BackendEvent(event) => Some(Ordinal(event.ordinal)),
        Body::Hello(_) | Body::Snapshot(_) | Body::Error(_) | Body::Done(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::ChatTextPatch;
    use crate::protocol::proto::rpc::{
        DoneFrame, ErrorFrame, SnapshotEntity, SnapshotFrame, UiEventFrame,
    };

    fn event(ordinal: u64) -> Arc<Frame> {
        let body = Body::UiEvent(UiEventFrame { ordinal, ..Default::default() });
        Arc::new(Frame { frame: Some(body), ..Default::default() })
    }

    /// A thousand conversations of short deltas must not take four times the memory that they may.
    #[test]
    fn short_frames_count_as_what_they_take() {
        let mut log = FrameLog::default();
        for ordinal in 1..=10_000 {
            log.push(event(ordinal), Audience::All);
            log.trim(None);
        }
        let kept = log.pieces.len() * std::mem::size_of::<Frame>();
        assert!(log.pieces.len() > 500 && kept < FRAMES_BYTES_MAX, "{}", log.pieces.len());
    }

    #[test]
    fn bytes_are_those_of_the_frames_that_a_client_is_behind() {
        let (mut log, mut said) = (FrameLog::default(), String::new());
        assert_eq!(log.bytes_from(log.end()), 0);
        for ordinal in 1..=100 {
            log.push(patch(ordinal, "one", &mut said, "word "), Audience::All);
        }
        log.taken(Position(80));
        assert_eq!(log.bytes_from(Position(0)), log.bytes());
        let last = log.get(Position(99)).expect("the last one").frame.encoded_len();
        assert_eq!(log.bytes_from(Position(99)), last + FRAME_BYTES);
        assert_eq!(log.bytes_from(log.end()), 0);
        // Of those that are kept in short, a client misses a part.
        let (half, short) = (log.bytes_from(Position(40)), log.bytes_from(Position(80)));
        assert!(half > short && half < log.bytes(), "{short} < {half} < {}", log.bytes());
        log.push(snapshot(LARGE_SNAPSHOT_BYTES), Audience::All);
        assert_eq!(log.bytes_from(Position(0)), log.bytes() - log.large.expect("one").bytes);
    }

    fn patch(ordinal: u64, segment: &str, said: &mut String, text: &str) -> Arc<Frame> {
        let patch = ChatTextPatch {
            message_id: segment.to_owned(),
            sequence: ordinal * 2,
            offset: said.len() as u64,
            text: text.to_owned(),
            status: "streaming".to_owned(),
            ..Default::default()
        };
        said.push_str(text);
        let payload = Some(patch.into());
        let event = UiEventFrame { ordinal, name: "ChatTextPatch".to_owned(), payload };
        let (request_id, frame) = ("r".to_owned(), Some(Body::UiEvent(event)));
        Arc::new(Frame { request_id, frame, ..Default::default() })
    }

    /// An answer of words takes a few bytes for each of them, and a client that attaches again gets all of it.
    #[test]
    fn patches_are_kept_in_short_and_given_as_they_were() {
        let (mut log, mut all, mut said) = (FrameLog::default(), Vec::new(), String::new());
        for ordinal in 1..=2_000 {
            // A long answer, and what is no patch of it in between.
            let frame = match ordinal {
                500 | 501 | 1_000 => done("r"),
                700 => patch(ordinal, "other", &mut String::new(), "word "),
                900 => patch(ordinal, "one", &mut String::new(), "from the start"),
                _ => patch(ordinal, "one", &mut said, &format!("word {} ", ordinal % 7)),
            };
            let audience = if ordinal < 1_500 { Audience::All } else { Audience::Askers };
            all.push((Arc::clone(&frame), audience));
            log.push(frame, audience);
            assert!(log.pieces.len() < 20 + WHOLE_MAX, "{log:?}");
        }
        assert!(log.pieces.len() > WHOLE_MAX, "what nobody has taken is whole");
        log.taken(log.end());
        assert!(log.pieces.len() < 20 && log.bytes() < 60_000, "{log:?}");
        assert_eq!(log.end(), Position(2_000));
        for (at, (frame, audience)) in (0..).zip(&all) {
            let logged = log.get(Position(at)).expect("all of it");
            assert_eq!((&logged.frame, logged.audience), (frame, *audience), "{at}");
            if let Some(since) = ordinal(frame) {
                assert_eq!(log.after(since), Some(Position(at + 1)));
            }
        }
        assert!(log.get(log.end()).is_none());
        assert!(log.has_done(Position(990), "r"));
        assert!(!log.has_done(Position(1_000), "r"));
    }

    #[test]
    fn the_oldest_patches_go_a_few_at_a_time() {
        let (mut log, mut said) = (FrameLog::default(), String::new());
        let text = "a longer piece of an answer than most of them are, as some providers send";
        let pushed = 20_000;
        for ordinal in 1..=pushed {
            log.push(patch(ordinal, "one", &mut said, text), Audience::All);
            log.trim(None);
            assert!(log.bytes() <= FRAMES_BYTES_MAX, "{ordinal}");
        }
        let first = log.first();
        let kept = log.bytes() / (text.len() + 20);
        assert!(pushed - first.0 >= kept as u64 - 300, "{first:?} of {kept}");
        assert!(log.get(Position(first.0 - 1)).is_none());
        let oldest = log.get(first).expect("the oldest one");
        assert_eq!(ordinal(&oldest.frame), Some(Ordinal(first.0 + 1)));
        assert_eq!(
            log.after(Ordinal(first.0)),
            Some(first),
            "the one before it is the last that is gone"
        );
        assert_eq!(log.after(Ordinal(first.0 - 1)), None);
    }

    fn large() -> Arc<Frame> {
        let message = "x".repeat(FRAMES_BYTES_MAX / 2);
        let body = Body::Error(ErrorFrame { message, ..Default::default() });
        Arc::new(Frame { frame: Some(body), ..Default::default() })
    }

    fn done(request: &str) -> Arc<Frame> {
        let request_id = request.to_owned();
        Arc::new(Frame {
            request_id,
            frame: Some(Body::Done(DoneFrame::default())),
            ..Default::default()
        })
    }

    #[test]
    fn what_the_client_furthest_ahead_has_not_taken_stays_but_for_many_answers() {
        const FRAMES: u64 = 5;
        let mut log = FrameLog::default();
        for _ in 0..FRAMES {
            log.push(large(), Audience::All);
        }
        let first_after = |log: &mut FrameLog, ahead: u64| {
            log.trim(Some(Position(ahead)));
            log.first().0
        };
        assert_eq!(first_after(&mut log, 0), 0);
        assert_eq!(first_after(&mut log, 2), 2);
        log.push(done("r"), Audience::Askers);
        assert_eq!(first_after(&mut log, 2), 2, "a few answers");
        assert_eq!(first_after(&mut log, FRAMES + 1), FRAMES - 1, "all is taken");
        for _ in 0..3 {
            log.push(large(), Audience::Askers);
        }
        assert!(first_after(&mut log, FRAMES - 1) > FRAMES - 1 && !log.is_full());
    }

    #[test]
    fn a_client_goes_on_after_the_last_event_that_it_has() {
        let mut log = FrameLog::default();
        log.begin(Ordinal(4));
        for ordinal in [5, 5, 6] {
            log.push(event(ordinal), Audience::All);
        }
        log.push(done("r"), Audience::All);
        assert_eq!(log.after(Ordinal(3)), None, "event 4 is gone");
        assert_eq!(log.after(Ordinal(4)), Some(Position(0)));
        assert_eq!(log.after(Ordinal(5)), Some(Position(0)), "both frames of the event");
        assert_eq!(log.after(Ordinal(6)), Some(Position(3)), "the done is still to come");
        assert_eq!(log.after(Ordinal(7)), None, "it has not happened");
    }

    #[test]
    fn the_oldest_frames_go_and_are_known_to_be_gone() {
        let mut log = FrameLog::default();
        log.push(event(1), Audience::All);
        log.push(large(), Audience::All);
        log.push(large(), Audience::All);
        log.push(event(2), Audience::All);
        assert!(log.has(Position(0)) && log.is_full(), "they stay until they are asked to go");
        log.trim(None);
        assert!(!log.has(Position(0)) && log.has(log.end()));
        assert_eq!(log.after(Ordinal(0)), None);
        assert!(log.after(Ordinal(1)).is_some());
        // Of the event that was gone first, a frame may still be there.
        let mut log = FrameLog::default();
        for ordinal in [1, 2, 2, 3] {
            log.push(event(ordinal), Audience::All);
        }
        log.pieces.drain(..2);
        (log.short, log.floor) = (0, Ordinal(2));
        assert_eq!(log.after(Ordinal(2)), Some(Position(2)));
        assert!(log.get(Position(0)).is_none() && log.get(Position(3)).is_some());
    }

    fn snapshot(bytes: usize) -> Arc<Frame> {
        let entity = SnapshotEntity { id: "x".repeat(bytes), ..Default::default() };
        let body = Body::Snapshot(SnapshotFrame { entities: vec![entity], ..Default::default() });
        Arc::new(Frame { frame: Some(body), ..Default::default() })
    }

    /// A snapshot is as long as a long conversation, and comes after each run.
    #[test]
    fn a_large_snapshot_takes_the_place_of_no_event() {
        const LARGE: usize = 1024 * 1024;
        let (mut log, mut ordinal) = (FrameLog::default(), 0);
        for turn in 0..3 {
            for _ in 0..100 {
                ordinal += 1;
                log.push(event(ordinal), Audience::All);
            }
            log.push(snapshot(LARGE), Audience::All);
            log.push(done("r"), Audience::All);
            log.trim(None);
            let missed = log.after(Ordinal(ordinal - 3)).expect("the last events are there");
            let frames: Vec<_> = (missed.0..log.end().0).map(Position).collect();
            let frames: Vec<_> = frames.into_iter().filter_map(|at| log.get(at)).collect();
            assert_eq!(frames.len(), 5, "in turn {turn}");
            assert_eq!(frames[3].frame.encoded_len(), snapshot(LARGE).encoded_len());
            assert!(log.bytes() < 2 * LARGE, "only one is kept");
            log.taken(log.end());
        }
        // The events of the turns before are there, and what is gone between them is shown to nobody.
        let first = log.after(Ordinal(0)).expect("all events");
        let empty = log.get(Position(first.0 + 100)).expect("the place of a snapshot");
        assert_eq!(empty.frame.frame, None);
    }

    /// A snapshot that a client waits for stays until newer frames need its place.
    #[test]
    fn a_large_snapshot_that_was_not_taken_is_replaced_by_none() {
        let mut log = FrameLog::default();
        log.push(event(1), Audience::All);
        log.taken(log.end());
        for _ in 0..2 {
            log.push(snapshot(LARGE_SNAPSHOT_BYTES), Audience::Askers);
        }
        log.trim(None);
        assert!(log.get(Position(1)).is_some_and(|it| it.frame.frame.is_some()));
        assert_eq!(log.after(Ordinal(1)), Some(Position(1)));
        log.push(large(), Audience::All);
        log.push(large(), Audience::All);
        log.push(large(), Audience::All);
        log.trim(None);
        assert!(!log.has(Position(1)) && log.bytes() <= FRAMES_BYTES_MAX, "{}", log.bytes());
    }

    #[test]
    fn a_large_snapshot_stays_for_a_client_that_reads_its_run_again() {
        let mut log = FrameLog::default();
        log.push(event(1), Audience::All);
        log.push(snapshot(LARGE_SNAPSHOT_BYTES), Audience::All);
        log.push(done("r"), Audience::All);
        log.taken(log.end());
        log.taken(Position(0));
        log.push(snapshot(LARGE_SNAPSHOT_BYTES), Audience::All);
        log.trim(None);
        assert!(log.get(Position(1)).is_some_and(|it| it.frame.frame.is_some()));
    }

    #[test]
    fn a_done_is_found_from_a_place_on() {
        let mut log = FrameLog::default();
        log.push(done("r"), Audience::Askers);
        assert!(log.has_done(Position(0), "r"));
        assert!(!log.has_done(Position(0), "other"));
        assert!(!log.has_done(Position(1), "r"), "it was shown already");
    }
}
