//! Earlier states of the line. Pure.

use super::Editor;

/// States that can be had back.
const STATES_MAX: usize = 200;

/// Bytes of all these states: of a long text there are fewer of them, but always the last one.
const STATES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The earlier states of an editor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Undo {
    /// Texts and places of the cursor, the oldest first.
    states: Vec<(String, usize)>,
    /// The next typed character belongs to the last change.
    pub(super) goes_on: bool,
}

impl Undo {
    fn push(&mut self, state: (String, usize)) {
        self.states.push(state);
        let newest_first = self.states.iter().rev().take(STATES_MAX);
        let bytes = newest_first.scan(0, |bytes, (text, _)| {
            *bytes += text.len();
            Some(*bytes)
        });
        let kept = bytes.take_while(|bytes| *bytes <= STATES_BYTES_MAX).count().max(1);
        self.states.drain(..self.states.len() - kept);
    }
}

impl Editor {
    /// The text is about to change; `is_typed`: by one character.
    pub(super) fn keep_for_undo(&mut self, is_typed: bool) {
        self.joins_cuts = false;
        if is_typed && self.undo.goes_on {
            return;
        }
        self.undo.goes_on = false;
        self.undo.push((self.text.clone(), self.cursor));
    }

    /// What is typed or cut next is a change of its own.
    pub(super) fn ends_change(&mut self) {
        self.undo.goes_on = false;
        self.joins_cuts = false;
    }

    /// Takes the last change back; false if there is none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some((text, cursor)) = self.undo.states.pop() else { return false };
        (self.text, self.cursor) = (text, cursor);
        self.ends_change();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::input::Move;

    /// All states are kept of a line of the usual length, and of a long one as many as there is room for, but
    /// always the last.
    #[test]
    fn earlier_states_of_a_long_text_have_a_limit() {
        let mut editor = Editor::default();
        editor.insert(&format!("{}\n", "x".repeat(1_000_000)));
        for _ in 0..STATES_MAX {
            editor.insert(" word");
        }
        let kept: usize = editor.undo.states.iter().map(|(text, _)| text.len()).sum();
        assert!(kept <= 4 * 1024 * 1024, "{kept} bytes");
        assert!(editor.undo() && editor.undo(), "the last changes can be had back");
        editor.insert(&format!("{}\n", "x".repeat(5_000_000)));
        let length = editor.text().len();
        editor.delete(Move::Start, true);
        assert!(editor.undo());
        assert_eq!(editor.text().len(), length);
        assert!(!editor.undo(), "there is no room for more");
    }
}
