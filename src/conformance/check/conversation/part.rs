//! Parts of a conversation: what a snapshot may leave out, as it is that of a run or of a page, and what
//! was dropped.

use super::{Conversation, Entity, Origin, is_apart};
use crate::conformance::check::names::{Name, Namer, shown};
use crate::conformance::check::rule::{Report, Rule};
use crate::conformance::check::runs::Runs;
use crate::protocol::any::Any;
use crate::protocol::command::Page;
use crate::protocol::constants::kind;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::proto::session::TurnDropped;
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

    /// Checks that the snapshot has the part that was asked for. Messages from before the session, with the
    /// ordinal 0, are not counted.
    pub(super) fn check_page(&self, page: &Page, frame: &SnapshotFrame, report: &mut Report) {
        let Page { since, before, limit } = *page;
        let entities = self.entities.iter().map(|(key, it)| (*key, (it.created, it.changed)));
        let dropped = self.dropped.iter().filter(|_| since.is_some());
        let known = entities.chain(dropped.map(|(key, ordinals)| (*key, *ordinals)));
        let mut expected: Vec<(u64, u64)> = known
            .filter(|(_, (created, changed))| {
                since.is_none_or(|since| *changed > since.0)
                    && before.is_none_or(|before| *created < before.0)
            })
            .map(|(key, (created, _))| (created, key))
            .collect();
        expected.sort_unstable();
        let limit = limit.map_or(expected.len(), |limit| limit.get() as usize);
        let first = expected.len().saturating_sub(limit);
        let is_of_session = |at: &usize| expected.get(*at).is_none_or(|(created, _)| *created > 0);
        let first = if is_of_session(&first) { first } else { 0 };
        let expected: HashSet<u64> = expected[first..].iter().map(|(_, key)| *key).collect();
        let shown = || frame.entities.iter().filter(|entity| !is_apart(&entity.kind));
        if !shown().is_sorted_by_key(|entity| entity.created_ordinal) {
            let message = "the part of the conversation is not in the order of its creation";
            report.add(Rule::SnapshotEntity, message);
        }
        let shown: HashSet<u64> = shown().map(|entity| self.key_of(entity)).collect();
        if shown != expected {
            let (lacks, has) = (expected.difference(&shown), shown.difference(&expected));
            let (lacks, has) = (lacks.count(), has.count());
            let message = format!(
                "the part of the conversation lacks {lacks} messages or tool calls that were asked \
                 for, and has {has} that were not"
            );
            report.add(Rule::SnapshotLost, message);
        }
    }

    /// The snapshot of a run may contain the entities of that run only; any other contains
    /// everything. A missing entity is reported once.
    pub(super) fn check_lost(
        &mut self,
        seen: &HashSet<u64>,
        run: Option<&Name>,
        report: &mut Report,
    ) {
        let is_of_others = |key| match (self.entities.get(key).map(|known| known.origin), run) {
            (Some(Origin::Run(of)), Some(run)) => of != run.key(),
            (Some(Origin::Earlier), _) => true,
            (Some(Origin::Run(_) | Origin::Snapshot) | None, _) => false,
        };
        let lost: Vec<u64> = match run {
            Some(run) if !seen.iter().any(is_of_others) => {
                let newest = self.newest.iter().filter(|(of, _)| *of == run.key());
                let lacks = |key: &&u64| !seen.contains(*key) && self.entities.contains_key(*key);
                newest.flat_map(|(_, keys)| keys).filter(lacks).copied().collect()
            }
            // Counted first: most snapshots are complete.
            Some(_) | None if self.count(seen) == self.entities.len() => return,
            Some(_) | None => {
                let keys = self.entities.keys();
                keys.filter(|key| !seen.contains(*key)).copied().collect()
            }
        };
        let lines = lost.iter().filter_map(|key| self.entities.remove(key)).map(|known| known.line);
        if let Some(first) = lines.min() {
            let count = lost.len();
            let message = format!(
                "the snapshot lacks {count} messages or tool calls that were shown before, the \
                 first one in line {first}"
            );
            report.add(Rule::SnapshotLost, message);
        }
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

/// An approval is in a snapshot while its call waits for it, and is no part of the conversation.
pub(super) fn check_approval(
    entity: &SnapshotEntity,
    (runs, namer): (&Runs, &Namer),
    report: &mut Report,
) {
    let call = match &entity.payload {
        Some(Any::ToolApprovalRequested(asked)) => namer.name(&asked.tool_call_id),
        Some(_) | None => return,
    };
    if !runs.awaits_approval(&call) {
        let message = format!("an approval of {}, which does not wait for one", call.shown);
        report.add(Rule::SnapshotEntity, message);
    }
}
