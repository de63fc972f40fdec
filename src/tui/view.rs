//! Renders a chat: printed lines, and the live region under them. Pure.

mod editor;
mod lists;
mod live;
mod look;
mod page;
mod pager;
mod pieces;

pub(crate) use live::{Above, Live};
pub(crate) use look::Look;
pub(crate) use page::{page, under_scrollback};
pub(crate) use pager::Pager;
pub(crate) use pieces::{OpenRows, Printer};

use super::model::State;
use super::text::{Line, Span, width};
use ratatui_core::style::Style;
use std::time::Duration;
use unicode_segmentation::UnicodeSegmentation;

/// A time for people.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, 0..10) => format!("{:.1} s", time.as_secs_f64()),
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// `text` in one line of at most so many columns, but of one at least.
fn one_line(text: &str, columns: usize) -> String {
    let columns = columns.max(1);
    let mut line = String::new();
    let mut used = 0;
    // Longer texts are looked at only as far as a line goes.
    for grapheme in text.graphemes(true) {
        let grapheme = if grapheme.contains(char::is_whitespace) { " " } else { grapheme };
        let next = width(grapheme);
        if used + next > columns - 1 {
            let is_last = used + next == columns && line.len() + grapheme.len() == text.len();
            line.push_str(if is_last { grapheme } else { "…" });
            return line;
        }
        used += next;
        line.push_str(grapheme);
    }
    line
}

/// Whether a picture has all of the open question, where the end of what was printed is above it.
pub(crate) fn shows_question(state: &State, printer: &Printer) -> bool {
    live::has_room_for_question(state, &printer.look)
}

/// The live region in at most `rows` rows.
#[cfg(test)]
pub(crate) fn live(state: &State, printer: &Printer, rows: usize) -> Live {
    let columns = state.size.columns;
    live::region(state, &printer.look, rows, None, |room| {
        page::growing(state, printer, columns, room)
    })
}

fn styled(text: impl Into<String>, style: Style) -> Line {
    Line::from(Span::styled(text.into(), style))
}

#[cfg(test)]
mod pictures;
#[cfg(test)]
mod tests;
