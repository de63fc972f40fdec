//! The content of a frame for formats that show one answer and not the protocol.

use crate::engine::ErrorClass;
use crate::protocol::any::Any;
use crate::protocol::constants::finish;
use crate::protocol::proto::chat::{
    ChatProviderCallFinished, ChatToolCallRequested, ChatToolExecutionStarted, ChatToolResultReady,
};
use crate::protocol::proto::extract::{
    AnswerRejected, ExtractionFinished, LineRejected, ObjectExtracted,
};
use crate::protocol::proto::provider::CallTiming;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::wire::{Code, Frame};
use serde_json::{Value, json};

/// Every error class, to look one up by its name.
const CLASSES: [ErrorClass; 11] = [
    ErrorClass::Auth,
    ErrorClass::RateLimited,
    ErrorClass::ContextOverflow,
    ErrorClass::Timeout,
    ErrorClass::Network,
    ErrorClass::Provider,
    ErrorClass::MalformedStream,
    ErrorClass::Tool,
    ErrorClass::Config,
    ErrorClass::Aborted,
    ErrorClass::Internal,
];

/// The content of a frame. Text comes in pieces: the session patches by appending.
pub(super) enum View<'a> {
    Hello,
    RunStarted,
    Text(&'a str),
    Thinking(&'a str),
    CallStarted,
    ToolRequested(&'a ChatToolCallRequested),
    ToolStarted(&'a ChatToolExecutionStarted),
    ToolReturned(&'a ChatToolResultReady),
    CallFinished(&'a ChatProviderCallFinished),
    Object(&'a ObjectExtracted),
    Rejected(&'a LineRejected),
    Extracted(&'a ExtractionFinished),
    /// An answer was refused, and the model is asked for another.
    AnswerRejected(&'a AnswerRejected),
    /// How soon a provider call was answered.
    Timing(&'a CallTiming),
    /// Counts and costs so far.
    UsageTotals(&'a UsageTotals),
    Error(&'a ErrorFrame),
    /// Nothing that such a format shows.
    Other,
}

impl<'a> View<'a> {
    pub(super) fn of(frame: &'a Frame) -> Self {
        match &frame.frame {
            Some(Body::Hello(_)) => Self::Hello,
            Some(Body::Error(error)) => Self::Error(error),
            Some(Body::UiEvent(event)) => event.payload.as_ref().map_or(Self::Other, Self::payload),
            Some(Body::Snapshot(_) | Body::BackendEvent(_) | Body::Done(_)) | None => Self::Other,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "these formats need only a few")]
    fn payload(payload: &'a Any) -> Self {
        match payload {
            Any::ChatTextPatch(patch) => Self::Text(&patch.text),
            Any::ChatReasoningPatch(patch) => Self::Thinking(&patch.text),
            Any::ChatToolCallRequested(call) => Self::ToolRequested(call),
            Any::ChatToolExecutionStarted(call) => Self::ToolStarted(call),
            Any::ChatToolResultReady(result) => Self::ToolReturned(result),
            Any::ChatProviderCallStarted(_) => Self::CallStarted,
            Any::ChatProviderCallFinished(call) => Self::CallFinished(call),
            Any::ObjectExtracted(object) => Self::Object(object),
            Any::LineRejected(line) => Self::Rejected(line),
            Any::ExtractionFinished(tally) => Self::Extracted(tally),
            Any::AnswerRejected(rejected) => Self::AnswerRejected(rejected),
            Any::CallTiming(timing) => Self::Timing(timing),
            Any::UsageTotals(totals) => Self::UsageTotals(totals),
            Any::ChatRunStarted(_) => Self::RunStarted,
            _ => Self::Other,
        }
    }
}

/// Separates the texts of a run's provider calls: the words before a tool call and those after it
/// are different sentences, and models put nothing between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallBreaks {
    /// The last byte of text.
    pub(super) last: Option<u8>,
    is_new_call: bool,
}

impl CallBreaks {
    /// A provider call begins.
    pub(super) fn call_started(&mut self) {
        self.is_new_call = true;
    }

    /// What comes before the next piece of text: a line feed if it is the first of its call, there
    /// is text of an earlier call, and none of the two has one.
    pub(super) fn before(&mut self, text: &str) -> &'static str {
        let Some(newest) = text.bytes().next_back() else { return "" };
        let is_new_call = std::mem::take(&mut self.is_new_call);
        let needs_break = is_new_call
            && self.last.is_some_and(|last| last != b'\n')
            && !text.starts_with(['\n', '\r']);
        self.last = Some(newest);
        if needs_break { "\n" } else { "" }
    }
}

/// The class of an error. Frames have no field for it: the `detail` of a failed run, and of an
/// engine that could not start, begins with the class. A signal is `aborted`, an internal error
/// `internal`, a wrong command line `config`. `None` for errors whose code implies the class.
pub(super) fn class(error: &ErrorFrame) -> Option<ErrorClass> {
    let is = |code: Code| error.code == code.as_str();
    if is(Code::Interrupted) {
        return Some(ErrorClass::Aborted);
    }
    if is(Code::Internal) {
        return Some(ErrorClass::Internal);
    }
    if is(Code::Usage) {
        return Some(ErrorClass::Config);
    }
    if !is(Code::RunFailed) && !is(Code::EngineInitFailed) {
        return None;
    }
    let word = error.detail.split(':').next().unwrap_or_default();
    CLASSES.into_iter().find(|class| class.as_str() == word)
}

/// Whether the same command may succeed later.
pub(super) fn is_recoverable(error: &ErrorFrame) -> bool {
    let detail = error.detail.split_once(": ").map_or("", |(_, detail)| detail);
    error.code == Code::SessionLocked.as_str()
        || class(error).is_some_and(|class| class.may_pass(detail))
}

/// An error as it is written in a document.
pub(super) fn error_document(error: &ErrorFrame) -> Value {
    by_name(json!({
        "code": error.code,
        "class": class(error).map(ErrorClass::as_str),
        "message": error.message,
        "detail": error.detail,
    }))
}

/// A document whose members are this program's own, in the order of their names. What stands in them
/// may be a person's or a model's, and keeps its order.
pub(super) fn by_name(mut document: Value) -> Value {
    if let Value::Object(members) = &mut document {
        members.sort_keys();
    }
    document
}

/// Why an answer is incomplete, if `call` cut it off.
pub(crate) fn cut_off(call: &ChatProviderCallFinished) -> Option<&'static str> {
    match call.finish_class.as_str() {
        finish::MAX_TOKENS => Some("the answer was cut off at a token limit"),
        finish::CONTENT_FILTER => Some("the provider withheld the answer, or the rest of it"),
        _ => None,
    }
}

/// The message for a line of the answer that was rejected.
pub(crate) fn rejected(line: &LineRejected) -> String {
    format!("line {} of the answer does not count: {}", line.line, line.reason)
}

/// The message if `objects`, the number of values that count, is 0. Another message says why an answer is
/// incomplete.
pub(crate) fn nothing_found(objects: u64, tally: &ExtractionFinished) -> Option<&'static str> {
    let is_empty = objects == 0 && !tally.truncated;
    is_empty.then_some("there is no JSON of the kind asked for in the answer")
}
