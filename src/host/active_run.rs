//! The run that answers: the engine's future, and the events that it has sent and the host has not
//! handled yet.

use crate::chat::transcript::Transcript;
use crate::engine::{Engine, EngineEvent, RunEnd, Running, Sink, TaggedEvent};
use crate::protocol::id::RunId;
use crate::session::{panic_text, run_defect};
use crate::support::fail_point::FailPoint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Engine events that may wait for the host; with so many, the engine waits.
const EVENTS_AHEAD_MAX: usize = 256;

/// An event of a run, or its end.
pub(super) type Step = (RunId, Result<EngineEvent, RunEnd>);

/// A run whose end was not handled yet.
pub(super) struct ActiveRun {
    id: RunId,
    state: State,
    events: mpsc::Receiver<TaggedEvent>,
    fault: FailPoint,
}

enum State {
    Running(Running),
    Ended(RunEnd),
}

impl ActiveRun {
    /// Starts `engine`, which does nothing before it is polled.
    pub(super) fn start(
        engine: &Engine,
        id: RunId,
        transcript: Transcript,
        fault: FailPoint,
    ) -> Self {
        let (to_events, events) = mpsc::channel(EVENTS_AHEAD_MAX);
        let running = engine.start(transcript, Sink::new(id, to_events));
        Self { id, state: State::Running(running), events, fault }
    }

    pub(super) fn id(&self) -> RunId {
        self.id
    }

    /// The next event, or the end. Events that wait come before the engine goes on.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        if let Some(step) = self.try_next() {
            return Poll::Ready(step);
        }
        self.poll_engine(context);
        self.try_next().map_or(Poll::Pending, Poll::Ready)
    }

    /// Polls the engine until it waits. A panic of the engine ends its run.
    pub(super) fn poll_engine(&mut self, context: &mut Context<'_>) {
        let Self { state, fault, .. } = self;
        let State::Running(running) = state else { return };
        let polling = AssertUnwindSafe(|| {
            fault.step();
            running.as_mut().poll(context)
        });
        let polled = catch_unwind(polling).unwrap_or_else(|panic| {
            Poll::Ready(RunEnd::Failed(run_defect(&panic_text(panic.as_ref()))))
        });
        if let Poll::Ready(end) = polled {
            drop_quietly(std::mem::replace(state, State::Ended(end)));
        }
    }

    /// The next event that waits; after all of them, the end, if it has come.
    pub(super) fn try_next(&mut self) -> Option<Step> {
        // The receiver is never waited for: the engine sends in the task that takes, and would only
        // wake it once more.
        if let Ok(tagged) = self.events.try_recv() {
            return Some((tagged.run, Ok(tagged.event)));
        }
        match &self.state {
            State::Running(_) => None,
            State::Ended(end) => Some((self.id, Err(end.clone()))),
        }
    }

    /// Drops the engine and everything that it holds.
    pub(super) fn stop(self) {
        drop_quietly(self.state);
    }
}

/// Drops the engine's future. A panic there comes after the run's end and must not end the
/// conversation; the panic hook has logged it.
fn drop_quietly(state: State) {
    catch_unwind(AssertUnwindSafe(|| drop(state))).ok();
}

impl std::fmt::Debug for ActiveRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveRun").field("id", &self.id).finish_non_exhaustive()
    }
}
