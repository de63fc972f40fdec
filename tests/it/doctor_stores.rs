//! `duologue doctor` and stores: whether a conversation could begin there, without a change to it.

use crate::frames::errors;
use crate::once::{Ended, Once, duologue, run};
use crate::oracle::Answers;
use crate::postgres_server::{Database, PASSWORD, USER};
use crate::server::{Folder, echo};
use crate::store::{kill, stored};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::symlink;

/// The line of the store at `place`, which is the only one.
#[track_caller]
fn line(folder: &Folder, place: &str) -> String {
    let ended = run(folder, &["doctor", "--engine", "echo", "--store", place]);
    one_line(&ended)
}

#[track_caller]
fn one_line(ended: &Ended) -> String {
    let lines: Vec<_> = ended.stdout.lines().filter(|it| it.contains("  store: ")).collect();
    let [line] = lines[..] else { panic!("{ended:?}") };
    assert_eq!(ended.status, i32::from(line.starts_with("wrong")), "{ended:?}");
    line.to_owned()
}

#[test]
fn a_store_that_can_be_used_is_described() {
    let folder = Folder::new();
    let none = run(&folder, &["doctor", "--engine", "echo"]);
    let default = format!(
        "ok     store: {}: can be made; no conversation is stored there yet (the default one, of chat, \
         --continue and --session)",
        folder.name("data/duologue/sessions.db")
    );
    assert_eq!(one_line(&none), default);
    assert!(!folder.path("data").exists(), "doctor makes no store");
    // A chat is held without one that can't be used.
    fs::write(folder.path("data"), "").expect("a file");
    let note = run(&folder, &["doctor", "--engine", "echo"]);
    assert!(one_line(&note).starts_with("note   store: "), "{note:?}");
    let mut command = duologue(&folder, &["doctor", "--engine", "echo"]);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    let homeless = Once::start(command).finish();
    assert!(one_line(&homeless).starts_with("note   store: none is named"), "{homeless:?}");
    let store = folder.name("store");
    let made = format!("ok     store: {store}: can be made; no conversation is stored there yet");
    assert_eq!(line(&folder, &store), made);
    assert!(!folder.path("store").exists(), "doctor makes no store");
    let deep = folder.name("new/folders/store");
    assert!(line(&folder, &deep).starts_with("ok     "));
    fs::write(&store, "").expect("a file");
    assert_eq!(line(&folder, &store), made);
    let mut holder = stored(&folder, &[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    let held = line(&folder, &store);
    let begin = format!(
        "ok     store: {store}: can be read and written; 1 session, 1 of them in use by process "
    );
    assert!(held.starts_with(&begin) && held.contains("; format "), "{held}");
    assert_eq!(holder.turn("r2", "two"), "ok");
    holder.finish();
    let before = fs::read(&store).expect("a file");
    let free = format!(
        "ok     store: {store}: can be read and written; 1 session, none of them is in use; format "
    );
    let shown = line(&folder, &store);
    assert!(shown.starts_with(&free) && !shown.contains("changes"), "{shown}");
    assert_eq!(fs::read(&store).expect("a file"), before, "doctor changes no store");
}

#[test]
fn a_conversation_that_is_damaged_is_named() {
    let folder = Folder::new();
    let store = folder.name("store");
    for session in ["a", "b"] {
        let args = ["--store", &store, "--session-id", session];
        let mut server = echo(&args).start();
        assert_eq!(server.turn("r", "one"), "ok");
        server.finish();
    }
    let whole = line(&folder, &store);
    assert!(
        whole.starts_with("ok ") && whole.ends_with("; all that is stored is whole"),
        "{whole}"
    );
    let database = Connection::open(&store).expect("a store");
    let sql = "UPDATE log SET events = X'FFFF' WHERE session = \
               (SELECT key FROM sessions WHERE id = 'b')";
    assert_eq!(database.execute(sql, []).expect("a row"), 1);
    drop(database);
    let damaged = line(&folder, &store);
    let why = "of 2 sessions that were read 1 can't be read as a whole: b; ";
    assert!(damaged.starts_with("wrong ") && damaged.contains(why), "{damaged}");
    assert!(damaged.contains("`duologue sessions fork ID`"), "{damaged}");
}

/// A full disk leaves a part of a page of a change that was never made.
#[test]
fn a_log_with_a_torn_page_is_noted() {
    let folder = Folder::new();
    let mut server = stored(&folder, &[]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    kill(server);
    let log = folder.path("store-wal");
    let mut bytes = fs::read(&log).expect("a log");
    // The salts of the log, a page that ends nothing, and not all of that.
    let salts = bytes[16..24].to_vec();
    bytes.extend([&[0, 0, 0, 2, 0, 0, 0, 0][..], &salts, &[0; 100]].concat());
    fs::write(&log, &bytes).expect("a file");
    for (of, copy) in [("store", "copy"), ("store-wal", "copy-wal")] {
        fs::copy(folder.path(of), folder.path(copy)).expect("a copy");
    }
    let noted = line(&folder, &folder.name("copy"));
    assert!(noted.starts_with("note ") && noted.contains("as after a full disk"), "{noted}");
    let mut server = stored(&folder, &["--resume", "--extensions", "store"]).start();
    assert_eq!(server.turn("r2", "two"), "ok");
    let ended = server.finish();
    assert!(!ended.stderr.contains("missing"), "{}", ended.stderr);
}

#[test]
fn both_stores_of_a_conversation_are_checked() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    let words = ["doctor", "--engine", "echo", "--turns-db", &turns, "--timeline-db", &timeline];
    let ended = run(&folder, &words);
    for place in [&turns, &timeline] {
        let expected = format!("ok     store: {place}: can be made");
        assert!(ended.stdout.lines().any(|line| line.starts_with(&expected)), "{ended:?}");
    }
    let mut by_variable = duologue(&folder, &["doctor", "--engine", "echo"]);
    by_variable.env("DUOLOGUE_STORE", &turns);
    let mut once = Once::start(by_variable);
    once.close_stdin();
    assert!(one_line(&once.finish()).contains(&turns));
}

#[test]
fn a_store_of_an_early_version_is_wrong_and_left_alone() {
    let folder = Folder::new();
    let store = folder.name("store");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store_format_1.db"), &store)
        .expect("a file");
    let before = fs::read(&store).expect("a file");
    let shown = line(&folder, &store);
    assert!(
        shown.starts_with("wrong  store: ") && shown.contains("format 1, of an early version"),
        "{shown}"
    );
    assert_eq!(fs::read(&store).expect("a file"), before);
}

#[test]
fn a_store_that_can_not_be_used_is_wrong() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).expect("a folder");
    fs::write(folder.path("notes"), "hello\n".repeat(1000)).expect("a file");
    Connection::open(folder.path("foreign"))
        .and_then(|it| it.execute_batch("CREATE TABLE notes(text)"))
        .expect("a database");
    let newer = Connection::open(folder.path("newer")).expect("a database");
    newer.pragma_update(None, "application_id", 0x6475_6f6c).expect("a number");
    newer.pragma_update(None, "user_version", 99).expect("a number");
    drop(newer);
    stored(&folder, &[]).start().finish();
    fs::rename(folder.path("store"), folder.path("linked")).expect("a file");
    symlink(folder.path("folder"), folder.path("linked.locks")).expect("a link");
    let pipe = folder.fifo("pipe");
    let [dir, notes, foreign, newer, linked] =
        ["folder", "notes", "foreign", "newer", "linked"].map(|name| folder.name(name));
    let below_a_file = folder.name("notes/store");
    for (place, why) in [
        (&*dir, "it is a folder"),
        (&pipe, "not a regular file"),
        (&notes, "is no store, and no database"),
        (&foreign, "a database of another program"),
        (&newer, "use a newer version"),
        (&linked, "it is a symbolic link"),
        (&below_a_file, "can't be"),
        ("mysql://h/x", "are not known"),
    ] {
        let shown = line(&folder, place);
        assert!(shown.starts_with("wrong  store: ") && shown.contains(why), "{why}: {shown}");
    }
    let both = ["--turns-db", "a", "--turns-dsn", "postgres://h/x"];
    let ended = run(&folder, &[&["doctor", "--engine", "echo"], &both[..]].concat());
    assert!(
        one_line(&ended).contains("--turns-db and --turns-dsn name the same place"),
        "{ended:?}"
    );
}

#[test]
fn a_store_that_another_program_has_locked_is_wrong() {
    let folder = Folder::new();
    let store = folder.name("store");
    stored(&folder, &[]).start().finish();
    let other = Connection::open(&store).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let shown = line(&folder, &store);
    assert!(shown.starts_with("wrong  ") && shown.contains("keeps it locked"), "{shown}");
    other.execute_batch("ROLLBACK").expect("the transaction");
    assert!(line(&folder, &store).starts_with("ok     "));
}

/// The line of a store on a server.
#[track_caller]
fn line_of(folder: &Folder, dsn: &str, words: &[&str]) -> String {
    let words = [&["doctor", "--engine", "echo", "--store", dsn], words].concat();
    let mut command = duologue(folder, &words);
    command.env("PGPASSWORD", PASSWORD);
    let mut once = Once::start(command);
    once.close_stdin();
    let ended = once.finish();
    assert!(!format!("{ended:?}").contains(PASSWORD), "{ended:?}");
    one_line(&ended)
}

/// An administrator has made the schema for a user who may make none.
#[test]
fn a_schema_that_is_there_needs_no_right_to_make_one() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let user = format!("user_of_{}", database.name);
    database.query(&format!("CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'"));
    let dsn = database.bare_dsn().replace(USER, &user);
    let begun = || {
        let launch = echo(&["--store", &dsn, "--session-id", "s"]);
        launch.secret("PGPASSWORD", PASSWORD).start()
    };
    let refused = |right: &str| {
        let shown = line_of(&folder, &dsn, &[]);
        assert!(shown.starts_with("wrong  ") && shown.contains(right), "{right}: {shown}");
        begun().finish_with(2, Answers::AllAndFarewell);
    };
    refused("GRANT CREATE ON DATABASE");
    database.query(&format!("CREATE SCHEMA duologue; GRANT USAGE ON SCHEMA duologue TO {user}"));
    refused("GRANT CREATE ON SCHEMA");
    database.query(&format!("GRANT CREATE ON SCHEMA duologue TO {user}"));
    let usable = line_of(&folder, &dsn, &[]);
    assert!(usable.ends_with(": can be made; no conversation is stored there yet"), "{usable}");
    let mut server = begun();
    assert_eq!(server.turn("r1", "one"), "ok");
    assert_eq!(errors(&server.finish().frames, ""), [""; 0]);
    let stored = line_of(&folder, &dsn, &[]);
    assert!(stored.starts_with("ok     ") && stored.contains("1 session"), "{stored}");
}

/// Another user has made the tables.
#[test]
fn each_right_that_a_conversation_needs_is_missed() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let mut server = database.stored(&[]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.finish();
    let user = format!("user_of_{}", database.name);
    database.query(&format!(
        "CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA duologue TO {user}"
    ));
    let dsn = database.bare_dsn().replace(USER, &user);
    let granted = |right: &str| {
        database.query(&format!("GRANT {right} IN SCHEMA duologue TO {user}"));
        line_of(&folder, &dsn, &[])
    };
    for right in ["SELECT", "INSERT", "UPDATE"] {
        let shown = granted(&format!("{right} ON ALL TABLES"));
        let needed = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA duologue";
        assert!(shown.starts_with("wrong  ") && shown.contains(needed), "{right}: {shown}");
    }
    let shown = granted("DELETE ON ALL TABLES");
    let needed = "GRANT USAGE ON ALL SEQUENCES IN SCHEMA duologue";
    assert!(shown.starts_with("wrong  ") && shown.contains(needed), "{shown}");
    let shown = granted("USAGE ON ALL SEQUENCES");
    assert!(shown.starts_with("ok     ") && shown.contains("1 session"), "{shown}");
    let launch = echo(&["--store", &dsn, "--session-id", "t"]);
    let mut server = launch.secret("PGPASSWORD", PASSWORD).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    assert_eq!(errors(&server.finish().frames, ""), [""; 0]);
}

#[test]
fn a_database_that_can_not_have_every_text_is_refused() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let name = format!("{}_latin", database.name);
    database.query(&format!("CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0"));
    let latin = Database { name, port: database.port };
    let shown = line_of(&folder, &latin.bare_dsn(), &[]);
    assert!(shown.starts_with("wrong  ") && shown.contains("encoding LATIN1"), "{shown}");
    let ended = latin.stored(&[]).start().finish_with(2, Answers::AllAndFarewell);
    let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert_eq!(error.error(), Some("store_failed"));
    assert!(error.text("/error/message").contains("encoding LATIN1"), "{error:?}");
    assert_eq!(latin.query("SELECT to_regnamespace('duologue') IS NULL"), "t", "nothing is made");
}

#[test]
fn a_database_on_a_server_is_checked() {
    needs!(Postgres);
    let database = Database::new();
    let folder = Folder::new();
    let dsn = database.bare_dsn();
    let line = |words: &[&str]| line_of(&folder, &dsn, words);
    assert!(line(&[]).ends_with(": can be made; no conversation is stored there yet"));
    assert_eq!(
        database.query("SELECT to_regnamespace('duologue') IS NULL"),
        "t",
        "nothing is made"
    );
    assert!(
        line(&["--offline"]).starts_with("note   ")
            && line(&["--offline"]).ends_with("not connected to (--offline)")
    );
    let mut holder = database.stored(&[]).start();
    assert_eq!(holder.turn("r1", "one"), "ok");
    let held = line(&[]);
    assert!(held.contains("1 session, 1 of them in use by process "), "{held}");
    holder.finish();
    let free = line(&[]);
    assert!(
        free.starts_with("ok     ") && free.contains("1 session, none of them is in use; format "),
        "{free}"
    );
    database
        .query(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name));
    let unwritable = line(&[]);
    assert!(
        unwritable.starts_with("wrong  ") && unwritable.contains("set to read only"),
        "{unwritable}"
    );
    let gone =
        run(&folder, &["doctor", "--engine", "echo", "--store", "postgres://ada@127.0.0.1:1/x"]);
    assert!(one_line(&gone).starts_with("wrong  "), "{gone:?}");
}
