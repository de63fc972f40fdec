//! A store that is cut anywhere: whole records are read, the loss is reported, and nothing is replaced.

use crate::frames::{Frame, patched_text};
use crate::once::run;
use crate::oracle::Answers;
use crate::server::{Folder, echo};
use crate::store::{kill, resumed, stored, wait_state};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

/// Turns of the session that is damaged.
const TURNS: usize = 6;

/// Bytes between two cuts.
const CUT_STEP: usize = 4_999;

/// Bytes of a page of the database.
const PAGE_BYTES: usize = 4096;

/// The texts of a conversation of [`TURNS`] turns in the store of `folder`.
fn conversation(folder: &Folder, is_killed: bool) -> Vec<(String, String)> {
    let mut server = stored(folder, &["--final-snapshot", "none"]).start();
    for turn in 0..TURNS {
        let prompt = format!("prompt {turn} {}", "word ".repeat(300));
        assert_eq!(server.turn(&format!("r{turn}"), &prompt), "ok");
    }
    server.send(crate::frames::snapshot("all"));
    let state = server.wait("the state", Frame::is_snapshot);
    if is_killed {
        kill(server);
    } else {
        server.finish();
    }
    owned(&state)
}

fn owned(state: &Frame) -> Vec<(String, String)> {
    state.messages().into_iter().map(|(role, text)| (role.to_owned(), text.to_owned())).collect()
}

#[test]
fn a_database_that_is_cut_gives_what_can_be_read() {
    let folder = Folder::new();
    let whole = conversation(&folder, false);
    let bytes = fs::read(folder.path("store")).expect("a store");
    let mut best = 0;
    // The last page may be free: to lose a part of it is no loss.
    for (number, length) in (1..bytes.len() - PAGE_BYTES).rev().step_by(CUT_STEP).enumerate() {
        let name = format!("cut-{number}");
        fs::write(folder.path(&name), &bytes[..length]).expect("a file");
        let place = folder.name(&name);
        let args = ["--store", &place, "--session-id", "s", "--resume", "--extensions", "store"];
        let mut server = echo(&args).start();
        server.wait_hello();
        let first = server.wait("the state, or why there is none", |_| true);
        if first.is_snapshot() {
            let state = owned(&first);
            let mut all = whole.iter();
            // The last run may be replayed only up to a damaged event.
            let is_part = state
                .iter()
                .all(|(role, text)| all.any(|then| then.0 == *role && then.1.starts_with(text)));
            assert!(is_part, "at {length}: {state:?}");
            best = best.max(state.len());
            assert_eq!(server.turn("r", "go on"), "ok", "at {length}");
            let ended = server.finish();
            assert!(ended.stderr.contains("is damaged"), "at {length}: {}", ended.stderr);
            assert!(
                ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")),
                "at {length}"
            );
        } else {
            // Nothing of the session is left.
            assert_eq!(first.error(), Some("store_failed"), "at {length}");
            assert!(first.text("/error/message").contains("was not found in what"), "{first:?}");
            server.finish_with(2, Answers::AllAndFarewell);
        }
        let after = fs::read(folder.path(&name)).expect("the file is there");
        assert_eq!(after, bytes[..length], "the file is left as it is");
    }
    assert!(best > 0, "nothing could be read of any cut");
}

/// Nothing is made beside a file that is another's.
#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = Folder::new();
    let bytes = "# A page\n".repeat(200);
    for (length, name) in [(20, "short"), (bytes.len(), "page.md")] {
        let text = &bytes[..length];
        fs::write(folder.path(name), text).expect("a file");
        let place = folder.name(name);
        let why = format!("{place} is no store, and no database of any program; name another file");
        let mut server = echo(&["--store", &place, "--session", "s"]).start();
        server.wait_hello();
        let error = server.wait("the error", |it| it.error().is_some());
        assert_eq!(error.text("/error/message"), why);
        server.finish_with(2, Answers::AllAndFarewell);
        for words in [&["show", "x"][..], &["list"], &["search", "x"]] {
            let ended = run(&folder, &[&["sessions"], words, &["--store", &place]].concat());
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            assert!(ended.stderr.contains(&why), "{words:?}: {ended:?}");
        }
        assert_eq!(fs::read_to_string(folder.path(name)).expect("a file"), text);
        assert!(!folder.path(&format!("{name}.locks")).exists());
    }
}

#[test]
fn a_log_that_is_cut_gives_whole_turns() {
    let folder = Folder::new();
    let whole = conversation(&folder, true);
    let (base, log) = (fs::read(folder.path("store")), fs::read(folder.path("store-wal")));
    let (base, log) = (base.expect("a store"), log.expect("a log"));
    assert!(log.len() > 10 * CUT_STEP, "{} bytes", log.len());
    let mut lengths = Vec::new();
    for (number, length) in (1..=log.len()).rev().step_by(CUT_STEP * 7).enumerate() {
        let name = format!("cut-{number}");
        fs::write(folder.path(&name), &base).expect("a file");
        fs::write(folder.path(&format!("{name}-wal")), &log[..length]).expect("a file");
        let place = folder.name(&name);
        let args = ["--store", &place, "--session-id", "s", "--resume"];
        let mut server = echo(&args).start();
        server.wait_hello();
        let first = server.wait("the state, or why there is none", |_| true);
        if first.is_snapshot() {
            let state = owned(&first);
            let as_before = state.iter().zip(&whole).all(|(now, then)| then.1.starts_with(&now.1));
            assert!(as_before && state.len() <= whole.len(), "at {length}");
            lengths.push(state.len());
            assert_eq!(server.turn("r", "go on"), "ok", "at {length}");
            server.finish();
        } else {
            // Cut before the session began.
            assert_eq!(first.error(), Some("store_failed"), "at {length}");
            server.finish_with(2, Answers::AllAndFarewell);
        }
    }
    assert_eq!(lengths.first(), Some(&whole.len()), "the whole log gives all");
    assert!(lengths.windows(2).all(|pair| pair[0] >= pair[1]), "{lengths:?}");
}

/// SQLite stops at a damaged page of its log, and reports nothing.
#[test]
fn a_log_that_is_damaged_in_the_middle_is_reported() {
    let folder = Folder::new();
    let whole = conversation(&folder, true);
    let log = folder.path("store-wal");
    let mut bytes = fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).expect("a file");
    let mut server = resumed(&folder, &["--extensions", "store"]).start();
    let state = owned(&wait_state(&mut server));
    assert!(!state.is_empty() && state.len() < whole.len(), "{state:?}");
    assert_eq!(server.turn("r", "go on"), "ok");
    let ended = server.finish();
    assert!(ended.stderr.contains("is damaged before its last"), "{}", ended.stderr);
    assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")));
}

/// A large attachment makes a large log, of which SQLite keeps a part for the next batch.
#[test]
fn a_log_that_sqlite_has_made_shorter_is_not_reported() {
    let folder = (0..10).find_map(|_| killed_with_a_long_log()).expect("it is not always idle");
    let mut server = resumed(&folder, &[]).start();
    assert_eq!(wait_state(&mut server).messages().len(), 12);
    let ended = server.finish();
    assert!(!ended.stderr.contains("the log of the store"), "{}", ended.stderr);
}

/// A store whose log was still there when its process was killed. It is emptied while nothing is written
/// for a while, which on a machine with much else to do may be between two turns.
fn killed_with_a_long_log() -> Option<Folder> {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--final-snapshot", "none"]).start();
    for turn in 0..3 {
        let prompt = "w".repeat(1_500_000);
        assert_eq!(server.turn(&format!("r{turn}"), &prompt), "ok");
        assert_eq!(server.turn(&format!("s{turn}"), "short"), "ok");
    }
    kill(server);
    let log = fs::metadata(folder.path("store-wal")).expect("a log").len();
    (log > 4 * 1024 * 1024 / 2).then_some(folder)
}

/// Entities of a conversation, as `sessions show` reads them, and its status.
fn shown(folder: &Folder, name: &str) -> (i32, Vec<Value>) {
    let place = folder.name(name);
    let ended = run(folder, &["sessions", "show", "s", "--store", &place, "--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["ok"] == true, ended.status < 2 && document["error"].is_null());
    (ended.status, document["data"].as_array().cloned().unwrap_or_default())
}

#[test]
fn a_record_that_can_not_be_read_does_not_hide_those_after_it() {
    let folder = Folder::new();
    let whole = conversation(&folder, false);
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "UPDATE log SET events = X'FFFF' WHERE number IN (2, 3)";
    assert_eq!(store.execute(sql, []).expect("rows"), 2);
    drop(store);
    let mut server = resumed(&folder, &["--extensions", "store"]).start();
    let state = owned(&wait_state(&mut server));
    assert_eq!(state, [&whole[..2], &whole[6..]].concat());
    assert_eq!(server.turn("r", "go on"), "ok");
    let ended = server.finish();
    assert!(ended.stderr.contains("2 of its records can't be read"), "{}", ended.stderr);
    assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")));
    let answer = patched_text(&ended.frames, "r");
    assert!(answer.starts_with(&format!("Turn {}. ", TURNS - 1)), "{answer}");
    assert_eq!(shown(&folder, "store").0, 1);
}

#[test]
fn a_page_that_is_lost_hides_only_what_was_in_it() {
    /// SQLite's own size of a page.
    const PAGE_BYTES: usize = 4096;
    let folder = Folder::new();
    let whole = conversation(&folder, false).len();
    let bytes = fs::read(folder.path("store")).expect("a store");
    let (mut readable, mut after) = (0, 0);
    for page in 2..bytes.len() / PAGE_BYTES {
        let mut damaged = bytes.clone();
        damaged[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0);
        fs::write(folder.path("damaged"), &damaged).expect("a file");
        let (status, entities) = shown(&folder, "damaged");
        assert!(entities.len() <= whole, "{page}");
        assert!(entities.len() == whole || status > 0, "{page}: the loss is reported");
        readable += usize::from(entities.len() == whole);
        let last = entities.last().and_then(|it| it["payload"]["text"].as_str());
        let has_last = last.is_some_and(|text| text.contains("Turn 6"));
        after += usize::from(entities.len() < whole && has_last);
    }
    assert!(readable > 0 && after > 0, "{readable} {after}");
}

/// Zeros the first page of an index or a table in these bytes of the store of `folder`.
pub(crate) fn zero_root(folder: &Folder, name: &str, bytes: &mut [u8]) {
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let page = store.query_row(sql, [name], |row| row.get::<_, u32>(0)).expect("a page");
    let end = usize::try_from(page).expect("a number") * PAGE_BYTES;
    bytes[end - PAGE_BYTES..end].fill(0);
}

/// All rows are in their tables, whatever has become of an index.
#[test]
fn a_damaged_index_hides_nothing() {
    let folder = Folder::new();
    let whole = conversation(&folder, false);
    let bytes = fs::read(folder.path("store")).expect("a store");
    for name in ["sqlite_autoindex_sessions_1", "sqlite_autoindex_log_1", "session_blobs"] {
        let mut damaged = bytes.clone();
        zero_root(&folder, name, &mut damaged);
        fs::write(folder.path("damaged"), &damaged).expect("a file");
        let (status, entities) = shown(&folder, "damaged");
        assert_eq!((status, entities.len()), (1, whole.len()), "{name}");
        let place = folder.name("damaged");
        let mut server = echo(&["--store", &place, "--session", "s"]).start();
        assert_eq!(owned(&wait_state(&mut server)), whole, "{name}");
        assert_eq!(server.turn("r", "go on"), "ok");
        let ended = server.finish();
        assert!(ended.stderr.contains("is damaged"), "{name}: {}", ended.stderr);
        let answer = patched_text(&ended.frames, "r");
        assert!(answer.starts_with(&format!("Turn {}. ", TURNS + 1)), "{name}: {answer}");
    }
}

/// Another program has deleted rows: what is left is read, and the loss is reported.
#[test]
fn rows_that_another_program_has_deleted_are_missed() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "bytes").expect("a file");
    let mut server =
        stored(&folder, &["--extensions", "attachments", "--echo-delay-ms", "1"]).start();
    let attached = json!([{ "url": folder.name("notes.txt") }]);
    let submit =
        json!({ "requestId": "r1", "submit": { "prompt": "one", "attachments": attached } });
    server.send(submit.to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    for (id, prompt) in [("r2", "two"), ("r3", "three")] {
        assert_eq!(server.turn(id, prompt), "ok");
    }
    server.send(json!({ "requestId": "e", "edit": { "dropLastTurn": {} } }).to_string());
    assert_eq!(server.wait_done("e"), "ok");
    server.send(crate::frames::submit("r4", &"word ".repeat(2000)));
    for _ in 0..40 {
        server.wait_event("ChatTextPatch");
    }
    kill(server);
    // One file, without a log.
    let store = Connection::open(folder.path("store")).expect("a store");
    let emptied =
        store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    assert_eq!(emptied.expect("it is copied"), 0);
    drop(store);
    let whole = shown(&folder, "store");
    assert_eq!(whole.0, 0, "nothing is missing");
    let open = "SELECT number FROM log WHERE NOT sealed ORDER BY number";
    for (table, rows, what) in [
        ("log", "number = 1".to_owned(), "people may see"),
        ("log", "number = 2".to_owned(), "people may see"),
        ("log", format!("number = ({open} LIMIT 1 OFFSET 1)"), "people may see"),
        ("log", "number = (SELECT max(number) FROM log)".to_owned(), "people may see"),
        ("blobs", "1".to_owned(), "the model may be sent less"),
    ] {
        fs::copy(folder.path("store"), folder.path("less")).expect("a copy");
        let store = Connection::open(folder.path("less")).expect("a store");
        let deleted = store.execute(&format!("DELETE FROM {table} WHERE {rows}"), []);
        assert!(deleted.expect("a table") > 0, "{table} {rows}");
        drop(store);
        assert_eq!(shown(&folder, "less").0, 1, "{table} {rows}");
        let place = folder.name("less");
        let args = ["--store", &place, "--session-id", "s", "--resume", "--extensions", "store"];
        let mut server = echo(&args).start();
        wait_state(&mut server);
        assert_eq!(server.turn("r", "go on"), "ok");
        let ended = server.finish();
        let shows = ended.frames.iter().any(|frame| frame.is_event("StoreDegraded"));
        assert!(shows && ended.stderr.contains(what), "{table} {rows}: {}", ended.stderr);
        assert!(ended.stderr.contains("missing in the store"), "{}", ended.stderr);
    }
}

/// Whatever another program changes in the rows of a log, it is noticed: what one says, which there are, and
/// in which order.
#[test]
fn a_change_of_any_row_is_proved() {
    let folder = Folder::new();
    conversation(&folder, false);
    for change in [
        "UPDATE log SET last = last + 1 WHERE number = 2",
        "UPDATE log SET events = substr(events, 1, length(events) - 1) WHERE number = 3",
        "UPDATE log SET previous = hash WHERE number = 4",
        "UPDATE log SET hash = previous WHERE number = 4",
        "UPDATE log SET sealed = 0 WHERE number = 5",
        "UPDATE log SET number = CASE number WHEN 2 THEN -3 ELSE -2 END WHERE number IN (2, 3); \
         UPDATE log SET number = -number WHERE number < 0",
        "UPDATE log SET events = (SELECT events FROM log WHERE number = 1) WHERE number = 2",
        "DELETE FROM log WHERE number = 6",
        "DELETE FROM log WHERE number = 1",
        "UPDATE sessions SET head = X'00'",
        "UPDATE sessions SET start = X''",
    ] {
        fs::copy(folder.path("store"), folder.path("changed")).expect("a copy");
        let store = Connection::open(folder.path("changed")).expect("a store");
        store.execute_batch(change).expect("it is changed");
        drop(store);
        assert_eq!(shown(&folder, "changed").0, 1, "{change}");
    }
    assert_eq!(shown(&folder, "store").0, 0);
}

#[test]
fn a_damaged_session_that_goes_on_is_reported_to_its_client_as_not_stored() {
    let folder = Folder::new();
    let mut first = stored(&folder, &[]).start();
    assert_eq!(first.turn("r1", "two words"), "ok");
    first.finish();
    let store = Connection::open(folder.path("store")).expect("a store");
    assert_eq!(store.execute("UPDATE log SET events = X'FFFF'", []).expect("a row"), 1);
    drop(store);
    let mut next = resumed(&folder, &[]).start();
    let state = wait_state(&mut next);
    assert_eq!(owned(&state), [], "what can't be proved to be what was written is not shown");
    let error = next.wait("what the damage means", |frame| frame.error().is_some());
    assert_eq!((error.error(), error.id()), (Some("store_failed"), ""));
    assert!(error.text("/error/message").contains("is damaged"), "{error:?}");
    // Also to a client that turns the extension on by a request.
    next.send(json!({ "requestId": "e", "enable": { "extensions": ["store"] } }).to_string());
    assert_eq!(next.wait_done("e"), "ok");
    let degraded = next.wait_event("StoreDegraded");
    assert_ne!(degraded.payload("firstMissingOrdinal"), "");
    assert_eq!(next.turn("r2", "go on"), "ok");
    next.finish();
}

/// As long as the rows are missing, also after others were written.
#[test]
fn rows_that_are_missing_are_reported_each_time() {
    for rows in ["number = 6", "number = 3", "number > 4"] {
        let folder = Folder::new();
        conversation(&folder, false);
        let store = Connection::open(folder.path("store")).expect("a store");
        assert!(store.execute(&format!("DELETE FROM log WHERE {rows}"), []).expect("rows") > 0);
        drop(store);
        for _ in 0..3 {
            let mut next = resumed(&folder, &[]).start();
            wait_state(&mut next);
            assert_eq!(next.turn("r", "go on"), "ok");
            let ended = next.finish();
            assert!(ended.stderr.contains("missing in the store"), "{rows}: {}", ended.stderr);
        }
        assert_eq!(shown(&folder, "store").0, 1, "{rows}");
    }
}

/// A program that does not check references leaves the rows of a session that it deletes.
#[test]
fn rows_without_their_session_are_in_nobodys_way() {
    let folder = Folder::new();
    conversation(&folder, false);
    let store = Connection::open(folder.path("store")).expect("a store");
    store.pragma_update(None, "foreign_keys", false).expect("a setting");
    assert_eq!(store.execute("DELETE FROM sessions", []).expect("a row"), 1);
    drop(store);
    let mut next = stored(&folder, &[]).start();
    assert_eq!(next.turn("r", "hello"), "ok");
    assert_eq!(next.finish().stderr.matches("not stored").count(), 0);
    assert_eq!(shown(&folder, "store").1.len(), 2);
}
