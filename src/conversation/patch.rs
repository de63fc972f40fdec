//! Patches: pieces of streamed text, with all fields or only those that change.

use super::event::ToolCall;
use crate::protocol::any::Any;
use crate::protocol::proto::chat::{self, ChatStreamPatchMode};

/// How text is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchMode {
    /// Each patch carries the new text. Output grows linearly with the text.
    #[default]
    Append,
    /// Each patch carries all text so far, as older scripts expect. Output grows with its square.
    Snapshot,
}

/// The fields of a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchFields {
    /// All fields that the protocol has for it.
    #[default]
    Full,
    /// Its id, sequence, offset and text, and the mode if that is not `APPEND`. The other fields are on the event that
    /// began its segment or tool call.
    Lean,
}

/// Options for patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patches {
    /// The content of the text.
    pub mode: PatchMode,
    /// The fields next to the text.
    pub fields: PatchFields,
}

impl PatchMode {
    pub(super) fn on_wire(self) -> ChatStreamPatchMode {
        match self {
            Self::Append => ChatStreamPatchMode::Append,
            Self::Snapshot => ChatStreamPatchMode::Snapshot,
        }
    }

    /// Of a lean patch. Readers take one without a mode as a piece.
    fn on_wire_if_other(self) -> ChatStreamPatchMode {
        match self {
            Self::Append => ChatStreamPatchMode::Unspecified,
            Self::Snapshot => ChatStreamPatchMode::Snapshot,
        }
    }
}

pub(super) fn lean_text(message_id: String, mode: PatchMode, piece: Piece) -> chat::ChatTextPatch {
    let Piece { sequence, offset_bytes: offset, text } = piece;
    let mode = mode.on_wire_if_other().into();
    chat::ChatTextPatch { message_id, sequence, offset, text, mode, ..Default::default() }
}

pub(super) fn lean_reasoning(
    message_id: String,
    mode: PatchMode,
    piece: Piece,
) -> chat::ChatReasoningPatch {
    let Piece { sequence, offset_bytes: offset, text } = piece;
    let mode = mode.on_wire_if_other().into();
    chat::ChatReasoningPatch { message_id, sequence, offset, text, mode, ..Default::default() }
}

pub(super) fn lean_arguments_patch(tool: ToolCall, piece: Piece) -> Any {
    chat::ChatToolArgumentsPatch {
        tool_call_id: tool.id.0,
        sequence: piece.sequence,
        offset: piece.offset_bytes,
        arguments: piece.text,
        ..Default::default()
    }
    .into()
}

/// A streamed text.
pub(super) struct Piece {
    pub(super) sequence: u64,
    pub(super) offset_bytes: u64,
    pub(super) text: String,
}

/// The text after a patch. In any mode but `APPEND` its text is the whole text so far.
pub(super) fn apply_piece(so_far: &mut String, piece: &str, mode: i32) {
    if mode > i32::from(ChatStreamPatchMode::Append) {
        so_far.clear();
    }
    so_far.push_str(piece);
}
