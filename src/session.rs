//! The state machine of a conversation: the only place that knows of busy, mismatch and draining.
//! Decides what each input means; does nothing itself. Pure: time and chance come in.
//!
//! A run's last frames and its end are one returned list, and stopping a run ends it at once: what
//! its engine says afterwards carries the id of a run that is no more, and is passed over. So
//! nothing can come between a run's end and its `done`, and no cancel can be lost.

mod io;

mod exit;

mod client_error;

mod answer_extraction;

mod recorder;

mod limits;

mod run;

#[cfg(test)]
mod tests;

pub use answer_extraction::{Extraction, ExtractionReport};
pub(crate) use client_error::{panic_text, run_defect, unread_prompt};
pub use exit::{ExitCode, Signal};
pub(crate) use io::Output;
pub use io::{FinalSnapshot, Input, OnBusy, Retention, Rules, SessionMode, Uptime};

use crate::chat::timeline::Span;
use crate::engine::{EngineEvent, RunEnd};
use crate::protocol::id::{Ids, RequestId, RunId, SessionId};
use crate::protocol::wire::{
    self, BadLine, ClientError, Code, Command, Done, Frame, Prompt, Request,
};
use crate::support::fail_point::FailPoint;
use client_error::{
    busy, fatal, internal, interrupted, mismatch, no_active_request, run_failed, shutting_down,
    stdin_read_failed,
};
use limits::AnswerLimits;
use recorder::Recorder;
use run::{Outcome, Run, Stop};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of text, reasoning and arguments that a run may bring: a conversation is held in memory.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Segments of text and reasoning that an answer may have: each is a message of the conversation, and
/// costs far more than its text.
pub(crate) const ANSWER_SEGMENTS_MAX: u32 = 10_000;

/// Submits that may wait for their turn; past that, input is left unread.
pub(crate) const QUEUED_SUBMITS_MAX: usize = 1_000;

/// Shutdowns that may wait for the end of a run; past that, input is left unread.
pub(crate) const HELD_SHUTDOWNS_MAX: usize = 256;

/// Bytes of the ids of shutdowns that wait; past that, input is left unread.
pub(crate) const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of prompts that may wait for their turn; past that, input is left unread.
pub(crate) const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

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

/// A run and what waits for it.
#[derive(Clone, Debug)]
struct ActiveRun {
    run: Run,
    /// Empty unless submits may wait.
    waiting: VecDeque<Submit>,
}

#[derive(Clone, Debug)]
struct Submit {
    request: RequestId,
    prompt: Prompt,
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
        let answer_limits = AnswerLimits::default();
        Self { rules, binding, answer_limits, ids, turns: 0, phase: Phase::Idle, recorder }
    }

    /// Plants a fault among the projections.
    pub(crate) fn plant(&mut self, fault: FailPoint) {
        self.recorder.plant(fault);
    }

    /// The first frame. `capabilities` is what the process can do.
    pub(crate) fn hello(&self, capabilities: Vec<String>) -> Frame {
        wire::frame(self.recorder.session(), None, wire::hello(capabilities))
    }

    /// What is told before anything is asked: `hello`, and the state that a single run begins with.
    pub(crate) fn greeting(&self, capabilities: Vec<String>) -> Vec<Frame> {
        let hello = self.hello(capabilities);
        match (self.rules.mode, self.rules.keep) {
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
        match &self.phase {
            Phase::Idle => true,
            Phase::Running(live) => live.has_room(),
            Phase::Draining(live, drain) => live.has_room() && drain.has_room(),
            Phase::Closed => false,
        }
    }

    fn step(&mut self, now: Uptime, input: Input) {
        if let Phase::Closed = self.phase {
            return self.after_close(&input);
        }
        match input {
            Input::Request(request) => self.request(now, request),
            Input::BadLine(line) => self.bad_line(line),
            Input::InputEnded => self.drain(None, ExitCause::Quiet),
            Input::InputFailed { reason } => self.drain(None, ExitCause::InputFailed { reason }),
            Input::Engine(run, event) => self.engine_said(now, run, event),
            Input::RunEnded(run, end) => self.run_ended(now, run, end),
            Input::Interrupted(signal) => {
                let reason = format!("the process was ended by {signal}");
                // A single run has one end, which tells of this as well.
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

    fn after_close(&mut self, input: &Input) {
        // What is still to be written may never be taken: whoever asks twice need not wait for it.
        if let Input::Interrupted(signal) = input {
            self.recorder.push(Output::Abort(ExitCode::Interrupted(*signal)));
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
            Command::Submit(prompt) => self.submit(now, Submit { request: id, prompt }),
            Command::Cancel => self.cancel(now, &id),
            Command::Snapshot => {
                self.recorder.snapshot(&id, Span::Conversation);
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::Shutdown => self.drain(Some(id), ExitCause::Quiet),
        }
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
        self.binding = Binding::Bound;
        Ok(())
    }

    fn submit(&mut self, now: Uptime, submit: Submit) {
        match &mut self.phase {
            Phase::Idle => self.start(now, submit, VecDeque::new()),
            Phase::Running(live) => match self.rules.on_busy {
                OnBusy::Queue if live.has_room() => live.waiting.push_back(submit),
                OnBusy::Queue | OnBusy::Reject => {
                    let client_error = busy(live.run.request());
                    self.recorder.refuse(Some(&submit.request), client_error);
                }
            },
            Phase::Draining(..) | Phase::Closed => {
                self.recorder.refuse(Some(&submit.request), shutting_down());
            }
        }
    }

    fn start(&mut self, now: Uptime, submit: Submit, waiting: VecDeque<Submit>) {
        self.turns += 1;
        let id = self.ids.run();
        let run = Run::new(id, self.turns, submit.request, now);
        let live = ActiveRun { run, waiting };
        // Set before anything is told of the run: whatever happens, it can be found and ended.
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Draining(_, drain) => Phase::Draining(live, drain),
            Phase::Idle | Phase::Running(_) | Phase::Closed => Phase::Running(live),
        };
        if let Some((live, recorder)) = self.live() {
            live.run.begin(recorder, submit.prompt.into_string());
        }
    }

    fn cancel(&mut self, now: Uptime, id: &RequestId) {
        match self.phase {
            Phase::Running(_) | Phase::Draining(..) => {
                self.recorder.done(Some(id), Done::Ok);
                let reason = format!("cancelled by request {}", id.as_str());
                self.stop(now, Stop { reason, error: None });
                self.next(now);
            }
            Phase::Idle | Phase::Closed => {
                self.recorder.error(Some(id), no_active_request());
                self.recorder.done(Some(id), Done::Ok);
            }
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
                drain.shutdowns.extend(shutdown);
                drain.farewell = drain.farewell.or(farewell);
                self.phase = Phase::Draining(live, drain);
            }
            Phase::Closed => {}
        }
    }

    fn engine_said(&mut self, now: Uptime, run: RunId, event: EngineEvent) {
        let limits = self.answer_limits;
        let Some((live, recorder)) = self.live() else { return };
        if live.run.id() != run {
            return;
        }
        match live.run.count(&event, limits) {
            Ok(()) => live.run.engine_said(recorder, now, event),
            Err(error) => {
                recorder.cancel_engine();
                live.run.end(recorder, now, Outcome::Failed(error));
                self.next(now);
            }
        }
    }

    fn run_ended(&mut self, now: Uptime, run: RunId, end: RunEnd) {
        let Some((live, recorder)) = self.live() else { return };
        if live.run.id() != run {
            return;
        }
        recorder.engine_ended();
        live.run.end(recorder, now, Outcome::from(end));
        self.next(now);
    }

    /// Stops the active run, if there is one.
    fn stop(&mut self, now: Uptime, stop: Stop) {
        if let Some((live, recorder)) = self.live() {
            // First of all, so that the provider is left alone without delay.
            recorder.cancel_engine();
            live.run.end(recorder, now, Outcome::Stopped(stop));
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
        let mut waiting = live.waiting;
        match (waiting.pop_front(), drain) {
            (Some(submit), None) => self.start(now, submit, waiting),
            (Some(submit), Some(drain)) => {
                let live = ActiveRun { run: live.run, waiting: VecDeque::new() };
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
            Phase::Running(live) => live.waiting,
            Phase::Draining(live, drain) => {
                end =
                    Drain { shutdowns: drain.shutdowns, farewell: end.farewell.or(drain.farewell) };
                live.waiting
            }
            Phase::Idle | Phase::Closed => VecDeque::new(),
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

    /// After a defect: what the input was about ends with an error; the rest goes on.
    fn recover(&mut self, now: Uptime, about: &About, defect: &str) {
        let is_of_run = match about {
            About::Run => true,
            About::Line(id) => {
                if !self.will_answer(id.as_ref()) {
                    self.recorder.refuse(id.as_ref(), internal(defect));
                }
                false
            }
            About::Process => return self.give_up(defect),
        };
        if let Phase::Closed = self.phase {
            return self.give_up(defect);
        }
        let Some((live, recorder)) = self.live() else { return };
        if is_of_run || !live.run.is_going() {
            recorder.cancel_engine();
            fail_run(&mut live.run, recorder, now, defect);
            // The run that comes next may meet the same defect. Each has its own end.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.next(now))) {
                self.recover(now, &About::Run, &panic_text(panic.as_ref()));
            }
        }
    }

    /// Whether the request has its `done` already, or something is left that will give it one.
    fn will_answer(&self, id: Option<&RequestId>) -> bool {
        let is_held = match (&self.phase, id) {
            (Phase::Running(live), Some(id)) => live.answers(id),
            (Phase::Draining(live, drain), Some(id)) => {
                live.answers(id) || drain.shutdowns.contains(id)
            }
            (Phase::Idle | Phase::Closed, _) | (_, None) => false,
        };
        is_held || self.recorder.is_done(id)
    }

    /// Ends the process after a defect in ending it. Its events can't be told; whoever waits for an
    /// answer still gets one.
    fn give_up(&mut self, defect: &str) {
        self.recorder.cancel_engine();
        let (live, shutdowns) = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Running(live) => (Some(live), Vec::new()),
            Phase::Draining(live, drain) => (Some(live), drain.shutdowns),
            Phase::Idle | Phase::Closed => (None, Vec::new()),
        };
        if let Some(ActiveRun { run, waiting }) = live {
            answer_defect(&run, &mut self.recorder, defect);
            for submit in waiting {
                self.recorder.refuse(Some(&submit.request), shutting_down());
            }
        }
        for id in &shutdowns {
            self.recorder.done(Some(id), Done::Shutdown);
        }
        self.recorder.refuse(None, fatal(defect));
        self.recorder.push(Output::Exit(ExitCode::Internal));
    }

    fn live(&mut self) -> Option<(&mut ActiveRun, &mut Recorder)> {
        match &mut self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => Some((live, &mut self.recorder)),
            Phase::Idle | Phase::Closed => None,
        }
    }
}

/// Gives a run its end after a defect, with its events if they can still be told.
fn fail_run(run: &mut Run, recorder: &mut Recorder, now: Uptime, defect: &str) {
    if !run.has_ended() {
        let outcome = Outcome::Failed(run_defect(defect));
        if catch_unwind(AssertUnwindSafe(|| run.end(recorder, now, outcome))).is_ok() {
            return;
        }
    }
    // Its events can't be told; the client still gets its answer.
    answer_defect(run, recorder, defect);
}

/// Gives the request of a run its `done` after a defect, if it has none yet.
fn answer_defect(run: &Run, recorder: &mut Recorder, defect: &str) {
    if !recorder.is_done(Some(run.request())) {
        recorder.refuse(Some(run.request()), run_failed(run_defect(defect)));
    }
}

impl ActiveRun {
    fn answers(&self, id: &RequestId) -> bool {
        self.run.request() == id || self.waiting.iter().any(|submit| submit.request == *id)
    }

    fn has_room(&self) -> bool {
        let bytes: usize = self.waiting.iter().map(Submit::len_bytes).sum();
        self.waiting.len() < QUEUED_SUBMITS_MAX && bytes < QUEUED_BYTES_MAX
    }
}

impl Submit {
    fn len_bytes(&self) -> usize {
        self.prompt.len_bytes() + self.request.as_str().len()
    }
}

impl Drain {
    fn has_room(&self) -> bool {
        let bytes: usize = self.shutdowns.iter().map(|id| id.as_str().len()).sum();
        self.shutdowns.len() < HELD_SHUTDOWNS_MAX && bytes < HELD_BYTES_MAX
    }
}

/// What an input is about, for the case that handling it meets a defect.
enum About {
    /// A line: it is to be answered.
    Line(Option<RequestId>),
    /// The active run: it is to end.
    Run,
    /// The process.
    Process,
}

impl About {
    fn of(input: &Input) -> Self {
        match input {
            Input::Request(request) => Self::Line(Some(request.id.clone())),
            Input::BadLine(line) => Self::Line(line.id.clone()),
            Input::Engine(..) | Input::RunEnded(..) => Self::Run,
            Input::InputEnded
            | Input::InputFailed { .. }
            | Input::Interrupted(_)
            | Input::ReaderGone
            | Input::Refused(_) => Self::Process,
        }
    }
}

impl ExitCause {
    /// This one is told, unless it has nothing to tell.
    fn or(self, other: Self) -> Self {
        match self {
            Self::Quiet => other,
            Self::InputFailed { .. } | Self::Interrupted(_) | Self::Refused(_) => self,
        }
    }
}

impl From<RunEnd> for Outcome {
    fn from(end: RunEnd) -> Self {
        match end {
            RunEnd::Finished => Self::Finished,
            RunEnd::Failed(error) => Self::Failed(error),
        }
    }
}
