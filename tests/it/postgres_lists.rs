//! Lists, searches and short ids in a database with many sessions.

use crate::once::{Ended, Once, duologue, run};
use crate::postgres_server::{Database, PASSWORD, Proxy};
use crate::process::eventually;
use crate::server::Folder;
use serde_json::Value;
use std::thread;

/// More than one statement goes through.
const SESSIONS: usize = 1_200;

/// `duologue sessions <words>` on a database.
#[track_caller]
fn sessions(folder: &Folder, database: &Database, words: &[&str]) -> Ended {
    let dsn = database.bare_dsn();
    let mut command = duologue(folder, &[&["sessions"], words, &["--store", &dsn]].concat());
    command.env("PGPASSWORD", PASSWORD);
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

/// A database with a conversation of two words, and many copies of its row with those words.
fn crowded() -> Database {
    let database = Database::new();
    let mut server = database.stored(&[]).start();
    assert_eq!(server.turn("r1", "seldom heard"), "ok");
    server.finish();
    database.query(&format!(
        "INSERT INTO duologue.sessions(id, title, folder, created_ms, updated_ms, changed, last, \
             turns, dropped_turns, start, rows, head, writer, batch, word_rules) \
         SELECT 'copy-' || n, 'title ' || n, folder, created_ms, updated_ms, -n, last, turns, \
             dropped_turns, start, 0, head, writer, batch, word_rules \
         FROM duologue.sessions, generate_series(2, {SESSIONS}) AS n"
    ));
    database
}

#[test]
fn many_sessions_are_listed_and_searched_in_parts() {
    needs!(Postgres);
    let (database, folder) = (crowded(), Folder::new());
    let listed = sessions(&folder, &database, &["list", "--output", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let listed = listed["data"].as_array().expect("a list");
    assert_eq!(listed.len(), SESSIONS);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&"s".into(), &"copy-2".into()));
    assert!(listed[0]["bytes"].as_u64() > listed[1]["bytes"].as_u64(), "{listed:?}");
    let found = sessions(&folder, &database, &["search", "seldom"]);
    assert_eq!(found.stdout.lines().count(), 2, "the prompt and its answer: {found:?}");
    assert!(found.stdout.lines().all(|line| line.starts_with("s  turn 1  ")), "{found:?}");
}

#[test]
fn a_search_makes_no_connection_for_each_session() {
    const FOUND: usize = 8;
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    for number in 0..FOUND {
        let (dsn, id) = (database.dsn_at(database.port), format!("s{number}"));
        let words = ["exec", "--engine", "echo", "--store", &dsn, "--session-id", &id, "seldom"];
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    let proxy = Proxy::start(database.port);
    let dsn = database.dsn_at(proxy.port);
    let found = run(&folder, &["sessions", "search", "seldom", "--store", &dsn]);
    assert_eq!(found.stdout.lines().count(), 2 * FOUND, "each with its answer: {found:?}");
    assert!(proxy.connections() < FOUND, "{} connections", proxy.connections());
}

/// Both have the same, and a server may be away.
#[test]
fn a_file_is_read_while_the_server_of_the_other_store_is_away() {
    let folder = Folder::new();
    let file = folder.name("file");
    let words = ["exec", "--engine", "echo", "--turns-db", &file, "--session-id", "s", "hello"];
    let ended = run(&folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
    let sessions = |words: &[&str]| {
        let places = ["--turns-db", &file, "--timeline-dsn", "postgres://ada@127.0.0.1:1/chat"];
        run(&folder, &[&["sessions"], words, &places].concat())
    };
    for words in [&["list"][..], &["search", "hello"]] {
        let read = sessions(words);
        assert!(read.status == 1 && read.stdout.contains("hello"), "{read:?}");
        assert!(read.stderr.contains("can't be reached"), "{read:?}");
    }
    let shown = sessions(&["show", "s"]);
    assert!(shown.status == 0 && shown.stdout.starts_with("user: hello\n"), "{shown:?}");
    // It may be in the other one.
    let other = sessions(&["show", "other"]);
    assert!(other.status == 2 && other.stderr.contains("can't be reached"), "{other:?}");
    let kept = sessions(&["delete", "s"]);
    assert!(kept.status == 1 && kept.stderr.contains("can't be reached"), "{kept:?}");
    assert_eq!(sessions(&["show", "s"]).status, 0, "it is deleted in none");
}

/// The server answers until the first log is read.
#[test]
fn a_search_waits_once_for_a_server_that_falls_silent() {
    const FOUND: usize = 4;
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let proxy = Proxy::start(database.port);
    let (file, dsn) = (folder.name("file"), database.dsn_at(proxy.port));
    let places = ["--turns-db", &file, "--timeline-dsn", &dsn];
    for number in 0..FOUND {
        let id = format!("s{number}");
        let words = ["exec", "--engine", "echo", "--session-id", &id, "seldom"];
        let ended = run(&folder, &[&words[..], &places].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    // One that the file does not have ends no search.
    let words = ["exec", "--engine", "echo", "--session-id", "other", "--store", &dsn, "seldom"];
    let ended = run(&folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
    for output in ["text", "json"] {
        proxy.stall_at("duologue.log");
        let before = proxy.connections();
        let words = ["sessions", "search", "seldom", "--output", output];
        let found = run(&folder, &[&words[..], &places].concat());
        let count = if output == "json" {
            let document: Value = serde_json::from_str(&found.stdout).expect("JSON");
            let error = &document["error"];
            assert_eq!(error["message"], "not all of the store could be read", "{found:?}");
            document["data"].as_array().expect("a list").len()
        } else {
            found.stdout.lines().count()
        };
        assert_eq!(count, 2 * FOUND, "each with its answer: {found:?}");
        assert_eq!(found.status, 1, "{found:?}");
        let place = format!("127.0.0.1:{}/{} did not answer", proxy.port, database.name);
        assert_eq!(found.stderr.matches(&place).count(), 1, "{found:?}");
        // One for the list, one for the logs, and at most one more.
        let made = proxy.connections() - before;
        assert!(made <= 3, "{made} connections");
    }
}

/// The sizes of sessions take the server long, and only a list has them.
#[test]
fn a_short_id_is_found_without_a_look_into_logs() {
    needs!(Postgres);
    let (database, folder) = (crowded(), Folder::new());
    let locks = "DO $$ BEGIN LOCK TABLE duologue.log IN ACCESS EXCLUSIVE MODE; \
                 LOOP EXIT WHEN EXISTS (SELECT 1 FROM pg_class WHERE relname = 'over'); \
                 PERFORM pg_sleep(0.01); END LOOP; END $$";
    let is_locked = "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                     AND relation = 'duologue.log'::regclass";
    let refused = thread::scope(|scope| {
        let locking = scope.spawn(|| database.query(locks));
        eventually("the logs are locked", || {
            database.try_query(is_locked).filter(|found| found == "1")
        });
        let refused = sessions(&folder, &database, &["delete", "copy-1"]);
        database.query("CREATE TABLE public.over()");
        locking.join().expect("it is over");
        refused
    });
    assert!(refused.stderr.contains("the ids of 311 sessions begin so"), "{refused:?}");
}
