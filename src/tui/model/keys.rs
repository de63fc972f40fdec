//! Keys, as readline and the chats that people know have them.

use super::hint::About;
use super::{Action, Picker, PickerKind, Piece, Scroll, State, Unfolded};
use crate::tui::input::Move;
use crate::tui::model::picker::Choice;
use crate::tui::terminal::keys::{Key, Press, Typed};
use crate::tui::text::clean;

/// Characters of a prompt that the list of prompts shows.
const TITLE_CHARS_MAX: usize = 200;

impl State {
    pub(super) fn typed(&mut self, typed: Typed) -> Vec<Action> {
        match typed {
            Typed::Paste(text) => self.pasted(text),
            Typed::PasteCut => self.paste_was_cut(),
            Typed::Press(press) => self.pressed(press),
            Typed::Focus(is_looked_at) => {
                self.is_looked_at = is_looked_at;
                Vec::new()
            }
            // That is for the screen.
            Typed::Place { .. } => Vec::new(),
        }
    }

    pub(super) fn write(&mut self, text: &str) {
        self.editor.insert(text);
        self.changed();
    }

    pub(super) fn pressed(&mut self, press: Press) -> Vec<Action> {
        self.forget_hint_about(About::Anything);
        let may_answer = self.is_no_longer_quiet();
        self.is_looked_at = true;
        if press != Press::ctrl('c') {
            self.leave_until = None;
        }
        if press.key != Key::Esc {
            self.rewind_until = None;
        }
        if press.key != Key::Enter && press != Press::ctrl('s') {
            self.does_not_agree();
        }
        if press == Press::ctrl('z') {
            return vec![Action::Suspend];
        }
        if press == Press::ctrl('l') {
            return vec![Action::Redraw];
        }
        if self.picker.is_some() {
            return self.choose(press);
        }
        if let Some(actions) = self.answer_offer(press) {
            return actions;
        }
        if self.asking.has_letters {
            return self.answer_by_letter(press);
        }
        if std::mem::take(&mut self.is_prefixed) {
            return self.prefixed(press);
        }
        if let Some(actions) = self.answer_by_key(press, may_answer) {
            return actions;
        }
        if let Some(actions) = self.vi_press(press) {
            return actions;
        }
        let had_text = !self.editor.is_empty();
        let actions = match (press.ctrl, press.alt) {
            (true, _) => self.with_ctrl(press),
            (false, true) => self.with_alt(press),
            (false, false) => self.plain(press),
        };
        if had_text && self.editor.is_empty() {
            self.inserts_again();
        }
        actions
    }

    fn plain(&mut self, press: Press) -> Vec<Action> {
        match press.key {
            Key::Char(char) => self.write(char.encode_utf8(&mut [0; 4])),
            Key::Enter if press.shift => self.write("\n"),
            Key::Enter => return self.take_begun().unwrap_or_else(|| self.entered(false)),
            Key::Tab if !press.shift => {
                return self.take_candidate(false).unwrap_or_else(|| self.complete());
            }
            Key::Tab => {}
            Key::Backspace => self.erase(Move::Left, false),
            Key::Delete => self.erase(Move::Right, false),
            Key::Left => self.editor.go(Move::Left),
            Key::Right => self.editor.go(Move::Right),
            Key::Home => self.editor.go(Move::LineStart),
            Key::End => self.editor.go(Move::LineEnd),
            Key::Up if self.select_candidate(false) => {}
            Key::Down if self.select_candidate(true) => {}
            Key::Up if !self.editor.up() => self.look_back(),
            Key::Down if !self.editor.down() => self.look_forward(),
            Key::Up | Key::Down => {}
            Key::PageUp => return vec![Action::Scroll(Scroll::PageUp)],
            Key::PageDown => return vec![Action::Scroll(Scroll::PageDown)],
            Key::Esc => return self.escaped(),
            Key::Function(1) => self.help(),
            Key::Function(_) => {}
        }
        Vec::new()
    }

    fn with_alt(&mut self, press: Press) -> Vec<Action> {
        match press.key {
            Key::Enter => self.write("\n"),
            Key::Char('b') | Key::Left => self.editor.go(Move::WordLeft),
            Key::Char('f') | Key::Right => self.editor.go(Move::WordRight),
            Key::Char('d') | Key::Delete => self.erase(Move::WordRight, true),
            Key::Backspace => self.erase(Move::WordLeft, true),
            Key::Char('<') => self.editor.go(Move::Start),
            Key::Char('>') => self.editor.go(Move::End),
            // Not every terminal says what a key is with Shift.
            Key::Char(',') if press.shift => self.editor.go(Move::Start),
            Key::Char('.') if press.shift => self.editor.go(Move::End),
            Key::Up => return self.take_back(),
            Key::Esc => return self.escaped(),
            Key::Char(_)
            | Key::Tab
            | Key::Down
            | Key::Home
            | Key::End
            | Key::PageUp
            | Key::PageDown
            | Key::Function(_) => {}
        }
        Vec::new()
    }

    fn with_ctrl(&mut self, press: Press) -> Vec<Action> {
        match press.key {
            Key::Char('j') | Key::Enter => self.write("\n"),
            Key::Char('s') => return self.entered(true),
            Key::Char('a') => self.editor.go(Move::LineStart),
            Key::Char('e') => self.editor.go(Move::LineEnd),
            Key::Char('b') => self.editor.go(Move::Left),
            Key::Char('f') => self.editor.go(Move::Right),
            Key::Left => self.editor.go(Move::WordLeft),
            Key::Right => self.editor.go(Move::WordRight),
            Key::Home => self.editor.go(Move::Start),
            Key::End => return vec![Action::Scroll(Scroll::End)],
            Key::Char('p') => self.look_back(),
            Key::Char('n') => self.look_forward(),
            Key::Char('r') => self.search_prompts(),
            Key::Char('k') => self.erase(Move::LineEnd, true),
            Key::Char('u') => self.erase(Move::LineStart, true),
            Key::Char('w') => self.erase(Move::BlankLeft, true),
            Key::Backspace => self.erase(Move::WordLeft, true),
            Key::Delete => self.erase(Move::WordRight, true),
            Key::Char('y') => {
                self.editor.yank();
                self.changed();
            }
            Key::Char('d') if self.editor.is_empty() => return self.leave(),
            Key::Char('d') => self.erase(Move::Right, false),
            Key::Char('c') => return self.interrupted(),
            Key::Char('g') if !self.approvals.is_empty() => self.ask(),
            Key::Char('t') => return self.toggle_folding(),
            Key::Char('o') => self.unfold_last(),
            Key::Char('x') => self.is_prefixed = true,
            // Ctrl-_ and Ctrl-/ are the same byte, which older terminals send for Ctrl-7 as well.
            Key::Char('7' | '_' | '/') => self.take_back_change(),
            // Not every terminal says what a key is with Shift.
            Key::Char('-') if press.shift => self.take_back_change(),
            Key::Char(_)
            | Key::Esc
            | Key::Tab
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Function(_) => {}
        }
        Vec::new()
    }

    /// The key after Ctrl-X.
    fn prefixed(&mut self, press: Press) -> Vec<Action> {
        if matches!(press.key, Key::Char('e')) {
            return self.lend_line();
        }
        Vec::new()
    }

    /// Undoes the last change of the line.
    pub(super) fn take_back_change(&mut self) {
        match self.editor.undo() {
            true => self.changed(),
            false => self.hint("there is nothing to undo in the line"),
        }
    }

    fn erase(&mut self, to: Move, keeps: bool) {
        self.editor.delete(to, keeps);
        self.changed();
    }

    pub(super) fn look_back(&mut self) {
        self.keep_folds();
        if let Some(prompt) = self.history.older(&self.editor.expanded()) {
            self.write_again(prompt);
        }
    }

    pub(super) fn look_forward(&mut self) {
        if let Some(prompt) = self.history.newer() {
            self.write_again(prompt);
        }
    }

    fn search_prompts(&mut self) {
        let choice = |prompt: &str| Choice {
            value: prompt.to_owned(),
            title: title(prompt),
            detail: String::new(),
        };
        let choices = self.history.newest_first().map(choice).collect();
        self.picker = Some(Picker::new(PickerKind::Prompt, String::new(), choices));
    }

    fn toggle_folding(&mut self) -> Vec<Action> {
        self.unfolded = Unfolded { all: !self.unfolded.all };
        self.hint(match self.unfolded.all {
            true => "reasoning and results of tools are shown in full",
            false => "reasoning and results of tools are shortened",
        });
        vec![Action::Fold]
    }

    /// Prints the last folded text in full: printed text does not change.
    fn unfold_last(&mut self) {
        match self.folded.take() {
            Some(piece) => self.print(Piece::Unfolded(Box::new(piece))),
            None => self.hint("nothing was shortened"),
        }
    }
}

/// The beginning of a prompt, in one line.
pub(super) fn title(prompt: &str) -> String {
    clean(&prompt.chars().take(TITLE_CHARS_MAX).collect::<String>()).replace('\n', " ")
}
