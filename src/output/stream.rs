//! Events for programs that don't know the protocol: newline-delimited JSON in an envelope of its
//! own. `start` comes first and exactly one `done` comes last, whatever happens in between.

use super::view::{
    CallBreaks, View, by_name, class, cut_off, is_recoverable, nothing_found, rejected,
};
use crate::conversation::event::Usage;
use crate::engine::ErrorClass;
use crate::extract::on_one_line;
use crate::host::CodedWarning;
use crate::protocol::constants::{SESSION_NOT_FOUND, finish, tool_result};
use crate::protocol::json::{self, Error};
use crate::protocol::proto::chat::{
    ChatProviderCallFinished, ChatToolCallRequested, ChatToolExecutionStarted, ChatToolResultReady,
};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::wire::{Code, Frame};
use crate::session::{ExitCode, Uptime};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Version of the events. Raised when an older reader could not read new events.
const PROTOCOL: u32 = 1;

/// Why an answer is incomplete that the provider reported as complete: its last value has no end.
const OPEN_VALUE: &str = "open_value";

/// The content of `start`, and the origin of event times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginning {
    /// The command.
    pub command: &'static str,
    /// The model.
    pub model: String,
    /// The provider's host, or the name of the built-in engine.
    pub provider: String,
    /// The working directory of the process.
    pub folder: String,
    /// When the process began, in milliseconds since 1970.
    pub epoch_ms: u64,
    /// Warnings before the answer.
    pub warnings: Vec<CodedWarning>,
}

/// The event stream of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonStream {
    beginning: Beginning,
    session: String,
    is_streaming: bool,
    breaks: CallBreaks,
    tools_used: Vec<String>,
    open_tools: BTreeMap<String, OpenTool>,
    tokens: Option<i64>,
    cut_off: Option<CutOff>,
    reasoning_tokens: Option<i64>,
    /// The answer must be a document.
    has_document: bool,
    document: Option<Box<RawValue>>,
    /// Values in the text of the present provider call.
    objects: u64,
}

/// A tool call without a result.
#[derive(Clone, Debug)]
enum OpenTool {
    /// The model has made it. It may have to wait for an approval, or never run.
    Requested {
        /// The arguments as the model wrote them.
        input: String,
    },
    /// It was reported as started.
    Started(Uptime),
}

/// An incomplete answer.
#[derive(Clone, Debug)]
struct CutOff {
    message: &'static str,
    /// The provider's finish reason, by its protocol name, or [`OPEN_VALUE`].
    detail: String,
}

/// The payload of `done`, whose document is written as the model wrote it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a RawValue>,
    duration: u64,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<i64>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_used: Option<i64>,
    tools_used: &'a [String],
}

/// The payload of `tool_started`, whose parameters are written as the model wrote them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started<'a> {
    parameters: Box<RawValue>,
    tool: &'a str,
    tool_id: &'a str,
}

#[derive(Serialize)]
struct StreamEvent<'a, P> {
    protocol: u32,
    r#type: &'static str,
    #[serde(rename = "sessionId")]
    session_id: &'a str,
    timestamp: u64,
    payload: P,
}

impl JsonStream {
    /// The stream of a process that begins with this `start`; `has_document`: its answer must be a document.
    pub(crate) fn new(beginning: Beginning, has_document: bool) -> Self {
        Self { beginning, has_document, ..Self::default() }
    }

    pub(super) fn frame(
        &mut self,
        now: Uptime,
        frame: &Frame,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match View::of(frame) {
            View::Hello => self.start(now, &frame.session_id, out),
            View::RunStarted => self.status(now, ("running", "The model was asked"), out),
            View::Thinking(text) => self.event(now, "thinking", json!({ "content": text }), out),
            View::Text(text) => {
                if !std::mem::replace(&mut self.is_streaming, true) {
                    self.status(now, ("streaming", "Streaming AI response"), out)?;
                }
                let content = format!("{}{text}", self.breaks.before(text));
                self.event(now, "text_delta", json!({ "content": content }), out)
            }
            View::CallStarted => {
                self.breaks.call_started();
                (self.document, self.objects) = (None, 0);
                Ok(())
            }
            View::Object(object) => {
                self.objects += 1;
                if self.has_document {
                    self.document = Some(RawValue::from_string(object.json.clone())?);
                }
                Ok(())
            }
            View::ToolRequested(call) => {
                self.tool_requested(call);
                Ok(())
            }
            View::ToolStarted(call) => self.tool_executing(now, call, out),
            View::ToolReturned(result) => self.tool_completed(now, result, out),
            View::CallFinished(call) => self.call_finished(now, call, out),
            View::Rejected(line) => self.status(now, ("warning", &rejected(line)), out),
            View::Extracted(tally) => match nothing_found(self.objects, tally) {
                Some(message) => self.status(now, ("warning", message), out),
                None => Ok(()),
            },
            View::Error(error) => self.error(now, error, out),
            View::AnswerRejected(rejected) => {
                self.breaks = CallBreaks::default();
                let message = format!("The answer is asked for again: {}", rejected.reason);
                self.status(now, ("repairing", &message), out)
            }
            View::Timing(_) | View::UsageTotals(_) | View::Other => Ok(()),
        }
    }

    /// A warning comes after `start`, whenever it is known.
    pub(super) fn warning(
        &mut self,
        now: Uptime,
        warning: &CodedWarning,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.session.is_empty() {
            self.beginning.warnings.push(warning.clone());
            return Ok(());
        }
        self.status(now, ("warning", &warning.message), out)
    }

    /// Adds a prompt that is printed instead of run.
    pub(super) fn prompt(
        &mut self,
        session: &str,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.start(Uptime::default(), session, out)?;
        self.event(Uptime::default(), "text_delta", json!({ "content": text }), out)
    }

    /// Reasoning tokens of all calls together, like `tokensUsed`.
    pub(super) fn usage(&mut self, usage: Usage) {
        if let Some(tokens) = usage.reasoning_tokens {
            *self.reasoning_tokens.get_or_insert(0) += i64::from(tokens);
        }
    }

    pub(super) fn end(
        &mut self,
        now: Uptime,
        code: ExitCode,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if code == ExitCode::CutOff {
            self.cut_off_error(now, out)?;
        }
        let status = status(code);
        let done = Done {
            document: self.document.as_deref(),
            duration: now.0,
            exit_code: status,
            reasoning_tokens: self.reasoning_tokens,
            success: status == 0,
            tokens_used: self.tokens,
            tools_used: &self.tools_used,
        };
        self.raw_event(now, "done", done, out)
    }

    fn start(&mut self, now: Uptime, session: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        self.session = uuid_of(session).to_owned();
        let Beginning { command, model, provider, folder, .. } = &self.beginning;
        let start =
            json!({ "command": command, "model": model, "provider": provider, "cwd": folder });
        self.event(now, "start", without_empty(start), out)?;
        let warnings = &self.beginning.warnings;
        warnings.iter().try_for_each(|it| self.status(now, ("warning", &it.message), out))
    }

    fn call_finished(
        &mut self,
        now: Uptime,
        call: &ChatProviderCallFinished,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if let Some(usage) = &call.usage {
            let used = i64::from(usage.input_tokens) + i64::from(usage.output_tokens);
            *self.tokens.get_or_insert(0) += used;
        }
        self.cut_off =
            cut_off(call).map(|message| CutOff { message, detail: call.finish_class.clone() });
        match &self.cut_off {
            Some(cut_off) => self.status(now, ("truncated", cut_off.message), out),
            None => Ok(()),
        }
    }

    /// The error of an incomplete answer. That its last value is not whole is certain only at the end of the run, where
    /// the provider said that it was.
    fn cut_off_error(&self, now: Uptime, out: &mut Vec<u8>) -> Result<(), Error> {
        let error = match &self.cut_off {
            Some(cut_off) => cut_off.error(),
            None => {
                let cut_off = CutOff::within_value();
                self.status(now, ("truncated", cut_off.message), out)?;
                cut_off.error()
            }
        };
        self.event(now, "error", json!({ "error": error }), out)
    }

    fn tool_requested(&mut self, call: &ChatToolCallRequested) {
        let requested = OpenTool::Requested { input: call.input.clone() };
        self.open_tools.insert(call.tool_call_id.clone(), requested);
    }

    fn tool_executing(
        &mut self,
        now: Uptime,
        call: &ChatToolExecutionStarted,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.open_tools.insert(call.tool_call_id.clone(), OpenTool::Started(now));
        if !self.tools_used.contains(&call.tool_name) {
            self.tools_used.push(call.tool_name.clone());
        }
        self.tool_started(now, (&call.tool_name, &call.tool_call_id), &call.input, out)
    }

    fn tool_started(
        &self,
        now: Uptime,
        (name, id): (&str, &str),
        input: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let parameters = parameters(input)?;
        self.raw_event(now, "tool_started", Started { parameters, tool: name, tool_id: id }, out)
    }

    fn tool_completed(
        &mut self,
        now: Uptime,
        result: &ChatToolResultReady,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (name, id) = (&result.tool_name, &result.tool_call_id);
        let since = match self.open_tools.remove(id) {
            Some(OpenTool::Started(since)) => since,
            // A call that was refused has both events at once, as each comes with the other.
            Some(OpenTool::Requested { input }) => {
                self.tool_started(now, (name, id), &input, out)?;
                now
            }
            None => return Ok(()),
        };
        let success = result.status == tool_result::SUCCESS;
        let mut completed = json!({
            "tool": name, "toolId": id, "success": success,
            "duration": now.0.saturating_sub(since.0),
        });
        if !success {
            completed["error"] = result.result.clone().into();
        }
        self.event(now, "tool_completed", completed, out)
    }

    fn status(
        &self,
        now: Uptime,
        (status, message): (&str, &str),
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.event(now, "status", json!({ "status": status, "message": message }), out)
    }

    fn error(&self, now: Uptime, error: &ErrorFrame, out: &mut Vec<u8>) -> Result<(), Error> {
        let class = class(error);
        let mut document = json!({
            "code": match error.detail.as_str() {
                SESSION_NOT_FOUND => "SESSION_NOT_FOUND",
                _ if self.is_cut_document(error) => "CONTEXT_LIMIT",
                _ => code(class, is_recoverable(error)),
            },
            "message": error.message,
            "detail": error.detail,
            "recoverable": is_recoverable(error),
        });
        if let Some(class) = class {
            document["class"] = class.as_str().into();
        }
        self.event(now, "error", json!({ "error": by_name(document) }), out)
    }

    /// Whether the answer is no document because it was cut off at a token limit.
    fn is_cut_document(&self, error: &ErrorFrame) -> bool {
        error.code == Code::InvalidAnswer.as_str()
            && self.cut_off.as_ref().is_some_and(|cut_off| cut_off.detail == finish::MAX_TOKENS)
    }

    fn event(
        &self,
        now: Uptime,
        r#type: &'static str,
        payload: Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        json::write_line(&self.enveloped(now, r#type, by_name(payload)), out)
    }

    /// An event with JSON of the model's. The writer of the other events knows no text that is JSON already.
    fn raw_event(
        &self,
        now: Uptime,
        r#type: &'static str,
        payload: impl Serialize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let line = serde_json::to_string(&self.enveloped(now, r#type, payload))?;
        json::write_raw_line(&line, out);
        Ok(())
    }

    fn enveloped<P>(&self, now: Uptime, r#type: &'static str, payload: P) -> StreamEvent<'_, P> {
        let timestamp = self.beginning.epoch_ms.saturating_add(now.0);
        StreamEvent { protocol: PROTOCOL, r#type, session_id: &self.session, timestamp, payload }
    }
}

/// The exit status of the process: in this format success, failure, wrong usage or an incomplete
/// answer; a signal or an internal error is a failure.
pub(super) fn status(code: ExitCode) -> u8 {
    match code {
        ExitCode::InputFailed | ExitCode::Internal | ExitCode::Interrupted(_) => {
            ExitCode::RunFailed.number()
        }
        ExitCode::Ok
        | ExitCode::RunFailed
        | ExitCode::Usage
        | ExitCode::CutOff
        | ExitCode::TryLater
        | ExitCode::OutputFailed => code.number(),
    }
}

impl CutOff {
    fn within_value() -> Self {
        Self { message: "the answer ends inside a JSON value", detail: OPEN_VALUE.to_owned() }
    }

    /// The error before `done`: in this format a run either succeeds or fails.
    fn error(&self) -> Value {
        let (code, advice) = match self.detail.as_str() {
            finish::MAX_TOKENS => ("CONTEXT_LIMIT", "; raise the limit, or ask for less at a time"),
            OPEN_VALUE => ("UNKNOWN", "; ask for less at a time"),
            _ => ("UNKNOWN", ""),
        };
        let message = format!("{}; the text before this event is incomplete{advice}", self.message);
        by_name(json!({
            "code": code, "message": message, "detail": self.detail, "recoverable": false
        }))
    }
}

/// The error's code, one of the eight that clients of this format know. They may reject an event
/// with another one, so errors that are handled alike share a code, and `class` distinguishes them.
fn code(class: Option<ErrorClass>, is_recoverable: bool) -> &'static str {
    match class {
        Some(ErrorClass::Auth) => "AUTH_EXPIRED",
        // An account without credit: clients may ask again by themselves after `NETWORK_TIMEOUT`.
        Some(ErrorClass::RateLimited) if !is_recoverable => "UNKNOWN",
        Some(ErrorClass::RateLimited | ErrorClass::Timeout | ErrorClass::Network) => {
            "NETWORK_TIMEOUT"
        }
        Some(ErrorClass::ContextOverflow) => "CONTEXT_LIMIT",
        Some(ErrorClass::MalformedStream) => "MALFORMED_EVENT",
        Some(ErrorClass::Aborted | ErrorClass::Internal) => "PROCESS_CRASHED",
        Some(ErrorClass::Provider | ErrorClass::Tool | ErrorClass::Config) | None => "UNKNOWN",
    }
}

/// Clients of this format expect a UUID as session id: the one within a generated id, if there is
/// one.
fn uuid_of(session: &str) -> &str {
    let uuid = session.strip_prefix("session-").filter(|rest| Uuid::try_parse(rest).is_ok());
    uuid.unwrap_or(session)
}

/// The arguments of a tool as an object, which clients of this format expect: any other value is wrapped in one,
/// unchanged. Some models write nothing where a tool needs none.
fn parameters(input: &str) -> Result<Box<RawValue>, Error> {
    let text = input.trim();
    let object = match text {
        "" => "{}".to_owned(),
        _ if text.starts_with('{') && json::well_formed(text).is_ok() => on_one_line(text),
        _ => json!({ "input": input }).to_string(),
    };
    Ok(RawValue::from_string(object)?)
}

/// Leaves out optional members without a value.
fn without_empty(mut payload: Value) -> Value {
    if let Value::Object(members) = &mut payload {
        members.retain(|_, value| value.as_str().is_none_or(|text| !text.is_empty()));
    }
    payload
}
