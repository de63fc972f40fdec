//! How soon an answer begins, as clients, documents and listings report it. Nothing is timed here: a
//! provider that pauses gives a least time, and the others are compared with each other.

use crate::frames::{Frame, finished_text, submit};
use crate::once::{Once, duologue};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Server, openai};
use crate::tools::{json, run};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// Between the head of an answer and its first token.
const PAUSE: Duration = Duration::from_millis(60);

fn after_a_pause(text: &str) -> Vec<Step> {
    let text = text.to_owned();
    let slow = Step::Drip { text, times: 1, pause: PAUSE };
    [vec![slow], says(" and more")].concat()
}

fn number(frame: &Frame, field: &str) -> Option<u64> {
    let value = &frame.0["uiEvent"]["payload"][field];
    value.as_str().map(|number| number.parse().expect("a number"))
}

/// The payload of the timing of each call.
fn timings(frames: &[Frame]) -> Vec<&Frame> {
    frames.iter().filter(|frame| frame.is_event("CallTiming")).collect()
}

#[test]
fn a_client_reads_the_time_to_the_first_byte_and_to_the_first_token() {
    let provider = Provider::start(vec![after_a_pause("slow"), after_a_pause("unseen")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("a", "nobody asked"), "ok");
    let enable = r#"{"requestId":"e","enable":{"extensions":["timing"]}}"#;
    server.send(enable);
    assert_eq!(server.wait_done("e"), "ok");
    assert_eq!(server.turn("b", "hi"), "ok");
    let frames = server.finish().frames;
    let [timing] = timings(&frames)[..] else { panic!("{frames:?}") };
    assert_eq!(timing.text("/requestId"), "b");
    let finished = frames.iter().rfind(|frame| frame.is_event("ChatProviderCallFinished"));
    let duration = finished.and_then(|call| number(call, "durationMs")).expect("a duration");
    let [byte, token] = ["firstByteMs", "firstTokenMs"].map(|field| number(timing, field));
    let (byte, token) = (byte.expect("a first byte"), token.expect("a first token"));
    assert!(byte <= token && token <= duration, "{byte} {token} {duration}");
    assert!(u128::from(token) >= PAUSE.as_millis(), "{token}");
}

/// As after Ctrl-Z and `fg`, or `docker pause`: the bytes are in the socket when the limit is due.
#[test]
fn a_provider_is_not_silent_while_the_process_is_stopped() {
    let text = "word ".to_owned();
    let drip = Step::Drip { text, times: 40, pause: Duration::from_millis(100) };
    let provider = Provider::start(vec![[vec![drip], says("end")].concat()]);
    let mut server = openai(&provider, &["--idle-timeout-ms", "1500"]).start();
    server.send(submit("r", "hi"));
    server.wait_event("ChatTextPatch");
    server.signal(Signal::STOP);
    provider.wait_quiet();
    server.signal(Signal::CONT);
    assert_eq!(server.wait_done("r"), "ok");
    assert!(finished_text(&server.finish().frames, "r").ends_with(" end"));
}

/// The time that a provider was not asked is no time of its answer.
#[test]
fn a_request_that_is_sent_again_is_timed_from_the_last_time() {
    let refused = Step::Status(503, vec![("retry-after-ms", "300".to_owned())], String::new());
    let provider = Provider::start(vec![vec![refused], says("now")]);
    let mut server = openai(&provider, &["--extensions", "retries,timing"]).start();
    assert_eq!(server.turn("a", "hi"), "ok");
    let frames = server.finish().frames;
    let wait = frames.iter().find(|frame| frame.is_event("RetryScheduled")).expect("a retry");
    let wait = number(wait, "waitMs").expect("a wait");
    assert!(wait >= 300, "{wait}");
    let finished = frames.iter().find(|frame| frame.is_event("ChatProviderCallFinished"));
    let duration = finished.and_then(|call| number(call, "durationMs")).expect("a duration");
    let token = number(timings(&frames)[0], "firstTokenMs").expect("a first token");
    // Times are cut to whole milliseconds.
    assert!(wait + token <= duration + 1, "{wait} {token} {duration}");
}

#[test]
fn a_call_that_was_refused_or_has_no_provider_has_no_such_times() {
    let provider = Provider::start(vec![vec![Step::Status(400, Vec::new(), "{}".to_owned())]]);
    let mut server = openai(&provider, &["--extensions", "timing"]).start();
    assert_eq!(server.turn("a", "hi"), "failed");
    let frames = server.finish().frames;
    let timing = timings(&frames)[0];
    assert_eq!((number(timing, "firstByteMs"), number(timing, "firstTokenMs")), (None, None));
    let mut echo = Server::start(&["--extensions", "timing"]);
    assert_eq!(echo.turn("a", "hi"), "ok");
    let frames = echo.finish().frames;
    let timing = timings(&frames)[0];
    assert_eq!(number(timing, "firstByteMs"), None);
    assert!(number(timing, "firstTokenMs").is_some(), "{timing:?}");
}

#[test]
fn a_document_has_the_times_of_its_first_call() {
    let folder = Folder::new();
    let provider = Provider::start(vec![after_a_pause("slow")]);
    let words = ["exec", "hi", "--output", "json", "--debug-events-jsonl", "frames.jsonl"];
    let mut exec = duologue(&folder, &words);
    exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
    exec.env("DUOLOGUE_MODEL", "scripted");
    let ended = Once::start(exec).finish();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let time = |name: &str| document["meta"][name].as_u64().expect(name);
    let (byte, token) = (time("first_byte_ms"), time("first_token_ms"));
    assert!(byte <= token && token <= time("duration_ms"), "{document}");
    assert!(u128::from(token) >= PAUSE.as_millis(), "{document}");
    // The document alone needed them.
    let frames = std::fs::read(folder.path("frames.jsonl")).expect("the debug file");
    assert!(!String::from_utf8_lossy(&frames).contains("CallTiming"));
    let checked = run(&["check"], &frames);
    assert!(checked.status.success(), "{checked:?}");
}

/// Nothing of the call that makes a summary is the answer.
#[test]
fn a_document_has_no_times_of_a_summary() {
    let folder = Folder::new();
    let place = folder.name("store");
    let counted = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((110, 12))), Step::Done]
    };
    let script = vec![counted("one"), counted("SUMMARY"), after_a_pause("two")];
    let provider = Provider::start(script);
    let prompt = "more and ".repeat(10);
    let ask = || {
        let words = ["exec", &*prompt, "--output", "json", "--store", &place, "--session", "s"];
        let words = [&words[..], &["--context-tokens", "150"]].concat();
        let mut exec = duologue(&folder, &words);
        exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
        exec.env("DUOLOGUE_MODEL", "scripted");
        let mut exec = Once::start(exec);
        exec.close_stdin();
        let ended = exec.finish();
        serde_json::from_str::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    ask();
    let document = ask();
    assert_eq!((&document["data"], provider.requests()), (&Value::from("two and more"), 3));
    let token = document["meta"]["first_token_ms"].as_u64().expect("a first token");
    assert!(u128::from(token) >= PAUSE.as_millis(), "{document}");
}

#[test]
fn a_live_listing_has_milliseconds() {
    let stream = run(&["exec", "--engine", "echo", "--rpc", "hi"], b"").stdout;
    let folder = Folder::new();
    std::fs::write(folder.path("stream"), &stream).expect("a file");
    let path = folder.name("stream");
    let events = |listed: &Value| listed["data"].as_array().expect("a list").clone();
    for event in events(&json(&run(&["list-events", "--no-stream", &path], b""))) {
        assert_eq!(event.get("tsMs"), None, "a file has one time: {event}");
    }
    let live = events(&json(&run(&["list-events", "--no-stream"], &stream)));
    for event in &live {
        let [ts, ms] = ["ts", "tsMs"].map(|name| event[name].as_u64().expect(name));
        assert_eq!(ms / 1000, ts, "{event}");
    }
    assert!(live.is_sorted_by_key(|event| event["tsMs"].as_u64()) && !live.is_empty());
}
