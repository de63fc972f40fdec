//! A session that a person names: it goes on if it is stored, and begins if not.

use crate::frames::{Frame, errors, patched_text, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::postgres_server::{Database, PASSWORD};
use crate::process::eventually;
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY, Launch, Server, echo};
use crate::store::{events, kill, wait_state};
use crate::store_kills::{check_events, check_state};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Processes that are killed with one store each, before one that is not.
const KILLS_IN_A_ROW: u64 = 3;

/// Pages of the write-ahead log at which a process is killed, at most: more than a turn writes.
const LOG_PAGES_MAX: u64 = 24;

/// Frames after which a process is killed, at most: more than an answer has.
const FRAMES_MAX: u64 = 24;

/// Bytes of a page in the write-ahead log, with its header.
const LOG_PAGE_BYTES: u64 = 24 + 4096;

/// `duologue rpc --session <name>`.
fn named(folder: &Folder, name: &str, args: &[&str]) -> Launch {
    let place = folder.name("store");
    echo(&[&["--store", &place, "--session", name], args].concat())
}

/// The texts of the messages that the session begins with.
#[track_caller]
fn said(server: &mut Server) -> Vec<String> {
    let state = wait_state(server);
    state.messages().into_iter().map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn a_session_is_begun_or_gone_on_with_by_its_name() {
    let folder = Folder::new();
    let mut first = named(&folder, "nightly-10", &[]).start();
    assert_eq!(said(&mut first), [""; 0], "the state of one that begins is empty");
    assert_eq!(first.turn("r1", "one"), "ok");
    assert_eq!(first.finish().frames[0].text("/sessionId"), "nightly-10");
    let mut again = named(&folder, "nightly-10", &[]).start();
    assert_eq!(said(&mut again), ["one", "Turn 1. You said: one"]);
    assert_eq!(again.turn("r2", "two"), "ok");
    let answer = patched_text(&again.finish().frames, "r2");
    assert!(answer.contains("Turn 2") && answer.contains("one"), "{answer}");
    // The beginning of a name is another name.
    let mut other = named(&folder, "nightly-1", &[]).start();
    assert_eq!(said(&mut other), [""; 0]);
    assert_eq!(other.turn("r1", "three"), "ok");
    other.finish();
}

/// An envelope of `--json-stream` has the UUID of a generated id alone.
#[test]
fn a_session_goes_on_by_the_uuid_of_its_generated_id() {
    let folder = Folder::new();
    let place = folder.name("store");
    let args = ["exec", "--engine", "echo", "--store", &place, "--json-stream"];
    let first = Once::start(duologue(&folder, &[&args[..], &["one"]].concat())).finish();
    let line = first.stdout.lines().next().expect("an event");
    let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let uuid = event["sessionId"].as_str().expect("a UUID");
    assert!(uuid::Uuid::try_parse(uuid).is_ok(), "{uuid}");
    let second = [&args[..5], &["--session", uuid, "two"]].concat();
    let second = Once::start(duologue(&folder, &second)).finish();
    assert!(second.stdout.starts_with("Turn 2. You said: two"), "{second:?}");
}

/// What is chosen on the command line, or was before, counts as it does with `--resume`.
#[test]
fn choices_go_on() {
    let folder = Folder::new();
    let provider = Provider::start(["a", "b", "c", "d"].map(says).to_vec());
    let base_url = provider.base_url();
    let begins = ["--engine", "openai", "--model", "first", "--base-url", &base_url];
    let prompts = ["--system", "Be brief.", "--append-system", "Be kind."];
    let begins = [&begins[..], &prompts].concat();
    for more in [&begins[..], &["--append-system", "No."], &["--model", "second"], &[]] {
        let words = ["exec", "hi", "--store", "chat.db", "--session", "s"];
        let mut command = duologue(&folder, &[&words, more].concat());
        command.env("OPENAI_API_KEY", KEY).env("DUOLOGUE_MODEL", "of-environment");
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 0, "{more:?}: {ended:?}");
    }
    let models = (1..=4).map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models.collect::<Vec<_>>(), ["first", "first", "second", "second"]);
    let systems = (1..=4).map(|number| provider.wait_request(number).body["messages"][0].clone());
    assert!(systems.into_iter().all(|it| it["content"] == "Be brief.\n\nBe kind."));
}

#[test]
fn one_of_two_processes_holds_a_session_of_that_name() {
    let folder = Folder::new();
    let mut holder = named(&folder, "s", &[]).start();
    wait_state(&mut holder);
    let refused = named(&folder, "s", &[]).start().finish_with(75, Answers::AllAndFarewell);
    assert_eq!(errors(&refused.frames, ""), ["session_locked"]);
    holder.finish();
}

/// A job waits for its turn, if it is told to.
#[test]
fn a_session_that_is_held_is_waited_for() {
    let folder = Folder::new();
    let mut holder = named(&folder, "s", &[]).start();
    wait_state(&mut holder);
    let mut waiting = named(&folder, "s", &["--lock-wait-ms", "600000"]).start();
    // It has begun, and waits for the other one from here on.
    waiting.wait_hello();
    holder.finish();
    assert_eq!(waiting.turn("r", "hello"), "ok");
    waiting.finish();
}

/// What was asked meanwhile has the reason as its own.
#[test]
fn requests_for_a_session_that_cannot_be_opened_are_answered() {
    let folder = Folder::new();
    let mut holder = named(&folder, "s", &[]).start();
    wait_state(&mut holder);
    // Long enough for the requests to be read meanwhile.
    let mut waiting = named(&folder, "s", &["--lock-wait-ms", "5000"]).start();
    waiting.wait_hello();
    waiting.send(submit("one", "hello"));
    waiting.send(r#"{"requestId":"two","snapshot":{}}"#);
    waiting.wait_until_all_is_read();
    let refused = waiting.finish_with(75, Answers::AllAndFarewell);
    for request in ["one", "two", ""] {
        assert_eq!(errors(&refused.frames, request), ["session_locked"], "{request}");
    }
    holder.finish();
}

#[test]
fn what_contradicts_a_name_is_an_error() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place];
    let long = "x".repeat(1025);
    for (args, why) in [
        (&["--session", "s"][..], "--session needs the store of the session"),
        (&["--session", "s", "--resume"], "--resume"),
        (&["--session", "s", "-c"], "--continue"),
        (&["--session", "s", "--session-id", "t"], "both name the session"),
        (&["--session", "s", "--no-store"], "--no-store stores nothing"),
        (&["--session", " "], "--session is blank"),
        (&["--session", &long], "--session is too long"),
        (&["--session", "s", "--history", "/dev/null"], "--history begins with other messages"),
    ] {
        let is_without_store = why.contains("needs the store");
        let args = [args, if is_without_store { &[] } else { &store[..] }].concat();
        let ended = echo(&args).start().finish_with(2, Answers::AllAndFarewell);
        let error = ended.frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert!(error.text("/error/message").contains(why), "{args:?}: {error:?}");
    }
    assert!(!folder.path("store").exists(), "nothing is made");
    // A typed name wins over a variable.
    let launch = named(&folder, "s", &[]).env("DUOLOGUE_SESSION_ID", "t");
    assert_eq!(launch.start().finish().frames[0].text("/sessionId"), "s");
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Started,
    /// The store is a file.
    Made,
    /// The store has a write-ahead log with so many pages.
    Logged(u64),
    /// So many frames were written.
    Shown(u64),
}

/// Moments from the start of a process to the end of its first turn.
fn moments() -> impl Iterator<Item = Moment> {
    let logged = (0..LOG_PAGES_MAX).map(Moment::Logged);
    let shown = (0..FRAMES_MAX).map(Moment::Shown);
    [Moment::Started, Moment::Made].into_iter().chain(logged).chain(shown)
}

/// Starts a process, submits before it has said anything, and kills it at this moment; gives its frames.
fn killed(launch: Launch, store: &Path, moment: Moment, request: &str) -> Vec<Frame> {
    let mut server = launch.start();
    server.send(submit(request, &"word ".repeat(12)));
    let log_bytes = || fs::metadata(store.with_extension("db-wal")).map_or(0, |about| about.len());
    eventually("the moment has come", || {
        let lines = server.lines();
        let has_come = match moment {
            Moment::Started => true,
            Moment::Made => store.exists(),
            Moment::Logged(pages) => log_bytes() >= pages * LOG_PAGE_BYTES,
            Moment::Shown(frames) => lines.len() as u64 >= frames,
        };
        let is_over = lines.iter().any(|line| line.contains("\"done\""));
        (has_come || is_over).then_some(())
    });
    kill(server).frames
}

#[test]
fn a_process_that_is_killed_at_any_moment_can_be_started_again_in_the_same_way() {
    for moment in moments() {
        let folder = Folder::new();
        let store = folder.path("chat.db");
        let place = folder.name("chat.db");
        let launch = || {
            let args = ["--store", &place, "--session", "job", "--final-snapshot", "none"];
            echo(&[&args[..], &["--echo-delay-ms", "1"]].concat())
        };
        let mut seen: BTreeMap<u64, Frame> = BTreeMap::new();
        for number in 0..KILLS_IN_A_ROW {
            let frames = killed(launch(), &store, moment, &format!("r{number}"));
            for frame in frames.into_iter().filter(|frame| frame.event().is_some()) {
                let ordinal = frame.ordinal().expect("an ordinal");
                let last = seen.last_key_value().map_or(0, |(last, _)| *last);
                assert!(ordinal > last, "{moment:?}: the ordinal {ordinal} was used before");
                seen.insert(ordinal, frame);
            }
        }
        let mut server = launch().start();
        check_state(&wait_state(&mut server), &seen);
        assert_eq!(server.turn("last", "hello"), "ok", "{moment:?}");
        server.finish();
        check_events(&events(&store), &seen);
    }
}

#[test]
fn a_session_of_a_server_is_begun_or_gone_on_with_by_its_name() {
    needs!(Postgres);
    let database = Database::new();
    let start = || {
        let dsn = database.dsn();
        let server = echo(&["--store", &dsn, "--session", "s", "--echo-delay-ms", "1"]);
        server.secret("PGPASSWORD", PASSWORD).start()
    };
    let mut first = start();
    assert_eq!(said(&mut first), [""; 0]);
    first.send(submit("r1", "one"));
    first.wait_event("ChatTextPatch");
    kill(first);
    let mut again = start();
    assert_eq!(said(&mut again)[0], "one");
    assert_eq!(again.turn("r2", "two"), "ok");
    again.finish();
}
