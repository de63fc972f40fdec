//! Conversations that are stored in PostgreSQL, and go on in another process.

use crate::edits::edit;
use crate::frames::{Frame, errors, patched_text, submit};
use crate::once::{Ended, Once, duologue};
use crate::oracle::Answers;
use crate::postgres_server::{Database, PASSWORD, PostgresServer, USER};
use crate::process::Process;
use crate::server::{Folder, Launch, Server, echo};
use crate::store::{events, kept, kill, wait_state};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// How long a lease lasts that is not renewed.
const LEASE: Duration = Duration::from_secs(10);

/// `duologue <words>` to its end, with the password in the environment.
#[track_caller]
fn run(folder: &Folder, words: &[&str]) -> Ended {
    let mut command = duologue(folder, words);
    command.env("PGPASSWORD", PASSWORD);
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

/// The error of a server that can't start, and its message.
#[track_caller]
fn refusal(status: i32, launch: Launch) -> (String, String) {
    let ended = launch.start().finish_with(status, Answers::AllAndFarewell);
    let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    (error.error().expect("a code").to_owned(), error.text("/error/message").to_owned())
}

/// Starts a server on a session that another one holds until it is free.
pub(crate) fn wait_free(database: &Database, args: &[&str]) -> Server {
    let started = Instant::now();
    loop {
        let mut server = database.resumed(args).start();
        server.wait_hello();
        let first = server.wait("the state, or why there is none", |_| true);
        if first.is_snapshot() {
            return server;
        }
        assert_eq!(first.error(), Some("session_locked"));
        assert!(started.elapsed() < LEASE * 2, "the session is never free");
        server.finish_with(75, Answers::AllAndFarewell);
    }
}

#[test]
fn two_processes_take_turns_on_one_session() {
    needs!(Postgres);
    let database = Database::new();
    let mut first = database.stored(&[]).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    let frames = first.finish().frames;
    let mut last = frames.iter().filter_map(Frame::ordinal).max().expect("events");
    let mut shown = kept(&frames);
    for turn in 2..5 {
        let mut next = database.resumed(&[]).start();
        assert_eq!(wait_state(&mut next).messages().len(), 2 * (turn - 1));
        assert_eq!(next.turn("r", &format!("prompt {turn}")), "ok");
        let frames = next.finish().frames;
        let ordinals: Vec<u64> = frames.iter().filter_map(Frame::ordinal).collect();
        assert_eq!(ordinals[0], last + 1, "ordinals go on");
        last = *ordinals.last().expect("events");
        shown.extend(kept(&frames));
        let answer = patched_text(&frames, "r");
        let before = if turn == 2 { "one".to_owned() } else { format!("prompt {}", turn - 1) };
        assert!(answer.contains(&format!("Turn {turn}")) && answer.contains(&before), "{answer}");
    }
    let numbers: Vec<u64> = database.events().into_iter().map(|event| event.0).collect();
    assert_eq!(numbers, shown);
    assert_eq!(database.query("SELECT count(*) FROM duologue.leases"), "0", "freed at the end");
    assert_eq!(database.query("SELECT count(*), bool_and(sealed) FROM duologue.log"), "4|t");
}

#[test]
fn a_turn_that_was_dropped_stays_dropped() {
    needs!(Postgres);
    let database = Database::new();
    let mut first = database.stored(&["--extensions", "edit"]).start();
    for (id, prompt) in [("r1", "one"), ("r2", "two")] {
        assert_eq!(first.turn(id, prompt), "ok");
    }
    first.send(edit("e", json!({ "dropLastTurn": {} })));
    assert_eq!(first.wait_done("e"), "ok");
    first.finish();
    let mut second = database.resumed(&[]).start();
    assert_eq!(wait_state(&mut second).messages().len(), 2);
    assert_eq!(second.turn("r3", "three"), "ok");
    let answer = patched_text(&second.finish().frames, "r3");
    assert!(answer.contains("one") && !answer.contains("two"), "{answer}");
}

#[test]
fn turns_and_timeline_may_be_in_places_of_two_kinds() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let (dsn, file) = (database.dsn(), folder.name("file"));
    for (number, places) in [
        ["--turns-dsn", &*dsn, "--timeline-db", &*file],
        ["--turns-db", &*file, "--timeline-dsn", &*dsn],
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("s{number}");
        let both = [&places[..], &["--session-id", &id]].concat();
        let mut first = echo(&both).start();
        assert_eq!(first.turn("r1", "one"), "ok");
        first.finish();
        let mut second = echo(&[&both[..], &["--resume"]].concat()).start();
        assert_eq!(wait_state(&mut second).messages().len(), 2);
        assert_eq!(second.turn("r1", "two"), "ok");
        assert!(patched_text(&second.finish().frames, "r1").contains("one"));
    }
    let counts = "SELECT id, (SELECT count(*) FROM duologue.log WHERE session = key) \
                  FROM duologue.sessions ORDER BY id";
    assert_eq!(database.query(counts), "s0|2\ns1|2");
    assert_eq!(events(&folder.path("file")), database.events());
}

#[test]
fn processes_that_make_the_tables_at_the_same_moment_do_not_disturb_each_other() {
    needs!(Postgres);
    let database = Database::new();
    let dsn = database.dsn();
    let ids: Vec<String> = (0..6).map(|number| format!("s{number}")).collect();
    let servers: Vec<Server> =
        ids.iter().map(|id| echo(&["--store", &dsn, "--session-id", id]).start()).collect();
    for mut server in servers {
        assert_eq!(server.turn("r1", "one"), "ok");
        assert_eq!(errors(&server.finish().frames, ""), [""; 0]);
    }
    let migrations = database.query("SELECT number, name FROM duologue.migrations ORDER BY number");
    assert_eq!(migrations, "5|processes");
    assert_eq!(database.query("SELECT count(*) FROM duologue.log"), "6");
}

#[test]
fn one_process_holds_a_session_until_it_ends() {
    needs!(Postgres);
    let database = Database::new();
    let mut holder = database.stored(&[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    let Process(id) = holder.process();
    let (code, message) = refusal(75, database.resumed(&[]));
    assert_eq!(code, "session_locked");
    assert!(message.contains(&format!("process {id} on ")), "{message}");
    assert!(message.contains(", since 20") && message.contains("10 seconds"), "{message}");
    // Another session of the same store is free.
    let dsn = database.dsn();
    let mut other = echo(&["--store", &dsn, "--session-id", "t"]).start();
    assert_eq!(other.turn("r1", "one"), "ok");
    other.finish();
    // On the same machine it is known at once that the holder has ended.
    kill(holder);
    let mut next = database.resumed(&[]).start();
    assert_eq!(wait_state(&mut next).messages().len(), 2);
    // Where that is not known, its lease ends.
    database.query("UPDATE duologue.processes SET machine = 'another one'");
    kill(next);
    let since = Instant::now();
    let last = wait_free(&database, &[]);
    assert!(since.elapsed() > LEASE / 2, "freed after {:?}", since.elapsed());
    last.finish();
}

#[test]
fn what_can_not_be_used_is_an_error_that_says_why() {
    needs!(Postgres);
    let database = Database::new();
    let foreign = Database::new();
    foreign.query("CREATE SCHEMA duologue; CREATE TABLE duologue.notes(text text)");
    let mut first = database.stored(&[]).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    first.finish();
    let newer = Database::new();
    newer.stored(&[]).start().finish();
    newer.query("INSERT INTO duologue.migrations(number, name) VALUES (99, 'later')");
    let (dsn, of_foreign, of_newer) = (database.dsn(), foreign.dsn(), newer.dsn());
    let wrong = dsn.replace("pg-a-pass", "pg-another-pass");
    let nowhere = database.dsn_at(1);
    let no_database = dsn.replace(&database.name, "no_such_database");
    let encrypted = format!("{dsn}?sslmode=require");
    let new = Database::new().dsn();
    for (args, why) in [
        (vec!["--store", &wrong, "--session-id", "s"], "password authentication failed"),
        (vec!["--store", &nowhere, "--session-id", "s"], "can't be reached"),
        (vec!["--store", &no_database, "--session-id", "s"], "does not exist"),
        (vec!["--store", &encrypted, "--session-id", "s"], "server does not support TLS"),
        (vec!["--store", &of_foreign, "--session-id", "s"], "another program"),
        (vec!["--store", &of_newer, "--session-id", "s"], "newer version"),
        (vec!["--store", &dsn, "--session-id", "s"], "name it with --session"),
        (vec!["--store", &dsn, "--session-id", "other", "--resume"], "nothing to resume"),
        (vec!["--store", &new, "--session-id", "other", "--resume"], "nothing to resume"),
        (vec!["--store", &dsn, "--continue", "--session-id", "s"], "--session-id"),
        (vec!["--store", &new, "--continue"], "no session of this folder"),
        (vec!["--turns-dsn", &dsn, "--turns-db", "file"], "--turns-db and --turns-dsn"),
        (vec!["--timeline-dsn", "chat.db"], "no address of PostgreSQL"),
        (vec!["--turns-dsn", "chat.db"], "file:PATH"),
        (vec!["--store", "postgres://h/x?sslkey=/k"], "sslkey"),
    ] {
        // The password is in the address as well as in the variable.
        let launch = echo(&args).secret("PGPASSWORD", PASSWORD).secret("OTHER", "pg-another-pass");
        let (_, message) = refusal(2, launch);
        assert!(message.contains(why), "{args:?}: {message}");
    }
}

#[test]
fn the_password_is_shown_nowhere() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.dsn();
    let log = folder.name("log");
    let args = ["--session-id", "s", "--log-level", "trace", "--log-file", &log];
    let launch = echo(&args).secret("PGPASSWORD", PASSWORD).env("DUOLOGUE_STORE", &dsn);
    let mut server = launch.start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.finish();
    let logged = std::fs::read_to_string(&log).expect("a log");
    let mut help = duologue(&folder, &["rpc", "--help"]);
    help.env("DUOLOGUE_STORE", &dsn).env("DUOLOGUE_TURNS_DSN", &dsn);
    let help = Once::start(help).finish();
    let shown = run(&folder, &["sessions", "show", "none", "--store", &dsn]);
    let bad = run(&folder, &["sessions", "list", "--store", &format!("{dsn}?x=y")]);
    assert_eq!((shown.status, bad.status), (1, 2), "{bad:?}");
    assert!(!logged.is_empty() && help.stdout.contains("DUOLOGUE_TURNS_DSN"));
    for text in [&logged, &help.stdout, &shown.stderr, &shown.stdout, &bad.stderr, &bad.stdout] {
        assert!(!text.contains("a-pass"), "{text}");
    }
}

#[test]
fn the_password_may_be_in_a_file_of_its_owner() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let path = folder.path("passwords");
    std::fs::write(&path, format!("*:*:{}:*:{PASSWORD}\n", database.name)).expect("a file");
    let dsn = database.bare_dsn();
    let exec = || {
        let words = ["exec", "--engine", "echo", "--store", &dsn, "hello"];
        let mut command = duologue(&folder, &words);
        command.env("PGPASSFILE", &path);
        Once::start(command).finish()
    };
    for (mode, is_used) in [(0o600, true), (0o644, false)] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("our file");
        let ended = exec();
        assert_eq!(!ended.stderr.contains("password missing"), is_used, "{ended:?}");
    }
    assert_eq!(database.query("SELECT count(*) FROM duologue.sessions"), "1");
}

/// The envelope of `sessions <words> --output json`, and the status.
#[track_caller]
fn envelope(folder: &Folder, dsn: &str, words: &[&str]) -> (Value, i32) {
    let words = [&["sessions"], words, &["--store", dsn, "--output", "json"]].concat();
    let ended = run(folder, &words);
    (serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")), ended.status)
}

#[test]
fn sessions_are_listed_shown_exported_found_and_deleted() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.bare_dsn();
    std::fs::write(folder.path("notes.txt"), "shared bytes").expect("a file");
    for (id, prompt) in [("old", "What is a lock?\nSecond"), ("new", "Größe of the FOX")] {
        let words = ["exec", "--engine", "echo", "--store", &dsn, "--session-id", id, prompt];
        let ended = run(&folder, &[&words[..], &["--attach", "notes.txt"]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    let (listed, status) = envelope(&folder, &dsn, &["list"]);
    let data = listed["data"].as_array().expect("a list");
    let ids: Vec<_> = data.iter().map(|it| it["id"].as_str().expect("an id")).collect();
    assert_eq!((status, ids), (0, vec!["new", "old"]));
    assert_eq!((&data[1]["title"], &data[1]["turns"]), (&json!("What is a lock?"), &json!(1)));
    assert!(data[1]["bytes"].as_u64() > Some(100), "{listed}");
    let shown = run(&folder, &["sessions", "show", "old", "--store", &dsn]);
    assert!(shown.stdout.starts_with("user: What is a lock?\nSecond"), "{shown:?}");
    let exported = run(&folder, &["sessions", "export", "old", "--store", &dsn]);
    assert_eq!(exported.stdout.lines().count(), 2, "{exported:?}");
    for (words, ids) in [
        (vec!["fox"], vec!["new", "new"]),
        (vec!["GRÖSSE"], vec!["new", "new"]),
        (vec!["größe", "fox"], vec!["new", "new"]),
        (vec!["fox größe"], vec![]),
        (vec!["'", "lock"], vec!["old", "old"]),
        (vec!["a\\b & !c"], vec![]),
        (vec!["nothing"], vec![]),
    ] {
        let (found, status) = envelope(&folder, &dsn, &[&["search"], &words[..]].concat());
        let found = found["data"].as_array().expect("a list");
        let found: Vec<_> =
            found.iter().map(|it| it["sessionId"].as_str().expect("an id")).collect();
        assert_eq!((status, found), (0, ids), "{words:?}");
    }
    // A process holds it.
    let mut holder = echo(&["--store", &dsn, "--session-id", "old", "--resume"])
        .secret("PGPASSWORD", PASSWORD)
        .start();
    wait_state(&mut holder);
    let (refused, status) = envelope(&folder, &dsn, &["delete", "old"]);
    assert_eq!((status, &refused["error"]["code"]), (1, &json!("not_deleted")), "{refused}");
    holder.finish();
    let blobs = || database.query("SELECT count(*) FROM duologue.blobs");
    assert_eq!(blobs(), "1", "of both sessions");
    assert_eq!(envelope(&folder, &dsn, &["delete", "old"]).1, 0);
    assert_eq!(blobs(), "1", "the other one has it");
    assert_eq!(envelope(&folder, &dsn, &["delete", "new", "none"]).1, 1);
    for table in ["sessions", "log", "words", "blobs", "session_blobs", "leases", "processes"] {
        let rows = database.query(&format!("SELECT count(*) FROM duologue.{table}"));
        assert_eq!(rows, "0", "{table}");
    }
}

/// What is not in the index yet is found as well.
#[test]
fn a_session_that_is_renamed_is_not_the_one_that_was_used_last() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.dsn();
    let exec = |words: &[&str]| {
        let ended = run(&folder, &[&["exec", "--engine", "echo", "--store", &dsn], words].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        ended.stdout
    };
    exec(&["--session", "old", "apples"]);
    exec(&["--session", "new", "pears"]);
    let updated = "SELECT updated_ms FROM duologue.sessions WHERE id = 'old'";
    let before = database.query(updated);
    let renamed = run(&folder, &["sessions", "rename", "old", "Fruit", "--store", &dsn]);
    assert_eq!(renamed.status, 0, "{renamed:?}");
    let (listed, _) = envelope(&folder, &dsn, &["list"]);
    assert_eq!(listed["data"][1]["title"], "Fruit", "{listed}");
    assert_eq!(database.query(updated), before);
    let answer = exec(&["--continue", "more"]);
    assert!(answer.contains("pears"), "{answer}");
}

/// The clock was days ahead once; now it is right.
#[test]
fn the_last_activity_is_right_again_after_a_clock_that_was_far_ahead() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.bare_dsn();
    let words = ["exec", "--engine", "echo", "hi", "--store", &dsn, "--session", "s"];
    assert_eq!(run(&folder, &words).status, 0);
    for (hours, is_kept) in [(47, "f"), (23, "t")] {
        database.query(&format!(
            "UPDATE duologue.sessions SET updated_ms = updated_ms + {hours} * 3600000"
        ));
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{ended:?}");
        let is_ahead = "SELECT updated_ms > (extract(epoch FROM now()) + 3600) * 1000 \
                        FROM duologue.sessions";
        assert_eq!(database.query(is_ahead), is_kept, "{hours} hours");
    }
}

/// The index of folders takes no row of this length.
#[test]
fn a_conversation_of_a_very_deep_folder_is_stored_and_continued() {
    const NAME_BYTES: usize = 240;
    const DEPTH: usize = 14;
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    // The server compresses names in which something is repeated.
    let mut random = 1_u32;
    let mut letter = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit(10 + (random >> 24) % 26, 36).expect("a letter")
    };
    let mut name = || (0..NAME_BYTES).map(|_| letter()).collect::<String>();
    let deep = (0..DEPTH).fold(folder.path(""), |path, _| path.join(name()));
    std::fs::create_dir_all(&deep).expect("a folder");
    let dsn = database.bare_dsn();
    let ask = |words: &[&str]| {
        let words = [&["exec", "--engine", "echo", "--store", &dsn], words].concat();
        let mut command = duologue(&folder, &words);
        command.env("PGPASSWORD", PASSWORD).current_dir(&deep);
        let mut once = Once::start(command);
        once.close_stdin();
        let ended = once.finish();
        assert!(ended.status == 0 && !ended.stderr.contains("store"), "{}", ended.stderr);
        ended.stdout
    };
    assert!(ask(&["--session-id", "s", "one"]).starts_with("Turn 1."));
    assert!(ask(&["--continue", "two"]).starts_with("Turn 2."));
    assert_eq!(database.query("SELECT id, turns FROM duologue.sessions"), "s|2");
}

#[test]
fn words_of_a_run_that_was_cut_off_are_found() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let mut server = database.stored(&["--echo-delay-ms", "1000"]).start();
    server.send(submit("r1", "a rare word"));
    server.wait_event("ChatTextPatch");
    kill(server);
    let (found, _) = envelope(&folder, &database.bare_dsn(), &["search", "rare"]);
    assert_eq!(found["data"][0]["sessionId"], "s", "{found}");
    let (found, _) = envelope(&folder, &database.bare_dsn(), &["search", "unheard"]);
    assert_eq!(found["data"], json!([]), "{found}");
}

/// The certificate of a server that is not this machine is checked, and its name.
#[test]
fn the_certificate_of_a_server_is_verified() {
    needs!(Postgres);
    let postgres = PostgresServer::start_with_tls();
    let database = postgres.database();
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/ca.pem");
    // A name that leads to this machine, but is not in the certificate.
    let other = format!(
        "host=db.example hostaddr=127.0.0.1 port={} user={USER} dbname={}",
        database.port, database.name
    );
    let local = other.replace("db.example", "localhost");
    let unnamed = other.replace("host=db.example", "");
    let named = format!("sslrootcert={authority}");
    for (number, (place, options, refused)) in [
        (&local, format!("sslmode=verify-full {named}"), None),
        (&local, "sslmode=verify-full".to_owned(), Some("UnknownIssuer")),
        (&local, "sslmode=verify-full sslrootcert=/none".to_owned(), Some("root certificates")),
        (&local, "sslmode=verify-ca".to_owned(), Some("UnknownIssuer")),
        (&local, "sslmode=require".to_owned(), None),
        (&local, String::new(), None),
        (&other, format!("sslmode=verify-full {named}"), Some("not valid for name")),
        (&other, format!("sslmode=verify-ca {named}"), None),
        (&other, format!("sslmode=require {named}"), None),
        (&unnamed, String::new(), None),
        (&unnamed, format!("sslmode=verify-full {named}"), None),
        (&unnamed, "sslmode=verify-full".to_owned(), Some("UnknownIssuer")),
    ]
    .into_iter()
    .enumerate()
    {
        let (dsn, id) = (format!("{place} {options}"), format!("s{number}"));
        let args = ["--turns-dsn", &dsn, "--timeline-dsn", &dsn, "--session-id", &id];
        let launch = echo(&args).secret("PGPASSWORD", PASSWORD);
        if let Some(why) = refused {
            let (code, message) = refusal(2, launch);
            assert_eq!(code, "store_failed", "{options}");
            assert!(message.contains(why), "{options}: {message}");
            continue;
        }
        let mut server = launch.start();
        assert_eq!(server.turn("r1", "one"), "ok", "{options}");
        let encrypted = "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity \
                         USING (pid) WHERE application_name = 'duologue'";
        assert!(database.query(encrypted).ends_with("|t"), "{options}");
        assert_eq!(errors(&server.finish().frames, ""), [""; 0], "{options}");
    }
}

/// As with libpq, which knows it by its common name where it has no other.
#[test]
fn a_certificate_that_its_server_has_signed_is_its_own_authority() {
    needs!(Postgres);
    let postgres = PostgresServer::start_with_own_certificate();
    let database = postgres.database();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
    let (own, another) = (format!("{data}/self_signed.pem"), format!("{data}/starred.pem"));
    for (number, (host, mode, root, refused)) in [
        ("localhost", "verify-full", &own, None),
        ("localhost", "verify-ca", &own, None),
        ("localhost", "require", &own, None),
        ("localhost", "verify-full", &another, Some("invalid peer certificate")),
        ("localhost", "verify-ca", &another, Some("invalid peer certificate")),
        ("db.example", "verify-full", &own, Some("not valid for name")),
        ("db.example", "verify-ca", &own, None),
        // The number is not in the certificate.
        ("", "verify-full", &own, Some("not valid for name")),
    ]
    .into_iter()
    .enumerate()
    {
        let named = if host.is_empty() { String::new() } else { format!("host={host}") };
        let dsn = format!(
            "{named} hostaddr=127.0.0.1 port={} user={USER} dbname={} sslmode={mode} \
             sslrootcert={root}",
            database.port, database.name
        );
        let id = format!("s{number}");
        let args = ["--turns-dsn", &dsn, "--timeline-dsn", &dsn, "--session-id", &id];
        let launch = echo(&args).secret("PGPASSWORD", PASSWORD);
        match refused {
            Some(why) => {
                let (code, message) = refusal(2, launch);
                assert!(code == "store_failed" && message.contains(why), "{dsn}: {message}");
            }
            None => {
                let mut server = launch.start();
                assert_eq!(server.turn("r1", "one"), "ok", "{dsn}");
                assert_eq!(errors(&server.finish().frames, ""), [""; 0], "{dsn}");
            }
        }
    }
}

/// Whoever waits for a session asks who holds it, and writes nothing meanwhile.
#[test]
fn to_wait_for_a_session_asks_for_no_leases() {
    needs!(Postgres);
    let database = Database::new();
    let mut holder = database.stored(&[]).start();
    assert_eq!(holder.turn("r", "hello"), "ok");
    let fences = || database.query("SELECT last_value FROM duologue.fences").parse::<u32>();
    let before = fences().expect("a number");
    let mut waiting = database.resumed(&["--lock-wait-ms", "600"]).start();
    waiting.send(submit("r", "hello"));
    let refused = waiting.finish_with(75, Answers::AllAndFarewell);
    assert_eq!(errors(&refused.frames, "r"), ["session_locked"]);
    // The wait has at least a few attempts.
    assert!(fences().expect("a number") <= before + 2);
    holder.finish();
}
