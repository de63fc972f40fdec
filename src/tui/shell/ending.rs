//! Signals, suspension, and the end of the chat.

use super::child::Saved;
use super::input::Read;
use super::screen::ROOM_TIME;
use super::{BACKGROUND_TIME, LEAVE_MAX, Shell};
use crate::session::{ExitCode, Input, Signal, panic_text};
use crate::support::defect;
use crate::support::sleep_until;
use crate::support::terminal::escape_control;
use crate::transport::Finish;
use crate::tui::model::Event;
use crate::tui::terminal::keys::Typed;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// What else a resume needs in a database with a password.
const PASSWORD: &str = "the password of the database is not shown; set PGPASSWORD to it first";

/// How to resume a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoingOn {
    /// The command, to be pasted into a shell. It has no password.
    pub(crate) command: String,
    /// The database needs a password that the command does not have.
    pub(crate) needs_password: bool,
}

/// The end after a panic that said `what`; `kept` says what became of the conversation.
pub(super) fn defect(what: &str, kept: &str) -> Finish {
    let what = defect::take().unwrap_or_else(|| what.to_owned());
    let complaint = format!(
        "the chat met a defect of this program and has ended ({what}); please report it{kept}"
    );
    let complaint = Some(escape_control(&complaint));
    Finish { status: ExitCode::Internal.number(), complaint }
}

/// Does `work`.
///
/// # Errors
/// What a panic in it says.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(panic_text(panic.as_ref()))),
    })
    .await
}

impl Shell<'_> {
    pub(super) fn interrupted(&mut self, signal: Signal) {
        let is_of_key = matches!(signal, Signal::Interrupt | Signal::Quit);
        if is_of_key && (self.child.is_some() || self.suspended.is_some()) {
            // The key was pressed in another program.
            return;
        }
        // Without raw mode, this is how Ctrl-C arrives.
        if signal == Signal::Interrupt && self.state.is_plain() {
            if self.state.run.is_some() {
                return self.stop_run();
            }
            if self.state.takes_typed_lines() {
                return self.update(Event::LineInterrupted);
            }
        }
        if self.held.is_some() {
            self.keep_unsent();
            self.exit = Some(ExitCode::Interrupted(signal));
            return;
        }
        // After the command that leaves, the store may hold frames: the first signal ends that wait.
        if self.signal.replace(signal).is_some() {
            self.exit = Some(ExitCode::Interrupted(signal));
            return;
        }
        self.leaves_at = Some(Instant::now() + LEAVE_MAX);
        self.keep_unsent();
        let effects = self.host.handle(Input::Interrupted(signal));
        self.perform(effects);
    }

    pub(super) fn resized(&mut self) {
        let size = self.screen.resized(Instant::now());
        self.update(Event::Resized(size));
    }

    /// The terminal reports its cursor in reply to a query.
    pub(super) fn reported(&mut self, row: usize, column: usize) {
        if let Some(size) = self.screen.reported(row, column, Instant::now()) {
            self.update(Event::Resized(size));
        }
        self.waits_until = None;
    }

    /// The process continues after it was stopped, or was never stopped.
    pub(super) fn continued(&mut self) {
        if self.child.is_some() {
            return;
        }
        if !self.screen.is_ours() {
            // `bg`: the run continues, the screen belongs to the shell until `fg`, which sends no signal
            // to a process that runs.
            self.suspended = Some(Instant::now() + BACKGROUND_TIME);
            return;
        }
        self.suspended = None;
        self.entered = Instant::now();
        match self.screen.enter() {
            Ok(()) => self.resized(),
            Err(error) => self.gone(&error),
        }
    }

    pub(super) fn gone(&mut self, error: &io::Error) {
        tracing::error!(%error, "the terminal can't be used any more; the chat ends");
        self.keep_unsent();
        let effects = self.host.handle(Input::Interrupted(Signal::Hangup));
        self.perform(effects);
        // The session ends as after a signal; there was none.
        self.exit = Some(ExitCode::OutputFailed);
    }

    /// Reads the pending reports of the terminal, which another program would read as keys; or until a signal, which
    /// is returned. The terminal replies to a query once it has taken it: where the end `is_demanded`, the reply is
    /// waited for no longer on that account.
    pub(super) async fn take_reports(&mut self, is_demanded: bool) -> Option<Signal> {
        let (mut fewest, mut until) = (usize::MAX, None);
        while let Some(owed) = self.screen.reports_until(Instant::now()) {
            let is_drained = self.screen.is_drained();
            let left = self.screen.pending_bytes();
            if until.is_none() || left < fewest && !is_demanded {
                (fewest, until) = (left, Some(owed));
            }
            tokio::select! {
                biased;
                signal = self.signals.next() => return Some(signal),
                read = self.source.next(&mut self.screen) => match read {
                    Ok(Read::Typed(typed)) => typed.into_iter().for_each(|it| self.typed_late(it)),
                    Ok(Read::Line(_) | Read::LineCut) => {}
                    Ok(Read::Ended) | Err(_) => return None,
                },
                () = sleep_until(until) => return None,
                () = sleep(ROOM_TIME), if !is_drained => {}
            }
        }
        None
    }

    fn typed_late(&mut self, typed: Typed) {
        match typed {
            Typed::Place { row, column } => self.reported(row, column),
            Typed::Press(_) | Typed::Paste(_) | Typed::PasteCut | Typed::Focus(_) => {
                self.update(Event::Typed(typed));
            }
        }
    }

    /// Stores a prompt that was not sent, so that the next chat has it.
    pub(super) fn keep_unsent(&mut self) {
        for text in self.state.take_unsent() {
            if let Err(error) = self.history.add(&text) {
                tracing::info!(%error, "what was not sent can't be kept for later chats");
            }
        }
    }

    /// Ends the person's editor, if it runs. The next chat has what was saved in it; where it can't, the file stays,
    /// as the returned line says.
    async fn end_editor(&mut self) -> Option<String> {
        let left = self.child.take()?.hang_up().await;
        let is_kept = match &left.saved {
            Saved::Nothing => true,
            Saved::Text(text) => self.history.add(text).is_ok_and(|is_stored| is_stored),
            Saved::Unreadable => false,
        };
        if !is_kept {
            return Some(format!("what was saved in the editor is in {}", left.path.display()));
        }
        left.remove();
        None
    }

    /// Waits until the terminal has taken all that was written, however slow it is; or for a signal, which is returned.
    /// One that takes nothing for `stuck_max` is waited for no longer.
    pub(super) async fn drained(&mut self, stuck_max: Duration) -> Option<Signal> {
        let (mut fewest, mut since) = (usize::MAX, Instant::now());
        while !self.screen.is_drained() && since.elapsed() < stuck_max {
            let left = self.screen.pending_bytes();
            if left < fewest {
                (fewest, since) = (left, Instant::now());
            }
            tokio::select! {
                biased;
                signal = self.signals.next() => return Some(signal),
                () = sleep(ROOM_TIME) => {}
            }
        }
        None
    }

    /// The status of an end with `code`, once the terminal has taken all that was written, or has long taken nothing:
    /// until the end nobody else can go on with the conversation. For the end that a signal or a terminal that is gone
    /// demands, nothing is waited for.
    async fn drained_at_end(&mut self, code: ExitCode) -> ExitCode {
        if self.is_demanded(code) {
            return code;
        }
        self.drained(LEAVE_MAX).await.map_or(code, ExitCode::Interrupted)
    }

    /// Whether a signal or a terminal that is gone demands the end with `code`.
    fn is_demanded(&self, code: ExitCode) -> bool {
        let is_demanded = matches!(code, ExitCode::Interrupted(_) | ExitCode::OutputFailed);
        is_demanded || self.signal.is_some()
    }

    /// Restores the terminal, and says how to resume.
    pub(super) async fn finish(&mut self, mut code: ExitCode) -> Finish {
        if let Some(signal) = self.take_reports(self.is_demanded(code)).await {
            code = ExitCode::Interrupted(signal);
        }
        self.keep_unsent();
        let left = self.screen.begin_leaving(&mut self.state);
        code = self.drained_at_end(code).await;
        self.screen.leave();
        let mut last_words = Vec::from_iter(self.end_editor().await);
        if let Some(command) = self.command.take() {
            command.end().await;
        }
        if code == ExitCode::Ok && self.state.has_failed_unseen() {
            code = ExitCode::RunFailed;
        }
        if let Err(error) = left {
            tracing::error!(%error, "standard output could not be written; not all of the chat was");
            code = ExitCode::OutputFailed;
        }
        tokio::select! {
            biased;
            signal = self.signals.next() => code = ExitCode::Interrupted(signal),
            () = self.host.close() => {}
        }
        if let Some(file) = self.debug_file.take() {
            file.finish().await;
        }
        while let Ok(line) = self.logged.try_recv() {
            last_words.push(line);
        }
        let (which, going_on) = match self.going_on() {
            Some(it) => ("this conversation", Some(it)),
            // In the last conversation nothing was said.
            None if !self.state.has_begun() => {
                let before =
                    self.before.as_deref().and_then(|session| (self.services.resume)(session));
                ("the conversation before", before)
            }
            None => ("", None),
        };
        if let Some(GoingOn { command, needs_password }) = going_on {
            last_words.push(format!("to go on with {which}: {command}"));
            last_words.extend(needs_password.then(|| PASSWORD.to_owned()));
        }
        if let Some(why) = self.failure_out_of_sight(code) {
            last_words.insert(0, why);
        }
        self.screen.farewell(&last_words);
        code = self.drained_at_end(code).await;
        self.screen.finish();
        Finish { status: code.number(), complaint: None }
    }

    /// Why the chat has ended by itself, or why its conversation is lost, where the screen that said so is gone.
    fn failure_out_of_sight(&self, code: ExitCode) -> Option<String> {
        let failure = match code {
            ExitCode::RunFailed
            | ExitCode::TryLater
            | ExitCode::InputFailed
            | ExitCode::Usage
            | ExitCode::CutOff
            | ExitCode::Internal => self.state.last_failure(),
            // The person, a signal or the terminal has ended it.
            ExitCode::Ok | ExitCode::OutputFailed | ExitCode::Interrupted(_) => {
                self.state.store_failure()
            }
        };
        failure.filter(|_| self.screen.is_full()).map(str::to_owned)
    }

    /// How to resume the conversation, if it has a stored turn.
    fn going_on(&self) -> Option<GoingOn> {
        let status = &self.state.status;
        let is_kept = self.state.has_begun() && status.is_stored;
        is_kept.then(|| (self.services.resume)(&status.session)).flatten()
    }

    /// A panic in the chat itself: the terminal is put back, what was said is stored, and one line says
    /// what that means. Nothing here relies on the part that has failed.
    pub(super) async fn crashed(&mut self, what: &str) -> Finish {
        let tidy = AssertUnwindSafe(|| {
            self.keep_unsent();
            let left = self.screen.begin_leaving(&mut self.state);
            self.screen.leave();
            left
        });
        // The status says that there was a defect, whatever could be written.
        if catch_unwind(tidy).is_err() {
            self.screen.abandon();
        }
        let edited = caught(self.end_editor()).await.ok().flatten();
        // The end of the process closes the rest.
        caught(self.host.close()).await.ok();
        if let Some(file) = self.debug_file.take() {
            file.finish().await;
        }
        let edited = edited.map(|edited| format!("; {edited}")).unwrap_or_default();
        let kept = match self.going_on() {
            Some(GoingOn { command, needs_password }) => {
                let password =
                    if needs_password { format!(" ({PASSWORD})") } else { String::new() };
                format!("; the conversation is stored; to go on with it: {command}{password}")
            }
            None if !self.state.has_begun() => String::new(),
            None if self.state.status.is_stored => "; the conversation is stored".to_owned(),
            None => "; the conversation was not stored, so it is lost but for what the terminal \
                     shows; --store FILE stores the next one"
                .to_owned(),
        };
        defect(what, &format!("{edited}{kept}"))
    }
}
