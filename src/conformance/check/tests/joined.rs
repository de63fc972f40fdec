//! Streams that begin when their conversation is under way.

use super::*;
use sample::{ended, event, started};
use serde_json::json;

/// Checks the frames as a stream that may begin anywhere.
fn check(frames: impl IntoIterator<Item = Value>) -> Vec<(u64, Rule)> {
    let stream = Stream(frames.into_iter().collect());
    let mut checker = Checker::joined();
    let mut found = Vec::new();
    for line in stream.lines() {
        found.extend(checker.line(&line));
    }
    found.extend(checker.finish(None));
    found.into_iter().map(|violation| (violation.line, violation.rule)).collect()
}

/// What a client is shown that attaches before a frame of the stream, and leaves before another one.
fn part(of: &Stream, from: usize, until: usize) -> Vec<Value> {
    let hello = of.0.iter().take(1);
    hello.chain(&of.0[from..until]).cloned().collect()
}

#[test]
fn a_stream_may_begin_and_break_off_anywhere() {
    for whole in [run(), refused(), cancelled(), a_loop(), asked_again()] {
        let frames = whole.0.len();
        for from in 1..frames {
            assert_eq!(check(part(&whole, from, frames)), [], "from {}", whole.0[from]);
            let until = from + (frames - from) / 2;
            assert_eq!(check(part(&whole, from, until)), [], "from {}", whole.0[from]);
        }
    }
}

#[test]
fn without_being_told_so_its_beginning_is_wrong() {
    let run = run();
    let from = run.0.iter().position(|it| it["uiEvent"]["name"] == "ChatRunStarted");
    let frames = part(&run, from.expect("it starts") + 1, run.0.len());
    assert!(!Stream(frames).check().is_empty());
}

/// The run that was under way is not checked, and the next one is.
#[test]
fn what_begins_in_the_stream_is_checked() {
    let run = run();
    let begins = run.0.iter().position(|it| it["uiEvent"]["name"] == "ChatUserMessageAccepted");
    let begins = begins.expect("it begins");
    let before =
        [event("before", 1, "ChatRunFinished", ended(9, "finished")), done("before", "ok")];
    let joined = |run: &Stream| {
        let frames = run.0.iter().take(1).chain(&before).chain(&run.0[begins..]);
        Stream(frames.cloned().collect())
    };
    // The ordinals go on from there.
    let later = Stream(run.0.iter().cloned().map(|frame| later(frame, 1)).collect());
    assert_eq!(check(joined(&later).0), []);
    let twice = later.clone().inserted(begins + 2, later.0[begins + 1].clone());
    assert!(!check(joined(&twice).0).is_empty());
}

fn number(ordinal: &Value) -> u64 {
    ordinal.as_str().expect("text").parse().expect("a number")
}

/// The frame, so many events later.
fn later(mut frame: Value, by: u64) -> Value {
    for pointer in ["/uiEvent/ordinal", "/snapshot/snapshotOrdinal"] {
        if let Some(ordinal) = frame.pointer_mut(pointer) {
            *ordinal = (number(ordinal) + by).to_string().into();
        }
    }
    if let Some(entities) = frame.pointer_mut("/snapshot/entities") {
        for entity in entities.as_array_mut().expect("a list") {
            for field in ["createdOrdinal", "lastEventOrdinal"] {
                entity[field] = (number(&entity[field]) + by).to_string().into();
            }
        }
    }
    frame
}

/// A client that was too slow is shown a snapshot in the place of what it has missed.
#[test]
fn a_snapshot_stands_for_what_is_left_out() {
    let begun = event("a", 2, "ChatRunStarted", started(1));
    let ends = event("b", 9, "ChatRunFinished", ended(2, "finished"));
    let frames = |ordinal| {
        let head = [hello(&STDIN), begun.clone(), state("", ordinal, vec![]), ends.clone()];
        head.into_iter().chain([done("b", "ok")])
    };
    assert_eq!(check(frames(8)), []);
    assert_eq!(check(frames(1)), [(3, Rule::SnapshotOrdinal)]);
}

/// What a snapshot has of a run that goes on changes with the events of that run.
#[test]
fn a_run_goes_on_after_the_snapshot_in_its_middle() {
    let run = run();
    let place = |name: &str| run.0.iter().position(|it| it["uiEvent"]["name"] == name);
    let patch = place("ChatTextPatch").expect("a patch");
    let ends = run.0.iter().position(|it| it.get("done").is_some()).expect("an end");
    let whole = run.0[..ends].iter().rfind(|it| it.get("snapshot").is_some()).expect("a snapshot");
    let at = number(&run.0[patch]["uiEvent"]["ordinal"]);
    let mut entities = whole["snapshot"]["entities"].as_array().expect("a list").clone();
    entities.retain(|it| number(&it["createdOrdinal"]) <= at);
    for entity in &mut entities {
        let last = number(&entity["lastEventOrdinal"]).min(at);
        entity["lastEventOrdinal"] = last.to_string().into();
    }
    let mut again = whole.clone();
    again["requestId"] = "again".into();
    let head = [hello(&STDIN), state("", at, entities)];
    let frames = head.iter().chain(&run.0[patch + 1..=ends]).cloned();
    assert_eq!(check(frames.chain([again, done("again", "ok")])), []);
}

/// A node says so in the last line of the stream.
#[test]
fn a_stream_may_be_ended_by_its_node() {
    let refusal = json!({ "refused": { "code": "unavailable", "message": "attach again" } });
    let begun = part(&run(), 8, 10);
    let ended = |more: &[Value]| check(begun.iter().chain([&refusal]).chain(more).cloned());
    assert_eq!(ended(&[]), []);
    assert_eq!(check([refusal.clone()]), [], "a call that was refused");
    let after = begun.len() as u64 + 2;
    assert_eq!(ended(&[done("r", "ok")]), [(after, Rule::AfterEnd)]);
    let mixed = json!({ "refused": {}, "done": { "status": "ok" } });
    assert!(!check([hello(&STDIN), mixed]).is_empty());
    let stream = Stream(begun.iter().chain([&refusal]).cloned().collect());
    assert!(!stream.check().is_empty(), "a process has no such line");
}
