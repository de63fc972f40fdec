//! All that a screen shows: the live region alone, where what is printed goes into the scrollback, or the
//! printed text with the live region under it.

use super::live::{Live, region};
use super::one_line;
use super::pager::Pager;
use super::pieces::Printer;
use crate::tui::model::{Size, State};
use ratatui::text::Line;

/// The part of the rows, one in so many, that the open part of an answer may take under the scrollback: a
/// terminal that gets smaller pushes rows out of the screen, where they can't be drawn again.
const GROWING_PART: usize = 2;

/// The live region under the scrollback.
pub(crate) fn under_scrollback(state: &State, printer: &Printer) -> Live {
    let Size { rows, .. } = state.size;
    // A row stays free, so that what was printed last can be seen.
    let rows_max = if rows > 3 { rows - 1 } else { rows };
    region(state, printer, rows_max, (rows / GROWING_PART).max(1))
}

/// All rows of the screen, with the cursor among them.
pub(crate) fn page(state: &State, pager: &mut Pager) -> Live {
    let Size { rows, .. } = state.size;
    // An answer that goes on is no part of an earlier one.
    let growing_max = if pager.is_scrolled() { 0 } else { rows };
    let live = region(state, pager.printer(), rows, growing_max);
    let above = rows.saturating_sub(live.lines.len());
    let mut lines = pager.shown(above).to_vec();
    let free = above.saturating_sub(lines.len());
    let row = lines.len() + live.row;
    lines.extend(live.lines);
    if pager.is_scrolled()
        && rows > 1
        && let Some(status) = lines.last_mut()
    {
        let text = "an earlier part is shown; Ctrl-End goes to the end";
        *status = Line::raw(one_line(text, state.size.columns));
    }
    lines.extend(vec![Line::default(); free]);
    Live { lines, row, column: live.column }
}
