//! Esc Esc: goes back to an earlier prompt of the conversation, which is asked anew.

use super::edits::AcceptedPrompt;
use super::keys::title;
use super::{Choice, Picker, PickerKind, State};

impl State {
    /// A second Esc on an empty line: lists the prompts of this conversation, the last one first.
    pub(super) fn list_asked(&mut self) {
        let choice = |asked: &AcceptedPrompt| Choice {
            value: asked.message_id.clone(),
            title: title(&asked.text),
            detail: String::new(),
        };
        let asked = self.prompts.iter().rev().filter(|asked| asked.is_first());
        let choices = asked.map(choice).collect();
        self.picker = Some(Picker::new(PickerKind::Rewind, String::new(), choices));
    }

    /// Writes a prompt of this conversation again. Once it is sent, it takes the place of the old one and of all
    /// that followed.
    pub(super) fn rewind_to(&mut self, message_id: String) {
        let asked = self.prompts.iter().find(|asked| asked.message_id == message_id);
        let Some(text) = asked.map(|asked| asked.text.clone()) else { return };
        self.write_anew(self.line_of(&text));
        self.edits = Some(message_id);
    }

    /// Whether the prompt that is written again is not the last one.
    pub(crate) fn edits_earlier(&self) -> bool {
        self.edits.is_some() && self.edits.as_deref() != self.last_message_id()
    }

    /// Whether Esc may list the prompts of this conversation.
    pub(super) fn can_rewind(&self) -> bool {
        let is_idle = self.run.is_none() && self.waiting.is_empty() && !self.is_opening;
        is_idle && self.editor.is_empty() && self.prompts.iter().any(AcceptedPrompt::is_first)
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::proto::session::TurnDropped;
    use crate::tui::model::Piece;
    use crate::tui::model::edits::tests::{edits, replacement, turn};
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::Key;

    #[test]
    fn a_second_esc_goes_back_to_any_prompt() {
        let mut scene = Scene::new();
        scene.key(Key::Esc);
        scene.key(Key::Esc);
        assert!(scene.state.picker.is_none(), "nothing was asked");
        for (id, prompt) in [("a", "one"), ("b", "two"), ("c", "three")] {
            turn(&mut scene, id, prompt);
        }
        scene.key(Key::Esc);
        scene.write("x");
        scene.key(Key::Backspace);
        scene.key(Key::Esc);
        assert!(scene.state.picker.is_none(), "the two belong together");
        scene.key(Key::Esc);
        let titles = |scene: &Scene| {
            let picker = scene.state.picker.as_ref().expect("a list");
            picker.matching().iter().map(|it| it.title.clone()).collect::<Vec<_>>()
        };
        assert_eq!(titles(&scene), ["three", "two", "one"]);
        scene.write("tw");
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "two");
        assert!(scene.state.edits_earlier());
        scene.write("!");
        scene.key(Key::Enter);
        assert_eq!(edits(&scene), [replacement("b-user", "two!")]);
        let message_ids = ["b-user", "b", "c-user", "c"].map(str::to_owned).to_vec();
        scene.ui("e", TurnDropped { message_ids, ..Default::default() });
        let dropped = Piece::Dropped { prompts: 2, turns: 2, text: "two".to_owned() };
        assert_eq!(scene.pieces.last(), Some(&dropped));
    }

    #[test]
    fn esc_only_stops_while_the_model_answers() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "one");
        scene.ask("r", "two");
        for _ in 0..3 {
            scene.key(Key::Esc);
        }
        assert!(scene.state.picker.is_none());
        scene.done("r", "stopped");
        scene.key(Key::Esc);
        assert!(scene.state.picker.is_none());
        scene.key(Key::Esc);
        assert!(scene.state.picker.is_some());
    }
}
