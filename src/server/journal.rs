//! What happens, for the log. Ids, kinds and sizes; never what was said.

use crate::engine::{EngineEvent, RunEnd};
use crate::session::Input;
use crate::wire::Command;
use tracing::{Level, debug, enabled, info, trace};

/// Logs an input before it is handled.
pub(super) fn input(input: &Input) {
    if !enabled!(Level::INFO) {
        return;
    }
    match input {
        Input::Request(request) => {
            let (request, command) = (request.id.as_str(), command(&request.command));
            debug!(request, command, "a request");
        }
        Input::BadLine(line) => debug!(fault = ?line.fault, "a line that is no request"),
        Input::InputEnded => info!("no more requests come"),
        Input::InputFailed { reason } => info!(reason, "requests can't be read any more"),
        Input::Engine(run, event) => {
            let (event, bytes) = engine_event(event);
            trace!(%run, event, bytes, "the engine says");
        }
        Input::RunEnded(run, RunEnd::Finished) => info!(%run, "the engine has answered"),
        Input::RunEnded(run, RunEnd::Failed(error)) => {
            let (class, message) = (error.class.as_str(), &error.message);
            info!(%run, class, message, "the engine has failed");
        }
        Input::Interrupted(signal) => info!(%signal, "a signal"),
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

/// The kind of an event, and how much text it has.
fn engine_event(event: &EngineEvent) -> (&'static str, usize) {
    match event {
        EngineEvent::CallStarted => ("call started", 0),
        EngineEvent::Reasoning { text, .. } => ("reasoning", text.len()),
        EngineEvent::Text(text) => ("text", text.len()),
        EngineEvent::ToolCallStarted(_) => ("tool call started", 0),
        EngineEvent::ToolArguments { text, .. } => ("tool arguments", text.len()),
        EngineEvent::ToolCallRequested { .. } => ("tool call requested", 0),
        EngineEvent::ToolExecutionStarted { .. } => ("tool execution started", 0),
        EngineEvent::ToolReturned { result, .. } => ("tool returned", result.text().len()),
        EngineEvent::Usage(_) => ("usage", 0),
        EngineEvent::CallFinished { .. } => ("call finished", 0),
    }
}
