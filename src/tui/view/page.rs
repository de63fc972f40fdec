//! All that a screen shows: the live region alone, where what is printed goes into the scrollback, or the
//! printed text with the live region under it.

use super::live::{Live, reasoning, region};
use super::pager::Pager;
use super::pieces::{OpenRows, Printer};
use crate::tui::markdown::{Block, render};
use crate::tui::model::{Size, State};
use crate::tui::text::Line;

/// The part of the rows, one in so many, that the open part of an answer may take under the scrollback: a
/// terminal that gets smaller pushes rows out of the screen, where they can't be drawn again.
const GROWING_PART: usize = 2;

/// The live region under the scrollback. Lines of an open block that do not change any more are added to
/// `printed`, which has at most so many lines then, but for those of one row of a table.
pub(crate) fn under_scrollback(
    state: &State,
    printer: &mut Printer,
    printed: &mut Vec<Line>,
    printed_max: usize,
) -> Live {
    let Size { columns, rows } = state.size;
    // A row stays free, so that the last printed line can be seen.
    let rows_max = if rows > 3 { rows - 1 } else { rows };
    let look = printer.look;
    region(state, &look, rows_max, None, |room| {
        let live = room.min((rows / GROWING_PART).max(1));
        let Some(blocks) = open_blocks(state) else {
            printer.close();
            return last(reasoning(state, &look, columns), live);
        };
        // The text before the open blocks is printed first.
        let has_room = !state.has_finished();
        let printed_max = if has_room { printed_max.saturating_sub(printed.len()) } else { 0 };
        let live = if has_room { live } else { 0 };
        let (settled, open) = printer.open(&blocks, columns, OpenRows { printed_max, live });
        printed.extend(settled);
        open
    })
}

fn open_blocks(state: &State) -> Option<Vec<Block>> {
    let answer = state.run.as_ref()?.text.as_ref()?;
    Some(answer.markdown.open())
}

/// The open part of the answer, or the reasoning, in at most so many rows.
pub(super) fn growing(state: &State, printer: &Printer, columns: usize, rows: usize) -> Vec<Line> {
    let Some(blocks) = open_blocks(state) else {
        return last(reasoning(state, &printer.look, columns), rows);
    };
    let mut lines = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let has_gap = number == 0 && printer.has_gap_before_open(block.gap);
        lines.extend(has_gap.then(Line::default));
        lines.extend(render(block, columns, &printer.look.theme));
    }
    last(lines, rows)
}

fn last(mut lines: Vec<Line>, rows: usize) -> Vec<Line> {
    lines.drain(..lines.len().saturating_sub(rows));
    lines
}

/// All rows of the screen, with the cursor among them.
pub(crate) fn page(state: &State, pager: &mut Pager) -> Live {
    let Size { columns, rows } = state.size;
    // A streaming answer is never merged into an earlier one.
    let growing_max = if pager.is_scrolled() { 0 } else { rows };
    let printer = pager.printer();
    let notice = "an earlier part is shown; Ctrl-End goes to the end";
    let notice = Some(notice).filter(|_| pager.is_scrolled());
    let live = region(state, &printer.look, rows, notice, |room| {
        growing(state, printer, columns, room.min(growing_max))
    });
    let above = rows.saturating_sub(live.lines.len());
    let mut lines = pager.shown(above).to_vec();
    let free = above.saturating_sub(lines.len());
    let row = lines.len() + live.row;
    lines.extend(live.lines);
    lines.extend(vec![Line::default(); free]);
    Live { lines, row, column: live.column }
}
