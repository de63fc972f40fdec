//! The gemini engine: the real binary against a scripted server with Google's `generateContent`.

use crate::frames::{finished_text, submit};
use crate::interface::{Interface, check_choices, declare_get_time, return_results};
use crate::provider::{Provider, Request, Step};
use crate::server::{KEY, Launch};
use serde_json::{Value, json};

/// `duologue rpc <args>`, with `provider`.
fn gemini(provider: &Provider, args: &[&str]) -> Launch {
    let base_url = provider.base_url();
    let base_url = base_url.trim_end_matches("/v1");
    let engine = ["rpc", "--engine", "gemini", "--model", "scripted"];
    let launch = Launch::new(&[&engine, args].concat()).secret("GEMINI_API_KEY", KEY);
    launch.env("GEMINI_BASE_URL", base_url)
}

pub(crate) const GEMINI: Interface = Interface { engine: "gemini", launch: gemini, says };

fn event(chunk: &Value) -> Step {
    Step::Bytes(format!("data: {chunk}\r\n\r\n").into_bytes())
}

/// The next parts of an answer.
fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "usageMetadata": { "promptTokenCount": 12 }, "modelVersion": "scripted" })
}

/// The last parts of an answer that ends for this reason.
fn last(parts: Value, reason: &str) -> Value {
    let mut last = chunk(parts);
    last["candidates"][0]["finishReason"] = reason.into();
    last["usageMetadata"] = json!({ "promptTokenCount": 12, "cachedContentTokenCount": 8,
        "candidatesTokenCount": 4, "thoughtsTokenCount": 30 });
    last
}

fn says(words: &str) -> Vec<Step> {
    vec![event(&last(json!([{ "text": words }]), "STOP"))]
}

fn call(city: &str, id: Option<&str>, signature: Option<&str>) -> Value {
    let mut part = json!({ "functionCall": { "name": "get_time", "args": { "city": city } } });
    if let Some(id) = id {
        part["functionCall"]["id"] = id.into();
    }
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

/// An answer that calls a server's tool for an image.
pub(crate) fn calls_for_image() -> Vec<Step> {
    let call = json!({ "name": "act", "args": { "text": "image" } });
    vec![event(&last(json!([{ "functionCall": call, "thoughtSignature": "c2ln" }]), "STOP"))]
}

fn contents(request: &Request) -> Vec<Value> {
    request.body["contents"].as_array().expect("contents").clone()
}

#[test]
fn gemini_streams_text_and_reasoning_and_counts_them() {
    let script = vec![
        event(&chunk(json!([{ "text": "hm", "thought": true }]))),
        event(&chunk(json!([{ "text": "hel" }]))),
        event(&last(json!([{ "text": "lo" }]), "STOP")),
    ];
    let (payload, request) = GEMINI.check_first_turn(script);
    assert_eq!(payload["stopReason"], "STOP", "{payload}");
    let usage = &payload["usage"];
    for (name, count) in [("inputTokens", 12), ("outputTokens", 34), ("cachedTokens", 8)] {
        assert_eq!(usage[name], count, "{payload}");
    }

    let path = "/v1beta/models/scripted:streamGenerateContent?alt=sse";
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path));
    assert_eq!(request.header("x-goog-api-key"), Some(KEY));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body["systemInstruction"], json!({ "parts": [{ "text": "be brief" }] }));
    assert_eq!(contents(&request), [json!({ "role": "user", "parts": [{ "text": "hi" }] })]);
}

#[test]
fn gemini_gets_signatures_back_in_their_places_over_two_rounds_of_calls() {
    let first = vec![
        event(&chunk(json!([{ "text": "Two cities.", "thought": true }]))),
        event(&chunk(
            json!([{ "text": "Let me " }, { "text": "look.", "thoughtSignature": "dHg=" }]),
        )),
        event(&chunk(json!([call("Berlin", Some("f-1"), Some("c2ln"))]))),
        event(&last(json!([call("Rome", Some("f-2"), None)]), "STOP")),
    ];
    let second = vec![event(&last(json!([call("Oslo", None, Some("Mg=="))]), "STOP"))];
    let provider = Provider::start(vec![first, second, says("Noon."), says("Bye.")]);
    let mut server = gemini(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["f-1", "f-2"]);
    return_results(&mut server, &["call_0"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r1"), "Let me look.Noon.");

    let requests = [1, 2, 3, 4].map(|number| provider.wait_request(number));
    let declared = &requests[0].body["tools"][0]["functionDeclarations"][0];
    assert_eq!(declared["name"], "get_time");
    assert_eq!(declared["parametersJsonSchema"]["properties"]["city"]["type"], "string");
    let response = |id: Option<&str>, output: &str| {
        let mut part =
            json!({ "functionResponse": { "name": "get_time", "response": { "output": output } } });
        if let Some(id) = id {
            part["functionResponse"]["id"] = id.into();
        }
        part
    };
    let expected = [
        json!({ "role": "user", "parts": [{ "text": "what time is it?" }] }),
        json!({ "role": "model", "parts": [
            { "text": "Let me " },
            { "text": "look.", "thoughtSignature": "dHg=" },
            call("Berlin", Some("f-1"), Some("c2ln")),
            call("Rome", Some("f-2"), None),
        ] }),
        json!({ "role": "user", "parts": [
            response(Some("f-1"), r#"{"of":"f-1"}"#),
            response(Some("f-2"), r#"{"of":"f-2"}"#),
        ] }),
        json!({ "role": "model", "parts": [call("Oslo", None, Some("Mg=="))] }),
        json!({ "role": "user", "parts": [response(None, r#"{"of":"call_0"}"#)] }),
    ];
    assert_eq!(contents(&requests[1]), expected[..3]);
    assert_eq!(contents(&requests[2]), expected);
    // The next turn begins with all of it.
    let next = contents(&requests[3]);
    assert_eq!(next[..expected.len()], expected);
    assert_eq!(next.len(), expected.len() + 2);
}

#[test]
fn text_after_a_call_goes_back_to_gemini_before_the_result() {
    for id in [None, Some("call_0")] {
        let parts = json!([call("Berlin", id, None), { "text": "Let me see." }]);
        let body = GEMINI.with_results(vec![event(&last(parts, "STOP"))], &["call_0"]);
        let contents = body["contents"].as_array().expect("contents");
        let roles: Vec<_> = contents.iter().map(|content| content["role"].as_str()).collect();
        assert_eq!(roles, [Some("user"), Some("model"), Some("user")], "{body}");
        assert_eq!(contents[1]["parts"].as_array().map(Vec::len), Some(2), "{body}");
        assert!(contents[2]["parts"][0]["functionResponse"].is_object(), "{body}");
    }
}

#[test]
fn each_failure_of_gemini_is_one_typed_error_and_the_session_goes_on() {
    let report = |code: u16, status: &str, message: &str| json!({ "error": { "code": code, "message": message, "status": status } });
    let status = |code: u16, word: &str, message: &str| {
        vec![Step::Status(code, Vec::new(), json!([report(code, word, message)]).to_string())]
    };
    let begun = || vec![event(&chunk(json!([{ "text": "a part" }])))];
    let with = |more: Vec<Step>| [begun(), more].concat();
    let raw = |value: &Value| {
        let text = serde_json::to_string_pretty(value).expect("JSON");
        vec![Step::Bytes(text.into_bytes())]
    };
    let refused = format!("API key {KEY} is not valid");
    let too_long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let busy = report(503, "UNAVAILABLE", "overloaded");
    GEMINI.check_failures([
        ("401", status(401, "UNAUTHENTICATED", &refused), "auth"),
        ("403", status(403, "PERMISSION_DENIED", "no"), "auth"),
        ("429", status(429, "RESOURCE_EXHAUSTED", "slow down"), "rate_limited"),
        ("400", status(400, "INVALID_ARGUMENT", "bad"), "provider"),
        ("too long", status(400, "INVALID_ARGUMENT", too_long), "context_overflow"),
        ("500", status(500, "INTERNAL", "oops"), "provider"),
        ("empty", vec![Step::Head("text/event-stream")], "malformed_stream"),
        ("no finish reason", begun(), "malformed_stream"),
        ("event", with(vec![event(&busy)]), "provider"),
        ("raw lines", with(raw(&busy)), "provider"),
        ("raw list", with(raw(&json!([busy]))), "provider"),
        ("malformed", with(vec![Step::Event("{\"candidates\":".to_owned())]), "malformed_stream"),
        ("broken", with(vec![Step::Cut]), "network"),
        (
            "another interface",
            vec![Step::Event("{\"type\":\"message_start\"}".into())],
            "malformed_stream",
        ),
    ]);
}

/// The wait stands in the body; a daily limit would have a longer one and is not waited for.
#[test]
fn gemini_is_asked_again_after_the_wait_in_its_error() {
    let limited = |delay: &str| {
        let info =
            json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay });
        let error = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota",
            "details": [info] } });
        vec![Step::Status(429, Vec::new(), error.to_string())]
    };
    let provider = Provider::start(vec![limited("0.6s"), says("now")]);
    let mut server = gemini(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    let transcript = server.finish();
    assert_eq!(finished_text(&transcript.frames, "r1"), "now");
    // A quarter of the wait may be added by chance.
    let waited = ["trying again in 6", "trying again in 7"];
    assert!(waited.iter().any(|it| transcript.stderr.contains(it)), "{}", transcript.stderr);

    let provider = Provider::start(vec![limited("86400s"), says("never")]);
    let mut server = gemini(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "failed");
    let frames = server.finish().frames;
    assert_eq!(provider.requests(), 1);
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.text("/error/message").contains("requests a wait of 86400 s"), "{error:?}");
}

#[test]
fn an_answer_that_gemini_withholds_says_so() {
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
        "usageMetadata": { "promptTokenCount": 3 } });
    for (script, reason, class) in [
        (event(&last(json!([{ "text": "a part" }]), "MAX_TOKENS")), "MAX_TOKENS", "max_tokens"),
        (event(&last(json!([]), "SAFETY")), "SAFETY", "content_filter"),
        (event(&last(json!([{ "text": "a part" }]), "OTHER")), "OTHER", "other"),
        (event(&blocked), "PROHIBITED_CONTENT", "content_filter"),
    ] {
        GEMINI.check_end(vec![script], reason, class);
    }
}

#[test]
fn what_gemini_says_of_a_prompt_that_it_blocks_is_in_a_warning() {
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT",
        "blockReasonMessage": "The prompt is against the rules." } });
    let provider = Provider::start(vec![vec![event(&blocked)]]);
    let mut server = gemini(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    let stderr = server.finish().stderr;
    assert!(stderr.contains("The prompt is against the rules."), "{stderr}");
}

#[test]
fn a_cancel_closes_the_connection_to_gemini() {
    GEMINI.check_cancels(vec![event(&chunk(json!([{ "text": "a part" }])))]);
}

/// One submit with what a request may hold beside its text.
#[test]
fn a_request_to_gemini_has_settings_and_attachments() {
    let provider = Provider::start(vec![says("a"), says("more")]);
    let mut server = gemini(&provider, &[]).start();
    let submit = json!({
        "prompt": "what is this?",
        "attachments": [{ "mediaType": "application/pdf", "url": "data:application/pdf;base64,JVBERi0xLjcK" }],
        "settings": { "model": "other", "temperature": 0.5, "reasoning_effort": "low" },
    });
    server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "and?"), "ok");
    server.finish();
    let request = provider.wait_request(1);
    assert_eq!(request.path, "/v1beta/models/other:streamGenerateContent?alt=sse");
    let config = json!({ "temperature": 0.5,
        "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "low" } });
    assert_eq!(request.body["generationConfig"], config);
    let parts = json!([
        { "inlineData": { "mimeType": "application/pdf", "data": "JVBERi0xLjcK" } },
        { "text": "what is this?" },
    ]);
    assert_eq!(contents(&request), [json!({ "role": "user", "parts": parts })]);
    // They are those of that turn alone; what it held stays in the conversation.
    let next = provider.wait_request(2);
    assert!(next.path.contains("/models/scripted:"), "{}", next.path);
    assert_eq!(
        next.body["generationConfig"],
        json!({ "thinkingConfig": { "includeThoughts": true } })
    );
    assert_eq!(contents(&next)[0]["parts"], parts);
}

#[test]
fn the_key_of_gemini_alone_chooses_its_engine_where_no_other_provider_is_named() {
    check_choices(&[
        (&[("GEMINI_API_KEY", KEY)], &[], "gemini"),
        (&[("GEMINI_API_KEY", KEY)], &["--model", "m"], "gemini"),
        (&[("GEMINI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)], &[], "anthropic"),
        (&[("GEMINI_API_KEY", KEY), ("OPENAI_API_KEY", KEY)], &[], "openai"),
        (&[("GEMINI_API_KEY", KEY)], &["--base-url", "http://127.0.0.1:9"], "openai"),
    ]);
}

#[test]
fn each_name_of_the_key_of_gemini_is_read() {
    for (name, expected) in [("GOOGLE_API_KEY", "second"), ("GEMINI_API_KEY", "first")] {
        let provider = Provider::start(vec![says("a")]);
        let launch = gemini(&provider, &[]).env("GEMINI_API_KEY", "");
        let launch = launch.env("GOOGLE_API_KEY", "second");
        let launch = if name == "GEMINI_API_KEY" { launch.env(name, "first") } else { launch };
        let mut server = launch.start();
        assert_eq!(server.turn("r1", "hello"), "ok");
        server.finish();
        assert_eq!(provider.wait_request(1).header("x-goog-api-key"), Some(expected));
    }
}

#[test]
fn settings_of_gemini_that_cannot_work_name_its_variables() {
    let fails = |args: &[&str], expected: &str| GEMINI.check_unusable(args, expected);
    fails(
        &[],
        "duologue: Gemini requires a key: set DUOLOGUE_API_KEY, GEMINI_API_KEY or GOOGLE_API_KEY; for \
         another provider name its address with --base-url, DUOLOGUE_BASE_URL or GEMINI_BASE_URL",
    );
    fails(
        &["--base-url", "http://127.0.0.1:9"],
        "duologue: no model is named, and http://127.0.0.1:9 has no default: name one with --model or \
         DUOLOGUE_MODEL (`duologue models` lists them)",
    );
}

#[test]
fn a_call_of_a_made_up_tool_goes_back_to_gemini_in_its_pattern() {
    let call = json!({ "functionCall": { "name": "functions.get_time", "args": {} } });
    GEMINI.check_made_up_call(vec![event(&last(json!([call]), "STOP"))]);
}

/// The provider checks the names of each request.
#[test]
fn tools_whose_names_begin_with_a_digit_go_to_gemini_under_other_names() {
    let called = |name: &str| json!({ "functionCall": { "name": name, "args": {} } });
    let calls = json!([called("_7zip_2"), called("_7zip"), called("_-x")]);
    let script = vec![event(&last(calls, "STOP"))];
    let provider = Provider::start(vec![script, says("done"), says("again")]);
    let mut server = gemini(&provider, &[]).start();
    let tools = ["7zip", "_7zip", "-x"].map(|name| json!({ "name": name }));
    let declare = json!({ "tools": tools, "revision": 1 });
    server.send(json!({ "requestId": "t", "declareTools": declare }).to_string());
    server.send(submit("r1", "pack it"));
    for (number, name) in ["7zip", "_7zip", "-x"].into_iter().enumerate() {
        let asked = server.wait_event("FrontendToolCallRequested");
        assert_eq!(asked.payload("toolName"), name);
        let result = json!({ "toolCallId": asked.payload("toolCallId"), "result": { "of": name } });
        let id = format!("for-{number}");
        server.send(json!({ "requestId": id, "toolResult": result }).to_string());
    }
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    server.finish();
    let requests = [1, 2, 3].map(|number| provider.wait_request(number));
    let declared = requests[0].body["tools"][0]["functionDeclarations"].as_array().expect("tools");
    let names: Vec<_> = declared.iter().map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, [Some("_7zip_2"), Some("_7zip"), Some("_-x")]);
    for request in &requests[1..] {
        let contents = contents(request);
        for (at, (name, own)) in
            [("_7zip_2", "7zip"), ("_7zip", "_7zip"), ("_-x", "-x")].into_iter().enumerate()
        {
            assert_eq!(contents[1]["parts"][at]["functionCall"]["name"], name);
            let response = &contents[2]["parts"][at]["functionResponse"];
            assert_eq!(response["name"], name);
            assert_eq!(response["response"]["output"], json!({ "of": own }).to_string());
        }
    }
}

#[test]
fn signatures_that_gemini_refuses_are_left_out() {
    let parts = json!([{ "text": "one", "thoughtSignature": "c2ln" }]);
    let words = "Thought signature is not valid";
    GEMINI.check_refused_reasoning(vec![event(&last(parts, "STOP"))], words, "c2ln");
}

#[test]
fn a_prompt_may_be_an_image_alone() {
    let request = GEMINI.with_image_alone();
    let parts = request["contents"][0]["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), 1, "{request}");
    assert_eq!(parts[0]["inlineData"]["mimeType"], "image/png", "{request}");
}

#[test]
fn gemini_may_have_nothing_to_add_to_a_result() {
    let called = vec![event(&last(json!([call("Berlin", None, Some("c2ln"))]), "STOP"))];
    GEMINI.check_silence_after_results(called, "call_0", vec![event(&last(json!([]), "STOP"))]);
}

/// To ask again runs no tool again. What stays empty is the answer.
#[test]
fn gemini_is_asked_again_for_an_answer_to_results_that_is_empty() {
    let called = || vec![event(&last(json!([call("Berlin", None, Some("c2ln"))]), "STOP"))];
    let empty = || vec![event(&last(json!([]), "STOP"))];
    for (second, text) in [(says("Noon."), "Noon."), (empty(), "")] {
        let provider = Provider::start(vec![called(), empty(), second]);
        let mut server = gemini(&provider, &["--retries", "1"]).start();
        declare_get_time(&mut server);
        server.send(submit("r1", "hi"));
        return_results(&mut server, &["call_0"]);
        assert_eq!(server.wait_done("r1"), "ok");
        let frames = server.finish().frames;
        assert_eq!(finished_text(&frames, "r1"), text);
        assert_eq!(provider.requests(), 3);
        let asked = frames.iter().filter(|it| it.is_event("FrontendToolCallRequested"));
        assert_eq!(asked.count(), 1);
    }
}

/// Of an answer that is empty by chance nothing was shown.
#[test]
fn gemini_is_asked_again_for_an_answer_that_is_empty() {
    let empty = vec![event(&last(json!([]), "STOP"))];
    let malformed = vec![event(&last(json!([]), "MALFORMED_FUNCTION_CALL"))];
    GEMINI.check_retries(vec![empty, malformed]);
}
