//! The person's own editor, which has the text of the line for a while: what comes from it takes the place of what it
//! was given, and of nothing else that has come into the line meanwhile.

use super::{Action, EditorFailure, Note, State};

/// The text that the editor was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lent {
    text: String,
    /// It is the reason of a denial.
    is_reason: bool,
}

impl State {
    /// Gives the text of the line to the editor. What was entered is being changed, so nothing sends it any more.
    pub(super) fn lend_line(&mut self) -> Vec<Action> {
        self.enters_with_output = None;
        let text = self.editor.expanded();
        self.lent = Some(Lent { text: text.clone(), is_reason: self.asking.takes_reason() });
        vec![Action::Edit(text)]
    }

    /// The editor has ended.
    pub(super) fn edited(&mut self, edited: Result<String, EditorFailure>) {
        let lent = self.lent.take();
        match edited {
            Ok(text) => self.take_edited(text, lent),
            Err(EditorFailure { why, saved }) => {
                saved.iter().for_each(|text| self.history.put_aside(text));
                self.note(Note::Error, why);
            }
        }
    }

    fn take_edited(&mut self, text: String, lent: Option<Lent>) {
        let was_reason = lent.as_ref().is_some_and(|lent| lent.is_reason);
        if was_reason && !self.asking.takes_reason() {
            // In the line is a draft, or the reason would be sent as a prompt.
            self.history.put_aside(&self.line_of(&text));
            let why = "the call is decided; the up key brings back what was saved in the editor";
            return self.note(Note::Information, why.to_owned());
        }
        // A question was about the text before, and is not seen any more.
        self.does_not_agree();
        if lent.is_some_and(|lent| lent.text == self.editor.expanded()) {
            self.history.leave();
            return self.write_again(text);
        }
        self.write_anew(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::constants::done;
    use crate::protocol::proto::tools::ToolApprovalResolved;
    use crate::tui::model::edits::tests::{replacement, turn};
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{CommandOutput, Event};
    use crate::tui::terminal::keys::{Key, Press};

    fn opens_editor(scene: &mut Scene) {
        scene.press(Press::ctrl('x'));
        scene.press(Press::ctrl('e'));
        assert!(matches!(scene.actions.last(), Some(Action::Edit(_))), "{:?}", scene.actions);
    }

    fn edited(scene: &mut Scene, text: &str) {
        scene.event(Event::Edited(Ok(text.to_owned())));
    }

    /// A chat with a draft, in which the reason of a denial is being written.
    fn with_reason() -> Scene {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        scene.asks_approval("r", "c");
        scene.write("a draft");
        scene.press(Press::ctrl('g'));
        scene.write("rnot");
        scene
    }

    #[test]
    fn an_edit_that_is_refused_while_an_editor_runs_makes_no_edit_of_its_text() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        scene.event(Event::Sent(replacement("a-user", "changed"), "e".to_owned()));
        opens_editor(&mut scene);
        scene.done("e", done::FAILED);
        edited(&mut scene, "another");
        assert_eq!((scene.state.editor.text(), &scene.state.edits), ("another", &None));
    }

    #[test]
    fn a_reason_that_is_taken_up_again_is_the_same() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        scene.asks_approval("r", "c");
        scene.press(Press::ctrl('g'));
        scene.write("r//quit is no reason");
        scene.key(Key::Enter);
        let actions = format!("{:?}", scene.actions);
        assert!(actions.contains("reason: \"/quit is no reason\""), "{actions}");
    }

    #[test]
    fn a_reason_whose_call_is_decided_meanwhile_is_no_prompt() {
        let mut scene = with_reason();
        opens_editor(&mut scene);
        scene.ui("r", ToolApprovalResolved { tool_call_id: "c".to_owned(), ..Default::default() });
        edited(&mut scene, "not so");
        assert_eq!(scene.state.editor.text(), "a draft");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "not so");
        let mut scene = with_reason();
        opens_editor(&mut scene);
        edited(&mut scene, "not so");
        assert_eq!(scene.state.editor.text(), "not so", "the call still waits");
        scene.key(Key::Esc);
        assert_eq!(scene.state.editor.text(), "a draft");
    }

    #[test]
    fn a_prompt_that_comes_back_while_a_reason_is_written_is_no_part_of_it() {
        let alt_up = Press { alt: true, ..Press::plain(Key::Up) };
        let returns: [fn(&mut Scene, Press); 2] =
            [|scene, alt_up| scene.press(alt_up), |scene, _| scene.done("r2", done::FAILED)];
        for returns in returns {
            let mut scene = Scene::new();
            scene.ask("r", "go");
            scene.write("next");
            scene.key(Key::Enter);
            scene.send("r2");
            scene.asks_approval("r", "c");
            scene.write("a draft");
            scene.press(Press::ctrl('g'));
            scene.write("rtoo risky");
            returns(&mut scene, alt_up);
            assert_eq!(scene.state.editor.text(), "too risky");
            scene.key(Key::Esc);
            assert_eq!(scene.state.editor.text(), "next\na draft");
        }
    }

    #[test]
    fn what_came_into_the_line_while_the_editor_ran_can_be_had_back() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        scene.write("refused");
        scene.key(Key::Enter);
        scene.send("r2");
        scene.write("a draft");
        opens_editor(&mut scene);
        scene.done("r2", done::FAILED);
        edited(&mut scene, "a text");
        assert_eq!(scene.state.editor.text(), "a text");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "refused\na draft");
    }

    #[test]
    fn a_text_that_the_editor_has_is_not_sent() {
        let mut scene = Scene::new();
        scene.write("!make");
        scene.key(Key::Enter);
        scene.write("why?");
        scene.key(Key::Enter);
        opens_editor(&mut scene);
        let (command, text) = ("make".to_owned(), String::new());
        scene.event(Event::CommandEnded(Ok(CommandOutput { command, text, failure: None })));
        assert_eq!((scene.asked().len(), scene.state.editor.text()), (0, "why?"));
        edited(&mut scene, "/sum");
        scene.key(Key::Enter);
        let expand = Action::Expand { line: "/sum".to_owned(), joins: false };
        assert_eq!(scene.actions.last(), Some(&expand));
        opens_editor(&mut scene);
        let (line, joins, prompt) = ("/sum".to_owned(), false, Err(String::new()));
        scene.event(Event::Expanded { line, joins, prompt });
        assert_eq!(scene.state.shown_hint(), None, "nobody waits for it");
        edited(&mut scene, "why not?");
        scene.key(Key::Enter);
        assert_eq!(scene.asked(), [("why not?", None)]);
    }
}
