//! A run: from its prompt to its end, one provider call and one round of tools after the other. It
//! decides its next stage at each boundary, and closes everything that it opened when it ends.

mod answer;
mod compacting;
mod ending;
mod joining;
mod open;
mod round;
mod starting;
mod waits;

use super::Uptime;
use super::answer_extraction::RejectedAnswer;
use super::calls::CallModel;
use super::client_error::{missing_servers, too_many_calls};
use super::limits::{AnswerCount, AnswerLimits};
use super::model::Selection;
use super::recorder::Recorder;
use super::server_states::UNAVAILABLE;
use super::toolbox::Toolbox;
use super::waiting::Submit;
use super::{Hint, Output, TaskEvent, Warning};
use crate::conversation::event::{
    Answerer, Attachments, Ending, Event, FinishClass, Scope, SegmentKind,
};
use crate::protocol::id::{RequestId, RunId, TaskId};
use crate::protocol::proto::session::CompactionCause;
use crate::protocol::wire::ClientError;
use crate::support::text::Text;
use crate::task::call::Purpose;
use crate::task::report::{CallEnd, EngineEvent, RunError};
use compacting::Compacting;
use open::{CallFinish, OpenCall, OpenSegment, OpenTool};
use starting::lacks_servers;
use std::collections::VecDeque;
use std::sync::Arc;
#[cfg(feature = "serve")]
pub(crate) use waits::Question;

/// The name of the warning of an answer with nothing to read.
pub(crate) const BLANK_ANSWER: &str = "blank_answer";

/// The parts of the session that a run works on.
pub(super) struct Context<'a> {
    pub(super) now: Uptime,
    pub(super) recorder: &'a mut Recorder,
    pub(super) tools: &'a mut Toolbox,
    pub(super) limits: AnswerLimits,
    /// Lines of a client may still come, and with them the results of its tools.
    pub(super) has_client: bool,
    /// The client can be asked for approval.
    pub(super) can_ask: bool,
    /// The client can decide whether the conversation is compacted.
    pub(super) can_propose: bool,
}

/// How a run ends.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Finished,
    Stopped(Stop),
    Failed(RunError),
}

/// Why a run is stopped.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    /// By whom or what, for people.
    pub(super) reason: String,
    /// The error that its client gets besides.
    pub(super) error: Option<ClientError>,
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    request: RequestId,
    prompt: Text,
    scope: Scope,
    started: Uptime,
    /// When something happened last.
    changed: Uptime,
    stage: RunStage,
    calls: u32,
    call: Option<OpenCall>,
    /// The task of the provider call has begun one.
    has_begun_call: bool,
    segments: u32,
    segment: Option<OpenSegment>,
    rounds: u32,
    tools: Vec<OpenTool>,
    /// Prompts that have joined, the first included.
    prompts: u32,
    /// Submits that join at the next boundary.
    joining: VecDeque<Submit>,
    count: AnswerCount,
    model: CallModel,
    /// How often the model was asked again for an answer that matches its schema.
    repairs: u32,
    /// Why the last answer was cut off.
    cut_off: Option<String>,
    kind: RunKind,
    /// The compaction that is being made, or decided about.
    compacting: Option<Compacting>,
    /// A compaction was proposed or begun by the events of the run, and none of them has ended it: also in a run
    /// that was cut off.
    has_open_compaction: bool,
    /// Causes of the compactions that the run has tried.
    tried_causes: Vec<CompactionCause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunKind {
    /// Answers a prompt.
    Turn,
    /// Compacts the conversation, as its client has asked, and ends.
    Compaction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    /// Its first events are recorded.
    Beginning,
    /// Its first provider call waits for tool servers.
    Preparing { deadline: Uptime },
    /// An engine makes a provider call for this purpose.
    Calling(TaskId, Purpose),
    /// The client decides whether the conversation is compacted.
    Deciding { deadline: Uptime },
    /// The tools of the answer run, or wait for the client.
    Tools,
    /// It has ended.
    Ended,
}

impl Run {
    pub(super) fn new(id: RunId, turn: u32, request: RequestId, now: Uptime) -> Self {
        Self {
            request,
            prompt: Text::default(),
            scope: Scope { run: id, turn, call: 0 },
            started: now,
            changed: now,
            stage: RunStage::Beginning,
            calls: 0,
            call: None,
            has_begun_call: false,
            segments: 0,
            segment: None,
            rounds: 0,
            tools: Vec::new(),
            prompts: 1,
            joining: VecDeque::new(),
            count: AnswerCount::default(),
            model: CallModel::default(),
            repairs: 0,
            cut_off: None,
            kind: RunKind::Turn,
            compacting: None,
            has_open_compaction: false,
            tried_causes: Vec::new(),
        }
    }

    /// What makes its calls.
    pub(super) fn selection(&self) -> &Selection {
        &self.model.selection
    }

    /// Tokens that its model can be sent at most, if that is known.
    pub(super) fn context_tokens(&self) -> Option<u64> {
        self.model.compaction.context_tokens
    }

    pub(super) fn with_model(self, model: CallModel) -> Self {
        Self { model, ..self }
    }

    pub(super) fn id(&self) -> RunId {
        self.scope.run
    }

    pub(super) fn request(&self) -> &RequestId {
        &self.request
    }

    /// Whether the run answers a prompt; else it only compacts.
    pub(super) fn is_turn(&self) -> bool {
        self.kind == RunKind::Turn
    }

    /// Records the prompt and the run, and has the engine answer.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<'_>,
        prompt: String,
        attachments: Attachments,
    ) {
        self.prompt = Text::from(prompt);
        let prompt = self.prompt.clone();
        let accepted = Event::PromptAccepted { prompt: prompt.clone(), attachments };
        self.record(context.recorder, accepted);
        let CallModel { engine, name, .. } = &self.model;
        let answerer =
            Answerer { engine: Arc::clone(engine), model: name.clone(), started_ms: None };
        let (choices, request) = Default::default();
        let started = Event::RunStarted { prompt, choices, answerer, request };
        self.record(context.recorder, started);
        match context.tools.start_deadline(context.now) {
            Some(deadline) => self.stage = RunStage::Preparing { deadline },
            None => self.start_answer(context),
        }
    }

    /// Tool servers have changed: the first provider call may have waited for them.
    pub(super) fn servers_changed(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if let RunStage::Preparing { .. } = self.stage
            && !context.tools.is_starting()
        {
            self.take_in_prompts(context);
            // The prompts that have joined count, too.
            if let Some(error) = context.recorder.over_budget(self.model.priced()) {
                return Some(Outcome::Failed(error));
            }
            self.start_answer(context);
        }
        None
    }

    fn start_call(&mut self, context: &mut Context<'_>, purpose: Purpose) {
        self.changed = context.now;
        let tools = context.tools.offer_to_call();
        let (selection, summary) = match (purpose, &self.compacting) {
            (Purpose::Summary, Some(it)) => (&self.model.compaction.selection, Some(&it.wanted)),
            (Purpose::Answer | Purpose::Summary, _) => (&self.model.selection, None),
        };
        let asks = purpose == Purpose::Answer && self.model.compaction.asks_for_context();
        let task = context.recorder.start_call(purpose, tools, (selection, summary), asks);
        self.stage = RunStage::Calling(task, purpose);
        self.has_begun_call = false;
    }

    /// Handles the report of a task; returns the outcome if the run ends with it.
    pub(super) fn task_event(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        event: TaskEvent,
    ) -> Option<Outcome> {
        self.changed = context.now;
        match event {
            TaskEvent::Engine(event) => self.call_event(context, event),
            TaskEvent::CallEnded(end) => self.call_ended(context, end),
            TaskEvent::ToolProgressed(progress) => {
                self.tool_progressed(context, task, progress);
                None
            }
            TaskEvent::ToolEnded(result) => {
                self.task_result(context, task, result);
                self.after_tools(context)
            }
        }
    }

    /// What the purpose of the provider call makes of an event of its engine.
    fn call_event(&mut self, context: &mut Context<'_>, event: EngineEvent) -> Option<Outcome> {
        match self.purpose()? {
            Purpose::Summary => self.summary_event(context, event),
            Purpose::Answer => {
                if let Err(error) = self.count(&event, context.limits) {
                    return Some(Outcome::Failed(error));
                }
                self.engine_event(context.recorder, context.now, event);
            }
        }
        None
    }

    /// What the purpose of the provider call makes of its end.
    fn call_ended(&mut self, context: &mut Context<'_>, end: CallEnd) -> Option<Outcome> {
        match (self.purpose()?, end) {
            (Purpose::Answer, CallEnd::Failed(error)) => self.call_failed(context, error),
            (Purpose::Answer, CallEnd::Finished) => self.answered(context),
            (Purpose::Summary, end) => self.summarized(context, end),
        }
    }

    /// The purpose of the provider call that is under way.
    pub(super) fn purpose(&self) -> Option<Purpose> {
        match self.stage {
            RunStage::Calling(_, purpose) => Some(purpose),
            RunStage::Beginning
            | RunStage::Preparing { .. }
            | RunStage::Deciding { .. }
            | RunStage::Tools
            | RunStage::Ended => None,
        }
    }

    /// The boundary after a provider call that has answered.
    fn answered(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if !self.has_begun_call && context.recorder.rejected_answer().is_some() {
            // A rejected answer belongs to a call, even if its engine emitted nothing.
            self.open_call(context.recorder, context.now);
        }
        let finish = CallFinish::cut(FinishClass::Other, Ending::Finished);
        self.close_call(context.recorder, context.now, finish);
        self.drop_unfinished_tools(context.recorder);
        if self.tools.is_empty() {
            return self.after_answer(context);
        }
        match self.begin_round(context) {
            Ok(()) => self.after_tools(context),
            Err(error) => Some(Outcome::Failed(error)),
        }
    }

    /// The boundary after an answer without tool calls.
    fn after_answer(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if self.joining.is_empty() && !self.repair(context.recorder) {
            self.warn_of_silence(context.recorder);
            return Some(Outcome::Finished);
        }
        self.take_in_prompts(context);
        self.ask_again(context)
    }

    /// Warns where the one answer of the process is complete and has no text: what called it sees nothing else by which
    /// to tell it from one that is missing.
    fn warn_of_silence(&self, recorder: &mut Recorder) {
        let is_silent = self.rounds > 0 && !self.count.has_text() && self.cut_off.is_none();
        if is_silent && recorder.has_one_answer_of_text() {
            let text = "the model called tools and ended its answer without any text, so there is nothing to print: \
                        ask for a report in the prompt if you want one"
                .to_owned();
            let warning = Warning { text, has_event: false, code: Some(BLANK_ANSWER) };
            recorder.push(Output::Warning(warning));
        }
    }

    /// Another provider call of the run, if the budget allows it.
    fn ask_again(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if let Some(error) = context.recorder.over_budget(self.model.priced()) {
            return Some(Outcome::Failed(error));
        }
        self.ask_model(context);
        None
    }

    /// The answer after a compaction, if the budget allows it: the summary has cost something.
    pub(super) fn answer_after_compaction(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if let Some(error) = context.recorder.over_budget(self.model.priced()) {
            return Some(Outcome::Failed(error));
        }
        self.start_call(context, Purpose::Answer);
        None
    }

    /// Asks for another answer if this one does not match its schema and may be asked for again.
    fn repair(&mut self, recorder: &mut Recorder) -> bool {
        let Some(rejected) = recorder.rejected_answer() else { return false };
        if self.repairs >= rejected.repairs_max {
            return false;
        }
        let RejectedAnswer { reason, repairs_max } = rejected;
        let number = self.repairs + 1;
        self.record(recorder, Event::RepairRequested { reason, number, max: repairs_max });
        true
    }

    /// The boundary after a round of tools, once all of them have returned.
    pub(super) fn after_tools(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if self.stage == RunStage::Tools && self.tools.is_empty() {
            if self.count.is_past(context.limits) {
                let error = super::client_error::endless_answer(context.limits.bytes);
                return Some(Outcome::Failed(error));
            }
            self.take_in_prompts(context);
            return self.ask_again(context);
        }
        None
    }

    /// When something is to be done even if nothing happens.
    pub(super) fn deadline(&self) -> Option<Uptime> {
        match self.stage {
            RunStage::Preparing { deadline } | RunStage::Deciding { deadline } => Some(deadline),
            RunStage::Tools => self.tools_deadline(),
            RunStage::Beginning | RunStage::Calling(..) | RunStage::Ended => None,
        }
    }

    /// Does what is due by now.
    pub(super) fn expire(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        match self.stage {
            RunStage::Preparing { deadline }
                if deadline <= context.now && lacks_servers(context) =>
            {
                let (missing, hints) = (context.tools.missing(), context.tools.hints());
                Some(Outcome::Failed(missing_servers(&missing, hints)))
            }
            RunStage::Preparing { deadline } if deadline <= context.now => {
                let warning = format!(
                    "the model is called without the tools of {}, which is still being started{}",
                    context.tools.starting(),
                    context.tools.hints().of(Hint::ServerTime)
                );
                let code = Some(UNAVAILABLE);
                let warning = Warning { text: warning, has_event: false, code };
                context.recorder.push(Output::Warning(warning));
                self.take_in_prompts(context);
                self.ask_again(context)
            }
            RunStage::Tools => {
                self.expire_tools(context);
                self.after_tools(context)
            }
            RunStage::Deciding { deadline } if deadline <= context.now => self.decline(context),
            RunStage::Preparing { .. }
            | RunStage::Deciding { .. }
            | RunStage::Beginning
            | RunStage::Calling(..)
            | RunStage::Ended => None,
        }
    }

    /// Counts what `event` brings.
    ///
    /// # Errors
    /// If the answer is past its limits with it.
    fn count(&mut self, event: &EngineEvent, limits: AnswerLimits) -> Result<(), RunError> {
        let begins_call = matches!(event, EngineEvent::ToolCallStarted(_));
        if begins_call && self.tools.len() >= limits.calls as usize {
            return Err(too_many_calls(limits.calls));
        }
        let begins_segment = self.begins_segment(event);
        self.count.add(event, begins_segment, limits)
    }

    fn begins_segment(&self, event: &EngineEvent) -> bool {
        let (text, kind) = if let EngineEvent::Text(text) = event {
            (text, SegmentKind::Text)
        } else if let EngineEvent::Reasoning { text, .. } = event {
            (text, SegmentKind::Thinking)
        } else {
            return false;
        };
        !text.is_empty() && !self.is_open(kind)
    }

    fn is_open(&self, kind: SegmentKind) -> bool {
        self.segment.as_ref().is_some_and(|open| open.segment.kind == kind)
    }

    fn record(&mut self, recorder: &mut Recorder, event: Event) {
        self.apply(&event);
        recorder.record(&self.request, self.scope, event);
    }
}

impl Context<'_> {
    /// The time `wait_ms` milliseconds from now.
    fn after(&self, wait_ms: u64) -> Uptime {
        Uptime(self.now.0.saturating_add(wait_ms))
    }
}

impl Uptime {
    /// Milliseconds from `earlier` to here.
    fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
