//! A line on a terminal that shows a person that the model is at work. On standard error, and gone
//! before anything is written where the person reads the answer.

use crate::any::Any;
use crate::proto::rpc::rpc_line::Frame as Body;
use crate::terminal;
use crate::wire::Frame;
use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between two pictures of the line.
const TICK: Duration = Duration::from_millis(100);

/// Columns that stay free after the line. A terminal shows `^C` where the cursor is; if that went
/// on to the next row, the line's own row would no longer be the one that is cleared.
const FREE_COLUMNS: u16 = 4;

/// Columns below which the line is not drawn.
const COLUMNS_MIN: u16 = 12;

/// Columns of a terminal that reports none.
const COLUMNS_UNKNOWN: u16 = 80;

/// The line.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    /// The answer is written on a terminal as well, and has no room for both.
    ends_with_text: bool,
    bytes: u64,
}

impl Progress {
    /// One for a person, if a terminal is where errors go. The answer goes to a terminal as well if
    /// `is_shown`.
    pub fn for_person(is_shown: bool) -> Option<Self> {
        let wanted = io::stderr().is_terminal() && !terminal::is_dumb();
        wanted.then(|| Self { bar: None, ends_with_text: is_shown, bytes: 0 })
    }

    /// Shows what `frame` tells.
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
            self.bar = Some(begin());
        }
        if let Any::ChatReasoningPatch(_) = payload {
            self.tell("thinking".to_owned());
        }
        if let Any::ChatTextPatch(patch) = payload {
            if self.ends_with_text {
                return self.end();
            }
            self.bytes += patch.text.len() as u64;
            self.tell(format!("receiving the answer, {}", BinaryBytes(self.bytes)));
        }
    }

    fn tell(&self, what: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }

    /// Takes the line away, at once.
    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

fn begin() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // What is cut off where the terminal is narrow comes last.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(Row::default())));
    bar.set_message("waiting for the model");
    bar.enable_steady_tick(TICK);
    bar
}

/// The row of the terminal that the line is drawn in. It never has a second one.
#[derive(Debug, Default)]
struct Row {
    /// What is written next.
    picture: Mutex<String>,
}

impl Row {
    fn push(&self, text: &str) -> io::Result<()> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        Ok(())
    }
}

impl TermLike for Row {
    fn width(&self) -> u16 {
        columns().saturating_sub(FREE_COLUMNS)
    }

    fn height(&self) -> u16 {
        1
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.push(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.push(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.push(terminal::CLEAR_LINE)
    }

    fn flush(&self) -> io::Result<()> {
        let mut picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        let picture = std::mem::take(&mut *picture);
        if columns() < COLUMNS_MIN || !is_in_foreground() {
            return Ok(());
        }
        io::stderr().write_all(picture.as_bytes())
    }
}

fn columns() -> u16 {
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { COLUMNS_UNKNOWN } else { columns }
}

/// Whether the terminal is this process's to draw on. A shell's background job shares it with
/// whatever the person does there meanwhile.
fn is_in_foreground() -> bool {
    // An error means that it is not the terminal whose jobs a shell controls.
    tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}
