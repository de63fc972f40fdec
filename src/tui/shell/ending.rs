//! Signals, suspension, and the end of the chat.

use super::input::Read;
use super::{BACKGROUND_TIME, LEAVE_MAX, Shell, sleep_until};
use crate::session::{ExitCode, Input, Signal};
use crate::stdio::Finish;
use crate::tui::model::Event;
use crate::tui::terminal::keys::Typed;
use std::io;
use std::time::Instant;

impl Shell<'_> {
    pub(super) fn interrupted(&mut self, signal: Signal) {
        if signal == Signal::Interrupt && (self.child.is_some() || self.suspended.is_some()) {
            // The key was pressed in another program.
            return;
        }
        // Without raw mode, this is how Ctrl-C arrives.
        let is_key = signal == Signal::Interrupt && self.state.is_plain && self.state.run.is_some();
        if is_key {
            return self.stop_run();
        }
        if self.leaves_at.is_some() {
            self.exit = Some(ExitCode::Interrupted(signal));
            return;
        }
        self.leaves_at = Some(Instant::now() + LEAVE_MAX);
        let effects = self.host.handle(Input::Interrupted(signal));
        self.perform(effects);
    }

    pub(super) fn resized(&mut self) {
        let size = self.screen.resized(Instant::now());
        self.update(Event::Resized(size));
    }

    /// The terminal reports a place on the screen, as it was asked to.
    pub(super) fn reported(&mut self, row: usize, column: usize) {
        if let Some(size) = self.screen.reported(row, column, Instant::now()) {
            self.update(Event::Resized(size));
        }
        self.waits_until = None;
    }

    /// The process goes on after it was stopped, or was never stopped.
    pub(super) fn continued(&mut self) {
        if self.child.is_some() {
            return;
        }
        if !self.screen.is_ours() {
            // `bg`: the model may go on, the screen is somebody else's until `fg`, which sends no signal
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
        let effects = self.host.handle(Input::Interrupted(Signal::Hangup));
        self.perform(effects);
        // The session ends as after a signal; there was none.
        self.exit = Some(ExitCode::OutputFailed);
    }

    /// Takes what the terminal still has to report: another program would read it as typed.
    pub(super) async fn take_reports(&mut self) {
        let until = self.screen.reports_until(Instant::now());
        while self.screen.reports_until(Instant::now()).is_some() {
            tokio::select! {
                biased;
                read = self.source.next(&mut self.screen) => match read {
                    Ok(Read::Typed(typed)) => typed.into_iter().for_each(|it| self.typed_late(it)),
                    Ok(Read::Line(_)) => {}
                    Ok(Read::Ended) | Err(_) => return,
                },
                () = sleep_until(until) => return,
            }
        }
    }

    fn typed_late(&mut self, typed: Typed) {
        match typed {
            Typed::Place { row, column } => self.reported(row, column),
            Typed::Press(_) | Typed::Paste(_) => self.update(Event::Typed(typed)),
        }
    }

    /// Puts the terminal back, and says how to go on.
    pub(super) async fn finish(mut self, mut code: ExitCode) -> Finish {
        self.take_reports().await;
        self.screen.leave(&mut self.state);
        if let Some(child) = self.child.take() {
            child.abandon();
        }
        tokio::select! {
            biased;
            signal = self.signals.next() => code = ExitCode::Interrupted(signal),
            () = self.host.close() => {}
        }
        if let Some(file) = self.debug_file.take() {
            file.finish().await;
        }
        let mut last_words = Vec::new();
        while let Ok(line) = self.logged.try_recv() {
            last_words.push(line);
        }
        let status = &self.state.status;
        if status.turns > 0
            && status.is_stored
            && let Some(lines) = (self.resume)(&status.session)
        {
            last_words.extend(lines);
        }
        self.screen.farewell(&last_words);
        Finish { status: code.number(), complaint: None }
    }
}
