//! The recorder, to which every step of a session writes: it holds the projections and the list of outputs.

mod frames;
mod tasks;

pub use frames::FULL_SNAPSHOT_ENTITIES_MAX;

use super::answer_extraction::{AnswerExtraction, Extraction, RejectedAnswer};
use super::budget::Budget;
use super::exit::Verdict;
use super::last_message::LastMessage;
use super::log::Log;
use super::prices::PriceList;
use super::{FinalSnapshot, Hints, Output, Retention, Rules, SessionMode};
use crate::conversation::event::{
    CallReport, Event, Recorded, Scope, Segment, SessionEvent, ToolResult,
};
use crate::conversation::log::Record;
use crate::conversation::patch::{PatchFields, Patches};
use crate::conversation::projections::Projections;
use crate::conversation::timeline::Timeline;
use crate::conversation::transcript::Transcript;
use crate::conversation::ui::Ui;
use crate::protocol::any::Any;
use crate::protocol::command::Extension;
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{Ids, RequestId, RunId, SessionId, TaskId, ToolCallId};
use crate::protocol::wire::{self, ClientError};
use crate::support::fail_point::FailPoint;
use crate::support::text::Text;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Recorder {
    session: SessionId,
    mode: SessionMode,
    patches: Patches,
    hints: Hints,
    retention: Retention,
    final_snapshot: FinalSnapshot,
    verdict: Verdict,
    answer_extraction: Option<AnswerExtraction>,
    last_message: Option<LastMessage>,
    pub(super) projections: Projections,
    ui: Ui,
    pub(super) log: Log,
    /// The tasks that were started and have not ended.
    tasks: BTreeSet<TaskId>,
    /// The number of the newest task.
    last_task: TaskId,
    outputs: Vec<Output>,
    fault: FailPoint,
    extensions: BTreeSet<Extension>,
    events: EventFilter,
    prices: PriceList,
    pub(super) budget: Budget,
    /// The run that is recorded was cut off in an earlier process: nothing of its end is shown.
    is_unseen: bool,
    /// The conversation is compacted outside of its turns.
    hides_calls: bool,
    /// The extraction from answers, unless a submit requests another.
    own_extraction: Option<Extraction>,
    /// The person knows that system prompt and tools leave no room for a conversation.
    pub(super) has_warned_of_filled_context: bool,
    /// The person knows that the messages which the session began with are not summarized alone.
    pub(super) has_warned_of_history: bool,
}

impl Recorder {
    pub(super) fn new(session: SessionId, rules: &Rules, ids: &mut Ids) -> Self {
        Self {
            ui: Ui::new(session.clone(), rules.patches),
            log: Log::new(rules.log),
            session,
            mode: rules.mode,
            patches: rules.patches,
            hints: rules.hints,
            retention: rules.retention,
            final_snapshot: rules.final_snapshot,
            verdict: Verdict::default(),
            answer_extraction: rules.extraction.clone().map(AnswerExtraction::new),
            last_message: rules.keeps_last_message.then(LastMessage::default),
            projections: Projections {
                timeline: Timeline::with_history(&rules.preamble.history, ids),
                transcript: Transcript::new(rules.preamble.clone()),
                ..Projections::default()
            },
            tasks: BTreeSet::new(),
            last_task: TaskId::default(),
            outputs: Vec::new(),
            fault: FailPoint::default(),
            extensions: rules.extensions.clone(),
            events: rules.events.clone(),
            prices: rules.prices.clone(),
            budget: Budget::new(rules.budget),
            is_unseen: false,
            hides_calls: false,
            own_extraction: rules.extraction.clone(),
            has_warned_of_filled_context: false,
            has_warned_of_history: false,
        }
    }

    /// Whether the process gives one answer, which is plain text.
    pub(super) fn has_one_answer_of_text(&self) -> bool {
        self.mode == SessionMode::OneShot && self.answer_extraction.is_none()
    }

    /// Whether an extension is on.
    pub(super) fn is_on(&self, extension: Extension) -> bool {
        self.extensions.contains(&extension)
    }

    /// Turns an extension on for the rest of the session.
    pub(super) fn turn_on(&mut self, extension: Extension) {
        self.extensions.insert(extension);
    }

    /// Whether events of this name are written.
    pub(super) fn shows(&self, name: &str) -> bool {
        self.events.shows(name)
    }

    /// Hides provider calls, or shows them again.
    pub(super) fn hide_calls(&mut self, hides: bool) {
        self.hides_calls = hides;
    }

    /// Writes these events alone from here on.
    pub(super) fn show_events(&mut self, events: EventFilter) {
        self.events = events;
    }

    pub(super) fn prices(&self) -> &PriceList {
        &self.prices
    }

    /// Before a run: what is looked for in its answer, if that is not what the session looks for.
    pub(super) fn expect_answer(&mut self, extraction: Option<Extraction>) {
        let extraction = extraction.or_else(|| self.own_extraction.clone());
        self.answer_extraction = extraction.map(AnswerExtraction::new);
    }

    /// Why the answer so far does not match its schema, and how often another can be asked for.
    pub(super) fn rejected_answer(&self) -> Option<RejectedAnswer> {
        self.answer_extraction.as_ref()?.rejected()
    }

    /// The error about the invalid answer of a run that has finished.
    pub(super) fn take_invalid(&mut self) -> Option<ClientError> {
        let invalid = self.answer_extraction.as_mut().and_then(AnswerExtraction::take_invalid)?;
        self.verdict = Verdict::Failed;
        Some(invalid)
    }

    /// The last message of a run that has finished, if that is kept.
    pub(super) fn last_message(&self) -> Option<&str> {
        self.last_message.as_ref()?.get()
    }

    fn keeps(&self) -> bool {
        self.retention == Retention::Everything
    }

    /// The text of a segment so far; empty if what the model says is not remembered.
    pub(super) fn segment_text(&self, run: RunId, segment: Segment) -> Text {
        self.projections.timeline.text(run, segment)
    }

    /// The prompt can't be asked: that of a single run has failed.
    pub(super) fn fail(&mut self) {
        self.verdict = Verdict::Failed;
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

    /// Numbers an event, takes it into every projection and shows it.
    pub(super) fn record(&mut self, request: &RequestId, scope: Scope, event: Event) {
        self.apply(Some(request), scope, event);
    }

    fn apply(&mut self, request: Option<&RequestId>, scope: Scope, event: Event) {
        let ordinal = self.projections.ordinal.next();
        self.fault.step();
        let event = self.log.complete(event, request);
        let recorded = Recorded { ordinal, scope, event };
        let keeps = self.keeps();
        self.projections.apply(&recorded, keeps);
        self.weigh(&recorded.event);
        if let Some(last_message) = &mut self.last_message {
            let document = || self.answer_extraction.as_ref()?.document();
            last_message.apply(&recorded.event, document);
        }
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
        let is_hidden = if let Event::RepairRequested { .. } = recorded.event {
            !self.answer_extraction.as_ref().is_some_and(AnswerExtraction::is_reported)
        } else if let Event::Compaction(_) = recorded.event {
            !self.is_on(Extension::Compaction)
        } else {
            // A call outside of a turn is none that clients know of. What it costs they are told, and what happens to
            // the session meanwhile.
            let is_known = matches!(
                recorded.event,
                Event::Session(_)
                    | Event::Call(CallReport::Counted(_) | CallReport::BudgetNearlySpent(_))
            );
            self.hides_calls && !is_known
        };
        self.persist(&recorded);
        if self.log.rules().backend_events && !is_hidden {
            self.show_backend_event(request, &recorded);
        }
        let payload = self.ui.project(recorded);
        // What an event brought follows it; but after the end of a run nothing of it may follow.
        let (before, after) = if is_end { (found, None) } else { (None, found) };
        self.show(request, before.into_iter().flatten());
        self.show(request, payload.filter(|_| !is_hidden));
        self.show(request, after.into_iter().flatten());
    }

    /// Has an event stored before anything of it is shown.
    fn persist(&mut self, recorded: &Recorded) {
        if !self.log.rules().is_stored {
            return;
        }
        if self.outputs.is_empty() {
            // Most lists of outputs are a patch and its frame.
            self.outputs.reserve_exact(2);
        }
        let start = self.log.begin(&self.session, &self.projections);
        self.outputs.extend(start.map(Output::Persist));
        self.outputs.push(Output::Persist(Record::Event(recorded.clone())));
    }

    fn show_backend_event(&mut self, request: Option<&RequestId>, recorded: &Recorded) {
        let payload = self.ui.backend_event(recorded);
        let Some(payload) = payload.filter(|it| self.events.shows(it.name())) else { return };
        let body = wire::backend_event(recorded.ordinal, payload);
        self.frame(request, body);
    }

    /// Records the end of a run that was cut off in an earlier process: it is stored and not shown.
    pub(super) fn unseen(&mut self, end: impl FnOnce(&mut Self)) {
        let (shown, verdict) = (self.take_outputs(), self.verdict);
        self.is_unseen = true;
        end(self);
        self.is_unseen = false;
        self.verdict = verdict;
        let ended = std::mem::replace(&mut self.outputs, shown).into_iter();
        self.outputs.extend(ended.filter(|output| matches!(output, Output::Persist(_))));
    }

    /// Frames for payloads that come of the newest event.
    fn show(&mut self, request: Option<&RequestId>, payloads: impl IntoIterator<Item = Any>) {
        let ordinal = self.projections.ordinal;
        for payload in payloads {
            if !self.events.shows(payload.name()) {
                continue;
            }
            let is_lean = self.patches.fields == PatchFields::Lean && payload.is_patch();
            let mut frame = wire::frame(&self.session, request, wire::ui_event(ordinal, payload));
            if is_lean {
                frame.session_id = String::new();
            }
            self.push(Output::Frame(frame));
        }
    }

    /// Bytes of the attachments in the transcript.
    pub(super) fn attached_bytes(&self) -> u64 {
        self.projections.transcript.attached_bytes()
    }

    /// The results of tools that have images, by their calls.
    pub(super) fn results_with_images(&self) -> BTreeMap<ToolCallId, Arc<ToolResult>> {
        self.projections.transcript.results_with_images()
    }

    /// Like `record`, for an event outside of runs, which may have no request.
    pub(super) fn record_of_session(&mut self, request: Option<&RequestId>, event: SessionEvent) {
        self.apply(request, Scope::OUTSIDE, Event::Session(event));
    }

    /// Shows something to `request` that came of the newest event, which belongs to another one: they
    /// share the ordinal.
    pub(super) fn show_to(&mut self, request: &RequestId, payload: Any) {
        self.show(Some(request), [payload]);
    }

    fn weigh(&mut self, event: &Event) {
        if let Event::CallFinished { class, .. } = event {
            self.verdict = if class.cuts_off() { Verdict::CutOff } else { Verdict::Answered };
        } else if let Event::RunStarted { .. } = event {
            self.verdict = Verdict::Answered;
        } else if let Event::RunFailed { .. } = event {
            self.verdict = Verdict::Failed;
        }
    }
}
