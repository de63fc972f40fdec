//! The choice of another model or profile. A session takes no switch during a run, so one that is chosen
//! meanwhile waits until nothing is under way, and goes with each prompt that is entered before that.

use super::{Action, Outgoing, State};
use crate::tui::text::clean;

/// What was chosen while the model answered. One of the names may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) profile: String,
    pub(crate) model: String,
}

impl Switch {
    /// The names, for a person.
    pub(crate) fn names(&self) -> String {
        let names = [&self.profile, &self.model].into_iter().filter(|name| !name.is_empty());
        names.map(|name| clean(name).replace('\n', " ")).collect::<Vec<_>>().join(" · ")
    }
}

impl State {
    /// The model answers, or has to answer something that waits.
    pub(super) fn is_busy(&self) -> bool {
        self.run.is_some() || !self.waiting.is_empty()
    }

    /// Has this profile or model answer from the next prompt on.
    pub(super) fn switch_to(&mut self, profile: String, model: String) -> Vec<Action> {
        if !self.is_busy() {
            return vec![Action::Request(Outgoing::SwitchModel { profile, model })];
        }
        let chosen = match self.switch.take() {
            // A model of the profile that was chosen before it.
            Some(earlier) if profile.is_empty() => Switch { model, ..earlier },
            Some(_) | None => Switch { profile, model },
        };
        self.hint(format!("{} answers from the next prompt on", chosen.names()));
        self.switch = Some(chosen);
        Vec::new()
    }

    /// A request has ended: the switch that waits is made if nothing else is under way.
    pub(super) fn switch_at_last(&mut self) -> Vec<Action> {
        if self.is_busy() || self.is_ending {
            return Vec::new();
        }
        let Some(Switch { profile, model }) = self.switch.take() else { return Vec::new() };
        vec![Action::Request(Outgoing::SwitchModel { profile, model })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::constants::code;
    use crate::tui::model::Event;
    use crate::tui::model::edits::tests::{enter, notes};
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::{Key, Press};

    /// The switches that were requested, and the prompts with what was chosen for each, in their order.
    fn requested(scene: &Scene) -> Vec<String> {
        let requested = scene.actions.iter().filter_map(|action| {
            if let Action::Request(Outgoing::SwitchModel { profile, model }) = action {
                return Some(format!("switch {profile}/{model}"));
            }
            let Action::Request(Outgoing::Submit { prompt, choice, .. }) = action else {
                return None;
            };
            let names = choice.as_ref().map(|it| format!(" for {}/{}", it.profile, it.model));
            Some(format!("{prompt}{}", names.unwrap_or_default()))
        });
        requested.collect()
    }

    #[test]
    fn what_is_chosen_during_an_answer_answers_the_next_prompt() {
        let mut scene = Scene::new();
        scene.ask("r1", "one");
        for command in ["/model m8", "/model"] {
            enter(&mut scene, command);
            scene.event(Event::Models(Ok(vec!["m8".to_owned(), "m9".to_owned()])));
        }
        scene.write("m9");
        scene.key(Key::Enter);
        let hint = "m9 answers from the next prompt on";
        assert_eq!(scene.state.shown_hint(), Some(hint));
        assert_eq!(requested(&scene), ["one"]);
        scene.done("r1", "ok");
        enter(&mut scene, "two");
        assert_eq!(requested(&scene), ["one", "switch /m9", "two"], "the newest choice, once");
        assert_eq!(notes(&scene), [""; 0]);
    }

    /// The session begins it right after the answer, before any switch.
    #[test]
    fn a_prompt_that_waits_has_what_was_chosen_when_it_was_entered() {
        let mut scene = Scene::new();
        scene.ask("r1", "one");
        enter(&mut scene, "two");
        scene.send("r2");
        enter(&mut scene, "/profile work");
        enter(&mut scene, "/model m9");
        enter(&mut scene, "three");
        scene.send("r3");
        scene.write("joins");
        scene.press(Press::ctrl('s'));
        scene.send("r4");
        scene.begins("r1", "joins");
        let sent = ["one", "two", "three for work/m9", "joins"];
        scene.done("r1", "ok");
        scene.begins("r2", "two");
        scene.done("r2", "ok");
        scene.begins("r3", "three");
        assert_eq!(requested(&scene), sent);
        scene.done("r3", "ok");
        scene.done("r4", "ok");
        assert_eq!(requested(&scene)[4..], ["switch work/m9"]);
    }

    #[test]
    fn a_choice_that_can_not_be_used_is_forgotten() {
        let mut scene = Scene::new();
        scene.state.status.model = "m1".to_owned();
        scene.ask("r1", "one");
        enter(&mut scene, "/profile wrok");
        enter(&mut scene, "two");
        scene.send("r2");
        let why = "there is no profile \"wrok\"";
        scene.error_with("r2", code::INVALID_SETTINGS, "it can't be used", why);
        scene.done("r2", "failed");
        assert_eq!(notes(&scene), ["there is no profile \"wrok\"; m1 answers as before"]);
        assert_eq!(scene.state.editor.text(), "two", "m1 is not asked what was meant for another");
        scene.done("r1", "ok");
        assert_eq!(requested(&scene), ["one", "two for wrok/"]);
    }

    /// A model that is not asked is not looked for.
    #[test]
    fn a_refused_switch_says_nothing_about_the_list() {
        let mut scene = Scene::new();
        enter(&mut scene, "/model m9");
        let (profile, model) = (String::new(), "m9".to_owned());
        scene.event(Event::Sent(Outgoing::SwitchModel { profile, model }, "s".to_owned()));
        scene.error_with("s", code::INVALID_SETTINGS, "it can't be used", "no such engine");
        scene.done("s", "failed");
        scene.event(Event::Models(Ok(vec!["m1".to_owned()])));
        assert_eq!(notes(&scene).len(), 1, "{:?}", notes(&scene));
    }
}
