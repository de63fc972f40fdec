//! Conversations of one process that share a store: few threads and connections, however many there are, and what
//! one of them suffers touches no other.

use crate::frames::{Frame, errors, snapshot, submit};
use crate::once::{NOBODY, Once, duologue, duologue_of_nobody};
use crate::postgres_server::Database;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Server, echo, openai};
use crate::store::resumed;
use duologue::engine::echo::Echo;
use duologue::host::HostSettings;
use duologue::host::memory::Conversation;
use duologue::protocol::command::Command;
use duologue::protocol::id::SessionId;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use duologue::session::Rules;
use duologue::store::{Namespace, OpenMode, StorePlace, StoreSettings};
use futures_util::future::join_all;
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Conversations that are open at the same time in the tests.
const MANY: usize = 1_000;

/// Conversations that wait to be loaded while another one ends: more than there are threads for it.
const LOADED: usize = 20;

/// Threads and connections of a store, however many conversations have it.
const THREADS_MAX: usize = 8;
const CONNECTIONS_MAX: usize = 16;

/// As many descriptors as the system allows: a stored conversation has one, for its lock.
fn raise_limit() {
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }).expect("a limit");
}

fn started(place: &StorePlace, session: &str, mode: OpenMode) -> Conversation {
    let (places, folder) = (vec![place.clone()], String::new());
    let rules = Rules { session: SessionId::new(session), ..Rules::default() };
    let (lock_wait, namespace) = (Duration::ZERO, Namespace::default());
    let store = Some(StoreSettings { places, mode, folder, lock_wait, namespace });
    Conversation::start(HostSettings { rules, store, ..HostSettings::new(Echo::default()) })
}

fn sqlite(folder: &Folder) -> (StorePlace, PathBuf) {
    let path = folder.path("shared");
    (StorePlace::Sqlite(path.clone()), path)
}

/// The text of the answer, and the codes of the errors on the way to its end.
async fn turn(conversation: &mut Conversation, prompt: &str) -> (String, Vec<String>) {
    let request = conversation.submit(prompt).expect("it is open");
    let (mut answer, mut errors) = (String::new(), Vec::new());
    while let Some(line) = conversation.next_frame().await {
        match line.frame {
            Some(Body::Snapshot(state)) => {
                let last = state.entities.last().and_then(|it| it.payload.as_ref());
                answer = format!("{last:?}");
            }
            Some(Body::Error(error)) => errors.push(error.code),
            Some(Body::Done(_)) if line.request_id == request.as_str() => break,
            Some(_) | None => {}
        }
    }
    (answer, errors)
}

/// Has each of the conversations take a turn, all at the same time.
async fn turns(mut conversations: Vec<Conversation>, prompt: &str) -> Vec<Conversation> {
    let turns = conversations.iter_mut().map(|it| turn(it, prompt));
    for (answer, errors) in join_all(turns).await {
        assert!(answer.contains(prompt) && errors.is_empty(), "{answer} {errors:?}");
    }
    conversations
}

async fn close(mut conversations: Vec<Conversation>) {
    join_all(conversations.iter_mut().map(Conversation::close)).await;
}

/// Threads of this process that belong to stores.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("threads");
    let names = tasks.filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("store-")).collect()
}

/// Descriptors of this process that are open on a file.
fn descriptors(path: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("descriptors");
    all.filter(|it| {
        let target = it.as_ref().ok().and_then(|it| fs::read_link(it.path()).ok());
        target.is_some_and(|target| target == path)
    })
    .count()
}

#[tokio::test]
async fn many_conversations_share_the_writer_of_a_file() {
    raise_limit();
    let folder = Folder::new();
    let (place, path) = sqlite(&folder);
    let all =
        (0..MANY).map(|number| started(&place, &format!("s{number}"), OpenMode::New)).collect();
    let all = turns(all, "first prompt").await;
    assert!(threads().len() <= THREADS_MAX, "{:?}", threads());
    assert!((1..=CONNECTIONS_MAX).contains(&descriptors(&path)), "{}", descriptors(&path));
    let all = turns(all, "second prompt").await;
    close(all).await;
    assert_eq!(descriptors(&path), 0, "closed with the last conversation");
    assert!(!folder.path("shared-wal").exists(), "and its log is in it");
    let database = Connection::open(&path).expect("a store");
    let stored: (i64, i64) = database
        .query_row("SELECT count(*), sum(turns) FROM sessions", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("sessions");
    assert_eq!(stored, (1_000, 2_000));
    let all =
        (0..MANY).map(|number| started(&place, &format!("s{number}"), OpenMode::Resume)).collect();
    let all = turns(all, "second prompt").await;
    assert!(threads().len() <= THREADS_MAX, "{:?}", threads());
    close(all).await;
}

/// The threads that load wait for another store when the last conversation of this one ends.
#[tokio::test]
async fn a_store_is_closed_while_another_one_is_loaded() {
    let folder = Folder::new();
    let (place, path) = sqlite(&folder);
    let other = StorePlace::Sqlite(folder.path("other"));
    close(turns(vec![started(&other, "first", OpenMode::New)], "a prompt").await).await;
    let lock = Connection::open(folder.path("other")).expect("a store");
    lock.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    let mut last = started(&place, "last", OpenMode::New);
    let ending = async {
        assert!(turn(&mut last, "a prompt").await.0.contains("a prompt"));
        last.close().await;
        assert_eq!(descriptors(&path), 0, "closed with its last conversation");
        lock.execute_batch("COMMIT").expect("it is free");
    };
    let names = (0..LOADED).map(|number| format!("s{number}"));
    let others = names.map(|name| started(&other, &name, OpenMode::New)).collect();
    let ((), others) = tokio::join!(ending, turns(others, "another prompt"));
    close(others).await;
}

/// A row that is in the way of the next one of a session.
fn obstruct(path: &Path, session: &str) {
    let database = Connection::open(path).expect("a store");
    let sql = "INSERT INTO log(session, number, first, last, sealed, previous, hash, events) \
         SELECT key, rows + 1, 1, 1, 0, x'', x'', x'' FROM sessions WHERE id = ?";
    assert_eq!(database.execute(sql, [session]).expect("a row"), 1);
}

#[tokio::test]
async fn a_session_that_can_not_be_written_fails_alone() {
    let folder = Folder::new();
    let (place, path) = sqlite(&folder);
    let names = ["a", "b", "c"];
    let all = names.map(|name| started(&place, name, OpenMode::New)).into();
    let mut all = turns(all, "first prompt").await;
    obstruct(&path, "b");
    // Their batches meet in one transaction, as nothing is written while another program has it locked.
    let other = Connection::open(&path).expect("a store");
    other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    for conversation in &mut all {
        conversation.submit("second prompt").expect("it is open");
    }
    let free = tokio::task::spawn_blocking(move || other.execute_batch("COMMIT"));
    let mut failed = Vec::new();
    for (name, conversation) in names.into_iter().zip(&mut all) {
        while let Some(line) = conversation.next_frame().await {
            match line.frame {
                Some(Body::Error(error)) => failed.push((name, error.code)),
                Some(Body::Done(done)) => {
                    assert_eq!(done.status, "ok", "the conversation itself goes on");
                    break;
                }
                Some(_) | None => {}
            }
        }
    }
    free.await.expect("a thread").expect("it is free");
    assert_eq!(failed, [("b", "store_failed".to_owned())]);
    // One that has failed goes on, and is not written again.
    close(turns(all, "third prompt").await).await;
    let database = Connection::open(&path).expect("a store");
    let turns = |name: &str| {
        let sql = "SELECT turns FROM sessions WHERE id = ?";
        database.query_row(sql, [name], |row| row.get::<_, i64>(0)).expect("a session")
    };
    assert_eq!(names.map(turns), [3, 1, 3]);
}

/// A conversation that is dropped while it is opened, or in mid-run, holds its session no longer than that takes.
#[tokio::test]
async fn a_conversation_that_is_dropped_releases_its_session() {
    let folder = Folder::new();
    let (place, _) = sqlite(&folder);
    close(turns(vec![started(&place, "s", OpenMode::New)], "first prompt").await).await;
    let mut other = started(&place, "other", OpenMode::New);
    assert_eq!(turn(&mut other, "keeps the store open").await.1, [""; 0]);
    for frames in 0..12 {
        let mut dropped = started(&place, "s", OpenMode::Resume);
        dropped.submit("word word word").expect("it is open");
        for _ in 0..frames {
            dropped.next_frame().await;
        }
        drop(dropped);
        let mut next = loop {
            let mut next = started(&place, "s", OpenMode::Resume);
            let (_, errors) = turn(&mut next, "go on").await;
            match &*errors {
                [] => break next,
                [code] => assert_eq!(code, "session_locked", "after {frames} frames"),
                more => panic!("after {frames} frames: {more:?}"),
            }
        };
        next.close().await;
    }
    close(vec![other]).await;
}

/// The prompts in the state of a session, oldest first.
fn prompts(server: &mut Server) -> Vec<String> {
    server.send(snapshot("state"));
    let is_state = |frame: &Frame| frame.is_snapshot() && frame.id() == "state";
    let state = server.wait("the state", is_state);
    let prompts = state.messages().into_iter().filter(|(role, _)| *role == "user");
    prompts.map(|(_, text)| text.to_owned()).collect()
}

/// Without its lock another process can open a session that is open: neither deletes what the other has stored.
#[test]
fn a_session_that_another_process_has_written_to_is_left_to_it() {
    for is_idle in [false, true] {
        let folder = Folder::new();
        let provider = Provider::start(vec![
            [vec![Step::Text("a ".to_owned()), Step::Gate], says("b")].concat(),
            says("c"),
        ]);
        let place = folder.name("store");
        let mut first = openai(&provider, &["--store", &place, "--session-id", "s"]).start();
        first.send(submit("r1", "one"));
        first.wait_event("ChatTextPatch");
        if is_idle {
            provider.open_gate();
            assert_eq!(first.wait_done("r1"), "ok");
        }
        fs::remove_dir_all(folder.path("store.locks")).expect("locks");
        let mut second = resumed(&folder, &[]).start();
        assert_eq!(second.turn("r2", "two"), "ok");
        assert_eq!(second.turn("r3", "three"), "ok");
        assert_eq!(errors(&second.finish().frames, ""), [""; 0]);
        if is_idle {
            assert_eq!(first.turn("r4", "four"), "ok");
        } else {
            provider.open_gate();
            assert_eq!(first.wait_done("r1"), "ok");
        }
        let frames = first.finish().frames;
        let error = frames.iter().find(|it| it.error() == Some("store_failed")).expect("an error");
        let message = error.text("/error/message");
        assert!(message.contains("another process has written to the session"), "{message}");
        let mut third = resumed(&folder, &[]).start();
        assert_eq!(prompts(&mut third), ["one", "two", "three"], "idle: {is_idle}");
        let ended = third.finish();
        assert!(!ended.stderr.contains("damaged"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn many_conversations_share_the_connections_to_a_server() {
    needs!(Postgres);
    let database = Database::new();
    let place: StorePlace = database.dsn().parse().expect("an address");
    let all =
        (0..MANY).map(|number| started(&place, &format!("s{number}"), OpenMode::New)).collect();
    let mut all = turns(all, "first prompt").await;
    assert!(threads().len() <= THREADS_MAX, "{:?}", threads());
    let connections = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let connections: usize = database.query(connections).parse().expect("a number");
    assert!((1..=CONNECTIONS_MAX).contains(&connections), "{connections}");
    assert_eq!(database.query("SELECT count(*) FROM duologue.processes"), "1");
    assert_eq!(database.query("SELECT count(*) FROM duologue.leases"), MANY.to_string());
    all[3].request(Command::Rename("a title".to_owned())).expect("it is open");
    // One session is taken by another process: it alone is lost.
    database.query(
        "UPDATE duologue.leases SET fence = nextval('duologue.fences') WHERE session = 's7'",
    );
    let second = join_all(all.iter_mut().map(|it| turn(it, "second prompt"))).await;
    for (number, (answer, errors)) in second.into_iter().enumerate() {
        let expected: &[&str] = if number == 7 { &["store_failed"] } else { &[] };
        assert!(answer.contains("second prompt") && errors == expected, "{number}: {errors:?}");
    }
    close(all).await;
    let titled = "SELECT id FROM duologue.sessions WHERE title = 'a title'";
    assert_eq!(database.query(titled), "s3");
    let stored = "SELECT count(*), sum(turns) FROM duologue.sessions";
    assert_eq!(database.query(stored), "1000|1999");
    assert_eq!(database.query("SELECT count(*) FROM duologue.processes"), "0", "it has left");
    assert_eq!(database.query("SELECT count(*) FROM duologue.leases"), "0");
}

/// As the log of SQLite does. Only root can give files away.
#[test]
fn what_root_makes_beside_a_store_belongs_to_its_owner() {
    if !geteuid().is_root() {
        return;
    }
    let folder = Folder::for_all();
    chown(folder.path(""), Some(NOBODY), Some(NOBODY)).expect("root may");
    let run = |words: &[&str], is_root: bool| {
        let place = folder.name("store");
        let words = [words, &["--engine", "echo", "--store", &place]].concat();
        let start = if is_root { duologue } else { duologue_of_nobody };
        let mut command = start(&folder, &words);
        command.env("HOME", folder.path(""));
        let mut once = Once::start(command);
        once.close_stdin();
        once.finish()
    };
    let ask = |session: &str, is_root| run(&["exec", "hi", "--session", session], is_root);
    let first = ask("first", false);
    assert_eq!(first.status, 0, "{first:?}");
    let locks = folder.path("store.locks");
    fs::remove_dir_all(&locks).expect("root may");
    let by_root = ask("work", true);
    assert_eq!(by_root.status, 0, "{by_root:?}");
    let files = || fs::read_dir(&locks).expect("a folder").map(|it| it.expect("a lock").path());
    let made: Vec<_> = files().chain([locks.clone()]).collect();
    assert_eq!(made.len(), 2, "a lock and its folder: {made:?}");
    for path in made {
        assert_eq!(path.metadata().expect("a file").uid(), NOBODY, "{}", path.display());
    }
    let again = ask("work", false);
    assert_eq!(again.status, 0, "{again:?}");
    // The lock names who has it, and not who had it before.
    let mut holder = echo(&["--store", &folder.name("store"), "--session", "work"]).start();
    assert_eq!(holder.turn("r", "one"), "ok");
    let locked = ask("work", false);
    let named = format!("process {} on", holder.process().0);
    assert!(locked.stderr.contains(&named), "{named}: {locked:?}");
    holder.finish();
    // As an earlier version has left it.
    files().for_each(|lock| chown(lock, Some(0), Some(0)).expect("root may"));
    let refused = ask("work", false);
    assert_ne!(refused.status, 0, "{refused:?}");
    let why = ["/store.locks/", "it belongs to another user"].map(|it| refused.stderr.contains(it));
    assert_eq!(why, [true; 2], "{refused:?}");
    let checked = run(&["doctor"], false);
    let line = checked.stdout.lines().find(|line| line.contains("  store: "));
    let line = line.unwrap_or_else(|| panic!("{checked:?}"));
    assert!(
        line.starts_with("note ") && line.contains("another user owns 1 of its locks"),
        "{line}"
    );
    let other = ask("other", false);
    assert_eq!(other.status, 0, "{other:?}");
}
