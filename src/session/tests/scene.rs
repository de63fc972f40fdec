//! Short names for inputs, made into inputs for the session at hand, and the sessions to try.

use super::choices::retry;
use super::contract::Contract;
use super::sequences::Play;
use crate::conversation::event::{FinishClass, ToolCall, Usage};
use crate::conversation::patch::{PatchMode, Patches};
use crate::protocol::any::Any;
use crate::protocol::command::{
    Cancel, ClientTool, Command, CommandFault, Edit, ModelChoice, Page, Prompt, Replacement,
    Submit, ToolManifest,
};
use crate::protocol::id::{Ordinal, RequestId, SessionId, TaskId, ToolCallId};
use crate::protocol::proto::frontendtools::FrontendToolManifestCommand;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{BadLine, Frame, Request, RequestFault};
use crate::session::{
    FinalSnapshot, Input, OnBusy, Output, Rules, Session, Signal, TaskEvent, Uptime,
};
use crate::task::call::{EngineFacts, EngineRef};
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, RunError, Stage};
use crate::task::server::{ServerChange, ServerState};
use crate::task::server::{ServerName, ServerTool};
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The message id of a prompt that there is not.
pub(super) const GHOST: &str = "chat-msg-00000000-0000-4000-8000-000000000000-user";

/// A document that every schema of these tests accepts.
pub(super) const JSON: &str = "{}";

/// An input by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Submit,
    /// A submit without a prompt.
    Blank,
    /// A submit that names a model.
    SubmitChosen,
    /// A submit with a schema for its answer.
    SubmitSchema,
    /// A submit with a setting that there is not.
    SubmitWrong,
    /// Another model from the next submit on.
    Switch,
    /// A switch to an engine that there is not.
    SwitchWrong,
    Cancel,
    Snapshot,
    /// What was changed after the third event.
    Changes,
    /// The last two entities before the eighth event.
    OldPage,
    DropLastTurn,
    Regenerate,
    /// The first prompt of the conversation is replaced.
    Replace,
    /// A prompt that there is not is replaced.
    ReplaceGhost,
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
    Usage,
    RetryScheduled,
    RetryStarted,
    /// A text that is a whole JSON document.
    Json,
    CallFinished,
    /// The call ends at a token limit.
    CutOff,
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

const CHANGES: Page = Page { before: None, limit: None, since: Some(Ordinal(3)) };

const OLD_PAGE: Page = Page { before: Some(Ordinal(8)), limit: NonZeroU32::new(2), since: None };

fn object_schema() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into())])
}

fn clock() -> ToolCall {
    ToolCall { id: tool_id(), name: "clock".to_owned() }
}

fn usage() -> Usage {
    Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() }
}

fn past_text() -> EngineEvent {
    EngineEvent::Text("from the past".to_owned())
}

/// Takes inputs like a session.
pub(super) trait Machine: Clone + Debug {
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
    live: Option<TaskId>,
    stale: TaskId,
    /// Message ids of the prompts that began turns.
    prompts: Vec<String>,
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
        let stale = TaskId(u64::MAX);
        let machine = wrap(session);
        Self { machine, contract, steps: 0, live: None, stale, prompts: Vec::new() }
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
        if let Input::Task(run, TaskEvent::CallEnded(_)) = input {
            self.over(*run);
        }
        for output in outputs {
            match output {
                Output::StartCall(run, _) => self.live = Some(*run),
                Output::CancelTask(run) => self.over(*run),
                Output::Frame(frame) => self.note_prompts(frame),
                Output::Persist(_)
                | Output::StartTool(..)
                | Output::ReadFiles(..)
                | Output::Warning(_)
                | Output::Exit(_)
                | Output::Abort(_) => {}
            }
        }
    }

    fn note_prompts(&mut self, frame: &Frame) {
        let Some(Body::UiEvent(event)) = &frame.frame else { return };
        let payload = event.payload.clone().map(Any::into_whole);
        if let Some(Any::ChatUserMessageAccepted(it)) = &payload {
            self.prompts.push(it.message_id.clone());
        }
        if let Some(Any::TurnDropped(it)) = &payload {
            self.prompts.retain(|id| !it.message_ids.contains(id));
        }
    }

    fn over(&mut self, run: TaskId) {
        if self.live == Some(run) {
            self.live = None;
            self.stale = run;
        }
    }

    pub(super) fn input(&self, symbol: Symbol) -> Input {
        match symbol {
            Symbol::Submit => self.request(None, submit(self.steps)),
            Symbol::SubmitChosen => self.submit_with(Some(self.choice("", "")), None),
            Symbol::SubmitSchema => self.submit_with(None, Some(object_schema())),
            Symbol::SubmitWrong => self.submit_with(Some(self.choice("", "temprature")), None),
            Symbol::Switch => self.request(None, Command::SwitchModel(self.choice("gemini", ""))),
            Symbol::SwitchWrong => {
                self.request(None, Command::SwitchModel(self.choice("nothing", "")))
            }
            Symbol::Blank => {
                self.bad_line(self.request_id(), RequestFault::Command(CommandFault::EmptyPrompt))
            }
            Symbol::Cancel => self.request(None, Command::Cancel(Cancel::default())),
            Symbol::Snapshot => self.request(None, Command::Snapshot(Page::default())),
            Symbol::Changes => self.request(None, Command::Snapshot(CHANGES)),
            Symbol::OldPage => self.request(None, Command::Snapshot(OLD_PAGE)),
            Symbol::DropLastTurn => self.request(None, Command::Edit(Edit::DropLastTurn)),
            Symbol::Regenerate => self.request(None, Command::Edit(Edit::Regenerate)),
            Symbol::Replace => self.replace(self.prompts.first().map_or(GHOST, String::as_str)),
            Symbol::ReplaceGhost => self.replace(GHOST),
            Symbol::Shutdown => self.request(None, Command::Shutdown),
            Symbol::Malformed => {
                self.bad_line(None, RequestFault::InvalidJson { reason: String::new() })
            }
            Symbol::ToMine => self.request(SessionId::new("mine"), submit(self.steps)),
            Symbol::ToOther => {
                self.request(SessionId::new("other"), Command::Cancel(Cancel::default()))
            }
            Symbol::InputEnded => Input::InputEnded,
            Symbol::InputFailed => Input::InputFailed { reason: "gone".to_owned() },
            Symbol::CallStarted => self.engine(EngineEvent::CallStarted),
            Symbol::Text => self.engine(EngineEvent::Text(self.piece())),
            Symbol::Reasoning => {
                self.engine(EngineEvent::Reasoning { source: "reasoning", text: self.piece() })
            }
            Symbol::ToolStarted => self.engine(EngineEvent::ToolCallStarted(clock())),
            Symbol::ToolArguments => {
                self.engine(EngineEvent::ToolArguments { id: tool_id(), text: self.piece() })
            }
            Symbol::ToolRequested => self.engine(EngineEvent::ToolCallRequested { id: tool_id() }),
            Symbol::Usage => self.engine(EngineEvent::Usage(usage())),
            Symbol::RetryScheduled => self.engine(EngineEvent::RetryScheduled(retry())),
            Symbol::RetryStarted => self.engine(EngineEvent::RetryStarted(retry())),
            Symbol::Json => self.engine(EngineEvent::Text(JSON.to_owned())),
            Symbol::CallFinished => self.call_finished("stop", FinishClass::Completed),
            Symbol::CutOff => self.call_finished("length", FinishClass::MaxTokens),
            Symbol::Finished => self.end(CallEnd::Finished),
            Symbol::Failed => self.end(failed(Stage::Run)),
            Symbol::NotReady => self.end(failed(Stage::Init)),
            Symbol::StaleText => Input::Task(self.stale, TaskEvent::Engine(past_text())),
            Symbol::StaleEnd => Input::Task(self.stale, TaskEvent::CallEnded(CallEnd::Finished)),
            Symbol::Signal(signal) => Input::Interrupted(signal),
            Symbol::ReaderGone => Input::ReaderGone,
        }
    }

    fn replace(&self, message_id: &str) -> Input {
        let prompt = Prompt::new(format!("prompt {}", self.steps)).expect("it is not blank");
        let message_id = message_id.to_owned();
        self.request(None, Command::Edit(Edit::Replace(Replacement::new(message_id, prompt))))
    }

    fn call_finished(&self, stop_reason: &str, class: FinishClass) -> Input {
        let (stop_reason, provider_data) = (stop_reason.to_owned(), None);
        self.engine(EngineEvent::CallFinished { stop_reason, class, provider_data })
    }

    fn choice(&self, engine: &str, setting: &str) -> ModelChoice {
        let setting = Some(setting).filter(|setting| !setting.is_empty());
        ModelChoice {
            profile: String::new(),
            engine: engine.to_owned(),
            model: format!("model-{}", self.steps),
            settings: setting.map(|setting| (setting.to_owned(), 1.into())).into_iter().collect(),
        }
    }

    fn submit_with(
        &self,
        choice: Option<ModelChoice>,
        schema: Option<Map<String, Value>>,
    ) -> Input {
        let Command::Submit(submit) = submit(self.steps) else { unreachable!("a submit") };
        let (choice, schema) = (choice.map(Box::new), schema.map(Box::new));
        self.request(None, Command::Submit(Submit { choice, schema, ..submit }))
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
        Input::Task(self.live.unwrap_or(self.stale), TaskEvent::Engine(event))
    }

    fn end(&self, end: CallEnd) -> Input {
        Input::Task(self.live.unwrap_or(self.stale), TaskEvent::CallEnded(end))
    }

    /// Text of one to four bytes a character, sometimes none.
    fn piece(&self) -> String {
        ["a", "\u{e9}\n", "\u{2028}", "\u{1F600}\u{0}", "", " word"][self.steps as usize % 6]
            .to_owned()
    }
}

impl<M: Machine> Play for Scene<M> {
    type Symbol = Symbol;

    fn play(&mut self, symbol: Symbol) -> Result<()> {
        Self::play(self, symbol)
    }

    fn settle(&mut self) -> Result<()> {
        if self.contract.is_closed() { Ok(()) } else { Self::settle(self) }
    }

    fn state(&self) -> String {
        format!("{:?}", self.machine)
    }
}

fn submit(step: u32) -> Command {
    let prompt = Prompt::new(format!("prompt {step}")).expect("a prompt that is not blank");
    Command::Submit(Submit::new(prompt))
}

fn tool_id() -> ToolCallId {
    ToolCallId("tool".to_owned())
}

fn failed(stage: Stage) -> CallEnd {
    CallEnd::Failed(RunError {
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
    let facts =
        |engine: &'static str| EngineFacts { engine: engine.into(), ..EngineFacts::default() };
    let engines = BTreeMap::from([
        (EngineRef::Initial, facts("openai")),
        (EngineRef::Named("gemini".to_owned()), facts("gemini")),
    ]);
    Rules { on_busy, patches, final_snapshot, engines, ..Rules::default() }
}

/// Tools that the client runs; those whose name begins with `human` are answered by a person.
pub(crate) fn client_tools(names: &[&str]) -> ToolManifest {
    let tool = |name: &&str| ClientTool {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: Arc::new(Map::new()),
        is_human: name.starts_with("human"),
    };
    let message = FrontendToolManifestCommand::default();
    ToolManifest { tools: names.iter().map(tool).collect(), message }
}

/// The server of these tests.
pub(super) fn server() -> ServerName {
    ServerName::new("fs").expect("a name")
}

/// The server reports its state and its tools.
pub(super) fn server_tools(state: ServerState, names: &[&str]) -> Input {
    let tool = |name: &&str| ServerTool {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: Arc::new(Map::new()),
    };
    let tools = names.iter().map(tool).collect();
    Input::ServerChanged(ServerChange { server: server(), state, tools })
}
