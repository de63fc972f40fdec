//! What the keys of vi do to a text (POSIX.1-2024, `sh`, "Command Line Editing (vi-mode)"). Pure.

use super::folds::is_fold;
use super::{Editor, Move};
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
    /// The beginning of the next word.
    pub(super) fn next_word(&self) -> usize {
        let mut graphemes = self.text[self.cursor..].grapheme_indices(true).peekable();
        let first = graphemes.peek().map(|(_, grapheme)| class(grapheme));
        let mut rest = graphemes
            .skip_while(|(_, grapheme)| {
                Some(class(grapheme)) == first && first != Some(Class::Space)
            })
            .skip_while(|(_, grapheme)| class(grapheme) == Class::Space);
        rest.next().map_or(self.text.len(), |(at, _)| self.cursor + at)
    }

    /// The beginning of this word, or of the one before.
    pub(super) fn previous_word(&self) -> usize {
        let graphemes = self.text[..self.cursor].grapheme_indices(true).rev();
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

    /// The last character of this word, or of the next one if the cursor is there already.
    pub(super) fn word_end(&self) -> usize {
        let graphemes = self.text[self.cursor..].grapheme_indices(true).skip(1);
        let mut after = graphemes.skip_while(|(_, grapheme)| class(grapheme) == Class::Space);
        let Some((mut end, first)) = after.next() else {
            return self.cursor + self.last_grapheme(&self.text[self.cursor..]);
        };
        for (at, grapheme) in after {
            if class(grapheme) != class(first) {
                break;
            }
            end = at;
        }
        self.cursor + end
    }

    /// Where the last grapheme of `text` begins.
    fn last_grapheme(&self, text: &str) -> usize {
        text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    /// The first character of the line that is no space.
    pub(super) fn first_of_line(&self) -> usize {
        let (start, end) = (self.line_start(self.cursor), self.line_end(self.cursor));
        let line = &self.text[start..end];
        start + (line.len() - line.trim_start().len())
    }

    /// What a motion from the cursor on passes, `count` times. That of an operator has the last character of a word
    /// in it, and ends with the line at the latest.
    pub(crate) fn passed(&self, motion: Move, count: usize) -> Range<usize> {
        let mut editor = self.clone();
        for _ in 0..count {
            editor.cursor = editor.target(motion);
        }
        if motion == Move::WordEnd {
            editor.cursor = editor.target(Move::Right);
        }
        let mut target = editor.cursor;
        if motion == Move::NextWord {
            target = target.min(self.line_end(self.cursor));
        }
        self.cursor.min(target)..self.cursor.max(target)
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

    /// Keeps what is in the range to be put elsewhere; whole lines end with a line feed.
    pub(crate) fn copy(&mut self, range: Range<usize>, are_lines: bool) {
        let end = if are_lines { "\n" } else { "" };
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

    /// Replaces the characters from the cursor on.
    pub(crate) fn replace_chars(&mut self, char: char, count: usize) {
        let range = self.passed(Move::Right, count);
        if range.is_empty() || self.text[range.clone()].contains('\n') {
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
