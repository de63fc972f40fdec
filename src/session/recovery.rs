//! What becomes of a session after a defect of this program: a panic ends the run or the line that it
//! happened in, with an error, and the conversation goes on.

use super::client_error::{fatal, internal, panic_text, run_defect, run_failed, shutting_down};
use super::recorder::Recorder;
use super::run::{Outcome, Run};
use super::{ExitCode, Input, Output, Phase, Session, Uptime};
use crate::protocol::command::Command;
use crate::protocol::id::RequestId;
use crate::protocol::wire::Done;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an input is about, for the case that handling it meets a defect.
pub(super) enum About {
    /// A line: it is to be answered.
    Line(Option<RequestId>),
    /// A line about a call of the active run: it is to be answered, and the run is to end.
    Call(Option<RequestId>),
    /// The active run: it is to end.
    Run,
    /// The process.
    Process,
}

impl About {
    pub(super) fn of(input: &Input) -> Self {
        match input {
            Input::Request(request) => {
                let id = Some(request.id.clone());
                match request.command {
                    Command::ToolResult(_) | Command::Approve(_) => Self::Call(id),
                    Command::Submit(_)
                    | Command::Cancel(_)
                    | Command::Snapshot(_)
                    | Command::Shutdown
                    | Command::Enable(_)
                    | Command::DeclareTools(_)
                    | Command::SwitchModel(_)
                    | Command::Edit(_) => Self::Line(id),
                }
            }
            Input::BadLine(line) => Self::Line(line.id.clone()),
            Input::Task(..) | Input::DeadlineReached | Input::ServerChanged(_) => Self::Run,
            Input::InputEnded
            | Input::Restored(_)
            | Input::StoreFailed(_)
            | Input::InputFailed { .. }
            | Input::Interrupted(_)
            | Input::ReaderGone
            | Input::Refused(_) => Self::Process,
        }
    }
}

impl Session {
    /// After a defect: what the input was about ends with an error; the rest goes on.
    pub(super) fn recover(&mut self, now: Uptime, about: &About, defect: &str) {
        let is_of_run = match about {
            About::Run => true,
            About::Line(id) | About::Call(id) => {
                if !self.will_answer(id.as_ref()) {
                    self.recorder.refuse(id.as_ref(), internal(defect));
                }
                matches!(about, About::Call(_))
            }
            About::Process => return self.give_up(defect),
        };
        if let Phase::Closed = self.phase {
            return self.give_up(defect);
        }
        let Some((live, context)) = self.live(now) else { return };
        if is_of_run || !live.run.is_going() {
            context.recorder.cancel_tasks();
            fail_run(&mut live.run, context.recorder, now, defect);
            // The run that comes next may meet the same defect. Each has its own end.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.next(now))) {
                self.recover(now, &About::Run, &panic_text(panic.as_ref()));
            }
        }
    }

    /// Whether the request has its `done` already, or something is left that will give it one.
    fn will_answer(&self, id: Option<&RequestId>) -> bool {
        let is_held = match (&self.phase, id) {
            (Phase::Running(live), Some(id)) => live.answers(id),
            (Phase::Draining(live, drain), Some(id)) => {
                live.answers(id) || drain.shutdowns.contains(id)
            }
            (Phase::Idle | Phase::Closed, _) | (_, None) => false,
        };
        is_held || self.recorder.is_done(id)
    }

    /// Ends the process after a defect in ending it. Its events can't be recorded; a client that waits
    /// for an answer still gets one.
    fn give_up(&mut self, defect: &str) {
        self.recorder.cancel_tasks();
        let (live, shutdowns) = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Running(live) => (Some(live), Vec::new()),
            Phase::Draining(live, drain) => (Some(live), drain.shutdowns),
            Phase::Idle | Phase::Closed => (None, Vec::new()),
        };
        if let Some(live) = live {
            answer_defect(&live.run, &mut self.recorder, defect);
            for submit in live.into_waiting() {
                self.recorder.refuse(Some(&submit.request), shutting_down());
            }
        }
        for id in &shutdowns {
            self.recorder.done(Some(id), Done::Shutdown);
        }
        self.recorder.refuse(None, fatal(defect));
        self.recorder.push(Output::Exit(ExitCode::Internal));
    }
}

/// Gives a run its end after a defect, with its events if they can still be recorded.
fn fail_run(run: &mut Run, recorder: &mut Recorder, now: Uptime, defect: &str) {
    if !run.has_ended() {
        let outcome = Outcome::Failed(run_defect(defect));
        if catch_unwind(AssertUnwindSafe(|| run.end(recorder, now, outcome))).is_ok() {
            return;
        }
    }
    // Its events can't be recorded; the client still gets its answer.
    answer_defect(run, recorder, defect);
}

/// Gives the request of a run its `done` after a defect, if it has none yet.
fn answer_defect(run: &Run, recorder: &mut Recorder, defect: &str) {
    if !recorder.is_done(Some(run.request())) {
        recorder.refuse(Some(run.request()), run_failed(run_defect(defect)));
    }
}
