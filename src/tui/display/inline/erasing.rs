//! Erases the last picture after a resize, before the next one is drawn: the cursor is then where that begins,
//! and stays there if the terminal is resized again.

use super::super::{ASK, ERASE_BELOW, go_up};
use super::{Inline, OpenQuery};
use crate::tui::model::Size;
use crate::tui::view::{Above, Live};
use std::time::Instant;

/// The rows to erase: so many above the cursor, which is expected in this row of a screen of this size.
#[derive(Debug)]
pub(super) struct Erasure {
    pub(super) up: usize,
    pub(super) row: usize,
    pub(super) size: Size,
    /// The first lines of the live region, which count as printed if they were pushed above the screen.
    pub(super) open: usize,
}

impl Inline {
    /// The rows of the live region that the terminal has scrolled off its screen, where they can't be erased.
    pub(crate) fn above(&mut self, columns: usize) -> Above {
        let pushed = std::mem::take(&mut self.pushed);
        let (lines, whole) = match self.screen_row {
            Some(row) if self.is_stale && pushed == 0 => {
                if self.reflows {
                    self.region.reflow(columns);
                }
                (self.region.live_above(row), self.region.whole_lines())
            }
            Some(_) | None => (pushed, pushed),
        };
        let [lines, whole] = [lines, whole].map(|lines| lines.saturating_sub(self.left));
        Above { lines, whole }
    }

    /// The first lines of the live region are printed as they are.
    pub(crate) fn leave_lines(&mut self, lines: usize) {
        self.left += lines;
        self.region.leave_live(self.left);
    }

    /// The bytes that erase what was drawn on a terminal of this size, and ask for its place before that. The first
    /// `open` lines of the live region that were not left are of an open block.
    pub(crate) fn erasure(&mut self, size: Size, open: usize, now: Instant) -> String {
        let mut out = ASK.to_owned();
        let Some(row) = self.screen_row.take() else { return out };
        self.region.reflow(size.columns);
        let up = self.region.reach(row);
        go_up(&mut out, up);
        out.push('\r');
        out.push_str(ERASE_BELOW);
        self.query = OpenQuery::Erased(Erasure { up, row, size, open: self.left + open });
        self.cursor_reports.asked(now);
        out
    }

    /// The last picture was erased when the cursor was in this row of a screen of this size.
    pub(super) fn erased(&mut self, erasure: &Erasure, row: usize, size: Size) {
        self.region.reflow(size.columns);
        let up = erasure.up.min(row);
        self.pushed = self.region.live_above(row).min(erasure.open);
        self.region.erase(up, self.pushed, &self.drawn);
        self.drawn = Live::default();
        if self.settles.is_none() {
            self.screen_row = Some(row - up);
            self.is_erased = self.region.reach(row - up) == 0;
        }
    }
}
