//! The requests that a conversation has seen since it is in memory, so that a request that is sent again is not run
//! again, and frames go to the clients that they are for. Pure.

use super::frame_log::{Audience, Position};
use crate::protocol::command::Extension;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Requests that have ended and are remembered, the newest ones.
const ENDED_MAX: usize = 256;

/// Refused requests that are remembered, beside the others: there may be many of them.
const REFUSED_MAX: usize = 64;

/// Bytes of the errors of requests that have ended.
const ENDED_BYTES_MAX: usize = 256 * 1024;

/// What the log knows of a request that arrives.
#[derive(Debug)]
pub(super) enum Seen {
    /// Nothing: the request is new, and to be handled.
    No,
    /// Another request had this id, and asked for something else.
    Other,
    /// The request has no done yet.
    Open {
        /// Position of the first frame of the request.
        first: Position,
    },
    Ended(Ended),
}

/// A request that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Position of the first frame of the request.
    pub(super) first: Position,
    /// The error of the request, if it had one, and its done.
    pub(super) last: Vec<Arc<Frame>>,
    /// The request has started a run.
    pub(super) has_run: bool,
}

/// The requests of a conversation.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    known: HashMap<String, Known>,
    ended: VecDeque<String>,
    refused: VecDeque<String>,
    ended_bytes: usize,
    open: usize,
    runs: usize,
    begun_bytes: usize,
}

#[derive(Debug)]
struct Known {
    /// Hash of what the request asks for.
    content: u64,
    /// Bytes of the prompt and its attachments, if they become a part of the conversation.
    said_bytes: usize,
    first: Position,
    /// The request has started a run, which all clients see.
    has_run: bool,
    /// Extensions of clients that were attached during the run, which can answer its questions.
    answerers: BTreeSet<Extension>,
    /// The error of the request and its done.
    last: Vec<Arc<Frame>>,
    is_open: bool,
}

impl RequestLog {
    /// Whether there was no request yet, or only refused ones.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0 && self.ended.is_empty()
    }

    /// Notes a request of a client; if it is new, `at` is the position of its first frame.
    pub(super) fn arrived(&mut self, id: &str, content: u64, at: Position) -> Seen {
        if let Some(known) = self.known.get_mut(id).filter(|known| !known.is_refused()) {
            if known.content != content {
                return Seen::Other;
            }
            if known.is_open {
                return Seen::Open { first: known.first };
            }
            let Known { first, has_run, .. } = *known;
            return Seen::Ended(Ended { first, last: known.last.clone(), has_run });
        }
        self.forget_refused(id);
        let known = Known {
            content,
            said_bytes: 0,
            first: at,
            has_run: false,
            answerers: BTreeSet::new(),
            last: Vec::new(),
            is_open: true,
        };
        self.known.insert(id.to_owned(), known);
        self.open += 1;
        Seen::No
    }

    /// Whether a request of this id has no done yet.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|known| known.is_open)
    }

    /// Whether a request of this id has begun a run, which may have ended.
    pub(super) fn has_run(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|known| known.has_run)
    }

    /// Whether a request of this id has ended, and was not refused.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|known| !known.is_open && !known.is_refused())
    }

    /// Notes the bytes of a request that become a part of the conversation.
    pub(super) fn says(&mut self, id: &str, bytes: usize) {
        if let Some(known) = self.known.get_mut(id) {
            known.said_bytes = bytes;
        }
    }

    /// Notes that a client with this extension is there for the runs of the requests that are open.
    pub(super) fn could_answer(&mut self, extension: Extension) {
        for known in self.known.values_mut().filter(|known| known.is_open) {
            known.answerers.insert(extension);
        }
    }

    /// Whether a client with this extension was attached during the run of this request.
    pub(super) fn had_answerer(&self, id: &str, extension: Extension) -> bool {
        self.known.get(id).is_some_and(|known| known.answerers.contains(&extension))
    }

    /// Opens a request that has ended once more.
    pub(super) fn reopen(&mut self, id: &str, at: Position) {
        let Some(known) = self.known.get_mut(id).filter(|known| !known.is_open) else { return };
        (known.first, known.is_open) = (at, true);
        known.has_run = false;
        self.ended_bytes -= bytes(&std::mem::take(&mut known.last));
        self.ended.retain(|ended| ended != id);
        self.open += 1;
    }

    /// Forgets a request that was refused, so that its refusal is shown to nobody.
    pub(super) fn forget_refused(&mut self, id: &str) {
        if self.known.get(id).is_some_and(Known::is_refused) {
            self.known.remove(id);
            self.refused.retain(|refused| refused != id);
        }
    }

    /// Notes a frame; returns which clients it is for.
    pub(super) fn frame(&mut self, frame: &Arc<Frame>) -> Audience {
        let Some(known) = self.known.get_mut(&frame.request_id) else { return Audience::All };
        match &frame.frame {
            Some(Body::UiEvent(_) | Body::BackendEvent(_)) => {
                if known.is_open && !std::mem::replace(&mut known.has_run, true) {
                    self.runs += 1;
                    self.begun_bytes += known.said_bytes;
                }
                return Audience::All;
            }
            Some(Body::Error(_)) => known.last.push(Arc::clone(frame)),
            Some(Body::Done(_)) => known.last.push(Arc::clone(frame)),
            Some(Body::Hello(_) | Body::Snapshot(_)) | None => {}
        }
        let audience = if known.has_run { Audience::All } else { Audience::Askers };
        if known.is_open && matches!(frame.frame, Some(Body::Done(_))) {
            known.is_open = false;
            self.open -= 1;
            self.runs -= usize::from(known.has_run);
            if known.is_refused() {
                self.refused.push_back(frame.request_id.clone());
                if self.refused.len() > REFUSED_MAX
                    && let Some(oldest) = self.refused.pop_front()
                {
                    self.known.remove(&oldest);
                }
                return audience;
            }
            self.ended_bytes += bytes(&known.last);
            self.ended.push_back(frame.request_id.clone());
            self.forget();
        }
        audience
    }

    /// The error and the done of a request that has ended.
    pub(super) fn last(&self, id: &str) -> Option<&[Arc<Frame>]> {
        self.known.get(id).filter(|known| !known.is_open).map(|known| &known.last[..])
    }

    /// Requests without a done.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Open requests that have started a run.
    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    /// Bytes of the requests that have started a run, or joined one, since the last call.
    pub(super) fn take_begun_bytes(&mut self) -> usize {
        std::mem::take(&mut self.begun_bytes)
    }

    fn forget(&mut self) {
        while self.ended.len() > ENDED_MAX || self.ended_bytes > ENDED_BYTES_MAX {
            let Some(oldest) = self.ended.pop_front() else { return };
            if let Some(known) = self.known.remove(&oldest) {
                self.ended_bytes -= bytes(&known.last);
            }
        }
    }
}

impl Known {
    /// Whether nothing came of the request, so that it may be sent again. Its frames are remembered for a client that
    /// was not shown them.
    fn is_refused(&self) -> bool {
        !self.is_open && !self.has_run && self.last.len() > 1
    }
}

fn bytes(frames: &[Arc<Frame>]) -> usize {
    use prost::Message;
    frames.iter().map(|frame| frame.encoded_len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::rpc::{DoneFrame, ErrorFrame, UiEventFrame};

    fn frame(request: &str, body: Body) -> Arc<Frame> {
        Arc::new(Frame { request_id: request.to_owned(), frame: Some(body), ..Default::default() })
    }

    fn done(request: &str) -> Arc<Frame> {
        frame(request, Body::Done(DoneFrame::default()))
    }

    #[test]
    fn a_request_is_handled_once() {
        let mut requests = RequestLog::default();
        let at = Position::default();
        assert!(matches!(requests.arrived("r", 7, at), Seen::No));
        assert!(matches!(requests.arrived("r", 8, at), Seen::Other));
        assert!(matches!(requests.arrived("r", 7, at), Seen::Open { .. }));
        assert_eq!(requests.open(), 1);
        assert_eq!(requests.frame(&done("r")), Audience::Askers);
        assert_eq!(requests.open(), 0);
        let Seen::Ended(Ended { last, .. }) = requests.arrived("r", 7, at) else { panic!("ended") };
        assert_eq!(last, [done("r")]);
        requests.reopen("r", Position(9));
        assert_eq!(requests.frame(&done("r")), Audience::Askers);
    }

    #[test]
    fn all_see_a_run_and_one_an_answer() {
        let mut requests = RequestLog::default();
        let at = Position::default();
        requests.arrived("run", 1, at);
        requests.arrived("refused", 1, at);
        let event = frame("run", Body::UiEvent(UiEventFrame::default()));
        assert_eq!(requests.frame(&event), Audience::All);
        assert_eq!(requests.frame(&done("run")), Audience::All);
        assert_eq!(requests.frame(&done("refused")), Audience::Askers);
    }

    #[test]
    fn a_request_that_was_refused_may_come_again_and_its_frames_are_remembered() {
        let mut requests = RequestLog::default();
        let error = |id: &str| frame(id, Body::Error(ErrorFrame::default()));
        requests.arrived("refused", 1, Position::default());
        assert!(!requests.is_empty());
        requests.frame(&error("refused"));
        requests.frame(&done("refused"));
        assert!(requests.is_empty(), "nothing came of it");
        requests.arrived("ran", 1, Position::default());
        requests.frame(&done("ran"));
        for number in 0..=ENDED_MAX {
            let id = format!("r{number}");
            assert!(matches!(requests.arrived(&id, 1, Position::default()), Seen::No));
            requests.says(&id, 1000);
            requests.frame(&error(&id));
            requests.frame(&done(&id));
            assert_eq!(requests.last(&id), Some(&[error(&id), done(&id)][..]));
        }
        assert!(requests.last("r0").is_none() && requests.known.len() <= REFUSED_MAX + 1);
        assert!(requests.last("ran").is_some(), "what has run is remembered for longer");
        assert_eq!(requests.take_begun_bytes(), 0, "what is refused is not kept");
        let id = format!("r{ENDED_MAX}");
        assert!(matches!(requests.arrived(&id, 2, Position::default()), Seen::No));
        requests.says(&id, 1000);
        let event = frame(&id, Body::UiEvent(UiEventFrame::default()));
        assert_eq!(requests.frame(&event), Audience::All);
        assert_eq!((requests.take_begun_bytes(), requests.take_begun_bytes()), (1000, 0));
        assert_eq!((requests.open(), requests.runs()), (1, 1));
        requests.frame(&error(&id));
        requests.frame(&done(&id));
        assert!(matches!(requests.arrived(&id, 2, Position::default()), Seen::Ended(_)));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut requests = RequestLog::default();
        for number in 0..=ENDED_MAX {
            let id = format!("r{number}");
            requests.arrived(&id, 1, Position::default());
            requests.frame(&done(&id));
        }
        assert!(matches!(requests.arrived("r0", 1, Position::default()), Seen::No));
        assert!(requests.last("r1").is_some());
    }
}
