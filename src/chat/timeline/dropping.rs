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
            Body::Prompt { text, attachments, number: FIRST_PROMPT, .. } => {
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

#[cfg(test)]
mod tests {
    use super::super::Span;
    use super::*;
    use crate::chat::event::{Attachments, Event, Recorded, Scope, ToolCall, ToolResult};
    use crate::chat::record::StoredEvent;
    use crate::chat::replay::Replay;
    use crate::chat::transcript::HistoryMessage;
    use crate::protocol::command::Page;
    use crate::protocol::id::{Ids, SessionId, ToolCallId};
    use crate::protocol::proto::session::TurnDropped;

    /// A conversation, and the states that a store has of it.
    struct Kept {
        timeline: Timeline,
        states: Vec<SnapshotEntity>,
        ids: Ids,
        turns: u32,
    }

    fn session() -> SessionId {
        SessionId::new("s").expect("a name")
    }

    impl Kept {
        fn new() -> Self {
            let mut ids = Ids::new(1);
            let history = [HistoryMessage::ByUser("before".to_owned())];
            let timeline = Timeline::with_history(&history, &mut ids);
            let states = timeline.snapshot(&session(), Span::Conversation).entities;
            Self { timeline, states, ids, turns: 0 }
        }

        fn apply(&mut self, scope: Scope, event: Event) -> Ordinal {
            let ordinal = Ordinal(self.timeline.ordinal.0 + 1);
            self.timeline.apply(&Recorded { ordinal, scope, event });
            ordinal
        }

        /// A turn with a tool call, which is stored at its end.
        fn turn(&mut self) {
            self.turns += 1;
            let since = self.timeline.ordinal;
            let scope = Scope { run: self.ids.run(), turn: self.turns, call: 0 };
            let prompt = format!("prompt {}", self.turns).as_str().into();
            let id = ToolCallId(format!("call-{}", self.turns));
            let tool = || ToolCall { id: id.clone(), name: "clock".to_owned() };
            let attachments = Attachments::default();
            self.apply(scope, Event::PromptAccepted { prompt, attachments });
            self.apply(scope, Event::ToolCallStarted { tool: tool() });
            let result = ToolResult::Success("noon".to_owned()).into();
            self.apply(scope, Event::ToolResultReady { tool: tool(), result });
            self.states.extend(self.timeline.state_since(&session(), since).entities());
        }

        /// Drops the turns from that number on; gives the event as it is stored.
        fn drop_from(&mut self, first: u32) -> StoredEvent {
            let LastTurns { message_ids, tool_call_ids, turns } = self.timeline.turns_from(first);
            let payload = TurnDropped {
                prompt_message_id: message_ids[0].clone(),
                message_ids: message_ids.clone(),
                tool_call_ids: tool_call_ids.clone(),
                turn_ids: turns.iter().copied().map(turn_id).collect(),
            };
            let scope = Scope { run: self.ids.run(), turn: first, call: 0 };
            let turns = turns.into_iter().collect();
            let event = Event::TurnDropped { message_ids, tool_call_ids, turns };
            let ordinal = self.apply(scope, event);
            self.states.extend(self.timeline.dropped_at(ordinal).entities);
            StoredEvent { ordinal, place: Some((first, 0)), payload: payload.into() }
        }

        fn restored(&self) -> Timeline {
            Timeline::restored(self.states.clone(), self.timeline.ordinal)
        }
    }

    /// Both show the same, whatever is asked for.
    #[track_caller]
    fn check_same(one: &Timeline, two: &Timeline) {
        let bound = |number: u64| (number > 0).then_some(Ordinal(number));
        let last = one.ordinal.0 + 2;
        let pages = (0..last).flat_map(|since| (0..last).map(move |before| (since, before)));
        for (since, before) in pages {
            for limit in 0..4 {
                let (since, before) = (bound(since), bound(before));
                let limit = std::num::NonZeroU32::new(limit);
                let span = Span::Page(Page { since, before, limit });
                let both = [one, two].map(|timeline| timeline.snapshot(&session(), span));
                assert_eq!(both[0], both[1], "{span:?}");
            }
        }
        assert_eq!(one.last_turn_number(), two.last_turn_number());
    }

    #[test]
    fn what_is_loaded_is_what_was_live() {
        let mut kept = Kept::new();
        for first in [3, 4, 1, 6] {
            kept.turn();
            kept.turn();
            kept.turn();
            if first > kept.turns {
                continue;
            }
            kept.drop_from(first);
            check_same(&kept.timeline, &kept.restored());
        }
        kept.turn();
        check_same(&kept.timeline, &kept.restored());
    }

    /// Some of the turns are from the store, others from this process; the event may be replayed.
    #[test]
    fn turns_of_several_processes_are_dropped_together() {
        for first in 1..=4 {
            let mut kept = Kept::new();
            kept.turn();
            kept.turn();
            kept.timeline = kept.restored();
            kept.turn();
            kept.turn();
            let mut replayed = kept.timeline.clone();
            let event = kept.drop_from(first);
            Replay::default().apply(&event, &mut replayed);
            check_same(&kept.timeline, &replayed);
            check_same(&kept.timeline, &kept.restored());
            let left = kept.timeline.snapshot(&session(), Span::Conversation).entities;
            assert_eq!(left.len(), 1 + 3 * (first as usize - 1), "from turn {first}");
        }
    }

    #[test]
    fn a_turn_is_found_by_its_first_prompt_alone() {
        let mut kept = Kept::new();
        kept.turn();
        kept.turn();
        for timeline in [kept.timeline.clone(), kept.restored()] {
            let whole = timeline.snapshot(&session(), Span::Conversation).entities;
            let found: Vec<_> = whole.iter().map(|it| timeline.turn_of_prompt(&it.id)).collect();
            assert_eq!(found, [None, Some(1), None, None, Some(2), None, None]);
            let prompt = timeline.first_prompt(2).expect("a prompt");
            assert_eq!((prompt.text.as_str(), prompt.has_attachments), ("prompt 2", false));
            assert!(timeline.first_prompt(3).is_none());
        }
    }
}
