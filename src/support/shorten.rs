//! The beginning of a text that may be long, with an ellipsis if there is more. Pure.

use std::borrow::Cow;

/// The first `chars_max` characters of `text`.
pub(crate) fn first_chars(text: &str, chars_max: usize) -> Cow<'_, str> {
    // The characters of a short text are not counted: each has a byte at least.
    let is_long = text.len() > chars_max;
    match is_long.then(|| text.char_indices().nth(chars_max)).flatten() {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The characters in the first `bytes_max` bytes of `text`.
pub(crate) fn first_bytes(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.floor_char_boundary(bytes_max) {
        end if end < text.len() => Cow::Owned(format!("{}…", &text[..end])),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(first_chars("", 0), "");
        assert_eq!(first_chars("\u{e9}\u{e9}", 2), "\u{e9}\u{e9}");
        assert_eq!(first_chars("\u{e9}\u{e9}", 1), "\u{e9}…");
        assert_eq!(first_chars("ab", 0), "…");
        assert_eq!(first_bytes("\u{e9}\u{e9}", 4), "\u{e9}\u{e9}");
        assert_eq!(first_bytes("\u{e9}\u{e9}", 3), "\u{e9}…");
        assert_eq!(first_bytes("ab", 0), "…");
    }
}
