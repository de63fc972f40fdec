//! Frames of the host, and which of them each client gets.

use super::{Conversation, Counted, Ending, RunSpan};
use crate::host::{Effect, Effects};
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Page};
use crate::protocol::constants::code;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::UiEventFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::serve::client::{Client, ClientId, Served};
use crate::serve::frame_log::Audience;
use crate::serve::refusal::Refusal;
use crate::support::sleep_until;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Conversation {
    pub(super) fn perform(&mut self, effects: Effects) {
        for effect in effects.list {
            if matches!(self.ending, Some(Ending::Now(_))) {
                return;
            }
            match effect {
                Effect::Frame(frame) => {
                    let is_late = self.is_late(&frame);
                    self.show(frame, is_late);
                }
                Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
                Effect::Exit(_) | Effect::Abort(_) => self.has_exited = true,
            }
        }
        for observation in self.host.take_observed() {
            self.counts.calls.note(&mut self.open_calls, &observation);
            if let Some(spans) = &mut self.spans {
                spans.note(&observation);
            }
        }
        self.open();
    }

    /// Whether a frame belongs to the refusal of a prompt that came when the conversation was about to leave. The
    /// client is told of the end of its stream instead, and sends the prompt again.
    fn is_late(&mut self, frame: &Frame) -> bool {
        match &frame.frame {
            Some(Body::Error(error)) if error.code == code::SHUTTING_DOWN => {
                self.late.insert(frame.request_id.clone());
                true
            }
            Some(Body::Done(_)) => self.late.remove(&frame.request_id),
            Some(
                Body::Hello(_)
                | Body::Snapshot(_)
                | Body::Error(_)
                | Body::UiEvent(_)
                | Body::BackendEvent(_),
            )
            | None => false,
        }
    }

    /// Takes a frame of the host; `is_silent`: the frame is noted, and shown to nobody.
    pub(super) fn show(&mut self, frame: Frame, is_silent: bool) {
        if frame.request_id.is_empty() {
            return self.show_nameless(frame);
        }
        if self.own.contains(&frame.request_id) {
            return self.answered_own(frame);
        }
        self.counts.frames_total.fetch_add(1, Ordering::Relaxed);
        self.trace(&frame);
        let frame = Arc::new(frame);
        let audience = self.requests.frame(&frame);
        self.said_bytes += self.requests.take_begun_bytes();
        if is_silent {
            self.requests.forget_refused(&frame.request_id);
        } else {
            let is_event = matches!(frame.frame, Some(Body::UiEvent(_)));
            let is_patch = is_patch(&frame);
            let bytes = self.keep(frame, audience);
            // Not the patches: the end of a segment has their text once more.
            self.said_bytes += if is_event && !is_patch { bytes } else { 0 };
            self.counts.deltas_total.fetch_add(u64::from(is_patch), Ordering::Relaxed);
        }
    }

    /// Has log lines and traces name the run that goes on.
    fn trace(&mut self, frame: &Frame) {
        if let (Some(spans), Some(Body::Done(_))) = (&mut self.spans, &frame.frame) {
            spans.answered(&frame.request_id);
        }
        match &frame.frame {
            Some(Body::UiEvent(event)) if event.payload.as_ref().is_some_and(Any::is_prompt) => {
                self.enter(&frame.request_id);
            }
            // The event that each run has once.
            Some(Body::UiEvent(UiEventFrame { payload: Some(Any::ChatRunStarted(_)), .. })) => {
                self.counts.runs_total.fetch_add(1, Ordering::Relaxed);
                self.run_until = None;
            }
            Some(Body::Done(done)) if self.is_in_span_of(&frame.request_id) => {
                if let Some(spans) = &mut self.spans {
                    spans.end(&done.status);
                }
                self.run_span = None;
            }
            Some(
                Body::Hello(_)
                | Body::Snapshot(_)
                | Body::Error(_)
                | Body::Done(_)
                | Body::UiEvent(_)
                | Body::BackendEvent(_),
            )
            | None => {}
        }
    }

    /// Has log lines name this request from here on.
    pub(super) fn enter(&mut self, request: &str) {
        if !self.is_in_span_of(request) {
            let span = tracing::error_span!("run", request);
            self.run_span = Some(RunSpan { request: request.to_owned(), span });
            if let Some(spans) = &mut self.spans {
                spans.begin(request);
            }
        }
    }

    /// Whether log lines name this request.
    fn is_in_span_of(&self, request: &str) -> bool {
        self.run_span.as_ref().is_some_and(|run| run.request == request)
    }

    fn show_nameless(&mut self, frame: Frame) {
        match &frame.frame {
            // The snapshot from which a stored conversation goes on.
            Some(Body::Snapshot(snapshot)) => {
                self.log.begin(Ordinal(snapshot.snapshot_ordinal));
                self.said_bytes = frame.encoded_len();
            }
            Some(Body::Error(error)) if error.terminal => {
                let refusal = Refusal::of_opening(error);
                self.ending.get_or_insert(Ending::Now(refusal));
            }
            // Nothing is shown that is not stored: another node may go on from the store.
            Some(Body::Error(error)) if error.code == code::STORE_FAILED => {
                // The message is for a process of one conversation, which goes on without a store.
                let why = Refusal::of_store(&*error.detail).message;
                let why =
                    format!("the conversation can't be stored here any more; attach again ({why})");
                self.ending = Some(Ending::Now(Refusal::unavailable(why)));
            }
            Some(Body::Done(_)) | None => {}
            Some(Body::Hello(_) | Body::UiEvent(_) | Body::BackendEvent(_) | Body::Error(_)) => {
                self.keep(Arc::new(frame), Audience::All);
            }
        }
    }

    /// Adds a frame to the log; returns its bytes. Clients are sent what they take before the oldest frames go.
    fn keep(&mut self, frame: Arc<Frame>, audience: Audience) -> usize {
        let bytes = self.log.push(frame, audience);
        if self.log.is_full() {
            // A client that misses some gets a snapshot later, when all that goes with this frame has been shown.
            self.serve_once();
            self.trim();
        }
        bytes
    }

    /// Drops the oldest frames of the log, but for those that the client furthest ahead is still to be sent. A client
    /// that waits for its turn, or for a snapshot that is its next frame, is ahead of no client that reads.
    fn trim(&mut self) {
        let following = self.clients.iter().filter(|it| it.follows_runs(&self.requests));
        let ahead = following.filter_map(Client::next_position).max();
        let ahead = ahead.or_else(|| self.clients.iter().filter_map(Client::position).max());
        self.log.trim(ahead);
    }

    fn answered_own(&mut self, frame: Frame) {
        match &frame.frame {
            Some(Body::Done(_)) => {
                self.own.remove(&frame.request_id);
                // There may have been no snapshot.
                if let Some(client) = self.replaying_client(&frame.request_id) {
                    client.finish_replay(&frame.request_id, None);
                }
            }
            Some(Body::Snapshot(_)) => {
                let Self { clients, requests, cached_snapshot, log, .. } = self;
                if let Some(client) = clients.iter_mut().find(|it| it.awaits(&frame.request_id)) {
                    let snapshot = Arc::new(Frame { request_id: String::new(), ..frame });
                    *cached_snapshot = (log.end(), Arc::downgrade(&snapshot));
                    client.on_snapshot(snapshot, log.end(), requests);
                } else if let Some(client) = self.replaying_client(&frame.request_id) {
                    let request = frame.request_id.clone();
                    client.finish_replay(&request, Some(frame));
                }
            }
            // An event of an extension concerns all clients that have turned it on.
            Some(Body::UiEvent(_) | Body::BackendEvent(_)) => {
                self.keep(Arc::new(frame), Audience::All);
            }
            Some(Body::Hello(_) | Body::Error(_)) | None => {}
        }
    }

    /// The snapshot of the conversation as it is at the moment, if a client still has it.
    pub(super) fn shared_snapshot(&self) -> Option<Arc<Frame>> {
        let (at, snapshot) = &self.cached_snapshot;
        snapshot.upgrade().filter(|_| *at == self.log.end())
    }

    /// Makes the next snapshot a new one, as it has what an extension shows.
    pub(super) fn invalidate_snapshot(&mut self) {
        self.cached_snapshot = Default::default();
    }

    /// Bytes of the snapshots that the connections of clients have not written.
    pub(super) fn unwritten_snapshot_bytes(&self) -> usize {
        self.clients.iter().map(Client::unwritten_snapshot_bytes).sum()
    }

    /// The client with resent requests that wait for the snapshot of this request.
    fn replaying_client(&mut self, snapshot_request: &str) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.awaits_replay(snapshot_request))
    }

    /// Sends all clients what they take; removes those that have finished.
    pub(super) fn serve(&mut self) {
        // A client that was too slow for the log gets a snapshot, and then the frames that follow it.
        while let Some(id) = self.serve_once() {
            let request = self.next_own();
            if let Some(client) = self.client(id) {
                client.await_snapshot(request.clone());
            }
            self.ask(request, Command::Snapshot(Page::default()));
        }
        let taken = self.clients.iter().filter_map(Client::position).min();
        self.log.taken(taken.unwrap_or(self.log.end()));
        self.trim();
        let is_alone = self.clients.is_empty();
        match (is_alone, self.alone_since) {
            (true, None) => self.alone_since = Some(Instant::now()),
            (false, Some(_)) => self.alone_since = None,
            (true, Some(_)) | (false, None) => {}
        }
        if self.requests.open() == 0 {
            self.permits.clear();
        }
        self.count();
    }

    /// Sends all clients what they take; returns one that needs a snapshot.
    fn serve_once(&mut self) -> Option<ClientId> {
        let mut slow = None;
        let Self { clients, log, session, .. } = self;
        let now = Instant::now();
        clients.retain_mut(|client| match client.serve(log, session, now) {
            Served::Waiting => true,
            Served::NeedsSnapshot => {
                slow = Some(client.id());
                true
            }
            Served::Finished => {
                client.end_with(Ok(()));
                false
            }
        });
        slow
    }

    pub(super) fn count(&mut self) {
        let behind = self.clients.iter().filter(|client| client.is_behind()).count();
        let (clients, behind) = (self.clients.len() as u64, behind as u64);
        let has_run = self.requests.runs() > 0;
        self.show_counts(Counted { clients, behind, runs: has_run.into() });
        let time = self.times.run.filter(|_| has_run);
        self.run_until = time.map(|time| self.run_until.unwrap_or_else(|| Instant::now() + time));
        self.reservation
            .set((self.log.bytes() + self.said_bytes + self.unwritten_snapshot_bytes()) as u64);
        self.idle.note(self.is_idle(), !self.is_there());
    }

    /// Changes the node's gauges by what the conversation has now.
    pub(super) fn show_counts(&mut self, now: Counted) {
        let before = std::mem::replace(&mut self.counted, now);
        let counts = &self.counts;
        for (gauge, now, before) in [
            (&counts.clients, now.clients, before.clients),
            (&counts.behind, now.behind, before.behind),
            (&counts.runs, now.runs, before.runs),
        ] {
            if now != before {
                gauge.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            }
        }
    }

    /// Sends the clients their last frames, as long as they take some.
    pub(super) async fn flush(&mut self) {
        let until = Instant::now() + self.times.flush;
        loop {
            self.serve();
            if !self.clients.iter().any(Client::is_behind) {
                return;
            }
            tokio::select! {
                biased;
                () = self.room.notified() => {}
                () = sleep_until(Some(until)) => return,
            }
        }
    }
}

fn is_patch(frame: &Frame) -> bool {
    let Some(Body::UiEvent(UiEventFrame { payload, .. })) = &frame.frame else { return false };
    payload.as_ref().is_some_and(Any::is_patch)
}
