//! Removes control functions of a terminal from text: escape sequences, control characters, and format
//! characters that change the order or the look of the text around them.

use unicode_width::UnicodeWidthChar;

/// Columns between two tab stops: what Markdown takes, and most code is written for.
const TAB_COLUMNS: usize = 4;

/// The longest colour sequence (`ESC [ 1;31 m`) that is taken as one.
const COLOUR_BYTES_MAX: usize = 32;

/// `text` without anything that a terminal would obey: see [`Cleaner`].
pub(crate) fn clean(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    let mut cleaned = cleaner.push(text);
    cleaned.push_str(&cleaner.finish());
    cleaned
}

/// Cleans text that comes in pieces; the result does not depend on where they are cut.
///
/// - A line break stays, whether written LF, CRLF or CR; a tab becomes spaces up to its stop.
/// - Colour sequences (`ESC [ … m`), which tools print by habit, are removed.
/// - Every other control character is shown: ESC as `␛`, DEL as `␡`, those of C1 as `�`. So the rest
///   of a sequence is plain text.
/// - Characters that reorder text, tags, and other characters that nobody sees are removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cleaner {
    /// The beginning of a possible colour sequence.
    escape: String,
    column: usize,
    after_return: bool,
}

impl Cleaner {
    /// Cleans the next piece. Its end is held back while it may be part of a sequence.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut cleaned = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.character(character, &mut cleaned);
        }
        cleaned
    }

    /// Returns the rest at the end of the text.
    pub(crate) fn finish(&mut self) -> String {
        let mut cleaned = String::new();
        self.show_escape(&mut cleaned);
        cleaned
    }

    fn character(&mut self, character: char, cleaned: &mut String) {
        if !self.escape.is_empty() {
            match (character, self.escape.len()) {
                ('[', 1) => return self.escape.push('['),
                ('0'..=';', 2..COLOUR_BYTES_MAX) if character != '/' => {
                    return self.escape.push(character);
                }
                ('m', 2..) => return self.escape.clear(),
                _ => self.show_escape(cleaned),
            }
        }
        let after_return = std::mem::replace(&mut self.after_return, character == '\r');
        match character {
            '\u{1b}' => self.escape.push(character),
            '\n' if after_return => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                cleaned.push('\n');
                self.column = 0;
            }
            '\t' => {
                let spaces = TAB_COLUMNS - self.column % TAB_COLUMNS;
                cleaned.extend(std::iter::repeat_n(' ', spaces));
                self.column += spaces;
            }
            _ if is_unseen(character) => {}
            _ => self.show(character, cleaned),
        }
    }

    fn show(&mut self, character: char, cleaned: &mut String) {
        let shown = visible(character);
        self.column += shown.width().unwrap_or(0);
        cleaned.push(shown);
    }

    fn show_escape(&mut self, cleaned: &mut String) {
        for character in std::mem::take(&mut self.escape).chars() {
            self.show(character, cleaned);
        }
    }
}

/// A control character as its picture; anything else as it is.
fn visible(character: char) -> char {
    match character {
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

/// Whether a terminal is sent `character`: no control character, and none that reorders what stands around it,
/// whatever part of the screen it is in.
pub(crate) fn is_sent(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{200b}') && !reorders(character)
}

/// Marks, embeddings, overrides and isolates of the bidirectional algorithm.
fn reorders(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `character` is invisible and changes the text around it, or hides text from the reader.
/// The joiners of emoji and of Arabic and Indic scripts, and variation selectors, are not among them.
fn is_unseen(character: char) -> bool {
    reorders(character)
        || matches!(character,
        // Soft hyphen: terminals do not agree on its width.
        '\u{ad}'
        // Zero width space.
        | '\u{200b}'
        // Invisible operators, and deprecated characters that change shapes and digits.
        | '\u{180e}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        // Byte order mark, annotations, musical formats, tags.
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_is_removed_or_shown() {
        let rows = [
            ("a\r\nb\rc\nd", "a\nb\nc\nd"),
            ("a\tb\n\tc", "a   b\n    c"),
            ("日\tb", "日  b"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b[m", ""),
            ("\x1b[2J\x1b[H", "␛[2J␛[H"),
            ("\x1b]0;title\x07", "␛]0;title␇"),
            ("\x1b]52;c;aGk=\x1b\\", "␛]52;c;aGk=␛\\"),
            ("\x1b\x1b[1m!", "␛!"),
            ("\x1b[1", "␛[1"),
            ("\x1b[1\r\n", "␛[1\n"),
            ("\u{9b}2J\u{7f}\0\u{8}", "�2J␡␀␈"),
            ("a\u{202e}b\u{2066}c\u{200f}d", "abcd"),
            ("key\u{200b}word", "keyword"),
            ("\u{feff}x\u{e0041}y\u{ad}z", "xyz"),
            ("a\u{2028}b", "a\nb"),
            ("👩‍👩‍👧 क्‍ष می‌خواهم", "👩‍👩‍👧 क्‍ष می‌خواهم"),
        ];
        for (text, expected) in rows {
            assert_eq!(clean(text), expected, "{text:?}");
        }
        let long = format!("\x1b[{}m", "1".repeat(COLOUR_BYTES_MAX));
        assert_eq!(clean(&long), long.replace('\x1b', "␛"));
    }

    proptest! {
        #[test]
        fn cuts_change_nothing_and_nothing_is_left_to_obey(
            pieces in proptest::collection::vec("[\\x00-\\x9f\\x1b\\[;m\\r\\n\\t日é\u{202e}\u{200d}]{0,6}", 0..8)
        ) {
            let whole = clean(&pieces.concat());
            let mut cleaner = Cleaner::default();
            let mut cleaned: String = pieces.iter().map(|piece| cleaner.push(piece)).collect();
            cleaned.push_str(&cleaner.finish());
            prop_assert_eq!(&cleaned, &whole);
            prop_assert!(!whole.contains(|c: char| c != '\n' && (c.is_control() || is_unseen(c))));
            prop_assert_eq!(clean(&whole), whole);
        }
    }
}
