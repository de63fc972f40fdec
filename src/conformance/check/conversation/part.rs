//! Parts of a conversation: what a snapshot may leave out if its request asked for a page, and what was
//! dropped.

use super::{Conversation, Entity};
use crate::conformance::check::names::shown;
use crate::conformance::check::rule::{Report, Rule};
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::TurnDropped;
use crate::protocol::words::kind;
use std::collections::HashSet;

impl Conversation {
    /// Whether the snapshot with the entities `seen` lacks others, and can be the answer to a request for
    /// a part. A part has a first and a last entity, in the order of creation; what is left out between
    /// them was not changed as recently as anything that is in it.
    pub(super) fn is_part(&self, seen: &HashSet<u64>) -> bool {
        if self.count(seen) == self.entities.len() {
            return false;
        }
        let known: Vec<_> = seen.iter().filter_map(|key| self.entities.get(key)).collect();
        let created = || known.iter().map(|entity| entity.created);
        let (Some(first), Some(last)) = (created().min(), created().max()) else {
            // Nothing has changed, or nothing is older.
            return true;
        };
        let oldest_change = known.iter().map(|entity| entity.changed).min().unwrap_or_default();
        let is_between = |entity: &Entity| (first..=last).contains(&entity.created);
        let left_out = self.entities.iter().filter(|(key, _)| !seen.contains(*key));
        left_out.map(|(_, entity)| entity).all(|it| !is_between(it) || it.changed < oldest_change)
    }

    /// Moves what was dropped to what is known as dropped. It is the end of the conversation, whole turns.
    pub(in crate::conformance::check) fn dropped(
        &mut self,
        dropped: &TurnDropped,
        ordinal: u64,
        report: &mut Report,
    ) {
        let TurnDropped { message_ids, tool_call_ids, turn_ids, .. } = dropped;
        let messages = message_ids.iter().map(|id| (kind::MESSAGE, id));
        let calls = tool_call_ids.iter().map(|id| (kind::TOOL_CALL, id));
        let mut turns = HashSet::new();
        let mut first = u64::MAX;
        for (kind, id) in messages.chain(calls) {
            match self.drop_entity(self.key(kind, id), ordinal) {
                Some(entity) => {
                    first = first.min(entity.created);
                    turns.extend(entity.turn);
                }
                None if self.is_too_wide => {}
                None => {
                    let id = shown(id);
                    let message =
                        format!("TurnDropped of {id:?}, which the conversation doesn't have");
                    report.add(Rule::EventOrder, message);
                }
            }
        }
        for id in tool_call_ids {
            self.drop_entity(self.key(kind::TOOL_RESULT, &format!("{id}:result")), ordinal);
        }
        let left = self.entities.values().filter(|entity| entity.created >= first).count();
        if left > 0 {
            let message = format!("TurnDropped leaves out {left} later messages or tool calls");
            report.add(Rule::EventOrder, message);
        }
        let named: HashSet<u64> = turn_ids.iter().map(|id| self.hash(id)).collect();
        if !turns.is_empty() && named != turns {
            report
                .add(Rule::Correlation, "the turnIds of TurnDropped are not those of its messages");
        }
        self.newest = None;
    }

    fn drop_entity(&mut self, key: u64, ordinal: u64) -> Option<Entity> {
        let entity = self.entities.remove(&key)?;
        self.dropped.insert(key, (entity.created, ordinal));
        Some(entity)
    }

    /// A tombstone is of something that was there. What an earlier process has dropped is not known.
    pub(super) fn tombstone(&mut self, key: u64, entity: &SnapshotEntity, report: &mut Report) {
        let found = (entity.created_ordinal, entity.last_event_ordinal);
        if self.entities.remove(&key).is_some() {
            self.dropped.insert(key, found);
            return;
        }
        let id = shown(&entity.id);
        match self.dropped.get(&key) {
            Some(known) if *known != found => {
                let message =
                    format!("the ordinals of the tombstone {id:?} differ from its events");
                report.add(Rule::SnapshotEntity, message);
            }
            None if !self.is_resumed && !self.is_too_wide => {
                let message = format!("the tombstone {id:?} is of nothing that was there");
                report.add(Rule::SnapshotEntity, message);
            }
            Some(_) | None => {}
        }
    }
}
