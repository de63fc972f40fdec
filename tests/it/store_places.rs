//! The file of a store: however it is named it is one, and what is no store is refused.

use crate::frames::errors;
use crate::once::{Once, duologue, run};
use crate::oracle::Answers;
use crate::server::{Folder, echo};
use crate::store::{resumed, stored, wait_state};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// `duologue exec` with the echo engine.
fn exec(folder: &Folder, words: &[&str]) -> crate::once::Ended {
    run(folder, &[&["exec", "--engine", "echo"], words].concat())
}

#[test]
fn turns_and_timeline_in_one_file_are_one_store() {
    let folder = Folder::new();
    let store = folder.name("store");
    symlink("store", folder.path("link")).expect("a link to a file that is not there");
    let (dotted, link) = (folder.name("./store"), folder.name("link"));
    for (number, other) in [&dotted, &link, &store].into_iter().enumerate() {
        let id = format!("s{number}");
        let words = ["--turns-db", &store, "--timeline-db", other, "--session-id", &id, "hello"];
        let ended = exec(&folder, &words);
        assert_eq!((ended.status, &*ended.stderr), (0, ""), "{other}");
        let again = exec(&folder, &["--store", other, "--session-id", &id, "--resume", "again"]);
        assert!(again.stdout.contains("Before that you said: hello"), "{}", again.stdout);
    }
}

#[test]
fn a_session_is_held_under_each_name_of_its_store() {
    let folder = Folder::new();
    let mut holder = stored(&folder, &[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    symlink("store", folder.path("link")).expect("a link");
    let link = folder.name("link");
    let args = ["--store", &link, "--session-id", "s", "--resume"];
    let ended = echo(&args).start().finish_with(75, Answers::AllAndFarewell);
    assert_eq!(errors(&ended.frames, ""), ["session_locked"]);
    let ended = run(&folder, &["sessions", "delete", "s", "--store", &link]);
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("another process holds the session"), "{}", ended.stderr);
    holder.finish();
}

#[test]
fn a_file_with_two_names_is_not_written() {
    let folder = Folder::new();
    stored(&folder, &[]).start().finish();
    fs::hard_link(folder.path("store"), folder.path("other")).expect("a link");
    for name in ["store", "other"] {
        let ended = exec(&folder, &["--store", &folder.name(name), "hello"]);
        assert_eq!(ended.status, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("2 names (hard links)"), "{}", ended.stderr);
    }
    fs::remove_file(folder.path("other")).expect("a file");
    assert_eq!(exec(&folder, &["--store", &folder.name("store"), "hello"]).status, 0);
}

/// SQLite itself takes these as a database in memory, or as an address.
#[test]
fn a_name_that_means_something_to_sqlite_is_a_file() {
    let folder = Folder::new();
    for name in [":memory:", "./file:x?mode=memory", "a?b#c%20d"] {
        let words = ["exec", "--engine", "echo", "--store", name, "--session-id", "s", "hello"];
        let mut command = crate::once::duologue(&folder, &words);
        let status = command.current_dir(folder.path(".")).output().expect("it runs").status;
        assert!(status.success(), "{name}");
        assert!(fs::metadata(folder.path(name)).is_ok_and(|about| about.len() > 0), "{name}");
    }
}

/// Editors, variables in quotes and files of services have no shell that replaces it.
#[test]
fn no_folder_is_made_that_is_called_as_a_home_is() {
    let folder = Folder::new();
    for (words, status) in [
        (&["exec", "hello", "--engine", "echo", "--store", "~/x.db"][..], 2),
        (&["exec", "hello", "--engine", "echo", "--debug-events-jsonl", "~/x.jsonl"], 2),
        (&["sessions", "list", "--turns-db", "~/x.db"], 2),
        (&["completions", "bash", "--out", "~/x"], 2),
        (&["man", "--out", "~/x"], 2),
        (&["schema", "--out", "~/x"], 2),
    ] {
        let ended = run(&folder, words);
        assert_eq!(ended.status, status, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("write the whole path"), "{words:?}: {ended:?}");
        assert!(!folder.path("~").exists(), "{words:?}");
    }
    fs::create_dir(folder.path("~")).expect("a folder");
    assert_eq!(exec(&folder, &["--store", "~/x.db", "hello"]).status, 0);
}

/// As for `--turns-dsn`.
#[test]
fn a_url_of_a_file_names_the_file_in_it() {
    let folder = Folder::new();
    for (option, url, name) in [
        ("--store", "file:a.db", "a.db"),
        ("--turns-db", "file:b%20b.db?_journal_mode=WAL", "b b.db"),
    ] {
        let ended = exec(&folder, &[option, url, "--session-id", "s", "hello"]);
        assert_eq!((ended.status, &*ended.stderr), (0, ""), "{url}");
        let again = [option, name, "--session-id", "s", "--resume", "again"];
        let again = exec(&folder, &again);
        assert!(again.stdout.contains("Before that you said: hello"), "{url}: {again:?}");
        assert!(!folder.path(url).exists(), "{url}");
    }
}

/// Also a session that has no name yet is not begun when it can't be stored.
#[test]
fn what_can_not_be_a_store_is_an_error_before_anything_is_asked() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).expect("a folder");
    fs::write(folder.path("notes"), "hello\n".repeat(1000)).expect("a file");
    Connection::open(folder.path("foreign"))
        .and_then(|it| it.execute_batch("CREATE TABLE notes(text)"))
        .expect("a database");
    let pipe = folder.fifo("pipe");
    let [dir, notes, foreign] = ["folder", "notes", "foreign"].map(|name| folder.name(name));
    for (place, why) in [
        (&dir, "it is a folder"),
        (&notes, "is no store"),
        (&foreign, "another program"),
        (&pipe, "not a regular file"),
    ] {
        for more in [&[][..], &["--session-id", "s"], &["--session-id", "s", "--resume"], &["-c"]] {
            let ended = exec(&folder, &[&["--store", place, "hello"], more].concat());
            assert_eq!(ended.status, 2, "{place} {more:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(why), "{place} {more:?}: {}", ended.stderr);
        }
        let ended = run(&folder, &["sessions", "list", "--store", place]);
        assert_eq!(ended.status, 2, "{place}: {}", ended.stderr);
        let ended = echo(&["--store", place]).start().finish_with(2, Answers::AllAndFarewell);
        assert_eq!(errors(&ended.frames, ""), ["store_failed"], "{place}");
    }
    assert_eq!(fs::read_to_string(folder.path("notes")).expect("a file"), "hello\n".repeat(1000));
}

#[test]
fn a_store_that_is_removed_while_it_is_used_is_an_error_at_the_end_of_a_turn() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--extensions", "store"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    fs::remove_file(folder.path("store")).expect("a store");
    assert_eq!(server.turn("r2", "two"), "ok");
    let ended = server.finish();
    assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
    assert!(ended.stderr.contains("was removed or replaced"), "{}", ended.stderr);
}

/// A session in which nothing was said is not gone on with.
#[test]
fn continue_takes_the_last_session_in_which_something_was_said() {
    let folder = Folder::new();
    let store = folder.name("store");
    assert_eq!(exec(&folder, &["--store", &store, "one"]).status, 0);
    let mut silent = stored(&folder, &[]).start();
    let tools = r#"{"requestId":"t","declareTools":{"tools":[{"name":"sum"}],"revision":1}}"#;
    silent.send(tools);
    assert_eq!(silent.wait_done("t"), "ok");
    silent.finish();
    let answer = exec(&folder, &["--store", &store, "-c", "two"]).stdout;
    assert!(answer.contains("Before that you said: one"), "{answer}");
}

/// The store of a person who wants everything kept, in each folder.
#[test]
fn continue_goes_on_in_the_store_that_the_variable_names() {
    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|name| {
        fs::create_dir(folder.path(name)).expect("a folder");
        folder.path(name)
    });
    let exec = |place: &Path, words: &[&str]| {
        let words = [&["exec", "--engine", "echo"], words].concat();
        let mut command = duologue(&folder, &words);
        command.current_dir(place).env("DUOLOGUE_STORE", folder.name("all/store"));
        Once::start(command).finish()
    };
    // A prompt of no session is not stored because of a variable.
    assert_eq!(exec(&one, &["hello"]).status, 0);
    assert!(!folder.path("all").exists(), "nothing is made");
    for (place, prompt) in [(&one, "in one"), (&two, "in two")] {
        let begun = exec(place, &["-c", prompt]);
        assert!(begun.status == 0 && begun.stdout.starts_with("Turn 1."), "{begun:?}");
        assert!(begun.stderr.contains("no session of this folder in the store"), "{begun:?}");
    }
    let answer = exec(&one, &["-c", "and now?"]).stdout;
    assert!(answer.contains("Before that you said: in one"), "{answer}");
    let answer = exec(&two, &["--continue", "and now?"]).stdout;
    assert!(answer.contains("Before that you said: in two"), "{answer}");
    // A program that names no session wants one that there is.
    let ended = exec(&folder.path(""), &["-c", "hello", "--rpc"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    let why = "leave --continue out to begin one";
    assert!(ended.stdout.contains("no session of this folder") && ended.stdout.contains(why));
    let ended = exec(&one, &["-c", "--session-id", "s", "hello"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("use --resume with --session-id"), "{ended:?}");
    // An empty variable names no store.
    let mut command = duologue(&folder, &["exec", "--engine", "echo", "-c", "hello"]);
    command.env("DUOLOGUE_STORE", "").env("DUOLOGUE_NO_STORE", "1");
    let ended = Once::start(command).finish();
    assert!(ended.status == 2 && ended.stderr.contains("--continue needs the store"), "{ended:?}");
    assert!(ended.stderr.contains("DUOLOGUE_NO_STORE turns"), "{ended:?}");
}

/// A clock that was put back by an hour does not make what is newer older.
#[test]
fn the_time_of_the_last_activity_never_goes_back() {
    let folder = Folder::new();
    let mut server = stored(&folder, &[]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.finish();
    let store = Connection::open(folder.path("store")).expect("a store");
    let updated = "SELECT updated_ms FROM sessions";
    let last_used = |store: &Connection| store.query_row(updated, [], |row| row.get::<_, i64>(0));
    let later = last_used(&store).expect("a row") + 3_600_000;
    store.execute("UPDATE sessions SET updated_ms = ?", [later]).expect("a row");
    drop(store);
    let mut server = resumed(&folder, &[]).start();
    wait_state(&mut server);
    assert_eq!(server.turn("r2", "two"), "ok");
    server.finish();
    let store = Connection::open(folder.path("store")).expect("a store");
    assert_eq!(last_used(&store), Ok(later));
}

/// A single run has no frame for it.
#[test]
fn a_document_has_what_is_wrong_with_the_store_among_its_warnings() {
    let folder = Folder::new();
    let store = folder.name("store");
    let words = ["--store", &store, "--session-id", "s", "--output", "json"];
    let limit = "ulimit -f 100; exec \"$0\" \"$@\"";
    let long = "word ".repeat(20_000);
    let mut command = std::process::Command::new("bash");
    command.args(["-c", limit, env!("CARGO_BIN_EXE_duologue"), "exec", "--engine", "echo"]);
    let output = command.args(words).arg(&long).output().expect("it runs");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["ok"], true);
    assert_eq!(document["warnings"][0]["code"], "store_failed", "{}", document["warnings"]);
}

/// As on a full disk: SQLite can't make the index of the log.
#[test]
fn a_store_is_read_where_nothing_more_can_be_written() {
    let folder = Folder::new();
    let store = folder.name("store");
    assert_eq!(exec(&folder, &["--store", &store, "--session-id", "s", "hello"]).status, 0);
    for (words, status, shown) in [
        (&["list"][..], 0, "hello"),
        (&["export", "s"], 0, "You said: hello"),
        (&["delete", "s"], 1, "make room there"),
    ] {
        let limit = "ulimit -f 8; exec \"$0\" sessions \"$@\"";
        let mut command = std::process::Command::new("bash");
        command.args(["-c", limit, env!("CARGO_BIN_EXE_duologue")]).args(words);
        let output = command.args(["--store", &store]).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(shown), "{words:?}: {said}");
    }
}

/// What was made by somebody else, as `touch` does, has nothing in it.
#[test]
fn an_empty_file_is_a_store_without_sessions_and_becomes_private() {
    let folder = Folder::new();
    fs::write(folder.path("store"), "").expect("a file");
    let permissions = fs::Permissions::from_mode(0o666);
    fs::set_permissions(folder.path("store"), permissions).expect("it is there");
    let store = folder.name("store");
    let ended = run(&folder, &["sessions", "list", "--store", &store]);
    assert_eq!((ended.status, &*ended.stdout, &*ended.stderr), (0, "", ""));
    assert_eq!(exec(&folder, &["--store", &store, "hello"]).status, 0);
    let mode = fs::metadata(folder.path("store")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// One of two stores has everything.
#[test]
fn sessions_are_listed_and_found_where_one_of_two_stores_is_gone() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    let both = ["--turns-db", &turns, "--timeline-db", &timeline];
    assert_eq!(exec(&folder, &[&both[..], &["--session-id", "s", "needle"]].concat()).status, 0);
    let sessions = |words: &[&str]| run(&folder, &[&["sessions"], words, &both].concat());
    let searched = sessions(&["search", "needle"]).stdout;
    for gone in ["turns", "timeline"] {
        fs::rename(folder.path(gone), folder.path("kept")).expect("a file");
        let listed = sessions(&["list"]);
        assert!(listed.stdout.contains("needle"), "{gone}: {listed:?}");
        let found = sessions(&["search", "needle"]);
        assert_eq!(found.stdout, searched, "{gone}: {found:?}");
        for ended in [listed, found] {
            let told = format!("the store {} can't be opened", folder.name(gone));
            assert!(ended.status == 1 && ended.stderr.contains(&told), "{gone}: {ended:?}");
        }
        assert_eq!(sessions(&["show", "s"]).status, 0);
        fs::rename(folder.path("kept"), folder.path(gone)).expect("a file");
    }
    for gone in ["turns", "timeline"] {
        fs::remove_file(folder.path(gone)).expect("a file");
    }
    for words in [&["list"][..], &["search", "needle"], &["show", "s"]] {
        assert_eq!(sessions(words).status, 2, "{words:?}");
    }
}

/// `--continue` finds it there.
#[test]
fn a_session_that_one_of_two_stores_lacks_is_completed_with_its_folder() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    assert_eq!(exec(&folder, &["--store", &turns, "--session-id", "s", "needle"]).status, 0);
    assert_eq!(exec(&folder, &["--store", &timeline, "--session-id", "other", "hay"]).status, 0);
    let both = ["--turns-db", &turns, "--timeline-db", &timeline];
    let renamed = run(&folder, &[&["sessions", "rename", "s", "title"], &both[..]].concat());
    assert_eq!(renamed.status, 0, "{renamed:?}");
    let again = exec(&folder, &["--store", &timeline, "--continue", "again"]);
    assert!(again.stdout.contains("Before that you said: needle"), "{again:?}");
}

/// Its process was killed before it has made the tables.
#[test]
fn a_store_whose_making_was_cut_off_has_no_sessions() {
    let folder = Folder::new();
    let store = folder.name("store");
    let made = Connection::open(folder.path("store")).expect("a database");
    let mode = made.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
    mode.expect("a log");
    drop(made);
    let sessions =
        |words: &[&str]| run(&folder, &[&["sessions"], words, &["--store", &store]].concat());
    let listed = sessions(&["list"]);
    assert_eq!((listed.status, &*listed.stdout, &*listed.stderr), (0, "", ""));
    for words in [&["show", "s"][..], &["export", "s"], &["fork", "s"], &["rename", "s", "title"]] {
        let ended = sessions(words);
        assert_eq!((ended.status, &*ended.stdout), (1, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("s is not in the store"), "{words:?}: {ended:?}");
    }
    let found = sessions(&["search", "word"]);
    assert!(found.status < 2 && !found.stderr.contains("no such table"), "{found:?}");
    assert_eq!(exec(&folder, &["--store", &store, "--session", "s", "hello"]).status, 0);
    assert_eq!(sessions(&["show", "s"]).status, 0);
}

#[test]
fn a_file_that_is_written_is_not_the_store() {
    let folder = Folder::new();
    let store = folder.name("store");
    assert_eq!(exec(&folder, &["--store", &store, "--session-id", "s", "one"]).status, 0);
    for option in ["--debug-events-jsonl", "--log-file"] {
        let words = ["--store", &store, "--session-id", "s", "--resume", option, &store, "two"];
        let ended = exec(&folder, &words);
        assert_eq!(ended.status, 2, "{option}: {}", ended.stderr);
        assert!(ended.stderr.contains("is the same file as"), "{}", ended.stderr);
    }
    let words = ["--store", &store, "--session-id", "s", "--resume", "two"];
    assert!(exec(&folder, &words).stdout.contains("one"));
}

#[test]
fn errors_of_sessions_are_json_where_json_was_asked_for() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).expect("a folder");
    let place = folder.name("folder");
    for words in [&["list"][..], &["show", "s"], &["search", "word"], &["delete", "s"]] {
        let words = [&["sessions"], words, &["--store", &place, "--output", "json"]].concat();
        let ended = run(&folder, &words);
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(document["ok"], false, "{words:?}");
        assert!(document["error"]["message"].is_string(), "{words:?}");
        assert_ne!((ended.status, &*ended.stderr), (0, ""), "{words:?}");
    }
}

#[test]
fn fifty_processes_that_make_one_store_at_once_all_use_it() {
    let folder = Folder::new();
    let place = folder.name("new/store");
    let words = ["exec", "--engine", "echo", "--store", &place, "hello"];
    let mut all: Vec<_> = (0..50).map(|_| Once::start(duologue(&folder, &words))).collect();
    all.iter_mut().for_each(Once::close_stdin);
    for once in all {
        let ended = once.finish();
        assert_eq!((ended.status, &*ended.stderr), (0, ""));
    }
    let store = Connection::open(folder.path("new/store")).expect("a store");
    let count = "SELECT count(*) FROM sessions WHERE turns = 1";
    assert_eq!(store.query_row(count, [], |row| row.get(0)), Ok(50));
}

/// In a folder that others can write, somebody else may have made the locks before.
#[test]
fn what_is_in_the_place_of_a_lock_is_not_followed_or_changed() {
    let folder = Folder::new();
    let precious = folder.path("precious");
    fs::write(&precious, "precious data\n").expect("a file");
    let place = folder.name("store");
    let ask = || exec(&folder, &["--store", &place, "--session-id", "plan", "hello"]);
    let locks = folder.path("store.locks");
    fs::create_dir(&locks).expect("a folder");
    // SHA-256 of the session's id.
    let name = "64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525";
    let lock = locks.join(format!("{name}.lock"));
    let refused = |what: &str| {
        let ended = ask();
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(what), "{ended:?}");
        assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious data\n");
    };
    symlink(&precious, &lock).expect("a link");
    refused("it is a symbolic link");
    fs::remove_file(&lock).expect("a link");
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, 0o600.into()).expect("a pipe");
    refused("it is not a regular file");
    fs::remove_file(&lock).expect("a pipe");
    fs::remove_dir(&locks).expect("a folder");
    fs::create_dir(folder.path("other")).expect("a folder");
    symlink("other", &locks).expect("a link");
    refused("it is a symbolic link");
    assert_eq!(fs::read_dir(folder.path("other")).expect("a folder").count(), 0);
    fs::remove_file(&locks).expect("a link");
    // One more name of a file that is something else as well: it is locked, and stays as it is.
    fs::create_dir(&locks).expect("a folder");
    fs::hard_link(&precious, &lock).expect("a link");
    assert_eq!(ask().status, 0);
    assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious data\n");
}

#[test]
fn an_address_of_something_else_and_a_folder_are_no_names_of_files() {
    let folder = Folder::new();
    for (place, why) in [
        ("sqlite:///notes.db", "sqlite:// are not known"),
        ("mysql://ada:s3cret@db/chat", "mysql:// are not known"),
        ("sqlite:notes.db", "addresses that begin with sqlite: are not known"),
        ("postgres:s3cret", "addresses that begin with postgres: are not known"),
        ("file:notes.db?mode=memory", "a database in memory"),
        ("file:notes.db?_pragma_key=s3cret", "the parameter _pragma_key"),
        ("stores/", "name a file in it"),
    ] {
        for _ in 0..2 {
            for option in ["--store", "--turns-db"] {
                let ended = exec(&folder, &[option, place, "hello"]);
                assert_eq!(ended.status, 2, "{place}: {}", ended.stderr);
                assert!(ended.stderr.contains(why), "{place}: {}", ended.stderr);
                assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
            }
            let ended = run(&folder, &["sessions", "list", "--store", place]);
            assert!(ended.status == 2 && ended.stderr.contains(why), "{place}: {}", ended.stderr);
        }
    }
    let ended = exec(&folder, &["--store", "POSTGRES://127.0.0.1:1/chat", "hello"]);
    assert_eq!(ended.status, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("can't be reached"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(folder.path("")).expect("a folder").count(), 0, "nothing is made");
}
