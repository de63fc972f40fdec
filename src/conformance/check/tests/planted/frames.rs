//! Violations in the frames themselves, and in their order.

use super::Planted;
use crate::conformance::check::Rule;
use crate::conformance::check::tests::sample::{
    STDIN, Stream, accepted, done, error, event, frame, hello, one_shot, run, state, turn,
};
use serde_json::json;

pub(super) fn planted() -> Vec<Planted> {
    [in_heads(), in_order(), in_texts(), in_snapshots(), in_ends(), in_one_shot()].concat()
}

/// Violations in what each frame says of itself.
fn in_heads() -> Vec<Planted> {
    let type_of = |name: &str| json!(format!("type.googleapis.com/{name}"));
    vec![
        (run().without(0), 1, Rule::HelloFirst),
        (run().inserted(1, hello(&STDIN)), 2, Rule::HelloAgain),
        (run().with(0, "/requestId", json!("r")), 1, Rule::HelloRequest),
        (run().with(0, "/hello/protocol", json!("other")), 1, Rule::HelloProtocol),
        (run().with(3, "/version", json!(2)), 4, Rule::WrongVersion),
        (run().with(3, "/sessionId", json!("")), 4, Rule::SessionMissing),
        (run().with(3, "/sessionId", json!("x")), 4, Rule::SessionChanged),
        (run().with(3, "/requestId", json!("")), 4, Rule::NamelessFrame),
        (run().with(3, "/extra", json!(1)), 4, Rule::UnknownField),
        (run().with(3, "/uiEvent/payload/extra", json!(1)), 4, Rule::UnknownField),
        (run().with(3, "/uiEvent/payload/@type", type_of("a.B")), 4, Rule::UnknownType),
        (run().with(3, "/uiEvent/ordinal", json!("x")), 4, Rule::WrongValue),
        (run().with(3, "/uiEvent/ordinal", json!(4)), 4, Rule::WrongValue),
        (run().with(5, "/uiEvent/payload/mode", json!(1)), 6, Rule::WrongValue),
        (run().with(5, "/uiEvent/payload/mode", json!("OFTEN")), 6, Rule::WrongValue),
        (run().with(3, "/uiEvent", json!(null)), 4, Rule::NoFrame),
        (run().with(3, "/done", json!({})), 4, Rule::TwoFrames),
        (run().with(3, "/uiEvent/name", json!("ChatRunStarted")), 4, Rule::NameMismatch),
        (run().with(3, "/uiEvent/payload", json!(null)), 4, Rule::PayloadMissing),
        (run().with(5, "/uiEvent/payload/role", json!("user")), 6, Rule::WrongWord),
        (run().with(5, "/uiEvent/payload/status", json!("finished")), 6, Rule::WrongWord),
        (run().with(7, "/uiEvent/payload/status", json!("streaming")), 8, Rule::WrongWord),
        (run().with(15, "/uiEvent/payload/status", json!("failed")), 16, Rule::WrongWord),
    ]
}

/// Violations in the order of events.
fn in_order() -> Vec<Planted> {
    vec![
        (run().with(3, "/uiEvent/ordinal", json!("1")), 4, Rule::OrdinalOrder),
        (run().with(6, "/uiEvent/ordinal", json!("5")), 7, Rule::OrdinalOrder),
        (run().with(3, "/uiEvent/ordinal", json!("0")), 4, Rule::OrdinalOrder),
        (run().without(2), 3, Rule::EventOrder),
        (run().without(1), 2, Rule::EventOrder),
        (run().without(3), 4, Rule::EventOrder),
        (run().without(4), 5, Rule::EventOrder),
        (run().without(8), 9, Rule::EventOrder),
        (run().without(13), 14, Rule::EventOrder),
        (run().swapped(12, 13), 14, Rule::OrdinalOrder),
        (run().without(7), 11, Rule::LeftOpen),
        (run().without(14), 15, Rule::LeftOpen),
        (run().without(11), 15, Rule::LeftOpen),
        (run().without(15), 17, Rule::LeftOpen),
        (
            run().inserted(16, event("r", 16, "ChatProviderCallStarted", json!({}))),
            17,
            Rule::EventOrder,
        ),
        (run().without(17), 2, Rule::UnfinishedRequest),
        (
            run().inserted(16, event("q", 16, "ChatUserMessageAccepted", accepted(2))),
            17,
            Rule::TwoRuns,
        ),
        (
            Stream(
                [
                    &run().0[..18],
                    &turn("x", 2, 16, ("ChatRunFinished", "finished")),
                    &[done("x", "ok")],
                ]
                .concat(),
            ),
            22,
            Rule::FinalSnapshot,
        ),
    ]
}

/// Violations in texts and their patches.
fn in_texts() -> Vec<Planted> {
    vec![
        (run().with(6, "/uiEvent/payload/sequence", json!("1")), 7, Rule::PatchSequence),
        (run().with(6, "/uiEvent/payload/offset", json!("6")), 7, Rule::PatchOffset),
        (run().with(7, "/uiEvent/payload/text", json!("Grüße")), 8, Rule::SegmentText),
        (run().with(10, "/uiEvent/payload/input", json!("[]")), 11, Rule::SegmentText),
        (run().with(7, "/uiEvent/payload/content", json!("other")), 8, Rule::TextContent),
        (run().with(5, "/uiEvent/payload/streamId", json!("m")), 6, Rule::PatchStream),
        (run().with(9, "/uiEvent/payload/streamId", json!("t")), 10, Rule::PatchStream),
        (run().with(5, "/uiEvent/payload/correlation/sessionId", json!("x")), 6, Rule::Correlation),
        (run().with(5, "/uiEvent/payload/correlation/runId", json!("x")), 6, Rule::Correlation),
    ]
}

/// Violations in snapshots.
fn in_snapshots() -> Vec<Planted> {
    vec![
        (run().with(16, "/snapshot/snapshotOrdinal", json!("16")), 17, Rule::SnapshotOrdinal),
        (
            run().with(16, "/snapshot/entities/0/lastEventOrdinal", json!("16")),
            17,
            Rule::SnapshotEntity,
        ),
        (
            run().with(16, "/snapshot/entities/0/kind", json!("ChatToolCall")),
            17,
            Rule::SnapshotEntity,
        ),
        (run().with(16, "/snapshot/entities/0/payload/role", json!("poet")), 17, Rule::WrongWord),
        (
            run().with(16, "/snapshot/entities/0/payload/correlation/sessionId", json!("x")),
            17,
            Rule::Correlation,
        ),
        (
            run().with(16, "/snapshot/entities/1/payload/correlation/turnId", json!("x")),
            17,
            Rule::Correlation,
        ),
        (
            run().with(16, "/snapshot/entities/0/payload/text", json!("other")),
            17,
            Rule::SnapshotText,
        ),
        (
            run().with(16, "/snapshot/entities/1/payload/text", json!("Grüße")),
            17,
            Rule::SnapshotText,
        ),
        (run().with(16, "/snapshot/entities/2/payload/input", json!("[]")), 17, Rule::SnapshotText),
        (
            run().with(16, "/snapshot/entities/3/payload/result", json!("late")),
            17,
            Rule::SnapshotText,
        ),
        (run().with(16, "/snapshot/entities", json!([])), 17, Rule::SnapshotLost),
        (run().inserted(16, state("z", 15, without_the_middle())), 17, Rule::SnapshotLost),
    ]
}

/// Violations in errors and in the ends of requests.
fn in_ends() -> Vec<Planted> {
    vec![
        (run().with(17, "/done/status", json!("fine")), 18, Rule::UnknownStatus),
        (run().with(17, "/done/status", json!("stopped")), 18, Rule::DoneStatus),
        (run().with(17, "/done/status", json!("failed")), 18, Rule::DoneStatus),
        (run().inserted(17, error("r", "snapshot_failed")), 19, Rule::DoneStatus),
        (run().inserted(18, done("z", "failed")), 19, Rule::DoneStatus),
        (run().inserted(18, done("z", "stopped")), 19, Rule::DoneStatus),
        (run().inserted(18, done("r", "ok")), 19, Rule::DoneAgain),
        (run().inserted(18, state("r", 15, vec![])), 19, Rule::AfterDone),
        (run().inserted(19, done("z", "ok")), 20, Rule::AfterEnd),
        (run().inserted(18, error("z", "surprise")), 19, Rule::UnknownCode),
        (
            run().inserted(17, error("r", "run_failed")).with(17, "/error/detail", json!("odd: x")),
            18,
            Rule::ErrorClass,
        ),
    ]
}

/// Violations in the output of a process of one request.
fn in_one_shot() -> Vec<Planted> {
    vec![
        (one_shot().inserted(7, state("o", 3, vec![])), 8, Rule::AfterTerminal),
        (one_shot().without(1), 2, Rule::OneShotOrder),
        (one_shot().with(6, "/error/terminal", json!(false)), 7, Rule::OneShotOrder),
        (one_shot().inserted(4, state("o", 2, vec![])), 5, Rule::OneShotOrder),
        (one_shot().inserted(2, frame("", "snapshot", json!({}))), 3, Rule::OneShotOrder),
        (one_shot().inserted(6, state("o", 3, vec![])), 7, Rule::OneShotOrder),
        (one_shot().inserted(8, done("", "failed")), 9, Rule::AfterEnd),
    ]
}

/// The first and the last entity of the run: no part that can be asked for has just these.
fn without_the_middle() -> Vec<serde_json::Value> {
    let whole = run().0[16]["snapshot"]["entities"].as_array().cloned().unwrap_or_default();
    assert!(whole.len() > 2, "{whole:?}");
    [whole.first(), whole.last()].into_iter().flatten().cloned().collect()
}
