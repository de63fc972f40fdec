//! Pasted texts: long ones are folded to one sign in the line, and a path of an image or a URL of a file becomes a
//! file that is attached.

use super::hint::size;
use super::{Action, Note, PROMPT_LINES_MAX, Piece, State};
use crate::tui::input::{FoldOf, FoldedText, quoted};
use crate::tui::terminal::keys::PASTE_BYTES_MAX;
use crate::tui::text::clean;
use std::path::Path;

/// Lines of a pasted text that are written out.
const LINES_MAX: usize = 5;

/// Bytes of a pasted text that are written out.
const BYTES_MAX: usize = 1_000;

/// Bytes of a text that may name files.
const PATHS_BYTES_MAX: usize = 8 * 1024;

/// Texts with pasted ones whose folds are kept.
const FOLDED_MAX: usize = 8;

/// The beginnings of a path or a URL as terminals paste them.
const PATH_BEGINNINGS: [&str; 6] = ["/", "~/", "./", "'", "\"", "file://"];

/// How names of images end that every provider with images takes.
const IMAGE_ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A file that a pasted text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastedFile {
    pub(crate) path: String,
    pub(crate) is_image: bool,
}

/// Whether the name of a file is that of an image.
pub(crate) fn is_image_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    IMAGE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

impl State {
    /// Pasted text is text, whatever is in it; it never answers a question.
    pub(super) fn pasted(&mut self, text: String) -> Vec<Action> {
        self.does_not_agree();
        self.is_no_longer_quiet();
        if let Some(picker) = &mut self.picker {
            picker.search_for(|search| search.push_str(&text.replace('\n', " ")));
            return Vec::new();
        }
        if may_name_files(&text) && !self.asking.takes_reason() {
            return vec![Action::FindPasted(text)];
        }
        self.write_pasted(&text);
        Vec::new()
    }

    /// What was pasted last is not all of it.
    pub(super) fn paste_was_cut(&mut self) -> Vec<Action> {
        let most = size(u64::try_from(PASTE_BYTES_MAX).unwrap_or(u64::MAX));
        let text = format!(
            "the end of the pasted text is missing: a paste has at most {most}; put the text into a file, and name \
             that with @FILE"
        );
        self.note(Note::Warning, text);
        Vec::new()
    }

    /// The files that the text names were looked for. If it names anything else, it is text.
    pub(super) fn pasted_files_found(&mut self, text: &str, files: Vec<PastedFile>) {
        if files.is_empty() {
            return self.write_pasted(text);
        }
        for PastedFile { path, is_image } in files {
            let before = &self.editor.text()[..self.editor.cursor()];
            if before.ends_with(|char: char| !char.is_whitespace()) {
                self.editor.insert(" ");
            }
            let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy();
            let kind = if is_image { "image" } else { "file" };
            let label = format!("[{kind} {}]", clean(&name).replace('\n', " "));
            let mention = format!("@{}", quoted(&path, true));
            self.editor.insert_folded(label, mention, FoldOf::File);
            self.editor.insert(" ");
        }
        self.changed();
    }

    fn write_pasted(&mut self, text: &str) {
        let lines = text.lines().count();
        if lines <= LINES_MAX && text.len() <= BYTES_MAX {
            return self.write(text);
        }
        let label = match lines {
            1 => format!("[pasted {}]", size(u64::try_from(text.len()).unwrap_or(u64::MAX))),
            lines => format!("[pasted {lines} lines]"),
        };
        self.editor.insert_folded(label, text.to_owned(), FoldOf::Text);
        self.changed();
    }

    /// The text of the line is about to be sent or replaced: where it is shown again, what was pasted is folded again.
    pub(super) fn keep_folds(&mut self) {
        let Some(folded) = self.editor.folded() else { return };
        self.folded_texts.retain(|other| other.expanded() != folded.expanded());
        if self.folded_texts.len() >= FOLDED_MAX {
            self.folded_texts.remove(0);
        }
        self.folded_texts.push(folded);
    }

    /// The folds of a text that was written in this chat.
    fn folds_of(&self, text: &str) -> Option<&FoldedText> {
        let text = text.trim_end();
        self.folded_texts.iter().find(|folded| folded.expanded().trim_end() == text)
    }

    /// A prompt as it was written, if something long was pasted into it.
    pub(crate) fn as_written(&self, prompt: &str) -> Option<String> {
        let folded = self.folds_of(&self.line_of(prompt))?;
        Some(self.prompt_in(&folded.shown()))
    }

    /// Takes the text out of the line, and with it the list that belongs to the text.
    pub(super) fn take_line(&mut self) -> String {
        self.keep_folds();
        self.candidates = None;
        self.editor.take()
    }

    /// Writes a text into the line again. A list there is one for another text.
    pub(super) fn write_again(&mut self, text: String) {
        self.candidates = None;
        match self.folds_of(&text).cloned() {
            Some(folded) => self.editor.set_folded(&folded),
            None => self.editor.set(text),
        }
    }

    /// Prints a prompt. A long one is shortened, and can be shown in full later.
    pub(super) fn print_prompt(&mut self, text: String, attachments: Vec<String>, is_echoed: bool) {
        let written = self.as_written(&text);
        let is_long = written.is_some() || text.lines().nth(PROMPT_LINES_MAX).is_some();
        let piece = Piece::Prompt { text, written, attachments, is_echoed };
        match is_long && !self.is_plain() {
            true => self.print_foldable(piece),
            false => self.print(piece),
        }
    }
}

fn may_name_files(text: &str) -> bool {
    let text = text.trim();
    let begins = PATH_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    let lower = text.to_ascii_lowercase();
    let has_file =
        lower.contains("file://") || IMAGE_ENDINGS.iter().any(|ending| lower.contains(ending));
    begins && has_file && text.len() <= PATHS_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::server::FilledPrompt;
    use crate::tui::model::Event;
    use crate::tui::model::edits::tests::{edits, enter, replacement, turn};
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::{Key, Press, Typed};

    fn paste(scene: &mut Scene, text: &str) {
        scene.event(Event::Typed(Typed::Paste(text.to_owned())));
    }

    #[test]
    fn a_long_paste_is_one_sign_and_sent_as_it_was() {
        let mut scene = Scene::new();
        let text = "line\n".repeat(42);
        scene.write("look: ");
        paste(&mut scene, &text);
        assert_eq!(scene.state.editor.shown().0, "look: [pasted 42 lines]");
        paste(&mut scene, &"x".repeat(3_000));
        assert_eq!(scene.state.editor.shown().0, "look: [pasted 42 lines][pasted 3 kB]");
        scene.key(Key::Backspace);
        scene.key(Key::Enter);
        let expected = format!("look: {text}");
        assert_eq!(scene.asked(), [(expected.as_str(), None)]);
        paste(&mut scene, &text);
        scene.key(Key::Tab);
        assert_eq!(scene.state.editor.text(), text, "Tab writes it out");
        scene.press(Press::ctrl('7'));
        assert_eq!(scene.state.editor.shown().0, "[pasted 42 lines]");
        scene.key(Key::Up);
        scene.key(Key::Down);
        assert_eq!(scene.state.editor.expanded(), text, "nothing is lost on the way");
        paste(&mut scene, "one\ntwo");
        assert!(scene.state.editor.text().ends_with("one\ntwo"), "a short one is text");
    }

    #[test]
    fn a_paste_that_has_lost_its_end_is_named() {
        let mut scene = Scene::new();
        paste(&mut scene, "the beginning");
        scene.event(Event::Typed(Typed::PasteCut));
        assert_eq!(scene.state.editor.text(), "the beginning");
        let [Piece::Note(Note::Warning, text)] = &scene.pieces[..] else { panic!("no warning") };
        assert!(text.contains("at most 16.7 MB") && text.contains("@FILE"), "{text}");
    }

    #[test]
    fn a_paste_goes_with_the_prompt_that_a_command_names() {
        let mut scene = Scene::new();
        let text = "line\n".repeat(42);
        let line = format!("/summarize {}", text.trim_end());
        scene.write("/summarize ");
        paste(&mut scene, &text);
        scene.key(Key::Enter);
        let expand = Action::Expand { line: line.clone(), joins: false };
        assert_eq!(scene.actions.last(), Some(&expand));
        let prompt = FilledPrompt { text: "Sum up.".to_owned(), attachments: Vec::new() };
        let event = |line: &str| Event::Expanded {
            line: line.to_owned(),
            joins: false,
            prompt: Ok(prompt.clone().into()),
        };
        scene.event(event("/summarize"));
        assert!(scene.asked().is_empty(), "something else is written by now");
        scene.event(event(&line));
        assert_eq!(scene.asked(), [("Sum up.", None)]);
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.shown().0, "/summarize [pasted 42 lines]");
        assert_eq!(scene.state.editor.expanded().trim_end(), line);
    }

    #[test]
    fn a_prompt_is_printed_and_written_again_as_it_was_written() {
        let mut scene = Scene::new();
        let text = "line\n".repeat(600);
        let prompt = format!("look: {text}");
        let shown = "look: [pasted 600 lines]";
        scene.write("look: ");
        paste(&mut scene, &text);
        scene.key(Key::Enter);
        assert_eq!(scene.asked(), [(prompt.as_str(), None)]);
        scene.send("r");
        turn(&mut scene, "r", &prompt);
        let printed = Piece::Prompt {
            text: prompt.clone(),
            written: Some(shown.to_owned()),
            attachments: Vec::new(),
            is_echoed: false,
        };
        assert!(scene.pieces.first() == Some(&printed), "it is shortened");
        scene.press(Press::ctrl('o'));
        assert!(scene.pieces.last() == Some(&Piece::Unfolded(Box::new(printed))), "in full");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.shown().0, shown);
        scene.press(Press::ctrl('u'));
        enter(&mut scene, "/edit");
        assert_eq!(scene.state.editor.shown().0, shown);
        enter(&mut scene, "!");
        let expected = replacement("r-user", &format!("{prompt}!"));
        assert!(edits(&scene) == [expected], "it is asked in full");
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.shown().0, format!("{shown}!"));
    }

    /// What was selected is not what the longer search finds there.
    #[test]
    fn a_paste_into_a_list_selects_anew() {
        let mut scene = Scene::new();
        for prompt in ["ports", "ships", "more ports"] {
            scene.state.history.add(prompt);
        }
        scene.press(Press::ctrl('r'));
        scene.key(Key::Down);
        scene.key(Key::Down);
        paste(&mut scene, "ports");
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.take(), "more ports");
        scene.press(Press::ctrl('r'));
        scene.write("ports");
        scene.key(Key::Down);
        scene.press(Press::ctrl('u'));
        scene.key(Key::Enter);
        assert_eq!(scene.state.editor.text(), "more ports");
    }

    #[test]
    fn a_pasted_path_is_an_attachment_if_there_is_such_a_file() {
        let mut scene = Scene::new();
        scene.write("see");
        let text = "'/tmp/a b.png' ".to_owned();
        paste(&mut scene, &text);
        assert_eq!(scene.actions, [Action::FindPasted(text.clone())]);
        let file = |path: &str, is_image| PastedFile { path: path.to_owned(), is_image };
        let files = vec![file("/tmp/a b.png", true), file("/tmp/notes", false)];
        scene.event(Event::PastedFiles { text: text.clone(), files });
        assert_eq!(scene.state.editor.shown().0, "see [image a b.png] [file notes] ");
        assert_eq!(scene.state.editor.take(), "see @\"/tmp/a b.png\" @\"/tmp/notes\" ");
        scene.event(Event::PastedFiles { text: text.clone(), files: Vec::new() });
        assert_eq!(scene.state.editor.take(), text);
        for text in ["see /tmp/a.png", "/usr/bin/env", "~/x"] {
            paste(&mut scene, text);
            assert_eq!(scene.state.editor.take(), text);
        }
    }
}
