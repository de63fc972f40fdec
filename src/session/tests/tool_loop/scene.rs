//! Short names for what can happen around tools, and a session that they are made into inputs for.

use super::contract::{Call, Contract};
use crate::conversation::event::{FinishClass, ToolCall, ToolResult};
use crate::conversation::patch::PatchMode;
use crate::protocol::command::{
    Approve, Cancel, ClientToolResult, Command, Decision, Extension, ModelChoice, Page, Prompt,
    Submit,
};
use crate::protocol::id::{RequestId, TaskId, ToolCallId};
use crate::protocol::wire::Request;
use crate::session::approval::{ApprovalRules, ToolGlob};
use crate::session::tests::scene::{self, client_tools, server, server_tools};
use crate::session::tests::sequences::Play;
use crate::session::{
    FinalSnapshot, Input, OnBusy, Output, Rules, Session, Signal, TaskEvent, ToolRules, Uptime,
};
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, RunError, Stage};
use crate::task::server::ServerState;
use anyhow::{Context, Result, ensure};
use std::fmt::Debug;

/// Something that happens. What it is about, as "the first call that waits", is looked up when it
/// does; if there is no such thing, it is about one that never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session::tests) enum Symbol {
    Submit,
    /// A submit that names a model.
    SubmitChosen,
    /// Another model from the next submit on.
    Switch,
    /// A submit for the live run.
    Steer,
    /// A submit for a run that never was.
    SteerGhost,
    Cancel,
    CancelRun,
    CancelGhost,
    /// A cancel of the newest submit that waits.
    CancelNewest,
    CancelWaiting,
    Snapshot,
    Shutdown,
    EndOfInput,
    Signal,
    ReaderGone,
    Text,
    /// The model calls these tools, and its answer ends.
    Calls(&'static [&'static str]),
    /// The model calls a tool with arguments that are no JSON.
    OddCall,
    /// The model begins a call, and its answer ends.
    HalfCall,
    Ended,
    Failed,
    /// The tool that was started first returns.
    FirstReturns,
    LastReturns,
    /// A tool that ran before returns once more.
    StaleReturns,
    Approve(Choice),
    /// The last call that waits for approval is approved.
    ApproveLast,
    /// A call that was approved or answered before, or waits for something else.
    ApproveOther,
    ClientAnswers,
    LastClientAnswers,
    /// A call that was answered before, or waits for something else.
    ClientAnswersOther,
    /// It is the session's deadline.
    Deadline,
    /// A deadline is reported too early.
    EarlyDeadline,
    ServerReady,
    ServerFailed,
    ServerGone,
    Declare,
    Undeclare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session::tests) enum Choice {
    Once,
    Session,
    Deny,
}

/// Whatever takes inputs as a session does.
pub(in crate::session::tests) trait Machine: Clone + Debug {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output>;
    fn deadline(&self) -> Option<Uptime>;
}

impl Machine for Session {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        Self::handle(self, now, input)
    }

    fn deadline(&self) -> Option<Uptime> {
        Self::deadline(self)
    }
}

#[derive(Clone)]
pub(in crate::session::tests) struct Scene<M> {
    machine: M,
    pub(super) contract: Contract,
    now: Uptime,
    /// Inputs so far; names what they bring.
    steps: u32,
    stale_tool: TaskId,
    /// A call that has its result.
    old_call: String,
}

/// Rules with a server whose tool `read` may run, `write` needs approval and `drop` is denied.
pub(in crate::session::tests) fn rules() -> Rules {
    let globs = |text: &str| vec![ToolGlob::new(text)];
    let approval =
        ApprovalRules { allow: globs("read"), deny: globs("drop"), ..ApprovalRules::default() };
    let tools = ToolRules {
        servers: vec![server()],
        approval,
        call_ms: 1_000,
        ask_ms: 5_000,
        start_ms: 100,
        ..ToolRules::default()
    };
    Rules {
        tools,
        extensions: [Extension::Approvals, Extension::ToolServers].into(),
        ..scene::rules(OnBusy::Queue, PatchMode::Append, FinalSnapshot::None)
    }
}

impl<M: Machine> Scene<M> {
    /// A scene with whatever `wrap` makes of the session.
    pub(in crate::session::tests) fn with(rules: Rules, wrap: impl FnOnce(Session) -> M) -> Self {
        let session = Session::new(rules.clone(), 1);
        let contract = Contract::new(&rules, &session);
        let stale_tool = TaskId(u64::MAX);
        let old_call = "never".to_owned();
        Self { machine: wrap(session), contract, now: Uptime(0), steps: 0, stale_tool, old_call }
    }

    pub(in crate::session::tests) fn into_machine(self) -> M {
        self.machine
    }

    pub(in crate::session::tests) fn is_closed(&self) -> bool {
        self.contract.ledger.is_closed()
    }

    pub(super) fn has_call(&self) -> bool {
        self.contract.ledger.call().is_some()
    }

    pub(super) fn has_tools(&self) -> bool {
        !self.contract.ledger.tools().is_empty()
    }

    pub(super) fn asks(&self) -> bool {
        self.contract.calls.iter().any(Call::is_asked)
    }

    pub(super) fn waits_for_client(&self) -> bool {
        self.contract.calls.iter().any(|call| call.waits_for_client)
    }

    pub(super) fn has_deadline(&self) -> bool {
        self.machine.deadline().is_some()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are one input")]
    pub(in crate::session::tests) fn play(&mut self, symbol: Symbol) -> Result<()> {
        match symbol {
            Symbol::Calls(names) => {
                let ids: Vec<_> =
                    (0..names.len()).map(|at| format!("c{}-{at}", self.steps)).collect();
                for (id, name) in ids.iter().zip(names) {
                    self.begin_call(id, name, "{}")?;
                }
                // Models write between their calls, and after them.
                for id in ids {
                    self.engine(EngineEvent::ToolCallRequested { id: ToolCallId(id) })?;
                    self.engine(EngineEvent::Text(format!("after call {}. ", self.steps)))?;
                }
                self.end_call(CallEnd::Finished)
            }
            Symbol::OddCall => {
                let id = format!("c{}", self.steps);
                self.begin_call(&id, "read", "{\"a\":")?;
                self.engine(EngineEvent::ToolCallRequested { id: ToolCallId(id) })?;
                self.end_call(CallEnd::Finished)
            }
            Symbol::HalfCall => {
                let id = format!("c{}", self.steps);
                self.begin_call(&id, "read", "{")?;
                self.end_call(CallEnd::Finished)
            }
            Symbol::Ended => {
                let (stop_reason, class) = ("stop".to_owned(), FinishClass::Completed);
                let provider_data = None;
                self.engine(EngineEvent::CallFinished { stop_reason, class, provider_data })?;
                self.end_call(CallEnd::Finished)
            }
            Symbol::Failed => {
                let (message, detail) = ("the connection broke".to_owned(), String::new());
                let (stage, class) = (Stage::Run, ErrorClass::Network);
                self.end_call(CallEnd::Failed(RunError { stage, class, message, detail }))
            }
            Symbol::Text => {
                let text = format!("text {}. ", self.steps);
                self.engine(EngineEvent::Text(text))
            }
            symbol => {
                let input = self.input(symbol);
                self.step(input)
            }
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, input: &str) -> Result<()> {
        let id = ToolCallId(id.to_owned());
        let tool = ToolCall { id: id.clone(), name: name.to_owned() };
        self.engine(EngineEvent::ToolCallStarted(tool))?;
        self.engine(EngineEvent::ToolArguments { id, text: input.to_owned() })
    }

    fn engine(&mut self, event: EngineEvent) -> Result<()> {
        let call = self.contract.ledger.call().unwrap_or(TaskId(u64::MAX));
        self.step(Input::Task(call, TaskEvent::Engine(event)))
    }

    fn end_call(&mut self, end: CallEnd) -> Result<()> {
        let call = self.contract.ledger.call().unwrap_or(TaskId(u64::MAX));
        self.step(Input::Task(call, TaskEvent::CallEnded(end)))
    }

    fn step(&mut self, input: Input) -> Result<()> {
        self.steps += 1;
        self.now.0 += 1;
        if let Input::Task(task, TaskEvent::ToolEnded(_)) = input {
            self.stale_tool = task;
        }
        let open = self.contract.calls.iter().map(|call| call.id.clone()).next_back();
        self.old_call = open.unwrap_or_else(|| self.old_call.clone());
        let outputs = self.machine.handle(self.now, input.clone());
        let deadline = self.machine.deadline();
        let watched = self.contract.watch(self.now, &input, &outputs, deadline);
        watched.with_context(|| format!("{input:?}"))
    }

    fn input(&mut self, symbol: Symbol) -> Input {
        let run = self.contract.ledger.run().unwrap_or("over").to_owned();
        let tools = self.contract.ledger.tools();
        let (first, last) = (tools.first().copied(), tools.last().copied());
        match symbol {
            Symbol::Submit => self.submit(None),
            Symbol::SubmitChosen => {
                let prompt = Prompt::new(format!("prompt {}.", self.steps)).expect("a prompt");
                let choice = Some(Box::new(self.choice()));
                self.request(Command::Submit(Submit { choice, ..Submit::new(prompt) }))
            }
            Symbol::Switch => self.request(Command::SwitchModel(self.choice())),
            Symbol::Steer => self.submit(Some(&run)),
            Symbol::SteerGhost => self.submit(Some("ghost")),
            Symbol::Cancel => self.cancel(None, false),
            Symbol::CancelRun => self.cancel(Some(&run), false),
            Symbol::CancelGhost => self.cancel(Some("ghost"), false),
            Symbol::CancelNewest => {
                let newest = self.contract.submits.last().map(|submit| submit.id.clone());
                self.cancel(Some(&newest.unwrap_or(run)), false)
            }
            Symbol::CancelWaiting => self.cancel(None, true),
            Symbol::Snapshot => self.request(Command::Snapshot(Page::default())),
            Symbol::Shutdown => self.request(Command::Shutdown),
            Symbol::EndOfInput => Input::InputEnded,
            Symbol::Signal => Input::Interrupted(Signal::Terminate),
            Symbol::ReaderGone => Input::ReaderGone,
            Symbol::FirstReturns => self.returns(first),
            Symbol::LastReturns => self.returns(last),
            Symbol::StaleReturns => self.returns(None),
            Symbol::Approve(choice) => {
                let asked = self.contract.calls.iter().find(|call| call.is_asked());
                self.approve(asked.map(|call| call.id.clone()), choice)
            }
            Symbol::ApproveLast => {
                let asked = self.contract.calls.iter().rfind(|call| call.is_asked());
                self.approve(asked.map(|call| call.id.clone()), Choice::Once)
            }
            Symbol::ApproveOther => {
                let other = self.contract.calls.iter().find(|call| !call.is_asked());
                self.approve(other.map(|call| call.id.clone()), Choice::Once)
            }
            Symbol::ClientAnswers => {
                let waits = self.contract.calls.iter().find(|call| call.waits_for_client);
                self.client_answers(waits.map(|call| call.id.clone()))
            }
            Symbol::LastClientAnswers => {
                let waits = self.contract.calls.iter().rfind(|call| call.waits_for_client);
                self.client_answers(waits.map(|call| call.id.clone()))
            }
            Symbol::ClientAnswersOther => {
                let other = self.contract.calls.iter().find(|call| !call.waits_for_client);
                self.client_answers(other.map(|call| call.id.clone()))
            }
            Symbol::Deadline => {
                self.now = self.machine.deadline().unwrap_or(self.now).max(self.now);
                Input::DeadlineReached
            }
            Symbol::EarlyDeadline => Input::DeadlineReached,
            Symbol::ServerReady => server_tools(ServerState::Ready, &["read", "write", "drop"]),
            Symbol::ServerFailed => {
                server_tools(ServerState::Failed { reason: "it is not there".to_owned() }, &[])
            }
            Symbol::ServerGone => {
                server_tools(ServerState::Gone { reason: "it ended".to_owned() }, &[])
            }
            Symbol::Declare => {
                self.request(Command::DeclareTools(client_tools(&["auto", "human"])))
            }
            Symbol::Undeclare => self.request(Command::DeclareTools(client_tools(&[]))),
            Symbol::Text
            | Symbol::Calls(_)
            | Symbol::OddCall
            | Symbol::HalfCall
            | Symbol::Ended
            | Symbol::Failed => unreachable!("more than one input"),
        }
    }

    fn request(&self, command: Command) -> Input {
        let id = RequestId::new(&format!("r{}", self.steps)).expect("a name");
        Input::Request(Request { session: None, id, command })
    }

    fn choice(&self) -> ModelChoice {
        ModelChoice { model: format!("model-{}", self.steps), ..ModelChoice::default() }
    }

    fn submit(&self, joins: Option<&str>) -> Input {
        let prompt = Prompt::new(format!("prompt {}.", self.steps)).expect("a prompt");
        let joins = joins.and_then(RequestId::new);
        self.request(Command::Submit(Submit { joins, ..Submit::new(prompt) }))
    }

    fn cancel(&self, target: Option<&str>, waiting: bool) -> Input {
        let target = target.and_then(RequestId::new);
        self.request(Command::Cancel(Cancel { target, waiting }))
    }

    fn returns(&self, task: Option<TaskId>) -> Input {
        let result = ToolResult::Success(format!("result {}.", self.steps));
        Input::Task(task.unwrap_or(self.stale_tool), TaskEvent::ToolEnded(result))
    }

    fn approve(&self, call: Option<String>, choice: Choice) -> Input {
        let decision = match choice {
            Choice::Once => Decision::AllowOnce,
            Choice::Session => Decision::AllowSession,
            Choice::Deny => Decision::Deny { reason: "no".to_owned() },
        };
        let call = ToolCallId(call.unwrap_or_else(|| self.old_call.clone()));
        self.request(Command::Approve(Approve { call, decision }))
    }

    fn client_answers(&self, call: Option<String>) -> Input {
        let call = ToolCallId(call.unwrap_or_else(|| self.old_call.clone()));
        let (tool_name, result, error) = (None, None, Some(format!("answer {}", self.steps)));
        self.request(Command::ToolResult(ClientToolResult { call, tool_name, result, error }))
    }

    /// Ends the input and then whatever runs; the session must be closed soon.
    pub(in crate::session::tests) fn settle(&mut self) -> Result<()> {
        self.play(Symbol::EndOfInput)?;
        // Each run needs a few steps: its server, an answer, a round, and an answer.
        let steps_max = 10 * (self.contract.submits.len() + 2) + self.contract.calls.len();
        for _ in 0..steps_max {
            if self.is_closed() {
                return Ok(());
            }
            let symbol = match (self.has_call(), self.has_tools()) {
                (true, _) => Symbol::Ended,
                (false, true) => Symbol::FirstReturns,
                (false, false) => Symbol::Deadline,
            };
            self.play(symbol)?;
        }
        ensure!(self.is_closed(), "not closed after the end of input and of what ran");
        Ok(())
    }
}

impl<M: Machine> Play for Scene<M> {
    type Symbol = Symbol;

    fn play(&mut self, symbol: Symbol) -> Result<()> {
        Self::play(self, symbol)
    }

    fn settle(&mut self) -> Result<()> {
        if self.is_closed() { Ok(()) } else { Self::settle(self) }
    }

    fn state(&self) -> String {
        format!("{:?}", self.machine)
    }
}
