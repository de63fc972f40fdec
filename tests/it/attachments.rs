//! Images and files that a client sends with a prompt.

use crate::frames::{Frame, cancel, errors, finished_text, submit};
use crate::process::settled;
use crate::server::{Folder, Server, echo};
use crate::tools::{run, text};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs::{self, File};

const MEBIBYTE: usize = 1024 * 1024;

/// The beginning of an image of 3 by 2 pixels, which is all that is looked at.
pub(crate) const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0\x12\x16\xf1\x4d";

/// A submit with these attachments.
pub(crate) fn attach(id: &str, prompt: &str, attachments: &[Value]) -> String {
    let submit = json!({ "prompt": prompt, "attachments": attachments });
    json!({ "requestId": id, "submit": submit }).to_string()
}

fn named(url: &str) -> Value {
    json!({ "url": url })
}

/// A file of zeros.
fn zeros(folder: &Folder, name: &str, bytes: usize) -> String {
    let file = File::create(folder.path(name)).expect("a file");
    file.set_len(bytes as u64).expect("a length");
    folder.name(name)
}

/// The attachments in the event of the prompt of `id`.
fn accepted(frames: &[Frame], id: &str) -> Value {
    let is_prompt = |frame: &&Frame| frame.id() == id && frame.is_event("ChatUserMessageAccepted");
    let frame = frames.iter().find(is_prompt).expect("the prompt was accepted");
    frame.0["uiEvent"]["payload"]["attachments"].clone()
}

#[test]
fn files_data_and_urls_are_shown_without_their_bytes() {
    let folder = Folder::new();
    fs::write(folder.path("cat.png"), PNG).expect("a file");
    fs::write(folder.path("a b.pdf"), "%PDF-1.7\n").expect("a file");
    let debug_file = folder.name("events.jsonl");
    let mut server = Server::start(&["--debug-events-jsonl", &debug_file]);
    let text_url = format!("data:text/plain;base64,{}", BASE64.encode(b"secret words"));
    let pdf_url = format!("file://{}", folder.name("a%20b.pdf"));
    let attachments = [
        json!({ "url": folder.name("cat.png"), "detail": "low", "metadata": { "k": "v" } }),
        json!({ "url": text_url, "filename": "words.md", "attachmentId": "mine" }),
        named("https://example.org/dog.jpg?size=1"),
        named(&pdf_url),
    ];
    server.send(attach("r", "what?", &attachments));
    assert_eq!(server.wait_done("r"), "ok");
    let frames = server.finish().frames;
    let expected = json!([
        {
            "attachmentId": "attachment-1", "kind": "image", "mediaType": "image/png",
            "sizeBytes": "33", "width": 3, "height": 2, "filename": "cat.png",
            "detail": "low", "metadata": { "k": "v" },
        },
        {
            "attachmentId": "mine", "kind": "file", "mediaType": "text/plain",
            "sizeBytes": "12", "filename": "words.md",
        },
        {
            "attachmentId": "attachment-3", "kind": "image", "mediaType": "image/jpeg",
            "url": "https://example.org/dog.jpg?size=1", "filename": "dog.jpg",
        },
        {
            "attachmentId": "attachment-4", "kind": "file", "mediaType": "application/pdf",
            "sizeBytes": "9", "filename": "a b.pdf",
        },
    ]);
    assert_eq!(accepted(&frames, "r"), expected);
    let snapshot = frames.iter().find(|frame| frame.is_snapshot()).expect("a snapshot");
    assert_eq!(snapshot.0["snapshot"]["entities"][0]["payload"]["attachments"], expected);
    let answer = finished_text(&frames, "r");
    let expected = "Turn 1. You said: what?\n\
        Attached: cat.png (image/png, 3x2, 33 bytes)\n\
        Attached: words.md (text/plain, 12 bytes)\n\
        Attached: dog.jpg (image/jpeg, https://example.org/dog.jpg?size=1)\n\
        Attached: a b.pdf (application/pdf, 9 bytes)";
    assert_eq!(answer, expected);
    let copied = fs::read_to_string(&debug_file).expect("frames");
    assert!(!copied.contains("secret words") && !copied.contains("c2VjcmV0"), "{copied}");
    assert!(!copied.contains(&folder.name("")), "a path of this machine is in a frame");
    let checked = run(&["check", &debug_file], b"");
    assert!(text(&checked.stdout).contains("violations: 0;"), "{}", text(&checked.stdout));
}

#[test]
fn what_can_not_be_used_is_refused_with_a_reason_and_nothing_is_sent() {
    let folder = Folder::new();
    fs::write(folder.path("cat.png"), PNG).expect("a file");
    fs::write(folder.path("notes.md"), "# Notes").expect("a file");
    fs::write(folder.path("empty"), "").expect("a file");
    let (pipe, huge) = (folder.fifo("pipe"), zeros(&folder, "huge", 20 * MEBIBYTE + 1));
    let png = folder.name("cat.png");
    let wrong = [
        (named(&folder.name("none")), "none\"): it can't be read: No such file"),
        (named(&folder.name("")), "it is a folder; name a file in it"),
        (named(&pipe), "it is a named pipe"),
        (named("/dev/zero"), "it is a device"),
        (named(&folder.name("empty")), "it is empty"),
        (named(&huge), "it has 20971521 bytes, and 20 MiB is the limit"),
        (json!({ "url": png, "mediaType": "image/jpeg" }), "its bytes are image/png;"),
        (
            json!({ "url": folder.name("notes.md"), "mediaType": "image/png" }),
            "its bytes are text;",
        ),
        (json!({ "url": folder.name("notes.md"), "kind": "image" }), "not an image"),
        (json!({ "url": "https://e.org/a.pdf", "kind": "image" }), "not an image"),
        (named("data:image/png;base64,AAAA"), "its bytes are neither that nor text"),
        (named("data:image/png;base64,-"), "its data: URL can't be read"),
        (named("ftp://e.org/a"), "begins with \"ftp\""),
        (named("https://me:hush@e.org/a"), "has a name or a password"),
        (named(&format!("https://e.org/{}", "a".repeat(8192))), "8 KiB is the limit"),
        (json!({ "filename": "a" }), "it has no url"),
    ];
    let mut server = Server::start(&[]);
    for (number, (attachment, _)) in wrong.iter().enumerate() {
        let id = format!("r{number}");
        server.send(attach(&id, "what?", &[named(&png), attachment.clone()]));
        assert_eq!(server.wait_done(&id), "failed", "{attachment}");
    }
    server.send(attach("many", "what?", &vec![named(&png); 33]));
    assert_eq!(server.wait_done("many"), "failed");
    server.send(attach("last", "what?", &[named(&png)]));
    assert_eq!(server.wait_done("last"), "ok");
    let frames = server.finish().frames;
    for (number, (attachment, reason)) in wrong.iter().enumerate() {
        let id = format!("r{number}");
        assert_eq!(errors(&frames, &id), ["invalid_attachment"]);
        let error = frames.iter().find(|frame| frame.id() == id && frame.error().is_some());
        let message = error.expect("an error").text("/error/message");
        assert!(message.starts_with("the prompt was not sent "), "{message}");
        assert!(message.contains("attachment 2") && message.contains(reason), "{message}");
        assert!(!message.contains("hush"), "{attachment}: {message}");
    }
    assert_eq!(errors(&frames, "many"), ["invalid_attachment"]);
    assert!(finished_text(&frames, "last").starts_with("Turn 1. "));
}

#[test]
fn the_attachments_of_a_prompt_and_of_a_conversation_have_limits() {
    let folder = Folder::new();
    let large = named(&zeros(&folder, "large", 20 * MEBIBYTE));
    let mut server = Server::start(&["--final-snapshot", "none"]);
    server.send(attach("three", "what?", &vec![large.clone(); 3]));
    assert_eq!(server.wait_done("three"), "failed");
    for number in 0..6 {
        let id = format!("r{number}");
        server.send(attach(&id, "what?", &vec![large.clone(); 2]));
        assert_eq!(server.wait_done(&id), "ok");
    }
    server.send(attach("over", "what?", std::slice::from_ref(&large)));
    assert_eq!(server.wait_done("over"), "failed");
    assert_eq!(server.turn("without", "what?"), "ok");
    let frames = server.finish().frames;
    let message = |id: &str| {
        let error = frames.iter().find(|frame| frame.id() == id && frame.error().is_some());
        error.expect("an error").text("/error/message").to_owned()
    };
    let three = message("three");
    assert!(three.contains("attachment 3") && three.contains("50 MiB is the limit"), "{three}");
    let over = message("over");
    assert!(over.contains("conversation") && over.contains("256 MiB is the limit"), "{over}");
}

/// Large enough that a copy more or less is seen, and no larger than an attachment may be.
const LARGE: usize = 20 * MEBIBYTE;

/// The most memory that a server takes for a request, beyond what it has when it is idle.
fn growth(args: &[&str], line: &str) -> usize {
    let mut server = echo(args).start();
    let process = server.process();
    let idle_bytes = settled("the server waits", || process.memory_bytes());
    // Standard input stays open: the memory of a process that has ended is not known.
    server.send(line);
    assert_eq!(server.wait_done("r"), "ok");
    let peak_bytes = process.peak_memory_bytes().saturating_sub(idle_bytes);
    server.finish();
    usize::try_from(peak_bytes).expect("fits")
}

#[test]
fn a_large_image_is_held_once() {
    let folder = Folder::new();
    let mut image = PNG.to_vec();
    image.resize(LARGE, 0);
    fs::write(folder.path("large.png"), &image).expect("a file");
    let peak_bytes = growth(&[], &attach("r", "what?", &[named(&folder.name("large.png"))]));
    assert!(peak_bytes < LARGE * 3 / 2, "a file: {peak_bytes}");
    let url = format!("data:image/png;base64,{}", BASE64.encode(&image));
    let limit = (32 * MEBIBYTE).to_string();
    let peak_bytes =
        growth(&["--max-request-bytes", &limit], &attach("r", "what?", &[named(&url)]));
    // The line, its base64, and the bytes of that.
    assert!(peak_bytes < LARGE * 5, "a line: {peak_bytes}");
}

#[test]
fn a_client_that_attaches_nothing_sees_nothing_of_it() {
    let folder = Folder::new();
    let debug_file = folder.name("events.jsonl");
    let mut server = Server::start(&["--debug-events-jsonl", &debug_file]);
    assert_eq!(server.turn("r", "hello"), "ok");
    server.send(attach("none", "hello", &[]));
    assert_eq!(server.wait_done("none"), "ok");
    server.finish();
    let frames = fs::read_to_string(&debug_file).expect("frames");
    assert!(!frames.contains("ttach"), "{frames}");
    let mut server = Server::start(&["--extensions", "attachments"]);
    let hello = server.wait_hello();
    let words = hello.0["hello"]["capabilities"].as_array().expect("words");
    assert!(words.contains(&json!("attachments")), "{words:?}");
    server.finish();
}

#[test]
fn a_prompt_that_joins_a_run_brings_its_attachments() {
    let folder = Folder::new();
    fs::write(folder.path("cat.png"), PNG).expect("a file");
    let mut server = Server::start(&[]);
    let joins = json!({
        "requestId": "joins",
        "submit": {
            "prompt": "and this?",
            "targetRequestId": "r",
            "attachments": [named(&folder.name("cat.png"))],
        },
    });
    server.send_together(&[submit("r", "what?"), joins.to_string()]);
    assert_eq!(server.wait_done("r"), "ok");
    let frames = server.finish().frames;
    let answer = finished_text(&frames, "r");
    let expected = "Then you said: and this?\nAttached: cat.png (image/png, 3x2, 33 bytes)";
    assert!(answer.contains(expected), "{answer}");
}

/// A prompt without text needs an attachment; another prompt in its place may be one alone, too.
#[test]
fn a_prompt_may_be_an_attachment_alone() {
    let folder = Folder::new();
    fs::write(folder.path("cat.png"), PNG).expect("a file");
    let mut server = Server::start(&["--extensions", "edit"]);
    let cat = [named(&folder.name("cat.png"))];
    server.send(attach("a", "", &cat));
    let accepted = server.wait_event("ChatUserMessageAccepted");
    assert_eq!(accepted.payload("prompt"), "");
    assert_eq!(server.wait_done("a"), "ok");
    let replace = |prompt: &str, attachments: &[Value]| -> Value {
        json!({ "messageId": accepted.payload("messageId"), "prompt": prompt,
                    "attachments": attachments })
    };
    let edit = |id: &str, replace: Value| {
        json!({ "requestId": id, "edit": { "replace": replace } }).to_string()
    };
    let mut without = replace("  ", &[]);
    without["removedAttachmentIds"] = json!(["attachment-1"]);
    server.send(edit("b", without));
    assert_eq!(server.wait_done("b"), "failed");
    // The earlier one stays.
    server.send(edit("c", replace("  ", &[])));
    let accepted = server.wait_event("ChatUserMessageAccepted");
    assert_eq!(accepted.payload("prompt"), "");
    assert_eq!(server.wait_done("c"), "ok");
    server.send(attach("d", " ", &[]));
    assert_eq!(server.wait_done("d"), "failed");
    let mut other = replace("", &cat);
    other["messageId"] = json!(accepted.payload("messageId"));
    server.send(edit("e", other));
    assert_eq!(server.wait_done("e"), "ok");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "b"), ["empty_prompt"]);
    assert_eq!(errors(&frames, "d"), ["empty_prompt"]);
    for id in ["c", "e"] {
        assert!(finished_text(&frames, id).contains("cat.png"), "{}", finished_text(&frames, id));
    }
}

/// Requests that come together take effect in their order, whether or not they name files.
#[test]
fn files_that_can_be_read_change_no_order() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    for stored in [&[][..], &["--store", &store]] {
        check_order(&folder, stored);
    }
}

#[track_caller]
fn check_order(folder: &Folder, args: &[&str]) {
    fs::write(folder.path("notes.md"), "# Notes").expect("a file");
    let file = json!({ "url": folder.name("notes.md") });
    let mut server = Server::start(&[&["--echo-delay-ms", "3600000"], args].concat());
    server.send_together(&[
        attach("none", "what?", &[json!({ "url": folder.name("none") })]),
        attach("first", "what?", std::slice::from_ref(&file)),
        submit("second", "hello"),
        attach("third", "what?", &[file]),
        cancel("c"),
    ]);
    assert_eq!(server.wait_done("none"), "failed");
    assert_eq!(server.wait_done("second"), "failed");
    assert_eq!(server.wait_done("third"), "failed");
    assert_eq!(server.wait_done("c"), "ok");
    assert_eq!(server.wait_done("first"), "stopped");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "none"), ["invalid_attachment"]);
    assert_eq!(errors(&frames, "second"), ["session_busy"]);
    assert_eq!(errors(&frames, "third"), ["session_busy"]);
    assert_eq!(errors(&frames, "c"), [""; 0]);
}
