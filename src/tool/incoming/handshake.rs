//! The answer to `initialize`. The SDK refuses it for one optional member of another form; nothing of it is needed
//! but the version and which capabilities there are.

use rmcp::model::{CustomResult, InitializeResult, ServerResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The capabilities that are asked for, or of which the SDK knows.
const CAPABILITIES: [&str; 5] = ["completions", "logging", "prompts", "resources", "tools"];

/// The name and version of a server that tells none.
const UNKNOWN: &str = "unknown";

/// The result of `initialize`, without the members that can't be read; as it is if that is not enough.
pub(in crate::tool) fn initialize_result(result: Value) -> ServerResult {
    let read = InitializeResult::deserialize(&result);
    match read.or_else(|_| serde_json::from_value(normalized(&result))) {
        Ok(read) => ServerResult::InitializeResult(read),
        Err(_) => ServerResult::CustomResult(CustomResult::new(result)),
    }
}

/// Why this is no result of `initialize`, for people.
pub(in crate::tool) fn fault(result: &Value) -> String {
    let what = match (result, result.get("protocolVersion")) {
        (Value::Object(_), None) => "has no `protocolVersion`",
        (Value::Object(_), Some(Value::String(_))) => "has members of another form",
        (Value::Object(_), Some(_)) => "has a `protocolVersion` that is no text",
        _ => "is no object",
    };
    format!("its answer to `initialize` {what}")
}

fn normalized(result: &Value) -> Value {
    let mut kept = Map::new();
    for name in ["protocolVersion", "instructions"] {
        if let Some(text @ Value::String(_)) = result.get(name) {
            kept.insert(name.to_owned(), text.clone());
        }
    }
    kept.insert("capabilities".to_owned(), capabilities(&result["capabilities"]));
    let text = |name: &str| result["serverInfo"][name].as_str().unwrap_or(UNKNOWN).to_owned();
    let about = json!({ "name": text("name"), "version": text("version") });
    kept.insert("serverInfo".to_owned(), about);
    Value::Object(kept)
}

/// An object for each capability that there is: whatever its value, unless that says no.
fn capabilities(given: &Value) -> Value {
    let is_there = |name: &&str| !matches!(given[*name], Value::Null | Value::Bool(false));
    let there = CAPABILITIES.into_iter().filter(is_there);
    there.map(|name| (name.to_owned(), flags(&given[name]))).collect()
}

fn flags(capability: &Value) -> Value {
    let members = capability.as_object().into_iter().flatten();
    let flags = members.filter(|(_, value)| value.is_boolean());
    flags.map(|(name, value)| (name.clone(), value.clone())).collect()
}
