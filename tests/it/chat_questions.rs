//! How a person at a terminal answers the questions about tool calls.

use crate::chat::{Person, chat};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::process::{Process, eventually};
use crate::server::Folder;
use serde_json::json;
use std::fs;

/// The options of a chat with the files of [`folder_with_calls`].
const OPTIONS: [&str; 6] =
    ["--mcp-config", "servers", "--echo-script", "script", "--debug-events-jsonl", "frames"];

/// A chat whose model calls a tool with each of these texts at once, and then says "Done."
fn chat_with_calls(mark: &str, texts: &[&str]) -> (Folder, Person) {
    let folder = folder_with_calls(mark, texts, "");
    let person = Person::start(chat(&folder, &OPTIONS));
    person.sees("/help");
    (folder, person)
}

/// The files of a chat whose model says `text`, calls a tool with each of these texts at once, and then says "Done."
fn folder_with_calls(mark: &str, texts: &[&str], text: &str) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("servers"), config(mark, &["echo"], &json!({}))).expect("a file");
    let call = |text: &&str| json!({"name": "act", "arguments": {"text": text}});
    let calls: Vec<_> = texts.iter().map(call).collect();
    let calls = json!({"text": text, "tools": calls});
    let script = format!("{calls}\n{}\n", json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    folder
}

fn leaves(mut person: Person, mark: &str) {
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    assert_gone(mark);
}

/// The keys are shown once they count.
#[test]
fn one_key_answers_while_the_line_is_empty() {
    let mark = mark();
    let (_folder, mut person) = chat_with_calls(&mark, &["one", "two"]);
    person.types("go\r");
    person.sees("Enter yes · Ctrl-A all 2 · Backspace no");
    person.types("\r");
    person.sees("act: allowed");
    person.sees("Enter yes · Backspace no");
    person.types("\u{7f}");
    person.answered("Done.");
    let shown = person.screen().text();
    assert!(shown.contains("act: denied · {\"text\":\"two\"}"), "{shown}");
    leaves(person, &mark);
}

/// A key that is pressed as the person's editor ends is no answer to a question that came meanwhile.
#[test]
fn no_key_answers_a_question_that_came_while_an_editor_had_the_terminal() {
    let mark = mark();
    let folder = folder_with_calls(&mark, &["one"], "");
    // The key stays a carriage return until the chat reads it.
    let editor = "stty raw -echo
until grep -q ChatProviderCallFinished frames; do sleep 0.01; done
sleep 1.1
echo the editor waits
until test -e typed; do sleep 0.01; done
";
    fs::write(folder.path("editor"), editor).expect("a file");
    let mut command = chat(&folder, &OPTIONS);
    command.env("EDITOR", "sh ./editor");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("go\r\u{18}\u{5}");
    person.sees("the editor waits");
    person.types("\r");
    fs::write(folder.path("typed"), "").expect("a file");
    person.sees_words("Ctrl-G answers; one key alone does");
    person.types("\u{7}");
    person.sees("r no, and why");
    person.types("n");
    person.answered("Done.");
    let shown = person.screen().text();
    assert!(shown.contains("act: denied") && !shown.contains("act: allowed"), "{shown}");
    leaves(person, &mark);
}

/// On the whole screen, whoever looks at an earlier part sees the call that is asked about.
#[test]
fn a_question_shows_its_call_to_who_has_scrolled() {
    let mark = mark();
    let text: String = (0..40).map(|number| format!("line {number}\n\n")).collect();
    let two = "two, with more of the arguments than a row of the question has room for, to the end";
    let folder = folder_with_calls(&mark, &["one", two], &text);
    let options = [&OPTIONS[..], &["--fullscreen"]].concat();
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\r");
    person.sees("Ctrl-G to answer");
    person.types("\u{1b}[5~");
    person.sees("an earlier part is shown");
    person.types("\u{7}");
    person.sees("r no, and why");
    person.types("y");
    person.sees_words("room for, to the end\"}");
    assert!(!person.screen().text().contains("an earlier part is shown"));
    person.types("\u{7}n");
    person.answered("Done.");
    leaves(person, &mark);
}

#[test]
fn parallel_calls_are_allowed_together() {
    let mark = mark();
    let (_folder, mut person) = chat_with_calls(&mark, &["one", "two", "three"]);
    person.types("go\r");
    person.sees("Ctrl-A all 3");
    person.types("\u{1}");
    person.sees("May these 3 calls run?");
    person.sees("Ctrl-A only the first");
    let shown = person.screen().text();
    assert_eq!(shown.matches("asks to run with").count(), 3, "{shown}");
    person.types("\r");
    person.answered("Done.");
    leaves(person, &mark);
}

#[test]
fn the_model_reads_why_a_call_was_denied() {
    let mark = mark();
    let (folder, mut person) = chat_with_calls(&mark, &["one"]);
    person.types("go\r");
    person.sees("Ctrl-G to answer");
    person.types("\u{7}");
    person.sees("r no, and why");
    person.types("r");
    person.sees("write why not");
    person.types("only in the morning\r");
    person.answered("Done.");
    leaves(person, &mark);
    let frames = fs::read_to_string(folder.path("frames")).expect("the debug file");
    let is_result = |line: &&str| line.contains("ChatToolResultReady");
    let result = frames.lines().find(is_result).expect("a result");
    assert!(result.contains("only in the morning"), "{result}");
}

/// A bell, or a notification where it was asked for, and only if the window is not looked at.
#[test]
fn a_window_that_nobody_looks_at_says_that_something_waits() {
    let check = |options: &[&str], keys: &str, has_bell: bool, notified: bool| {
        let folder = Folder::new();
        let mut person = Person::start(chat(&folder, options));
        person.sees("/help");
        person.types(keys);
        person.answered("You said: hi");
        person.types("bye\r");
        person.answered("You said: bye");
        let bytes = person.bytes();
        let notice = "\u{1b}]9;duologue: the answer is there\u{7}";
        assert_eq!(bytes.contains(notice), notified, "{options:?} {bytes:?}");
        let bell = bytes.replace(notice, "").matches('\u{7}').count();
        assert_eq!(bell, usize::from(has_bell), "{options:?} {bytes:?}");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    };
    let away = "hi\r\u{1b}[O";
    check(&["--echo-delay-ms", "100"], away, true, false);
    check(&["--echo-delay-ms", "100", "--bell", "notification"], away, false, true);
    check(&["--echo-delay-ms", "100", "--bell", "off"], away, false, false);
    check(&[], "hi\r", false, false);
}

#[test]
fn a_tool_server_is_started_again() {
    let mark = mark();
    let (_folder, mut person) = chat_with_calls(&mark, &[]);
    person.types("/mcp\r");
    person.sees("echo (");
    person.types("/tools\r");
    person.sees("  act");
    let before = Process::marked(&mark);
    assert!(!before.is_empty());
    person.types("/mcp restart echo\r");
    eventually("other processes run", || {
        let after = Process::marked(&mark);
        let is_old = |process: &Process| before.iter().any(|other| other.0 == process.0);
        (!after.is_empty() && !after.iter().any(is_old)).then_some(())
    });
    person.types("/tools\r");
    eventually("its tools are listed again", || {
        (person.screen().text().matches("  act").count() == 2).then_some(())
    });
    leaves(person, &mark);
}
