//! A model of the rows of a terminal, which rewraps the lines on its screen when its width changes. Pure.

use crate::tui::text::{Line, cut, is_sent, width};
use unicode_segmentation::UnicodeSegmentation;

/// Rows one below the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    text: String,
    /// The terminal has wrapped the line: it continues in the next row.
    is_wrapped: bool,
    /// The terminal had no room for the end of the line.
    is_cut: bool,
    of: Of,
}

/// The origin of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The rest of an earlier picture.
    Leftover,
    /// The printed line of this number.
    Printed(usize),
    /// The line of this number in the live region.
    Live(usize),
}

/// A row and a column, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The origin of each row, from the first one on.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = Of> + ExactSizeIterator {
        self.rows.iter().map(|row| row.of)
    }

    /// How many lines of the live region have a row among the first `count`, up to one that was cut.
    pub(super) fn live_lines(&self, count: usize) -> usize {
        let mut lines = 0;
        for row in self.rows.iter().take(count) {
            match row.of {
                Of::Live(line) if row.is_cut => return line,
                Of::Live(line) => lines = line + 1,
                Of::Leftover | Of::Printed(_) => {}
            }
        }
        lines
    }

    /// How many lines end before the one that this row is part of. At any width, as many rows at least are above
    /// this row.
    pub(super) fn lines_before(&self, row: usize) -> usize {
        self.rows[..row.min(self.rows.len())].iter().filter(|row| !row.is_wrapped).count()
    }

    /// The first row of the line that this row is part of.
    pub(super) fn line_start(&self, row: usize) -> usize {
        let mut before = self.rows[..row.min(self.rows.len())].iter();
        before.rposition(|row| !row.is_wrapped).map_or(0, |last| last + 1)
    }

    /// The text of the rows of a part.
    pub(super) fn text_of(&self, of: Of) -> String {
        let rows = self.rows.iter().filter(|row| row.of == of);
        rows.map(|row| row.text.as_str()).collect()
    }

    /// The text of these rows.
    pub(super) fn text_between(&self, from: usize, to: usize) -> String {
        self.rows[from..to].iter().map(|row| row.text.as_str()).collect()
    }

    /// The first line of the live region that was cut, or the number of lines that it has.
    pub(super) fn whole_lines(&self) -> usize {
        let mut lines = self.rows.iter().filter_map(|row| match row.of {
            Of::Live(line) => Some((line, row.is_cut)),
            Of::Leftover | Of::Printed(_) => None,
        });
        let cut = lines.clone().find(|(_, is_cut)| *is_cut).map(|(line, _)| line);
        cut.or_else(|| lines.next_back().map(|(line, _)| line + 1)).unwrap_or(0)
    }

    /// Adds an empty row, which need not stay visible.
    pub(super) fn push_empty(&mut self) {
        self.push_text("", 1, false, Of::Leftover);
    }

    /// Adds a line that the terminal wraps.
    pub(super) fn push_wrapped(&mut self, line: &Line, columns: usize, of: Of) {
        self.push_text(&text(line), columns, false, of);
    }

    /// Adds a line of which the terminal shows what has room in one row.
    pub(super) fn push_cut(&mut self, line: &Line, columns: usize, of: Of) {
        self.rows.push(Row { text: String::new(), is_wrapped: false, is_cut: false, of });
        self.replace(self.rows.len() - 1, line, columns);
    }

    /// Draws a line in place of a row, as far as it has room there. It is no part of the line before it.
    pub(super) fn replace(&mut self, at: usize, line: &Line, columns: usize) {
        let (mut shown, mut used) = (String::new(), 0);
        let text = text(line);
        for grapheme in text.graphemes(true) {
            let next = used + width(grapheme);
            if next <= columns {
                shown.push_str(grapheme);
                used = next;
            }
        }
        if let Some(row) = self.rows.get_mut(at) {
            (row.is_cut, row.is_wrapped) = (shown.len() < text.len(), false);
            row.text = shown;
        }
        if let Some(before) = at.checked_sub(1).and_then(|at| self.rows.get_mut(at)) {
            before.is_wrapped = false;
        }
    }

    /// Rows, from this one on, become so many rows of the live region.
    pub(super) fn set_live(&mut self, from: usize, count: usize) {
        let of = |row: usize| row.checked_sub(from).map_or(Of::Leftover, Of::Live);
        let (is_wrapped, is_cut, of_none) = (false, false, Of::Leftover);
        let empty = Row { text: String::new(), is_wrapped, is_cut, of: of_none };
        self.rows.resize(from + count, empty);
        for (at, row) in self.rows.iter_mut().enumerate() {
            if !matches!(row.of, Of::Printed(_)) {
                row.of = of(at);
            }
        }
    }

    /// What is there is drawn again elsewhere, but for the first printed lines.
    pub(super) fn abandon(&mut self, settled: usize) {
        let is_settled = |of: Of| matches!(of, Of::Printed(number) if number < settled);
        let rows = self.rows.iter_mut().filter(|row| !is_settled(row.of));
        rows.for_each(|row| row.of = Of::Leftover);
    }

    /// The first `count` rows, of which those of the live region are left over. What is drawn after them is no
    /// part of their last line.
    pub(super) fn before(&self, count: usize) -> Self {
        let of = |row: &Row| if matches!(row.of, Of::Live(_)) { Of::Leftover } else { row.of };
        let rows = self.rows.iter().take(count);
        let mut rows: Vec<_> = rows.map(|row| Row { of: of(row), ..row.clone() }).collect();
        if let Some(last) = rows.last_mut() {
            last.is_wrapped = false;
        }
        Self { rows }
    }

    /// All but the first `count` rows. The printed line of the number `first` is number 0 there.
    pub(super) fn after(&self, count: usize, first: usize) -> Self {
        let of = |row: &Row| match row.of {
            Of::Printed(number) => Of::Printed(number - first),
            Of::Leftover | Of::Live(_) => row.of,
        };
        let rows = self.rows.iter().skip(count);
        Self { rows: rows.map(|row| Row { of: of(row), ..row.clone() }).collect() }
    }

    /// Wraps the lines into rows of so many columns; returns them and the new place of the cursor. What counts for the
    /// terminal is the character under the cursor; at the end of a line there is none, and the cursor
    /// stays at that end.
    pub(super) fn reflowed(&self, columns: usize, cursor: Place) -> (Self, Place) {
        let mut wrapped = Self::default();
        let mut place = cursor;
        let mut start = 0;
        while start < self.rows.len() {
            let length = self.rows[start..].iter().take_while(|row| row.is_wrapped).count() + 1;
            let end = (start + length).min(self.rows.len());
            let line = &self.rows[start..end];
            let first = wrapped.rows.len();
            let text: String = line.iter().map(|row| row.text.as_str()).collect();
            let is_cut = line.iter().any(|row| row.is_cut);
            wrapped.push_text(&text, columns, is_cut, line[0].of);
            if (start..end).contains(&cursor.row) {
                place = within(line, cursor.row - start, cursor.column, &wrapped.rows[first..]);
                place.row += first;
            }
            start = end;
        }
        (wrapped, place)
    }

    fn push_text(&mut self, text: &str, columns: usize, is_cut: bool, of: Of) {
        let pieces = cut(text, columns);
        let last = pieces.len() - 1;
        for (number, range) in pieces.into_iter().enumerate() {
            let text = text[range].to_owned();
            self.rows.push(Row { text, is_wrapped: number < last, is_cut, of });
        }
    }
}

/// The place in `after` of what was at `column` in the row of this number of the same line.
fn within(before: &[Row], row: usize, column: usize, after: &[Row]) -> Place {
    let end = |rows: &[Row]| rows.last().map_or(0, |row| width(&row.text));
    let last = Place { row: after.len().saturating_sub(1), column: end(after) };
    if column >= width(&before[row].text) {
        return last;
    }
    let mut offset: usize = before[..row].iter().map(|row| width(&row.text)).sum();
    offset += column;
    for (row, columns) in after.iter().map(|row| width(&row.text)).enumerate() {
        if offset < columns {
            return Place { row, column: offset };
        }
        offset -= columns;
    }
    last
}

/// What is written of a line.
fn text(line: &Line) -> String {
    let chars = line.spans.iter().flat_map(|span| span.content.chars());
    chars.filter(|char| is_sent(*char)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(row: usize, column: usize) -> Place {
        Place { row, column }
    }

    #[test]
    fn rows_are_wrapped_and_joined_as_a_terminal_does() {
        let mut rows = Rows::default();
        rows.push_wrapped(&Line::raw("abcdefgh"), 20, Of::Printed(0));
        rows.push_cut(&Line::raw("日本語x"), 6, Of::Live(0));
        let texts = |rows: &Rows| rows.rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&rows), ["abcdefgh", "日本語"]);
        let (narrow, cursor) = rows.reflowed(3, at(1, 4));
        assert_eq!(texts(&narrow), ["abc", "def", "gh", "日", "本", "語"]);
        assert_eq!(cursor, at(5, 0), "it stays with its character");
        let (wide, cursor) = narrow.reflowed(20, cursor);
        assert_eq!((wide, cursor), (rows.clone(), at(1, 4)));
        assert_eq!(rows.reflowed(3, at(0, 8)).1, at(2, 2), "at the end of its line it stays there");
        let left = narrow.before(5);
        let parts: Vec<_> = left.reflowed(20, at(0, 0)).0.parts().collect();
        assert_eq!(parts, [Of::Printed(0), Of::Leftover]);
        assert_eq!(texts(&rows.after(1, 1)), ["日本語"]);
    }
}
