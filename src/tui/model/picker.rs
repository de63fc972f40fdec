//! A list to choose from, with a search.

use super::{Action, Note, Opening, Piece, State};
use crate::tui::input::Move;
use crate::tui::terminal::keys::{Key, Press};
use crate::tui::text::clean;

/// Entries that are matched against the search.
const CHOICES_MAX: usize = 10_000;

/// Entries that are printed where there is no list.
const PLAIN_CHOICES_MAX: usize = 20;

/// The kind of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickerKind {
    Session,
    Prompt,
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The value of the choice.
    pub(crate) value: String,
    /// The text of the choice, clean.
    pub(crate) title: String,
    pub(crate) detail: String,
}

/// The list.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    pub(crate) kind: PickerKind,
    pub(crate) search: String,
    /// Among the entries that match.
    pub(crate) selected: usize,
    choices: Vec<Choice>,
}

impl Picker {
    pub(crate) fn new(kind: PickerKind, search: String, mut choices: Vec<Choice>) -> Self {
        choices.truncate(CHOICES_MAX);
        Self { kind, search, selected: 0, choices }
    }

    /// The entries that have every word of the search, in any case.
    pub(crate) fn matching(&self) -> Vec<&Choice> {
        let words: Vec<_> = self.search.split_whitespace().map(str::to_lowercase).collect();
        let matches = |choice: &&Choice| {
            let text =
                format!("{} {} {}", choice.title, choice.detail, choice.value).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.choices.iter().filter(matches).collect()
    }

    fn select(&mut self, forward: bool, by: usize) {
        let last = self.matching().len().saturating_sub(1);
        let to = if forward { self.selected + by } else { self.selected.saturating_sub(by) };
        self.selected = to.min(last);
    }
}

impl State {
    pub(super) fn sessions_listed(&mut self, listed: Result<Vec<Choice>, String>) -> Vec<Action> {
        match (listed, &mut self.picker) {
            (Err(why), _) => {
                self.picker = None;
                self.note(Note::Error, why);
            }
            (Ok(choices), Some(picker)) if picker.kind == PickerKind::Session => {
                let search = std::mem::take(&mut picker.search);
                *picker = Picker::new(PickerKind::Session, search, choices);
                if self.is_plain() {
                    return self.choose_by_words();
                }
            }
            // It was closed meanwhile.
            (Ok(_), _) => {}
        }
        Vec::new()
    }

    pub(super) fn profiles_listed(&mut self, listed: Result<Vec<String>, String>) {
        match listed {
            Ok(names) if names.is_empty() => {
                let text =
                    "there are no profiles; `duologue profiles --help` says where they are written";
                self.note(Note::Information, text.to_owned());
            }
            Ok(names) => {
                let names: Vec<_> = names.iter().map(|name| clean(name)).collect();
                let text =
                    format!("profiles, each to be chosen with /profile NAME: {}", names.join(", "));
                self.note(Note::Information, text);
            }
            Err(why) => self.note(Note::Error, clean(&why)),
        }
    }

    /// Without keys the words choose: the only conversation that has them, or its id.
    fn choose_by_words(&mut self) -> Vec<Action> {
        let Some(picker) = self.picker.take() else { return Vec::new() };
        let matching = picker.matching();
        let by_id = matching.iter().find(|choice| choice.value == picker.search);
        let only = by_id.or(matching.first().filter(|_| matching.len() == 1));
        if let Some(choice) = only.filter(|_| !picker.search.is_empty()) {
            return self.open(Opening::Stored { session: choice.value.clone() });
        }
        let line = |choice: &&Choice| {
            format!("/resume {}  {} {}", choice.value, choice.title, choice.detail)
        };
        let lines: Vec<_> = matching.iter().take(PLAIN_CHOICES_MAX).map(line).collect();
        match lines.is_empty() {
            true => self.note(Note::Information, "no conversation matches".to_owned()),
            false => self.print(Piece::Lines(lines)),
        }
        Vec::new()
    }

    /// A key while the list has the keyboard.
    pub(super) fn choose(&mut self, press: Press) -> Vec<Action> {
        const PAGE: usize = 10;
        let Some(picker) = &mut self.picker else { return Vec::new() };
        match press.key {
            Key::Esc => self.picker = None,
            Key::Char('c' | 'g') if press.ctrl => self.picker = None,
            Key::Enter => return self.chosen(),
            Key::Up => picker.select(false, 1),
            Key::Down | Key::Tab => picker.select(true, 1),
            Key::Char('p') if press.ctrl => picker.select(false, 1),
            Key::Char('n' | 'r') if press.ctrl => picker.select(true, 1),
            Key::PageUp => picker.select(false, PAGE),
            Key::PageDown => picker.select(true, PAGE),
            Key::Backspace => {
                picker.search.pop();
                picker.selected = 0;
            }
            Key::Char('u') if press.ctrl => picker.search.clear(),
            Key::Char(char) if !press.ctrl && !press.alt => {
                picker.search.push(char);
                picker.selected = 0;
            }
            Key::Char(_)
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End
            | Key::Function(_) => {}
        }
        Vec::new()
    }

    fn chosen(&mut self) -> Vec<Action> {
        let Some(picker) = self.picker.take() else { return Vec::new() };
        let Some(choice) = picker.matching().get(picker.selected).copied().cloned() else {
            return Vec::new();
        };
        match picker.kind {
            PickerKind::Session => self.open(Opening::Stored { session: choice.value }),
            PickerKind::Prompt => {
                let written = self.editor.take();
                self.history.leave();
                if !written.trim().is_empty() {
                    self.history.add(&written);
                }
                self.editor.set(choice.value);
                self.editor.go(Move::End);
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_all_words_in_any_case() {
        let choice = |title: &str| Choice {
            value: "id".to_owned(),
            title: title.to_owned(),
            detail: String::new(),
        };
        let choices = vec![choice("Refused connection"), choice("Ports"), choice("connection")];
        let mut picker = Picker::new(PickerKind::Session, "CONN ref".to_owned(), choices);
        assert_eq!(picker.matching().len(), 1);
        picker.search.clear();
        picker.select(true, 10);
        assert_eq!(picker.selected, 2);
        picker.select(false, 1);
        assert_eq!(picker.selected, 1);
    }
}
