//! Cursor position reports of the terminal (DSR 6), which is queried for its cursor and its size. Not every
//! terminal replies. Pure.

use crate::tui::model::Size;
use std::time::{Duration, Instant};

/// Timeout of the first reply, which takes long over a slow connection.
const REPLY_TIME: Duration = Duration::from_millis(250);

/// Timeout of a reply from a terminal that has replied before and may be busy drawing.
const LATE_REPLY_TIME: Duration = Duration::from_secs(2);

/// The queries that are open, and a parser of the reports that reply to them.
#[derive(Debug, Default)]
pub(super) struct CursorReports {
    /// Queries without a reply.
    open: usize,
    /// The row of the cursor: the first report of a reply.
    row: Option<usize>,
    /// The terminal has replied to the last query in time.
    is_known: bool,
    until: Option<Instant>,
    /// It has replied before.
    has_replied: bool,
}

/// The row of the cursor, from 0, and the size of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CursorReport {
    pub(super) row: usize,
    pub(super) size: Size,
}

impl CursorReports {
    /// Whether no query is open: a missing reply may never arrive.
    pub(super) fn may_ask(&self) -> bool {
        self.open == 0
    }

    /// Whether the terminal has replied to the last query in time.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the terminal has ever replied.
    pub(super) fn have_come(&self) -> bool {
        self.has_replied
    }

    pub(super) fn asked(&mut self, now: Instant) {
        // The first report of a reply whose second is lost must not be taken for that of this reply.
        self.row = None;
        self.open += 1;
        // A picture drawn without the reply may erase rows above the live region. Waiting costs nothing: a busy
        // terminal would show nothing in the meantime.
        self.until = Some(now + if self.has_replied { LATE_REPLY_TIME } else { REPLY_TIME });
    }

    /// The deadline of the reply. A terminal that has never replied is waited for only if the reply `matters`.
    pub(super) fn awaited(&self, now: Instant, matters: bool) -> Option<Instant> {
        self.until.filter(|until| *until > now && (matters || self.is_known))
    }

    /// The deadline until which a reply to an open query may arrive.
    pub(super) fn owed(&self, now: Instant) -> Option<Instant> {
        let known = self.has_replied.then(|| now + LATE_REPLY_TIME);
        known.or(self.until).filter(|until| self.open > 0 && *until > now)
    }

    /// Ends the wait for the reply.
    pub(super) fn give_up(&mut self) {
        self.is_known = false;
        self.until = None;
    }

    /// Feeds a report to the parser; returns the reply to the last query when it is complete.
    pub(super) fn take(&mut self, row: usize, column: usize) -> Option<CursorReport> {
        let Some(cursor) = self.row.take() else {
            self.row = Some(row);
            return None;
        };
        self.open = self.open.saturating_sub(1);
        self.has_replied = true;
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
