//! Compaction of the conversation by a run: before a provider call that would be too long, after one that was, or
//! because the client has asked for it, which is a run of its own and no turn.

use super::Stop;
use super::open::CallFinish;
use super::{Context, Outcome, Run, RunStage};
use crate::conversation::compaction::{Compaction, CompactionEvent, text_tokens};
use crate::conversation::event::{Ending, Event, FinishClass};
use crate::protocol::constants::{REASON_OF_FAILED, class};
use crate::protocol::proto::session::{CompactionCause, CompactionProposed, CompactionStarted};
use crate::protocol::wire::Done;
use crate::session::Output;
use crate::session::calls::SummaryWanted;
use crate::session::client_error::compaction_failed;
use crate::session::compaction::{CompactMode, Plan};
use crate::session::recorder::Recorder;
use crate::task::call::Purpose;
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, RunError};
use std::sync::Arc;

/// Bytes of a summary; the rest is cut.
const SUMMARY_BYTES_MAX: usize = 256 * 1024;

/// Why there is no summary: its text may be no more than an introduction of the call.
const CALLED_A_TOOL: &str = "the model called a tool in place of a summary";

/// A compaction that is being made, or decided about.
#[derive(Clone, Debug)]
pub(super) struct Compacting {
    cause: CompactionCause,
    plan: Plan,
    pub(super) wanted: SummaryWanted,
    /// The summary so far.
    summary: String,
    /// Why its text is no whole summary, if that is known.
    flaw: Option<&'static str>,
    /// The error of the call for which it is made, if that was too long.
    overflow: Option<RunError>,
    has_begun: bool,
}

impl Run {
    /// Has the model answer. Before that, makes room in a conversation that is too long for it.
    pub(super) fn ask_model(&mut self, context: &mut Context<'_>) {
        if !self.compacts(context, CompactionCause::Limit, None) {
            self.start_call(context, Purpose::Answer);
        }
    }

    /// A provider call has failed. One that was too long is made again, once, after a compaction.
    pub(super) fn call_failed(
        &mut self,
        context: &mut Context<'_>,
        error: RunError,
    ) -> Option<Outcome> {
        let is_answered = self.segment.is_some() || !self.tools.is_empty();
        let is_it = error.class == ErrorClass::ContextOverflow && !is_answered;
        if is_it {
            self.model.compaction.note_asked();
        }
        if !is_it || !self.compacts(context, CompactionCause::Overflow, Some(error.clone())) {
            return Some(Outcome::Failed(error));
        }
        None
    }

    /// Begins a compaction, or asks the client about it; false if none is needed or possible.
    fn compacts(
        &mut self,
        context: &mut Context<'_>,
        cause: CompactionCause,
        overflow: Option<RunError>,
    ) -> bool {
        if self.has_compacted_for.contains(&i32::from(cause)) {
            return false;
        }
        let rules = &self.model.compaction;
        let is_asked = rules.mode() == CompactMode::Ask;
        if is_asked && !context.can_propose {
            return false;
        }
        let Some(plan) = rules.plan(&context.recorder.projections.transcript, cause) else {
            return false;
        };
        let summary_model = self.model.priced_for(Purpose::Summary);
        if plan.through > 0 && context.recorder.over_budget(summary_model).is_some() {
            return false;
        }
        let (wanted, summary) = (rules.wanted(&plan, ""), String::new());
        self.has_compacted_for.insert(cause.into());
        if overflow.is_some() {
            self.close_failed_call(context, class::CONTEXT_OVERFLOW, true);
        }
        let (flaw, has_begun) = (None, false);
        self.compacting =
            Some(Compacting { cause, plan, wanted, summary, flaw, overflow, has_begun });
        match is_asked {
            true => self.propose(context),
            false => self.start_compaction(context),
        }
        true
    }

    /// Begins the compaction that the client has asked for.
    pub(in crate::session) fn begin_compaction(
        &mut self,
        context: &mut Context<'_>,
        plan: Plan,
        instructions: &str,
    ) {
        self.is_compaction = true;
        context.recorder.hide_calls(true);
        let wanted = self.model.compaction.wanted(&plan, instructions);
        let (cause, summary) = (CompactionCause::Request, String::new());
        let (flaw, overflow, has_begun) = (None, None, false);
        self.compacting =
            Some(Compacting { cause, plan, wanted, summary, flaw, overflow, has_begun });
        self.start_compaction(context);
    }

    /// Whether the client is to decide about a compaction.
    pub(in crate::session) fn is_deciding(&self) -> bool {
        matches!(self.stage, RunStage::Deciding { .. })
    }

    /// The client has the conversation compacted.
    pub(in crate::session) fn accept(
        &mut self,
        context: &mut Context<'_>,
        instructions: &str,
    ) -> Option<Outcome> {
        if let Some(compacting) = &mut self.compacting {
            compacting.wanted = self.model.compaction.wanted(&compacting.plan, instructions);
        }
        self.start_compaction(context);
        None
    }

    /// The client does not have it compacted, or has not decided: the call is made as it is.
    pub(in crate::session) fn decline(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        let reason = "the client has not asked for it".to_owned();
        self.not_compacted(context, reason)
    }

    /// No client can decide any more.
    pub(in crate::session) fn nobody_decides(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<Outcome> {
        if self.is_deciding() { self.decline(context) } else { None }
    }

    fn propose(&mut self, context: &mut Context<'_>) {
        let Some(Compacting { cause, plan, .. }) = &self.compacting else { return };
        let proposed = CompactionProposed {
            cause: (*cause).into(),
            tokens: plan.before,
            context_tokens: self.model.compaction.context_tokens.unwrap_or_default(),
            correlation: None,
        };
        let deadline = context.after(context.tools.rules().ask_ms);
        self.stage = RunStage::Deciding { deadline };
        self.changed = context.now;
        let proposed = CompactionEvent::Proposed(proposed.into());
        self.record(context.recorder, Event::Compaction(proposed));
    }

    fn start_compaction(&mut self, context: &mut Context<'_>) {
        let Some(compacting) = &mut self.compacting else { return };
        compacting.has_begun = true;
        let started = CompactionStarted {
            cause: compacting.cause.into(),
            tokens: compacting.plan.before,
            context_tokens: self.model.compaction.context_tokens.unwrap_or_default(),
            correlation: None,
        };
        let needs_summary = compacting.plan.through > 0;
        let started = CompactionEvent::Started(started.into());
        self.record(context.recorder, Event::Compaction(started));
        match needs_summary {
            true => self.start_call(context, Purpose::Summary),
            false => {
                self.compacted(context);
                self.start_call(context, Purpose::Answer);
            }
        }
    }

    /// An event of the call that makes the summary. Its text is no part of the conversation.
    pub(super) fn summary_event(&mut self, context: &mut Context<'_>, event: EngineEvent) {
        match event {
            EngineEvent::Text(text) => {
                if let Some(compacting) = &mut self.compacting {
                    compacting.push(&text);
                }
            }
            EngineEvent::ToolCallStarted(_) => self.summary_lacks(Some(CALLED_A_TOOL)),
            EngineEvent::Reasoning { .. }
            | EngineEvent::ToolArguments { .. }
            | EngineEvent::ToolCallRequested { .. } => {}
            EngineEvent::CallFinished { stop_reason, class, .. } => {
                self.summary_lacks(flaw_of(class));
                let (provider_data, segment, is_free) = (None, Ending::Finished, false);
                let finish = CallFinish { stop_reason, class, segment, provider_data, is_free };
                self.close_call(context.recorder, context.now, finish);
            }
            event @ (EngineEvent::CallStarted
            | EngineEvent::ResponseStarted
            | EngineEvent::Usage(_)
            | EngineEvent::ContextTokens(_)
            | EngineEvent::RetryScheduled(_)
            | EngineEvent::RetryStarted(_)) => {
                self.engine_event(context.recorder, context.now, event);
            }
        }
    }

    fn summary_lacks(&mut self, flaw: Option<&'static str>) {
        if let Some(compacting) = &mut self.compacting {
            compacting.flaw = compacting.flaw.or(flaw);
        }
    }

    /// The call that makes the summary has ended.
    pub(super) fn summarized(
        &mut self,
        context: &mut Context<'_>,
        end: CallEnd,
    ) -> Option<Outcome> {
        let reason = match end {
            CallEnd::Finished => {
                let finish = CallFinish::cut(FinishClass::Other, Ending::Finished);
                self.close_call(context.recorder, context.now, finish);
                self.compacting.as_ref().and_then(Compacting::flaw).map(str::to_owned)
            }
            CallEnd::Failed(error) => {
                self.close_failed_call(context, REASON_OF_FAILED, false);
                Some(error.message)
            }
        };
        // What came of it is no cut of the answer.
        self.cut_off = None;
        if let Some(reason) = reason {
            return self.not_compacted(context, reason);
        }
        self.compacted(context);
        if self.is_compaction {
            return Some(Outcome::Finished);
        }
        self.answer_after_compaction(context)
    }

    /// Ends a call that has failed in a run that goes on.
    fn close_failed_call(&mut self, context: &mut Context<'_>, reason: &str, is_free: bool) {
        let stop_reason = reason.to_owned();
        let finish = CallFinish::cut(FinishClass::Failed, Ending::Finished);
        let finish = CallFinish { stop_reason, is_free, ..finish };
        self.close_call(context.recorder, context.now, finish);
    }

    /// What was planned is made.
    fn compacted(&mut self, context: &mut Context<'_>) {
        let Some(Compacting { plan, summary, .. }) = self.compacting.take() else { return };
        let summary = if plan.through > 0 { summary.trim() } else { "" };
        let of_summary = if summary.is_empty() { 0 } else { text_tokens(summary.len()) };
        let compaction = Compaction {
            through: plan.through,
            summary: summary.into(),
            cleared: plan.cleared,
            tokens_before: plan.before,
            tokens_after: plan.after.saturating_add(of_summary),
        };
        let done = CompactionEvent::Done(Arc::new(compaction));
        self.record(context.recorder, Event::Compaction(done));
    }

    /// The conversation stays as it was.
    fn not_compacted(&mut self, context: &mut Context<'_>, reason: String) -> Option<Outcome> {
        let Compacting { overflow, has_begun, .. } = self.compacting.take()?;
        if has_begun && !self.is_compaction {
            let text = format!("the conversation could not be compacted: {reason}");
            context.recorder.push(Output::Warning(text.into()));
        }
        let failed = CompactionEvent::Failed { reason: reason.clone() };
        self.record(context.recorder, Event::Compaction(failed));
        if self.is_compaction {
            let detail = "the summary could not be made".to_owned();
            let error = RunError::of_answer(ErrorClass::Provider, reason, detail);
            return Some(Outcome::Failed(error));
        }
        if let Some(error) = overflow {
            return Some(Outcome::Failed(error));
        }
        self.answer_after_compaction(context)
    }

    /// A compaction that the end of its run cuts off is not made.
    pub(super) fn close_compaction(&mut self, recorder: &mut Recorder) {
        if self.compacting.take().is_some() {
            let reason = "the run has ended".to_owned();
            self.record(recorder, Event::Compaction(CompactionEvent::Failed { reason }));
        }
    }

    /// The end of the request for a compaction.
    pub(super) fn end_compaction(&mut self, recorder: &mut Recorder, outcome: Outcome) {
        recorder.hide_calls(false);
        match outcome {
            Outcome::Finished => recorder.done(Some(&self.request), Done::Ok),
            Outcome::Stopped(Stop { error, .. }) => {
                if let Some(error) = error {
                    recorder.error(Some(&self.request), error);
                }
                recorder.done(Some(&self.request), Done::Stopped);
            }
            Outcome::Failed(error) => {
                let failed = compaction_failed(&error.message, error.detail);
                recorder.refuse(Some(&self.request), failed);
            }
        }
    }
}

/// Why a call that ended so has given no whole summary.
fn flaw_of(class: FinishClass) -> Option<&'static str> {
    match class {
        FinishClass::MaxTokens => Some("a limit of tokens cut the summary off"),
        FinishClass::ContentFilter => Some("the provider withheld a part of the summary"),
        FinishClass::ToolCalls => Some(CALLED_A_TOOL),
        FinishClass::Completed
        | FinishClass::Cancelled
        | FinishClass::Failed
        | FinishClass::Other => None,
    }
}

impl Compacting {
    /// Why the text can't stand for the earlier turns.
    fn flaw(&self) -> Option<&'static str> {
        let is_empty = self.summary.trim().is_empty();
        self.flaw.or(is_empty.then_some("the model wrote no summary"))
    }

    fn push(&mut self, text: &str) {
        let room = SUMMARY_BYTES_MAX.saturating_sub(self.summary.len());
        self.summary.push_str(&text[..text.floor_char_boundary(room)]);
    }
}
