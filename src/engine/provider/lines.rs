//! A body of JSON objects, one on each line (<https://github.com/ndjson/ndjson-spec>), from bytes that
//! arrive in any pieces.

use super::opening::Opening;
use super::sse::EVENT_BYTES_MAX;
use std::mem::take;

/// A line is longer than [`EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct TooLong;

/// Takes bytes in, gives lines out. Holds one line at most.
#[derive(Debug, Default)]
pub(in crate::engine) struct Lines {
    line: Vec<u8>,
    opening: Opening,
    has_lines: bool,
}

impl Lines {
    /// Takes the next bytes; adds the lines that they complete to `lines`, without white space around
    /// them and without blank ones.
    pub(in crate::engine) fn push(
        &mut self,
        bytes: &[u8],
        lines: &mut Vec<Vec<u8>>,
    ) -> Result<(), TooLong> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end])?;
            lines.extend(self.take());
            rest = &rest[end + 1..];
        }
        self.extend(rest)
    }

    /// A line has begun that holds a JSON object.
    pub(in crate::engine) fn is_in_json(&self) -> bool {
        self.opening.is_object()
    }

    /// The body has ended: returns the line it ended in.
    pub(in crate::engine) fn end(&mut self) -> Option<Vec<u8>> {
        self.take()
    }

    /// Something but white space has come.
    pub(in crate::engine) fn has_content(&self) -> bool {
        self.has_lines || !self.line.trim_ascii().is_empty()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        self.opening.read(&self.line);
        Ok(())
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let line = take(&mut self.line);
        self.opening = Opening::default();
        let line = line.trim_ascii();
        self.has_lines |= !line.is_empty();
        (!line.is_empty()).then(|| line.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = Lines::default();
        let mut lines = Vec::new();
        for piece in pieces {
            reader.push(piece, &mut lines).expect("short");
        }
        lines.extend(reader.end());
        lines.into_iter().map(|line| String::from_utf8(line).expect("text")).collect()
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let check = |body: &str, expected: &[&str]| {
            for at in 0..=body.len() {
                let (left, right) = body.as_bytes().split_at(at);
                assert_eq!(lines(&[left, right]), expected, "{body:?} split at {at}");
            }
        };
        check("", &[]);
        check("\r\n \n", &[]);
        check("{\"a\":1}\n{\"b\":\"\\n\"}\r\n\n {} ", &["{\"a\":1}", "{\"b\":\"\\n\"}", "{}"]);
        check("text\n{", &["text", "{"]);
    }

    /// White space that comes byte by byte: this ends only if each byte is looked at once.
    #[test]
    fn white_space_is_not_looked_at_again_and_again() {
        let mut reader = Lines::default();
        for _ in 0..2 * 1024 * 1024 {
            reader.push(b" ", &mut Vec::new()).expect("fits");
            assert!(!reader.is_in_json());
        }
        reader.push(b"{", &mut Vec::new()).expect("fits");
        assert!(reader.is_in_json());
    }

    #[test]
    fn a_line_is_bounded() {
        let mut reader = Lines::default();
        let mut lines = Vec::new();
        let fits = vec![b'{'; EVENT_BYTES_MAX];
        assert!(!reader.is_in_json());
        // Twice: the limit is for each line.
        for _ in 0..2 {
            assert_eq!(reader.push(&fits, &mut lines), Ok(()));
            assert!(reader.is_in_json());
            assert_eq!(reader.push(b"\n", &mut lines), Ok(()));
        }
        assert_eq!(reader.push(&fits, &mut lines), Ok(()));
        assert_eq!(reader.push(b"}", &mut lines), Err(TooLong));
    }
}
