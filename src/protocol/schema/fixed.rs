//! The rules of the contract beyond the types of fields: values, versions, and required fields.

use super::messages::{REQUEST, URL};
use crate::protocol::constants::{code, done, kind, roles, statuses};
use crate::protocol::wire;
use serde_json::{Value, json};

/// An accepted version, 0 or 1, as a JSON number in a string.
const VERSION: &str = r"^(0(\.0+)?([eE][+-]?[0-9]+)?|1(\.0+)?([eE][+-]?0+)?)$";

/// The events shortened by `--patch-fields lean`.
const PATCHES: [&str; 3] = ["ChatTextPatch", "ChatReasoningPatch", "ChatToolArgumentsPatch"];

/// Narrows the schema of the frame message `name` to what this server writes. `payloads` are
/// the full names of the messages that may occur in an `Any`.
pub(super) fn narrow_frame(name: &str, payloads: &[String], schema: &mut Value) {
    let (package, short) = name.rsplit_once('.').unwrap_or_default();
    if package != wire::PROTOCOL {
        narrow_word("role", roles(short), schema);
        return narrow_word("status", statuses(short), schema);
    }
    match short {
        "RpcLine" => {
            schema["properties"]["version"]["const"] = wire::VERSION.into();
            schema["properties"]["sessionId"]["minLength"] = 1.into();
            schema["required"] = json!(["version"]);
            // A lean patch leaves the session out.
            let event = json!({ "properties": { "name": { "enum": PATCHES } } });
            let lean = json!({
                "required": ["requestId", "uiEvent"], "properties": { "uiEvent": event }
            });
            schema["anyOf"] = json!([{ "required": ["sessionId"] }, lean]);
            // A hello belongs to no request.
            schema["if"] = json!({ "required": ["hello"] });
            schema["then"] = json!({ "properties": { "requestId": false } });
        }
        "HelloFrame" => {
            schema["properties"]["protocol"]["const"] = wire::PROTOCOL.into();
            schema["required"] = json!(["protocol", "server", "capabilities"]);
        }
        "UiEventFrame" | "BackendEventFrame" => {
            schema["required"] = json!(["ordinal", "name", "payload"]);
            schema["oneOf"] = payloads.iter().map(|full| named(full)).collect();
        }
        "SnapshotEntity" => {
            narrow_word("kind", kind::ALL, schema);
            schema["required"] = json!(["kind", "id"]);
        }
        "ErrorFrame" => {
            narrow_word("code", code::ALL, schema);
            schema["required"] = json!(["code"]);
        }
        "DoneFrame" => {
            narrow_word("status", done::ALL, schema);
            schema["required"] = json!(["status"]);
        }
        _ => {}
    }
}

/// Narrows the schema of the request message `name` to accepted requests.
pub(super) fn narrow_request(name: &str, schema: &mut Value) {
    if name == REQUEST {
        let words = json!({ "type": "string", "pattern": VERSION });
        let any = json!([{ "enum": [0, wire::VERSION] }, words, { "type": "null" }]);
        schema["properties"]["version"]["anyOf"] = any;
    }
}

/// An event whose name matches its payload.
fn named(full: &str) -> Value {
    let short = full.rsplit('.').next().unwrap_or_default();
    let payload = json!({ "properties": { "@type": { "const": format!("{URL}{full}") } } });
    json!({ "properties": { "name": { "const": short }, "payload": payload } })
}

fn narrow_word(field: &str, words: &[&str], schema: &mut Value) {
    if let (false, Some(field)) = (words.is_empty(), schema["properties"].get_mut(field)) {
        field["enum"] = json!(words);
    }
}
