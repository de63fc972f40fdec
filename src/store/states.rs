//! The states of runs as they are loaded: the entities in their order, whose messages stay bytes until
//! they are shown.

use crate::protocol::any::{Any, STORED_URL, Stored};
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::SnapshotEntity;
use prost::bytes::Bytes;
use prost::{DecodeError, Message};
use std::collections::HashSet;

/// States as they are read, in one buffer, one after the other: what is kept of thousands of them is
/// one allocation.
#[derive(Debug, Default)]
pub(super) struct States {
    bytes: Vec<u8>,
    /// The ordinal of each state and the end of its bytes.
    ends: Vec<(Ordinal, usize)>,
    /// Those of states that were read at once.
    unread: Option<UnreadStates>,
}

/// A `SnapshotFrame` whose payloads are not read.
#[derive(Clone, PartialEq, Message)]
struct RawState {
    #[prost(message, repeated, tag = "2")]
    entities: Vec<RawEntity>,
}

/// A `SnapshotEntity`.
#[derive(Clone, PartialEq, Message)]
struct RawEntity {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(uint64, tag = "3")]
    created_ordinal: u64,
    #[prost(uint64, tag = "4")]
    last_event_ordinal: u64,
    #[prost(bool, tag = "5")]
    tombstone: bool,
    #[prost(message, optional, tag = "6")]
    payload: Option<RawPayload>,
}

/// A `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct RawPayload {
    #[prost(bytes = "bytes", tag = "1")]
    type_url: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// States that can't be read.
#[derive(Debug)]
pub(super) struct UnreadStates {
    pub(super) count: u64,
    /// What is wrong with the first.
    pub(super) why: DecodeError,
}

impl States {
    pub(super) fn add(&mut self, ordinal: Ordinal, state: &[u8]) {
        self.bytes.extend_from_slice(state);
        self.ends.push((ordinal, self.bytes.len()));
    }

    /// Notes a state that can't be read.
    pub(super) fn left_out(&mut self, why: DecodeError) {
        self.unread.get_or_insert(UnreadStates { count: 0, why }).count += 1;
    }

    /// Adds the entities of all states that can be read; `until` is the ordinal of the last one.
    pub(super) fn read(
        self,
        entities: &mut Vec<SnapshotEntity>,
        until: &mut Ordinal,
    ) -> Result<(), UnreadStates> {
        let Self { bytes, ends, unread } = self;
        let (bytes, mut start) = (Bytes::from(bytes), 0);
        let (mut count, mut first) = unread.map_or((0, None), |it| (it.count, Some(it.why)));
        for (ordinal, end) in ends {
            let whole = entities.len();
            match read_state(bytes.slice(start..end), entities) {
                Ok(()) => *until = ordinal,
                Err(error) => {
                    entities.truncate(whole);
                    count += 1;
                    first.get_or_insert(error);
                }
            }
            start = end;
        }
        first.map_or(Ok(()), |why| Err(UnreadStates { count, why }))
    }
}

fn read_state(state: Bytes, entities: &mut Vec<SnapshotEntity>) -> Result<(), DecodeError> {
    for entity in RawState::decode(state)?.entities {
        entities.push(entity.read()?);
    }
    Ok(())
}

/// Gives `take` the entities of a state, up to one that can't be read.
pub(super) fn each_entity(
    state: &[u8],
    mut take: impl FnMut(SnapshotEntity),
) -> Result<(), DecodeError> {
    for entity in RawState::decode(Bytes::copy_from_slice(state))?.entities {
        take(entity.read()?);
    }
    Ok(())
}

impl RawEntity {
    fn read(self) -> Result<SnapshotEntity, DecodeError> {
        let Self { kind, id, created_ordinal, last_event_ordinal, tombstone, payload } = self;
        let payload = payload.map(RawPayload::read).transpose()?;
        Ok(SnapshotEntity { kind, id, created_ordinal, last_event_ordinal, tombstone, payload })
    }
}

impl RawPayload {
    fn read(self) -> Result<Any, DecodeError> {
        if *self.type_url == *STORED_URL.as_bytes()
            && let Some(stored) = Stored::payload(self.value.clone())
        {
            return Ok(stored);
        }
        Any::decode(&*self.encode_to_vec())
    }
}

/// A tombstone removes the entity that was there before it, and itself.
pub(super) fn remove_dropped(entities: &mut Vec<SnapshotEntity>) {
    if !entities.iter().any(|entity| entity.tombstone) {
        return;
    }
    let mut dropped: HashSet<(String, String)> = HashSet::new();
    let mut kept: Vec<_> = std::mem::take(entities).into_iter().rev().collect();
    kept.retain(|entity| {
        let key = || (entity.kind.clone(), entity.id.clone());
        if entity.tombstone {
            dropped.insert(key());
        }
        !entity.tombstone && !dropped.contains(&key())
    });
    kept.reverse();
    *entities = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatMessageEntity, ToolCallEntity};
    use crate::protocol::proto::rpc::SnapshotFrame;

    fn entity(id: &str, tombstone: bool, payload: Option<Any>) -> SnapshotEntity {
        let (kind, id) = ("ChatMessage".to_owned(), id.to_owned());
        let (created_ordinal, last_event_ordinal) = (1, 2);
        SnapshotEntity { kind, id, created_ordinal, last_event_ordinal, tombstone, payload }
    }

    fn loaded(states: &[&[u8]]) -> (Vec<SnapshotEntity>, Ordinal, u64) {
        let mut loading = States::default();
        for (number, state) in (1..).zip(states) {
            loading.add(Ordinal(number), state);
        }
        let (mut entities, mut until) = (Vec::new(), Ordinal::default());
        let unread = loading.read(&mut entities, &mut until).map_or_else(|it| it.count, |()| 0);
        (entities, until, unread)
    }

    #[test]
    fn entities_are_read_as_they_were_written() {
        let message = ChatMessageEntity { text: "hi".to_owned(), ..Default::default() };
        let call = ToolCallEntity { input: "{}".to_owned(), ..Default::default() };
        let entities = vec![
            entity("a", false, Some(message.into())),
            entity("b", false, Some(call.into())),
            entity("c", false, None),
        ];
        let state = SnapshotFrame { snapshot_ordinal: 2, entities: entities.clone() };
        // Two states that were joined are one with all entities.
        let one = [state.encode_to_vec(), state.encode_to_vec()].concat();
        let (read, _, unread) = loaded(&[&one]);
        let whole = read.into_iter().map(|mut entity| {
            entity.payload = entity.payload.map(Any::into_whole);
            entity
        });
        assert_eq!(unread, 0);
        assert_eq!(whole.collect::<Vec<_>>(), [entities.clone(), entities].concat());
    }

    #[test]
    fn a_state_that_is_damaged_is_left_out_and_counted() {
        let message = ChatMessageEntity { text: "hi".to_owned(), ..Default::default() };
        let state = |id, payload| {
            let entities = vec![entity("first", false, None), entity(id, false, payload)];
            SnapshotFrame { snapshot_ordinal: 1, entities }.encode_to_vec()
        };
        let state_with_text = state("b", Some(message.into()));
        let mut no_text = state_with_text.clone();
        let at = no_text.windows(2).position(|it| it == b"hi").expect("a text");
        // No character of UTF-8.
        no_text[at] = 0xff;
        let cut = &state_with_text[..state_with_text.len() - 1];
        let whole = state("c", None);
        let (read, until, unread) = loaded(&[&whole, cut, &no_text, &whole]);
        let ids: Vec<_> = read.iter().map(|entity| &*entity.id).collect();
        assert_eq!((ids, until), (vec!["first", "c", "first", "c"], Ordinal(4)));
        assert_eq!(unread, 2);
        // What comes after the last one that can be read is in the events.
        let (_, until, unread) = loaded(&[&whole, cut]);
        assert_eq!((until, unread), (Ordinal(1), 1));
    }

    #[test]
    fn a_tombstone_removes_what_was_before_it() {
        let states = [
            vec![entity("a", false, None), entity("b", false, None)],
            vec![entity("a", true, None)],
            vec![entity("a", false, None)],
        ];
        let states = states.map(|entities| SnapshotFrame { snapshot_ordinal: 1, entities });
        let states = states.map(|state| state.encode_to_vec());
        let (mut read, ..) = loaded(&states.each_ref().map(Vec::as_slice));
        remove_dropped(&mut read);
        let ids: Vec<_> = read.iter().map(|entity| &*entity.id).collect();
        assert_eq!(ids, ["b", "a"]);
    }
}
