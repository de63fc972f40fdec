//! The entities that are stored at the end of a run. They become messages one by one as they are written, and
//! share their texts with the timeline until then.

use super::{Entity, Timeline};
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};

/// Entities as a snapshot has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunState {
    /// Ordinal of the last event that is included.
    pub(crate) ordinal: u64,
    entities: Entities,
}

#[derive(Clone, Debug, PartialEq)]
enum Entities {
    Live(SessionId, Vec<Entity>),
    Messages(Vec<SnapshotEntity>),
}

impl RunState {
    /// The entities, in the order of their creation. Each is made when it is asked for.
    pub(crate) fn entities(&self) -> impl Iterator<Item = SnapshotEntity> {
        (0..self.len()).filter_map(|at| self.entity(at))
    }

    /// How many entities there are.
    pub(crate) fn len(&self) -> usize {
        match &self.entities {
            Entities::Live(_, entities) => entities.len(),
            Entities::Messages(entities) => entities.len(),
        }
    }

    /// The entity at that place.
    pub(crate) fn entity(&self, at: usize) -> Option<SnapshotEntity> {
        match &self.entities {
            Entities::Live(session, entities) => Some(entities.get(at)?.on_wire(session)),
            Entities::Messages(entities) => entities.get(at).cloned(),
        }
    }
}

impl From<SnapshotFrame> for RunState {
    fn from(frame: SnapshotFrame) -> Self {
        let SnapshotFrame { snapshot_ordinal: ordinal, entities } = frame;
        Self { ordinal, entities: Entities::Messages(entities) }
    }
}

impl Timeline {
    /// The entities that were created after that event.
    pub(crate) fn state_since(&self, session: &SessionId, since: Ordinal) -> RunState {
        let start = self.entities.partition_point(|entity| entity.created <= since);
        let entities = Entities::Live(session.clone(), self.entities[start..].to_vec());
        RunState { ordinal: self.ordinal.0, entities }
    }
}
