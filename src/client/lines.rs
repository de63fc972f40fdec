//! Splits the bytes of a pipe into lines of limited length. Pure.

use std::borrow::Cow;

/// Bytes of the beginning of a line that is too long: its ids are there.
const HEAD_BYTES: usize = 4096;

/// A line without its LF, or the beginning of one that was too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(Cow<'a, [u8]>),
    Overlong(Vec<u8>),
}

/// Bytes go in, whole lines come out. Only LF ends a line.
#[derive(Debug)]
pub(super) struct Lines {
    bytes_max: usize,
    /// The beginning of a line that has not ended; of one that is too long, its head.
    rest: Vec<u8>,
    is_overlong: bool,
}

impl Lines {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, rest: Vec::new(), is_overlong: false }
    }

    /// Takes the next line that ends in the piece from its beginning; where none does, keeps the piece.
    pub(super) fn next<'a>(&mut self, piece: &mut &'a [u8]) -> Option<Line<'a>> {
        let Some(end) = memchr::memchr(b'\n', piece) else {
            self.keep(std::mem::take(piece));
            return None;
        };
        let line = &piece[..end];
        *piece = &piece[end + 1..];
        // Most lines are whole in their piece, and are not copied.
        if self.rest.is_empty() && line.len() <= self.bytes_max {
            return Some(Line::Whole(line.into()));
        }
        self.keep(line);
        let line = std::mem::take(&mut self.rest);
        Some(if std::mem::take(&mut self.is_overlong) {
            Line::Overlong(line)
        } else {
            Line::Whole(line.into())
        })
    }

    fn keep(&mut self, piece: &[u8]) {
        if !self.is_overlong {
            self.rest.extend_from_slice(piece);
            self.is_overlong = self.rest.len() > self.bytes_max;
        }
        if self.is_overlong && self.rest.len() > HEAD_BYTES {
            self.rest.truncate(HEAD_BYTES);
            self.rest.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_the_same_however_their_bytes_come(
            bytes in proptest::collection::vec(proptest::sample::select(&b"ab\n\r\xff"[..]), 0..200),
            cut in 1_usize..20,
            bytes_max in 1_usize..30,
        ) {
            let mut lines = Lines::new(bytes_max);
            let mut found = Vec::new();
            for mut piece in bytes.chunks(cut) {
                found.extend(std::iter::from_fn(|| lines.next(&mut piece)));
            }
            let mut whole: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
            whole.pop();
            prop_assert_eq!(found.len(), whole.len());
            for (line, bytes) in found.iter().zip(whole) {
                match line {
                    Line::Whole(line) => prop_assert_eq!(&**line, bytes),
                    Line::Overlong(head) => prop_assert!(bytes.len() > bytes_max && bytes.starts_with(head)),
                }
            }
        }
    }
}
