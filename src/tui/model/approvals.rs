//! Tool calls that wait for the person's decision.

use super::{Action, Note, Outgoing, State};
use crate::protocol::command::Decision;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::support::hidden::revealed;
use crate::tui::terminal::keys::{Key, Press};

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

    /// Prints the first call that waits, so that all of it was shown before it can be answered, whatever room the
    /// live region has, and stands beside its question. What the question shows is short: rows that a terminal
    /// pushes above a lower screen can't be taken back.
    fn announce(&mut self) {
        if self.is_plain() {
            return;
        }
        let Some(Approval { tool, server, input, .. }) = self.approvals.first() else { return };
        let from = if server.is_empty() { String::new() } else { format!(" of {server}") };
        let text = format!("{tool}{from} asks to run with {input}");
        self.note(Note::Warning, text);
    }

    pub(super) fn approval_resolved(&mut self, call: &str) {
        let was_first = self.approvals.first().is_some_and(|approval| approval.call == call);
        self.approvals.retain(|approval| approval.call != call);
        // The keys that are on their way were meant for the call that is decided.
        if was_first {
            self.is_asked = false;
            self.announce();
            self.ask_by_line();
        }
    }

    /// The keys answer the first question.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// A key while the question has the keyboard. Only the letters of the question mean something.
    pub(super) fn answer_question(&mut self, press: Press) -> Vec<Action> {
        match press.key {
            Key::Char('y') => self.decide(Decision::AllowOnce),
            Key::Char('a') => self.decide(Decision::AllowSession),
            Key::Char('n') => self.decide(Decision::Deny { reason: String::new() }),
            Key::Esc => {
                self.is_asked = false;
                Vec::new()
            }
            Key::Char('c') if press.ctrl => {
                self.is_asked = false;
                Vec::new()
            }
            Key::Char('g') if press.ctrl => Vec::new(),
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
            | Key::Function(_) => {
                self.hint("y allows the call, a allows the tool in this conversation, n denies, Esc goes back");
                Vec::new()
            }
        }
    }

    /// Decides about the first call that waits.
    pub(super) fn decide(&mut self, decision: Decision) -> Vec<Action> {
        self.is_asked = false;
        if self.approvals.is_empty() {
            self.hint("no tool call waits for a decision");
            return Vec::new();
        }
        let approval = self.approvals.remove(0);
        let text = format!("{}: {}", approval.tool, super::decided(&decision));
        // Stays in the scrollback beside the questions: which of several calls were answered, and how.
        self.note(Note::Information, format!("{text} · {}", shortened(&approval.input)));
        self.announce();
        self.ask_by_line();
        vec![Action::Request(Outgoing::Approve { call: approval.call, decision })]
    }
}

/// The beginning of the arguments, in one line.
fn shortened(input: &str) -> String {
    let mut chars = input.chars().map(|char| if char == '\n' { ' ' } else { char });
    let mut text: String = chars.by_ref().take(ANSWERED_CHARS_MAX).collect();
    text.extend(chars.next().map(|_| '…'));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::tools::ToolApprovalResolved;
    use crate::tui::model::Piece;
    use crate::tui::model::tests::Scene;

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
}
