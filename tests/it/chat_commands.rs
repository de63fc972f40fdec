//! Commands of a chat, and what it makes of wrong ones.

use crate::chat::Person;
use crate::chat_lines::piped;
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Once, duologue};
use crate::profiles::Scene;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::terminal::{in_session, read_until, with_terminal};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::process::Command;

const CTRL_C: &[u8] = b"\x03";

/// Esc as a terminal sends it that reports all keys.
const ESC: &str = "\u{1b}[27u";

/// `chat` with the built-in engine, as a person at a terminal types it in a shell.
const PLAIN: [&str; 5] = [env!("CARGO_BIN_EXE_duologue"), "chat", "--engine", "echo", "--plain"];

#[test]
fn a_profile_that_is_not_there_is_named_with_those_that_are() {
    let profiles = "profiles:\n  small:\n    engine: echo\n  large:\n    engine: echo\n";
    let scene = Scene::new(profiles, "");
    let mut once = Once::start(scene.command(&["chat", "--engine", "echo"]));
    once.write("/profile\nhi\n/profile nosuch\nfor that profile alone\n");
    let ended = once.finish();
    assert_eq!(ended.status, 1, "{ended:?}");
    let shown = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let wrong =
        "Error: there is no profile \"nosuch\"; there are: large, small; echo answers as before";
    let end =
        "Warning: nothing after this line is read, because it was meant for what the line chooses";
    assert!(shown.ends_with(&format!("{wrong} {end}")), "{shown}");
    let all = "echo answers profiles, each to be chosen with /profile NAME: large, small";
    assert!(shown.starts_with(all), "{shown}");
    assert!(shown.contains("You said: hi"), "{shown}");
}

#[test]
fn tools_are_listed_before_the_first_prompt() {
    let (folder, mark) = (Folder::new(), mark());
    let servers = config(&mark, &["echo", "crash-at-init"], &json!({}));
    fs::write(folder.path("servers"), servers).expect("a file");
    let ended = piped(&folder, &["--mcp-config", "servers"], "/tools\nhi\n");
    let listed = "\ncrash-at-init (unavailable: it ended with status 4)\necho (ready)\n  act\n";
    let (before, after) = ended.stdout.split_once(listed).expect("the tools");
    assert!(!before.contains("You: hi") && after.contains("You said: hi"), "{ended:?}");
    assert_gone(&mark);
    let ended = piped(&folder, &[], "/tools\n");
    assert!(ended.stdout.starts_with("there are no tool servers"), "{ended:?}");
}

#[test]
fn several_turns_are_dropped_at_once() {
    let ended = piped(&Folder::new(), &[], "a\nb\nc\nd\n/undo 5\n/undo 3\ne\n");
    let shown = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("the conversation has 4 turns, so nothing was dropped"), "{shown}");
    let end = "You: e Turn 2. You said: e Before that you said: a";
    assert!(shown.ends_with(end), "{shown}");
}

#[test]
fn what_stands_after_a_command_that_takes_nothing_is_not_lost() {
    let ended = piped(&Folder::new(), &[], "/new chapter\n/undo all\n/quit now\nhi\n");
    for wrong in
        ["/new takes nothing after its name", "/undo takes the number", "/quit takes nothing"]
    {
        assert!(ended.stdout.contains(wrong), "{wrong}: {}", ended.stdout);
    }
    assert!(ended.stdout.contains("Turn 1. You said: hi"), "{}", ended.stdout);
}

/// A chat with options, whose provider is named by variables: a stored conversation goes on with its own.
fn with_variables(folder: &Folder, provider: &Provider) -> Command {
    let words = ["chat", "--store", "chat.db", "--system", "First system."];
    let mut command = duologue(folder, &words);
    command.env("HOME", folder.path("")).env("DUOLOGUE_API_KEY", KEY);
    command.env("DUOLOGUE_BASE_URL", provider.base_url()).env("DUOLOGUE_MODEL", "first-model");
    command
}

/// A chat whose conversation has another provider, and in which "theirs" was answered.
fn theirs(folder: &Folder, provider: &Provider) -> Person {
    let url = provider.base_url();
    let model = ["--engine", "openai", "--model", "second-model", "--base-url", &url];
    let words = ["chat", "--store", "chat.db", "--system", "Second system."];
    let mut command = duologue(folder, &[&words[..], &model].concat());
    command.env("HOME", folder.path("")).env("DUOLOGUE_API_KEY", KEY);
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("theirs\r");
    person.answered("From the second.");
    person
}

fn resume_theirs(person: &mut Person) {
    person.sees("/help");
    person.types("/resume theirs\r");
    person.sees("theirs  (1 turn");
    person.types("\r");
}

/// A prompt is not sent to the provider of a conversation that the person did not go on with.
#[test]
fn a_new_conversation_inherits_nothing_of_one_that_did_not_begin() {
    let folder = Folder::new();
    let first = Provider::start(vec![says("From the first.")]);
    let second = Provider::start(vec![says("From the second.")]);
    let holder = theirs(&folder, &second);
    let mut person = Person::start(with_variables(&folder, &first));
    resume_theirs(&mut person);
    person.sees_words("goes on in the copy · Esc stays here");
    person.types(&format!("{ESC}/new\r"));
    person.sees("another conversation begins");
    person.types("hello\r");
    person.answered("From the first.");
    let request = first.wait_request(1).body;
    assert_eq!(request["model"], "first-model");
    assert_eq!(request["messages"][0]["content"], "First system.");
    assert_eq!(second.requests(), 1);
    for mut person in [person, holder] {
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

/// The models, the system prompt, and what `/new` inherits.
#[test]
fn a_conversation_that_goes_on_is_shown_with_what_it_was_begun_with() {
    let folder = Folder::new();
    let list = vec![Step::Status(200, Vec::new(), r#"{"data":[{"id":"other-large"}]}"#.to_owned())];
    let first = Provider::start(Vec::new());
    let second = Provider::start(vec![says("From the second."), list, says("A new one.")]);
    let mut holder = theirs(&folder, &second);
    holder.types("/quit\r");
    assert_eq!(holder.ends().0, 0);
    let mut person = Person::start(with_variables(&folder, &first));
    resume_theirs(&mut person);
    person.answered("From the second.");
    person.types("/system\r");
    person.sees("Second system.");
    person.types("/model\r");
    person.sees("other-large");
    assert_eq!(second.wait_request(2).path, "/v1/models");
    person.types(&format!("{ESC}/new\r"));
    person.sees("another conversation begins");
    person.types("hello\r");
    person.answered("A new one.");
    assert_eq!(second.wait_request(3).body["model"], "second-model");
    assert_eq!(first.requests(), 0);
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn ctrl_c_where_lines_are_typed_is_not_the_end_of_input() {
    let folder = Folder::new();
    let (status, seen) = with_terminal(80, &mut in_session(&folder, &PLAIN), |shown| {
        shown.write_all(b"one\r").expect("it is typed");
        let mut seen = read_until(shown, "You said: one");
        shown.write_all(CTRL_C).expect("it is typed");
        seen += &read_until(shown, "Ctrl-C again");
        shown.write_all(b"two\r").expect("it is typed");
        seen += &read_until(shown, "Turn 2. You said: two");
        shown.write_all(CTRL_C).expect("it is typed");
        seen += &read_until(shown, "Ctrl-C again");
        shown.write_all(CTRL_C).expect("it is typed");
        seen
    });
    assert_eq!(status, Some(0), "{seen}");
}

#[test]
fn text_that_a_forced_terminal_leaves_unread_is_reported() {
    let folder = Folder::new();
    let script = format!("echo text | {} --force-interactive", PLAIN.join(" "));
    let (status, seen) =
        with_terminal(200, &mut in_session(&folder, &["sh", "-c", &script]), |shown| {
            let seen = read_until(shown, "standard input is not read");
            shown.write_all(b"hi\r").expect("it is typed");
            let seen = seen + &read_until(shown, "You said: hi");
            shown.write_all(b"/quit\r").expect("it is typed");
            seen
        });
    assert_eq!(status, Some(0), "{seen}");
}
