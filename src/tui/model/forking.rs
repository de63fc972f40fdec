//! `/fork`: the conversation goes on in a copy.

use super::{Action, Copied, Note, Opening, State};

impl State {
    /// `/fork`: copies the conversation in its store, and continues in the copy.
    pub(super) fn fork(&mut self) -> Vec<Action> {
        let not_stored = "this conversation is not stored, so it can't be copied; to store conversations, leave \
                          --no-store out when you start the chat, or name a store with --store FILE";
        let nothing = "nothing was asked yet, so there is nothing to copy";
        let why = (!self.status.is_stored).then_some(not_stored).or_else(|| self.why_busy());
        let Some(why) = why.or(self.prompts.is_empty().then_some(nothing)) else {
            return self.begin_fork(self.status.session.clone());
        };
        self.note(Note::Error, why.to_owned());
        Vec::new()
    }

    /// What is entered from here on is for the copy.
    pub(super) fn begin_fork(&mut self, session: String) -> Vec<Action> {
        self.is_opening = true;
        vec![Action::Fork(session)]
    }

    /// The conversation was copied, or why it was not.
    pub(super) fn forked(&mut self, copy: Result<Copied, String>) -> Vec<Action> {
        self.is_opening = false;
        match copy {
            Ok(Copied { session, omission }) => {
                omission.into_iter().for_each(|text| self.note(Note::Warning, text));
                self.open(Opening::Copied { session })
            }
            Err(why) => {
                self.not_copied();
                self.note(Note::Error, why);
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Event;
    use crate::tui::model::edits::tests::{enter, notes, turn};
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::Key;

    #[test]
    fn a_stored_conversation_is_copied_and_goes_on_in_the_copy() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        enter(&mut scene, "/fork");
        assert_eq!(scene.actions, [], "it is not stored");
        assert!(notes(&scene)[0].contains("leave --no-store out"));
        scene.state.status.is_stored = true;
        enter(&mut scene, "/fork");
        assert_eq!(scene.actions, [Action::Fork("s".to_owned())]);
        enter(&mut scene, "more");
        assert_eq!(
            (scene.asked(), scene.state.editor.text()),
            (vec![], "more"),
            "it is for the copy"
        );
        scene.event(Event::Forked(Err("the disk is full".to_owned())));
        assert_eq!(notes(&scene)[1], "the disk is full");
        let session = "copy".to_owned();
        let omission = Some("turn 2 has no end yet".to_owned());
        scene.event(Event::Forked(Ok(Copied { session: session.clone(), omission })));
        assert_eq!(notes(&scene)[2], "turn 2 has no end yet");
        assert_eq!(scene.actions.last(), Some(&Action::Open(Opening::Copied { session })));
    }

    #[test]
    fn who_stays_while_a_copy_is_made_stays() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        scene.state.status.is_stored = true;
        enter(&mut scene, "/fork");
        scene.key(Key::Esc);
        assert_eq!(scene.actions, [Action::Fork("s".to_owned()), Action::Stay]);
        enter(&mut scene, "more");
        assert_eq!(scene.asked(), [("more", None)]);
    }
}
