//! Lines as bytes for a terminal (ECMA-48): inline, where what is printed becomes part of the scrollback
//! and only the live region is drawn again, and on the full screen. Pure.

mod cursor_reports;
mod full;
mod inline;
mod region;
mod rows;

pub(crate) use full::FullScreen;
pub(crate) use inline::{Inline, Next};

use crate::tui::text::{Line, LinkTarget, is_sent};
use ratatui_core::style::{Color, Modifier, Style};
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

/// Where is the cursor, and how large is the terminal: it reports the place of the cursor (ECMA-48, DSR 6),
/// then its last place, where the cursor goes no further.
const ASK: &str = "\x1b[6n\x1b7\x1b[9999;9999H\x1b[6n\x1b8";

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

/// A line with its colours. Texts are clean already; a control character that is left is not written, nor is one
/// that reorders text, as in the name of a file or a model.
pub(crate) fn push_line(out: &mut String, line: &Line) {
    let (mut current, mut link) = (Style::new(), None);
    for span in &line.spans {
        if span.target.as_ref() != link {
            link = span.target.as_ref();
            push_link(out, link);
        }
        if span.style != current {
            push_style(out, span.style);
            current = span.style;
        }
        out.extend(span.content.chars().filter(|char| is_sent(*char)));
    }
    if current != Style::new() {
        out.push_str("\x1b[0m");
    }
    if link.is_some() {
        push_link(out, None);
    }
}

/// What follows leads to this target (OSC 8, as VTE and iTerm2 define it), or nowhere.
fn push_link(out: &mut String, target: Option<&LinkTarget>) {
    let target = target.map_or("", LinkTarget::as_str);
    write!(out, "\x1b]8;;{target}\x1b\\").unwrap_or(());
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

#[cfg(test)]
mod tests;
