//! Splits an answer that arrives in pieces into lines, in bounded memory.

use super::LINE_BYTES_MAX;

/// A complete line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number in the answer, from 1.
    pub(super) number: u64,
    /// The line without surrounding white space; `None` if it is longer than [`LINE_BYTES_MAX`].
    pub(super) text: Option<String>,
}

/// Splits a text into lines.
#[derive(Clone, Debug, Default)]
pub(super) struct LineScanner {
    ended: u64,
    open: Open,
}

/// The incomplete line.
#[derive(Clone, Debug, Default)]
enum Open {
    /// Only white space so far.
    #[default]
    Blank,
    /// The text from its first non-blank character.
    Text(String),
    /// The line exceeds the limit.
    TooLong,
}

impl LineScanner {
    /// Adds the next piece, and calls the function for each line that ends in it.
    pub(super) fn push(&mut self, text: &str, mut ended: impl FnMut(Line)) {
        let mut rest = text;
        while let Some((end, after)) = rest.split_once('\n') {
            self.open.add(end);
            ended(self.end());
            rest = after;
        }
        self.open.add(rest);
    }

    /// Ends the incomplete line.
    pub(super) fn end(&mut self) -> Line {
        self.ended += 1;
        let text = match std::mem::take(&mut self.open) {
            Open::Blank => Some(String::new()),
            Open::Text(mut text) => {
                text.truncate(trimmed_end(&text).len());
                Some(text)
            }
            Open::TooLong => None,
        };
        Line { number: self.ended, text }
    }
}

impl Open {
    fn add(&mut self, piece: &str) {
        let (text, piece) = match self {
            Self::Blank => (String::new(), trimmed_start(piece)),
            Self::Text(text) => (std::mem::take(text), piece),
            Self::TooLong => return,
        };
        *self = Self::joined(text, piece);
    }

    fn joined(mut text: String, piece: &str) -> Self {
        if text.len() + piece.len() > LINE_BYTES_MAX {
            return Self::TooLong;
        }
        text.push_str(piece);
        if text.is_empty() { Self::Blank } else { Self::Text(text) }
    }
}

/// A byte order mark counts as white space.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{FEFF}'
}

/// The text without leading white space.
pub(super) fn trimmed_start(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// The text without trailing white space.
pub(super) fn trimmed_end(text: &str) -> &str {
    text.trim_end_matches(is_blank)
}
