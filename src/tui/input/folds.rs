//! Long texts in the line, each of which one character stands for: so the keys treat them as one, and the line stays
//! short. Pure.

use super::Editor;

/// The first of the characters that stand for folds: a plane for private use, of which no text has a meaning.
const FIRST: u32 = 0x10_0000;

/// Folds of one text; more are written out.
const FOLDS_MAX: usize = 0xfffe;

/// A text that one character stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    /// What is shown.
    label: String,
    text: String,
}

/// Whether a character stands for a fold.
pub(super) fn is_fold(char: char) -> bool {
    index(char).is_some_and(|index| index < FOLDS_MAX)
}

fn index(char: char) -> Option<usize> {
    usize::try_from(u32::from(char).checked_sub(FIRST)?).ok()
}

/// A text from elsewhere, in which no character stands for a fold.
pub(super) fn without_folds(text: String) -> String {
    match text.contains(is_fold) {
        true => text.replace(is_fold, "\u{fffd}"),
        false => text,
    }
}

impl Editor {
    /// Inserts a text of which only `label` is shown until it is unfolded or sent.
    pub(crate) fn insert_folded(&mut self, label: String, text: String) {
        let number = u32::try_from(self.folds.len()).unwrap_or(u32::MAX);
        let char = char::from_u32(FIRST.saturating_add(number)).filter(|char| is_fold(*char));
        let Some(char) = char else { return self.insert(&text) };
        self.keep_for_undo(false);
        self.folds.push(Fold { label, text: without_folds(text) });
        self.put(char.encode_utf8(&mut [0; 4]));
    }

    /// Writes out the fold before the cursor; false if there is none.
    pub(crate) fn unfold(&mut self) -> bool {
        let before = self.text[..self.cursor].chars().next_back();
        let Some((char, fold)) = before.and_then(|char| Some((char, self.fold(char)?.clone())))
        else {
            return false;
        };
        self.replace_before(self.cursor - char.len_utf8(), &fold.text);
        true
    }

    /// The text as it is sent.
    pub(crate) fn expanded(&self) -> String {
        self.expanded_part(&self.text)
    }

    /// The text as it is shown, and the place of the cursor in it.
    pub(crate) fn shown(&self) -> (String, usize) {
        let (before, after) = self.text.split_at(self.cursor);
        let mut shown = self.replaced(before, |fold| &fold.label);
        let cursor = shown.len();
        shown.push_str(&self.replaced(after, |fold| &fold.label));
        (shown, cursor)
    }

    pub(super) fn expanded_part(&self, text: &str) -> String {
        self.replaced(text, |fold| &fold.text)
    }

    fn replaced(&self, text: &str, by: impl Fn(&Fold) -> &String) -> String {
        let mut replaced = String::with_capacity(text.len());
        for char in text.chars() {
            match self.fold(char) {
                Some(fold) => replaced.push_str(by(fold)),
                None => replaced.push(char),
            }
        }
        replaced
    }

    fn fold(&self, char: char) -> Option<&Fold> {
        self.folds.get(index(char)?)
    }
}
