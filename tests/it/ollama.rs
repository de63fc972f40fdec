//! The ollama engine: the real binary against a scripted server with Ollama's own interface.

use crate::frames::{finished_text, submit};
use crate::interface::{Interface, declare_get_time, get_time_schema, return_results};
use crate::once::{Once, duologue, run};
use crate::provider::{Provider, Step};
use crate::server::{Folder, KEY, Launch};
use serde_json::{Value, json};

/// The address of `provider` in the form of Ollama's own programs: without a scheme.
fn host(provider: &Provider) -> String {
    provider.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

/// `duologue rpc <args>`, with `provider`.
fn ollama(provider: &Provider, args: &[&str]) -> Launch {
    let engine = ["rpc", "--engine", "ollama", "--model", "scripted"];
    Launch::new(&[&engine, args].concat()).env("OLLAMA_HOST", host(provider))
}

pub(crate) const OLLAMA: Interface = Interface { engine: "ollama", launch: ollama, says };

fn line(value: &Value) -> Step {
    Step::Bytes(format!("{value}\n").into_bytes())
}

/// The next piece of the message.
fn piece(message: Value) -> Step {
    line(&json!({ "model": "scripted", "created_at": "t", "message": message, "done": false }))
}

fn text(content: &str) -> Step {
    piece(json!({ "role": "assistant", "content": content }))
}

fn thinking(thinking: &str) -> Step {
    piece(json!({ "role": "assistant", "content": "", "thinking": thinking }))
}

fn calls(calls: Value) -> Step {
    piece(json!({ "role": "assistant", "content": "", "tool_calls": calls }))
}

fn last(reason: &str) -> Step {
    line(
        &json!({ "model": "scripted", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": reason, "prompt_eval_count": 26, "eval_count": 9 }),
    )
}

/// An answer of these pieces that ends for this reason.
fn answer(pieces: Vec<Step>, reason: &str) -> Vec<Step> {
    [vec![Step::Head("application/x-ndjson")], pieces, vec![last(reason)]].concat()
}

fn says(words: &str) -> Vec<Step> {
    answer(vec![text(words)], "stop")
}

/// An answer that calls a server's tool for an image.
pub(crate) fn calls_for_image() -> Vec<Step> {
    let call = json!({ "function": { "name": "act", "arguments": { "text": "image" } } });
    answer(vec![calls(json!([call]))], "stop")
}

#[test]
fn ollama_streams_text_and_reasoning_and_counts_them() {
    let script = answer(vec![thinking("h"), thinking("m"), text("hel"), text("lo")], "stop");
    let (payload, request) = OLLAMA.check_first_turn(script);
    assert_eq!(payload["stopReason"], "stop", "{payload}");
    for (name, count) in [("inputTokens", 26), ("outputTokens", 9)] {
        assert_eq!(payload["usage"][name], count, "{payload}");
    }

    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/api/chat"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body["stream"], true);
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "hi" },
    ]);
    assert_eq!(request.body["messages"], expected);
}

#[test]
fn ollama_gets_reasoning_and_results_back_over_two_rounds_of_calls() {
    let call =
        |city: &str| json!({ "function": { "name": "get_time", "arguments": { "city": city } } });
    let first = answer(
        vec![
            thinking("Two cities."),
            text("Let me look."),
            calls(json!([call("Berlin"), call("Rome")])),
        ],
        "stop",
    );
    let second = answer(vec![thinking("One more."), calls(json!([call("Oslo")]))], "stop");
    let provider = Provider::start(vec![first, second, says("Noon."), says("Bye.")]);
    let mut server = ollama(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["call_0", "call_1"]);
    // The server numbers the calls of each answer anew.
    return_results(&mut server, &["call_0-2"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r1"), "Let me look.Noon.");

    let requests = [1, 2, 3, 4].map(|number| provider.wait_request(number));
    assert_eq!(requests[0].body["tools"][0]["function"]["parameters"], get_time_schema());
    let made = |id: &str, city: &str| json!({ "id": id, "function": { "name": "get_time", "arguments": { "city": city } } });
    let returned = |id: &str| {
        json!({ "role": "tool", "content": json!({ "of": id }).to_string(), "tool_name": "get_time",
            "tool_call_id": id })
    };
    let expected = [
        json!({ "role": "user", "content": "what time is it?" }),
        json!({ "role": "assistant", "content": "Let me look.", "thinking": "Two cities.",
            "tool_calls": [made("call_0", "Berlin"), made("call_1", "Rome")] }),
        returned("call_0"),
        returned("call_1"),
        json!({ "role": "assistant", "content": "", "thinking": "One more.",
            "tool_calls": [made("call_0-2", "Oslo")] }),
        returned("call_0-2"),
    ];
    let messages =
        |number: usize| requests[number].body["messages"].as_array().expect("a list").clone();
    assert_eq!(messages(1), expected[..4]);
    assert_eq!(messages(2), expected);
    // The next turn begins with all of it.
    let next = messages(3);
    assert_eq!(next[..expected.len()], expected);
    assert_eq!(next.len(), expected.len() + 2);
}

#[test]
fn text_after_a_call_goes_back_to_ollama_before_the_result() {
    let call = json!([{ "function": { "name": "get_time", "arguments": {} } }]);
    let script = answer(vec![calls(call), text("Let me see.")], "stop");
    let body = OLLAMA.with_results(script, &["call_0"]);
    let messages = body["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, [Some("user"), Some("assistant"), Some("tool")], "{body}");
    assert_eq!(messages[1]["content"], "Let me see.");
}

#[test]
fn each_failure_of_ollama_is_one_typed_error_and_the_session_goes_on() {
    let status = |status: u16, error: &str| {
        vec![Step::Status(status, Vec::new(), json!({ "error": error }).to_string())]
    };
    let begun = || vec![Step::Head("application/x-ndjson"), text("a part")];
    let with = |more: Vec<Step>| [begun(), more].concat();
    let report = json!({ "error": "the runner process has terminated" });
    OLLAMA.check_failures([
        ("401", status(401, "unauthorized"), "auth"),
        ("404", status(404, "model \"scripted\" not found, try pulling it first"), "provider"),
        ("400", status(400, "scripted does not support tools"), "provider"),
        ("429", status(429, "slow down"), "rate_limited"),
        ("500", status(500, "model runner has unexpectedly stopped"), "provider"),
        ("empty", vec![Step::Head("application/x-ndjson")], "malformed_stream"),
        ("no last line", begun(), "malformed_stream"),
        ("bare line", with(vec![line(&report)]), "provider"),
        ("alone", vec![line(&report)], "provider"),
        ("malformed", with(vec![Step::Bytes(b"{\"message\":\n".to_vec())]), "malformed_stream"),
        ("broken", with(vec![Step::Cut]), "network"),
        ("another interface", vec![Step::Text("a".to_owned()), Step::Done], "malformed_stream"),
    ]);
}

#[test]
fn ollama_is_asked_again_after_an_overload() {
    let later = vec![("retry-after", "0".to_owned())];
    let busy = vec![Step::Status(503, later, json!({ "error": "server busy" }).to_string())];
    OLLAMA.check_retries(vec![busy]);
}

#[test]
fn an_answer_that_ollama_cuts_off_says_so() {
    for (reason, class) in [("length", "max_tokens"), ("unload", "other")] {
        OLLAMA.check_end(answer(vec![text("a part")], reason), reason, class);
    }
}

#[test]
fn a_cancel_closes_the_connection_to_ollama() {
    OLLAMA.check_cancels(vec![Step::Head("application/x-ndjson"), text("a part")]);
}

/// One submit with what a request may hold beside its text.
#[test]
fn a_request_to_ollama_has_settings_and_images() {
    let provider = Provider::start(vec![says("a")]);
    let mut server = ollama(&provider, &[]).start();
    let submit = json!({
        "prompt": "what is this?",
        "attachments": [{ "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=" }],
        "settings": { "temperature": 0.5, "reasoning_effort": "none",
            "extra_body": { "options": { "num_ctx": 32768 } } },
    });
    server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    server.finish();
    let body = provider.wait_request(1).body;
    assert_eq!(body["options"], json!({ "temperature": 0.5, "num_ctx": 32768 }));
    assert_eq!(body["think"], false);
    let expected =
        json!([{ "role": "user", "content": "what is this?", "images": ["iVBORw0KGgo="] }]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn what_ollama_does_not_take_is_an_error_before_anything_is_sent() {
    let provider = Provider::start(vec![says("a")]);
    let mut server = ollama(&provider, &[]).start();
    let pdf = json!({ "mediaType": "application/pdf", "url": "data:application/pdf;base64,JVBERi0xLjcK" });
    let submit = json!({ "prompt": "what is this?", "attachments": [pdf] });
    server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
    assert_eq!(server.wait_done("r1"), "failed");
    assert_eq!(provider.requests(), 0);
    // The prompt is no part of the conversation.
    assert_eq!(server.turn("r2", "hello"), "ok");
    let frames = server.finish().frames;
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.text("/error/detail").starts_with("config"), "{error:?}");
    assert!(error.text("/error/message").contains("can't be sent to Ollama"), "{error:?}");
    let sent = &provider.wait_request(1).body["messages"];
    assert_eq!(*sent, json!([{ "role": "user", "content": "hello" }]));
}

#[test]
fn ollama_needs_no_key_and_takes_one() {
    for (name, value) in [("OLLAMA_API_KEY", KEY), ("DUOLOGUE_API_KEY", "own")] {
        let provider = Provider::start(vec![says("a")]);
        let launch = ollama(&provider, &[]).env("OLLAMA_API_KEY", KEY);
        let mut server = launch.env(name, value).start();
        assert_eq!(server.turn("r1", "hello"), "ok");
        server.finish();
        let request = provider.wait_request(1);
        assert_eq!(request.header("authorization"), Some(format!("Bearer {value}").as_str()));
    }
}

#[test]
fn ollama_has_no_default_model_and_is_never_chosen_by_default() {
    let folder = Folder::new();
    let ended = run(&folder, &["exec", "hello", "--engine", "ollama"]);
    assert_eq!(ended.status, 1);
    let expected = "duologue: no model is named, and http://127.0.0.1:11434 has no default: name one \
                    with --model or DUOLOGUE_MODEL";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);

    let mut rpc = duologue(&folder, &["rpc"]);
    rpc.env("OLLAMA_HOST", "127.0.0.1:9").env("OLLAMA_API_KEY", KEY);
    let ended = Once::start(rpc).finish();
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("OLLAMA_HOST is set, but no engine is chosen"), "{ended:?}");
}

#[test]
fn a_call_of_a_made_up_tool_goes_back_to_ollama_in_its_pattern() {
    let call = json!({ "function": { "name": "functions.get_time", "arguments": {} } });
    OLLAMA.check_made_up_call(answer(vec![calls(json!([call]))], "stop"));
}

#[test]
fn reasoning_that_ollama_refuses_is_left_out() {
    let script = answer(vec![thinking("hm"), text("one")], "stop");
    let words = "invalid message: unknown field thinking";
    OLLAMA.check_refused_reasoning(script, words, r#""thinking":"hm""#);
}

#[test]
fn a_prompt_may_be_an_image_alone() {
    let request = OLLAMA.with_image_alone();
    let message = &request["messages"][0];
    assert_eq!(message["images"].as_array().expect("images").len(), 1, "{request}");
    assert_eq!(message["content"], "", "a message has a content, also without text");
}

#[test]
fn ollama_may_have_nothing_to_add_to_a_result() {
    let call = json!([{ "function": { "name": "get_time", "arguments": {} } }]);
    let called = answer(vec![calls(call)], "stop");
    OLLAMA.check_silence_after_results(called, "call_0", answer(Vec::new(), "stop"));
}
