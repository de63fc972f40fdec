//! What a provider can do wrong, and what the client reads (fault 24).

use crate::frames::{Frame, errors, finished_text, patched_text, submit};
use crate::once::run;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Launch, Transcript, openai};
use serde_json::Value;
use std::net::TcpListener;
use std::time::Duration;

/// A failure: what it is, how the provider plays it, and the class of the error.
type Failure = (&'static str, Vec<Step>, &'static str);

/// Each failed run is one typed error and one `done`, and the session goes on.
#[test]
fn each_failure_of_a_provider_is_one_typed_error() {
    for (name, steps, class) in failures() {
        let provider = Provider::start(vec![steps, says("better now")]);
        let mut server = openai(&provider, &["--retries", "0", "--compact", "off"]).start();
        assert_eq!(server.turn("r1", "hello"), "failed", "{name}");
        assert_eq!(server.turn("r2", "again"), "ok", "{name}");
        let transcript = server.finish();
        check_error(name, &transcript, "run_failed", class);
        assert_eq!(finished_text(&transcript.frames, "r2"), "better now", "{name}");
    }
}

fn failures() -> Vec<Failure> {
    let status = |number, body: &str| vec![Step::Status(number, Vec::new(), body.to_owned())];
    let text = || Step::Text("a part".to_owned());
    let refused = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    vec![
        ("401", status(401, &refused), "auth"),
        ("429", status(429, "slow down"), "rate_limited"),
        ("500", status(500, r#"{"error":{"message":"we are down"}}"#), "provider"),
        ("500, without a body", status(500, ""), "provider"),
        ("an empty stream", vec![Step::Head("text/event-stream")], "malformed_stream"),
        ("an empty answer", status(200, ""), "malformed_stream"),
        ("a page", status(200, "<html>welcome</html>"), "malformed_stream"),
        ("no final event", vec![text()], "malformed_stream"),
        (
            "a malformed event",
            vec![text(), Step::Event("{\"choices\":[".to_owned())],
            "malformed_stream",
        ),
        ("a broken connection", vec![text(), Step::Cut], "network"),
        (
            "an end that can't be distinguished from one",
            vec![Step::HeadWithoutLength, text()],
            "network",
        ),
        (
            "the same within an event",
            vec![Step::HeadWithoutLength, text(), Step::Bytes(b"data: {\"choices\":[".to_vec())],
            "network",
        ),
        (
            "an error in the stream",
            vec![
                text(),
                Step::Event(r#"{"error":{"message":"out of memory","code":500}}"#.to_owned()),
            ],
            "provider",
        ),
    ]
    .into_iter()
    .chain(error_reports())
    .collect()
}

/// Errors that servers report in other forms than OpenAI, with the end mark after them or not.
fn error_reports() -> Vec<Failure> {
    let event = |data: &str| Step::Event(data.to_owned());
    let bytes = |line: &str| Step::Bytes(line.as_bytes().to_vec());
    let text = || Step::Text("a part".to_owned());
    let vllm = r#"{"object":"error","message":"the engine died","type":"InternalServerError","param":null,"code":500}"#;
    let overflow = r#"{"object":"error","message":"maximum context length is 5 tokens","type":"BadRequestError","code":400}"#;
    let detail = r#"{"detail":"Internal Server Error"}"#;
    let bare = "{\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    let field = "error: {\"code\":500,\"message\":\"context shift is disabled\"}\n\n";
    let unknown = r#"{"failure":"out of memory"}"#;
    vec![
        ("an error object", vec![text(), event(vllm), Step::Done], "provider"),
        ("an error object first", vec![event(vllm), Step::Done], "provider"),
        (
            "an error object as the answer",
            vec![Step::Status(200, Vec::new(), overflow.to_owned())],
            "context_overflow",
        ),
        ("a detail", vec![text(), event(detail), Step::Done], "provider"),
        ("a bare line", vec![text(), bytes(bare), Step::Done], "provider"),
        ("a bare line at the end", vec![text(), bytes(bare)], "provider"),
        ("an error field", vec![text(), bytes(field), Step::Done], "provider"),
        ("an unknown event", vec![text(), event(unknown), Step::Done], "malformed_stream"),
    ]
}

/// The run `r1` has exactly one error, of this code and class, and it is not the session's end.
#[track_caller]
fn check_error(name: &str, transcript: &Transcript, code: &str, class: &str) {
    let frames = &transcript.frames;
    assert_eq!(errors(frames, "r1"), [code], "{name}");
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    let detail = error.text("/error/detail");
    assert!(detail == class || detail.starts_with(&format!("{class}:")), "{name}: {error:?}");
    assert!(!error.text("/error/message").is_empty(), "{name}");
    assert!(error.0["error"].get("terminal").is_none(), "{name}: the session goes on");
    let is_failed = |frame: &Frame| frame.id() == "r1" && frame.is_event("ChatRunFailed");
    assert_eq!(frames.iter().filter(|frame| is_failed(frame)).count(), 1, "{name}");
    assert_eq!(patched_text(frames, "r1"), finished_text(frames, "r1"), "{name}");
}

/// The engine that can't get ready says hello first, and the process ends with 0: in a conversation
/// a failed run is an answer.
#[test]
fn settings_that_cannot_work_are_reported_after_hello() {
    let cases = [
        ("no key", &["--engine", "openai", "--model", "m"][..], "auth"),
        ("a bad URL", &["--model", "m", "--base-url", "http://[half"], "config"),
        ("another scheme", &["--model", "m", "--base-url", "ftp://localhost/v1"], "config"),
        ("no model", &["--base-url", "http://localhost:1/v1"], "config"),
    ];
    for (name, args, class) in cases {
        let mut server = Launch::new(&[&["rpc"], args].concat()).start();
        server.wait_hello();
        assert_eq!(server.turn("r1", "hello"), "failed", "{name}");
        check_error(name, &server.finish(), "engine_init_failed", class);
    }
}

/// What is wrong with an address is said once, and in words that need no standard to be read.
#[test]
fn a_base_url_that_is_none_is_refused_in_one_sentence() {
    let folder = Folder::new();
    let cases = [
        ("foo", "foo", "does not begin with http:// or https://"),
        ("ftp://x", "ftp://x", "does not begin with http:// or https://"),
        ("http://", "http://", "names no host"),
        ("http://[", "http://[", "has an IP address that is not valid"),
        ("http://h:99999", "http://h:99999", "has a port that is not a number from 0 to 65535"),
        ("http://a b", "http://a b", "has a host name with characters that no host name can have"),
    ];
    for (url, shown, why) in cases {
        let ended = run(&folder, &["exec", "hello", "--model", "m", "--base-url", url]);
        let expected = format!(
            "duologue: the base URL {shown:?} {why}: name one like http://localhost:11434/v1 with \
             --base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL\n"
        );
        assert_eq!((ended.status, ended.stderr), (1, expected), "{url}");
    }
}

#[test]
fn a_refused_connection_is_a_network_error() {
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
    let url = format!("http://user:{KEY}@{unused}/v1");
    let args = ["rpc", "--engine", "openai", "--model", "m", "--retries", "1"];
    let mut server = Launch::new(&args).secret("DUOLOGUE_BASE_URL", &url).start();
    assert_eq!(server.turn("r1", "hello"), "failed");
    let transcript = server.finish();
    check_error("a refused connection", &transcript, "run_failed", "network");
    assert_eq!(transcript.stderr.matches("trying again").count(), 1, "{}", transcript.stderr);
    assert!(!transcript.stderr.contains(KEY), "the key in the URL is a secret, too");
}

/// A retry is visible on standard error and nowhere else.
#[test]
fn a_rate_limit_is_waited_for_and_tried_again() {
    let later = vec![("retry-after-ms", "20".to_owned())];
    let busy = Step::Status(429, later, "slow down".to_owned());
    let provider = Provider::start(vec![vec![busy], says("now I can")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    let transcript = server.finish();
    assert_eq!(provider.requests(), 2);
    assert_eq!(finished_text(&transcript.frames, "r1"), "now I can");
    assert!(transcript.frames.iter().all(|frame| frame.error().is_none()));
    assert_eq!(transcript.stderr.matches("trying again").count(), 1, "{}", transcript.stderr);
    assert!(transcript.stderr.contains("rate_limited"), "{}", transcript.stderr);
}

/// Waiting fills no account, so an empty one is reported at once; a proxy's own status may pass.
#[test]
fn an_empty_account_is_not_tried_again_and_a_status_of_a_proxy_is() {
    let quota = r#"{"error":{"message":"no","code":"insufficient_quota"}}"#;
    let refused = |status, body: &str| vec![Step::Status(status, Vec::new(), body.to_owned())];
    // MiniMax's forms.
    let balance = r#"{"error":{"message":"no (1008)","type":"insufficient_balance_error"}}"#;
    let failed =
        r#"{"type":"error","error":{"type":"api_error","message":"Insufficient balance (1008)"}}"#;
    for (status, body, expected, requests) in [
        (429, quota, "failed", 1),
        (402, "{}", "failed", 1),
        (429, balance, "failed", 1),
        (500, failed, "failed", 1),
        (522, "", "ok", 2),
    ] {
        let provider = Provider::start(vec![refused(status, body), says("now I can")]);
        let mut server = openai(&provider, &[]).start();
        assert_eq!(server.turn("r1", "hello"), expected, "{status}");
        server.finish();
        assert_eq!(provider.requests(), requests, "{status}");
    }
}

/// A server that frames its answer by the end of the connection, as HTTP/1.0 does, ends it like any other.
#[test]
fn an_answer_that_ends_with_its_connection_is_whole_if_it_says_so() {
    let provider =
        Provider::start(vec![[vec![Step::HeadWithoutLength], says("all of it")].concat()]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    assert_eq!(finished_text(&server.finish().frames, "r1"), "all of it");
}

/// Who reads events decides by `recoverable` whether to ask again.
#[test]
fn a_connection_that_breaks_off_is_recoverable() {
    let cases = [
        (vec![Step::HeadWithoutLength], "NETWORK_TIMEOUT", "network", true),
        (vec![], "MALFORMED_EVENT", "malformed_stream", false),
    ];
    for (head, code, class, is_recoverable) in cases {
        let part = Step::Text("a part".to_owned());
        let provider = Provider::start(vec![[head, vec![part]].concat()]);
        let base_url = provider.base_url();
        let words = ["exec", "hello", "--json-stream", "--model", "m", "--base-url", &base_url];
        let ended = run(&Folder::new(), &words);
        let events = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let mut events = events.filter(|event: &Value| event["type"] == "error");
        let error = &events.next().expect("an error")["payload"]["error"];
        assert_eq!(error["code"], code, "{ended:?}");
        assert_eq!(error["class"], class, "{ended:?}");
        assert_eq!(error["recoverable"], is_recoverable, "{ended:?}");
        let status = if is_recoverable { 75 } else { 1 };
        assert_eq!((ended.status, events.next()), (status, None), "{ended:?}");
    }
}

/// Once something was shown, a second answer would be another one.
#[test]
fn an_answer_that_breaks_off_is_not_tried_again() {
    let provider =
        Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Cut], says("another")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "failed");
    let transcript = server.finish();
    assert_eq!(provider.requests(), 1);
    assert_eq!(finished_text(&transcript.frames, "r1"), "a part");
    assert!(!transcript.stderr.contains("trying again"), "{}", transcript.stderr);
}

#[test]
fn a_provider_that_says_nothing_in_time_is_a_timeout() {
    for begun in [Vec::new(), vec![Step::Text("a part".to_owned())]] {
        let provider = Provider::start(vec![[begun, vec![Step::Stall]].concat()]);
        let mut server = openai(&provider, &["--idle-timeout-ms", "100"]).start();
        assert_eq!(server.turn("r1", "hello"), "failed");
        provider.wait_disconnect();
        check_error("silence", &server.finish(), "run_failed", "timeout");
    }
}

/// A provider that reasons, drips and pauses is waited for, over one connection for all turns.
#[test]
fn a_slow_provider_is_listened_to_until_its_end() {
    let pause = Duration::from_millis(2);
    let slow = vec![
        Step::Reasoning("let me see".to_owned()),
        Step::Drip { text: "drip ".to_owned(), times: 20, pause },
        Step::Stall,
        Step::Text("done".to_owned()),
        Step::Finish("stop", Some((3, 21))),
        Step::Done,
    ];
    let provider = Provider::start(vec![slow, says("again")]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r1", "hello"));
    for _ in 0..20 {
        server.wait_event("ChatTextPatch");
    }
    provider.release();
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "hello again"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r1"), "drip ".repeat(20) + "done");
    let reasoning = frames.iter().find(|frame| frame.is_event("ChatReasoningSegmentFinished"));
    assert_eq!(reasoning.expect("a segment").payload("text"), "let me see");
    let usage = frames.iter().find(|frame| frame.is_event("ChatProviderCallMetadataUpdated"));
    assert_eq!(usage.expect("usage").0["uiEvent"]["payload"]["usage"]["outputTokens"], 21);
    let request = provider.wait_request(2);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(provider.connections(), 1);
}

/// The end of input does not end a run that fails, and the process still ends with 0.
#[test]
fn a_run_that_fails_after_the_end_of_input_is_reported() {
    let provider = Provider::start(vec![vec![Step::Gate, Step::Cut]]);
    let mut server = openai(&provider, &["--retries", "0"]).start();
    server.send(submit("r1", "hello"));
    server.close_stdin();
    provider.wait_request(1);
    provider.wait_quiet();
    provider.open_gate();
    check_error("at the end", &server.finish(), "run_failed", "network");
}

/// What a failed turn said is kept for the model, what it did not say is not.
#[test]
fn the_model_gets_of_a_failed_answer_only_what_was_shown() {
    let no = Step::Status(400, Vec::new(), "no".to_owned());
    let half = vec![Step::Text("half an answer".to_owned()), Step::Cut];
    let provider = Provider::start(vec![vec![no], half, says("fine")]);
    let mut server = openai(&provider, &["--retries", "0"]).start();
    assert_eq!(server.turn("silent", "first prompt"), "failed");
    assert_eq!(server.turn("half", "second prompt"), "failed");
    assert_eq!(server.turn("whole", "third prompt"), "ok");
    server.finish();
    let sent = provider.wait_request(3).body.to_string();
    assert!(!sent.contains("first prompt"), "{sent}");
    assert!(sent.contains("second prompt") && sent.contains("half an answer"), "{sent}");
    assert!(sent.contains("interrupted") && sent.contains("third prompt"), "{sent}");
}
