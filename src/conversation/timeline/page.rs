//! Parts of a conversation: what was changed after an event, and the pages in which a client goes back
//! in time.

use super::{Entity, Timeline};
use crate::protocol::command::Page;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::rpc::SnapshotEntity;

/// An entity on its way into a page.
enum Item<'a> {
    Entity(&'a Entity),
    Tombstone(&'a SnapshotEntity),
}

impl Timeline {
    /// The entities of a page, in the order of their creation. Dropped entities are included only for a
    /// client that asks for changes, as it may still show them.
    pub(super) fn page(&self, session: &SessionId, page: &Page) -> Vec<SnapshotEntity> {
        let items = self.items(page);
        let start = start_of_last(&items, page);
        items[start..].iter().map(|item| item.on_wire(session)).collect()
    }

    /// The event with which a page begins; `None` for the last page, as nothing comes before that.
    pub(super) fn page_begin(&self, page: &Page) -> Option<Ordinal> {
        let limit = usize::try_from(page.limit?.get()).ok()?;
        let items = self.items(page);
        let first = items.get(start_of_last(&items, page))?.created();
        (items.len() >= limit && first > 0).then_some(Ordinal(first))
    }

    /// What is within the bounds of a page, in the order of its creation.
    fn items(&self, page: &Page) -> Vec<Item<'_>> {
        let wanted = |item: &Item<'_>| item.is_in(page);
        let mut items: Vec<_> = self.entities.iter().map(Item::Entity).filter(wanted).collect();
        if page.since.is_some() {
            items.extend(self.dropped.iter().map(Item::Tombstone).filter(wanted));
            items.sort_by_key(Item::created);
        }
        items
    }
}

/// Where the last items begin, as many as the page may have. Those that have no ordinal of their own
/// stay together: no bound could be between them.
fn start_of_last(items: &[Item<'_>], page: &Page) -> usize {
    let limit = page.limit.and_then(|limit| usize::try_from(limit.get()).ok());
    let mut start = items.len().saturating_sub(limit.unwrap_or(items.len()));
    while start > 0 && items[start - 1].created() == items[start].created() {
        start -= 1;
    }
    start
}

impl Item<'_> {
    fn created(&self) -> u64 {
        match self {
            Self::Tombstone(entity) => entity.created_ordinal,
            Self::Entity(entity) => entity.created.0,
        }
    }

    fn changed(&self) -> u64 {
        match self {
            Self::Tombstone(entity) => entity.last_event_ordinal,
            Self::Entity(entity) => entity.changed.0,
        }
    }

    fn is_in(&self, page: &Page) -> bool {
        page.since.is_none_or(|since| self.changed() > since.0)
            && page.before.is_none_or(|before| self.created() < before.0)
    }

    fn on_wire(&self, session: &SessionId) -> SnapshotEntity {
        match self {
            Self::Tombstone(entity) => (*entity).clone(),
            Self::Entity(entity) => entity.on_wire(session),
        }
    }
}
