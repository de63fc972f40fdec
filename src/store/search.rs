//! A search through a log, as its rows are read: only what is found stays in memory.

use super::words::{Phrases, Said, said};
use crate::conversation::event::{Event, Recorded};
use crate::conversation::timeline::{Span, Timeline, turn_number};
use crate::protocol::any::Any;
use crate::protocol::id::SessionId;
use crate::protocol::proto::rpc::SnapshotEntity;

/// Where the words of a search were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Number of the turn among those that are there, as a copy of the first turns counts them; 0 for earlier messages.
    pub(crate) turn: u32,
    /// The role, or the name of the tool.
    pub(crate) by: String,
    /// The part of the text around the words.
    pub(crate) snippet: String,
}

/// A search that goes on.
#[derive(Clone, Debug)]
pub(super) struct Search {
    session: SessionId,
    phrases: Phrases,
    max: usize,
    /// With the numbers that turns have in the log, which are never used again.
    hits: Vec<Hit>,
    /// The numbers of the turns that are there, in their order.
    turns: Vec<u32>,
    /// What people see of the rows since the last end of a turn.
    open: Timeline,
}

impl Search {
    /// For at most `max` hits in the session.
    pub(super) fn new(session: &SessionId, phrases: &Phrases, max: usize) -> Self {
        let (session, phrases) = (session.clone(), phrases.clone());
        let (hits, turns, open) = Default::default();
        Self { session, phrases, max, hits, turns, open }
    }

    /// Searches the earlier messages.
    pub(super) fn begin(&mut self, history: &[SnapshotEntity]) {
        history.iter().for_each(|entity| self.entity(entity));
    }

    /// Searches the events of a row.
    pub(super) fn row(&mut self, events: &[Recorded], ends_turn: bool) {
        for recorded in events {
            let number = recorded.scope.turn;
            if let Event::TurnDropped { .. } = recorded.event {
                self.hits.retain(|hit| hit.turn < number);
                self.turns.retain(|turn| *turn < number);
            } else if let Event::PromptAccepted { .. } | Event::TurnImported(_) = recorded.event {
                self.turns.push(number);
            }
            self.open.apply(recorded);
        }
        if ends_turn {
            self.flush();
        }
    }

    /// The hits, oldest first.
    pub(super) fn finish(mut self) -> Vec<Hit> {
        self.flush();
        for hit in &mut self.hits {
            if let Ok(before) = self.turns.binary_search(&hit.turn) {
                hit.turn = u32::try_from(before + 1).unwrap_or(u32::MAX);
            }
        }
        self.hits
    }

    fn flush(&mut self) {
        let open = std::mem::take(&mut self.open);
        let entities = open.snapshot(&self.session, Span::Conversation).entities;
        entities.iter().for_each(|entity| self.entity(entity));
    }

    fn entity(&mut self, entity: &SnapshotEntity) {
        // Past the limit all hits are later, and a turn that is dropped takes its own with it.
        if self.hits.len() >= self.max {
            return;
        }
        let payload = entity.payload.clone().map(Any::into_whole);
        let Some(Said { by, text, ids }) = payload.as_ref().and_then(said) else { return };
        let Some(snippet) = self.phrases.find(&text) else { return };
        let turn = ids.and_then(|ids| turn_number(&ids.turn_id)).unwrap_or_default();
        self.hits.push(Hit { turn, by: by.to_owned(), snippet });
    }
}

/// What people see of these events, which are a whole turn.
pub(super) fn entities_of(session: &SessionId, events: &[Recorded]) -> Vec<SnapshotEntity> {
    let mut timeline = Timeline::default();
    events.iter().for_each(|recorded| timeline.apply(recorded));
    timeline.snapshot(session, Span::Conversation).entities
}
