//! What every step of a session writes to: the projections, and the list of what is to be done.

use super::trouble::run_failed;
use super::{FinalSnapshot, Output};
use crate::chat::event::{Event, Ordinal, Recorded, Scope};
use crate::chat::timeline::{Span, Timeline};
use crate::chat::transcript::Transcript;
use crate::chat::ui::{PatchMode, Ui};
use crate::engine::RunError;
use crate::fault::Tripwire;
use crate::id::{RequestId, RunId, SessionId};
use crate::proto::rpc::rpc_line::Frame as Body;
use crate::wire::{self, Done, Trouble};

#[derive(Clone, Debug)]
pub(super) struct Book {
    session: SessionId,
    final_snapshot: FinalSnapshot,
    ordinal: Ordinal,
    timeline: Timeline,
    transcript: Transcript,
    ui: Ui,
    /// The run whose engine was started and has not ended.
    engine: Option<RunId>,
    outputs: Vec<Output>,
    fault: Tripwire,
}

impl Book {
    pub(super) fn new(
        session: SessionId,
        patch_mode: PatchMode,
        final_snapshot: FinalSnapshot,
        transcript: Transcript,
    ) -> Self {
        Self {
            ui: Ui::new(session.clone(), patch_mode),
            session,
            final_snapshot,
            ordinal: Ordinal::default(),
            timeline: Timeline::default(),
            transcript,
            engine: None,
            outputs: Vec::new(),
            fault: Tripwire::default(),
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Gives the session the name that its first request has for it. No event has happened yet.
    pub(super) fn rename(&mut self, session: SessionId, patch_mode: PatchMode) {
        self.ui = Ui::new(session.clone(), patch_mode);
        self.session = session;
    }

    pub(super) fn plant(&mut self, fault: Tripwire) {
        self.fault = fault;
    }

    pub(super) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// Numbers an event, takes it into every projection and shows it.
    pub(super) fn record(&mut self, request: &RequestId, scope: Scope, event: Event) {
        self.ordinal.0 += 1;
        self.fault.step();
        let recorded = Recorded { ordinal: self.ordinal, scope, event };
        self.timeline.apply(&recorded);
        self.transcript.apply(&recorded);
        let payload = self.ui.project(recorded);
        self.frame(Some(request), wire::ui_event(self.ordinal, payload));
    }

    pub(super) fn start_engine(&mut self, run: RunId) {
        let transcript = self.transcript.clone();
        self.engine = Some(run);
        self.push(Output::StartRun { run, transcript });
    }

    pub(super) fn engine_ended(&mut self) {
        self.engine = None;
    }

    /// Has the engine dropped, if there is one. However often and from wherever it is called.
    pub(super) fn cancel_engine(&mut self) {
        if let Some(run) = self.engine.take() {
            self.push(Output::CancelRun(run));
        }
    }

    pub(super) fn snapshot(&mut self, request: &RequestId, span: Span) {
        let snapshot = self.timeline.snapshot(&self.session, span);
        self.frame(Some(request), wire::snapshot(snapshot));
    }

    /// The snapshot that closes a run, as far as one is wanted.
    pub(super) fn final_snapshot(&mut self, request: &RequestId) {
        match self.final_snapshot {
            FinalSnapshot::Full => self.snapshot(request, Span::Conversation),
            FinalSnapshot::Turn => self.snapshot(request, Span::LastTurn),
            FinalSnapshot::None => {}
        }
    }

    pub(super) fn run_failed(&mut self, request: &RequestId, error: RunError) {
        self.refuse(Some(request), run_failed(error));
    }

    /// Answers a request with what is wrong, and its end.
    pub(super) fn refuse(&mut self, request: Option<&RequestId>, trouble: Trouble) {
        self.error(request, trouble);
        self.done(request, Done::Failed);
    }

    pub(super) fn error(&mut self, request: Option<&RequestId>, trouble: Trouble) {
        self.frame(request, wire::error(trouble));
    }

    pub(super) fn done(&mut self, request: Option<&RequestId>, how: Done) {
        self.frame(request, wire::done(how));
    }

    /// Whether the outputs not yet taken end this request.
    pub(super) fn is_done(&self, request: Option<&RequestId>) -> bool {
        let id = request.map_or("", RequestId::as_str);
        self.outputs.iter().any(|output| match output {
            Output::Frame(frame) => {
                matches!(frame.frame, Some(Body::Done(_))) && frame.request_id == id
            }
            Output::StartRun { .. } | Output::CancelRun(_) | Output::Exit(_) | Output::Abort(_) => {
                false
            }
        })
    }

    fn frame(&mut self, request: Option<&RequestId>, body: Body) {
        let frame = wire::frame(&self.session, request, body);
        self.outputs.push(Output::Frame(frame));
    }
}
