//! What the keys of vi do to a text (POSIX.1-2024, `sh`, "Command Line Editing (vi-mode)"). Pure.

use super::folds::is_fold;
use super::{Editor, Move, is_blank, without_start};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Kinds of characters of which words are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Word,
    Other,
}

fn class(grapheme: &str) -> Class {
    match grapheme.chars().next() {
        Some(char) if char.is_whitespace() => Class::Space,
        Some(char) if char.is_alphanumeric() || char == '_' || is_fold(char) => Class::Word,
        Some(_) | None => Class::Other,
    }
}

impl Editor {
    /// The beginning of the word after `from`.
    pub(super) fn next_word(&self, from: usize) -> usize {
        let mut graphemes = self.text[from..].grapheme_indices(true).peekable();
        let first = graphemes.peek().map(|(_, grapheme)| class(grapheme));
        let mut rest = graphemes
            .skip_while(|(_, grapheme)| {
                Some(class(grapheme)) == first && first != Some(Class::Space)
            })
            .skip_while(|(_, grapheme)| class(grapheme) == Class::Space);
        rest.next().map_or(self.text.len(), |(at, _)| from + at)
    }

    /// The beginning of the word of `from`, or of the one before.
    pub(super) fn previous_word(&self, from: usize) -> usize {
        let graphemes = self.text[..from].grapheme_indices(true).rev();
        let mut before = graphemes.skip_while(|(_, grapheme)| class(grapheme) == Class::Space);
        let Some((mut start, last)) = before.next() else { return 0 };
        for (at, grapheme) in before {
            if class(grapheme) != class(last) {
                break;
            }
            start = at;
        }
        start
    }

    /// The last character of the word of `from`, or of the next one if that is there already.
    pub(super) fn word_end(&self, from: usize) -> usize {
        let graphemes = self.text[from..].grapheme_indices(true).skip(1);
        let mut after = graphemes.skip_while(|(_, grapheme)| class(grapheme) == Class::Space);
        let Some((mut end, first)) = after.next() else {
            return from + self.last_grapheme(&self.text[from..]);
        };
        for (at, grapheme) in after {
            if class(grapheme) != class(first) {
                break;
            }
            end = at;
        }
        from + end
    }

    /// Where the last grapheme of `text` begins.
    fn last_grapheme(&self, text: &str) -> usize {
        text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    /// The first character of the line of `from` that is no space.
    pub(super) fn first_of_line(&self, from: usize) -> usize {
        let (start, end) = (self.line_start(from), self.line_end(from));
        let line = &self.text[start..end];
        end - without_start(line, is_blank).len()
    }

    /// What a motion from the cursor on passes, `count` times. That of an operator has the last character of a word
    /// in it, and ends with the line at the latest; characters are those of the line.
    pub(crate) fn passed(&self, motion: Move, count: usize) -> Range<usize> {
        let mut target = self.led(motion, count);
        if motion == Move::WordEnd {
            target = self.target_from(target, Move::Right);
        }
        if motion == Move::NextWord {
            target = target.min(self.line_end(self.cursor));
        }
        self.cursor.min(target)..self.cursor.max(target)
    }

    /// What a change of `count` words passes: the space after the last one stays. The first one may end with the
    /// character of the cursor.
    pub(crate) fn passed_by_change(&self, count: usize) -> Range<usize> {
        let mut classes = self.text[self.cursor..].graphemes(true).map(class);
        let (first, second) = (classes.next(), classes.next());
        match first {
            Some(Class::Space) => self.passed(Move::NextWord, count),
            Some(Class::Word | Class::Other) | None => {
                let ends = usize::from(first != second);
                self.passed(Move::WordEnd, count.saturating_sub(ends))
            }
        }
    }

    /// Where a motion leads from the cursor on, `count` times; by characters no further than the line goes.
    fn led(&self, motion: Move, count: usize) -> usize {
        let mut target = self.cursor;
        for _ in 0..count {
            let next = self.target_from(target, motion);
            if next == target {
                break;
            }
            target = next;
        }
        if motion == Move::Left {
            target = target.max(self.line_start(self.cursor));
        }
        if motion == Move::Right {
            target = target.min(self.line_end(self.cursor));
        }
        target
    }

    /// Goes where the motion leads, `count` times.
    pub(crate) fn go_by(&mut self, motion: Move, count: usize) {
        self.ends_change();
        self.cursor = self.led(motion, count);
    }

    /// The line of the cursor, and `count - 1` lines after it, without the last line feed.
    pub(crate) fn lines(&self, count: usize) -> Range<usize> {
        let start = self.line_start(self.cursor);
        let mut end = self.line_end(self.cursor);
        for _ in 1..count {
            end = self.line_end((end + 1).min(self.text.len()));
        }
        start..end
    }

    /// The line of the cursor and all lines after it.
    pub(crate) fn lines_to_end(&self) -> Range<usize> {
        self.line_start(self.cursor)..self.text.len()
    }

    /// Keeps what is in the range, if there is something, to be put elsewhere; whole lines end with a line feed.
    pub(crate) fn copy(&mut self, range: Range<usize>, are_lines: bool) {
        if range.is_empty() && !are_lines {
            return;
        }
        let end = if are_lines { "\n" } else { "" };
        self.joins_cuts = false;
        self.cut = format!("{}{end}", &self.text[range]);
    }

    /// Cuts what is in the range. `are_lines`: with the line feed that separates the lines from the others.
    pub(crate) fn cut(&mut self, mut range: Range<usize>, are_lines: bool) {
        self.copy(range.clone(), are_lines);
        if are_lines && range.end < self.text.len() {
            range.end += 1;
        } else if are_lines && range.start > 0 {
            range.start -= 1;
        }
        if range.is_empty() {
            return;
        }
        self.keep_for_undo(false);
        self.text.drain(range.clone());
        self.cursor = self.border_from(range.start);
    }

    /// Puts what was cut or copied last after the cursor, or before it.
    pub(crate) fn put_back(&mut self, is_after: bool) {
        if self.cut.is_empty() {
            return;
        }
        let cut = self.cut.clone();
        self.keep_for_undo(false);
        let Some(lines) = cut.strip_suffix('\n') else {
            if is_after && self.cursor < self.line_end(self.cursor) {
                self.cursor = self.target(Move::Right);
            }
            self.put(&cut);
            self.cursor = self.target(Move::Left);
            return;
        };
        let start = match is_after {
            true => self.line_end(self.cursor),
            false => self.line_start(self.cursor),
        };
        self.cursor = start;
        let (text, at) = match is_after {
            true => (format!("\n{lines}"), start + 1),
            false => (cut.clone(), start),
        };
        self.put(&text);
        self.cursor = at;
    }

    /// Replaces the characters from the cursor on, if the line has so many.
    pub(crate) fn replace_chars(&mut self, char: char, count: usize) {
        let range = self.passed(Move::Right, count);
        if self.text[range.clone()].graphemes(true).count() < count {
            return;
        }
        self.keep_for_undo(false);
        self.text.replace_range(range.clone(), &char.to_string().repeat(count));
        self.cursor = self.border_from(range.start);
    }

    /// Puts the cursor on a character: not after the last one of a line.
    pub(crate) fn stay_on_line(&mut self) {
        if self.cursor == self.line_end(self.cursor) && self.cursor > self.line_start(self.cursor) {
            self.cursor = self.target(Move::Left);
        }
    }
}
