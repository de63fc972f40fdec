//! The offer to go on in a copy of a conversation that another process holds.

use super::{Action, State};
use crate::tui::terminal::keys::{Key, Press};
use std::time::Duration;

/// How long the offer must have been on the screen, and nothing typed, before Enter takes it: what was typed before it
/// is no answer.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// The offer.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    session: String,
    /// There is no other conversation to stay in.
    pub(crate) is_only: bool,
    /// When a picture with all of it was drawn after it was made, after the last key and after the last resize.
    pub(super) quiet_since: Option<Duration>,
    is_taken: bool,
}

impl State {
    /// Another process holds `session`. `is_only`: there is no conversation to stay in.
    pub(super) fn session_is_held(&mut self, session: String, is_only: bool) {
        self.offer = Some(Offer { session, is_only, quiet_since: None, is_taken: false });
    }

    /// When Enter takes the offer, if nothing is typed until then.
    pub(super) fn offer_is_taken_from(&self) -> Option<Duration> {
        self.offer.as_ref()?.quiet_since.map(|since| since + QUIET_TIME)
    }

    /// Whether Enter takes the offer now.
    pub(crate) fn takes_offer(&self) -> bool {
        self.offer_is_taken_from().is_some_and(|from| from <= self.now)
    }

    /// A key while there is an offer; `None` if it means something else.
    pub(super) fn answer_offer(&mut self, press: Press) -> Option<Vec<Action>> {
        let is_quiet = self.takes_offer();
        let offer = self.offer.as_mut()?;
        offer.quiet_since = None;
        let is_no = press.key == Key::Esc || press == Press::ctrl('c') || press == Press::ctrl('d');
        if is_no && offer.is_only {
            return Some(self.leave());
        }
        if is_no {
            self.offer = None;
            return Some(self.stay());
        }
        if press != Press::plain(Key::Enter) {
            // In another conversation a key is for that one.
            self.offer.take_if(|offer| !offer.is_only);
            return None;
        }
        if !is_quiet || offer.is_taken {
            self.hint("Enter copies it once this was shown and nothing was typed for a second");
            return Some(Vec::new());
        }
        offer.is_taken = true;
        let session = offer.session.clone();
        Some(self.begin_fork(session))
    }

    /// The copy could not be made: the offer stands.
    pub(super) fn not_copied(&mut self) {
        if let Some(offer) = &mut self.offer {
            offer.is_taken = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Copied, Event, Opening};

    fn held(is_only: bool) -> Scene {
        let mut scene = Scene::new();
        let session = "s".to_owned();
        scene.event(Event::SessionHeld { session, is_only });
        scene
    }

    #[test]
    fn enter_goes_on_in_a_copy() {
        let mut scene = held(true);
        scene.write("hi");
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [], "it was typed for the conversation");
        scene.after(1_000);
        scene.key(Key::Enter);
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [Action::Fork("s".to_owned())], "once");
        scene.event(Event::Forked(Err("the disk is full".to_owned())));
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(scene.actions.len(), 2);
        let session = "copy".to_owned();
        let copied = Copied { session: session.clone(), omission: None };
        scene.event(Event::Forked(Ok(copied)));
        assert_eq!(scene.actions.last(), Some(&Action::Open(Opening::Copied { session })));
        scene.event(Event::Opened(String::new()));
        assert!(scene.state.offer.is_none());
        assert_eq!(scene.state.editor.text(), "hi", "it can be sent there");
    }

    #[test]
    fn enter_does_not_take_an_offer_that_was_not_on_the_screen() {
        let mut scene = Scene::new();
        scene.draws = false;
        scene.event(Event::SessionHeld { session: "s".to_owned(), is_only: true });
        scene.after(5_000);
        scene.key(Key::Enter);
        assert_eq!(scene.actions, []);
        scene.draws = true;
        scene.after(0);
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [Action::Fork("s".to_owned())]);
    }

    #[test]
    fn esc_leaves_only_where_there_is_no_other_conversation() {
        let mut scene = held(true);
        scene.key(Key::Esc);
        assert_eq!(scene.actions, [Action::Quit]);
        let mut scene = held(false);
        scene.key(Key::Esc);
        assert!(scene.actions.is_empty() && scene.state.offer.is_none());
        let mut scene = held(false);
        scene.write("x");
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(scene.asked(), [("x", None)], "a key is for this conversation");
    }
}
