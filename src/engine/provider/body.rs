//! The body of a successful response: events, lines, or one JSON document from a provider that doesn't
//! stream.

use super::lines::{self, Lines};
use super::sse::{self, SseEvent};

/// Bytes of an answer that comes as one JSON document.
pub(in crate::engine) const WHOLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Splits the body into its parts as its bytes come. The first byte decides which form it has, because providers
/// send either under either content type.
#[derive(Debug, Default)]
pub(in crate::engine) enum Body {
    /// Only white space has been read.
    #[default]
    Blank,
    /// Server-sent events.
    Events(sse::Parser),
    /// JSON objects, one on each line: only where the provider's interface has them.
    Lines(Lines),
    /// JSON.
    Whole(Vec<u8>),
}

/// A complete part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) enum Part {
    /// One event of a stream. A line is one without a kind.
    Event(SseEvent),
    /// The whole body, as JSON.
    Whole(Vec<u8>),
}

/// Events that are no part of an answer: data that is no JSON object, or an object that is not known.
/// Some servers send them to keep the connection alive.
#[derive(Debug, Default)]
pub(in crate::engine) struct Ignored {
    pub(in crate::engine) count: u64,
    /// The first one's data, or the beginning of it.
    pub(in crate::engine) first: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum BodyEnd {
    /// Its length, or a last chunk.
    Marked,
    /// Nothing but the end of the connection, which may be that of a broken one.
    Connection,
}

/// A part that is longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum TooLong {
    /// One event: longer than [`sse::EVENT_BYTES_MAX`].
    Event,
    /// The whole body: longer than [`WHOLE_BYTES_MAX`].
    Whole,
}

impl Body {
    /// Splits the next bytes; appends the complete parts to `parts`.
    pub(in crate::engine) fn push(
        &mut self,
        bytes: &[u8],
        parts: &mut Vec<Part>,
    ) -> Result<(), TooLong> {
        let mut bytes = bytes;
        if matches!(self, Self::Blank) {
            let start = bytes.iter().position(|byte| !is_blank(*byte)).unwrap_or(bytes.len());
            bytes = &bytes[start..];
            match bytes {
                [] => return Ok(()),
                [b'{', ..] => *self = Self::Whole(Vec::new()),
                [..] => *self = Self::Events(sse::Parser::default()),
            }
        }
        match self {
            Self::Blank => Ok(()),
            Self::Events(parser) => {
                parser.push(bytes, parts).map_err(|sse::TooLong| TooLong::Event)
            }
            Self::Lines(reader) => {
                let mut lines = Vec::new();
                let pushed = reader.push(bytes, &mut lines);
                parts.extend(lines.into_iter().map(line));
                pushed.map_err(|lines::TooLong| TooLong::Event)
            }
            Self::Whole(whole) if whole.len() + bytes.len() > WHOLE_BYTES_MAX => {
                Err(TooLong::Whole)
            }
            Self::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Only white space has been read.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        match self {
            Self::Blank => true,
            Self::Lines(reader) => !reader.has_content(),
            Self::Events(_) | Self::Whole(_) => false,
        }
    }

    /// A part that matters has begun and is not complete.
    pub(in crate::engine) fn is_filling(&self) -> bool {
        match self {
            Self::Blank => false,
            Self::Events(parser) => parser.is_in_json(),
            Self::Lines(reader) => reader.is_in_json(),
            Self::Whole(_) => true,
        }
    }

    /// The body has ended: returns the part it ended in.
    pub(in crate::engine) fn end(self) -> Option<Part> {
        match self {
            Self::Blank => None,
            Self::Events(parser) => parser.end().map(Part::Event),
            Self::Lines(mut reader) => reader.end().map(line),
            Self::Whole(whole) => Some(Part::Whole(whole)),
        }
    }
}

impl From<SseEvent> for Part {
    fn from(event: SseEvent) -> Self {
        Self::Event(event)
    }
}

fn line(data: Vec<u8>) -> Part {
    Part::Event(SseEvent { kind: Vec::new(), data })
}

/// White space, or a byte of a byte order mark.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pieces: &[&[u8]]) -> Vec<Part> {
        let mut body = Body::default();
        let mut parts = Vec::new();
        for piece in pieces {
            body.push(piece, &mut parts).expect("short");
        }
        parts.extend(body.end());
        parts
    }

    #[test]
    fn the_first_byte_tells_the_form_however_the_bytes_arrive() {
        let event = |data: &str| {
            Part::Event(sse::SseEvent { kind: Vec::new(), data: data.as_bytes().to_vec() })
        };
        let check = |bytes: &[u8], expected: &[Part]| {
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(parts(&[left, right]), expected, "{bytes:?} split at {at}");
            }
        };
        check(b"", &[]);
        check(b"\xEF\xBB\xBF \r\n", &[]);
        check(b"\xEF\xBB\xBF {\"a\":\n\n1}", &[Part::Whole(b"{\"a\":\n\n1}".to_vec())]);
        check(b"\xEF\xBB\xBFdata: {}\n\n\ndata: 2", &[event("{}"), event("2")]);
        check(b": x\n\ndata: 1\n\n", &[event("1")]);
        check(b"<html>\n\n</html>", &[]);
    }

    #[test]
    fn a_whole_body_is_bounded() {
        let mut body = Body::default();
        let mut parts = Vec::new();
        let fits = vec![b'{'; WHOLE_BYTES_MAX];
        assert_eq!(body.push(&fits, &mut parts), Ok(()));
        assert_eq!(body.push(b"}", &mut parts), Err(TooLong::Whole));
    }
}
