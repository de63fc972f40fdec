//! Everything that is known of a conversation: folds of its log. Each event is applied in the same way as it
//! happens and when a stored session is resumed. Pure.

use super::answered::Answered;
use super::choices::Choices;
use super::event::{Event, Recorded};
use super::log::SessionStart;
use super::summaries::Summaries;
use super::timeline::Timeline;
use super::transcript::{Preamble, Transcript};
use super::usage::UsageTotals;
use crate::protocol::any::Any;
use crate::protocol::id::{Ordinal, ToolCallId};
use crate::protocol::proto::rpc::SnapshotEntity;
use std::collections::HashMap;
use std::sync::Arc;

/// The folds of the events so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projections {
    /// Ordinal of the last event.
    pub ordinal: Ordinal,
    /// Number of the last turn.
    pub turns: u32,
    /// The conversation as people see it.
    pub timeline: Timeline,
    /// The conversation as the model sees it.
    pub transcript: Transcript,
    /// Token counts and costs.
    pub usage: UsageTotals,
    /// The client's choices.
    pub choices: Arc<Choices>,
    /// The ids of the session's tool calls.
    pub tool_calls: ToolCallIds,
    /// The requests that have started runs.
    pub answered: Answered,
    /// What answered in each turn, if that is wanted.
    pub summaries: Option<Summaries>,
}

/// The ids of tool calls, each with how many calls of the engines had it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolCallIds(HashMap<ToolCallId, u32>);

impl Projections {
    /// The projections of a log with this start record.
    pub(crate) fn of_start(start: &SessionStart) -> Self {
        let mut tool_calls = ToolCallIds::default();
        tool_calls.add_all(&start.history);
        Self {
            timeline: Timeline::with_entities(&start.history),
            transcript: Transcript::new(start.preamble.clone()),
            choices: Arc::new(start.choices.clone()),
            tool_calls,
            ..Self::default()
        }
    }

    /// The projections of a conversation that is to be exported, before its first event.
    pub(crate) fn of_export(start: &SessionStart) -> Self {
        Self { summaries: Some(Summaries::new(&start.session)), ..Self::of_start(start) }
    }

    /// Applies an event. Events must come in the order of their ordinals. `with_timeline`: what people see
    /// is remembered.
    pub(crate) fn apply(&mut self, recorded: &Recorded, with_timeline: bool) {
        self.ordinal = recorded.ordinal;
        self.turns = self.turns.max(recorded.scope.turn);
        if with_timeline {
            self.timeline.apply(recorded);
        }
        self.transcript.apply(recorded);
        self.usage.apply(recorded);
        self.answered.apply(&recorded.event);
        if let Some(summaries) = &mut self.summaries {
            summaries.apply(recorded, &self.usage);
        }
        if let Some(choices) = recorded.event.choices() {
            self.choices = Arc::clone(choices);
        }
        if let Event::ToolCallStarted { tool } = &recorded.event {
            self.tool_calls.add(&tool.id.0);
        } else if let Event::TurnImported(turn) = &recorded.event {
            self.tool_calls.add_all(&turn.entities);
        }
    }

    /// Puts the system prompt of this process, if it has one, in the place of the stored one. The earlier messages
    /// are those that the session began with.
    pub(crate) fn prefer_system(&mut self, own: Option<String>) {
        let Preamble { system, history } = self.transcript.preamble().clone();
        self.transcript.begin_with(Preamble { system: own.or(system), history });
    }
}

impl ToolCallIds {
    /// The id in this session of a tool call that its engine calls `id`: the same, unless an earlier
    /// call has it. Some providers number the calls of each answer anew, and clients and snapshots
    /// know a call by its id.
    pub(crate) fn unique(&mut self, id: &ToolCallId) -> ToolCallId {
        let calls = self.0.entry(id.clone()).or_default();
        *calls += 1;
        if *calls == 1 {
            return id.clone();
        }
        let mut number = *calls;
        let mut unique = ToolCallId(format!("{}-{number}", id.0));
        while self.0.contains_key(&unique) {
            number += 1;
            unique = ToolCallId(format!("{}-{number}", id.0));
        }
        self.0.insert(id.clone(), number);
        self.0.insert(unique.clone(), 1);
        unique
    }

    /// Notes that a call has this id, also one that was dropped since.
    fn add(&mut self, id: &str) {
        let id = ToolCallId(id.to_owned());
        self.0.entry(id).or_insert(1);
    }

    fn add_all(&mut self, entities: &[SnapshotEntity]) {
        for payload in entities.iter().filter_map(|entity| entity.payload.as_ref()) {
            if let Any::ToolCallEntity(it) = payload {
                self.add(&it.tool_call_id);
            }
        }
    }
}
