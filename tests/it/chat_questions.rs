//! How a person at a terminal answers the questions about tool calls.

use crate::chat::{Person, chat};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::process::{Process, eventually};
use crate::server::Folder;
use serde_json::json;
use std::fs;

/// A chat whose model calls a tool with each of these texts at once, and then says "Done."
fn chat_with_calls(mark: &str, texts: &[&str]) -> (Folder, Person) {
    let folder = Folder::new();
    fs::write(folder.path("servers"), config(mark, &["echo"], &json!({}))).expect("a file");
    let call = |text: &&str| json!({"name": "act", "arguments": {"text": text}});
    let calls: Vec<_> = texts.iter().map(call).collect();
    let script = format!("{}\n{}\n", json!({"tools": calls}), json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    let options =
        ["--mcp-config", "servers", "--echo-script", "script", "--debug-events-jsonl", "frames"];
    let person = Person::start(chat(&folder, &options));
    person.sees("/help");
    (folder, person)
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
