//! What the terminal reports when it is asked where the cursor is. Not every terminal answers. Pure.

use crate::tui::model::Size;
use std::time::{Duration, Instant};

/// How long the first answer is waited for. Over a slow connection it takes long.
const ANSWER_TIME: Duration = Duration::from_millis(250);

/// How long a terminal that answers may take if it has much to draw.
const LATE_ANSWER_TIME: Duration = Duration::from_secs(2);

/// The answers that are on their way.
#[derive(Debug, Default)]
pub(super) struct CursorReports {
    /// Questions without an answer.
    open: usize,
    /// The row of the cursor: the first half of an answer.
    row: Option<usize>,
    /// The terminal has answered in time when it was last asked.
    is_known: bool,
    until: Option<Instant>,
    /// It has answered before.
    answers: bool,
}

/// Where the cursor is, counted from 0, and how large the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CursorReport {
    pub(super) row: usize,
    pub(super) size: Size,
}

impl CursorReports {
    /// Whether it is of any use to ask: an answer that has not come may never come.
    pub(super) fn may_ask(&self) -> bool {
        self.open == 0
    }

    /// Whether the terminal has answered in time when it was last asked.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the terminal has ever answered.
    pub(super) fn have_come(&self) -> bool {
        self.answers
    }

    pub(super) fn asked(&mut self, now: Instant) {
        // Half of an answer that was lost would be taken for the beginning of this one.
        self.row = None;
        self.open += 1;
        // Without an answer, a picture may erase what is above the live region: a terminal that is busy is waited
        // for, as it would show nothing else in the meantime.
        self.until = Some(now + if self.answers { LATE_ANSWER_TIME } else { ANSWER_TIME });
    }

    /// Until when the answer is worth waiting for. A terminal that was never heard of is only waited for
    /// if it `matters`.
    pub(super) fn awaited(&self, now: Instant, matters: bool) -> Option<Instant> {
        self.until.filter(|until| *until > now && (matters || self.is_known))
    }

    /// Until when an answer may come, if one is on its way.
    pub(super) fn owed(&self, now: Instant) -> Option<Instant> {
        let known = self.answers.then(|| now + LATE_ANSWER_TIME);
        known.or(self.until).filter(|until| self.open > 0 && *until > now)
    }

    /// Nobody waits for the answer any more.
    pub(super) fn give_up(&mut self) {
        self.is_known = false;
        self.until = None;
    }

    /// Takes in a report; gives the answer to the last question once it is whole.
    pub(super) fn take(&mut self, row: usize, column: usize) -> Option<CursorReport> {
        let Some(cursor) = self.row.take() else {
            self.row = Some(row);
            return None;
        };
        self.open = self.open.saturating_sub(1);
        self.answers = true;
        let is_last = self.open == 0;
        is_last.then(|| {
            self.is_known = true;
            self.until = None;
            CursorReport {
                row: cursor.saturating_sub(1),
                size: Size { columns: column, rows: row },
            }
        })
    }
}
