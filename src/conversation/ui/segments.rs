//! UI events of text and reasoning: their segments, and the patches that stream them.

use super::Ui;
use crate::conversation::event::{Ending, Segment, SegmentKind};
use crate::conversation::patch::{PatchFields, PatchMode, Piece, lean_reasoning, lean_text};
use crate::protocol::any::{Any, Shared};
use crate::protocol::constants::{SOURCE, SOURCE_AT_START, message, role};
use crate::protocol::proto::chat;
use crate::support::text::Text;

impl Ui {
    pub(super) fn segment_started(&mut self, segment: Segment, prompt: Text) -> Any {
        self.so_far.clear();
        let message_id = self.names.message(segment);
        let status = message::STREAMING.to_owned();
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => {
                let message = chat::ChatTextSegmentStarted {
                    message_id,
                    role: role::ASSISTANT.to_owned(),
                    prompt: String::new(),
                    status,
                    streaming: true,
                    correlation,
                };
                Shared::payload(message, prompt, Text::default())
            }
            SegmentKind::Thinking => chat::ChatReasoningSegmentStarted {
                message_id,
                parent_message_id: self.names.root.clone(),
                role: role::THINKING.to_owned(),
                status,
                streaming: true,
                source: SOURCE_AT_START.to_owned(),
                correlation,
            }
            .into(),
        }
    }

    pub(super) fn segment_patched(&mut self, segment: Segment, piece: Piece) -> Any {
        let (piece, mode) = (self.piece(piece), self.patches.mode);
        let message_id = self.names.message(segment);
        match (segment.kind, self.patches.fields) {
            (SegmentKind::Text, PatchFields::Lean) => lean_text(message_id, mode, piece).into(),
            (SegmentKind::Thinking, PatchFields::Lean) => {
                lean_reasoning(message_id, mode, piece).into()
            }
            (SegmentKind::Text, PatchFields::Full) => chat::ChatTextPatch {
                role: role::ASSISTANT.to_owned(),
                stream_id: message_id.clone(),
                mode: mode.on_wire().into(),
                status: message::STREAMING.to_owned(),
                correlation: self.names.segment(segment),
                ..lean_text(message_id, mode, piece)
            }
            .into(),
            (SegmentKind::Thinking, PatchFields::Full) => chat::ChatReasoningPatch {
                parent_message_id: self.names.root.clone(),
                role: role::THINKING.to_owned(),
                stream_id: message_id.clone(),
                mode: mode.on_wire().into(),
                status: message::STREAMING.to_owned(),
                source: SOURCE.to_owned(),
                correlation: self.names.segment(segment),
                ..lean_reasoning(message_id, mode, piece)
            }
            .into(),
        }
    }

    pub(super) fn segment_finished(
        &mut self,
        (segment, status): (Segment, Ending),
        (prompt, text): (Text, Text),
        finish_reason: String,
    ) -> Any {
        self.so_far.clear();
        let status = status.as_str().to_owned();
        let message_id = self.names.message(segment);
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => {
                let message = chat::ChatTextSegmentFinished {
                    message_id,
                    role: role::ASSISTANT.to_owned(),
                    status,
                    r#final: true,
                    finish_reason,
                    correlation,
                    ..Default::default()
                };
                Shared::payload(message, prompt, text)
            }
            SegmentKind::Thinking => {
                let message = chat::ChatReasoningSegmentFinished {
                    message_id,
                    parent_message_id: self.names.root.clone(),
                    role: role::THINKING.to_owned(),
                    status,
                    source: SOURCE.to_owned(),
                    finish_reason,
                    correlation,
                    ..Default::default()
                };
                Shared::payload(message, prompt, text)
            }
        }
    }

    fn piece(&mut self, piece: Piece) -> Piece {
        match self.patches.mode {
            PatchMode::Append => piece,
            PatchMode::Snapshot => {
                self.so_far += &piece.text;
                Piece { text: self.so_far.clone(), offset_bytes: 0, ..piece }
            }
        }
    }
}
