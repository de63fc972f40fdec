//! The last turns of a conversation, and how they are dropped. Whatever is dropped is its end: no turn
//! in the middle is ever missing.

use super::{Body, Entity, Timeline};
use crate::conversation::ui::{FIRST_PROMPT, message_id, user_message_id};
use crate::protocol::any::Any;
use crate::protocol::constants::kind;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::SnapshotEntity;
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
        self.entities.last().map(|entity| entity.scope.turn).filter(|number| *number > 0)
    }

    /// Number of the turn that began with that prompt. Prompts that joined a run, and those from before
    /// the session, begin none.
    pub(crate) fn turn_of_prompt(&self, message_id: &str) -> Option<u32> {
        let is_it = |entity: &&Entity| entity.is_first_prompt() && entity.key().1 == message_id;
        let found = self.entities.iter().rev().find(is_it).map(|entity| entity.scope.turn);
        found.filter(|number| *number > 0)
    }

    /// The prompt that began a turn.
    pub(crate) fn first_prompt(&self, turn: u32) -> Option<ShownPrompt> {
        let entities = &self.entities[self.start_of(turn)..];
        let body = &entities.iter().find(|entity| entity.is_first_prompt())?.body;
        if let Body::Prompt { text, attachments, .. } = body {
            let has_attachments = !attachments.is_empty();
            return Some(ShownPrompt { text: text.clone(), has_attachments });
        }
        if let Body::Imported(it) = body { shown_prompt(it) } else { None }
    }

    /// The texts of the prompts that joined a turn, oldest first.
    pub(crate) fn joined_prompts(&self, turn: u32) -> impl Iterator<Item = &Text> {
        let entities = self.entities[self.start_of(turn)..].iter();
        let of_turn = entities.take_while(move |entity| entity.scope.turn == turn);
        of_turn.filter_map(|entity| match &entity.body {
            Body::Prompt { text, .. } if !entity.is_first_prompt() => Some(text),
            Body::Prompt { .. }
            | Body::Segment { .. }
            | Body::Failure { .. }
            | Body::Tool { .. }
            | Body::ToolResult { .. }
            | Body::Imported(_) => None,
        })
    }

    /// The turns from that number on.
    pub(crate) fn turns_from(&self, first: u32) -> LastTurns {
        let mut last = LastTurns::default();
        for entity in &self.entities[self.start_of(first)..] {
            let (kind, id) = entity.key();
            last.add(kind, id, entity.scope.turn);
        }
        last
    }

    /// Drops the turns from that number on.
    pub(super) fn drop_turns(&mut self, first: u32, ordinal: Ordinal) {
        let start = self.start_of(first);
        self.compactions_dropped(first, ordinal);
        let dropped = self.entities.drain(start..).map(|it| {
            let (kind, id) = it.key();
            let entity = SnapshotEntity::new(kind, id, (it.created.0, ordinal.0), None);
            SnapshotEntity { tombstone: true, ..entity }
        });
        self.dropped.extend(dropped);
    }

    /// Where the turns from that number on begin.
    fn start_of(&self, first: u32) -> usize {
        let before = self.entities.iter().rposition(|entity| entity.scope.turn < first);
        before.map_or(0, |before| before + 1)
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
        if let Body::Imported(entity) = &self.body {
            return entity.kind == kind::MESSAGE && entity.id.ends_with("-user");
        }
        matches!(self.body, Body::Prompt { number: FIRST_PROMPT, .. })
    }

    /// Kind and id.
    pub(super) fn key(&self) -> (&str, String) {
        let root = self.scope.run.root();
        match &self.body {
            Body::Prompt { number, .. } => (kind::MESSAGE, user_message_id(&root, *number)),
            Body::Segment { segment, .. } => (kind::MESSAGE, message_id(&root, *segment)),
            Body::Failure { .. } => (kind::MESSAGE, root),
            Body::Tool { tool, .. } => (kind::TOOL_CALL, tool.id.0.clone()),
            Body::ToolResult { tool, .. } => (kind::TOOL_RESULT, format!("{}:result", tool.id.0)),
            Body::Imported(entity) => (&entity.kind, entity.id.clone()),
        }
    }
}

/// The number in the id of a turn, `turn-3`.
pub(crate) fn turn_number(id: &str) -> Option<u32> {
    id.strip_prefix(TURN_PREFIX)?.parse().ok()
}

/// The id of a turn.
pub(crate) fn turn_id(number: u32) -> String {
    [TURN_PREFIX, &number.to_string()].concat()
}

fn shown_prompt(entity: &SnapshotEntity) -> Option<ShownPrompt> {
    let Some(Any::ChatMessageEntity(it)) = &entity.payload else { return None };
    let has_attachments = !it.attachments.is_empty();
    Some(ShownPrompt { text: it.text.as_str().into(), has_attachments })
}

#[cfg(test)]
mod tests {
    use super::super::Span;
    use super::*;
    use crate::conversation::event::{
        Attachments, Event, ImportedTurn, Recorded, Scope, ToolCall, ToolResult,
    };
    use crate::conversation::transcript::HistoryMessage;
    use crate::protocol::id::{Ids, SessionId, ToolCallId};

    /// A conversation after an earlier message.
    struct Scene {
        timeline: Timeline,
        ids: Ids,
        turns: u32,
    }

    fn session() -> SessionId {
        SessionId::new("s").expect("a name")
    }

    impl Scene {
        fn new() -> Self {
            let mut ids = Ids::new(1);
            let history = [HistoryMessage::ByUser("before".to_owned())];
            let timeline = Timeline::with_history(&history, &mut ids);
            Self { timeline, ids, turns: 0 }
        }

        fn apply(&mut self, scope: Scope, event: Event) {
            let ordinal = Ordinal(self.timeline.ordinal.0 + 1);
            self.timeline.apply(&Recorded { ordinal, scope, event });
        }

        /// A turn with a tool call.
        fn turn(&mut self) {
            self.turns += 1;
            let scope = Scope { run: self.ids.run(), turn: self.turns, call: 0 };
            let prompt = format!("prompt {}", self.turns).as_str().into();
            let id = ToolCallId(format!("call-{}", self.turns));
            let tool = || ToolCall { id: id.clone(), name: "clock".to_owned() };
            let attachments = Attachments::default();
            self.apply(scope, Event::PromptAccepted { prompt, attachments });
            self.apply(scope, Event::ToolCallStarted { tool: tool() });
            let result = ToolResult::Success("noon".to_owned()).into();
            self.apply(scope, Event::ToolResultReady { tool: tool(), result });
        }

        /// The last turn again, as one of a recording.
        fn imported(&mut self) {
            let mut entities = self.timeline.snapshot(&session(), Span::LastTurn).entities;
            for entity in &mut entities {
                entity.payload = entity.payload.take().map(Any::into_whole);
            }
            let scope = Scope { run: self.ids.run(), turn: self.turns, call: 0 };
            self.drop_from(self.turns);
            self.apply(scope, Event::TurnImported(Box::new(ImportedTurn { entities, turn: None })));
        }

        fn drop_from(&mut self, first: u32) {
            let LastTurns { message_ids, tool_call_ids, turns } = self.timeline.turns_from(first);
            let scope = Scope { run: self.ids.run(), turn: first, call: 0 };
            let turns = turns.into_iter().collect();
            self.apply(scope, Event::TurnDropped { message_ids, tool_call_ids, turns });
        }

        fn entities(&self) -> Vec<SnapshotEntity> {
            self.timeline.snapshot(&session(), Span::Conversation).entities
        }
    }

    #[test]
    fn the_last_turns_are_dropped_wherever_they_came_from() {
        for first in 1..=4 {
            let mut scene = Scene::new();
            scene.turn();
            scene.imported();
            scene.turn();
            scene.turn();
            scene.imported();
            scene.turn();
            let before = scene.entities();
            scene.drop_from(first);
            let left = scene.entities();
            assert_eq!(left, before[..1 + 3 * (first as usize - 1)], "from turn {first}");
            let last = (first > 1).then(|| first - 1);
            assert_eq!(scene.timeline.last_turn_number(), last);
        }
    }

    #[test]
    fn a_turn_is_found_by_its_first_prompt_alone() {
        let mut scene = Scene::new();
        scene.turn();
        scene.imported();
        scene.turn();
        let timeline = &scene.timeline;
        let found = scene.entities().into_iter().map(|it| timeline.turn_of_prompt(&it.id));
        let expected = [None, Some(1), None, None, Some(2), None, None];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        for turn in [1, 2] {
            let prompt = timeline.first_prompt(turn).expect("a prompt");
            assert_eq!(prompt.text.as_str(), format!("prompt {turn}"));
            assert!(!prompt.has_attachments);
        }
        assert!(timeline.first_prompt(3).is_none());
    }
}
