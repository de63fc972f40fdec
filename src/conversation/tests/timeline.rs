//! What a person sees of a conversation.

use super::*;

fn timeline(recorded: &[Recorded]) -> Timeline {
    let mut timeline = Timeline::default();
    recorded.iter().for_each(|recorded| timeline.apply(recorded));
    timeline
}

#[test]
fn replaying_the_events_so_far_gives_the_state_so_far() {
    let recorded = conversation().recorded;
    let (mut growing, mut transcript) = (Timeline::default(), Transcript::new(Preamble::default()));
    for (at, next) in recorded.iter().enumerate() {
        growing.apply(next);
        transcript.apply(next);
        let replayed = timeline(&recorded[..=at]);
        for span in [Span::Conversation, Span::LastTurn] {
            let snapshot = growing.snapshot(&session(), span);
            assert_eq!(snapshot, replayed.snapshot(&session(), span));
            assert_eq!(snapshot.snapshot_ordinal, next.ordinal.0);
        }
        let mut replayed = Transcript::new(Preamble::default());
        recorded[..=at].iter().for_each(|recorded| replayed.apply(recorded));
        assert_eq!(transcript, replayed);
    }
}

/// A snapshot, one entity a line: kind, id, ordinals, role or tool, status, text.
fn entities(snapshot: &SnapshotFrame, runs: &[RunId]) -> Vec<String> {
    let line = |entity: &crate::protocol::proto::rpc::SnapshotEntity| {
        let whole = entity.payload.clone().map(|payload| payload.into_whole());
        let (who, status, text) = match whole.as_ref() {
            Some(Any::ChatMessageEntity(m)) => (&m.role, &m.status, &m.text),
            Some(Any::ToolCallEntity(m)) => (&m.tool_name, &m.status, &m.input),
            Some(Any::ToolResultEntity(m)) => (&m.tool_name, &m.status, &m.result),
            other => panic!("no entity: {other:?}"),
        };
        let named =
            |id: String, (at, run): (usize, &RunId)| id.replace(&run.root(), &format!("run{at}"));
        let id = runs.iter().enumerate().fold(entity.id.clone(), named);
        let (from, to) = (entity.created_ordinal, entity.last_event_ordinal);
        format!("{} {id} {from}-{to} {who} {status}: {text}", entity.kind)
    };
    snapshot.entities.iter().map(line).collect()
}

#[test]
fn a_snapshot_shows_all_or_the_last_turn() {
    let recorder = conversation();
    let mut runs: Vec<RunId> =
        recorder.recorded.iter().map(|recorded| recorded.scope.run).collect();
    runs.dedup();
    let timeline = timeline(&recorder.recorded);
    let all = entities(&timeline.snapshot(&session(), Span::Conversation), &runs);
    let last = entities(&timeline.snapshot(&session(), Span::LastTurn), &runs);
    assert_eq!(
        all,
        [
            "ChatMessage run0-user 1-1 user accepted: hi",
            "ChatMessage run0:thinking:segment-1 4-7 thinking finished: hm",
            "ChatMessage run0:text:segment-2 8-11 assistant finished: I look.",
            "ChatToolCall t1 12-23 clock completed: {}",
            "ChatToolCall t2 16-21 clock completed: {}",
            "ChatToolResult t2:result 20-20 clock success: noon",
            "ChatToolResult t1:result 22-22 clock success: one",
            "ChatMessage run1-user 27-27 user accepted: again",
            "ChatMessage run1:text:segment-1 30-32 assistant finished: It",
            "ChatMessage run1 35-35 error failed: broken",
        ]
    );
    assert_eq!(last, all[7..]);
}

#[test]
fn a_snapshot_before_anything_happened_is_empty() {
    for span in [Span::Conversation, Span::LastTurn] {
        let snapshot = Timeline::default().snapshot(&session(), span);
        assert_eq!(snapshot, SnapshotFrame::default());
    }
}
