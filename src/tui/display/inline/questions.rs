//! Decides when the terminal is queried for its cursor, and applies its replies.

use super::super::ASK;
use super::{Before, Inline, OpenQuery};
use crate::tui::model::Size;
use std::time::{Duration, Instant};

/// How long the size of the terminal must stay as it is before something is drawn.
const SETTLED_TIME: Duration = Duration::from_millis(300);

/// How long after a new size another one is expected: a person drags the corner of a window. Until then, each
/// picture that comes by itself is drawn as if the size had changed.
const WARY_TIME: Duration = Duration::from_secs(2);

/// Time between two such pictures.
pub(super) const WARY_PICTURE_TIME: Duration = Duration::from_millis(200);

/// The next step of drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Draw.
    Picture,
    /// Write this query, and wait for the reply.
    Ask(&'static str),
    /// Erase the last picture, and wait for the reply.
    Erase,
    /// Nothing before this time, unless a reply arrives.
    Wait(Instant),
}

impl Inline {
    /// The next step on a terminal of this size. `is_moving`: the picture prints something or comes by itself, so
    /// that nothing may be lost or doubled if the size has changed when it arrives.
    pub(crate) fn next(&mut self, size: Size, is_moving: bool, now: Instant) -> Next {
        if let Some(until) = self.awaited(now) {
            return Next::Wait(until);
        }
        let matters = match self.settles {
            Some(until) if until > now => return Next::Wait(until),
            Some(_) => true,
            None if self.is_stale && self.screen_row.is_some() => {
                let is_done =
                    self.is_erased || self.region.is_empty() || !self.cursor_reports.may_ask();
                return if is_done { Next::Picture } else { Next::Erase };
            }
            // Terminals report a new size late: the query finds it before a picture does.
            None => is_moving && self.cursor_reports.is_known() && !self.is_confirmed,
        };
        if matters
            && !self.cursor_reports.may_ask()
            && let Some(until) = self.cursor_reports.awaited(now, true)
        {
            // The reply to an obsolete query arrives first.
            return Next::Wait(until);
        }
        // This picture may meet another size.
        self.is_stale |= self.is_wary(is_moving, now);
        self.settles = None;
        if matters && self.reflows && self.cursor_reports.may_ask() {
            self.query = OpenQuery::Place(size);
            self.cursor_reports.asked(now);
            return Next::Ask(ASK);
        }
        Next::Picture
    }

    /// The deadline of the reply to the last query. After it, the expected reply is assumed.
    fn awaited(&mut self, now: Instant) -> Option<Instant> {
        let matters = match &self.query {
            OpenQuery::Nothing => return None,
            OpenQuery::Place(_) | OpenQuery::Erased(_) => true,
            OpenQuery::Picture(_) => false,
        };
        let until = self.cursor_reports.awaited(now, matters);
        if until.is_some() {
            return until;
        }
        self.cursor_reports.give_up();
        match std::mem::replace(&mut self.query, OpenQuery::Nothing) {
            OpenQuery::Nothing | OpenQuery::Place(_) => {}
            OpenQuery::Erased(erasure) => self.erased(&erasure, erasure.row, erasure.size),
            OpenQuery::Picture(_) => self.region.settle(),
        }
        None
    }

    /// Whether another size is expected soon.
    pub(super) fn is_wary(&self, is_moving: bool, now: Instant) -> bool {
        let is_wary = self.wary_until.is_some_and(|until| until > now);
        is_wary && is_moving && self.reflows && self.cursor_reports.is_known()
    }

    /// Whether the terminal has replied to the last query in time.
    pub(crate) fn has_answers(&self) -> bool {
        self.cursor_reports.is_known()
    }

    /// The terminal has another size, or may have: it may have wrapped its lines.
    pub(crate) fn resized(&mut self, now: Instant) {
        self.is_stale = true;
        self.is_resized = true;
        self.screen_row = None;
        self.is_confirmed = false;
        self.is_erased = false;
        self.settles = Some(now + SETTLED_TIME);
        self.wary_until = Some(now + WARY_TIME);
        if matches!(self.query, OpenQuery::Place(_)) {
            // The reply is about the previous size.
            self.query = OpenQuery::Nothing;
        }
    }

    /// Applies a cursor report, counted from 1. Returns the size of the terminal if it is not the expected one.
    pub(crate) fn reported(&mut self, row: usize, column: usize, now: Instant) -> Option<Size> {
        let answer = self.cursor_reports.take(row, column)?;
        let is_as_believed = match std::mem::replace(&mut self.query, OpenQuery::Nothing) {
            // A late reply.
            OpenQuery::Nothing => return None,
            OpenQuery::Place(size) => {
                self.screen_row = Some(answer.row);
                self.is_confirmed = size == answer.size;
                self.is_confirmed
            }
            OpenQuery::Erased(erasure) => {
                self.erased(&erasure, answer.row, answer.size);
                erasure.size == answer.size
            }
            OpenQuery::Picture(before) => {
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

    /// The deadline until which a reply to an open query may arrive.
    pub(crate) fn answers_until(&self, now: Instant) -> Option<Instant> {
        self.cursor_reports.owed(now)
    }
}
