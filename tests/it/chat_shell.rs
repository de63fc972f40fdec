//! Shell commands that a person runs in a chat.

use crate::chat::{Person, chat};
use crate::chat_lines::piped;
use crate::once::duologue;
use crate::process::eventually;
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY};
use std::fs;
use std::path::Path;

#[test]
fn the_output_of_a_command_goes_along_with_the_next_prompt() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("Seen."), says("Fine.")]);
    let mut command = duologue(&folder, &["chat", "--engine", "openai"]);
    command.env("HOME", folder.path("")).env("DUOLOGUE_MODEL", "m");
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", provider.base_url());
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("!printf 'one\\n\\033[2Jtwo'; ls /nowhere; exit 3\r");
    person.sees("goes with the next prompt: the output of printf");
    let shown = person.screen().text();
    assert!(shown.contains("  one\n  ␛[2Jtwo") && shown.contains("(status 3)"), "{shown}");
    person.types("what is that?\r");
    person.answered("Seen.");
    person.sees("attached: output-1.txt");
    person.types("and now?\r");
    person.answered("Fine.");
    let sent = |number: usize| provider.wait_request(number).body["messages"].to_string();
    assert!(sent(1).contains("$ printf") && sent(1).contains("one\\n␛[2Jtwo"), "{}", sent(1));
    assert!(sent(1).contains("/nowhere") && sent(1).contains("(status 3)"), "{}", sent(1));
    assert_eq!(sent(2).matches("$ printf").count(), 1, "it went along once");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Processes of the command, also those in the background, end with it.
#[test]
fn a_command_ends_with_ctrl_c_and_with_the_chat() {
    for keys in ["\u{3}", "\u{4}"] {
        let folder = Folder::new();
        let mut person = Person::start(chat(&folder, &[]));
        person.sees("/help");
        person.types("!sleep 1000 & echo $! > other; echo $$ > own; exec sleep 1000\r");
        person.sees("Esc ends this command");
        let pid = |name: &str| {
            eventually("the command has begun", || {
                let text = fs::read_to_string(folder.path(name)).ok()?;
                text.ends_with('\n').then(|| text.trim().to_owned())
            })
        };
        let pids = [pid("other"), pid("own")];
        person.types(keys);
        for pid in pids {
            eventually("it is gone", || (!Path::new("/proc").join(&pid).exists()).then_some(()));
        }
        if keys == "\u{3}" {
            person.sees("goes with the next prompt");
            person.types("\u{4}");
        }
        assert_eq!(person.ends().0, 0);
    }
}

/// Lines of a file or a pipe were not typed.
#[test]
fn a_piped_line_runs_nothing() {
    let folder = Folder::new();
    let ended = piped(&folder, &[], "!touch made\n");
    assert!(ended.stdout.contains("You said: !touch made"), "{}", ended.stdout);
    assert!(!folder.path("made").exists());
}

/// It is the same prompt when the up key brings it back, also in the next chat.
#[test]
fn a_prompt_that_comes_back_runs_nothing() {
    let folder = Folder::new();
    for keys in ["!!touch made\r", "\u{1b}[A\r"] {
        let mut person = Person::start(chat(&folder, &[]));
        person.sees("/help");
        person.types(keys);
        person.answered("Turn 1. You said: !touch made");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
    assert!(!folder.path("made").exists());
}

#[test]
fn the_status_says_how_much_of_the_context_is_in_use() {
    for (options, shown) in [
        (&[][..], "· context 5 ·"),
        (&["--context-size", "50"], "· context 5 of 50 (10 %) ·"),
        (&["--prices", "prices"], "· context 5 of 50 (10 %) ·"),
    ] {
        let folder = Folder::new();
        let prices =
            r#"{"currency":"EUR","models":{"m":{"input":1,"output":1,"context-window":50}}}"#;
        fs::write(folder.path("prices"), prices).expect("a file");
        let provider = Provider::start(vec![says("Seen.")]);
        let words = [&["chat", "--engine", "openai"][..], options].concat();
        let mut command = duologue(&folder, &words);
        command.env("HOME", folder.path("")).env("DUOLOGUE_MODEL", "m");
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", provider.base_url());
        let mut person = Person::start(command);
        person.sees("/help");
        person.types("hi\r");
        person.answered("Seen.");
        person.sees(shown);
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}
