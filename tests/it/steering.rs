//! Prompts that join a run, and cancels that name what they stop.

use crate::frames::{Frame, ends, errors, snapshot, submit};
use crate::provider::{Provider, Step, says};
use crate::server::{Server, openai};
use serde_json::{Value, json};

fn steer(id: &str, target: &str, prompt: &str) -> String {
    let submit = json!({ "prompt": prompt, "targetRequestId": target });
    json!({ "requestId": id, "submit": submit }).to_string()
}

fn cancel_one(id: &str, target: &str) -> String {
    json!({ "requestId": id, "cancel": { "targetRequestId": target } }).to_string()
}

/// An answer that waits in its middle until a gate is opened.
fn gated(text: &str) -> Vec<Step> {
    let mut steps = vec![Step::Text("Hm.".to_owned()), Step::Gate];
    steps.extend(says(text));
    steps
}

/// A run "run" in the middle of its answer.
fn running(provider: &Provider, args: &[&str]) -> Server {
    let mut server = openai(provider, args).start();
    server.send(submit("run", "first"));
    server.wait_event("ChatTextPatch");
    server
}

fn accepted<'a>(frames: &'a [Frame], id: &str) -> Vec<&'a Frame> {
    frames.iter().filter(|frame| frame.id() == id && frame.is_event("SteeringAccepted")).collect()
}

fn roles(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().expect("messages");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages.iter().map(|each| (text(&each["role"]), text(&each["content"]))).collect()
}

#[test]
fn a_prompt_joins_the_run_after_its_answer() {
    let provider = Provider::start(vec![gated("One."), says("Two.")]);
    let mut server = running(&provider, &[]);
    server.send(steer("more", "run", "second"));
    // Requests are handled in their order: the prompt is there before the answer ends.
    server.send(snapshot("look"));
    assert_eq!(server.wait_done("look"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("more"), "ok");
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert_eq!(accepted(&frames, "more").len(), 1);
    let prompts = frames.iter().filter(|frame| frame.is_event("ChatUserMessageAccepted"));
    let prompts: Vec<_> = prompts.map(|frame| (frame.id(), frame.payload("text"))).collect();
    assert_eq!(prompts, [("run", "first"), ("run", "second")]);
    let expected = [("user", "first"), ("assistant", "Hm.One."), ("user", "second")];
    let expected = expected.map(|(role, text)| (role.to_owned(), text.to_owned()));
    assert_eq!(roles(&provider.wait_request(2).body), expected);
}

/// A prompt that joined the turn is no answer to the first one.
#[test]
fn prompts_that_the_provider_refused_together_are_not_sent_again() {
    let withheld = || vec![Step::Finish("content_filter", None), Step::Done];
    let first = [vec![Step::Gate], withheld()].concat();
    let provider = Provider::start(vec![first, withheld(), says("Fine.")]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("run", "bad one"));
    server.send(steer("more", "run", "bad two"));
    // Requests are handled in their order: the prompt is there before the answer ends.
    server.send(snapshot("look"));
    assert_eq!(server.wait_done("look"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("more"), "ok");
    assert_eq!(server.wait_done("run"), "ok");
    assert_eq!(server.turn("last", "three"), "ok");
    let frames = server.finish().frames;
    assert_eq!(accepted(&frames, "more").len(), 1);
    assert!(provider.wait_request(2).body["messages"].to_string().contains("bad two"));
    let expected = [("user".to_owned(), "three".to_owned())];
    assert_eq!(roles(&provider.wait_request(3).body), expected);
}

#[test]
fn prompts_that_joined_are_asked_again_with_the_first() {
    let provider = Provider::start(vec![gated("One."), says("Two."), says("Again.")]);
    let mut server = running(&provider, &["--extensions", "edit,attachments"]);
    let attachments = json!([{ "url": "data:text/plain,what%20goes%20with%20it" }]);
    let submit =
        json!({ "prompt": "second", "targetRequestId": "run", "attachments": attachments });
    server.send(json!({ "requestId": "more", "submit": submit }).to_string());
    server.send(snapshot("look"));
    assert_eq!(server.wait_done("look"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("run"), "ok");
    server.send(r#"{"requestId":"e","edit":{"regenerate":{}}}"#);
    assert_eq!(server.wait_done("e"), "ok");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "e"), [""; 0]);
    let sent = provider.wait_request(3).body["messages"].to_string();
    assert!(sent.contains("first\\n\\nsecond") && sent.contains("what goes with it"), "{sent}");
}

/// The prompt is sent while that run waits for its turn, behind another one.
#[test]
fn a_prompt_joins_a_run_that_has_not_begun() {
    let provider =
        Provider::start(vec![gated("One."), says("Two."), says("Three."), says("Four.")]);
    let mut server = running(&provider, &["--on-busy", "queue"]);
    server.send(submit("next", "second"));
    server.send(steer("more", "next", "third"));
    let settings =
        json!({ "prompt": "fourth", "targetRequestId": "next", "settings": { "seed": 1 } });
    server.send(json!({ "requestId": "set", "submit": settings }).to_string());
    assert_eq!(server.wait_done("set"), "failed");
    // Nothing joins a prompt that joins: this one has a turn of its own, with its settings.
    let own = json!({ "prompt": "fifth", "targetRequestId": "more", "settings": { "seed": 1 } });
    server.send(json!({ "requestId": "own", "submit": own }).to_string());
    provider.open_gate();
    for id in ["run", "more", "next", "own"] {
        assert_eq!(server.wait_done(id), "ok", "{id}");
    }
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "set"), ["invalid_settings"]);
    assert_eq!(accepted(&frames, "more").len(), 1);
    let starts = frames.iter().filter(|frame| frame.is_event("ChatRunStarted"));
    assert_eq!(starts.map(Frame::id).collect::<Vec<_>>(), ["run", "next", "own"]);
    let last = roles(&provider.wait_request(3).body).pop().expect("a prompt");
    assert_eq!(last, ("user".to_owned(), "third".to_owned()));
}

#[test]
fn a_prompt_that_comes_too_late_is_the_next_turn() {
    let provider = Provider::start(vec![says("One."), says("Two.")]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("run", "first"));
    assert_eq!(server.wait_done("run"), "ok");
    server.send(steer("late", "run", "second"));
    assert_eq!(server.wait_done("late"), "ok");
    let frames = server.finish().frames;
    assert_eq!(accepted(&frames, "late").len(), 0);
    let starts = frames.iter().filter(|frame| frame.is_event("ChatRunStarted"));
    assert_eq!(starts.map(Frame::id).collect::<Vec<_>>(), ["run", "late"]);
}

#[test]
fn a_prompt_whose_run_is_cancelled_is_the_next_turn() {
    let provider = Provider::start(vec![gated("One."), says("Two.")]);
    let mut server = running(&provider, &[]);
    server.send(steer("more", "run", "second"));
    server.send(cancel_one("stop", "run"));
    assert_eq!(server.wait_done("run"), "stopped");
    assert_eq!(server.wait_done("more"), "ok");
    let frames = server.finish().frames;
    assert_eq!(accepted(&frames, "more").len(), 0);
}

#[test]
fn a_cancel_with_another_name_stops_nothing() {
    let provider = Provider::start(vec![gated("One.")]);
    let mut server = running(&provider, &[]);
    server.send(cancel_one("wrong", "other"));
    assert_eq!(server.wait_done("wrong"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "wrong"), ["no_active_request"]);
}

#[test]
fn a_late_cancel_does_not_stop_the_next_run() {
    let provider = Provider::start(vec![says("One."), gated("Two.")]);
    let mut server = openai(&provider, &["--on-busy", "queue"]).start();
    server.send(submit("a", "first"));
    assert_eq!(server.wait_done("a"), "ok");
    server.send(submit("b", "second"));
    server.wait_event("ChatTextPatch");
    server.send(cancel_one("late", "a"));
    assert_eq!(server.wait_done("late"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("b"), "ok");
    server.finish();
}

#[test]
fn submits_that_wait_are_withdrawn_by_name_or_together() {
    let provider = Provider::start(vec![gated("One.")]);
    let mut server = running(&provider, &["--on-busy", "queue"]);
    for id in ["a", "b", "c"] {
        server.send(submit(id, "next"));
    }
    server.send(steer("d", "run", "more"));
    server.send(cancel_one("one", "b"));
    assert_eq!(server.wait_done("one"), "ok");
    assert_eq!(server.wait_done("b"), "stopped");
    server.send(json!({ "requestId": "all", "cancel": { "waiting": true } }).to_string());
    assert_eq!(server.wait_done("all"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let ended = ends(&frames);
    for id in ["a", "c", "d"] {
        assert!(ended.contains(&(id.to_owned(), "stopped".to_owned())), "{ended:?}");
    }
    assert_eq!(provider.requests(), 1);
}
