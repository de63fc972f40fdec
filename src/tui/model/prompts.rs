//! Prompts of command files and of servers, which a person names as a command: `/summarize report.txt`.

use super::{Action, Expansion, Note, State};
use crate::tui::model::orders::WAITING_MAX;

/// Has the prompt made that `line` may name.
pub(super) fn expand(line: &str, joins: bool) -> Vec<Action> {
    vec![Action::Expand { line: line.trim_end().to_owned(), joins }]
}

impl State {
    /// The prompt that `line` names is there, or why it is not: it is sent unless the person has written
    /// something else meanwhile.
    pub(super) fn expanded(
        &mut self,
        line: &str,
        joins: bool,
        expansion: Result<Expansion, String>,
    ) -> Vec<Action> {
        let is_line = self.lines.is_some();
        let is_other = || self.lent.is_some() || self.editor.expanded().trim_end() != line;
        if !is_line && is_other() || self.is_ending {
            return Vec::new();
        }
        let expansion = match expansion {
            Ok(expansion) => expansion,
            Err(why) => return self.not_expanded(&why),
        };
        if expansion.prompt.text.trim().is_empty() && expansion.prompt.attachments.is_empty() {
            return self.not_expanded("the prompt is blank, so nothing was sent");
        }
        if is_line {
            let may_send = self.may_send_line(line);
            return if may_send { self.send_named(line, expansion, joins) } else { Vec::new() };
        }
        if self.is_opening || self.waiting.len() >= WAITING_MAX {
            return self.not_expanded("nothing can be sent now; Esc takes back what waits");
        }
        if !self.may_send() {
            return Vec::new();
        }
        self.send_named(line, expansion, joins)
    }

    /// Asks the model the prompt that `line` stands for, which is taken out of the editor.
    pub(super) fn send_expanded(
        &mut self,
        line: &str,
        expansion: Expansion,
        joins: bool,
    ) -> Vec<Action> {
        if self.lines.is_none() {
            self.take_line();
            self.edits = None;
        }
        self.submit_expanded(line, expansion, joins)
    }

    fn not_expanded(&mut self, why: &str) -> Vec<Action> {
        match self.lines.is_some() {
            true => self.note(Note::Error, why.to_owned()),
            // The line stays where it can be corrected.
            false => self.hint(why),
        }
        Vec::new()
    }
}
