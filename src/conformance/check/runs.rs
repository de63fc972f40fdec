//! The runs of a stream: one is active at a time, and each has its own id.

use super::calls::SessionCalls;
use super::fields::Fields;
use super::identity::Earlier;
use super::names::{Name, Namer};
use super::rule::{Report, Rule};
use super::run::Run;
use super::run_event::{RunEnd, RunEvent};
use super::text::Text;

/// Most runs tracked at once; there should be one.
const RUNS_MAX: usize = 4;

/// The runs whose requests have no `done` yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    live: Vec<Run>,
    earlier: Earlier,
    /// Runs that were not stopped though a `done` alone came during them.
    pub(super) uncancelled: u64,
    /// The stream has the events of steering, as `hello` announces it, or has extensions that `hello` does
    /// not announce.
    pub(super) has_steering: bool,
    /// Prompts that joined a run without a SteeringAccepted, where the stream has none.
    unreported_joins: u64,
    pub(super) calls: SessionCalls,
}

/// Whether a run is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    /// A run has ended, and its request has no `done` yet.
    Ending,
    Running,
}

/// The state of a request's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunSeen {
    /// The request has no run.
    None,
    /// The run has not ended.
    Live,
    Ended(RunEnd),
}

impl Runs {
    /// The runs so far may have their ends among frames that are left out.
    pub(super) fn begin_again(&mut self) {
        self.live.clear();
        self.calls.forget_totals();
    }

    /// Whether the request has a run.
    pub(super) fn has(&self, request: &Name) -> bool {
        self.live.iter().any(|run| run.request == *request)
    }

    /// Whether a call waits for the client's approval.
    pub(super) fn awaits_approval(&self, call: &Name) -> bool {
        self.live.iter().any(|run| run.awaits_approval(call))
    }

    /// The text so far of an open segment, or the arguments so far of an open tool call.
    pub(super) fn open_text(&self, segment: &Name) -> Option<&Text> {
        self.live.iter().find_map(|run| run.open_text(segment))
    }

    /// Checks an event of the request.
    pub(super) fn event(
        &mut self,
        request: &Name,
        event: RunEvent<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        if let Some(run) = self.live.iter_mut().find(|run| run.request == *request) {
            if run.take_unreported_join() {
                self.unreported_joins += u64::from(!self.has_steering);
                if self.has_steering {
                    let message =
                        "a prompt has joined the run, but its SteeringAccepted does not follow";
                    report.add(Rule::EventOrder, message);
                }
            }
            return run.event(event, &mut self.calls, namer, report);
        }
        if matches!(event, RunEvent::Other) {
            return;
        }
        if let Some(other) = self.live.last() {
            let other = &other.request.shown;
            let message = format!("a run begins while that of request {other} has no done");
            report.add(Rule::TwoRuns, message);
        }
        if self.live.len() >= RUNS_MAX {
            self.live.remove(0);
        }
        let mut run = Run::begin(request.clone(), &event, report);
        if !matches!(event, RunEvent::PromptAccepted { .. }) {
            run.event(event, &mut self.calls, namer, report);
        }
        self.live.push(run);
    }

    /// Checks that the prompt `message` of the request has just joined the run of `target`.
    pub(super) fn steered(
        &mut self,
        request: &Name,
        (message, target): (&Name, &Name),
        report: &mut Report,
    ) {
        let live = self.live.iter_mut().find(|run| run.request == *target && run.end().is_none());
        let has_joined = live.is_some_and(|run| run.has_joined(message));
        if !has_joined || self.has(request) {
            let (message, target) = (&message.shown, &target.shown);
            let message = format!(
                "SteeringAccepted of {message}, which is no prompt that has just joined the run of \
                 {target}"
            );
            report.add(Rule::EventOrder, message);
        }
    }

    /// Compares what an event of the request repeats with the earlier events of its run.
    pub(super) fn identify(
        &mut self,
        request: &Name,
        fields: &Fields<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        if let Some(run) = self.live.iter_mut().find(|run| run.request == *request) {
            run.identity.check(fields, namer, &mut self.earlier, report);
        }
    }

    /// Whether a run goes on in which neither the model nor a tool is called.
    pub(super) fn is_between_calls(&self) -> bool {
        self.live.iter().any(Run::is_between_calls)
    }

    /// Whether a run is active, whichever request it belongs to.
    pub(super) fn activity(&self) -> Activity {
        if self.live.is_empty() {
            Activity::Idle
        } else if self.live.iter().all(|run| run.end().is_some()) {
            Activity::Ending
        } else {
            Activity::Running
        }
    }

    /// What was not checked, for the summary.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let joins = self.unreported_joins;
        let joined = (joins > 0).then(|| {
            format!(
                "{joins} prompts joined a run without a SteeringAccepted, which hello does not announce: \
                 right in the debug file of a chat, which leaves out extensions that were not named"
            )
        });
        let count = self.uncancelled;
        let uncancelled = (count > 0).then(|| {
            format!(
                "{count} runs went on after another request got nothing but a done \"ok\": right if \
                 that request was an enable, a cancel with waiting, or a compact with decline; a cancel \
                 of the run would have stopped it"
            )
        });
        uncancelled.into_iter().chain(joined)
    }

    /// Records that a cancel may have been answered while a run was active.
    pub(super) fn cancel(&mut self) {
        for run in self.live.iter_mut().filter(|run| run.end().is_none()) {
            run.is_cancelled = true;
        }
    }

    /// A `done` alone need not have been the answer to a cancel of the run.
    pub(super) fn forget_cancels(&mut self) {
        for run in &mut self.live {
            run.is_cancelled = false;
        }
    }

    /// The state of the request's run.
    pub(super) fn seen(&self, request: &Name) -> RunSeen {
        match self.live.iter().find(|run| run.request == *request).map(Run::end) {
            None => RunSeen::None,
            Some(None) => RunSeen::Live,
            Some(Some(end)) => RunSeen::Ended(end),
        }
    }

    /// Records the end of the request and returns the state of its run.
    pub(super) fn end(&mut self, request: &Name) -> RunSeen {
        let seen = self.seen(request);
        // After a defect a run may have no end.
        if let Some(run) = self.live.iter().find(|run| run.request == *request) {
            if run.calls.is_uncounted() {
                self.calls.forget_totals();
            }
            let is_stopped = matches!(seen, RunSeen::Ended(RunEnd::Stopped));
            self.uncancelled += u64::from(run.is_cancelled && !is_stopped);
        }
        self.live.retain(|run| run.request != *request);
        seen
    }
}
