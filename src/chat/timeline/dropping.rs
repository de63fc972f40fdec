//! The last turns of a conversation, and how they are dropped. Whatever is dropped is its end: no turn
//! in the middle is ever missing.

use super::{Body, Entity, Timeline};
use crate::chat::ui::{FIRST_PROMPT, message_id, user_message_id};
use crate::protocol::any::Any;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::words::kind;
use crate::support::text::Text;
use std::collections::BTreeSet;

/// Before the number of a turn in its id.
const TURN_PREFIX: &str = "turn-";

/// The last turns, as people see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LastTurns {
    /// The ids of their messages, oldest first. The first is the prompt of the first turn.
    pub message_ids: Vec<String>,
    /// The ids of their tool calls.
    pub tool_call_ids: Vec<String>,
    /// Their numbers.
    pub turns: BTreeSet<u32>,
}

/// A prompt as people see it.
pub(crate) struct ShownPrompt {
    pub text: Text,
    /// Something goes with it, whose bytes only the transcript has.
    pub has_attachments: bool,
}

impl Timeline {
    /// Number of the last turn; `None` before the first.
    pub(crate) fn last_turn_number(&self) -> Option<u32> {
        let number = match self.entities.last() {
            Some(entity) => entity.scope.turn,
            None => turn_of(self.loaded.last()?),
        };
        (number > 0).then_some(number)
    }

    /// Number of the turn that began with that prompt. Prompts that joined a run, and those from before
    /// the session, begin none.
    pub(crate) fn turn_of_prompt(&self, message_id: &str) -> Option<u32> {
        let is_it = |entity: &&Entity| {
            let root = || entity.scope.run.root();
            entity.is_first_prompt() && user_message_id(&root(), FIRST_PROMPT) == message_id
        };
        let live = self.entities.iter().rev().find(is_it).map(|entity| entity.scope.turn);
        let number = live.or_else(|| {
            let is_it =
                |entity: &&SnapshotEntity| entity.id == message_id && is_first_prompt(entity);
            self.loaded.iter().rev().find(is_it).map(turn_of)
        });
        number.filter(|number| *number > 0)
    }

    /// The prompt that began a turn.
    pub(crate) fn first_prompt(&self, turn: u32) -> Option<ShownPrompt> {
        let (loaded, live) = self.start_of(turn);
        let live = self.entities[live..].iter().find_map(|entity| match &entity.body {
            Body::Prompt { text, attachments, number: FIRST_PROMPT } => {
                let has_attachments = !attachments.is_empty();
                Some(ShownPrompt { text: text.clone(), has_attachments })
            }
            Body::Prompt { .. }
            | Body::Segment { .. }
            | Body::Failure { .. }
            | Body::Tool { .. }
            | Body::ToolResult { .. } => None,
        });
        let stored = self.loaded[loaded..].iter().find(|entity| is_first_prompt(entity));
        stored.and_then(shown_prompt).or(live)
    }

    /// The turns from that number on.
    pub(crate) fn turns_from(&self, first: u32) -> LastTurns {
        let (loaded, live) = self.start_of(first);
        let mut last = LastTurns::default();
        for entity in &self.loaded[loaded..] {
            last.add(&entity.kind, entity.id.clone(), turn_of(entity));
        }
        for entity in &self.entities[live..] {
            let (kind, id) = entity.key();
            last.add(kind, id, entity.scope.turn);
        }
        last
    }

    /// Drops the turns from that number on.
    pub(super) fn drop_turns(&mut self, first: u32, ordinal: Ordinal) {
        let (loaded, live) = self.start_of(first);
        let stored = self.loaded.drain(loaded..);
        let stored =
            stored.map(|it| tombstone(it.kind, it.id, Ordinal(it.created_ordinal), ordinal));
        let live = self.entities.drain(live..).map(|it| {
            let (kind, id) = it.key();
            tombstone(kind.to_owned(), id, it.created, ordinal)
        });
        self.dropped.extend(stored.chain(live));
    }

    /// What that event has dropped.
    pub(crate) fn dropped_at(&self, ordinal: Ordinal) -> SnapshotFrame {
        let start = self.dropped.partition_point(|it| it.last_event_ordinal < ordinal.0);
        let gone = self.dropped[start..].iter();
        let entities = gone.take_while(|it| it.last_event_ordinal == ordinal.0).cloned().collect();
        SnapshotFrame { snapshot_ordinal: ordinal.0, entities }
    }

    /// Takes in what was stored, oldest first. What a tombstone names is gone, with all after it.
    pub(super) fn take_in(&mut self, stored: Vec<SnapshotEntity>) {
        for entity in stored {
            if entity.tombstone {
                let created = entity.created_ordinal;
                let start = self.loaded.partition_point(|it| it.created_ordinal < created);
                self.loaded.truncate(start);
                self.dropped.push(entity);
            } else {
                self.loaded.push(entity);
            }
        }
    }

    /// Where the turns from that number on begin, among the loaded entities and the others.
    fn start_of(&self, first: u32) -> (usize, usize) {
        let live = self.entities.iter().rposition(|entity| entity.scope.turn < first);
        let live = live.map_or(0, |before| before + 1);
        if live > 0 {
            return (self.loaded.len(), live);
        }
        let loaded = self.loaded.iter().rposition(|entity| turn_of(entity) < first);
        (loaded.map_or(0, |before| before + 1), live)
    }
}

impl LastTurns {
    fn add(&mut self, kind: &str, id: String, turn: u32) {
        self.turns.insert(turn);
        match kind {
            kind::MESSAGE => self.message_ids.push(id),
            kind::TOOL_CALL => self.tool_call_ids.push(id),
            // The result of a call goes with it.
            _ => {}
        }
    }
}

impl Entity {
    fn is_first_prompt(&self) -> bool {
        matches!(self.body, Body::Prompt { number: FIRST_PROMPT, .. })
    }

    /// Kind and id.
    pub(super) fn key(&self) -> (&'static str, String) {
        let root = self.scope.run.root();
        match &self.body {
            Body::Prompt { number, .. } => (kind::MESSAGE, user_message_id(&root, *number)),
            Body::Segment { segment, .. } => (kind::MESSAGE, message_id(&root, *segment)),
            Body::Failure { .. } => (kind::MESSAGE, root),
            Body::Tool { tool, .. } => (kind::TOOL_CALL, tool.id.0.clone()),
            Body::ToolResult { tool, .. } => (kind::TOOL_RESULT, format!("{}:result", tool.id.0)),
        }
    }
}

/// The number in the id of a turn, `turn-3`.
pub(crate) fn turn_number(id: &str) -> Option<u32> {
    id.strip_prefix(TURN_PREFIX)?.parse().ok()
}

/// The id of a turn.
pub(crate) fn turn_id(number: u32) -> String {
    format!("{TURN_PREFIX}{number}")
}

/// Number of the turn of a stored entity; 0 if it is from before the session.
fn turn_of(entity: &SnapshotEntity) -> u32 {
    let number = |ids: &Option<CorrelationInfo>| turn_number(&ids.as_ref()?.turn_id);
    let payload = entity.payload.clone().map(Any::into_whole);
    let number = if let Some(Any::ChatMessageEntity(it)) = &payload {
        number(&it.correlation)
    } else if let Some(Any::ToolCallEntity(it)) = &payload {
        number(&it.correlation)
    } else if let Some(Any::ToolResultEntity(it)) = &payload {
        number(&it.correlation)
    } else {
        None
    };
    number.unwrap_or_default()
}

fn is_first_prompt(entity: &SnapshotEntity) -> bool {
    entity.kind == kind::MESSAGE && entity.id.ends_with("-user")
}

fn shown_prompt(entity: &SnapshotEntity) -> Option<ShownPrompt> {
    let payload = entity.payload.clone().map(Any::into_whole);
    let Some(Any::ChatMessageEntity(it)) = payload else { return None };
    let has_attachments = !it.attachments.is_empty();
    Some(ShownPrompt { text: it.text.as_str().into(), has_attachments })
}

fn tombstone(kind: String, id: String, created: Ordinal, dropped: Ordinal) -> SnapshotEntity {
    SnapshotEntity {
        kind,
        id,
        created_ordinal: created.0,
        last_event_ordinal: dropped.0,
        tombstone: true,
        payload: None,
    }
}
