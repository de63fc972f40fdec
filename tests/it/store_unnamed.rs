//! Conversations of a person who has named no store.

use crate::chat::{Person, chat};
use crate::once::{Ended, Once, duologue};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// The default store of these tests, in their folder.
const STORE: &str = "data/duologue/sessions.db";

/// `duologue <words>`, which has a default store.
fn with_default(folder: &Folder, words: &[&str]) -> Command {
    let mut command = duologue(folder, words);
    command.env_remove("DUOLOGUE_NO_STORE").env("DUOLOGUE_ENGINE", "echo");
    command
}

#[track_caller]
fn run(folder: &Folder, words: &[&str]) -> Ended {
    let mut once = Once::start(with_default(folder, words));
    once.close_stdin();
    once.finish()
}

/// A chat in which `lines` are typed.
fn talk(mut command: Command, lines: &str) -> Ended {
    command.env_remove("DUOLOGUE_NO_STORE").env("DUOLOGUE_ENGINE", "echo");
    let mut once = Once::start(command);
    once.write(lines);
    once.finish()
}

#[test]
fn exec_goes_on_with_the_last_conversation_of_its_folder() {
    let folder = Folder::new();
    let begun = run(&folder, &["exec", "-c", "one"]);
    assert_eq!((begun.status, &*begun.stdout), (0, "Turn 1. You said: one\n"), "{begun:?}");
    // The first use says where it is, and only the first.
    assert_eq!(begun.stderr.lines().count(), 1, "{begun:?}");
    assert!(begun.stderr.contains(&folder.name(STORE)), "{begun:?}");
    let mode = fs::metadata(folder.path(STORE)).expect("the store").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = run(&folder, &["exec", "-c", "and then?"]);
    assert_eq!((again.status, &*again.stderr), (0, ""), "{again:?}");
    assert!(again.stdout.contains("Before that you said: one"), "{again:?}");
    // Another folder has conversations of its own.
    fs::create_dir(folder.path("other")).expect("a folder");
    let mut command = with_default(&folder, &["exec", "-c", "two"]);
    command.current_dir(folder.path("other"));
    let other = Once::start(command).finish();
    assert!(other.stdout.starts_with("Turn 1."), "{other:?}");
    assert!(other.stderr.contains("so a new one begins"), "{other:?}");
    let named = run(&folder, &["exec", "--session", "plan", "three"]);
    assert_eq!((&*named.stdout, &*named.stderr), ("Turn 1. You said: three\n", ""), "{named:?}");
    let named = run(&folder, &["exec", "--session", "plan", "four"]);
    assert!(named.stdout.contains("Before that you said: three"), "{named:?}");
    // The other commands look there, too.
    let listed = run(&folder, &["sessions", "list"]).stdout;
    assert!(listed.lines().count() == 4 && listed.contains("plan "), "{listed}");
    assert!(run(&folder, &["sessions", "show", "pl"]).stdout.starts_with("user: three\n"));
    let resumed = run(&folder, &["exec", "--resume", "--session-id", "pl", "five"]);
    assert!(resumed.stdout.contains("Before that you said: four"), "{resumed:?}");
    let forked = run(&folder, &["sessions", "fork", "plan", "--as", "copy"]);
    assert_eq!((forked.status, &*forked.stdout), (0, "copy\n"), "{forked:?}");
}

#[test]
fn a_command_file_has_sessions_too() {
    let folder = Folder::new();
    fs::write(folder.path("ask.yaml"), "name: ask\nprompt: again\n").expect("a file");
    for turn in ["Turn 1.", "Turn 2."] {
        let ended = run(&folder, &["run-command", "ask.yaml", "--session", "s"]);
        assert!(ended.status == 0 && ended.stdout.starts_with(turn), "{ended:?}");
    }
    let once = run(&folder, &["run-command", "ask.yaml"]);
    assert!(once.stdout.starts_with("Turn 1."), "{once:?}");
    let ended = talk(duologue(&folder, &["run-command", "ask.yaml", "--chat"]), "more\n");
    assert!(ended.stderr.contains("to go on with this conversation"), "{ended:?}");
    assert_eq!(run(&folder, &["sessions", "list"]).stdout.lines().count(), 3);
}

#[test]
fn a_chat_is_stored_and_says_how_to_go_on() {
    let folder = Folder::new();
    let begun = talk(chat(&folder, &[]), "one\n");
    assert_eq!(begun.status, 0, "{begun:?}");
    assert_eq!(begun.stderr.matches(&folder.name(STORE)).count(), 1, "{begun:?}");
    let command = begun.stderr.lines().last().and_then(|line| line.split_once("duologue "));
    let words: Vec<_> = command.expect("the command").1.split(' ').collect();
    assert!(!words.contains(&"--store"), "{words:?}");
    let again = talk(duologue(&folder, &words), "two\n");
    assert!(again.stdout.contains("Turn 2. You said: two"), "{again:?}");
    let named = talk(chat(&folder, &["--session", "plan"]), "three\n");
    assert!(!named.stderr.contains(STORE), "it was said before: {named:?}");
    let named = talk(chat(&folder, &["--session", "plan"]), "four\n");
    assert!(named.stdout.contains("Before that you said: three"), "{named:?}");
}

/// With a screen, the state of a session that begins is awaited like that of one that goes on.
#[test]
fn a_person_begins_a_named_chat_and_goes_on_with_it() {
    let folder = Folder::new();
    for (prompt, answer) in [("one", "Turn 1. You said: one"), ("two", "Turn 2. You said: two")] {
        // The first prompt is sent once the state is there.
        let mut command = chat(&folder, &["--session", "plan", prompt]);
        command.env_remove("DUOLOGUE_NO_STORE");
        let mut person = Person::start(command);
        person.answered(answer);
        person.types("/new\r");
        person.sees("another conversation begins");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn nothing_is_stored_without_being_asked_for() {
    let folder = Folder::new();
    let plain = run(&folder, &["exec", "one"]);
    assert_eq!((plain.status, &*plain.stderr), (0, ""), "{plain:?}");
    assert_eq!(run(&folder, &["exec", "--session-id", "s", "one"]).stderr, "");
    let mut rpc = Once::start(with_default(&folder, &["rpc", "--session-id", "s"]));
    rpc.write("{\"submit\":{\"prompt\":\"hi\"}}\n");
    assert_eq!(rpc.finish().stderr, "");
    let unstored = talk(chat(&folder, &["--no-store"]), "one\n");
    assert!(unstored.status == 0 && !unstored.stderr.contains("go on"), "{unstored:?}");
    // The option also wins over a variable, which is for sessions and chats alone.
    for words in [&["exec", "one"][..], &["exec", "--no-store", "--session-id", "s", "one"]] {
        let mut command = with_default(&folder, words);
        command.env("DUOLOGUE_STORE", folder.path("mine.db"));
        assert_eq!(Once::start(command).finish().stderr, "");
    }
    let mut command = chat(&folder, &["--no-store"]);
    command.env("DUOLOGUE_STORE", folder.path("mine.db"));
    assert_eq!(talk(command, "one\n").status, 0);
    assert!(!folder.path("data").exists() && !folder.path("mine.db").exists());
    let mut command = chat(&folder, &[]);
    command.env("DUOLOGUE_STORE", folder.path("mine.db"));
    let stored = talk(command, "one\n");
    assert!(stored.stderr.contains("--store"), "{stored:?}");
    assert!(folder.path("mine.db").exists() && !folder.path("data").exists());
    for (words, why) in [
        (&["exec", "hi", "-c", "--no-store"][..], "--no-store stores nothing"),
        (&["exec", "hi", "--store", "a.db", "--no-store"], "--no-store stores nothing"),
    ] {
        let ended = run(&folder, words);
        assert!(ended.status == 2 && ended.stderr.contains(why), "{words:?}: {ended:?}");
    }
}

/// A home that can't be written is no reason not to chat.
#[test]
fn a_default_store_that_can_not_be_used_refuses_no_chat() {
    let folder = Folder::new();
    fs::write(folder.path("data"), "").expect("a file");
    let ended = talk(chat(&folder, &[]), "one\n");
    assert!(ended.status == 0 && ended.stdout.contains("You said: one"), "{ended:?}");
    assert_eq!(ended.stderr.matches("this conversation is not stored: ").count(), 1, "{ended:?}");
    // What was asked for is an error.
    for words in [&["chat", "-c"][..], &["exec", "-c", "hi"], &["exec", "--session", "s", "hi"]] {
        let ended = talk(duologue(&folder, words), "");
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
    }
    let mut command = chat(&folder, &[]);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    let homeless = talk(command, "one\n");
    assert_eq!((homeless.status, &*homeless.stderr), (0, ""), "{homeless:?}");
}

/// As where a service has /dev/null for its home.
#[test]
fn a_default_store_in_what_is_no_folder_is_empty() {
    let folder = Folder::new();
    fs::write(folder.path("data"), "").expect("a file");
    let listed = run(&folder, &["sessions", "list", "--output", "json"]);
    let document: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((listed.status, &document["data"]), (0, &json!([])), "{listed:?}");
    for (words, status) in [(&["list"][..], 0), (&["search", "hi"], 0), (&["show", "keep"], 1)] {
        let ended = run(&folder, &[&["sessions"], words].concat());
        assert!(
            ended.status == status && !ended.stderr.contains("can't be"),
            "{words:?}: {ended:?}"
        );
    }
}

/// A place that can't be looked at, as where HOME is another user's, may have all conversations.
#[test]
fn a_default_store_that_can_not_be_looked_at_does_not_count_as_empty() {
    let folder = Folder::new();
    // Modes don't keep root out, but a loop does.
    symlink("data", folder.path("data")).expect("a link");
    for words in [&["list"][..], &["search", "hi"], &["show", "keep"], &["export", "keep"]] {
        let ended = run(&folder, &[&["sessions"], words].concat());
        assert_eq!((ended.status, &*ended.stdout), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("can't be opened"), "{words:?}: {ended:?}");
    }
    let listed = run(&folder, &["sessions", "list", "--output", "json"]);
    let document: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((listed.status, &document["error"]["code"]), (2, &json!("store_failed")));
    let named = run(&folder, &["exec", "--session", "keep", "hi"]);
    assert!(named.status == 2 && !named.stderr.contains("which is made now"), "{named:?}");
}

/// What can't be resumed is not said to be stored.
#[test]
fn a_session_that_is_not_there_makes_no_store() {
    let folder = Folder::new();
    for words in [&["exec", "--resume", "hi"][..], &["exec", "--resume", "--session-id", "s", "hi"]]
    {
        let ended = run(&folder, words);
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        assert!(!ended.stderr.contains("which is made now"), "{ended:?}");
        assert!(!folder.path("data").exists(), "{words:?}");
    }
}

/// The variable names a session for commands that name none in another way.
#[test]
fn a_session_id_of_a_variable_is_not_for_continue() {
    let folder = Folder::new();
    let exec = |words: &[&str]| {
        let mut command = duologue(&folder, &[&["exec", "--engine", "echo"], words].concat());
        command.env("DUOLOGUE_SESSION_ID", "other");
        talk(command, "")
    };
    assert_eq!(exec(&["--session", "own", "one"]).status, 0);
    let ended = exec(&["-c", "two"]);
    assert!(ended.status == 0 && ended.stdout.contains("Turn 2."), "{ended:?}");
    let typed = exec(&["-c", "--session-id", "own", "three"]);
    assert!(typed.status == 2 && typed.stderr.contains("leave one of them out"), "{typed:?}");
}
