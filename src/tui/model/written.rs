//! The two forms of a prompt: the line in which a person writes it, and the text that is asked. They differ where that
//! text begins as a command does. The line, older prompts and whatever comes back into the line have the first form, so
//! that Enter does there what it did before; requests, and the prompts that were accepted, have the second one.

use super::State;
use crate::tui::commands::Command;

/// The sign before the name of a command.
const COMMAND: char = '/';

/// The sign before a shell command.
const SHELL: char = '!';

impl State {
    /// The line in which a person writes `prompt`: a second sign makes the first one part of it.
    pub(super) fn line_of(&self, prompt: &str) -> String {
        let is_command = Command::read(prompt.trim_end()).is_some();
        let begins = |sign: char| prompt.starts_with(sign);
        if begins(COMMAND) && (is_command || prompt[1..].starts_with(COMMAND)) {
            return format!("{COMMAND}{prompt}");
        }
        // Lines without keys run no shell commands.
        if begins(SHELL) && !self.is_plain() {
            return format!("{SHELL}{prompt}");
        }
        prompt.to_owned()
    }

    /// The prompt that is written in `line`, which is no command.
    pub(super) fn prompt_in(&self, line: &str) -> String {
        let is_doubled =
            |sign: char| line.strip_prefix(sign).is_some_and(|it| it.starts_with(sign));
        let is_escaped = is_doubled(COMMAND) || is_doubled(SHELL) && !self.is_plain();
        line[usize::from(is_escaped)..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::constants::done;
    use crate::tui::model::edits::tests::{edits, enter, replacement, turn};
    use crate::tui::model::shell_commands::command_in;
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Action, Event, Lines, Outgoing};
    use crate::tui::terminal::keys::{Key, Press};
    use proptest::prelude::*;

    /// Prompts that would be something else if they were written as they are.
    const PROMPTS: [&str; 4] = ["!touch made", "/quit", "//usr", "!!"];

    fn line_of(scene: &Scene, prompt: &str) -> String {
        scene.state.line_of(prompt)
    }

    #[test]
    fn only_what_would_be_a_command_has_a_second_sign() {
        let mut scene = Scene::new();
        let check = |scene: &Scene, prompt: &str, expected: &str| {
            assert_eq!(line_of(scene, prompt), expected);
        };
        check(&scene, "hello", "hello");
        check(&scene, "/usr/bin/env is a path", "/usr/bin/env is a path");
        check(&scene, " /quit", " /quit");
        check(&scene, "/quit", "//quit");
        check(&scene, "/usr is full", "//usr is full");
        check(&scene, "//usr", "///usr");
        check(&scene, "/", "//");
        check(&scene, "!ls", "!!ls");
        check(&scene, "!!", "!!!");
        scene.state.lines = Some(Lines::new(true));
        check(&scene, "/quit", "//quit");
        check(&scene, "!ls", "!ls");
    }

    proptest! {
        /// Whatever was asked: written again, it is asked again.
        #[test]
        fn a_prompt_that_is_written_again_is_the_same(
            prompt in "[/!]{0,3}([a-z/! \n]{0,6}|quit|\\PC{0,4})",
            are_lines in any::<bool>(),
        ) {
            let mut scene = Scene::new();
            scene.state.lines = are_lines.then(|| Lines::new(true));
            let line = line_of(&scene, &prompt);
            prop_assert_eq!(Command::read(line.trim_end()), None);
            prop_assert!(are_lines || command_in(&line).is_none());
            prop_assert_eq!(scene.state.prompt_in(&line), prompt);
        }
    }

    /// Enter asks the line once more: it runs nothing, leaves nothing and opens nothing.
    #[track_caller]
    fn asks_again(scene: &mut Scene, prompt: &str) {
        assert_eq!(scene.state.editor.text(), line_of(scene, prompt));
        let asked = scene.asked().len();
        scene.key(Key::Enter);
        assert_eq!(scene.asked()[asked..].iter().map(|it| it.0).collect::<Vec<_>>(), [prompt]);
        let is_command = |it: &&Action| {
            matches!(
                it,
                Action::RunCommand(_) | Action::Quit | Action::Open(_) | Action::Expand { .. }
            )
        };
        assert_eq!(scene.actions.iter().find(is_command), None);
    }

    #[test]
    fn an_older_prompt_is_a_prompt_when_it_comes_back() {
        for prompt in PROMPTS {
            let mut scene = Scene::new();
            let line = line_of(&scene, prompt);
            enter(&mut scene, &line);
            assert!(scene.actions.contains(&Action::Remember(line.clone())), "also in later chats");
            scene.key(Key::Up);
            asks_again(&mut scene, prompt);
            scene.press(Press::ctrl('r'));
            scene.key(Key::Enter);
            asks_again(&mut scene, prompt);
        }
    }

    #[test]
    fn a_prompt_that_is_taken_back_or_refused_is_a_prompt() {
        for prompt in PROMPTS {
            let mut scene = Scene::new();
            scene.ask("r1", "first");
            let line = line_of(&scene, prompt);
            enter(&mut scene, &line);
            scene.send("r2");
            scene.press(Press { alt: true, ..Press::plain(Key::Up) });
            asks_again(&mut scene, prompt);
            scene.send("r3");
            scene.key(Key::Esc);
            asks_again(&mut scene, prompt);
            scene.send("r4");
            scene.done("r4", done::FAILED);
            asks_again(&mut scene, prompt);
        }
    }

    /// Only the beginning of a text has a second sign.
    #[test]
    fn prompts_that_come_back_together_are_one_prompt() {
        let mut scene = Scene::new();
        scene.ask("r1", "first");
        for (id, line) in [("r2", "!!one"), ("r3", "//two")] {
            enter(&mut scene, line);
            scene.send(id);
        }
        scene.write("!!draft");
        scene.key(Key::Esc);
        asks_again(&mut scene, "!one\n/two\n!draft");
    }

    #[test]
    fn a_prompt_of_the_conversation_is_a_prompt_when_it_is_written_again() {
        for prompt in PROMPTS {
            let mut scene = Scene::new();
            turn(&mut scene, "a", prompt);
            let rewind: [fn(&mut Scene); 2] = [
                |scene| enter(scene, "/edit"),
                |scene| [Key::Esc, Key::Esc, Key::Enter].into_iter().for_each(|key| scene.key(key)),
            ];
            for (at, write) in rewind.into_iter().enumerate() {
                write(&mut scene);
                assert_eq!(scene.state.editor.text(), line_of(&scene, prompt));
                scene.key(Key::Enter);
                assert_eq!(edits(&scene)[at..], [replacement("a-user", prompt)]);
                assert!(scene.asked().is_empty() && !scene.actions.contains(&Action::Quit));
            }
            scene.key(Key::Up);
            asks_again(&mut scene, prompt);
            enter(&mut scene, &format!("/edit {prompt}"));
            scene.key(Key::Up);
            asks_again(&mut scene, prompt);
            scene.event(Event::Sent(replacement("a-user", prompt), "e".to_owned()));
            scene.done("e", done::FAILED);
            assert_eq!(scene.state.editor.text(), line_of(&scene, prompt));
        }
    }

    /// A command that is written in the place of a prompt is neither run nor asked.
    #[test]
    fn a_shell_command_takes_the_place_of_no_prompt() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        enter(&mut scene, "/edit");
        scene.press(Press::ctrl('u'));
        enter(&mut scene, "!ls");
        assert_eq!((edits(&scene), scene.state.editor.text()), (Vec::<Outgoing>::new(), "!ls"));
        assert!(scene.state.shown_hint().is_some_and(|hint| hint.contains("!!")));
        scene.key(Key::Esc);
        scene.key(Key::Up);
        scene.key(Key::Enter);
        assert_eq!(scene.actions.last(), Some(&Action::RunCommand("ls".to_owned())));
    }
}
