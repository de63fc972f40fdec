//! A live region under text that was printed. What is printed is drawn once; the live region is erased and
//! drawn again, wherever the terminal has put its rows when it was resized.
//!
//! A terminal with another width wraps its lines again, tmux up to 250 ms before it reports its size. So
//! pictures wait until the size stays as it is; then the terminal is asked where its cursor is; and a picture
//! that comes by itself, which may meet a new size on its way, ends with the same question. Its answer says
//! whether the picture was drawn at the width it was made for. If not, all of it is drawn again.

use super::answers::Answers;
use super::region::{Redrawn, Region};
use super::{ASK, BEGIN, END, ERASE_BELOW, ERASE_LINE, WRAP_OFF, WRAP_ON};
use super::{go_right, go_up, push_line};
use crate::tui::model::Size;
use crate::tui::view::Live;
use ratatui::text::Line;
use std::time::{Duration, Instant};

/// How long the size of the terminal must stay as it is before something is drawn.
const SETTLED_TIME: Duration = Duration::from_millis(300);

/// A live region.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Whether the terminal wraps lines again when it has another width.
    reflows: bool,
    drawn: Live,
    /// The size for which it was drawn.
    size: Size,
    region: Region,
    /// What is on the terminal is not what was drawn.
    is_stale: bool,
    /// The size has changed since the last picture, or was not heard of yet.
    is_resized: bool,
    /// The size has changed: nothing is drawn before.
    settles: Option<Instant>,
    /// The row of the cursor on the screen, reported since the size has changed.
    screen_row: Option<usize>,
    asked: Asked,
    answers: Answers,
    /// The terminal has just reported the size that it was believed to have.
    is_confirmed: bool,
}

/// What can be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Draw.
    Picture,
    /// Write this, and wait for an answer.
    Ask(&'static str),
    /// Nothing before this time, unless an answer comes.
    Wait(Instant),
}

/// What the terminal was asked for.
#[derive(Debug)]
enum Asked {
    Nothing,
    /// Where the cursor is, with the size that it is believed to have.
    Place(Size),
    /// Whether a picture was drawn at the width it was made for.
    Picture(Box<Before>),
}

/// What was on the terminal before a picture, and what the picture did.
#[derive(Debug)]
struct Before {
    region: Region,
    up: usize,
    printed: Vec<Line<'static>>,
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
            screen_row: None,
            asked: Asked::Nothing,
            answers: Answers::default(),
            is_confirmed: false,
        }
    }

    /// What can be done on a terminal of this size. `is_moving`: pictures come by themselves, so the size may be
    /// another one when this one arrives.
    pub(crate) fn next(&mut self, size: Size, is_moving: bool, now: Instant) -> Next {
        let matters = matches!(self.asked, Asked::Place(_));
        if !matches!(self.asked, Asked::Nothing) {
            if let Some(until) = self.answers.awaited(now, matters) {
                return Next::Wait(until);
            }
            self.answers.give_up();
            self.asked = Asked::Nothing;
            self.region.settle();
        }
        let matters = match self.settles {
            Some(until) if until > now => return Next::Wait(until),
            Some(_) => true,
            // Terminals report a new size late: this question finds it before a picture does.
            None => is_moving && self.answers.is_known() && !self.is_confirmed,
        };
        if matters
            && !self.answers.may_ask()
            && let Some(until) = self.answers.awaited(now, true)
        {
            // The answer to a question that does not matter any more comes first.
            return Next::Wait(until);
        }
        self.settles = None;
        if matters && self.reflows && self.answers.may_ask() {
            self.asked = Asked::Place(size);
            self.answers.asked(now);
            return Next::Ask(ASK);
        }
        Next::Picture
    }

    /// Whether the terminal has answered in time when it was last asked.
    pub(crate) fn has_answers(&self) -> bool {
        self.answers.is_known()
    }

    /// How many lines of the live region the terminal has pushed above its screen, where they can't be erased.
    pub(crate) fn lines_above(&mut self, columns: usize) -> usize {
        match self.screen_row {
            Some(row) if self.is_stale => {
                if self.reflows {
                    self.region.reflow(columns);
                }
                self.region.live_above(row)
            }
            Some(_) | None => 0,
        }
    }

    /// The first lines of the live region are printed as they are.
    pub(crate) fn leave_lines(&mut self, lines: usize) {
        self.region.leave_live(lines);
    }

    /// The bytes that print `printed` and draw `live` under it on a terminal of this size; empty if nothing
    /// changes. `is_moving` is as in [`Self::next`].
    pub(crate) fn picture(
        &mut self,
        printed: &[Line<'static>],
        live: Live,
        size: Size,
        is_moving: bool,
        now: Instant,
    ) -> String {
        if printed.is_empty() && live == self.drawn && !self.is_stale {
            self.is_confirmed = false;
            return String::new();
        }
        let asks = self.reflows && (is_moving || self.is_resized) && self.answers.may_ask();
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
                self.asked = Asked::Picture(Box::new(before));
                self.answers.asked(now);
                out.push_str(ASK);
            }
            None => self.region.settle(),
        }
        out.push_str(END);
        out
    }

    /// What the next picture draws again.
    fn redrawn(&mut self, columns: usize) -> Redrawn {
        if !std::mem::take(&mut self.is_stale) {
            return self.region.live_rows();
        }
        if self.reflows {
            self.region.reflow(columns);
        }
        self.region.all_rows(self.screen_row.take())
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

    /// The terminal has another size, or may have: it may have wrapped its lines.
    pub(crate) fn resized(&mut self, now: Instant) {
        self.is_stale = true;
        self.is_resized = true;
        self.screen_row = None;
        self.is_confirmed = false;
        self.settles = Some(now + SETTLED_TIME);
        if matches!(self.asked, Asked::Place(_)) {
            // The answer is about the size before.
            self.asked = Asked::Nothing;
        }
    }

    /// A place that the terminal reports, counted from 1. Gives its size if that is not as it was believed
    /// to be.
    pub(crate) fn reported(&mut self, row: usize, column: usize, now: Instant) -> Option<Size> {
        let answer = self.answers.take(row, column)?;
        let is_as_believed = match std::mem::replace(&mut self.asked, Asked::Nothing) {
            // It comes late.
            Asked::Nothing => return None,
            Asked::Place(size) => {
                self.screen_row = Some(answer.row);
                self.is_confirmed = size == answer.size;
                self.is_confirmed
            }
            Asked::Picture(before) => {
                if self.reflows && answer.size.columns != self.size.columns {
                    self.missed(*before, answer.size.columns);
                } else {
                    self.region.settle();
                }
                answer.size == self.size
            }
        };
        if is_as_believed {
            return None;
        }
        self.resized(now);
        Some(answer.size)
    }

    /// The last picture was drawn on a terminal of so many columns, which had wrapped what was there before:
    /// it began too far down.
    fn missed(&mut self, before: Before, columns: usize) {
        let Before { mut region, up, printed, changed } = before;
        region.reflow(columns);
        match changed {
            Some(lines) => region.draw_over(up, &lines, &self.drawn, columns),
            None => region.draw(up, &printed, &self.drawn, columns),
        }
        self.region = region;
    }

    /// Until when an answer may come, if one is on its way.
    pub(crate) fn answers_until(&self, now: Instant) -> Option<Instant> {
        self.answers.owed(now)
    }

    /// The bytes that take the live region away, on a terminal of so many columns; the cursor is where it
    /// began.
    pub(crate) fn erase(&mut self, columns: usize) -> String {
        let Redrawn { up, printed } = self.redrawn(columns);
        let mut out = String::new();
        go_up(&mut out, up);
        out.push('\r');
        out.push_str(ERASE_BELOW);
        for line in &printed {
            push_line(&mut out, line);
            out.push_str("\r\n");
        }
        // Nobody will be there to read an answer.
        *self = Self { is_stale: true, ..Self::new(self.reflows) };
        out
    }

    /// The bytes that empty the screen, so that everything is drawn again at its top. What was printed goes into
    /// the scrollback, the live region does not.
    pub(crate) fn clear(&mut self, size: Size) -> String {
        // The terminal still answers the questions that it was asked.
        let answers = std::mem::take(&mut self.answers);
        let mut out = self.erase(size.columns);
        out.push_str(&"\n".repeat(size.rows.saturating_sub(1)));
        out.push_str("\x1b[H");
        self.forget();
        self.answers = answers;
        out
    }

    /// The terminal was somebody else's: the next picture begins where the cursor is. Answers to earlier
    /// questions are lost. The first picture asks, so that it is known early whether the terminal answers.
    pub(crate) fn forget(&mut self) {
        *self = Self { is_stale: true, is_resized: true, ..Self::new(self.reflows) };
    }
}
