//! What a session answers, in outline: the contract's table of requests and phases, written a
//! second time and more simply, to hold the session against.

use super::scene::{GHOST, JSON};
use crate::conversation::event::FinishClass;
use crate::protocol::command::{Command, Edit, ModelChoice};
use crate::protocol::id::{SessionId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Request;
use crate::session::waiting::QUEUED_SUBMITS_MAX;
use crate::session::{ExitCode, FinalSnapshot, Input, OnBusy, Output, Rules, Signal, TaskEvent};
use crate::task::report::{CallEnd, EngineEvent, Stage};
use std::collections::{HashMap, HashSet, VecDeque};

/// An output, without what is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Turns were dropped.
    Dropped(String),
    /// A prompt was accepted.
    Begin(String),
    Start,
    Cancel,
    /// A run's end event, by its name.
    End(&'static str),
    Snapshot(String),
    /// Request, code, whether it is terminal.
    Error(String, String, bool),
    Done(String, String),
    Exit(ExitCode),
    Abort(ExitCode),
}

/// The outline of what a session did.
pub(super) fn outline(outputs: &[Output]) -> Vec<Item> {
    outputs.iter().filter_map(item).collect()
}

fn item(output: &Output) -> Option<Item> {
    let frame = match output {
        Output::Frame(frame) => frame,
        Output::StartCall(..) => return Some(Item::Start),
        Output::Persist(_) | Output::StartTool(..) | Output::ReadFiles(..) | Output::Warning(_) => {
            return None;
        }
        Output::CancelTask(_) => return Some(Item::Cancel),
        Output::Exit(code) => return Some(Item::Exit(*code)),
        Output::Abort(code) => return Some(Item::Abort(*code)),
    };
    let id = frame.request_id.clone();
    match frame.frame.as_ref()? {
        Body::UiEvent(event) => match event.name.as_str() {
            "TurnDropped" => Some(Item::Dropped(id)),
            "ChatUserMessageAccepted" => Some(Item::Begin(id)),
            "ChatRunFinished" => Some(Item::End("ChatRunFinished")),
            "ChatRunStopped" => Some(Item::End("ChatRunStopped")),
            "ChatRunFailed" => Some(Item::End("ChatRunFailed")),
            _ => None,
        },
        Body::Snapshot(_) => Some(Item::Snapshot(id)),
        Body::Error(error) => Some(Item::Error(id, error.code.clone(), error.terminal)),
        Body::Done(done) => Some(Item::Done(id, done.status.clone())),
        Body::Hello(_) | Body::BackendEvent(_) => None,
    }
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    on_busy: OnBusy,
    final_snapshot: FinalSnapshot,
    session: Option<SessionId>,
    is_bound: bool,
    /// Turns of the conversation.
    turns: usize,
    running: Option<String>,
    waiting: VecDeque<String>,
    answers: Answers,
    shutdowns: Vec<String>,
    is_draining: bool,
    farewell: ExitCause,
    is_closed: bool,
}

/// The answer of the run, as far as a schema is concerned.
#[derive(Clone, Debug)]
struct Answers {
    repairs_max: u32,
    /// Submits with a schema.
    with_schema: HashSet<String>,
    has_schema: bool,
    repairs: u32,
    text: String,
    is_in_call: bool,
    is_cut_off: bool,
    /// Tool calls of the provider call that the model has begun, and whether it has made them. No tools
    /// are offered here.
    tools: HashMap<ToolCallId, bool>,
}

impl Answers {
    fn new(rules: &Rules) -> Self {
        Self {
            repairs_max: rules.repairs,
            with_schema: HashSet::new(),
            has_schema: false,
            repairs: 0,
            text: String::new(),
            is_in_call: false,
            is_cut_off: false,
            tools: HashMap::new(),
        }
    }

    fn begin(&mut self, id: &str) {
        self.has_schema = self.with_schema.contains(id);
        (self.repairs, self.text) = (0, String::new());
        (self.is_in_call, self.is_cut_off) = (false, false);
        self.tools.clear();
    }

    fn engine(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::CallStarted => self.begin_call(),
            EngineEvent::Text(text) if !text.is_empty() => {
                self.need_call();
                self.text += text;
            }
            EngineEvent::Reasoning { text, .. } if !text.is_empty() => self.need_call(),
            EngineEvent::ToolCallStarted(tool) if !self.tools.contains_key(&tool.id) => {
                self.need_call();
                self.tools.insert(tool.id.clone(), false);
            }
            EngineEvent::ToolCallRequested { id } => {
                self.tools.entry(id.clone()).and_modify(|is_made| *is_made = true);
            }
            EngineEvent::CallFinished { class, .. } if self.is_in_call => {
                self.is_in_call = false;
                self.is_cut_off = *class == FinishClass::MaxTokens;
            }
            EngineEvent::CallFinished { .. }
            | EngineEvent::Text(_)
            | EngineEvent::Reasoning { .. }
            | EngineEvent::ToolCallStarted(_)
            | EngineEvent::ToolArguments { .. }
            | EngineEvent::Usage(_)
            | EngineEvent::ContextTokens(_)
            | EngineEvent::RetryScheduled(_)
            | EngineEvent::ResponseStarted
            | EngineEvent::RetryStarted(_) => {}
        }
    }

    /// The answer is what the model writes last. A call without an end of its own is not cut off.
    fn begin_call(&mut self) {
        self.text.clear();
        self.tools.clear();
        self.is_cut_off &= !self.is_in_call;
        self.is_in_call = true;
    }

    /// What the model says is in a call, whether that was begun or not.
    fn need_call(&mut self) {
        if !self.is_in_call {
            self.begin_call();
        }
    }

    /// Whether the model is asked for another answer.
    fn ask_again(&mut self) -> bool {
        self.is_cut_off &= !std::mem::take(&mut self.is_in_call);
        if !self.is_invalid() || self.is_cut_off || self.repairs == self.repairs_max {
            return false;
        }
        self.repairs += 1;
        true
    }

    fn is_invalid(&self) -> bool {
        self.has_schema && self.text != JSON
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitCause {
    None,
    InputFailed,
    Interrupted(Signal),
    Refused,
}

impl Model {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            on_busy: rules.on_busy,
            final_snapshot: rules.final_snapshot,
            session: rules.session.clone(),
            is_bound: rules.session.is_some(),
            turns: 0,
            running: None,
            waiting: VecDeque::new(),
            answers: Answers::new(rules),
            shutdowns: Vec::new(),
            is_draining: false,
            farewell: ExitCause::None,
            is_closed: false,
        }
    }

    /// What must be done about `input`.
    pub(super) fn step(&mut self, input: &Input, is_live: bool) -> Vec<Item> {
        match input {
            Input::Interrupted(signal) if self.is_closed => {
                vec![Item::Abort(ExitCode::Interrupted(*signal))]
            }
            _ if self.is_closed => Vec::new(),
            Input::Request(request) => self.request(request),
            Input::BadLine(line) => {
                let id = line.id.as_ref().map_or("", |id| id.as_str());
                refused(id, line.fault.client_error().code.as_str())
            }
            Input::InputEnded => self.drain(),
            Input::InputFailed { .. } => {
                self.farewell = ExitCause::InputFailed;
                self.drain()
            }
            Input::Task(_, event) if is_live => self.task_event(event),
            Input::Task(..)
            | Input::FilesRead(..)
            | Input::DeadlineReached
            | Input::Restored(_)
            | Input::StoreFailed(_)
            | Input::ServerChanged(_) => Vec::new(),
            Input::Interrupted(signal) => {
                self.farewell = ExitCause::Interrupted(*signal);
                self.end_now()
            }
            Input::ReaderGone => self.end_now(),
            Input::Refused(_) => {
                self.farewell = ExitCause::Refused;
                self.drain()
            }
        }
    }

    fn request(&mut self, request: &Request) -> Vec<Item> {
        let id = request.id.as_str();
        if !self.is_bound {
            self.is_bound = true;
            self.session.clone_from(&request.session);
        }
        // A session that the first request left without a name has a generated one.
        if request.session.is_some() && request.session != self.session {
            return refused(id, "session_mismatch");
        }
        match request.command {
            Command::Submit(ref submit) if submit.choice.as_deref().is_some_and(is_wrong) => {
                refused(id, "invalid_settings")
            }
            Command::Submit(ref submit) => {
                if submit.schema.is_some() {
                    self.answers.with_schema.insert(id.to_owned());
                }
                self.submit(id)
            }
            Command::Cancel(_) if self.running.is_some() => {
                let stopped = self.stop();
                [vec![done(id, "ok")], stopped, self.next()].concat()
            }
            Command::Cancel(_) => vec![error(id, "no_active_request"), done(id, "ok")],
            Command::Snapshot(_) => vec![Item::Snapshot(id.to_owned()), done(id, "ok")],
            Command::Shutdown => {
                self.shutdowns.push(id.to_owned());
                self.drain()
            }
            Command::Enable(_)
            | Command::DeclareTools(_)
            | Command::Rename(_)
            | Command::NoteApproval(_) => {
                vec![done(id, "ok")]
            }
            Command::Compact(_) if self.running.is_some() => refused(id, "session_busy"),
            // No input of these tests makes one of a conversation.
            Command::Compact(_) => refused(id, "nothing_to_compact"),
            Command::ToolResult(_) | Command::Approve(_) => refused(id, "unknown_tool_call"),
            Command::SwitchModel(_) if self.running.is_some() => refused(id, "session_busy"),
            Command::SwitchModel(ref choice) if is_wrong(choice) => refused(id, "invalid_settings"),
            Command::SwitchModel(_) => vec![done(id, "ok")],
            Command::Edit(_) if self.running.is_some() => refused(id, "session_busy"),
            Command::Edit(ref edit) => self.edit(id, edit),
        }
    }

    fn edit(&mut self, id: &str, edit: &Edit) -> Vec<Item> {
        let is_ghost = matches!(edit, Edit::Replace(it) if it.message_id == GHOST);
        if self.turns == 0 || is_ghost {
            return refused(id, "unknown_message");
        }
        let dropped = Item::Dropped(id.to_owned());
        self.turns -= 1;
        match edit {
            Edit::DropLastTurn => return vec![dropped, done(id, "ok")],
            Edit::Regenerate => {}
            // Those of these tests replace the first prompt.
            Edit::Replace(_) => self.turns = 0,
        }
        [vec![dropped], self.begin(id.to_owned())].concat()
    }

    fn submit(&mut self, id: &str) -> Vec<Item> {
        if self.is_draining {
            return refused(id, "shutting_down");
        }
        if self.running.is_none() {
            return self.begin(id.to_owned());
        }
        if self.on_busy == OnBusy::Reject || self.waiting.len() == QUEUED_SUBMITS_MAX {
            return refused(id, "session_busy");
        }
        self.waiting.push_back(id.to_owned());
        Vec::new()
    }

    fn begin(&mut self, id: String) -> Vec<Item> {
        self.turns += 1;
        self.running = Some(id.clone());
        self.answers.begin(&id);
        vec![Item::Begin(id), Item::Start]
    }

    fn task_event(&mut self, event: &TaskEvent) -> Vec<Item> {
        if let TaskEvent::Engine(event) = event {
            self.answers.engine(event);
        }
        match event {
            TaskEvent::Engine(_) | TaskEvent::ToolProgressed(_) | TaskEvent::ToolEnded(_) => {}
            TaskEvent::CallEnded(end) => return self.ended(end),
        }
        Vec::new()
    }

    fn ended(&mut self, end: &CallEnd) -> Vec<Item> {
        let items = match end {
            CallEnd::Finished if self.answers.tools.values().any(|is_made| *is_made) => {
                let id = self.running.clone().unwrap_or_default();
                self.run_end("ChatRunFailed", vec![error(&id, "run_failed")], "failed")
            }
            CallEnd::Finished if self.answers.ask_again() => return vec![Item::Start],
            CallEnd::Finished if self.answers.is_invalid() => {
                let id = self.running.clone().unwrap_or_default();
                self.run_end("ChatRunFinished", vec![error(&id, "invalid_answer")], "failed")
            }
            CallEnd::Finished => self.run_end("ChatRunFinished", Vec::new(), "ok"),
            CallEnd::Failed(why) => {
                let code = match why.stage {
                    Stage::Init => "engine_init_failed",
                    Stage::Budget => "budget_exhausted",
                    Stage::Refused | Stage::Run => "run_failed",
                };
                let id = self.running.clone().unwrap_or_default();
                self.run_end("ChatRunFailed", vec![error(&id, code)], "failed")
            }
        };
        [items, self.next()].concat()
    }

    fn stop(&mut self) -> Vec<Item> {
        if self.running.is_none() {
            return Vec::new();
        }
        [vec![Item::Cancel], self.run_end("ChatRunStopped", Vec::new(), "stopped")].concat()
    }

    fn run_end(&mut self, event: &'static str, errors: Vec<Item>, status: &str) -> Vec<Item> {
        let id = self.running.take().unwrap_or_default();
        let snapshot = match self.final_snapshot {
            FinalSnapshot::Full | FinalSnapshot::FullUntilLong | FinalSnapshot::Turn => {
                vec![Item::Snapshot(id.clone())]
            }
            FinalSnapshot::None => Vec::new(),
        };
        [vec![Item::End(event)], snapshot, errors, vec![done(&id, status)]].concat()
    }

    fn next(&mut self) -> Vec<Item> {
        match self.waiting.pop_front() {
            Some(id) => self.begin(id),
            None if self.is_draining => self.close(),
            None => Vec::new(),
        }
    }

    fn drain(&mut self) -> Vec<Item> {
        self.is_draining = true;
        if self.running.is_some() { Vec::new() } else { self.close() }
    }

    fn end_now(&mut self) -> Vec<Item> {
        let stopped = self.stop();
        let waiting = std::mem::take(&mut self.waiting);
        let refusals = waiting.iter().flat_map(|id| refused(id, "shutting_down")).collect();
        [stopped, refusals, self.close()].concat()
    }

    fn close(&mut self) -> Vec<Item> {
        self.is_closed = true;
        let mut items: Vec<_> = self.shutdowns.iter().map(|id| done(id, "shutdown")).collect();
        items.extend(match self.farewell {
            ExitCause::None => vec![Item::Exit(ExitCode::Ok)],
            ExitCause::InputFailed => vec![
                Item::Error(String::new(), "stdin_read_failed".to_owned(), true),
                done("", "failed"),
                Item::Exit(ExitCode::InputFailed),
            ],
            ExitCause::Interrupted(signal) => vec![
                Item::Error(String::new(), "interrupted".to_owned(), true),
                done("", "stopped"),
                Item::Exit(ExitCode::Interrupted(signal)),
            ],
            ExitCause::Refused => vec![
                Item::Error(String::new(), "engine_init_failed".to_owned(), true),
                done("", "failed"),
                Item::Exit(ExitCode::Usage),
            ],
        });
        items
    }
}

/// Whether there is no such engine or setting.
fn is_wrong(choice: &ModelChoice) -> bool {
    choice.engine == "nothing" || !choice.settings.is_empty()
}

fn refused(id: &str, code: &str) -> Vec<Item> {
    vec![error(id, code), done(id, "failed")]
}

fn error(id: &str, code: &str) -> Item {
    Item::Error(id.to_owned(), code.to_owned(), false)
}

fn done(id: &str, status: &str) -> Item {
    Item::Done(id.to_owned(), status.to_owned())
}
