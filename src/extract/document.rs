//! Finds the JSON document in an answer: a fenced block if there is one, else the whole text.

use super::lines::{trimmed_end, trimmed_start};
use super::{DOCUMENT_BYTES_MAX, FENCE};

/// The answer so far.
#[derive(Clone, Debug)]
pub(super) enum Document {
    /// The whole text.
    Text(String),
    /// The text exceeds the limit.
    TooLong,
}

impl Default for Document {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Document {
    /// Adds the next piece.
    pub(super) fn push(&mut self, piece: &str) {
        match self {
            Self::Text(text) if text.len() + piece.len() <= DOCUMENT_BYTES_MAX => {
                text.push_str(piece);
            }
            Self::Text(_) | Self::TooLong => *self = Self::TooLong,
        }
    }
}

/// The place of the document in an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The document, without the white space around it.
    pub(super) text: &'a str,
    /// The line of the answer on which it begins, from 1.
    pub(super) line: u64,
    /// First line of the answer, from 1, with text outside the document's fence.
    pub(super) prose: Option<u64>,
    /// It extends to the end of the answer, so it may be incomplete.
    pub(super) is_open: bool,
}

/// Finds the document: in the first fenced block that is marked as JSON, else in the first block,
/// else it is the whole text. A block that never ends goes to the end of the text.
///
/// In a JSON text no line can begin with a fence, so a fence is never part of the document.
pub(super) fn place(answer: &str) -> Place<'_> {
    let blocks = blocks(answer);
    let Some(block) = blocks.iter().find(|block| block.is_json).or(blocks.first()) else {
        let text = trimmed_start(answer);
        let line = line_at(answer, answer.len() - text.len());
        return Place { text: trimmed_end(text), line, prose: None, is_open: true };
    };
    let text = trimmed_start(&answer[block.start..block.end]);
    Place {
        text: trimmed_end(text),
        line: line_at(answer, block.end - text.len()),
        prose: prose(answer, block),
        is_open: block.is_open,
    }
}

/// A fenced block: the byte range of its content.
#[derive(Debug)]
struct Block {
    start: usize,
    end: usize,
    is_json: bool,
    /// It has no closing fence.
    is_open: bool,
}

fn blocks(answer: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut start = 0;
    for line in answer.split_inclusive('\n') {
        let next = start + line.len();
        let is_in_block = blocks.last().is_some_and(|block| block.is_open);
        let text = trimmed_start(line);
        let after_prose = || fence_after_prose(text).filter(|_| !is_in_block);
        let fence = text.strip_prefix(FENCE).or_else(after_prose);
        match (fence, blocks.last_mut()) {
            (Some(_), Some(block)) if block.is_open => {
                block.end = start;
                block.is_open = false;
            }
            (Some(info), _) => {
                let is_json = trimmed_end(info).eq_ignore_ascii_case("json");
                blocks.push(Block { start: next, end: answer.len(), is_json, is_open: true });
            }
            (None, _) => {}
        }
        start = next;
    }
    blocks
}

/// The mark of a fence for JSON at the end of a line of prose, as in "Here it is: ```json". Other fences there
/// may as well end a piece of code within the line.
fn fence_after_prose(line: &str) -> Option<&str> {
    let (prose, info) = line.split_once(FENCE)?;
    let is_json = trimmed_end(info).eq_ignore_ascii_case("json");
    (is_json && !trimmed_start(prose).is_empty()).then_some(info)
}

/// The first line outside of the block that is neither blank nor a fence.
fn prose(answer: &str, block: &Block) -> Option<u64> {
    let mut start = 0;
    for (number, line) in (1..).zip(answer.split_inclusive('\n')) {
        let is_outside = !(block.start..block.end).contains(&start);
        let text = trimmed_start(line);
        if is_outside && !text.is_empty() && !text.starts_with(FENCE) {
            return Some(number);
        }
        start += line.len();
    }
    None
}

/// The line, from 1, of a byte offset.
fn line_at(text: &str, at: usize) -> u64 {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() as u64
}

/// A JSON text on one line, unchanged except for the white space between its tokens.
pub(super) fn on_one_line(json: &str) -> String {
    if !json.contains(['\n', '\r']) {
        return json.to_owned();
    }
    let mut is_string = false;
    let mut is_escaped = false;
    let stays = |character: &char| {
        let stays = is_string || !character.is_ascii_whitespace();
        if is_escaped {
            is_escaped = false;
        } else if *character == '"' {
            is_string = !is_string;
        } else {
            is_escaped = is_string && *character == '\\';
        }
        stays
    };
    json.chars().filter(stays).collect()
}
