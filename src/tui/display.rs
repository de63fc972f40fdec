//! Lines as bytes for a terminal (ECMA-48): inline, where what is printed becomes part of the scrollback
//! and only the live region is drawn again, and on the full screen. Pure.

use super::model::Size;
use super::view::Live;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use std::fmt::Write;

/// One picture: the terminal shows it at once (synchronized output), or ignores these two.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// A line that is wider than the terminal believes must not push the others away.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// The line of the cursor and all below it. tmux copies the screen into its scrollback if the screen is
/// erased from its first cell on, so what is below is erased from the next line.
const ERASE_BELOW: &str = "\x1b[2K\x1b7\x1b[B\x1b[J\x1b8";
const ERASE_LINE: &str = "\x1b[2K";

/// A live region under text that was printed.
#[derive(Debug, Default)]
pub(crate) struct Inline {
    drawn: Live,
    /// Whether the terminal wraps lines again when it gets narrower.
    reflows: bool,
    /// Rows between the top of the live region and the cursor.
    rows_above: usize,
    /// What is on the terminal is not what was drawn.
    is_stale: bool,
}

impl Inline {
    pub(crate) fn new(reflows: bool) -> Self {
        Self { reflows, ..Self::default() }
    }

    /// The bytes that print `printed` and draw `live` under it; empty if nothing changes.
    pub(crate) fn picture(&mut self, printed: &[Line<'_>], live: Live) -> String {
        if printed.is_empty() && live == self.drawn && !self.is_stale {
            return String::new();
        }
        let mut out = BEGIN.to_owned();
        self.go_to_top(&mut out);
        let is_new =
            !printed.is_empty() || self.is_stale || self.drawn.lines.len() > live.lines.len();
        if is_new {
            out.push_str(ERASE_BELOW);
            self.drawn = Live::default();
        }
        // The terminal may wrap these: a long line of code is one line when it is copied.
        for line in printed {
            push_line(&mut out, line);
            out.push_str("\r\n");
        }
        out.push_str(WRAP_OFF);
        for (number, line) in live.lines.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            if self.drawn.lines.get(number) != Some(line) {
                out.push_str(ERASE_LINE);
                push_line(&mut out, line);
            }
        }
        out.push_str(WRAP_ON);
        go_up(&mut out, live.lines.len().saturating_sub(1 + live.row));
        out.push('\r');
        go_right(&mut out, live.column);
        out.push_str(END);
        self.rows_above = live.row;
        self.drawn = live;
        self.is_stale = false;
        out
    }

    /// The terminal has another width: it may have wrapped the lines of the live region.
    pub(crate) fn resized(&mut self, columns: usize) {
        // A wider terminal puts together again what it had wrapped.
        if self.reflows && columns > 0 {
            let rows = |line: &Line<'_>| line.width().div_ceil(columns).max(1);
            let above: usize = self.drawn.lines.iter().take(self.drawn.row).map(rows).sum();
            self.rows_above = above + self.drawn.column / columns;
        }
        self.is_stale = true;
    }

    /// The bytes that take the live region away; the cursor is where it began.
    pub(crate) fn erase(&mut self) -> String {
        let mut out = String::new();
        self.go_to_top(&mut out);
        out.push_str(ERASE_BELOW);
        self.forget();
        out
    }

    /// The bytes that empty the screen, so that everything is drawn again at its top.
    pub(crate) fn clear(&mut self) -> String {
        self.forget();
        "\x1b[2J\x1b[H".to_owned()
    }

    /// The terminal was somebody else's: the next picture begins where the cursor is.
    pub(crate) fn forget(&mut self) {
        self.drawn = Live::default();
        self.rows_above = 0;
        self.is_stale = true;
    }

    fn go_to_top(&self, out: &mut String) {
        go_up(out, self.rows_above);
        out.push('\r');
    }
}

/// All rows of the alternate screen.
#[derive(Debug, Default)]
pub(crate) struct FullScreen {
    drawn: Vec<Line<'static>>,
    cursor: (usize, usize),
    is_stale: bool,
}

impl FullScreen {
    /// The bytes that draw these rows, with the cursor there; empty if nothing changes.
    pub(crate) fn picture(
        &mut self,
        rows: Vec<Line<'static>>,
        cursor: (usize, usize),
        size: Size,
    ) -> String {
        let is_same = rows == self.drawn && cursor == self.cursor && !self.is_stale;
        if is_same {
            return String::new();
        }
        let mut out = format!("{BEGIN}{WRAP_OFF}");
        if std::mem::take(&mut self.is_stale) {
            out.push_str("\x1b[2J");
            self.drawn.clear();
        }
        let none = Line::default();
        for number in 0..rows.len().max(self.drawn.len()).min(size.rows) {
            let line = rows.get(number).unwrap_or(&none);
            if self.drawn.get(number) != Some(line) {
                // Writing to a String can't fail.
                write!(out, "\x1b[{};1H{ERASE_LINE}", number + 1).unwrap_or(());
                push_line(&mut out, line);
            }
        }
        write!(out, "{WRAP_ON}\x1b[{};{}H{END}", cursor.0 + 1, cursor.1 + 1).unwrap_or(());
        self.drawn = rows;
        self.cursor = cursor;
        out
    }

    /// What is on the terminal is not what was drawn.
    pub(crate) fn forget(&mut self) {
        self.is_stale = true;
    }
}

fn go_up(out: &mut String, rows: usize) {
    if rows > 0 {
        write!(out, "\x1b[{rows}A").unwrap_or(());
    }
}

fn go_right(out: &mut String, columns: usize) {
    if columns > 0 {
        write!(out, "\x1b[{columns}C").unwrap_or(());
    }
}

/// A line with its colours. Texts are clean already; a control character that is left is not written.
fn push_line(out: &mut String, line: &Line<'_>) {
    let mut current = Style::new();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        if style != current {
            push_style(out, style);
            current = style;
        }
        out.extend(span.content.chars().filter(|char| !char.is_control()));
    }
    if current != Style::new() {
        out.push_str("\x1b[0m");
    }
}

fn push_style(out: &mut String, style: Style) {
    out.push_str("\x1b[0");
    let attributes = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    for (attribute, code) in attributes {
        if style.add_modifier.contains(attribute) {
            write!(out, ";{code}").unwrap_or(());
        }
    }
    if let Some(colour) = style.fg {
        push_colour(out, colour, 30);
    }
    if let Some(colour) = style.bg {
        push_colour(out, colour, 40);
    }
    out.push('m');
}

/// The parameters of a colour; `base` is 30 for the text and 40 for its background.
fn push_colour(out: &mut String, colour: Color, base: u8) {
    let named = |number: u8| (base + number).to_string();
    let bright = |number: u8| (base + 60 + number).to_string();
    let parameters = match colour {
        Color::Reset => named(9),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        Color::Indexed(number) => format!("{};5;{number}", base + 8),
    };
    write!(out, ";{parameters}").unwrap_or(());
}
