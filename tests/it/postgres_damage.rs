//! Stores in PostgreSQL that are damaged, out of step, or of an older format; and what a chat does with one.

use crate::attachments::{PNG, attach};
use crate::chat::{Person, chat};
use crate::frames::patched_text;
use crate::once::{Ended, Once, duologue};
use crate::oracle::Answers;
use crate::postgres_server::{Database, PASSWORD, PostgresServer};
use crate::server::{Folder, echo};
use crate::sessions::WRITTEN;
use crate::store::{kill, wait_state};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

#[track_caller]
fn sessions(folder: &Folder, words: &[&str]) -> Ended {
    let mut command = duologue(folder, &[&["sessions"], words].concat());
    command.env("PGPASSWORD", PASSWORD);
    Once::start(command).finish()
}

/// A database with a session of so many turns.
fn talk(turns: usize) -> Database {
    let database = Database::new();
    let mut server = database.stored(&["--final-snapshot", "none"]).start();
    for turn in 1..=turns {
        assert_eq!(server.turn(&format!("r{turn}"), &format!("prompt {turn}")), "ok");
    }
    server.finish();
    database
}

/// What a process shows and reports that goes on with the session.
#[track_caller]
fn go_on(database: &Database) -> (usize, String, bool) {
    let mut server = database.resumed(&["--extensions", "store"]).start();
    let messages = wait_state(&mut server).messages().len();
    assert_eq!(server.turn("r", "go on"), "ok");
    let ended = server.finish();
    let is_reported = ended.frames.iter().any(|frame| frame.is_event("StoreDegraded"));
    (messages, ended.stderr, is_reported)
}

#[test]
fn a_record_that_can_not_be_read_does_not_hide_others() {
    needs!(Postgres);
    let database = talk(4);
    database.query("UPDATE duologue.log SET events = '\\xffff' WHERE number = 2");
    let rows = "SELECT count(*), max(last) FROM duologue.log";
    let before = database.query(rows);
    let (shown, stderr, is_reported) = go_on(&database);
    assert_eq!((shown, is_reported), (6, true));
    assert!(stderr.contains("one of its records can't be read"), "{stderr}");
    assert_eq!(before, database.query(rows), "nothing is written to a damaged store");
    let folder = Folder::new();
    let dsn = database.bare_dsn();
    for words in [&["show", "s"][..], &["export", "s"], &["search", "prompt"]] {
        let ended = sessions(&folder, &[words, &["--store", &dsn]].concat());
        assert_eq!(ended.status, 1, "{words:?}: {ended:?}");
        assert!(ended.stdout.contains("prompt 4"), "{words:?}: {ended:?}");
    }
}

#[test]
fn rows_that_another_program_has_deleted_are_missed() {
    needs!(Postgres);
    for (sql, what) in [
        ("DELETE FROM duologue.log WHERE number = 1", "people may see"),
        ("DELETE FROM duologue.log WHERE number = 2", "people may see"),
    ] {
        let database = talk(3);
        assert!(!go_on(&database).2, "nothing is missing");
        database.query(sql);
        let (_, stderr, is_reported) = go_on(&database);
        assert!(is_reported && stderr.contains(what), "{sql}: {stderr}");
        let rows = database.query("SELECT count(*) FROM duologue.log");
        assert!(rows.parse::<usize>().expect("a number") > 3, "it is stored on");
    }
    // In a run that was cut off.
    let database = Database::new();
    let mut server = database.stored(&["--echo-delay-ms", "1"]).start();
    server.send(crate::frames::submit("r1", &"word ".repeat(2000)));
    for _ in 0..30 {
        server.wait_event("ChatTextPatch");
    }
    kill(server);
    database.query("DELETE FROM duologue.log WHERE number = 2");
    let (_, stderr, is_reported) = go_on(&database);
    assert!(is_reported && stderr.contains("a record of the session is missing"), "{stderr}");
}

#[test]
fn a_change_of_an_attachment_is_proved() {
    needs!(Postgres);
    let database = Database::new();
    let mut server = database.stored(&[]).start();
    let image = format!("data:image/png;base64,{}", BASE64.encode(PNG));
    server.send(attach("r1", "what is it?", &[json!({ "url": image })]));
    assert_eq!(server.wait_done("r1"), "ok");
    server.finish();
    database.query("UPDATE duologue.blobs SET data = overlay(data PLACING '\\x00' FROM 20)");
    let (shown, stderr, is_reported) = go_on(&database);
    assert_eq!((shown, is_reported), (2, true));
    assert!(stderr.contains("its checksum differs"), "{stderr}");
}

/// A disk has lost what the server keeps of a large value.
#[test]
fn an_attachment_that_the_server_can_not_read_does_not_hide_the_conversation() {
    needs!(Postgres);
    let database = Database::new();
    let mut server = database.stored(&[]).start();
    let image = format!("data:image/png;base64,{}", BASE64.encode(PNG));
    server.send(attach("r1", "what is it?", &[json!({ "url": image })]));
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "and now?"), "ok");
    server.finish();
    // Only the query for the bytes has a limit.
    database.query(
        "ALTER TABLE duologue.blobs RENAME TO kept; \
         CREATE FUNCTION duologue.damaged(data bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN \
             IF current_query() LIKE '%LIMIT%' THEN \
                 RAISE EXCEPTION 'missing chunk number 0' USING ERRCODE = 'XX001'; \
             END IF; \
             RETURN data; \
         END $$; \
         CREATE VIEW duologue.blobs AS SELECT sha256, duologue.damaged(data) AS data \
             FROM duologue.kept",
    );
    let (shown, stderr, is_reported) = go_on(&database);
    assert_eq!((shown, is_reported), (4, true));
    assert!(stderr.contains("missing chunk number 0"), "{stderr}");
}

/// A crash, or a restore of one of them, can come between the two.
#[test]
fn a_store_that_is_behind_the_other_is_completed() {
    needs!(Postgres);
    for first_is_ahead in [true, false] {
        let (one, two) = (Database::new(), Database::new());
        let (of_one, of_two) = (one.dsn(), two.dsn());
        let both = ["--turns-dsn", &*of_one, "--timeline-dsn", &*of_two];
        let session = [&both[..], &["--session-id", "s"]].concat();
        let mut server = echo(&session).start();
        assert_eq!(server.turn("r1", "one"), "ok");
        assert_eq!(server.turn("r2", "two"), "ok");
        server.finish();
        // One of them as it was after the first turn.
        let behind = if first_is_ahead { &two } else { &one };
        behind.query("DELETE FROM duologue.log WHERE number > 1; DELETE FROM duologue.words");
        behind.query(
            "UPDATE duologue.sessions SET turns = 1, rows = 1, \
             last = (SELECT last FROM duologue.log), head = (SELECT hash FROM duologue.log)",
        );
        let mut server =
            echo(&[&session[..], &["--resume", "--extensions", "store"]].concat()).start();
        assert_eq!(wait_state(&mut server).messages().len(), 4);
        assert_eq!(server.turn("r3", "three"), "ok");
        let ended = server.finish();
        let answer = patched_text(&ended.frames, "r3");
        assert!(answer.contains("Turn 3") && answer.contains("two"), "{answer}");
        assert!(ended.stderr.contains("it was completed from"), "{}", ended.stderr);
        assert_eq!(one.events(), two.events());
        let mut server = echo(&[&session[..], &["--resume"]].concat()).start();
        assert_eq!(wait_state(&mut server).messages().len(), 6);
        let ended = server.finish();
        assert!(!ended.stderr.contains("completed"), "{}", ended.stderr);
    }
}

#[test]
fn a_session_that_was_just_released_is_resumed_at_once() {
    needs!(Postgres);
    let database = talk(1);
    for turn in 2..6 {
        let mut server = database.resumed(&[]).start();
        assert_eq!(wait_state(&mut server).messages().len(), 2 * (turn - 1));
        assert_eq!(server.turn("r", "again"), "ok");
        // The next one starts while this one ends.
        server.close_stdin();
        let ended = server.finish();
        assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    }
}

/// No version with such a store was released.
#[test]
fn a_store_of_an_early_version_is_named_and_left_alone() {
    needs!(Postgres);
    let database = talk(2);
    database.query("UPDATE duologue.migrations SET number = 1, name = 'sessions'");
    let launch = database.resumed(&[]);
    let ended = launch.start().finish_with(2, Answers::AllAndFarewell);
    let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    let why = error.text("/error/message");
    assert!(why.contains("has format 1, of an early version"), "{why}");
    database.query("UPDATE duologue.migrations SET number = 5, name = 'processes'");
    assert_eq!(go_on(&database).0, 4, "nothing was changed");
}

#[test]
fn a_search_finds_what_it_finds_in_a_file() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let (dsn, file) = (database.bare_dsn(), folder.name("store"));
    for (number, (prompt, _)) in WRITTEN.iter().enumerate() {
        for place in [&dsn, &file] {
            let id = format!("s{number}");
            let words = ["exec", "--engine", "echo", "--store", place, "--session-id", &id, prompt];
            let mut command = duologue(&folder, &words);
            command.env("PGPASSWORD", PASSWORD);
            assert_eq!(Once::start(command).finish().status, 0);
        }
    }
    let words = WRITTEN.iter().flat_map(|(_, words)| words.iter());
    for word in words.chain(&["東塔", "京东", "接ません", "nothing", "SAID"]) {
        let found = |place: &str| {
            let ended = sessions(&folder, &["search", word, "--store", place, "--output", "json"]);
            let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
            let mut data = document["data"].as_array().expect("a list").clone();
            data.sort_by_key(|it| it.to_string());
            data
        };
        assert_eq!(found(&dsn), found(&file), "{word}");
    }
}

#[test]
fn a_chat_resumes_and_copies_its_conversations() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.bare_dsn();
    let begin = |options: &[&str]| {
        let mut command = chat(&folder, &[&["--store", &dsn], options].concat());
        command.env("PGPASSWORD", PASSWORD);
        Person::start(command)
    };
    let mut person = begin(&["--session-id", "original"]);
    person.sees("/help");
    person.types("shared\r");
    person.answered("Turn 1. You said: shared");
    person.types("/fork\r");
    person.sees("stays as it was\n\n> shared");
    person.types("only in the copy\r");
    person.answered("Turn 2. You said: only in the copy");
    person.types("/new\r");
    person.sees("another conversation begins");
    person.types("/resume shared\r");
    person.sees("Enter goes on");
    person.sees("shared  (2 turns");
    person.types("\r");
    person.sees("goes on\n\n> shared");
    person.types("third\r");
    person.answered("Turn 3. You said: third");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let mut person = begin(&["--session-id", "original", "--resume"]);
    person.answered("Turn 1. You said: shared");
    assert!(!person.screen().text().contains("only in the copy"));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// A client that is known by a certificate needs no password.
#[test]
fn a_client_with_a_certificate_is_let_in() {
    needs!(Postgres);
    let postgres = PostgresServer::start_with_clients();
    let database = postgres.database();
    database.query(&format!(
        "CREATE ROLE cert_user LOGIN; GRANT CREATE ON DATABASE {} TO cert_user",
        database.name
    ));
    let folder = Folder::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
    let key = folder.name("client.key");
    fs::copy(format!("{data}/client.key"), &key).expect("a copy");
    let dsn = format!(
        "host=localhost port={} user=cert_user dbname={} sslmode=verify-full \
         sslrootcert={data}/ca.pem sslcert={data}/client.pem sslkey={key}",
        database.port, database.name
    );
    for (mode, is_used) in [(0o644, false), (0o600, true)] {
        fs::set_permissions(&key, Permissions::from_mode(mode)).expect("our file");
        let words =
            ["exec", "--engine", "echo", "--turns-dsn", &dsn, "--timeline-dsn", &dsn, "hello"];
        let ended = Once::start(duologue(&folder, &words)).finish();
        assert_eq!(ended.status == 0, is_used, "{ended:?}");
        assert_eq!(ended.stderr.contains("chmod 600"), !is_used, "{ended:?}");
    }
    assert_eq!(database.query("SELECT count(*) FROM duologue.sessions"), "1");
    let bare = dsn.split(" sslcert").next().expect("the beginning");
    let words = ["exec", "--engine", "echo", "--turns-dsn", bare, "--timeline-dsn", bare, "hello"];
    let ended = Once::start(duologue(&folder, &words)).finish();
    assert!(ended.status == 2 && ended.stderr.contains("valid client certificate"), "{ended:?}");
}
