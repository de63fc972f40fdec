//! Defects planted in the program cost only what they must (fault 25). Debug builds take the plan
//! from a variable; release builds know none.
#![cfg(debug_assertions)]

use crate::frames::{Frame, ends, errors, shutdown, submit};
use crate::oracle::Answers;
use crate::server::{Reading, Server, echo};
use rustix::process::Signal;

/// Events of the first turn below.
const EVENTS: u32 = 13;

/// A server with a defect at the `nth` step of `place`.
fn planted(place: &str, nth: u32, args: &[&str]) -> Server {
    echo(args).env("DUOLOGUE_FAULT", format!("{place}:{nth}")).start()
}

fn ended(frames: &[Frame], id: &str) -> String {
    let end = frames.iter().find(|frame| frame.ends(id)).expect("a done");
    end.done().unwrap_or_default().to_owned()
}

#[test]
fn a_defect_in_reading_a_line_costs_that_line() {
    for nth in 1..=3 {
        let mut server = planted("decode", nth, &[]);
        for (turn, id) in ["r1", "r2", "r3"].into_iter().enumerate() {
            let is_hit = turn + 1 == nth as usize;
            assert_eq!(server.turn(id, "two words"), if is_hit { "failed" } else { "ok" });
        }
        let frames = server.finish().frames;
        assert_eq!(errors(&frames, &format!("r{nth}")), ["internal"]);
        assert_eq!(frames.iter().filter(|frame| frame.error().is_some()).count(), 1);
    }
}

#[test]
fn a_defect_in_a_projection_costs_its_run() {
    let whole = events_of_a_turn();
    assert_eq!(whole, EVENTS);
    for nth in 1..=whole {
        let mut server = planted("project", nth, &[]);
        assert_eq!(server.turn("r1", "two words"), "failed", "at event {nth}");
        assert_eq!(server.turn("r2", "two words"), "ok", "at event {nth}");
        let frames = server.finish().frames;
        let codes = errors(&frames, "r1");
        assert!(codes.len() == 1 && ["run_failed", "internal"].contains(&codes[0]), "{codes:?}");
        assert!(errors(&frames, "r2").is_empty());
    }
}

fn events_of_a_turn() -> u32 {
    let mut server = Server::start(&[]);
    server.turn("r1", "two words");
    let frames = server.finish().frames;
    frames.iter().filter(|frame| frame.event().is_some()).count().try_into().expect("a few")
}

#[test]
fn a_defect_in_the_engine_costs_its_run() {
    for nth in 1..=4 {
        let mut server = planted("engine", nth, &["--echo-delay-ms", "1"]);
        assert_eq!(server.turn("r1", "two words"), "failed", "at step {nth}");
        assert_eq!(server.turn("r2", "two words"), "ok", "at step {nth}");
        let frames = server.finish().frames;
        assert_eq!(errors(&frames, "r1"), ["run_failed"]);
        let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert!(error.text("/error/detail").starts_with("internal:"), "{error:?}");
        assert!(frames.iter().any(|frame| frame.is_event("ChatRunFailed")));
    }
}

/// What was to be reported can't be reported: the process says so and ends.
#[test]
fn a_defect_in_encoding_ends_the_process_with_its_status() {
    for nth in 2..=16 {
        let mut server = planted("encode", nth, &[]);
        server.send_together(&[submit("r1", "two words")]);
        let error = server.wait("any error", |frame| frame.error().is_some());
        assert_eq!(error.error(), Some("internal"), "at frame {nth}");
        assert_eq!(error.0["error"]["terminal"], true);
        let frames = server.finish_with(70, Answers::Some).frames;
        assert_eq!(ended(&frames, "r1"), "failed");
        assert_eq!(ends(&frames).len(), 1);
    }
}

/// A reader that takes nothing can't keep such a process from ending.
#[test]
fn a_signal_ends_a_process_that_met_a_defect_and_is_not_read() {
    let launch = echo(&["--log-level", "info"]).env("DUOLOGUE_FAULT", "encode:6");
    let mut server = launch.stdout(Reading::Held).start();
    server.send(submit("r", &"x".repeat(100_000)));
    server.wait_log("internal error");
    server.signal(Signal::TERM);
    server.wait_end();
    server.read_on(Reading::Eager);
    server.finish_with(143, Answers::Cut);
}

#[test]
fn output_that_cannot_be_written_ends_the_process_with_its_status() {
    for nth in 1..=4 {
        let mut server = planted("write", nth, &["--echo-delay-ms", "1"]);
        server.send(submit("r1", "a few words"));
        server.wait_log("standard output could not be written");
        let transcript = server.finish_with(74, Answers::Some);
        assert!(ends(&transcript.frames).len() <= 1);
    }
}

/// The session is whole after a defect: what was said before it is known, and a shutdown works.
#[test]
fn a_session_goes_on_after_a_defect() {
    let mut server = planted("project", EVENTS + 5, &[]);
    assert_eq!(server.turn("r1", "remember me"), "ok");
    assert_eq!(server.turn("r2", "hit"), "failed");
    assert_eq!(server.turn("r3", "and now"), "ok");
    server.send(shutdown("q"));
    assert_eq!(server.wait_done("q"), "shutdown");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "r2").len(), 1);
}
