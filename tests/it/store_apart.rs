//! A log in two files, of which one has more than the other.

use crate::frames::{Frame, cancel, errors, submit};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Server, echo, openai};
use crate::store::{events, kill, wait_state};
use rusqlite::Connection;
use std::fs;

/// The options for a session in two files.
fn options(folder: &Folder) -> Vec<String> {
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    ["--turns-db", &turns, "--timeline-db", &timeline, "--session-id", "s"]
        .map(str::to_owned)
        .to_vec()
}

fn args<'a>(options: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    options.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// How many rows of the first store are of a turn that goes on, and the ordinal up to which it has the log.
fn turns_until(folder: &Folder) -> (u32, u64) {
    let turns = Connection::open(folder.path("turns")).expect("a store");
    let open = "SELECT count(*) FROM log WHERE NOT sealed";
    let open = turns.query_row(open, [], |row| row.get(0)).expect("a number");
    let last = "SELECT last FROM sessions";
    let last: i64 = turns.query_row(last, [], |row| row.get(0)).expect("a number");
    (open, last.cast_unsigned())
}

/// Ends the second turn while the second store can't be written, and kills the process: the first has its
/// end, the second has not.
fn part_ways(folder: &Folder, mut server: Server, end: impl FnOnce(&mut Server)) {
    let timeline = Connection::open(folder.path("timeline")).expect("a store");
    timeline.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    end(&mut server);
    eventually("the end of the turn in the first store", || {
        (turns_until(folder).0 == 0).then_some(())
    });
    kill(server);
    timeline.execute_batch("ROLLBACK").expect("it was locked");
    let shown = events(&folder.path("timeline")).last().map_or(0, |event| event.0);
    assert!(turns_until(folder).1 > shown, "the first has more");
}

/// Waits until the prompt of the second turn is stored in both.
fn begin_second(folder: &Folder, server: &mut Server) {
    assert_eq!(server.turn("r1", "first"), "ok");
    server.send(submit("r2", "second"));
    server.wait_event("ChatProviderCallStarted");
    eventually("the rows of the turn", || (turns_until(folder).0 > 0).then_some(()));
}

/// Goes on twice: the lag is reported once, both have everything, and no ordinal is given twice.
fn goes_on(folder: &Folder, provider: &Provider, requests: usize) -> Vec<Vec<String>> {
    let options = options(folder);
    let more = ["--resume", "--extensions", "store"];
    let mut sent = Vec::new();
    for number in 0..2 {
        let before = turns_until(folder).1;
        let mut server = openai(provider, &args(&options, &more)).start();
        wait_state(&mut server);
        assert_eq!(server.turn("next", &format!("next {number}")), "ok");
        let ended = server.finish();
        assert_eq!(errors(&ended.frames, ""), [""; 0], "{}", ended.stderr);
        let is_reported = ended.stderr.contains("it was completed from");
        assert_eq!(is_reported, number == 0, "{}", ended.stderr);
        let first = ended.frames.iter().filter_map(Frame::ordinal).min().expect("events");
        assert!(first > before, "{first} was given already");
        let body = provider.wait_request(requests + 1 + number).body;
        let texts = body["messages"].as_array().expect("messages").iter();
        sent.push(texts.map(|it| it["content"].as_str().unwrap_or_default().to_owned()).collect());
    }
    let logs = ["turns", "timeline"].map(|name| events(&folder.path(name)));
    assert_eq!(logs[0], logs[1]);
    sent
}

#[test]
fn a_turn_whose_end_is_in_one_store_ends_in_the_other() {
    let folder = Folder::new();
    let half = vec![Step::Text("half".to_owned()), Step::Stall];
    let provider = Provider::start(vec![says("one"), half, says("two"), says("three")]);
    let mut server = openai(&provider, &args(&options(&folder), &[])).start();
    begin_second(&folder, &mut server);
    server.wait("the answer", |frame| frame.payload("text") == "half");
    part_ways(&folder, server, |server| server.send(cancel("c")));
    let sent = goes_on(&folder, &provider, 2);
    assert_eq!(sent[0][..3], ["first", "one", "second"]);
    assert!(sent[0][3].starts_with("half"), "{sent:?}");
    assert_eq!(sent[1].len(), 7, "{sent:?}");
}

#[test]
fn a_turn_that_failed_without_an_answer_is_not_taken_for_the_one_before() {
    let folder = Folder::new();
    let failing = vec![Step::Gate, Step::Cut];
    let provider = Provider::start(vec![says("one"), failing, says("two"), says("three")]);
    let mut server = openai(&provider, &args(&options(&folder), &["--retries", "0"])).start();
    begin_second(&folder, &mut server);
    part_ways(&folder, server, |_| provider.open_gate());
    let sent = goes_on(&folder, &provider, 2);
    assert_eq!(sent[0], ["first", "one", "next 0"]);
    assert_eq!(sent[1], ["first", "one", "next 0", "two", "next 1"]);
}

#[test]
fn a_store_that_is_gone_is_made_anew_from_the_other() {
    for gone in ["turns", "timeline"] {
        let folder = Folder::new();
        let options = options(&folder);
        let mut first = echo(&args(&options, &[])).start();
        assert_eq!(first.turn("r1", "remember 42"), "ok");
        first.finish();
        fs::remove_file(folder.path(gone)).expect("a file");
        let mut second = echo(&args(&options, &["--resume", "--extensions", "store"])).start();
        assert_eq!(wait_state(&mut second).messages()[0], ("user", "remember 42"));
        assert_eq!(second.turn("r1", "what?"), "ok");
        let ended = second.finish();
        assert!(ended.stderr.contains("did not have the session"), "{}", ended.stderr);
        assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")));
        let answer = crate::frames::patched_text(&ended.frames, "r1");
        assert!(answer.contains("remember 42"), "{answer}");
        let logs = ["turns", "timeline"].map(|name| events(&folder.path(name)));
        assert_eq!(logs[0], logs[1]);
    }
}

/// Each of two stores holds the log, by whatever option it is named.
#[test]
fn one_of_two_stores_is_enough() {
    let folder = Folder::new();
    let timeline = folder.name("timeline");
    let mut first = echo(&["--timeline-db", &timeline, "--session-id", "s"]).start();
    assert_eq!(first.turn("r1", "remember 42"), "ok");
    first.finish();
    for more in [&["--session-id", "s", "--resume"][..], &["--continue"][..]] {
        let mut next = echo(&[&["--store", &timeline], more].concat()).start();
        assert_eq!(wait_state(&mut next).messages()[0], ("user", "remember 42"));
        next.finish();
    }
}

/// The stores were used one without the other: neither is completed from the other, nor overwritten.
#[test]
fn stores_that_have_gone_different_ways_are_not_mixed() {
    let folder = Folder::new();
    let options = options(&folder);
    let mut first = echo(&args(&options, &[])).start();
    assert_eq!(first.turn("r1", "together"), "ok");
    first.finish();
    for (option, name, prompts) in
        [("--turns-db", "turns", &["one", "two"][..]), ("--timeline-db", "timeline", &["other"])]
    {
        let place = folder.name(name);
        let mut alone = echo(&[option, &place, "--session-id", "s", "--resume"]).start();
        for prompt in prompts {
            assert_eq!(alone.turn(prompt, prompt), "ok");
        }
        alone.finish();
    }
    let left = events(&folder.path("timeline"));
    let mut both = echo(&args(&options, &["--resume"])).start();
    let state = wait_state(&mut both);
    assert!(state.messages().contains(&("user", "two")), "{state:?}");
    assert_eq!(both.turn("r", "and now?"), "ok");
    let ended = both.finish();
    assert!(
        ended.stderr.contains("have different conversations of the session"),
        "{}",
        ended.stderr
    );
    assert_eq!(events(&folder.path("timeline")), left);
    assert_eq!(
        echo(&args(&options, &["--resume"])).start().finish().stderr.matches("different").count(),
        1
    );
}

/// A damaged store is left alone, and the conversation goes on in the other.
#[test]
fn a_damaged_store_does_not_stop_the_other() {
    let folder = Folder::new();
    let options = options(&folder);
    let mut first = echo(&args(&options, &[])).start();
    assert_eq!(first.turn("r1", "remember 42"), "ok");
    first.finish();
    let store = Connection::open(folder.path("turns")).expect("a store");
    assert_eq!(store.execute("UPDATE log SET events = X'FFFF'", []).expect("a row"), 1);
    drop(store);
    let damaged = fs::read(folder.path("turns")).expect("a file");
    let mut next = echo(&args(&options, &["--resume"])).start();
    assert_eq!(wait_state(&mut next).messages()[0], ("user", "remember 42"));
    assert_eq!(next.turn("r2", "what?"), "ok");
    let ended = next.finish();
    assert!(ended.stderr.contains("is damaged"), "{}", ended.stderr);
    assert_eq!(errors(&ended.frames, ""), [""; 0]);
    assert_eq!(fs::read(folder.path("turns")).expect("a file"), damaged);
    assert!(events(&folder.path("timeline")).len() > 10);
}

/// Another program has deleted rows of the one: the other is whole, whichever of them is the first.
#[test]
fn the_whole_one_of_two_stores_is_resumed_from() {
    for (name, rows) in [
        ("turns", "number = 3"),
        ("turns", "number = 2"),
        ("turns", "1"),
        ("timeline", "number = 3"),
    ] {
        let folder = Folder::new();
        let options = options(&folder);
        let mut first = echo(&args(&options, &[])).start();
        for prompt in ["p1", "p2", "p3"] {
            assert_eq!(first.turn(prompt, prompt), "ok");
        }
        first.finish();
        let store = Connection::open(folder.path(name)).expect("a store");
        assert!(store.execute(&format!("DELETE FROM log WHERE {rows}"), []).expect("rows") > 0);
        drop(store);
        for turns in [3, 4] {
            let mut next = echo(&args(&options, &["--resume"])).start();
            assert_eq!(wait_state(&mut next).messages().len(), 2 * turns, "{name} {rows}");
            assert_eq!(next.turn("new", "new"), "ok");
            let ended = next.finish();
            assert!(
                ended.stderr.contains("missing in the store"),
                "{name} {rows}: {}",
                ended.stderr
            );
        }
    }
}
