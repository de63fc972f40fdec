//! Runs, requests and their ends, one process long.

use crate::frames::{Frame, ends, errors, finished_text, patched_text, shutdown, snapshot, submit};
use crate::oracle::Answers;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Launch, Server, openai};

/// Requests piped at once.
const PIPED: usize = 100;

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

/// 1,000 submits, each at the instant a `done` is read, half of the runs failing. In several processes, as the
/// request to the provider grows with each turn.
#[test]
fn a_request_sent_the_instant_a_done_is_read_is_never_busy() {
    for _ in 0..8 {
        submit_back_to_back(125);
    }
}

fn submit_back_to_back(turns: usize) {
    let script = |turn: usize| match turn % 2 {
        0 => says("yes"),
        _ => vec![Step::Status(500, Vec::new(), "no".to_owned())],
    };
    let provider = Provider::start((0..turns).map(script).collect());
    let args = ["--retries", "0", "--final-snapshot", "none"];
    let mut server = openai(&provider, &args).start();
    for turn in 0..turns {
        let (first, second) = (format!("first-{turn}"), format!("second-{turn}"));
        server.send_together(&[submit(&first, "hello"), submit(&second, "hello")]);
        assert_eq!(server.wait_done(&second), "failed");
        assert_eq!(server.wait_done(&first), ["ok", "failed"][turn % 2]);
    }
    let frames = server.finish().frames;
    for turn in 0..turns {
        assert_eq!(errors(&frames, &format!("second-{turn}")), ["session_busy"]);
    }
    let is_second = |frame: &&Frame| frame.id().starts_with("second");
    assert!(frames.iter().filter(is_second).all(|frame| frame.event().is_none()));
}

#[test]
fn a_file_of_requests_is_answered_once_each_and_refused_while_busy() {
    let frames = pipe_a_file(&["--echo-delay-ms", "1"]);
    let answered = ends(&frames);
    assert_eq!(answered.len(), PIPED);
    assert_eq!(answered.last().expect("a done"), &("r0".to_owned(), "ok".to_owned()));
    for number in 1..PIPED {
        let refused = ["session_busy", "shutting_down"];
        let codes = errors(&frames, &format!("r{number}"));
        assert!(codes.len() == 1 && refused.contains(&codes[0]), "{codes:?}");
    }
}

#[test]
fn a_file_of_requests_is_answered_in_order_if_they_may_wait() {
    let frames = pipe_a_file(&["--on-busy", "queue", "--final-snapshot", "none"]);
    let expected: Vec<_> = (0..PIPED).map(|n| (format!("r{n}"), "ok".to_owned())).collect();
    assert_eq!(ends(&frames), expected);
    for number in 0..PIPED {
        let text = finished_text(&frames, &format!("r{number}"));
        let expected = format!("Turn {}. You said: prompt {number}", number + 1);
        assert!(text.starts_with(&expected), "{text}");
    }
}

fn pipe_a_file(args: &[&str]) -> Vec<Frame> {
    let folder = Folder::new();
    let file = folder.name("requests.jsonl");
    let lines = (0..PIPED).map(|n| submit(&format!("r{n}"), &format!("prompt {n}")) + "\n");
    std::fs::write(&file, lines.collect::<String>()).expect("a file");
    let script = r#"file="$1"; shift; exec "$0" rpc --engine echo "$@" < "$file""#;
    let mut server = Launch::shell(script, &[&[file.as_str()], args].concat()).start();
    server.expect_requests(PIPED);
    server.finish().frames
}

#[test]
fn a_submit_followed_by_the_end_of_input_gets_its_whole_answer() {
    let mut server = Server::start(&["--echo-delay-ms", "2"]);
    server.send(submit("r", "all of these words come back"));
    server.close_stdin();
    let frames = server.finish().frames;
    let answer = "Turn 1. You said: all of these words come back";
    assert_eq!(patched_text(&frames, "r"), answer);
    assert_eq!(finished_text(&frames, "r"), answer);
    assert_eq!(ends(&frames), [("r".to_owned(), "ok".to_owned())]);
}

#[test]
fn a_shutdown_waits_for_the_run_and_refuses_what_comes_after_it() {
    let provider = Provider::start(vec![vec![
        Step::Text("begun ".to_owned()),
        Step::Gate,
        Step::Text("and ended".to_owned()),
        Step::Finish("stop", None),
        Step::Done,
    ]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    server.wait_event("ChatTextPatch");
    server.send_together(&[shutdown("q"), submit("late", "hello"), snapshot("s")]);
    assert_eq!(server.wait_done("late"), "failed");
    assert_eq!(server.wait_done("s"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("r"), "ok");
    assert_eq!(server.wait_done("q"), "shutdown");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "late"), ["shutting_down"]);
    assert_eq!(patched_text(&frames, "r"), "begun and ended");
}

#[test]
fn a_shutdown_ends_the_process_while_input_stays_open() {
    let mut server = Server::start(&[]);
    server.send(shutdown("q"));
    assert_eq!(server.wait_done("q"), "shutdown");
    server.wait_end();
    server.finish();
}

#[test]
fn a_process_that_is_asked_nothing_says_hello_and_ends() {
    let frames = Server::start(&[]).finish().frames;
    assert_eq!(frames.len(), 1);
}

#[test]
fn hello_comes_before_any_engine_is_ready() {
    let mut server = Launch::new(&["rpc", "--engine", "openai", "--base-url", "http://[bad"]);
    server = server.env("DUOLOGUE_MODEL", "none");
    let mut server = server.start();
    let hello = server.wait_hello();
    assert_eq!(hello.text("/hello/protocol"), "pinocchio.chatapp.rpc.v1");
    assert_eq!(hello.text("/hello/server"), "duologue");
    server.finish_with(0, Answers::All);
}

/// Answers come in the order read while a run goes on, and a second session is refused.
#[test]
fn requests_are_answered_during_a_run() {
    let mut server = Server::start(&["--echo-delay-ms", NEVER_MS]);
    server.send(r#"{"sessionId":" mine ","requestId":" r ","submit":{"prompt":"hello"}}"#);
    server.wait_event("ChatRunStarted");
    server.send_together(&[
        snapshot("s"),
        "not JSON".to_owned(),
        r#"{"sessionId":"theirs","requestId":"m","snapshot":{}}"#.to_owned(),
        submit("b", "  \n"),
        r#"{"requestId":"k","cancel":{}}"#.to_owned(),
    ]);
    assert_eq!(server.wait_done("r"), "stopped");
    let frames = server.finish().frames;
    let expected = [("s", "ok"), ("", "failed"), ("m", "failed"), ("b", "failed"), ("k", "ok")];
    let expected = expected.iter().chain(&[("r", "stopped")]);
    let expected: Vec<_> =
        expected.map(|(id, how)| ((*id).to_owned(), (*how).to_owned())).collect();
    assert_eq!(ends(&frames), expected);
    assert_eq!(errors(&frames, "m"), ["session_mismatch"]);
    assert_eq!(errors(&frames, "b"), ["empty_prompt"]);
    let is_mine = |frame: &Frame| frame.text("/sessionId") == "mine";
    assert!(frames[1..].iter().all(is_mine), "every frame after hello has the bound session");
}
