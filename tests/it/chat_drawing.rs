//! Chats in which more is drawn than the screen has room for.

use crate::chat::{Person, chat};
use crate::process::eventually;
use crate::server::Folder;
use std::fs;

/// A table that is open for longer than the screen is high is there once in the end, and nothing else.
#[test]
fn a_block_that_is_taller_than_the_screen_is_printed_once() {
    const TABLE: usize = 45;
    let folder = Folder::new();
    let rows: String = (0..TABLE).map(|number| format!("| row {number} | x |\n")).collect();
    let text = format!("| name | sign |\n|---|---|\n{rows}\nafter it\n");
    fs::write(folder.path("table"), text).expect("a file");
    let options = ["--echo-answer", "table", "--echo-delay-ms", "20"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\r");
    person.answered("after it");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let shown = screen.text();
    for number in 0..TABLE {
        let count =
            shown.lines().filter(|line| line.starts_with(&format!("row {number} "))).count();
        assert_eq!(count, 1, "row {number}: {shown}");
    }
    assert!(!shown.contains("Esc stops"), "{shown}");
}

/// An answer that is longer than the screen scrolls while it streams; once the person has scrolled, what is
/// on the screen stays, whatever comes.
#[test]
fn a_long_answer_scrolls_and_stays_where_the_person_scrolled() {
    let folder = Folder::new();
    let text: String = (0..300).map(|number| format!("line {number}\n\n")).collect();
    fs::write(folder.path("long"), text).expect("a file");
    let options = ["--fullscreen", "--echo-answer", "long", "--echo-delay-ms", "5"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\r");
    person.sees("line 30");
    assert!(!person.screen().text().contains("line 0\n"), "{}", person.screen().text());
    person.types("\u{1b}[5~");
    person.sees("an earlier part is shown");
    let rows = |person: &Person| {
        let shown = person.screen().text();
        let lines = shown.lines().filter(|line| line.starts_with("line "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let seen = rows(&person);
    assert!(seen.len() > 5, "{seen:?}");
    let written = person.bytes().len();
    eventually("the answer goes on", || (person.bytes().len() > written + 500).then_some(()));
    assert_eq!(rows(&person), seen);
    person.types("\u{1b}[1;5F");
    person.answered("line 299");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn the_whole_screen_is_used_and_given_back() {
    let folder = Folder::new();
    let text: String = (0..100).map(|number| format!("line {number}\n\n")).collect();
    fs::write(folder.path("long"), text).expect("a file");
    let mut person = Person::start(chat(&folder, &["--fullscreen", "--echo-answer", "long"]));
    person.sees("/help");
    person.types("go\r");
    person.sees("line 99");
    assert!(!person.screen().text().contains("line 50"));
    person.types("\u{1b}[5~\u{1b}[5~\u{1b}[5~");
    person.sees("an earlier part is shown");
    assert!(!person.screen().text().contains("line 99"));
    person.types("/save answer\r");
    person.sees("answer was written");
    assert!(!person.screen().text().contains("an earlier part is shown"));
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!((status, screen.text().as_str()), (0, ""));
}
