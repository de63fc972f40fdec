//! Recorded streams whose lines are dropped, doubled or moved. That is reported, or noted, but for the
//! kinds that are listed here: a stream does not contain the requests that it answers.

use super::Checker;
use super::recorded::{Recorded, read_frames, to_be_mutated};
use crate::protocol::proto::rpc::RpcLine;
use serde_json::Value;
use std::collections::BTreeSet;

/// Least number of mutations, so that none is lost.
const MUTATIONS_MIN: usize = 4_000;

/// A mutation of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mutation {
    Dropped,
    Doubled,
    /// The line and the next one change places.
    Swapped,
    /// The line comes again at the end.
    Repeated,
}

const ALL: [Mutation; 4] =
    [Mutation::Dropped, Mutation::Doubled, Mutation::Swapped, Mutation::Repeated];

fn kind(frame: &Value) -> &str {
    let event = ["uiEvent", "backendEvent"].into_iter().find_map(|kind| frame.get(kind));
    if let Some(event) = event {
        return event["name"].as_str().expect("a name");
    }
    if let Some(code) = frame.pointer("/error/code") {
        return code.as_str().expect("a code");
    }
    ["hello", "snapshot", "done"]
        .into_iter()
        .find(|kind| frame.get(*kind).is_some())
        .expect("a frame")
}

/// Whether the stream is reported, or has a note that the good one has not.
fn is_seen(mut checker: Checker, frames: Vec<RpcLine>, notes: &[String]) -> bool {
    frames.into_iter().any(|frame| !checker.frame(frame).is_empty())
        || !checker.finish(None).is_empty()
        || checker.summary().notes != notes
}

/// The frames from `at` on after the mutation; `None` if there is none.
fn mutated(frames: &[RpcLine], at: usize, mutation: Mutation) -> Option<Vec<RpcLine>> {
    let mut rest = frames[at..].to_vec();
    match mutation {
        Mutation::Dropped => drop(rest.remove(0)),
        Mutation::Doubled => rest.insert(0, rest[0].clone()),
        Mutation::Swapped if rest.len() > 1 && rest[0] != rest[1] => rest.swap(0, 1),
        Mutation::Repeated if rest.len() > 1 => rest.push(rest[0].clone()),
        Mutation::Swapped | Mutation::Repeated => return None,
    }
    Some(rest)
}

/// Why a mutation may be missed; `None` if it may not.
fn excuse(frames: &[Value], at: usize, mutation: Mutation) -> Option<&'static str> {
    let request = |frame: &Value| frame["requestId"].as_str().unwrap_or_default().to_owned();
    let id = request(&frames[at]);
    let others = || frames.iter().enumerate().filter(|(other, _)| *other != at);
    let left: Vec<&str> =
        others().filter(|(_, frame)| request(frame) == id).map(|(_, frame)| kind(frame)).collect();
    if mutation == Mutation::Swapped && request(&frames[at + 1]) != id {
        return Some("lines of two requests change places");
    }
    match (mutation, kind(&frames[at])) {
        (_, "ObjectExtracted" | "LineRejected" | "ExtractionFinished") => {
            Some("what was found in an answer")
        }
        (_, "ToolServerChanged") => Some("the state of a tool server"),
        (Mutation::Dropped, "snapshot") => Some("a snapshot, which is an option"),
        (Mutation::Dropped, "done") if left.is_empty() => Some("all of a request"),
        (Mutation::Dropped, _) if left == ["done"] => Some("all of a request but its done"),
        (Mutation::Dropped, "AnswerRejected") => Some("that an answer is asked for again"),
        (Mutation::Dropped, "ChatProviderCallMetadataUpdated") => {
            Some("counts that the end of the call repeats")
        }
        (Mutation::Dropped, "ChatTextPatch" | "ChatToolArgumentsPatch") => {
            Some("a patch whose text comes again as a whole, or never")
        }
        (
            Mutation::Dropped,
            "ChatToolExecutionStarted" | "FrontendToolCallRequested" | "FrontendToolResultReceived",
        ) => Some("a step of a call that has failed"),
        (Mutation::Dropped, "RetryScheduled") => Some("a retry that was not started"),
        (Mutation::Dropped, "interrupted") => Some("why a single run was stopped"),
        _ => None,
    }
}

/// Mutations that may be missed, as the documentation of `check` says.
const EXCUSED: [&str; 12] = [
    "a patch whose text comes again as a whole, or never",
    "a retry that was not started",
    "a snapshot, which is an option",
    "a step of a call that has failed",
    "all of a request",
    "all of a request but its done",
    "counts that the end of the call repeats",
    "lines of two requests change places",
    "that an answer is asked for again",
    "the state of a tool server",
    "what was found in an answer",
    "why a single run was stopped",
];

#[test]
fn what_is_not_seen_of_lines_that_are_dropped_doubled_or_moved_is_known() {
    let (mut missed, mut excused, mut mutations) = (Vec::new(), BTreeSet::new(), 0);
    for Recorded { name, frames, .. } in to_be_mutated() {
        let read = read_frames(&frames);
        let notes = notes(&read);
        let mut before = Checker::new();
        for at in 0..read.len() {
            for mutation in ALL {
                let Some(rest) = mutated(&read, at, mutation) else { continue };
                mutations += 1;
                if !is_seen(before.clone(), rest, &notes) {
                    match excuse(&frames, at, mutation) {
                        Some(why) => drop(excused.insert(why)),
                        None => missed.push(format!("{name}:{}: {mutation:?}", at + 1)),
                    }
                }
            }
            before.frame(read[at].clone());
        }
    }
    assert_eq!(missed, Vec::<String>::new(), "{} of {mutations}", missed.len());
    assert_eq!(excused.into_iter().collect::<Vec<_>>(), EXCUSED);
    assert!(mutations >= MUTATIONS_MIN, "only {mutations} mutations");
}

fn notes(frames: &[RpcLine]) -> Vec<String> {
    let mut checker = Checker::new();
    for frame in frames {
        checker.frame(frame.clone());
    }
    checker.finish(None);
    checker.summary().notes
}
