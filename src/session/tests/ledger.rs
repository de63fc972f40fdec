//! What holds whatever a session is asked, of its inputs and outputs together: one `done` for each request
//! in time, one live run with one provider call, no task after its run, the right session on every frame,
//! silence after the end.

use crate::protocol::command::Command;
use crate::protocol::id::{SessionId, TaskId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Frame, Request};
use crate::session::{Input, Output, Rules, Session, TaskEvent};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    session: String,
    is_bound: bool,
    owed: Vec<Owed>,
    ordinal: u64,
    /// The last event was found in an answer: it shares its ordinal with what follows.
    shares_ordinal: bool,
    /// The request whose run is active.
    run: Option<String>,
    /// The active provider call.
    call: Option<TaskId>,
    /// The tools that run.
    tools: BTreeSet<TaskId>,
    /// The tasks that read files of requests. They need no run.
    reads: BTreeSet<TaskId>,
    is_closed: bool,
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
            ordinal: 0,
            shares_ordinal: false,
            run: None,
            call: None,
            tools: BTreeSet::new(),
            reads: BTreeSet::new(),
            is_closed: false,
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
            Input::Task(_, TaskEvent::Engine(_) | TaskEvent::ToolProgressed(_))
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
            Command::Submit(_) | Command::Shutdown | Command::Edit(_) | Command::Compact(_)
                if is_mine =>
            {
                Due::WithRun
            }
            Command::Submit(_)
            | Command::Edit(_)
            | Command::Compact(_)
            | Command::Shutdown
            | Command::Cancel(_)
            | Command::Snapshot(_)
            | Command::Enable(_)
            | Command::DeclareTools(_)
            | Command::ToolResult(_)
            | Command::Approve(_)
            | Command::SwitchModel(_)
            | Command::Rename(_)
            | Command::NoteApproval(_) => Due::Now,
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
        ensure!(frame.session_id == self.session, "stamped {:?}", frame.session_id);
        let id = &frame.request_id;
        let event = match &frame.frame {
            Some(Body::UiEvent(event)) => Some((event.name.as_str(), event.ordinal)),
            Some(Body::Snapshot(it)) => {
                ensure!(it.snapshot_ordinal == self.ordinal, "a snapshot of another moment");
                None
            }
            Some(Body::Done(_) | Body::Error(_) | Body::Hello(_) | Body::BackendEvent(_))
            | None => None,
        };
        if let Some((name, ordinal)) = event {
            self.number(name, ordinal)?;
        }
        let name = event.map_or("", |(name, _)| name);
        if name == "ToolServerChanged" {
            ensure!(id.is_empty(), "{frame:?}");
            return Ok(());
        }
        // The newest first: a nameless line is answered while the nameless farewell is still owed.
        let Some(at) = self.owed.iter().rposition(|owed| owed.id == *id) else {
            bail!("a frame of {id:?}, which nobody sent, or after its done: {frame:?}");
        };
        if let Some(Body::Done(_)) = &frame.frame {
            self.owed.remove(at);
            self.run.take_if(|run| run == id);
        }
        if name == "ChatUserMessageAccepted" {
            self.run.get_or_insert_with(|| id.clone());
        }
        Ok(())
    }

    /// Each event has an ordinal of its own, but for what an event brings to light: the contract lets more
    /// of them share one.
    fn number(&mut self, name: &str, ordinal: u64) -> Result<()> {
        let may_share = self.shares_ordinal || name == "SteeringAccepted";
        let is_right = ordinal > self.ordinal || may_share && ordinal == self.ordinal;
        ensure!(is_right, "ordinal {ordinal} after {}", self.ordinal);
        self.shares_ordinal =
            matches!(name, "ObjectExtracted" | "LineRejected" | "ExtractionFinished");
        self.ordinal = ordinal;
        Ok(())
    }
}
