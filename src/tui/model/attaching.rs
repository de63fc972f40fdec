//! The files that a draft names after `@`: those that are not found are said before it is sent, and a large
//! one is attached only if the person at the terminal agrees.

use super::consent::READ_TIME;
use super::hint::size;
use super::{Action, Expansion, Note, State};
use crate::protocol::command::Decision;
use crate::tui::commands::{Command, Wrong};
use crate::tui::input::{meanings, mentions};
use crate::tui::text::clean;
use std::time::Duration;

/// Bytes of a file above which the person is asked.
pub(crate) const UNASKED_BYTES_MAX: u64 = 1_000_000;

/// Bytes of a draft whose files are looked for while it is written.
const DRAFT_BYTES_MAX: usize = 64 * 1024;

/// Files that are looked for while a draft is written.
const LOOKED_FOR_MAX: usize = 100;

/// The facts about the files that the draft names.
#[derive(Clone, Debug, Default)]
pub(super) struct Attaching {
    /// The last path that was looked for, as it is written after `@`.
    looked_for: Vec<String>,
    /// The paths that were not found.
    missing: Vec<String>,
    /// The paths of files that no provider takes.
    unknown: Vec<String>,
    question: Question,
}

/// The question whether large files may be attached.
#[derive(Clone, Debug, Default)]
enum Question {
    #[default]
    Unasked,
    /// The person was asked about this text at this time.
    Asked { text: String, since: Duration },
    /// Like [`Self::Asked`], where lines are typed.
    AskedInLines(Draft),
    /// This text may be sent.
    Answered(String),
}

/// A file that is attached only if the person agrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Large {
    /// As the person has written it.
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// A prompt that is sent once its files are measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draft {
    /// The text of the editor; `joins`: as part of the active run.
    Written { text: String, joins: bool },
    /// A prompt from a typed line.
    Line(String),
    /// The prompt that `line` stands for.
    Named { line: String, expansion: Expansion, joins: bool },
    /// The prompt after `/edit` in a line.
    Edit(String),
}

impl Attaching {
    /// Whether a line is to answer the question.
    pub(super) fn asks_in_lines(&self) -> bool {
        matches!(self.question, Question::AskedInLines(_))
    }
}

impl State {
    /// The names of files that the draft has and that can't be sent, and why.
    pub(crate) fn faulty_files(&self) -> Option<String> {
        // The list says what the name may become.
        if self.candidates.as_ref().is_some_and(|found| !found.words.is_empty()) {
            return None;
        }
        let Attaching { missing, unknown, .. } = &self.attaching;
        let missing = first_named(missing).map(|names| format!("no file {names}"));
        missing.or_else(|| first_named(unknown).map(|names| format!("{names}: not UTF-8 text")))
    }

    /// Has the files of the draft looked for, if it names others than before. What is missing is shown until
    /// that is known, so that the row does not flicker with each key.
    pub(super) fn look_for_files(&mut self) -> Option<Action> {
        let is_short = self.editor.text().len() <= DRAFT_BYTES_MAX;
        let mut named = match is_short && !self.is_plain() {
            true => self.files_of_draft(self.editor.text()),
            false => Vec::new(),
        };
        named.truncate(LOOKED_FOR_MAX);
        if named == self.attaching.looked_for {
            return None;
        }
        self.attaching.looked_for.clone_from(&named);
        if named.is_empty() {
            self.attaching.missing.clear();
            self.attaching.unknown.clear();
            return None;
        }
        Some(Action::FindFiles(named))
    }

    /// They were looked for; the draft may have changed meanwhile.
    pub(super) fn files_found(
        &mut self,
        looked_for: &[String],
        missing: Vec<String>,
        unknown: Vec<String>,
    ) {
        if self.attaching.looked_for == looked_for {
            (self.attaching.missing, self.attaching.unknown) = (missing, unknown);
        }
    }

    /// The files that go with `text` if it is sent.
    fn files_of_draft(&self, text: &str) -> Vec<String> {
        if !text.contains('@') {
            return Vec::new();
        }
        match Command::read(text.trim_end()) {
            None => self.newly_mentioned(self.edits.as_deref(), text),
            Some(Ok(Command::Edit(Some(text)))) => {
                self.newly_mentioned(self.last_message_id(), &text)
            }
            // It may be the prompt of a command file. What goes with that of a server, the server says.
            Some(Err(Wrong::Unknown(name))) if self.of_server(&name).is_none() => mentions(text),
            // The other commands attach nothing.
            Some(Ok(_) | Err(_)) => Vec::new(),
        }
    }

    /// The action before the text of the editor is sent; `None`: none.
    pub(super) fn measured_first(&mut self, joins: bool) -> Option<Vec<Action>> {
        let text = self.editor.expanded();
        let mentions = self.files_of_draft(&text);
        self.asked_first(mentions, Draft::Written { text, joins })
    }

    /// Sends the prompt that `line` stands for, once its files are measured.
    pub(super) fn send_named(
        &mut self,
        line: &str,
        expansion: Expansion,
        joins: bool,
    ) -> Vec<Action> {
        let mentions = expansion.mentions.clone();
        let draft = Draft::Named { line: line.to_owned(), expansion, joins };
        if self.lines.is_some() {
            return self.send_line(draft);
        }
        let first = self.asked_first(mentions, draft.clone());
        first.unwrap_or_else(|| self.send_draft(draft))
    }

    /// The action before `draft`, which the text of the editor is or stands for, is sent; `None`: none.
    fn asked_first(&mut self, mentions: Vec<String>, draft: Draft) -> Option<Vec<Action>> {
        let text = self.editor.expanded();
        match std::mem::take(&mut self.attaching.question) {
            Question::Answered(answered) if answered == text => return None,
            Question::Asked { text: asked, since } if asked == text => {
                if self.now >= since + READ_TIME {
                    return None;
                }
                self.attaching.question = Question::Asked { text, since };
                return Some(Vec::new());
            }
            Question::Unasked
            | Question::Asked { .. }
            | Question::AskedInLines(_)
            | Question::Answered(_) => {}
        }
        (!mentions.is_empty()).then(|| vec![Action::Measure { mentions, draft }])
    }

    /// Like `send_draft`, for a line. Lines of a file or a program are sent without a question.
    pub(super) fn send_line(&mut self, draft: Draft) -> Vec<Action> {
        let mentions = match &draft {
            Draft::Line(text) => mentions(text),
            Draft::Named { expansion, .. } => expansion.mentions.clone(),
            Draft::Edit(text) => self.newly_mentioned(self.last_message_id(), text),
            Draft::Written { .. } => Vec::new(),
        };
        match mentions.is_empty() || !self.takes_typed_lines() {
            true => self.send_draft(draft),
            false => vec![Action::Measure { mentions, draft }],
        }
    }

    /// The files of a draft were measured: it is sent, unless the person has to be asked about large ones.
    pub(super) fn measured(&mut self, large: &[Large], draft: Draft) -> Vec<Action> {
        if large.is_empty() {
            return self.send_draft(draft);
        }
        let sizes = large.iter().map(|it| format!("{} has {}", clean(&it.name), size(it.bytes)));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        let written = match &draft {
            Draft::Written { text, .. } => Some(text.clone()),
            Draft::Named { .. } if self.lines.is_none() => Some(self.editor.expanded()),
            Draft::Line(_) | Draft::Named { .. } | Draft::Edit(_) => None,
        };
        match written {
            Some(text) => {
                self.attaching.question = Question::Asked { text, since: self.now };
                let them = if large.len() == 1 { "it" } else { "them" };
                self.hint(format!("{sizes}: Enter again attaches {them}"));
            }
            None => {
                let text = format!("{sizes}. Write y to send the prompt with that, or n");
                self.note(Note::Warning, text);
                self.attaching.question = Question::AskedInLines(draft);
                self.end_question_with_input();
            }
        }
        Vec::new()
    }

    fn send_draft(&mut self, draft: Draft) -> Vec<Action> {
        match draft {
            Draft::Written { text, joins } => {
                self.attaching.question = Question::Answered(text);
                self.entered(joins)
            }
            Draft::Line(line) => {
                let prompt = self.prompt_in(&line);
                self.submit(&line, prompt, false)
            }
            Draft::Named { line, expansion, joins } => self.send_expanded(&line, expansion, joins),
            Draft::Edit(text) => self.order(Command::Edit(Some(text))),
        }
    }

    /// Another key than Enter takes the question back.
    pub(super) fn does_not_attach(&mut self) {
        self.attaching.question = Question::Unasked;
    }

    /// The answer to the question about the files of a line; `None` if there is none open.
    pub(super) fn answer_about_files(
        &mut self,
        decision: Option<&Decision>,
    ) -> Option<Vec<Action>> {
        let Question::AskedInLines(draft) = &self.attaching.question else { return None };
        let draft = draft.clone();
        self.does_not_attach();
        match decision {
            Some(Decision::AllowOnce | Decision::AllowSession) => Some(self.send_draft(draft)),
            Some(Decision::Deny { .. }) | None => {
                self.nothing_was_sent();
                Some(Vec::new())
            }
        }
    }

    /// No line can answer once input has ended.
    pub(super) fn end_question_with_input(&mut self) {
        let have_ended = self.lines.as_ref().is_some_and(super::Lines::have_ended);
        if have_ended && self.attaching.asks_in_lines() {
            self.does_not_attach();
            let text = "nothing was sent: input has ended, so nobody can answer";
            self.note(Note::Warning, text.to_owned());
        }
    }
}

/// The name of the first of these mentions, and how many more there are.
fn first_named(mentions: &[String]) -> Option<String> {
    let (first, more) = mentions.split_first()?;
    let first = clean(meanings(first).last().unwrap_or_default());
    Some(match more.len() {
        0 => first,
        count => format!("{first} and {count} more"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::constants::code;
    use crate::protocol::proto::chat::{ChatAttachment, ChatRunStarted, ChatUserMessageAccepted};
    use crate::task::server::FilledPrompt;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Event, Lines, Piece};
    use crate::tui::terminal::keys::{Key, Press, Typed};

    fn with_large(names: &[(&str, u64)]) -> Scene {
        let mut scene = Scene::new();
        let large = |(name, bytes): &(&str, u64)| Large { name: (*name).to_owned(), bytes: *bytes };
        scene.large = names.iter().map(large).collect();
        scene
    }

    fn looked_for(scene: &Scene) -> Vec<String> {
        let found = scene.actions.iter().filter_map(|action| {
            let Action::FindFiles(names) = action else { return None };
            Some(names.join(" "))
        });
        found.collect()
    }

    #[test]
    fn a_file_that_is_not_found_is_said_while_it_is_written() {
        let mut scene = Scene::new();
        let found = |scene: &mut Scene, looked_for: &str, missing: &[&str]| {
            let names = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
            let looked_for = names(looked_for.split(' ').collect());
            let (missing, unknown) = (names(missing.to_vec()), Vec::new());
            scene.event(Event::FilesFound { looked_for, missing, unknown });
            scene.state.faulty_files()
        };
        scene.write("me@x.y, see @a, or");
        assert_eq!(looked_for(&scene), ["a", "a,"], "once for each change of a name");
        assert_eq!(found(&mut scene, "a", &["a"]), None, "the draft has changed");
        assert_eq!(found(&mut scene, "a,", &["a,"]).as_deref(), Some("no file a"));
        scene.write(" @b");
        let missing = found(&mut scene, "a, b", &["a,", "b"]);
        assert_eq!(missing.as_deref(), Some("no file a and 1 more"));
        assert_eq!(found(&mut scene, "a, b", &[]), None);
        assert_eq!(found(&mut scene, "a, b", &["b"]).as_deref(), Some("no file b"));
        scene.key(Key::Enter);
        assert_eq!((scene.asked().len(), scene.state.faulty_files()), (1, None));
        // Such files are not attached.
        scene.write("/save @c");
        assert_eq!(looked_for(&scene).len(), 3);
    }

    #[test]
    fn text_that_is_not_utf_8_is_said_and_gives_its_prompt_back() {
        let mut scene = Scene::new();
        let prompt = "see @latin1.txt";
        scene.write(prompt);
        let (looked_for, missing) = (vec!["latin1.txt".to_owned()], Vec::new());
        let unknown = looked_for.clone();
        scene.event(Event::FilesFound { looked_for, missing, unknown });
        assert_eq!(scene.state.faulty_files().as_deref(), Some("latin1.txt: not UTF-8 text"));
        scene.key(Key::Enter);
        scene.send("r");
        assert!(scene.state.editor.is_empty() && scene.state.faulty_files().is_none());
        let filename = "latin1.txt".to_owned();
        let attachments = vec![ChatAttachment { filename, ..Default::default() }];
        let text = prompt.to_owned();
        scene.ui("r", ChatUserMessageAccepted { text, attachments, ..Default::default() });
        scene.ui("r", ChatRunStarted::default());
        scene.error_with("r", code::ENGINE_INIT_FAILED, "it can't be sent", "config: unsupported");
        scene.done("r", "failed");
        assert_eq!(scene.state.editor.text(), prompt);
    }

    #[test]
    fn a_second_enter_attaches_a_large_file_and_another_key_does_not() {
        let mut scene = with_large(&[("a.png", 3_210_000), ("b.png", 1_000_001)]);
        scene.write("no file");
        scene.key(Key::Enter);
        assert_eq!(scene.asked().len(), 1);
        scene.write("see @a.png");
        scene.key(Key::Enter);
        let hint = "a.png has 3.2 MB, b.png has 1.0 MB: Enter again attaches them";
        assert_eq!(scene.state.shown_hint(), Some(hint));
        scene.key(Key::Enter);
        assert_eq!((scene.asked().len(), scene.state.editor.text()), (1, "see @a.png"), "too soon");
        scene.after(300);
        scene.key(Key::Left);
        scene.key(Key::Enter);
        scene.event(Event::Typed(Typed::Paste("x".to_owned())));
        scene.after(300);
        scene.key(Key::Enter);
        assert_eq!(scene.asked().len(), 1, "it was taken back twice");
        scene.after(300);
        scene.key(Key::Enter);
        assert_eq!(scene.asked()[1..], [("see @a.pnxg", None)]);
        scene.write("and @a.png");
        scene.key(Key::Enter);
        assert_eq!(scene.asked().len(), 2, "each prompt is asked about");
        scene.press(Press::ctrl('u'));
        scene.write("/edit to @a.png");
        scene.key(Key::Enter);
        assert_eq!((scene.state.shown_hint(), scene.state.editor.is_empty()), (Some(hint), false));
    }

    /// A line that names a prompt is expanded first: there may be none, and a flag may read the file.
    #[test]
    fn the_files_of_a_named_prompt_are_measured_once_it_is_there() {
        let line = "/sum @a.png";
        let expand = Action::Expand { line: line.to_owned(), joins: false };
        let expanded = |prompt: Result<&[&str], &str>| {
            let prompt = prompt.map(|mentions| {
                let filled = FilledPrompt { text: "Sum up.".to_owned(), attachments: Vec::new() };
                let mentions = mentions.iter().map(|it| (*it).to_owned()).collect();
                Expansion { mentions, ..filled.into() }
            });
            let prompt = prompt.map_err(str::to_owned);
            Event::Expanded { line: line.to_owned(), joins: false, prompt }
        };
        let mut scene = with_large(&[("a.png", 2_000_000)]);
        scene.write(line);
        scene.key(Key::Enter);
        assert_eq!((scene.actions.last(), scene.state.shown_hint()), (Some(&expand), None));
        scene.event(expanded(Err("there is no command /sum")));
        assert_eq!(scene.state.shown_hint(), Some("there is no command /sum"));
        scene.event(expanded(Ok(&["a.png"])));
        assert_eq!(scene.state.shown_hint(), Some("a.png has 2.0 MB: Enter again attaches it"));
        assert_eq!((scene.asked().len(), scene.state.editor.text()), (0, line));
        scene.after(300);
        scene.key(Key::Enter);
        assert_eq!(scene.actions.last(), Some(&expand));
        scene.event(expanded(Ok(&["a.png"])));
        assert_eq!((scene.asked().len(), scene.state.editor.text()), (1, ""));
        scene.write(line);
        scene.key(Key::Enter);
        scene.event(expanded(Ok(&[])));
        assert_eq!(scene.asked().len(), 2, "the file is not attached");

        for (answer, asked) in [("y", 1), ("n", 0)] {
            let mut scene = with_large(&[("a.png", 2_000_000)]);
            scene.state.lines = Some(Lines::new(true));
            scene.event(Event::Line(line.to_owned()));
            assert_eq!(scene.actions.last(), Some(&expand));
            scene.event(expanded(Ok(&["a.png"])));
            assert!(scene.asked().is_empty() && scene.state.attaching.asks_in_lines());
            scene.event(Event::Line(answer.to_owned()));
            assert_eq!(scene.asked().len(), asked, "{answer}");
        }
    }

    #[test]
    fn lines_that_were_typed_ahead_wait_for_the_answer() {
        let mut scene = with_large(&[("a.png", 2_000_000)]);
        scene.state.lines = Some(Lines::new(true));
        let line = |scene: &mut Scene, text: &str| scene.event(Event::Line(text.to_owned()));
        let is_answered = |scene: &mut Scene, id: &str| {
            scene.send(id);
            scene.done(id, "ok");
        };
        ["one", "see @a.png", "more"].into_iter().for_each(|text| line(&mut scene, text));
        is_answered(&mut scene, "r1");
        assert_eq!(scene.asked(), [("one", None)]);
        line(&mut scene, "y");
        assert_eq!(scene.asked()[1..], [("see @a.png", None)]);
        is_answered(&mut scene, "r2");
        assert_eq!(scene.asked()[2..], [("more", None)]);
    }

    #[test]
    fn a_typed_line_is_asked_about_and_a_piped_one_is_not() {
        let check = |are_typed: bool, lines: &[&str], ends: bool, expected: &[&str]| {
            let mut scene = with_large(&[("a.png", 2_000_000)]);
            scene.state.lines = Some(Lines::new(are_typed));
            lines.iter().for_each(|line| scene.event(Event::Line((*line).to_owned())));
            if ends {
                scene.event(Event::InputEnded);
            }
            let asked: Vec<_> = scene.asked().iter().map(|(prompt, _)| *prompt).collect();
            assert_eq!(asked, expected, "{lines:?}");
            let question = "a.png has 2.0 MB. Write y to send the prompt with that, or n";
            let question = Piece::Note(Note::Warning, question.to_owned());
            assert_eq!(scene.pieces.contains(&question), are_typed);
            assert_eq!(scene.actions.contains(&Action::EndInput), ends);
        };
        check(true, &["see @a.png"], false, &[]);
        check(true, &["see @a.png", "n"], true, &[]);
        check(true, &["see @a.png"], true, &[]);
        check(true, &["see @a.png", "what?"], false, &[]);
        check(true, &["see @a.png", "y"], false, &["see @a.png"]);
        check(true, &["see @a.png", "n", "//see @a.png", "yes"], false, &["/see @a.png"]);
        check(false, &["see @a.png"], false, &["see @a.png"]);
    }
}
