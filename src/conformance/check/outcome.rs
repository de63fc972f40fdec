//! Checks the outcome of each request: errors must fit the state of the session, and the `done` must fit
//! the frames before it.

use super::names::shown;
use super::rule::{Report, Rule};
use super::run_event::RunEnd;
use super::runs::{Activity, RunSeen};
use crate::protocol::constants::{class, code, done};
use crate::protocol::proto::rpc::ErrorFrame;

/// The frames of a request before its `done`.
#[derive(Clone, Debug)]
pub(super) struct RequestOutcome {
    pub(super) run: RunSeen,
    pub(super) error: Option<ErrorSeen>,
    pub(super) has_snapshot: bool,
    /// It has an event that is not of a run.
    pub(super) has_event: bool,
    /// What it asked for was begun and not done.
    pub(super) has_stopped: bool,
}

/// The relevant parts of a request's last error.
#[derive(Clone, Debug)]
pub(super) struct ErrorSeen {
    code: String,
    is_terminal: bool,
    /// An internal error of the server, which ends a run in the middle.
    is_defect: bool,
}

impl ErrorSeen {
    pub(super) fn of(error: &ErrorFrame) -> Self {
        let (code, is_terminal) = (shown(&error.code), error.terminal);
        Self { code, is_terminal, is_defect: is_defect(error) }
    }
}

impl RequestOutcome {
    /// The request has only its `done`: a successful cancel, a shutdown, or a request of an
    /// extension.
    pub(super) fn is_bare(&self) -> bool {
        self.is_other() && self.error.is_none() && !self.has_event
    }

    /// The request is neither a submit that was accepted nor a snapshot.
    pub(super) fn is_other(&self) -> bool {
        self.run == RunSeen::None && !self.has_snapshot
    }

    /// The run has ended, and not by a defect of the server.
    pub(super) fn has_ended_run(&self) -> bool {
        let is_defect = self.error.as_ref().is_some_and(|error| error.is_defect);
        matches!(self.run, RunSeen::Ended(_)) && !is_defect
    }
}

/// Whether an error with this code can occur before a request has bound the session.
pub(super) fn comes_before_binding(code: &str) -> bool {
    matches!(
        code,
        code::INVALID_REQUEST_JSON
            | code::LINE_TOO_LONG
            | code::UNSUPPORTED_VERSION
            | code::UNKNOWN_REQUEST
            | code::EMPTY_PROMPT
            | code::UNKNOWN_EXTENSION
            | code::INVALID_TOOLS
            | code::INVALID_SETTINGS
            | code::INVALID_ATTACHMENT
            | code::STDIN_READ_FAILED
            | code::INTERRUPTED
            | code::INTERNAL
    )
}

/// Whether an error with this code may name no request: a line whose id can't be read is answered so,
/// and a store that fails is of none.
pub(super) fn needs_no_request(code: &str) -> bool {
    matches!(
        code,
        code::INVALID_REQUEST_JSON | code::LINE_TOO_LONG | code::INTERNAL | code::STORE_FAILED
    )
}

/// Whether the error is an internal error of the server.
fn is_defect(error: &ErrorFrame) -> bool {
    error.code == code::INTERNAL || error.detail.starts_with(class::INTERNAL)
}

/// Checks an error of a request; `run` is the request's, `activity` that of the session.
pub(super) fn check_error(
    error: &ErrorFrame,
    (run, activity): (RunSeen, Activity),
    report: &mut Report,
) {
    let code = shown(&error.code);
    if !code::ALL.contains(&&*error.code) {
        report.add(Rule::UnknownCode, format!("{code:?} is no error code of the protocol"));
    }
    if error.message.is_empty() {
        report.add(Rule::MissingField, "the error has no message");
    }
    if matches!(&*error.code, code::RUN_FAILED | code::ENGINE_INIT_FAILED) {
        let class = error.detail.split_once(':').map_or("", |(class, _)| class);
        if !class::ALL.contains(&class) {
            let known = class::ALL.join(", ");
            let message = format!("the detail of {code} begins with none of {known} and a colon");
            report.add(Rule::ErrorClass, message);
        }
    } else if error.detail.is_empty() {
        report.add(Rule::MissingField, "the error has no detail");
    }
    if let Some(wrong) = wrong_with_state(error, run, activity) {
        report.add(Rule::ErrorState, format!("{code} {wrong}"));
    }
}

/// Why the error can't occur in this state.
fn wrong_with_state(error: &ErrorFrame, run: RunSeen, activity: Activity) -> Option<&'static str> {
    let has_failed = run == RunSeen::Ended(RunEnd::Failed);
    let is_right = match &*error.code {
        code::RUN_FAILED => has_failed || is_defect(error),
        code::ENGINE_INIT_FAILED => has_failed || run == RunSeen::None || is_defect(error),
        code::INVALID_ANSWER => run == RunSeen::Ended(RunEnd::Finished),
        code::INTERRUPTED => matches!(run, RunSeen::None | RunSeen::Ended(RunEnd::Stopped)),
        code::INVALID_REQUEST_JSON
        | code::LINE_TOO_LONG
        | code::UNSUPPORTED_VERSION
        | code::UNKNOWN_REQUEST
        | code::SESSION_MISMATCH
        | code::SESSION_BUSY
        | code::EMPTY_PROMPT
        | code::NO_ACTIVE_REQUEST
        | code::SHUTTING_DOWN
        | code::UNKNOWN_EXTENSION
        | code::INVALID_TOOLS
        | code::UNKNOWN_TOOL_CALL
        | code::INVALID_SETTINGS
        | code::INVALID_ATTACHMENT
        | code::UNKNOWN_MESSAGE
        | code::STDIN_READ_FAILED => run == RunSeen::None,
        _ => true,
    };
    match &*error.code {
        _ if !is_right => Some("does not fit the run of its request, or that it has none"),
        code::SESSION_BUSY if activity == Activity::Idle => Some("while no run is under way"),
        _ => None,
    }
}

/// Checks the status of a `done`, which is one of the known values.
/// `withdraws`: the cancel of submits that wait was answered just before.
pub(super) fn check_done(
    status: &str,
    outcome: &RequestOutcome,
    (activity, withdraws): (Activity, bool),
    report: &mut Report,
) {
    let expected = match (&outcome.error, outcome.run) {
        (Some(error), _) if error.is_defect => return,
        (Some(error), _) => expected_after(error),
        (None, RunSeen::Ended(RunEnd::Finished)) => done::OK,
        (None, RunSeen::Ended(RunEnd::Stopped)) => done::STOPPED,
        (None, RunSeen::Ended(RunEnd::Failed)) => {
            return report.add(Rule::DoneStatus, "the done of a failed run without its error");
        }
        (None, RunSeen::Live) => {
            return report.add(Rule::LeftOpen, "the done of a run that has not ended");
        }
        (None, RunSeen::None) if outcome.has_stopped => done::STOPPED,
        (None, RunSeen::None) if outcome.has_event => done::OK,
        (None, RunSeen::None) => {
            return check_without_run(status, outcome, (activity, withdraws), report);
        }
    };
    if outcome.run == RunSeen::Live {
        report.add(Rule::LeftOpen, "the done of a run that has not ended");
    }
    if status != expected {
        let message = format!("done {status:?} where {expected:?} is expected");
        report.add(Rule::DoneStatus, message);
    }
}

fn expected_after(error: &ErrorSeen) -> &'static str {
    match &*error.code {
        code::NO_ACTIVE_REQUEST => done::OK,
        code::INTERRUPTED if error.is_terminal => done::STOPPED,
        _ => done::FAILED,
    }
}

/// Checks the `done` of a request with neither an error nor a run.
fn check_without_run(
    status: &str,
    outcome: &RequestOutcome,
    (activity, withdraws): (Activity, bool),
    report: &mut Report,
) {
    let wrong = match status {
        // Of a request that was sent again, whose run was shown before the stream begins.
        done::FAILED | done::STOPPED if outcome.has_snapshot => return,
        done::FAILED => "done \"failed\" without an error before it",
        done::STOPPED if !withdraws => "done \"stopped\" of a request without a run",
        done::SHUTDOWN if outcome.has_snapshot => "done \"shutdown\" of a request for a snapshot",
        done::SHUTDOWN if activity == Activity::Running => {
            "done \"shutdown\" while a run is under way"
        }
        _ => return,
    };
    report.add(Rule::DoneStatus, wrong);
}
