//! Servers that end, connections that are cut, and processes that are stopped: what was shown is
//! stored, nothing is stored twice, and a process that lost its session can't write.

use crate::frames::{Frame, errors, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::postgres::wait_free;
use crate::postgres_server::{Database, Loss, PASSWORD, PostgresServer, Proxy};
use crate::server::{Folder, Transcript, echo};
use crate::store::{kept, kill, wait_state};
use crate::store_kills::{check_events, check_state, killed};
use rustix::process::Signal;
use std::collections::BTreeMap;

/// Kills in the test of kills.
const KILLS: u64 = 40;

/// Statements that write in one short turn, and some more.
#[cfg(debug_assertions)]
const STATEMENTS: u32 = 16;

/// Questions while a store is opened and a session is locked.
const QUESTIONS: u32 = 8;

/// Each event that was shown is stored once.
#[track_caller]
fn check_stored(database: &Database, shown: &[Frame]) {
    let events = shown.iter().filter(|frame| frame.event().is_some());
    let seen = events.map(|frame| (frame.ordinal().expect("an ordinal"), frame.clone())).collect();
    check_events(&database.events(), &seen);
}

/// The conversation that is stored goes on.
#[track_caller]
fn check_resumes(database: &Database) {
    let mut next = wait_free(database, &[]);
    assert_eq!(next.turn("next", "go on"), "ok");
    assert_eq!(errors(&next.finish().frames, ""), [""; 0]);
}

/// A process that is stopped loses its lease. When it goes on it can't write.
#[test]
fn a_process_that_lost_its_lease_can_not_write() {
    needs!(Postgres);
    let database = Database::new();
    let args = ["--echo-delay-ms", "20", "--extensions", "store"];
    let mut stopped = database.stored(&args).start();
    assert_eq!(stopped.turn("r1", "one"), "ok");
    stopped.send(submit("r2", &"word ".repeat(100)));
    stopped.wait_event("ChatTextPatch");
    stopped.signal(Signal::STOP);
    let mut other = wait_free(&database, &[]);
    assert_eq!(other.turn("r3", "mine now"), "ok");
    let before = database.query("SELECT writer, batch, last FROM duologue.sessions");
    let fence = database.query("SELECT fence FROM duologue.leases");
    assert!(before.starts_with(&format!("{fence}|")), "{before}");
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.wait_done("r2"), "ok", "the conversation itself goes on");
    assert_eq!(stopped.turn("r4", "unstored"), "ok");
    let ended = stopped.finish();
    assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
    assert!(ended.stderr.contains("another process took over the session"), "{}", ended.stderr);
    assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")));
    let after = database.query("SELECT writer, batch, last FROM duologue.sessions");
    assert_eq!(after, before, "nothing was written");
    assert_eq!(database.query("SELECT fence FROM duologue.leases"), fence, "nor freed");
    assert_eq!(other.turn("r5", "still mine"), "ok");
    assert_eq!(errors(&other.finish().frames, ""), [""; 0]);
    check_resumes(&database);
}

/// A reader takes no lease, also where the process that has it has no heartbeat any more.
#[test]
fn a_copy_takes_no_session_from_a_process_that_is_stopped() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let mut stopped = database.stored(&["--echo-delay-ms", "20"]).start();
    assert_eq!(stopped.turn("r1", "one"), "ok");
    stopped.send(submit("r2", &"word ".repeat(100)));
    stopped.wait_event("ChatTextPatch");
    stopped.signal(Signal::STOP);
    // As if it had been stopped for a minute.
    database
        .query("UPDATE duologue.processes SET heartbeat_at = heartbeat_at - interval '1 minute'");
    let dsn = database.bare_dsn();
    let words = ["sessions", "fork", "s", "--as", "copy", "--store", &dsn, "--output", "json"];
    let mut command = duologue(&folder, &words);
    command.env("PGPASSWORD", PASSWORD);
    let forked = Once::start(command).finish();
    assert_eq!(forked.status, 0, "{forked:?}");
    assert!(forked.stdout.contains("turn_goes_on"), "{forked:?}");
    let turns = database.query("SELECT turns FROM duologue.sessions WHERE id = 'copy'");
    assert_eq!(turns, "1");
    database.query("DELETE FROM duologue.sessions WHERE id = 'copy'");
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.wait_done("r2"), "ok");
    let ended = stopped.finish();
    assert_eq!(errors(&ended.frames, ""), [""; 0]);
    check_stored(&database, &ended.frames);
    check_resumes(&database);
}

/// Its process can't be asked: it ran on another machine.
#[test]
fn a_turn_that_was_cut_off_elsewhere_is_copied_once_its_process_is_silent_for_long() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let mut server = database.stored(&["--echo-delay-ms", "20"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.send(submit("r2", &"word ".repeat(10_000)));
    server.wait_event("ChatTextPatch");
    kill(server);
    let dsn = database.bare_dsn();
    for (age, copy, turns) in [("1 minute", "early", "1"), ("1 day", "late", "2")] {
        database.query(&format!(
            "UPDATE duologue.processes SET machine = 'another machine 1 2', \
                 heartbeat_at = clock_timestamp() - interval '{age}'"
        ));
        let words = ["sessions", "fork", "s", "--as", copy, "--store", &dsn, "--output", "json"];
        let mut command = duologue(&folder, &words);
        command.env("PGPASSWORD", PASSWORD);
        let forked = Once::start(command).finish();
        assert_eq!(forked.status, 0, "{forked:?}");
        assert_eq!(forked.stdout.contains("turn_goes_on"), turns == "1", "{age}: {forked:?}");
        let of_copy = format!("SELECT turns FROM duologue.sessions WHERE id = '{copy}'");
        assert_eq!(database.query(&of_copy), turns, "{age}");
    }
}

/// A server that ends in mid-turn, in order or not, and starts again.
#[test]
fn a_turn_goes_on_after_the_server_was_started_again() {
    needs!(Postgres);
    let mut postgres = PostgresServer::start();
    let database = postgres.database();
    let mut shown = Vec::new();
    for (number, signal) in ["INT", "QUIT", "INT", "QUIT"].into_iter().enumerate() {
        let id = format!("r{number}");
        let args = ["--echo-delay-ms", "10"];
        let mut server = match number {
            0 => database.stored(&args).start(),
            _ => wait_free(&database, &args),
        };
        server.send(submit(&id, &"word ".repeat(60)));
        server.wait_event("ChatTextPatch");
        postgres.restart(signal);
        assert_eq!(server.wait_done(&id), "ok");
        let ended = server.finish();
        assert_eq!(errors(&ended.frames, ""), [""; 0], "{signal}: {}", ended.stderr);
        shown.extend(kept(&ended.frames));
        let stored: Vec<_> = database.events().into_iter().map(|event| event.0).collect();
        assert_eq!(stored, shown, "{signal}");
    }
    check_resumes(&database);
}

/// Runs two turns while the `nth` commit is lost in this way.
#[track_caller]
fn lose(nth: u32, how: Loss) -> Option<(Database, Transcript)> {
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let dsn = database.dsn_at(proxy.port);
    // Slow enough that a turn is several batches.
    let slow = ["--echo-delay-ms", "20"];
    let mut server = echo(&[&["--store", &*dsn, "--session-id", "s"], &slow[..]].concat()).start();
    proxy.lose(nth, how);
    for id in ["r1", "r2"] {
        assert_eq!(server.turn(id, "two words"), "ok", "commit {nth}, {how:?}");
    }
    proxy.has_lost().then(|| (database, server.finish()))
}

#[test]
fn a_batch_is_stored_once_when_the_answer_to_its_commit_is_lost() {
    needs!(Postgres);
    let mut lost = 0;
    for how in [Loss::Answer, Loss::Request] {
        for nth in 1..=8 {
            let Some((database, ended)) = lose(nth, how) else { break };
            lost += 1;
            assert_eq!(errors(&ended.frames, ""), [""; 0], "commit {nth}, {how:?}");
            check_stored(&database, &ended.frames);
            check_resumes(&database);
        }
    }
    assert!(lost >= 6, "{lost} commits were lost");
}

/// What somebody else changed meanwhile is not taken for the batch.
#[test]
fn a_commit_of_other_content_is_not_taken_for_the_batch() {
    needs!(Postgres);
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let dsn = database.dsn_at(proxy.port);
    let mut server = echo(&["--store", &dsn, "--session-id", "s"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    database.query(
        "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.head = decode(''00'', ''hex''); RETURN NEW; END'; \
         CREATE TRIGGER other BEFORE UPDATE ON duologue.sessions \
         FOR EACH ROW EXECUTE FUNCTION other()",
    );
    proxy.lose(1, Loss::Answer);
    assert_eq!(server.turn("r2", "two"), "ok");
    let ended = server.finish();
    assert!(proxy.has_lost());
    assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
    assert!(ended.stderr.contains("lost what it had confirmed"), "{}", ended.stderr);
}

/// A server that does not come back: the conversation goes on without it.
#[test]
fn a_server_that_stays_away_ends_only_the_storing() {
    needs!(Postgres);
    let postgres = PostgresServer::start();
    let database = postgres.database();
    let mut server = database.stored(&["--extensions", "store"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    drop(postgres);
    assert_eq!(server.turn("r2", "two"), "ok");
    let ended = server.finish();
    assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
    assert!(ended.stderr.contains("can't be reached"), "{}", ended.stderr);
}

#[cfg(debug_assertions)]
#[test]
fn the_nth_write_fails_for_every_n() {
    needs!(Postgres);
    let mut hits = 0;
    for nth in 1..=STATEMENTS {
        let database = Database::new();
        let launch = database.stored(&["--extensions", "store", "--echo-delay-ms", "5"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("store:{nth}")).start();
        assert_eq!(server.turn("r1", "two words"), "ok", "at write {nth}");
        let ended = server.finish();
        let Some(degraded) = ended.frames.iter().find(|it| it.is_event("StoreDegraded")) else {
            continue;
        };
        hits += 1;
        let missing: u64 = degraded.payload("firstMissingOrdinal").parse().expect("a number");
        assert_eq!(errors(&ended.frames, ""), ["store_failed"], "at write {nth}");
        let stored = database.events();
        assert!(stored.iter().all(|event| event.0 < missing), "at write {nth}");
        if !stored.is_empty() {
            check_resumes(&database);
        }
    }
    assert!(hits >= 8, "{hits} of the writes failed");
}

#[test]
fn what_was_shown_before_a_kill_is_stored() {
    needs!(Postgres);
    let database = Database::new();
    let mut seen: BTreeMap<u64, Frame> = BTreeMap::new();
    for number in 0..KILLS {
        let mut server = match number {
            0 => database.stored(&["--echo-delay-ms", "1"]).start(),
            _ => database.resumed(&["--echo-delay-ms", "1", "--final-snapshot", "none"]).start(),
        };
        if number > 0 {
            check_state(&wait_state(&mut server), &seen);
        }
        let last = seen.keys().next_back().copied().unwrap_or_default();
        let frames = killed(server, number, number == 0);
        for frame in frames.into_iter().filter(|frame| frame.event().is_some()) {
            let ordinal = frame.ordinal().expect("an ordinal");
            assert!(ordinal > last, "the ordinal {ordinal} was used before kill {number}");
            seen.insert(ordinal, frame);
        }
    }
    assert!(seen.len() as u64 > KILLS * 5, "only {} events were seen", seen.len());
    check_events(&database.events(), &seen);
}

/// What is lost while the store is opened and the session is locked is asked again.
#[test]
fn a_connection_that_is_cut_while_the_store_is_opened_is_made_again() {
    needs!(Postgres);
    let database = Database::new();
    database.stored(&[]).start().finish();
    for how in [Loss::Answer, Loss::Request] {
        let mut lost = 0;
        for nth in 1..=QUESTIONS {
            let proxy = Proxy::start(database.port);
            let (dsn, id) = (database.dsn_at(proxy.port), format!("s-{how:?}-{nth}"));
            proxy.lose_question(nth, how);
            let mut server = echo(&["--store", &dsn, "--session-id", &id]).start();
            assert_eq!(server.turn("r1", "one"), "ok", "question {nth}, {how:?}");
            let ended = server.finish();
            assert_eq!(errors(&ended.frames, ""), [""; 0], "question {nth}, {how:?}");
            lost += u32::from(proxy.has_lost());
        }
        assert_eq!(lost, QUESTIONS, "{how:?}");
    }
}

#[test]
fn a_signal_ends_a_process_whose_server_hangs() {
    needs!(Postgres);
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let dsn = database.dsn_at(proxy.port);
    let options = ["--store", &dsn, "--session-id", "s", "--extensions", "store"];
    let mut server = echo(&[&options[..], &["--log-level", "info"]].concat()).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    proxy.stall();
    server.send(submit("r2", "two"));
    server.wait_log("task-2");
    server.signal(Signal::TERM);
    // Before the input ends.
    server.wait_log("received a signal");
    let ended = server.finish_with(143, Answers::AllAndFarewell);
    // The limit for the server itself is longer.
    assert!(ended.stderr.contains("4 s after the signal"), "{}", ended.stderr);
    assert!(errors(&ended.frames, "").contains(&"store_failed"), "{:?}", ended.frames);
    // Also while the store is opened.
    let mut server = echo(&options).start();
    server.wait_hello();
    server.signal(Signal::TERM);
    server.finish_with(143, Answers::AllAndFarewell);
}

/// The last run is over, and its frames wait for the server.
#[test]
fn a_signal_after_the_last_run_leaves_a_server_that_hangs_its_time() {
    needs!(Postgres);
    for is_second in [false, true] {
        let database = Database::new();
        let proxy = Proxy::start(database.port);
        let dsn = database.dsn_at(proxy.port);
        let options = ["--store", &dsn, "--session-id", "s", "--log-level", "info"];
        let mut server = echo(&options).start();
        assert_eq!(server.turn("r1", "one"), "ok");
        proxy.stall();
        server.send(submit("r2", "two"));
        server.close_stdin();
        server.wait_log("the engine has answered task=task-2");
        server.wait_log("end of input");
        server.signal(Signal::TERM);
        server.wait_log("received a signal");
        if is_second {
            server.signal(Signal::TERM);
            let ended = server.finish_with(143, Answers::Cut);
            assert!(!ended.frames.iter().any(|frame| frame.ends("r2")));
        } else {
            let ended = server.finish_with(143, Answers::All);
            assert!(ended.stderr.contains("4 s after the signal"), "{}", ended.stderr);
            assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
        }
    }
}

#[test]
fn an_id_that_can_not_be_stored_is_refused() {
    needs!(Postgres);
    let database = Database::new();
    let dsn = database.dsn();
    let mut server = echo(&["--store", &dsn]).start();
    server.send(r#"{"requestId":"r1","sessionId":"a\u0000b","submit":{"prompt":"one"}}"#);
    assert_eq!(server.wait_done("r1"), "ok");
    let ended = server.finish();
    assert_eq!(errors(&ended.frames, ""), ["store_failed"]);
    assert!(ended.stderr.contains("zero character"), "{}", ended.stderr);
}

/// As if it had an hour more when the process had its last heartbeat.
#[test]
fn a_session_is_free_after_the_clock_of_the_server_was_put_back() {
    needs!(Postgres);
    let database = Database::new();
    let mut killed = database.stored(&[]).start();
    assert_eq!(killed.turn("r1", "one"), "ok");
    kill(killed);
    database.query(
        "UPDATE duologue.processes SET machine = 'another one', \
         heartbeat_at = clock_timestamp() + interval '1 hour'",
    );
    let mut next = database.resumed(&[]).start();
    assert_eq!(wait_state(&mut next).messages().len(), 2);
    assert_eq!(next.turn("r2", "two"), "ok");
    assert_eq!(errors(&next.finish().frames, ""), [""; 0]);
}
