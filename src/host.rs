//! One conversation without a way in or out: owns the session, the engine, the tool servers, the
//! tasks, the ids and the clock. A front end hands over what happens and performs the effects that
//! come back, in order. The host knows no pipe, no file descriptor and no thread: the engine and the
//! calls of tools go on while [`Host::next`] is awaited. Tool servers have tasks of their own.

pub mod memory;

pub(crate) mod attachments;
mod hints;
mod input_log;
mod keeping;
mod tasks;

use crate::chat::event::Usage;
use crate::chat::record::StoreFailure;
use crate::engine::{EngineEvent, Engines};
use crate::protocol::command::Command;
use crate::protocol::id::{Ids, RequestId, TaskId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, BadLine, ClientError, Code, Frame, Request, RequestFault};
use crate::protocol::words::code;
use crate::session::{
    ExitCode, Input, Output, Retention, Rules, ServerCall, Session, TaskEvent, Uptime, panic_text,
};
use crate::store::{Report, StoreSettings};
use crate::support::fail_point::{FailPoint, Place, Plan};
use crate::support::terminal::escape_control;
use crate::tool::servers::ToolServers;
pub(crate) use input_log::input as log_input;
use keeping::Keeping;
use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tasks::{Step, Tasks};
use tokio::time::Instant;

/// How a conversation behaves and which engine answers.
#[derive(Debug)]
pub struct HostSettings {
    /// How the session behaves.
    pub rules: Rules,
    /// The engine that answers, and those that requests can choose.
    pub engines: Engines,
    /// The servers whose tools the model may call. They are started when [`Host::next`] is awaited
    /// for the first time.
    pub servers: ToolServers,
    /// Where the conversation is stored; `None` if it is not. The store is opened when
    /// [`Host::next`] is awaited for the first time.
    pub store: Option<StoreSettings>,
    /// The words of `hello` that name what the front end can do.
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
    engines: Engines,
    servers: ToolServers,
    has_servers: bool,
    are_servers_started: bool,
    ids: Ids,
    tasks: Tasks,
    /// Names of members that were reported.
    hinted: BTreeSet<String>,
    keeping: Keeping,
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
    /// Report that the conversation is not stored, or not all of it could be read, where the frames
    /// of a single run have no place for it.
    StoreWarning(StoreWarning),
    /// End once the reader has all frames. No frame follows.
    Exit(ExitCode),
    /// End now, whether the reader has all frames or not.
    Abort(ExitCode),
}

/// What is wrong with the store of a conversation that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreWarning {
    /// `store_failed`: nothing more is stored. `store_degraded`: not everything could be read.
    pub code: &'static str,
    /// What happened, for people.
    pub message: String,
}

impl HostSettings {
    /// Default rules, no capabilities and a seed from the system's randomness.
    pub fn new(engines: impl Into<Engines>) -> Self {
        Self {
            rules: Rules::default(),
            engines: engines.into(),
            servers: ToolServers::default(),
            store: None,
            capabilities: Vec::new(),
            seed: uuid::Uuid::new_v4().as_u128(),
            faults: Plan::default(),
        }
    }
}

impl Host {
    /// A new conversation, and its first frames.
    pub fn new(settings: HostSettings) -> (Self, Vec<Frame>) {
        let HostSettings { mut rules, engines, servers, store, capabilities, seed, faults } =
            settings;
        if let Some(store) = &store {
            rules.log.is_stored = true;
            rules.log.resumes = store.resumes;
            // What is stored of a run is what is remembered of it.
            rules.keep = Retention::Everything;
        }
        let keeping = Keeping::new(store, rules.session.is_some(), faults.clone());
        rules.tools.servers = servers.names().cloned().collect();
        rules.engines = engines.facts();
        let has_servers = !rules.tools.servers.is_empty();
        let mut session = Session::new(rules, seed);
        session.plant(faults.at(Place::Project));
        let greeting = session.greeting(capabilities);
        let host = Self {
            started: Instant::now(),
            session,
            engines,
            servers,
            has_servers,
            are_servers_started: false,
            // Other ids than the session's, from the same seed.
            ids: Ids::new(!seed),
            tasks: Tasks::default(),
            hinted: BTreeSet::new(),
            keeping,
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
        self.session.wants_input() && !self.keeping.is_behind()
    }

    /// The provider call that goes on.
    pub fn active_call(&self) -> Option<TaskId> {
        self.tasks.active_call()
    }

    /// Handles a request line, without its line end. A line that is no request is answered as well.
    pub fn line(&mut self, line: &[u8]) -> Effects {
        let Self { ids, decode_fault, session, .. } = self;
        let decoding = AssertUnwindSafe(|| {
            decode_fault.step();
            let request = wire::decode(line, || ids.request())?;
            attachments::read(request, || session.attached_bytes())
        });
        let input = match catch_unwind(decoding) {
            Ok(Ok(request)) => {
                self.hint(line, &request);
                self.prepare_engine(&request);
                Input::Request(request)
            }
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => Input::BadLine(wire::unreadable(line, panic_text(panic.as_ref()))),
        };
        self.handle(input)
    }

    /// Reports members of a submit that look like settings and are ignored.
    fn hint(&mut self, line: &[u8], request: &Request) {
        if !matches!(request.command, Command::Submit(_)) {
            return;
        }
        for name in hints::misplaced(line, &mut self.hinted) {
            tracing::warn!(
                "submit has a member {name:?}, which is ignored; settings of a turn stand in \
                 submit.settings"
            );
        }
    }

    /// Adds the engines that are named, or those of profiles, once a request names one; reports once
    /// what of a profile does not apply.
    fn prepare_engine(&mut self, request: &Request) {
        let Some(choice) = request.command.choice() else { return };
        let (facts, notes) = self.engines.prepare(choice);
        facts.into_iter().for_each(|facts| self.session.know(facts));
        notes.iter().for_each(|note| tracing::warn!("{}", escape_control(note)));
    }

    /// Handles a request that has no id yet; returns the id that its frames carry.
    pub fn request(&mut self, command: Command) -> (RequestId, Effects) {
        let id = self.ids.request();
        let request = Request { session: None, id: id.clone(), command };
        let reading =
            AssertUnwindSafe(|| attachments::read(request, || self.session.attached_bytes()));
        let input = match catch_unwind(reading) {
            Ok(Ok(request)) => {
                self.prepare_engine(&request);
                Input::Request(request)
            }
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => {
                let fault = RequestFault::Internal { detail: panic_text(panic.as_ref()) };
                Input::BadLine(BadLine { id: Some(id.clone()), fault })
            }
        };
        (id, self.handle(input))
    }

    /// Handles an input. A run that it starts or stops is started or stopped here. With a store,
    /// the effects come from [`Host::next`] once what they show is stored.
    pub fn handle(&mut self, input: Input) -> Effects {
        if self.keeping.is_opening() {
            match input {
                Input::Interrupted(_) | Input::ReaderGone | Input::Refused(_) => {
                    self.keeping.abandon();
                }
                Input::Request(_)
                | Input::BadLine(_)
                | Input::InputEnded
                | Input::InputFailed { .. }
                | Input::Task(..)
                | Input::DeadlineReached
                | Input::ServerChanged(_)
                | Input::Restored(_)
                | Input::StoreFailed(_) => {
                    self.keeping.wait(input);
                    return Effects::default();
                }
            }
        }
        self.take(input, None)
    }

    /// Has the session handle an input; `first` is an effect that comes before those of the input.
    fn take(&mut self, input: Input, first: Option<Effect>) -> Effects {
        let effects = self.decide(input, first);
        if effects.list.iter().any(|effect| matches!(effect, Effect::Abort(_))) {
            self.keeping.abandon();
        }
        self.keeping.hold(effects)
    }

    fn decide(&mut self, input: Input, first: Option<Effect>) -> Effects {
        input_log::input(&input);
        let at = self.uptime();
        let outputs = self.session.handle(at, input);
        let decided = outputs.into_iter().filter_map(|output| self.perform(output));
        let list = first.into_iter().chain(decided).collect();
        Effects { at, list }
    }

    /// Waits for the next event that is not a request: an event of the engine, or its end, which comes after all
    /// its events; the result of a tool; a change of a tool server; a deadline. May be dropped at any
    /// time; nothing is lost.
    ///
    /// If there is no room for the effects (`has_room`), it never ends: the engine goes on as far as
    /// its sink takes events, tools go on to their results, and deadlines wait, so that no limit counts
    /// the time of the reader.
    pub async fn next(&mut self, has_room: bool) -> Effects {
        if self.has_servers && !self.are_servers_started {
            self.are_servers_started = true;
            self.servers.start();
        }
        if let Err(error) = self.keeping.send(self.session.id()) {
            return self.store_unable(&error.to_string());
        }
        if let Some(effects) = self.keeping.take_ready() {
            return effects;
        }
        let has_room = has_room && !self.keeping.is_behind() && !self.keeping.is_opening();
        let deadline = self.session.deadline().map(|at| self.started + Duration::from_millis(at.0));
        let Self { tasks, servers, has_servers, keeping, .. } = self;
        let input = tokio::select! {
            biased;
            report = keeping.report() => return self.reported(report),
            step = poll_fn(|context| tasks.poll_next(context, has_room)) => return self.step(step),
            change = servers.changed(), if *has_servers && has_room => Input::ServerChanged(change),
            () = sleep_until(deadline), if has_room => Input::DeadlineReached,
        };
        self.handle(input)
    }

    /// The effects of the engine's next event or its end, if it has come already.
    pub fn try_next(&mut self) -> Option<Effects> {
        if let Some(effects) = self.keeping.take_ready() {
            return Some(effects);
        }
        if self.keeping.is_behind() {
            return None;
        }
        let step = self.tasks.try_next()?;
        Some(self.step(step))
    }

    /// Cancels all tasks without reporting it: for a front end that can't give
    /// its reader anything more.
    pub fn abandon_run(&mut self) {
        self.tasks.cancel_all();
    }

    /// Ends the tool servers, and closes the store, within a few seconds.
    pub async fn close(&mut self) {
        self.tasks.cancel_all();
        let Self { servers, keeping, session, .. } = self;
        let servers = async {
            if self.are_servers_started {
                servers.close().await;
            }
        };
        tokio::join!(servers, keeping.close(session.id()));
    }

    /// What the store reports.
    fn reported(&mut self, report: Report) -> Effects {
        match report {
            Report::Opened(Ok(restored)) => {
                self.keeping.opened();
                let loss = restored.as_ref().and_then(|it| it.loss.as_ref());
                let warning = loss.map(|loss| {
                    warning(if loss.is_closed { FAILED } else { DEGRADED }, &loss.reason)
                });
                let restored = restored.map(Input::Restored);
                let inputs = restored.into_iter().chain(self.keeping.take_early());
                let inputs: Vec<_> = inputs.collect();
                let at = self.uptime();
                let list = inputs.into_iter().flat_map(|input| self.decide(input, None).list);
                let list = warning.into_iter().chain(list).collect();
                self.keeping.hold(Effects { at, list })
            }
            Report::Opened(Err(client_error)) => {
                self.keeping.abandon();
                self.take(Input::Refused(client_error), None)
            }
            Report::Written(Ok(())) => {
                self.keeping.written();
                self.keeping.take_ready().unwrap_or_default()
            }
            Report::Written(Err(failure)) => self.store_failed(failure),
            Report::Closed => Effects::default(),
        }
    }

    /// The store has no thread.
    fn store_unable(&mut self, reason: &str) -> Effects {
        let reason = format!("the conversation can't be stored: {reason}");
        if !self.keeping.is_opening() {
            return self.store_failed(StoreFailure { reason, first_missing: None });
        }
        self.keeping.abandon();
        let detail = String::new();
        let error =
            ClientError { code: Code::StoreFailed, message: reason, detail, terminal: true };
        self.take(Input::Refused(error), None)
    }

    /// Nothing more is stored. The error comes before the frames that are not, and the event, which
    /// has an ordinal of its own, after them.
    fn store_failed(&mut self, failure: StoreFailure) -> Effects {
        self.keeping.give_up();
        let warning = warning(FAILED, &failure.reason);
        let Effects { at, list } = self.decide(Input::StoreFailed(failure), Some(warning));
        let (errors, events) = list.into_iter().partition(is_error);
        let events = self.keeping.hold(Effects { at, list: events });
        if events.list.is_empty() {
            self.keeping.put_first(Effects { at, list: errors });
            return self.keeping.take_ready().unwrap_or_default();
        }
        Effects { at, list: errors.into_iter().chain(events.list).collect() }
    }

    fn step(&mut self, (task, event): Step) -> Effects {
        let usage = match &event {
            TaskEvent::Engine(EngineEvent::Usage(usage)) => Some(Effect::Usage(*usage)),
            TaskEvent::Engine(_) | TaskEvent::CallEnded(_) | TaskEvent::ToolEnded(_) => None,
        };
        // Before the frames: a format may need the counts for them.
        self.take(Input::Task(task, event), usage)
    }

    fn perform(&mut self, output: Output) -> Option<Effect> {
        match output {
            Output::Persist(record) => self.keeping.record(record),
            Output::Frame(frame) => return Some(Effect::Frame(frame)),
            Output::StartCall(task, spec) => {
                tracing::info!(%task, tools = spec.tools.len(), "a provider call starts");
                let fault = std::mem::take(&mut self.engine_fault);
                self.tasks.start_call(&self.engines, task, spec, fault);
            }
            Output::StartTool(task, call) => {
                let ServerCall { server, tool, arguments, .. } = call;
                tracing::info!(%task, %server, tool, "a tool call starts");
                let running = self.servers.call(&server, &tool, arguments);
                self.tasks.start_tool(task, Box::pin(running));
            }
            Output::CancelTask(task) => {
                tracing::info!(%task, "the task is cancelled");
                self.tasks.cancel(task);
            }
            Output::Warning(warning) => tracing::warn!("{}", escape_control(&warning)),
            Output::Exit(code) => return Some(Effect::Exit(code)),
            Output::Abort(code) => return Some(Effect::Abort(code)),
        }
        None
    }
}

/// Nothing more is stored.
const FAILED: &str = code::STORE_FAILED;

/// Not everything could be read.
const DEGRADED: &str = "store_degraded";

fn warning(code: &'static str, message: &str) -> Effect {
    Effect::StoreWarning(StoreWarning { code, message: message.to_owned() })
}

/// Whether it comes before what waited for the store.
fn is_error(effect: &Effect) -> bool {
    match effect {
        Effect::Frame(frame) => matches!(frame.frame, Some(Body::Error(_))),
        Effect::StoreWarning(_) => true,
        Effect::Usage(_) | Effect::Exit(_) | Effect::Abort(_) => false,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
