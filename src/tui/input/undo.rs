//! Earlier states of the line. Pure.

use super::Editor;

/// States that can be had back.
const STATES_MAX: usize = 200;

/// The earlier states of an editor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Undo {
    /// Texts and places of the cursor, the oldest first.
    states: Vec<(String, usize)>,
    /// The next typed character belongs to the last change.
    pub(super) goes_on: bool,
}

impl Editor {
    /// The text is about to change; `is_typed`: by one character.
    pub(super) fn keep_for_undo(&mut self, is_typed: bool) {
        if is_typed && self.undo.goes_on {
            return;
        }
        self.undo.goes_on = false;
        if self.undo.states.len() == STATES_MAX {
            self.undo.states.remove(0);
        }
        self.undo.states.push((self.text.clone(), self.cursor));
    }

    /// Takes the last change back; false if there is none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some((text, cursor)) = self.undo.states.pop() else { return false };
        (self.text, self.cursor) = (text, cursor);
        self.undo.goes_on = false;
        true
    }
}
