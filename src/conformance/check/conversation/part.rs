//! Parts of a conversation: what a snapshot may leave out if its request asked for a page, and what was
//! dropped.

use super::{Conversation, Entity};
use crate::conformance::check::names::shown;
use crate::conformance::check::rule::{Report, Rule};
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

    /// Forgets what was dropped. It must have been there.
    pub(in crate::conformance::check) fn dropped(
        &mut self,
        dropped: &TurnDropped,
        report: &mut Report,
    ) {
        let TurnDropped { message_ids, tool_call_ids, .. } = dropped;
        for id in tool_call_ids {
            self.entities.remove(&self.key(kind::TOOL_RESULT, &format!("{id}:result")));
        }
        let messages = message_ids.iter().map(|id| (kind::MESSAGE, id));
        let calls = tool_call_ids.iter().map(|id| (kind::TOOL_CALL, id));
        for (kind, id) in messages.chain(calls) {
            let key = self.key(kind, id);
            if self.entities.remove(&key).is_none() && !self.is_too_wide {
                let id = shown(id);
                let message = format!("TurnDropped of {id:?}, which the conversation doesn't have");
                report.add(Rule::EventOrder, message);
            }
        }
        self.newest = None;
    }
}
