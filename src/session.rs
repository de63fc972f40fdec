//! The state machine of a conversation: the only place that knows of busy, mismatch and draining.
//! Decides what each input means; does nothing itself. Pure: time and chance come in.
//!
//! A run's last frames and its end are one returned list, and stopping a run ends it at once: what
//! its tasks report afterwards carries the id of a task that is no more, and is ignored. So nothing
//! can come between a run's end and its `done`, and no cancel can be lost.
//!
//! The engine makes one provider call and a server runs one tool call; what comes after each of them
//! is decided here. So an approval, a client's tool, a prompt that joins a run and a deadline are
//! states, and never races between tasks.

mod io;

mod exit;

mod client_error;

mod answer_extraction;

mod model;

mod usage;

mod toolbox;

mod log;

mod recorder;

mod limits;

mod run;

mod waiting;

mod recovery;

mod resume;

mod edit;

#[cfg(test)]
mod tests;

pub use answer_extraction::{Extraction, ExtractionReport};
pub(crate) use client_error::{panic_text, run_defect, unread_prompt};
pub use exit::{ExitCode, Signal};
pub(crate) use io::Output;
pub use io::{
    FinalSnapshot, Input, LogRules, OnBusy, Retention, Rules, SessionMode, TaskEvent, ToolRules,
    Uptime,
};
pub use toolbox::ServerCall;

use crate::chat::timeline::Span;
use crate::engine::{EngineFacts, EngineRef};
use crate::protocol::command::{self, Cancel, Command, Extension, ModelChoice, ToolManifest};
use crate::protocol::id::{Ids, RequestId, SessionId, TaskId, ToolCallId};
use crate::protocol::proto::frontendtools::{
    FrontendToolManifestCommand, FrontendToolManifestUpdated,
};
use crate::protocol::proto::tools::{ToolServerChanged, ToolServerState};
use crate::protocol::wire::{self, BadLine, ClientError, Code, Done, Frame, Request};
use crate::support::fail_point::FailPoint;
use crate::tool::catalogue::ServerName;
use crate::tool::servers::{ServerChange, ServerState};
use client_error::{
    busy, interrupted, invalid_settings, mismatch, no_active_request, no_such_request, queue_full,
    shutting_down, stdin_read_failed, too_many_shutdowns, unknown_tool_call,
};
use limits::AnswerLimits;
use model::Models;
use recorder::Recorder;
use recovery::About;
use run::{CallModel, Context, Outcome, Run, Stop};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use toolbox::Toolbox;
use waiting::{ActiveRun, Submit, TurnChoice};

/// Bytes of text, reasoning, tool arguments and results of a run: a conversation is held in memory.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Segments of text and reasoning that an answer may have: each is a message of the conversation, and
/// costs far more than its text.
pub(crate) const ANSWER_SEGMENTS_MAX: u32 = 10_000;

/// Submits that may wait for their turn. Past that they are refused, and input is read on: a run may
/// wait for an answer in it.
pub(crate) const QUEUED_SUBMITS_MAX: usize = 10_000;

/// Bytes of prompts that may wait for their turn; past that, submits are refused.
pub(crate) const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Shutdowns that may wait for the end of a run; past that, they are refused.
pub(crate) const HELD_SHUTDOWNS_MAX: usize = 256;

/// Messages and tool calls of a stored session after which the snapshot at the end of a run has only
/// what the run added, unless it was asked for in full: about 2 MB.
pub const FULL_SNAPSHOT_ENTITIES_MAX: usize = 2_000;

/// Bytes of the ids of shutdowns that wait; past that, they are refused.
pub(crate) const HELD_BYTES_MAX: usize = 1024 * 1024;

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
    recorder: Recorder,
    toolbox: Toolbox,
    models: Models,
    /// The tools that the client has declared.
    declared: Option<FrontendToolManifestCommand>,
    /// Tools that were declared in an earlier process, until the client can take calls of them.
    held_tools: Option<FrontendToolManifestCommand>,
    /// No more lines come, and so no answers of a client.
    has_input_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// The first valid request may name the session.
    Open,
    /// It has a name.
    Bound,
}

#[derive(Clone, Debug)]
enum Phase {
    Idle,
    Running(ActiveRun),
    Draining(ActiveRun, Drain),
    Closed,
}

/// What is to be done once the last run has ended.
#[derive(Clone, Debug)]
struct Drain {
    shutdowns: Vec<RequestId>,
    farewell: ExitCause,
}

#[derive(Clone, Debug)]
enum ExitCause {
    Quiet,
    InputFailed { reason: String },
    Interrupted(Signal),
    Refused(ClientError),
}

impl Session {
    /// A conversation in which nothing has been said. `seed` is 128 random bits, for its ids.
    pub(crate) fn new(rules: Rules, seed: u128) -> Self {
        let mut ids = Ids::new(seed);
        let (binding, id) = match &rules.session {
            Some(id) => (Binding::Bound, id.clone()),
            None => (Binding::Open, ids.session()),
        };
        let recorder = Recorder::new(id, &rules, &mut ids);
        Self {
            binding,
            answer_limits: AnswerLimits::default(),
            ids,
            turns: 0,
            phase: Phase::Idle,
            recorder,
            toolbox: Toolbox::new(&rules.tools),
            models: Models::new(rules.engines.clone()),
            declared: None,
            held_tools: None,
            has_input_ended: false,
            rules,
        }
    }

    /// The id of the session, which a request can still change before the first event.
    pub(crate) fn id(&self) -> &SessionId {
        self.recorder.session()
    }

    /// Knows the engines of `facts` from now on.
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
        match (self.rules.mode, self.rules.keep) {
            // The state comes once it is loaded.
            _ if self.rules.log.resumes => vec![hello],
            (SessionMode::OneShot, Retention::Everything) => {
                vec![hello, self.recorder.state(None, Span::Conversation)]
            }
            (SessionMode::OneShot, Retention::Nothing) | (SessionMode::Conversation, _) => {
                vec![hello]
            }
        }
    }

    /// Takes in what happened at `now`, and says what to do about it. A defect met on the way ends
    /// what it was about, with an error, and not the conversation.
    pub(crate) fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let about = About::of(&input);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.step(now, input))) {
            self.recover(now, &about, &panic_text(panic.as_ref()));
        }
        self.recorder.take_outputs()
    }

    /// Whether another line may be read now.
    pub(crate) fn wants_input(&self) -> bool {
        !matches!(self.phase, Phase::Closed)
    }

    /// When [`Input::DeadlineReached`] is due, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Uptime> {
        match &self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => live.run.deadline(),
            Phase::Idle | Phase::Closed => None,
        }
    }

    fn step(&mut self, now: Uptime, input: Input) {
        if let Phase::Closed = self.phase {
            return self.after_close(input);
        }
        match input {
            Input::Request(request) => self.request(now, request),
            Input::BadLine(line) => self.bad_line(line),
            Input::InputEnded => self.input_ended(now, ExitCause::Quiet),
            Input::InputFailed { reason } => {
                self.input_ended(now, ExitCause::InputFailed { reason });
            }
            Input::Task(task, event) => self.task_event(now, task, event),
            Input::DeadlineReached => {
                self.advance(now, |run, context| run.expire(context));
            }
            Input::ServerChanged(change) => self.server_changed(now, &change),
            Input::Restored(restored) => self.restored(*restored),
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
    }

    fn after_close(&mut self, input: Input) {
        // What is still to be written may never be read: a second signal does not wait for it.
        if let Input::Interrupted(signal) = input {
            self.recorder.push(Output::Abort(ExitCode::Interrupted(signal)));
        } else if let Input::StoreFailed(failure) = input {
            self.store_failed(failure, false);
        }
    }

    fn bad_line(&mut self, line: BadLine) {
        self.recorder.refuse(line.id.as_ref(), line.fault.client_error());
    }

    fn request(&mut self, now: Uptime, request: Request) {
        let id = request.id;
        if let Err(client_error) = self.bind(request.session) {
            return self.recorder.refuse(Some(&id), client_error);
        }
        match request.command {
            Command::Submit(submit) => self.submitted(now, id, submit),
            Command::Cancel(cancel) => self.cancel(now, &id, &cancel),
            Command::Snapshot(page) => {
                if page.is_everything() {
                    self.recorder.snapshot(&id, Span::Conversation);
                } else {
                    self.recorder.turn_on(Extension::History);
                    self.recorder.snapshot(&id, Span::Page(page));
                }
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::Shutdown => self.drain(Some(id), ExitCause::Quiet),
            Command::Enable(extensions) => {
                let had_servers = self.recorder.is_on(Extension::ToolServers);
                extensions.into_iter().for_each(|extension| self.recorder.turn_on(extension));
                if !had_servers {
                    self.announce_servers();
                }
                self.offer_held_tools();
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::DeclareTools(manifest) => self.declare_tools(&id, manifest),
            Command::ToolResult(answer) => {
                let call = answer.call.clone();
                self.answer(now, &id, &call, |run, context| run.client_result(context, answer));
            }
            Command::SwitchModel(choice) => self.switch_model(&id, &choice),
            Command::Edit(edit) => self.edit(now, id, edit),
            Command::Approve(approve) => {
                self.recorder.turn_on(Extension::Approvals);
                let call = approve.call.clone();
                self.answer(now, &id, &call, |run, context| run.approve(context, approve));
            }
        }
    }

    /// Shows the state of all tool servers, for a client that begins to follow them.
    fn announce_servers(&mut self) {
        if !self.recorder.is_on(Extension::ToolServers) {
            return;
        }
        let states = self.toolbox.states();
        let changes: Vec<_> =
            states.map(|(server, state, tools)| server_changed(server, state, tools)).collect();
        for changed in changes {
            self.recorder.announce(None, changed.into());
        }
    }

    fn declare_tools(&mut self, id: &RequestId, manifest: ToolManifest) {
        self.recorder.turn_on(Extension::ClientTools);
        self.held_tools = None;
        let updated = self.offer(manifest);
        let chosen = self.choices();
        self.recorder.announce_choice(Some(id), updated.into(), Some(chosen));
        self.recorder.done(Some(id), Done::Ok);
    }

    /// Offers the model these tools of the client; gives the event that reports it.
    fn offer(&mut self, manifest: ToolManifest) -> FrontendToolManifestUpdated {
        let ToolManifest { tools, message } = manifest;
        self.toolbox.declare(tools);
        self.declared = Some(message.clone());
        FrontendToolManifestUpdated { tools: message.tools, revision: message.revision }
    }

    /// What the client sends about a tool call: it is answered first, and then the run goes on.
    fn answer(
        &mut self,
        now: Uptime,
        id: &RequestId,
        call: &ToolCallId,
        take: impl FnOnce(&mut Run, &mut Context<'_>) -> Result<(), ClientError>,
    ) {
        let taken = match self.live(now) {
            Some((live, mut context)) => take(&mut live.run, &mut context),
            None => Err(unknown_tool_call(call)),
        };
        match taken {
            Ok(()) => self.recorder.done(Some(id), Done::Ok),
            Err(client_error) => return self.recorder.refuse(Some(id), client_error),
        }
        self.advance(now, |run, context| run.after_tools(context));
    }

    fn server_changed(&mut self, now: Uptime, change: &ServerChange) {
        self.toolbox.server_changed(change);
        let (server, tools) = (&change.server, self.toolbox.names_of(&change.server));
        if let ServerState::Failed { reason } | ServerState::Gone { reason } = &change.state {
            let warning = format!("the tools of the MCP server {server} can't be called: {reason}");
            self.recorder.push(Output::Warning(warning));
        }
        // Until it is bound, the session may still get another name.
        if self.binding == Binding::Bound && self.recorder.is_on(Extension::ToolServers) {
            let changed = server_changed(server, &change.state, tools);
            self.recorder.announce(None, changed.into());
        }
        if let Some((live, mut context)) = self.live(now) {
            live.run.servers_changed(&mut context);
        }
    }

    /// No more lines come: what waits for an answer of the client gets none.
    fn input_ended(&mut self, now: Uptime, farewell: ExitCause) {
        self.has_input_ended = true;
        self.drain(None, farewell);
        self.advance(now, |run, context| {
            run.client_gone(context);
            run.after_tools(context)
        });
    }

    fn bind(&mut self, named: Option<SessionId>) -> Result<(), ClientError> {
        let bound = self.recorder.session();
        if let Some(named) = named
            && named != *bound
        {
            if self.binding == Binding::Bound {
                return Err(mismatch(bound));
            }
            self.recorder.rename(named);
        }
        if self.binding == Binding::Open {
            self.binding = Binding::Bound;
            self.announce_servers();
        }
        Ok(())
    }

    /// Bytes of the attachments that the conversation holds: those of prompts that wait, too.
    pub(crate) fn attached_bytes(&self) -> u64 {
        let waiting = match &self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => live.attached_bytes(),
            Phase::Idle | Phase::Closed => 0,
        };
        self.recorder.attached_bytes() + waiting
    }

    /// Checks what only the session can check of a submit, before it is taken.
    fn submitted(&mut self, now: Uptime, request: RequestId, submit: command::Submit) {
        let choice = match self.turn_choice(&submit) {
            Ok(choice) => choice,
            Err(why) => return self.recorder.refuse(Some(&request), invalid_settings(why)),
        };
        for (extension, is_used) in [
            (Extension::Attachments, !submit.attachments.is_empty()),
            (Extension::Settings, submit.choice.is_some()),
            (Extension::Structured, submit.schema.is_some()),
        ] {
            if is_used {
                self.recorder.turn_on(extension);
            }
        }
        let command::Submit { prompt, joins, attachments, .. } = submit;
        let attachments = attachments.into();
        self.submit(now, Submit { request, prompt, attachments, choice }, joins.as_ref());
    }

    fn turn_choice(&self, submit: &command::Submit) -> Result<TurnChoice, String> {
        let is_joining = submit.joins.as_ref().is_some_and(|joins| self.is_active(joins));
        if is_joining && (submit.choice.is_some() || submit.schema.is_some()) {
            let why = "a prompt that joins a run has the model, the settings and the schema of that \
                       run; leave settings and responseSchema out, or targetRequestId";
            return Err(why.to_owned());
        }
        let selection = submit.choice.as_ref().map(|choice| self.models.choose(choice));
        let repairs = self.rules.repairs;
        let extraction =
            submit.schema.clone().map(|schema| Extraction::of_request(schema, repairs));
        Ok(TurnChoice { selection: selection.transpose()?, extraction: extraction.transpose()? })
    }

    /// Whether that request's run goes on.
    fn is_active(&self, request: &RequestId) -> bool {
        match &self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => live.run.request() == request,
            Phase::Idle | Phase::Closed => false,
        }
    }

    fn switch_model(&mut self, id: &RequestId, choice: &ModelChoice) {
        self.recorder.turn_on(Extension::SwitchModel);
        if let Phase::Running(live) | Phase::Draining(live, _) = &self.phase {
            let client_error = busy(live.run.request());
            return self.recorder.refuse(Some(id), client_error);
        }
        match self.models.switch(choice) {
            Ok(switched) => {
                let chosen = self.choices();
                self.recorder.announce_choice(Some(id), switched.into(), Some(chosen));
                self.recorder.done(Some(id), Done::Ok);
            }
            Err(why) => self.recorder.refuse(Some(id), invalid_settings(why)),
        }
    }

    fn submit(&mut self, now: Uptime, submit: Submit, joins: Option<&RequestId>) {
        match &mut self.phase {
            Phase::Idle => self.start(now, submit, VecDeque::new()),
            Phase::Running(live) => {
                let is_of_run = joins == Some(live.run.request());
                // A prompt for a run that is over becomes the next turn, as if it had come in time.
                let may_wait = joins.is_some() || self.rules.on_busy == OnBusy::Queue;
                if !may_wait {
                    let client_error = busy(live.run.request());
                    self.recorder.refuse(Some(&submit.request), client_error);
                } else if !live.has_room() {
                    let client_error = queue_full(live.run.request());
                    self.recorder.refuse(Some(&submit.request), client_error);
                } else if is_of_run {
                    live.run.join(submit);
                } else {
                    live.waiting.push_back(submit);
                }
            }
            Phase::Draining(..) | Phase::Closed => {
                self.recorder.refuse(Some(&submit.request), shutting_down());
            }
        }
    }

    fn start(&mut self, now: Uptime, submit: Submit, waiting: VecDeque<Submit>) {
        self.turns += 1;
        let id = self.ids.run();
        let Submit { request, prompt, attachments, choice } = submit;
        let TurnChoice { selection, extraction } = choice;
        let selection = selection.unwrap_or_else(|| self.models.current().clone());
        let model = CallModel {
            engine: self.models.engine_name(&selection),
            name: self.models.model(&selection).to_owned(),
            selection,
        };
        let run = Run::new(id, self.turns, request, now).with_model(model);
        self.recorder.expect_answer(extraction);
        let live = ActiveRun { run, waiting };
        // Set before anything of the run is shown: whatever happens, it can be found and ended.
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Draining(_, drain) => Phase::Draining(live, drain),
            Phase::Idle | Phase::Running(_) | Phase::Closed => Phase::Running(live),
        };
        if let Some((live, mut context)) = self.live(now) {
            live.run.begin(&mut context, prompt.into_string(), attachments);
        }
    }

    fn cancel(&mut self, now: Uptime, id: &RequestId, cancel: &Cancel) {
        let Some((live, _)) = self.live(now) else {
            let client_error = match &cancel.target {
                None if cancel.waiting => None,
                None => Some(no_active_request()),
                Some(target) => Some(no_such_request(target)),
            };
            if let Some(client_error) = client_error {
                self.recorder.error(Some(id), client_error);
            }
            return self.recorder.done(Some(id), Done::Ok);
        };
        let mut withdrawn = Vec::new();
        if cancel.waiting {
            withdrawn.extend(live.run.take_joining());
            withdrawn.extend(std::mem::take(&mut live.waiting));
        }
        let stops = match &cancel.target {
            None => !cancel.waiting,
            Some(target) => live.run.request() == target,
        };
        let mut is_found = true;
        if let Some(target) = cancel.target.as_ref().filter(|_| !stops) {
            let is_among = withdrawn.iter().any(|submit| submit.request == *target);
            let one = live.withdraw(target);
            is_found = is_among || one.is_some();
            withdrawn.extend(one);
        }
        if !is_found && let Some(target) = &cancel.target {
            self.recorder.error(Some(id), no_such_request(target));
        }
        self.recorder.done(Some(id), Done::Ok);
        for submit in withdrawn {
            self.recorder.done(Some(&submit.request), Done::Stopped);
        }
        if stops {
            let reason = format!("cancelled by request {}", id.as_str());
            self.stop(now, Stop { reason, error: None });
            self.next(now);
        }
    }

    /// Takes no more prompts, and ends once what runs and waits has ended.
    fn drain(&mut self, shutdown: Option<RequestId>, farewell: ExitCause) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Idle => {
                self.close(Drain { shutdowns: shutdown.into_iter().collect(), farewell });
            }
            Phase::Running(live) => {
                let shutdowns = shutdown.into_iter().collect();
                self.phase = Phase::Draining(live, Drain { shutdowns, farewell });
            }
            Phase::Draining(live, mut drain) => {
                match shutdown {
                    Some(id) if !drain.has_room() => {
                        self.recorder.refuse(Some(&id), too_many_shutdowns());
                    }
                    shutdown => drain.shutdowns.extend(shutdown),
                }
                drain.farewell = drain.farewell.or(farewell);
                self.phase = Phase::Draining(live, drain);
            }
            Phase::Closed => {}
        }
    }

    fn task_event(&mut self, now: Uptime, task: TaskId, event: TaskEvent) {
        if !self.recorder.is_live(task) {
            return;
        }
        match event {
            TaskEvent::Engine(_) => {}
            TaskEvent::CallEnded(_) | TaskEvent::ToolEnded(_) => self.recorder.task_ended(task),
        }
        self.advance(now, |run, context| run.task_event(context, task, event));
    }

    /// Lets the active run take a step, and ends it if it ends with that.
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

    /// Stops the active run, if there is one.
    fn stop(&mut self, now: Uptime, stop: Stop) {
        if let Some((live, context)) = self.live(now) {
            live.run.end(context.recorder, now, Outcome::Stopped(stop));
        }
    }

    /// The active run has ended: the next one begins, or the process ends, or waits.
    fn next(&mut self, now: Uptime) {
        let (live, drain) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Running(live) => (live, None),
            Phase::Draining(live, drain) => (live, Some(drain)),
            phase @ (Phase::Idle | Phase::Closed) => {
                self.phase = phase;
                return;
            }
        };
        let ActiveRun { mut run, mut waiting } = live;
        // What has not joined the run is a turn of its own, and was there first.
        let mut joining = run.take_joining();
        joining.append(&mut waiting);
        waiting = joining;
        match (waiting.pop_front(), drain) {
            (Some(submit), None) => self.start(now, submit, waiting),
            (Some(submit), Some(drain)) => {
                let live = ActiveRun { run, waiting: VecDeque::new() };
                self.phase = Phase::Draining(live, drain);
                self.start(now, submit, waiting);
            }
            (None, Some(drain)) => self.close(drain),
            (None, None) => {}
        }
    }

    /// Ends everything at once; what waits is refused.
    fn end_now(&mut self, now: Uptime, stop: Stop, farewell: ExitCause) {
        self.stop(now, stop);
        let mut end = Drain { shutdowns: Vec::new(), farewell };
        let waiting = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Running(live) => live.into_waiting(),
            Phase::Draining(live, drain) => {
                end =
                    Drain { shutdowns: drain.shutdowns, farewell: end.farewell.or(drain.farewell) };
                live.into_waiting()
            }
            Phase::Idle | Phase::Closed => Vec::new(),
        };
        for submit in waiting {
            self.recorder.refuse(Some(&submit.request), shutting_down());
        }
        self.close(end);
    }

    fn close(&mut self, drain: Drain) {
        self.phase = Phase::Closed;
        for id in &drain.shutdowns {
            self.recorder.done(Some(id), Done::Shutdown);
        }
        let exit = match drain.farewell {
            ExitCause::Quiet => match self.rules.mode {
                SessionMode::Conversation => ExitCode::Ok,
                SessionMode::OneShot => self.recorder.verdict().into(),
            },
            ExitCause::InputFailed { reason } => {
                self.recorder.refuse(None, stdin_read_failed(reason));
                ExitCode::InputFailed
            }
            ExitCause::Interrupted(signal) => {
                if self.rules.mode == SessionMode::Conversation || self.turns == 0 {
                    self.recorder.error(None, interrupted(signal));
                    self.recorder.done(None, Done::Stopped);
                }
                ExitCode::Interrupted(signal)
            }
            ExitCause::Refused(client_error) => {
                let is_defect = client_error.code == Code::Internal;
                self.recorder.refuse(None, client_error);
                if is_defect { ExitCode::Internal } else { ExitCode::Usage }
            }
        };
        self.recorder.push(Output::Exit(exit));
    }

    /// The active run, and what its steps need.
    fn live(&mut self, now: Uptime) -> Option<(&mut ActiveRun, Context<'_>)> {
        let live = match &mut self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => live,
            Phase::Idle | Phase::Closed => return None,
        };
        let has_approvals = self.recorder.is_on(Extension::Approvals);
        let context = Context {
            now,
            recorder: &mut self.recorder,
            tools: &mut self.toolbox,
            limits: self.answer_limits,
            has_client: !self.has_input_ended,
            can_ask: has_approvals && !self.has_input_ended,
        };
        Some((live, context))
    }
}

fn server_changed(
    server: &ServerName,
    state: &ServerState,
    tools: Vec<String>,
) -> ToolServerChanged {
    let (state, reason) = match state {
        ServerState::Starting => (ToolServerState::Starting, String::new()),
        ServerState::Ready => (ToolServerState::Ready, String::new()),
        ServerState::Failed { reason } => (ToolServerState::Unavailable, reason.clone()),
        ServerState::Gone { reason } => (ToolServerState::Gone, reason.clone()),
    };
    ToolServerChanged { server: server.to_string(), state: state.into(), reason, tools }
}

impl Drain {
    fn has_room(&self) -> bool {
        let bytes: usize = self.shutdowns.iter().map(|id| id.as_str().len()).sum();
        self.shutdowns.len() < HELD_SHUTDOWNS_MAX && bytes < HELD_BYTES_MAX
    }
}

impl ExitCause {
    /// The first cause that is not `Quiet`.
    fn or(self, other: Self) -> Self {
        match self {
            Self::Quiet => other,
            Self::InputFailed { .. } | Self::Interrupted(_) | Self::Refused(_) => self,
        }
    }
}
