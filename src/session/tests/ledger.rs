//! What holds whatever a session is asked, and whatever breaks inside it: one `done` for each
//! request and last, one live run with one provider call, no task after its run, rising ordinals, the
//! right names on every frame, silence after the end.

use crate::protocol::command::Command;
use crate::protocol::id::{SessionId, TaskId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Frame, Request, VERSION};
use crate::session::{Input, Output, Rules, Session, TaskEvent};
use anyhow::{Result, bail, ensure};
use std::collections::{BTreeSet, HashSet};

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    session: String,
    is_bound: bool,
    owed: Vec<Owed>,
    over: HashSet<String>,
    ordinal: u64,
    /// The request whose run is active.
    run: Option<String>,
    /// The active provider call.
    call: Option<TaskId>,
    /// The tools that run.
    tools: BTreeSet<TaskId>,
    /// The tasks that read files of requests. They need no run.
    reads: BTreeSet<TaskId>,
    is_closed: bool,
    /// The last event was found in an answer: it shares its ordinal with what follows.
    shares_ordinal: bool,
}

/// A `done` that is still to come.
#[derive(Clone, Debug)]
struct Owed {
    id: String,
    due: Due,
}

/// When a `done` must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// In the step that takes the line in.
    Now,
    /// While a run lives or files are read, it may wait.
    WithRun,
}

impl Ledger {
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        Self {
            session: session.hello(Vec::new()).session_id,
            is_bound: rules.session.is_some(),
            owed: Vec::new(),
            over: HashSet::new(),
            ordinal: 0,
            run: None,
            call: None,
            tools: BTreeSet::new(),
            reads: BTreeSet::new(),
            is_closed: false,
            shares_ordinal: false,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The active provider call.
    pub(super) fn call(&self) -> Option<TaskId> {
        self.call
    }

    /// The tools that run.
    pub(super) fn tools(&self) -> &BTreeSet<TaskId> {
        &self.tools
    }

    /// The request whose run is active.
    pub(super) fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Whether `input` comes from a task that goes on.
    pub(super) fn is_of_live_task(&self, input: &Input) -> bool {
        matches!(input, Input::Task(task, _) if self.is_live(*task))
    }

    fn is_live(&self, task: TaskId) -> bool {
        self.call == Some(task) || self.tools.contains(&task) || self.reads.contains(&task)
    }

    pub(super) fn watch(&mut self, input: &Input, outputs: &[Output]) -> Result<()> {
        if !self.is_closed {
            self.take_in(input);
        }
        for output in outputs {
            self.output(input, output)?;
        }
        let may_wait = self.run.is_some() || !self.reads.is_empty();
        let late = self.owed.iter().find(|owed| owed.due == Due::Now || !may_wait);
        ensure!(late.is_none(), "no done for {late:?}");
        let has_tasks = self.call.is_some() || !self.tools.is_empty();
        ensure!(self.run.is_some() || !has_tasks, "a task goes on without a run");
        Ok(())
    }

    fn take_in(&mut self, input: &Input) {
        match input {
            Input::Request(request) => self.request(request),
            Input::BadLine(line) => {
                let id = line.id.as_ref().map_or("", |id| id.as_str());
                self.owe(id, Due::Now);
            }
            // The farewell has a `done` of its own, with no name. There is only one.
            Input::InputFailed { .. } | Input::Refused(_) => {
                self.drop_farewell();
                self.owe("", Due::WithRun);
            }
            Input::Interrupted(_) => {
                self.drop_farewell();
                self.owe("", Due::Now);
            }
            Input::Task(task, TaskEvent::CallEnded(_) | TaskEvent::ToolEnded(_)) => {
                self.over(*task);
            }
            Input::FilesRead(task, _) => self.over(*task),
            Input::Task(_, TaskEvent::Engine(_))
            | Input::DeadlineReached
            | Input::ServerChanged(_)
            | Input::InputEnded
            | Input::Restored(_)
            | Input::StoreFailed(_)
            | Input::ReaderGone => {}
        }
    }

    fn request(&mut self, request: &Request) {
        if !self.is_bound {
            if let Some(named) = &request.session {
                named.as_str().clone_into(&mut self.session);
            }
            self.is_bound = true;
        }
        let is_mine = request.session.as_ref().map(SessionId::as_str) == Some(&self.session)
            || request.session.is_none();
        let due = match request.command {
            Command::Submit(_) | Command::Shutdown | Command::Edit(_) if is_mine => Due::WithRun,
            Command::Submit(_)
            | Command::Edit(_)
            | Command::Shutdown
            | Command::Cancel(_)
            | Command::Snapshot(_)
            | Command::Enable(_)
            | Command::DeclareTools(_)
            | Command::ToolResult(_)
            | Command::Approve(_)
            | Command::SwitchModel(_) => Due::Now,
        };
        self.owe(request.id.as_str(), due);
    }

    fn over(&mut self, task: TaskId) {
        self.call.take_if(|call| *call == task);
        self.tools.remove(&task);
        self.reads.remove(&task);
    }

    fn owe(&mut self, id: &str, due: Due) {
        self.owed.push(Owed { id: id.to_owned(), due });
    }

    fn drop_farewell(&mut self) {
        self.owed.retain(|owed| !(owed.id.is_empty() && owed.due == Due::WithRun));
    }

    fn output(&mut self, input: &Input, output: &Output) -> Result<()> {
        if self.is_closed {
            let is_second_signal =
                matches!((input, output), (Input::Interrupted(_), Output::Abort(_)));
            ensure!(is_second_signal, "after the exit: {output:?}");
            return Ok(());
        }
        match output {
            Output::Frame(frame) => self.frame(frame),
            Output::StartCall(task, _) => {
                ensure!(self.run.is_some(), "a provider call without a run");
                ensure!(self.call.is_none() && self.tools.is_empty(), "a call beside another task");
                self.call = Some(*task);
                Ok(())
            }
            Output::StartTool(task, _) => {
                ensure!(self.run.is_some(), "a tool without a run");
                ensure!(self.call.is_none(), "a tool runs during a provider call");
                ensure!(self.tools.insert(*task), "the task {task} twice");
                Ok(())
            }
            Output::ReadFiles(task, _) => {
                ensure!(self.reads.insert(*task), "the task {task} twice");
                Ok(())
            }
            Output::CancelTask(task) => {
                ensure!(self.is_live(*task), "cancels a task that is not live");
                self.over(*task);
                Ok(())
            }
            Output::Persist(_) | Output::Warning(_) => Ok(()),
            Output::Exit(_) => {
                ensure!(self.owed.is_empty(), "exit without done for {:?}", self.owed);
                ensure!(self.run.is_none(), "exit with a live run");
                ensure!(self.reads.is_empty(), "exit while files are read");
                self.is_closed = true;
                Ok(())
            }
            Output::Abort(_) => bail!("abort without a second signal"),
        }
    }

    fn frame(&mut self, frame: &Frame) -> Result<()> {
        ensure!(frame.version == VERSION, "version {}", frame.version);
        ensure!(frame.session_id == self.session, "stamped {:?}", frame.session_id);
        let id = &frame.request_id;
        let is_farewell_owed = self.owed.iter().any(|owed| owed.id.is_empty());
        if is_defect(frame) && !is_farewell_owed {
            self.owe("", Due::Now);
        }
        if let Some(Body::UiEvent(event)) = &frame.frame
            && event.name == "ToolServerChanged"
        {
            ensure!(id.is_empty() && event.ordinal > self.ordinal, "{frame:?}");
            self.ordinal = event.ordinal;
            return Ok(());
        }
        ensure!(!self.over.contains(id), "after the done of {id:?}: {frame:?}");
        // The newest first: a nameless line is answered while the nameless farewell is still owed.
        let Some(at) = self.owed.iter().rposition(|owed| owed.id == *id) else {
            bail!("a frame of {id:?}, which nobody sent: {frame:?}");
        };
        match &frame.frame {
            Some(Body::Done(_)) => {
                self.owed.remove(at);
                self.run.take_if(|run| run == id);
                if !id.is_empty() {
                    self.over.insert(id.clone());
                }
            }
            Some(Body::UiEvent(event)) => {
                // Two payloads that come of one event have its ordinal.
                let is_found = matches!(
                    &*event.name,
                    "ObjectExtracted" | "LineRejected" | "ExtractionFinished"
                );
                let may_share = event.name == "SteeringAccepted" || self.shares_ordinal;
                let is_same = may_share && event.ordinal == self.ordinal;
                ensure!(event.ordinal > self.ordinal || is_same, "ordinal {} again", event.ordinal);
                self.shares_ordinal = is_found;
                self.ordinal = event.ordinal;
                if event.name == "ChatUserMessageAccepted" {
                    let run = self.run.get_or_insert_with(|| id.clone());
                    ensure!(run == id, "two live runs");
                }
            }
            Some(Body::Snapshot(_) | Body::Error(_)) => {}
            Some(Body::Hello(_) | Body::BackendEvent(_)) | None => bail!("not expected: {frame:?}"),
        }
        Ok(())
    }
}

/// Whether the frame reports that a defect ends the process, which has a `done` of its own.
fn is_defect(frame: &Frame) -> bool {
    matches!(&frame.frame, Some(Body::Error(error)) if error.code == "internal" && error.terminal)
}
