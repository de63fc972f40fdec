//! When a server is started again that has ended, or could not be started (pure).

use std::time::Duration;

/// How often a server that ended is started again, unless it ran for [`STABLE_AFTER`] meanwhile.
pub(super) const RESTARTS_MAX: u32 = 3;

/// Wait before the first restart, which doubles with each; a call ends it.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// A server that ran for so long has all its restarts again.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Wait before a server that has failed is tried again, though nobody wants it; it doubles with each attempt.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Longest such wait.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(10 * 60);

/// Why a server was not started, as far as another start that nobody wants depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// There was no program that could be started, or no server that could be reached and had no fault of its own.
    Unreached,
    /// The server refused, or its program did not become ready. Another start may open another window of a browser,
    /// and has the same end.
    Refused,
}

/// How a run of a server ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    NotStarted(Cause),
    /// After its tools were known; how long they could be called.
    Ended(Duration),
}

/// What people are told of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Nothing: they know that the server has failed.
    Nothing,
    Reason,
    /// The reason, and that the server has had all its restarts.
    ReasonAndRestarts,
}

/// What is done after the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The server is started again after this time, or as soon as it is wanted.
    Soon(Duration),
    /// The server has failed. It is started again when a person wants it, and in silence after the time `retry`.
    Failed { retry: Option<Duration>, report: Report },
}

/// The starts of a server so far.
#[derive(Debug)]
pub(super) struct Restarts {
    count: u32,
    /// Its tools were known at some time.
    has_run: bool,
    /// The current start is one that nobody wants.
    is_silent: bool,
    retry_delay: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { count: 0, has_run: false, is_silent: false, retry_delay: RETRY_DELAY }
    }
}

impl Restarts {
    /// People are not told of the current start.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The server has ended again and again, and is offered when it has run for [`STABLE_AFTER`]: people were told
    /// that its tools are gone, and would be told again and again.
    pub(super) fn is_on_probation(&self) -> bool {
        self.is_silent && self.has_run
    }

    pub(super) fn next(&mut self, outcome: Outcome) -> Next {
        let is_hopeless = outcome == Outcome::NotStarted(Cause::Refused);
        if let Outcome::Ended(lifetime) = outcome {
            let is_stable = lifetime >= STABLE_AFTER;
            self.is_silent = self.is_on_probation() && !is_stable;
            self.has_run = true;
            if is_stable {
                (self.count, self.retry_delay) = (0, RETRY_DELAY);
            }
        }
        if self.has_run && !self.is_silent && self.count < RESTARTS_MAX {
            let delay = RESTART_DELAY * 2_u32.pow(self.count);
            self.count += 1;
            return Next::Soon(delay);
        }
        let report = match self.count {
            _ if self.is_silent && !is_hopeless => Report::Nothing,
            RESTARTS_MAX => Report::ReasonAndRestarts,
            _ => Report::Reason,
        };
        Next::Failed { retry: (!is_hopeless).then_some(self.retry_delay), report }
    }

    /// The next start is one that a person wants. `had_run`: the tools of the server were known until now.
    pub(super) fn wanted(&mut self, had_run: bool) {
        *self = Self { has_run: self.has_run || had_run, ..Self::default() };
    }

    /// The next start is one that nobody wants.
    pub(super) fn retry(&mut self) {
        self.count = 0;
        self.is_silent = true;
        self.retry_delay = (self.retry_delay * 2).min(RETRY_DELAY_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Outcome = Outcome::Ended(Duration::from_secs(1));

    /// A server that has ended as often as it is started again at once.
    fn crashed() -> Restarts {
        let mut restarts = Restarts::default();
        for millis in [500, 1_000, 2_000] {
            assert_eq!(restarts.next(SOON), Next::Soon(Duration::from_millis(millis)));
        }
        let failed = Next::Failed { retry: Some(RETRY_DELAY), report: Report::ReasonAndRestarts };
        assert_eq!(restarts.next(SOON), failed);
        restarts
    }

    #[test]
    fn a_server_that_ends_in_silence_is_not_reported_again_and_has_no_restarts_at_once() {
        let mut restarts = crashed();
        for seconds in [60, 120, 240, 480, 600, 600] {
            restarts.retry();
            assert!(restarts.is_silent() && restarts.is_on_probation());
            let retry = Some(Duration::from_secs(seconds));
            assert_eq!(restarts.next(SOON), Next::Failed { retry, report: Report::Nothing });
        }
        restarts.retry();
        let first = Next::Soon(RESTART_DELAY);
        assert_eq!(restarts.next(Outcome::Ended(STABLE_AFTER)), first);
        assert!(!restarts.is_silent());
    }

    #[test]
    fn what_refuses_is_not_tried_again_in_silence() {
        let refused = Outcome::NotStarted(Cause::Refused);
        let failed = Next::Failed { retry: None, report: Report::Reason };
        assert_eq!(Restarts::default().next(refused), failed);
        // Also later, which is told as it is the last start.
        let mut late = Restarts::default();
        let unreached = Outcome::NotStarted(Cause::Unreached);
        let retry = Some(RETRY_DELAY);
        assert_eq!(late.next(unreached), Next::Failed { retry, report: Report::Reason });
        late.retry();
        let retry = Some(RETRY_DELAY * 2);
        assert_eq!(late.next(unreached), Next::Failed { retry, report: Report::Nothing });
        late.retry();
        assert_eq!(late.next(refused), failed);
        let mut crashed = crashed();
        crashed.retry();
        assert_eq!(crashed.next(refused), failed);
    }

    #[test]
    fn a_server_that_runs_for_the_first_time_in_silence_has_its_restarts() {
        let mut restarts = Restarts::default();
        restarts.next(Outcome::NotStarted(Cause::Unreached));
        restarts.retry();
        assert!(restarts.is_silent() && !restarts.is_on_probation());
        assert_eq!(restarts.next(SOON), Next::Soon(RESTART_DELAY));
    }
}
