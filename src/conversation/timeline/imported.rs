//! Entities of a recording, which stay as frames have shown them: other programs may have written them.

use super::{Body, Entity, HISTORY_TURN, Timeline};
use crate::conversation::event::Scope;
use crate::protocol::id::{Ordinal, RunId};
use crate::protocol::proto::rpc::SnapshotEntity;

impl Timeline {
    /// A conversation that begins with these entities of earlier messages, which belong to no run.
    pub(crate) fn with_entities(history: &[SnapshotEntity]) -> Self {
        let mut timeline = Self::default();
        timeline.import(Scope { run: RunId::NONE, turn: HISTORY_TURN, call: 0 }, history);
        timeline
    }

    /// Adds the entities of a turn.
    pub(super) fn import(&mut self, scope: Scope, entities: &[SnapshotEntity]) {
        self.entities.extend(entities.iter().map(|entity| Entity {
            scope,
            created: Ordinal(entity.created_ordinal),
            changed: Ordinal(entity.last_event_ordinal),
            body: Body::Imported(Box::new(entity.clone())),
        }));
    }
}
