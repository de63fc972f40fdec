//! Turns that are dropped, asked again and replaced, in processes that are killed and go on; and the
//! parts of a conversation that a client asks for.

use crate::frames::{Frame, errors, patched_text, submit};
use crate::server::{Folder, Server, echo};
use crate::store::{events, kept, kill, resumed, stored, wait_state};
use serde_json::{Value, json};

/// Frames of an edit after which a process is killed. The last is more than a short answer has.
const FRAMES: [usize; 7] = [0, 1, 2, 3, 5, 9, 40];

pub(crate) fn edit(id: &str, edit: Value) -> String {
    json!({ "requestId": id, "edit": edit }).to_string()
}

fn replace(id: &str, message_id: &str, prompt: &str) -> String {
    edit(id, json!({ "replace": { "messageId": message_id, "prompt": prompt } }))
}

fn history(id: &str, part: Value) -> String {
    json!({ "requestId": id, "snapshot": part }).to_string()
}

/// The snapshot that answers a request for a part.
#[track_caller]
fn part(server: &mut Server, id: &str, part: Value) -> Value {
    server.send(history(id, part));
    let frame = server.wait("the snapshot", |frame| frame.is_snapshot() && frame.id() == id);
    assert_eq!(server.wait_done(id), "ok");
    frame.0["snapshot"].clone()
}

/// Makes an edit that must succeed.
#[track_caller]
fn edited(server: &mut Server, id: &str, line: &str) {
    server.send(line);
    assert_eq!(server.wait_done(id), "ok");
}

fn entities(snapshot: &Value) -> &[Value] {
    snapshot["entities"].as_array().map_or(&[], Vec::as_slice)
}

/// The texts of the prompts.
fn prompts(snapshot: &Value) -> Vec<&str> {
    let of_user = |it: &&Value| it["payload"]["role"] == "user";
    let texts = entities(snapshot).iter().filter(of_user).map(|it| &it["payload"]["text"]);
    texts.map(|text| text.as_str().expect("a text")).collect()
}

fn prompt_id(snapshot: &Value, prompt: &str) -> String {
    let is_it = |it: &&Value| it["payload"]["role"] == "user" && it["payload"]["text"] == prompt;
    let found = entities(snapshot).iter().find(is_it).expect("the prompt");
    found["id"].as_str().expect("an id").to_owned()
}

/// What the model was sent in the turns before the last one, as the engine repeats it.
#[track_caller]
fn answer(frames: &[Frame], id: &str) -> String {
    let answer = patched_text(frames, id);
    assert!(answer.starts_with("Turn "), "{answer:?}");
    answer
}

#[test]
fn what_was_dropped_stays_dropped_in_the_next_process() {
    let folder = Folder::new();
    let mut first = stored(&folder, &["--final-snapshot", "none"]).start();
    for (id, prompt) in [("r1", "one"), ("r2", "two"), ("r3", "three"), ("r4", "four")] {
        assert_eq!(first.turn(id, prompt), "ok");
    }
    let whole = part(&mut first, "s1", json!({}));
    let seen = whole["snapshotOrdinal"].clone();
    edited(&mut first, "e1", &edit("e1", json!({ "dropLastTurn": {} })));
    edited(&mut first, "e2", &replace("e2", &prompt_id(&whole, "two"), "another"));
    edited(&mut first, "e3", &edit("e3", json!({ "regenerate": {} })));
    edited(&mut first, "e4", &edit("e4", json!({ "dropLastTurn": {} })));
    let live = [json!({}), json!({ "sinceOrdinal": seen }), json!({ "limit": 1 })];
    let live = live.map(|it| part(&mut first, &format!("live {it}"), it));
    assert_eq!(prompts(&live[0]), ["one"]);
    // Three turns and what came in their place.
    let gone = entities(&live[1]);
    assert_eq!(gone.len(), 10, "{gone:?}");
    assert!(gone.iter().all(|it| it["tombstone"] == true && it.get("payload").is_none()));
    let first = first.finish().frames;
    assert!(answer(&first, "e2").contains("Turn 2") && !answer(&first, "e2").contains("three"));
    let dropped: Vec<_> = first.iter().filter(|frame| frame.is_event("TurnDropped")).collect();
    assert_eq!(dropped.len(), 4);
    assert_eq!(dropped[1].0["uiEvent"]["payload"]["turnIds"], json!(["turn-2", "turn-3"]));

    let mut second = resumed(&folder, &["--final-snapshot", "none"]).start();
    let state = wait_state(&mut second);
    assert_eq!(state.0["snapshot"], live[0], "the same as in the process before");
    let again = [json!({}), json!({ "sinceOrdinal": seen }), json!({ "limit": 1 })];
    let again = again.map(|it| part(&mut second, &format!("again {it}"), it));
    assert_eq!(again, live);
    // The first prompt is still there to be replaced, and no turn has the number of another.
    edited(&mut second, "e5", &replace("e5", &prompt_id(&live[0], "one"), "first"));
    assert_eq!(second.turn("r5", "second"), "ok");
    let last = part(&mut second, "s2", json!({}));
    assert_eq!(prompts(&last), ["first", "second"]);
    let second = second.finish().frames;
    let answer = answer(&second, "r5");
    assert!(answer.contains("Turn 2") && answer.contains("first"), "{answer}");
    assert!(!answer.contains("one") && !answer.contains("two"), "{answer}");
    // Nothing of it is deleted from the log.
    let events = events(&folder.path("store"));
    let stored: Vec<u64> = events.iter().map(|event| event.0).collect();
    assert_eq!(stored, kept(first.iter().chain(&second)));
    assert_eq!(events.iter().filter(|event| event.1 == "turn_dropped").count(), 5);
}

/// Kills at each moment of each kind of edit: what people see and what the model is sent stay the same
/// conversation, and what was shown is there.
#[test]
fn a_kill_in_an_edit_leaves_the_conversation_of_before_or_of_after() {
    for (kind, after) in (0..3).flat_map(|kind| FRAMES.map(|after| (kind, after))) {
        let folder = Folder::new();
        let launch = ["--final-snapshot", "none", "--echo-delay-ms", "1"];
        let mut server = stored(&folder, &launch).start();
        for (id, prompt) in [("r1", "one"), ("r2", "two"), ("r3", "three")] {
            assert_eq!(server.turn(id, prompt), "ok");
        }
        let whole = part(&mut server, "s", json!({}));
        let (line, after_edit): (_, &[&str]) = match kind {
            0 => (edit("e", json!({ "dropLastTurn": {} })), &["one", "two"]),
            1 => (edit("e", json!({ "regenerate": {} })), &["one", "two", "three"]),
            _ => (replace("e", &prompt_id(&whole, "two"), "new"), &["one", "new"]),
        };
        server.send(line);
        for _ in 0..after {
            if server.wait("a frame", |frame| frame.id() == "e").done().is_some() {
                break;
            }
        }
        let frames = kill(server).frames;
        let was_dropped = frames.iter().any(|frame| frame.is_event("TurnDropped"));

        let mut server = resumed(&folder, &launch).start();
        let state = wait_state(&mut server).0["snapshot"].clone();
        check_ids(&state, &whole, &frames, was_dropped);
        let found = prompts(&state);
        let is_before = found == prompts(&whole) && !was_dropped;
        assert!(is_before || found == after_edit, "{found:?} after {after} frames");
        // The model is sent as many turns as people see.
        assert_eq!(server.turn("last", "last"), "ok");
        let count = found.len() + 1;
        let answer = answer(&server.finish().frames, "last");
        assert!(answer.starts_with(&format!("Turn {count}. ")), "{answer} after {after} frames");
    }
}

/// Nothing that was shown as dropped is there, and everything that was accepted after that is.
#[track_caller]
fn check_ids(state: &Value, whole: &Value, frames: &[Frame], was_dropped: bool) {
    let ids: Vec<Value> = entities(state).iter().map(|it| it["id"].clone()).collect();
    assert!(entities(state).iter().all(|it| it.get("tombstone").is_none()), "{state}");
    let texts = |name: &str, field: &str| -> Vec<Value> {
        let events = frames.iter().filter(|frame| frame.is_event(name) && frame.id() == "e");
        events.map(|frame| frame.0["uiEvent"]["payload"][field].clone()).collect()
    };
    for dropped in texts("TurnDropped", "messageIds") {
        let gone = dropped.as_array().expect("a list");
        assert!(gone.iter().all(|id| !ids.contains(id)), "{ids:?} {gone:?}");
        assert!(entities(whole).iter().any(|it| gone.contains(&it["id"])));
    }
    for accepted in texts("ChatUserMessageAccepted", "messageId") {
        assert!(was_dropped && ids.contains(&accepted), "{accepted} {ids:?}");
    }
}

#[test]
fn a_prompt_is_asked_again_with_its_attachments_in_the_next_process() {
    let folder = Folder::new();
    std::fs::write(folder.path("note.txt"), "a note").expect("a file");
    let mut first = stored(&folder, &[]).start();
    let attachments = json!([{ "url": folder.name("note.txt") }]);
    let line =
        json!({ "requestId": "r", "submit": { "prompt": "why?", "attachments": attachments } });
    first.send(line.to_string());
    assert_eq!(first.wait_done("r"), "ok");
    first.finish();
    let mut second = resumed(&folder, &[]).start();
    wait_state(&mut second);
    edited(&mut second, "e", &edit("e", json!({ "regenerate": {} })));
    let frames = second.finish().frames;
    assert!(answer(&frames, "e").contains("note.txt"), "{}", answer(&frames, "e"));
}

#[test]
fn turns_that_people_do_not_see_are_dropped_too() {
    let folder = Folder::new();
    let turns = folder.name("turns");
    let args = ["--turns-db", &turns, "--session-id", "s"];
    let mut first = echo(&args).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    assert_eq!(first.turn("r2", "two"), "ok");
    first.finish();
    let mut second = echo(&[&args[..], &["--resume"]].concat()).start();
    edited(&mut second, "e", &edit("e", json!({ "dropLastTurn": {} })));
    second.finish();
    let mut third = echo(&[&args[..], &["--resume"]].concat()).start();
    edited(&mut third, "e1", &edit("e1", json!({ "regenerate": {} })));
    edited(&mut third, "e2", &edit("e2", json!({ "dropLastTurn": {} })));
    third.send(edit("e3", json!({ "dropLastTurn": {} })));
    assert_eq!(third.wait_done("e3"), "failed");
    let frames = third.finish().frames;
    assert_eq!(answer(&frames, "e1"), "Turn 1. You said: one");
    assert_eq!(errors(&frames, "e3"), ["unknown_message"]);
}

/// A client that pages back gets each entity once, whatever the size of its pages.
#[test]
fn pages_have_the_whole_conversation() {
    let folder = Folder::new();
    let history = folder.name("history.jsonl");
    let earlier = "{\"role\":\"user\",\"content\":\"before\"}\n{\"role\":\"assistant\",\"content\":\"yes\"}\n";
    std::fs::write(&history, earlier).expect("a file");
    let mut first = stored(&folder, &["--history", &history]).start();
    for number in 0..4 {
        assert_eq!(first.turn(&format!("r{number}"), &format!("prompt {number}")), "ok");
    }
    let resumed = || resumed(&folder, &["--final-snapshot", "none"]).start();
    let check = |server: &mut Server, run: &str| {
        let whole = part(server, &format!("{run} whole"), json!({}));
        assert_eq!(entities(&whole).len(), 10);
        for limit in 1..=11 {
            let mut pages: Vec<Vec<Value>> = Vec::new();
            let mut before = json!("0");
            loop {
                let asked = json!({ "limit": limit, "beforeOrdinal": before });
                let page = part(server, &format!("{run} {limit} {before}"), asked);
                assert_eq!(page["snapshotOrdinal"], whole["snapshotOrdinal"]);
                let page = entities(&page).to_vec();
                let first = page.first().map(|it| it["createdOrdinal"].clone());
                let is_full = page.len() >= limit;
                pages.push(page);
                match first {
                    Some(ordinal) if is_full && ordinal != Value::Null => before = ordinal,
                    _ => break,
                }
            }
            pages.reverse();
            assert_eq!(pages.concat(), entities(&whole), "pages of {limit}");
        }
    };
    check(&mut first, "live");
    first.finish();
    let mut second = resumed();
    wait_state(&mut second);
    check(&mut second, "resumed");
    // With a turn of this process beside those of the store.
    second.send(submit("last", "drop me"));
    assert_eq!(second.wait_done("last"), "ok");
    edited(&mut second, "e", &edit("e", json!({ "dropLastTurn": {} })));
    check(&mut second, "edited");
    second.finish();
}

/// The attachments in the event of the prompt of `id`, by id and name.
fn attached(frames: &[Frame], id: &str) -> Vec<(String, String)> {
    let is_prompt = |frame: &&Frame| frame.id() == id && frame.is_event("ChatUserMessageAccepted");
    let frame = frames.iter().find(is_prompt).expect("the prompt was accepted");
    let attachments = &frame.0["uiEvent"]["payload"]["attachments"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attachments = attachments.as_array().into_iter().flatten();
    attachments.map(|it| (text(&it["attachmentId"]), text(&it["filename"]))).collect()
}

#[test]
fn a_replaced_prompt_keeps_loses_and_gets_attachments() {
    let folder = Folder::new();
    for name in ["one.txt", "two.txt", "three.txt"] {
        std::fs::write(folder.path(name), name).expect("a file");
    }
    let named = |name: &str| json!({ "url": folder.name(name) });
    let debug_file = folder.name("events.jsonl");
    let mut server = Server::start(&["--debug-events-jsonl", &debug_file]);
    let submit = json!({ "prompt": "see", "attachments": [named("one.txt"), named("two.txt")] });
    server.send(json!({ "requestId": "r", "submit": submit }).to_string());
    let prompt = server.wait_event("ChatUserMessageAccepted");
    let message_id =
        prompt.0["uiEvent"]["payload"]["messageId"].as_str().expect("an id").to_owned();
    assert_eq!(server.wait_done("r"), "ok");
    let mut replacement = json!({
        "messageId": message_id, "prompt": "look",
        "attachments": [named("three.txt")], "removedAttachmentIds": ["attachment-2", "none"],
    });
    server.send(edit("e", json!({ "replace": replacement })));
    let prompt = server.wait_event("ChatUserMessageAccepted");
    assert_eq!(server.wait_done("e"), "ok");
    // One that can't be read changes nothing, and neither do too many.
    replacement["attachments"] = json!([named("no such file")]);
    server.send(edit("f", json!({ "replace": replacement })));
    assert_eq!(server.wait_done("f"), "failed");
    replacement["messageId"] = prompt.0["uiEvent"]["payload"]["messageId"].clone();
    replacement["attachments"] = Value::Array(vec![named("two.txt"); 32]);
    replacement["removedAttachmentIds"] = json!([]);
    server.send(edit("g", json!({ "replace": replacement })));
    assert_eq!(server.wait_done("g"), "failed");
    let frames = server.finish().frames;
    let pair = |id: &str, name: &str| (id.to_owned(), name.to_owned());
    let expected = [pair("attachment-1", "one.txt"), pair("attachment-2", "three.txt")];
    assert_eq!(attached(&frames, "e"), expected);
    assert!(patched_text(&frames, "e").contains("Attached: three.txt"));
    assert_eq!(errors(&frames, "f"), ["invalid_attachment"]);
    assert_eq!(errors(&frames, "g"), ["invalid_attachment"]);
    let checked = crate::tools::run(&["check", &debug_file], b"");
    let report = crate::tools::text(&checked.stdout);
    assert!(report.contains("violations: 0;"), "{report}");
}
