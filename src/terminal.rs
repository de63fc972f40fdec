//! What may be written where a person reads: colours where they are wanted, and nothing that a
//! terminal would take for a command.

use std::fmt::Write;

/// Moves to the start of a terminal's line and clears it (ECMA-48, CR and EL).
pub(crate) const CLEAR_LINE: &str = "\r\u{1b}[2K";

/// Whether a terminal is to be shown colours: unless `NO_COLOR` (<https://no-color.org>) is set, or
/// it knows none.
pub(crate) fn has_colour() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && !is_dumb()
}

/// Whether a terminal can't move its cursor.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb")
}

/// `text` in one line, with what a terminal would obey made visible. A provider or a file may have
/// written it.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' | '\u{85}' => shown.push(' '),
            // Writing to a String can't fail.
            char if char.is_control() => write!(shown, "{}", char.escape_unicode()).unwrap_or(()),
            char => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        let check = |text, shown| assert_eq!(harmless(text), shown, "{text:?}");
        check("plain \u{e9}\u{1F600}", "plain \u{e9}\u{1F600}");
        check("a\u{1b}[2Jb\u{7}", "a\\u{1b}[2Jb\\u{7}");
        check("\u{9b}31m", "\\u{9b}31m");
        check("one\ntwo\r\nthree\u{2028}four", "one two  three four");
    }
}
