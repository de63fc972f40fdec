//! A process that is killed at any moment loses nothing that it has shown.

use crate::frames::{Frame, submit};
use crate::server::{Folder, Server};
use crate::store::{events, kill, resumed, stored, wait_state};
use duologue::protocol::any::Any;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;

/// Kills in the test that is always run.
const KILLS: u64 = 40;

/// Kills in the long one.
const MANY_KILLS: u64 = 200;

/// Frames after which a process is killed at most: more than its answer has.
const FRAMES_MAX: u64 = 70;

#[test]
fn what_was_shown_before_a_kill_is_stored() {
    kills(KILLS);
}

#[test]
#[ignore = "takes minutes"]
fn what_was_shown_before_each_of_many_kills_is_stored() {
    kills(MANY_KILLS);
}

fn kills(count: u64) {
    let folder = Folder::new();
    let mut seen: BTreeMap<u64, Frame> = BTreeMap::new();
    let mut last = 0;
    for number in 0..count {
        let launch = match number {
            0 => stored(&folder, &["--echo-delay-ms", "1"]),
            _ => resumed(&folder, &["--echo-delay-ms", "1", "--final-snapshot", "none"]),
        };
        let mut server = launch.start();
        if number > 0 {
            check_state(&wait_state(&mut server), &seen);
        }
        let frames = killed(server, number);
        for frame in frames.into_iter().filter(|frame| frame.event().is_some()) {
            let ordinal = frame.ordinal().expect("an ordinal");
            assert!(ordinal > last, "the ordinal {ordinal} was used before kill {number}");
            last = ordinal;
            seen.insert(ordinal, frame);
        }
    }
    assert!(seen.len() as u64 > count * 5, "only {} events were seen", seen.len());
    check_events(&events(&folder.path("store")), &seen);
}

/// Kills the server while it answers, after a number of frames that differs each time.
pub(crate) fn killed(mut server: Server, number: u64) -> Vec<Frame> {
    let prompt = format!("prompt {number} {}", "word ".repeat(40));
    if number == 0 {
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

/// Each event that was shown is stored under its ordinal, with the same message. Patches that were written
/// together are one, and the end of a segment stands for all of them: their text is stored at its place.
pub(crate) fn check_events(stored: &[(u64, String, Vec<u8>)], seen: &BTreeMap<u64, Frame>) {
    assert!(stored.is_sorted_by(|one, two| one.0 < two.0), "no ordinal comes again");
    let message = |(ordinal, name, value): &(u64, String, Vec<u8>)| {
        let type_url = format!("type.googleapis.com/{name}");
        let any = prost_types::Any { type_url, value: value.clone() };
        let any = Any::decode(&*any.encode_to_vec()).expect("a message");
        (*ordinal, serde_json::to_value(&any).expect("JSON"))
    };
    let stored: BTreeMap<u64, Value> = stored.iter().map(message).collect();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for event in stored.values() {
        let text = event["text"].as_str().unwrap_or_default();
        let known = texts.entry(event["messageId"].as_str().unwrap_or_default()).or_default();
        match event["@type"].as_str().and_then(|url| url.rsplit('.').next()) {
            Some("ChatTextPatch") => known.push_str(text),
            Some("ChatTextSegmentFinished") => text.clone_into(known),
            _ => {}
        }
    }
    for (ordinal, frame) in seen {
        if frame.is_event("ChatTextPatch") {
            let whole = texts.get(frame.payload("messageId")).expect("the text of its segment");
            let offset = frame.payload("offset").parse().unwrap_or(0);
            assert!(whole[offset..].starts_with(frame.payload("text")), "event {ordinal}");
            continue;
        }
        let stored =
            stored.get(ordinal).unwrap_or_else(|| panic!("{ordinal} is missing: {frame:?}"));
        for field in ["@type", "text", "messageId", "status"] {
            let shown = &frame.0["uiEvent"]["payload"][field];
            assert_eq!(stored[field], *shown, "event {ordinal}: {stored} {frame:?}");
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
    let entities = state.0["snapshot"]["entities"].as_array().expect("entities");
    for (id, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        let entity = entities.iter().find(|entity| entity["id"] == id);
        let whole = entity.and_then(|entity| entity["payload"]["text"].as_str());
        assert!(whole.is_some_and(|whole| whole.starts_with(&text)), "{id}: {text:?} {whole:?}");
        assert_ne!(entity.map(|it| &it["payload"]["status"]), Some(&"streaming".into()), "{id}");
    }
}
