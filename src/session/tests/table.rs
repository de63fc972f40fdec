//! The contract's table: what each request is answered with in each phase.

use super::model::{Item, outline};
use crate::protocol::command::{Cancel, Command};
use crate::protocol::id::{Ids, RequestId, SessionId, TaskId};
use crate::protocol::wire::{self, Request};
use crate::session::{ExitCode, Input, OnBusy, Output, Rules, Session, Signal, TaskEvent, Uptime};
use crate::task::report::CallEnd;

/// Where a session is when the line comes.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Idle,
    Running,
    /// The end of input was seen in a run.
    Draining,
}
use Phase::{Draining, Idle, Running};

/// What follows the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing: the session goes on as it was.
    Same,
    /// A run starts.
    Starts,
    /// The run of request "first" is stopped.
    Stops,
    /// Nothing now; at the end of the run this `done`.
    Waits(&'static str),
    /// The process exits.
    Exits,
}
use Then::{Exits, Same, Starts, Stops, Waits};

const NOTHING: &[&str] = &[];

/// Line, phase, what it is answered with, what follows.
const TABLE: &[(&str, Phase, &[&str], Then)] = &[
    (r#"{"requestId":"x","submit":{"prompt":"hi"}}"#, Idle, NOTHING, Starts),
    (r#"{"requestId":"x","submit":{"prompt":"hi"}}"#, Running, &["session_busy", "failed"], Same),
    (r#"{"requestId":"x","submit":{"prompt":"hi"}}"#, Draining, &["shutting_down", "failed"], Same),
    (r#"{"requestId":"x","submit":{"prompt":" "}}"#, Idle, &["empty_prompt", "failed"], Same),
    (r#"{"requestId":"x","submit":{"prompt":" "}}"#, Running, &["empty_prompt", "failed"], Same),
    (r#"{"requestId":"x","submit":{}}"#, Draining, &["empty_prompt", "failed"], Same),
    (r#"{"requestId":"x","cancel":{}}"#, Idle, &["no_active_request", "ok"], Same),
    (r#"{"requestId":"x","cancel":{}}"#, Running, &["ok"], Stops),
    (r#"{"requestId":"x","cancel":{}}"#, Draining, &["ok"], Stops),
    (r#"{"requestId":"x","snapshot":{}}"#, Idle, &["snapshot", "ok"], Same),
    (r#"{"requestId":"x","snapshot":{}}"#, Running, &["snapshot", "ok"], Same),
    (r#"{"requestId":"x","snapshot":{}}"#, Draining, &["snapshot", "ok"], Same),
    (r#"{"requestId":"x","snapshot":{"limit":1}}"#, Running, &["snapshot", "ok"], Same),
    (r#"{"requestId":"x","compact":{}}"#, Idle, &["nothing_to_compact", "failed"], Same),
    (r#"{"requestId":"x","compact":{}}"#, Running, &["session_busy", "failed"], Same),
    (r#"{"requestId":"x","compact":{}}"#, Draining, &["shutting_down", "failed"], Same),
    (r#"{"requestId":"x","compact":{"decline":true}}"#, Idle, &["ok"], Same),
    (r#"{"requestId":"x","compact":{"decline":true}}"#, Running, &["ok"], Same),
    (r#"{"requestId":"x","compact":{"decline":true}}"#, Draining, &["ok"], Same),
    (r#"{"requestId":"x","edit":{"dropLastTurn":{}}}"#, Idle, &["unknown_message", "failed"], Same),
    (r#"{"requestId":"x","edit":{"dropLastTurn":{}}}"#, Running, &["session_busy", "failed"], Same),
    (r#"{"requestId":"x","edit":{"regenerate":{}}}"#, Draining, &["session_busy", "failed"], Same),
    (
        r#"{"requestId":"x","edit":{"replace":{"messageId":"m","prompt":" "}}}"#,
        Idle,
        &["unknown_message", "failed"],
        Same,
    ),
    (r#"{"requestId":"x","edit":{}}"#, Idle, &["invalid_request_json", "failed"], Same),
    (r#"{"requestId":"x","shutdown":{}}"#, Idle, &["shutdown"], Exits),
    (r#"{"requestId":"x","shutdown":{}}"#, Running, NOTHING, Waits("shutdown")),
    (r#"{"requestId":"x","shutdown":{}}"#, Draining, NOTHING, Waits("shutdown")),
    (r#"{"requestId":"x"}"#, Idle, &["unknown_request", "failed"], Same),
    (r#"{"requestId":"x"}"#, Running, &["unknown_request", "failed"], Same),
    (r#"{"requestId":"x"}"#, Draining, &["unknown_request", "failed"], Same),
    (
        r#"{"requestId":"x","sessionId":"b","cancel":{}}"#,
        Idle,
        &["session_mismatch", "failed"],
        Same,
    ),
    (
        r#"{"requestId":"x","sessionId":"b","cancel":{}}"#,
        Running,
        &["session_mismatch", "failed"],
        Same,
    ),
    (
        r#"{"requestId":"x","sessionId":"b","shutdown":{}}"#,
        Draining,
        &["session_mismatch", "failed"],
        Same,
    ),
    (r#"{"requestId":"x","cancel":7}"#, Idle, &["invalid_request_json", "failed"], Same),
    (r#"{"requestId":"x","cancel":7}"#, Running, &["invalid_request_json", "failed"], Same),
    (r#"{"requestId":"x","cancel":7}"#, Draining, &["invalid_request_json", "failed"], Same),
    (
        r#"{"requestId":"x","version":2,"cancel":{}}"#,
        Idle,
        &["unsupported_version", "failed"],
        Same,
    ),
    (
        r#"{"requestId":"x","version":2,"cancel":{}}"#,
        Running,
        &["unsupported_version", "failed"],
        Same,
    ),
    (
        r#"{"requestId":"x","version":2,"cancel":{}}"#,
        Draining,
        &["unsupported_version", "failed"],
        Same,
    ),
];

fn input(line: &str) -> Input {
    match wire::decode(line.as_bytes(), || Ids::new(9).request()) {
        Ok(request) => Input::Request(request),
        Err(bad) => Input::BadLine(bad),
    }
}

/// A session called "a" that got there.
fn session_in(phase: Phase, on_busy: OnBusy) -> Session {
    let rules = Rules { session: SessionId::new("a"), on_busy, ..Rules::default() };
    let mut session = Session::new(rules, 1);
    let first = || input(r#"{"requestId":"first","submit":{"prompt":"hi"}}"#);
    let steps = match phase {
        Idle => Vec::new(),
        Running => vec![first()],
        Draining => vec![first(), Input::InputEnded],
    };
    for step in steps {
        drop(session.handle(Uptime(0), step));
    }
    session
}

/// The answer to request "x": kinds and words of its frames.
fn answer(outputs: &[Output]) -> Vec<String> {
    let words = outline(outputs).into_iter().filter_map(|item| match item {
        Item::Snapshot(id) if id == "x" => Some("snapshot".to_owned()),
        Item::Error(id, word, _) | Item::Done(id, word) if id == "x" => Some(word),
        Item::Dropped(_)
        | Item::Begin(_)
        | Item::Start
        | Item::Cancel
        | Item::End(_)
        | Item::Snapshot(_)
        | Item::Error(..)
        | Item::Done(..)
        | Item::Exit(_)
        | Item::Abort(_) => None,
    });
    words.collect()
}

fn finish(session: &mut Session) -> Vec<Output> {
    // The session's first provider call, which is its first task.
    session.handle(Uptime(2), Input::Task(TaskId(1), TaskEvent::CallEnded(CallEnd::Finished)))
}

fn check(line: &str, phase: Phase, expected: &[&str], then: Then) {
    let mut session = session_in(phase, OnBusy::Reject);
    let outputs = session.handle(Uptime(1), input(line));
    assert_eq!(answer(&outputs), expected, "{line} {phase:?}");
    let items = outline(&outputs);
    let has = |item: &Item| items.contains(item);
    let exits = has(&Item::Exit(ExitCode::Ok));
    let is_last = matches!((phase, then), (Draining, Stops) | (_, Exits));
    assert_eq!(exits, is_last, "{line} {phase:?}");
    assert_eq!(has(&Item::Start), then == Starts, "{line} {phase:?}");
    assert_eq!(has(&Item::End("ChatRunStopped")), then == Stops, "{line} {phase:?}");
    if let Waits(status) = then {
        let end = finish(&mut session);
        assert_eq!(answer(&end), [status], "{line} {phase:?}");
        assert_eq!(outline(&end).last(), Some(&Item::Exit(ExitCode::Ok)), "{line} {phase:?}");
    }
}

#[test]
fn each_request_is_answered_as_the_contract_has_it() {
    for (line, phase, expected, then) in TABLE {
        check(line, *phase, expected, *then);
    }
}

#[test]
fn a_submit_in_a_run_waits_where_there_is_a_queue() {
    let mut session = session_in(Running, OnBusy::Queue);
    let outputs = session.handle(Uptime(1), input(r#"{"requestId":"x","submit":{"prompt":"hi"}}"#));
    assert!(outputs.is_empty());
    let items = outline(&finish(&mut session));
    assert_eq!(items[items.len() - 2..], [Item::Begin("x".to_owned()), Item::Start]);
}

#[test]
fn end_of_input_exits_at_once_or_with_the_run() {
    let mut idle = session_in(Idle, OnBusy::Reject);
    let items = outline(&idle.handle(Uptime(1), Input::InputEnded));
    assert_eq!(items, [Item::Exit(ExitCode::Ok)]);
    let mut draining = session_in(Draining, OnBusy::Reject);
    assert_eq!(outline(&finish(&mut draining)).last(), Some(&Item::Exit(ExitCode::Ok)));
}

#[test]
fn the_first_valid_request_names_the_session_and_no_other_line_does() {
    let mut session = Session::new(Rules::default(), 1);
    let default = session.hello(Vec::new()).session_id;
    let lines = [
        (r#"{"requestId":"1","sessionId":"x","submit":{"prompt":""}}"#, default.as_str()),
        (r#"{"requestId":"2","sessionId":"x"}"#, &default),
        (r#"{"requestId":"3","sessionId":"x","version":9,"cancel":{}}"#, &default),
        (r#"{"requestId":"4","sessionId":" mine ","cancel":{}}"#, "mine"),
        (r#"{"requestId":"5","cancel":{}}"#, "mine"),
        (r#"{"requestId":"6","sessionId":"x","cancel":{}}"#, "mine"),
    ];
    for (line, stamp) in lines {
        for output in session.handle(Uptime(0), input(line)) {
            let Output::Frame(frame) = output else { panic!("{line}: {output:?}") };
            assert_eq!(frame.session_id, stamp, "{line}");
        }
    }
}

#[test]
fn a_first_request_without_a_session_binds_to_the_generated_one() {
    let mut session = Session::new(Rules::default(), 1);
    drop(session.handle(Uptime(0), input(r#"{"requestId":"1","cancel":{}}"#)));
    let other =
        session.handle(Uptime(0), input(r#"{"requestId":"x","sessionId":"b","cancel":{}}"#));
    assert_eq!(answer(&other), ["session_mismatch", "failed"]);
    let named = Request {
        session: SessionId::new(&session.hello(Vec::new()).session_id),
        id: RequestId::new("x").expect("a name"),
        command: Command::Cancel(Cancel::default()),
    };
    let same = session.handle(Uptime(0), Input::Request(named));
    assert_eq!(answer(&same), ["no_active_request", "ok"]);
}

#[test]
fn a_signal_ends_the_process_and_a_second_one_at_once() {
    let signals = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];
    let pairs = signals.iter().flat_map(|first| signals.map(|second| (*first, second)));
    for ((first, second), phase) in
        pairs.flat_map(|pair| [Idle, Running, Draining].map(|phase| (pair, phase)))
    {
        let mut session = session_in(phase, OnBusy::Reject);
        let items = outline(&session.handle(Uptime(1), Input::Interrupted(first)));
        let error = Item::Error(String::new(), "interrupted".to_owned(), true);
        let done = Item::Done(String::new(), "stopped".to_owned());
        let exit = Item::Exit(ExitCode::Interrupted(first));
        assert_eq!(items[items.len() - 3..], [error, done, exit], "{first} {phase:?}");
        assert_eq!(items.contains(&Item::End("ChatRunStopped")), !matches!(phase, Idle));
        let items = outline(&session.handle(Uptime(2), Input::Interrupted(second)));
        assert_eq!(items, [Item::Abort(ExitCode::Interrupted(second))]);
        assert_eq!(ExitCode::Interrupted(second).number(), 128 + second.number());
    }
}
