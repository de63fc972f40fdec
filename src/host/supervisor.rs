//! The edge around the session of one conversation: a panic in it ends the conversation.
//!
//! What a panic may have left half-changed is not used again: the session and the outputs that it had not
//! returned are dropped. The supervisor answers the requests that are open. What it knows of them comes
//! from the inputs, and from outputs that the session has returned whole.

use crate::conversation::event::ToolResult;
use crate::protocol::id::{RequestId, SessionId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, ClientError, Done, Frame};
use crate::session::{
    ExitCode, Input, Output, Session, SessionMode, Uptime, Warning, conversation_ended, panic_text,
    request_ended, run_ended, store_closed,
};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Supervisor {
    /// `None` after a panic in it.
    session: Option<Box<Session>>,
    /// The id of the session, which its first request may change.
    id: SessionId,
    mode: SessionMode,
    /// Requests that were read and have no `done` yet; `None` for a line whose id could not be read.
    open: VecDeque<Option<RequestId>>,
    /// The request of the active run, after the last input that was handled whole.
    running: Option<RequestId>,
    has_ended: bool,
}

impl Supervisor {
    pub(super) fn new(session: Session, mode: SessionMode) -> Self {
        let id = session.id().clone();
        let session = Some(Box::new(session));
        Self { session, id, mode, open: VecDeque::new(), running: None, has_ended: false }
    }

    /// How long the process talks.
    pub(super) fn mode(&self) -> SessionMode {
        self.mode
    }

    /// The session; `None` after a panic in it.
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    pub(super) fn session_mut(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// Bytes of the attachments that the conversation holds.
    pub(super) fn attached_bytes(&self) -> u64 {
        self.session().map_or(0, Session::attached_bytes)
    }

    /// The results of tools that have images, by their calls.
    pub(super) fn results_with_images(&self) -> BTreeMap<ToolCallId, Arc<ToolResult>> {
        self.session().map(Session::results_with_images).unwrap_or_default()
    }

    /// The id of the session.
    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Notes the request in `input`, if there is one: it is owed a `done`. Before anything is done about
    /// it.
    pub(super) fn note_request(&mut self, input: &Input) {
        let id = if let Input::Request(request) = input {
            Some(request.id.clone())
        } else if let Input::BadLine(line) = input {
            line.id.clone()
        } else {
            return;
        };
        self.open.push_back(id);
    }

    /// Has the session handle an input. After a panic these are the last outputs of the conversation;
    /// `is_stored`: what was returned before can be resumed.
    pub(super) fn handle(&mut self, now: Uptime, input: Input, is_stored: bool) -> Vec<Output> {
        let Some(session) = &mut self.session else { return self.after_end(input) };
        match catch_unwind(AssertUnwindSafe(|| session.handle(now, input))) {
            Ok(outputs) => {
                if self.id != *session.id() {
                    self.id.clone_from(session.id());
                }
                // It seldom changes, and there is an input for each delta.
                if self.running.as_ref() != session.active_request() {
                    self.running = session.active_request().cloned();
                }
                outputs.iter().for_each(|output| self.note(output));
                outputs
            }
            Err(panic) => {
                self.session = None;
                self.end(&panic_text(panic.as_ref()), is_stored)
            }
        }
    }

    fn note(&mut self, output: &Output) {
        if let Output::Frame(frame) = output {
            self.note_frame(frame);
        } else if let Output::Exit(_) | Output::Abort(_) = output {
            self.has_ended = true;
        }
    }

    fn note_frame(&mut self, frame: &Frame) {
        if let Some(Body::Done(_)) = &frame.frame
            && let Some(at) = self.open.iter().position(|id| name(id.as_ref()) == frame.request_id)
        {
            self.open.remove(at);
        }
    }

    /// The last outputs after a panic: each open request is answered, and the process told to end.
    fn end(&mut self, defect: &str, is_stored: bool) -> Vec<Output> {
        if std::mem::replace(&mut self.has_ended, true) {
            // The reader has the last frame of the conversation already.
            return vec![Output::Abort(ExitCode::Internal)];
        }
        let mut outputs = Vec::new();
        let ended = conversation_ended(defect, is_stored);
        let open = std::mem::take(&mut self.open);
        let mut running = self.running.take();
        // The error of a single run is its request's.
        let has_farewell = self.mode == SessionMode::Conversation || open.is_empty();
        for id in open {
            // One that has the same id and came later has no run.
            let has_run = running.take_if(|it| Some(&*it) == id.as_ref()).is_some();
            let client_error = match (self.mode, has_run) {
                (SessionMode::OneShot, _) => ended.clone(),
                (SessionMode::Conversation, true) => run_ended(defect),
                (SessionMode::Conversation, false) => request_ended(defect),
            };
            outputs.extend(self.refusal(id.as_ref(), client_error));
        }
        if has_farewell {
            outputs.extend(self.refusal(None, ended));
        }
        outputs.push(Output::Exit(ExitCode::Internal));
        outputs
    }

    /// What can still happen after a panic: a second signal does not wait for the reader, and the store
    /// may fail before it is closed.
    fn after_end(&self, input: Input) -> Vec<Output> {
        if let Input::Interrupted(signal) = input {
            return vec![Output::Abort(ExitCode::Interrupted(signal))];
        }
        let Input::StoreFailed(failure) = input else { return Vec::new() };
        let warning = Warning { text: failure.reason, has_event: true, code: None };
        let error = self.frame(None, wire::error(store_closed(&warning.text)));
        let is_shown = self.mode == SessionMode::Conversation;
        let warning = Output::Warning(warning);
        std::iter::once(warning).chain(is_shown.then_some(error)).collect()
    }

    fn refusal(&self, request: Option<&RequestId>, client_error: ClientError) -> [Output; 2] {
        let bodies = [wire::error(client_error), wire::done(Done::Failed)];
        bodies.map(|body| self.frame(request, body))
    }

    fn frame(&self, request: Option<&RequestId>, body: Body) -> Output {
        Output::Frame(wire::frame(&self.id, request, body))
    }
}

/// The request that a frame names, which has no name if its line had no id.
fn name(request: Option<&RequestId>) -> &str {
    request.map_or("", RequestId::as_str)
}

#[cfg(test)]
mod tests;
