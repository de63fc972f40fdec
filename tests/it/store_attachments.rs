//! Attachments whose bytes a store has lost, or that were changed in it: the conversation is there all the same, and no
//! model is sent what was never attached.

use crate::attachments::{PNG, attach};
use crate::frames::errors;
use crate::once::{Ended, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, echo, openai};
use crate::store::{resumed, wait_state};
use crate::store_damage::zero_root;
use data_encoding::BASE64;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

/// Bytes of an image: it takes many pages of the database.
const IMAGE_BYTES: usize = 100_000;

/// SQLite's own size of a page.
const PAGE_BYTES: usize = 4096;

/// The beginning of an image as it is sent.
const SENT: &str = "data:image/png;base64,";

/// An image that is filled with that byte.
fn image(fill: u8) -> Vec<u8> {
    let mut bytes = PNG.to_vec();
    bytes.resize(IMAGE_BYTES, fill);
    bytes
}

fn sent(fill: u8) -> String {
    format!("{SENT}{}", BASE64.encode(&image(fill)))
}

/// The session `s` of three turns, of which the second has these images.
fn talk(folder: &Folder, fills: &[u8]) {
    talk_as(folder, "s", fills);
}

fn talk_as(folder: &Folder, id: &str, fills: &[u8]) {
    let place = folder.name("store");
    let mut server = echo(&["--store", &place, "--session-id", id]).start();
    assert_eq!(server.turn("r1", "prompt 1"), "ok");
    let named = |fill: &u8| json!({ "url": sent(*fill), "filename": format!("{fill}.png") });
    let images: Vec<_> = fills.iter().map(named).collect();
    server.send(attach("r2", "prompt 2", &images));
    assert_eq!(server.wait_done("r2"), "ok");
    assert_eq!(server.turn("r3", "prompt 3"), "ok");
    server.finish();
}

fn change(folder: &Folder, sql: &str) {
    let store = Connection::open(folder.path("store")).expect("a store");
    assert_eq!(store.execute(sql, []).expect("a table"), 1, "{sql}");
}

fn sessions(folder: &Folder, words: &[&str]) -> Ended {
    let place = folder.name("store");
    run(folder, &[&["sessions"], words, &["--store", &place]].concat())
}

/// What a provider is sent when a session goes on, and what is reported then.
fn go_on(folder: &Folder, id: &str) -> (Value, String) {
    let provider = Provider::start(vec![says("noon")]);
    let place = folder.name("store");
    let args = ["--store", &place, "--session-id", id, "--resume", "--extensions", "store"];
    let mut server = openai(&provider, &args).start();
    assert_eq!(wait_state(&mut server).messages().len(), 6, "{id}");
    assert_eq!(server.turn("r", "go on"), "ok");
    let ended = server.finish();
    assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")), "{id}");
    (provider.wait_request(1).body["messages"].clone(), ended.stderr)
}

/// Checks that one of two images is sent, with its bytes, and that the text names the other one.
#[track_caller]
fn check_sent(messages: &Value) {
    let text = messages.to_string();
    assert_eq!(text.matches(SENT).count(), 1, "one image is sent");
    assert!([1, 2].iter().any(|fill| text.contains(&sent(*fill))), "it is as it was");
    let note = "prompt 2\\n\\n[";
    assert!(text.contains(note) && text.contains("100000 bytes) is lost and was left out.]"));
}

/// Providers refuse an image without bytes, and with it each later request.
#[test]
fn an_attachment_that_is_lost_is_not_sent_and_is_missed_in_each_copy() {
    let folder = Folder::new();
    talk(&folder, &[1, 2]);
    change(&folder, "DELETE FROM blobs WHERE key = 1");
    for (from, to) in [("s", "copy"), ("copy", "again")] {
        let forked = sessions(&folder, &["fork", from, "--as", to]);
        assert_eq!((forked.status, &*forked.stdout), (1, &*format!("{to}\n")), "{forked:?}");
        assert!(forked.stderr.contains("an attachment of the session are missing"), "{forked:?}");
    }
    let exported = sessions(&folder, &["export", "again"]);
    assert_eq!(exported.status, 1, "{}", exported.stderr);
    assert!(exported.stderr.contains("has no bytes of 1 attachments"), "{}", exported.stderr);
    assert_eq!(exported.stdout.matches(SENT).count(), 1);
    let (messages, stderr) = go_on(&folder, "s");
    check_sent(&messages);
    assert!(stderr.contains("the bytes of an attachment of the session are missing"), "{stderr}");
    for id in ["copy", "again"] {
        let (copied, stderr) = go_on(&folder, id);
        assert_eq!(copied, messages, "{id}");
        assert!(stderr.contains("lost before the session was copied"), "{stderr}");
    }
    let store = Connection::open(folder.path("store")).expect("a store");
    let sql = "SELECT min(length(data)) FROM blobs";
    let least = store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a row");
    assert_eq!(usize::try_from(least), Ok(IMAGE_BYTES));
}

/// Attachments are the most of many stores, so that a damaged page is most likely one of theirs.
#[test]
fn a_damaged_page_of_an_attachment_hides_nothing_else() {
    let folder = Folder::new();
    talk(&folder, &[1, 2]);
    let mut bytes = fs::read(folder.path("store")).expect("a store");
    // After the number of the next page.
    let is_of_image = |page: &&mut [u8]| page[4..].iter().all(|byte| *byte == 1);
    let mut pages = bytes.chunks_mut(PAGE_BYTES).filter(is_of_image);
    pages.nth(10).expect("it has many pages").fill(0);
    fs::write(folder.path("store"), &bytes).expect("a file");
    for words in [&["show", "s"][..], &["export", "s"], &["fork", "s", "--as", "copy"]] {
        let ended = sessions(&folder, words);
        assert_eq!(ended.status, 1, "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("one of its records can't be read"), "{}", ended.stderr);
    }
    let shown = sessions(&folder, &["show", "s"]).stdout;
    assert!((1..=3).all(|turn| shown.contains(&format!("prompt {turn}"))), "{shown}");
    let exported = sessions(&folder, &["export", "s"]).stdout;
    assert_eq!([1, 2].map(|fill| exported.contains(&sent(fill))), [false, true]);
    let (messages, stderr) = go_on(&folder, "s");
    check_sent(&messages);
    assert!(stderr.contains("is damaged"), "{stderr}");
    assert_eq!(go_on(&folder, "copy").0, messages);
}

#[test]
fn a_damaged_index_of_attachments_hides_none() {
    let folder = Folder::new();
    talk(&folder, &[1, 2]);
    let mut bytes = fs::read(folder.path("store")).expect("a store");
    zero_root(&folder, "sqlite_autoindex_blobs_1", &mut bytes);
    fs::write(folder.path("store"), &bytes).expect("a file");
    let exported = sessions(&folder, &["export", "s"]);
    assert_eq!(exported.status, 1, "{}", exported.stderr);
    assert!([1, 2].iter().all(|fill| exported.stdout.contains(&sent(*fill))));
}

#[test]
fn a_change_of_an_attachment_is_proved() {
    let folder = Folder::new();
    talk(&folder, &[1, 2]);
    change(&folder, "UPDATE blobs SET data = zeroblob(length(data)) WHERE key = 1");
    let place = folder.name("store");
    let doctor = run(&folder, &["doctor", "--engine", "echo", "--store", &place]);
    assert!(doctor.stdout.contains(" 1 can't be read as a whole: s; "), "{doctor:?}");
    let exported = sessions(&folder, &["export", "s"]);
    assert_eq!((exported.status, exported.stdout.matches(SENT).count()), (1, 1));
    let (messages, stderr) = go_on(&folder, "s");
    check_sent(&messages);
    assert!(stderr.contains("its checksum differs"), "{stderr}");
    // A new session to which the image is attached again mends it.
    talk_as(&folder, "new", &[1, 2]);
    let exported = sessions(&folder, &["export", "new"]);
    assert_eq!((exported.status, exported.stdout.matches(SENT).count()), (0, 2));
}

#[test]
fn a_prompt_whose_attachments_are_lost_is_not_asked_again_with_them() {
    let folder = Folder::new();
    talk(&folder, &[1]);
    change(&folder, "DELETE FROM blobs");
    let mut server = resumed(&folder, &[]).start();
    let state = wait_state(&mut server);
    let message_id = state.text("/snapshot/entities/2/payload/messageId");
    let mut edit = |id: &str, edit: Value| {
        server.send(json!({ "requestId": id, "edit": edit }).to_string());
        server.wait_done(id)
    };
    assert_eq!(edit("e1", json!({ "dropLastTurn": {} })), "ok");
    assert_eq!(edit("e2", json!({ "regenerate": {} })), "failed");
    let mut replacement = json!({ "messageId": message_id, "prompt": "another" });
    assert_eq!(edit("e3", json!({ "replace": replacement })), "failed");
    replacement["removedAttachmentIds"] = json!(["attachment-1"]);
    assert_eq!(edit("e4", json!({ "replace": replacement })), "ok");
    let ended = server.finish();
    for id in ["e2", "e3"] {
        assert_eq!(errors(&ended.frames, id), ["unknown_message"]);
    }
    let why = "the store has lost the bytes of one of them";
    assert!(ended.frames.iter().any(|frame| frame.text("/error/message").contains(why)));
}
