//! How far the process is from its end, and which status it ends with.

use crate::session::{ExitCode, Signal};
use std::time::{Duration, Instant};

/// How long the last frames may take after a signal, if the reader does not take them.
const INTERRUPTED_FLUSH_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    NotYet,
    /// Once everything is written.
    Flushing(ExitCode),
    /// Once everything is written, or at the deadline.
    FlushingUntil(ExitCode, Instant),
    Now(ExitCode),
}

impl Ending {
    /// Ends with `code` once everything is written; after a signal, not later than its deadline.
    pub(crate) fn flush(&mut self, code: ExitCode) {
        if let Self::Now(_) = self {
            return;
        }
        *self = if let ExitCode::Interrupted(_) = code {
            Self::FlushingUntil(code, Instant::now() + INTERRUPTED_FLUSH_MAX)
        } else {
            Self::Flushing(code)
        };
    }

    /// Ends now, with `code` unless the output reports the status and has reported another.
    pub(crate) fn abort(&mut self, code: ExitCode, reports_status: bool) {
        *self = Self::Now(match *self {
            Self::Flushing(reported) | Self::FlushingUntil(reported, _) if reports_status => {
                reported
            }
            Self::NotYet | Self::Flushing(_) | Self::FlushingUntil(..) | Self::Now(_) => code,
        });
    }

    /// A process that was about to end with `code` has a deadline after `signal`.
    pub(crate) fn hurry(&mut self, code: ExitCode, signal: Signal, reports_status: bool) {
        let code = status_after(code, signal, reports_status);
        *self = Self::FlushingUntil(code, Instant::now() + INTERRUPTED_FLUSH_MAX);
    }

    /// Ends now if the deadline has passed; returns whether it has.
    pub(crate) fn give_up(&mut self, now: Instant) -> bool {
        match *self {
            Self::FlushingUntil(code, deadline) if deadline <= now => {
                *self = Self::Now(code);
                true
            }
            Self::NotYet | Self::Flushing(_) | Self::FlushingUntil(..) | Self::Now(_) => false,
        }
    }

    /// The status of the process, once there is nothing left to do.
    pub(crate) fn is_over(&self, is_flushed: bool) -> Option<ExitCode> {
        match *self {
            Self::NotYet => None,
            Self::Flushing(code) | Self::FlushingUntil(code, _) => is_flushed.then_some(code),
            Self::Now(code) => Some(code),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {
            Self::FlushingUntil(_, deadline) => Some(deadline),
            Self::NotYet | Self::Flushing(_) | Self::Now(_) => None,
        }
    }
}

/// The status of a process that was about to end with `code` when `signal` came: a status that the
/// output has reported stays.
pub(crate) fn status_after(code: ExitCode, signal: Signal, reports_status: bool) -> ExitCode {
    if reports_status { code } else { ExitCode::Interrupted(signal) }
}
