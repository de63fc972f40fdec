//! Tasks that start once what led to them is stored: the write checks that the session is still this process's, so
//! one that has lost it asks no provider and runs no tool.

use super::Host;
use crate::protocol::id::TaskId;
use crate::task::call::CallSpec;
use crate::task::server::ServerCall;
use std::collections::VecDeque;

/// A task that is to start.
#[derive(Debug)]
pub(super) enum Start {
    Call(TaskId, CallSpec),
    Tool(TaskId, ServerCall),
}

/// The tasks that wait for the store.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Whether tasks wait for it.
    are_held: bool,
    /// Each with how many records must be stored first.
    held: VecDeque<(u64, Start)>,
}

impl Start {
    fn task(&self) -> TaskId {
        match self {
            Self::Call(task, _) | Self::Tool(task, _) => *task,
        }
    }
}

impl Starts {
    /// Drops a task that has not started; returns whether there was one.
    pub(super) fn cancel(&mut self, task: TaskId) -> bool {
        let before = self.held.len();
        self.held.retain(|(_, start)| start.task() != task);
        self.held.len() < before
    }

    /// Drops the tasks that have not started.
    pub(super) fn cancel_all(&mut self) {
        self.held.clear();
    }
}

impl Host {
    /// From here on provider calls and tools start once the events before them are stored, and not at all where they
    /// can't be.
    #[cfg(feature = "serve")]
    pub(crate) fn store_before_starts(&mut self) {
        self.starts.are_held = true;
    }

    /// Starts a task, at once or when the records so far are stored.
    pub(super) fn start(&mut self, start: Start) {
        let recorded = self.persist_gate.recorded();
        match self.starts.are_held && !self.persist_gate.has_stored(recorded) {
            true => self.starts.held.push_back((recorded, start)),
            false => self.begin(start),
        }
    }

    /// Starts the tasks whose records are stored.
    pub(super) fn start_stored(&mut self) {
        while let Some(start) = self.next_stored() {
            self.begin(start);
        }
    }

    fn next_stored(&mut self) -> Option<Start> {
        let Self { starts, persist_gate, .. } = self;
        let (_, start) = starts.held.pop_front_if(|it| persist_gate.has_stored(it.0))?;
        Some(start)
    }

    fn begin(&mut self, start: Start) {
        match start {
            Start::Call(task, spec) => {
                tracing::info!(%task, tools = spec.tools.len(), "a provider call starts");
                let facts = || self.engines.facts_of(&spec.engine);
                self.observations.call(task, &spec, facts);
                let fault = std::mem::take(&mut self.engine_fault);
                self.tasks.start_call(&self.engines, task, spec, fault);
            }
            Start::Tool(task, call) => {
                let ServerCall { server, tool, arguments, .. } = call;
                tracing::info!(%task, %server, tool, "a tool call starts");
                self.observations.tool(task, &server.to_string(), &tool);
                let running = self.servers.call(&server, &tool, arguments);
                self.tasks.start_tool(task, Box::pin(running));
            }
        }
    }
}
