//! A process that is killed at any moment loses nothing that it has shown.

use crate::frames::{Frame, submit};
use crate::log_rows::{StoredEvent, member};
use crate::server::{Folder, Server};
use crate::store::{events, kill, resumed, stored, wait_state};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Kills in the test that is always run.
const KILLS: u64 = 40;

/// End of the kills in the long one, which goes on where that test ends.
const MANY_KILLS: u64 = 200;

/// Frames after which a process is killed at most: more than its answer has.
const FRAMES_MAX: u64 = 70;

#[test]
fn what_was_shown_before_a_kill_is_stored() {
    kills(0..KILLS);
}

#[test]
#[ignore = "takes minutes"]
fn what_was_shown_before_each_of_many_kills_is_stored() {
    kills(KILLS..MANY_KILLS);
}

fn kills(kills: Range<u64>) {
    let folder = Folder::new();
    let mut seen: BTreeMap<u64, Frame> = BTreeMap::new();
    let mut last = 0;
    for number in kills.clone() {
        let is_first = number == kills.start;
        let launch = match is_first {
            true => stored(&folder, &["--echo-delay-ms", "1"]),
            false => resumed(&folder, &["--echo-delay-ms", "1", "--final-snapshot", "none"]),
        };
        let mut server = launch.start();
        if !is_first {
            check_state(&wait_state(&mut server), &seen);
        }
        let frames = killed(server, number, is_first);
        for frame in frames.into_iter().filter(|frame| frame.event().is_some()) {
            let ordinal = frame.ordinal().expect("an ordinal");
            assert!(ordinal > last, "the ordinal {ordinal} was used before kill {number}");
            last = ordinal;
            seen.insert(ordinal, frame);
        }
    }
    assert!(seen.len() > kills.count() * 5, "only {} events were seen", seen.len());
    check_events(&events(&folder.path("store")), &seen);
}

/// Kills the server while it answers, after a number of frames that differs each time. `is_first`: nothing was stored
/// of the session yet.
pub(crate) fn killed(mut server: Server, number: u64, is_first: bool) -> Vec<Frame> {
    let prompt = format!("prompt {number} {}", "word ".repeat(40));
    if is_first {
        // A session that nothing was stored of can't go on.
        assert_eq!(server.turn("first", "hello"), "ok");
    }
    server.send(submit(&format!("r{number}"), &prompt));
    let chance = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040) >> 33;
    for _ in 0..1 + chance % FRAMES_MAX {
        let frame = server.wait("a frame", |_| true);
        if frame.done().is_some() {
            break;
        }
    }
    kill(server).frames
}

/// Each event that was shown is stored under its ordinal, with what it says. Patches that were written
/// together are one, and the end of a segment stands for all of them: their text is stored at its place.
pub(crate) fn check_events(stored: &[StoredEvent], seen: &BTreeMap<u64, Frame>) {
    assert!(stored.is_sorted_by(|one, two| one.0 < two.0), "no ordinal comes again");
    // The text of each segment, by the ordinal of its beginning.
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    for (ordinal, name, value) in stored {
        let text = value["text"].as_str().unwrap_or_default();
        let Some(mut open) = texts.last_entry().filter(|_| name != "segment_started") else {
            if name == "segment_started" {
                texts.insert(*ordinal, String::new());
            }
            continue;
        };
        match name.as_str() {
            "segment_patched" => open.get_mut().push_str(text),
            "segment_finished" => text.clone_into(open.get_mut()),
            _ => {}
        }
    }
    let stored: BTreeMap<u64, (&str, &Value)> =
        stored.iter().map(|(ordinal, name, value)| (*ordinal, (&**name, value))).collect();
    for (ordinal, frame) in seen {
        if frame.is_event("ChatTextPatch") {
            let (_, whole) = texts.range(..ordinal).next_back().expect("the text of its segment");
            let offset = frame.payload("offset").parse().unwrap_or(0);
            assert!(whole[offset..].starts_with(frame.payload("text")), "event {ordinal}");
            continue;
        }
        let (name, value) =
            stored.get(ordinal).unwrap_or_else(|| panic!("{ordinal} is missing: {frame:?}"));
        assert_eq!(*name, member(frame.event().expect("an event")), "event {ordinal}");
        for (field, pointer) in
            [("text", "text"), ("status", "status"), ("stop_reason", "stopReason")]
        {
            let shown = &frame.0["uiEvent"]["payload"][pointer];
            if let Some(text) = value[field].as_str() {
                assert_eq!(text, shown.as_str().unwrap_or_default(), "event {ordinal}: {frame:?}");
            }
        }
    }
}

/// The conversation has each prompt that was accepted, and of each answer at least what was shown.
pub(crate) fn check_state(state: &Frame, seen: &BTreeMap<u64, Frame>) {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for frame in seen.values() {
        let text = texts.entry(frame.payload("messageId")).or_default();
        match frame.event() {
            Some("ChatTextPatch") => text.push_str(frame.payload("text")),
            Some("ChatUserMessageAccepted") => frame.payload("text").clone_into(text),
            _ => {}
        }
    }
    let entities = state.0["snapshot"]["entities"].as_array().map_or(&[][..], Vec::as_slice);
    for (id, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        let entity = entities.iter().find(|entity| entity["id"] == id);
        let whole = entity.and_then(|entity| entity["payload"]["text"].as_str());
        assert!(whole.is_some_and(|whole| whole.starts_with(&text)), "{id}: {text:?} {whole:?}");
        assert_ne!(entity.map(|it| &it["payload"]["status"]), Some(&"streaming".into()), "{id}");
    }
}
