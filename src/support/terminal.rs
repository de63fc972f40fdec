//! Output for terminals: colours where they are wanted, and no control characters from other
//! sources.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Moves to the start of a terminal's line and clears it (ECMA-48, CR and EL).
pub(crate) const CLEAR_LINE: &str = "\r\u{1b}[2K";

/// Whether the last row of the terminal has text of standard output, which nothing may clear.
static ROW_HAS_TEXT: AtomicBool = AtomicBool::new(false);

/// Whether `text` clears the row that it begins in, and ends its last one.
pub(crate) fn has_own_rows(text: &[u8]) -> bool {
    text.starts_with(CLEAR_LINE.as_bytes()) && text.ends_with(b"\n")
}

/// Records that `text` is about to be written to standard output, if that is a terminal.
pub(crate) fn output_begins(text: &[u8]) {
    ROW_HAS_TEXT.fetch_or(!text.is_empty(), Ordering::SeqCst);
}

/// Records that `text` was written. Until then its line feed at the end has ended no row.
pub(crate) fn output_ends(text: &[u8]) {
    if text.ends_with(b"\n") {
        ROW_HAS_TEXT.store(false, Ordering::SeqCst);
    }
}

/// Whether the last row of the terminal has text of standard output.
pub(crate) fn row_has_text() -> bool {
    ROW_HAS_TEXT.load(Ordering::SeqCst)
}

/// `text` for standard error on a terminal: where it would clear a row with text of standard output, it
/// begins a row of its own instead, and where it would do nothing else, it is empty.
pub(crate) fn beside_output(text: Vec<u8>) -> Vec<u8> {
    match text.strip_prefix(CLEAR_LINE.as_bytes()) {
        Some(rest) if row_has_text() => {
            let start: &[u8] = if rest.is_empty() { b"" } else { b"\r\n" };
            ROW_HAS_TEXT.store(rest.is_empty(), Ordering::SeqCst);
            [start, rest].concat()
        }
        Some(_) | None => text,
    }
}

/// Whether to use colours on a terminal: not if `NO_COLOR` (<https://no-color.org>) is set, or
/// the terminal has none.
pub(crate) fn has_colour() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && !is_dumb()
}

/// Whether a terminal is sent the targets of links (OSC 8): one that does not know them ignores them, but for
/// the console of Linux, of which early versions print them. `FORCE_HYPERLINK`, which other programs know too,
/// overrides that: 0 for no links, anything else for links.
pub(crate) fn has_links() -> bool {
    match std::env::var("FORCE_HYPERLINK") {
        Ok(forced) if !forced.is_empty() => forced != "0",
        Ok(_) | Err(_) => !is_dumb() && std::env::var_os("TERM").is_none_or(|name| name != "linux"),
    }
}

/// Whether a terminal can't move its cursor.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb")
}

/// `text` in one line, with control characters escaped. It may come from a provider or a
/// file.
pub(crate) fn escape_control(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' | '\u{85}' => shown.push(' '),
            char => push(&mut shown, char, Escapes::Text),
        }
    }
    shown
}

/// The escape of a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// As in the strings of most languages: `\x1b`, `\u{202e}`.
    Text,
    /// As in JSON strings, `\u001b`: the value stays the same. Outside of strings the only such
    /// character in JSON is the carriage return, which is white space there.
    Json,
}

/// Like [`escape_control`], but line feeds stay.
pub(crate) fn visible(text: &str, escapes: Escapes) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        push(&mut shown, char, escapes);
    }
    shown
}

/// Escapes control characters in `text`, from the byte `start` on.
pub(crate) fn make_visible(text: &mut Vec<u8>, start: usize, escapes: Escapes) {
    let shown = String::from_utf8_lossy(&text[start..]);
    if shown.chars().any(is_control) {
        let shown = visible(&shown, escapes);
        text.truncate(start);
        text.extend_from_slice(shown.as_bytes());
    }
}

fn push(shown: &mut String, char: char, escapes: Escapes) {
    let code = u32::from(char);
    // Writing to a String can't fail.
    let written = match (is_control(char), escapes) {
        (false, _) => {
            shown.push(char);
            Ok(())
        }
        (true, Escapes::Json) if char == '\r' => write!(shown, " "),
        (true, Escapes::Json) => write!(shown, "\\u{code:04x}"),
        (true, Escapes::Text) if char == '\r' => write!(shown, "\\r"),
        (true, Escapes::Text) if code <= 0xff => write!(shown, "\\x{code:02x}"),
        (true, Escapes::Text) => write!(shown, "\\u{{{code:x}}}"),
    };
    written.unwrap_or(());
}

/// Whether a terminal may interpret `char` as a command (ECMA-48's C0 and C1, and DEL), or display
/// text around it in another order (Unicode's `Bidi_Control`). Line feeds and tabs are
/// allowed.
fn is_control(char: char) -> bool {
    char.is_control() && !matches!(char, '\n' | '\t')
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_control_a_terminal_is_made_visible_in_one_line() {
        let check = |text, shown| assert_eq!(escape_control(text), shown, "{text:?}");
        check("plain \u{e9}\u{1F600}", "plain \u{e9}\u{1F600}");
        check("a\u{1b}[2Jb\u{7}", "a\\x1b[2Jb\\x07");
        check("\u{9b}31m\u{202e}", "\\x9b31m\\u{202e}");
        check("one\ntwo\r\nthree\u{2028}four", "one two  three four");
    }

    #[test]
    fn every_control_character_is_made_visible_and_nothing_else() {
        let controls = (0..=0x1f).chain(0x7f..=0x9f).chain([0x61c, 0x200e, 0x200f]);
        let controls: Vec<u32> = controls.chain(0x202a..=0x202e).chain(0x2066..=0x2069).collect();
        for char in (0..=0x2100).filter_map(char::from_u32) {
            let text = char.to_string();
            let is_kept = visible(&text, Escapes::Text) == text;
            let is_control = controls.contains(&u32::from(char)) && !matches!(char, '\n' | '\t');
            assert_eq!(is_kept, !is_control, "{char:?}");
        }
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let value = serde_json::json!({ "a": "\u{1b}\r\u{7f}\u{9b}\u{202e}\n\t\u{e9}" });
        let mut text = format!("before\u{1b} {{\r\"a\":{}}}", value["a"]).into_bytes();
        make_visible(&mut text, 8, Escapes::Json);
        assert!(text.starts_with(b"before\x1b {"));
        let shown = std::str::from_utf8(&text[8..]).expect("UTF-8");
        assert!(!shown.contains(is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(shown).expect("JSON"), value);
    }
}
