//! The content of the terminal from the first known row on: printed lines, then the rows
//! that may have to be drawn again. Those are mostly the live region; after a resize also what is left of older
//! pictures of it, and what was printed below those. Pure.

use super::rows::{Of, Place, Rows};
use crate::tui::text::{Line, Span, is_sent};
use crate::tui::view::Live;

/// Rows that may have to be drawn again, so that what is above them can go.
const ROWS_MAX: usize = 100;

/// Rows above the live region that are known, should they be erased by mistake.
const KNOWN_ROWS_MAX: usize = 100;

/// The rows that are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    rows: Rows,
    cursor: Place,
    /// The printed lines that `rows` has.
    printed: Vec<Line>,
    /// So many of them are where they were meant to be.
    settled: usize,
    /// Printed lines that were erased, in part or as a whole; they come after those of `printed`.
    erased: Vec<Line>,
}

/// The rows that a picture redraws, and their place.
#[derive(Debug)]
pub(super) struct Redrawn {
    /// The rows up to its first one.
    pub(super) up: usize,
    /// The text that was printed there, to be printed again.
    pub(super) printed: Vec<Line>,
}

impl Region {
    /// The live region, and nothing else.
    pub(super) fn live_rows(&self) -> Redrawn {
        Redrawn { up: self.cursor.row - self.live_top(), printed: Vec::new() }
    }

    /// Whether nothing has to be erased before something is drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// What the terminal has wrapped for so many columns.
    pub(super) fn reflow(&mut self, columns: usize) {
        (self.rows, self.cursor) = self.rows.reflowed(columns, self.cursor);
    }

    /// How many rows up the rows begin that are to be erased, if the cursor is in this row of the screen. No more
    /// than there are known rows above the cursor at any width: what is erased by mistake is known.
    pub(super) fn reach(&mut self, screen_row: usize) -> usize {
        // So many rows are above the screen, where nothing can be drawn.
        let mut lost = self.cursor.row.saturating_sub(screen_row);
        let parts: Vec<_> = self.rows.parts().collect();
        let is_again = |of: &Of| matches!(of, Of::Printed(number) if *number >= self.settled);
        let cut = parts[..lost].iter().rposition(is_again);
        if let Some(cut) = cut {
            // A line that is partly above the screen stays as it is, and what is above it can never be
            // drawn again.
            let line = parts[cut];
            let rows = lost + parts[lost..].iter().take_while(|of| **of == line).count();
            self.complete(line);
            self.leave(rows);
            lost = 0;
        }
        let rows = self.cursor.row.saturating_sub(lost.max(self.top()));
        rows.min(self.rows.lines_before(self.cursor.row))
    }

    /// A line stays as it is: if its end was erased, that is printed again.
    fn complete(&mut self, line: Of) {
        let Of::Printed(number) = line else { return };
        let shown = self.rows.text_of(line).chars().count();
        let Some(rest) = self.printed.get(number).map(|line| after(line, shown)) else { return };
        if rest.width() > 0 {
            self.erased.insert(0, rest);
        }
    }

    /// The terminal has erased everything from a row on that is so many rows above the cursor. Its lines are
    /// wrapped as it did that, and `above` lines of `live` were pushed above its screen before: they stay.
    pub(super) fn erase(&mut self, up: usize, above: usize, live: &Live) {
        let parts: Vec<_> = self.rows.parts().collect();
        let mut from = self.cursor.row.saturating_sub(up);
        let numbers = parts[from..].iter().filter_map(|of| match of {
            Of::Printed(number) => Some(*number),
            Of::Leftover | Of::Live(_) => None,
        });
        if let Some(first) = numbers.min() {
            self.settled = self.settled.min(first);
            let is_torn = parts[..from].contains(&Of::Printed(first));
            let gone = self.printed.split_off(first + usize::from(is_torn));
            self.erased.splice(..0, gone);
        }
        self.rows = self.rows.before(from);
        let is_above = |of: &Of| matches!(of, Of::Live(line) if *line < above);
        if let Some(last) = parts[..from].iter().rposition(is_above) {
            let line = live.lines.get(above - 1).filter(|_| parts.get(last + 1) == parts.get(last));
            let rows = parts[..=last].iter().rev().take_while(|of| **of == parts[last]).count();
            let shown = self.rows.text_between(last + 1 - rows, last + 1).chars().count();
            self.erased.extend(line.map(|line| after(line, shown)));
            self.leave(last + 1);
            from -= last + 1;
        }
        self.rows.push_empty();
        self.cursor = Place { row: from, column: 0 };
    }

    /// All that can be drawn again, if the cursor is in this row of the screen. Without one, all rows of the
    /// live region are believed to be on the screen; if the terminal `answers` otherwise, as few rows as they may
    /// have.
    pub(super) fn all_rows(&mut self, screen_row: Option<usize>, answers: bool) -> Redrawn {
        let Some(screen_row) = screen_row else {
            self.leave(self.live_top().min(self.cursor.row));
            let lines = self.rows.lines_before(self.cursor.row);
            let up = if answers { lines } else { self.cursor.row };
            return Redrawn { up, printed: std::mem::take(&mut self.erased) };
        };
        let up = self.reach(screen_row);
        let mut printed = self.printed.split_off(self.settled.min(self.printed.len()));
        printed.append(&mut self.erased);
        // If the picture is drawn in the wrong place, its copy is the one that counts.
        self.rows.abandon(self.settled);
        Redrawn { up, printed }
    }

    /// How many lines of the live region are whole and at least in part above the screen, if the cursor is in this
    /// row of it.
    pub(super) fn live_above(&self, screen_row: usize) -> usize {
        self.rows.live_lines(self.cursor.row.saturating_sub(screen_row))
    }

    /// How many of the first lines of the live region have all of their text on the terminal.
    pub(super) fn whole_lines(&self) -> usize {
        self.rows.whole_lines()
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
        self.settled = self.settled.saturating_sub(first);
        self.rows = self.rows.after(rows, first);
        self.cursor.row = self.cursor.row.saturating_sub(rows);
    }

    /// A picture was drawn that began so many rows above the cursor: it printed these lines, and `live` under
    /// them.
    pub(super) fn draw(&mut self, up: usize, printed: &[Line], live: &Live, columns: usize) {
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
            self.leave(leftover.map_or(0, |at| at + 1));
            self.settled = self.printed.len();
            let known = self.live_top().saturating_sub(KNOWN_ROWS_MAX);
            self.leave(self.rows.line_start(known));
        }
    }

    fn live_top(&self) -> usize {
        self.rows.parts().position(|of| matches!(of, Of::Live(_))).unwrap_or(self.rows.len())
    }

    /// The first row that is to be drawn again.
    fn top(&self) -> usize {
        let is_settled = |of: Of| matches!(of, Of::Printed(number) if number < self.settled);
        self.rows.parts().position(|of| !is_settled(of)).unwrap_or(self.rows.len())
    }
}

/// A line without its first characters.
fn after(line: &Line, chars: usize) -> Line {
    let mut left = chars;
    let rest = line.spans.iter().map(|span| {
        let sent = span.content.chars().filter(|char| is_sent(*char));
        let text: String = sent.clone().skip(left).collect();
        left = left.saturating_sub(sent.count());
        Span { content: text, ..span.clone() }
    });
    Line::from(rest.collect::<Vec<_>>())
}
