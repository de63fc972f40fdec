//! What answered in each turn, when it began, and what it took: a fold of the log, for exports. Pure.

use super::event::{Answerer, Event, Recorded, Scope};
use super::timeline::turn_id;
use super::usage::{Totals, UsageTotals};
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::session::{TokenCounts, TurnSummary};
use jiff::Timestamp;

/// The summaries of the turns of a session, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summaries {
    session: String,
    turns: Vec<Summarized>,
    /// Token counts of the session, dropped turns included.
    totals: TokenCounts,
}

/// A turn.
#[derive(Clone, Debug)]
pub(crate) struct Summarized {
    pub(crate) turn: u32,
    /// Ordinal of its last event.
    pub(crate) ordinal: Ordinal,
    pub(crate) summary: TurnSummary,
    /// The counts of its calls, those of compactions after it included.
    counted: Totals,
}

impl Summaries {
    pub(crate) fn new(session: &SessionId) -> Self {
        Self { session: session.as_str().to_owned(), ..Self::default() }
    }

    /// Folds in an event; `usage` has it already.
    pub(crate) fn apply(&mut self, recorded: &Recorded, usage: &UsageTotals) {
        let Recorded { ordinal, scope, event } = recorded;
        if let Event::RunStarted { answerer, .. } = event {
            let summary = self.begun(*scope, answerer);
            let (turn, ordinal, counted) = (scope.turn, *ordinal, Totals::default());
            self.turns.push(Summarized { turn, ordinal, summary, counted });
        } else if let Event::TurnDropped { turns, .. } = event {
            self.turns.retain(|it| !turns.contains(&it.turn));
        }
        if let Event::CallFinished { .. } = event {
            self.totals = usage.counts().session;
        }
        let of_turn =
            |last: &&mut Summarized| scope.of_run().is_some_and(|it| it.turn == last.turn);
        let Some(last) = self.turns.last_mut().filter(of_turn) else { return };
        last.ordinal = *ordinal;
        if let Event::CallFinished { duration_ms, usage, spent, .. } = event {
            let before = last.summary.duration_ms.unwrap_or_default();
            // That of a call which the end of its process cut off is not known.
            if *duration_ms > 0 {
                last.summary.duration_ms = Some(before.saturating_add(signed(*duration_ms)));
            }
            // Not those of the run: it may be of a turn that was dropped since.
            last.counted.add(&Totals::of_call(usage.as_ref(), spent));
            last.summary.usage = Some(last.counted.on_wire());
        } else if let Event::RunFinished { duration_ms, .. } = event {
            last.summary.duration_ms = Some(signed(*duration_ms));
        }
    }

    /// Each turn that is still part of the conversation; those that were imported have no summary.
    pub(crate) fn turns(&self) -> &[Summarized] {
        &self.turns
    }

    /// The counts of the session, turns that were dropped included.
    pub(crate) fn totals(&self) -> &TokenCounts {
        &self.totals
    }

    fn begun(&self, scope: Scope, answerer: &Answerer) -> TurnSummary {
        let Answerer { engine, model, started_ms } = answerer;
        let started = started_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        TurnSummary {
            engine: engine.to_string(),
            model: model.clone(),
            started_at: started.map_or_else(String::new, |time| format!("{time:.0}")),
            correlation: Some(CorrelationInfo {
                session_id: self.session.clone(),
                run_id: scope.run.to_string(),
                turn_id: turn_id(scope.turn),
                ..CorrelationInfo::default()
            }),
            ..TurnSummary::default()
        }
    }
}

fn signed(duration_ms: u64) -> i64 {
    i64::try_from(duration_ms).unwrap_or(i64::MAX)
}
