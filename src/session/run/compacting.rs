//! Compaction of the conversation by a run: before a provider call that would be too long, after one that was, or
//! because the client has asked for it, which is a run of its own and no turn.

use super::Stop;
use super::open::CallFinish;
use super::{Context, Outcome, Run, RunKind, RunStage};
use crate::conversation::compaction::{Compaction, CompactionEvent, text_tokens};
use crate::conversation::event::{Ending, Event, FinishClass};
use crate::conversation::transcript::Transcript;
use crate::protocol::command::Compact;
use crate::protocol::constants::{REASON_OF_FAILED, class};
use crate::protocol::proto::session::{CompactionCause, CompactionProposed, CompactionStarted};
use crate::protocol::wire::Done;
use crate::session::calls::SummaryWanted;
use crate::session::client_error::compaction_failed;
use crate::session::compaction::{CompactMode, Plan, left};
use crate::session::recorder::Recorder;
use crate::session::{Hint, Output, Warning};
use crate::task::call::Purpose;
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, QUOTATION, RunError};
use std::sync::Arc;

/// Bytes of a summary; the rest is cut.
const SUMMARY_BYTES_MAX: usize = 256 * 1024;

/// Summaries of one compaction, each of as many turns as its call has room for.
const PARTS_MAX: u32 = 32;

/// Calls of one compaction that may be refused because they are too long: each is sent half as much as the one before.
const REFUSALS_MAX: u32 = 6;

/// Compactions of one run because a call was refused as too long. Where it is not known how much the model can be sent,
/// half of what was refused may be too long as well.
const OVERFLOWS_MAX: usize = 3;

/// The name of the warning that a conversation was not compacted.
const NOT_COMPACTED: &str = "not_compacted";

/// Why there is no summary: its text may be no more than an introduction of the call.
const CALLED_A_TOOL: &str = "the model called a tool in place of a summary";

/// A compaction that is being made, or decided about.
#[derive(Clone, Debug)]
pub(super) struct Compacting {
    cause: CompactionCause,
    plan: Plan,
    /// What the client has asked for besides.
    instructions: String,
    /// What the summary's call is sent.
    pub(super) wanted: SummaryWanted,
    /// The summary so far.
    summary: String,
    /// Why its text is no whole summary, if that is known.
    flaw: Option<&'static str>,
    /// The error of the call for which it is made, if that was too long.
    overflow: Option<RunError>,
    has_begun: bool,
    /// Summaries that were made of a part of the turns.
    parts: u32,
    /// Calls of the model that writes the summary that were refused because they were too long.
    refusals: u32,
    /// The room of the plan before any call was refused.
    room: Option<u64>,
}

impl Run {
    /// Has the model answer. Before that, makes room in a conversation that is too long for it.
    pub(super) fn ask_model(&mut self, context: &mut Context<'_>) {
        if !self.compacts(context, CompactionCause::Limit, None) {
            self.start_call(context, Purpose::Answer);
        }
    }

    /// A provider call has failed. One that was too long is made again after a compaction.
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
            let error = if is_it { self.with_advice(context, error) } else { error };
            return Some(Outcome::Failed(error));
        }
        None
    }

    /// `error` of a call that was too long, with the advice to compact the conversation where that is possible, and off
    /// or up to a client that can't decide.
    fn with_advice(&self, context: &Context<'_>, error: RunError) -> RunError {
        let rules = &self.model.compaction;
        let is_possible =
            || rules.plan_asked(&context.recorder.projections.transcript, 0).is_some();
        let is_off = match rules.mode() {
            CompactMode::Auto => false,
            CompactMode::Ask => !context.can_propose,
            CompactMode::Off => true,
        };
        if !is_off || !is_possible() {
            return error;
        }
        let hint = context.tools.hints().of(Hint::Compact);
        let advice = format!("; earlier turns can be summarized instead{hint}");
        let mut message = error.message;
        message.insert_str(message.find(QUOTATION).unwrap_or(message.len()), &advice);
        RunError { message, ..error }
    }

    /// Begins a compaction, or asks the client about it; false if none is needed or possible.
    fn compacts(
        &mut self,
        context: &mut Context<'_>,
        cause: CompactionCause,
        overflow: Option<RunError>,
    ) -> bool {
        let tries_max = if cause == CompactionCause::Overflow { OVERFLOWS_MAX } else { 1 };
        if self.tried_causes.iter().filter(|tried| **tried == cause).count() >= tries_max {
            return false;
        }
        let rules = &self.model.compaction;
        let is_asked = rules.mode() == CompactMode::Ask;
        if is_asked && !context.can_propose {
            return false;
        }
        let Some(plan) = rules.plan(&context.recorder.projections.transcript, cause) else {
            if let Some(filled) = rules.filled_by(&context.recorder.projections.transcript) {
                context.recorder.warn_of_filled_context(filled, rules.context_tokens);
            } else if rules.has_long_history(&context.recorder.projections.transcript, cause) {
                context.recorder.warn_of_history();
            }
            return false;
        };
        let summary_model = self.model.priced_for(Purpose::Summary);
        if plan.through > 0
            && let Some(error) = context.recorder.over_budget(summary_model)
        {
            context.recorder.warn_of_summary_over_budget(&error.message);
            return false;
        }
        self.tried_causes.push(cause);
        if overflow.is_some() {
            self.close_failed_call(context, class::CONTEXT_OVERFLOW, true);
        }
        self.compacting = Some(Compacting { overflow, ..Compacting::new(cause, plan, "") });
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
        self.kind = RunKind::Compaction;
        context.recorder.hide_calls(true);
        self.compacting = Some(Compacting::new(CompactionCause::Request, plan, instructions));
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
        Compact { instructions, keep_turns, .. }: &Compact,
    ) -> Option<Outcome> {
        if let Some(compacting) = &mut self.compacting {
            instructions.clone_into(&mut compacting.instructions);
            let (rules, transcript) =
                (&self.model.compaction, &context.recorder.projections.transcript);
            if let Some(plan) = rules.plan_kept(transcript, &compacting.plan, *keep_turns) {
                compacting.plan = plan;
            }
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
            true => self.summarize(context),
            false => {
                self.compacted(context);
                self.start_call(context, Purpose::Answer);
            }
        }
    }

    /// Has the model summarize the turns of the plan, or as many of them as have room.
    fn summarize(&mut self, context: &mut Context<'_>) {
        let transcript = &context.recorder.projections.transcript;
        if let Some(it) = &mut self.compacting {
            let of = (it.plan.through, it.plan.room);
            it.wanted = self.model.compaction.wanted(transcript, of, &it.instructions);
            (it.summary, it.flaw) = (String::new(), None);
        }
        self.start_call(context, Purpose::Summary);
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
                let sends_less = self.send_less(context, &error);
                let reason = if sends_less { class::CONTEXT_OVERFLOW } else { REASON_OF_FAILED };
                self.close_failed_call(context, reason, sends_less);
                if sends_less {
                    self.summarize(context);
                    return None;
                }
                Some(error.message)
            }
        };
        // What came of it is no cut of the answer.
        self.cut_off = None;
        if let Some(reason) = reason.or_else(|| self.too_long_summary(context)) {
            if self.fall_back_to_answering_model(context, &reason) {
                self.summarize(context);
                return None;
            }
            return self.not_compacted(context, reason);
        }
        self.compacted(context);
        if self.compacting.is_some() {
            // The next part of the turns.
            self.start_compaction(context);
            return None;
        }
        if self.kind == RunKind::Compaction {
            return Some(Outcome::Finished);
        }
        self.answer_after_compaction(context)
    }

    /// Has the next call for the summary be sent half as much, if this one failed because it was too long. Returns
    /// whether there is less to send.
    fn send_less(&mut self, context: &Context<'_>, error: &RunError) -> bool {
        let Some(it) = &mut self.compacting else { return false };
        if error.class != ErrorClass::ContextOverflow || !it.summary.is_empty() {
            return false;
        }
        it.refusals += 1;
        if it.refusals > REFUSALS_MAX {
            return false;
        }
        let transcript = &context.recorder.projections.transcript;
        let tokens = |wanted: &SummaryWanted| {
            transcript.asking(&wanted.prompt, wanted.through, wanted.room).estimate()
        };
        let refused = tokens(&it.wanted);
        it.plan.room = Some(refused / 2);
        let of = (it.plan.through, it.plan.room);
        tokens(&self.model.compaction.wanted(transcript, of, &it.instructions)) < refused
    }

    /// Has the model that answers write the summary, and all others of the run, if another one was to write it and gave
    /// none for this `reason`. Returns whether that is so.
    fn fall_back_to_answering_model(&mut self, context: &mut Context<'_>, reason: &str) -> bool {
        if context.recorder.over_budget(self.model.priced()).is_some() {
            return false;
        }
        let Some(failed) = self.model.summarize_with_answering_model() else { return false };
        let text = format!(
            "the model {failed} could not summarize the conversation, so {} is asked for the summary: \
             {reason}",
            self.model.name
        );
        let code = Some("summary_model_failed");
        context.recorder.push(Output::Warning(Warning { text, has_event: false, code }));
        if let Some(it) = &mut self.compacting {
            // It may be sent more than the other one.
            (it.plan.room, it.refusals) = (it.room, 0);
        }
        true
    }

    /// Why the summary is not used, if the model would be sent no less with it. That of a part is summarized again with
    /// the next part, so it may be longer than a short part. One that a client has asked for is what it wants.
    fn too_long_summary(&self, context: &Context<'_>) -> Option<String> {
        let compacting = self.compacting.as_ref()?;
        let transcript = &context.recorder.projections.transcript;
        let is_whole = compacting.wanted.through >= compacting.plan.through;
        let more = if is_whole { 0 } else { self.model.compaction.summary_tokens() };
        let is_longer =
            compacting.tokens_after(transcript) >= transcript.tokens().saturating_add(more);
        let is_wanted = compacting.cause == CompactionCause::Request;
        (is_longer && !is_wanted)
            .then(|| "the summary is longer than what it would stand for".to_owned())
    }

    /// Ends a call that has failed in a run that goes on.
    fn close_failed_call(&mut self, context: &mut Context<'_>, reason: &str, is_free: bool) {
        let stop_reason = reason.to_owned();
        let finish = CallFinish::cut(FinishClass::Failed, Ending::Finished);
        let finish = CallFinish { stop_reason, is_free, ..finish };
        self.close_call(context.recorder, context.now, finish);
    }

    /// What was planned is made, or a part of it: then the next one is to be made, as far as the budget allows it.
    fn compacted(&mut self, context: &mut Context<'_>) {
        let Some(mut compacting) = self.compacting.take() else { return };
        let transcript = &context.recorder.projections.transcript;
        let (through, tokens_before) = (compacting.wanted.through, transcript.tokens());
        let tokens_after = compacting.tokens_after(transcript);
        let cleared = std::mem::take(&mut compacting.plan.cleared);
        let summary = compacting.summary().into();
        let made = Compaction { through, summary, cleared, tokens_before, tokens_after };
        let is_whole = through >= compacting.plan.through;
        let done = CompactionEvent::Done(Arc::new(made));
        self.record(context.recorder, Event::Compaction(done));
        compacting.parts += 1;
        let summary_model = self.model.priced_for(Purpose::Summary);
        if is_whole
            || compacting.parts >= PARTS_MAX
            || context.recorder.over_budget(summary_model).is_some()
        {
            return;
        }
        compacting.plan.before = context.recorder.projections.transcript.tokens();
        self.compacting = Some(compacting);
    }

    /// The conversation stays as it was, or as the parts that were made have left it.
    fn not_compacted(&mut self, context: &mut Context<'_>, reason: String) -> Option<Outcome> {
        let Compacting { overflow, has_begun, parts, .. } = self.compacting.take()?;
        if has_begun && self.kind == RunKind::Turn {
            let text = format!("the conversation could not be compacted: {reason}");
            let warning = Warning { text, has_event: false, code: Some(NOT_COMPACTED) };
            context.recorder.push(Output::Warning(warning));
        }
        let failed = CompactionEvent::Failed { reason: reason.clone() };
        self.record(context.recorder, Event::Compaction(failed));
        if self.kind == RunKind::Compaction {
            let detail = "the summary could not be made".to_owned();
            let error = RunError::of_answer(ErrorClass::Provider, reason, detail);
            return Some(Outcome::Failed(error));
        }
        if let Some(error) = overflow.filter(|_| parts == 0) {
            return Some(Outcome::Failed(error));
        }
        self.answer_after_compaction(context)
    }

    /// A compaction that the end of its run cuts off is not made.
    pub(super) fn close_compaction(&mut self, recorder: &mut Recorder) {
        self.compacting = None;
        if self.has_open_compaction {
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
    fn new(cause: CompactionCause, plan: Plan, instructions: &str) -> Self {
        let (wanted, summary, flaw) = Default::default();
        let (overflow, has_begun, parts, refusals) = Default::default();
        let (instructions, room) = (instructions.to_owned(), plan.room);
        Self {
            cause,
            plan,
            instructions,
            wanted,
            summary,
            flaw,
            overflow,
            has_begun,
            parts,
            refusals,
            room,
        }
    }

    /// Why the text can't stand for the earlier turns.
    fn flaw(&self) -> Option<&'static str> {
        let is_empty = self.summary.trim().is_empty();
        self.flaw.or(is_empty.then_some("the model wrote no summary"))
    }

    /// The summary, if turns are left out.
    fn summary(&self) -> &str {
        if self.wanted.through > 0 { self.summary.trim() } else { "" }
    }

    /// Tokens that the model would be sent with it.
    fn tokens_after(&self, transcript: &Transcript) -> u64 {
        let summary = self.summary();
        let of_summary = if summary.is_empty() { 0 } else { text_tokens(summary.len()) };
        left(transcript, self.wanted.through, &self.plan.cleared).saturating_add(of_summary)
    }

    fn push(&mut self, text: &str) {
        let room = SUMMARY_BYTES_MAX.saturating_sub(self.summary.len());
        self.summary.push_str(&text[..text.floor_char_boundary(room)]);
    }
}

impl Recorder {
    /// Warns, once, that the messages which the session began with are too long, and not summarized alone.
    fn warn_of_history(&mut self) {
        if std::mem::replace(&mut self.has_warned_of_history, true) {
            return;
        }
        let text = "the conversation could not be compacted: the messages that it began with are summarized only \
                    together with a turn that was answered, and none was; begin with fewer of them, or use a model \
                    that can be sent more"
            .to_owned();
        self.push(Output::Warning(Warning { text, has_event: false, code: Some(NOT_COMPACTED) }));
    }

    /// Warns, once, that a conversation that is too long for the model is not summarized, as that would not keep the
    /// budget.
    fn warn_of_summary_over_budget(&mut self, why: &str) {
        if std::mem::replace(&mut self.budget.has_told_unsummarized, true) {
            return;
        }
        let text = format!("the conversation could not be compacted: {why}");
        self.push(Output::Warning(Warning { text, has_event: false, code: Some(NOT_COMPACTED) }));
    }
}
