//! What a front end may note of the tasks of a conversation, for metrics and traces: when a provider call or the call
//! of a tool began, went on and ended. Nothing of what is said.

use super::{Host, TaskReport};
use crate::engine::{CallEnd, EngineEvent};
use crate::protocol::id::TaskId;
use crate::protocol::proto::session::TokenCounts;
use crate::session::{Session, TaskEvent};
use crate::task::call::{CallSpec, EngineFacts};
use std::time::SystemTime;
use tokio::time::Instant;

/// Something that a task did.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The task.
    pub task: TaskId,
    /// When, for durations.
    pub at: Instant,
    /// When, by the clock.
    pub time: SystemTime,
    /// What it did.
    pub what: Observed,
}

/// What a task did.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A provider call began.
    CallStarted {
        /// The engine that makes it, and the host of its provider.
        facts: Box<EngineFacts>,
        /// The model that is asked.
        model: String,
    },
    /// The first part of an answer came: text, reasoning or a tool call.
    FirstDelta,
    /// A provider call ended.
    CallEnded {
        /// Why it failed, in a word; `None` if it has not.
        error: Option<&'static str>,
        /// What it used, as far as that is known.
        counts: Box<TokenCounts>,
    },
    /// The call of a tool began.
    ToolStarted {
        /// The server that runs it.
        server: String,
        /// Its name there.
        tool: String,
    },
    /// The call of a tool ended.
    ToolEnded {
        /// It is an error.
        is_error: bool,
    },
    /// The task was cancelled.
    Cancelled,
}

/// The observations that nobody has taken yet; none if nobody wants them.
#[derive(Debug, Default)]
pub(super) struct Observations {
    list: Option<Vec<Observation>>,
    /// The provider call whose answer has not begun.
    silent: Option<TaskId>,
}

impl Observations {
    fn note(&mut self, task: TaskId, what: impl FnOnce() -> Observed) {
        if let Some(list) = &mut self.list {
            let (at, time) = (Instant::now(), SystemTime::now());
            list.push(Observation { task, at, time, what: what() });
        }
    }

    /// A provider call begins.
    pub(super) fn call(&mut self, task: TaskId, spec: &CallSpec, facts: impl Fn() -> EngineFacts) {
        self.silent = Some(task);
        self.note(task, || {
            let facts = Box::new(facts());
            let model = spec.model.clone().unwrap_or_else(|| facts.model.clone());
            Observed::CallStarted { facts, model }
        });
    }

    /// The call of a tool begins.
    pub(super) fn tool(&mut self, task: TaskId, server: &str, tool: &str) {
        self.note(task, || Observed::ToolStarted {
            server: server.to_owned(),
            tool: tool.to_owned(),
        });
    }

    pub(super) fn cancelled(&mut self, task: TaskId) {
        self.note(task, || Observed::Cancelled);
    }

    /// Before a report is handled. What it means for the counts is known after that.
    pub(super) fn before(&mut self, (task, event): &TaskReport) {
        if let TaskEvent::Engine(event) = event {
            if begins_answer(event) && self.silent.take_if(|it| it == task).is_some() {
                self.note(*task, || Observed::FirstDelta);
            }
        } else if let TaskEvent::ToolEnded(result) = event {
            self.note(*task, || Observed::ToolEnded { is_error: result.is_error() });
        }
    }

    /// After the end of a provider call was handled, which failed with that.
    pub(super) fn ended(
        &mut self,
        task: TaskId,
        error: Option<&'static str>,
        session: Option<&Session>,
    ) {
        self.note(task, || {
            let counts = session.map(Session::call_counts).unwrap_or_default();
            Observed::CallEnded { error, counts: Box::new(counts) }
        });
    }
}

fn begins_answer(event: &EngineEvent) -> bool {
    match event {
        EngineEvent::Reasoning { .. }
        | EngineEvent::Text(_)
        | EngineEvent::ToolCallStarted(_)
        | EngineEvent::ToolArguments { .. }
        | EngineEvent::ToolCallRequested { .. } => true,
        EngineEvent::CallStarted
        | EngineEvent::ResponseStarted
        | EngineEvent::Usage(_)
        | EngineEvent::ContextTokens(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_)
        | EngineEvent::CallFinished { .. } => false,
    }
}

/// Why the provider call of a report has failed: `Some(None)` if it has not, `None` if it goes on.
pub(super) fn outcome(event: &TaskEvent) -> Option<Option<&'static str>> {
    match event {
        TaskEvent::CallEnded(CallEnd::Finished) => Some(None),
        TaskEvent::CallEnded(CallEnd::Failed(error)) => Some(Some(error.class.as_str())),
        TaskEvent::Engine(_) | TaskEvent::ToolEnded(_) | TaskEvent::ToolProgressed(_) => None,
    }
}

impl Host {
    /// From here on, what tasks do is noted for [`Host::take_observed`].
    pub fn observe(&mut self) {
        self.observations.list.get_or_insert_default();
    }

    /// What tasks have done since this was asked last; nothing without [`Host::observe`].
    pub fn take_observed(&mut self) -> Vec<Observation> {
        self.observations.list.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
