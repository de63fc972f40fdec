//! The end of a run: everything that it opened is closed, then the run, then its request.

use super::open::{CallFinish, OpenTool, ToolProgress};
use super::{Outcome, Run, RunKind, RunStage, Stop, Uptime};
use crate::conversation::event::{Ending, Event, FinishClass, ToolResult};
use crate::conversation::transcript::INTERRUPTED_TOOL;
use crate::protocol::command::Decision;
use crate::protocol::constants::{REASON_OF_FAILED, finish};
use crate::protocol::wire::Done;
use crate::session::recorder::Recorder;
use crate::task::report::Stage;

impl Run {
    /// Records the end: what is open is closed, then the run, then its request.
    pub(in crate::session) fn end(
        &mut self,
        recorder: &mut Recorder,
        now: Uptime,
        outcome: Outcome,
    ) {
        // First of all, so that provider and tools are stopped without delay.
        recorder.cancel_tasks();
        let (ending, class, reason) = match &outcome {
            Outcome::Finished => (Ending::Finished, FinishClass::Completed, ""),
            Outcome::Stopped(_) => (Ending::Stopped, FinishClass::Cancelled, finish::CANCELLED),
            Outcome::Failed(_) => (Ending::Failed, FinishClass::Failed, REASON_OF_FAILED),
        };
        let is_free = match &outcome {
            Outcome::Finished | Outcome::Stopped(_) => false,
            Outcome::Failed(error) => {
                matches!(error.stage, Stage::Init | Stage::Budget | Stage::Refused)
            }
        };
        let stop_reason = reason.to_owned();
        let finish = CallFinish { stop_reason, is_free, ..CallFinish::cut(class, ending) };
        // Before the stage changes: the price of the call depends on its purpose.
        self.close_call(recorder, now, finish);
        self.stage = RunStage::Ended;
        self.close_tools(recorder);
        self.scope.call = 0;
        self.close_compaction(recorder);
        if self.kind == RunKind::Compaction {
            return self.end_compaction(recorder, outcome);
        }
        match outcome {
            Outcome::Finished => {
                let duration_ms = now.since(self.started);
                let cut_off = self.cut_off.take();
                self.record(recorder, Event::RunFinished { duration_ms, cut_off });
                recorder.final_snapshot(&self.request);
                match recorder.take_invalid() {
                    None => recorder.done(Some(&self.request), Done::Ok),
                    Some(client_error) => recorder.refuse(Some(&self.request), client_error),
                }
            }
            Outcome::Stopped(Stop { reason, error }) => {
                self.record(recorder, Event::RunStopped { reason });
                recorder.final_snapshot(&self.request);
                if let Some(client_error) = error {
                    recorder.error(Some(&self.request), client_error);
                }
                recorder.done(Some(&self.request), Done::Stopped);
            }
            Outcome::Failed(error) => {
                self.record(recorder, Event::RunFailed { error: error.message.clone() });
                recorder.final_snapshot(&self.request);
                recorder.run_failed(&self.request, error);
            }
        }
    }

    /// Closes what was cut off. A call that the model has made gets a result, because the next
    /// request to the provider needs one.
    pub(super) fn close_tools(&mut self, recorder: &mut Recorder) {
        for OpenTool { tool, progress, input, is_asked, has_result, .. } in self.tools.clone() {
            if is_asked {
                let decision = Decision::Deny { reason: "the run has ended".to_owned() };
                let tool = tool.clone();
                self.record(recorder, Event::ApprovalResolved { tool, decision });
            }
            if progress != ToolProgress::Started && !has_result {
                let result = ToolResult::Error(INTERRUPTED_TOOL.to_owned()).into();
                self.record(recorder, Event::ToolResultReady { tool: tool.clone(), result });
            }
            let partial_input =
                if progress == ToolProgress::Started { input } else { String::new() };
            self.record(recorder, Event::ToolCallFinished { tool, partial_input });
        }
    }

    /// Closes the calls whose arguments never became whole.
    pub(super) fn drop_unfinished_tools(&mut self, recorder: &mut Recorder) {
        let unfinished = self.tools.iter().filter(|open| open.progress == ToolProgress::Started);
        let unfinished = unfinished.map(|open| (open.tool.clone(), open.input.clone()));
        for (tool, partial_input) in unfinished.collect::<Vec<_>>() {
            self.record(recorder, Event::ToolCallFinished { tool, partial_input });
        }
    }
}
