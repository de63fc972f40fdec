//! The row of the terminal that the progress line is drawn in. Each picture goes as one piece to the queue of standard
//! error, which never waits.

use crate::support::stderr;
use crate::support::terminal::CLEAR_LINE;
use rustix::process::getpgrp;
use rustix::stdio;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthChar;

/// Columns of a terminal that reports none.
const COLUMNS_UNKNOWN: u16 = 80;

/// Columns that stay free after the line. A terminal shows `^C` where the cursor is; if that went
/// on to the next row, the line's own row would no longer be the one that is cleared.
const FREE_COLUMNS: u16 = 4;

/// Columns below which the line is not drawn.
const COLUMNS_MIN: u16 = 12;

/// The states of the spinner, one after the other.
const SPINNER: [char; 29] = [
    '⠁', '⠁', '⠉', '⠙', '⠚', '⠒', '⠂', '⠂', '⠒', '⠲', '⠴', '⠤', '⠄', '⠄', '⠤', '⠠', '⠠', '⠤', '⠦',
    '⠖', '⠒', '⠐', '⠐', '⠒', '⠓', '⠋', '⠉', '⠈', '⠈',
];

/// The row while the model works.
#[derive(Debug)]
pub(super) struct Row {
    begun: Instant,
    drawn: usize,
    pub(super) message: String,
}

impl Row {
    pub(super) fn new(message: &str) -> Self {
        Self { begun: Instant::now(), drawn: 0, message: message.to_owned() }
    }

    /// Draws the next picture. The message is last: that part may be cut off on a narrow terminal.
    pub(super) fn draw(&mut self) {
        let Some(columns) = columns() else { return };
        let spinner = SPINNER[self.drawn % SPINNER.len()];
        let text = format!("{spinner} {} {}", elapsed(self.begun.elapsed()), self.message);
        stderr::picture(&format!("{CLEAR_LINE}{}", cut(&text, columns)));
        self.drawn += 1;
    }

    /// Takes the last picture away.
    pub(super) fn clear(self) {
        if columns().is_some() {
            stderr::message(CLEAR_LINE);
        }
    }
}

/// Columns for the line; `None` if it may not be drawn: the terminal is too narrow, or not this process's to draw on.
/// A shell's background job shares it with the job in the foreground.
fn columns() -> Option<usize> {
    // An error means that it is not the terminal whose jobs a shell controls.
    let is_in_foreground = tcgetpgrp(stdio::stderr()).map_or(true, |group| group == getpgrp());
    let columns = tcgetwinsize(stdio::stderr()).map_or(0, |size| size.ws_col);
    let columns = if columns == 0 { COLUMNS_UNKNOWN } else { columns };
    (is_in_foreground && columns >= COLUMNS_MIN).then(|| usize::from(columns - FREE_COLUMNS))
}

/// The beginning of `text` that has room in so many columns.
fn cut(text: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, char)| {
        width += char.width().unwrap_or(0);
        width > columns
    });
    end.map_or(text, |(end, _)| &text[..end])
}

fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds}s"),
        seconds @ 90..5_400 => format!("{}m", (seconds + 30) / 60),
        seconds => format!("{}h", (seconds + 1_800) / 3_600),
    }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let number = bytes as f64;
    match bytes {
        0..0x400 => format!("{bytes} B"),
        0x400..0x10_0000 => format!("{:.2} KiB", number / KIB),
        _ => format!("{:.2} MiB", number / KIB / KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_in_its_row() {
        assert_eq!(cut("⠁ 0s a", 6), "⠁ 0s a");
        assert_eq!(cut("⠁ 0s a", 5), "⠁ 0s ");
        assert_eq!(cut("\u{4e00}\u{4e00}", 3), "\u{4e00}");
    }

    #[test]
    fn numbers_are_short() {
        let times = [0, 89, 90, 5_399, 5_400].map(|seconds| elapsed(Duration::from_secs(seconds)));
        assert_eq!(times, ["0s", "89s", "2m", "90m", "2h"]);
        let sizes = [7, 1_536, 3 << 20].map(size);
        assert_eq!(sizes, ["7 B", "1.50 KiB", "3.00 MiB"]);
    }
}
