//! The session in `docs/chat.md` is what a terminal shows, and its tables list the commands there are.

use crate::chat::{Person, chat};
use crate::once::{Once, duologue, run};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;

const DOCUMENT: &str = include_str!("../../docs/chat.md");

const ANSWER: &str = "# Listing ports\n\nUse one of these:\n\n- `ss` on Linux\n- `lsof` on macOS\n\n```sh\nss -tlnp\n```\n";

#[test]
fn the_recorded_session_is_what_a_terminal_shows() {
    let folder = Folder::new();
    let call = json!({"reasoning": "They want ss.", "text": ANSWER});
    fs::write(folder.path("script"), format!("{call}\n")).expect("a file");
    let in_default_store = |more: &[&str]| {
        let mut command = chat(&folder, &[&["--session", "ports"], more].concat());
        command.env_remove("DUOLOGUE_NO_STORE");
        Person::start(command)
    };
    // The first answer is the script's; the second prompt is asked in another chat, without one.
    let mut person = in_default_store(&["--echo-script", "script", "How do I list ports?"]);
    person.answered("ss -tlnp");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let mut person = in_default_store(&[]);
    person.sees("ss -tlnp");
    person.types("Thanks\r");
    person.answered("Before that you said: How do I list ports?");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let recorded = DOCUMENT.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(screen.text().trim_end(), recorded.expect("the session").trim_end());
}

#[test]
fn the_commands_in_the_document_are_those_of_help() {
    let folder = Folder::new();
    let mut once = Once::start(duologue(&folder, &["chat", "--engine", "echo"]));
    once.write("/help\n");
    let help = once.finish().stdout;
    let mut count = 0;
    for line in help.lines().filter(|line| line.starts_with("  /")) {
        let name = line.split_whitespace().next().unwrap_or_default();
        let is_listed =
            DOCUMENT.lines().any(|row| row.starts_with('|') && row.contains(&format!("`{name}")));
        assert!(is_listed, "{name}");
        count += 1;
    }
    assert!(count >= 10, "{help}");
    // Keys are listed where there are some.
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("not stored · /help");
    person.types("/help\r");
    person.sees("PageUp");
    let screen = person.screen().text();
    let keys: Vec<_> = screen.lines().filter_map(|line| line.strip_prefix("  Ctrl-")).collect();
    assert!(keys.len() >= 5, "{screen}");
    for word in keys {
        let key = format!("Ctrl-{}", &word[..1]);
        assert!(DOCUMENT.contains(&key), "{key}");
    }
}

/// A program that starts a chat reads the same statuses in the manifest as a person in the document.
#[test]
fn the_statuses_of_a_chat_are_those_of_the_manifest() {
    let manifest: Value = serde_json::from_str(&run(&Folder::new(), &["--manifest"]).stdout)
        .expect("the manifest is JSON");
    let commands = manifest["commands"].as_array().expect("commands");
    let chat = commands.iter().find(|command| command["name"] == "chat").expect("chat");
    let codes = chat["exit_codes"].as_array().expect("statuses").iter();
    let codes: Vec<_> = codes.filter_map(|status| status["code"].as_u64()).collect();
    let (_, section) = DOCUMENT.split_once("## Exit status").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let numbers = rows.flat_map(|cell| cell.split(", ")).filter_map(|number| number.parse().ok());
    let mut documented: Vec<u64> = numbers.collect();
    documented.sort_unstable();
    assert_eq!(codes, documented);
}
