//! What snapshots must hold of what a stream has told, and ids of its runs.

use super::*;

/// A turn of the request `id`: its prompt and its end, and a snapshot of what `entities` name.
fn turn(id: &str, ordinal: u64, run: &str, entities: &[&str]) -> Vec<Value> {
    let prompt = json!({ "messageId": format!("{id}-user"), "text": "hi" });
    let entities = entities.iter().map(|id| message(id, "hi")).collect();
    vec![
        event(id, ordinal, "ChatUserMessageAccepted", prompt),
        event(id, ordinal + 1, "ChatRunStarted", json!({ "correlation": ids("s", run) })),
        event(id, ordinal + 2, "ChatRunFinished", json!({ "correlation": ids("s", run) })),
        state(id, ordinal + 2, entities),
        done(id, "ok"),
    ]
}

fn message(id: &str, text: &str) -> Value {
    entity("ChatMessage", id, "ChatMessageEntity", ("text", text))
}

fn state(id: &str, ordinal: u64, entities: Vec<Value>) -> Value {
    frame(id, "snapshot", json!({ "snapshotOrdinal": ordinal.to_string(), "entities": entities }))
}

/// The snapshot of a run may hold its own turn alone; a part of what was before is too little.
#[test]
fn a_snapshot_holds_its_turn_or_everything() {
    let [a, b, c] = ["a-user", "b-user", "c-user"];
    let two = |last: &[&str]| {
        let turns = [turn("a", 1, "1", &[a]), turn("b", 4, "2", &[b]), turn("c", 7, "3", last)];
        Stream([vec![hello(&STDIN)], turns.concat()].concat())
    };
    for right in [&[c][..], &[a, b, c], &[c, b, a]] {
        assert_eq!(two(right).check(), [], "{right:?}");
    }
    for wrong in [&[][..], &[a, b], &[a, c], &[b, c]] {
        assert_eq!(two(wrong).check(), [(15, Rule::SnapshotLost)], "{wrong:?}");
    }
    // What is lost is told once; who asks for all gets all.
    let asked = |entities: &[&str]| {
        let entities: Vec<_> = entities.iter().map(|id| message(id, "hi")).collect();
        let again = [state("q", 9, entities.clone()), done("q", "ok"), state("p", 9, entities)];
        Stream([two(&[c]).0, again.to_vec(), vec![done("p", "ok")]].concat()).check()
    };
    assert_eq!(asked(&[a, b, c]), []);
    assert_eq!(asked(&[c]), [(17, Rule::SnapshotLost)]);
}

/// A removed entity is told of once more, and then no more.
#[test]
fn what_was_removed_is_not_lost() {
    let mut gone = message("a-user", "");
    gone["tombstone"] = true.into();
    let states = [state("q", 3, vec![gone]), done("q", "ok"), state("p", 3, vec![])];
    let frames = [vec![hello(&STDIN)], turn("a", 1, "1", &["a-user"]), states.to_vec()].concat();
    assert_eq!(Stream([frames, vec![done("p", "ok")]].concat()).check(), []);
}

/// The first snapshot of a session that goes on tells of more than the stream did, and the others
/// must know it, too.
#[test]
fn a_session_that_goes_on_begins_with_more() {
    let old = vec![message("old", "from before")];
    let with = |entities: &[&str]| {
        let first = [state("q", 4, old.clone()), done("q", "ok")];
        let frames = [vec![hello(&STDIN)], first.to_vec(), turn("a", 5, "1", entities)];
        Stream(frames.concat()).check()
    };
    assert_eq!(with(&["old", "a-user"]), []);
    assert_eq!(with(&["a-user"]), [], "the turn alone");
    assert_eq!(with(&["old"]), [(7, Rule::SnapshotLost)]);
}

/// A snapshot in the middle of a segment has the text so far.
#[test]
fn a_snapshot_may_come_while_text_is_streamed() {
    let asked = |text: &str| {
        let entities = vec![message("m-user", ""), message("t", text)];
        run().inserted(6, state("z", 5, entities)).inserted(7, done("z", "ok")).check()
    };
    assert_eq!(asked("Grüße "), []);
    assert_eq!(asked("Grüße dich"), [(7, Rule::SnapshotText)]);
    assert_eq!(asked(""), [(7, Rule::SnapshotText)]);
}

/// No run has an earlier run's id.
#[test]
fn runs_have_their_own_ids() {
    let turns = |other: &str| {
        let turns = [turn("a", 1, "1", &["a-user"]), turn("b", 4, other, &["b-user"])];
        Stream([vec![hello(&STDIN)], turns.concat()].concat()).check()
    };
    assert_eq!(turns("2"), []);
    assert_eq!(turns("1"), [(8, Rule::Correlation), (9, Rule::Correlation)]);
}
