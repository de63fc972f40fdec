//! The text that a person is writing: an editor of several lines with the keys of readline. Pure.

mod complete;
mod folds;
mod history;
mod undo;
mod vi;

pub(crate) use complete::{
    Candidates, Completion, fuzzy, meanings, mentions, needs_quotes, quoted, unquoted,
};
pub(crate) use folds::{FoldOf, FoldedText};
pub(crate) use history::{ENTRIES_MAX, History};

use folds::{Fold, is_fold, without_folds};
use undo::Undo;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// A text and the place in it where the next character goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// A byte, at the border of a grapheme.
    cursor: usize,
    /// What was cut last.
    cut: String,
    /// The last key has cut: what the next one cuts is joined to that, as in readline.
    joins_cuts: bool,
    /// Texts that one character each stands for.
    folds: Vec<Fold>,
    undo: Undo,
}

/// Moves of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    /// To the beginning of what stands between white space.
    BlankLeft,
    LineStart,
    LineEnd,
    Start,
    End,
    /// vi's `w`, `b`, `e` and `^`; `e` leads to the last character of a word.
    NextWord,
    PreviousWord,
    WordEnd,
    FirstOfLine,
}

impl Editor {
    /// The text as it is edited: each fold is one character.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text; the cursor goes to its end.
    pub(crate) fn set(&mut self, text: String) {
        self.keep_for_undo(false);
        self.text = without_folds(text);
        self.cursor = self.text.len();
    }

    /// The text without folds. The editor is empty afterwards, and there is nothing to undo.
    pub(crate) fn take(&mut self) -> String {
        let text = self.expanded();
        let cut = self.expanded_part(&self.cut);
        *self = Self { cut, ..Self::default() };
        text
    }

    pub(crate) fn insert(&mut self, text: &str) {
        let is_typed = text.chars().count() == 1;
        self.keep_for_undo(is_typed);
        self.put(&without_folds(text.to_owned()));
        // A word is undone as a whole.
        self.undo.goes_on = is_typed && !text.contains(char::is_whitespace);
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // What was inserted may have become part of the grapheme after it.
        self.cursor = self.border_from(self.cursor);
    }

    pub(crate) fn go(&mut self, to: Move) {
        self.ends_change();
        self.cursor = self.target(to);
    }

    /// Goes a line up, as far as the column allows; false in the first line.
    pub(crate) fn up(&mut self) -> bool {
        self.joins_cuts = false;
        let start = self.line_start(self.cursor);
        let Some(end_above) = start.checked_sub(1) else { return false };
        let above = self.line_start(end_above);
        self.go_to_column(above, end_above, self.column(start));
        true
    }

    /// Goes a line down; false in the last line.
    pub(crate) fn down(&mut self) -> bool {
        self.joins_cuts = false;
        let column = self.column(self.line_start(self.cursor));
        let below = self.line_end(self.cursor) + 1;
        if below > self.text.len() {
            return false;
        }
        self.go_to_column(below, self.line_end(below), column);
        true
    }

    /// Deletes from the cursor to where `to` leads. What `keeps` can be inserted again, joined to what was cut right
    /// before it.
    pub(crate) fn delete(&mut self, to: Move, keeps: bool) {
        let target = self.target(to);
        let (start, end) = (self.cursor.min(target), self.cursor.max(target));
        if start == end {
            return;
        }
        let joins = self.joins_cuts;
        self.keep_for_undo(false);
        let is_before = target < self.cursor;
        let deleted: String = self.text.drain(start..end).collect();
        self.cursor = self.border_from(start);
        if keeps {
            let cut = if joins { std::mem::take(&mut self.cut) } else { String::new() };
            self.cut = if is_before { deleted + &cut } else { cut + &deleted };
            self.joins_cuts = true;
        }
    }

    /// Inserts what was cut last.
    pub(crate) fn yank(&mut self) {
        let cut = self.cut.clone();
        self.keep_for_undo(false);
        self.put(&cut);
    }

    /// Replaces the bytes from `start` to the cursor.
    pub(crate) fn replace_before(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.cursor {
            self.keep_for_undo(false);
            self.text.drain(start..self.cursor);
            self.cursor = start;
            self.put(&without_folds(text.to_owned()));
        }
    }

    /// The first border of a grapheme at or after `at`. Only what is around that is looked at: each key asks for it.
    fn border_from(&self, at: usize) -> usize {
        let mut border = GraphemeCursor::new(at, self.text.len(), true);
        match border.is_boundary(&self.text, 0) {
            Ok(true) => at,
            // The whole text is there, so there is no error.
            Ok(false) | Err(_) => {
                border.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
            }
        }
    }

    fn target(&self, to: Move) -> usize {
        self.target_from(self.cursor, to)
    }

    /// Where a move leads from `from`, which is at the border of a grapheme.
    fn target_from(&self, from: usize, to: Move) -> usize {
        let (before, after) = self.text.split_at(from);
        match to {
            Move::Left => from - before.graphemes(true).next_back().map_or(0, str::len),
            Move::Right => from + after.graphemes(true).next().map_or(0, str::len),
            Move::WordLeft => {
                let word = without_end(before, |it| !is_of_word(it));
                without_end(word, is_of_word).len()
            }
            Move::WordRight => {
                let word = without_start(after, |it| !is_of_word(it));
                self.text.len() - without_start(word, is_of_word).len()
            }
            Move::BlankLeft => {
                let word = without_end(before, is_blank);
                without_end(word, |it| !is_blank(it)).len()
            }
            Move::LineStart => self.line_start(from),
            Move::LineEnd => self.line_end(from),
            Move::Start => 0,
            Move::End => self.text.len(),
            Move::NextWord => self.next_word(from),
            Move::PreviousWord => self.previous_word(from),
            Move::WordEnd => self.word_end(from),
            Move::FirstOfLine => self.first_of_line(from),
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |line_feed| line_feed + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |length| at + length)
    }

    /// Graphemes before the cursor in the line that begins at `start`.
    fn column(&self, start: usize) -> usize {
        self.text[start..self.cursor].graphemes(true).count()
    }

    fn go_to_column(&mut self, start: usize, end: usize, column: usize) {
        let line = &self.text[start..end];
        let skipped = line.graphemes(true).take(column).map(str::len).sum::<usize>();
        self.cursor = start + skipped;
    }
}

/// Whether a grapheme is part of a word, for keys that go by words: an accent or a vowel sign after a letter is no
/// letter, but belongs to it.
fn is_of_word(grapheme: &str) -> bool {
    grapheme.starts_with(|char: char| char.is_alphanumeric() || is_fold(char))
}

fn is_blank(grapheme: &str) -> bool {
    grapheme.starts_with(char::is_whitespace)
}

/// `text` without the graphemes at its beginning that are `meant`.
fn without_start(text: &str, meant: impl Fn(&str) -> bool) -> &str {
    let rest = text.grapheme_indices(true).find(|(_, grapheme)| !meant(grapheme));
    &text[rest.map_or(text.len(), |(at, _)| at)..]
}

/// `text` without the graphemes at its end that are `meant`.
fn without_end(text: &str, meant: impl Fn(&str) -> bool) -> &str {
    let last = text.grapheme_indices(true).rfind(|(_, grapheme)| !meant(grapheme));
    &text[..last.map_or(0, |(at, grapheme)| at + grapheme.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An editor with the text, in which `|` is the cursor.
    fn editor(text: &str) -> Editor {
        let cursor = text.find('|').expect("a cursor");
        Editor { text: text.replace('|', ""), cursor, ..Editor::default() }
    }

    fn shown(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    #[test]
    fn the_cursor_moves_by_graphemes_words_and_lines() {
        let check = |from: &str, to: Move, expected: &str| {
            let mut editor = editor(from);
            editor.go(to);
            assert_eq!(shown(&editor), expected, "{from:?} {to:?}");
        };
        check("ab|", Move::Left, "a|b");
        check("|", Move::Left, "|");
        check("👩‍👩‍👧x|", Move::Left, "👩‍👩‍👧|x");
        check("|e\u{301}x", Move::Right, "e\u{301}|x");
        check("one two|", Move::WordLeft, "one |two");
        check("one, |", Move::WordLeft, "|one, ");
        check("see ./a-b/c.rs  |x", Move::BlankLeft, "see |./a-b/c.rs  x");
        check(" |", Move::BlankLeft, "| ");
        check("one| two", Move::WordRight, "one two|");
        check("a\nb|c\nd", Move::LineStart, "a\n|bc\nd");
        check("a\nb|c\nd", Move::LineEnd, "a\nbc|\nd");
        check("a\nb|c", Move::Start, "|a\nbc");
        check("|a\nbc", Move::End, "a\nbc|");
    }

    /// As in the names of files of macOS, where an accent is a character of its own, and in Devanagari.
    #[test]
    fn words_end_where_their_last_grapheme_does() {
        let cafe = "cafe\u{301}s";
        let mut written = editor(&format!("|{cafe} x"));
        written.go(Move::WordRight);
        written.insert("Z");
        assert_eq!(shown(&written), format!("{cafe}Z| x"));
        let mut cut = editor("ab| cafe\u{301}");
        cut.delete(Move::WordRight, true);
        assert_eq!(shown(&cut), "ab|");
        let hindi = "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}";
        let mut erased = editor(&format!("{hindi}|"));
        erased.delete(Move::WordLeft, true);
        assert_eq!(shown(&erased), "|");
        let mut passed = editor(&format!("|{hindi} x"));
        passed.go(Move::WordRight);
        assert_eq!(shown(&passed), format!("{hindi}| x"));
        let mut blank = editor("a \u{301}b|");
        blank.delete(Move::BlankLeft, true);
        assert_eq!(shown(&blank), "a \u{301}|");
    }

    #[test]
    fn up_and_down_keep_the_column_as_far_as_the_line_goes() {
        let mut editor = editor("one\nt\nthre|e");
        assert!(editor.up());
        assert_eq!(shown(&editor), "one\nt|\nthree");
        assert!(editor.up() && !editor.up());
        assert_eq!(shown(&editor), "o|ne\nt\nthree");
        assert!(editor.down() && editor.down() && !editor.down());
        assert_eq!(shown(&editor), "one\nt\nt|hree");
    }

    #[test]
    fn what_is_cut_comes_back() {
        let mut editor = editor("one two| three");
        editor.delete(Move::WordLeft, true);
        assert_eq!(shown(&editor), "one | three");
        editor.go(Move::LineEnd);
        editor.go(Move::WordLeft);
        editor.go(Move::Left);
        editor.delete(Move::LineEnd, true);
        assert_eq!(shown(&editor), "one |");
        editor.yank();
        assert_eq!(shown(&editor), "one  three|");
        editor.delete(Move::Left, false);
        editor.yank();
        assert_eq!(shown(&editor), "one  thre three|");
    }

    /// As in readline: each side of what was cut before.
    #[test]
    fn what_is_cut_by_one_key_after_the_other_comes_back_as_a_whole() {
        let mut editor = editor("one two three| four");
        editor.delete(Move::BlankLeft, true);
        editor.delete(Move::LineEnd, true);
        editor.delete(Move::BlankLeft, true);
        assert_eq!(shown(&editor), "one |");
        editor.yank();
        assert_eq!(shown(&editor), "one two three four|");
        editor.delete(Move::BlankLeft, true);
        editor.insert("x");
        editor.delete(Move::LineStart, true);
        editor.yank();
        assert_eq!(shown(&editor), "one two three x|", "another change is between them");
    }

    #[test]
    fn a_completion_replaces_what_stands_before_the_cursor() {
        let mut editor = editor("see @sr| now");
        editor.replace_before(5, "src/");
        assert_eq!(shown(&editor), "see @src/| now");
    }

    #[test]
    fn words_and_deletions_are_undone_one_by_one() {
        let mut editor = Editor::default();
        for char in "one two".chars() {
            editor.insert(char.encode_utf8(&mut [0; 4]));
        }
        editor.delete(Move::WordLeft, true);
        editor.go(Move::Start);
        editor.insert("x");
        let mut texts = Vec::new();
        while editor.undo() {
            texts.push(shown(&editor));
        }
        assert_eq!(texts, ["|one ", "one two|", "one |", "|"]);
    }

    /// A fold is deleted, passed and undone as one character, and sent as its text.
    #[test]
    fn a_fold_is_one_character_until_it_is_sent() {
        let mut editor = Editor::default();
        editor.insert("see ");
        editor.insert_folded("[pasted 9 lines]".to_owned(), "a\nb".to_owned(), FoldOf::Text);
        editor.insert("!");
        assert_eq!(editor.shown(), ("see [pasted 9 lines]!".to_owned(), 21));
        assert_eq!(editor.expanded(), "see a\nb!");
        editor.go(Move::Left);
        editor.go(Move::Left);
        assert_eq!(editor.shown().1, 4);
        editor.go(Move::Right);
        editor.delete(Move::WordLeft, true);
        assert_eq!(editor.expanded(), "see !");
        editor.yank();
        assert!(editor.undo() && editor.undo());
        assert!(editor.unfold() && !editor.unfold());
        assert_eq!(shown(&editor), "see a\nb|!");
        assert!(editor.undo());
        assert_eq!((editor.take().as_str(), editor.expanded().as_str()), ("see a\nb!", ""));
        editor.yank();
        assert_eq!(editor.expanded(), "a\nb", "what was cut is still there");
        // A character of a fold in a text from elsewhere is none.
        editor.insert("\u{100000}");
        assert_eq!(editor.take(), "a\nb\u{fffd}");
    }

    /// Its characters may stand for something else by then.
    #[test]
    fn a_text_with_folds_is_written_again() {
        let fold = |editor: &mut Editor, label: &str, text: &str, of| {
            editor.insert_folded(label.to_owned(), text.to_owned(), of);
        };
        let mut editor = Editor::default();
        fold(&mut editor, "[image a.png]", "@/tmp/a.png", FoldOf::File);
        assert_eq!(editor.folded(), None, "a name is short");
        editor.insert(" and ");
        fold(&mut editor, "[pasted 9 lines]", "a\nb", FoldOf::Text);
        editor.insert("!");
        let folded = editor.folded().expect("a long text");
        assert_eq!(folded.shown(), "@/tmp/a.png and [pasted 9 lines]!");
        assert_eq!(folded.expanded(), "@/tmp/a.png and a\nb!");
        editor.take();
        fold(&mut editor, "[pasted 7 lines]", "c\nd", FoldOf::Text);
        editor.set_folded(&folded);
        assert_eq!(editor.shown().0, "[image a.png] and [pasted 9 lines]!");
        assert_eq!(editor.expanded(), folded.expanded());
        assert!(editor.undo());
        assert_eq!(editor.shown().0, "[pasted 7 lines]");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(String),
        Go(Move),
        Delete(Move),
        Yank,
        Up,
        Down,
    }

    fn step() -> impl Strategy<Value = Step> {
        let moves = prop::sample::select(vec![
            Move::Left,
            Move::Right,
            Move::WordLeft,
            Move::WordRight,
            Move::BlankLeft,
            Move::LineStart,
            Move::LineEnd,
            Move::Start,
            Move::End,
            Move::NextWord,
            Move::PreviousWord,
            Move::WordEnd,
            Move::FirstOfLine,
        ]);
        let texts = prop_oneof!["[a \n\u{301}é👩\u{200d}\u{1f1e6}]{0,4}", "\\PC{0,3}"];
        prop_oneof![
            texts.prop_map(Step::Insert),
            moves.clone().prop_map(Step::Go),
            moves.prop_map(Step::Delete),
            Just(Step::Yank),
            Just(Step::Up),
            Just(Step::Down),
        ]
    }

    proptest! {
        #[test]
        fn a_border_is_that_of_the_whole_text(text in "([a \n\u{301}é👩\u{200d}\u{1f1e6}]|\\PC){0,12}") {
            let editor = Editor { text, ..Editor::default() };
            let text = &editor.text;
            let borders: Vec<_> =
                text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            for at in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                let expected = borders.iter().find(|border| **border >= at);
                prop_assert_eq!(Some(&editor.border_from(at)), expected, "{:?} {}", text, at);
            }
        }

        /// The cursor is always between two graphemes, so no key changes a part of one, and nothing can panic.
        #[test]
        fn any_steps_leave_the_cursor_at_a_border(steps in prop::collection::vec(step(), 0..40)) {
            let mut editor = Editor::default();
            for step in steps {
                let before = editor.text.clone();
                match step {
                    Step::Insert(text) => {
                        editor.insert(&text);
                        prop_assert_eq!(editor.text.len(), before.len() + text.len());
                    }
                    Step::Go(to) => editor.go(to),
                    Step::Delete(to) => editor.delete(to, true),
                    Step::Yank => editor.yank(),
                    Step::Up => drop(editor.up()),
                    Step::Down => drop(editor.down()),
                }
                let (text, at) = (&editor.text, editor.cursor);
                prop_assert_eq!(editor.border_from(at), at, "{:?} {}", text, at);
            }
        }
    }
}
