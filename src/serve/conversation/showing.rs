//! What the host shows, and what each client gets of it.

use super::{Conversation, Ending};
use crate::host::{Effect, Effects};
use crate::protocol::command::{Command, Page};
use crate::protocol::constants::code;
use crate::protocol::id::Ordinal;
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
                Effect::Frame(frame) => self.show(frame, false),
                Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
                Effect::Exit(_) | Effect::Abort(_) => self.has_exited = true,
            }
        }
        self.open();
    }

    /// Takes a frame of the host; `is_silent`: it is noted, and shown to nobody.
    pub(super) fn show(&mut self, frame: Frame, is_silent: bool) {
        if frame.request_id.is_empty() {
            return self.show_nameless(frame);
        }
        if self.own.contains(&frame.request_id) {
            return self.answered_own(frame);
        }
        self.counts.frames_total.fetch_add(1, Ordering::Relaxed);
        let frame = Arc::new(frame);
        let audience = self.requests.frame(&frame);
        if !is_silent {
            let kept = is_kept(&frame);
            let bytes = self.log.push(frame, audience);
            self.said_bytes += if kept { bytes } else { 0 };
        }
    }

    fn show_nameless(&mut self, frame: Frame) {
        match &frame.frame {
            // What a stored conversation goes on from.
            Some(Body::Snapshot(snapshot)) => {
                self.log.begin(Ordinal(snapshot.snapshot_ordinal));
                self.said_bytes = frame.encoded_len();
            }
            Some(Body::Error(error)) if error.terminal => {
                let refusal = Refusal::of_opening(error);
                self.ending.get_or_insert(Ending::Now(refusal));
            }
            // Nothing is shown that is not stored: another node may go on from what is.
            Some(Body::Error(error)) if error.code == code::STORE_FAILED => {
                let why = format!(
                    "the conversation can't be stored here any more; attach again ({})",
                    error.message
                );
                self.ending = Some(Ending::Now(Refusal::unavailable(why)));
            }
            Some(Body::Done(_)) | None => {}
            Some(Body::Hello(_) | Body::UiEvent(_) | Body::BackendEvent(_) | Body::Error(_)) => {
                self.log.push(Arc::new(frame), Audience::All);
            }
        }
    }

    fn answered_own(&mut self, frame: Frame) {
        match &frame.frame {
            Some(Body::Done(_)) => drop(self.own.remove(&frame.request_id)),
            Some(Body::Snapshot(_)) => {
                let next = self.log.end();
                let Self { clients, requests, .. } = self;
                if let Some(client) = clients.iter_mut().find(|it| it.awaits(&frame.request_id)) {
                    client.snapshot(frame, next, requests);
                }
            }
            // What an extension shows belongs to all who have it.
            Some(Body::UiEvent(_) | Body::BackendEvent(_)) => {
                self.log.push(Arc::new(frame), Audience::All);
            }
            Some(Body::Hello(_) | Body::Error(_)) | None => {}
        }
    }

    /// Gives all clients what they take; lets those go that have all.
    pub(super) fn serve(&mut self) {
        // Who was too slow for the log is given a snapshot, and then what follows it.
        while let Some(id) = self.serve_once() {
            let request = self.next_own();
            if let Some(client) = self.client(id) {
                client.await_snapshot(request.clone());
            }
            self.ask(request, Command::Snapshot(Page::default()));
        }
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

    /// Gives all clients what they take; returns one that needs a snapshot.
    fn serve_once(&mut self) -> Option<ClientId> {
        let mut slow = None;
        let Self { clients, log, session, .. } = self;
        let now = Instant::now();
        clients.retain_mut(|client| match client.serve(log, session, now) {
            Served::Yes => true,
            Served::NeedsSnapshot => {
                slow = Some(client.id());
                true
            }
            Served::Over => {
                client.end_with(Ok(()));
                false
            }
        });
        slow
    }

    pub(super) fn count(&mut self) {
        let now = (self.clients.len() as u64, u64::from(self.requests.runs() > 0));
        let (clients, runs) = std::mem::replace(&mut self.counted, now);
        let counts = &self.counts;
        counts.clients.fetch_add(now.0.wrapping_sub(clients), Ordering::Relaxed);
        counts.runs.fetch_add(now.1.wrapping_sub(runs), Ordering::Relaxed);
        counts.runs_total.fetch_add(u64::from(now.1 > runs), Ordering::Relaxed);
        let begun = self.requests.runs_begun();
        if begun != self.runs_begun || now.1 == 0 {
            let run_until = self.times.run.map(|time| Instant::now() + time);
            self.run_until = run_until.filter(|_| now.1 > 0);
        }
        self.runs_begun = begun;
        self.held.set((self.log.bytes() + self.said_bytes) as u64);
    }

    /// Gives the clients their last frames, as long as they take some.
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

/// Whether the conversation keeps what a frame says: each patch is a part of what the end of its segment says.
fn is_kept(frame: &Frame) -> bool {
    matches!(&frame.frame, Some(Body::UiEvent(event)) if !event.name.ends_with("Patch"))
}
