//! A conversation that another session begins with: its turns that have ended, of the log of a session or of
//! what frames have shown. Pure.

use super::attached;
use super::choices::Choices;
use super::entities::{End, Shown};
use super::event::{Event, ImportedTurn, Recorded, Scope, SessionEvent};
use super::log::{Record, SessionStart};
use super::transcript::{HistoryMessage, Preamble};
use crate::protocol::any::Any;
use crate::protocol::constants::role;
use crate::protocol::id::{Ids, Ordinal, RunId, SessionId};
use crate::protocol::proto::chat::ChatMessageEntity;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::support::text::Text;
use std::collections::HashMap;
use std::sync::Arc;

mod turn;

use turn::{close, turn_of};

/// The highest number that a turn has from an id: the session counts on from there.
const TURN_NUMBER_MAX: u32 = 1 << 31;

/// The initial content of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopiedTurns {
    /// The messages to the model before the first turn.
    pub(crate) preamble: Preamble,
    /// The earlier messages as people see them.
    pub(crate) history: Vec<SnapshotEntity>,
    /// The turns that have ended, oldest first.
    pub(crate) turns: Vec<CopiedTurn>,
    /// The client's choices.
    pub(crate) choices: Choices,
    /// The title that a person has given it.
    pub(crate) title: Option<String>,
    /// How many images and files of prompts the model is not sent, because frames have no bytes of them.
    pub(crate) lost_attachments: usize,
}

/// A turn that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CopiedTurn {
    /// Its number in the session.
    pub(crate) number: u32,
    pub(crate) content: TurnContent,
}

/// The content of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TurnContent {
    /// The events of its log.
    Events(Vec<Recorded>),
    /// What frames have shown, with the ordinal of its end; 0 if that is not known.
    Shown(ImportedTurn, u64),
}

/// The entities of one run.
#[derive(Debug, Default)]
struct Group {
    run: String,
    turn: String,
    entities: Vec<SnapshotEntity>,
}

/// The events of the turn at the end of a log that has no end; `None` if the last turn has one.
pub(crate) fn open_turn(events: &[Recorded]) -> Option<&[Recorded]> {
    let is_prompt = |it: &Recorded| matches!(it.event, Event::PromptAccepted { .. });
    let open = &events[events.iter().rposition(is_prompt)?..];
    (!open.iter().any(|it| it.event.ends_turn())).then_some(open)
}

impl CopiedTurns {
    /// The conversation in a log. Turns that have no end, or were dropped, are not copied, nor is what
    /// happened outside of them.
    pub(crate) fn of_log(start: SessionStart, events: Vec<Recorded>) -> Self {
        let SessionStart { preamble, history, choices, .. } = start;
        let mut copy = Self { preamble, history, choices, ..Self::default() };
        let (mut open, mut is_between) = (Vec::new(), false);
        for mut recorded in events {
            let Recorded { scope, event, .. } = &mut recorded;
            let number = scope.turn;
            if let Some(chosen) = event.choices() {
                copy.choices = (**chosen).clone();
            }
            if let Event::Session(SessionEvent::Renamed(title)) = event {
                copy.title = Some(std::mem::take(title));
            }
            if let Event::TurnDropped { .. } = event {
                copy.turns.retain(|turn| turn.number < number);
            } else if let Event::RunStarted { choices, request, .. } = event {
                // The session begins with what was chosen last, and has seen no request.
                (*choices, *request) = (None, Text::default());
            } else if let Event::PromptAccepted { .. } = event {
                // Events of an earlier run that was cut off are not copied.
                open.clear();
                is_between = false;
            }
            let is_of_turn = !matches!(event, Event::Session(_) | Event::TurnDropped { .. });
            if !is_of_turn || event.is_patch() {
                continue;
            }
            if is_between && !recorded.event.ends_turn() {
                // A compaction between two turns, with its call: it belongs to the one before. Earlier versions
                // gave it the number of a later turn, if that had been dropped.
                let last = copy.turns.last_mut().filter(|turn| turn.number <= number);
                if let Some(CopiedTurn { content: TurnContent::Events(events), number }) = last {
                    recorded.scope.turn = *number;
                    events.push(recorded);
                }
                continue;
            }
            let ends_turn = recorded.event.ends_turn();
            open.push(recorded);
            is_between = ends_turn;
            if ends_turn {
                let content = TurnContent::Events(std::mem::take(&mut open));
                copy.turns.push(CopiedTurn { number, content });
            }
        }
        copy
    }

    /// The conversation that frames have shown. A run without an end was cut off, and is stopped.
    pub(crate) fn of_shown(shown: Shown) -> Self {
        let Shown { entities, mut ordinal, mut ends, open } = shown;
        let (history, groups) = groups(entities);
        let mut copy = Self { history, ..Self::default() };
        for attachment in copy.history.iter_mut().flat_map(attached::shown_by) {
            attached::hide_bytes(attachment);
        }
        copy.preamble.history = copy.history.iter().filter_map(earlier_message).collect();
        let mut last = 0;
        for mut group in groups {
            let was_open = close(&mut group.entities, &mut ordinal);
            let is_open = open.as_ref().is_some_and(|open| *open == group.run);
            let end = match ends.remove(&group.run) {
                Some(end) => end,
                None if is_open || was_open => End::Stopped,
                None => turn::end_of(&group.entities),
            };
            let typed = group.turn.strip_prefix("turn-").and_then(|number| number.parse().ok());
            let free = last + 1..=TURN_NUMBER_MAX;
            last = typed.filter(|number| free.contains(number)).unwrap_or(last + 1);
            let turn = turn_of(last, &group.entities, &end).map(Arc::new);
            for attachment in group.entities.iter_mut().flat_map(attached::shown_by) {
                copy.lost_attachments += usize::from(attached::given(attachment).is_none());
                attached::hide_bytes(attachment);
            }
            let content = TurnContent::Shown(ImportedTurn { entities: group.entities, turn }, 0);
            copy.turns.push(CopiedTurn { number: last, content });
        }
        if let Some(CopiedTurn { content: TurnContent::Shown(_, end), .. }) = copy.turns.last_mut()
        {
            *end = ordinal;
        }
        copy
    }

    /// The log with which `session` begins.
    pub(crate) fn records(self, session: &SessionId, ids: &mut Ids) -> Vec<Record> {
        let Self { preamble, history, turns, choices, title, .. } = self;
        let history = history.into_iter().map(|entity| renamed(entity, session, None)).collect();
        let session_start = SessionStart { session: session.clone(), preamble, history, choices };
        let mut records = vec![Record::Start(Box::new(session_start))];
        let mut last = 0;
        for CopiedTurn { number, content } in turns {
            let events = match content {
                TurnContent::Events(events) => events,
                TurnContent::Shown(imported, end) => vec![imported.event(number, (last, end), ids)],
            };
            for mut recorded in events {
                if let Event::TurnImported(imported) = &mut recorded.event {
                    let entities = std::mem::take(&mut imported.entities).into_iter();
                    imported.entities =
                        entities.map(|entity| renamed(entity, session, Some(number))).collect();
                }
                last = recorded.ordinal.0;
                records.push(Record::Event(recorded));
            }
        }
        if let Some(title) = title {
            let event = Event::Session(SessionEvent::Renamed(title));
            let (ordinal, scope) = (Ordinal(last + 1), Scope::OUTSIDE);
            records.push(Record::Event(Recorded { ordinal, scope, event }));
        }
        records
    }
}

impl ImportedTurn {
    /// The event that adds it, after the event of the ordinal `last`. `end`: the ordinal of its end; 0 if
    /// that is not known.
    fn event(self, number: u32, (last, end): (u64, u64), ids: &mut Ids) -> Recorded {
        let root = self.entities.first().and_then(|entity| RunId::of_root(&entity.id));
        let run = root.unwrap_or_else(|| ids.run());
        let changed = self.entities.iter().map(|entity| entity.last_event_ordinal).max();
        let ordinal = (changed.unwrap_or(0) + 1).max(last + 1).max(end);
        let scope = Scope { run, turn: number, call: 0 };
        let event = Event::TurnImported(Box::new(self));
        Recorded { ordinal: Ordinal(ordinal), scope, event }
    }
}

/// The earlier messages, and the entities of each run, in order.
fn groups(entities: Vec<SnapshotEntity>) -> (Vec<SnapshotEntity>, Vec<Group>) {
    let (mut history, mut groups) = (Vec::new(), Vec::<Group>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    for entity in entities {
        let ids = entity.correlation().cloned().unwrap_or_default();
        if entity.created_ordinal == 0 && ids.turn_id.is_empty() {
            history.push(entity);
            continue;
        }
        let run = if ids.run_id.is_empty() { ids.turn_id.clone() } else { ids.run_id };
        let at = match (places.get(&run), prompt_of(&entity)) {
            (Some(&at), _) => Some(at),
            // An entity without a run belongs to the previous one, unless it begins one.
            (None, None) if run.is_empty() => groups.len().checked_sub(1),
            (None, _) => None,
        };
        if let Some(group) = at.and_then(|at| groups.get_mut(at)) {
            group.entities.push(entity);
            continue;
        }
        if !run.is_empty() {
            places.insert(run.clone(), groups.len());
        }
        groups.push(Group { run, turn: ids.turn_id, entities: vec![entity] });
    }
    (history, groups)
}

/// An earlier message, as the model is sent it.
fn earlier_message(entity: &SnapshotEntity) -> Option<HistoryMessage> {
    let Some(Any::ChatMessageEntity(it)) = &entity.payload else { return None };
    match it.role.as_str() {
        role::USER => Some(HistoryMessage::ByUser(turn::text_of(it, &[]).to_owned())),
        role::ASSISTANT => Some(HistoryMessage::ByModel(it.text.clone())),
        _ => None,
    }
}

/// The prompt in an entity.
fn prompt_of(entity: &SnapshotEntity) -> Option<&ChatMessageEntity> {
    let Some(Any::ChatMessageEntity(it)) = &entity.payload else { return None };
    (it.role == role::USER).then_some(it)
}

/// The entity as one of that session and turn; of none if it is an earlier message.
fn renamed(mut entity: SnapshotEntity, session: &SessionId, turn: Option<u32>) -> SnapshotEntity {
    let ids = match &mut entity.payload {
        Some(Any::ChatMessageEntity(it)) => Some(&mut it.correlation),
        Some(Any::ToolCallEntity(it)) => Some(&mut it.correlation),
        Some(Any::ToolResultEntity(it)) => Some(&mut it.correlation),
        Some(_) | None => None,
    };
    if let Some(ids) = ids {
        let ids = ids.get_or_insert_default();
        session.as_str().clone_into(&mut ids.session_id);
        if let Some(turn) = turn {
            ids.turn_id = format!("turn-{turn}");
        }
    }
    entity
}

#[cfg(test)]
mod tests;
