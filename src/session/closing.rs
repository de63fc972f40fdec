//! How a session ends: it drains (refuses new prompts, and closes after the active run and the queued
//! submits), or closes at once.

use super::client_error::{interrupted, shutting_down, stdin_read_failed, too_many_shutdowns};
use super::run::{Outcome, Stop};
use super::{ExitCode, Output, Phase, Session, SessionMode, Signal, Uptime};
use crate::protocol::id::RequestId;
use crate::protocol::wire::{ClientError, Code, Done};

/// Shutdowns that may wait for the end of a run; past that, they are refused.
const HELD_SHUTDOWNS_MAX: usize = 256;

/// Bytes of the ids of shutdowns that wait; past that, they are refused.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// The end of the process after the last run.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    pub(super) shutdowns: Vec<RequestId>,
    farewell: ExitCause,
}

#[derive(Clone, Debug)]
pub(super) enum ExitCause {
    Quiet,
    InputFailed { reason: String },
    Interrupted(Signal),
    Refused(ClientError),
}
impl Session {
    /// Begins to drain: refuses new prompts, and ends after the active run and the queued submits.
    pub(super) fn drain(&mut self, shutdown: Option<RequestId>, farewell: ExitCause) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Idle => {
                self.close(Drain { shutdowns: shutdown.into_iter().collect(), farewell });
            }
            Phase::Running(live) => {
                let shutdowns = shutdown.into_iter().collect();
                self.phase = Phase::Draining(live, Drain { shutdowns, farewell });
            }
            Phase::Draining(live, mut drain) => {
                match shutdown {
                    Some(id) if !drain.has_room() => {
                        self.recorder.refuse(Some(&id), too_many_shutdowns());
                    }
                    shutdown => drain.shutdowns.extend(shutdown),
                }
                drain.farewell = drain.farewell.or(farewell);
                self.phase = Phase::Draining(live, drain);
            }
            Phase::Closed => {}
        }
    }

    /// The input has ended: every wait for the client ends.
    pub(super) fn input_ended(&mut self, now: Uptime, farewell: ExitCause) {
        self.has_input_ended = true;
        self.drain_after_reads(farewell);
        self.advance(now, |run, context| {
            run.client_gone(context);
            run.nobody_decides(context).or_else(|| run.after_tools(context))
        });
    }

    /// Ends the active run at once and refuses the queued submits.
    pub(super) fn end_now(&mut self, now: Uptime, stop: Stop, farewell: ExitCause) {
        self.stop(now, stop);
        let mut end = Drain { shutdowns: Vec::new(), farewell };
        let waiting = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Running(live) => live.into_waiting(),
            Phase::Draining(live, drain) => {
                end =
                    Drain { shutdowns: drain.shutdowns, farewell: end.farewell.or(drain.farewell) };
                live.into_waiting()
            }
            Phase::Idle | Phase::Closed => Vec::new(),
        };
        for submit in waiting {
            self.recorder.refuse(Some(&submit.request), shutting_down());
        }
        self.refuse_file_reads();
        self.close(end);
    }

    /// Stops the active run, if there is one.
    pub(super) fn stop(&mut self, now: Uptime, stop: Stop) {
        if let Some((live, context)) = self.live(now) {
            live.run.end(context.recorder, now, Outcome::Stopped(stop));
        }
    }

    pub(super) fn close(&mut self, drain: Drain) {
        self.phase = Phase::Closed;
        for id in &drain.shutdowns {
            self.recorder.done(Some(id), Done::Shutdown);
        }
        let exit = match drain.farewell {
            ExitCause::Quiet => match self.rules.mode {
                SessionMode::Conversation => ExitCode::Ok,
                SessionMode::OneShot => self.recorder.verdict().into(),
            },
            ExitCause::InputFailed { reason } => {
                self.recorder.refuse(None, stdin_read_failed(reason));
                ExitCode::InputFailed
            }
            ExitCause::Interrupted(signal) => {
                if self.rules.mode == SessionMode::Conversation || self.turns == 0 {
                    self.recorder.error(None, interrupted(signal));
                    self.recorder.done(None, Done::Stopped);
                }
                ExitCode::Interrupted(signal)
            }
            ExitCause::Refused(client_error) => {
                let code = client_error.code;
                self.recorder.refuse(None, client_error);
                if code == Code::Internal {
                    ExitCode::Internal
                } else if code == Code::SessionLocked {
                    ExitCode::TryLater
                } else {
                    ExitCode::Usage
                }
            }
        };
        self.recorder.push(Output::Exit(exit));
    }
}

impl Drain {
    fn has_room(&self) -> bool {
        let bytes: usize = self.shutdowns.iter().map(|id| id.as_str().len()).sum();
        self.shutdowns.len() < HELD_SHUTDOWNS_MAX && bytes < HELD_BYTES_MAX
    }
}

impl ExitCause {
    /// The first cause that is not `Quiet`.
    fn or(self, other: Self) -> Self {
        match self {
            Self::Quiet => other,
            Self::InputFailed { .. } | Self::Interrupted(_) | Self::Refused(_) => self,
        }
    }
}
