//! A round of tools: the calls of one answer, from the end of the provider call that made them to
//! the last of their results. All of them run at the same time.

use super::open::{OpenTool, ToolProgress};
use super::{Context, Run, RunStage};
use crate::conversation::event::{CallProgress, Event, ToolCall, ToolResult};
use crate::protocol::attachment::CONVERSATION_BYTES_MAX;
use crate::protocol::command::{Approve, ClientToolResult, Decision, Extension, ReturnedObject};
use crate::protocol::id::{TaskId, ToolCallId};
use crate::protocol::wire::ClientError;
use crate::session::client_error::{no_tools, too_many_rounds, unknown_tool_call};
use crate::session::toolbox::{NOBODY_CAN_APPROVE, Verdict};
use crate::session::{Hint, Output, Uptime, Warning};
use crate::task::report::RunError;
use crate::task::server::ServerCall;

/// The name of the warning that a call was not made because nobody could approve it.
const NOT_APPROVED: &str = "tool_not_approved";

/// The result of a call that an answer ends with before its arguments have begun.
const WITHOUT_ARGUMENTS: &str =
    "The call was not made: the answer was cut off before its arguments.";

/// A call that reports progress may take as many times as long as one that is silent.
const PROGRESS_TIMES_MAX: u64 = 6;

impl Run {
    /// Begins the round of the calls that the answer has made.
    ///
    /// # Errors
    /// If the run has had as many rounds as it may, or the session has no tools.
    pub(super) fn begin_round(&mut self, context: &mut Context<'_>) -> Result<(), RunError> {
        let limits = context.tools.rules();
        if !context.tools.has_tools() {
            let names = self.tools.iter().map(|open| open.tool.name.as_str());
            return Err(no_tools(&names.collect::<Vec<_>>(), context.tools.hints()));
        }
        self.rounds += 1;
        if self.rounds > limits.rounds_max {
            return Err(too_many_rounds(limits.rounds_max, context.tools.hints()));
        }
        let calls_max = limits.calls_per_round_max;
        self.stage = RunStage::Tools;
        let ids: Vec<_> = self.tools.iter().map(|open| open.tool.id.clone()).collect();
        for (at, id) in ids.into_iter().enumerate() {
            match at < calls_max {
                true => self.begin_tool(context, &id),
                false => {
                    let why = format!(
                        "The call was not made: one answer may make {calls_max} calls{}. Make it \
                         again.",
                        context.tools.hints().of(Hint::ToolCalls)
                    );
                    self.tool_result(context, &id, ToolResult::Error(why));
                }
            }
        }
        Ok(())
    }

    fn begin_tool(&mut self, context: &mut Context<'_>, id: &ToolCallId) {
        let is_cut_off = self.cut_off.is_some();
        let Some(open) = self.open_tool_mut(id) else { return };
        let (tool, input) = (open.tool.clone(), open.input.clone());
        // What is missing looks like the arguments of a tool that needs none.
        if is_cut_off && matches!(input.trim(), "" | "{}") {
            return self.tool_result(context, id, ToolResult::Error(WITHOUT_ARGUMENTS.to_owned()));
        }
        match context.tools.verdict(&tool.name, &input, context.can_ask) {
            Verdict::Run(call) => self.execute(context, id, call),
            Verdict::Ask(call) => {
                let deadline = context.after(context.tools.rules().ask_ms);
                let server = call.server.to_string();
                open.progress = ToolProgress::Approval { call, deadline };
                open.since = context.now;
                self.record(context.recorder, Event::ApprovalRequested { tool, server, input });
            }
            Verdict::Client { .. } if !context.has_client => {
                let why =
                    "The call was not made: the client has ended its input, and can't run it.";
                self.tool_result(context, id, ToolResult::Error(why.to_owned()));
            }
            Verdict::Client { arguments, is_human } => {
                let rules = context.tools.rules();
                let wait_ms = if is_human { rules.ask_ms } else { rules.call_ms };
                let deadline = context.after(wait_ms);
                open.progress = ToolProgress::Client { deadline };
                open.since = context.now;
                self.execution_started(context, &tool, input);
                let event = Event::ClientCallRequested { tool, input: arguments, is_human };
                self.record(context.recorder, event);
            }
            Verdict::Refuse(why) => {
                if why == NOBODY_CAN_APPROVE {
                    let rule = context.tools.allow_rule(&tool.name);
                    let hint = context.tools.hints().of(Hint::AllowTool(rule.as_ref()));
                    let warning = not_approved(&tool.name, &hint);
                    context.recorder.push(Output::Warning(warning));
                }
                self.tool_result(context, id, ToolResult::Error(why));
            }
        }
    }

    fn execute(&mut self, context: &mut Context<'_>, id: &ToolCallId, call: ServerCall) {
        let call_ms = context.tools.rules().call_ms;
        let deadline = context.after(call_ms);
        let last_deadline = context.after(call_ms.saturating_mul(PROGRESS_TIMES_MAX));
        let (task, now) = (context.recorder.start_tool(call), context.now);
        let Some(open) = self.open_tool_mut(id) else { return };
        open.progress = ToolProgress::Executing { task, deadline, last_deadline };
        open.since = now;
        let (tool, input) = (open.tool.clone(), open.input.clone());
        self.execution_started(context, &tool, input);
    }

    fn execution_started(&mut self, context: &mut Context<'_>, tool: &ToolCall, input: String) {
        let event = Event::ToolExecutionStarted { tool: tool.clone(), input };
        self.record(context.recorder, event);
    }

    /// The server's tool that runs as `task` goes on: it has its time anew.
    pub(super) fn tool_progressed(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        progress: CallProgress,
    ) {
        let renewed = context.after(context.tools.rules().call_ms);
        let is_followed = context.recorder.is_on(Extension::ToolProgress);
        let tool = self.tools.iter_mut().find_map(|open| match &mut open.progress {
            ToolProgress::Executing { task: its, deadline, last_deadline } if *its == task => {
                *deadline = renewed.min(*last_deadline);
                Some(open.tool.clone())
            }
            ToolProgress::Started
            | ToolProgress::Requested
            | ToolProgress::Approval { .. }
            | ToolProgress::Client { .. }
            | ToolProgress::Executing { .. } => None,
        });
        if let Some(tool) = tool.filter(|_| is_followed) {
            self.record(context.recorder, Event::ToolProgressed { tool, progress });
        }
    }

    /// The result of the server's tool that runs as `task`.
    pub(super) fn task_result(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        result: ToolResult,
    ) {
        let is_it = |open: &&OpenTool| matches!(open.progress, ToolProgress::Executing { task: its, .. } if its == task);
        let Some(id) = self.tools.iter().find(is_it).map(|open| open.tool.id.clone()) else {
            return;
        };
        // Counted only where it matters: each turn of the conversation is looked at for it.
        let result = match result.images() {
            [] => result,
            [..] => {
                let held_bytes = context.recorder.attached_bytes();
                result.within(CONVERSATION_BYTES_MAX.saturating_sub(held_bytes))
            }
        };
        self.tool_result(context, &id, result);
    }

    /// The client's answer to a call of its tool.
    ///
    /// # Errors
    /// If no such call waits for the client.
    pub(in crate::session) fn client_result(
        &mut self,
        context: &mut Context<'_>,
        answer: ClientToolResult,
    ) -> Result<(), ClientError> {
        let waits = |open: &&OpenTool| {
            matches!(open.progress, ToolProgress::Client { .. })
                && answer.tool_name.as_ref().is_none_or(|name| *name == open.tool.name)
        };
        let open = self.tools.iter().filter(waits).find(|open| open.tool.id == answer.call);
        let Some(tool) = open.map(|open| open.tool.clone()) else {
            return Err(unknown_tool_call(&answer.call));
        };
        let (returned, text) = match answer.result {
            Some(ReturnedObject { message, json }) => (Some(message), Some(json)),
            None => (None, None),
        };
        let result = match &answer.error {
            None => ToolResult::Success(text.unwrap_or_default()),
            Some(error) if error.is_empty() => {
                let text = text.unwrap_or_else(|| "The tool failed.".to_owned());
                ToolResult::Error(text)
            }
            Some(error) => ToolResult::Error(error.clone()),
        };
        let result = context.tools.cut(result);
        let error = if result.is_error() { result.text().to_owned() } else { String::new() };
        let id = tool.id.clone();
        let event = Event::ClientResultReceived { tool, result: returned, error };
        self.record(context.recorder, event);
        self.tool_result(context, &id, result);
        Ok(())
    }

    /// The client's decision about a call.
    ///
    /// # Errors
    /// If no such call waits for approval.
    pub(in crate::session) fn approve(
        &mut self,
        context: &mut Context<'_>,
        approve: Approve,
    ) -> Result<(), ClientError> {
        let Approve { call: id, decision } = approve;
        let Some(call) = self.awaits_approval(&id) else {
            return Err(unknown_tool_call(&id));
        };
        let definition = call.definition;
        let is_for_session = decision == Decision::AllowSession;
        self.resolve(context, &id, call, decision);
        if is_for_session {
            self.allow_others(context, definition);
        }
        Ok(())
    }

    /// Allows the other calls of a tool that the client has allowed for the session.
    fn allow_others(&mut self, context: &mut Context<'_>, definition: u64) {
        let ids: Vec<_> = self.tools.iter().map(|open| open.tool.id.clone()).collect();
        for id in ids {
            if let Some(call) = self.awaits_approval(&id).filter(|it| it.definition == definition) {
                self.resolve(context, &id, call, Decision::AllowSession);
            }
        }
    }

    fn awaits_approval(&self, id: &ToolCallId) -> Option<ServerCall> {
        let open = self.tools.iter().find(|open| open.tool.id == *id)?;
        let ToolProgress::Approval { call, .. } = &open.progress else { return None };
        Some(call.clone())
    }

    fn resolve(
        &mut self,
        context: &mut Context<'_>,
        id: &ToolCallId,
        call: ServerCall,
        decision: Decision,
    ) {
        let Some(tool) = self.open_tool_mut(id).map(|open| open.tool.clone()) else { return };
        let decision = match decision {
            Decision::Deny { .. } => decision,
            Decision::AllowOnce | Decision::AllowSession => {
                match context.tools.changed(&tool.name, call.definition) {
                    None => decision,
                    // The approval was for another definition of the tool.
                    Some(why) => Decision::Deny { reason: why.to_owned() },
                }
            }
        };
        let event = Event::ApprovalResolved { tool, decision: decision.clone() };
        self.record(context.recorder, event);
        match decision {
            Decision::AllowOnce => self.execute(context, id, call),
            Decision::AllowSession => {
                context.tools.allow(call.definition);
                self.execute(context, id, call);
            }
            Decision::Deny { reason } => {
                let why = match reason.trim() {
                    "" => "The call was not made: it was denied.".to_owned(),
                    reason => format!("The call was not made: it was denied: {reason}"),
                };
                self.tool_result(context, id, ToolResult::Error(why));
            }
        }
    }

    /// No client can answer any more: what waits for one gets an error as its result.
    pub(in crate::session) fn client_gone(&mut self, context: &mut Context<'_>) {
        self.give_up_on(context, "the client's input has ended", |progress| {
            matches!(progress, ToolProgress::Approval { .. } | ToolProgress::Client { .. })
        });
    }

    /// Ends the calls whose time is up.
    pub(super) fn expire_tools(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        self.give_up_on(context, "the time for it is over", |progress| {
            progress.deadline().is_some_and(|deadline| deadline <= now)
        });
    }

    fn give_up_on(
        &mut self,
        context: &mut Context<'_>,
        why: &str,
        is_meant: impl Fn(&ToolProgress) -> bool,
    ) {
        let meant = self.tools.iter().filter(|open| is_meant(&open.progress));
        let meant: Vec<_> =
            meant.map(|open| (open.tool.id.clone(), open.progress.clone())).collect();
        for (id, progress) in meant {
            match progress {
                ToolProgress::Approval { call, .. } => {
                    let reason = format!("nobody decided: {why}");
                    self.resolve(context, &id, call, Decision::Deny { reason });
                }
                ToolProgress::Executing { task, .. } => {
                    context.recorder.cancel_task(task);
                    let text = format!(
                        "The call was ended before it returned a result: {why}{}. What it has done \
                         so far is not known.",
                        context.tools.hints().of(Hint::ToolTime)
                    );
                    self.tool_result(context, &id, ToolResult::Error(text));
                }
                ToolProgress::Started | ToolProgress::Requested | ToolProgress::Client { .. } => {
                    let text = format!("There is no result: {why}.");
                    self.tool_result(context, &id, ToolResult::Error(text));
                }
            }
        }
    }

    /// Gives a call its result, which ends it.
    pub(super) fn tool_result(
        &mut self,
        context: &mut Context<'_>,
        id: &ToolCallId,
        result: ToolResult,
    ) {
        let Some(tool) = self.open_tool_mut(id).map(|open| open.tool.clone()) else { return };
        self.count.add_result(&result);
        let (of, result) = (tool.clone(), result.into());
        self.record(context.recorder, Event::ToolResultReady { tool: of, result });
        let partial_input = String::new();
        self.record(context.recorder, Event::ToolCallFinished { tool, partial_input });
    }

    /// The earliest time at which a call's time is up.
    pub(super) fn tools_deadline(&self) -> Option<Uptime> {
        self.tools.iter().filter_map(|open| open.progress.deadline()).min()
    }

    fn open_tool_mut(&mut self, id: &ToolCallId) -> Option<&mut OpenTool> {
        self.tools.iter_mut().find(|open| open.tool.id == *id)
    }
}

impl ToolProgress {
    fn deadline(&self) -> Option<Uptime> {
        match self {
            Self::Started | Self::Requested => None,
            Self::Approval { deadline, .. }
            | Self::Client { deadline }
            | Self::Executing { deadline, .. } => Some(*deadline),
        }
    }
}

fn not_approved(name: &str, hint: &str) -> Warning {
    let text = format!(
        "the model called the tool {name}, which needs approval, and nobody can be asked; it was \
         not run{hint}"
    );
    Warning { text, has_event: false, code: Some(NOT_APPROVED) }
}
