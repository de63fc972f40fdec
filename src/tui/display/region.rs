//! What stands on the terminal from the first row that may have to be drawn again: mostly the live region;
//! after a resize also what is left of older pictures of it, and what was printed below those. Pure.

use super::rows::{Of, Place, Rows};
use crate::tui::view::Live;
use ratatui::text::Line;

/// Rows that may have to be drawn again, so that what is above them can go.
const ROWS_MAX: usize = 100;

/// The rows that may have to be drawn again.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    rows: Rows,
    cursor: Place,
    /// The printed lines that `rows` has.
    printed: Vec<Line<'static>>,
}

/// What a picture draws again, and where.
#[derive(Debug)]
pub(super) struct Redrawn {
    /// The rows up to its first one.
    pub(super) up: usize,
    /// What was printed there, to be printed again.
    pub(super) printed: Vec<Line<'static>>,
}

impl Region {
    /// The live region, and nothing else.
    pub(super) fn live_rows(&self) -> Redrawn {
        Redrawn { up: self.cursor.row - self.live_top(), printed: Vec::new() }
    }

    /// What the terminal has wrapped for so many columns.
    pub(super) fn reflow(&mut self, columns: usize) {
        (self.rows, self.cursor) = self.rows.reflowed(columns, self.cursor);
    }

    /// All that can be drawn again, if the cursor is in this row of the screen. Without one, all rows of the
    /// live region are believed to be on the screen.
    pub(super) fn all_rows(&mut self, screen_row: Option<usize>) -> Redrawn {
        let Some(screen_row) = screen_row else {
            self.leave(self.live_top());
            return Redrawn { up: self.cursor.row, printed: Vec::new() };
        };
        // So many rows are above the screen, where nothing can be drawn.
        let mut lost = self.cursor.row.saturating_sub(screen_row);
        let parts: Vec<_> = self.rows.parts().collect();
        let cut = parts[..lost].iter().rposition(|of| matches!(of, Of::Printed(_)));
        if let Some(cut) = cut {
            // A line that is partly above the screen stays as it is, and what is above it can never be
            // drawn again.
            let line = parts[cut];
            self.leave(lost + parts[lost..].iter().take_while(|of| **of == line).count());
            lost = 0;
        }
        // If the picture is drawn in the wrong place, its copy is the one that counts.
        self.rows.abandon();
        Redrawn { up: self.cursor.row - lost, printed: std::mem::take(&mut self.printed) }
    }

    /// How many lines of the live region are whole and at least in part above the screen, if the cursor is in this
    /// row of it.
    pub(super) fn live_above(&self, screen_row: usize) -> usize {
        self.rows.live_lines(self.cursor.row.saturating_sub(screen_row))
    }

    /// Leaves the first lines of the live region as they are, and all that is above them.
    pub(super) fn leave_live(&mut self, lines: usize) {
        let is_left = |of: Of| matches!(of, Of::Live(line) if line < lines);
        let last = self.rows.parts().rposition(is_left);
        if let Some(last) = last {
            self.leave(last + 1);
        }
    }

    /// Leaves the first rows as they are.
    fn leave(&mut self, rows: usize) {
        let numbers = self.rows.parts().skip(rows).filter_map(|of| match of {
            Of::Printed(number) => Some(number),
            Of::Leftover | Of::Live(_) => None,
        });
        let first = numbers.min().unwrap_or(self.printed.len());
        self.printed.drain(..first);
        self.rows = self.rows.after(rows, first);
        self.cursor.row = self.cursor.row.saturating_sub(rows);
    }

    /// A picture was drawn that began so many rows above the cursor: it printed these lines, and `live` under
    /// them.
    pub(super) fn draw(
        &mut self,
        up: usize,
        printed: &[Line<'static>],
        live: &Live,
        columns: usize,
    ) {
        self.rows = self.rows.before(self.cursor.row.saturating_sub(up));
        for line in printed {
            self.rows.push_wrapped(line, columns, Of::Printed(self.printed.len()));
            self.printed.push(line.clone());
        }
        let (row, column) = (self.rows.len() + live.row, live.column);
        self.cursor = Place { row, column: column.min(columns.saturating_sub(1)) };
        for (number, line) in live.lines.iter().enumerate() {
            self.rows.push_cut(line, columns, Of::Live(number));
        }
    }

    /// A picture that began so many rows above the cursor has drawn these lines of `live` over what was there.
    pub(super) fn draw_over(&mut self, up: usize, lines: &[usize], live: &Live, columns: usize) {
        let top = self.cursor.row.saturating_sub(up);
        self.rows.set_live(top, live.lines.len());
        for number in lines {
            if let Some(line) = live.lines.get(*number) {
                self.rows.replace(top + number, line, columns);
            }
        }
        let column = live.column.min(columns.saturating_sub(1));
        self.cursor = Place { row: top + live.row, column };
    }

    /// All is where it was meant to be. What was printed is left for good, unless there is something above it
    /// that should still go, and may come back to the screen with it.
    pub(super) fn settle(&mut self) {
        let leftover = self.rows.parts().rposition(|of| of == Of::Leftover);
        let below = leftover.map_or(0, |at| self.rows.len() - at);
        if leftover.is_none() || below > ROWS_MAX {
            self.leave(self.live_top());
        }
    }

    fn live_top(&self) -> usize {
        self.rows.parts().position(|of| matches!(of, Of::Live(_))).unwrap_or(self.rows.len())
    }
}
