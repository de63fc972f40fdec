//! UI events of text and reasoning: their segments, and the patches that stream them.

use super::Ui;
use crate::conversation::event::{Ending, Segment, SegmentKind};
use crate::conversation::patch::{PatchFields, PatchMode, Piece, lean_patch};
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
        let piece = self.piece(piece);
        match self.patches.fields {
            PatchFields::Full => self.full_patch(segment, piece),
            PatchFields::Lean => {
                let message_id = self.names.message(segment);
                lean_patch(message_id, segment.kind, self.patches.mode, piece)
            }
        }
    }

    fn full_patch(&mut self, segment: Segment, piece: Piece) -> Any {
        let message_id = self.names.message(segment);
        let stream_id = message_id.clone();
        let status = message::STREAMING.to_owned();
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => chat::ChatTextPatch {
                message_id,
                role: role::ASSISTANT.to_owned(),
                stream_id,
                sequence: piece.sequence,
                offset: piece.offset_bytes,
                text: piece.text,
                mode: self.patches.mode.on_wire().into(),
                status,
                correlation,
                ..Default::default()
            }
            .into(),
            SegmentKind::Thinking => chat::ChatReasoningPatch {
                message_id,
                parent_message_id: self.names.root.clone(),
                role: role::THINKING.to_owned(),
                stream_id,
                sequence: piece.sequence,
                offset: piece.offset_bytes,
                text: piece.text,
                mode: self.patches.mode.on_wire().into(),
                status,
                source: SOURCE.to_owned(),
                correlation,
                ..Default::default()
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
