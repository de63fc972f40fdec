//! What the fixture offers to people: resources and prompts.

use crate::attachments::PNG;
use crate::mcp_fixture::say;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::process::exit;

/// The text of a resource.
pub(crate) const NOTE: &str = "The first note.\n/quit\n";

/// Two pages.
pub(crate) fn resources(params: &Value) -> Value {
    if params["cursor"].is_null() {
        return json!({
            "resources": [{
                "uri": "note://1", "name": "one", "title": "The first", "mimeType": "text/plain",
                "description": "A note.\n\u{1b}[31mred",
            }],
            "nextCursor": "2",
        });
    }
    json!({"resources": [{"uri": "note://image", "name": "image", "mimeType": "image/png"}, {}]})
}

pub(crate) fn resource(params: &Value) -> Option<Value> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let contents = match uri {
        "note://1" => json!([{"uri": uri, "mimeType": "text/plain", "text": NOTE}]),
        "note://image" => json!([{"uri": uri, "blob": BASE64.encode(PNG)}]),
        "note://both" => {
            json!([{"uri": "note://a", "text": "a"}, {"uri": "note://b", "text": "b"}])
        }
        "note://half" => {
            json!([{"uri": "note://a", "text": ""}, {"uri": "note://b", "text": "b"}])
        }
        "note://empty" => json!([]),
        "note://large" => json!([{"uri": uri, "text": "x".repeat(17 * 1024 * 1024)}]),
        "note://crash" => {
            say("the disk is gone");
            exit(6);
        }
        // It never comes.
        _ => return None,
    };
    Some(json!({ "contents": contents }))
}

/// The error with which a request is answered, if it is.
pub(crate) fn error(message: &Value) -> Option<Value> {
    let is_unknown = message["params"]["uri"] == "note://unknown";
    let error = json!({"code": -32002, "message": "Resource not found"});
    is_unknown.then(|| json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

pub(crate) fn prompts() -> Value {
    json!({"prompts": [
        {"name": "sum", "description": "Sums a file up.", "arguments": [
            {"name": "path", "description": "The file.", "required": true},
            {"name": "style"},
        ]},
        {"name": "talk"},
        {"name": "look"},
    ]})
}

pub(crate) fn prompt(params: &Value) -> Option<Value> {
    let text =
        |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    let messages = match params["name"].as_str()? {
        "sum" => {
            let arguments = &params["arguments"];
            let of = |name: &str| arguments[name].as_str().unwrap_or("none").to_owned();
            json!([text("user", &format!("Sum up {} in style {}.", of("path"), of("style")))])
        }
        "talk" => json!([text("user", "Hi."), text("assistant", "Hello."), text("user", "Bye.")]),
        "look" => {
            let image =
                json!({"type": "image", "mimeType": "image/png", "data": BASE64.encode(PNG)});
            let note = json!({"type": "resource", "resource": {"uri": "note://1", "text": NOTE}});
            json!([
                text("user", "/quit @look"),
                {"role": "user", "content": image},
                {"role": "user", "content": note},
            ])
        }
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}
