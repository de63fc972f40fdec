//! Stopping a run and leaving the chat; a prompt that was not sent goes into the history.

use super::hint::About;
use super::{Action, State};

impl State {
    /// Ctrl-C. Each press does the first of these that there is to do: it clears what is written, stops
    /// the model, and with a second press within [`super::LEAVE_TIME`] leaves.
    pub(super) fn interrupted(&mut self) -> Vec<Action> {
        let is_leaving = self.leave_until.take().is_some();
        self.candidates = None;
        if !self.editor.is_empty() {
            return self.clear();
        }
        if self.is_running() {
            return self.stop();
        }
        if is_leaving {
            return self.leave();
        }
        self.leave_until = Some(self.now + super::LEAVE_TIME);
        self.hint("press Ctrl-C again to leave");
        Vec::new()
    }

    /// Whether there is something that Esc or Ctrl-C stops.
    fn is_running(&self) -> bool {
        let is_answering = self.run.as_ref().is_some_and(|run| !run.is_stopping);
        is_answering || !self.waiting.is_empty() || self.is_opening || self.runs_command()
    }

    /// Clears the editor. The up key restores the text, also in the next chat.
    fn clear(&mut self) -> Vec<Action> {
        self.edits = None;
        let written = self.take_line();
        self.hint(match self.is_running() {
            true => "the up key brings the text back; Ctrl-C again stops the answer",
            false => "the up key brings the text back",
        });
        self.remember(&written)
    }

    /// Esc: closes the open list or search, else stops the run. A second one on an empty line lists the prompts of
    /// the conversation.
    pub(super) fn escaped(&mut self) -> Vec<Action> {
        if self.candidates.take().is_some() || self.stop_editing() {
            return Vec::new();
        }
        if self.is_running() {
            self.rewind_until = None;
            return self.stop();
        }
        if self.can_rewind() {
            match self.rewind_until.take() {
                Some(until) if self.now <= until => self.list_asked(),
                Some(_) | None => {
                    self.rewind_until = Some(self.now + super::LEAVE_TIME);
                    self.hint("Esc again goes back to an earlier prompt");
                }
            }
        }
        vec![Action::Scroll(super::Scroll::End)]
    }

    /// The person stays in this conversation, also if another one is being opened.
    pub(super) fn stay(&mut self) -> Vec<Action> {
        self.hint("this conversation goes on");
        let is_opening = std::mem::take(&mut self.is_opening);
        is_opening.then_some(Action::Stay).into_iter().collect()
    }

    fn stop(&mut self) -> Vec<Action> {
        if self.is_opening {
            return self.stay();
        }
        if let Some(actions) = self.end_command() {
            return actions;
        }
        self.hint_about(About::Stopping, "stopping".to_owned());
        self.cancel()
    }

    pub(super) fn leave(&mut self) -> Vec<Action> {
        self.is_ending = true;
        vec![Action::Quit]
    }

    /// Adds a text to the earlier prompts, of this chat and of later ones.
    pub(super) fn remember(&mut self, text: &str) -> Vec<Action> {
        self.history.add(text);
        // A draft that was put aside by this comes first.
        let mut actions = self.remember_put_aside();
        if !text.trim().is_empty() {
            actions.extend(self.stored(text.to_owned()));
        }
        actions
    }

    /// Stores the texts that were put aside.
    pub(super) fn remember_put_aside(&mut self) -> Vec<Action> {
        let texts = self.history.take_unstored().into_iter();
        texts.filter_map(|text| self.stored(text)).collect()
    }

    /// Has a text stored, unless it was stored last.
    fn stored(&mut self, text: String) -> Option<Action> {
        let is_last = self.remembered.as_ref() == Some(&text);
        (!is_last).then(|| {
            self.remembered = Some(text.clone());
            Action::Remember(text)
        })
    }

    /// What was written and not sent: the person has left or has to. Prompts that wait were stored
    /// when they were entered.
    pub(crate) fn take_unsent(&mut self) -> Vec<String> {
        self.is_ending = true;
        self.take_draft_back();
        let reason = self.history.take_unstored();
        let draft = self.history.take_draft();
        let written = self.editor.take();
        let texts = reason.into_iter().chain(draft).chain([written]);
        let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
        let last = self.remembered.take();
        texts.into_iter().filter(|text| last.as_ref() != Some(text)).collect()
    }

    /// Whether something was said that can be gone on with.
    pub(crate) fn has_begun(&self) -> bool {
        !self.prompts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::input::History;
    use crate::tui::model::Opening;
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::{Key, Press};

    fn interrupt(scene: &mut Scene) {
        scene.press(Press::ctrl('c'));
    }

    fn has_left(scene: &Scene) -> bool {
        scene.actions.contains(&Action::Quit)
    }

    #[test]
    fn ctrl_c_clears_then_stops_and_two_more_leave() {
        let mut scene = Scene::new();
        scene.ask("r1", "go");
        scene.write("draft");
        interrupt(&mut scene);
        assert!(scene.state.editor.is_empty() && scene.cancelled().is_empty());
        assert!(scene.actions.contains(&Action::Remember("draft".to_owned())));
        interrupt(&mut scene);
        assert_eq!(scene.cancelled(), [Some("r1")]);
        scene.done("r1", "stopped");
        interrupt(&mut scene);
        assert_eq!(scene.state.shown_hint(), Some("press Ctrl-C again to leave"));
        assert!(!has_left(&scene));
        interrupt(&mut scene);
        assert!(has_left(&scene));
    }

    #[test]
    fn a_second_ctrl_c_leaves_only_at_once_and_after_no_other_key() {
        let mut scene = Scene::new();
        interrupt(&mut scene);
        scene.after(2_001);
        interrupt(&mut scene);
        scene.key(Key::Left);
        interrupt(&mut scene);
        scene.write("x");
        interrupt(&mut scene);
        assert!(!has_left(&scene));
        interrupt(&mut scene);
        interrupt(&mut scene);
        assert!(has_left(&scene));
    }

    /// A store that hangs does not block the end of the chat.
    #[test]
    fn a_run_that_does_not_stop_keeps_nobody() {
        let mut scene = Scene::new();
        scene.ask("r1", "go");
        (0..3).for_each(|_| interrupt(&mut scene));
        assert_eq!((scene.cancelled(), has_left(&scene)), (vec![Some("r1")], true));
    }

    #[test]
    fn cleared_text_and_drafts_come_back() {
        let mut scene = Scene::new();
        scene.write("cleared");
        interrupt(&mut scene);
        scene.write("draft");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "cleared");
        assert_eq!(
            scene.state.take_unsent(),
            ["draft"],
            "the other one was stored when it was cleared"
        );
        assert_eq!(scene.state.take_unsent(), [""; 0], "only once");
    }

    #[test]
    fn what_another_text_takes_the_place_of_is_stored_at_once() {
        let stored = |scene: &Scene| {
            let texts = scene.actions.iter().filter_map(|action| {
                let Action::Remember(text) = action else { return None };
                Some(text.clone())
            });
            texts.collect::<Vec<_>>()
        };
        let mut scene = Scene::new();
        scene.ask("r1", "old");
        scene.done("r1", "ok");
        scene.write("precious");
        scene.key(Key::Up);
        assert_eq!(stored(&scene), ["old"], "the down key brings it back");
        scene.write("!");
        assert_eq!(stored(&scene), ["old", "precious"]);
        scene.press(Press::ctrl('r'));
        scene.write("prec");
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "precious");
        assert_eq!(stored(&scene), ["old", "precious", "old!"]);
        scene.begins("r2", "time?");
        scene.asks_approval("r2", "c1");
        scene.press(Press::ctrl('g'));
        scene.write("rnot now");
        scene.key(Key::Enter);
        assert_eq!(stored(&scene).len(), 3, "a reason that was sent is no prompt");
        scene.asks_approval("r2", "c2");
        scene.press(Press::ctrl('g'));
        scene.write("rlater");
        scene.key(Key::Esc);
        assert_eq!(stored(&scene)[3..], ["later"]);
        assert_eq!(scene.state.take_unsent(), ["precious"], "each once");
    }

    #[test]
    fn a_draft_precedes_the_prompt_that_is_sent_in_its_place() {
        let mut scene = Scene::new();
        scene.ask("r1", "old");
        scene.done("r1", "ok");
        scene.actions.clear();
        scene.write("precious");
        scene.key(Key::Up);
        scene.key(Key::Enter);
        let remembered = scene.actions.iter().filter(|it| matches!(it, Action::Remember(_)));
        let expected = ["precious", "old"].map(|text| Action::Remember(text.to_owned()));
        assert_eq!(remembered.cloned().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_prompt_that_waits_was_stored_when_it_was_entered() {
        let mut scene = Scene::new();
        scene.state.history = History::new(vec!["later".to_owned()]);
        scene.ask("r1", "go");
        scene.write("later");
        scene.key(Key::Enter);
        scene.send("r2");
        assert!(scene.actions.contains(&Action::Remember("later".to_owned())));
        scene.write("draft");
        assert_eq!(scene.state.take_unsent(), ["draft"]);
        scene.done("r2", "failed");
        assert!(scene.state.editor.is_empty(), "it does not become part of the draft");
    }

    #[test]
    fn what_is_said_about_stopping_is_gone_with_the_run() {
        let mut scene = Scene::new();
        scene.ask("r1", "go");
        scene.key(Key::Esc);
        assert_eq!(scene.state.shown_hint(), Some("stopping"));
        scene.done("r1", "stopped");
        assert_eq!(scene.state.shown_hint(), None);
    }

    #[test]
    fn a_conversation_that_is_being_opened_can_be_left_alone() {
        let mut scene = Scene::new();
        scene.write("/new");
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [Action::Open(Opening::New { system: None })]);
        scene.write("hello");
        scene.key(Key::Enter);
        assert_eq!((scene.asked().len(), scene.state.editor.text()), (0, "hello"));
        scene.key(Key::Esc);
        assert_eq!(scene.actions.last(), Some(&Action::Stay));
        scene.key(Key::Enter);
        assert_eq!(scene.asked(), [("hello", None)]);
    }
}
