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
    of: FoldOf,
}

/// What a fold stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldOf {
    /// A long text.
    Text,
    /// The name of a file.
    File,
}

/// A text of the editor with its folds, which can be written there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoldedText {
    /// Texts, and the fold after each.
    parts: Vec<(String, Option<Fold>)>,
    expanded: String,
}

impl FoldedText {
    /// The text without folds.
    pub(crate) fn expanded(&self) -> &str {
        &self.expanded
    }

    /// The text as a prompt shows it: with the labels of long texts.
    pub(crate) fn shown(&self) -> String {
        let mut shown = String::new();
        for (text, fold) in &self.parts {
            shown.push_str(text);
            shown.push_str(fold.as_ref().map_or("", |fold| match fold.of {
                FoldOf::Text => &fold.label,
                FoldOf::File => &fold.text,
            }));
        }
        shown
    }
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
    pub(crate) fn insert_folded(&mut self, label: String, text: String, of: FoldOf) {
        let fold = Fold { label, text: without_folds(text), of };
        let Some(char) = self.char_for(&fold) else { return self.insert(&fold.text) };
        self.keep_for_undo(false);
        self.put(char.encode_utf8(&mut [0; 4]));
    }

    /// The character that stands for a fold; `None` if there are too many.
    fn char_for(&mut self, fold: &Fold) -> Option<char> {
        let known = self.folds.iter().position(|other| other == fold);
        let number = u32::try_from(known.unwrap_or(self.folds.len())).unwrap_or(u32::MAX);
        let char = char::from_u32(FIRST.saturating_add(number)).filter(|char| is_fold(*char))?;
        if known.is_none() {
            self.folds.push(fold.clone());
        }
        Some(char)
    }

    /// The text with its folds; `None` if no long text is among them.
    pub(crate) fn folded(&self) -> Option<FoldedText> {
        let mut parts = vec![(String::new(), None)];
        for char in self.text.chars() {
            let fold = self.fold(char);
            if let Some((text, after)) = parts.last_mut() {
                match fold {
                    None => text.push(char),
                    Some(fold) => *after = Some(fold.clone()),
                }
            }
            if fold.is_some() {
                parts.push((String::new(), None));
            }
        }
        let mut folds = parts.iter().filter_map(|(_, fold)| fold.as_ref());
        let has_text = folds.any(|fold| fold.of == FoldOf::Text);
        has_text.then(|| FoldedText { parts, expanded: self.expanded() })
    }

    /// Replaces the text; the cursor goes to its end.
    pub(crate) fn set_folded(&mut self, folded: &FoldedText) {
        self.keep_for_undo(false);
        self.text.clear();
        for (text, fold) in &folded.parts {
            self.text.push_str(text);
            let Some(fold) = fold else { continue };
            match self.char_for(fold) {
                Some(char) => self.text.push(char),
                None => self.text.push_str(&fold.text),
            }
        }
        self.cursor = self.text.len();
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
