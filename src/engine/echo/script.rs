//! A script for the built-in engine: what each provider call of a run brings, so that tools can be
//! tried without a provider. JSON Lines, one provider call a line:
//!
//! ```json
//! {"text": "Let me look.", "tools": [{"name": "get_time", "arguments": {"city": "Berlin"}}]}
//! {"text": "It is noon."}
//! ```
//!
//! After the last line the engine answers as without a script. Each turn begins with the first. A call that makes a
//! summary has the text of its line without the tools; where that is blank, the engine answers as without a script.

use super::super::{RunError, SettingNames};
use super::open;
use crate::conversation::event::ToolCall;
use crate::protocol::id::ToolCallId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::Path;

const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One provider call.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptedCall {
    /// Reasoning before the text.
    pub(super) reasoning: String,
    /// Text of the answer.
    pub(super) text: String,
    /// Tool calls after the text.
    pub(super) tools: Vec<ScriptedTool>,
}

/// One tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedTool {
    name: String,
    /// An object, or a string with the JSON text as the model is to write it, which may be wrong.
    #[serde(default)]
    arguments: Value,
    /// The id of the call; one is made if there is none.
    #[serde(default)]
    id: Option<String>,
}

impl ScriptedTool {
    /// The call that comes as number `at` in its answer, and its arguments as JSON text.
    pub(super) fn into_call(self, at: usize) -> (ToolCall, String) {
        let id = self.id.unwrap_or_else(|| format!("call_{}", at + 1));
        let arguments = match self.arguments {
            Value::Null => json!({}).to_string(),
            Value::String(text) => text,
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        (ToolCall { id: ToolCallId(id), name: self.name }, arguments)
    }
}

/// The calls of the script at `path`.
///
/// # Errors
/// If the file can't be read, or a line is no call.
pub(super) fn read(path: &Path) -> io::Result<Vec<ScriptedCall>> {
    let mut text = String::new();
    open(path)?.take(SCRIPT_BYTES_MAX).read_to_string(&mut text)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(at, line)| {
        serde_json::from_str(line)
            .map_err(|error| io::Error::other(format!("line {}: {error}", at + 1)))
    });
    calls.collect()
}

pub(super) fn unreadable(path: &Path, error: &io::Error, names: &SettingNames) -> RunError {
    let message = format!(
        "{} can't be used as a script of the echo engine; name a file with one JSON object a line \
         with {}",
        path.display(),
        names.echo_script
    );
    RunError::of_settings(message, error.to_string())
}
