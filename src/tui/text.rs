//! Text from a model or a tool, made safe for a terminal, measured and wrapped.

mod clean;
mod line;
mod wrap;

pub(crate) use clean::{Cleaner, clean, is_sent};
pub(crate) use line::{Line, LinkTarget, Span};
pub(crate) use wrap::{cut, wrap};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns that `text` takes, as ratatui counts them: grapheme by grapheme. A line break takes
/// none.
pub(crate) fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// The columns of one grapheme. Control characters, which ratatui leaves out, take none.
fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) { 0 } else { grapheme.width() }
}

/// A number of tokens, for people.
pub(crate) fn tokens(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_screen() {
        let rows = [
            ("", 0),
            ("plain", 5),
            ("日本", 4),
            ("e\u{301}", 1),
            ("👩‍👩‍👧‍👦", 2),
            ("👍🏽", 2),
            ("❤️", 2),
            ("🇯🇵", 2),
            ("שלום", 4),
            ("a\nb", 2),
            ("한국", 4),
        ];
        for (text, expected) in rows {
            assert_eq!(width(text), expected, "{text:?}");
            if !text.contains('\n') {
                assert_eq!(ratatui_core::text::Span::raw(text).width(), expected, "{text:?}");
            }
        }
    }
}
