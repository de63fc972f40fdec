//! The whole screen, of which the rows that change are drawn.

use super::{BEGIN, END, ERASE_LINE, WRAP_OFF, WRAP_ON, push_line};
use crate::tui::model::Size;
use crate::tui::text::Line;
use std::fmt::Write;

/// All rows of the alternate screen.
#[derive(Debug, Default)]
pub(crate) struct FullScreen {
    drawn: Vec<Line>,
    cursor: (usize, usize),
    is_stale: bool,
}

impl FullScreen {
    /// The bytes that draw these rows, with the cursor there; empty if nothing changes.
    pub(crate) fn picture(
        &mut self,
        rows: Vec<Line>,
        cursor: (usize, usize),
        size: Size,
    ) -> String {
        let is_same = rows == self.drawn && cursor == self.cursor && !self.is_stale;
        if is_same {
            return String::new();
        }
        let mut out = format!("{BEGIN}{WRAP_OFF}");
        if std::mem::take(&mut self.is_stale) {
            out.push_str("\x1b[2J");
            self.drawn.clear();
        }
        let none = Line::default();
        for number in 0..rows.len().max(self.drawn.len()).min(size.rows) {
            let line = rows.get(number).unwrap_or(&none);
            if self.drawn.get(number) != Some(line) {
                // Writing to a String can't fail.
                write!(out, "\x1b[{};1H{ERASE_LINE}", number + 1).unwrap_or(());
                push_line(&mut out, line);
            }
        }
        write!(out, "{WRAP_ON}\x1b[{};{}H{END}", cursor.0 + 1, cursor.1 + 1).unwrap_or(());
        self.drawn = rows;
        self.cursor = cursor;
        out
    }

    /// The screen of the terminal differs from the last picture.
    pub(crate) fn forget(&mut self) {
        self.is_stale = true;
    }
}
