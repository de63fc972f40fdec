//! Requests as a stream shows them: who was answered, and whose `done` is still to come.

use super::names::{Name, Remembered, shown};
use super::rule::{Report, Rule};
use super::step::RunEnd;
use super::words::{CLASSES, CODES, DONE_STATUSES, INVALID_ANSWER};
use crate::proto::rpc::{DoneFrame, ErrorFrame};
use std::collections::HashMap;

/// Requests without a `done` that are followed at once; more are not.
const OPEN_MAX: usize = 100_000;

/// Requests with a `done` that are remembered, so that nothing more may come of them.
const FINISHED_MAX: usize = 4_000_000;

/// A request that was answered and has no `done` yet.
#[derive(Debug)]
pub(super) struct Request {
    name: Name,
    /// Where it was first seen.
    line: u64,
    error: Option<ErrorSeen>,
}

/// What matters of a request's last error.
#[derive(Clone, Debug)]
struct ErrorSeen {
    code: String,
    is_terminal: bool,
    /// It tells of a defect of the server, which cuts a run off.
    is_defect: bool,
}

/// All requests.
#[derive(Debug)]
pub(super) struct Requests {
    open: HashMap<u64, Request>,
    finished: Remembered,
    /// How many had a `done`.
    pub(super) done: u64,
    is_too_wide: bool,
}

/// What is known of a run when the `done` of its request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunSeen {
    /// There was none.
    None,
    /// It has no end yet.
    Live,
    /// It has ended so.
    Ended(RunEnd),
}

impl Requests {
    pub(super) fn new() -> Self {
        let finished = Remembered::new(FINISHED_MAX);
        Self { open: HashMap::new(), finished, done: 0, is_too_wide: false }
    }

    /// Whether a frame may still come for the request; false if it has its `done`.
    pub(super) fn is_open(&self, name: &Name) -> bool {
        !self.finished.contains(name)
    }

    /// Notes that a frame of the request was seen.
    pub(super) fn see(&mut self, name: &Name, line: u64) {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&name.key()) {
            self.is_too_wide = true;
            return;
        }
        let request = || Request { name: name.clone(), line, error: None };
        self.open.entry(name.key()).or_insert_with(request);
    }

    pub(super) fn error(&mut self, name: &Name, error: &ErrorFrame, report: &mut Report) {
        check_error(error, report);
        if let Some(request) = self.open.get_mut(&name.key()) {
            let is_defect = error.code == "internal" || error.detail.starts_with("internal");
            let (code, is_terminal) = (shown(&error.code), error.terminal);
            request.error = Some(ErrorSeen { code, is_terminal, is_defect });
        }
    }

    /// Takes the `done` of a request. A request without a name may come again.
    pub(super) fn done(
        &mut self,
        name: &Name,
        is_nameless: bool,
        run: RunSeen,
        done: &DoneFrame,
        report: &mut Report,
    ) {
        self.done += 1;
        if !is_nameless {
            self.finished.insert(name);
        }
        let Some(request) = self.open.remove(&name.key()) else { return };
        if !DONE_STATUSES.contains(&&*done.status) {
            let status = shown(&done.status);
            let known = DONE_STATUSES.join(", ");
            return report.add(Rule::UnknownStatus, format!("{status:?} is none of {known}"));
        }
        check_status(&done.status, run, request.error.as_ref(), report);
    }

    /// The requests without a `done`: where each was first seen, and its name. In that order.
    pub(super) fn open(&self) -> Vec<(u64, &str)> {
        let open = self.open.values().map(|request| (request.line, &*request.name.shown));
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        open
    }

    /// What was not looked at, for people.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_too_wide {
            notes.push(format!("more than {OPEN_MAX} requests were open at once; not all checked"));
        }
        if self.finished.forgotten > 0 {
            notes.push(format!(
                "only the last {FINISHED_MAX} requests were checked for frames after their done"
            ));
        }
        notes
    }
}

/// Whether an error with this code can be told before a request has bound the session.
pub(super) fn comes_before_binding(code: &str) -> bool {
    matches!(
        code,
        "invalid_request_json"
            | "line_too_long"
            | "unsupported_version"
            | "unknown_request"
            | "empty_prompt"
            | "stdin_read_failed"
            | "interrupted"
            | "internal"
    )
}

fn check_error(error: &ErrorFrame, report: &mut Report) {
    let code = shown(&error.code);
    if !CODES.contains(&&*error.code) {
        report.add(Rule::UnknownCode, format!("{code:?} is no error code of the protocol"));
    }
    if matches!(&*error.code, "run_failed" | "engine_init_failed") {
        let class = error.detail.split_once(':').map_or("", |(class, _)| class);
        if !CLASSES.contains(&class) {
            let known = CLASSES.join(", ");
            let message = format!("the detail of {code} begins with none of {known} and a colon");
            report.add(Rule::ErrorClass, message);
        }
    }
}

fn check_status(status: &str, run: RunSeen, error: Option<&ErrorSeen>, report: &mut Report) {
    let is_defect = error.is_some_and(|error| error.is_defect);
    let is_terminal = error.is_some_and(|error| error.is_terminal);
    let is_invalid = error.is_some_and(|error| error.code == INVALID_ANSWER);
    match run {
        RunSeen::Live if !is_defect => {
            report.add(Rule::LeftOpen, "the done of a run that has not ended");
        }
        RunSeen::Ended(RunEnd::Finished) if is_invalid && status == "failed" => {}
        RunSeen::Ended(end) if status != status_of(end) && !is_defect => {
            let message = format!("done {status:?} after a run that was to be {}", status_of(end));
            report.add(Rule::DoneStatus, message);
        }
        RunSeen::None if status == "stopped" && !is_terminal => {
            report.add(Rule::DoneStatus, "done \"stopped\" of a request without a run");
        }
        RunSeen::None | RunSeen::Live | RunSeen::Ended(_) => {}
    }
    match error {
        None if status == "failed" => {
            report.add(Rule::DoneStatus, "done \"failed\" without an error before it");
        }
        Some(error) if status == "ok" && error.code != "no_active_request" => {
            let message = format!("done \"ok\" after the error {}", error.code);
            report.add(Rule::DoneStatus, message);
        }
        None | Some(_) => {}
    }
}

fn status_of(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Finished => "ok",
        RunEnd::Stopped => "stopped",
        RunEnd::Failed => "failed",
    }
}
