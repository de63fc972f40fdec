//! A server that makes it difficult: its lines, its amounts, and its version.

use super::{
    DIFFICULT, Scratch, difficult, process_of, read_to, rest, run, start, until, wait_until_gone,
};
use crate::process::{DEADLINE, Process};
use duologue::client::{Any, Builder, Error, OnBusy};
use duologue::protocol::proto::rpc::SnapshotRequest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

const MIB: u64 = 1024 * 1024;

/// More than a stream that is not read may have waiting, with what the pipe holds.
const UNREAD_BYTES_MAX: u64 = 9 * MIB;

/// So often the reader gets its turn; one that reads would.
const TURNS: usize = 100;

#[tokio::test]
async fn halves_of_lines() {
    needs!(Python);
    let chat = start(difficult("halves")).await;
    assert_eq!(run(&chat, "x").await.text, "Hello, wörld!");
}

#[tokio::test]
async fn long_lines_and_many_at_once() {
    needs!(Python);
    let burst: usize = (0..1000).map(|at| format!("word {at} ").len()).sum();
    for (how, bytes) in [("long:67108864", 64 * 1024 * 1024), ("burst:1000", burst)] {
        let chat = start(difficult(how)).await;
        assert_eq!(run(&chat, "x").await.text.len(), bytes, "{how}");
    }
}

#[tokio::test]
async fn a_line_past_the_limit_fails_its_run_alone() {
    needs!(Python);
    let chat = start(difficult("long:4194304").line_bytes_max(1024 * 1024)).await;
    for _ in 0..2 {
        assert!(matches!(chat.run("x").await, Err(Error::TooLong(_))));
    }
    chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
}

#[tokio::test]
async fn what_is_newer_than_the_client_is_kept() {
    needs!(Python);
    let chat = start(difficult("unknown")).await;
    let mut stream = chat.stream("x");
    let (mut unknown, mut patches) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        match event.payload {
            None => unknown.push(event.raw()),
            Some(Any::ChatTextPatch(_)) => patches.push(event.raw()),
            Some(_) => {}
        }
    }
    let mood =
        json!({"@type": "type.googleapis.com/example.mood.v9.MoodChanged", "mood": "curious"});
    assert_eq!(unknown, [mood]);
    let newer = |it: &Value| (it["novelty"].clone(), it["mode"].clone());
    let expected = (json!({"deep": [1, 2]}), json!("CHAT_STREAM_PATCH_MODE_SIDEWAYS"));
    assert_eq!(patches.iter().map(newer).collect::<Vec<_>>(), [expected.clone(), expected]);
    assert_eq!(stream.answer().expect("an answer").text, "Hello, wörld!");
    let entities = chat.history().await.expect("a history");
    let are_known: Vec<_> = entities.iter().map(|it| (&*it.kind, it.payload.is_some())).collect();
    assert_eq!(are_known, [("ChatMessage", true), ("Mood", false)]);
    let raw = (entities[0].raw()["novelty"].clone(), entities[1].raw()["mood"].clone());
    assert_eq!(raw, (json!(1), json!("curious")));
    assert!(chat.capabilities().iter().any(|it| it == "telepathy"));
}

#[tokio::test]
async fn frames_of_others_reach_nobody() {
    needs!(Python);
    let chat = start(difficult("leftovers")).await;
    for _ in 0..3 {
        let (texts, error) = rest(&mut chat.stream("x")).await;
        assert_eq!((texts, error), (vec!["Hello, ".to_owned(), "wörld!".to_owned()], None));
    }
}

#[tokio::test]
async fn a_flood_of_standard_error() {
    needs!(Python);
    let chat = start(difficult("flood")).await;
    assert_eq!(run(&chat, "x").await.status, "ok");
    assert!(!chat.stderr().is_empty() && chat.stderr().len() <= 16 * 1024);
}

#[tokio::test]
async fn text_among_the_frames_is_an_error() {
    needs!(Python);
    let kinds = ["INFO this is no frame", "5", "a text", "true", "null", "[]", "[1]"];
    for (number, line) in kinds.into_iter().enumerate() {
        match start(difficult(&format!("garbage:{number}"))).await.run("x").await {
            Err(Error::Protocol(text)) => assert!(text.contains(line), "{text}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

/// Whether a pipe takes no more now.
fn is_full(pipe: &File) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("a pipe") == 0
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_left_in_the_pipe() {
    needs!(Python);
    let chat = start(difficult("endless")).await;
    let mut stream = chat.stream("x");
    let first = stream.next().await.expect("an event").expect("an event");
    let line_bytes_min = first.line.len() as u64;
    let process = process_of(&chat);
    let pipe = OpenOptions::new().write(true).open(format!("/proc/{process}/fd/1"));
    let pipe = pipe.expect("its standard output");
    let mut before = 0;
    while before != chat.ordinal() {
        before = chat.ordinal();
        until(|| is_full(&pipe)).await;
        // The test and the reader share a thread: the reader has its turn when the test gives way.
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        let bytes = chat.ordinal() * line_bytes_min;
        assert!(bytes < UNREAD_BYTES_MAX, "{bytes} bytes of a stream that nobody reads");
    }
    drop(pipe);
    // A request that waits for its answer gets it, whoever is behind.
    chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
    drop(stream);
    chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
    chat.close().await;
    wait_until_gone(process).await;
}

#[tokio::test]
async fn a_stream_that_is_awaited_does_not_wait_for_one_that_is_not_read() {
    needs!(Python);
    let patches = 2_000;
    let chat = start(difficult(&format!("long-first:{patches}")).on_busy(OnBusy::Queue)).await;
    let (mut unread, mut awaited) = (chat.stream("x"), chat.stream("y"));
    assert!(matches!(unread.next().await, Some(Ok(_))));
    let ended = timeout(DEADLINE, rest(&mut awaited)).await.expect("its end");
    assert_eq!(ended, (vec!["Hello, ".to_owned(), "wörld!".to_owned()], None));
    assert_eq!(rest(&mut unread).await.0.concat().len(), patches * 10_000);
}

#[tokio::test]
async fn the_next_prompt_waits_for_a_run_that_was_stopped() {
    needs!(Python);
    let chat = start(difficult("slow-stop")).await;
    for (number, by_stream) in [(2, true), (4, false)] {
        let before = chat.ordinal();
        let mut stream = chat.stream("on");
        assert!(matches!(stream.next().await, Some(Ok(_))));
        until(|| chat.ordinal() > before).await;
        match by_stream {
            true => stream.cancel().await.expect("it is stopped"),
            false => assert!(chat.cancel().await.expect("it is stopped")),
        }
        let (next, ended, ()) = tokio::join!(run(&chat, "next"), rest(&mut stream), async {
            tokio::task::yield_now().await;
            // Only now the run ends.
            chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
        });
        assert_eq!((next.text, ended.1), (format!("prompt {number}"), None));
        assert!(stream.answer().expect("an answer").is_stopped());
    }
}

#[tokio::test]
async fn a_cancel_before_the_prompt_is_sent() {
    needs!(Python);
    let chat = start(difficult("slow-stop")).await;
    let mut stream = chat.stream("y");
    stream.cancel().await.expect("nothing goes wrong");
    assert!(stream.next().await.is_none());
    assert!(stream.answer().expect("an answer").is_stopped());
    let stream = chat.stream("z");
    stream.cancel().await.expect("nothing goes wrong");
    assert!(stream.finish().await.expect("an answer").is_stopped());
    assert_eq!(run(&chat, "next").await.text, "prompt 1");
}

#[tokio::test]
async fn values_are_those_of_the_last_call() {
    needs!(Python);
    let answer = run(&start(difficult("calls")).await, "x").await;
    assert_eq!(answer.values, [json!({"call": 2})]);
}

/// A server that does what a file says: it is another one after it has died.
fn becoming(scratch: &Scratch, scenario: &str) -> (Builder, PathBuf) {
    let (how, program) = (scratch.0.join("how"), scratch.0.join("server"));
    fs::write(&how, scenario).expect("room");
    let text = format!("#!/bin/sh\nDIFFICULT=$(cat {}) exec {DIFFICULT}\n", how.display());
    fs::write(&program, text).expect("room");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
    (scratch.stored().binary(&program), how)
}

#[tokio::test]
async fn closing_during_a_reconnect_leaves_nothing_running() {
    needs!(Python);
    let scratch = Scratch::new("closing-reconnect");
    let (builder, how) = becoming(&scratch, "die:7");
    let (name, value) = ("DUOLOGUE_TEST_RECONNECT", std::process::id().to_string());
    let chat = start(builder.env(name, &value)).await;
    assert!(matches!(chat.run("x").await, Err(Error::ProcessEnded { .. })));
    // The next process never begins.
    fs::write(&how, "mute").expect("room");
    let mark = format!("{name}={value}");
    let other = chat.clone();
    let (reconnected, ()) = tokio::join!(chat.reconnect(), async {
        until(|| !Process::marked(&mark).is_empty()).await;
        timeout(DEADLINE, other.close()).await.expect("it is closed");
    });
    assert!(matches!(reconnected, Err(Error::Closed)), "{reconnected:?}");
    assert_eq!(Process::marked(&mark).len(), 0, "nothing is left running");
}

#[tokio::test]
async fn a_refused_prompt_does_not_forget_what_was_shown() {
    needs!(Python);
    let scratch = Scratch::new("refused");
    let (builder, how) = becoming(&scratch, "die-asked");
    let chat = start(builder).await;
    let mut stream = chat.stream("x");
    read_to(&mut stream, "ChatTextPatch").await;
    assert!(matches!(chat.run("y").await, Err(Error::Busy(_))));
    assert!(chat.snapshot(SnapshotRequest::default()).await.is_err(), "it has died");
    fs::write(&how, "resumed").expect("room");
    let changes = chat.reconnect().await.expect("another process");
    let texts: Vec<_> = changes.into_iter().map(|change| change.text).collect();
    assert_eq!(texts.len(), 1);
    assert!(texts[0].starts_with("since "), "{texts:?}");
}

#[tokio::test]
async fn a_run_that_can_not_be_stopped() {
    needs!(Python);
    let chat = start(difficult("stubborn").cancel_time(Duration::from_millis(10))).await;
    let mut stream = chat.stream("x");
    assert!(stream.next().await.is_some());
    drop(stream);
    // The prompt waits for its end as long as it should, and the answer of the server counts then.
    let refused = tokio::time::timeout(DEADLINE, chat.run("y")).await.expect("an answer");
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
}

#[tokio::test]
async fn hello_is_checked() {
    needs!(Python);
    let old = difficult("old").start().await.expect_err("it is too old");
    assert!(matches!(old, Error::TooOld { .. }), "{old:?}");
    assert_eq!(old.to_string(), "duologue 0.0.1 is too old: this library needs 0.1.0 or later");
    let texts =
        [("foreign", "speaks example.other.v1"), ("no-hello", "does not begin with `hello`")];
    for (how, expected) in texts {
        match difficult(how).start().await {
            Err(Error::Protocol(text)) => assert!(text.contains(expected), "{text}"),
            other => panic!("{how}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_never_answers() {
    needs!(Python);
    for how in ["silent", "mute"] {
        match difficult(how).start_time(Duration::from_millis(300)).start().await {
            Err(Error::Protocol(text)) => assert!(text.contains("did not begin within 0.3 s")),
            other => panic!("{how}: {other:?}"),
        }
    }
}
