//! Draws the rest of blocks whose first lines were printed before they were complete. The position is an offset
//! in the text, so that the rest can be drawn at any width.

use super::render::{self, Page};
use super::{Block, Face, Inline, Theme};
use crate::tui::text::Line;

/// The text of blocks that has been printed although the blocks were still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    text: String,
    /// The columns of the table whose first rows were printed.
    table: Option<Columns>,
}

/// The columns of a table, which stay once a row was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The width of the place that the table was drawn for.
    pub(super) page: usize,
    pub(super) widths: Vec<usize>,
    /// There is an empty line between two rows.
    pub(super) is_loose: bool,
}

/// The lines of blocks that were not printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    pub(crate) lines: Vec<Line>,
    /// For each line, where its text ends in that of the rest; `None` where the two can't be told apart,
    /// as between the lines of a cell.
    ends: Vec<Option<usize>>,
    text: String,
    /// The text up to here is final, whatever the document continues with.
    settled: usize,
    /// The last block is prose, which can be printed in parts.
    is_prose: bool,
    /// The columns of the last table.
    table: Option<Columns>,
}

impl Committed {
    /// Draws the rest of open blocks.
    pub(crate) fn rest(&self, blocks: &[Block], width: usize, theme: &Theme) -> Rest {
        let mut walk = self.walk();
        let drawn: Vec<_> =
            blocks.iter().flat_map(|block| Page::lines(block, width, theme, &mut walk)).collect();
        let ends = drawn.iter().map(|line| line.end).collect();
        let Walk { text, settled, is_prose, table, .. } = walk;
        let lines = drawn.into_iter().map(render::Drawn::line).collect();
        Rest { lines, ends, text, settled, is_prose, table }
    }

    fn walk(&self) -> Walk<'_> {
        Walk { printed: self.table.as_ref(), ..Walk::new(&self.text) }
    }

    /// Draws the rest of a block that is complete.
    pub(crate) fn complete(&mut self, block: &Block, width: usize, theme: &Theme) -> Vec<Line> {
        let mut walk = self.walk();
        let drawn = Page::lines(block, width, theme, &mut walk);
        let left = walk.committed.len();
        self.text.drain(..self.text.len() - left);
        drawn.into_iter().map(render::Drawn::line).collect()
    }

    /// The first `count` lines of `rest` are printed.
    pub(crate) fn commit(&mut self, rest: &Rest, count: usize) {
        let ends = rest.ends.iter().take(count).flatten();
        let end = ends.max().copied().unwrap_or(0);
        self.text.push_str(rest.text.get(..end).unwrap_or_default());
        self.table.clone_from(&rest.table);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Rest {
    /// How many lines can be printed, because nothing that follows changes them.
    pub(crate) fn settled_lines(&self) -> usize {
        let is_settled = |end: &Option<usize>| end.is_some_and(|end| end <= self.settled);
        self.ends.iter().rposition(is_settled).map_or(0, |last| last + 1)
    }

    /// How many lines must be printed for `count` lines to be printed: a part of a table's row can't be.
    /// `None` if there is no such place.
    pub(crate) fn place_after(&self, count: usize) -> Option<usize> {
        if count == 0 {
            return Some(0);
        }
        let ends = self.ends.iter().skip(count - 1);
        ends.into_iter().position(Option::is_some).map(|more| count + more)
    }

    /// Whether lines that may still change can be printed all the same: prose that goes on for long.
    pub(crate) fn is_prose(&self) -> bool {
        self.is_prose
    }

    /// Without the first `count` lines, of which the text was committed.
    pub(crate) fn after(mut self, count: usize) -> Self {
        let count = count.min(self.lines.len());
        let start = self.ends.iter().take(count).flatten().max().copied().unwrap_or(0);
        self.lines.drain(..count);
        self.ends.drain(..count);
        self.text.drain(..start);
        self.settled = self.settled.saturating_sub(start);
        for end in self.ends.iter_mut().flatten() {
            *end -= start;
        }
        self
    }

    /// With the first `count` lines alone.
    pub(crate) fn truncated(mut self, count: usize) -> Self {
        self.lines.truncate(count);
        self.ends.truncate(count);
        self
    }

    /// With a line before the others, which is printed with the first of them.
    pub(crate) fn with_gap(mut self) -> Self {
        self.lines.insert(0, Line::default());
        self.ends.insert(0, None);
        self
    }
}

/// Goes over the texts of blocks, from one leaf to the next, and leaves out those that were printed.
pub(super) struct Walk<'a> {
    /// The rest of the committed text.
    committed: &'a str,
    /// The text that was not left out. Each leaf ends with a line break.
    text: String,
    settled: usize,
    is_prose: bool,
    /// The columns of the table that is printed in part, if there is one.
    printed: Option<&'a Columns>,
    table: Option<Columns>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(committed: &'a str) -> Self {
        let (text, settled, is_prose) = (String::new(), 0, false);
        Self { committed, text, settled, is_prose, printed: None, table: None }
    }

    /// The columns of the table that comes next, if rows of it were printed on a page of that width.
    pub(super) fn columns(&self, page: usize) -> Option<&'a Columns> {
        self.printed.filter(|columns| self.is_inside() && columns.page == page)
    }

    /// The leaves from `start` on are the rows of a table: each row that comes may make a column wider, so
    /// none is final before the end. A long table is printed in parts all the same.
    pub(super) fn table(&mut self, start: usize, columns: Option<Columns>) {
        self.settled = start;
        self.is_prose = true;
        self.table = columns;
    }

    /// Whether some of what comes next was printed.
    pub(super) fn is_inside(&self) -> bool {
        !self.committed.is_empty()
    }

    /// Where the text of the rest ends.
    pub(super) fn end(&self) -> usize {
        self.text.len()
    }

    /// The next leaf has this text: returns where the part begins that was not printed, or nothing if all of
    /// it was.
    pub(super) fn leaf(&mut self, text: &str) -> Option<usize> {
        self.settled = self.text.len();
        self.is_prose = false;
        let start = match self.committed {
            "" => 0,
            committed => {
                let (taken, start) = matched(committed, text);
                self.committed = &committed[taken..];
                let rest = text.get(start..).unwrap_or_default();
                // The last line of a leaf may have been printed before its line break was known.
                let is_whole = start > 0 && rest.trim().is_empty();
                if !self.committed.is_empty() || start > text.len() || is_whole {
                    return None;
                }
                start + (rest.len() - rest.trim_start_matches([' ', '\n']).len())
            }
        };
        self.text.push_str(&text[start..]);
        self.text.push('\n');
        Some(start)
    }

    /// The leaf that came last is prose, whose inline text from `start` on is this. All of it but its last
    /// line settles as it arrives, up to a mark that something which follows may give a meaning.
    pub(super) fn prose(&mut self, text: &[Inline], start: usize) {
        self.is_prose = true;
        self.settled += unsettled(text, start).saturating_sub(start);
    }

    /// The leaf that came last is text that can be printed in parts but does not settle before its end.
    pub(super) fn changing_prose(&mut self) {
        self.is_prose = true;
    }
}

/// How much of the committed text is of the leaf `text`, which a line break ends, and where in `text` it
/// ends; beyond its end if the line break is committed too.
///
/// A leaf that went on may read otherwise: a mark that was printed as a character now stresses a word. Then
/// the two are compared by the letters that they have.
fn matched(committed: &str, text: &str) -> (usize, usize) {
    let ends = committed.strip_prefix(text).is_some_and(|rest| rest.starts_with('\n'));
    if ends {
        return (text.len() + 1, text.len() + 1);
    }
    if text.starts_with(committed) {
        return (committed.len(), committed.len());
    }
    if let (false, Some(rest)) = (text.is_empty(), committed.strip_prefix(text)) {
        // A long block was cut: the next one continues it.
        return (committed.len() - rest.trim_start().len(), text.len() + 1);
    }
    let (mut taken, mut start) = (0, 0);
    loop {
        let (printed, rest) = (&committed[taken..], &text[start..]);
        let line = printed.find('\n').map_or(printed.len(), |at| at + 1);
        match (letter(printed), letter(rest)) {
            (Some((one, here)), Some((other, there))) if one == other => {
                (taken, start) = (taken + here, start + there);
            }
            // The leaf does not have the rest of this line any more. Its own is better printed twice than not at
            // all.
            (Some(_), Some(_)) => taken += line,
            (None, Some(_)) => return (committed.len(), start),
            (Some(_), None) => return (taken + line, text.len() + 1),
            (None, None) => return (committed.len(), text.len() + 1),
        }
    }
}

/// The first character that no mark of Markdown is, and where it ends.
fn letter(text: &str) -> Option<(char, usize)> {
    let is_letter = |char: char| !char.is_whitespace() && !"*_~`[]()<>|\\!&;#".contains(char);
    let (at, char) = text.char_indices().find(|(_, char)| is_letter(*char))?;
    Some((char, at + char.len_utf8()))
}

/// The end of the last word at or after `start` before one with a character that may become a mark of Markdown
/// by what follows the text, or the end. The line before such a word may have room for it without the mark.
fn unsettled(text: &[Inline], start: usize) -> usize {
    let all: String = text.iter().map(|run| run.text.as_str()).collect();
    let mut from = 0;
    for run in text {
        let end = from + run.text.len();
        if !matches!(run.face, Face::Code) {
            let marks = run.text.char_indices().map(|(at, char)| (from + at, char));
            let mut marks = marks.filter(|(at, char)| *at >= start && may_open(&all, *at, *char));
            if let Some((at, _)) = marks.next() {
                return all[..at].rfind(char::is_whitespace).unwrap_or(0).max(start);
            }
        }
        from = end;
    }
    all.len()
}

/// Whether the character of `text` at this place may begin a mark that something which follows ends
/// (CommonMark 0.31, sections 6.1 to 6.5).
fn may_open(text: &str, at: usize, char: char) -> bool {
    let before = text[..at].chars().next_back();
    let rest = &text[at..];
    let after = rest.trim_start_matches(char).chars().next();
    let next = rest.chars().nth(1);
    match char {
        '*' | '~' => after.is_none_or(|after| !after.is_whitespace()),
        '_' => {
            let in_word = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
            !in_word && after.is_none_or(|after| !after.is_whitespace())
        }
        // The line may become the header of a table.
        '`' | '|' => true,
        '[' => match rest.find(']') {
            Some(end) => rest[end + 1..].chars().next().is_none_or(|next| "([:".contains(next)),
            None => true,
        },
        '<' => {
            let opens = next.is_none_or(|next| next.is_ascii_alphabetic() || "/!?".contains(next));
            opens && !rest.contains('>')
        }
        '&' => rest[1..].chars().all(|char| char.is_ascii_alphanumeric() || char == '#'),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
