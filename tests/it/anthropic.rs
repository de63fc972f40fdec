//! The anthropic engine: the real binary against a scripted server with Anthropic's Messages.

use crate::frames::{Frame, finished_text, snapshot, submit};
use crate::interface::{
    Interface, check_choices, declare_get_time, get_time_schema, return_results,
};
use crate::provider::{Provider, Request, Step};
use crate::server::{KEY, Launch};
use serde_json::{Value, json};

/// `duologue rpc <args>`, with `provider`.
fn anthropic(provider: &Provider, args: &[&str]) -> Launch {
    let base_url = provider.base_url();
    let engine = ["rpc", "--engine", "anthropic", "--model", "scripted"];
    let launch = Launch::new(&[&engine, args].concat()).secret("ANTHROPIC_API_KEY", KEY);
    launch.env("ANTHROPIC_BASE_URL", base_url)
}

pub(crate) const ANTHROPIC: Interface = Interface { engine: "anthropic", launch: anthropic, says };

fn event(event: Value) -> Step {
    let kind = event["type"].as_str().expect("a type");
    Step::Bytes(format!("event: {kind}\ndata: {event}\n\n").into_bytes())
}

fn start() -> Step {
    event(json!({ "type": "message_start", "message": {
        "type": "message", "role": "assistant", "content": [],
        "usage": { "input_tokens": 3, "cache_creation_input_tokens": 10,
                   "cache_read_input_tokens": 100, "output_tokens": 1 },
    } }))
}

/// One content block: as it begins, its pieces, and its end.
fn block(index: u64, begin: Value, deltas: &[Value]) -> Vec<Step> {
    let begin = json!({ "type": "content_block_start", "index": index, "content_block": begin });
    let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = json!({ "type": "content_block_stop", "index": index });
    let deltas = deltas.iter().map(|piece| event(delta(piece)));
    [event(begin)].into_iter().chain(deltas).chain([event(stop)]).collect()
}

fn text(index: u64, text: &str) -> Vec<Step> {
    block(
        index,
        json!({ "type": "text", "text": "" }),
        &[json!({ "type": "text_delta", "text": text })],
    )
}

fn thinking(index: u64, text: &str, signature: &str) -> Vec<Step> {
    let text = json!({ "type": "thinking_delta", "thinking": text });
    let signature = json!({ "type": "signature_delta", "signature": signature });
    let begin = json!({ "type": "thinking", "thinking": "", "signature": "" });
    block(index, begin, &[text, signature])
}

fn tool(index: u64, id: &str, pieces: &[&str]) -> Vec<Step> {
    let begin = json!({ "type": "tool_use", "id": id, "name": "get_time", "input": {} });
    let piece = |json: &&str| json!({ "type": "input_json_delta", "partial_json": json });
    block(index, begin, &pieces.iter().map(piece).collect::<Vec<_>>())
}

/// An answer of `blocks` that ends for this reason.
fn answer(blocks: Vec<Vec<Step>>, reason: &str) -> Vec<Step> {
    let end = json!({ "type": "message_delta", "delta": { "stop_reason": reason },
        "usage": { "output_tokens": 9, "output_tokens_details": { "thinking_tokens": 5 } } });
    let ping = event(json!({ "type": "ping" }));
    let stop = event(json!({ "type": "message_stop" }));
    [vec![start(), ping], blocks.concat(), vec![event(end), stop]].concat()
}

fn says(words: &str) -> Vec<Step> {
    answer(vec![text(0, words)], "end_turn")
}

/// An answer that calls a server's tool for an image.
pub(crate) fn calls_for_image() -> Vec<Step> {
    let begin = json!({ "type": "tool_use", "id": "toolu_a", "name": "act", "input": {} });
    let piece = json!({ "type": "input_json_delta", "partial_json": r#"{"text":"image"}"# });
    answer(vec![block(0, begin, &[piece])], "tool_use")
}

/// The messages of a request without cache marks.
fn messages(request: &Request) -> Value {
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    // A parsed body has its fields in alphabetical order: the mark may be the first.
    let first = r#""cache_control":{"type":"ephemeral"},"#;
    let text = request.body["messages"].to_string().replace(mark, "").replace(first, "");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn text_and_reasoning_are_streamed_and_counted() {
    let script = answer(vec![thinking(0, "hm", "c2ln"), text(1, "hello")], "end_turn");
    let (payload, request) = ANTHROPIC.check_first_turn(script);
    assert_eq!(payload["stopReason"], "end_turn", "{payload}");
    let usage = &payload["usage"];
    for (name, count) in [("inputTokens", 113), ("outputTokens", 9), ("cachedTokens", 100)] {
        assert_eq!(usage[name], count, "{payload}");
    }

    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.body["system"][0]["text"], "be brief");
    assert_eq!(messages(&request)[0]["content"], json!([{ "type": "text", "text": "hi" }]));
}

#[test]
fn parallel_calls_get_their_results_and_reasoning_goes_back_signed() {
    let calls = answer(
        vec![
            thinking(0, "Two cities.", "c2ln"),
            block(1, json!({ "type": "redacted_thinking", "data": "eHg" }), &[]),
            text(2, "Let me look."),
            tool(3, "toolu_a", &["{\"city\":", "\"Berlin\"}"]),
            tool(4, "toolu_b", &[]),
        ],
        "tool_use",
    );
    let provider = Provider::start(vec![calls, says("Noon."), says("Bye.")]);
    let mut server = anthropic(&provider, &[]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["toolu_a", "toolu_b"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r1"), "Let me look.Noon.");

    let [first, second, third] = [1, 2, 3].map(|number| provider.wait_request(number));
    assert_eq!(first.body["tools"][0]["name"], "get_time");
    assert_eq!(first.body["tools"][0]["input_schema"], get_time_schema());
    let use_of = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "get_time", "input": input });
    let result_of = |id: &str, content: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "what time is it?" }] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Two cities.", "signature": "c2ln" },
            { "type": "redacted_thinking", "data": "eHg" },
            { "type": "text", "text": "Let me look." },
            use_of("toolu_a", json!({ "city": "Berlin" })),
            use_of("toolu_b", json!({})),
        ] },
        { "role": "user", "content": [
            result_of("toolu_a", r#"{"of":"toolu_a"}"#),
            result_of("toolu_b", r#"{"of":"toolu_b"}"#),
        ] },
    ]);
    assert_eq!(messages(&second), expected);
    // The next turn begins with all of it.
    let (second, third) = (messages(&second), messages(&third));
    let (second, third) = (second.as_array().expect("a list"), third.as_array().expect("a list"));
    assert_eq!(&third[..second.len()], second);
    assert_eq!(third.len(), second.len() + 2);
}

/// A turn with signed reasoning and calls is summarized as a whole: the call for the summary is sent all of it, the
/// next one nothing.
#[test]
fn signed_reasoning_is_left_out_with_its_turn() {
    let blocks = vec![thinking(0, "Two cities.", "c2ln"), tool(1, "toolu_a", &["{}"])];
    let script = vec![answer(blocks, "tool_use"), says("Noon."), says("SUMMARY"), says("Bye.")];
    let provider = Provider::start(script);
    let options = ["--context-tokens", "150", "--compact-prompt", "Sum up.", "--retries", "0"];
    let mut server = anthropic(&provider, &options).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["toolu_a"]);
    assert_eq!(server.wait_done("r1"), "ok");
    assert_eq!(server.turn("r2", "thanks"), "ok");
    server.finish();
    let [before, summary, after] = [2, 3, 4].map(|number| provider.wait_request(number));
    let (before, asked) = (messages(&before), messages(&summary));
    let (before, asked) = (before.as_array().expect("a list"), asked.as_array().expect("a list"));
    assert!(asked.starts_with(before), "{asked:?}");
    assert_eq!((asked.len(), asked[1]["content"][0]["signature"].as_str()), (5, Some("c2ln")));
    assert_eq!(summary.body["tools"][0]["name"], "get_time", "they are named in it");
    let sent = messages(&after).to_string();
    assert!(
        sent.contains("SUMMARY") && !sent.contains("c2ln") && !sent.contains("toolu_a"),
        "{sent}"
    );
}

#[test]
fn text_between_and_after_calls_goes_back_in_its_place_before_the_results() {
    let blocks = vec![
        thinking(0, "hm", "c2ln"),
        tool(1, "toolu_a", &[]),
        text(2, "And the other."),
        tool(3, "toolu_b", &[]),
        text(4, "Let me see."),
    ];
    let body = ANTHROPIC.with_results(answer(blocks, "tool_use"), &["toolu_a", "toolu_b"]);
    let messages = body["messages"].as_array().expect("messages");
    let shown = |message: &Value| {
        let blocks = message["content"].as_array().expect("blocks").iter();
        let blocks = blocks.map(|block| block["type"].as_str().expect("a type"));
        (message["role"].as_str().expect("a role").to_owned(), blocks.collect::<Vec<_>>().join(" "))
    };
    let expected = [
        ("user", "text"),
        ("assistant", "thinking tool_use text tool_use text"),
        ("user", "tool_result tool_result"),
    ];
    let expected = expected.map(|(role, blocks)| (role.to_owned(), blocks.to_owned()));
    assert_eq!(messages.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn an_answer_that_ends_with_reasoning_goes_back_without_it() {
    let first = answer(vec![text(0, "Hello."), thinking(1, "hm", "c2ln")], "end_turn");
    let provider = Provider::start(vec![first, says("Bye.")]);
    let mut server = anthropic(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hi"), "ok");
    assert_eq!(server.turn("r2", "bye"), "ok");
    server.finish();
    let sent = messages(&provider.wait_request(2))[1]["content"].clone();
    assert_eq!(sent, json!([{ "type": "text", "text": "Hello." }]));
}

#[test]
fn each_failure_is_one_typed_error_and_the_session_goes_on() {
    let report = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message } });
    let status = |status, kind: &str, message: &str| {
        vec![Step::Status(status, Vec::new(), report(kind, message).to_string())]
    };
    let begun = || [vec![start()], text(0, "a part")].concat();
    let with = |more: Vec<Step>| [begun(), more].concat();
    let refused = format!("invalid x-api-key {KEY}");
    ANTHROPIC.check_failures([
        ("401", status(401, "authentication_error", &refused), "auth"),
        ("403", status(403, "permission_error", "no"), "auth"),
        ("429", status(429, "rate_limit_error", "slow down"), "rate_limited"),
        ("400", status(400, "invalid_request_error", "bad"), "provider"),
        (
            "too long",
            status(400, "invalid_request_error", "prompt is too long: 9"),
            "context_overflow",
        ),
        ("413", status(413, "request_too_large", "too large"), "context_overflow"),
        ("529", status(529, "overloaded_error", "Overloaded"), "provider"),
        ("no end mark", begun(), "malformed_stream"),
        ("overloaded", with(vec![event(report("overloaded_error", "Overloaded"))]), "provider"),
        ("malformed", with(vec![Step::Event("{\"type\":".to_owned())]), "malformed_stream"),
        ("broken", with(vec![Step::Cut]), "network"),
        ("another interface", vec![Step::Text("a".to_owned()), Step::Done], "malformed_stream"),
    ]);
}

#[test]
fn an_overload_is_tried_again_also_in_an_answer_that_has_not_begun() {
    let later = vec![("retry-after-ms", "1".to_owned())];
    let report = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let busy = vec![Step::Status(529, later, report.to_owned())];
    let begun = vec![start(), Step::Event(report.to_owned())];
    ANTHROPIC.check_retries(vec![busy, begun]);
}

#[test]
fn a_cut_off_answer_says_so() {
    for (reason, class) in [
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
    ] {
        ANTHROPIC.check_end(answer(vec![text(0, "a part")], reason), reason, class);
    }
}

/// Anthropic refuses whatever follows a prompt that it has refused to answer.
#[test]
fn a_prompt_that_the_provider_refuses_to_answer_is_not_sent_again() {
    let details = json!({ "type": "refusal", "explanation": "This is against the rules." });
    let end = json!({ "type": "message_delta", "usage": { "output_tokens": 1 },
        "delta": { "stop_reason": "refusal", "stop_details": details } });
    let refusal = vec![start(), event(end), event(json!({ "type": "message_stop" }))];
    let provider = Provider::start(vec![refusal, says("nice")]);
    let mut server = anthropic(&provider, &[]).start();
    assert_eq!(server.turn("r1", "bad thing"), "ok");
    assert_eq!(server.turn("r2", "nice thing"), "ok");
    server.send(snapshot("s"));
    server.wait_done("s");
    let transcript = server.finish();
    let sent = provider.wait_request(2).body["messages"].to_string();
    assert!(!sent.contains("bad thing") && sent.contains("nice thing"), "{sent}");
    for words in ["the provider refused to answer", "This is against the rules."] {
        assert!(transcript.stderr.contains(words), "{}", transcript.stderr);
    }
    // People still see it.
    let state = transcript.frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
    assert!(state.messages().contains(&("user", "bad thing")), "{state:?}");
}

#[test]
fn a_cancel_closes_the_connection() {
    ANTHROPIC.check_cancels([vec![start()], text(0, "a part")].concat());
}

/// One submit with what a request may hold beside its text.
#[test]
fn a_request_to_anthropic_has_settings_and_attachments() {
    let provider = Provider::start(vec![says("a")]);
    let mut server = anthropic(&provider, &[]).start();
    let submit = json!({
        "prompt": "what is this?",
        "attachments": [{ "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=" }],
        "settings": { "max_tokens": 9000, "reasoning_budget": 2048, "stop": "END" },
    });
    server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    server.finish();
    let request = provider.wait_request(1);
    assert_eq!(request.body["max_tokens"], 9000);
    assert_eq!(request.body["thinking"], json!({ "type": "enabled", "budget_tokens": 2048 }));
    assert_eq!(request.body["stop_sequences"], json!(["END"]));
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" });
    let expected = json!([
        { "type": "image", "source": source },
        { "type": "text", "text": "what is this?" },
    ]);
    assert_eq!(messages(&request)[0]["content"], expected);
}

/// The provider refuses a temperature beside reasoning, and a budget that the limit is not above.
#[test]
fn settings_beside_a_budget_for_reasoning_are_those_that_anthropic_takes() {
    let provider = Provider::start(vec![says("a")]);
    let budget = ["--reasoning-budget", "2000", "--temperature", "0.2"];
    let mut server = anthropic(&provider, &budget).start();
    assert_eq!(server.turn("r1", "hi"), "ok");
    server.wait_log("the setting temperature is ignored");
    let submit = json!({ "prompt": "hi", "settings": { "max_tokens": 1500 } });
    server.send(json!({ "requestId": "r2", "submit": submit }).to_string());
    assert_eq!(server.wait_done("r2"), "failed");
    let transcript = server.finish();
    let refused = "reasoning_budget (2000) has to be below max_tokens (1500)";
    let is_told = |frame: &Frame| frame.0.to_string().contains(refused);
    assert!(transcript.frames.iter().any(is_told), "{:?}", transcript.frames);
    assert_eq!(provider.requests(), 1);
    assert_eq!(provider.wait_request(1).body["temperature"], Value::Null);
}

/// Which engine answers if none is named, by what is set.
#[test]
fn the_key_alone_chooses_the_engine_where_no_other_provider_is_named() {
    check_choices(&[
        (&[], &[], "echo"),
        (&[("ANTHROPIC_API_KEY", KEY)], &[], "anthropic"),
        (&[("ANTHROPIC_API_KEY", KEY)], &["--model", "m"], "anthropic"),
        (&[("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY)], &[], "openai"),
        (&[("ANTHROPIC_API_KEY", KEY), ("DUOLOGUE_API_KEY", KEY)], &[], "openai"),
        (&[("ANTHROPIC_API_KEY", KEY)], &["--base-url", "http://127.0.0.1:9"], "openai"),
        (&[("ANTHROPIC_API_KEY", KEY), ("OPENAI_BASE_URL", "http://127.0.0.1:9")], &[], "openai"),
    ]);
}

#[test]
fn settings_that_cannot_work_name_the_variables_of_the_engine() {
    let fails = |args: &[&str], expected: &str| ANTHROPIC.check_unusable(args, expected);
    fails(
        &[],
        "duologue: Anthropic requires a key: set DUOLOGUE_API_KEY or ANTHROPIC_API_KEY; for another \
         provider name its address with --base-url, DUOLOGUE_BASE_URL or ANTHROPIC_BASE_URL",
    );
    fails(
        &["--base-url", "foo"],
        "duologue: the base URL \"foo\" does not begin with http:// or https://: name one like \
         https://api.anthropic.com with --base-url, DUOLOGUE_BASE_URL or ANTHROPIC_BASE_URL",
    );
    fails(
        &["--base-url", "http://127.0.0.1:9"],
        "duologue: no model is named, and http://127.0.0.1:9 has no default: name one with --model or \
         DUOLOGUE_MODEL (`duologue models` lists them)",
    );
}

/// Two servers may have one model name, and only the one that signed the reasoning can read it.
#[test]
fn signed_reasoning_goes_to_no_other_server() {
    let script = answer(vec![thinking(0, "hm", "c2ln"), text(1, "one")], "end_turn");
    let request = ANTHROPIC.switched(script);
    let words = |text: &str| json!([{ "type": "text", "text": text }]);
    assert_eq!(messages(&request)[1], json!({ "role": "assistant", "content": words("one") }));
}

#[test]
fn a_call_of_a_made_up_tool_goes_back_to_anthropic_in_its_pattern() {
    let call = json!({ "type": "tool_use", "id": "toolu.a:1", "name": "functions.get_time",
                       "input": {} });
    ANTHROPIC.check_made_up_call(answer(vec![block(0, call, &[])], "tool_use"));
}

#[test]
fn reasoning_that_anthropic_refuses_is_left_out() {
    let script = answer(vec![thinking(0, "hm", "c2ln"), text(1, "one")], "end_turn");
    let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
    ANTHROPIC.check_refused_reasoning(script, words, r#""signature":"c2ln""#);
}

/// DeepSeek and others sign nothing, and want the reasoning back all the same.
#[test]
fn unsigned_reasoning_goes_back_to_another_server_unless_it_refuses_it() {
    let begin = json!({ "type": "thinking", "thinking": "" });
    let piece = json!({ "type": "thinking_delta", "thinking": "hm" });
    let unsigned = || block(0, begin.clone(), std::slice::from_ref(&piece));
    let script = answer(vec![unsigned(), tool(1, "toolu_a", &[])], "tool_use");
    let body = ANTHROPIC.with_results(script, &["toolu_a"]);
    let sent = json!({ "type": "thinking", "thinking": "hm", "signature": "" });
    assert_eq!(body["messages"][1]["content"][0], sent, "{body}");
    let script = answer(vec![unsigned(), text(1, "one")], "end_turn");
    let words = "messages.1.content.0.thinking.signature: Field required";
    ANTHROPIC.check_refused_reasoning(script, words, r#""thinking":"hm""#);
}

#[test]
fn a_prompt_may_be_an_image_alone() {
    let request = ANTHROPIC.with_image_alone();
    let content = request["messages"][0]["content"].as_array().expect("blocks");
    assert_eq!(content.len(), 1, "{request}");
    assert_eq!(
        (&request["messages"][0]["role"], &content[0]["type"]),
        (&json!("user"), &json!("image"))
    );
}

#[test]
fn claude_may_have_nothing_to_add_to_a_result() {
    let called = answer(vec![thinking(0, "hm", "c2ln"), tool(1, "toolu_a", &[])], "tool_use");
    ANTHROPIC.check_silence_after_results(called, "toolu_a", answer(Vec::new(), "end_turn"));
}

/// "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'": one such tool would cost every request.
#[test]
fn a_tool_that_anthropic_refuses_is_left_out_with_one_warning() {
    let provider = Provider::start(vec![says("one"), says("two")]);
    let mut server = anthropic(&provider, &[]).start();
    let tool = |name: &str, parameter: &str| {
        let schema = json!({ "type": "object", "properties": { parameter: { "type": "string" } } });
        json!({ "name": name, "description": "Looks.", "inputSchema": schema })
    };
    let tools = json!({ "tools": [tool("query", "$filter"), tool("look", "city")] });
    server.send(json!({ "requestId": "t", "declareTools": tools }).to_string());
    for turn in ["first", "second"] {
        assert_eq!(server.turn(turn, "hi"), "ok");
    }
    let stderr = server.finish().stderr;
    assert_eq!(stderr.matches("the tool query is not offered").count(), 1, "{stderr}");
    for number in 1..=2 {
        let tools = provider.wait_request(number).body["tools"].clone();
        let names: Vec<_> =
            tools.as_array().expect("a list").iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["look"], "{tools}");
    }
}
