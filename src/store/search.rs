//! A search through the entities of one session, as they are read: only what is found stays in memory.

use super::states::each_entity;
use super::words::{Phrases, Said, said};
use crate::chat::timeline::turn_number;
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::SnapshotEntity;
use prost::DecodeError;

/// Where the words of a search were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Number of the turn; 0 for earlier messages.
    pub(crate) turn: u32,
    /// The role, or the name of the tool.
    pub(crate) by: String,
    /// The part of the text around the words.
    pub(crate) snippet: String,
    created_ordinal: u64,
}

/// A search that goes on.
#[derive(Clone, Debug)]
pub(super) struct Search {
    phrases: Phrases,
    max: usize,
    hits: Vec<Hit>,
}

impl Search {
    /// For at most `max` hits.
    pub(super) fn new(phrases: &Phrases, max: usize) -> Self {
        Self { phrases: phrases.clone(), max, hits: Vec::new() }
    }

    /// The hits, oldest first.
    pub(super) fn finish(self) -> Vec<Hit> {
        self.hits
    }

    /// Searches the entities of a state; those of one that can't be read are no hits.
    pub(super) fn state(&mut self, state: &[u8]) -> Result<(), DecodeError> {
        let before = self.hits.clone();
        let read = each_entity(state, |entity| self.entity(entity));
        if read.is_err() {
            self.hits = before;
        }
        read
    }

    /// Searches an entity that comes after those before it. A tombstone takes back what it names, with all
    /// after it.
    pub(super) fn entity(&mut self, entity: SnapshotEntity) {
        let SnapshotEntity { created_ordinal, tombstone, payload, .. } = entity;
        if tombstone {
            return self.hits.retain(|hit| hit.created_ordinal < created_ordinal);
        }
        // What is past the limit is after all hits, so a tombstone that takes back one of them takes back that.
        if self.hits.len() >= self.max {
            return;
        }
        let payload = payload.map(Any::into_whole);
        let Some(Said { by, text, ids }) = payload.as_ref().and_then(said) else { return };
        let Some(snippet) = self.phrases.find(text) else { return };
        let turn = ids.and_then(|ids| turn_number(&ids.turn_id)).unwrap_or_default();
        self.hits.push(Hit { turn, by: by.to_owned(), snippet, created_ordinal });
    }
}
