//! One conversation without input and output of its own: owns the session, the engine and its run,
//! the ids and the clock. A front end passes inputs in and performs the effects that are returned, in
//! order. The host knows no pipe, no file descriptor and no thread, and it starts no task: the
//! engine runs while [`Host::next`] is awaited.

pub mod memory;

mod active_run;
mod input_log;

use crate::chat::event::Usage;
use crate::engine::{Engine, EngineEvent};
use crate::protocol::id::{Ids, RequestId, RunId};
use crate::protocol::wire::{self, Command, Frame, Request};
use crate::session::{ExitCode, Input, Output, Rules, Session, Uptime, panic_text};
use crate::support::fail_point::{FailPoint, Place, Plan};
use active_run::{ActiveRun, Step};
pub(crate) use input_log::input as log_input;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Instant;

/// How a conversation behaves and which engine answers.
#[derive(Debug)]
pub struct HostSettings {
    /// How the session behaves.
    pub rules: Rules,
    /// The engine that answers.
    pub engine: Engine,
    /// The capabilities that `hello` lists.
    pub capabilities: Vec<String>,
    /// 128 random bits, from which ids are made.
    pub seed: u128,
    /// A planted failure, for tests.
    pub faults: Plan,
}

/// A conversation and the run that answers in it.
#[derive(Debug)]
pub struct Host {
    started: Instant,
    session: Session,
    engine: Engine,
    ids: Ids,
    run: Option<ActiveRun>,
    decode_fault: FailPoint,
    engine_fault: FailPoint,
}

/// What a front end must do after an input, in this order.
#[must_use]
#[derive(Debug, Default)]
pub struct Effects {
    /// When the effects were decided.
    pub at: Uptime,
    /// The effects, in order.
    pub list: Vec<Effect>,
}

/// Something that a front end must do.
#[derive(Debug)]
pub enum Effect {
    /// Write this frame.
    Frame(Frame),
    /// Note the token counts of the active run. Frames have no field for some of them.
    Usage(Usage),
    /// End once the reader has all frames. No frame follows.
    Exit(ExitCode),
    /// End now, whether the reader has all frames or not.
    Abort(ExitCode),
}

impl HostSettings {
    /// Default rules, no capabilities and a seed from the system's randomness.
    pub fn new(engine: Engine) -> Self {
        Self {
            rules: Rules::default(),
            engine,
            capabilities: Vec::new(),
            seed: uuid::Uuid::new_v4().as_u128(),
            faults: Plan::default(),
        }
    }
}

impl Host {
    /// A new conversation, and its first frames.
    pub fn new(settings: HostSettings) -> (Self, Vec<Frame>) {
        let HostSettings { rules, engine, capabilities, seed, faults } = settings;
        let mut session = Session::new(rules, seed);
        session.plant(faults.at(Place::Project));
        let greeting = session.greeting(capabilities);
        let host = Self {
            started: Instant::now(),
            session,
            engine,
            // Other ids than the session's, from the same seed.
            ids: Ids::new(!seed),
            run: None,
            decode_fault: faults.at(Place::Decode),
            engine_fault: faults.at(Place::Engine),
        };
        (host, greeting)
    }

    /// Time since the host was made.
    pub fn uptime(&self) -> Uptime {
        Uptime(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Whether the host takes another request now.
    pub fn wants_input(&self) -> bool {
        self.session.wants_input()
    }

    /// The active run.
    pub fn active_run(&self) -> Option<RunId> {
        self.run.as_ref().map(ActiveRun::id)
    }

    /// Handles a request line, without its line end. A line that is no request is answered as well.
    pub fn line(&mut self, line: &[u8]) -> Effects {
        let Self { ids, decode_fault, .. } = self;
        let decoding = AssertUnwindSafe(|| {
            decode_fault.step();
            wire::decode(line, || ids.request())
        });
        let input = match catch_unwind(decoding) {
            Ok(Ok(request)) => Input::Request(request),
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => Input::BadLine(wire::unreadable(line, panic_text(panic.as_ref()))),
        };
        self.handle(input)
    }

    /// Handles a request that has no id yet; returns the id that its frames carry.
    pub fn request(&mut self, command: Command) -> (RequestId, Effects) {
        let id = self.ids.request();
        let effects =
            self.handle(Input::Request(Request { session: None, id: id.clone(), command }));
        (id, effects)
    }

    /// Handles an input. A run that it starts or stops is started or stopped here.
    pub fn handle(&mut self, input: Input) -> Effects {
        input_log::input(&input);
        let at = self.uptime();
        let outputs = self.session.handle(at, input);
        let list = outputs.into_iter().filter_map(|output| self.perform(output)).collect();
        Effects { at, list }
    }

    /// Waits for the engine of the active run: for its next event, or for its end, which comes
    /// after all its events. May be dropped at any time; nothing is lost.
    ///
    /// If there is no room for the effects (`has_room`), it never ends, but the engine goes on as
    /// far as its sink takes events: so an engine that limits the time of its provider does not
    /// count the time of the reader.
    pub async fn next(&mut self, has_room: bool) -> Effects {
        let step = poll_fn(|context| self.poll_step(context, has_room)).await;
        self.engine_step(step)
    }

    /// The effects of the engine's next event or its end, if it has come already.
    pub fn try_next(&mut self) -> Option<Effects> {
        let step = self.run.as_mut()?.try_next()?;
        Some(self.engine_step(step))
    }

    /// Stops the active run's engine without an answer to anybody: for a front end that can't give
    /// its reader anything more.
    pub fn abandon_run(&mut self) {
        if let Some(run) = self.run.take() {
            run.stop();
        }
    }

    fn poll_step(&mut self, context: &mut Context<'_>, has_room: bool) -> Poll<Step> {
        match &mut self.run {
            Some(run) if has_room => run.poll_next(context),
            Some(run) => {
                run.poll_engine(context);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }

    fn engine_step(&mut self, (run, step): Step) -> Effects {
        match step {
            Ok(event) => {
                let usage = match &event {
                    EngineEvent::Usage(usage) => Some(Effect::Usage(*usage)),
                    EngineEvent::CallStarted
                    | EngineEvent::Reasoning { .. }
                    | EngineEvent::Text(_)
                    | EngineEvent::ToolCallStarted(_)
                    | EngineEvent::ToolArguments { .. }
                    | EngineEvent::ToolCallRequested { .. }
                    | EngineEvent::ToolExecutionStarted { .. }
                    | EngineEvent::ToolReturned { .. }
                    | EngineEvent::CallFinished { .. } => None,
                };
                let mut effects = self.handle(Input::Engine(run, event));
                // Before the frames: a format may need the counts for them.
                effects.list.splice(..0, usage);
                effects
            }
            Err(end) => {
                self.run = None;
                self.handle(Input::RunEnded(run, end))
            }
        }
    }

    fn perform(&mut self, output: Output) -> Option<Effect> {
        match output {
            Output::Frame(frame) => Some(Effect::Frame(frame)),
            Output::StartRun { run, transcript } => {
                tracing::info!(%run, "a run starts");
                let fault = std::mem::take(&mut self.engine_fault);
                self.run = Some(ActiveRun::start(&self.engine, run, transcript, fault));
                None
            }
            Output::CancelRun(run) => {
                tracing::info!(%run, "the run is stopped");
                self.abandon_run();
                None
            }
            Output::Exit(code) => Some(Effect::Exit(code)),
            Output::Abort(code) => Some(Effect::Abort(code)),
        }
    }
}
