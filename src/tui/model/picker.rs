//! A list to choose from, with a search.

use super::{Action, Note, Opening, Piece, State};
use crate::tui::input::{Move, fuzzy};
use crate::tui::terminal::keys::{Key, Press};
use crate::tui::text::clean;
use unicode_segmentation::UnicodeSegmentation;

/// Entries that are matched against the search.
const CHOICES_MAX: usize = 10_000;

/// Entries that are printed where there is no list.
const PLAIN_CHOICES_MAX: usize = 20;

/// The kind of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickerKind {
    Session,
    Prompt,
    Model,
    Profile,
    /// A prompt of this conversation, from which on it is asked anew.
    Rewind,
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
    /// The entries are not known yet.
    pub(crate) is_loading: bool,
    choices: Vec<Choice>,
}

impl Picker {
    pub(crate) fn new(kind: PickerKind, search: String, mut choices: Vec<Choice>) -> Self {
        choices.truncate(CHOICES_MAX);
        Self { kind, search, selected: 0, is_loading: false, choices }
    }

    /// A list whose entries are being looked for.
    pub(crate) fn loading(kind: PickerKind, search: String) -> Self {
        Self { is_loading: true, ..Self::new(kind, search, Vec::new()) }
    }

    /// The entries are known.
    fn loaded(&mut self, choices: Vec<Choice>) {
        *self = Self::new(self.kind, std::mem::take(&mut self.search), choices);
    }

    /// The entries that have every word of the search, in any case: in the name of a model or a profile its
    /// characters in their order, the best first, elsewhere the word.
    pub(crate) fn matching(&self) -> Vec<&Choice> {
        let words: Vec<_> = self.search.split_whitespace().map(str::to_lowercase).collect();
        let cost = |choice: &Choice| match self.kind {
            PickerKind::Model | PickerKind::Profile => {
                words.iter().map(|word| fuzzy(word, &choice.title)).sum::<Option<usize>>()
            }
            PickerKind::Session | PickerKind::Prompt | PickerKind::Rewind => {
                let Choice { value, title, detail } = choice;
                let text = format!("{title} {detail} {value}").to_lowercase();
                words.iter().all(|word| text.contains(word)).then_some(0)
            }
        };
        let costs = self.choices.iter().map(|choice| (cost(choice), choice));
        let mut found: Vec<_> = costs.filter(|(cost, _)| cost.is_some()).collect();
        found.sort_by_key(|(cost, _)| *cost);
        found.into_iter().map(|(_, choice)| choice).collect()
    }

    /// Changes the search. What was selected may not be found by it, or not at the same place.
    pub(super) fn search_for(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.search);
        self.selected = 0;
    }

    fn select(&mut self, forward: bool, by: usize) {
        let last = self.matching().len().saturating_sub(1);
        let to = if forward { self.selected + by } else { self.selected.saturating_sub(by) };
        self.selected = to.min(last);
    }
}

impl State {
    pub(super) fn sessions_listed(&mut self, listed: Result<Vec<Choice>, String>) -> Vec<Action> {
        match self.listed(PickerKind::Session, listed) {
            true if self.is_plain() => self.choose_by_words(),
            true | false => Vec::new(),
        }
    }

    pub(super) fn profiles_listed(&mut self, listed: Result<Vec<String>, String>) {
        match listed {
            Ok(names) if names.is_empty() => {
                self.picker.take_if(|picker| picker.kind == PickerKind::Profile);
                let text =
                    "there are no profiles; `duologue profiles --help` says where they are written";
                self.note(Note::Information, text.to_owned());
            }
            Ok(names) if self.is_plain() => {
                let names: Vec<_> = names.iter().map(|name| clean(name)).collect();
                let text =
                    format!("profiles, each to be chosen with /profile NAME: {}", names.join(", "));
                self.note(Note::Information, text);
            }
            Ok(names) => {
                let choices = self.named_choices(names, &self.status.profile);
                self.listed(PickerKind::Profile, Ok(choices));
            }
            Err(why) => drop(self.listed(PickerKind::Profile, Err(clean(&why)))),
        }
    }

    /// The provider has listed its models. Without its list a name can still be written.
    pub(super) fn models_listed(&mut self, listed: Result<Vec<String>, String>) {
        if let Some(model) = self.checks_model.take() {
            let names = listed.unwrap_or_default();
            if !names.is_empty() && !names.contains(&model) {
                let text = format!(
                    "the provider lists no model {}, which is asked all the same; /model alone has the list",
                    clean(&model)
                );
                self.note(Note::Warning, text);
            }
            return;
        }
        let choices = match listed {
            Ok(names) => self.named_choices(names, &self.status.model),
            Err(why) => {
                if self.picker.as_ref().is_some_and(|picker| picker.kind == PickerKind::Model) {
                    self.hint(format!("the provider lists no models: {}", clean(&why)));
                }
                Vec::new()
            }
        };
        self.listed(PickerKind::Model, Ok(choices));
    }

    fn named_choices(&self, names: Vec<String>, current: &str) -> Vec<Choice> {
        let choice = |name: String| {
            let title = clean(&name).replace('\n', " ");
            let detail = if title == current { "(answers now)" } else { "" };
            Choice { value: name, title, detail: detail.to_owned() }
        };
        names.into_iter().map(choice).collect()
    }

    /// Fills the list of this kind, if it was not closed meanwhile; false if not.
    fn listed(&mut self, kind: PickerKind, listed: Result<Vec<Choice>, String>) -> bool {
        let Some(picker) = self.picker.as_mut().filter(|picker| picker.kind == kind) else {
            if let Err(why) = listed {
                self.note(Note::Error, why);
            }
            return false;
        };
        match listed {
            Ok(choices) => {
                picker.loaded(choices);
                true
            }
            Err(why) => {
                self.picker = None;
                self.note(Note::Error, why);
                false
            }
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
        // Whoever typed the words reads the list and chooses; a file goes on with what it meant for one of these.
        let is_choice = !picker.search.is_empty() && !self.takes_typed_lines();
        let has_several = !lines.is_empty();
        match (has_several, is_choice) {
            (false, true) => self.note(Note::Error, "no conversation matches".to_owned()),
            (false, false) => self.note(Note::Information, "no conversation matches".to_owned()),
            (true, _) => self.print(Piece::Lines(lines)),
        }
        if is_choice && has_several {
            let why = "several conversations match; name the one that is meant by its id";
            self.note(Note::Error, why.to_owned());
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
            Key::Backspace => picker.search_for(|search| {
                let last = search.grapheme_indices(true).next_back();
                search.truncate(last.map_or(0, |(at, _)| at));
            }),
            Key::Char('u') if press.ctrl => picker.search_for(String::clear),
            Key::Char(char) if !press.ctrl && !press.alt => {
                picker.search_for(|search| search.push(char));
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

    /// Writes a text into the line; what was written there can be had back with the up key.
    pub(super) fn write_anew(&mut self, text: String) {
        let written = self.take_line();
        self.history.put_aside(&written);
        self.write_again(text);
        self.editor.go(Move::End);
    }

    fn chosen(&mut self) -> Vec<Action> {
        if self.picker.as_ref().is_some_and(|picker| picker.is_loading) {
            self.hint("still being listed; Enter chooses once the list is there, Esc closes it");
            return Vec::new();
        }
        let Some(picker) = self.picker.take() else { return Vec::new() };
        let Some(choice) = picker.matching().get(picker.selected).copied().cloned() else {
            // Not every provider lists all of its models.
            let written = picker.search.trim();
            return match picker.kind {
                PickerKind::Model if !written.is_empty() => {
                    self.switch_to(String::new(), written.to_owned())
                }
                PickerKind::Model
                | PickerKind::Profile
                | PickerKind::Session
                | PickerKind::Prompt
                | PickerKind::Rewind => Vec::new(),
            };
        };
        match picker.kind {
            PickerKind::Model => self.switch_to(String::new(), choice.value),
            PickerKind::Profile => self.switch_to(choice.value, String::new()),
            PickerKind::Session => self.open(Opening::Stored { session: choice.value }),
            PickerKind::Prompt => {
                self.write_anew(choice.value);
                Vec::new()
            }
            PickerKind::Rewind => {
                self.rewind_to(choice.value);
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Event, Outgoing};

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

    fn command(scene: &mut Scene, text: &str) {
        scene.write(text);
        scene.key(Key::Enter);
    }

    fn switched(scene: &Scene) -> Vec<(&str, &str)> {
        let switched = scene.actions.iter().filter_map(|action| {
            let Action::Request(Outgoing::SwitchModel { profile, model }) = action else {
                return None;
            };
            Some((profile.as_str(), model.as_str()))
        });
        switched.collect()
    }

    #[test]
    fn a_model_is_chosen_from_the_providers_list_or_written() {
        let mut scene = Scene::new();
        scene.state.status.model = "small".to_owned();
        command(&mut scene, "/model");
        assert_eq!(scene.actions, [Action::ListModels]);
        scene.write("ar");
        let names = ["small", "large", "larger"].map(str::to_owned).to_vec();
        scene.event(Event::Models(Ok(names)));
        scene.key(Key::Down);
        scene.key(Key::Enter);
        command(&mut scene, "/model");
        scene.event(Event::Models(Err("it has no list".to_owned())));
        scene.write("secret-1");
        scene.key(Key::Enter);
        assert_eq!(switched(&scene), [("", "larger"), ("", "secret-1")]);
        for (name, is_said) in [("large", false), ("zzz", true)] {
            command(&mut scene, &format!("/model {name}"));
            let pieces = scene.pieces.len();
            scene.event(Event::Models(Ok(vec!["large".to_owned()])));
            assert_eq!(scene.pieces.len() > pieces, is_said, "{name}");
        }
        command(&mut scene, "/model");
        scene.key(Key::Esc);
        scene.event(Event::Models(Ok(Vec::new())));
        assert!(scene.state.picker.is_none(), "it was closed");
    }

    #[test]
    fn a_profile_is_chosen_from_a_list() {
        let mut scene = Scene::new();
        command(&mut scene, "/profile");
        assert_eq!(scene.actions, [Action::ListProfiles]);
        scene.event(Event::Profiles(Ok(vec!["home".to_owned(), "work".to_owned()])));
        scene.write("wo");
        scene.key(Key::Enter);
        assert_eq!(switched(&scene), [("work", "")]);
        command(&mut scene, "/profile");
        scene.event(Event::Profiles(Ok(Vec::new())));
        assert!(scene.state.picker.is_none());
    }

    #[test]
    fn backspace_takes_a_whole_character_from_the_search() {
        let mut scene = Scene::new();
        command(&mut scene, "/model");
        scene.write("ae\u{301}");
        scene.key(Key::Backspace);
        let search = |scene: &Scene| scene.state.picker.as_ref().expect("a list").search.clone();
        assert_eq!(search(&scene), "a");
        scene.key(Key::Backspace);
        scene.key(Key::Backspace);
        assert_eq!(search(&scene), "");
    }

    /// The name that was written may be one of the list.
    #[test]
    fn nothing_is_chosen_before_the_list_is_there() {
        for command_line in ["/model", "/profile", "/resume"] {
            let mut scene = Scene::new();
            command(&mut scene, command_line);
            scene.write("la");
            scene.key(Key::Enter);
            assert!(scene.state.picker.as_ref().is_some_and(|it| it.search == "la"));
            assert!(
                scene.state.shown_hint().is_some_and(|it| it.starts_with("still being listed"))
            );
            assert_eq!(switched(&scene), [("", ""); 0]);
        }
        let mut scene = Scene::new();
        command(&mut scene, "/model");
        scene.write("la");
        scene.key(Key::Enter);
        scene.event(Event::Models(Ok(vec!["large".to_owned()])));
        scene.key(Key::Enter);
        assert_eq!(switched(&scene), [("", "large")]);
    }
}
