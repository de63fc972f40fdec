//! A cancel acts at once, wherever the run is.

use crate::frames::{
    Frame, cancel, ends, errors, finished_text, patched_text, shutdown, snapshot, submit,
};
use crate::provider::{Provider, Step, says};
use crate::server::{KEY, Server, openai};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A run that is cancelled ends within this.
const PROMPTLY: Duration = Duration::from_secs(1);

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

/// Sends a cancel and checks that it acts at once.
fn cancels(server: &mut Server, run: &str) {
    let asked = Instant::now();
    server.send(cancel("cancel"));
    assert_eq!(server.wait_done("cancel"), "ok");
    assert_eq!(server.wait_done(run), "stopped");
    assert!(asked.elapsed() < PROMPTLY, "took {:?}", asked.elapsed());
}

#[test]
fn a_cancel_acts_on_a_provider_that_never_sends_a_byte() {
    let provider = Provider::start(vec![vec![Step::Stall]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    provider.wait_request(1);
    cancels(&mut server, "r");
    provider.wait_disconnect();
    let frames = server.finish().frames;
    assert!(frames.iter().any(|frame| frame.is_event("ChatRunStopped")));
    assert!(frames.iter().all(|frame| frame.error().is_none()));
}

#[test]
fn a_cancel_acts_on_a_stream_that_has_stalled() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    server.wait_event("ChatTextPatch");
    cancels(&mut server, "r");
    provider.wait_disconnect();
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r"), "a part");
}

#[test]
fn a_cancel_acts_while_a_retry_is_waited_for() {
    let later = vec![("retry-after", "30".to_owned())];
    let provider = Provider::start(vec![vec![Step::Status(429, later, "slow down".to_owned())]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    server.wait_log("trying again");
    cancels(&mut server, "r");
    server.finish();
    assert_eq!(provider.requests(), 1);
}

#[test]
fn a_cancel_in_the_same_write_as_its_submit_stops_it() {
    let mut server = Server::start(&[]);
    for turn in 0..100 {
        let (run, stop) = (format!("r{turn}"), format!("c{turn}"));
        server.send_together(&[submit(&run, "hello"), cancel(&stop)]);
        assert_eq!(server.wait_done(&stop), "ok");
        assert_eq!(server.wait_done(&run), "stopped");
    }
    let frames = server.finish().frames;
    assert!(frames.iter().all(|frame| !frame.is_event("ChatRunFinished")));
}

/// As many as fill the pipe many times over, so that some are read in two pieces.
#[test]
fn no_cancel_is_lost_among_thousands() {
    const PAIRS: usize = 3_000;
    let mut server = Server::start(&["--final-snapshot", "none"]);
    let pairs =
        (0..PAIRS).flat_map(|n| [submit(&format!("r{n}"), "a b c"), cancel(&format!("c{n}"))]);
    server.send_together(&pairs.collect::<Vec<_>>());
    let frames = server.finish().frames;
    let runs = ends(&frames).into_iter().filter(|(id, _)| id.starts_with('r'));
    let stopped = runs.filter(|(_, status)| status == "stopped").count();
    assert_eq!(stopped, PAIRS);
}

/// Five cancels during a run, five after it.
#[test]
fn cancels_in_numbers_are_answered_once_each() {
    let mut server = Server::start(&["--echo-delay-ms", NEVER_MS]);
    server.send(submit("r", "hello"));
    server.wait_event("ChatRunStarted");
    let during: Vec<_> = (0..5).map(|n| cancel(&format!("during{n}"))).collect();
    server.send_together(&during);
    server.wait_done("during4");
    for n in 0..5 {
        server.send(cancel(&format!("after{n}")));
        assert_eq!(server.wait_done(&format!("after{n}")), "ok");
    }
    let frames = server.finish().frames;
    assert!(ends(&frames).contains(&("r".to_owned(), "stopped".to_owned())));
    assert!(errors(&frames, "during0").is_empty(), "the first one stops the run");
    let late = (1..5).map(|n| format!("during{n}")).chain((0..5).map(|n| format!("after{n}")));
    for id in late {
        assert_eq!(errors(&frames, &id), ["no_active_request"], "{id}");
    }
}

#[test]
fn a_silent_provider_holds_up_no_snapshot_cancel_or_shutdown() {
    let provider = Provider::start(vec![vec![Step::Stall]]);
    let mut server = openai(&provider, &[]).start();
    server.send_together(&[submit("r", "hello"), snapshot("s"), cancel("c"), shutdown("q")]);
    assert_eq!(server.wait_done("q"), "shutdown");
    let frames = server.finish().frames;
    let expected = [("s", "ok"), ("c", "ok"), ("r", "stopped"), ("q", "shutdown")];
    let expected = expected.map(|(id, how)| (id.to_owned(), how.to_owned()));
    assert_eq!(ends(&frames), expected);
}

/// The text before a cancel is in the snapshot and in the next provider request.
#[test]
fn after_a_cancel_the_model_gets_what_it_had_said() {
    let words: Vec<_> = (0..100).map(|n| format!("w{n} ")).collect();
    let mut stopped: Vec<_> = words.iter().cloned().map(Step::Text).collect();
    stopped.push(Step::Stall);
    let provider = Provider::start(vec![stopped, says("you asked for a story")]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r1", "tell a story"));
    server.wait("the text w99", |frame| frame.payload("text").contains("w99 "));
    cancels(&mut server, "r1");
    server.send(snapshot("s"));
    let shown = server.wait("the snapshot of s", |frame| frame.id() == "s" && frame.is_snapshot());
    assert_eq!(server.turn("r2", "what did I ask?"), "ok");
    let frames = server.finish().frames;

    let said = words.concat();
    assert_eq!(patched_text(&frames, "r1"), said);
    assert_eq!(finished_text(&frames, "r1"), said);
    assert_eq!(shown.messages(), [("user", "tell a story"), ("assistant", said.as_str())]);
    let request = provider.wait_request(2);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let messages = messages_of(&request.body);
    assert_eq!(messages[0], ("user".to_owned(), "tell a story".to_owned()));
    let (role, partial) = &messages[1];
    assert!(role == "assistant" && partial.starts_with(said.trim_end()), "{partial}");
    let all = request.body.to_string().to_lowercase();
    assert!(all.contains("interrupted"), "{all}");
    assert_eq!(messages.last().expect("a prompt").1, "what did I ask?");
}

/// Role and text of each message that a provider was sent.
fn messages_of(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().expect("messages");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

/// A cancel stops its run and no other, also if submits wait.
#[test]
fn a_cancel_leaves_what_waits_alone() {
    let mut server = Server::start(&["--on-busy", "queue", "--echo-delay-ms", "20"]);
    server.send_together(&[submit("r1", "one"), submit("r2", "two"), submit("r3", "three")]);
    server.wait_event("ChatTextPatch");
    server.send(cancel("c"));
    assert_eq!(server.wait_done("c"), "ok");
    assert_eq!(server.wait_done("r1"), "stopped");
    assert_eq!(server.wait_done("r2"), "ok");
    assert_eq!(server.wait_done("r3"), "ok");
    let frames = server.finish().frames;
    let is_of = |id: &'static str| move |frame: &&Frame| frame.id() == id;
    assert!(frames.iter().filter(is_of("r2")).any(|frame| frame.is_event("ChatRunFinished")));
}
