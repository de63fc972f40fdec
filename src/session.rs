//! The state machine of a conversation: the only place that knows of busy, mismatch and draining.
//! Decides what each input means; does nothing itself. Pure: time and chance come in.
//!
//! A run's last frames and its end are one returned list, and stopping a run ends it at once: what
//! its engine says afterwards carries the id of a run that is no more, and is passed over. So
//! nothing can come between a run's end and its `done`, and no cancel can be lost.

mod vocabulary;

mod exit;

mod trouble;

mod harvest;

mod book;

mod limits;

mod run;

#[cfg(test)]
mod tests;

pub use exit::{ExitCode, Signal};
pub use harvest::{Extraction, Telling};
pub(crate) use trouble::{panic_text, run_defect, unread_prompt};
pub use vocabulary::{FinalSnapshot, Input, Keep, Life, Moment, OnBusy, Output, Rules};

use crate::chat::timeline::Span;
use crate::engine::{EngineEvent, RunEnd};
use crate::protocol::id::{Ids, RequestId, RunId, SessionId};
use crate::protocol::wire::{self, BadLine, Code, Command, Done, Frame, Prompt, Request, Trouble};
use crate::support::fail_point::Tripwire;
use book::Book;
use limits::AnswerLimits;
use run::{Outcome, Run, Stop};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use trouble::{
    busy, fatal, internal, interrupted, mismatch, no_active_request, run_failed, shutting_down,
    stdin_read_failed,
};

/// Bytes of text, reasoning and arguments that a run may bring: a conversation is held in memory.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Segments of text and reasoning that an answer may have: each is a message of the conversation, and
/// costs far more than its text.
pub const ANSWER_SEGMENTS_MAX: u32 = 10_000;

/// Submits that may wait for their turn; past that, input is left unread.
pub const QUEUED_SUBMITS_MAX: usize = 1_000;

/// Shutdowns that may wait for the end of a run; past that, input is left unread.
pub const HELD_SHUTDOWNS_MAX: usize = 256;

/// Bytes of the ids of shutdowns that wait; past that, input is left unread.
pub const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of prompts that may wait for their turn; past that, input is left unread.
pub const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One conversation.
#[derive(Clone, Debug)]
pub struct Session {
    rules: Rules,
    binding: Binding,
    /// Lower in tests.
    answer_limits: AnswerLimits,
    ids: Ids,
    turns: u32,
    phase: Phase,
    book: Book,
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
    Running(Live),
    Draining(Live, Drain),
    Closed,
}

/// A run and what waits for it.
#[derive(Clone, Debug)]
struct Live {
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
    farewell: Farewell,
}

#[derive(Clone, Debug)]
enum Farewell {
    Quiet,
    InputFailed { reason: String },
    Interrupted(Signal),
    Refused(Trouble),
}

impl Session {
    /// A conversation in which nothing has been said. `seed` is 128 random bits, for its ids.
    pub fn new(rules: Rules, seed: u128) -> Self {
        let mut ids = Ids::new(seed);
        let (binding, id) = match &rules.session {
            Some(id) => (Binding::Bound, id.clone()),
            None => (Binding::Open, ids.session()),
        };
        let book = Book::new(id, &rules, &mut ids);
        let answer_limits = AnswerLimits::default();
        Self { rules, binding, answer_limits, ids, turns: 0, phase: Phase::Idle, book }
    }

    /// Plants a fault among the projections.
    pub fn plant(&mut self, fault: Tripwire) {
        self.book.plant(fault);
    }

    /// The first frame. `capabilities` is what the process can do.
    pub fn hello(&self, capabilities: Vec<String>) -> Frame {
        wire::frame(self.book.session(), None, wire::hello(capabilities))
    }

    /// What is told before anything is asked: `hello`, and the state that a single run begins with.
    pub fn greeting(&self, capabilities: Vec<String>) -> Vec<Frame> {
        let hello = self.hello(capabilities);
        match (self.rules.life, self.rules.keep) {
            (Life::OneShot, Keep::Everything) => {
                vec![hello, self.book.state(None, Span::Conversation)]
            }
            (Life::OneShot, Keep::Nothing) | (Life::Conversation, _) => vec![hello],
        }
    }

    /// Takes in what happened at `now`, and says what to do about it. A defect met on the way ends
    /// what it was about, with an error, and not the conversation.
    pub fn handle(&mut self, now: Moment, input: Input) -> Vec<Output> {
        let about = About::of(&input);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.step(now, input))) {
            self.recover(now, &about, &panic_text(panic.as_ref()));
        }
        self.book.take_outputs()
    }

    /// Whether another line may be read now.
    pub fn wants_input(&self) -> bool {
        match &self.phase {
            Phase::Idle => true,
            Phase::Running(live) => live.has_room(),
            Phase::Draining(live, drain) => live.has_room() && drain.has_room(),
            Phase::Closed => false,
        }
    }

    fn step(&mut self, now: Moment, input: Input) {
        if let Phase::Closed = self.phase {
            return self.after_close(&input);
        }
        match input {
            Input::Request(request) => self.request(now, request),
            Input::BadLine(line) => self.bad_line(line),
            Input::InputEnded => self.drain(None, Farewell::Quiet),
            Input::InputFailed { reason } => self.drain(None, Farewell::InputFailed { reason }),
            Input::Engine(run, event) => self.engine_said(now, run, event),
            Input::RunEnded(run, end) => self.run_ended(now, run, end),
            Input::Interrupted(signal) => {
                let reason = format!("the process was ended by {signal}");
                // A single run has one end, which tells of this as well.
                let error = (self.rules.life == Life::OneShot).then(|| interrupted(signal));
                self.end_now(now, Stop { reason, error }, Farewell::Interrupted(signal));
            }
            Input::ReaderGone => {
                let reason = "nobody reads the output any more".to_owned();
                self.end_now(now, Stop { reason, error: None }, Farewell::Quiet);
            }
            Input::Refused(trouble) => self.drain(None, Farewell::Refused(trouble)),
        }
    }

    fn after_close(&mut self, input: &Input) {
        // What is still to be written may never be taken: whoever asks twice need not wait for it.
        if let Input::Interrupted(signal) = input {
            self.book.push(Output::Abort(ExitCode::Interrupted(*signal)));
        }
    }

    fn bad_line(&mut self, line: BadLine) {
        self.book.refuse(line.id.as_ref(), line.fault.trouble());
    }

    fn request(&mut self, now: Moment, request: Request) {
        let id = request.id;
        if let Err(trouble) = self.bind(request.session) {
            return self.book.refuse(Some(&id), trouble);
        }
        match request.command {
            Command::Submit(prompt) => self.submit(now, Submit { request: id, prompt }),
            Command::Cancel => self.cancel(now, &id),
            Command::Snapshot => {
                self.book.snapshot(&id, Span::Conversation);
                self.book.done(Some(&id), Done::Ok);
            }
            Command::Shutdown => self.drain(Some(id), Farewell::Quiet),
        }
    }

    fn bind(&mut self, named: Option<SessionId>) -> Result<(), Trouble> {
        let bound = self.book.session();
        if let Some(named) = named
            && named != *bound
        {
            if self.binding == Binding::Bound {
                return Err(mismatch(bound));
            }
            self.book.rename(named);
        }
        self.binding = Binding::Bound;
        Ok(())
    }

    fn submit(&mut self, now: Moment, submit: Submit) {
        match &mut self.phase {
            Phase::Idle => self.start(now, submit, VecDeque::new()),
            Phase::Running(live) => match self.rules.on_busy {
                OnBusy::Queue if live.has_room() => live.waiting.push_back(submit),
                OnBusy::Queue | OnBusy::Reject => {
                    let trouble = busy(live.run.request());
                    self.book.refuse(Some(&submit.request), trouble);
                }
            },
            Phase::Draining(..) | Phase::Closed => {
                self.book.refuse(Some(&submit.request), shutting_down());
            }
        }
    }

    fn start(&mut self, now: Moment, submit: Submit, waiting: VecDeque<Submit>) {
        self.turns += 1;
        let id = self.ids.run();
        let run = Run::new(id, self.turns, submit.request, now);
        let live = Live { run, waiting };
        // Set before anything is told of the run: whatever happens, it can be found and ended.
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Draining(_, drain) => Phase::Draining(live, drain),
            Phase::Idle | Phase::Running(_) | Phase::Closed => Phase::Running(live),
        };
        if let Some((live, book)) = self.live() {
            live.run.begin(book, submit.prompt.into_string());
        }
    }

    fn cancel(&mut self, now: Moment, id: &RequestId) {
        match self.phase {
            Phase::Running(_) | Phase::Draining(..) => {
                self.book.done(Some(id), Done::Ok);
                let reason = format!("cancelled by request {}", id.as_str());
                self.stop(now, Stop { reason, error: None });
                self.next(now);
            }
            Phase::Idle | Phase::Closed => {
                self.book.error(Some(id), no_active_request());
                self.book.done(Some(id), Done::Ok);
            }
        }
    }

    /// Takes no more prompts, and ends once what runs and waits has ended.
    fn drain(&mut self, shutdown: Option<RequestId>, farewell: Farewell) {
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

    fn engine_said(&mut self, now: Moment, run: RunId, event: EngineEvent) {
        let limits = self.answer_limits;
        let Some((live, book)) = self.live() else { return };
        if live.run.id() != run {
            return;
        }
        match live.run.count(&event, limits) {
            Ok(()) => live.run.engine_said(book, now, event),
            Err(error) => {
                book.cancel_engine();
                live.run.end(book, now, Outcome::Failed(error));
                self.next(now);
            }
        }
    }

    fn run_ended(&mut self, now: Moment, run: RunId, end: RunEnd) {
        let Some((live, book)) = self.live() else { return };
        if live.run.id() != run {
            return;
        }
        book.engine_ended();
        live.run.end(book, now, Outcome::from(end));
        self.next(now);
    }

    /// Stops the active run, if there is one.
    fn stop(&mut self, now: Moment, stop: Stop) {
        if let Some((live, book)) = self.live() {
            // First of all, so that the provider is left alone without delay.
            book.cancel_engine();
            live.run.end(book, now, Outcome::Stopped(stop));
        }
    }

    /// The active run has ended: the next one begins, or the process ends, or waits.
    fn next(&mut self, now: Moment) {
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
                let live = Live { run: live.run, waiting: VecDeque::new() };
                self.phase = Phase::Draining(live, drain);
                self.start(now, submit, waiting);
            }
            (None, Some(drain)) => self.close(drain),
            (None, None) => {}
        }
    }

    /// Ends everything at once; what waits is refused.
    fn end_now(&mut self, now: Moment, stop: Stop, farewell: Farewell) {
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
            self.book.refuse(Some(&submit.request), shutting_down());
        }
        self.close(end);
    }

    fn close(&mut self, drain: Drain) {
        self.phase = Phase::Closed;
        for id in &drain.shutdowns {
            self.book.done(Some(id), Done::Shutdown);
        }
        let exit = match drain.farewell {
            Farewell::Quiet => match self.rules.life {
                Life::Conversation => ExitCode::Ok,
                Life::OneShot => self.book.verdict().into(),
            },
            Farewell::InputFailed { reason } => {
                self.book.refuse(None, stdin_read_failed(reason));
                ExitCode::InputFailed
            }
            Farewell::Interrupted(signal) => {
                if self.rules.life == Life::Conversation || self.turns == 0 {
                    self.book.error(None, interrupted(signal));
                    self.book.done(None, Done::Stopped);
                }
                ExitCode::Interrupted(signal)
            }
            Farewell::Refused(trouble) => {
                let is_defect = trouble.code == Code::Internal;
                self.book.refuse(None, trouble);
                if is_defect { ExitCode::Internal } else { ExitCode::Usage }
            }
        };
        self.book.push(Output::Exit(exit));
    }

    /// After a defect: what the input was about ends with an error; the rest goes on.
    fn recover(&mut self, now: Moment, about: &About, defect: &str) {
        let is_of_run = match about {
            About::Run => true,
            About::Line(id) => {
                if !self.will_answer(id.as_ref()) {
                    self.book.refuse(id.as_ref(), internal(defect));
                }
                false
            }
            About::Process => return self.give_up(defect),
        };
        if let Phase::Closed = self.phase {
            return self.give_up(defect);
        }
        let Some((live, book)) = self.live() else { return };
        if is_of_run || !live.run.is_going() {
            book.cancel_engine();
            fail_run(&mut live.run, book, now, defect);
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
        is_held || self.book.is_done(id)
    }

    /// Ends the process after a defect in ending it. Its events can't be told; whoever waits for an
    /// answer still gets one.
    fn give_up(&mut self, defect: &str) {
        self.book.cancel_engine();
        let (live, shutdowns) = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Running(live) => (Some(live), Vec::new()),
            Phase::Draining(live, drain) => (Some(live), drain.shutdowns),
            Phase::Idle | Phase::Closed => (None, Vec::new()),
        };
        if let Some(Live { run, waiting }) = live {
            answer_defect(&run, &mut self.book, defect);
            for submit in waiting {
                self.book.refuse(Some(&submit.request), shutting_down());
            }
        }
        for id in &shutdowns {
            self.book.done(Some(id), Done::Shutdown);
        }
        self.book.refuse(None, fatal(defect));
        self.book.push(Output::Exit(ExitCode::Internal));
    }

    fn live(&mut self) -> Option<(&mut Live, &mut Book)> {
        match &mut self.phase {
            Phase::Running(live) | Phase::Draining(live, _) => Some((live, &mut self.book)),
            Phase::Idle | Phase::Closed => None,
        }
    }
}

/// Gives a run its end after a defect, with its events if they can still be told.
fn fail_run(run: &mut Run, book: &mut Book, now: Moment, defect: &str) {
    if !run.has_ended() {
        let outcome = Outcome::Failed(run_defect(defect));
        if catch_unwind(AssertUnwindSafe(|| run.end(book, now, outcome))).is_ok() {
            return;
        }
    }
    // Its events can't be told; the client still gets its answer.
    answer_defect(run, book, defect);
}

/// Gives the request of a run its `done` after a defect, if it has none yet.
fn answer_defect(run: &Run, book: &mut Book, defect: &str) {
    if !book.is_done(Some(run.request())) {
        book.refuse(Some(run.request()), run_failed(run_defect(defect)));
    }
}

impl Live {
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

impl Farewell {
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
