//! Contents of rows, made piece by piece as they are written: those of a long run are large, and what makes
//! them is in memory already. Messages of protobuf that follow each other are one message, with the fields
//! of all. Pure.

use super::turn::{step_message, turn_head};
use crate::chat::record::PatchRecord;
use crate::chat::timeline::RunState;
use crate::chat::transcript::Turn;
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::proto::store::StoredTurn;
use prost::Message;

/// Bytes of a text above which an event has it once: frames have it in two fields.
const TEXT_TWICE_BYTES_MAX: usize = 1024 * 1024;

/// The content of a row of a state or a turn.
#[derive(Debug)]
pub(super) enum Content<'a> {
    State(&'a RunState),
    Turn(&'a Turn),
    #[cfg(test)]
    Bytes(Vec<u8>),
}

/// The content of the row of an event.
#[derive(Debug)]
pub(super) enum EventContent<'a> {
    Patch(&'a PatchRecord),
    Event(&'a Any),
}

impl Content<'_> {
    /// Its pieces, in order. Each is made when it is asked for.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..=self.parts()).map(|number| self.piece(number))
    }

    /// The whole content.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        self.pieces().fold(Vec::new(), |mut whole, piece| {
            whole.extend_from_slice(&piece);
            whole
        })
    }

    /// The entities of a state; none of anything else.
    pub(super) fn entities(&self) -> impl Iterator<Item = SnapshotEntity> {
        let state = match self {
            Self::State(state) => Some(state),
            Self::Turn(_) => None,
            #[cfg(test)]
            Self::Bytes(_) => None,
        };
        state.into_iter().flat_map(|state| state.entities())
    }

    /// How many entities or steps it has.
    fn parts(&self) -> usize {
        match self {
            Self::State(state) => state.len(),
            Self::Turn(turn) => turn.steps.len(),
            #[cfg(test)]
            Self::Bytes(_) => 0,
        }
    }

    /// The fields that there are one of, and after them one entity or step each.
    fn piece(&self, number: usize) -> Vec<u8> {
        let part = number.checked_sub(1);
        match self {
            Self::State(state) => {
                let entity = part.and_then(|part| state.entity(part));
                let snapshot_ordinal = if number == 0 { state.ordinal } else { 0 };
                let entities = entity.into_iter().collect();
                SnapshotFrame { snapshot_ordinal, entities }.encode_to_vec()
            }
            Self::Turn(turn) => match part.and_then(|part| turn.steps.get(part)) {
                None => turn_head(turn).encode_to_vec(),
                Some(step) => {
                    let steps = vec![step_message(step)];
                    StoredTurn { steps, ..StoredTurn::default() }.encode_to_vec()
                }
            },
            #[cfg(test)]
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl EventContent<'_> {
    /// The full name of the message, and its binary form; `None` for a type that is not known.
    pub(super) fn message(&self) -> Option<(&'static str, Vec<u8>)> {
        match self {
            Self::Patch(patch) => patch.payload().to_message(),
            Self::Event(payload @ Any::Shared(_)) => with_text_once(payload).to_message(),
            Self::Event(payload) => payload.to_message(),
        }
    }
}

/// An event with a long text in one field: who replays events reads that.
fn with_text_once(payload: &Any) -> Any {
    let mut whole = payload.clone().into_whole();
    let (text, content) = if let Any::ChatTextSegmentFinished(it) = &mut whole {
        (&it.text, &mut it.content)
    } else if let Any::ChatReasoningSegmentFinished(it) = &mut whole {
        (&it.text, &mut it.content)
    } else if let Any::ChatUserMessageAccepted(it) = &mut whole {
        (&it.text, &mut it.content)
    } else {
        return whole;
    };
    if content.len() > TEXT_TWICE_BYTES_MAX && content == text {
        *content = String::new();
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatTextSegmentFinished, ToolResultEntity};

    #[test]
    fn pieces_are_the_whole_message() {
        let entity = |number: u64| SnapshotEntity {
            kind: "ToolResult".to_owned(),
            id: number.to_string(),
            created_ordinal: number,
            last_event_ordinal: number,
            tombstone: false,
            payload: Some(ToolResultEntity { result: "r".repeat(99), ..Default::default() }.into()),
        };
        for count in [0, 1, 3] {
            let entities: Vec<_> = (1..=count).map(entity).collect();
            let frame = SnapshotFrame { snapshot_ordinal: 7, entities };
            let state = RunState::from(frame.clone());
            let content = Content::State(&state);
            assert_eq!(content.to_vec(), frame.encode_to_vec(), "{count}");
            assert_eq!(content.pieces().count() as u64, count + 1);
        }
    }

    #[test]
    fn a_long_text_is_in_an_event_once() {
        for (bytes, is_twice) in [(TEXT_TWICE_BYTES_MAX, true), (TEXT_TWICE_BYTES_MAX + 1, false)] {
            let text = "t".repeat(bytes);
            let finished = ChatTextSegmentFinished::default();
            let none = crate::support::text::Text::default();
            let payload =
                crate::protocol::any::Shared::payload(finished, none, text.as_str().into());
            let (name, message) = EventContent::Event(&payload).message().expect("a message");
            assert_eq!(name, "pinocchio.chatapp.v1.ChatTextSegmentFinished");
            let read = ChatTextSegmentFinished::decode(&*message).expect("the message");
            assert_eq!(read.text, text);
            assert_eq!(read.content == text, is_twice);
        }
    }
}
