//! The tasks of a session: provider calls and tool calls that were started and have not ended.

use super::Recorder;
use crate::conversation::tool::ToolSpec;
use crate::protocol::attachment::Attachment;
use crate::protocol::id::TaskId;
use crate::session::Output;
use crate::session::answer_extraction::AnswerExtraction;
use crate::session::calls::{self, Available, SummaryWanted};
use crate::session::model::Selection;
use crate::task::call::Purpose;
use crate::task::server::ServerCall;
use std::sync::Arc;

impl Recorder {
    /// Whether a task goes on.
    #[cfg(test)]
    pub(in crate::session) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Has the engine make a provider call for `purpose`.
    pub(in crate::session) fn start_call(
        &mut self,
        purpose: Purpose,
        tools: Arc<[ToolSpec]>,
        (selection, summary): (&Selection, Option<&SummaryWanted>),
        asks_for_context: bool,
    ) -> TaskId {
        let task = self.new_task();
        let schema = self.answer_extraction.as_ref().and_then(AnswerExtraction::response_schema);
        let transcript = &self.projections.transcript;
        let available = Available { transcript, tools, schema, summary, asks_for_context };
        self.push(Output::StartCall(task, calls::spec(purpose, available, selection)));
        task
    }

    /// Has a server run a tool.
    pub(in crate::session) fn start_tool(&mut self, call: ServerCall) -> TaskId {
        let task = self.new_task();
        self.push(Output::StartTool(task, call));
        task
    }

    /// Has files read for a request. The task is not the active run's, and outlives it.
    pub(in crate::session) fn read_files(&mut self, attachments: Vec<Attachment>) -> TaskId {
        self.last_task.0 += 1;
        self.push(Output::ReadFiles(self.last_task, attachments));
        self.last_task
    }

    fn new_task(&mut self) -> TaskId {
        self.last_task.0 += 1;
        self.tasks.insert(self.last_task);
        self.last_task
    }

    /// Whether the task was started, and neither ended nor cancelled.
    pub(in crate::session) fn is_live(&self, task: TaskId) -> bool {
        self.tasks.contains(&task)
    }

    pub(in crate::session) fn task_ended(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    /// Has a task dropped, if it is live.
    pub(in crate::session) fn cancel_task(&mut self, task: TaskId) {
        if self.tasks.remove(&task) {
            self.push(Output::CancelTask(task));
        }
    }

    /// Has all live tasks dropped. However often and from wherever it is called.
    pub(in crate::session) fn cancel_tasks(&mut self) {
        for task in std::mem::take(&mut self.tasks) {
            self.push(Output::CancelTask(task));
        }
    }
}
