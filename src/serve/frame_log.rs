//! The newest frames of a conversation, in their order, from which each client gets its own. Pure.

use super::client::ClientId;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use prost::Message;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of memory for the frames that are kept.
const FRAMES_BYTES_MAX: usize = 512 * 1024;

/// About what a frame takes in memory beside its encoded bytes: its fields, and the texts that it has for itself.
/// (Measured: 1,150 bytes for each frame of an answer in words.)
const FRAME_BYTES: usize = 800;

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All clients of the conversation.
    All,
    /// The client whose request it answers.
    One(ClientId),
}

/// A frame in the log.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) frame: Arc<Frame>,
    pub(super) audience: Audience,
    bytes: usize,
}

/// The place of a frame in the log of its conversation, from 0. It only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(pub(super) u64);

/// The newest frames of a conversation.
#[derive(Debug, Default)]
pub(super) struct FrameLog {
    frames: VecDeque<Logged>,
    bytes: usize,
    first: Position,
    /// The newest event that is not in the log any more: what comes after it is.
    floor: Ordinal,
    newest: Ordinal,
}

impl FrameLog {
    /// The conversation was shown up to this event before the log begins.
    pub(super) fn begin(&mut self, at: Ordinal) {
        (self.floor, self.newest) = (self.floor.max(at), self.newest.max(at));
    }

    /// Appends a frame, and returns its bytes; the oldest ones go. One frame always stays.
    pub(super) fn push(&mut self, frame: Arc<Frame>, audience: Audience) -> usize {
        self.newest = self.newest.max(ordinal(&frame).unwrap_or_default());
        let bytes = frame.encoded_len() + FRAME_BYTES;
        self.bytes += bytes;
        self.frames.push_back(Logged { frame, audience, bytes });
        while self.bytes > FRAMES_BYTES_MAX && self.frames.len() > 1 {
            let Some(gone) = self.frames.pop_front() else { break };
            self.bytes -= gone.bytes;
            self.first.0 += 1;
            self.floor = self.floor.max(ordinal(&gone.frame).unwrap_or_default());
        }
        bytes
    }

    /// Bytes of the frames that it has.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where the next frame will stand.
    pub(super) fn end(&self) -> Position {
        Position(self.first.0 + self.frames.len() as u64)
    }

    /// Whether the frame of that place is still there, or is to come.
    pub(super) fn has(&self, at: Position) -> bool {
        at >= self.first
    }

    /// The frame of that place.
    pub(super) fn get(&self, at: Position) -> Option<&Logged> {
        let index = at.0.checked_sub(self.first.0)?;
        self.frames.get(usize::try_from(index).ok()?)
    }

    /// The place after the last event up to `since`; `None` if events after it are gone, or it has not
    /// happened.
    pub(super) fn after(&self, since: Ordinal) -> Option<Position> {
        if since < self.floor || since > self.newest {
            return None;
        }
        let is_known = |it: &Logged| ordinal(&it.frame).is_some_and(|at| at <= since);
        let known = self.frames.iter().rposition(is_known).map_or(0, |at| at as u64 + 1);
        Some(Position(self.first.0 + known))
    }

    /// Whether a frame from that place on is the end of this request, for this client.
    pub(super) fn has_done(&self, from: Position, request: &str, client: ClientId) -> bool {
        let before = usize::try_from(from.0.saturating_sub(self.first.0)).unwrap_or(usize::MAX);
        self.frames.iter().skip(before).any(|it| {
            it.frame.request_id == request
                && matches!(it.frame.frame, Some(Body::Done(_)))
                && it.is_for(client)
        })
    }
}

impl Logged {
    /// Whether the frame is for this client.
    pub(super) fn is_for(&self, client: ClientId) -> bool {
        match self.audience {
            Audience::All => true,
            Audience::One(one) => one == client,
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
    use crate::protocol::proto::rpc::{DoneFrame, ErrorFrame, UiEventFrame};

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
        }
        let kept = log.frames.len() * std::mem::size_of::<Frame>();
        assert!(log.frames.len() > 500 && kept < FRAMES_BYTES_MAX, "{}", log.frames.len());
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
    fn a_client_goes_on_after_the_last_event_that_it_has() {
        let mut log = FrameLog::default();
        log.begin(Ordinal(4));
        for ordinal in [5, 5, 6] {
            log.push(event(ordinal), Audience::All);
        }
        log.push(done("r"), Audience::All);
        assert_eq!(log.after(Ordinal(3)), None, "event 4 is gone");
        assert_eq!(log.after(Ordinal(4)), Some(Position(0)));
        assert_eq!(log.after(Ordinal(5)), Some(Position(2)), "after both frames of the event");
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
        assert!(!log.has(Position(0)) && log.has(log.end()));
        assert_eq!(log.after(Ordinal(0)), None);
        assert!(log.after(Ordinal(1)).is_some());
        assert!(log.get(Position(0)).is_none() && log.get(Position(3)).is_some());
    }

    #[test]
    fn a_done_is_found_by_those_whom_it_is_for() {
        let mut log = FrameLog::default();
        let (one, other) = (ClientId(1), ClientId(2));
        log.push(done("r"), Audience::One(one));
        assert!(log.has_done(Position(0), "r", one));
        assert!(!log.has_done(Position(0), "r", other));
        assert!(!log.has_done(Position(1), "r", one), "it was shown already");
    }
}
