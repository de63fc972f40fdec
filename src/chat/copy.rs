//! A conversation that another session goes on with: its turns that have ended, made of what frames have
//! shown or of what a store has, and the records with which the other session begins. Pure.

use super::attached;
use super::choices::Choices;
use super::entities::{End, Shown};
use super::event::{Attachments, Ending, Scope};
use super::record::{EventRecord, Record, SessionStart, TurnChange};
use super::replay::CUT_OFF;
use super::transcript::{HistoryMessage, Preamble, Turn, TurnState};
use crate::protocol::any::Any;
use crate::protocol::id::{Ids, Ordinal, RunId, SessionId};
use crate::protocol::proto::chat::{self, ChatMessageEntity, CorrelationInfo};
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::words::role;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

mod turn;

use turn::{close, turn_of};

/// The highest number that a turn has from an id: the session counts on from there.
const TURN_NUMBER_MAX: u32 = 1 << 31;

/// What a session is given to begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopiedTurns {
    /// What the model is sent before the first turn.
    pub(crate) preamble: Preamble,
    /// The earlier messages as people see them.
    pub(crate) history: Vec<SnapshotEntity>,
    /// The turns that have ended, oldest first.
    pub(crate) turns: Vec<EndedTurn>,
    /// What the client has chosen.
    pub(crate) choices: Choices,
    /// How many images and files of prompts the model is not sent, because frames have no bytes of them.
    pub(crate) lost_attachments: usize,
}

/// A turn that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndedTurn {
    /// Its number in the session.
    pub(crate) number: u32,
    pub(crate) entities: Vec<SnapshotEntity>,
    /// What the model is sent of it; `None` if it is not sent it.
    pub(crate) turn: Option<Arc<Turn>>,
    pub(crate) end: End,
    /// Ordinal of its end; 0 if it is not known.
    pub(crate) ordinal: u64,
}

/// The entities of one run.
#[derive(Debug, Default)]
struct Group {
    run: String,
    turn: String,
    entities: Vec<SnapshotEntity>,
}

impl CopiedTurns {
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
            let (number, entities, ordinal) = (last, group.entities, 0);
            copy.turns.push(EndedTurn { number, entities, turn, end, ordinal });
        }
        if let Some(last) = copy.turns.last_mut() {
            last.ordinal = ordinal;
        }
        copy
    }

    /// Takes over what the model was sent, which a store has exactly, and what was chosen.
    pub(crate) fn with_turns(
        mut self,
        (preamble, choices): (Preamble, Choices),
        mut turns: BTreeMap<u32, Arc<Turn>>,
    ) -> Self {
        (self.preamble, self.choices) = (preamble, choices);
        for ended in &mut self.turns {
            ended.turn = turns.remove(&ended.number);
            let is_interrupted =
                ended.turn.as_ref().is_some_and(|turn| turn.state == TurnState::Interrupted);
            if is_interrupted && ended.end == End::Finished {
                ended.end = End::Stopped;
            }
        }
        // A store without a timeline has no entities of them.
        let others = turns.into_iter().map(|(number, turn)| {
            let end = match turn.state {
                TurnState::Finished => End::Finished,
                TurnState::Open | TurnState::Interrupted => End::Stopped,
            };
            EndedTurn { number, entities: Vec::new(), turn: Some(turn), end, ordinal: 0 }
        });
        self.turns.extend(others);
        self.turns.sort_by_key(|turn| turn.number);
        self
    }

    /// The records with which `session` begins: of each turn its prompt, and its end with all the rest.
    pub(crate) fn records(self, session: &SessionId, ids: &mut Ids) -> Vec<Record> {
        let Self { preamble, history, turns, choices, .. } = self;
        let entities = history.into_iter().map(|entity| renamed(entity, session, None)).collect();
        let history = SnapshotFrame { snapshot_ordinal: 0, entities }.into();
        let session_start = SessionStart { session: session.clone(), preamble, history, choices };
        let mut records = vec![Record::Start(Box::new(session_start))];
        let mut last = 0;
        for turn in turns {
            let events = turn.records(session, &mut last, ids);
            records.extend(events.map(|event| Record::Event(Box::new(event))));
        }
        records
    }
}

impl EndedTurn {
    /// The events of its prompt and of its end. `last` is the ordinal of the event before.
    fn records(self, session: &SessionId, last: &mut u64, ids: &mut Ids) -> [EventRecord; 2] {
        let Self { number, entities, turn, end, ordinal } = self;
        let first = entities.first();
        let root = first.and_then(|entity| RunId::of_root(&entity.id));
        let run = root.unwrap_or_else(|| ids.run());
        let began = first.map_or(0, |entity| entity.created_ordinal).max(*last + 1);
        let changed = entities.iter().map(|entity| entity.last_event_ordinal).max();
        let ended = (changed.unwrap_or(0) + 1).max(began + 1).max(ordinal);
        *last = ended;
        let prompt = entities.iter().find_map(prompt_of).cloned();
        let (text, attachments) = match (&turn, &prompt) {
            (Some(turn), _) => (turn.prompt.clone(), turn.attachments.clone()),
            (None, Some(prompt)) => (prompt.text.as_str().into(), Attachments::default()),
            (None, None) => Default::default(),
        };
        let call = 0;
        let scope = Some(Scope { run, turn: number, call });
        let accepted = prompt.unwrap_or_else(|| ChatMessageEntity {
            message_id: format!("{}-user", run.root()),
            text: text.as_str().to_owned(),
            ..Default::default()
        });
        let ids_of_run = CorrelationInfo {
            session_id: session.as_str().to_owned(),
            run_id: run.to_string(),
            turn_id: format!("turn-{number}"),
            ..Default::default()
        };
        let payload = end_payload(end, run, ids_of_run);
        let entities =
            entities.into_iter().map(|entity| renamed(entity, session, Some(number))).collect();
        [
            EventRecord {
                ordinal: Ordinal(began),
                scope,
                payload: accepted_payload(accepted),
                change: Some(TurnChange::Began { prompt: text, attachments }),
                usage: None,
                state: None,
            },
            EventRecord {
                ordinal: Ordinal(ended),
                scope,
                payload,
                change: Some(TurnChange::Ended(turn)),
                usage: None,
                state: Some(SnapshotFrame { snapshot_ordinal: ended, entities }.into()),
            },
        ]
    }
}

fn accepted_payload(prompt: ChatMessageEntity) -> Any {
    chat::ChatUserMessageAccepted {
        message_id: prompt.message_id,
        role: role::USER.to_owned(),
        prompt: prompt.text.clone(),
        text: prompt.text.clone(),
        content: prompt.text,
        status: crate::protocol::words::message::ACCEPTED.to_owned(),
        attachments: prompt.attachments,
    }
    .into()
}

fn end_payload(end: End, run: RunId, correlation: CorrelationInfo) -> Any {
    let (message_id, correlation) = (run.root(), Some(correlation));
    match end {
        End::Finished => {
            let status = Ending::Finished.as_str().to_owned();
            chat::ChatRunFinished { message_id, status, correlation, ..Default::default() }.into()
        }
        End::Stopped => {
            let (status, error) = (Ending::Stopped.as_str().to_owned(), CUT_OFF.to_owned());
            chat::ChatRunStopped { message_id, status, error, correlation }.into()
        }
        End::Failed(error) => {
            let status = Ending::Failed.as_str().to_owned();
            chat::ChatRunFailed { message_id, status, error, correlation }.into()
        }
    }
}

/// The earlier messages, and the entities of each run, in order.
fn groups(entities: Vec<SnapshotEntity>) -> (Vec<SnapshotEntity>, Vec<Group>) {
    let (mut history, mut groups) = (Vec::new(), Vec::<Group>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    for entity in entities {
        let ids = ids_of(&entity).cloned().unwrap_or_default();
        if entity.created_ordinal == 0 && ids.turn_id.is_empty() {
            history.push(entity);
            continue;
        }
        let run = if ids.run_id.is_empty() { ids.turn_id.clone() } else { ids.run_id };
        let at = match (places.get(&run), prompt_of(&entity)) {
            (Some(&at), _) => Some(at),
            // It names no run: it belongs to the last one, unless it begins one.
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

fn ids_of(entity: &SnapshotEntity) -> Option<&CorrelationInfo> {
    match &entity.payload {
        Some(Any::ChatMessageEntity(it)) => it.correlation.as_ref(),
        Some(Any::ToolCallEntity(it)) => it.correlation.as_ref(),
        Some(Any::ToolResultEntity(it)) => it.correlation.as_ref(),
        Some(_) | None => None,
    }
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
