//! A frame with long texts as bytes in pieces, so that no buffer ever holds all of it: the frame is encoded with
//! a marker for each of its long texts, which are read as their bytes are taken.

use super::coalescing::shared_payloads;
use crate::protocol::wire::Frame;
use crate::support::text::Text;
use crate::transport::Codec;
use memchr::memmem::Finder;
use std::collections::VecDeque;
use uuid::Uuid;

/// Bytes of a text from which a marker stands for it.
const MARKED_FROM_BYTES: usize = 16 * 1024;

/// Bytes of a text that are encoded at a time, and from which a batch of output is long enough.
const PIECE_BYTES: usize = 128 * 1024;

/// The long texts of a frame, each in the place of its marker, which no text of the conversation contains.
#[derive(Debug)]
pub(super) struct Marked {
    marker: String,
    texts: Vec<Text>,
}

/// The bytes of a frame that were not taken yet.
#[derive(Debug, Default)]
pub(super) struct Long {
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    /// A text, from this byte on.
    Text(Text, usize),
}

impl Marked {
    /// Puts markers in the place of the long texts of `frame`.
    pub(super) fn of(frame: &mut Frame) -> Self {
        let marker = Uuid::new_v4().simple().to_string();
        let mut texts = Vec::new();
        for shared in shared_payloads(frame) {
            shared.replace_texts(|text| {
                (text.len() >= MARKED_FROM_BYTES).then(|| {
                    texts.push(text.clone());
                    Text::from(format!("{marker}{:08x}", texts.len() - 1))
                })
            });
        }
        Self { marker, texts }
    }

    /// The bytes of the frame, from those that have the markers, and of what comes `after` it.
    pub(super) fn fill(self, bytes: &[u8], after: Vec<u8>) -> Long {
        let mut parts = VecDeque::new();
        let mut rest = bytes;
        let marker = Finder::new(&self.marker);
        while let Some(at) = marker.find(rest) {
            let (before, after) = rest.split_at(at);
            let Some((text, after)) = self.text(&after[self.marker.len()..]) else { break };
            parts.push_back(Part::Bytes(before.to_vec()));
            parts.push_back(Part::Text(text, 0));
            rest = after;
        }
        parts.extend([rest.to_vec(), after].map(Part::Bytes));
        Long { parts }
    }

    /// The text whose number `bytes` begins with, and what comes after that.
    fn text<'b>(&self, bytes: &'b [u8]) -> Option<(Text, &'b [u8])> {
        let (number, after) = bytes.split_at_checked(8)?;
        let number = usize::from_str_radix(str::from_utf8(number).ok()?, 16).ok()?;
        Some((self.texts.get(number)?.clone(), after))
    }
}

impl Long {
    /// Appends the next bytes: about [`PIECE_BYTES`].
    pub(super) fn take(&mut self, codec: &mut impl Codec, out: &mut Vec<u8>) {
        while out.len() < PIECE_BYTES
            && let Some(part) = self.parts.pop_front()
        {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(&bytes),
                Part::Text(text, from) => {
                    let until = text.floor_char_boundary(from + PIECE_BYTES);
                    codec.text(&text[from..until], out);
                    if until < text.len() {
                        self.parts.push_front(Part::Text(text, until));
                    }
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}
