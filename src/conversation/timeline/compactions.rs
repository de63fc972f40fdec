//! Compactions: only clients that have asked for them are shown them. What people see of the conversation loses
//! nothing by them.

use super::{Page, Span, Timeline};
use crate::conversation::compaction::{Compaction, CompactionEvent};
use crate::conversation::event::{Recorded, Scope};
use crate::conversation::timeline::turn_id;
use crate::conversation::ui::correlation;
use crate::protocol::constants::kind;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::Compacted;
use std::sync::Arc;

/// A compaction as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownCompaction {
    made: Ordinal,
    scope: Scope,
    compaction: Arc<Compaction>,
}

impl Timeline {
    pub(super) fn compaction(&mut self, recorded: &Recorded, event: &CompactionEvent) {
        if let CompactionEvent::Done(compaction) = event {
            let Recorded { ordinal: made, scope, .. } = *recorded;
            let compaction = Arc::clone(compaction);
            self.compactions.push(ShownCompaction { made, scope, compaction });
        }
    }

    /// Compactions that were made in turns from `first` on are undone by the event `ordinal`.
    pub(super) fn compactions_dropped(&mut self, first: u32, ordinal: Ordinal) {
        let start = self.compactions.iter().rposition(|it| it.scope.turn < first);
        let undone = self.compactions.drain(start.map_or(0, |before| before + 1)..);
        self.undone.extend(undone.map(|it| {
            let ordinals = (it.made.0, ordinal.0);
            let entity =
                SnapshotEntity::new(kind::COMPACTION, compaction_id(it.made), ordinals, None);
            SnapshotEntity { tombstone: true, ..entity }
        }));
    }

    /// The compactions of a snapshot's span. Those that were undone are included only for a client that asks for
    /// changes, as it may still show them. A page with a limit has those that were made since its first entity, and the
    /// last one those before it too, so that each is in one page.
    pub(crate) fn compactions(&self, session: &SessionId, span: Span) -> Vec<SnapshotEntity> {
        let all = &self.compactions;
        let made_by = |ordinal| all.partition_point(|it| it.made <= ordinal);
        let (first, end, page) = match span {
            Span::Conversation => (0, all.len(), None),
            Span::LastTurn => {
                let last = self.last_turn_number().unwrap_or_default();
                (all.partition_point(|it| it.scope.turn < last), all.len(), None)
            }
            Span::Page(page) => {
                let made_before = |ordinal| all.partition_point(|it| it.made < ordinal);
                let begin = self.page_begin(&page);
                let first = page.since.map_or(0, made_by).max(begin.map_or(0, made_before));
                let end = page.before.map_or(all.len(), made_before);
                (first, end, Some((page, begin)))
            }
        };
        let undone = page.into_iter().flat_map(|(page, begin)| self.undone(page, begin));
        let made = all.get(first..end).unwrap_or_default().iter().map(|it| it.on_wire(session));
        made.chain(undone.cloned()).collect()
    }

    /// The undone compactions of a page with that beginning.
    fn undone(&self, page: Page, begin: Option<Ordinal>) -> impl Iterator<Item = &SnapshotEntity> {
        let begin = begin.unwrap_or_default();
        let is_in = move |it: &&SnapshotEntity| {
            page.since.is_some_and(|since| it.last_event_ordinal > since.0)
                && page.before.is_none_or(|before| it.created_ordinal < before.0)
                && it.created_ordinal >= begin.0
        };
        self.undone.iter().filter(is_in)
    }
}

/// The id of the compaction that was made by that event.
fn compaction_id(made: Ordinal) -> String {
    format!("compaction-{}", made.0)
}

impl ShownCompaction {
    /// The payload is the event that reported it.
    fn on_wire(&self, session: &SessionId) -> SnapshotEntity {
        let ids = correlation(session, Scope { call: 0, ..self.scope });
        let payload = compacted(&self.compaction, self.made, ids);
        let ordinals = (self.made.0, self.made.0);
        let id = payload.compaction_id.clone();
        SnapshotEntity::new(kind::COMPACTION, id, ordinals, Some(payload.into()))
    }
}

/// A compaction that was made by the event `made`, as clients are shown it.
pub(crate) fn compacted(
    compaction: &Compaction,
    made: Ordinal,
    correlation: CorrelationInfo,
) -> Compacted {
    let Compaction { through, summary, cleared, tokens_before, tokens_after } = compaction;
    Compacted {
        compaction_id: compaction_id(made),
        through_turn_id: if *through == 0 { String::new() } else { turn_id(*through) },
        summary: summary.as_str().to_owned(),
        cleared_tool_call_ids: cleared.iter().map(|id| id.0.clone()).collect(),
        tokens_before: *tokens_before,
        tokens_after: *tokens_after,
        correlation: Some(correlation),
    }
}
