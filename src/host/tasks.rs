//! The active tasks of the session: a provider call, with the events that it has sent and
//! the host has not handled yet, and the calls of tools. No task of the runtime is behind them: they
//! go on while they are polled, and stop when they are dropped.

use crate::conversation::event::{CallProgress, ToolResult};
use crate::engine::{CallEnd, CallSpec, Engines, Running, Sink, TaggedEvent};
use crate::protocol::id::TaskId;
use crate::session::{TaskEvent, panic_text, run_defect};
use crate::support::fail_point::FailPoint;
use crate::tool::servers::CallStep;
use futures_util::Stream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Engine events that may wait for the host. After that the engine waits.
const EVENTS_AHEAD_MAX: usize = 256;

/// A report of a task.
pub(super) type TaskReport = (TaskId, TaskEvent);

/// A running tool call: its progress, and at last its result.
pub(super) type RunningTool = Pin<Box<dyn Stream<Item = CallStep> + Send>>;

/// The tasks whose end was not handled yet.
#[derive(Default)]
pub(super) struct Tasks {
    call: Option<ActiveCall>,
    tools: Vec<(TaskId, ToolState)>,
}

/// The call of a tool.
enum ToolState {
    /// It goes on; with its newest progress, until there is room for it.
    Running(RunningTool, Option<CallProgress>),
    /// Its result, until there is room for it.
    Ended(ToolResult),
}

/// A provider call.
struct ActiveCall {
    id: TaskId,
    state: State,
    events: mpsc::Receiver<TaggedEvent>,
    fault: FailPoint,
}

enum State {
    Running(Running),
    Ended(CallEnd),
}

impl Tasks {
    /// Has the engine that `spec` names make a call, which does nothing before it is polled.
    pub(super) fn start_call(
        &mut self,
        engines: &Engines,
        id: TaskId,
        spec: CallSpec,
        fault: FailPoint,
    ) {
        let (to_events, events) = mpsc::channel(EVENTS_AHEAD_MAX);
        let running = engines.start(spec, Sink::new(id, to_events));
        self.call = Some(ActiveCall { id, state: State::Running(running), events, fault });
    }

    pub(super) fn start_tool(&mut self, id: TaskId, running: RunningTool) {
        self.tools.push((id, ToolState::Running(running, None)));
    }

    /// The active provider call.
    pub(super) fn active_call(&self) -> Option<TaskId> {
        self.call.as_ref().map(|call| call.id)
    }

    /// Drops a task, and with it whatever it holds.
    pub(super) fn cancel(&mut self, id: TaskId) {
        if let Some(call) = self.call.take_if(|call| call.id == id) {
            drop_quietly(call.state);
        }
        if let Some(at) = self.tools.iter().position(|(tool, _)| *tool == id) {
            drop_quietly(self.tools.swap_remove(at));
        }
    }

    /// Drops all tasks.
    pub(super) fn cancel_all(&mut self) {
        if let Some(call) = self.call.take() {
            drop_quietly(call.state);
        }
        self.tools.drain(..).for_each(drop_quietly);
    }

    /// The next thing that a task reports. What waits comes before the engine goes on. Without
    /// `has_room` nothing is taken: tools go on to their results, and the engine as far as its sink
    /// has room.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        has_room: bool,
    ) -> Poll<TaskReport> {
        self.poll_tools(context);
        if has_room && let Some(step) = self.take_step() {
            return Poll::Ready(step);
        }
        if has_room && let Some(step) = self.try_next() {
            return Poll::Ready(step);
        }
        if let Some(call) = &mut self.call {
            call.poll_engine(context);
        }
        match has_room {
            true => self.try_next().map_or(Poll::Pending, Poll::Ready),
            false => Poll::Pending,
        }
    }

    /// The next queued event of the provider call; after all of them, its end, if it has ended.
    pub(super) fn try_next(&mut self) -> Option<TaskReport> {
        let step = self.call.as_mut()?.try_next()?;
        if let (_, TaskEvent::CallEnded(_)) = step {
            self.call = None;
        }
        Some(step)
    }

    fn poll_tools(&mut self, context: &mut Context<'_>) {
        for (_, state) in &mut self.tools {
            while let ToolState::Running(running, newest) = state {
                let polling = AssertUnwindSafe(|| running.as_mut().poll_next(context));
                let polled = catch_unwind(polling).unwrap_or_else(|panic| {
                    let defect = panic_text(panic.as_ref());
                    let text =
                        format!("The call met a defect of the program that makes it: {defect}");
                    Poll::Ready(Some(CallStep::Ended(ToolResult::Error(text))))
                });
                match polled {
                    Poll::Pending => break,
                    Poll::Ready(Some(CallStep::Progress(progress))) => *newest = Some(progress),
                    Poll::Ready(Some(CallStep::Ended(result))) => {
                        drop_quietly(std::mem::replace(state, ToolState::Ended(result)));
                    }
                    Poll::Ready(None) => {
                        let ended = ToolResult::Error("The call ended without a result.".into());
                        drop_quietly(std::mem::replace(state, ToolState::Ended(ended)));
                    }
                }
            }
        }
    }

    /// A result, or else the progress of a call.
    fn take_step(&mut self) -> Option<TaskReport> {
        let has_ended = |(_, state): &(TaskId, ToolState)| matches!(state, ToolState::Ended(_));
        if let Some(at) = self.tools.iter().position(has_ended)
            && let (id, ToolState::Ended(result)) = self.tools.remove(at)
        {
            return Some((id, TaskEvent::ToolEnded(result)));
        }
        self.tools.iter_mut().find_map(|(id, state)| match state {
            ToolState::Running(_, newest) => Some((*id, TaskEvent::ToolProgressed(newest.take()?))),
            ToolState::Ended(_) => None,
        })
    }
}

impl ActiveCall {
    /// Polls the engine until it is pending. A panic of the engine ends its call.
    fn poll_engine(&mut self, context: &mut Context<'_>) {
        let Self { state, fault, .. } = self;
        let State::Running(running) = state else { return };
        let polling = AssertUnwindSafe(|| {
            fault.step();
            running.as_mut().poll(context)
        });
        let polled = catch_unwind(polling).unwrap_or_else(|panic| {
            Poll::Ready(CallEnd::Failed(run_defect(&panic_text(panic.as_ref()))))
        });
        if let Poll::Ready(end) = polled {
            drop_quietly(std::mem::replace(state, State::Ended(end)));
        }
    }

    fn try_next(&mut self) -> Option<TaskReport> {
        // The receiver is never waited for: the engine sends in the task that takes, and would only
        // wake it once more.
        if let Ok(tagged) = self.events.try_recv() {
            return Some((tagged.call, TaskEvent::Engine(tagged.event)));
        }
        match &self.state {
            State::Running(_) => None,
            State::Ended(end) => Some((self.id, TaskEvent::CallEnded(end.clone()))),
        }
    }
}

/// Drops a future. A defect there comes after its end was decided and must not end the conversation;
/// the panic hook has logged it.
fn drop_quietly<T>(dropped: T) {
    catch_unwind(AssertUnwindSafe(|| drop(dropped))).ok();
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("call", &self.active_call()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
