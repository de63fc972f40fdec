//! Lists under the line of a chat: commands and files.

use crate::chat::{Person, chat};
use crate::server::Folder;
use std::fs;

const DOWN: &str = "\u{1b}[B";

#[test]
fn a_slash_lists_the_commands_and_an_arrow_key_chooses() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("/");
    person.sees("/resume [WORDS]  choose a stored conversation");
    person.types("tls");
    person.sees("> /tls\n  /tools   list the tool servers");
    person.types(DOWN);
    person.sees("\n> /tools");
    person.types("\r");
    person.sees("there are no tool servers");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Files at any depth are found by some characters of their path.
#[test]
fn an_at_sign_lists_files_below_the_folder() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("notes/of april")).expect("a folder");
    fs::write(folder.path("notes/of april/plans.md"), "plant trees").expect("a file");
    fs::write(folder.path("other.txt"), "nothing").expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("read @aplans");
    person.sees("  \"notes/of april/plans.md\"");
    person.types(DOWN);
    person.sees("> \"notes/of april/plans.md\"");
    person.types("\r");
    person.sees("> read @\"notes/of april/plans.md\"");
    person.types("\r");
    person.answered("You said: read");
    person.sees("attached: plans.md");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}
