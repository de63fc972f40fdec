//! Logs inputs: ids, kinds and sizes, never the text of the conversation.

use crate::engine::{EngineEvent, RunEnd};
use crate::protocol::wire::Command;
use crate::session::Input;
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
        Input::Engine(run, event) => {
            let (event, bytes) = (kind(event), event.text_bytes());
            trace!(%run, event, bytes, "engine event");
        }
        Input::RunEnded(run, RunEnd::Finished) => info!(%run, "the engine has answered"),
        Input::RunEnded(run, RunEnd::Failed(error)) => {
            let (class, message) = (error.class.as_str(), &error.message);
            info!(%run, class, message, "the engine has failed");
        }
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
        Command::Cancel => "cancel",
        Command::Snapshot => "snapshot",
        Command::Shutdown => "shutdown",
    }
}

fn kind(event: &EngineEvent) -> &'static str {
    match event {
        EngineEvent::CallStarted => "call started",
        EngineEvent::Reasoning { .. } => "reasoning",
        EngineEvent::Text(_) => "text",
        EngineEvent::ToolCallStarted(_) => "tool call started",
        EngineEvent::ToolArguments { .. } => "tool arguments",
        EngineEvent::ToolCallRequested { .. } => "tool call requested",
        EngineEvent::ToolExecutionStarted { .. } => "tool execution started",
        EngineEvent::ToolReturned { .. } => "tool returned",
        EngineEvent::Usage(_) => "usage",
        EngineEvent::CallFinished { .. } => "call finished",
    }
}
