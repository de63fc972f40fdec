//! The responses engine: the real binary against a scripted server with OpenAI's Responses.

use crate::frames::{finished_text, submit};
use crate::interface::{Interface, declare_get_time, get_time_schema, return_results};
use crate::once::run;
use crate::provider::{Provider, Request, Step};
use crate::server::{Folder, KEY, Launch};
use serde_json::{Value, json};

/// `duologue rpc <args>`, with `provider`.
fn responses(provider: &Provider, args: &[&str]) -> Launch {
    let base_url = provider.base_url();
    let engine = ["rpc", "--engine", "responses", "--model", "scripted"];
    let launch = Launch::new(&[&engine, args].concat()).secret("OPENAI_API_KEY", KEY);
    launch.env("OPENAI_BASE_URL", base_url)
}

pub(crate) const RESPONSES: Interface = Interface { engine: "responses", launch: responses, says };

fn event(event: Value) -> Step {
    let kind = event["type"].as_str().expect("a type");
    Step::Bytes(format!("event: {kind}\ndata: {event}\n\n").into_bytes())
}

fn start() -> Step {
    let response = json!({ "object": "response", "status": "in_progress", "output": [] });
    event(json!({ "type": "response.created", "sequence_number": 0, "response": response }))
}

/// One item: as it begins, its pieces, and whole. The kinds of pieces are as in the events' names.
fn item(index: u64, begun: Value, deltas: &[(&str, &str)], whole: Value) -> Vec<Step> {
    let added =
        json!({ "type": "response.output_item.added", "output_index": index, "item": begun });
    let done = json!({ "type": "response.output_item.done", "output_index": index, "item": whole });
    let delta = |(kind, text): &(&str, &str)| {
        event(json!({ "type": format!("response.{kind}.delta"), "item_id": "i",
            "output_index": index, "delta": text }))
    };
    [event(added)].into_iter().chain(deltas.iter().map(delta)).chain([event(done)]).collect()
}

fn message(text: &str, phase: Option<&str>) -> Value {
    let content = [json!({ "type": "output_text", "text": text, "annotations": [] })];
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": content,
        "phase": phase })
}

fn text(index: u64, text: &str) -> Vec<Step> {
    let begun = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [] });
    item(index, begun, &[("output_text", text)], message(text, None))
}

fn reasoning(index: u64, text: &str, encrypted: &str) -> Vec<Step> {
    let item_of = |parts: Value, encrypted: &str| json!({ "type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": encrypted });
    let whole = item_of(json!([{ "type": "summary_text", "text": text }]), encrypted);
    item(index, item_of(json!([]), "early"), &[("reasoning_summary_text", text)], whole)
}

fn tool(index: u64, id: &str, pieces: &[&str]) -> Vec<Step> {
    let call = |arguments: &str| {
        json!({ "type": "function_call", "id": "fc_1", "call_id": id, "name": "get_time",
            "arguments": arguments })
    };
    let deltas: Vec<_> = pieces.iter().map(|piece| ("function_call_arguments", *piece)).collect();
    item(index, call(""), &deltas, call(&pieces.concat()))
}

fn ending(kind: &str, more: Value) -> Step {
    let mut response = json!({ "object": "response", "status": kind, "usage": {
        "input_tokens": 113, "output_tokens": 9,
        "input_tokens_details": { "cached_tokens": 100 },
        "output_tokens_details": { "reasoning_tokens": 5 },
    } });
    for (name, value) in more.as_object().expect("an object") {
        response[name] = value.clone();
    }
    event(json!({ "type": format!("response.{kind}"), "response": response }))
}

/// An answer of `items` that ends well.
fn answer(items: Vec<Vec<Step>>) -> Vec<Step> {
    let ping = event(json!({ "type": "keepalive", "sequence_number": 1 }));
    [vec![start(), ping], items.concat(), vec![ending("completed", json!({}))]].concat()
}

fn says(words: &str) -> Vec<Step> {
    answer(vec![text(0, words)])
}

/// An answer that calls a server's tool for an image.
pub(crate) fn calls_for_image() -> Vec<Step> {
    let (id, arguments) = ("call_a", r#"{"text":"image"}"#);
    let call = |arguments: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": id, "name": "act", "arguments": arguments });
    let deltas = [("function_call_arguments", arguments)];
    answer(vec![item(0, call(""), &deltas, call(arguments))])
}

fn said(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

#[test]
fn text_after_a_call_stands_before_its_result() {
    for before in [vec![], vec![reasoning(0, "hm", "x")]] {
        let at = before.len() as u64;
        let items =
            [before, vec![tool(at, "call_a", &["{}"]), text(at + 1, "Let me see.")]].concat();
        let body = RESPONSES.with_results(answer(items), &["call_a"]);
        let input = body["input"].as_array().expect("items");
        let is_text = |item: &Value| item["role"] == "assistant";
        assert!(input.iter().any(is_text), "{body}");
        assert_eq!(input.last().expect("an item")["type"], "function_call_output", "{body}");
    }
}

/// Without a word no summary is asked for: some accounts are refused one.
#[test]
fn a_summary_of_the_reasoning_is_asked_for_where_the_person_wants_it() {
    let folder = Folder::new();
    let profile = "profiles:\n  open:\n    settings: {reasoning-summary: detailed}\n";
    std::fs::write(folder.path("profiles.yaml"), profile).expect("a file");
    let registries = folder.name("profiles.yaml");
    let of_profile = ["--profile", "open", "--profile-registries", &registries];
    for (options, expected) in [
        (&[][..], Value::Null),
        (&["--reasoning-summary", "auto"], json!({ "summary": "auto" })),
        (&["--reasoning-summary", "none"], Value::Null),
        (
            &["--reasoning-summary", "concise", "--reasoning-effort", "low"],
            json!({ "effort": "low", "summary": "concise" }),
        ),
        (&of_profile, json!({ "summary": "detailed" })),
    ] {
        let provider = Provider::start(vec![answer(vec![
            reasoning(0, "First I look.", "x"),
            text(1, "Done."),
        ])]);
        let mut server = responses(&provider, options).start();
        assert_eq!(server.turn("a", "hi"), "ok");
        let frames = server.finish().frames;
        let reasoned = frames.iter().find(|frame| frame.is_event("ChatReasoningSegmentFinished"));
        let reasoned = reasoned.map(|frame| frame.0["uiEvent"]["payload"]["content"].clone());
        assert_eq!(reasoned, Some(json!("First I look.")), "{options:?}");
        assert_eq!(provider.wait_request(1).body["reasoning"], expected, "{options:?}");
    }
}

#[test]
fn text_and_summaries_are_streamed_and_counted() {
    let (payload, request) =
        RESPONSES.check_first_turn(answer(vec![reasoning(0, "hm", "x"), text(1, "hello")]));
    assert_eq!(
        (&payload["stopReason"], &payload["finishClass"]),
        (&json!("completed"), &json!("completed"))
    );
    for (name, count) in [("inputTokens", 113), ("outputTokens", 9), ("cachedTokens", 100)] {
        assert_eq!(payload["usage"][name], count, "{payload}");
    }

    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/responses"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let expected = json!({
        "model": "scripted", "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": "be brief",
        "input": [said("user", "input_text", "hi")],
    });
    assert_eq!(request.body, expected);
}

#[test]
fn calls_at_once_get_their_results_and_reasoning_goes_back_encrypted() {
    let comment = item(
        1,
        json!({ "type": "message", "content": [], "phase": "commentary" }),
        &[("output_text", "Let me "), ("output_text", "look.")],
        message("Let me look.", Some("commentary")),
    );
    let calls = answer(vec![
        reasoning(0, "Two cities.", "ZW5j"),
        comment,
        tool(2, "call_a", &["{\"city\":", "\"Berlin\"}"]),
        tool(3, "call_b", &["{}"]),
    ]);
    let again = answer(vec![reasoning(0, "", "bW9yZQ=="), tool(1, "call_c", &["{}"])]);
    let provider = Provider::start(vec![calls, again, says("Noon."), says("Bye.")]);
    let mut server = responses(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["call_a", "call_b"]);
    return_results(&mut server, &["call_c"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r1"), "Let me look.Noon.");

    let [first, second, third, fourth] = [1, 2, 3, 4].map(|number| provider.wait_request(number));
    let tool = &first.body["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["parameters"], &tool["strict"]),
        (&json!("get_time"), &get_time_schema(), &json!(false))
    );
    let call_of = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "get_time", "arguments": arguments });
    let result_of = |id: &str, output: &str| json!({ "type": "function_call_output", "call_id": id, "output": output });
    let comment = json!({ "role": "assistant", "content": "Let me look.", "phase": "commentary" });
    let expected = json!([
        said("user", "input_text", "what time is it?"),
        { "type": "reasoning", "id": "rs_1",
          "summary": [{ "type": "summary_text", "text": "Two cities." }],
          "encrypted_content": "ZW5j" },
        comment,
        call_of("call_a", "{\"city\":\"Berlin\"}"),
        call_of("call_b", "{}"),
        result_of("call_a", r#"{"of":"call_a"}"#),
        result_of("call_b", r#"{"of":"call_b"}"#),
    ]);
    assert_eq!(second.body["input"], expected);
    // Each request begins with all of the one before.
    let inputs = [second, third, fourth].map(|request: Request| request.body["input"].clone());
    let inputs = inputs.each_ref().map(|input| input.as_array().expect("a list"));
    assert_eq!(&inputs[1][..7], &inputs[0][..]);
    assert_eq!(inputs[1][7]["encrypted_content"], "bW9yZQ==");
    assert_eq!(&inputs[2][..inputs[1].len()], &inputs[1][..]);
}

#[test]
fn each_failure_of_it_is_one_typed_error_and_the_session_goes_on() {
    let error = |code: &str, message: &str| json!({ "message": message, "code": code, "type": "invalid_request_error" });
    let status = |status, code: &str, message: &str| {
        let body = json!({ "error": error(code, message) });
        vec![Step::Status(status, Vec::new(), body.to_string())]
    };
    let with = |more: Vec<Step>| [vec![start()], text(0, "a part"), more].concat();
    let failed = |code: &str| ending("failed", json!({ "error": error(code, "oh") }));
    let refused = format!("Incorrect API key provided: {KEY}");
    RESPONSES.check_failures([
        ("401", status(401, "invalid_api_key", &refused), "auth"),
        ("429", status(429, "rate_limit_exceeded", "slow down"), "rate_limited"),
        ("400", status(400, "invalid_value", "bad"), "provider"),
        ("too long", status(400, "context_length_exceeded", "too long"), "context_overflow"),
        ("500", status(500, "server_error", "we are down"), "provider"),
        ("an empty answer", vec![Step::Status(200, Vec::new(), String::new())], "malformed_stream"),
        ("no last event", with(Vec::new()), "malformed_stream"),
        ("another end mark", with(vec![Step::Done]), "malformed_stream"),
        ("failed", with(vec![failed("server_error")]), "provider"),
        ("limited", with(vec![failed("rate_limit_exceeded")]), "rate_limited"),
        (
            "an error",
            with(vec![event(json!({ "type": "error", "code": "server_error", "message": "oh" }))]),
            "provider",
        ),
        ("malformed", with(vec![Step::Event("{\"type\":".to_owned())]), "malformed_stream"),
        ("broken", with(vec![Step::Cut]), "network"),
        ("another interface", vec![Step::Text("a".to_owned()), Step::Done], "malformed_stream"),
    ]);
}

#[test]
fn a_passing_failure_is_tried_again_also_in_an_answer_that_has_not_begun() {
    let later = vec![("retry-after-ms", "1".to_owned())];
    let busy = vec![Step::Status(429, later, r#"{"error":{"message":"slow down"}}"#.to_owned())];
    let error = json!({ "code": "server_error", "message": "oh" });
    let begun = vec![start(), ending("failed", json!({ "error": error }))];
    RESPONSES.check_retries(vec![busy, begun]);
}

#[test]
fn an_incomplete_answer_says_so() {
    for (reason, class) in [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "content_filter"),
        ("steered", "other"),
    ] {
        let end = ending("incomplete", json!({ "incomplete_details": { "reason": reason } }));
        let script = [vec![start()], text(0, "a part"), vec![end]].concat();
        RESPONSES.check_end(script, reason, class);
    }
}

#[test]
fn a_cancel_of_it_closes_the_connection() {
    RESPONSES.check_cancels([vec![start()], text(0, "a part")].concat());
}

/// OpenAI's key and address choose the engine for chat completions, as ever.
#[test]
fn the_engine_answers_only_where_it_is_named() {
    for (args, engine) in
        [(&["rpc"][..], "openai"), (&["rpc", "--engine", "responses"], "responses")]
    {
        let mut server = Launch::new(args).secret("OPENAI_API_KEY", KEY).start();
        let hello = server.wait_hello();
        let capabilities = hello.0["hello"]["capabilities"].to_string();
        assert!(capabilities.contains(&format!("engine={engine}\"")), "{capabilities}");
        assert!(capabilities.contains("model=gpt-4o-mini"), "{capabilities}");
        server.finish();
    }
    let folder = Folder::new();
    let ended = run(&folder, &["exec", "hello", "--engine", "responses"]);
    assert_eq!(ended.status, 1);
    let expected = "duologue: OpenAI requires a key: set DUOLOGUE_API_KEY or OPENAI_API_KEY";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
}

/// Two servers may have one model name, and only the one that encrypted the reasoning can read it.
#[test]
fn encrypted_reasoning_goes_to_no_other_server() {
    let script = answer(vec![reasoning(0, "hm", "ZW5j"), text(1, "one")]);
    let request = RESPONSES.switched(script);
    let input = request.body["input"].to_string();
    assert!(input.contains("one") && !input.contains("ZW5j"), "{input}");
}

#[test]
fn a_call_of_a_made_up_tool_goes_back_to_responses_in_its_pattern() {
    let call = json!({ "type": "function_call", "call_id": "x".repeat(100),
                       "name": "functions.get_time", "arguments": "{}" });
    RESPONSES.check_made_up_call(answer(vec![item(0, call.clone(), &[], call)]));
}

#[test]
fn reasoning_that_a_server_of_responses_refuses_is_left_out() {
    let script = answer(vec![reasoning(0, "hm", "ZW5j"), text(1, "one")]);
    for words in [
        "Invalid 'input[1].encrypted_content': it can't be verified",
        // As Azure has it.
        "The encrypted content for item rs_1 could not be verified.",
        "The encrypted content ZW5...j could not be verified.",
    ] {
        RESPONSES.check_refused_reasoning(script.clone(), words, "ZW5j");
    }
}

/// As servers want it that check the items with the types of OpenAI's client: whole items of an
/// answer, or plain messages. The scripted provider has these rules.
#[test]
fn two_turns_with_tools_are_taken_by_a_strict_server() {
    let called = |id: &str| answer(vec![reasoning(0, "hm", "ZW5j"), tool(1, id, &["{}"])]);
    let scripts = vec![called("call_a"), says("one"), called("call_b"), says("two")];
    let provider = Provider::start(scripts);
    let mut server = responses(&provider, &[]).start();
    declare_get_time(&mut server);
    for (turn, call) in [("r1", "call_a"), ("r2", "call_b")] {
        server.send(submit(turn, "hi"));
        return_results(&mut server, &[call]);
        assert_eq!(server.wait_done(turn), "ok");
    }
    server.finish();
    let body = provider.wait_request(4).body;
    let items = body["input"].as_array().expect("items");
    let kind = |item: &Value| item["type"].as_str().unwrap_or("answer").to_owned();
    let kinds: Vec<_> = items.iter().map(kind).collect();
    let round = ["message", "reasoning", "function_call", "function_call_output"];
    assert_eq!(kinds, [&round[..], &["answer"], &round].concat(), "{body}");
    assert_eq!(items[4], json!({ "role": "assistant", "content": "one" }));
    assert!(items.iter().all(|it| it["type"] != "reasoning" || it["id"] == "rs_1"), "{body}");
}

#[test]
fn a_prompt_may_be_an_image_alone() {
    let request = RESPONSES.with_image_alone();
    let content = request["input"][0]["content"].as_array().expect("parts");
    assert_eq!(content.len(), 1, "{request}");
    assert_eq!(content[0]["type"], "input_image", "{request}");
}

/// The reasoning before the silence has no message that it could go back with.
#[test]
fn a_model_of_responses_may_have_nothing_to_add_to_a_result() {
    let called = answer(vec![reasoning(0, "hm", "ZW5j"), tool(1, "call_a", &["{}"])]);
    for silent in [answer(Vec::new()), answer(vec![reasoning(0, "so", "ZW5k")])] {
        RESPONSES.check_silence_after_results(called.clone(), "call_a", silent);
    }
}
