//! Coalescing: which frames are patches, and how two adjacent patches of one segment become one.

use super::Patch;
use crate::protocol::any::{Any, Shared};
use crate::protocol::proto::chat::{ChatReasoningPatch, ChatStreamPatchMode, ChatTextPatch};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{RpcLine, UiEventFrame};
use crate::protocol::wire::Frame;

/// Text of a coalesced patch, so that lines stay short enough for any reader.
pub(super) const COALESCED_TEXT_BYTES_MAX: usize = 64 * 1024;

/// The text of a frame that is a patch of a segment.
pub(super) fn patch_text(frame: &Frame) -> Option<&str> {
    let payload = payload(frame)?;
    if let Any::ChatTextPatch(patch) = payload {
        return Some(&patch.text);
    }
    if let Any::ChatReasoningPatch(patch) = payload {
        return Some(&patch.text);
    }
    None
}

/// Whether the frame ends a segment, and so carries the whole text of it.
pub(super) fn is_segment(frame: &Frame) -> bool {
    let Some(payload) = payload(frame) else { return false };
    matches!(payload, Any::Shared(shared) if shared.is_segment_end())
}

/// Bytes of the texts that a frame shares with the conversation.
pub(super) fn shared_bytes(frame: &Frame) -> usize {
    let bytes = |payload: Option<&Any>| match payload {
        Some(Any::Shared(shared)) => shared.text_bytes(),
        Some(_) | None => 0,
    };
    match &frame.frame {
        Some(Body::UiEvent(event)) => bytes(event.payload.as_ref()),
        Some(Body::Snapshot(snapshot)) => {
            snapshot.entities.iter().map(|entity| bytes(entity.payload.as_ref())).sum()
        }
        Some(Body::Hello(_) | Body::BackendEvent(_) | Body::Error(_) | Body::Done(_)) | None => 0,
    }
}

/// The payloads of a frame that share their texts with the conversation.
pub(super) fn shared_payloads(frame: &mut Frame) -> impl Iterator<Item = &mut Shared> {
    let (event, entities) = match &mut frame.frame {
        Some(Body::UiEvent(event)) => (event.payload.as_mut(), &mut [][..]),
        Some(Body::Snapshot(snapshot)) => (None, &mut snapshot.entities[..]),
        Some(Body::Hello(_) | Body::BackendEvent(_) | Body::Error(_) | Body::Done(_)) | None => {
            (None, &mut [][..])
        }
    };
    let entities = entities.iter_mut().filter_map(|entity| entity.payload.as_mut());
    event.into_iter().chain(entities).filter_map(|payload| {
        let Any::Shared(shared) = payload else { return None };
        Some(&mut **shared)
    })
}

pub(super) fn payload(frame: &Frame) -> Option<&Any> {
    let RpcLine { frame: Some(Body::UiEvent(UiEventFrame { payload, .. })), .. } = frame else {
        return None;
    };
    payload.as_ref()
}

/// Appends `next` to `open`. False, with nothing changed, if they are not adjacent patches of one segment.
pub(super) fn coalesce(open: &mut Patch, next: &mut Patch) -> bool {
    if open.frame.request_id != next.frame.request_id {
        return false;
    }
    let (Some(Body::UiEvent(first)), Some(Body::UiEvent(second))) =
        (&mut open.frame.frame, &mut next.frame.frame)
    else {
        return false;
    };
    let is_coalesced = match (&mut first.payload, &mut second.payload) {
        (Some(Any::ChatTextPatch(first)), Some(Any::ChatTextPatch(second))) => first.absorb(second),
        (Some(Any::ChatReasoningPatch(first)), Some(Any::ChatReasoningPatch(second))) => {
            first.absorb(second)
        }
        _ => false,
    };
    if is_coalesced {
        first.ordinal = second.ordinal;
        open.text_bytes = patch_text(&open.frame).map_or(0, str::len);
    }
    is_coalesced
}

trait Absorb {
    /// Appends `next`, the adjacent patch. False, with nothing changed, if it is of another
    /// segment or another mode, or the text would be too long.
    fn absorb(&mut self, next: &mut Self) -> bool;
}

macro_rules! absorb {
    ($patch:ty) => {
        impl Absorb for $patch {
            fn absorb(&mut self, next: &mut Self) -> bool {
                if self.message_id != next.message_id || self.mode != next.mode {
                    return false;
                }
                match self.mode() {
                    ChatStreamPatchMode::Append | ChatStreamPatchMode::Unspecified => {
                        if self.text.len() + next.text.len() > COALESCED_TEXT_BYTES_MAX {
                            return false;
                        }
                        self.text += &next.text;
                    }
                    // The text so far replaces an earlier text: nothing grows.
                    ChatStreamPatchMode::Snapshot => std::mem::swap(&mut self.text, &mut next.text),
                    ChatStreamPatchMode::Replace => return false,
                }
                self.sequence = next.sequence;
                true
            }
        }
    };
}

absorb!(ChatTextPatch);
absorb!(ChatReasoningPatch);
