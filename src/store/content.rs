//! Contents of rows, made part by part as they are written: those of a long run are large, and what makes
//! them is in memory already. Their long texts are shared with the conversation. Messages of protobuf that follow each other are one message, with the fields
//! of all. Pure.

use super::turn::{change_pieces, step_pieces, turn_head};
use crate::chat::record::{PatchRecord, TurnChange};
use crate::chat::timeline::RunState;
use crate::chat::transcript::Turn;
use crate::protocol::any::Any;
use crate::protocol::pieces::Pieces;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use std::borrow::Cow;

/// Numbers of the fields of a snapshot's entities, of an entity's payload and of a turn's steps.
const ENTITIES: u32 = 2;
const PAYLOAD: u32 = 6;
const STEPS: u32 = 3;

/// Bytes of a text above which an event has it once: frames have it in two fields, and who replays events reads
/// the first.
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

/// The content of the row of a step.
#[derive(Debug)]
pub(super) enum StepContent<'a> {
    Change(Cow<'a, TurnChange>),
    #[cfg(test)]
    Bytes(Vec<u8>),
}

impl Content<'_> {
    /// Its parts, in order. Each is made when it is asked for.
    pub(super) fn parts(&self) -> impl Iterator<Item = Pieces> {
        (0..=self.len()).map(|number| self.part(number))
    }

    /// The whole content.
    pub(super) fn whole(&self) -> Pieces {
        self.parts().fold(Pieces::default(), |mut whole, part| {
            whole.append(part);
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
    fn len(&self) -> usize {
        match self {
            Self::State(state) => state.len(),
            Self::Turn(turn) => turn.steps.len(),
            #[cfg(test)]
            Self::Bytes(_) => 0,
        }
    }

    /// The fields that there are one of, and after them one entity or step each.
    fn part(&self, number: usize) -> Pieces {
        let place = number.checked_sub(1);
        match self {
            Self::State(state) => match place.and_then(|place| state.entity(place)) {
                None => {
                    let (snapshot_ordinal, entities) = (state.ordinal, Vec::new());
                    Pieces::of(&SnapshotFrame { snapshot_ordinal, entities })
                }
                Some(entity) => in_field(ENTITIES, entity_pieces(entity)),
            },
            Self::Turn(turn) => match place.and_then(|place| turn.steps.get(place)) {
                None => turn_head(turn),
                Some(step) => in_field(STEPS, step_pieces(step)),
            },
            #[cfg(test)]
            Self::Bytes(bytes) => Pieces::from(bytes.clone()),
        }
    }
}

fn in_field(tag: u32, message: Pieces) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.message(tag, message);
    pieces
}

fn entity_pieces(mut entity: SnapshotEntity) -> Pieces {
    let payload = entity.payload.take();
    let mut pieces = Pieces::of(&entity);
    if let Some(payload) = payload {
        pieces.message(PAYLOAD, payload.pieces());
    }
    pieces
}

impl EventContent<'_> {
    /// The full name of the message, and its binary form; `None` for a type that is not known.
    pub(super) fn message(&self) -> Option<(&'static str, Pieces)> {
        match self {
            Self::Patch(patch) => patch.payload().to_message(TEXT_TWICE_BYTES_MAX),
            Self::Event(payload) => payload.to_message(TEXT_TWICE_BYTES_MAX),
        }
    }
}

impl StepContent<'_> {
    /// The binary form; `None` for a change that is no step.
    pub(super) fn message(&self) -> Option<Pieces> {
        match self {
            Self::Change(change) => change_pieces(change),
            #[cfg(test)]
            Self::Bytes(bytes) => Some(Pieces::from(bytes.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatTextSegmentFinished, ToolResultEntity};
    use prost::Message;

    #[test]
    fn parts_are_the_whole_message() {
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
            assert_eq!(content.whole().into_vec(), frame.encode_to_vec(), "{count}");
            assert_eq!(content.parts().count() as u64, count + 1);
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
            let read = ChatTextSegmentFinished::decode(&*message.into_vec()).expect("the message");
            assert_eq!(read.text, text);
            assert_eq!(read.content == text, is_twice);
        }
    }
}
