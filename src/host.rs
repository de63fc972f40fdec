//! One conversation without a way in or out: owns the session, the engine, the tool servers, the
//! tasks, the ids and the clock. A front end hands over what happens and performs the effects that
//! come back, in order. The host knows no pipe and no descriptor of a front end: the engine and the
//! calls of tools go on while [`Host::next`] is awaited. Tool servers have tokio tasks of their own.
//!
//! | module | what it is |
//! |---|---|
//! | [`memory`] | the front end in memory |
//! | `supervisor` | the edge around the session: a panic in it ends the conversation |
//! | `requests`, `misplaced`, `input_log` | decodes lines; warns of members in a wrong place; logs inputs |
//! | `files`, `resources`, `attachments` | reads the files of requests in threads, as far as a [`FilePolicy`] allows; asks tool servers for resources; checks both |
//! | `starts`, `tasks`, `observations` | holds tasks back until what led to them is stored; polls the engine and the calls of tools; tells metrics and traces of them |
//! | `persist_gate`, `storing` | holds effects back until what they show is stored; acts on the store's reports |
//! | `effects`, `heartbeats` | what a front end performs; signs of life while a run is silent |

pub mod memory;

pub(crate) mod attachments;
mod effects;
mod files;
mod heartbeats;
mod input_log;
mod misplaced;
mod observations;
mod persist_gate;
mod requests;
mod resources;
mod starts;
mod storing;
mod supervisor;
mod tasks;

use crate::conversation::event::ToolResult;
use crate::engine::{EngineEvent, Engines};
#[cfg(feature = "serve")]
use crate::protocol::command::Command;
#[cfg(feature = "serve")]
use crate::protocol::id::RequestId;
use crate::protocol::id::{Ids, TaskId, ToolCallId};
use crate::protocol::wire::Frame;
#[cfg(feature = "serve")]
use crate::session::Question;
use crate::session::{
    Input, Output, Retention, Rules, Session, Signal, TaskEvent, Uptime, Warning,
};
use crate::store::{OpenMode, StoreSettings};
use crate::support::fail_point::{FailPoint, Faults, Place};
use crate::support::log_targets::EVENT;
use crate::support::terminal::escape_control;
use crate::support::time_limit::put_off;
use crate::support::{millis, sleep_until};
use crate::tool::servers::ToolServers;
pub use effects::{CodedWarning, Effect, Effects};
pub use files::FilePolicy;
use files::FileReads;
use heartbeats::Heartbeats;
pub(crate) use input_log::input as log_input;
use observations::Observations;
pub use observations::{Observation, Observed};
use persist_gate::PersistGate;
use starts::{Start, Starts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{poll_fn, ready};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use supervisor::Supervisor;
use tasks::{TaskReport, Tasks};
use tokio::time::Instant;

/// How a conversation behaves and which engine answers.
#[derive(Debug)]
pub struct HostSettings {
    /// How the session behaves.
    pub rules: Rules,
    /// The engine that answers, and those that requests can choose.
    pub engines: Engines,
    /// The servers whose tools the model may call. They are started when [`Host::next`] is awaited
    /// for the first time, unless they are to wait for the first prompt.
    pub servers: ToolServers,
    /// Where the conversation is stored; `None` if it is not. The store is opened when
    /// [`Host::next`] is awaited for the first time.
    pub store: Option<StoreSettings>,
    /// Which files of this machine a request may name. None, unless the program says otherwise: its
    /// clients may be on other machines.
    pub files: FilePolicy,
    /// The capabilities of the front end, for `hello`.
    pub capabilities: Vec<String>,
    /// 128 random bits, from which ids are made.
    pub seed: u128,
    /// A planted failure, for tests.
    pub faults: Faults,
}

/// A conversation and the run that answers in it.
#[derive(Debug)]
pub struct Host {
    started: Instant,
    supervisor: Supervisor,
    engines: Engines,
    servers: ToolServers,
    has_servers: bool,
    servers_start: ServersStart,
    ids: Ids,
    tasks: Tasks,
    starts: Starts,
    file_reads: FileReads,
    /// Inputs that wait: for the store to be opened, or for the files of a request before them.
    waiting: VecDeque<Input>,
    /// Names of misplaced members that were reported.
    reported_members: BTreeSet<String>,
    persist_gate: PersistGate,
    /// A deadline that came while the process stood still, and when it is acted on: a result, or a request with an
    /// answer, may have arrived before it.
    put_off: Option<(Instant, Instant)>,
    heartbeats: Heartbeats,
    observations: Observations,
    late_signal: Option<Signal>,
    decode_fault: FailPoint,
    engine_fault: FailPoint,
}

/// When the tool servers start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServersStart {
    /// With the first request that may call their tools or read their resources.
    #[cfg(feature = "serve")]
    WithPrompt,
    /// As soon as the host is waited for.
    Due,
    Begun,
}

impl HostSettings {
    /// Default rules, no capabilities, no files and a seed from the system's randomness.
    pub fn new(engines: impl Into<Engines>) -> Self {
        Self {
            rules: Rules::default(),
            engines: engines.into(),
            servers: ToolServers::default(),
            store: None,
            files: FilePolicy::None,
            capabilities: Vec::new(),
            seed: uuid::Uuid::new_v4().as_u128(),
            faults: Faults::default(),
        }
    }
}

impl Host {
    /// A new conversation, and its first frames.
    pub fn new(settings: HostSettings) -> (Self, Vec<Frame>) {
        let HostSettings {
            mut rules,
            mut engines,
            servers,
            store,
            files,
            capabilities,
            seed,
            faults,
        } = settings;
        if let Some(store) = &store {
            rules.log.is_stored = true;
            rules.log.may_resume = store.mode != OpenMode::New;
            // The store has exactly the retained part of a run.
            rules.retention = Retention::Everything;
        }
        let persist_gate = PersistGate::new(store, rules.session.is_some(), faults.clone());
        rules.tools.servers = servers.names().cloned().collect();
        if let Some(choice) = &rules.choice {
            engines.prepare(choice);
        }
        rules.engines = engines.facts();
        let has_servers = !rules.tools.servers.is_empty();
        let mode = rules.mode;
        let mut session = Session::new(rules, seed);
        session.plant(faults.at(Place::Project));
        let greeting = session.greeting(capabilities);
        let heartbeats = Heartbeats::new(session.has_heartbeats());
        let host = Self {
            started: Instant::now(),
            supervisor: Supervisor::new(session, mode),
            engines,
            servers,
            has_servers,
            servers_start: ServersStart::Due,
            // Other ids than the session's, from the same seed.
            ids: Ids::new(!seed),
            tasks: Tasks::default(),
            starts: Starts::default(),
            file_reads: FileReads::new(files),
            waiting: VecDeque::new(),
            reported_members: BTreeSet::new(),
            persist_gate,
            put_off: None,
            heartbeats,
            observations: Observations::default(),
            late_signal: None,
            decode_fault: faults.at(Place::Decode),
            engine_fault: faults.at(Place::Engine),
        };
        (host, greeting)
    }

    /// The state before the first request, for a front end that is not shown it with the first frames;
    /// that of a stored session follows once it is loaded.
    pub(crate) fn beginning_state(&self) -> Option<Frame> {
        self.supervisor.session()?.beginning_state()
    }

    /// Time since the host was made.
    pub fn uptime(&self) -> Uptime {
        Uptime(millis(self.started.elapsed()))
    }

    /// The active provider call.
    pub fn active_call(&self) -> Option<TaskId> {
        self.tasks.active_call()
    }

    /// Handles an input. A run that it starts or stops is started or stopped here. With a store,
    /// the effects come from [`Host::next`] once what they show is stored.
    pub fn handle(&mut self, input: Input) -> Effects {
        let effects = self.handle_input(input);
        self.given(effects)
    }

    fn handle_input(&mut self, input: Input) -> Effects {
        self.supervisor.note_request(&input);
        if let Input::Interrupted(signal) = input {
            let is_first = self.persist_gate.hurry();
            let is_over = !self.is_open() && self.persist_gate.has_waiting();
            if is_first && is_over {
                input_log::input(&input);
                self.late_signal = Some(signal);
                return Effects::default();
            }
        }
        if !self.must_wait() {
            return self.take(input, None);
        }
        if let Input::Interrupted(_) | Input::ReaderGone | Input::Refused(_) = input {
            return self.take_now(input);
        }
        self.waiting.push_back(input);
        Effects::default()
    }

    /// The signal that arrived after the last run, while the gate held its frames: they are still released,
    /// within the time that the store has after a signal, and a second signal aborts.
    pub(crate) fn late_signal(&self) -> Option<Signal> {
        self.late_signal
    }

    /// Has the session handle an input; `first` is an effect before those of the input.
    fn take(&mut self, input: Input, first: Option<Effect>) -> Effects {
        let effects = self.decide(input, first);
        if effects.list.iter().any(|effect| matches!(effect, Effect::Abort(_))) {
            self.persist_gate.abandon();
        }
        self.persist_gate.hold(effects)
    }

    fn decide(&mut self, input: Input, first: Option<Effect>) -> Effects {
        input_log::input(&input);
        let at = self.uptime();
        let outputs = self.supervisor.handle(at, input, self.persist_gate.can_resume());
        // A store holds thousands of such lists: they are no longer than they must be.
        let is_record = |output: &&Output| matches!(output, Output::Persist(_));
        let records = outputs.iter().filter(is_record).count();
        let mut list = Vec::new();
        list.reserve_exact(outputs.len() - records + usize::from(first.is_some()));
        list.extend(first);
        list.extend(outputs.into_iter().filter_map(|output| self.perform(output)));
        Effects { at, list }
    }

    /// Waits for the next event that is not a request: an event of the engine, or its end, which comes after all
    /// its events; the result of a tool; a change of a tool server; a deadline; the files of a request, or
    /// a request that waited for them. Cancel-safe.
    ///
    /// If there is no room for the effects (`has_room`), it ends for files alone: the engine goes on as far as
    /// its sink takes events, tools go on to their results, and deadlines wait, so that no limit counts
    /// the time of the reader.
    pub async fn next(&mut self, has_room: bool) -> Effects {
        let effects = self.go_on(has_room).await;
        self.given(effects)
    }

    async fn go_on(&mut self, has_room: bool) -> Effects {
        if self.has_servers && self.servers_start == ServersStart::Due {
            self.servers_start = ServersStart::Begun;
            self.servers.start();
        }
        let mut may_wait = true;
        loop {
            if self.persist_gate.is_due(may_wait)
                && let Err(error) = self.persist_gate.send(self.supervisor.id())
            {
                return self.store_unable(&error.to_string());
            }
            if let Some(effects) = self.persist_gate.take_ready() {
                return effects;
            }
            if let Some(effects) = self.take_waiting() {
                return effects;
            }
            let holds_until = self.file_reads.holds_until();
            let is_open = !self.persist_gate.is_behind() && !self.persist_gate.is_opening();
            let heartbeat = self.next_heartbeat().filter(|_| has_room);
            let heartbeat = heartbeat.map(|at| self.started + Duration::from_millis(at.0));
            let has_room = has_room && is_open && holds_until.is_none();
            let deadline = self.supervisor.session().and_then(Session::deadline);
            let deadline = deadline.map(|at| self.started + Duration::from_millis(at.0));
            let put_off = self.put_off.filter(|(at, _)| Some(*at) == deadline);
            let due = put_off.map_or(deadline, |(_, later)| Some(later));
            let store_deadline = self.persist_gate.deadline();
            let Self { tasks, servers, has_servers, persist_gate, file_reads, .. } = self;
            let is_unsent = persist_gate.is_due(false);
            let input = tokio::select! {
                biased;
                report = persist_gate.report() => return self.reported(report),
                () = sleep_until(store_deadline) => return self.store_out_of_time(),
                (task, outcome) = file_reads.next() => return self.files_read(task, outcome),
                () = sleep_until(holds_until) => continue,
                // Before the result of a call that failed with its server: that may end the last run.
                change = servers.changed(), if *has_servers && has_room => {
                    Input::ServerChanged(change)
                }
                step = poll_fn(|context| tasks.poll_next(context, has_room)) => {
                    return self.step(step);
                }
                () = sleep_until(due), if has_room => {
                    if put_off.is_none() && self.puts_off(deadline) {
                        continue;
                    }
                    Input::DeadlineReached
                }
                () = sleep_until(heartbeat) => return self.heartbeat(),
                // No other work can add records to the batch now.
                () = ready(()), if is_unsent => {
                    may_wait = false;
                    continue;
                }
            };
            return self.handle_input(input);
        }
    }

    /// Puts a deadline off, once, if the process stood still when it came.
    fn puts_off(&mut self, deadline: Option<Instant>) -> bool {
        self.put_off = deadline.and_then(|at| Some((at, put_off(at)?)));
        self.put_off.is_some()
    }

    /// The session; `None` after a panic in it.
    #[cfg(test)]
    pub(crate) fn session(&self) -> Option<&Session> {
        self.supervisor.session()
    }

    /// Tokens that the model can be sent at most, if that is known: no frame has them.
    pub(crate) fn context_tokens(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.supervisor.session()?.context_tokens()?)
    }

    /// The system prompt; of a conversation that goes on, once it is loaded: no frame has it.
    pub(crate) fn system(&self) -> Option<&str> {
        self.supervisor.session()?.system()
    }

    /// The last message of a run that has finished, where the rules keep it.
    pub(crate) fn last_message(&self) -> Option<String> {
        self.supervisor.session()?.last_message().map(str::to_owned)
    }

    /// The request of the active run, and its calls of tools that wait for a client, if there are some.
    #[cfg(feature = "serve")]
    pub(crate) fn questions(&self) -> Option<(RequestId, Vec<Question>)> {
        self.supervisor.session()?.questions()
    }

    /// The tool servers, for what a person takes from them.
    pub(crate) fn servers(&self) -> &ToolServers {
        &self.servers
    }

    /// Starts the tool server of this name again; `None` if there is none. The next run waits for it, as the
    /// session knows of it before any other request.
    pub(crate) fn restart_server(&mut self, name: &str) -> Option<Effects> {
        let mut effects = self.servers.restart(name).then(Effects::default)?;
        while let Some(change) = self.servers.try_changed() {
            let Effects { at, list } = self.handle(Input::ServerChanged(change));
            effects.at = at;
            effects.list.extend(list);
        }
        Some(effects)
    }

    /// Whether the store is not open yet, or the session not loaded. Inputs wait for that.
    pub(crate) fn is_opening(&self) -> bool {
        self.persist_gate.is_opening()
    }

    /// Whether the session was in the store before it was opened.
    #[cfg(feature = "serve")]
    pub(crate) fn is_resumed(&self) -> bool {
        self.persist_gate.is_resumed()
    }

    /// Whether the run of this request is known by the log, so that the request is answered and not run again.
    #[cfg(feature = "serve")]
    pub(crate) fn has_answered(&self, id: &RequestId, command: &Command) -> bool {
        self.supervisor.session().is_some_and(|session| session.answered(id, command).is_some())
    }

    /// Waits until the store is open, and a session that has its id is locked and loaded; the effects have
    /// its snapshot, or the error and the exit of a conversation that can't be used. Starts nothing else.
    /// Cancel-safe.
    pub(crate) async fn opened(&mut self) -> Effects {
        if !self.persist_gate.is_opening() {
            return Effects::default();
        }
        if let Err(error) = self.persist_gate.send(self.supervisor.id()) {
            return self.store_unable(&error.to_string());
        }
        let report = self.persist_gate.report().await;
        let effects = self.reported(report);
        self.given(effects)
    }

    /// The effects of the engine's next event or its end, if it has come already.
    pub fn try_next(&mut self) -> Option<Effects> {
        let effects = self.try_go_on()?;
        Some(self.given(effects))
    }

    fn try_go_on(&mut self) -> Option<Effects> {
        if let Some(effects) = self.persist_gate.take_ready() {
            return Some(effects);
        }
        if self.persist_gate.is_behind() || self.must_wait() {
            return None;
        }
        let step = self.tasks.try_next()?;
        Some(self.step(step))
    }

    /// The results of tools that have images, by their calls: no frame has those.
    pub(crate) fn results_with_images(&self) -> BTreeMap<ToolCallId, Arc<ToolResult>> {
        self.supervisor.results_with_images()
    }

    /// Cancels all tasks without reporting it: for a front end that can't give
    /// its reader anything more.
    pub fn abandon_run(&mut self) {
        self.starts.cancel_all();
        self.tasks.cancel_all();
        self.file_reads.cancel_all();
    }

    /// Ends the tool servers, and closes the store, within a few seconds.
    pub async fn close(&mut self) {
        self.abandon_run();
        let Self { servers, persist_gate, supervisor, .. } = self;
        let servers = async {
            if self.servers_start == ServersStart::Begun {
                servers.close().await;
            }
        };
        tokio::join!(servers, persist_gate.close(supervisor.id()));
    }

    fn step(&mut self, report: TaskReport) -> Effects {
        self.observations.before(&report);
        let (task, event) = report;
        let outcome = observations::outcome(&event);
        let before = match &event {
            TaskEvent::Engine(EngineEvent::Usage(usage)) => Some(Effect::Usage(*usage)),
            TaskEvent::ToolEnded(ToolResult::WithImages { images, .. }) => {
                Some(Effect::ToolImages(Arc::clone(images)))
            }
            TaskEvent::Engine(_)
            | TaskEvent::CallEnded(_)
            | TaskEvent::ToolProgressed(_)
            | TaskEvent::ToolEnded(ToolResult::Success(_) | ToolResult::Error(_)) => None,
        };
        // Before the frames, for which a front end may need it.
        let effects = self.take(Input::Task(task, event), before);
        if let Some(error) = outcome {
            self.observations.ended(task, error, self.supervisor.session());
        }
        effects
    }

    fn perform(&mut self, output: Output) -> Option<Effect> {
        match output {
            Output::Persist(record) => self.persist_gate.record(record),
            Output::Frame(frame) => return Some(Effect::Frame(frame)),
            Output::StartCall(task, spec) => self.start(Start::Call(task, spec)),
            Output::StartTool(task, call) => self.start(Start::Tool(task, call)),
            Output::CancelTask(task) => {
                tracing::info!(%task, "the task is cancelled");
                if !self.starts.cancel(task) {
                    self.observations.cancelled(task);
                    self.tasks.cancel(task);
                    self.file_reads.cancel(task);
                }
            }
            Output::ReadFiles(task, attachments) => {
                let held_bytes = self.supervisor.attached_bytes();
                tracing::info!(%task, attachments = attachments.len(), "files are read");
                let resources = resources::read(attachments, &self.servers);
                self.file_reads.start(task, resources, held_bytes);
            }
            Output::Warning(Warning { text, has_event, code }) => {
                match has_event {
                    true => tracing::warn!(target: EVENT, "{}", escape_control(&text)),
                    false => tracing::warn!("{}", escape_control(&text)),
                }
                return code.map(|code| Effect::Warning(CodedWarning { code, message: text }));
            }
            Output::Exit(code) => return Some(self.exit(Effect::Exit(code))),
            Output::Abort(code) => return Some(self.exit(Effect::Abort(code))),
        }
        None
    }

    /// Cancels the tasks of a conversation that has ended, also if it could not report its end.
    fn exit(&mut self, effect: Effect) -> Effect {
        self.abandon_run();
        effect
    }
}

#[cfg(test)]
mod tests;
