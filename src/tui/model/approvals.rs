//! Tool calls that wait for the person's decision.

use super::{Action, Note, Notice, Outgoing, Scroll, State};
use crate::output::approval;
use crate::protocol::command::Decision;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::support::hidden::revealed;
use crate::support::shorten::first_chars;
use crate::tui::input::Editor;
use crate::tui::terminal::keys::{Key, Press};
use std::time::Duration;

/// A call that may not run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) server: String,
    /// Its arguments, with escapes for invisible characters, as in the names.
    pub(crate) input: String,
}

/// Characters of the arguments of an answered call that are printed: all of them stand in its question.
const ANSWERED_CHARS_MAX: usize = 200;

/// How long a question must have been on the screen, and nothing typed, before a key answers it on an empty line: a
/// key that was on its way when the question appeared, or that was pressed once too often, is no answer.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// How the open question is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asking {
    /// Letters answer it, after Ctrl-G.
    pub(crate) has_letters: bool,
    /// The draft that was put aside, while the reason of a denial is written.
    pub(super) draft: Option<Editor>,
    /// The calls that it is about, if it is about several. All of them were printed.
    pub(crate) several: Vec<String>,
    /// When a picture with all of it was drawn after it appeared, after the last key and after the last resize: what
    /// nobody could read is not answered by a key.
    quiet_since: Option<Duration>,
    /// A call that it is about was printed, and is to be on the screen.
    shows_call: bool,
}

impl Asking {
    /// Whether what is written is the reason of a denial.
    pub(crate) fn takes_reason(&self) -> bool {
        self.draft.is_some()
    }
}

/// The meaning of a key on an empty line.
enum Answer {
    Yes,
    No,
    /// Ask about all calls that wait, or about the first one alone again.
    Several,
}

impl State {
    pub(super) fn approval_requested(&mut self, asked: ToolApprovalRequested) {
        let approval = Approval {
            call: asked.tool_call_id,
            tool: revealed(&asked.tool_name),
            server: revealed(&asked.server),
            input: revealed(&asked.input),
        };
        self.approvals.push(approval);
        if self.approvals.len() == 1 {
            self.announce();
        }
        self.ask_by_line();
    }

    /// Asks about the first call that waits, and prints it, so that all of it was shown before it can be answered,
    /// whatever room the live region has, and stands beside its question. What the question shows is short: rows
    /// that a terminal pushes above a lower screen can't be taken back.
    fn announce(&mut self) {
        self.take_draft_back();
        self.asking = Asking::default();
        if let Some(text) = self.asked_call() {
            self.waits_for_person(Notice::Question);
            self.announce_call(text);
        }
    }

    /// The first call that is asked about, as it was printed.
    pub(crate) fn asked_call(&self) -> Option<String> {
        self.approvals.first().map(Approval::request)
    }

    fn announce_call(&mut self, text: String) {
        if !self.is_plain() {
            self.note(Note::Warning, text);
            self.asking.shows_call = true;
        }
    }

    /// A call was printed at the end: whoever looks at an earlier part is asked about it, and must see it.
    pub(super) fn show_call(&mut self) -> Option<Action> {
        let is_new = std::mem::take(&mut self.asking.shows_call);
        is_new.then_some(Action::Scroll(Scroll::End))
    }

    pub(super) fn approval_resolved(&mut self, call: &str) {
        let was_first = self.approvals.first().is_some_and(|approval| approval.call == call);
        self.approvals.retain(|approval| approval.call != call);
        self.asking.several.retain(|other| other != call);
        // The keys that are on their way were meant for the call that is decided.
        if was_first {
            self.announce();
            self.ask_by_line();
        }
    }

    /// Letters answer the question.
    pub(super) fn ask(&mut self) {
        self.asking.has_letters = true;
    }

    /// No call waits any more.
    pub(super) fn nothing_is_asked(&mut self) {
        self.take_draft_back();
        self.approvals.clear();
        self.asking = Asking::default();
        self.ask_by_line();
    }

    /// A picture is on the terminal since `now`. `shows_question`: all of the open question can be read there.
    pub(crate) fn was_drawn(&mut self, now: Duration, shows_question: bool) {
        let since = |before: Option<Duration>| shows_question.then(|| before.unwrap_or(now));
        match &mut self.offer {
            // It stands in the place of a question about a call.
            Some(offer) => {
                offer.quiet_since = since(offer.quiet_since);
                self.asking.quiet_since = None;
            }
            None => self.asking.quiet_since = since(self.asking.quiet_since),
        }
    }

    /// The screen may show something else until it is drawn again.
    pub(super) fn is_not_drawn(&mut self) {
        self.asking.quiet_since = None;
        if let Some(offer) = &mut self.offer {
            offer.quiet_since = None;
        }
    }

    /// Whether there is a question that a key on the empty line answers, once it was shown for long enough.
    fn asks_for_key(&self) -> bool {
        let takes_keys = self.editor.is_empty() && !self.is_plain() && self.picker.is_none();
        let is_open = !self.approvals.is_empty() && !self.asking.has_letters;
        takes_keys && is_open && !self.asking.takes_reason()
    }

    /// When a key on the empty line answers the question, if nothing is typed until then.
    pub(super) fn answers_from(&self) -> Option<Duration> {
        let shown = self.asking.quiet_since.filter(|_| self.asks_for_key());
        shown.map(|since| since + QUIET_TIME)
    }

    /// Whether a key on the empty line answers the question now.
    pub(crate) fn takes_one_key(&self) -> bool {
        self.answers_from().is_some_and(|from| from <= self.now)
    }

    /// Something was typed or pasted; returns whether a key may have been an answer.
    pub(super) fn is_no_longer_quiet(&mut self) -> bool {
        let may_answer = self.takes_one_key();
        self.asking.quiet_since = None;
        may_answer
    }

    /// A key that answers the question; `None` if it means something else.
    pub(super) fn answer_by_key(&mut self, press: Press, may_answer: bool) -> Option<Vec<Action>> {
        if self.asking.takes_reason() {
            return self.write_reason(press);
        }
        let answer = one_key(press).filter(|_| self.asks_for_key())?;
        if !may_answer {
            self.hint(
                "Ctrl-G answers; one key alone does once the question was shown and nothing was typed for a second",
            );
            return Some(Vec::new());
        }
        Some(match answer {
            Answer::Yes => self.decide(Decision::AllowOnce),
            Answer::No => self.decide(Decision::Deny { reason: String::new() }),
            Answer::Several => {
                self.ask_about_several();
                Vec::new()
            }
        })
    }

    /// A key while letters answer the question. Only those that it names mean something.
    pub(super) fn answer_by_letter(&mut self, press: Press) -> Vec<Action> {
        let is_plain = press == Press::plain(press.key);
        match press.key {
            Key::Char('c') if press.ctrl => self.asking.has_letters = false,
            Key::Char('g') if press.ctrl => {}
            Key::Char('y') if is_plain => return self.decide(Decision::AllowOnce),
            Key::Char('a') if is_plain => return self.decide(Decision::AllowSession),
            Key::Char('n') if is_plain => return self.decide(Decision::Deny { reason: String::new() }),
            Key::Char('l') if is_plain => self.ask_about_several(),
            Key::Char('r') if is_plain => {
                self.asking.has_letters = false;
                self.begin_reason();
            }
            Key::Esc => self.asking.has_letters = false,
            Key::Char(_)
            | Key::Enter
            | Key::Tab
            | Key::Backspace
            | Key::Delete
            | Key::Up
            | Key::Down
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End
            | Key::PageUp
            | Key::PageDown
            | Key::Function(_) => self.hint(
                "y allows the call, a allows the tool in this conversation, l asks about all calls, n denies, \
                 r denies with a reason, Esc goes back",
            ),
        }
        Vec::new()
    }

    /// The line is for the reason of a denial. A draft comes back afterwards, and is no part of it.
    fn begin_reason(&mut self) {
        if !self.asking.takes_reason() {
            self.history.leave();
            self.candidates = None;
            self.asking.draft = Some(std::mem::take(&mut self.editor));
        }
    }

    /// The draft is written again, if a reason was, which nobody has sent: older prompts have it, those of later chats
    /// as well.
    pub(super) fn take_draft_back(&mut self) {
        if let Some(reason) = self.take_reason() {
            self.history.put_aside(&self.line_of(&reason));
        }
    }

    /// Has `act` change the draft that is aside while a reason is written in the line; else the line.
    pub(super) fn with_draft<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let draft = self.asking.draft.take();
        let reason = draft.map(|draft| std::mem::replace(&mut self.editor, draft));
        let done = act(self);
        self.asking.draft = reason.map(|reason| std::mem::replace(&mut self.editor, reason));
        done
    }

    /// The reason of a denial, if one was written; the draft is written again.
    fn take_reason(&mut self) -> Option<String> {
        let draft = self.asking.draft.take()?;
        let reason = std::mem::replace(&mut self.editor, draft).take().trim().to_owned();
        self.candidates = None;
        Some(reason).filter(|reason| !reason.is_empty())
    }

    /// A key while the reason of a denial is written; `None` if it edits the line.
    fn write_reason(&mut self, press: Press) -> Option<Vec<Action>> {
        if press.key == Key::Esc || press == Press::ctrl('c') {
            self.take_draft_back();
            return Some(Vec::new());
        }
        let ends = [Press::plain(Key::Enter), Press::ctrl('s')];
        let is_end = ends.contains(&press);
        is_end.then(|| {
            // An earlier one that is taken up again is written as prompts are.
            let written = self.take_reason().unwrap_or_default();
            let reason = self.prompt_in(&written);
            if !reason.is_empty() {
                // It is no prompt, so that later chats do not have it.
                self.history.add(&self.line_of(&reason));
            }
            self.decide(Decision::Deny { reason })
        })
    }

    /// Asks about all calls that wait, after all of them were printed; or about the first one alone again.
    fn ask_about_several(&mut self) {
        if !self.asking.several.is_empty() {
            self.asking.several.clear();
            return;
        }
        if self.approvals.len() < 2 {
            return self.hint("no other call waits");
        }
        let texts: Vec<_> = self.approvals.iter().skip(1).map(Approval::request).collect();
        texts.into_iter().for_each(|text| self.announce_call(text));
        self.asking.several = self.approvals.iter().map(|it| it.call.clone()).collect();
    }

    /// Decides about the call or the calls that the question is about.
    pub(super) fn decide(&mut self, decision: Decision) -> Vec<Action> {
        self.take_draft_back();
        let several = std::mem::take(&mut self.asking).several;
        let first = self.approvals.first().map(|approval| approval.call.clone());
        let is_meant = |approval: &mut Approval| {
            several.contains(&approval.call)
                || several.is_empty() && first.as_ref() == Some(&approval.call)
        };
        let decided: Vec<_> = self.approvals.extract_if(.., is_meant).collect();
        if decided.is_empty() {
            self.hint("no tool call waits for a decision");
            return Vec::new();
        }
        let reason = match &decision {
            Decision::Deny { reason } if !reason.is_empty() => format!(" · {reason}"),
            Decision::Deny { .. } | Decision::AllowOnce | Decision::AllowSession => String::new(),
        };
        let mut actions = Vec::new();
        for Approval { call, tool, input, .. } in decided {
            // Stays in the scrollback beside the questions: which of several calls were answered, and how.
            let answer = super::decided(&decision);
            let input = first_chars(&input, ANSWERED_CHARS_MAX).replace('\n', " ");
            let text = format!("{tool}: {answer} · {input}{reason}");
            self.note(Note::Information, text);
            let decision = decision.clone();
            actions.push(Action::Request(Outgoing::Approve { call, decision }));
        }
        self.announce();
        self.ask_by_line();
        actions
    }
}

impl Approval {
    /// The call in full.
    fn request(&self) -> String {
        let Self { tool, server, input, .. } = self;
        approval::request(tool, server, input)
    }
}

/// The keys that answer on an empty line: none of them begins a text or changes an empty one.
fn one_key(press: Press) -> Option<Answer> {
    let keys = [
        (Press::ctrl('a'), Answer::Several),
        (Press::plain(Key::Enter), Answer::Yes),
        (Press::plain(Key::Backspace), Answer::No),
    ];
    keys.into_iter().find_map(|(key, answer)| (key == press).then_some(answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::tools::ToolApprovalResolved;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Event, Piece};
    use crate::tui::terminal::keys::Typed;

    fn asks(scene: &mut Scene, call: &str, input: &str) {
        let (tool_call_id, input) = (call.to_owned(), input.to_owned());
        let tool_name = "run".to_owned();
        scene.ui(
            "r",
            ToolApprovalRequested { tool_call_id, tool_name, input, ..Default::default() },
        );
    }

    /// Of several calls of the same tool, each is printed right above its question, and then how it was answered.
    #[test]
    fn each_question_stands_beside_its_call() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        for call in ["one", "two", "three"] {
            asks(&mut scene, call, call);
        }
        let notes = |scene: &Scene| {
            let notes = scene.pieces.iter().filter_map(|piece| {
                let Piece::Note(_, text) = piece else { return None };
                Some(text.clone())
            });
            notes.collect::<Vec<_>>()
        };
        assert_eq!(notes(&scene), ["run asks to run with one"]);
        scene.press(Press::ctrl('g'));
        scene.key(Key::Char('y'));
        // Another client has decided about the second one.
        scene
            .ui("r", ToolApprovalResolved { tool_call_id: "two".to_owned(), ..Default::default() });
        scene.press(Press::ctrl('g'));
        scene.key(Key::Char('n'));
        let expected = [
            "run asks to run with one",
            "run: allowed · one",
            "run asks to run with two",
            "run asks to run with three",
            "run: denied · three",
        ];
        assert_eq!(notes(&scene), expected);
    }

    fn decisions(scene: &Scene) -> Vec<(&str, &Decision)> {
        let decisions = scene.actions.iter().filter_map(|action| {
            let Action::Request(Outgoing::Approve { call, decision }) = action else { return None };
            Some((call.as_str(), decision))
        });
        decisions.collect()
    }

    #[test]
    fn one_key_answers_on_an_empty_line_after_a_pause() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        for call in ["one", "two", "three"] {
            asks(&mut scene, call, call);
        }
        scene.after(900);
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [], "it was on its way when the question appeared");
        scene.after(900);
        scene.key(Key::Backspace);
        assert_eq!(decisions(&scene), [], "the pause begins anew with each key");
        assert_eq!(scene.state.next_change(), Some(Duration::from_millis(2_800)));
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [("one", &Decision::AllowOnce)]);
        scene.key(Key::Enter);
        scene.after(1_000);
        scene.write("x");
        scene.after(1_000);
        scene.key(Key::Backspace);
        scene.event(Event::Typed(Typed::Paste(String::new())));
        assert_eq!(decisions(&scene).len(), 1, "it was typing");
        scene.after(1_000);
        scene.key(Key::Backspace);
        let no = Decision::Deny { reason: String::new() };
        assert_eq!(decisions(&scene)[1..], [("two", &no)]);
    }

    /// As while the person's editor has the terminal, while a window is dragged, or where the window is too low.
    #[test]
    fn no_key_answers_a_question_that_was_not_on_the_screen() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        scene.actions.clear();
        scene.draws = false;
        asks(&mut scene, "one", "one");
        assert!(scene.actions.contains(&Action::Scroll(Scroll::End)), "its call is on the screen");
        scene.after(5_000);
        scene.draws = true;
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [], "it was drawn after the key");
        assert!(scene.state.shown_hint().is_some_and(|hint| hint.starts_with("Ctrl-G answers")));
        scene.after(5_000);
        scene.event(Event::Resized(scene.state.size));
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [], "it was just drawn again");
        scene.after(1_000);
        scene.shows_question = false;
        scene.after(5_000);
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [], "there is no room for it");
        scene.shows_question = true;
        scene.after(0);
        scene.after(1_000);
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [("one", &Decision::AllowOnce)]);
    }

    /// An answer for all calls is possible once all of them were printed.
    #[test]
    fn all_calls_that_wait_are_answered_together() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        for call in ["one", "two", "three"] {
            asks(&mut scene, call, call);
        }
        scene.after(1_000);
        scene.press(Press::ctrl('a'));
        let asked = |scene: &Scene| {
            let is_asked = |piece: &&Piece| matches!(piece, Piece::Note(Note::Warning, _));
            scene.pieces.iter().filter(is_asked).count()
        };
        assert_eq!(asked(&scene), 3);
        asks(&mut scene, "four", "four");
        scene.key(Key::Enter);
        assert_eq!(decisions(&scene), [], "they have to be read first");
        scene.after(1_000);
        scene.key(Key::Enter);
        let yes = &Decision::AllowOnce;
        assert_eq!(decisions(&scene), [("one", yes), ("two", yes), ("three", yes)]);
        assert_eq!(asked(&scene), 4, "the one that came later is asked about");
        asks(&mut scene, "five", "five");
        scene.press(Press::ctrl('g'));
        scene.write("ln");
        assert_eq!(decisions(&scene).len(), 5);
    }

    #[test]
    fn a_denial_has_the_reason_that_is_written() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        asks(&mut scene, "one", "one");
        scene.write("a draft");
        scene.press(Press::ctrl('g'));
        scene.press(Press::ctrl('y'));
        assert!(decisions(&scene).is_empty(), "another key");
        scene.write("r");
        scene.write("there");
        scene.key(Key::Esc);
        assert_eq!((decisions(&scene).len(), scene.state.editor.text()), (0, "a draft"));
        assert!(scene.cancelled().is_empty(), "Esc goes back");
        scene.press(Press::ctrl('g'));
        scene.write("rnot there!");
        scene.press(Press::ctrl('g'));
        scene.write("r");
        assert_eq!(scene.state.editor.text(), "not there!", "the draft stays aside");
        scene.key(Key::Enter);
        let no = Decision::Deny { reason: "not there!".to_owned() };
        assert_eq!(decisions(&scene), [("one", &no)]);
        assert_eq!(scene.state.editor.text(), "a draft");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "not there!", "it can be had back");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "there", "so can the one that was not sent");
    }

    #[test]
    fn a_draft_comes_back_however_the_question_ends() {
        let asked = || {
            let mut scene = Scene::new();
            scene.ask("r", "go");
            asks(&mut scene, "one", "one");
            scene.write("a draft");
            scene.press(Press::ctrl('g'));
            scene.write("rnot");
            scene
        };
        let mut scene = asked();
        scene
            .ui("r", ToolApprovalResolved { tool_call_id: "one".to_owned(), ..Default::default() });
        assert_eq!(scene.state.editor.text(), "a draft", "another client has decided");
        let mut scene = asked();
        scene.press(Press::ctrl('g'));
        scene.write("y");
        assert_eq!(decisions(&scene), [("one", &Decision::AllowOnce)]);
        assert_eq!(scene.state.editor.text(), "a draft");
        assert_eq!(asked().state.take_unsent(), ["not", "a draft"], "the chat has ended");
    }
}
