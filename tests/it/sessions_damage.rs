//! `duologue sessions` on stores that are damaged, in folders that can't be written, and with names that no
//! terminal should see.

use crate::once::{Ended, Once, duologue, duologue_of_nobody, run};
use crate::server::{Folder, echo};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// SQLite's own size of a page.
const PAGE_BYTES: usize = 4096;

#[track_caller]
fn ask(folder: &Folder, id: &str, prompt: &str) {
    let place = folder.name("store");
    let words = ["exec", "--engine", "echo", "--store", &place, "--session-id", id, prompt];
    let ended = run(folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
}

fn sessions(folder: &Folder, store: &str, words: &[&str]) -> Ended {
    let place = folder.name(store);
    run(folder, &[&["sessions"], words, &["--store", &place]].concat())
}

/// The envelope of `words` with `--output json`, and the status.
#[track_caller]
fn envelope(folder: &Folder, store: &str, words: &[&str]) -> (Value, i32) {
    let ended = sessions(folder, store, &[words, &["--output", "json"]].concat());
    (serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")), ended.status)
}

/// A document and its status say the same. What could be read is there in any case.
#[track_caller]
fn check_document((document, status): &(Value, i32)) {
    assert_eq!(document["ok"], *status == 0, "{document}");
    let code = ["", "store_degraded", "store_failed"][usize::try_from(*status).expect("a status")];
    assert_eq!(document["error"]["code"].as_str().unwrap_or_default(), code, "{document}");
    assert!(!document["data"].is_null(), "{document}");
}

fn count(envelope: &Value) -> usize {
    envelope["data"].as_array().map_or(0, Vec::len)
}

/// A store of three sessions, of which each has the word.
fn three() -> Folder {
    let folder = Folder::new();
    for id in ["a", "b", "c"] {
        ask(&folder, id, &format!("needle of {id} {}", "word ".repeat(900)));
    }
    folder
}

#[test]
fn one_damaged_session_does_not_hide_the_others() {
    let folder = three();
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "UPDATE log SET events = X'FFFF' WHERE session = \
               (SELECT key FROM sessions WHERE id = 'b')";
    assert_eq!(store.execute(sql, []).expect("a row"), 1);
    // No text in UTF-8.
    let sql = "UPDATE sessions SET title = CAST(X'41FF' AS TEXT) WHERE id = 'c'";
    assert_eq!(store.execute(sql, []).expect("a row"), 1);
    drop(store);
    let (found, status) = envelope(&folder, "store", &["search", "needle"]);
    // Two messages of each session that is whole.
    assert_eq!((status, count(&found)), (1, 4), "{found}");
    let warnings = found["warnings"].as_array().expect("a list");
    assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &json!("store_degraded")), "{found}");
    let plain = sessions(&folder, "store", &["search", "needle"]);
    let error = &found["error"];
    assert_eq!(
        (&found["ok"], &error["code"]),
        (&json!(false), &json!("store_degraded")),
        "{found}"
    );
    assert_eq!(error["detail"], warnings[0]["message"], "{found}");
    assert!(
        plain.stderr.contains("can't be read") && plain.stdout.lines().count() == 4,
        "{plain:?}"
    );
    let (listed, status) = envelope(&folder, "store", &["list"]);
    assert_eq!((status, count(&listed)), (0, 3), "{listed}");
    for words in [&["show"][..], &["export"], &["export", "--format", "json"]] {
        let [a, b] = ["a", "b"].map(|id| sessions(&folder, "store", &[words, &[id]].concat()));
        assert_eq!((a.status, b.status), (0, 1), "{words:?}");
        for id in ["a", "b"] {
            check_document(&envelope(&folder, "store", &[words, &[id]].concat()));
        }
    }
}

#[test]
fn what_can_be_read_of_a_damaged_store_is_searched_and_listed() {
    let folder = three();
    let bytes = fs::read(folder.path("store")).expect("a store");
    let (mut partial, mut unusable) = (0, 0);
    for page in 0..bytes.len() / PAGE_BYTES {
        let mut damaged = bytes.clone();
        damaged[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0x5a);
        fs::write(folder.path("damaged"), &damaged).expect("a file");
        for (words, whole) in [(&["search", "needle"][..], 6), (&["list"], 3)] {
            let document = envelope(&folder, "damaged", words);
            check_document(&document);
            let (found, status) = document;
            let number = count(&found);
            assert!(status > 0 || number == whole, "page {page}, {words:?}: {found}");
            assert!(number <= whole, "page {page}, {words:?}: {found}");
            partial += usize::from(status == 1 && number > 0);
            unusable += usize::from(status == 2);
        }
        let after = fs::read(folder.path("damaged")).expect("the file is there");
        assert_eq!(after, damaged, "the file is left as it is");
    }
    assert!(partial > 2, "{partial}");
    // Without the first page it is no database, and without the table of sessions nothing is found.
    assert!(unusable <= 4, "{unusable}");
}

/// The session is not written any more, and the person is told how to go on.
#[test]
fn a_damaged_session_goes_on_in_a_copy() {
    let folder = Folder::new();
    let place = folder.name("store");
    let exec = |id: &str, prompt: &str| {
        let words = ["exec", "--engine", "echo", "--store", &place, "--session", id, prompt];
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{ended:?}");
        ended
    };
    exec("s", "one");
    exec("s", "two");
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "UPDATE log SET events = X'FFFF' WHERE number = 2";
    assert_eq!(store.execute(sql, []).expect("a row"), 1);
    drop(store);
    let ended = exec("s", "three");
    assert!(ended.stderr.contains("`duologue sessions fork ID`"), "{ended:?}");
    let forked = sessions(&folder, "store", &["fork", "s", "--as", "copy"]);
    assert_eq!((forked.status, &*forked.stdout), (1, "copy\n"), "{forked:?}");
    exec("copy", "four");
    let ended = exec("copy", "five");
    assert!(ended.stdout.contains("Before that you said: four"), "{ended:?}");
    assert!(!ended.stderr.contains("fork"), "{ended:?}");
}

/// Nothing is written to a file that is damaged itself.
#[test]
fn a_session_of_a_damaged_file_goes_on_in_another_one() {
    let folder = three();
    let bytes = fs::read(folder.path("store")).expect("a store");
    fs::write(folder.path("store"), &bytes[..bytes.len() - PAGE_BYTES]).expect("a file");
    let exec = |name: &str| {
        let place = folder.name(name);
        let words = ["exec", "--engine", "echo", "--store", &place, "--session", "a", "go on"];
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{ended:?}");
        ended
    };
    let advice = "`duologue sessions export ID | duologue sessions import -";
    let ended = exec("store");
    assert!(ended.stderr.contains(advice), "{ended:?}");
    let forked = sessions(&folder, "store", &["fork", "a"]);
    assert!(forked.status == 2 && forked.stderr.contains(advice), "{forked:?}");
    let exported = sessions(&folder, "store", &["export", "a"]);
    assert_eq!(exported.status, 1, "{exported:?}");
    let other = folder.name("other");
    let words = ["sessions", "import", "-", "--store", &other];
    let mut import = Once::start(duologue(&folder, &words));
    import.write(&exported.stdout);
    let imported = import.finish();
    assert_eq!((imported.status, &*imported.stdout), (0, "a\n"), "{imported:?}");
    let ended = exec("other");
    assert!(ended.stdout.contains("Before that you said: needle of a"), "{ended:?}");
    assert!(!ended.stderr.contains("damaged"), "{ended:?}");
}

#[test]
fn a_session_with_any_name_is_one_line_of_a_table() {
    let folder = Folder::new();
    let id = "two\nlines\u{1b}[2J\u{2028}end";
    ask(&folder, id, "a\u{1b}]0;title\u{7}b\nsecond line");
    ask(&folder, "東京", "plain");
    let table = sessions(&folder, "store", &["list"]).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(!table.contains(['\u{1b}', '\u{7}', '\u{2028}']), "{table:?}");
    assert!(lines[2].starts_with("two\\nlines\\x1b[2J\\u{2028}end  "), "{table}");
    assert!(lines[2].contains("a\\x1b]0;title\\x07b"), "{table}");
    // The columns begin at the same place, however wide their letters are.
    let place = lines[2].find("  2").expect("a time");
    assert!(lines[1].starts_with("東京 ") && lines[1].contains("  2"), "{place} {table}");
    let (listed, _) = envelope(&folder, "store", &["list"]);
    assert_eq!(listed["data"][1]["id"], id);
}

/// `duologue sessions <words>` of a user who can't write the folder.
fn as_reader(folder: &Folder, words: &[&str], is_root: bool) -> Ended {
    let place = folder.name("store");
    let start = if is_root { duologue_of_nobody } else { duologue };
    Once::start(start(folder, &[&["sessions"], words, &["--store", &place]].concat())).finish()
}

/// The errors of SQLite name no file.
#[test]
fn a_store_that_may_not_be_opened_is_named_with_the_reason() {
    let folder = Folder::for_all();
    ask(&folder, "s", "a needle");
    let is_root = rustix::process::geteuid().is_root();
    let set = |mode| fs::set_permissions(folder.path("store"), Permissions::from_mode(mode));
    let of_store = |action: &str| format!("the store {} can't be {action}: ", folder.name("store"));
    set(0o000).expect("our file");
    for words in [&["list"][..], &["show", "s"], &["search", "needle"]] {
        let ended = as_reader(&folder, words, is_root);
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(&of_store("read")), "{words:?}: {ended:?}");
    }
    set(0o444).expect("our file");
    let refused = as_reader(&folder, &["delete", "s"], is_root);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains(&of_store("written")), "{refused:?}");
    set(0o600).expect("our file");
    // SQLite could open it for writing, and not make its log.
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o555)).expect("our folder");
    if !is_root {
        let ended = as_reader(&folder, &["delete", "s"], is_root);
        assert!(ended.stderr.contains("its folder can't be written"), "{ended:?}");
    }
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).expect("our folder");
}

/// A backup that belongs to somebody else, or is on a disk that can only be read.
#[test]
fn a_store_in_a_folder_that_can_not_be_written_is_read() {
    let folder = Folder::for_all();
    ask(&folder, "s", "a needle");
    let is_root = rustix::process::geteuid().is_root();
    fs::set_permissions(folder.path("store"), Permissions::from_mode(0o444)).expect("our file");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o555)).expect("our folder");
    let reader = |words: &[&str]| as_reader(&folder, words, is_root);
    let check = |words: &[&str], expected: &str| {
        let ended = reader(words);
        assert_eq!(ended.status, 0, "{words:?}: {ended:?}");
        assert!(ended.stdout.contains(expected), "{words:?}: {ended:?}");
    };
    check(&["list"], "a needle");
    check(&["show", "s"], "user: a needle");
    check(&["export", "s"], "a needle");
    check(&["search", "needle"], "user: a needle");
    let before: Vec<_> = fs::read_dir(folder.path("")).expect("a folder").collect();
    // The program, the store and its locks.
    assert!(before.len() <= 3, "nothing was made: {before:?}");
    // With a log it would not be all.
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).expect("our folder");
    fs::write(folder.path("store-wal"), "something").expect("a file");
    fs::set_permissions(folder.path("store-wal"), Permissions::from_mode(0o444)).expect("a file");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o555)).expect("our folder");
    let refused = reader(&["list"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("copy both to another folder"), "{refused:?}");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).expect("our folder");
}

/// What is missing in the one is in the other, whichever of them is named first.
#[test]
fn of_two_stores_the_whole_one_is_shown_and_copied() {
    let folder = Folder::new();
    let [first, second] = ["a.db", "b.db"].map(|name| folder.name(name));
    let places = ["--turns-db", &first, "--timeline-db", &second];
    let mut server = echo(&[&places[..], &["--session-id", "s"]].concat()).start();
    for turn in ["one", "two", "three"] {
        assert_eq!(server.turn(turn, turn), "ok");
    }
    server.finish();
    let sql = "UPDATE log SET events = X'FFFF' WHERE number = 2";
    let damaged = Connection::open(folder.path("a.db")).expect("a store");
    assert_eq!(damaged.execute(sql, []).expect("a row"), 1);
    drop(damaged);
    let sessions = |words: &[&str]| run(&folder, &[&["sessions"], words, &places].concat());
    let shown = sessions(&["show", "s"]);
    assert!(shown.status == 0 && shown.stdout.contains("user: two"), "{shown:?}");
    assert_eq!(sessions(&["fork", "s", "--as", "copy"]).status, 0);
    let copied = sessions(&["show", "copy"]);
    assert!(copied.stdout.contains("user: two"), "{copied:?}");
    // A title is written to the whole one alone.
    assert_eq!(sessions(&["rename", "s", "Numbers"]).status, 0);
    let listed = sessions(&["list"]);
    assert!(listed.stdout.contains("Numbers"), "{listed:?}");
}
