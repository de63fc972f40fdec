//! A conversation as a list of what was said and called, in order. Pure.

use crate::protocol::any::Any;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::words::tool_result;

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A message of a person or of the model.
    Message {
        /// `user`, `assistant`, `thinking`, `warning` or `error`.
        role: String,
        text: String,
        /// Names of the files that go with it.
        files: Vec<String>,
        /// How it ended, if it did not end well.
        mark: Option<String>,
    },
    /// A call of a tool, with its arguments as JSON.
    Call { tool: String, input: String },
    /// What a tool returned.
    Result { tool: String, text: String, is_error: bool },
}

/// The conversation of a state.
pub(super) fn entries(state: &SnapshotFrame) -> Vec<Said> {
    state.entities.iter().filter_map(entry).collect()
}

fn entry(entity: &SnapshotEntity) -> Option<Said> {
    let payload = entity.payload.clone()?.into_whole();
    if let Any::ChatMessageEntity(it) = payload {
        let mark = match it.status.as_str() {
            "stopped" | "failed" if it.role != "error" => Some(match it.error.as_str() {
                "" => it.status.clone(),
                why => format!("{}: {why}", it.status),
            }),
            _ => None,
        };
        let files = it.attachments.iter().map(|file| file.filename.clone());
        let files = files.filter(|name| !name.is_empty()).collect();
        let (role, text) = (it.role.clone(), it.text.clone());
        return Some(Said::Message { role, text, files, mark });
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(Said::Call { tool: it.tool_name.clone(), input: it.input.clone() });
    }
    if let Any::ToolResultEntity(it) = payload {
        let (tool, text) = (it.tool_name.clone(), it.result.clone());
        let is_error = it.status == tool_result::ERROR;
        return Some(Said::Result { tool, text, is_error });
    }
    None
}
