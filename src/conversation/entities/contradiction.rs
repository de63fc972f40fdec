//! Frames that contradict each other, as those of a damaged recording do.

use super::Entities;
use crate::protocol::any::Any;
use crate::protocol::constants::kind;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::SnapshotEntity;
use std::collections::HashSet;

/// Frames that no conversation can have: what is made of them would be another one than was held.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    #[error("the {kind} {id} is there twice")]
    Repeated { kind: &'static str, id: String },
    #[error("the ordinal {found} is higher than any event can have (up to {})", Ordinal::RESUMABLE_MAX.0)]
    HighOrdinal { found: u64 },
}

impl Entities {
    /// Why the frames so far can't be those of one conversation.
    pub(crate) fn contradiction(&self) -> Option<&Contradiction> {
        self.contradiction.as_ref()
    }

    /// Whether an event of a conversation can have that ordinal.
    pub(super) fn may_have(&mut self, ordinal: u64) -> bool {
        let is_possible = ordinal <= Ordinal::RESUMABLE_MAX.0;
        if !is_possible {
            self.contradiction.get_or_insert(Contradiction::HighOrdinal { found: ordinal });
        }
        is_possible
    }

    /// An entity of the conversation begins a second time.
    pub(super) fn repeated(&mut self, kind: &str, id: String) {
        let kind = match kind {
            kind::TOOL_CALL => "tool call",
            kind::TOOL_RESULT => "tool result",
            _ => "message",
        };
        self.contradiction.get_or_insert(Contradiction::Repeated { kind, id });
    }

    /// Checks that no entity is in a snapshot twice, and none has an ordinal that no event has.
    pub(super) fn check_snapshot(&mut self, entities: &[SnapshotEntity]) {
        let (mut keys, mut calls) = (HashSet::new(), HashSet::new());
        for entity in entities {
            self.may_have(entity.created_ordinal.max(entity.last_event_ordinal));
            let is_new = keys.insert((&entity.kind, &entity.id));
            // A call and its result have other ids as entities; one call has one of each.
            let is_new_call = call_id(entity).is_none_or(|id| calls.insert((&entity.kind, id)));
            if !is_new || !is_new_call {
                self.repeated(&entity.kind, entity.id.clone());
            }
        }
    }

    /// Checks that an entity which begins is not there yet.
    pub(super) fn check_new(&mut self, kind: &str, id: &str) {
        let known = self.places.get(&(kind.to_owned(), id.to_owned()));
        if known.and_then(|&at| self.list.get(at)).is_some_and(|known| !known.tombstone) {
            self.repeated(kind, id.to_owned());
        }
    }
}

/// The call that an entity is of.
fn call_id(entity: &SnapshotEntity) -> Option<&String> {
    match &entity.payload {
        Some(Any::ToolCallEntity(it)) => Some(&it.tool_call_id),
        Some(Any::ToolResultEntity(it)) => Some(&it.tool_call_id),
        Some(_) | None => None,
    }
}
