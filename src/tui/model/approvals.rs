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
    /// Its arguments. What would not be seen stands there as an escape, as in the names.
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
        // Printed, so that all of it was shown before it can be answered, whatever room the live region has. What
        // stands there is short: rows that a terminal pushes above a lower screen can't be taken back.
        if !self.is_plain() {
            let Approval { tool, server, input, .. } = &approval;
            let from = if server.is_empty() { String::new() } else { format!(" of {server}") };
            self.note(Note::Warning, format!("{tool}{from} asks to run with {input}"));
        }
        self.approvals.push(approval);
        self.ask_by_line();
    }

    pub(super) fn approval_resolved(&mut self, call: &str) {
        let was_first = self.approvals.first().is_some_and(|approval| approval.call == call);
        self.approvals.retain(|approval| approval.call != call);
        // The keys that are on their way were meant for the call that is decided.
        if was_first {
            self.is_asked = false;
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
