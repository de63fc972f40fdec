//! Files that a request names and a file system does not give: they hold up their own prompt alone.

#![cfg(debug_assertions)]

use crate::attachments::attach;
use crate::chat::{Person, chat};
use crate::frames::{Frame, cancel, errors, finished_text, shutdown, snapshot, submit};
use crate::oracle::Answers;
use crate::server::{Folder, Server, echo};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

/// A server that has to wait for the end of a named pipe before it can read a file.
struct Slow {
    folder: Folder,
    pipe: String,
    server: Server,
}

impl Slow {
    fn start(args: &[&str]) -> Self {
        let folder = Folder::new();
        fs::write(folder.path("notes.md"), "# Notes").expect("a file");
        let pipe = folder.fifo("pipe");
        let server = echo(args).env("DUOLOGUE_FAULT", format!("file:{pipe}")).start();
        Self { folder, pipe, server }
    }

    /// A prompt with the file.
    fn attach(&self, id: &str) -> String {
        attach(id, "what?", &[self.file()])
    }

    fn file(&self) -> Value {
        json!({ "url": self.folder.name("notes.md") })
    }

    /// Sends a prompt with the file, and waits until it is being read; it is, until what this returns is
    /// dropped.
    fn send(&mut self, id: &str) -> File {
        self.server.send(self.attach(id));
        // Whoever opens one end waits for the other.
        OpenOptions::new().write(true).open(&self.pipe).expect("a named pipe")
    }
}

fn answers(frames: &[Frame], id: &str) -> bool {
    finished_text(frames, id).contains("Attached: notes.md (text/markdown, 7 bytes)")
}

#[test]
fn everything_else_goes_on() {
    let mut slow = Slow::start(&[]);
    let held = slow.send("slow");
    slow.server.send(snapshot("s"));
    assert_eq!(slow.server.wait_done("s"), "ok");
    slow.server.send(r#"{"requestId":"nothing"}"#);
    assert_eq!(slow.server.wait_done("nothing"), "failed");
    assert_eq!(slow.server.turn("other", "hello"), "ok");
    drop(held);
    assert_eq!(slow.server.wait_done("slow"), "ok");
    let frames = slow.server.finish_with(0, Answers::All).frames;
    assert!(finished_text(&frames, "other").starts_with("Turn 1. "));
    assert!(finished_text(&frames, "slow").starts_with("Turn 2. ") && answers(&frames, "slow"));
}

/// The answer of a run goes on; the prompt finds the run that goes on when its file has been read.
#[test]
fn a_run_goes_on() {
    let mut slow = Slow::start(&["--echo-delay-ms", "5"]);
    slow.server.send(submit("run", &"word ".repeat(400)));
    slow.server.wait_event("ChatTextPatch");
    let held = slow.send("slow");
    for _ in 0..20 {
        slow.server.wait_event("ChatTextPatch");
    }
    drop(held);
    assert_eq!(slow.server.wait_done("slow"), "failed");
    slow.server.send(cancel("c"));
    assert_eq!(slow.server.wait_done("run"), "stopped");
    let frames = slow.server.finish().frames;
    assert_eq!(errors(&frames, "slow"), ["session_busy"]);
}

#[test]
fn a_cancel_withdraws_the_prompt() {
    let mut slow = Slow::start(&[]);
    for (id, line) in [
        ("a", cancel("c-a")),
        ("b", json!({ "requestId": "c-b", "cancel": { "targetRequestId": "b" } }).to_string()),
        ("c", json!({ "requestId": "c-c", "cancel": { "waiting": true } }).to_string()),
    ] {
        let _held = slow.send(id);
        slow.server.send(line);
        assert_eq!(slow.server.wait_done(&format!("c-{id}")), "ok");
        assert_eq!(slow.server.wait_done(id), "stopped");
    }
    assert_eq!(slow.server.turn("last", "hello"), "ok");
    let frames = slow.server.finish().frames;
    assert!(frames.iter().all(|frame| frame.error().is_none()), "{frames:?}");
    assert!(finished_text(&frames, "last").starts_with("Turn 1. "));
}

/// A run that a cancel stops is not the prompt that waits for its file.
#[test]
fn a_cancel_of_the_run_leaves_the_prompt() {
    let mut slow = Slow::start(&["--echo-delay-ms", NEVER_MS]);
    slow.server.send(submit("run", "hello"));
    slow.server.wait_event("ChatProviderCallStarted");
    let held = slow.send("slow");
    slow.server.send(cancel("c"));
    assert_eq!(slow.server.wait_done("run"), "stopped");
    drop(held);
    slow.server.wait_event("ChatUserMessageAccepted");
    slow.server.send(cancel("c2"));
    assert_eq!(slow.server.wait_done("slow"), "stopped");
    slow.server.finish();
}

#[test]
fn a_shutdown_waits_for_no_file() {
    let mut slow = Slow::start(&[]);
    let _held = slow.send("slow");
    slow.server.send(shutdown("end"));
    assert_eq!(slow.server.wait_done("end"), "shutdown");
    let frames = slow.server.finish().frames;
    assert_eq!(errors(&frames, "slow"), ["shutting_down"]);
}

#[test]
fn a_signal_waits_for_no_file() {
    let mut slow = Slow::start(&[]);
    let _held = slow.send("slow");
    slow.server.signal(Signal::TERM);
    slow.server.wait_end();
    let frames = slow.server.finish_with(128 + 15, Answers::AllAndFarewell).frames;
    assert_eq!(errors(&frames, "slow"), ["shutting_down"]);
}

/// What was asked before the end of input is answered.
#[test]
fn the_end_of_input_leaves_the_prompt() {
    let mut slow = Slow::start(&[]);
    let held = slow.send("slow");
    slow.server.close_stdin();
    drop(held);
    assert_eq!(slow.server.wait_done("slow"), "ok");
    assert!(answers(&slow.server.finish().frames, "slow"));
}

#[test]
fn few_files_are_read_at_a_time() {
    let mut slow = Slow::start(&[]);
    let _held: Vec<_> = (1..=4).map(|number| slow.send(&format!("{number}"))).collect();
    slow.server.send(slow.attach("5"));
    assert_eq!(slow.server.wait_done("5"), "failed");
    slow.server.send(shutdown("end"));
    let frames = slow.server.finish().frames;
    let error = frames.iter().find(|frame| frame.id() == "5" && frame.error().is_some());
    let message = error.expect("an error").text("/error/message");
    assert!(message.contains("the files of 4 prompts are still being read"), "{message}");
}

/// The prompt waits like one that waits for its turn, and can be taken back; another is answered.
#[test]
fn a_chat_goes_on() {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "text").expect("a file");
    let pipe = folder.fifo("pipe");
    let mut command = chat(&folder, &[]);
    command.env("DUOLOGUE_FAULT", format!("file:{pipe}"));
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("see @a.txt\r");
    let _held = OpenOptions::new().write(true).open(&pipe).expect("a named pipe");
    person.sees("starting · 1 s");
    person.types("other\r");
    person.sees("Turn 1. You said: other");
    // Alt-Up.
    person.types("\u{1b}[1;3A");
    person.sees("> see @a.txt");
    person.types("\u{3}\u{4}");
    assert_eq!(person.ends().0, 0);
}
