//! Servers that refuse a part of a request that a call can do without: the request is sent once more.

use crate::frames::{errors, finished_text, submit};
use crate::interface::{Interface, declare_get_time, return_results};
use crate::once::run;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, openai};
use serde_json::{Value, json};

/// A refusal in the form of Mistral's server.
fn refused_options() -> Vec<Step> {
    let why = json!([{ "type": "extra_forbidden", "msg": "Extra inputs are not permitted",
                       "loc": ["body", "stream_options", "include_usage"] }]);
    let error = json!({ "object": "error", "message": { "detail": why } });
    vec![Step::Status(422, Vec::new(), error.to_string())]
}

/// Once for a server: later requests go without what it refuses.
#[test]
fn a_member_that_a_server_refuses_is_left_out() {
    let provider = Provider::start(vec![refused_options(), says("one"), says("two")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hi"), "ok");
    assert_eq!(server.turn("r2", "again"), "ok");
    let transcript = server.finish();
    assert_eq!(finished_text(&transcript.frames, "r1"), "one");
    assert_eq!(provider.requests(), 3);
    let has_options = |number| provider.wait_request(number).body.get("stream_options").is_some();
    assert_eq!([1, 2, 3].map(has_options), [true, false, false]);
    let line = "may refuse: stream_options";
    assert_eq!(transcript.stderr.matches(line).count(), 1, "{}", transcript.stderr);
    assert!(errors(&transcript.frames, "r1").is_empty());
}

#[test]
fn a_request_that_is_refused_without_the_part_as_well_fails_with_the_first_error() {
    let other = r#"{"error":{"message":"messages[0] is odd"}}"#;
    let other = vec![Step::Status(400, Vec::new(), other.to_owned())];
    let provider = Provider::start(vec![refused_options(), other, says("fine")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hi"), "failed");
    assert_eq!(server.turn("r2", "again"), "ok");
    let frames = server.finish().frames;
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.text("/error/message").contains("include_usage"), "{error:?}");
    // The part was not the reason: it is sent again.
    let has_options = |number| provider.wait_request(number).body.get("stream_options").is_some();
    assert_eq!([1, 2, 3].map(has_options), [true, false, true]);
}

#[test]
fn a_request_that_is_refused_for_another_reason_is_sent_once() {
    for (status, message) in [
        (400, "Invalid value for 'temperature'"),
        (400, "messages[0] was flagged by the content policy"),
        (400, "messages resulted in 9 tokens: this model's maximum context length is 8"),
        (400, "Incorrect API key provided, see stream_options"),
        (401, "stream_options"),
        (404, "stream_options"),
        (429, "stream_options"),
        (500, "stream_options"),
    ] {
        let error = json!({ "error": { "message": message } }).to_string();
        let provider = Provider::start(vec![vec![Step::Status(status, Vec::new(), error)]]);
        let mut server = openai(&provider, &["--retries", "0", "--compact", "off"]).start();
        assert_eq!(server.turn("r1", "hi"), "failed", "{message}");
        server.finish();
        assert_eq!(provider.requests(), 1, "{message}");
    }
}

/// The schema goes into the prompt then, unless it was asked for in its field.
#[test]
fn a_schema_that_a_server_refuses_goes_into_the_prompt() {
    let folder = Folder::new();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } },
                         "required": ["a"], "additionalProperties": false });
    std::fs::write(folder.path("schema.json"), schema.to_string()).expect("a file");
    for (structured, is_asked_again) in [(&[][..], true), (&["-O", "structured=native"], false)] {
        let error = r#"{"error":{"message":"response_format is not supported"}}"#;
        let refusal = vec![Step::Status(400, Vec::new(), error.to_owned())];
        let provider = Provider::start(vec![refusal, says(r#"{"a":1}"#)]);
        let base_url = provider.base_url();
        let words = ["exec", "hi", "--model", "m", "--base-url", &base_url, "--schema"];
        let words = [&words[..], &["schema.json"], structured].concat();
        let ended = run(&folder, &words);
        assert_eq!(ended.status == 0, is_asked_again, "{ended:?}");
        if is_asked_again {
            let body = provider.wait_request(2).body;
            assert!(body.get("response_format").is_none(), "{body}");
            assert!(body["messages"][0].to_string().contains("additionalProperties"), "{body}");
        }
        assert_eq!(provider.requests(), if is_asked_again { 2 } else { 1 });
    }
}

/// Words of Groq, Fireworks, Google, llama.cpp and vLLM: for a schema beside tools, and for one that is too much.
#[test]
fn a_schema_that_a_server_refuses_in_its_own_words_goes_into_the_prompt() {
    let folder = Folder::new();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } },
                         "required": ["a"], "additionalProperties": false });
    std::fs::write(folder.path("schema.json"), schema.to_string()).expect("a file");
    for message in [
        "json mode cannot be combined with tool/function calling",
        "You cannot specify response format and function call at the same time",
        "Function calling with a response mime type: 'application/json' is unsupported",
        "failed to parse grammar",
        "The provided JSON schema contains features not supported by xgrammar.",
    ] {
        let error = json!({ "error": { "message": message } }).to_string();
        let refusal = vec![Step::Status(400, Vec::new(), error)];
        let provider = Provider::start(vec![refusal, says(r#"{"a":1}"#)]);
        let base_url = provider.base_url();
        let words = ["exec", "hi", "--model", "m", "--base-url", &base_url];
        let ended = run(&folder, &[&words[..], &["--schema", "schema.json"]].concat());
        assert_eq!(ended.status, 0, "{message}: {ended:?}");
        assert_eq!(provider.requests(), 2, "{message}");
        let body = provider.wait_request(2).body;
        assert!(body.get("response_format").is_none(), "{message}: {body}");
        assert!(body["messages"][0].to_string().contains("additionalProperties"), "{body}");
    }
}

/// Three turns with a schema at a server that refuses requests with `member`, and says no more than that they have a
/// wrong form: which requests had the usage option, which had the field for the schema, and stderr.
fn turns_with_schema(member: &'static str, settings: &Value) -> (Vec<bool>, Vec<bool>, String) {
    let provider = Provider::deciding(move |request| match request.body.get(member) {
        Some(_) => {
            let error = r#"{"error":{"message":"Extra inputs are not permitted"}}"#;
            vec![Step::Status(400, Vec::new(), error.to_owned())]
        }
        None => says(r#"{"a":1}"#),
    });
    let mut server = openai(&provider, &[]).start();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } },
                         "required": ["a"], "additionalProperties": false });
    for id in ["r1", "r2", "r3"] {
        let submit = json!({ "prompt": "hi", "responseSchema": schema, "settings": settings });
        server.send(json!({ "requestId": id, "submit": submit }).to_string());
        assert_eq!(server.wait_done(id), "ok");
    }
    let stderr = server.finish().stderr;
    let bodies: Vec<_> =
        (1..=provider.requests()).map(|number| provider.wait_request(number).body).collect();
    let has = |name: &str| bodies.iter().map(|body| body.get(name).is_some()).collect();
    (has("stream_options"), has("response_format"), stderr)
}

/// The schema is left out only if the request is refused without everything else that it may be about, too.
#[test]
fn a_guess_costs_the_schema_only_where_the_schema_is_refused() {
    let line = "may refuse: the schema of the answer";
    for settings in [json!({}), json!({ "structured": "native" })] {
        let (options, schemas, stderr) = turns_with_schema("stream_options", &settings);
        assert_eq!(options, [true, false, true, false, false], "{settings}");
        assert_eq!(schemas, [true; 5], "{settings}");
        assert!(!stderr.contains("the schema of the answer"), "{stderr}");
    }
    let (options, schemas, stderr) = turns_with_schema("response_format", &json!({}));
    assert_eq!(schemas, [true, true, false, true, true, false, false]);
    assert_eq!(options, [true, false, false, true, false, false, true]);
    assert_eq!(stderr.matches(line).count(), 2, "{stderr}");
}

#[test]
fn an_error_says_nothing_of_the_schema_of_an_answer_where_there_is_none() {
    let error = json!({ "error": { "message": "failed to parse grammar" } }).to_string();
    let provider = Provider::start(vec![vec![Step::Status(400, Vec::new(), error)]]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hi"), "failed");
    let frames = server.finish().frames;
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    let message = error.text("/error/message");
    assert!(message.contains("parse grammar") && !message.contains("structured"), "{message}");
}

/// The server is known to refuse the schema, and refuses then what is left of the request.
#[test]
fn an_error_says_nothing_of_a_schema_that_was_not_sent() {
    let refusal = |message: &str| {
        let error = json!({ "error": { "message": message } }).to_string();
        vec![Step::Status(400, Vec::new(), error)]
    };
    let named = refusal("response_format is not supported");
    let script = vec![named, says(r#"{"a":1}"#), refusal("failed to parse grammar")];
    let provider = Provider::start(script);
    let mut server = openai(&provider, &[]).start();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } },
                         "required": ["a"], "additionalProperties": false });
    for (id, end) in [("r1", "ok"), ("r2", "failed")] {
        let submit = json!({ "prompt": "hi", "responseSchema": schema });
        server.send(json!({ "requestId": id, "submit": submit }).to_string());
        assert_eq!(server.wait_done(id), end);
    }
    let frames = server.finish().frames;
    let has_schema = |number| {
        let body = provider.wait_request(number).body;
        body.get("response_format").is_some()
    };
    assert_eq!([1, 2, 3].map(has_schema), [true, false, false]);
    assert_eq!(provider.requests(), 3);
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    let message = error.text("/error/message");
    assert!(message.contains("parse grammar") && !message.contains("structured"), "{message}");
}

/// DeepSeek's form of reasoning, and a server that takes it no more.
#[test]
fn reasoning_that_a_server_refuses_is_left_out() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let script = vec![Step::Reasoning("hm".to_owned()), Step::Text("one".to_owned()), Step::Done];
    let words = "messages[1]: unknown field `reasoning_content`";
    OPENAI.check_refused_reasoning(script, words, r#""reasoning_content":"hm""#);
}

/// In the form of Groq, and of a proxy that checks what it is sent.
#[test]
fn reasoning_under_other_names_is_left_out_where_it_is_refused() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let block = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
    for (delta, words, kept) in [
        (
            json!({ "reasoning": "hm" }),
            "'messages.1' : for 'role:assistant' the following must be satisfied\
             [('messages.1' : property 'reasoning' is unsupported)]",
            r#""reasoning":"hm""#,
        ),
        (
            json!({ "thinking_blocks": [block] }),
            "messages.1.thinking_blocks: Extra inputs are not permitted",
            r#""thinking_blocks":[{"#,
        ),
    ] {
        let thought = json!({ "choices": [{ "delta": delta }] });
        let script =
            vec![Step::Event(thought.to_string()), Step::Text("one".to_owned()), Step::Done];
        OPENAI.check_refused_reasoning(script, words, kept);
    }
}

/// An answer of a model that does not think, which calls a tool.
fn calls_tool() -> Vec<Step> {
    let call = json!({ "index": 0, "id": "call_a",
                       "function": { "name": "get_time", "arguments": "{}" } });
    let choices = json!([{ "delta": { "tool_calls": [call] } }]);
    let called = Step::Event(json!({ "choices": choices }).to_string());
    vec![called, Step::Finish("tool_calls", None)]
}

/// A refusal in the form of DeepSeek's server.
fn wants_reasoning() -> Vec<Step> {
    let why = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let error = json!({ "error": { "message": why, "type": "invalid_request_error" } });
    vec![Step::Status(400, Vec::new(), error.to_string())]
}

/// As after a switch to a model that thinks, and once for it.
#[test]
fn answers_without_the_reasoning_that_a_model_requires_say_that_there_is_none() {
    let scripts = vec![calls_tool(), wants_reasoning(), says("done"), says("bye")];
    let provider = Provider::start(scripts);
    let mut server = openai(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "hi"));
    return_results(&mut server, &["call_a"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "again"), "ok");
    let transcript = server.finish();
    assert_eq!(provider.requests(), 4);
    let said = |number: usize| {
        let body = provider.wait_request(number).body;
        let messages = body["messages"].as_array().expect("messages").clone();
        messages.iter().map(|it| it.get("reasoning_content").cloned()).collect::<Vec<_>>()
    };
    let empty = Some(json!(""));
    assert_eq!(said(2), [None, None, None]);
    assert_eq!(said(3), [None, empty.clone(), None]);
    assert_eq!(said(4), [None, empty.clone(), None, empty, None]);
    let line = "may refuse: answers without their reasoning";
    assert_eq!(transcript.stderr.matches(line).count(), 1, "{}", transcript.stderr);
}

/// As Bedrock does; others take the calls without the tools.
#[test]
fn tools_that_are_gone_are_declared_where_their_calls_are_refused_without() {
    let why =
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
    let error = json!({ "error": { "message": why } }).to_string();
    let refusal = vec![Step::Status(400, Vec::new(), error)];
    let scripts = vec![calls_tool(), says("one"), refusal, says("two"), says("three")];
    let provider = Provider::start(scripts);
    let mut server = openai(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "hi"));
    return_results(&mut server, &["call_a"]);
    assert_eq!(server.wait_done("r1"), "ok");
    let none = json!({ "tools": [], "revision": 2 });
    server.send(json!({ "requestId": "none", "declareTools": none }).to_string());
    assert_eq!(server.wait_done("none"), "ok");
    assert_eq!(server.turn("r2", "again"), "ok");
    assert_eq!(server.turn("r3", "once more"), "ok");
    let transcript = server.finish();
    assert_eq!(provider.requests(), 5);
    let tools = |number| provider.wait_request(number).body.get("tools").cloned();
    let declared = json!([{ "type": "function", "function": {
        "name": "get_time", "description": "Not available.",
        "parameters": { "type": "object", "properties": {} },
    } }]);
    assert_eq!([3, 4, 5].map(tools), [None, Some(declared.clone()), Some(declared)]);
    let line = "may refuse: calls of tools that are gone";
    assert_eq!(transcript.stderr.matches(line).count(), 1, "{}", transcript.stderr);
}

#[test]
fn reasoning_that_is_required_and_unknown_is_an_error_that_says_what_to_do() {
    let provider = Provider::start(vec![calls_tool(), wants_reasoning(), wants_reasoning()]);
    let mut server = openai(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "hi"));
    return_results(&mut server, &["call_a"]);
    assert_eq!(server.wait_done("r1"), "failed");
    let frames = server.finish().frames;
    assert_eq!(provider.requests(), 3);
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    let message = error.text("/error/message");
    let advice = r#"-O 'extra_body={"thinking":{"type":"disabled"}}'"#;
    assert!(message.contains("must be passed back") && message.contains(advice), "{message}");
}
