//! What snapshots must contain of the stream so far, and the ids of its runs.

use super::sample::{
    STDIN, Stream, answer, cancelled, done, event, foreign, hello, ids, prompt_of, run, started,
    state, turn,
};
use super::*;
use serde_json::json;

/// A run that ends at once, with a snapshot of the prompts of `entities`.
fn short_turn(id: &str, number: u64, entities: &[u64]) -> Vec<Value> {
    let first = 3 * number - 2;
    let prompts = prompts(entities);
    let mut frames = turn(id, number, first, ("ChatRunFinished", "finished"));
    frames.extend([state(id, first + 2, prompts), done(id, "ok")]);
    frames
}

/// The prompts of runs as entities of a snapshot.
fn prompts(runs: &[u64]) -> Vec<Value> {
    runs.iter().map(|&run| prompt_of(run, 3 * run - 2)).collect()
}

/// The snapshot of a run may contain its own turn only; a part of the earlier turns is an error.
#[test]
fn a_snapshot_holds_its_turn_or_everything() {
    let three = |last: &[u64]| {
        let turns = [short_turn("a", 1, &[1]), short_turn("b", 2, &[2]), short_turn("c", 3, last)];
        Stream(vec![hello(&STDIN)]).and(turns.concat())
    };
    for right in [&[3][..], &[1, 2, 3], &[3, 2, 1]] {
        assert_eq!(three(right).check(), [], "{right:?}");
    }
    for wrong in [&[][..], &[1, 2], &[1, 3], &[2, 3]] {
        assert_eq!(three(wrong).check(), [(15, Rule::SnapshotLost)], "{wrong:?}");
    }
    // A missing entity is reported once; a requested snapshot contains everything, or a part that can be
    // asked for.
    let asked = |entities: &[u64]| {
        let again = [state("q", 9, prompts(entities)), done("q", "ok")];
        let once_more = [state("p", 9, prompts(entities)), done("p", "ok")];
        three(&[3]).and(again).and(once_more).check()
    };
    assert_eq!(asked(&[1, 2, 3]), []);
    assert_eq!(asked(&[1, 3]), [(17, Rule::SnapshotLost)]);
    for part in [&[][..], &[3], &[2, 3], &[2], &[1]] {
        assert_eq!(asked(part), [], "{part:?}");
    }
}

/// A run is compacted between its calls, and who does not want to know of it sees that its ordinals go on.
#[test]
fn a_snapshot_counts_what_its_client_does_not_see() {
    let with = |words: &[&str], last: u64| {
        let run = |first| turn("a", 1, first, ("ChatRunFinished", "finished"));
        let begun = run(1)[..2].to_vec();
        let ended = run(last - 2)[2..].to_vec();
        Stream(vec![hello(words)])
            .and(begun)
            .and([state("q", 3, vec![prompt_of(1, 1)]), done("q", "ok")])
            .and(ended)
            .and([state("a", last, vec![prompt_of(1, 1)]), done("a", "ok")])
            .check()
    };
    assert_eq!(with(&STDIN, 4), []);
    assert_eq!(with(&STDIN, 3), [(6, Rule::OrdinalOrder)]);
    let wants_to_know = [&STDIN[..], &["compaction"]].concat();
    assert_eq!(with(&wants_to_know, 4), [(4, Rule::SnapshotOrdinal)]);
}

/// A part is noted, as the stream does not show what was asked for; and nothing is forgotten over it.
#[test]
fn a_part_of_the_conversation_is_noted() {
    let with = |last: &[u64]| {
        let stream = Stream(vec![hello(&STDIN)])
            .and([short_turn("a", 1, &[1]), short_turn("b", 2, &[1, 2])].concat())
            .and([state("p", 6, prompts(&[2])), done("p", "ok")])
            .and([state("q", 6, prompts(last)), done("q", "ok")]);
        let mut checker = Checker::new();
        let lines = stream.0.iter().flat_map(|line| checker.line(line.to_string().as_bytes()));
        let rules: Vec<_> = lines.map(|violation| violation.rule).collect();
        (rules, checker.summary().notes.len())
    };
    assert_eq!(with(&[1, 2]), (vec![], 1));
}

/// What was dropped is in no later snapshot, and nothing else is dropped.
#[test]
fn what_was_dropped_is_not_lost() {
    let dropped = |ids: &[&str]| {
        let first = ids.first().copied().unwrap_or_default();
        json!({ "promptMessageId": first, "messageIds": ids, "turnIds": ["turn-2"] })
    };
    let with = |ids: &[&str], entities: &[u64]| {
        Stream(vec![hello(&STDIN)])
            .and([short_turn("a", 1, &[1]), short_turn("b", 2, &[1, 2])].concat())
            .and([
                foreign("e", 7, ("duologue.session", "TurnDropped"), dropped(ids)),
                done("e", "ok"),
            ])
            .and([state("q", 7, prompts(entities)), done("q", "ok")])
            .check()
    };
    assert_eq!(with(&["chat-msg-2-user"], &[1]), []);
    assert_eq!(with(&["chat-msg-7-user"], &[1, 2]), [(12, Rule::EventOrder)]);
    // It can't be the run that is still going.
    let event = foreign("e", 7, ("duologue.session", "TurnDropped"), dropped(&[]));
    let stream = run().inserted(6, event);
    let found = stream.check();
    assert!(found.contains(&(7, Rule::EventOrder)), "{found:?}");
    let mut bare = Stream(vec![hello(&STDIN)]).and(short_turn("a", 1, &[1]));
    let nothing = json!({ "promptMessageId": "x" });
    bare =
        bare.and([foreign("e", 4, ("duologue.session", "TurnDropped"), nothing), done("e", "ok")]);
    assert_eq!(bare.check(), [(7, Rule::MissingField); 2]);
}

/// A removed entity is shown once more, and then no more.
#[test]
fn what_was_removed_is_not_lost() {
    let mut gone = prompt_of(1, 1);
    gone["tombstone"] = true.into();
    let stream = Stream(vec![hello(&STDIN)])
        .and(short_turn("a", 1, &[1]))
        .and([state("q", 3, vec![gone]), done("q", "ok")])
        .and([state("p", 3, vec![]), done("p", "ok")]);
    assert_eq!(stream.check(), []);
}

/// The first snapshot of a continued session contains more than the stream has shown, and the later
/// ones must contain that too.
#[test]
fn a_session_that_goes_on_begins_with_more() {
    let with = |entities: &[u64]| {
        Stream(vec![hello(&STDIN), state("q", 4, vec![prompt_of(2, 4)]), done("q", "ok")])
            .and(turn("a", 3, 7, ("ChatRunFinished", "finished")))
            .and([state("a", 9, prompts(entities)), done("a", "ok")])
            .check()
    };
    assert_eq!(with(&[2, 3]), []);
    assert_eq!(with(&[3]), [], "the turn alone");
    assert_eq!(with(&[2]), [(7, Rule::SnapshotLost)]);
}

/// An earlier conversation need not have ids of runs, and must not change.
#[test]
fn a_conversation_that_was_brought_along_stays() {
    let mut old = prompt_of(9, 1);
    old["payload"].as_object_mut().expect("a payload").shift_remove("correlation");
    let shown = |last: Value| {
        Stream(vec![hello(&STDIN), state("p", 1, vec![old.clone()]), done("p", "ok")])
            .and([state("q", 1, vec![last]), done("q", "ok")])
            .check()
    };
    assert_eq!(shown(old.clone()), []);
    assert_eq!(shown(prompt_of(9, 1)), [(4, Rule::Correlation)]);
}

/// A snapshot in the middle of a segment has the text so far.
#[test]
fn a_snapshot_may_come_while_text_is_streamed() {
    let asked = |text: &str| {
        let entities = vec![prompt_of(1, 1), answer(5, "streaming", text)];
        run().inserted(6, state("z", 5, entities)).inserted(7, done("z", "ok")).check()
    };
    assert_eq!(asked("Grüße "), []);
    assert_eq!(asked("Grüße dich"), [(7, Rule::SnapshotText)]);
    assert_eq!(asked(""), [(7, Rule::SnapshotText)]);
}

/// No run has an id of an earlier run.
#[test]
fn runs_have_their_own_ids() {
    let two = |field: &str| {
        let mut second = turn("b", 2, 4, ("ChatRunFinished", "finished"));
        for event in &mut second[1..] {
            event["uiEvent"]["payload"]["correlation"][field] = ids(1, &[])[field].clone();
        }
        let first = turn("a", 1, 1, ("ChatRunFinished", "finished"));
        let turns = [first, vec![done("a", "ok")], second, vec![done("b", "ok")]];
        Stream(vec![hello(&STDIN)]).and(turns.concat()).check()
    };
    assert_eq!(two("sessionId"), []);
    assert_eq!(two("runId"), [(7, Rule::Correlation)]);
    assert_eq!(two("turnId"), [(7, Rule::Correlation)]);
}

/// Patches may leave out the fields given at the start of their segment, if `hello` announces that.
#[test]
fn lean_patches_are_announced() {
    let mut lean = run();
    for at in [5, 6, 9] {
        let payload = lean.0[at]["uiEvent"]["payload"].as_object_mut().expect("a payload");
        payload.retain(|field, _| {
            !["role", "streamId", "status", "correlation", "toolName"].contains(&&**field)
        });
    }
    let found: BTreeSet<_> = lean.check().into_iter().collect();
    assert_eq!(found, [6, 7, 10].map(|line| (line, Rule::MissingField)).into());
    lean.0[0] = hello(&[&STDIN[..], &["lean-patches"]].concat());
    assert_eq!(lean.check(), []);
    let wrong = lean.with(5, "/uiEvent/payload/role", json!("user"));
    assert_eq!(wrong.check(), [(6, Rule::WrongWord)]);
}

/// A cancel of a run that has ended, but has no `done` yet, may succeed or fail.
#[test]
fn a_cancel_may_come_between_the_end_of_a_run_and_its_done() {
    let late = [vec![done("z", "ok")], vec![error("z", "no_active_request"), done("z", "ok")]];
    for answer in late {
        let mut stream = run();
        stream.0.splice(16..16, answer);
        assert_eq!(stream.check(), []);
    }
    let repeated = cancelled().inserted(4, event("r", 4, "ChatRunStarted", started(1)));
    assert_eq!(repeated.check().first(), Some(&(5, Rule::EventOrder)));
}
