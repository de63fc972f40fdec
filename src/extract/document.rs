//! Finds the JSON document in an answer: in a fenced block, beside blocks of other things, or alone.

use super::DOCUMENT_BYTES_MAX;
use super::fence::{self, FENCE};
use super::lines::{trimmed_end, trimmed_start};
use serde::de::IgnoredAny;
use std::ops::Range;

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

/// Finds the document: in the first fenced block that is marked as JSON, else it is the only object or array
/// outside of the blocks, else the first block that is JSON, else the only object or array among lines of other
/// text, else the first block in a block that is marked as JSON, else the first block, else the whole text. A block
/// without an end extends to the end of the text, unless there is a document after a fence shorter than its own.
///
/// In a JSON text no line can begin or end with a fence, so a fence is never part of the document.
pub(super) fn place(answer: &str) -> Place<'_> {
    let blocks = blocks(answer);
    let Some(block) = document(answer, &blocks) else {
        let text = trimmed_start(answer);
        let line = line_at(answer, answer.len() - text.len());
        return Place { text: fence::without_closing(text), line, prose: None, is_open: true };
    };
    let text = block.text(answer);
    Place {
        text,
        line: line_at(answer, block.end - trimmed_start(&answer[block.start..block.end]).len()),
        prose: prose(answer, &block),
        is_open: block.is_open || block.ends_in_line,
    }
}

/// The part of the answer that holds the document; `None` if that is the whole text.
fn document(answer: &str, blocks: &[Block]) -> Option<Block> {
    let Some(first) = blocks.first() else {
        return among_lines(answer, blocks).filter(|_| !fence::is_value(trimmed_start(answer)));
    };
    if is_closed_only(answer, blocks) {
        return None;
    }
    let within = || blocks.iter().flat_map(|block| nested(answer, block)).find(|it| it.is_json);
    let behind = || document_of(answer, &closed_by_any(answer, blocks)?);
    let found = document_of(answer, blocks).or_else(within).or_else(behind);
    Some(found.unwrap_or_else(|| first.clone()))
}

/// The document in or beside these blocks, if one can be told.
fn document_of(answer: &str, blocks: &[Block]) -> Option<Block> {
    let marked = || blocks.iter().find(|block| block.is_json).cloned();
    let unmarked = || blocks.iter().find(|block| fence::is_value(block.text(answer))).cloned();
    let found = marked().or_else(|| outside(answer, blocks)).or_else(unmarked);
    found.or_else(|| among_lines(answer, blocks))
}

/// A fenced block: byte ranges.
#[derive(Clone, Debug)]
struct Block {
    /// What ends it, at the beginning of a line.
    fence: &'static str,
    /// The characters of its opening fence.
    fence_length: usize,
    /// Its content.
    start: usize,
    end: usize,
    /// The lines of the block and its fences.
    lines: Range<usize>,
    is_json: bool,
    /// It may be Markdown, with blocks in it.
    is_markdown: bool,
    /// The first character of its content that is no white space.
    first: Option<char>,
    /// It has no closing fence.
    is_open: bool,
    /// The closing fence is at the end of a line of the content. That shows no end: the answer may have been
    /// cut off in a string.
    ends_in_line: bool,
}

impl Block {
    fn text<'a>(&self, answer: &'a str) -> &'a str {
        trimmed_end(trimmed_start(&answer[self.start..self.end]))
    }

    /// The least characters of a fence that closes it. Any fence closes JSON, of which no line can begin or end with
    /// one; in another block a shorter fence than its own is content.
    fn closing_length(&self) -> usize {
        let is_like_json = self.is_json || matches!(self.first, Some('{' | '['));
        if is_like_json { FENCE.len() } else { self.fence_length }
    }

    /// Whether a line, without the white space before it, closes the block. Models also write text after a fence that
    /// closes; after a longer one it would be the beginning of a block within this one.
    fn is_closed_by(&self, line: &str) -> bool {
        let length = self.closing_length();
        if length <= FENCE.len() {
            return line.starts_with(self.fence);
        }
        let rest = fence::after_run(self.fence, line);
        line.len() - rest.len() >= length && trimmed_end(rest).is_empty()
    }

    /// Ends the block at a fence at the end of `rest`, which is the end of a line at `at`.
    fn end_in_line(&mut self, rest: &str, at: usize) {
        let content = fence::without_closing(rest);
        let line = trimmed_end(rest);
        let is_fenced = line.len() - line.trim_end_matches('`').len() >= self.closing_length();
        // In text or code a fence may as well end a piece of code within the line.
        if is_fenced && (self.is_json || content.ends_with(['}', ']'])) {
            (self.end, self.is_open, self.ends_in_line) = (at + content.len(), false, true);
        }
    }
}

/// The blocks of an answer, and in place of a block of Markdown those in it, if one of them may be the document.
fn blocks(answer: &str) -> Vec<Block> {
    let outer = blocks_in(answer, 0..answer.len(), usize::MAX).into_iter();
    outer.flat_map(|block| unwrapped(answer, block)).collect()
}

fn unwrapped(answer: &str, block: Block) -> Vec<Block> {
    let is_value = |block: &Block| fence::is_value(block.text(answer));
    if !block.is_markdown || is_value(&block) {
        return vec![block];
    }
    let nested = nested(answer, &block);
    let may_be_document = nested.iter().any(|block| block.is_json || is_value(block));
    if may_be_document { nested } else { vec![block] }
}

/// The blocks in a block. Its closing fence ends them, too.
fn nested(answer: &str, block: &Block) -> Vec<Block> {
    let mut nested = blocks_in(answer, block.start..block.end, usize::MAX);
    for inner in &mut nested {
        inner.is_open &= block.is_open;
    }
    nested
}

/// The blocks as they are if any fence closes the last one, which has a longer fence and no end, and those behind it;
/// `None` if it is not like that. A model may write a longer fence than it closes the block with.
fn closed_by_any(answer: &str, blocks: &[Block]) -> Option<Vec<Block>> {
    let (last, before) = blocks.split_last()?;
    let is_longer = last.is_open && last.closing_length() > FENCE.len();
    let read_again = || blocks_in(answer, last.lines.start..last.end, FENCE.len());
    is_longer.then(|| [before, &read_again()].concat())
}

/// The blocks in this place. Each is closed by a fence of `closing_max` characters, also if its own is longer.
fn blocks_in(answer: &str, place: Range<usize>, closing_max: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut next = place.start;
    for line in answer[place.clone()].split_inclusive('\n') {
        let start = next;
        next += line.len();
        let text = trimmed_start(line);
        match blocks.last_mut().filter(|block| block.is_open) {
            Some(block) => {
                if block.is_closed_by(text) {
                    (block.end, block.is_open) = (start, false);
                } else {
                    block.first = block.first.or_else(|| text.chars().next());
                    block.end_in_line(text, next - text.len());
                }
                block.lines.end = next;
            }
            None => {
                let after_prose = || Some((FENCE, fence_after_prose(text)?));
                let opening = fence::at_start(text).or_else(after_prose);
                let block = opening.map(|opening| opened(opening, start..next, place.end));
                let limited = |block: Block| {
                    let fence_length = block.fence_length.min(closing_max);
                    Block { fence_length, ..block }
                };
                blocks.extend(block.map(limited));
            }
        }
    }
    blocks
}

/// The block that a fence opens before `info`, the rest of this line.
fn opened((fence, info): (&'static str, &str), line: Range<usize>, end: usize) -> Block {
    let json = fence::json_at(info).map(|at| &info[at..]);
    let start = line.end - json.unwrap_or_default().len();
    let mut block = Block {
        fence,
        fence_length: fence.len() + info.len() - fence::after_run(fence, info).len(),
        start,
        end,
        lines: line.start..end,
        is_json: fence::word(info).eq_ignore_ascii_case("json"),
        is_markdown: ["", "md", "markdown"]
            .iter()
            .any(|it| fence::word(info).eq_ignore_ascii_case(it)),
        first: json.and_then(|json| json.chars().next()),
        is_open: true,
        ends_in_line: false,
    };
    if let Some(json) = json {
        block.end_in_line(json, start);
    }
    if !block.is_open {
        block.lines.end = line.end;
    }
    block
}

/// The mark of a fence for JSON at the end of a line of prose, as in "Here it is: ```json". Other fences there
/// may as well end a piece of code within the line.
fn fence_after_prose(line: &str) -> Option<&str> {
    let (prose, info) = line.split_once(FENCE)?;
    let is_json = trimmed_end(info).eq_ignore_ascii_case("json");
    (is_json && !trimmed_start(prose).is_empty()).then_some(info)
}

/// The text between blocks, before the first or after the last, that is an object or an array, if it is the
/// only one; other values are more likely the output of a program.
fn outside(answer: &str, blocks: &[Block]) -> Option<Block> {
    let between = between(blocks, answer.len()).map(|place| {
        let is_open = place.end == answer.len();
        unfenced(place, is_open)
    });
    let mut found = between.filter(|block| {
        let text = block.text(answer);
        text.starts_with(['{', '[']) && fence::is_value(text)
    });
    found.next().filter(|_| found.next().is_none())
}

/// The places before, between and after the blocks.
fn between(blocks: &[Block], end: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = [0].into_iter().chain(blocks.iter().map(|block| block.lines.end));
    let ends = blocks.iter().map(|block| block.lines.start).chain([end]);
    starts.zip(ends).map(|(start, end)| start..end)
}

/// A document without fences.
fn unfenced(place: Range<usize>, is_open: bool) -> Block {
    Block {
        fence: FENCE,
        fence_length: FENCE.len(),
        start: place.start,
        end: place.end,
        lines: place,
        is_json: false,
        is_markdown: false,
        first: None,
        is_open,
        ends_in_line: false,
    }
}

/// The object or array on lines of its own that lines of other text surround, if it is the only one. None if any
/// other line begins like one: a part of a document that is not valid is no document.
fn among_lines(answer: &str, blocks: &[Block]) -> Option<Block> {
    let mut found = None;
    for place in between(blocks, answer.len()) {
        let mut next = place.start;
        while let Some(line) = answer[next..place.end].split_inclusive('\n').next() {
            let start = next;
            next += line.len();
            let text = trimmed_start(line);
            if text.starts_with(['{', '[']) {
                let value = start + (line.len() - text.len());
                next = end_of_lines(&answer[value..place.end])? + value;
                if found.replace(unfenced(start..next, false)).is_some() {
                    return None;
                }
            }
        }
    }
    found
}

/// The end of the lines that a JSON value at the beginning of `text` is on; `None` if there is no value, or more on
/// its last line.
fn end_of_lines(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let end = values.byte_offset();
    let rest = text[end..].split_inclusive('\n').next().unwrap_or_default();
    trimmed_end(rest).is_empty().then_some(end + rest.len())
}

/// Whether the only fence is one that closes what begins without: the program has written the opening one in the
/// model's place.
fn is_closed_only(answer: &str, blocks: &[Block]) -> bool {
    let [block] = blocks else { return false };
    let before = trimmed_end(trimmed_start(&answer[..block.lines.start]));
    let is_stray = block.is_open && !block.is_json && block.text(answer).is_empty();
    is_stray && (before.starts_with(['{', '[']) || fence::is_value(before))
}

/// The first line outside of the block that is neither blank nor a fence.
fn prose(answer: &str, block: &Block) -> Option<u64> {
    let mut start = 0;
    for (number, line) in (1..).zip(answer.split_inclusive('\n')) {
        let is_outside = !(block.start..block.end).contains(&start);
        let text = trimmed_start(line);
        if is_outside && !text.is_empty() && fence::at_start(text).is_none() {
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
pub(crate) fn on_one_line(json: &str) -> String {
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
