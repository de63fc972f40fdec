use super::*;
use crate::conversation::compaction::{Compaction, CompactionEvent};
use crate::conversation::entities::Entities;
use crate::conversation::event::Attachments;
use crate::conversation::transcript::{Turn, TurnItem, TurnState};
use crate::protocol::proto::rpc::RpcLine;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The frames of each recorded conversation, with the name of its file.
fn recorded() -> Vec<(String, Vec<RpcLine>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut all = Vec::new();
    for file in fs::read_dir(folder).expect("the folder") {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a recorded conversation");
        for line in text.lines().filter_map(|line| line.strip_prefix("< ")) {
            let frame: RpcLine = serde_json::from_str(line).expect("a frame");
            if matches!(frame.frame, Some(Body::Hello(_))) {
                all.push((path.display().to_string(), Vec::new()));
            }
            all.last_mut().expect("hello comes first").1.push(frame);
        }
    }
    assert!(all.len() > 20, "{}", all.len());
    all
}

fn shown(frames: &[RpcLine], wants: impl Fn(&Body) -> bool) -> Shown {
    let mut entities = Entities::default();
    for frame in frames.iter().filter_map(|line| line.frame.clone()).filter(wants) {
        match frame {
            Body::Snapshot(snapshot) => entities.snapshot(snapshot),
            Body::UiEvent(event) => {
                entities.event(event.ordinal, &event.payload.expect("a payload"));
            }
            Body::Hello(_) | Body::BackendEvent(_) | Body::Error(_) | Body::Done(_) => {}
        }
    }
    entities.finish()
}

/// The entities of a run whose patches were lean have what other events say of them.
#[test]
fn events_alone_show_what_snapshots_show() {
    let mut compared = 0;
    for (name, frames) in recorded() {
        for (at, frame) in frames.iter().enumerate() {
            let Some(Body::Snapshot(snapshot)) = &frame.frame else { continue };
            let shown = shown(&frames[..at], |body| !matches!(body, Body::Snapshot(_)));
            for expected in snapshot.entities.iter().filter(|it| it.created_ordinal > 0) {
                let found = shown.entities.iter().find(|it| it.id == expected.id);
                let is_there = (!expected.tombstone).then_some(expected);
                assert_eq!(found, is_there, "{name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

fn imported(turn: &CopiedTurn) -> &ImportedTurn {
    match &turn.content {
        TurnContent::Shown(imported, _) => imported,
        TurnContent::Events(_) => panic!("it is of no log"),
    }
}

/// The turns that have an answer: of one without, a snapshot does not say whether it was stopped.
fn answered(shown: Shown) -> Vec<(u32, Arc<Turn>)> {
    let turns = CopiedTurns::of_shown(shown).turns.into_iter();
    let turns = turns.filter_map(|it| Some((it.number, imported(&it).turn.clone()?)));
    turns.filter(|(_, turn)| !turn.items.is_empty()).collect()
}

#[test]
fn the_last_snapshot_alone_gives_the_same_turns() {
    let mut compared = 0;
    for (name, frames) in recorded() {
        let whole = |line: &&RpcLine| match &line.frame {
            Some(Body::Snapshot(it)) => it.entities.iter().any(|it| it.created_ordinal == 1),
            _ => false,
        };
        let Some(last) = frames.iter().rfind(whole) else { continue };
        let at = frames.iter().position(|frame| frame == last).expect("it is there");
        let by_events = answered(shown(&frames[..at], |body| matches!(body, Body::UiEvent(_))));
        let by_snapshot = answered(shown(std::slice::from_ref(last), |_| true));
        assert_eq!(by_events, by_snapshot, "{name}");
        compared += by_events.len();
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn a_stream_that_is_cut_off_anywhere_gives_an_interrupted_turn() {
    for (name, frames) in recorded() {
        for end in 0..frames.len() {
            let shown = shown(&frames[..end], |body| matches!(body, Body::UiEvent(_)));
            let open = shown.open.clone();
            let copy = CopiedTurns::of_shown(shown);
            for turn in &copy.turns {
                for entity in &imported(turn).entities {
                    let json = serde_json::to_string(entity).expect("JSON");
                    let is_open = [r#""streaming":true"#, r#""executing":true"#, "streaming_args"];
                    assert!(!is_open.iter().any(|it| json.contains(it)), "{name}: {json}");
                }
                let items = imported(turn).turn.iter().flat_map(|turn| &turn.items);
                let unanswered =
                    |item: &TurnItem| matches!(item, TurnItem::Called { result: None, .. });
                assert!(!items.into_iter().any(unanswered), "{name}");
            }
            if open.is_some() {
                let last = copy.turns.last().and_then(|turn| imported(turn).turn.as_ref());
                assert_eq!(last.map(|turn| turn.state), Some(TurnState::Interrupted), "{name}");
            }
        }
    }
}

#[test]
fn records_rise_and_carry_the_new_session_everywhere() {
    let session = SessionId::new("other").expect("an id");
    for (name, frames) in recorded() {
        let copy = CopiedTurns::of_shown(shown(&frames, |_| true));
        let turns = copy.turns.len();
        let records = copy.records(&session, &mut Ids::new(1));
        assert_eq!(records.len(), 1 + turns, "{name}");
        let mut last = 0;
        for record in &records {
            let Record::Event(event) = record else { continue };
            assert!(event.ordinal.0 > last, "{name}");
            last = event.ordinal.0;
            let Event::TurnImported(imported) = &event.event else { panic!("{event:?}") };
            for entity in &imported.entities {
                assert!(entity.created_ordinal <= entity.last_event_ordinal, "{name}");
                assert!(entity.last_event_ordinal <= last, "{name}");
                assert_eq!(entity.correlation().expect("ids").session_id, "other", "{name}");
            }
        }
        let json = format!("{records:?}");
        assert!(!json.contains("session-1"), "{name}");
    }
}

/// Servers number in other ways: runs without ids, ordinals that are all the same.
#[test]
fn entities_without_ids_are_turns_by_their_prompts() {
    let message = |id: &str, by: &str| SnapshotEntity {
        kind: "ChatMessage".to_owned(),
        id: id.to_owned(),
        created_ordinal: 1,
        last_event_ordinal: 1,
        tombstone: false,
        payload: Some(
            ChatMessageEntity {
                message_id: id.to_owned(),
                role: by.to_owned(),
                text: id.to_owned(),
                status: "finished".to_owned(),
                ..Default::default()
            }
            .into(),
        ),
    };
    let entities = vec![
        message("q1", "user"),
        message("a1", "assistant"),
        message("q2", "user"),
        message("a2", "assistant"),
    ];
    let shown = Shown { entities, ..Entities::default().finish() };
    let copy = CopiedTurns::of_shown(shown);
    let numbers: Vec<_> =
        copy.turns.iter().map(|turn| (turn.number, imported(turn).entities.len())).collect();
    assert_eq!(numbers, [(1, 2), (2, 2)]);
    let ordinals: Vec<_> = copy
        .records(&SessionId::new("s").expect("an id"), &mut Ids::new(1))
        .iter()
        .filter_map(|record| record.event().map(|recorded| recorded.ordinal.0))
        .collect();
    assert_eq!(ordinals, [2, 3]);
}

/// Earlier versions gave a compaction the number of a turn that had been dropped before it.
#[test]
fn a_compaction_after_dropped_turns_is_copied_with_the_last_turn() {
    let mut ids = Ids::new(1);
    let mut events = Vec::new();
    let mut record = |run, turn, event| {
        let ordinal = Ordinal(events.len() as u64 + 1);
        events.push(Recorded { ordinal, scope: Scope { run, turn, call: 0 }, event });
    };
    for turn in [1, 2] {
        let (run, attachments) = (ids.run(), Attachments::default());
        record(run, turn, Event::PromptAccepted { prompt: "hi".into(), attachments });
        record(run, turn, Event::RunFinished { duration_ms: 1, cut_off: None });
    }
    let (message_ids, tool_call_ids, turns) = (Vec::new(), Vec::new(), vec![2]);
    record(ids.run(), 2, Event::TurnDropped { message_ids, tool_call_ids, turns });
    let made = Compaction { through: 1, summary: "short".into(), ..Compaction::default() };
    record(ids.run(), 2, Event::Compaction(CompactionEvent::Done(Arc::new(made))));
    let session = SessionId::new("s").expect("an id");
    let (preamble, history, choices) = Default::default();
    let start = SessionStart { session, preamble, history, choices };
    let copy = CopiedTurns::of_log(start, events);
    let [CopiedTurn { number: 1, content: TurnContent::Events(events) }] = &copy.turns[..] else {
        panic!("{copy:?}")
    };
    let [.., last] = &events[..] else { panic!("no events") };
    assert!(matches!(last.event, Event::Compaction(_)), "{last:?}");
    assert_eq!(last.scope.turn, 1);
}
