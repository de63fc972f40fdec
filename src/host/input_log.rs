//! Logs inputs: ids, kinds and sizes, never the text of the conversation.

use crate::conversation::event::CallProgress;
use crate::engine::{CallEnd, EngineEvent};
use crate::protocol::command::Command;
use crate::session::{Input, TaskEvent};
use crate::support::log_targets::words_of_provider;
use tracing::{Level, debug, enabled, info, trace};

/// Logs an input before it is handled.
pub(crate) fn input(input: &Input) {
    if !enabled!(Level::INFO) {
        return;
    }
    match input {
        Input::Request(request) => {
            let (request, command) = (request.id.as_str(), command(&request.command));
            debug!(request, command, "received a request");
        }
        Input::BadLine(line) => debug!(fault = ?line.fault, "invalid request line"),
        Input::InputEnded => info!("end of input"),
        Input::InputFailed { reason } => info!(reason, "requests can't be read any more"),
        Input::Task(task, TaskEvent::Engine(event)) => {
            let (event, bytes) = (kind(event), event.text_bytes());
            trace!(%task, event, bytes, "an engine event");
        }
        Input::Task(task, TaskEvent::CallEnded(CallEnd::Finished)) => {
            info!(%task, "the engine has answered");
        }
        Input::Task(task, TaskEvent::CallEnded(CallEnd::Failed(error))) => {
            let (class, message) = (error.class.as_str(), words_of_provider(&error.message));
            info!(%task, class, message, "the engine has failed");
        }
        Input::Task(task, TaskEvent::ToolEnded(result)) => {
            let (status, bytes) = (result.status(), result.text().len());
            info!(%task, status, bytes, "a tool has returned");
        }
        Input::Task(task, TaskEvent::ToolProgressed(CallProgress { progress, total, .. })) => {
            trace!(%task, progress, total, "a tool goes on");
        }
        Input::FilesRead(task, outcome) => {
            let is_read = outcome.is_ok();
            info!(%task, is_read, "files have been read");
        }
        Input::DeadlineReached => debug!("a deadline"),
        Input::ServerChanged(change) => {
            let (server, state, tools) = (&change.server, &change.state, change.tools.len());
            info!(%server, ?state, tools, "a tool server has changed");
        }
        Input::Restored(Some(_)) => info!("a stored conversation was loaded"),
        Input::Restored(None) => debug!("the store is open"),
        Input::StoreFailed(failure) => info!(failure.reason, "the store has failed"),
        Input::Interrupted(signal) => info!(%signal, "received a signal"),
        Input::Refused(client_error) => {
            info!(detail = client_error.detail, "the command was refused")
        }
        Input::ReaderGone => info!("nobody reads standard output any more"),
    }
}

fn command(command: &Command) -> &'static str {
    match command {
        Command::Submit(_) => "submit",
        Command::Cancel(_) => "cancel",
        Command::Snapshot(_) => "snapshot",
        Command::Shutdown => "shutdown",
        Command::Enable(_) => "enable",
        Command::DeclareTools(_) => "declareTools",
        Command::ToolResult(_) => "toolResult",
        Command::Approve(_) => "approve",
        Command::SwitchModel(_) => "switchModel",
        Command::Edit(_) => "edit",
        Command::Compact(_) => "compact",
        Command::Rename(_) => "rename",
        Command::NoteApproval(_) => "approval",
    }
}

fn kind(event: &EngineEvent) -> &'static str {
    match event {
        EngineEvent::CallStarted => "call started",
        EngineEvent::ResponseStarted => "response started",
        EngineEvent::Reasoning { .. } => "reasoning",
        EngineEvent::Text(_) => "text",
        EngineEvent::ToolCallStarted(_) => "tool call started",
        EngineEvent::ToolArguments { .. } => "tool arguments",
        EngineEvent::ToolCallRequested { .. } => "tool call requested",
        EngineEvent::Usage(_) => "usage",
        EngineEvent::ContextTokens(_) => "context tokens",
        EngineEvent::RetryScheduled(_) => "retry scheduled",
        EngineEvent::RetryStarted(_) => "retry started",
        EngineEvent::CallFinished { .. } => "call finished",
    }
}
