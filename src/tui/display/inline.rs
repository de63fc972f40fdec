//! A live region under text that was printed. What is printed is drawn once; the live region is erased and
//! drawn again, wherever the terminal has put its rows when it was resized.
//!
//! A terminal with another width wraps its lines again, tmux up to 250 ms before it reports its size. So
//! nothing is drawn until the size is stable; then the terminal is queried for its cursor; then the last
//! picture is erased with another query. A terminal that wraps its lines leaves the cursor with its text, so
//! the cursor stays where the next picture begins, whatever size that meets. The answer says which rows were
//! erased: if the size was another one, printed lines among them are printed again.
//!
//! A picture that comes by itself, which may meet the first new size on its way, ends with the question as well. Its
//! answer says whether the picture was drawn at the width it was made for. If not, all of it is drawn again.

mod erasing;
mod questions;

pub(crate) use questions::Next;

use super::cursor_reports::CursorReports;
use super::region::{Redrawn, Region};
use super::{ASK, BEGIN, END, ERASE_BELOW, ERASE_LINE, WRAP_OFF, WRAP_ON};
use super::{go_right, go_up, push_line};
use crate::tui::model::Size;
use crate::tui::text::Line;
use crate::tui::view::Live;
use erasing::Erasure;
use questions::WARY_PICTURE_TIME;
use std::time::Instant;

/// A live region.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Whether the terminal wraps lines again when it has another width.
    reflows: bool,
    drawn: Live,
    /// The size for which it was drawn.
    size: Size,
    region: Region,
    /// The screen of the terminal differs from the last picture.
    is_stale: bool,
    /// The size has changed since the last picture, or was not heard of yet.
    is_resized: bool,
    /// The size has changed: nothing is drawn before.
    settles: Option<Instant>,
    /// Another size is expected until then.
    wary_until: Option<Instant>,
    /// The row of the cursor on the screen, reported since the size has changed.
    screen_row: Option<usize>,
    /// All that can be erased was erased since, and the cursor is where the next picture begins.
    is_erased: bool,
    /// Lines of the live region that have become printed ones since it was drawn.
    left: usize,
    /// Lines of it that were pushed above the screen before the others were erased.
    pushed: usize,
    query: OpenQuery,
    cursor_reports: CursorReports,
    /// The last report of the terminal confirmed its size.
    is_confirmed: bool,
}

/// The open query of the terminal.
#[derive(Debug)]
enum OpenQuery {
    Nothing,
    /// The place of the cursor, with the expected size.
    Place(Size),
    /// The place of the cursor before the last picture was erased.
    Erased(Erasure),
    /// Whether a picture was drawn at the width it was made for.
    Picture(Box<Before>),
}

/// The screen before a picture, and the changes of the picture.
#[derive(Debug)]
struct Before {
    region: Region,
    up: usize,
    printed: Vec<Line>,
    /// The lines of the live region that it has drawn; if none is named, it has erased all that was there.
    changed: Option<Vec<usize>>,
}

impl Inline {
    pub(crate) fn new(reflows: bool) -> Self {
        Self {
            reflows,
            drawn: Live::default(),
            size: Size { columns: 0, rows: 0 },
            region: Region::default(),
            is_stale: false,
            is_resized: false,
            settles: None,
            wary_until: None,
            screen_row: None,
            is_erased: false,
            left: 0,
            pushed: 0,
            query: OpenQuery::Nothing,
            cursor_reports: CursorReports::default(),
            is_confirmed: false,
        }
    }

    /// The bytes that print `printed` and draw `live` under it on a terminal of this size; empty if nothing
    /// changes. `is_moving` is as in [`Self::next`].
    pub(crate) fn picture(
        &mut self,
        printed: &[Line],
        live: Live,
        size: Size,
        is_moving: bool,
        now: Instant,
    ) -> String {
        if printed.is_empty() && live == self.drawn && !self.is_stale {
            self.is_confirmed = false;
            return String::new();
        }
        let asks = self.reflows && (is_moving || self.is_resized) && self.cursor_reports.may_ask();
        (self.is_erased, self.left, self.pushed) = (false, 0, 0);
        if self.is_wary(is_moving, now) {
            self.settles = Some(now + WARY_PICTURE_TIME);
        }
        (self.is_resized, self.is_confirmed) = (false, false);
        let is_new =
            !printed.is_empty() || self.is_stale || self.drawn.lines.len() > live.lines.len();
        let Redrawn { up, printed: mut lines } = self.redrawn(size.columns);
        lines.extend_from_slice(printed);
        let mut out = BEGIN.to_owned();
        go_up(&mut out, up);
        out.push('\r');
        if is_new {
            out.push_str(ERASE_BELOW);
            self.drawn = Live::default();
        }
        for line in &lines {
            // The terminal may wrap these: a long line of code is one line when it is copied.
            push_line(&mut out, line);
            out.push_str("\r\n");
        }
        let changed = self.changed(&live);
        self.push_live(&live, &changed, &mut out);
        let region = asks.then(|| self.region.clone());
        self.region.draw(up, &lines, &live, size.columns);
        (self.drawn, self.size) = (live, size);
        match region {
            Some(region) => {
                let changed = (!is_new).then_some(changed);
                let before = Before { region, up, printed: lines, changed };
                self.query = OpenQuery::Picture(Box::new(before));
                self.cursor_reports.asked(now);
                out.push_str(ASK);
            }
            None => self.region.settle(),
        }
        out.push_str(END);
        out
    }

    /// The rows that the next picture redraws.
    fn redrawn(&mut self, columns: usize) -> Redrawn {
        if !std::mem::take(&mut self.is_stale) {
            return self.region.live_rows();
        }
        if self.reflows {
            self.region.reflow(columns);
        }
        self.region.all_rows(self.screen_row.take(), self.cursor_reports.have_come())
    }

    /// The lines of the live region that are not on the terminal.
    fn changed(&self, live: &Live) -> Vec<usize> {
        let lines = live.lines.iter().enumerate();
        let lines = lines.filter(|(number, line)| self.drawn.lines.get(*number) != Some(*line));
        lines.map(|(number, _)| number).collect()
    }

    /// Draws these lines of the live region, and puts the cursor into it.
    fn push_live(&self, live: &Live, changed: &[usize], out: &mut String) {
        out.push_str(WRAP_OFF);
        for (number, line) in live.lines.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            if changed.contains(&number) {
                out.push_str(ERASE_LINE);
                push_line(out, line);
            }
        }
        out.push_str(WRAP_ON);
        go_up(out, live.lines.len().saturating_sub(1 + live.row));
        out.push('\r');
        go_right(out, live.column);
    }

    /// The bytes that take the live region away, on a terminal of so many columns; the cursor is where it
    /// began.
    pub(crate) fn erase(&mut self, columns: usize) -> String {
        if let OpenQuery::Erased(erasure) = std::mem::replace(&mut self.query, OpenQuery::Nothing) {
            self.erased(&erasure, erasure.row, erasure.size);
        }
        let Redrawn { up, printed } = self.redrawn(columns);
        let mut out = String::new();
        go_up(&mut out, up);
        out.push('\r');
        out.push_str(ERASE_BELOW);
        for line in &printed {
            push_line(&mut out, line);
            out.push_str("\r\n");
        }
        // A reply would not be read any more.
        *self = Self { is_stale: true, ..Self::new(self.reflows) };
        out
    }

    /// The bytes that empty the screen, so that everything is drawn again at its top. What was printed goes into
    /// the scrollback, the live region does not.
    pub(crate) fn clear(&mut self, size: Size) -> String {
        // The terminal still replies to the open queries.
        let cursor_reports = std::mem::take(&mut self.cursor_reports);
        let mut out = self.erase(size.columns);
        out.push_str(&"\n".repeat(size.rows.saturating_sub(1)));
        out.push_str("\x1b[H");
        self.forget();
        self.cursor_reports = cursor_reports;
        out
    }

    /// Another program has used the terminal: the next picture begins at the cursor, and replies to earlier
    /// queries are lost. The first picture sends a query, to find out early whether the terminal replies.
    pub(crate) fn forget(&mut self) {
        *self = Self { is_stale: true, is_resized: true, ..Self::new(self.reflows) };
    }
}
