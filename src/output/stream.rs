//! Events for programs that know nothing of the protocol: newline-delimited JSON in an envelope of
//! its own. `start` comes first, exactly one `done` comes last, whatever happens in between.

use super::view::{View, cut_off, nothing_found, rejected};
use crate::chat::event::Usage;
use crate::json::{self, Error};
use crate::proto::chat::{ChatToolCallRequested, ChatToolResultReady};
use crate::proto::rpc::ErrorFrame;
use crate::session::{ExitCode, Moment};
use crate::wire::{Code, Frame};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Version of the events. Raised when a reader of the old ones could not read the new.
const PROTOCOL: u32 = 1;

/// What `start` tells, and what times are counted from.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// The command that runs.
    pub command: &'static str,
    /// The model that answers.
    pub model: String,
    /// Who provides it.
    pub provider: &'static str,
    /// The folder the process runs in.
    pub folder: String,
    /// When the process began, in milliseconds since 1970.
    pub epoch_ms: u64,
}

/// The events of one process.
#[derive(Clone, Debug)]
pub struct JsonStream {
    beginning: Beginning,
    session: String,
    is_streaming: bool,
    tools_used: Vec<String>,
    running: BTreeMap<String, Moment>,
    tokens: Option<i64>,
    reasoning_tokens: Option<i64>,
}

#[derive(Serialize)]
struct Event<'a> {
    protocol: u32,
    r#type: &'static str,
    #[serde(rename = "sessionId")]
    session_id: &'a str,
    timestamp: u64,
    payload: Value,
}

impl JsonStream {
    /// Events of a process that begins as told.
    pub fn new(beginning: Beginning) -> Self {
        Self {
            beginning,
            session: String::new(),
            is_streaming: false,
            tools_used: Vec::new(),
            running: BTreeMap::new(),
            tokens: None,
            reasoning_tokens: None,
        }
    }

    pub(super) fn frame(
        &mut self,
        now: Moment,
        frame: &Frame,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match View::of(frame) {
            View::Hello => {
                self.session = uuid_of(&frame.session_id).to_owned();
                let Beginning { command, model, provider, folder, .. } = &self.beginning;
                let start = json!({
                    "command": command, "model": model, "provider": provider, "cwd": folder
                });
                self.event(now, "start", without_empty(start), out)
            }
            View::RunStarted => self.status(now, ("running", "The model was asked"), out),
            View::Thinking(text) => self.event(now, "thinking", json!({ "content": text }), out),
            View::Text(text) => {
                if !std::mem::replace(&mut self.is_streaming, true) {
                    self.status(now, ("streaming", "Streaming AI response"), out)?;
                }
                self.event(now, "text_delta", json!({ "content": text }), out)
            }
            View::ToolRequested(call) => self.tool_started(now, call, out),
            View::ToolReturned(result) => self.tool_completed(now, result, out),
            View::CallFinished(call) => {
                if let Some(usage) = &call.usage {
                    let used = i64::from(usage.input_tokens) + i64::from(usage.output_tokens);
                    *self.tokens.get_or_insert(0) += used;
                }
                match cut_off(call) {
                    Some(why) => self.status(now, ("truncated", why), out),
                    None => Ok(()),
                }
            }
            View::Rejected(line) => self.status(now, ("warning", &rejected(line)), out),
            View::Extracted(tally) => match nothing_found(tally) {
                Some(message) => self.status(now, ("warning", message), out),
                None => Ok(()),
            },
            View::Error(error) => self.error(now, error, out),
            View::Object(_) | View::Other => Ok(()),
        }
    }

    /// Of all calls together, as `tokensUsed` is.
    pub(super) fn usage(&mut self, usage: Usage) {
        if let Some(tokens) = usage.reasoning_tokens {
            *self.reasoning_tokens.get_or_insert(0) += i64::from(tokens);
        }
    }

    pub(super) fn end(
        &mut self,
        now: Moment,
        code: ExitCode,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let status = status(code);
        let mut done = json!({
            "exitCode": status,
            "duration": now.0,
            "toolsUsed": self.tools_used,
            "success": status == 0,
        });
        if let Some(tokens) = self.tokens {
            done["tokensUsed"] = tokens.into();
        }
        if let Some(tokens) = self.reasoning_tokens {
            done["reasoningTokens"] = tokens.into();
        }
        self.event(now, "done", done, out)
    }

    fn tool_started(
        &mut self,
        now: Moment,
        call: &ChatToolCallRequested,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.running.insert(call.tool_call_id.clone(), now);
        if !self.tools_used.contains(&call.tool_name) {
            self.tools_used.push(call.tool_name.clone());
        }
        // These readers want an object: what is none is put into one, as the model wrote it.
        let parameters = serde_json::from_str::<Map<String, Value>>(&call.input);
        let parameters = parameters.map_or_else(|_| json!({ "input": call.input }), Value::Object);
        let started = json!({
            "tool": call.tool_name, "toolId": call.tool_call_id, "parameters": parameters
        });
        self.event(now, "tool_started", started, out)
    }

    fn tool_completed(
        &mut self,
        now: Moment,
        result: &ChatToolResultReady,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // What was never started has no end either.
        let Some(started) = self.running.remove(&result.tool_call_id) else { return Ok(()) };
        let success = result.status == "success";
        let mut completed = json!({
            "tool": result.tool_name, "toolId": result.tool_call_id, "success": success,
            "duration": now.0.saturating_sub(started.0),
        });
        if !success {
            completed["error"] = result.result.clone().into();
        }
        self.event(now, "tool_completed", completed, out)
    }

    fn status(
        &self,
        now: Moment,
        (status, message): (&str, &str),
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.event(now, "status", json!({ "status": status, "message": message }), out)
    }

    fn error(&self, now: Moment, error: &ErrorFrame, out: &mut Vec<u8>) -> Result<(), Error> {
        let code = code(error);
        let error =
            json!({ "code": code, "message": error.message, "recoverable": !error.terminal });
        self.event(now, "error", json!({ "error": error }), out)
    }

    fn event(
        &self,
        now: Moment,
        r#type: &'static str,
        payload: Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let timestamp = self.beginning.epoch_ms.saturating_add(now.0);
        let event =
            Event { protocol: PROTOCOL, r#type, session_id: &self.session, timestamp, payload };
        json::write_line(&event, out)
    }
}

/// The status of the process: these readers know of success, failure, wrong usage and an answer
/// that is cut off; a signal or a defect is a failure to them.
pub(super) fn status(code: ExitCode) -> u8 {
    match code {
        ExitCode::Ok | ExitCode::Usage | ExitCode::CutOff | ExitCode::OutputFailed => code.number(),
        ExitCode::RunFailed
        | ExitCode::InputFailed
        | ExitCode::Internal
        | ExitCode::Interrupted(_) => ExitCode::RunFailed.number(),
    }
}

/// The word that these readers know for what went wrong.
fn code(error: &ErrorFrame) -> &'static str {
    if error.code == Code::Interrupted.as_str() {
        return "PROCESS_CRASHED";
    }
    match error.detail.split(':').next().unwrap_or_default() {
        "auth" => "AUTH_EXPIRED",
        "timeout" | "network" => "NETWORK_TIMEOUT",
        "context_overflow" => "CONTEXT_LIMIT",
        "malformed_stream" => "MALFORMED_EVENT",
        "internal" => "PROCESS_CRASHED",
        _ if error.code == Code::Internal.as_str() => "PROCESS_CRASHED",
        _ => "UNKNOWN",
    }
}

/// These readers know a session by a UUID: the one within a generated id, where there is one.
fn uuid_of(session: &str) -> &str {
    let uuid = session.strip_prefix("session-").filter(|rest| Uuid::try_parse(rest).is_ok());
    uuid.unwrap_or(session)
}

/// An optional member that is not known is left out.
fn without_empty(mut payload: Value) -> Value {
    if let Value::Object(members) = &mut payload {
        members.retain(|_, value| value.as_str().is_none_or(|text| !text.is_empty()));
    }
    payload
}
