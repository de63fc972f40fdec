//! Shell commands of the person: `!` and the command. The output is shown, and goes along with the next prompt.

use super::{Action, Note, Notice, Piece, State, ToolCall, ToolState};
use std::time::Duration;

/// Outputs that wait for a prompt.
const OUTPUTS_MAX: usize = 8;

/// Lines of an output that are printed at once.
const LINES_MAX: usize = 40;

/// A command that runs.
#[derive(Clone, Debug)]
pub(crate) struct ShellCommand {
    pub(crate) text: String,
    pub(crate) since: Duration,
    pub(crate) is_stopping: bool,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    pub(crate) command: String,
    /// Clean, and of limited length.
    pub(crate) text: String,
    /// How it has ended, if not well.
    pub(crate) failure: Option<String>,
}

impl CommandOutput {
    /// As the model reads it.
    pub(crate) fn for_model(&self) -> String {
        let text = if self.text.is_empty() { "(no output)" } else { &self.text };
        let end = self.failure.as_ref().map(|how| format!("\n({how})")).unwrap_or_default();
        format!("$ {}\n{text}{end}\n", self.command)
    }
}

/// The command in a text that was entered. Two exclamation marks begin a prompt with one.
pub(super) fn command_in(text: &str) -> Option<&str> {
    text.strip_prefix('!').filter(|rest| !rest.starts_with('!')).map(str::trim)
}

impl State {
    /// Enter after `!` and a command.
    pub(super) fn run_command(&mut self, command: String) -> Vec<Action> {
        match () {
            () if self.edits.is_some() => self.hint(
                "the line replaces a prompt: !! begins one with an exclamation mark, Esc leaves it as it is",
            ),
            () if command.is_empty() && self.outputs.is_empty() && self.attached.is_empty() => {
                self.hint("write a shell command after the !, as in !git status");
            }
            () if command.is_empty() => {
                self.editor.take();
                self.outputs.clear();
                self.attached.clear();
                self.hint("nothing goes along with the next prompt");
            }
            () if self.command.is_some() => self.hint("a command runs already; Esc ends it"),
            () if self.outputs.len() >= OUTPUTS_MAX => {
                self.hint("too many outputs wait for the next prompt; ! alone drops them");
            }
            () => {
                let written = self.take_line();
                self.history.add(written.trim_end());
                let (since, is_stopping) = (self.now, false);
                self.command = Some(ShellCommand { text: command.clone(), since, is_stopping });
                return vec![Action::RunCommand(command)];
            }
        }
        Vec::new()
    }

    /// Whether there is a command that Esc and Ctrl-C end.
    pub(super) fn runs_command(&self) -> bool {
        self.command.as_ref().is_some_and(|command| !command.is_stopping)
    }

    /// Ends the command; `None` if none runs.
    pub(super) fn end_command(&mut self) -> Option<Vec<Action>> {
        let command = self.command.as_mut().filter(|command| !command.is_stopping)?;
        command.is_stopping = true;
        Some(vec![Action::EndCommand])
    }

    /// Whether a prompt is entered only once the command that runs has its output, which is to go along with it.
    pub(super) fn waits_for_output(&mut self) -> bool {
        if self.command.is_none() || self.is_plain() {
            return false;
        }
        self.enters_with_output = Some(self.editor.expanded());
        self.hint("it is sent with the output, once the command has ended; Esc ends the command");
        true
    }

    pub(super) fn command_ended(&mut self, ended: Result<CommandOutput, String>) -> Vec<Action> {
        // Anything else, as an earlier prompt or command, needs an Enter of its own.
        let entered = self.enters_with_output.take();
        let enters = entered.is_some_and(|entered| entered == self.editor.expanded());
        let since = self.command.take().map_or(self.now, |command| command.since);
        let output = match ended {
            Ok(output) => output,
            Err(why) => {
                self.note(Note::Error, why);
                return Vec::new();
            }
        };
        let took = Some(self.now.saturating_sub(since));
        let mut call = ToolCall::new(String::new(), &format!("! {}", output.command), since);
        call.result.clone_from(&output.text);
        call.state = match &output.failure {
            None => ToolState::Succeeded(took),
            Some(how) => {
                call.result.push_str(&format!("\n({how})"));
                ToolState::Failed(took)
            }
        };
        let is_short = call.result.lines().count() <= LINES_MAX;
        match is_short {
            true => self.print(Piece::Unfolded(Box::new(Piece::Tool(call)))),
            false => self.print_foldable(Piece::Tool(call)),
        }
        self.outputs.push(output);
        self.waits_for_person(Notice::Answer);
        if enters { self.entered(false) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Event, Outgoing, Vi};
    use crate::tui::terminal::keys::{Key, Press};

    fn enter(scene: &mut Scene, text: &str) {
        scene.write(text);
        scene.key(Key::Enter);
    }

    fn output(command: &str, text: &str) -> CommandOutput {
        CommandOutput { command: command.to_owned(), text: text.to_owned(), failure: None }
    }

    fn submitted(scene: &Scene) -> Vec<(&str, usize)> {
        let submitted = scene.actions.iter().filter_map(|action| {
            let Action::Request(Outgoing::Submit { prompt, outputs, .. }) = action else {
                return None;
            };
            Some((prompt.as_str(), outputs.len()))
        });
        submitted.collect()
    }

    #[test]
    fn an_output_goes_along_with_the_next_prompt() {
        let mut scene = Scene::new();
        enter(&mut scene, "! ls -l");
        assert_eq!(scene.actions, [Action::RunCommand("ls -l".to_owned())]);
        enter(&mut scene, "!pwd");
        assert_eq!(scene.actions.len(), 1, "one after the other");
        scene.state.editor.take();
        scene.event(Event::CommandEnded(Ok(output("ls -l", "a\nb"))));
        assert!(matches!(scene.pieces.last(), Some(Piece::Unfolded(_))));
        enter(&mut scene, "what is this?");
        enter(&mut scene, "!!bang");
        assert_eq!(submitted(&scene), [("what is this?", 1), ("!bang", 0)]);
        scene.key(Key::Up);
        scene.key(Key::Up);
        scene.key(Key::Up);
        assert_eq!(scene.state.editor.text(), "! ls -l");
    }

    #[test]
    fn a_prompt_waits_for_the_output_of_the_command() {
        let mut scene = Scene::new();
        enter(&mut scene, "!make");
        enter(&mut scene, "why?");
        assert!(submitted(&scene).is_empty());
        assert_eq!(scene.state.editor.text(), "why?");
        scene.event(Event::CommandEnded(Ok(output("make", "no rule"))));
        assert_eq!(submitted(&scene), [("why?", 1)]);
        // What is changed meanwhile is entered anew.
        enter(&mut scene, "!make");
        enter(&mut scene, "so");
        scene.write("?");
        scene.event(Event::CommandEnded(Ok(output("make", ""))));
        assert_eq!(scene.state.editor.text(), "so?");
        assert_eq!(submitted(&scene).len(), 1);
    }

    /// Only what was entered is sent, whatever has come into the line since, and no command runs without Enter.
    #[test]
    fn what_is_in_the_line_by_other_means_is_not_entered() {
        let others: [fn(&mut Scene); 4] = [
            |scene| scene.key(Key::Up),
            |scene| {
                scene.press(Press::ctrl('r'));
                scene.key(Key::Enter);
            },
            |scene| scene.event(Event::Edited(Ok("!./deploy".to_owned()))),
            |scene| {
                scene.state.vi = Some(Vi::default());
                scene.key(Key::Esc);
                scene.write("x");
            },
        ];
        for (at, other) in others.into_iter().enumerate() {
            let mut scene = Scene::new();
            enter(&mut scene, "!./deploy");
            enter(&mut scene, "why?");
            other(&mut scene);
            let written = scene.state.editor.text().to_owned();
            scene.event(Event::CommandEnded(Ok(output("./deploy", ""))));
            // What something else takes the place of is stored, and not sent.
            scene.actions.retain(|action| !matches!(action, Action::Remember(_)));
            assert_eq!(scene.actions, [Action::RunCommand("./deploy".to_owned())], "{at}");
            assert_eq!(scene.state.editor.text(), written, "{at}");
        }
        // Who comes back to what was entered still has it sent.
        let mut scene = Scene::new();
        enter(&mut scene, "!./deploy");
        enter(&mut scene, "why?");
        scene.key(Key::Up);
        scene.key(Key::Down);
        scene.event(Event::CommandEnded(Ok(output("./deploy", ""))));
        assert_eq!(submitted(&scene), [("why?", 1)]);
    }

    #[test]
    fn an_output_stays_if_its_prompt_comes_back_and_can_be_dropped() {
        let mut scene = Scene::new();
        enter(&mut scene, "!ls");
        scene.event(Event::CommandEnded(Ok(output("ls", &"a\n".repeat(99)))));
        assert!(matches!(scene.pieces.last(), Some(Piece::Tool(_))), "a long one is shortened");
        enter(&mut scene, "so?");
        scene.send("r1");
        scene.done("r1", "failed");
        scene.key(Key::Enter);
        enter(&mut scene, "!ls");
        scene.event(Event::CommandEnded(Err("no shell".to_owned())));
        scene.event(Event::CommandEnded(Ok(output("ls", ""))));
        enter(&mut scene, "!");
        enter(&mut scene, "and?");
        assert_eq!(submitted(&scene), [("so?", 1), ("so?", 1), ("and?", 0)]);
        assert_eq!(output("ls", "").for_model(), "$ ls\n(no output)\n");
    }

    #[test]
    fn ctrl_c_ends_the_command_before_the_answer() {
        let mut scene = Scene::new();
        scene.ask("r", "go");
        enter(&mut scene, "!sleep 9");
        scene.press(Press::ctrl('c'));
        assert_eq!(scene.actions.last(), Some(&Action::EndCommand));
        assert!(scene.cancelled().is_empty());
        scene.press(Press::ctrl('c'));
        assert_eq!(scene.cancelled(), [Some("r")]);
    }
}
