//! Reads the lines of a stream as they arrive, in bounded memory.

use super::envelope::Error;
use super::output::Failure;
use crate::conformance::events::EventTime;
use crate::protocol::constants::command_code;
use crate::support::files::Blocking;
use crate::support::millis;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Capacity that stays allocated between lines; a larger buffer is freed.
const KEPT_BYTES: usize = 1024 * 1024;

/// The byte order mark that some editors and shells write before the first line of a file.
const BOM: &[u8] = "\u{FEFF}".as_bytes();

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A line, without its line feed.
    Line(&'a [u8]),
    /// A line that exceeds the limit.
    Long,
    /// The bytes after the last line feed.
    Tail(&'a [u8]),
}

/// Splits a stream into pieces.
#[derive(Debug)]
pub(super) struct StreamLines<R> {
    input: BufReader<R>,
    bytes_max: usize,
    line: Vec<u8>,
    is_first: bool,
    is_long: bool,
}

/// A stream that is read blocking, even if its pipe is set to non-blocking.
#[derive(Debug)]
pub(super) struct Input(File);

impl Input {
    /// Opens the stream named on a command line: a file, or standard input for `-` and for nothing.
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        match path {
            Some(path) if path != Path::new("-") => File::open(path).map(Self),
            Some(_) | None => {
                io::stdin().as_fd().try_clone_to_owned().map(|input| Self(input.into()))
            }
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }

    /// When the bytes of the stream were written.
    pub(super) fn write_time(&self) -> io::Result<WriteTime> {
        Ok(match self.0.metadata()?.is_file() {
            true => WriteTime::Modified(self.0.try_clone()?),
            false => WriteTime::Now,
        })
    }
}

/// When bytes that were just read were written, as closely as can be known: the stream itself has
/// no timestamps.
#[derive(Debug)]
pub(super) enum WriteTime {
    /// When the file was last modified.
    Modified(File),
    /// Now: a pipe or a terminal is read as it is written.
    Now,
}

impl WriteTime {
    /// The latest time at which they can have been written.
    pub(super) fn latest(&self) -> EventTime {
        let (time, is_live) = match self {
            // Some file systems record no times.
            Self::Modified(file) => {
                (file.metadata().and_then(|metadata| metadata.modified()).ok(), false)
            }
            Self::Now => (Some(SystemTime::now()), true),
        };
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        EventTime { ts: since.as_secs(), ts_ms: is_live.then_some(millis(since)) }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Blocking(&self.0).read(buffer)
    }
}

/// A stream that can't be read, or not to its end.
#[derive(Debug)]
pub(super) struct Unread {
    /// The name of the stream.
    pub(super) label: String,
    /// The system's error.
    pub(super) why: String,
}

impl Unread {
    fn message(&self) -> String {
        format!("{} can't be read: {}", self.label, self.why)
    }

    pub(super) fn as_error(&self) -> Error {
        Error {
            code: command_code::READ_FAILED,
            class: None,
            message: self.message(),
            detail: self.why.clone(),
        }
    }
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Self {
        Self::Usage(unread.message())
    }
}

/// The name of a stream in messages.
pub(super) fn label(path: Option<&Path>) -> String {
    path.map_or("-".to_owned(), |path| path.display().to_string())
}

impl<R: Read> StreamLines<R> {
    /// Lines may have up to `bytes_max` bytes.
    pub(super) fn new(input: R, bytes_max: usize) -> Self {
        let input = BufReader::with_capacity(READ_BYTES, input);
        Self { input, bytes_max, line: Vec::new(), is_first: true, is_long: false }
    }

    /// Whether reading the next piece may block.
    pub(super) fn will_wait(&self) -> bool {
        memchr::memchr(b'\n', self.input.buffer()).is_none()
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(self.end());
            }
            let end = memchr::memchr(b'\n', chunk);
            let bytes = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + bytes.len() > self.bytes_max {
                self.is_long = true;
                self.line = Vec::new();
            } else if !self.is_long {
                self.line.extend_from_slice(bytes);
            }
            let taken = bytes.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                let is_long = std::mem::take(&mut self.is_long);
                let line = self.without_mark();
                return Ok(Some(if is_long { Piece::Long } else { Piece::Line(line) }));
            }
        }
    }

    fn end(&mut self) -> Option<Piece<'_>> {
        if std::mem::take(&mut self.is_long) {
            return Some(Piece::Long);
        }
        let line = self.without_mark();
        (!line.is_empty()).then_some(Piece::Tail(line))
    }

    /// The line that was read.
    fn without_mark(&mut self) -> &[u8] {
        let is_marked = std::mem::take(&mut self.is_first) && self.line.starts_with(BOM);
        &self.line[if is_marked { BOM.len() } else { 0 }..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(input: &str, bytes_max: usize) -> Vec<String> {
        let mut lines = StreamLines::new(input.as_bytes(), bytes_max);
        let mut pieces = Vec::new();
        while let Some(piece) = lines.next().expect("a text can be read") {
            pieces.push(match piece {
                Piece::Line(line) => format!("{}|", String::from_utf8_lossy(line)),
                Piece::Long => "long".to_owned(),
                Piece::Tail(tail) => String::from_utf8_lossy(tail).into_owned(),
            });
        }
        pieces
    }

    #[test]
    fn lines_split_at_line_feeds_alone() {
        assert_eq!(pieces("a\n\nb\r\u{2028}c\nd", 10), ["a|", "|", "b\r\u{2028}c|", "d"]);
        assert_eq!(pieces("", 10), [""; 0]);
        assert_eq!(pieces("\n", 10), ["|"]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_before_the_first_line_only() {
        assert_eq!(pieces("\u{FEFF}a\n\u{FEFF}b\n", 10), ["a|", "\u{FEFF}b|"]);
        assert_eq!(pieces("\u{FEFF}a", 10), ["a"]);
        assert_eq!(pieces("\u{FEFF}", 10), [""; 0]);
    }

    #[test]
    fn long_lines_are_passed_over() {
        let long = "x".repeat(READ_BYTES * 3);
        assert_eq!(
            pieces(&format!("1234\n12345\n{long}\n1\n{long}"), 4),
            ["1234|", "long", "long", "1|", "long"]
        );
        let whole = format!("{long}|");
        assert_eq!(pieces(&format!("{long}\n"), long.len()), [whole.as_str()]);
    }
}
