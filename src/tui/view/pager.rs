//! The printed text of the full screen: lines are kept per piece, so that drawing looks only at the rows
//! that are seen, however long the conversation is.

use super::pieces::Printer;
use crate::tui::model::{Piece, Scroll};
use ratatui::text::Line;

/// All pieces, and which of their lines are on the screen.
#[derive(Debug)]
pub(crate) struct Pager {
    start: Printer,
    printer: Printer,
    pieces: Vec<Piece>,
    lines: Vec<Line<'static>>,
    columns: usize,
    is_unfolded: bool,
    /// The first line on the screen; `None`: the end is followed.
    top: Option<usize>,
    /// Rows that were shown last.
    rows: usize,
}

impl Pager {
    pub(crate) fn new(printer: Printer, columns: usize) -> Self {
        Self {
            start: printer,
            printer,
            pieces: Vec::new(),
            lines: Vec::new(),
            columns,
            is_unfolded: false,
            top: None,
            rows: 1,
        }
    }

    pub(crate) fn printer(&self) -> &Printer {
        &self.printer
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        let lines = self.printer.lines(&piece, self.columns, self.is_unfolded);
        self.lines.extend(lines);
        self.pieces.push(piece);
    }

    /// Draws everything again, for another width or folding. The first piece on the screen stays there.
    pub(crate) fn lay_out(&mut self, columns: usize, is_unfolded: bool) {
        if (self.columns, self.is_unfolded) == (columns, is_unfolded) {
            return;
        }
        let place = self.top.map(|top| top as f64 / self.lines.len().max(1) as f64);
        (self.columns, self.is_unfolded) = (columns, is_unfolded);
        self.printer = self.start;
        self.lines.clear();
        for piece in &self.pieces {
            self.lines.extend(self.printer.lines(piece, columns, is_unfolded));
        }
        self.top = place.map(|place| (place * self.lines.len() as f64) as usize);
    }

    pub(crate) fn scroll(&mut self, scroll: Scroll) {
        let page = self.rows.saturating_sub(1).max(1);
        let last = self.lines.len().saturating_sub(self.rows);
        let top = self.top.unwrap_or(last);
        self.top = match scroll {
            Scroll::PageUp => Some(top.saturating_sub(page)),
            Scroll::PageDown => Some(top + page).filter(|top| *top < last),
            Scroll::End => None,
        };
    }

    /// Whether the person looks at an earlier part.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.top.is_some()
    }

    /// The lines for so many rows.
    pub(crate) fn shown(&mut self, rows: usize) -> &[Line<'static>] {
        self.rows = rows.max(1);
        let last = self.lines.len().saturating_sub(rows);
        let top = self.top.map_or(last, |top| top.min(last));
        &self.lines[top..(top + rows).min(self.lines.len())]
    }
}
