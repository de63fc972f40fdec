//! The printed text of the full screen: lines are cached per piece, so that drawing looks only at the rows
//! that are seen, however long the conversation is.

use super::pieces::Printer;
use crate::tui::model::{Piece, Scroll};
use crate::tui::text::Line;
use std::ops::Range;

/// All pieces, and which of their lines are on the screen.
#[derive(Debug)]
pub(crate) struct Pager {
    start: Printer,
    printer: Printer,
    pieces: Vec<Placed>,
    lines: Vec<Line>,
    columns: usize,
    is_unfolded: bool,
    /// The first line on the screen; `None`: the end is followed.
    top: Option<usize>,
    /// Rows for lines in the last picture; none where the live region takes all of them.
    rows: usize,
}

/// A piece, and where it is.
#[derive(Debug)]
struct Placed {
    piece: Piece,
    /// Its first line.
    line: usize,
    /// The lines that were printed before it.
    before: Printer,
}

/// A line of a piece, and how many it has at some width.
#[derive(Clone, Copy, Debug)]
struct Place {
    piece: usize,
    line: usize,
    of: usize,
}

impl Pager {
    pub(crate) fn new(printer: Printer, columns: usize) -> Self {
        Self {
            start: printer.clone(),
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
        if let Piece::Dropped { prompts, .. } = piece {
            return self.drop_turns(prompts);
        }
        let (line, before) = (self.lines.len(), self.printer.clone());
        let lines = self.printer.lines(&piece, self.columns, self.is_unfolded);
        self.lines.extend(lines);
        self.pieces.push(Placed { piece, line, before });
    }

    /// Takes away the last turns, which have so many prompts. Prompts that were not printed again may be
    /// among them.
    fn drop_turns(&mut self, prompts: usize) {
        let is_prompt = |placed: &Placed| matches!(placed.piece, Piece::Prompt { .. });
        let places = self.pieces.iter().enumerate().rev().filter(|(_, placed)| is_prompt(placed));
        let Some((first, _)) = places.take(prompts).last() else { return };
        if let Some(placed) = self.pieces.drain(first..).next() {
            self.lines.truncate(placed.line);
            self.printer = placed.before;
        }
        self.top = None;
    }

    /// Draws everything again, for another width or folding. The first line on the screen stays there, as far as its
    /// piece still has it.
    pub(crate) fn lay_out(&mut self, columns: usize, is_unfolded: bool) {
        if (self.columns, self.is_unfolded) == (columns, is_unfolded) {
            return;
        }
        let place = self.top.map(|top| self.place_of(top));
        (self.columns, self.is_unfolded) = (columns, is_unfolded);
        self.printer = self.start.clone();
        self.lines.clear();
        for placed in &mut self.pieces {
            (placed.line, placed.before) = (self.lines.len(), self.printer.clone());
            self.lines.extend(self.printer.lines(&placed.piece, columns, is_unfolded));
        }
        self.top = place.map(|place| self.line_at(place));
    }

    /// Where a line is, whatever the width.
    fn place_of(&self, line: usize) -> Place {
        let piece = self.pieces.partition_point(|placed| placed.line <= line).saturating_sub(1);
        let range = self.lines_of(piece);
        Place { piece, line: line.saturating_sub(range.start), of: range.len() }
    }

    fn line_at(&self, place: Place) -> usize {
        let range = self.lines_of(place.piece);
        // To the nearest one: at the width from before it is the same line again.
        let line = (place.line * range.len() + place.of / 2) / place.of.max(1);
        range.start + line.min(range.len().saturating_sub(1))
    }

    /// The lines of the piece of this number.
    fn lines_of(&self, piece: usize) -> Range<usize> {
        let start = |number: usize| self.pieces.get(number).map_or(self.lines.len(), |it| it.line);
        start(piece)..start(piece + 1)
    }

    pub(crate) fn scroll(&mut self, scroll: Scroll) {
        let page = self.rows.saturating_sub(1).max(1);
        let last = self.lines.len().saturating_sub(self.rows.max(1));
        let top = self.top.unwrap_or(last);
        self.top = match scroll {
            // Nothing is above.
            Scroll::PageUp if last == 0 => None,
            Scroll::PageUp => Some(top.saturating_sub(page)),
            Scroll::PageDown => Some(top + page).filter(|top| *top < last),
            Scroll::End => None,
        };
    }

    /// Whether the person looks at an earlier part.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.top.is_some()
    }

    /// Whether the rows that were shown last have all from the last piece that `is_it` on; also if there is none.
    pub(crate) fn shows_from(&self, is_it: impl Fn(&Piece) -> bool) -> bool {
        let first = self.pieces.iter().rev().find(|placed| is_it(&placed.piece));
        !self.is_scrolled() && first.is_none_or(|it| self.lines.len() - it.line <= self.rows)
    }

    /// The lines for so many rows. Once these have the end, it is followed again.
    pub(crate) fn shown(&mut self, rows: usize) -> &[Line] {
        self.rows = rows;
        let last = self.lines.len().saturating_sub(rows);
        self.top.take_if(|top| *top >= last);
        let top = self.top.map_or(last, |top| top.min(last));
        &self.lines[top..(top + rows).min(self.lines.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Note;
    use crate::tui::view::Look;
    use crate::tui::{Colours, Theme, Tone};

    fn prompt(text: &str) -> Piece {
        Piece::Prompt {
            text: text.to_owned(),
            written: None,
            attachments: Vec::new(),
            is_echoed: false,
        }
    }

    fn shown(pager: &mut Pager) -> Vec<String> {
        pager.shown(20).iter().map(ToString::to_string).collect()
    }

    fn pager() -> Pager {
        let look = Look::new(Theme { tone: Tone::Dark, colours: Colours::True, has_links: false });
        Pager::new(Printer::new(look, false), 40)
    }

    #[test]
    fn what_has_room_on_the_screen_is_not_scrolled() {
        let mut pager = pager();
        pager.push(prompt("one"));
        shown(&mut pager);
        pager.scroll(Scroll::PageUp);
        assert!(!pager.is_scrolled());
    }

    /// Long texts above have more lines on a narrow screen, and so has the list itself.
    #[test]
    fn the_first_line_on_the_screen_stays_there_whatever_the_width() {
        let mut pager = pager();
        for _ in 0..12 {
            pager.push(prompt(&"words of a paragraph ".repeat(20)));
        }
        let item = |number: usize| format!("item {number}");
        pager.push(Piece::Lines((0..120).map(item).collect()));
        pager.push(prompt(&"words of a paragraph ".repeat(200)));
        let first = |pager: &mut Pager| shown(pager)[0].clone();
        shown(&mut pager);
        while !first(&mut pager).starts_with("item") {
            pager.scroll(Scroll::PageUp);
        }
        let before = first(&mut pager);
        for (columns, is_unfolded) in [(20, false), (40, false), (30, true), (13, true)] {
            pager.lay_out(columns, is_unfolded);
            assert_eq!(first(&mut pager), before, "{columns}");
        }
        // Within a piece, there and back.
        for _ in 0..7 {
            pager.scroll(Scroll::PageUp);
        }
        pager.lay_out(40, false);
        let line = pager.top;
        pager.lay_out(17, false);
        pager.lay_out(40, false);
        assert_eq!(pager.top, line);
    }

    #[test]
    fn a_larger_screen_that_has_the_end_follows_it_again() {
        let mut pager = pager();
        pager.push(Piece::Lines((0..40).map(|number| number.to_string()).collect()));
        shown(&mut pager);
        pager.scroll(Scroll::PageUp);
        shown(&mut pager);
        assert!(pager.is_scrolled());
        pager.shown(60);
        assert!(!pager.is_scrolled());
    }

    #[test]
    fn a_piece_is_shown_where_all_its_lines_are() {
        let mut pager = pager();
        pager.push(prompt("one"));
        let call = "an argument that is long ".repeat(20);
        pager.push(Piece::Note(Note::Warning, call.clone()));
        let is_call = |piece: &Piece| matches!(piece, Piece::Note(_, text) if *text == call);
        for (rows, expected) in [(0, false), (5, false), (40, true)] {
            pager.shown(rows);
            assert_eq!(pager.shows_from(is_call), expected, "{rows}");
        }
        pager.shown(0);
        assert!(pager.shows_from(|_| false), "nothing is looked for");
        pager.shown(5);
        pager.scroll(Scroll::PageUp);
        assert!(!pager.shows_from(|_| false));
    }

    #[test]
    fn dropped_turns_leave_no_line() {
        let mut pager = pager();
        pager.push(prompt("one"));
        let one = shown(&mut pager);
        pager.push(prompt("two"));
        pager.push(Piece::Note(Note::Information, "a note about two".to_owned()));
        pager.lay_out(30, true);
        pager.push(Piece::Dropped { prompts: 1, turns: 1, text: "two".to_owned() });
        assert_eq!(shown(&mut pager), one);
        pager.push(prompt("three"));
        pager.lay_out(40, true);
        assert_eq!(shown(&mut pager), ["> one", "", "> three"]);
        pager.push(Piece::Dropped { prompts: 9, turns: 9, text: String::new() });
        assert_eq!(shown(&mut pager), [""; 0]);
    }
}
