//! The requests of a stream: which were answered, and which have no `done` yet.

use super::names::{Name, Remembered, shown};
use super::outcome::{ErrorSeen, RequestOutcome, check_done};
use super::rule::{Report, Rule};
use super::runs::{Activity, RunSeen};
use crate::protocol::any::Any;
use crate::protocol::constants::done;
use crate::protocol::proto::rpc::{DoneFrame, ErrorFrame};
use std::collections::HashMap;

/// Most requests without a `done` that are tracked at once.
const OPEN_MAX: usize = 100_000;

/// Requests with a `done` that are remembered, to detect frames after it.
const FINISHED_MAX: usize = 4_000_000;

/// A request that was answered and has no `done` yet.
#[derive(Clone, Debug)]
pub(super) struct Request {
    name: Name,
    /// The line of its first frame.
    line: u64,
    error: Option<ErrorSeen>,
    has_snapshot: bool,
    has_event: bool,
    /// What it asked for was begun and not done.
    has_stopped: bool,
}

/// All tracked requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    open: HashMap<u64, Request>,
    finished: Remembered,
    /// How many had a `done`.
    pub(super) done: u64,
    is_too_wide: bool,
    /// Whether runs end with a snapshot, from the first of them.
    has_final_snapshots: Option<bool>,
    /// Requests with a `done` alone, `ok`, while no run was under way.
    unexplained: u64,
}

impl Requests {
    /// Whether a frame may still come for the request; false if it has its `done`.
    pub(super) fn is_open(&self, name: &Name) -> bool {
        !self.finished.contains(name)
    }

    /// What was answered so far may have its `done` among frames that are left out.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
    }

    /// Records a frame of the request.
    pub(super) fn see(&mut self, name: &Name, line: u64) {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&name.key()) {
            self.is_too_wide = true;
            return;
        }
        let request = || Request {
            name: name.clone(),
            line,
            error: None,
            has_snapshot: false,
            has_event: false,
            has_stopped: false,
        };
        self.open.entry(name.key()).or_insert_with(request);
    }

    /// Records an event of the request that is not of its run.
    pub(super) fn event(&mut self, name: &Name, payload: &Any) {
        if let Some(request) = self.open.get_mut(&name.key()) {
            request.has_event = true;
            request.has_stopped = matches!(payload, Any::CompactionFailed(_));
        }
    }

    /// Records a snapshot of the request; true if it has had one.
    pub(super) fn snapshot(&mut self, name: &Name) -> bool {
        let request = self.open.get_mut(&name.key());
        request.is_some_and(|request| std::mem::replace(&mut request.has_snapshot, true))
    }

    /// Whether the request has had an error.
    pub(super) fn has_error(&self, name: &Name) -> bool {
        self.open.get(&name.key()).is_some_and(|request| request.error.is_some())
    }

    /// Records an error of the request; true if it has had one.
    pub(super) fn error(&mut self, name: &Name, error: &ErrorFrame) -> bool {
        let request = self.open.get_mut(&name.key());
        request.is_some_and(|request| request.error.replace(ErrorSeen::of(error)).is_some())
    }

    /// Records the `done` of a request and returns what was answered before it. A request
    /// without a name may come again.
    pub(super) fn done(
        &mut self,
        name: &Name,
        is_nameless: bool,
        (run, activity, withdraws): (RunSeen, Activity, bool),
        done: &DoneFrame,
        report: &mut Report,
    ) -> Option<RequestOutcome> {
        let request = self.end(name, is_nameless)?;
        let Request { error, has_snapshot, has_event, has_stopped, .. } = request;
        let outcome = RequestOutcome { run, error, has_snapshot, has_event, has_stopped };
        self.check_final_snapshot(&outcome, report);
        let is_ok = done.status == done::OK;
        self.unexplained += u64::from(outcome.is_bare() && is_ok && activity == Activity::Idle);
        if done::ALL.contains(&&*done.status) {
            check_done(&done.status, &outcome, (activity, withdraws), report);
        } else {
            let status = shown(&done.status);
            let known = done::ALL.join(", ");
            report.add(Rule::UnknownStatus, format!("{status:?} is none of {known}"));
        }
        Some(outcome)
    }

    /// Records the `done` of a request, and returns what is known of it.
    pub(super) fn end(&mut self, name: &Name, is_nameless: bool) -> Option<Request> {
        self.done += 1;
        if !is_nameless {
            self.finished.insert(name, FINISHED_MAX);
        }
        self.open.remove(&name.key())
    }

    /// The snapshot at the end of a run is an option of the process.
    fn check_final_snapshot(&mut self, outcome: &RequestOutcome, report: &mut Report) {
        if !outcome.has_ended_run() {
            return;
        }
        let has_snapshot = outcome.has_snapshot;
        let message = match self.has_final_snapshots {
            Some(true) if !has_snapshot => "the run has no snapshot at its end; earlier ones have",
            Some(false) if has_snapshot => {
                "the run has a snapshot at its end; earlier ones have not"
            }
            Some(_) => return,
            None => {
                self.has_final_snapshots = Some(has_snapshot);
                return;
            }
        };
        report.add(Rule::FinalSnapshot, message);
    }

    /// The requests without a `done`, by the line of their first frame, with their names.
    pub(super) fn open(&self) -> Vec<(u64, &str)> {
        let open = self.open.values().map(|request| (request.line, &*request.name.shown));
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        open
    }

    /// What was not checked, for the summary.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_too_wide {
            notes.push(format!("more than {OPEN_MAX} requests were open at once; not all checked"));
        }
        if self.unexplained > 0 {
            let count = self.unexplained;
            notes.push(format!(
                "{count} requests got nothing but a done \"ok\" while no run was active: right if \
                 each was an enable, a cancel with waiting, or a compact with decline; a request of any \
                 other kind gets another frame before its done"
            ));
        }
        if self.finished.forgotten > 0 {
            notes.push(format!(
                "only the last {FINISHED_MAX} requests were checked for frames after their done"
            ));
        }
        notes
    }
}
