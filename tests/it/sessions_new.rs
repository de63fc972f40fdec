//! `duologue sessions fork` and `import`: sessions that are made of others, and of recorded lines.

use crate::attachments::PNG;
use crate::frames::Frame;
use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, echo, openai};
use crate::store::{kill, resumed, stored, wait_state};
use serde_json::{Value, json};
use std::fs;

/// `duologue sessions <words> --store …`.
#[track_caller]
fn sessions(folder: &Folder, words: &[&str]) -> Ended {
    let place = folder.name("store");
    run(folder, &[&["sessions"], words, &["--store", &place]].concat())
}

/// The conversation of a session, as it is exported.
#[track_caller]
fn entities(folder: &Folder, store: &str, id: &str) -> Value {
    let place = folder.name(store);
    let words = ["sessions", "export", id, "--format", "json", "--store", &place];
    let ended = run(folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
    let object: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    object["entities"].clone()
}

/// The same, as a conversation of another session.
fn of_session(entities: &Value, id: &str) -> Value {
    let mut entities = entities.clone();
    for entity in entities.as_array_mut().expect("a list") {
        entity["payload"]["correlation"]["sessionId"] = json!(id);
    }
    entities
}

/// The session `s` with these turns.
fn talk(folder: &Folder, prompts: &[&str]) {
    let mut server = stored(folder, &[]).start();
    for (number, prompt) in prompts.iter().enumerate() {
        assert_eq!(server.turn(&format!("r{number}"), prompt), "ok");
    }
    server.finish();
}

/// The answer to a prompt in a session that goes on.
fn go_on(folder: &Folder, store: &str, id: &str, prompt: &str) -> String {
    let place = folder.name(store);
    let session = ["--store", &place, "--session-id", id, "--resume"];
    let ended = run(folder, &[&["exec", "--engine", "echo", prompt], &session[..]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    ended.stdout
}

#[test]
fn a_fork_has_the_turns_up_to_one_and_goes_on_by_itself() {
    let folder = Folder::new();
    talk(&folder, &["one", "two", "three"]);
    let before = entities(&folder, "store", "s");
    let forked = sessions(&folder, &["fork", "s", "--turns", "2", "--as", "half"]);
    assert_eq!((forked.status, &*forked.stdout), (0, "half\n"), "{forked:?}");
    let half = entities(&folder, "store", "half");
    let expected: Vec<_> = before.as_array().expect("a list")[..4].to_vec();
    assert_eq!(half, of_session(&json!(expected), "half"));
    let answer = go_on(&folder, "store", "half", "four");
    assert!(answer.contains("Turn 3") && answer.contains("two"), "{answer}");
    assert!(!answer.contains("three"), "{answer}");
    assert_eq!(entities(&folder, "store", "s"), before, "the other one is as it was");
    // Without an id, one is made; without a number, all turns are copied.
    let whole = sessions(&folder, &["fork", "s", "--output", "json"]);
    let whole: Value = serde_json::from_str(&whole.stdout).expect("JSON");
    let id = whole["data"][0].as_str().expect("an id");
    assert_eq!(entities(&folder, "store", id), of_session(&before, id));
    let listed = sessions(&folder, &["list"]).stdout;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert!(listed.lines().skip(1).all(|line| line.contains("one")), "titles: {listed}");
}

#[test]
fn a_session_whose_process_lives_is_forked_up_to_its_last_ended_turn() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--echo-delay-ms", "20"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.send(crate::frames::submit("r2", &"word ".repeat(10_000)));
    server.wait_event("ChatTextPatch");
    let forked = sessions(&folder, &["fork", "s", "--as", "t"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    assert!(forked.stderr.contains("warning: turn 2 has no end yet, or"), "{forked:?}");
    let warned = sessions(&folder, &["fork", "s", "--output", "json"]).stdout;
    assert!(warned.contains("turn_goes_on"), "{warned}");
    let first = sessions(&folder, &["fork", "s", "--turns", "1"]);
    assert_eq!((first.status, &*first.stderr), (0, ""), "{first:?}");
    assert_eq!(entities(&folder, "store", "t").as_array().map(Vec::len), Some(2));
    let none = sessions(&folder, &["fork", "s", "--turns", "2"]);
    assert_eq!((none.status, &*none.stdout), (1, ""), "{none:?}");
    assert!(none.stderr.contains("no turn 2") && none.stderr.contains("last one is 1"), "{none:?}");
    kill(server);
}

#[test]
fn a_turn_that_a_crash_cut_off_is_stopped_in_the_copy() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--echo-delay-ms", "20"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.send(crate::frames::submit("r2", &"word ".repeat(10_000)));
    server.wait_event("ChatTextPatch");
    kill(server);
    let before = entities(&folder, "store", "s");
    let forked = sessions(&folder, &["fork", "s", "--as", "t"]);
    assert_eq!((forked.status, &*forked.stderr), (0, ""), "{forked:?}");
    assert_eq!(entities(&folder, "store", "t"), of_session(&before, "t"));
    assert_eq!(entities(&folder, "store", "s"), before, "the other one is as it was");
    let shown = sessions(&folder, &["show", "t"]).stdout;
    assert!(shown.contains("user: word ") && shown.contains("[stopped"), "{shown}");
    assert!(go_on(&folder, "store", "t", "and now?").contains("Turn 3"));
}

#[test]
fn a_fork_that_can_not_be_made_says_why() {
    let folder = Folder::new();
    talk(&folder, &["one"]);
    for (words, status, why) in [
        (&["fork", "other"][..], 1, "other is not in the store"),
        (&["fork", "s", "--as", "s"], 1, "is in the store already"),
        (&["fork", "s", "--as", " "], 2, "--as is blank"),
        (&["fork", "s", "--turns", "0"], 2, "--turns"),
        (&["import", "missing"], 2, "can't be read"),
    ] {
        let ended = sessions(&folder, words);
        assert_eq!((ended.status, &*ended.stdout), (status, ""), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    let refused = sessions(&folder, &["fork", "s", "--as", "s", "--output", "json"]);
    let refused: Value = serde_json::from_str(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["code"], "session_exists");
}

/// A session that is in the store is there also while another process holds it; one of which nothing is stored may
/// be made later.
#[test]
fn a_fork_is_not_made_over_a_session_that_is_open() {
    let folder = Folder::new();
    talk(&folder, &["one"]);
    let place = folder.name("store");
    let json = |id: &str| {
        let ended = sessions(&folder, &["fork", "s", "--as", id, "--output", "json"]);
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        (ended.status, document["error"]["code"].clone())
    };
    let mut held = echo(&["--store", &place, "--session-id", "held"]).start();
    assert_eq!(held.turn("r1", "other"), "ok");
    assert_eq!(json("held"), (1, json!("session_exists")));
    held.finish();
    assert_eq!(json("held"), (1, json!("session_exists")));
    let mut begun = echo(&["--store", &place, "--session", "begun"]).start();
    wait_state(&mut begun);
    assert_eq!(json("begun"), (75, json!("session_locked")));
    begun.finish();
    assert_eq!(json("begun"), (0, Value::Null));
}

/// What the model is sent of tool calls and attachments is copied exactly.
#[test]
fn a_fork_sends_the_model_what_the_session_would_send() {
    let folder = Folder::new();
    let place = folder.name("store");
    let first = Provider::start(vec![says("noon")]);
    let args = ["--store", &place, "--session-id", "s", "--system", "be brief"];
    let mut server = openai(&first, &args).start();
    let image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let prompt =
        json!({"requestId":"r1","submit":{"prompt":"what is it?","attachments":[{"url":image}]}});
    server.send(prompt.to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    server.finish();
    assert_eq!(sessions(&folder, &["fork", "s", "--as", "t"]).status, 0);
    let mut sent = Vec::new();
    for id in ["s", "t"] {
        let provider = Provider::start(vec![says("yes")]);
        let args = ["--store", &place, "--session-id", id, "--resume"];
        let mut server = openai(&provider, &args).start();
        assert_eq!(server.turn("r1", "sure?"), "ok");
        server.finish();
        sent.push(provider.wait_request(1).body["messages"].clone());
    }
    assert_eq!(sent[0], sent[1]);
    assert!(sent[0].to_string().contains("iVBORw0KGgo"), "{}", sent[0]);
}

/// The lines that a process wrote, with all ways in which text can be streamed.
#[test]
fn recorded_lines_become_a_session() {
    let folder = Folder::new();
    for (number, options) in [
        &[][..],
        &["--patch-mode", "snapshot"],
        &["--patch-fields", "lean"],
        &["--final-snapshot", "none"],
        &["--final-snapshot", "none", "--patch-mode", "snapshot", "--patch-fields", "lean"],
        &["--final-snapshot", "turn", "--backend-events"],
    ]
    .iter()
    .enumerate()
    {
        let recording = folder.name(&format!("recording-{number}"));
        let copy = ["--debug-events-jsonl", &recording, "--echo-reasoning"];
        let id = format!("s{number}");
        let place = folder.name("original");
        let session = ["--store", &place, "--session-id", &id];
        let mut server = echo(&[&session[..], &copy, options].concat()).start();
        assert_eq!(server.turn("r1", "first words"), "ok");
        assert_eq!(server.turn("r2", "last words"), "ok");
        server.finish();
        let imported = sessions(&folder, &["import", &recording]);
        assert_eq!((imported.status, &*imported.stdout), (0, &*format!("{id}\n")), "{imported:?}");
        let expected = entities(&folder, "original", &id);
        assert_eq!(entities(&folder, "store", &id), expected, "{options:?}");
        let (one, two) = (
            go_on(&folder, "original", &id, "and then?"),
            go_on(&folder, "store", &id, "and then?"),
        );
        assert_eq!(one, two, "the model is sent the same");
    }
}

#[test]
fn what_is_exported_is_imported_as_the_same_conversation() {
    let folder = Folder::new();
    talk(&folder, &["one", "two"]);
    let exported = sessions(&folder, &["export", "s"]).stdout;
    fs::write(folder.path("lines"), &exported).expect("a file");
    let again = sessions(&folder, &["import", "lines"]);
    assert_eq!(again.status, 1, "{again:?}");
    assert!(again.stderr.contains("--as"), "{again:?}");
    let other = folder.name("other");
    let imported = run(&folder, &["sessions", "import", "lines", "--store", &other]);
    assert_eq!((imported.status, &*imported.stdout), (0, "s\n"), "{imported:?}");
    assert_eq!(entities(&folder, "other", "s"), entities(&folder, "store", "s"));
    let lines = run(&folder, &["sessions", "export", "s", "--store", &other]).stdout;
    assert_eq!(lines, exported);
    fs::write(folder.path("lines"), &lines).expect("a file");
    let checked = run(&folder, &["check", "lines"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    // Of standard input as well, under another name.
    let mut command = duologue(&folder, &["sessions", "import", "-", "--as", "t"]);
    command.env("DUOLOGUE_STORE", folder.name("store"));
    let mut import = Once::start(command);
    import.write(&lines);
    let imported = import.finish();
    assert_eq!((imported.status, &*imported.stdout), (0, "t\n"), "{imported:?}");
    let expected = of_session(&entities(&folder, "store", "s"), "t");
    assert_eq!(entities(&folder, "store", "t"), expected);
}

#[test]
fn damaged_lines_are_skipped_and_requests_among_the_frames_are_no_damage() {
    let folder = Folder::new();
    talk(&folder, &["one"]);
    let exported = sessions(&folder, &["export", "s"]).stdout;
    let (hello, snapshot) = exported.split_once('\n').expect("two lines");
    let request = r#"{"requestId":"r1","submit":{"prompt":"one"}}"#;
    let mixed = format!("{hello}\n{request}\n\n{{\"broken\n{snapshot}");
    fs::write(folder.path("mixed"), mixed).expect("a file");
    let imported = sessions(&folder, &["import", "mixed", "--as", "t"]);
    assert_eq!((imported.status, &*imported.stdout), (1, "t\n"), "{imported:?}");
    assert_eq!(imported.stderr.matches("skipped").count(), 1, "{imported:?}");
    assert!(imported.stderr.contains("line 4: "), "{imported:?}");
    let expected = of_session(&entities(&folder, "store", "s"), "t");
    assert_eq!(entities(&folder, "store", "t"), expected);
    for (text, why) in [
        (format!("{hello}\n"), "no conversation"),
        (exported.replace("\"s\"", "\"x\"") + &exported, "more than one session"),
    ] {
        fs::write(folder.path("wrong"), text).expect("a file");
        let refused = sessions(&folder, &["import", "wrong"]);
        assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}

#[test]
fn a_recording_that_is_cut_off_in_a_run_gives_an_interrupted_turn() {
    let folder = Folder::new();
    let mut server = echo(&["--echo-delay-ms", "5"]).start();
    server.send(crate::frames::submit("r1", &"word ".repeat(10_000)));
    server.wait_event("ChatTextPatch");
    let frames = kill(server).frames;
    assert!(!frames.iter().any(Frame::is_snapshot));
    let lines: String = frames.iter().map(|frame| format!("{}\n", frame.0)).collect();
    // In the middle of the last line.
    fs::write(folder.path("recording"), &lines[..lines.len() - 20]).expect("a file");
    let imported = sessions(&folder, &["import", "recording", "--as", "s"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let shown = sessions(&folder, &["show", "s"]);
    assert!(shown.stdout.contains("[stopped"), "{shown:?}");
    let mut next = resumed(&folder, &[]).start();
    assert_eq!(wait_state(&mut next).messages().len(), 2);
    assert_eq!(next.turn("r2", "go on"), "ok");
    next.finish();
}

/// An answer that the provider withholds as a whole.
fn withheld() -> Vec<Step> {
    vec![Step::Finish("content_filter", Some((3, 0))), Step::Done]
}

/// A refused prompt is a part of the conversation, though it is not sent again.
#[test]
fn a_refused_prompt_keeps_its_attachments_for_exports_and_edits() {
    let folder = Folder::new();
    fs::write(folder.path("cat.png"), PNG).expect("a file");
    let provider = Provider::start(vec![says("one"), withheld(), says("three"), says("four")]);
    let place = folder.name("store");
    let args = ["--store", &place, "--session-id", "s", "--extensions", "edit,attachments"];
    let mut server = openai(&provider, &args).start();
    assert_eq!(server.turn("r1", "fine"), "ok");
    let attached = json!([{ "url": folder.name("cat.png") }]);
    let submit = json!({ "prompt": "bad thing", "attachments": attached });
    server.send(json!({ "requestId": "r2", "submit": submit }).to_string());
    let accepted = server.wait_event("ChatUserMessageAccepted");
    assert_eq!(server.wait_done("r2"), "ok");
    assert_eq!(server.turn("r3", "nice thing"), "ok");
    server.finish();
    let sent = |number: usize| provider.wait_request(number).body["messages"].to_string();
    assert!(sent(2).contains("bad thing") && sent(2).contains("data:image/png"), "{}", sent(2));
    assert!(!sent(3).contains("bad thing") && !sent(3).contains("data:image"), "{}", sent(3));
    let exported = sessions(&folder, &["export", "s"]);
    assert_eq!((exported.status, exported.stderr.as_str()), (0, ""), "{exported:?}");
    assert!(exported.stdout.contains("data:image/png;base64,"), "{exported:?}");
    let shown = sessions(&folder, &["show", "s"]).stdout;
    assert!(shown.contains("bad thing") && !shown.contains("[stopped"), "{shown}");
    let mut server = openai(&provider, &[&args[..], &["--resume"]].concat()).start();
    let replace = json!({ "messageId": accepted.payload("messageId"), "prompt": "better thing" });
    server.send(json!({ "requestId": "e", "edit": { "replace": replace } }).to_string());
    assert_eq!(server.wait_done("e"), "ok");
    server.finish();
    assert!(sent(4).contains("better thing") && sent(4).contains("data:image/png"), "{}", sent(4));
    assert!(!sent(4).contains("bad thing") && !sent(4).contains("nice thing"), "{}", sent(4));
}

#[test]
fn a_refused_prompt_is_not_sent_again_from_a_copy() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), withheld(), says("three")]);
    let place = folder.name("store");
    let mut server = openai(&provider, &["--store", &place, "--session-id", "s"]).start();
    for (id, prompt) in [("r1", "fine"), ("r2", "bad thing"), ("r3", "nice thing")] {
        assert_eq!(server.turn(id, prompt), "ok");
    }
    let frames = server.finish().frames;
    let lines: String = frames.iter().map(|frame| format!("{}\n", frame.0)).collect();
    fs::write(folder.path("lines"), lines).expect("a file");
    assert_eq!(sessions(&folder, &["fork", "s", "--as", "fork"]).status, 0);
    let imported = sessions(&folder, &["import", "lines", "--as", "import"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    for id in ["fork", "import"] {
        let provider = Provider::start(vec![says("yes")]);
        let resumed = ["--store", &place, "--session-id", id, "--resume"];
        let mut server = openai(&provider, &resumed).start();
        assert_eq!(server.turn("r1", "sure?"), "ok");
        server.finish();
        let messages = provider.wait_request(1).body["messages"].to_string();
        assert!(messages.contains("nice thing") && !messages.contains("bad thing"), "{messages}");
        assert!(!messages.contains("interrupted"), "{messages}");
        let shown = sessions(&folder, &["show", id]).stdout;
        assert!(shown.contains("bad thing"), "{shown}");
    }
}

#[test]
fn the_bytes_of_attachments_survive_an_export() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "the first bytes").expect("a file");
    fs::write(folder.path("more.txt"), "bytes of the second").expect("a file");
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let place = folder.name("store");
    let args = ["--store", &place, "--session-id", "s", "--extensions", "attachments"];
    let mut server = openai(&provider, &args).start();
    for (id, file) in [("r1", "notes.txt"), ("r2", "more.txt")] {
        let attached = json!([{ "url": folder.name(file) }]);
        let submit = json!({ "prompt": "look", "attachments": attached });
        server.send(json!({ "requestId": id, "submit": submit }).to_string());
        assert_eq!(server.wait_done(id), "ok");
    }
    server.finish();
    let exported = sessions(&folder, &["export", "s"]);
    assert_eq!((exported.status, exported.stderr.as_str()), (0, ""), "{exported:?}");
    assert!(exported.stdout.contains("data:text/plain;base64,"), "{exported:?}");
    fs::write(folder.path("lines"), &exported.stdout).expect("a file");
    assert_eq!(run(&folder, &["check", "lines"]).status, 0);
    let imported = sessions(&folder, &["import", "lines", "--as", "copy"]);
    assert_eq!((imported.status, imported.stderr.as_str()), (0, ""), "{imported:?}");
    let resumed = ["--store", &place, "--session-id", "copy", "--resume"];
    let mut server = openai(&provider, &resumed).start();
    let state = wait_state(&mut server);
    assert!(!state.0.to_string().contains("data:text"), "frames of a process have no bytes");
    assert_eq!(server.turn("r", "and now?"), "ok");
    server.finish();
    let asked = provider.wait_request(3).body.to_string();
    assert!(asked.contains("the first bytes") && asked.contains("bytes of the second"), "{asked}");
    // Frames of a process have none.
    let words = ["exec", "--rpc", "hi", "--engine", "echo", "--attach", "notes.txt"];
    fs::write(folder.path("lines"), run(&folder, &words).stdout).expect("a file");
    let imported = sessions(&folder, &["import", "lines", "--as", "shown"]);
    assert!(imported.stderr.contains("only an export has their bytes"), "{imported:?}");
    // Bytes that another program has deleted are missed, and both commands say so.
    let store = rusqlite::Connection::open(folder.path("store")).expect("a store");
    store.execute("DELETE FROM blobs", []).expect("it is changed");
    drop(store);
    let exported = sessions(&folder, &["export", "s"]);
    let lost = "the bytes of 2 attachments of the session are missing";
    assert!(exported.stderr.contains(lost), "{exported:?}");
}

/// A prompt that was an image alone is sent as words where a recording has only its name.
#[test]
fn an_image_that_a_recording_lacks_is_no_gap_in_the_conversation() {
    let folder = Folder::new();
    fs::write(folder.path("squares.png"), PNG).expect("a file");
    let words = ["exec", "--rpc", "", "--engine", "echo", "--image", "squares.png"];
    let recorded = run(&folder, &words);
    assert_eq!(recorded.status, 0, "{recorded:?}");
    fs::write(folder.path("lines"), &recorded.stdout).expect("a file");
    let imported = sessions(&folder, &["import", "lines", "--as", "copy"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let provider = Provider::start(vec![says("one"), says("two")]);
    let place = folder.name("store");
    let resumed = ["--store", &place, "--session-id", "copy", "--resume"];
    let mut server = openai(&provider, &resumed).start();
    assert_eq!(server.turn("r1", "and now?"), "ok");
    assert_eq!(server.turn("r2", "and then?"), "ok");
    server.finish();
    let lost = json!({"role": "user", "content": "[an attachment that was not kept]"});
    for number in [1, 2] {
        let messages = provider.wait_request(number).body["messages"].clone();
        assert_eq!(messages[0], lost, "{messages}");
        assert_eq!(messages[1]["role"], "assistant", "{messages}");
    }
}

/// The frames of a conversation with a tool call.
fn with_a_call(folder: &Folder) -> Vec<Frame> {
    let script = folder.name("script");
    fs::write(&script, r#"{"tools":[{"name":"look","arguments":{}}]}"#).expect("a file");
    let mut server = echo(&["--echo-script", &script, "--final-snapshot", "none"]).start();
    // The call is in the events, with a result that says there is no such tool.
    assert_eq!(server.turn("r1", "one"), "failed");
    server.finish().frames
}

/// What no conversation can be is refused as a whole: no session is made that can't go on or says
/// something else.
#[test]
fn a_recording_that_contradicts_itself_is_refused() {
    let folder = Folder::new();
    let frames = with_a_call(&folder);
    let events: Vec<String> = frames.iter().map(|frame| format!("{}\n", frame.0)).collect();
    let last = frames.iter().filter_map(Frame::ordinal).max().expect("events");
    let recording = events.concat();
    let place = |ordinal: u64| format!("\"ordinal\":\"{ordinal}\"");
    let result = events.iter().find(|line| line.contains("ChatToolResultReady")).expect("a result");
    let again = result.replace("\"ordinal\":\"", "\"ordinal\":\"10");
    fs::write(folder.path("whole"), &recording).expect("a file");
    assert_eq!(sessions(&folder, &["import", "whole", "--as", "t"]).status, 0);
    let exported = sessions(&folder, &["export", "t"]).stdout;
    let (hello, snapshot) = exported.split_once('\n').expect("two lines");
    let mut twice: Value = serde_json::from_str(snapshot).expect("a frame");
    let entities = twice["snapshot"]["entities"].as_array_mut().expect("a list");
    let is_call = |entity: &&mut Value| entity["kind"] == "ChatToolCall";
    let call = entities.iter_mut().find(is_call).expect("a call").clone();
    let mut other = call.clone();
    other["id"] = json!("another");
    for (lines, why) in [
        (recording.replace(&place(last), &place(u64::MAX)), "18446744073709551615 is higher"),
        (format!("{recording}{again}"), "twice"),
        (
            exported.replace("\"snapshotOrdinal\":\"", "\"snapshotOrdinal\":\"99999999999999999"),
            "is higher",
        ),
        (with(hello, &twice, &call), "twice"),
        (with(hello, &twice, &other), "twice"),
    ] {
        fs::write(folder.path("wrong"), &lines).expect("a file");
        let refused = sessions(&folder, &["import", "wrong", "--as", "wrong"]);
        assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
        assert!(refused.stderr.contains("line ") && refused.stderr.contains(why), "{refused:?}");
    }
    assert_eq!(sessions(&folder, &["list"]).stdout.lines().count(), 2, "nothing was made");
}

#[test]
fn a_call_that_is_requested_again_is_refused_and_an_event_that_is_there_again_is_reported() {
    let folder = Folder::new();
    let frames = with_a_call(&folder);
    let at = frames.iter().position(|frame| frame.is_event("ChatToolCallRequested"));
    let at = at.expect("a call");
    let line = |frame: &Frame| format!("{}\n", frame.0);
    let lines: Vec<String> = frames.iter().map(line).collect();
    // Numbered as by a writer that writes the request of the call twice.
    let later: Vec<String> = frames[at..].iter().map(|frame| line(&renumbered(frame))).collect();
    fs::write(folder.path("twice"), lines[..=at].concat() + &later.concat()).expect("a file");
    let refused = sessions(&folder, &["import", "twice", "--as", "twice"]);
    assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
    let why = format!("line {}: the tool call ", at + 2);
    assert!(refused.stderr.contains(&why) && refused.stderr.contains("twice"), "{refused:?}");
    // With the same ordinal it is the same event: two recordings may overlap.
    let overlapping = lines[..=at].concat() + &lines[at..].concat();
    fs::write(folder.path("again"), overlapping).expect("a file");
    let imported = sessions(&folder, &["import", "again", "--as", "again"]);
    assert_eq!((imported.status, &*imported.stdout), (0, "again\n"), "{imported:?}");
    let why = format!("1 events are in it again, the first on line {}", at + 2);
    assert!(imported.stderr.contains(&why), "{imported:?}");
    fs::write(folder.path("once"), lines.concat()).expect("a file");
    let once = sessions(&folder, &["import", "once", "--as", "once"]);
    assert_eq!((once.status, &*once.stderr), (0, ""), "{once:?}");
    let expected = of_session(&entities(&folder, "store", "once"), "again");
    assert_eq!(entities(&folder, "store", "again"), expected);
}

#[test]
fn a_result_without_its_call_is_reported_because_the_model_is_not_sent_it() {
    let folder = Folder::new();
    let frames = with_a_call(&folder);
    let is_result = |frame: &&Frame| frame.is_event("ChatToolResultReady");
    let is_call = |frame: &Frame| frame.event().is_some_and(|name| name.starts_with("ChatTool"));
    let left = frames.iter().filter(|frame| is_result(frame) || !is_call(frame));
    let lines: String = left.map(|frame| format!("{}\n", frame.0)).collect();
    fs::write(folder.path("uncalled"), lines).expect("a file");
    let imported = sessions(&folder, &["import", "uncalled", "--as", "u", "--output", "json"]);
    assert_eq!(imported.status, 1, "{imported:?}");
    let object: Value = serde_json::from_str(&imported.stdout).expect("JSON");
    assert_eq!(object["warnings"][0]["code"], "results_without_calls", "{object}");
    assert_eq!((&object["ok"], &object["data"]), (&json!(false), &json!(["u"])), "{object}");
    assert_eq!(object["error"]["code"], "bad_lines", "{object}");
    assert_eq!(object["error"]["detail"], object["warnings"][0]["message"], "{object}");
    assert!(imported.stderr.contains("1 tool results are shown"), "{imported:?}");
    let kinds: Vec<_> = entities(&folder, "store", "u")
        .as_array()
        .expect("a list")
        .iter()
        .map(|entity| entity["kind"].clone())
        .collect();
    assert!(kinds.contains(&json!("ChatToolResult")), "{kinds:?}");
}

/// The frame with the next ordinal.
fn renumbered(frame: &Frame) -> Frame {
    let mut next = frame.clone();
    if let Some(ordinal) = frame.ordinal() {
        next.0["uiEvent"]["ordinal"] = json!((ordinal + 1).to_string());
    }
    next
}

/// An export with another entity.
fn with(hello: &str, snapshot: &Value, entity: &Value) -> String {
    let mut snapshot = snapshot.clone();
    snapshot["snapshot"]["entities"].as_array_mut().expect("a list").push(entity.clone());
    format!("{hello}\n{snapshot}\n")
}

/// A store to which an earlier version has imported such an event.
#[test]
fn a_session_whose_ordinals_are_used_up_is_not_resumed() {
    let folder = Folder::new();
    talk(&folder, &["one"]);
    let store = rusqlite::Connection::open(folder.path("store")).expect("a store");
    let highest = "UPDATE sessions SET last = 9223372036854775807";
    store.execute(highest, []).expect("it is changed");
    drop(store);
    let place = folder.name("store");
    let words =
        ["exec", "--engine", "echo", "two", "--store", &place, "--session-id", "s", "--resume"];
    let refused = run(&folder, &words);
    assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("no room for more"), "{refused:?}");
}

/// Numbers of turns are never used again; what is counted are the turns that there are.
#[test]
fn turns_that_were_dropped_are_not_counted_in_copies() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--extensions", "edit"]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.send(json!({ "requestId": "e", "edit": { "regenerate": {} } }).to_string());
    assert_eq!(server.wait_done("e"), "ok");
    assert_eq!(server.turn("r2", "two"), "ok");
    server.finish();
    let exported = sessions(&folder, &["export", "s"]).stdout;
    fs::write(folder.path("lines"), exported).expect("a file");
    assert_eq!(sessions(&folder, &["import", "lines", "--as", "imported"]).status, 0);
    for (turns, id) in [("1", "first"), ("2", "both")] {
        assert_eq!(sessions(&folder, &["fork", "s", "--turns", turns, "--as", id]).status, 0);
    }
    let refused = sessions(&folder, &["fork", "s", "--turns", "3", "--as", "none"]);
    assert!(refused.status == 1 && refused.stderr.contains("last one is 2"), "{refused:?}");
    let listed = sessions(&folder, &["list", "--output", "json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let turns = |id: &str| {
        let all = listed["data"].as_array().expect("a list");
        all.iter().find(|it| it["id"] == id).map(|it| it["turns"].clone())
    };
    for (id, expected) in [("s", 2), ("imported", 2), ("first", 1), ("both", 2)] {
        assert_eq!(turns(id), Some(json!(expected)), "{id}: {listed}");
    }
    let shown = sessions(&folder, &["show", "first"]).stdout;
    assert!(shown.contains("user: one") && !shown.contains("two"), "{shown}");
}

#[test]
fn the_number_of_a_turn_that_is_found_is_the_one_that_is_copied() {
    let folder = Folder::new();
    let mut server = stored(&folder, &["--extensions", "edit"]).start();
    assert_eq!(server.turn("r1", "alpha"), "ok");
    assert_eq!(server.turn("r2", "beta"), "ok");
    server.send(json!({ "requestId": "e", "edit": { "regenerate": {} } }).to_string());
    assert_eq!(server.wait_done("e"), "ok");
    assert_eq!(server.turn("r3", "gamma"), "ok");
    server.finish();
    let found = sessions(&folder, &["search", "beta"]).stdout;
    assert!(found.starts_with("s  turn 2  user: beta\n"), "{found}");
    let found = sessions(&folder, &["search", "gamma", "--output", "json"]).stdout;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["data"][0]["turn"], 3, "{found}");
    assert_eq!(sessions(&folder, &["fork", "s", "--turns", "2", "--as", "t"]).status, 0);
    let shown = sessions(&folder, &["show", "t"]).stdout;
    assert!(shown.contains("user: beta") && !shown.contains("gamma"), "{shown}");
}

/// Its conversation, its model and its folder stay as they are.
#[test]
fn a_session_is_renamed_and_goes_on() {
    let folder = Folder::new();
    talk(&folder, &["first question"]);
    let before = entities(&folder, "store", "s");
    let renamed = sessions(&folder, &["rename", "s", " Ports\n in use "]);
    assert_eq!((renamed.status, renamed.stdout.as_str()), (0, "renamed s\n"), "{renamed:?}");
    let listed = sessions(&folder, &["list"]).stdout;
    assert!(listed.contains("Ports in use") && !listed.contains("first question"), "{listed}");
    assert_eq!(entities(&folder, "store", "s"), before);
    assert!(go_on(&folder, "store", "s", "two").contains("Turn 2. You said: two"));
    assert!(sessions(&folder, &["list"]).stdout.contains("Ports in use"));
    let missing = sessions(&folder, &["rename", "none", "x", "--output", "json"]);
    assert!(missing.status == 1 && missing.stdout.contains("session_not_found"), "{missing:?}");
    assert_eq!(sessions(&folder, &["rename", "s", " "]).status, 2);
    // Another process holds it.
    let mut server = resumed(&folder, &[]).start();
    wait_state(&mut server);
    let held = sessions(&folder, &["rename", "s", "x", "--output", "json"]);
    assert!(held.status == 1 && held.stdout.contains("not_renamed"), "{held:?}");
    assert!(held.stderr.contains("the session s was not renamed: "), "{held:?}");
    server.finish();
}
