//! The terminal as the library that draws the progress line sees it. Each picture goes as one piece
//! to the queue of standard error, which never waits.

use crate::{stderr, terminal};
use indicatif::TermLike;
use std::fmt::Write;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Width of a terminal that does not tell its own.
const WIDTH: u16 = 79;

/// The picture that is being drawn.
#[derive(Debug, Default)]
pub(super) struct Screen(Mutex<String>);

impl Screen {
    fn picture(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the cursor as `direction` says (ECMA-48, CUU, CUD, CUF and CUB).
    fn move_cursor(&self, cells: usize, direction: char) -> io::Result<()> {
        match cells {
            0 => Ok(()),
            _ => write!(self.picture(), "\u{1b}[{cells}{direction}").map_err(io::Error::other),
        }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        size.map(|size| size.ws_col).ok().filter(|columns| *columns > 0).unwrap_or(WIDTH)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.move_cursor(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.move_cursor(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
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
        if !picture.is_empty() {
            stderr::picture(&picture);
        }
        Ok(())
    }
}
