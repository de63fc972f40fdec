//! Consent of the person at the terminal before a stored conversation goes to a provider that did not
//! have it.

use super::{Action, Draft, Large, Note, State};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Decision;
use crate::tui::text::clean;
use std::time::Duration;

/// A second Enter that comes sooner was typed before the question could be read.
pub(super) const READ_TIME: Duration = Duration::from_millis(200);

/// Whether the provider may get the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Consent {
    /// It has had it before, or the person agrees.
    #[default]
    Given,
    /// The conversation is being loaded, so its provider is unknown.
    Unknown,
    /// The person has to agree first.
    Missing,
    /// The person was asked at this time.
    Asked(Duration),
    /// A question about this line, where lines are typed.
    AskedAbout(String),
}

impl Consent {
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

impl State {
    pub(super) fn provider_changed(&mut self, text: String) {
        // Lines of a file or a program have no person who could reply.
        let can_ask = self.lines.is_none() || self.takes_typed_lines();
        self.note(Note::Warning, text.clone());
        if can_ask {
            self.consent = Consent::Missing;
            self.handover = text;
        }
    }

    /// Another model would get the conversation than the one that the person is to be asked about.
    pub(super) fn goes_elsewhere(&mut self, host: &str) {
        if self.consent != Consent::Given && !self.handover.contains(host) {
            self.handover =
                format!("{host} · {} gets all of this conversation", self.status.answers_with());
        }
    }

    /// A stored conversation is being loaded.
    pub(crate) fn awaits_conversation(&mut self) {
        self.consent = Consent::Unknown;
    }

    /// Whether a stored conversation goes on that has not been shown yet.
    pub(crate) fn is_loading(&self) -> bool {
        self.consent.is_unknown()
    }

    /// It is loaded. What is to be said about its provider follows at once.
    pub(super) fn has_conversation(&mut self) {
        if self.consent == Consent::Unknown {
            self.consent = Consent::Given;
        }
    }

    /// Whether the text of the editor may be sent. If not, the person is asked, and a second Enter sends it.
    pub(super) fn may_send(&mut self) -> bool {
        match self.consent {
            Consent::Given => return true,
            Consent::Asked(since) if self.now >= since + READ_TIME => {
                self.consent = Consent::Given;
                return true;
            }
            Consent::Unknown => {
                self.hint("the conversation is being loaded");
                return false;
            }
            Consent::Asked(_) => return false,
            Consent::Missing | Consent::AskedAbout(_) => {}
        }
        self.consent = Consent::Asked(self.now);
        let text = format!("Enter again sends the prompt, Esc does not: {}", self.handover);
        self.hint(text);
        false
    }

    /// Whether the prompt of the command line may be sent, with which these `large` files would go. If not, it is
    /// written into the line, or asked about.
    pub(crate) fn can_ask_first(&mut self, prompt: &str, large: &[Large]) -> bool {
        let has_consent = self.consent == Consent::Given;
        let is_asked_about_files =
            !large.is_empty() && (!self.is_plain() || self.takes_typed_lines());
        if has_consent && !is_asked_about_files {
            return true;
        }
        let line = self.line_of(prompt);
        if self.is_plain() {
            if self.may_send_line(&line) {
                self.measured(large, Draft::Line(line));
            }
            return false;
        }
        self.write_anew(line.clone());
        if self.may_send() {
            self.measured(large, Draft::Written { text: line, joins: false });
        }
        false
    }

    /// The prompt of the command line was not sent. What options attach goes with the first prompt that is.
    pub(crate) fn first_waits(&mut self, prompt: String, attached: Vec<Attachment>) {
        self.first = Some(prompt);
        self.attached = attached;
    }

    /// The names of what options attach to the next prompt, if anything.
    pub(crate) fn attached_names(&self) -> Option<String> {
        let names = self.attached.iter().map(|it| clean(it.filename()).replace('\n', " "));
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    }

    /// The person at a terminal with lines does not agree.
    pub(super) fn nothing_was_sent(&mut self) {
        let text = match self.attached_names() {
            None => "nothing was sent".to_owned(),
            Some(names) => format!("nothing was sent; this goes with the next prompt: {names}"),
        };
        self.note(Note::Information, text);
    }

    /// Another key than Enter takes the question back.
    pub(super) fn does_not_agree(&mut self) {
        self.does_not_attach();
        if let Consent::Asked(_) = self.consent {
            self.consent = Consent::Missing;
        }
    }

    pub(super) fn consent_is_missing(&self) -> bool {
        self.consent != Consent::Given
    }

    /// Asks about `line`, where lines are typed.
    pub(super) fn may_send_line(&mut self, line: &str) -> bool {
        if self.consent == Consent::Given {
            return true;
        }
        self.consent = Consent::AskedAbout(line.to_owned());
        let text = format!("{}. Write y to send the prompt, or n", self.handover);
        self.note(Note::Warning, text);
        false
    }

    /// The answer to that question; `None` if there is none open.
    pub(super) fn answer_about_line(&mut self, decision: Option<&Decision>) -> Option<Vec<Action>> {
        let Consent::AskedAbout(line) = &self.consent else { return None };
        let line = line.clone();
        match decision {
            Some(Decision::AllowOnce | Decision::AllowSession) => {
                self.consent = Consent::Given;
                // It may name a prompt of a command file.
                Some(self.begin_line(&line))
            }
            Some(Decision::Deny { .. }) | None => {
                self.consent = Consent::Missing;
                self.nothing_was_sent();
                Some(Vec::new())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::attachment::{Attachment, Content};
    use crate::protocol::proto::chat::ChatAttachment;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Action, Event, Large, Lines, Note, Outgoing, Piece};
    use crate::tui::terminal::keys::{Key, Press};

    #[test]
    fn a_second_enter_agrees_and_another_key_does_not() {
        let mut scene = Scene::new();
        scene.event(Event::ProviderChanged("it was with a".to_owned()));
        scene.write("hi");
        scene.key(Key::Enter);
        assert!(scene.asked().is_empty(), "{:?}", scene.actions);
        scene.key(Key::Esc);
        scene.key(Key::Enter);
        scene.key(Key::Enter);
        assert!(scene.asked().is_empty() && scene.state.editor.text() == "hi");
        scene.after(300);
        scene.key(Key::Enter);
        assert_eq!(scene.asked(), [("hi", None)]);
        scene.write("more");
        scene.key(Key::Enter);
        assert_eq!(scene.asked().len(), 2, "it is asked once");
    }

    #[test]
    fn a_typed_line_is_sent_if_the_person_agrees_and_a_piped_one_at_once() {
        let check = |are_typed: bool, lines: &[&str], expected: &[&str]| {
            let mut scene = Scene::new();
            scene.state.lines = Some(Lines::new(are_typed));
            scene.event(Event::ProviderChanged("it was with a".to_owned()));
            lines.iter().for_each(|line| scene.event(Event::Line((*line).to_owned())));
            let asked: Vec<_> = scene.asked().iter().map(|(prompt, _)| *prompt).collect();
            assert_eq!(asked, expected, "{lines:?}");
        };
        check(true, &["hi"], &[]);
        check(true, &["hi", "n"], &[]);
        check(true, &["hi", "what?"], &[]);
        check(true, &["hi", "y"], &["hi"]);
        check(true, &["hi", "n", "ho", "yes"], &["ho"]);
        check(false, &["hi"], &["hi"]);
    }

    /// A session may be waited for, and the person writes meanwhile.
    #[test]
    fn the_prompt_of_the_command_line_loses_no_draft() {
        let mut scene = Scene::new();
        scene.write("a draft");
        let large = Large { name: "big.txt".to_owned(), bytes: 2_000_000 };
        assert!(!scene.state.can_ask_first("see @big.txt", &[large]));
        assert_eq!(scene.state.editor.text(), "see @big.txt");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "a draft");
        assert!(scene.actions.contains(&Action::Remember("a draft".to_owned())));
    }

    /// The prompt may be changed before it is sent, and comes back with its files.
    #[test]
    fn what_options_attach_goes_with_the_first_prompt_that_is_sent() {
        let file = |name: &str| Attachment {
            shown: ChatAttachment { filename: name.to_owned(), ..Default::default() },
            content: Content::Data(b"text".as_slice().into()),
        };
        let files = vec![file("a.txt"), file("b.txt")];
        let with_files = || {
            let mut scene = Scene::new();
            scene.event(Event::ProviderChanged("it was with a".to_owned()));
            assert!(!scene.state.can_ask_first("hi", &[]));
            scene.state.first_waits("hi".to_owned(), files.clone());
            assert_eq!(scene.state.attached_names().as_deref(), Some("a.txt, b.txt"));
            scene
        };
        let enter = |scene: &mut Scene| {
            scene.key(Key::Enter);
            scene.after(300);
            scene.key(Key::Enter);
        };
        let attached = |scene: &Scene| {
            let attached = scene.actions.iter().rev().find_map(|action| {
                let Action::Request(Outgoing::Submit { attached, .. }) = action else {
                    return None;
                };
                Some(attached.clone())
            });
            attached.expect("a prompt")
        };
        let mut scene = with_files();
        scene.write(" there");
        enter(&mut scene);
        assert_eq!((scene.asked(), attached(&scene)), (vec![("hi there", None)], files.clone()));
        assert_eq!(scene.state.attached_names(), None);
        scene.send("r");
        scene.done("r", "failed");
        scene.key(Key::Enter);
        assert_eq!(attached(&scene), files, "it was refused");
        scene.write("more");
        scene.key(Key::Enter);
        assert_eq!(attached(&scene), []);

        let mut scene = with_files();
        scene.press(Press::ctrl('u'));
        scene.write("!");
        scene.key(Key::Enter);
        assert_eq!(scene.state.attached_names(), None, "they are dropped");

        let mut scene = Scene::new();
        scene.state.lines = Some(Lines::new(true));
        scene.event(Event::ProviderChanged("it was with a".to_owned()));
        assert!(!scene.state.can_ask_first("hi", &[]));
        scene.state.first_waits("hi".to_owned(), files.clone());
        scene.event(Event::Line("n".to_owned()));
        let text = "nothing was sent; this goes with the next prompt: a.txt, b.txt";
        assert!(scene.pieces.contains(&Piece::Note(Note::Information, text.to_owned())));
    }

    /// A command of the same text, or one of the shell, would be something else.
    #[test]
    fn the_prompt_of_the_command_line_is_no_command_where_it_is_agreed_to() {
        let mut scene = Scene::new();
        scene.state.lines = Some(Lines::new(true));
        scene.event(Event::ProviderChanged("it was with a".to_owned()));
        assert!(!scene.state.can_ask_first("/usr is full", &[]));
        scene.event(Event::Line("y".to_owned()));
        assert_eq!(scene.asked(), [("/usr is full", None)]);
        for prompt in ["/help", "!ls"] {
            let mut scene = Scene::new();
            scene.event(Event::ProviderChanged("it was with a".to_owned()));
            assert!(!scene.state.can_ask_first(prompt, &[]));
            scene.after(300);
            scene.key(Key::Enter);
            assert_eq!(scene.asked(), [(prompt, None)]);
        }
    }
}
