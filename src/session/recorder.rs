//! What every step of a session writes to: the projections, and the list of what is to be done.

mod frames;
mod tasks;

pub use frames::FULL_SNAPSHOT_ENTITIES_MAX;

use super::answer_extraction::{AnswerExtraction, Extraction, RejectedAnswer};
use super::exit::Verdict;
use super::log::{Log, Projections};
use super::usage::UsageMeter;
use super::{FinalSnapshot, Hints, Output, Retention, Rules, SessionMode};
use crate::chat::event::{Event, Recorded, Scope, Segment, SessionEvent};
use crate::chat::patch::{PatchFields, Patches};
use crate::chat::timeline::Timeline;
use crate::chat::transcript::Transcript;
use crate::chat::ui::Ui;
use crate::protocol::any::Any;
use crate::protocol::command::Extension;
use crate::protocol::id::{Ids, Ordinal, RequestId, RunId, SessionId, TaskId, ToolCallId};
use crate::protocol::wire::{self, ClientError};
use crate::support::fail_point::FailPoint;
use crate::support::text::Text;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Recorder {
    session: SessionId,
    mode: SessionMode,
    patches: Patches,
    hints: Hints,
    keep: Retention,
    final_snapshot: FinalSnapshot,
    verdict: Verdict,
    answer_extraction: Option<AnswerExtraction>,
    pub(super) ordinal: Ordinal,
    pub(super) timeline: Timeline,
    pub(super) transcript: Transcript,
    ui: Ui,
    pub(super) log: Log,
    /// The ids of the session's tool calls, each with how many calls of the engines had it.
    tool_calls: HashMap<ToolCallId, u32>,
    /// The tasks that were started and have not ended.
    tasks: BTreeSet<TaskId>,
    /// The number of the newest task.
    last_task: TaskId,
    outputs: Vec<Output>,
    fault: FailPoint,
    extensions: BTreeSet<Extension>,
    usage: UsageMeter,
    /// What is looked for in answers unless a submit says otherwise.
    own_extraction: Option<Extraction>,
}

impl Recorder {
    pub(super) fn new(session: SessionId, rules: &Rules, ids: &mut Ids) -> Self {
        Self {
            ui: Ui::new(session.clone(), rules.patches),
            log: Log::new(session.clone(), rules.log),
            session,
            mode: rules.mode,
            patches: rules.patches,
            hints: rules.hints,
            keep: rules.keep,
            final_snapshot: rules.final_snapshot,
            verdict: Verdict::default(),
            answer_extraction: rules.extraction.clone().map(AnswerExtraction::new),
            ordinal: Ordinal::default(),
            timeline: Timeline::with_history(&rules.preamble.history, ids),
            transcript: Transcript::new(rules.preamble.clone()),
            tool_calls: HashMap::new(),
            tasks: BTreeSet::new(),
            last_task: TaskId::default(),
            outputs: Vec::new(),
            fault: FailPoint::default(),
            extensions: rules.extensions.clone(),
            usage: UsageMeter::new(Arc::clone(&rules.prices)),
            own_extraction: rules.extraction.clone(),
        }
    }

    /// Whether an extension is on.
    pub(super) fn is_on(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }

    /// Turns an extension on for the rest of the session.
    pub(super) fn turn_on(&mut self, extension: Extension) {
        self.extensions.insert(extension);
    }

    pub(super) fn usage(&mut self) -> &mut UsageMeter {
        &mut self.usage
    }

    /// Before a run: what is looked for in its answer, if that is not what the session looks for.
    pub(super) fn expect_answer(&mut self, extraction: Option<Extraction>) {
        let extraction = extraction.or_else(|| self.own_extraction.clone());
        self.answer_extraction = extraction.map(AnswerExtraction::new);
        self.usage.run_started();
    }

    /// Why the answer so far does not match its schema, and how often another can be asked for.
    pub(super) fn rejected_answer(&self) -> Option<RejectedAnswer> {
        self.answer_extraction.as_ref()?.rejected()
    }

    /// What is wrong with the answer of a run that has finished.
    pub(super) fn take_invalid(&mut self) -> Option<ClientError> {
        let invalid = self.answer_extraction.as_mut().and_then(AnswerExtraction::take_invalid)?;
        self.verdict = Verdict::Failed;
        Some(invalid)
    }

    fn keeps(&self) -> bool {
        self.keep == Retention::Everything
    }

    /// The text of a segment so far; empty if what the model says is not remembered.
    pub(super) fn segment_text(&self, run: RunId, segment: Segment) -> Text {
        self.timeline.text(run, segment)
    }

    /// What became of the last run.
    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Gives the session the name that its first request has for it. No event has happened yet.
    pub(super) fn rename(&mut self, session: SessionId) {
        self.ui = Ui::new(session.clone(), self.patches);
        self.log = self.log.renamed(session.clone());
        self.session = session;
    }

    pub(super) fn plant(&mut self, fault: FailPoint) {
        self.fault = fault;
    }

    pub(super) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// The id in this session of a tool call that its engine calls `id`: the same, unless an earlier
    /// call has it. Some providers number the calls of each answer anew, and clients and snapshots
    /// know a call by its id.
    pub(super) fn tool_call_id(&mut self, id: &ToolCallId) -> ToolCallId {
        let calls = self.tool_calls.entry(id.clone()).or_default();
        *calls += 1;
        if *calls == 1 {
            return id.clone();
        }
        let mut number = *calls;
        let mut unique = ToolCallId(format!("{}-{number}", id.0));
        while self.tool_calls.contains_key(&unique) {
            number += 1;
            unique = ToolCallId(format!("{}-{number}", id.0));
        }
        self.tool_calls.insert(id.clone(), number);
        self.tool_calls.insert(unique.clone(), 1);
        unique
    }

    /// Numbers an event, takes it into every projection and shows it.
    pub(super) fn record(&mut self, request: &RequestId, scope: Scope, event: Event) {
        self.apply(Some(request), scope, event);
    }

    fn apply(&mut self, request: Option<&RequestId>, scope: Scope, event: Event) {
        self.ordinal = self.ordinal.next();
        self.fault.step();
        let event = self.log.complete(event);
        let recorded = Recorded { ordinal: self.ordinal, scope, event };
        if self.keeps() {
            self.timeline.apply(&recorded);
        }
        self.transcript.apply(&recorded);
        self.weigh(&recorded.event);
        let found = self
            .answer_extraction
            .as_mut()
            .map(|answer_extraction| answer_extraction.apply(&self.session, &recorded));
        let is_cut_off = self.answer_extraction.as_ref().is_some_and(AnswerExtraction::is_cut_off);
        if is_cut_off && matches!(recorded.event, Event::RunFinished { .. }) {
            self.verdict = Verdict::CutOff;
        }
        let is_end = recorded.event.ends_run();
        // Its message belongs to the extension of the values.
        let is_hidden = matches!(recorded.event, Event::RepairRequested { .. })
            && !self.answer_extraction.as_ref().is_some_and(AnswerExtraction::is_reported);
        self.log(request, &recorded, is_hidden);
        let payload = self.ui.project(recorded);
        // What an event brought follows it; but after the end of a run nothing of it may follow.
        let (before, after) = if is_end { (found, None) } else { (None, found) };
        self.show(request, before.into_iter().flatten());
        self.show(request, (!is_hidden).then_some(payload));
        self.show(request, after.into_iter().flatten());
    }

    /// Has an event stored before anything of it is shown, and shows it as a backend event.
    fn log(&mut self, request: Option<&RequestId>, recorded: &Recorded, is_hidden: bool) {
        if !self.log.is_on() {
            return;
        }
        if let Some(patch) = self.log.patch(recorded) {
            // Most lists of outputs are a patch and its frame.
            self.outputs.reserve_exact(2);
            return self.outputs.push(patch);
        }
        let payload = self.log.payload(recorded);
        let at = (self.ordinal, &payload);
        let shown = self.log.backend_event(&self.session, request, at);
        self.store(recorded, payload);
        self.outputs.extend(shown.filter(|_| !is_hidden));
    }

    fn store(&mut self, recorded: &Recorded, payload: Any) {
        let Self { session, timeline, transcript, usage, .. } = self;
        let projections = Projections { session, timeline, transcript, usage };
        let stored = self.log.record(recorded, payload, &projections);
        self.outputs.extend(stored);
    }

    /// An event of a run that was cut off before this process began: it is stored and not shown, and
    /// the model knows of it already.
    pub(super) fn record_unseen(&mut self, scope: Scope, event: Event) {
        self.ordinal = self.ordinal.next();
        let recorded = Recorded { ordinal: self.ordinal, scope, event };
        self.timeline.apply(&recorded);
        let payload = self.log.payload(&recorded);
        self.store(&recorded, payload);
    }

    /// A call of an earlier process had that id.
    pub(super) fn tool_calls_known(&mut self, id: &str) {
        self.tool_calls.insert(ToolCallId(id.to_owned()), 1);
    }

    /// Frames for payloads that come of the newest event.
    fn show(&mut self, request: Option<&RequestId>, payloads: impl IntoIterator<Item = Any>) {
        for payload in payloads {
            let is_lean = self.patches.fields == PatchFields::Lean && is_patch(&payload);
            let mut frame =
                wire::frame(&self.session, request, wire::ui_event(self.ordinal, payload));
            if is_lean {
                frame.session_id = String::new();
            }
            self.push(Output::Frame(frame));
        }
    }

    /// Bytes of the attachments in the transcript.
    pub(super) fn attached_bytes(&self) -> u64 {
        self.transcript.attached_bytes()
    }

    /// The same for what happens outside of runs. It may come of no request.
    pub(super) fn record_of_session(&mut self, request: Option<&RequestId>, event: SessionEvent) {
        self.apply(request, Scope::OUTSIDE, Event::Session(event));
    }

    /// Shows something to `request` that came of the newest event, which belongs to another one: they
    /// share the ordinal.
    pub(super) fn show_to(&mut self, request: &RequestId, payload: Any) {
        self.show(Some(request), [payload]);
    }

    fn weigh(&mut self, event: &Event) {
        match event {
            Event::CallFinished { class, .. } if class.cuts_off() => self.verdict = Verdict::CutOff,
            Event::CallFinished { .. } | Event::RunStarted { .. } => {
                self.verdict = Verdict::Answered;
            }
            Event::RunFailed { .. } => self.verdict = Verdict::Failed,
            Event::PromptAccepted { .. }
            | Event::PromptJoined { .. }
            | Event::RepairRequested { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::CallStarted
            | Event::SegmentStarted { .. }
            | Event::SegmentPatched { .. }
            | Event::SegmentFinished { .. }
            | Event::ToolCallStarted { .. }
            | Event::ToolArgumentsPatched { .. }
            | Event::ToolCallRequested { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolResultReady { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::TurnDropped { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped { .. }
            | Event::Call(_)
            | Event::Session(_) => {}
        }
    }
}

fn is_patch(payload: &Any) -> bool {
    matches!(
        payload,
        Any::ChatTextPatch(_) | Any::ChatReasoningPatch(_) | Any::ChatToolArgumentsPatch(_)
    )
}
