//! Joins the pieces of a text whose characters may be cut between two pieces.
//!
//! A provider may cut inside a character in two ways: between its UTF-8 bytes, and between the two
//! halves of a UTF-16 surrogate pair (`"\ud83d"`, then `"\ude00"`). A JSON reader gives such a half
//! as three bytes (WTF-8, <https://simonsapin.github.io/wtf-8/>).

use std::str::from_utf8;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;
const HALF_BYTES: usize = 3;

/// Takes pieces of WTF-8, returns text. The returned pieces concatenate to the joined text; each part
/// of the input that is not text becomes U+FFFD.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Joiner {
    /// The beginning of a character: five bytes at most.
    held: Vec<u8>,
}

/// The first token of some bytes.
enum Head<'a> {
    Text(&'a str),
    /// A surrogate pair.
    Pair(char),
    /// So many bytes that can't become text.
    Broken(usize),
    /// A character whose rest may still come.
    Open,
}

impl Joiner {
    /// Takes the next piece; returns the text that is complete, which may be empty.
    pub(in crate::engine) fn push(&mut self, piece: &[u8]) -> String {
        let joined;
        let mut rest = if self.held.is_empty() {
            piece
        } else {
            joined = [self.held.as_slice(), piece].concat();
            self.held.clear();
            &joined
        };
        let mut text = String::with_capacity(rest.len());
        while !rest.is_empty() {
            let bytes = match head(rest) {
                Head::Text(head) => {
                    text += head;
                    head.len()
                }
                Head::Pair(c) => {
                    text.push(c);
                    2 * HALF_BYTES
                }
                Head::Broken(bytes) => {
                    text.push(REPLACEMENT);
                    bytes
                }
                Head::Open => {
                    self.held = rest.to_vec();
                    break;
                }
            };
            rest = &rest[bytes..];
        }
        text
    }

    /// Ends the text; returns a replacement for a character that is incomplete.
    pub(in crate::engine) fn end(&mut self) -> String {
        match std::mem::take(&mut self.held).len() {
            0 => String::new(),
            _ => REPLACEMENT.into(),
        }
    }
}

fn head(bytes: &[u8]) -> Head<'_> {
    let error = match from_utf8(bytes) {
        Ok(text) => return Head::Text(text),
        Err(error) => error,
    };
    match from_utf8(&bytes[..error.valid_up_to()]) {
        Ok(text) if !text.is_empty() => return Head::Text(text),
        Ok(_) | Err(_) => {}
    }
    match bytes {
        // A first half: its second half, or the beginning of one, may follow.
        [0xED, 0xA0..=0xAF, _, rest @ ..] if is_continuation(bytes[2]) => {
            after_first_half(bytes, rest)
        }
        [0xED, 0xB0..=0xBF, last, ..] if is_continuation(*last) => Head::Broken(HALF_BYTES),
        [0xED] | [0xED, 0xA0..=0xBF] => Head::Open,
        _ => error.error_len().map_or(Head::Open, Head::Broken),
    }
}

fn after_first_half<'a>(half: &[u8], rest: &[u8]) -> Head<'a> {
    match rest {
        [] | [0xED] | [0xED, 0xB0..=0xBF] => Head::Open,
        [0xED, 0xB0..=0xBF, last, ..] if is_continuation(*last) => {
            match char::from_u32(0x1_0000 + (half_bits(half) << 10) + half_bits(rest)) {
                Some(c) => Head::Pair(c),
                None => Head::Broken(HALF_BYTES),
            }
        }
        _ => Head::Broken(HALF_BYTES),
    }
}

/// The ten bits that a surrogate carries.
fn half_bits(half: &[u8]) -> u32 {
    u32::from(half[1] & 0x0F) << 6 | u32::from(half[2] & 0x3F)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn join(pieces: &[&[u8]]) -> String {
        let mut joiner = Joiner::default();
        let mut text: String = pieces.iter().map(|piece| joiner.push(piece)).collect();
        text += &joiner.end();
        assert_eq!(joiner.end(), "", "the end leaves nothing");
        text
    }

    /// `bytes` become `text`, whole, split at every byte, and byte by byte.
    fn check(bytes: &[u8], text: &str) {
        assert_eq!(join(&[bytes]), text, "{bytes:x?} whole");
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(join(&[left, right]), text, "{bytes:x?} split at {at}");
        }
        assert_eq!(join(&bytes.chunks(1).collect::<Vec<_>>()), text, "{bytes:x?} byte by byte");
    }

    const FIRST: &[u8] = b"\xED\xA0\xBD";
    const SECOND: &[u8] = b"\xED\xB8\x80";

    #[test]
    fn text_passes_however_it_is_cut() {
        check(b"", "");
        check(b"plain", "plain");
        let text = "a\u{0}\u{e9}\u{2028}\u{D7FF}\u{E000}\u{FFFD}\u{10000}\u{1F600}\u{10FFFF}z";
        check(text.as_bytes(), text);
    }

    #[test]
    fn halves_of_a_pair_become_one_character() {
        check(&[FIRST, SECOND].concat(), "\u{1F600}");
        check(&[b"a", FIRST, SECOND, FIRST, SECOND, b"b"].concat(), "a\u{1F600}\u{1F600}b");
        check(b"\xED\xA0\x80\xED\xB0\x80\xED\xAF\xBF\xED\xBF\xBF", "\u{10000}\u{10FFFF}");
    }

    #[test]
    fn what_stays_unpaired_is_replaced() {
        check(FIRST, "\u{FFFD}");
        check(SECOND, "\u{FFFD}");
        check(&[SECOND, FIRST].concat(), "\u{FFFD}\u{FFFD}");
        check(&[FIRST, FIRST, SECOND, b"a"].concat(), "\u{FFFD}\u{1F600}a");
        check(&[FIRST, "\u{D7FF}".as_bytes()].concat(), "\u{FFFD}\u{D7FF}");
        check(b"a\xFFb\xC3", "a\u{FFFD}b\u{FFFD}");
        check(b"\xF0\x9F\x98", "\u{FFFD}");
        check(b"\xF0\x9F\x98a", "\u{FFFD}a");
    }

    #[test]
    fn a_piece_is_given_out_at_once_but_for_its_open_end() {
        let mut joiner = Joiner::default();
        assert_eq!(joiner.push(b"ab\xF0\x9F"), "ab");
        assert_eq!(joiner.push(b"\x98\x80c"), "\u{1F600}c");
    }

    proptest! {
        #[test]
        fn cutting_never_changes_the_text(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(&b"\xED\xA0\xBD\xB8\x80a"[..])],
                0..24,
            ),
            at in any::<prop::sample::Index>(),
        ) {
            let (left, right) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(join(&[left, right]), join(&[&bytes]));
            if let Ok(text) = from_utf8(&bytes) {
                prop_assert_eq!(join(&[&bytes]), text);
            }
        }
    }
}
