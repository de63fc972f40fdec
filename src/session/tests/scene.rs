//! Short names for inputs, made into inputs for the session at hand, and the sessions to try.

use super::contract::Contract;
use crate::chat::event::{FinishClass, ToolCall, ToolResult, Usage};
use crate::chat::patch::{PatchMode, Patches};
use crate::engine::{EngineEvent, ErrorClass, RunEnd, RunError, Stage};
use crate::protocol::id::{Ids, RequestId, RunId, SessionId, ToolCallId};
use crate::protocol::wire::{BadLine, Command, Prompt, Request, RequestFault};
use crate::session::{FinalSnapshot, Input, OnBusy, Output, Rules, Session, Signal, Uptime};
use anyhow::{Context, Result};

/// An input by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Submit,
    /// A submit without a prompt.
    Blank,
    Cancel,
    Snapshot,
    Shutdown,
    Malformed,
    /// A submit to the session "mine".
    ToMine,
    /// A cancel for the session "other".
    ToOther,
    InputEnded,
    InputFailed,
    CallStarted,
    Text,
    Reasoning,
    ToolStarted,
    ToolArguments,
    ToolRequested,
    ToolExecuting,
    ToolReturned,
    Usage,
    CallFinished,
    Finished,
    Failed,
    /// The engine could not get ready.
    NotReady,
    /// An engine that is no more speaks.
    StaleText,
    /// An engine that is no more ends.
    StaleEnd,
    Signal(Signal),
    ReaderGone,
}

/// Whatever takes inputs as a session does.
pub(super) trait Machine: Clone {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output>;
}

impl Machine for Session {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        Self::handle(self, now, input)
    }
}

/// A session, its contract, and what is needed to name the next input.
#[derive(Clone)]
pub(super) struct Scene<M> {
    pub(super) machine: M,
    pub(super) contract: Contract,
    steps: u32,
    live: Option<RunId>,
    stale: RunId,
}

impl Scene<Session> {
    pub(super) fn new(rules: Rules) -> Self {
        Self::with(rules, |session| session)
    }
}

impl<M: Machine> Scene<M> {
    /// A scene with whatever `wrap` makes of the session.
    pub(super) fn with(rules: Rules, wrap: impl FnOnce(Session) -> M) -> Self {
        let session = Session::new(rules.clone(), 1);
        let contract = Contract::new(&rules, &session);
        let stale = Ids::new(2).run();
        Self { machine: wrap(session), contract, steps: 0, live: None, stale }
    }

    /// Takes one step, and checks it.
    pub(super) fn play(&mut self, symbol: Symbol) -> Result<()> {
        self.steps += 1;
        let input = self.input(symbol);
        let outputs = self.machine.handle(Uptime(u64::from(self.steps)), input.clone());
        self.note(&input, &outputs);
        self.contract.watch(&input, &outputs).with_context(|| format!("{input:?}"))
    }

    /// Ends the input and all runs; the session must be closed then.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.play(Symbol::InputEnded)?;
        while self.live.is_some() && !self.contract.is_closed() {
            self.play(Symbol::Finished)?;
        }
        anyhow::ensure!(self.contract.is_closed(), "not closed after the end of input and run");
        Ok(())
    }

    pub(super) fn has_live_run(&self) -> bool {
        self.live.is_some()
    }

    fn note(&mut self, input: &Input, outputs: &[Output]) {
        if let Input::RunEnded(run, _) = input {
            self.over(*run);
        }
        for output in outputs {
            match output {
                Output::StartRun { run, .. } => self.live = Some(*run),
                Output::CancelRun(run) => self.over(*run),
                Output::Frame(_) | Output::Exit(_) | Output::Abort(_) => {}
            }
        }
    }

    fn over(&mut self, run: RunId) {
        if self.live == Some(run) {
            self.live = None;
            self.stale = run;
        }
    }

    fn input(&self, symbol: Symbol) -> Input {
        match symbol {
            Symbol::Submit => self.request(None, submit(self.steps)),
            Symbol::Blank => self.bad_line(self.request_id(), RequestFault::EmptyPrompt),
            Symbol::Cancel => self.request(None, Command::Cancel),
            Symbol::Snapshot => self.request(None, Command::Snapshot),
            Symbol::Shutdown => self.request(None, Command::Shutdown),
            Symbol::Malformed => {
                self.bad_line(None, RequestFault::InvalidJson { reason: String::new() })
            }
            Symbol::ToMine => self.request(SessionId::new("mine"), submit(self.steps)),
            Symbol::ToOther => self.request(SessionId::new("other"), Command::Cancel),
            Symbol::InputEnded => Input::InputEnded,
            Symbol::InputFailed => Input::InputFailed { reason: "gone".to_owned() },
            Symbol::CallStarted => self.engine(EngineEvent::CallStarted),
            Symbol::Text => self.engine(EngineEvent::Text(self.piece())),
            Symbol::Reasoning => {
                self.engine(EngineEvent::Reasoning { source: "reasoning", text: self.piece() })
            }
            Symbol::ToolStarted => {
                let tool = ToolCall { id: tool_id(), name: "clock".to_owned() };
                self.engine(EngineEvent::ToolCallStarted(tool))
            }
            Symbol::ToolArguments => {
                self.engine(EngineEvent::ToolArguments { id: tool_id(), text: self.piece() })
            }
            Symbol::ToolRequested => self.engine(EngineEvent::ToolCallRequested { id: tool_id() }),
            Symbol::ToolExecuting => {
                self.engine(EngineEvent::ToolExecutionStarted { id: tool_id() })
            }
            Symbol::ToolReturned => {
                let result = ToolResult::Success("noon".to_owned());
                self.engine(EngineEvent::ToolReturned { id: tool_id(), result })
            }
            Symbol::Usage => self.engine(EngineEvent::Usage(Usage::default())),
            Symbol::CallFinished => {
                let stop_reason = "stop".to_owned();
                let class = FinishClass::Completed;
                self.engine(EngineEvent::CallFinished { stop_reason, class })
            }
            Symbol::Finished => self.end(RunEnd::Finished),
            Symbol::Failed => self.end(failed(Stage::Run)),
            Symbol::NotReady => self.end(failed(Stage::Init)),
            Symbol::StaleText => {
                Input::Engine(self.stale, EngineEvent::Text("from the past".to_owned()))
            }
            Symbol::StaleEnd => Input::RunEnded(self.stale, RunEnd::Finished),
            Symbol::Signal(signal) => Input::Interrupted(signal),
            Symbol::ReaderGone => Input::ReaderGone,
        }
    }

    fn request(&self, session: Option<SessionId>, command: Command) -> Input {
        let id = self.request_id().expect("a name that is not blank");
        Input::Request(Request { session, id, command })
    }

    fn bad_line(&self, id: Option<RequestId>, fault: RequestFault) -> Input {
        Input::BadLine(BadLine { id, fault })
    }

    fn request_id(&self) -> Option<RequestId> {
        RequestId::new(&format!("r{}", self.steps))
    }

    fn engine(&self, event: EngineEvent) -> Input {
        Input::Engine(self.live.unwrap_or(self.stale), event)
    }

    fn end(&self, end: RunEnd) -> Input {
        Input::RunEnded(self.live.unwrap_or(self.stale), end)
    }

    /// Text of one to four bytes a character, sometimes none.
    fn piece(&self) -> String {
        ["a", "\u{e9}\n", "\u{2028}", "\u{1F600}\u{0}", "", " word"][self.steps as usize % 6]
            .to_owned()
    }
}

fn submit(step: u32) -> Command {
    Command::Submit(Prompt::new(format!("prompt {step}")).expect("a prompt that is not blank"))
}

fn tool_id() -> ToolCallId {
    ToolCallId("tool".to_owned())
}

fn failed(stage: Stage) -> RunEnd {
    RunEnd::Failed(RunError {
        stage,
        class: ErrorClass::Network,
        message: "the connection broke".to_owned(),
        detail: "reset".to_owned(),
    })
}

pub(super) fn rules(
    on_busy: OnBusy,
    patch_mode: PatchMode,
    final_snapshot: FinalSnapshot,
) -> Rules {
    let patches = Patches { mode: patch_mode, ..Patches::default() };
    Rules { on_busy, patches, final_snapshot, ..Rules::default() }
}
