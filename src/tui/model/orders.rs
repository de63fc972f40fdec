//! Handles entered prompts and commands.

use super::edits::STILL_ANSWERS;
use super::lines::is_decision;
use super::prompts::expand;
use super::servers::Listing;
use super::shell_commands::command_in;
use super::{Action, Note, Opening, Outgoing, Picker, PickerKind, Piece, State, Status};
use crate::protocol::command::Edit;
use crate::tui::commands::{Command, Name, Wrong};
use crate::tui::markdown::code_blocks;
use crate::tui::text::clean;

/// Prompts that may wait for their turn.
pub(super) const WAITING_MAX: usize = 100;

const KEYS: [(&str, &str); 22] = [
    ("Enter", "send; while the model answers, the prompt waits for its turn"),
    ("Ctrl-S", "send into the run that goes on"),
    ("Ctrl-J, Alt-Enter, Shift-Enter", "begin another line"),
    ("Esc", "stop the answer"),
    ("Esc Esc", "with an empty line, go back to an earlier prompt of the conversation"),
    (
        "Ctrl-C",
        "clear the line; if it is empty, stop the answer; if nothing runs, leave with a second one",
    ),
    ("Ctrl-D", "leave, if the line is empty, also while the model answers"),
    ("Ctrl-Z", "suspend; fg comes back"),
    ("Up, Down, Ctrl-P, Ctrl-N", "earlier prompts"),
    ("Ctrl-R", "search earlier prompts"),
    ("Alt-Up", "take back the prompt that waits"),
    ("/, @", "list the commands, or the files to attach; Down and Up choose, Enter or Tab takes"),
    ("Tab", "complete a command, or a file after @; after [pasted …], write the text out"),
    ("!COMMAND", "run a shell command, whose output goes along with the next prompt"),
    ("Ctrl-_", "undo the last change of the line"),
    ("Ctrl-X Ctrl-E", "write the prompt in $VISUAL or $EDITOR"),
    (
        "Enter, Ctrl-A, Backspace",
        "answer the question about a tool call, while the line is empty: yes, all of these, no",
    ),
    ("Ctrl-G", "answer the question about a tool call with a letter, also with a reason"),
    ("Ctrl-T", "show reasoning and results in full, or shortened"),
    ("Ctrl-O", "print in full what was shortened last"),
    ("Ctrl-L", "draw the screen again"),
    ("PageUp, PageDown, Ctrl-End", "scroll, with --fullscreen"),
];

/// Commands that exist only where lines are read.
const LINES: [(&str, &str); 4] = [
    ("/allow (y)", "let the tool call run that was asked about last"),
    ("/always (a)", "let the tool run in this conversation without a question"),
    ("/deny [REASON] (n)", "do not let the tool call run; the model reads the reason"),
    ("/stop", "stop the answer"),
];

const LINES_ABOUT: &str = "Any other line is a prompt; two slashes begin one with a slash, and @FILE attaches a file. Each line waits \
     until the one before it is answered. The end of input leaves once everything is answered.";

impl State {
    /// Enter. `joins`: a prompt is part of the active run.
    pub(super) fn entered(&mut self, joins: bool) -> Vec<Action> {
        let before = &self.editor.text()[..self.editor.cursor()];
        if before.ends_with('\\') && !joins {
            let start = self.editor.cursor() - 1;
            self.editor.replace_before(start, "\n");
            return Vec::new();
        }
        let text = self.editor.expanded();
        if text.trim().is_empty() || self.is_ending {
            return Vec::new();
        }
        self.candidates = None;
        if let Some(command) = command_in(&text) {
            return self.run_command(command.to_owned());
        }
        let is_decision = is_decision(&text);
        match Command::read(text.trim_end()) {
            Some(Ok(command)) if command.wants_silence() && self.is_opening => {
                self.hint("another conversation is being opened; Esc stays in this one");
                Vec::new()
            }
            // It stays in the line: what follows it was meant for the next conversation, or its text would be lost.
            Some(Ok(command)) if command.wants_silence() && self.is_busy() => {
                self.hint(STILL_ANSWERS);
                Vec::new()
            }
            Some(Ok(command)) if command.sends() && !self.may_send() => Vec::new(),
            Some(Ok(command)) => self.measured_first(joins).unwrap_or_else(|| {
                let text = self.take_line();
                self.edits = None;
                self.history.add(text.trim_end());
                self.order(command)
            }),
            None | Some(Err(Wrong::Unknown(_))) if self.waits_for_output() => Vec::new(),
            // It may be a prompt of a command file, and stays meanwhile.
            Some(Err(Wrong::Unknown(_))) => expand(&text, joins),
            // It stays where it can be corrected.
            Some(Err(wrong)) => {
                self.hint(wrong.to_string());
                Vec::new()
            }
            // Sent, it would wait and become a prompt of its own once the question is answered.
            None if !self.approvals.is_empty() && is_decision => {
                self.editor.take();
                self.hint("nothing was sent; Ctrl-G, then y, a or n answers the question");
                Vec::new()
            }
            None if self.is_opening => {
                self.hint("another conversation is being opened; Esc stays in this one");
                Vec::new()
            }
            None if self.waiting.len() >= WAITING_MAX => {
                self.hint("too many prompts wait; Esc takes them back");
                Vec::new()
            }
            None if !self.may_send() => Vec::new(),
            None => self.measured_first(joins).unwrap_or_else(|| {
                let line = self.take_line();
                let prompt = self.prompt_in(&line);
                match self.edits.take() {
                    Some(message_id) => self.replace(message_id, prompt),
                    None => self.submit(&line, prompt, joins),
                }
            }),
        }
    }

    pub(super) fn order(&mut self, command: Command) -> Vec<Action> {
        match command {
            Command::Help => self.help(),
            Command::New => return self.open(Opening::New { system: None }),
            Command::System(Some(text)) => {
                return self.open(Opening::New { system: Some(text) });
            }
            Command::System(None) => {
                let text = self.status.system.clone();
                let text = text.unwrap_or_else(|| "there is no system prompt".to_owned());
                self.note(Note::Information, clean(&text));
            }
            Command::Resume(search) => {
                self.picker = Some(Picker::loading(PickerKind::Session, search));
                return vec![Action::ListSessions];
            }
            Command::Model(None) if !self.is_plain() => {
                self.picker = Some(Picker::loading(PickerKind::Model, String::new()));
                return vec![Action::ListModels];
            }
            Command::Profile(None) if !self.is_plain() => {
                self.picker = Some(Picker::loading(PickerKind::Profile, String::new()));
                return vec![Action::ListProfiles];
            }
            Command::Model(Some(model)) => {
                let mut actions = self.switch_to(String::new(), model.clone());
                if !self.is_plain() {
                    self.checks_model = Some(model);
                    actions.push(Action::ListModels);
                }
                return actions;
            }
            Command::Profile(Some(profile)) => return self.switch_to(profile, String::new()),
            Command::Model(None) | Command::Profile(None) => {
                let text = format!("{} answers", self.status.answers_with());
                self.note(Note::Information, text);
                if command == Command::Profile(None) {
                    return vec![Action::ListProfiles];
                }
            }
            Command::Tools => return self.list_servers(Listing::Tools),
            Command::Mcp(None) => return self.list_servers(Listing::States),
            Command::Mcp(Some(server)) => return self.restart_server(server),
            Command::Copy(number) => return self.copy(number),
            Command::Save(path) => match self.log.last_answer() {
                Some(text) => return vec![Action::Write { path, text }],
                None => self.note(Note::Error, "there is no answer to save yet".to_owned()),
            },
            Command::Export(path) => {
                if !self.log.is_empty() {
                    let text = self.log.markdown();
                    return vec![Action::Write { path, text }];
                }
                self.note(Note::Error, "nothing was said yet".to_owned());
            }
            Command::Fork => return self.fork(),
            Command::Rename(title) => return self.rename(&title),
            Command::Undo(turns) => return self.undo(turns),
            Command::Retry => return self.change_end(Edit::Regenerate),
            Command::Edit(text) => return self.edit_prompt(text),
            Command::Compact(words) => return vec![Action::Request(Outgoing::Compact(words))],
            Command::Quit => return self.leave(),
        }
        Vec::new()
    }

    /// Another conversation, once the model is silent in this one.
    pub(super) fn open(&mut self, opening: Opening) -> Vec<Action> {
        if matches!(&opening, Opening::Stored { session } if *session == self.status.session) {
            let text = "this is the conversation that goes on here";
            self.note(Note::Information, text.to_owned());
            return Vec::new();
        }
        let why = match &opening {
            _ if self.is_busy() => STILL_ANSWERS,
            _ if self.is_opening => "another conversation is being opened already",
            Opening::New { .. } | Opening::Stored { .. } | Opening::Copied { .. } => {
                self.is_opening = true;
                return vec![Action::Open(opening)];
            }
        };
        self.note(Note::Error, why.to_owned());
        Vec::new()
    }

    /// The other conversation can't be used: this one stays open.
    pub(super) fn not_opened(&mut self, why: String) {
        self.is_opening = false;
        self.note(Note::Error, format!("{why}; this conversation goes on"));
    }

    fn copy(&mut self, number: Option<usize>) -> Vec<Action> {
        let answer = self.log.last_answer();
        let text = match (answer, number) {
            (None, _) => Err("there is no answer to copy yet".to_owned()),
            (Some(answer), None) => Ok(answer),
            (Some(answer), Some(number)) => {
                let mut blocks = code_blocks(&answer);
                let count = blocks.len();
                match number.checked_sub(1).filter(|at| *at < count) {
                    Some(at) => Ok(blocks.swap_remove(at)),
                    None => Err(match count {
                        0 => "the last answer has no code block".to_owned(),
                        1 => "the last answer has 1 code block".to_owned(),
                        count => format!("the last answer has {count} code blocks"),
                    }),
                }
            }
        };
        match text {
            Ok(text) => return vec![Action::Copy(text)],
            Err(why) => self.note(Note::Error, why),
        }
        Vec::new()
    }

    pub(super) fn help(&mut self) {
        let mut lines = vec!["Commands".to_owned()];
        let row = |usage: &str, about: &str| format!("  {usage:<20} {about}");
        for name in Name::ALL.into_iter().filter(|name| !self.is_plain() || name.takes_lines()) {
            lines.push(row(&format!("/{} {}", name.as_str(), name.parameter()), name.about()));
        }
        if self.is_plain() {
            lines.extend(LINES.iter().map(|(usage, about)| row(usage, about)));
            lines.push(String::new());
            lines.push(LINES_ABOUT.to_owned());
        } else {
            lines.push(String::new());
            lines.push("Keys".to_owned());
            lines.extend(KEYS.iter().map(|(keys, about)| format!("  {keys}: {about}")));
        }
        self.print(Piece::Lines(lines));
    }
}

impl Status {
    /// The names of engine and model.
    pub(crate) fn answers_with(&self) -> String {
        let names = [&self.profile, &self.engine, &self.model];
        let names = names.into_iter().filter(|name| !name.is_empty()).map(String::as_str);
        let mut names: Vec<_> = names.collect();
        // The built-in engine has the name of its model.
        names.dedup();
        names.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::proto::chat::ChatTextSegmentFinished;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Action, Note, Piece};
    use crate::tui::terminal::keys::Key;

    #[test]
    fn a_code_block_that_is_not_there_is_counted_in_words() {
        let check = |answer: &str, expected: &str| {
            let mut scene = Scene::new();
            scene.ask("r", "code?");
            scene.says("r", answer);
            scene.ui("r", ChatTextSegmentFinished::default());
            scene.done("r", "ok");
            scene.write("/copy 3");
            scene.key(Key::Enter);
            let note = Piece::Note(Note::Error, format!("the last answer has {expected}"));
            assert_eq!(scene.pieces.last(), Some(&note));
            scene.write("/copy");
            scene.key(Key::Enter);
            assert_eq!(scene.actions.last(), Some(&Action::Copy(answer.to_owned())));
        };
        check("none", "no code block");
        check("```\na\n```\n", "1 code block");
        check("```\na\n```\n~~~\nb\n~~~\n", "2 code blocks");
    }
}
