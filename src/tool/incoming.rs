//! The messages of servers, as they write them: the SDK refuses, or takes for something else, what keeps to the
//! specification in all but a detail.

mod handshake;
mod repair;
#[cfg(test)]
mod tests;

pub(super) use handshake::{fault, initialize_result};

use crate::protocol::json;
use crate::tool::scan::IdScanner;
use rmcp::model::{CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// A message of a server.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// Error code for an answer that can't be read: the first of JSON-RPC's "server error".
const UNREADABLE: i32 = -32000;

/// Some servers write it before their first message.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What the next answer of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// That to `initialize`, which the SDK reads.
    Handshake,
    /// One that is passed on as it is.
    Any,
}

/// The messages in `text`: one, or those of a batch, which servers of the version 2025-03-26 may send. There are none
/// if it is no message, or none for us.
pub(super) fn read(text: &[u8], answer: Answer) -> Vec<Message> {
    let text = without_mark(text);
    if text.trim_ascii().is_empty() {
        return Vec::new();
    }
    let values = match value(text) {
        Some(Value::Array(batch)) => batch,
        Some(value) => vec![value],
        None => Vec::new(),
    };
    let messages: Vec<_> = values.into_iter().filter_map(|it| message(it, answer)).collect();
    if messages.is_empty() {
        return unread(text);
    }
    messages
}

/// Whether `text` is JSON up to its end, and cut there.
pub(super) fn is_cut(text: &[u8]) -> bool {
    let read = serde_json::from_slice::<IgnoredAny>(without_mark(text));
    read.is_err_and(|error| error.is_eof())
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The JSON value in `text`. Text that is cut in the middle of a character costs that character alone: the call
/// has been run, and its result is wanted.
fn value(text: &[u8]) -> Option<Value> {
    json::fits(text).ok()?;
    let value = serde_json::from_slice(text).ok();
    value.or_else(|| serde_json::from_slice(&repair::characters(text)?).ok())
}

fn message(value: Value, answer: Answer) -> Option<Message> {
    let Value::Object(members) = value else { return None };
    match members.get("method").is_some_and(|method| !method.is_null()) {
        true => asked(members),
        false => answered(members, answer),
    }
}

/// A request or a notification.
fn asked(mut members: Map<String, Value>) -> Option<Message> {
    // An empty object is written as `[]` by PHP.
    if members.get("params").is_some_and(|params| !params.is_object()) {
        members.insert("params".to_owned(), Value::Object(Map::new()));
    }
    if let Some(Value::Object(params)) = members.get_mut("params")
        && params.get("_meta").is_some_and(|meta| !meta.is_object())
    {
        params.shift_remove("_meta");
    }
    serde_json::from_value(Value::Object(members)).ok()
}

/// An answer, with its result as it is. The SDK would look for the first of its types that it fits; what fits none,
/// as a list with one odd schema, would be lost.
fn answered(mut members: Map<String, Value>, answer: Answer) -> Option<Message> {
    let id = members.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    // Programs log lines that have an `error`.
    let is_answer = members.contains_key("jsonrpc") || members.contains_key("result");
    let error = members.shift_remove("error").filter(|error| is_answer && !error.is_null());
    // Many servers write a `result` that is null beside it.
    if let Some(error) = error {
        return Some(JsonRpcMessage::error(error_data(error), id));
    }
    let result = members.shift_remove("result")?;
    let result = match answer {
        Answer::Handshake => initialize_result(result),
        Answer::Any => ServerResult::CustomResult(CustomResult::new(result)),
    };
    Some(JsonRpcMessage::response(result, id?))
}

/// An error of a server; one in another form has its words.
fn error_data(error: Value) -> ErrorData {
    let words = error.get("message").unwrap_or(&error).as_str();
    let words = words.map_or_else(|| error.to_string(), str::to_owned);
    serde_json::from_value(error).unwrap_or_else(|_| unreadable(words))
}

fn unreadable(what: String) -> ErrorData {
    ErrorData::new(ErrorCode(UNREADABLE), what, None)
}

/// Handles a text that is no message: an error for each call whose answer it has.
/// Programs that print to their standard output are common, also JSON, so other texts are only logged.
fn unread(text: &[u8]) -> Vec<Message> {
    let mut scanner = IdScanner::default();
    if memchr::memmem::find(text, b"\"jsonrpc\"").is_some() {
        scanner.feed(text);
    }
    tracing::debug!(bytes = text.len(), "a text that is no MCP message was ignored");
    let what = "the answer is no valid MCP message, is nested too deep, or holds too many values";
    failed(scanner.answered(), what).collect()
}

/// An error for each call with one of these ids.
pub(super) fn failed(ids: Vec<i64>, what: &str) -> impl Iterator<Item = Message> {
    ids.into_iter().map(move |id| {
        JsonRpcMessage::error(unreadable(what.to_owned()), Some(RequestId::Number(id)))
    })
}
