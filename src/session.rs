//! The state machine of a conversation: the only place that knows of busy, mismatch and draining. It maps
//! each input to outputs and performs no I/O. Pure: time and randomness are parameters.
//!
//! A run's last frames and its end are one returned list, and a cancel ends the run at once: later reports
//! of its tasks carry the id of a finished task and are ignored. So nothing can come between a run's end and
//! its `done`, and no cancellation can be lost.
//!
//! The engine makes one provider call and a server runs one tool call; the session decides what follows each
//! of them. So an approval, a client's tool, a prompt that joins a run and a deadline are
//! states, and never races between tasks.
//!
//! | module | what it is |
//! |---|---|
//! | `io`, `exit`, `client_error`, `hints` | what goes in and out; where an error can name an option of the front end |
//! | `requests`, `file_reads`, `turns`, `edit` | what each request means, once its files have been read; how a prompt becomes a turn; turns that are dropped or asked again |
//! | `run` | one run with its steps: `answer` turns engine events into backend events, `round` is the tool calls of one answer |
//! | `recorder` | what every step writes to: the projections, `answer_extraction`, `last_message`, and the outputs |
//! | `log`, `resume` | what a store appends to the log; a session that is resumed from its log |
//! | `model`, `calls` | which engine, model and settings a turn has; what a provider call is sent, by its purpose |
//! | `budget` | how much the session may cost |
//! | [`compaction`] | what the model is sent less, in a conversation that is too long for it |
//! | `toolbox`, [`catalogue`], [`approval`], [`prices`] | which tools there are, under which names, and which may run; what tokens cost |
//! | `waiting`, `limits`, `closing` | submits that wait; how much a run may bring; how a session ends |

mod io;

mod hints;

pub mod approval;

pub mod catalogue;

pub mod prices;

mod exit;

mod client_error;

mod answer_extraction;

mod last_message;

mod model;

mod budget;

pub mod compaction;

mod calls;

mod toolbox;

mod log;

mod recorder;

mod limits;

mod run;

mod waiting;

mod requests;

mod turns;

mod file_reads;

mod edit;

mod server_states;

mod closing;

mod resume;

#[cfg(test)]
pub(crate) mod tests;

pub use answer_extraction::{Extraction, ExtractionReport};
pub(crate) use client_error::{
    conversation_ended, is_too_many_rounds, panic_text, request_ended, run_defect, run_ended,
    store_closed,
};
pub use exit::{ExitCode, Signal};
pub use hints::{Hint, Hints};
pub use io::{
    FinalSnapshot, HEARTBEAT_MS, Input, LogRules, OnBusy, Retention, Rules, SessionMode, TaskEvent,
    ToolRules, Uptime,
};
pub(crate) use io::{Output, Warning};
pub use recorder::FULL_SNAPSHOT_ENTITIES_MAX;
pub(crate) use resume::{
    MODEL_CHANGED, PROVIDER_CHANGED, PROVIDER_UNRECORDED, as_if_ended, ends_of_cut_off,
};
pub(crate) use run::BLANK_ANSWER;
#[cfg(feature = "serve")]
pub(crate) use run::Question;

use crate::conversation::choices::Choices;
use crate::conversation::event::{SessionEvent, ToolResult};
use crate::conversation::timeline::Span;
use crate::protocol::command::Extension;
use crate::protocol::id::{Ids, RequestId, SessionId, TaskId, ToolCallId};
use crate::protocol::proto::frontendtools::FrontendToolManifestCommand;
use crate::protocol::proto::session::TokenCounts;
use crate::protocol::wire::{self, BadLine, Frame};
use crate::support::fail_point::FailPoint;
use crate::task::call::{EngineFacts, EngineRef};
use crate::task::report::EngineEvent;
use client_error::interrupted;
use closing::{Drain, ExitCause};
use file_reads::FileReads;
use limits::AnswerLimits;
use model::Models;
use recorder::Recorder;
use run::{Context, Outcome, Run, Stop};
use std::collections::BTreeMap;
use std::sync::Arc;
use toolbox::Toolbox;
use waiting::ActiveRun;

/// One conversation.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    rules: Rules,
    binding: Binding,
    /// Lower in tests.
    answer_limits: AnswerLimits,
    ids: Ids,
    turns: u32,
    phase: Phase,
    file_reads: FileReads,
    recorder: Recorder,
    toolbox: Toolbox,
    models: Models,
    /// The tools that the client has declared.
    declared: Option<FrontendToolManifestCommand>,
    /// Events of the resumption, each until the extension that it belongs to is on, and a run that goes on has ended.
    unannounced: Vec<(Extension, SessionEvent)>,
    /// Tools that were declared in an earlier process, until the client can take calls of them.
    held_tools: Option<FrontendToolManifestCommand>,
    /// The input has ended, so that the client can't reply any more.
    has_input_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// The first valid request may name the session.
    Open,
    /// The session has a name.
    Bound,
}

#[derive(Clone, Debug)]
enum Phase {
    Idle,
    Running(ActiveRun),
    Draining(ActiveRun, Drain),
    Closed,
}

impl Phase {
    /// The active run, if there is one.
    fn active(&self) -> Option<&ActiveRun> {
        match self {
            Self::Running(active) | Self::Draining(active, _) => Some(active),
            Self::Idle | Self::Closed => None,
        }
    }
}

impl Session {
    /// A conversation in which nothing has been said. `seed` is 128 random bits, for its ids.
    pub(crate) fn new(rules: Rules, seed: u128) -> Self {
        let mut ids = Ids::new(seed);
        let (binding, id) = match &rules.session {
            Some(id) => (Binding::Bound, id.clone()),
            None => (Binding::Open, ids.session()),
        };
        let mut recorder = Recorder::new(id, &rules, &mut ids);
        let mut models = Models::new(rules.engines.clone());
        if let Some(Err(why)) = rules.choice.as_ref().map(|choice| models.switch(choice)) {
            let text = format!("the model that was chosen can't be used: {why}");
            recorder.push(Output::Warning(text.into()));
        }
        recorder.projections.choices = Arc::new(Choices {
            model: models.chosen().cloned(),
            tools: None,
            origin: rules.origin.clone(),
        });
        Self {
            binding,
            answer_limits: AnswerLimits::default(),
            ids,
            turns: 0,
            phase: Phase::Idle,
            file_reads: FileReads::default(),
            recorder,
            toolbox: Toolbox::new(&rules.tools, rules.hints),
            models,
            declared: None,
            unannounced: Vec::new(),
            held_tools: None,
            has_input_ended: false,
            rules,
        }
    }

    /// The id of the session, which a request can still change before the first event.
    pub(crate) fn id(&self) -> &SessionId {
        self.recorder.session()
    }

    /// The request of the active run.
    pub(crate) fn active_request(&self) -> Option<&RequestId> {
        self.phase.active().map(|active| active.run.request())
    }

    /// Replaces the known engines by those of `facts`.
    pub(crate) fn know(&mut self, facts: BTreeMap<EngineRef, EngineFacts>) {
        self.models.know(facts);
    }

    /// Plants a fault among the projections.
    pub(crate) fn plant(&mut self, fault: FailPoint) {
        self.recorder.plant(fault);
    }

    /// The first frame. `capabilities` is what the process can do.
    pub(crate) fn hello(&self, capabilities: Vec<String>) -> Frame {
        wire::frame(self.recorder.session(), None, wire::hello(capabilities))
    }

    /// The frames before the first request: `hello`, and the state that a single run begins with.
    pub(crate) fn greeting(&self, capabilities: Vec<String>) -> Vec<Frame> {
        let hello = self.hello(capabilities);
        match (self.rules.mode, self.rules.retention) {
            // The state comes once it is loaded.
            _ if self.rules.log.may_resume => vec![hello],
            (SessionMode::OneShot, Retention::Everything) => {
                vec![hello, self.recorder.state(None, Span::Conversation)]
            }
            (SessionMode::OneShot, Retention::Nothing) | (SessionMode::Conversation, _) => {
                vec![hello]
            }
        }
    }

    /// The state before the first request, if it is known: that of a stored session comes once it is
    /// loaded.
    pub(crate) fn beginning_state(&self) -> Option<Frame> {
        let is_known = !self.rules.log.may_resume;
        is_known.then(|| self.recorder.state(None, Span::Conversation))
    }

    /// Decides what follows from an input that came at `now`. After a panic the session is half-changed,
    /// and must be dropped.
    pub(crate) fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        self.step(now, input);
        self.recorder.take_outputs()
    }

    /// Whether it takes more requests: it is not closed.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Closed)
    }

    /// When [`Input::DeadlineReached`] is due, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Uptime> {
        let of_run = self.phase.active().and_then(|active| active.run.deadline());
        of_run.into_iter().chain(self.file_reads.deadline()).min()
    }

    fn step(&mut self, now: Uptime, input: Input) {
        if let Phase::Closed = self.phase {
            return self.after_close(input);
        }
        match input {
            Input::Request(request) => self.arrived(now, request),
            Input::BadLine(line) => self.bad_line(line),
            Input::InputEnded => self.input_ended(now, ExitCause::Quiet),
            Input::InputFailed { reason } => {
                self.input_ended(now, ExitCause::InputFailed { reason });
            }
            Input::Task(task, event) => self.task_event(now, task, event),
            Input::FilesRead(task, outcome) => self.files_read(now, task, outcome),
            Input::DeadlineReached => {
                self.advance(now, |run, context| run.expire(context));
                self.expire_file_reads(now);
            }
            Input::ServerChanged(change) => self.server_changed(now, &change),
            Input::Restored(Some(restored)) => self.restored(*restored),
            Input::Restored(None) => self.begins(),
            Input::StoreFailed(failure) => self.store_failed(failure, true),
            Input::Interrupted(signal) => {
                let reason = format!("the process was ended by {signal}");
                // A single run reports the signal with its own end.
                let error = (self.rules.mode == SessionMode::OneShot).then(|| interrupted(signal));
                self.end_now(now, Stop { reason, error }, ExitCause::Interrupted(signal));
            }
            Input::ReaderGone => {
                let reason = "nobody reads the output any more".to_owned();
                self.end_now(now, Stop { reason, error: None }, ExitCause::Quiet);
            }
            Input::Refused(client_error) => self.drain(None, ExitCause::Refused(client_error)),
        }
        self.drain_if_read();
    }

    fn after_close(&mut self, input: Input) {
        // The queued frames may never be read: a second signal does not wait for them.
        if let Input::Interrupted(signal) = input {
            self.recorder.push(Output::Abort(ExitCode::Interrupted(signal)));
        } else if let Input::StoreFailed(failure) = input {
            self.store_failed(failure, false);
        }
    }

    fn bad_line(&mut self, line: BadLine) {
        self.recorder.refuse(line.id.as_ref(), line.fault.client_error());
    }

    /// What the provider call that ended last has used.
    pub(crate) fn call_counts(&self) -> TokenCounts {
        self.recorder.projections.usage.counts().call
    }

    /// Tokens that the model can be sent at most, if that is known: the model of the active run, or of the next one.
    pub(crate) fn context_tokens(&self) -> Option<u64> {
        match self.phase.active() {
            Some(active) => active.run.context_tokens(),
            None => self.call_model(self.models.current().clone()).compaction.context_tokens,
        }
    }

    /// The system prompt, also one that is stored.
    pub(crate) fn system(&self) -> Option<&str> {
        self.recorder.projections.transcript.preamble().system.as_deref()
    }

    /// The last message of a run that has finished, where [`Rules::keeps_last_message`] is on.
    pub(crate) fn last_message(&self) -> Option<&str> {
        self.recorder.last_message()
    }

    /// Bytes of the attachments that the conversation holds: those of prompts that wait, too.
    pub(crate) fn attached_bytes(&self) -> u64 {
        let waiting = self.phase.active().map_or(0, ActiveRun::attached_bytes);
        self.recorder.attached_bytes() + waiting
    }

    /// The results of tools that have images, by their calls: no frame has those.
    pub(crate) fn results_with_images(&self) -> BTreeMap<ToolCallId, Arc<ToolResult>> {
        self.recorder.results_with_images()
    }

    fn task_event(&mut self, now: Uptime, task: TaskId, event: TaskEvent) {
        if !self.recorder.is_live(task) {
            return;
        }
        match &event {
            TaskEvent::Engine(EngineEvent::ContextTokens(tokens)) => self.learn_context(*tokens),
            TaskEvent::Engine(_) | TaskEvent::ToolProgressed(_) => {}
            TaskEvent::CallEnded(_) | TaskEvent::ToolEnded(_) => self.recorder.task_ended(task),
        }
        self.advance(now, |run, context| run.task_event(context, task, event));
    }

    /// Notes for later runs how much the model of the active one can be sent.
    fn learn_context(&mut self, tokens: u64) {
        if let Some(selection) = self.phase.active().map(|live| live.run.selection()) {
            self.models.learn(&selection.clone(), tokens);
        }
    }

    /// Advances the active run, and closes it if that ended it.
    fn advance(
        &mut self,
        now: Uptime,
        step: impl FnOnce(&mut Run, &mut Context<'_>) -> Option<Outcome>,
    ) {
        let Some((live, mut context)) = self.live(now) else { return };
        if let Some(outcome) = step(&mut live.run, &mut context) {
            live.run.end(context.recorder, now, outcome);
            self.next(now);
        }
    }

    /// The active run, and what its steps need.
    fn live(&mut self, now: Uptime) -> Option<(&mut ActiveRun, Context<'_>)> {
        let live = match &mut self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => live,
            Phase::Idle | Phase::Closed => return None,
        };
        let has_approvals = self.recorder.is_on(Extension::Approvals);
        let has_compaction = self.recorder.is_on(Extension::Compaction);
        let context = Context {
            now,
            recorder: &mut self.recorder,
            tools: &mut self.toolbox,
            limits: self.answer_limits,
            has_client: !self.has_input_ended,
            can_ask: has_approvals && !self.has_input_ended,
            can_propose: has_compaction && !self.has_input_ended,
        };
        Some((live, context))
    }
}
