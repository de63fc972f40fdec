//! The list under the line: the commands and prompts that a slash may begin, and the files and
//! resources that `@` may name.

use super::{Action, State};
use crate::tui::commands::Name;
use crate::tui::input::{Candidates, Completion};

impl State {
    /// The person has changed the text, and the list follows it.
    pub(super) fn changed(&mut self) {
        self.history.leave();
        self.enters_with_output = None;
        let before = &self.editor.text()[..self.editor.cursor()];
        let shown = self.candidates.take();
        match Completion::of(before) {
            Some(Completion::Command { start, part }) => {
                let found = Candidates::commands(start, &part, &self.prompt_names());
                self.candidates = Some(found).filter(|found| !found.words.is_empty());
            }
            Some(Completion::File { start, part }) if is_name(&part) => {
                // The list stays until the next one is known, so that it does not flicker.
                self.candidates = shown.filter(|shown| shown.start == start);
                self.lists_files = Some((start, part));
            }
            Some(Completion::File { .. } | Completion::Profile { .. }) | None => {}
        }
    }

    /// The prompts of command files and of servers.
    fn prompt_names(&self) -> Vec<String> {
        self.command_files.iter().cloned().chain(self.server_prompts()).collect()
    }

    /// Has the files listed that the text may name, if it has changed.
    pub(super) fn list_files(&mut self) -> Option<Action> {
        let (start, part) = self.lists_files.take()?;
        (!self.is_plain()).then_some(Action::ListFiles { start, part, completes: false })
    }

    /// Completes the word before the cursor, or writes out the fold there.
    pub(super) fn complete(&mut self) -> Vec<Action> {
        if self.editor.unfold() {
            self.changed();
            return Vec::new();
        }
        let before = &self.editor.text()[..self.editor.cursor()];
        match Completion::of(before) {
            Some(Completion::Command { start, part }) => {
                self.insert_completed(Candidates::commands(start, &part, &self.prompt_names()));
                Vec::new()
            }
            Some(Completion::File { start, part }) => {
                vec![Action::ListFiles { start, part, completes: true }]
            }
            Some(Completion::Profile { start, part }) => {
                vec![Action::CompleteProfile { start, part }]
            }
            None => Vec::new(),
        }
    }

    /// Files or profiles were listed; the text may have changed meanwhile. `completes`: for the tab key.
    pub(super) fn candidates_listed(&mut self, found: Candidates, completes: bool) {
        let before = &self.editor.text()[..self.editor.cursor()];
        let nothing = match Completion::of(before) {
            // After a space it may be the rest of the sentence, and no name.
            Some(Completion::File { start, part })
                if (start, &part) == (found.start, &found.part) =>
            {
                is_name(&part).then_some("no file is named like that")
            }
            Some(Completion::Profile { start, .. }) if start == found.start => {
                Some("no profile begins like that")
            }
            Some(
                Completion::File { .. } | Completion::Profile { .. } | Completion::Command { .. },
            )
            | None => return,
        };
        match nothing {
            _ if !completes => {
                let is_whole = found.words.as_slice() == [found.part.as_str()];
                self.candidates = (!is_whole && !found.words.is_empty()).then_some(found);
            }
            _ if !found.words.is_empty() => self.insert_completed(found),
            Some(nothing) => self.hint(nothing),
            None => {}
        }
    }

    /// Writes what the candidates have in common, or chooses the first of them if that is nothing new.
    fn insert_completed(&mut self, mut found: Candidates) {
        let completed = found.completed().filter(|completed| *completed != found.part);
        match completed {
            Some(completed) => {
                self.editor.replace_before(found.start, &completed);
                self.changed();
                self.candidates = (found.words.len() > 1).then_some(found);
            }
            None => {
                found.select(true);
                self.candidates = Some(found);
            }
        }
    }

    /// The arrow keys choose a candidate; false if they mean something else.
    pub(super) fn select_candidate(&mut self, forward: bool) -> bool {
        self.candidates.as_mut().is_some_and(|found| found.select(forward))
    }

    /// The Enter key: takes the chosen candidate, or the first one that begins with what was typed, which is no name
    /// yet; `None` if the text is meant as it is.
    pub(super) fn take_begun(&mut self) -> Option<Vec<Action>> {
        let is_at_end = self.editor.cursor() == self.editor.text().len();
        let found = self.candidates.as_mut()?;
        // After the tab key the list is that of what was typed before it.
        let is_typed = self.editor.text().get(found.start..) == Some(found.part.as_str());
        if is_at_end && is_typed {
            found.select_begun();
        }
        self.take_candidate(true)
    }

    /// Writes the chosen candidate; `None` if there is none. `runs`: a command that needs nothing more is run.
    pub(super) fn take_candidate(&mut self, runs: bool) -> Option<Vec<Action>> {
        let found = self.candidates.as_ref()?;
        let (start, word) = (found.start, found.chosen()?);
        self.editor.replace_before(start, &word);
        self.changed();
        let name =
            Name::ALL.into_iter().find(|name| word.trim_end() == format!("/{}", name.as_str()));
        let is_whole = name.is_some_and(|name| name.parameter().is_empty());
        let is_alone = self.editor.cursor() == self.editor.text().len();
        Some(if runs && is_whole && is_alone { self.entered(false) } else { Vec::new() })
    }
}

/// Whether a text after `@` is a name: one with spaces needs a quote.
fn is_name(part: &str) -> bool {
    part.starts_with('"') || !part.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Event;
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::{Key, Press};

    fn words(scene: &Scene) -> Vec<&str> {
        let words = scene.state.candidates.iter().flat_map(|found| &found.words);
        words.map(String::as_str).collect()
    }

    #[test]
    fn a_command_is_chosen_from_the_list() {
        let mut scene = Scene::new();
        scene.write("/");
        assert_eq!(words(&scene).len(), Name::ALL.len());
        scene.write("sy");
        assert_eq!(words(&scene), ["/system"]);
        scene.key(Key::Down);
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "/system ", "it may have a text");
        scene.state.editor.take();
        scene.write("/qu");
        scene.key(Key::Down);
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [Action::Quit]);
    }

    /// Another text is none that the list may complete.
    #[test]
    fn a_list_is_gone_with_the_text_it_was_made_for() {
        let others: [fn(&mut Scene); 4] = [
            |scene| scene.event(Event::Edited(Ok("long".to_owned()))),
            |scene| {
                scene.press(Press::ctrl('r'));
                scene.key(Key::Enter);
            },
            |scene| scene.done("r", "failed"),
            |scene| assert!(!scene.state.can_ask_first("long", &[])),
        ];
        for (at, other) in others.into_iter().enumerate() {
            let mut scene = Scene::new();
            scene.write("long");
            scene.key(Key::Enter);
            scene.send("r");
            scene.state.awaits_conversation();
            scene.write("/");
            scene.key(Key::Down);
            other(&mut scene);
            assert_eq!(words(&scene), [""; 0], "{at}");
            assert!(scene.state.editor.text().starts_with("long"), "{at}");
        }
    }

    /// What is no name yet is what the list begins with; a whole name, and a slash alone, are what they are.
    #[test]
    fn enter_takes_what_the_list_begins_with() {
        let mut scene = Scene::new();
        scene.write("/exp");
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "/export ");
        scene.state.editor.take();
        scene.write("/to");
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "", "a command that needs nothing more is run");
        scene.write("@mr");
        let words = vec!["src/main.rs".to_owned(), "src/mir.rs".to_owned()];
        let found = Candidates::new(1, "mr".to_owned(), words);
        scene.event(Event::Files { found, completes: false });
        scene.key(Key::Enter);
        assert!(!scene.state.editor.text().contains("src"), "neither begins so");
        scene.state.editor.take();
        scene.write("@sr");
        let words = vec!["src/main.rs".to_owned(), "src/mir.rs".to_owned()];
        let found = Candidates::new(1, "sr".to_owned(), words);
        scene.event(Event::Files { found, completes: false });
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "@src/main.rs ");
    }

    #[test]
    fn files_are_listed_while_their_name_is_typed() {
        let mut scene = Scene::new();
        let list = |part: &str, completes| Action::ListFiles {
            start: 1,
            part: part.to_owned(),
            completes,
        };
        let listed = |part: &str, words: &[&str], completes| Event::Files {
            found: Candidates::new(
                1,
                part.to_owned(),
                words.iter().map(|word| (*word).to_owned()).collect(),
            ),
            completes,
        };
        let is_listed = |action: &&Action| matches!(action, Action::ListFiles { .. });
        scene.write("@mr");
        let lists: Vec<_> = scene.actions.iter().filter(is_listed).cloned().collect();
        assert_eq!(lists, [list("", false), list("m", false), list("mr", false)]);
        scene.event(listed("m", &["main.rs"], false));
        assert_eq!(words(&scene), [""; 0], "the text has changed");
        scene.event(listed("mr", &["src/main.rs", "src/mir.rs"], false));
        assert_eq!(words(&scene).len(), 2);
        assert_eq!(scene.state.editor.text(), "@mr");
        scene.key(Key::Tab);
        assert_eq!(scene.actions.last(), Some(&list("mr", true)));
        scene.event(listed("mr", &["src/main.rs", "src/mir.rs"], true));
        scene.key(Key::Down);
        scene.key(Key::Up);
        scene.key(Key::Down);
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "@src/mir.rs ");
        assert!(scene.asked().is_empty());
    }
}
