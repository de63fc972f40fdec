//! A conversation as a list of what was said and called, in order. Pure.

use crate::chat::timeline::turn_number;
use crate::protocol::any::Any;
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::words::tool_result;

/// Something of a conversation, and its turn: 0 for earlier messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) turn: u32,
    pub(super) said: Said,
}

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
pub(super) fn entries(state: &SnapshotFrame) -> Vec<Entry> {
    state.entities.iter().filter_map(entry).collect()
}

fn entry(entity: &SnapshotEntity) -> Option<Entry> {
    let payload = entity.payload.clone()?.into_whole();
    if let Any::ChatMessageEntity(it) = payload {
        let turn = turn(it.correlation.as_ref());
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
        return Some(Entry { turn, said: Said::Message { role, text, files, mark } });
    }
    if let Any::ToolCallEntity(it) = payload {
        let said = Said::Call { tool: it.tool_name.clone(), input: it.input.clone() };
        return Some(Entry { turn: turn(it.correlation.as_ref()), said });
    }
    if let Any::ToolResultEntity(it) = payload {
        let (tool, text) = (it.tool_name.clone(), it.result.clone());
        let is_error = it.status == tool_result::ERROR;
        let turn = turn(it.correlation.as_ref());
        return Some(Entry { turn, said: Said::Result { tool, text, is_error } });
    }
    None
}

/// The number of the turn.
fn turn(ids: Option<&CorrelationInfo>) -> u32 {
    ids.and_then(|ids| turn_number(&ids.turn_id)).unwrap_or_default()
}

impl Said {
    /// The text in which words are searched.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Message { text, .. } | Self::Result { text, .. } => text,
            Self::Call { input, .. } => input,
        }
    }

    /// Who said it.
    pub(super) fn by(&self) -> &str {
        match self {
            Self::Message { role, .. } => role,
            Self::Call { tool, .. } | Self::Result { tool, .. } => tool,
        }
    }
}
