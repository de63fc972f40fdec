//! What a person is told who does not look at the window.

use super::{Action, State};

/// Something that waits for the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A question about a tool call.
    Question,
    /// The model, or a shell command, has ended.
    Answer,
}

impl Notice {
    /// For people; no text of a model is in it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Question => "duologue: a tool call waits for your decision",
            Self::Answer => "duologue: the answer is there",
        }
    }
}

impl State {
    /// Something waits for the person from now on.
    pub(super) fn waits_for_person(&mut self, notice: Notice) {
        self.notice = Some(notice);
    }

    /// What the terminal is to say, because nobody looks at it. A terminal that does not report that is believed to
    /// be looked at.
    pub(super) fn notify(&mut self) -> Option<Action> {
        let notice = self.notice.take()?;
        let is_unseen = !self.is_looked_at && !self.is_plain() && !self.is_ending;
        is_unseen.then_some(Action::Notify(notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Event;
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::{Key, Typed};

    #[test]
    fn only_a_window_that_nobody_looks_at_notifies() {
        let mut scene = Scene::new();
        let notices = |scene: &Scene| {
            let notices = scene.actions.iter().filter_map(|action| {
                let Action::Notify(notice) = action else { return None };
                Some(*notice)
            });
            notices.collect::<Vec<_>>()
        };
        scene.ask("a", "one");
        scene.done("a", "ok");
        scene.ask("b", "two");
        scene.event(Event::Typed(Typed::Focus(false)));
        scene.asks_approval("b", "c1");
        scene.asks_approval("b", "c2");
        assert_eq!(notices(&scene), [Notice::Question], "once for all of them");
        scene.done("b", "ok");
        assert_eq!(notices(&scene)[1..], [Notice::Answer]);
        scene.event(Event::Typed(Typed::Focus(true)));
        scene.ask("c", "three");
        scene.done("c", "ok");
        scene.event(Event::Typed(Typed::Focus(false)));
        scene.key(Key::Esc);
        scene.ask("d", "four");
        scene.done("d", "ok");
        assert_eq!(notices(&scene).len(), 2, "who types looks at it");
    }
}
