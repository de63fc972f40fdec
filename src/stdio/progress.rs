//! A progress line on a terminal while the model works. It is on standard error, and is cleared
//! before anything is written to the same terminal.

mod row;

use crate::output::{how_far, waiting_text};
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::session::WaitingFor;
use crate::protocol::wire::Frame;
use crate::support::stderr;
use crate::support::terminal::{self, escape_control};
use row::Row;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Time between two drawings of the line.
const TICK: Duration = Duration::from_millis(100);

/// The progress line.
#[derive(Debug)]
pub(crate) struct Progress {
    row: Option<Row>,
    /// When the line moves next.
    next_tick: Option<Instant>,
    shown: Shown,
    bytes: u64,
}

/// What standard output, or a program that reads it, writes to the same terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Standard output goes elsewhere.
    Nothing,
    /// The answer may be, once some of it was written to a pipe.
    Piped,
    /// The answer, while it streams.
    Text,
    /// The answer in whole lines, each of which clears the row that it begins in.
    Lines,
    /// One document, at the end.
    Document,
}

impl Progress {
    /// A line, if standard error is a terminal. `shown` is what standard output writes to a terminal.
    pub(crate) fn for_person(shown: Shown) -> Option<Self> {
        let is_shown = io::stderr().is_terminal() && !terminal::is_dumb();
        is_shown.then(|| Self { row: None, next_tick: None, shown, bytes: 0 })
    }

    /// A person is asked something in the place of the line.
    pub(super) fn pause(&mut self) {
        self.end();
    }

    /// Draws the line again.
    pub(super) fn resume(&mut self) {
        if self.shown == Shown::Piped && self.bytes > 0 {
            return;
        }
        self.row = Some(Row::new(waiting_text(WaitingFor::Unspecified)));
        self.tick();
    }

    /// Updates the line for `frame`.
    pub(super) fn take(&mut self, frame: &Frame) {
        match &frame.frame {
            Some(Body::UiEvent(event)) => {
                if let Some(payload) = &event.payload {
                    self.event(payload);
                }
            }
            Some(Body::Error(_) | Body::Done(_)) => self.end(),
            Some(Body::Hello(_) | Body::Snapshot(_) | Body::BackendEvent(_)) | None => {}
        }
    }

    fn event(&mut self, payload: &Any) {
        if let Any::ChatRunStarted(_) = payload {
            self.resume();
        }
        if let Any::ChatReasoningPatch(_) = payload {
            self.show("thinking".to_owned());
        }
        if let Any::ToolCallProgressed(progressed) = payload {
            let text = format!("{}: {}", progressed.tool_name, how_far(progressed));
            self.show(escape_control(&text));
        }
        if let Any::Heartbeat(heartbeat) = payload {
            self.show(waiting_text(heartbeat.waiting_for()).to_owned());
        }
        if let Any::ChatToolResultReady(_) = payload {
            self.show(waiting_text(WaitingFor::Unspecified).to_owned());
        }
        if let Any::ChatTextPatch(patch) = payload {
            self.bytes += patch.text.len() as u64;
            match self.shown {
                Shown::Text | Shown::Piped => self.end(),
                // Its lines are being written.
                Shown::Lines => {}
                Shown::Nothing | Shown::Document => self.show_bytes(),
            }
        }
    }

    /// When [`Progress::tick_beside`] is to be called next.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.next_tick
    }

    /// Moves the line, unless lines of the answer are being written.
    pub(super) fn tick_beside(&mut self, is_written: bool) {
        match (self.shown, is_written) {
            (Shown::Lines, false) => self.next_tick = self.next_tick.map(|_| Instant::now() + TICK),
            (Shown::Lines, true) if self.bytes > 0 => {
                self.show_bytes();
                self.tick();
            }
            (Shown::Nothing | Shown::Piped | Shown::Text | Shown::Lines | Shown::Document, _) => {
                self.tick()
            }
        }
    }

    fn tick(&mut self) {
        self.next_tick = self.row.as_mut().map(|row| {
            row.draw();
            Instant::now() + TICK
        });
    }

    fn show_bytes(&mut self) {
        self.show(format!("receiving the answer, {}", row::size(self.bytes)));
    }

    /// Has the line say `what` from the next tick on.
    fn show(&mut self, what: String) {
        if let Some(row) = &mut self.row {
            row.message = what;
        }
    }

    /// Takes the line away, at once.
    fn end(&mut self) {
        self.next_tick = None;
        if let Some(row) = self.row.take() {
            row.clear();
            match self.shown {
                Shown::Nothing => {}
                // The line must be cleared before standard output is written.
                Shown::Piped | Shown::Text | Shown::Lines | Shown::Document => stderr::flush(),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
