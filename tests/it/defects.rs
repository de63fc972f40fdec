//! Defects planted in the program cost only what they must: the line that is read, the call of the engine,
//! or the conversation. Debug builds take the plan from a variable; release builds know none.
#![cfg(debug_assertions)]

use crate::frames::{Frame, ends, errors, patched_text, snapshot, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::server::{Folder, Reading, Server, echo};
use crate::store::{resumed, stored, wait_state};
use rustix::process::Signal;
use serde_json::Value;

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

/// Events that a submit brings before the lines after it are read, and before any of them is shown.
const FIRST_EVENTS: u32 = 2;

/// Which of the requests that are sent together have their `done` after a defect at the `nth` event: those that
/// were read.
fn answers(nth: u32) -> Answers {
    if nth <= FIRST_EVENTS { Answers::Some } else { Answers::AllAndFarewell }
}

/// The conversation ends, as its state may be half-changed: all that was read is answered.
#[test]
fn a_defect_in_a_projection_ends_the_process_with_its_status() {
    let whole = events_of_a_turn();
    assert_eq!(whole, EVENTS);
    for nth in 1..=whole {
        let mut server = planted("project", nth, &["--on-busy", "queue", "--echo-delay-ms", "1"]);
        server.send_together(&[submit("r1", "two words"), submit("r2", "wait"), snapshot("s")]);
        let frames = server.finish_with(70, answers(nth)).frames;
        let codes = errors(&frames, "r1");
        // What was not shown of a run is not known to its client.
        let expected = if nth <= FIRST_EVENTS { "internal" } else { "run_failed" };
        assert_eq!(codes, [expected], "at event {nth}");
        assert_eq!(errors(&frames, ""), ["internal"], "at event {nth}");
        let events = frames.iter().filter(|frame| frame.event().is_some()).count();
        assert!(events < nth as usize, "{events} events at event {nth}");
        let farewell = frames.iter().rfind(|frame| frame.error().is_some()).expect("an error");
        assert_eq!(farewell.0["error"]["terminal"], true);
        assert!(farewell.text("/error/message").contains("it was not stored"), "{farewell:?}");
    }
}

/// What was shown before the defect is stored, and the conversation goes on in another process.
#[test]
fn a_stored_conversation_goes_on_after_a_defect() {
    for nth in 1.. {
        let folder = Folder::new();
        let launch = stored(&folder, &["--final-snapshot", "none", "--on-busy", "queue"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("project:{nth}")).start();
        server.send_together(&[submit("r1", "two words"), submit("r2", "again")]);
        server.close_stdin();
        if server.exit_status().success() {
            assert!(nth > 2 * EVENTS, "only {nth} places for a defect");
            server.finish();
            return;
        }
        let ended = server.finish_with(70, answers(nth));
        let fatal = ended.frames.iter().rfind(|frame| frame.error().is_some());
        let message = fatal.map(|frame| frame.text("/error/message")).unwrap_or_default();
        let is_stored = nth > FIRST_EVENTS;
        let is_said = message.contains("another process can go on with it");
        assert_eq!(is_said, is_stored, "at event {nth}: {message}");
        if !is_stored {
            continue;
        }
        let mut next = resumed(&folder, &[]).start();
        let state = wait_state(&mut next);
        for id in ["r1", "r2"] {
            let shown = patched_text(&ended.frames, id);
            let is_there = state.messages().iter().any(|(_, text)| text.contains(shown.as_str()));
            assert!(is_there, "at event {nth}: {shown} is not in {state:?}");
        }
        let last = ended.frames.iter().filter_map(Frame::ordinal).max().unwrap_or_default();
        assert_eq!(next.turn("r9", "go on"), "ok", "at event {nth}");
        let frames = next.finish().frames;
        assert_eq!(errors(&frames, ""), [""; 0], "at event {nth}");
        let first = frames.iter().find_map(Frame::ordinal).expect("an event");
        assert!(first > last, "ordinal {first} after {last}");
    }
}

/// The only error of a single run says it, in the format that was asked for.
#[test]
fn a_defect_in_a_projection_ends_a_single_run_with_its_status() {
    let folder = Folder::new();
    for nth in 1..=EVENTS {
        let words = ["exec", "--engine", "echo", "two words", "--output", "json"];
        let mut command = duologue(&folder, &words);
        command.env("DUOLOGUE_FAULT", format!("project:{nth}"));
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 70, "at event {nth}: {}", ended.stderr);
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        assert_eq!(document["ok"], false);
        let error = &document["error"];
        assert_eq!((&error["code"], &error["class"]), (&"internal".into(), &"internal".into()));
        assert_eq!(document["meta"]["exit_code"], 70);
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
