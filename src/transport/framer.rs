//! Bytes → lines, in bounded memory. Splits on LF alone; JSON may hold any other line separator.

/// Bytes of the beginning of a line that is too long: enough to find its request id where clients write it.
const START_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the end of such a line: enough for the id where clients write it last.
const END_BYTES_MAX: usize = 1024;

/// What a line may have around it: a byte order mark before the first, CR before each LF.
const AROUND_BYTES_MAX: usize = BOM.len() + 1;

const BOM: &[u8] = "\u{FEFF}".as_bytes();

/// A line that is not blank, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawLine {
    Whole(Vec<u8>),
    /// Longer than `bytes_max`; `start` is its beginning, and `end` its last bytes.
    TooLong {
        start: Vec<u8>,
        end: Vec<u8>,
        bytes_max: usize,
    },
}

/// The state between two chunks.
#[derive(Debug)]
pub(crate) struct Framer {
    bytes_max: usize,
    line: Vec<u8>,
    /// The last bytes of a line that is too long.
    end: Vec<u8>,
    is_too_long: bool,
    is_first: bool,
}

impl Framer {
    /// Lines may have up to `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, line: Vec::new(), end: Vec::new(), is_too_long: false, is_first: true }
    }

    /// Takes the next bytes; the lines they complete are added to `lines`.
    pub(crate) fn push(&mut self, mut chunk: &[u8], lines: &mut Vec<RawLine>) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            self.add(&chunk[..end]);
            lines.extend(self.finish());
            chunk = &chunk[end + 1..];
        }
        self.add(chunk);
    }

    /// The line that is complete now, if it is not blank. At the end of input: the last line.
    pub(crate) fn finish(&mut self) -> Option<RawLine> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::replace(&mut self.is_first, false) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let is_cut = std::mem::replace(&mut self.is_too_long, false);
        if is_cut || line.len() > self.bytes_max {
            if !is_cut {
                keep_last(&mut self.end, &line);
            }
            line.truncate(START_BYTES_MAX);
            let end = std::mem::take(&mut self.end);
            return Some(RawLine::TooLong { start: line, end, bytes_max: self.bytes_max });
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(RawLine::Whole(line))
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.is_too_long {
            return keep_last(&mut self.end, bytes);
        }
        let room = self.bytes_max.saturating_add(AROUND_BYTES_MAX).saturating_sub(self.line.len());
        if bytes.len() <= room {
            self.line.extend_from_slice(bytes);
            return;
        }
        self.is_too_long = true;
        keep_last(&mut self.end, &self.line);
        keep_last(&mut self.end, bytes);
        self.line.extend_from_slice(&bytes[..room]);
        self.line.truncate(START_BYTES_MAX);
        self.line.shrink_to_fit();
    }
}

/// Adds bytes to the end of a line, of which it keeps the last.
fn keep_last(end: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[bytes.len().saturating_sub(END_BYTES_MAX)..];
    let surplus = (end.len() + bytes.len()).saturating_sub(END_BYTES_MAX);
    end.drain(..surplus);
    end.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of `input`, fed in chunks of `step` bytes.
    fn lines(input: &[u8], bytes_max: usize, step: usize) -> Vec<RawLine> {
        let mut framer = Framer::new(bytes_max);
        let mut lines = Vec::new();
        for chunk in input.chunks(step) {
            framer.push(chunk, &mut lines);
        }
        lines.extend(framer.finish());
        lines
    }

    fn whole(line: &str) -> RawLine {
        RawLine::Whole(line.as_bytes().to_vec())
    }

    #[track_caller]
    fn check(input: &str, expected: &[RawLine]) {
        for step in 1..=input.len().max(1) {
            assert_eq!(lines(input.as_bytes(), 8, step), expected, "in chunks of {step}");
        }
    }

    #[test]
    fn lines_end_at_lf_and_nothing_else() {
        check("a\nb\r\nc", &[whole("a"), whole("b"), whole("c")]);
        check("a\u{2028}b\rc\n", &[whole("a\u{2028}b\rc")]);
    }

    #[test]
    fn blank_lines_are_no_lines() {
        check("\n \t\r\n\r\n", &[]);
        check("", &[]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_before_the_first_line_only() {
        check("\u{FEFF}a\n\u{FEFF}b\n", &[whole("a"), whole("\u{FEFF}b")]);
        check("\u{FEFF}12345678\r\n", &[whole("12345678")]);
    }

    #[test]
    fn the_limit_is_exact_and_costs_one_line() {
        let long = |start: &str, end: &str| RawLine::TooLong {
            start: start.as_bytes().to_vec(),
            end: end.as_bytes().to_vec(),
            bytes_max: 8,
        };
        check("12345678\n", &[whole("12345678")]);
        check("12345678\r\n", &[whole("12345678")]);
        check("123456789\nb", &[long("123456789", "123456789"), whole("b")]);
        check("1234567890abcdef\nb", &[long("1234567890ab", "1234567890abcdef"), whole("b")]);
    }

    #[test]
    fn a_line_that_is_too_long_keeps_its_last_bytes() {
        let line = format!("{}{}z", "a".repeat(END_BYTES_MAX), "b".repeat(END_BYTES_MAX - 1));
        for step in [1, 7, END_BYTES_MAX - 1, END_BYTES_MAX + 1, line.len()] {
            let found = lines(line.as_bytes(), 8, step);
            let [RawLine::TooLong { end, .. }] = &found[..] else { panic!("{found:?}") };
            assert_eq!(*end, line.as_bytes()[END_BYTES_MAX..], "in chunks of {step}");
        }
    }

    #[test]
    fn a_line_without_end_is_kept_in_bounded_memory() {
        let mut framer = Framer::new(1024);
        let mut lines = Vec::new();
        for _ in 0..10_000 {
            framer.push(&[b'x'; 4096], &mut lines);
            assert!(framer.line.capacity() <= START_BYTES_MAX);
            assert!(framer.end.capacity() <= 2 * END_BYTES_MAX);
        }
        assert!(lines.is_empty());
        assert!(matches!(framer.finish(), Some(RawLine::TooLong { .. })));
    }
}
