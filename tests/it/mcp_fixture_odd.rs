//! What the fixture writes that keeps to the specification in all but a detail, as other people's servers do.

use serde_json::{Value, json};

/// An answer, byte by byte.
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// The server ends with it.
    pub(crate) is_last: bool,
}

/// The odd answer to a message, if there is one.
pub(crate) fn answer(fault: &str, message: &Value) -> Option<Answer> {
    let id = &message["id"];
    let (bytes, is_last) = match (fault, message["method"].as_str()?) {
        ("odd-handshake", "initialize") => (handshake(message).into_bytes(), false),
        ("without-tools", "initialize") => (without_tools(message).into_bytes(), false),
        ("without-tools", "tools/list") => {
            let error = json!({"code": -32601, "message": "Method not found"});
            (line(&json!({"jsonrpc": "2.0", "id": id, "error": error})).into_bytes(), false)
        }
        ("docs-without-prompts", "prompts/list") => {
            let error = json!({"code": -32601, "message": "Method not found"});
            (line(&json!({"jsonrpc": "2.0", "id": id, "error": error})).into_bytes(), false)
        }
        ("docs-with-broken-prompts", "prompts/list") => {
            let error = json!({"code": -32000, "message": "no disk"});
            (line(&json!({"jsonrpc": "2.0", "id": id, "error": error})).into_bytes(), false)
        }
        (_, "tools/call") => (of_call(id, message["params"]["arguments"]["text"].as_str()?)?, {
            let text = &message["params"]["arguments"]["text"];
            text == "last" || text == "cut off"
        }),
        _ => return None,
    };
    Some(Answer { bytes, is_last })
}

/// As a server writes it that knows JSON objects as lists, and text files with a mark.
fn handshake(message: &Value) -> String {
    let result = json!({
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {"tools": [], "logging": [], "experimental": {"x": true}},
        "serverInfo": {"name": "odd", "version": 1},
    });
    format!("\u{feff}{}", line(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})))
}

fn without_tools(message: &Value) -> String {
    let result = json!({
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {"prompts": {}},
        "serverInfo": {"name": "docs", "version": "1"},
    });
    line(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn of_call(id: &Value, text: &str) -> Option<Vec<u8>> {
    let success = |text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}}).to_string()
    };
    let written = match text {
        "null beside" => {
            let error = json!({"code": -32602, "message": "no such table"});
            line(&json!({"jsonrpc": "2.0", "id": id, "result": null, "error": error}))
        }
        "half character" => success("cut X").replace('X', "\\ud83d") + "\n",
        "odd request" => {
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": "roots/list", "params": []});
            line(&asked) + &success("done") + "\n"
        }
        "last" => success("the last words"),
        "cut off" => {
            let mut written = success("the last words");
            written.truncate(written.len() / 2);
            written
        }
        // With another one before it, as the version 2025-03-26 permits.
        "batch" => {
            let changed =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
            format!("[{changed},{}]\n", success("of a batch"))
        }
        "no UTF-8" => {
            let bytes = (success("cut X") + "\n").into_bytes();
            return Some(bytes.into_iter().map(|it| if it == b'X' { 0xff } else { it }).collect());
        }
        _ => return None,
    };
    Some(written.into_bytes())
}

fn line(message: &Value) -> String {
    message.to_string() + "\n"
}
