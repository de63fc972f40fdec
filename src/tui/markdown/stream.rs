//! Markdown that arrives in pieces: blocks are given as soon as nothing that follows can change them.

use super::blocks::{self, After, Before, Shape, Top};
use super::code::{Highlighter, caption};
use super::fence::Fence;
use super::{Block, CodePlace, Kind};
use std::borrow::Cow;

/// The most source that is read again with each line: a longer block is cut where a line or a word
/// ends.
const OPEN_BYTES_MAX: usize = 16 * 1024;

/// A longer table is drawn as several, each with the head.
const TABLE_ROWS_MAX: usize = 50;

/// Reads a document while it arrives.
///
/// Blocks end as in CommonMark, and what ends them is a complete line: the one that begins the next
/// block, item or, in a block of code, line. Three things differ, so that a block that was given never
/// changes: a reference to a link that is not defined before the next block begins is shown as it is
/// written, as are all definitions; empty lines are drawn between the items that have them; and a block
/// that does not end within [`OPEN_BYTES_MAX`] is cut.
///
/// The result does not depend on how the text is cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The source of the open block. Outside code it begins with a line that is not empty.
    open: String,
    before: Before,
    code: Option<OpenCode>,
    closed: Vec<Block>,
    after_return: bool,
    /// How many bytes were parsed, for tests of how much work there is.
    parsed_bytes: usize,
}

/// A block of code that is open.
#[derive(Debug)]
struct OpenCode {
    fence: Fence,
    highlighter: Highlighter,
    place: CodePlace,
    /// Whether the beginning of the line was given already, because of its length.
    in_line: bool,
}

impl Markdown {
    /// Takes the next piece of the document.
    pub(crate) fn push(&mut self, piece: &str) {
        for part in piece.split_inclusive(['\n', '\r']) {
            // A line ends in LF, CRLF or CR, and is stored with LF.
            let after_return = std::mem::replace(&mut self.after_return, part.ends_with('\r'));
            match part.strip_suffix(['\n', '\r']) {
                Some("") if after_return && part == "\n" => {}
                Some(line) => {
                    self.push_part(line);
                    self.push_part("\n");
                    self.line_ended();
                }
                None => self.push_part(part),
            }
        }
    }

    /// Ends the document and closes the open block. The next push begins another document.
    pub(crate) fn finish(&mut self) {
        let rest = self.read_open(&self.open);
        self.parsed_bytes += self.open.len();
        let closed = std::mem::take(&mut self.closed).into_iter().chain(rest).collect();
        *self = Markdown { closed, parsed_bytes: self.parsed_bytes, ..Markdown::default() };
    }

    /// The blocks that can't change any more and were not taken yet.
    pub(crate) fn take_closed(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.closed)
    }

    /// The blocks that the next piece may change.
    ///
    /// Where the last line is nothing but the beginning of a mark, which could make a heading of the
    /// paragraph before it, or of a definition that could make links of its brackets, or where a table has no more
    /// than a head, it is left out: what is shown
    /// must not change its look for the time of one piece.
    pub(crate) fn open(&self) -> Vec<Block> {
        self.read_open(if self.code.is_some() { &self.open } else { settled(&self.open) })
    }

    fn read_open(&self, open: &str) -> Vec<Block> {
        let Some(code) = &self.code else {
            return blocks::read(open, self.before)
                .into_iter()
                .flat_map(|top| top.blocks)
                .collect();
        };
        // Spaces alone may be the indentation of the closing fence.
        if !code.in_line && (is_blank(open) || code.fence.is_closed_by(open)) {
            return Vec::new();
        }
        let (mut place, caption) = (code.place, caption(code.fence.info()));
        let mut highlighter = code.highlighter.clone();
        code_lines(&mut highlighter, &code.text(open), &mut place, caption, self.before)
    }

    /// Takes a part of one line, or its end.
    fn push_part(&mut self, mut part: &str) {
        while self.open.len() + part.len() > OPEN_BYTES_MAX {
            let room = part.floor_char_boundary(OPEN_BYTES_MAX - self.open.len());
            self.open.push_str(&part[..room]);
            part = &part[room..];
            let full = self.open.len();
            self.cut();
            if self.open.len() == full {
                // No kind of block may keep all of its source: the loop would not end.
                let tops = self.parse(full);
                self.give(tops);
                self.open.clear();
            }
        }
        self.open.push_str(part);
    }

    fn line_ended(&mut self) {
        if self.code.is_some() {
            return self.code_line_ended();
        }
        if is_blank(&self.open) {
            self.before.blank = true;
            self.open.clear();
            return;
        }
        let lines = self.open.strip_suffix('\n').unwrap_or(&self.open);
        let (before, line) = lines.rsplit_once('\n').unwrap_or(("", lines));
        let last = before.rsplit('\n').next().unwrap_or_default();
        // Most lines continue a paragraph: a letter or a bracket begins a block only after an empty line.
        let is_text = |first: char| first.is_alphabetic() || first == '[';
        let goes_on = !is_blank(last) && line.starts_with(is_text)
            // Two such lines are of one quote.
            || last.starts_with('>') && line.starts_with('>');
        if !goes_on && !is_blank(line) {
            self.close();
        }
    }

    /// Closes every block but the last, and of a list every item but the last.
    fn close(&mut self) {
        let mut tops = self.parse(self.open.len());
        let Some(last) = tops.pop() else { return };
        self.give(tops);
        match &last.shape {
            Shape::List { starts, last: number } if starts.len() > 1 => {
                let start = starts[starts.len() - 1];
                let blank = ends_in_empty_line(&self.open[..start]);
                let mut items = last.blocks;
                items.truncate(starts.len() - 1);
                self.closed.extend(items);
                self.before = Before { after: After::Item, blank, number: *number };
                self.open.drain(..start);
            }
            Shape::List { .. } | Shape::Other => self.keep_from(last.start),
            Shape::Table { rows } if rows.len() > TABLE_ROWS_MAX => self.close_rows(&last, rows),
            Shape::Table { .. } => self.keep_from(last.start),
            Shape::Fenced => {
                self.keep_from(last.start);
                self.open_code();
            }
        }
    }

    /// What is before `start` was closed.
    fn keep_from(&mut self, start: usize) {
        if start > 0 {
            self.before.blank = ends_in_empty_line(&self.open[..start]);
            self.before.number = None;
            self.open.drain(..start);
        }
    }

    /// Closes all rows of a table but the last; the head stays for that one.
    fn close_rows(&mut self, top: &Top, rows: &[usize]) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
        let mut blocks = top.blocks.clone();
        for block in &mut blocks {
            if let Kind::Table(table) = &mut block.kind {
                table.rows.truncate(rows.len() - 1);
            }
        }
        self.closed.extend(blocks);
        self.open.drain(*first..*last);
        self.keep_from(top.start);
        self.before = Before { after: After::Other, blank: false, number: None };
    }

    /// Closes the part of a block that is too long, up to the end of a line or a word. Of a table with several rows
    /// the last one stays, with the head, unless that is long itself.
    fn cut(&mut self) {
        if self.code.is_some() {
            return self.cut_code_line();
        }
        let tail = self.open.floor_char_boundary(OPEN_BYTES_MAX / 2);
        let place = |mark: char| self.open[tail..].rfind(mark).map(|at| tail + at + 1);
        let end = place('\n').or_else(|| place(' ')).unwrap_or(self.open.len());
        let mut tops = self.parse(end);
        let is_table = |top: &mut Top| {
            let Shape::Table { rows } = &top.shape else { return false };
            rows.len() > 1 && rows[0] < OPEN_BYTES_MAX / 4
        };
        if let Some(table) = tops.pop_if(is_table)
            && let Shape::Table { rows } = &table.shape
        {
            self.give(tops);
            return self.close_rows(&table, rows);
        }
        let nested = tops.last().and_then(|top| open_fence(&self.open[top.start..end], top));
        self.give(tops);
        self.open.drain(..end);
        self.before = Before { after: After::Cut, blank: false, number: None };
        if let Some(fence) = nested {
            self.code = Some(OpenCode::new(fence, CodePlace::Later));
        }
    }

    fn parse(&mut self, end: usize) -> Vec<Top> {
        self.parsed_bytes += end;
        blocks::read(&self.open[..end], self.before)
    }

    fn give(&mut self, tops: Vec<Top>) {
        for block in tops.into_iter().flat_map(|top| top.blocks) {
            self.before.after = After::block(&block);
            self.closed.push(block);
        }
    }

    /// The open line is a fence.
    fn open_code(&mut self) {
        if let Some(fence) = Fence::open(&self.open) {
            self.code = Some(OpenCode::new(fence, CodePlace::First));
            self.open.clear();
        }
    }

    fn code_line_ended(&mut self) {
        let Some(code) = &mut self.code else { return };
        let closes = !code.in_line && code.fence.is_closed_by(&self.open);
        if closes {
            self.code = None;
            self.before = Before { after: self.before.after, blank: false, number: None };
        } else if !code.in_line || self.open != "\n" {
            self.give_code();
        }
        self.open.clear();
        if let Some(code) = &mut self.code {
            code.in_line = false;
        }
    }

    fn cut_code_line(&mut self) {
        self.give_code();
        self.open.clear();
        if let Some(code) = &mut self.code {
            code.in_line = true;
        }
    }

    fn give_code(&mut self) {
        let Some(code) = &mut self.code else { return };
        self.parsed_bytes += self.open.len();
        let text = code.text(&self.open);
        let caption = caption(code.fence.info());
        let lines = code_lines(&mut code.highlighter, &text, &mut code.place, caption, self.before);
        self.closed.extend(lines);
        self.before.after = After::Other;
    }
}

#[cfg(test)]
impl Markdown {
    pub(super) fn parsed_bytes(&self) -> usize {
        self.parsed_bytes
    }

    pub(super) fn open_bytes(&self) -> usize {
        self.open.len()
    }
}

impl OpenCode {
    fn new(fence: Fence, place: CodePlace) -> OpenCode {
        let highlighter = Highlighter::new(fence.info());
        OpenCode { fence, highlighter, place, in_line: false }
    }

    /// The text of a line, or of what is open of it.
    fn text<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let whole = line.strip_suffix('\n').unwrap_or(line);
        if self.in_line { whole.into() } else { self.fence.content(line) }
    }
}

fn code_lines(
    highlighter: &mut Highlighter,
    text: &str,
    place: &mut CodePlace,
    caption: Option<Kind>,
    before: Before,
) -> Vec<Block> {
    let is_first = *place == CodePlace::First;
    let lines = highlighter.lines(text).into_iter().map(|spans| {
        let place = std::mem::replace(place, CodePlace::Later);
        Kind::CodeLine { place, spans }
    });
    let kinds: Vec<_> = caption.filter(|_| is_first).into_iter().chain(lines).collect();
    let blocks = kinds.into_iter().enumerate().map(|(at, kind)| {
        let gap = at == 0 && is_first && before.after != After::Nothing;
        Block { gap, kind }
    });
    blocks.collect()
}

fn ends_in_empty_line(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.rsplit('\n').next().is_some_and(is_blank)
}

/// `open` without the part that can't be shown yet.
fn settled(open: &str) -> &str {
    let (before, line) = match open.rfind('\n') {
        Some(at) => (&open[..at], &open[at + 1..]),
        None => ("", open),
    };
    let is_mark =
        |character: char| "-=*+#_`~>|: .)".contains(character) || character.is_ascii_digit();
    let after_text = before.rsplit('\n').next().is_some_and(|it| !is_blank(it));
    if open.starts_with('|') && !before.contains('\n') {
        // The head of a table, as long as the line below it is not complete.
        ""
    } else if after_text && line.chars().all(is_mark) || before.contains('[') && may_define(line) {
        before
    } else {
        open
    }
}

/// Whether `line` may become the definition of a link (CommonMark 0.31, section 4.7): a label, an address and
/// perhaps a title. The text of a footnote has more words.
fn may_define(line: &str) -> bool {
    let Some(label) = line.trim_start().strip_prefix('[') else { return false };
    let Some((_, rest)) = label.split_once(']') else { return true };
    if rest.is_empty() {
        return true;
    }
    let Some(rest) = rest.strip_prefix(':') else { return false };
    let title = rest.split_whitespace().nth(1);
    rest.trim_start().starts_with('<') || title.is_none_or(|it| it.starts_with(['"', '\'', '(']))
}

/// The fence of the block of code that `source` ends in, if only lists are around it.
fn open_fence(source: &str, top: &Top) -> Option<Fence> {
    let Shape::List { .. } = top.shape else { return None };
    let mut fence: Option<Fence> = None;
    for line in source.lines() {
        fence = match fence {
            Some(open) if open.is_closed_by(line) => None,
            Some(open) => Some(open),
            None => Fence::open(line),
        };
    }
    fence
}

/// Whether `line` has nothing but spaces and tabs.
fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n'))
}
