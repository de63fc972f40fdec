//! The terminal as the library that draws the progress line sees it. Each picture goes as one piece
//! to the queue of standard error, which never waits.

use crate::support::stderr;
use crate::support::terminal;
use indicatif::TermLike;
use rustix::process::getpgrp;
use rustix::stdio;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Columns of a terminal that reports none.
const COLUMNS_UNKNOWN: u16 = 80;

/// Columns that stay free after the line. A terminal shows `^C` where the cursor is; if that went
/// on to the next row, the line's own row would no longer be the one that is cleared.
const FREE_COLUMNS: u16 = 4;

/// Columns below which the line is not drawn.
const COLUMNS_MIN: u16 = 12;

/// Whether the line may be drawn: the terminal is wide enough, and this process's to draw on. A
/// shell's background job shares it with the job in the foreground.
pub(super) fn is_ours() -> bool {
    // An error means that it is not the terminal whose jobs a shell controls.
    let is_in_foreground = tcgetpgrp(stdio::stderr()).map_or(true, |group| group == getpgrp());
    is_in_foreground && columns() >= COLUMNS_MIN
}

fn columns() -> u16 {
    let columns = tcgetwinsize(stdio::stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { COLUMNS_UNKNOWN } else { columns }
}

/// The row of the terminal that the line is drawn in, with the picture that is being drawn. It never
/// has a second row.
#[derive(Debug, Default)]
pub(super) struct Screen(Mutex<String>);

impl Screen {
    fn picture(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TermLike for Screen {
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
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.picture().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str(terminal::CLEAR_LINE)
    }

    fn flush(&self) -> io::Result<()> {
        let picture = std::mem::take(&mut *self.picture());
        // The library fills the row with spaces. In a window that gets narrower the terminal would wrap them into a
        // second row, which nothing clears.
        let picture = picture.trim_end_matches(' ');
        if !picture.is_empty() && is_ours() {
            stderr::picture(picture);
        }
        Ok(())
    }
}
