//! Patches that are written together are one row: the text of all, as in a patch that merges several
//! deltas for a slow reader. It has the offset of the first, and the ordinal and sequence of the last.

use crate::chat::record::EventRecord;
use crate::protocol::any::Any;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::chat::ChatStreamPatchMode;

/// The full names of the messages of patches.
pub(super) static PATCHES: &[&str] = &[
    "pinocchio.chatapp.v1.ChatTextPatch",
    "pinocchio.chatapp.v1.ChatReasoningPatch",
    "pinocchio.chatapp.v1.ChatToolArgumentsPatch",
];

/// A patch that later ones may join.
#[derive(Debug)]
pub(super) struct OpenPatch {
    pub(super) ordinal: Ordinal,
    /// Numbers of its turn and its provider call.
    pub(super) place: Option<(u32, u32)>,
    pub(super) payload: Any,
}

impl OpenPatch {
    /// The patch in a record; `None` if it is another event.
    pub(super) fn of(event: &EventRecord) -> Option<Self> {
        let is_patch = matches!(
            &event.payload,
            Any::ChatTextPatch(_) | Any::ChatReasoningPatch(_) | Any::ChatToolArgumentsPatch(_)
        );
        is_patch.then(|| Self {
            ordinal: event.ordinal,
            place: event.scope.map(|it| (it.turn, it.call)),
            payload: event.payload.clone(),
        })
    }

    /// Takes in the next event, if it goes on with the same text. Returns whether it does.
    pub(super) fn join(&mut self, event: &EventRecord) -> bool {
        let append = i32::from(ChatStreamPatchMode::Append);
        let joined = match (&mut self.payload, &event.payload) {
            (Any::ChatTextPatch(open), Any::ChatTextPatch(next))
                if open.message_id == next.message_id && next.mode == append =>
            {
                open.text += &next.text;
                open.sequence = next.sequence;
                true
            }
            (Any::ChatReasoningPatch(open), Any::ChatReasoningPatch(next))
                if open.message_id == next.message_id && next.mode == append =>
            {
                open.text += &next.text;
                open.sequence = next.sequence;
                true
            }
            (Any::ChatToolArgumentsPatch(open), Any::ChatToolArgumentsPatch(next))
                if open.tool_call_id == next.tool_call_id && next.mode == append =>
            {
                open.arguments += &next.arguments;
                open.sequence = next.sequence;
                true
            }
            _ => false,
        };
        if joined {
            self.ordinal = event.ordinal;
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatProviderCallStarted, ChatTextPatch};

    fn event(ordinal: u64, payload: Any) -> EventRecord {
        let ordinal = Ordinal(ordinal);
        EventRecord { ordinal, scope: None, payload, change: None, usage: None, state: None }
    }

    fn patch(ordinal: u64, id: &str, offset: u64, text: &str) -> EventRecord {
        let (message_id, text) = (id.to_owned(), text.to_owned());
        let mode = ChatStreamPatchMode::Append.into();
        let sequence = ordinal;
        let patch =
            ChatTextPatch { message_id, text, offset, sequence, mode, ..Default::default() };
        event(ordinal, patch.into())
    }

    #[test]
    fn patches_of_one_text_are_joined_and_others_are_not() {
        let mut open = OpenPatch::of(&patch(4, "m", 0, "one ")).expect("a patch");
        assert!(open.join(&patch(5, "m", 4, "two")));
        assert!(!open.join(&patch(6, "other", 0, "three")));
        let call = event(7, ChatProviderCallStarted::default().into());
        assert!(!open.join(&call) && OpenPatch::of(&call).is_none());
        let mut expected = patch(5, "m", 0, "one two");
        expected.ordinal = Ordinal(5);
        assert_eq!((open.ordinal, open.payload), (expected.ordinal, expected.payload));
    }
}
