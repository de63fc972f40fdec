//! Providers that keep to the protocol in their own way, and settings that a person should hear of.

use crate::frames::{cancel, errors, finished_text, snapshot, submit};
use crate::interface::{Interface, declare_get_time};
use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Launch, openai};
use serde_json::{Value, json};
use std::time::Duration;

/// An event with one choice.
fn choice(choice: Value) -> Step {
    Step::Event(json!({ "choices": [choice] }).to_string())
}

fn reasoning_tokens(tokens: u32) -> Step {
    let details = json!({ "reasoning_tokens": tokens });
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 9,
                        "completion_tokens_details": details });
    Step::Event(json!({ "choices": [], "usage": usage }).to_string())
}

/// `duologue exec hello <words>`, with `script` as the provider's one answer.
fn exec(script: Vec<Step>, words: &[&str]) -> Ended {
    let provider = Provider::start(vec![script]);
    let base_url = provider.base_url();
    let engine = ["exec", "hello", "--model", "scripted", "--base-url", &base_url];
    let mut command = duologue(&Folder::new(), &[&engine, words].concat());
    command.env("DUOLOGUE_API_KEY", KEY).current_dir("/");
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

/// The whole answer is read, however its provider marks the end and wherever it puts the text.
#[test]
fn no_part_of_an_answer_is_lost() {
    let stop =
        |said: &str| choice(json!({ "delta": { "content": said }, "finish_reason": "stop" }));
    let in_message = |said: &str| choice(json!({ "message": { "content": said } }));
    let in_text = |said: &str| choice(json!({ "text": said }));
    let other = json!({ "index": 1, "delta": { "content": "x" }, "finish_reason": "stop" });
    let first = json!({ "index": 0, "delta": { "content": "whole" } });
    let both = Step::Event(json!({ "choices": [other, first] }).to_string());
    let ping = || Step::Event("ping".to_owned());
    let end = || Step::Finish("stop", None);
    let thought = choice(json!({ "delta": { "reasoning": "hm" }, "finish_reason": "stop" }));
    let all = Step::Text("whole".to_owned());
    let scripts = [
        ("stop with every chunk", vec![stop("wh"), stop("o"), stop("le"), Step::Done]),
        ("stop before the text", vec![end(), all.clone(), Step::Done]),
        ("stop with the reasoning", vec![thought, all.clone(), end()]),
        ("message in place of delta", vec![in_message("who"), in_message("le"), end()]),
        ("text in place of delta", vec![in_text("who"), in_text("le"), end()]),
        ("another choice first", vec![both, end(), Step::Done]),
        ("pings", vec![ping(), all, ping(), end(), ping(), Step::Done]),
    ];
    let (names, scripts): (Vec<_>, Vec<_>) = scripts.into_iter().unzip();
    let provider = Provider::start(scripts);
    let mut server = openai(&provider, &[]).start();
    for name in &names {
        assert_eq!(server.turn(name, "hello"), "ok", "{name}");
    }
    let frames = server.finish().frames;
    for name in names {
        assert_eq!(finished_text(&frames, name), "whole", "{name}");
    }
}

#[test]
fn what_a_provider_reports_in_its_own_way_has_its_class() {
    let limited = json!({ "error": { "message": "slow down", "code": "429" } }).to_string();
    let call = json!({ "delta": { "function_call": { "name": "look", "arguments": "{}" } } });
    let scripts = [
        ("rate_limited", vec![Step::Text("a".to_owned()), Step::Event(limited)]),
        ("tool", vec![choice(call), Step::Finish("function_call", None)]),
        ("timeout", vec![Step::Pings(Duration::from_millis(10))]),
        ("malformed_stream", vec![Step::Event("ping".to_owned()), Step::Done]),
        ("provider", vec![Step::Reasoning("hm".to_owned()), Step::Finish("stop", None)]),
    ];
    let (classes, scripts): (Vec<_>, Vec<_>) = scripts.into_iter().unzip();
    let provider = Provider::start(scripts);
    let mut server =
        openai(&provider, &["--idle-timeout-ms", "2000", "--total-timeout-ms", "3000"]).start();
    for class in &classes {
        assert_eq!(server.turn(class, "hello"), "failed", "{class}");
    }
    let frames = server.finish().frames;
    for class in classes {
        assert_eq!(errors(&frames, class), ["run_failed"], "{class}");
        let error = frames.iter().find(|frame| frame.id() == class && frame.error().is_some());
        let detail = error.expect("an error").text("/error/detail");
        assert!(detail.starts_with(&format!("{class}:")), "{class}: {detail}");
        assert!(class != "timeout" || detail.contains("the call took 3s"), "pings: {detail}");
        let message = error.expect("an error").text("/error/message");
        assert!(!message.contains("line 1 column"), "{message}");
    }
}

/// Whatever comes without an end, the limit on the whole answer and a cancel hold.
#[test]
fn a_flood_ends_at_its_time_limit_and_with_a_cancel() {
    let event = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    for piece in [": ping\n\n".to_owned(), event("{}"), event(r#"{"content":"word "}"#)] {
        let flood = || vec![Step::Endless(piece.repeat(1_000).into_bytes())];
        let provider = Provider::start(vec![flood(), flood()]);
        let mut server = openai(&provider, &["--total-timeout-ms", "500"]).start();
        assert_eq!(server.turn("a", "hello"), "failed", "{piece}");
        let frames = server.finish().frames;
        let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert_eq!(error.text("/error/detail"), "timeout: the call took 500ms", "{piece}");

        let mut server = openai(&provider, &[]).start();
        server.send(submit("b", "hello"));
        provider.wait_request(2);
        server.send(cancel("c"));
        assert_eq!(server.wait_done("b"), "stopped", "{piece}");
        server.finish();
    }
}

/// What a program acts on is said in words of the provider's own.
#[test]
fn a_refusal_has_the_class_that_its_words_mean() {
    let raw = "m is temporarily rate-limited upstream";
    let routed = json!({ "code": 429, "message": "Provider returned error",
                         "metadata": { "provider_name": "Google", "raw": raw } });
    let long = json!({ "message": "prompt too long; exceeded max context length by 9 tokens" });
    let tokens =
        json!({ "message": "All is too long.", "type": "too_many_prompt_tokens", "code": 400 });
    let refusals = [
        ("openai", 400, json!({ "error": long }), "context_overflow", "prompt too long"),
        ("openai", 400, json!({ "error": tokens }), "context_overflow", "All is too long."),
        (
            "responses",
            400,
            json!({ "code": "invalid-argument", "error": "Incorrect API key provided." }),
            "auth",
            "Incorrect API key provided.",
        ),
        ("openai", 429, json!({ "error": routed }), "rate_limited", raw),
        // Gateways have a headline in `error`, and MiniMax an error in an answer.
        (
            "openai",
            429,
            json!({ "statusCode": 429, "error": "Too Many Requests", "message": "Team budget used up" }),
            "rate_limited",
            "Too Many Requests: Team budget used up",
        ),
        (
            "openai",
            200,
            json!({ "choices": null, "base_resp": { "status_code": 1004, "status_msg": "login fail" } }),
            "auth",
            "login fail",
        ),
    ];
    for (engine, status, body, class, said) in refusals {
        let refusal = vec![Step::Status(status, Vec::new(), body.to_string())];
        let words = ["--engine", engine, "--output", "json", "--retries", "0"];
        let ended = exec(refusal, &words);
        let output: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let error = &output["error"];
        assert_eq!(error["class"], class, "{ended:?}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains(said)), "{ended:?}");
    }
}

/// As DeepInfra reports an error within a stream, before the mark of its end.
#[test]
fn an_error_that_has_no_object_of_its_own_is_no_end_of_an_answer() {
    let words = "the engine of the model is gone";
    let report = json!({ "choices": null, "error_type": "engine", "error_message": words });
    let end = vec![Step::Event(report.to_string()), Step::Done];
    for said in [vec![Step::Text("half".to_owned())], Vec::new()] {
        let script = [said, end.clone()].concat();
        let ended = exec(script, &["--output", "json", "--retries", "0"]);
        let output: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!((&output["ok"], ended.status), (&json!(false), 1), "{ended:?}");
        let error = &output["error"];
        assert_eq!(error["class"], "provider", "{ended:?}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains(words)), "{ended:?}");
    }
}

/// As Tencent's servers have it: every piece of the text is beside a call of nothing.
#[test]
fn a_call_of_nothing_beside_a_text_is_no_call() {
    let nothing = json!({ "name": "", "arguments": "" });
    let piece = |text: &str| {
        choice(json!({ "delta": { "content": text, "function_call": nothing, "tool_calls": [] } }))
    };
    let entry = json!({ "index": 0, "id": "", "type": "function", "function": nothing });
    let listed = choice(json!({ "delta": { "content": "le", "tool_calls": [entry] } }));
    let script = vec![piece("wh"), piece("o"), listed, Step::Finish("stop", None), Step::Done];
    let ended = exec(script, &[]);
    assert_eq!((ended.status, ended.stdout.trim_end()), (0, "whole"), "{ended:?}");
}

/// Token counts, wherever the provider has them.
#[test]
fn token_counts_are_read_where_a_provider_has_them() {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 9 });
    let end = json!({ "delta": {}, "finish_reason": "stop", "usage": usage });
    let stop = json!({ "delta": {}, "finish_reason": "stop" });
    let in_extension = json!({ "choices": [stop], "x_groq": { "id": "req_1", "usage": usage } });
    for last in [choice(end), Step::Event(in_extension.to_string())] {
        let script = vec![Step::Text("a".to_owned()), last, Step::Done];
        let output: Value =
            serde_json::from_str(&exec(script, &["--output", "json"]).stdout).expect("JSON");
        let usage = &output["meta"]["usage"];
        let counts = (&usage["inputTokens"], &usage["outputTokens"]);
        assert_eq!(counts, (&json!(3), &json!(9)), "{output}");
    }
}

/// Such an answer is no success, although it has a finish reason.
#[test]
fn an_answer_that_its_server_broke_off_is_tried_again_if_nothing_of_it_was_shown() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let broken = |said: Vec<Step>, reason| [said, vec![Step::Finish(reason, None)]].concat();
    OPENAI.check_retries(vec![broken(Vec::new(), "network_error")]);
    for reason in ["network_error", "insufficient_system_resource", "abort"] {
        let ended =
            exec(broken(vec![Step::Text("a pa".to_owned())], reason), &["--output", "json"]);
        let output: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!((&output["ok"], ended.status), (&json!(false), 1), "{reason}: {ended:?}");
        assert_eq!(output["error"]["class"], "provider", "{reason}: {ended:?}");
    }
}

/// Providers without ids, and some with, use the same ids in each answer.
#[test]
fn each_tool_call_of_a_session_has_an_id_of_its_own() {
    let function = json!({ "name": "look", "arguments": "{}" });
    let legacy = json!({ "delta": { "function_call": function } });
    let call = json!({ "index": 0, "id": "call_0-2", "function": function });
    let script = |call: &Value| vec![choice(call.clone()), Step::Finish("tool_calls", None)];
    let named = json!({ "delta": { "tool_calls": [call] } });
    let scripts = [&legacy, &legacy, &named, &legacy].map(script);
    let provider = Provider::start(scripts.into_iter().chain([says("done")]).collect());
    let mut server = openai(&provider, &[]).start();
    for turn in ["r1", "r2", "r3", "r4"] {
        assert_eq!(server.turn(turn, "hello"), "failed");
    }
    assert_eq!(server.turn("r5", "hello"), "ok");
    server.send(snapshot("s"));
    server.wait_done("s");
    let frames = server.finish().frames;
    let ids = ["call_0", "call_0-2", "call_0-2-2", "call_0-3"];
    let started = frames.iter().filter(|frame| frame.is_event("ChatToolCallStarted"));
    assert_eq!(started.map(|frame| frame.payload("toolCallId")).collect::<Vec<_>>(), ids);
    let state = frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
    let entities = state.0["snapshot"]["entities"].as_array().expect("entities");
    let mut keys: Vec<_> = entities.iter().map(|it| (&it["kind"], &it["id"])).collect();
    keys.sort_by_key(|key| format!("{key:?}"));
    keys.dedup();
    assert_eq!(keys.len(), entities.len(), "{state:?}");
    let sent = provider.wait_request(5).body;
    let messages = sent["messages"].as_array().expect("messages");
    let calls = messages.iter().filter_map(|it| it.pointer("/tool_calls/0/id"));
    assert_eq!(calls.collect::<Vec<_>>(), ids);
    let results = messages.iter().filter_map(|it| it.get("tool_call_id"));
    assert_eq!(results.collect::<Vec<_>>(), ids, "each call has its result");
}

#[test]
fn an_answer_with_nothing_to_show_is_no_success() {
    let nothing = || vec![Step::Finish("stop", Some((3, 0))), Step::Done];
    let thought = || [vec![Step::Reasoning("hm".to_owned())], nothing()].concat();
    for script in [nothing(), thought()] {
        let ended = exec(script.clone(), &[]);
        assert_eq!((ended.status, ended.stdout.as_str()), (1, ""), "{ended:?}");
        assert!(ended.stderr.contains("without any text"), "{ended:?}");
        let ended = exec(script, &["--output", "json"]);
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        assert_eq!((&document["ok"], ended.status), (&json!(false), 1), "{ended:?}");
    }
    let folder = Folder::new();
    std::fs::write(folder.path("empty"), "").expect("a file");
    let echo = run(&folder, &["exec", "hello", "--engine", "echo", "--echo-answer", "empty"]);
    assert_eq!(echo.status, 1, "{echo:?}");
    assert!(echo.stderr.contains("it is empty"), "{echo:?}");
    let blank = exec(says(" "), &[]);
    assert_eq!(blank.status, 0, "{blank:?}");
    assert!(blank.stderr.contains("nothing but white space"), "{blank:?}");
    let document = exec(says(" "), &["--output", "json"]).stdout;
    assert!(document.contains("\"code\": \"blank_answer\""), "{document}");
}

/// Status 75 and `recoverable` say the same: whether the command may succeed later.
#[test]
fn a_failure_that_may_pass_has_a_status_of_its_own() {
    let status = |status, body: &str| vec![Step::Status(status, Vec::new(), body.into())];
    let no_credit = r#"{"error":{"message":"no","code":"insufficient_quota"}}"#;
    let too_large = r#"{"error":{"message":"Request too large for model `m` on tokens per minute (TPM)","code":"rate_limit_exceeded"}}"#;
    for (script, words, expected, code) in [
        (status(503, "busy"), &[][..], 75, "UNKNOWN"),
        (status(500, "{}"), &[], 75, "UNKNOWN"),
        (status(429, "slow down"), &[], 75, "NETWORK_TIMEOUT"),
        (status(429, no_credit), &[], 1, "UNKNOWN"),
        (status(402, "{}"), &[], 1, "UNKNOWN"),
        (status(413, too_large), &[], 1, "CONTEXT_LIMIT"),
        (status(408, "late"), &[], 75, "UNKNOWN"),
        (status(507, "full"), &[], 75, "UNKNOWN"),
        (status(522, "no origin"), &[], 75, "UNKNOWN"),
        (status(530, "{}"), &[], 75, "UNKNOWN"),
        (status(505, "never"), &[], 1, "UNKNOWN"),
        (vec![Step::Cut], &[], 75, "NETWORK_TIMEOUT"),
        (vec![Step::Stall], &["--idle-timeout-ms", "200"], 75, "NETWORK_TIMEOUT"),
        (status(400, "wrong"), &[], 1, "UNKNOWN"),
        (status(501, "never"), &[], 1, "UNKNOWN"),
        (status(401, "no"), &[], 1, "AUTH_EXPIRED"),
    ] {
        let words = [words, &["--retries", "0"]].concat();
        let ended = exec(script.clone(), &[&words[..], &["--output", "json"]].concat());
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        assert_eq!((ended.status, &document["meta"]["exit_code"]), (expected, &json!(expected)));
        assert_eq!(exec(script.clone(), &words).status, expected, "{script:?}");
        let ended = exec(script.clone(), &[&words[..], &["--json-stream"]].concat());
        assert_eq!(ended.status, expected, "{ended:?}");
        let events = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let events: Vec<Value> = events.collect();
        let error = events.iter().find(|event| event["type"] == "error").expect("an error");
        let error = &error["payload"]["error"];
        assert_eq!(error["recoverable"], expected == 75, "{error}");
        assert_eq!(error["code"], code, "{error}");
        let done = events.last().expect("an event");
        assert_eq!(done["payload"]["exitCode"], expected, "{done}");
    }
}

/// A session that is to be resumed and is not there has a code of its own.
#[test]
fn a_session_that_is_not_there_is_named_so() {
    let folder = Folder::new();
    let begun = ["exec", "hi", "--engine", "echo", "--store", "store", "--session-id"];
    assert_eq!(run(&folder, &[&begun[..], &["a"]].concat()).status, 0);
    let ended = run(&folder, &[&begun[..], &["b", "--resume", "--json-stream"]].concat());
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stdout.contains(r#""code":"SESSION_NOT_FOUND""#), "{ended:?}");
    assert!(ended.stdout.contains(r#""recoverable":false"#), "{ended:?}");
}

#[test]
fn reasoning_tokens_are_reported_where_there_is_a_place_for_them() {
    let script = || vec![Step::Text("a".to_owned()), reasoning_tokens(7), Step::Done];
    let document: Value =
        serde_json::from_str(&exec(script(), &["--output", "json"]).stdout).expect("a document");
    let usage = json!({ "inputTokens": 3, "outputTokens": 9, "reasoningTokens": 7 });
    assert_eq!(document["meta"]["usage"], usage);
    let stream = exec(script(), &["--json-stream"]).stdout;
    let done: Value = serde_json::from_str(stream.lines().last().expect("a line")).expect("JSON");
    assert_eq!(done["payload"]["reasoningTokens"], 7, "{done}");
    assert!(!exec(script(), &["--rpc"]).stdout.contains("reasoningTokens"), "no field of a frame");
    let without = vec![Step::Text("a".to_owned()), Step::Finish("stop", Some((3, 2))), Step::Done];
    for output in [&["--output", "json"][..], &["--json-stream"]] {
        assert!(!exec(without.clone(), output).stdout.contains("reasoningTokens"), "{output:?}");
    }
}

#[test]
fn text_after_a_call_is_of_the_same_answer_and_stands_before_the_result() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let call = json!({ "index": 0, "id": "call_a",
                       "function": { "name": "get_time", "arguments": "{}" } });
    let called = choice(json!({ "delta": { "tool_calls": [call] } }));
    let script =
        vec![called, Step::Text("Let me see.".to_owned()), Step::Finish("tool_calls", None)];
    let body = OPENAI.with_results(script, &["call_a"]);
    let messages = body["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, [Some("user"), Some("assistant"), Some("tool")], "{body}");
    assert_eq!(messages[1]["content"], "Let me see.");
}

/// A header often has the name of a project, and so has the server of its tools.
#[test]
fn a_tool_with_a_name_that_a_header_holds_is_called() {
    fn launch(provider: &Provider, args: &[&str]) -> Launch {
        openai(provider, &[&["--header", "X-Team: get_time"], args].concat())
    }
    let interface = Interface { engine: "openai", launch, says };
    let call = json!({ "index": 0, "id": "call_a",
                       "function": { "name": "get_time", "arguments": "{}" } });
    let called = choice(json!({ "delta": { "tool_calls": [call] } }));
    let body = interface.with_results(vec![called, Step::Finish("tool_calls", None)], &["call_a"]);
    assert_eq!(body.pointer("/messages/1/tool_calls/0/function/name"), Some(&json!("get_time")));
}

/// Providers refuse every later request with another name. An id goes back as its server gave it, however long.
/// The model is told that there is no such tool, so that it answers in the same turn.
#[test]
fn a_call_of_a_made_up_tool_goes_back_in_a_form_that_providers_take() {
    let id = format!("call_{}", "x".repeat(100));
    let call = json!({ "index": 0, "id": id,
                       "function": { "name": "functions.get_time", "arguments": "{}" } });
    let called = choice(json!({ "delta": { "tool_calls": [call] } }));
    let calls = vec![called, Step::Finish("tool_calls", None)];
    let answers = vec![calls, says("hello"), says("again")];
    let provider = Provider::start(answers).taking_any_request();
    let mut server = openai(&provider, &[]).start();
    declare_get_time(&mut server);
    assert_eq!(server.turn("r1", "hi"), "ok");
    assert_eq!(server.turn("r2", "again"), "ok");
    server.finish();
    let messages = provider.wait_request(3).body["messages"].clone();
    let sent = &messages[1]["tool_calls"][0];
    assert_eq!(sent["function"]["name"], "functions_get_time", "{messages}");
    // The server that gave it can read it.
    assert_eq!(sent["id"], id, "{messages}");
    assert_eq!(messages[2]["tool_call_id"], id, "{messages}");
}

#[test]
fn an_answer_of_white_space_is_not_sent_back() {
    let provider = Provider::start(vec![says(" \n"), says("fine")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "first"), "ok");
    assert_eq!(server.turn("r2", "second"), "ok");
    server.finish();
    let body = provider.wait_request(2).body;
    let roles = body["messages"].as_array().expect("messages").iter();
    let roles: Vec<_> = roles.map(|message| message["role"].as_str()).collect();
    assert!(!roles.contains(&Some("assistant")), "{body}");
}

/// As OpenAI's status 401 shows it, and in two other forms of it.
#[test]
fn a_key_that_a_provider_hides_badly_is_hidden_in_the_error() {
    let masked = format!("{}********{}", &KEY[..7], &KEY[KEY.len() - 4..]);
    let upper = KEY.to_uppercase();
    for form in [&masked, &upper] {
        let said = json!({ "error": { "message": format!("Incorrect key: {form}.") } });
        let ended = exec(vec![Step::Status(401, Vec::new(), said.to_string())], &["--rpc"]);
        assert_eq!(ended.status, 1, "{ended:?}");
        assert!(ended.stdout.contains("Incorrect key: [redacted]."), "{ended:?}");
        assert!(!format!("{ended:?}").contains(form.as_str()), "{ended:?}");
    }
}

/// What the model writes is its own, and stays as it is.
#[test]
fn a_key_in_the_answer_stays() {
    let ended = exec(says(&format!("the key is {KEY}")), &[]);
    assert_eq!(ended.stdout, format!("the key is {KEY}\n"));
}

/// The scripted provider stands in for a proxy: it is asked for another machine's address.
#[test]
fn a_key_that_goes_out_in_the_clear_is_warned_of_once() {
    let proxy = Provider::start(vec![says("one"), says("two")]);
    let args = ["rpc", "--model", "scripted", "--base-url", "http://provider.example/v1"];
    let launch = Launch::new(&args).secret("DUOLOGUE_API_KEY", KEY);
    let mut server = launch.env("HTTP_PROXY", proxy.base_url()).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    assert_eq!(server.turn("r2", "hello"), "ok");
    let stderr = server.finish().stderr;
    assert_eq!(proxy.wait_request(1).path, "http://provider.example/v1/chat/completions");
    assert_eq!(stderr.matches("the key is sent to provider.example").count(), 1, "{stderr}");
}

/// A header may be a key, as far as we know.
#[test]
fn a_header_that_goes_out_in_the_clear_is_warned_of() {
    let proxy = Provider::start(vec![says("one")]);
    let url = "http://provider.example/v1";
    let args = ["rpc", "--model", "scripted", "--base-url", url, "--header", "X-Gw: Bearer gw-key"];
    let mut server = Launch::new(&args).env("HTTP_PROXY", proxy.base_url()).start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    let stderr = server.finish().stderr;
    assert_eq!(stderr.matches("the key is sent to provider.example").count(), 1, "{stderr}");
    assert!(!stderr.contains("gw-key"), "{stderr}");
}

#[test]
fn a_proxy_variable_that_cannot_be_used_is_warned_of_without_its_value() {
    let provider = Provider::start(vec![says("fine")]);
    let launch = openai(&provider, &[]).env("https_proxy", "http://u:hunter2 h@proxy:1");
    let mut server = launch.start();
    assert_eq!(server.turn("r1", "hello"), "ok");
    let stderr = server.finish().stderr;
    assert_eq!(stderr.matches("https_proxy is ignored").count(), 1, "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
    assert!(!stderr.contains("the key is sent"), "it stays on this machine: {stderr}");
}

/// Nobody writes to the pipe: only the run that needs it waits, and it can be cancelled.
#[test]
fn certificates_that_never_come_hold_up_nothing_else() {
    let folder = Folder::new();
    let pipe = folder.fifo("certificates.pem");
    let args = ["rpc", "--model", "m", "--base-url", "https://127.0.0.1:9/v1"];
    let mut server = Launch::new(&args).env("SSL_CERT_FILE", pipe).start();
    for (run, stop) in [("r1", "c1"), ("r2", "c2")] {
        server.send(submit(run, "hello"));
        let state = format!("s-{run}");
        server.send(snapshot(&state));
        assert_eq!(server.wait_done(&state), "ok");
        server.send(cancel(stop));
        assert_eq!(server.wait_done(run), "stopped");
    }
    server.finish();
}

/// A device without an end is read up to the limit and no further.
#[test]
fn certificates_without_an_end_are_an_error() {
    let args = ["rpc", "--model", "m", "--base-url", "https://127.0.0.1:9/v1"];
    let mut server = Launch::new(&args).env("SSL_CERT_FILE", "/dev/zero").start();
    assert_eq!(server.turn("r1", "hello"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "r1"), ["engine_init_failed"]);
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.text("/error/message").contains("SSL_CERT_FILE"), "{error:?}");
    assert!(error.text("/error/detail").starts_with("config:"), "{error:?}");
}

/// DeepSeek refuses the result of a tool without the reasoning before the call, a model in vLLM thinks on from it under
/// its newer name alone, and OpenRouter and LiteLLM hand signed reasoning on.
#[test]
fn reasoning_goes_back_to_a_server_that_wants_it() {
    let details = json!([{ "type": "reasoning.encrypted", "data": "eHg=", "index": 0 }]);
    let block = |thinking: &str, signature: &str| {
        let block = json!({ "type": "thinking", "thinking": thinking, "signature": signature });
        json!({ "reasoning_content": thinking, "thinking_blocks": [block] })
    };
    let redacted = json!({ "type": "redacted_thinking", "data": "eHg=" });
    let blocks = json!([{ "type": "thinking", "thinking": "hm", "signature": "c2ln" }, redacted]);
    for (deltas, expected) in [
        (vec![json!({ "reasoning_content": "hm" })], json!({ "reasoning_content": "hm" })),
        (vec![json!({ "reasoning_details": details })], json!({ "reasoning_details": details })),
        (
            vec![json!({ "reasoning": "h" }), json!({ "reasoning": "m" })],
            json!({ "reasoning": "hm" }),
        ),
        (
            vec![json!({ "reasoning": "hm", "reasoning_content": "hm" })],
            json!({ "reasoning_content": "hm", "reasoning": "hm" }),
        ),
        (
            vec![
                block("h", ""),
                block("m", ""),
                block("", "c2ln"),
                json!({ "thinking_blocks": [redacted] }),
            ],
            json!({ "reasoning_content": "hm", "thinking_blocks": blocks }),
        ),
        (
            vec![json!({ "reasoning_text": "hm", "reasoning_opaque": "b3A=" })],
            json!({ "reasoning_text": "hm", "reasoning_opaque": "b3A=" }),
        ),
    ] {
        let call = json!({ "id": "call_a", "type": "function",
            "function": { "name": "get_time", "arguments": "{}" } });
        let mut calls: Vec<_> =
            deltas.iter().map(|delta| choice(json!({ "delta": delta }))).collect();
        calls.extend([
            choice(json!({ "delta": { "tool_calls": [call] } })),
            Step::Finish("tool_calls", None),
            Step::Done,
        ]);
        let provider = Provider::start(vec![calls, says("Noon."), says("Bye.")]);
        let mut server = openai(&provider, &[]).start();
        let declared = json!({ "name": "get_time", "description": "", "inputSchema": {} });
        let declare = json!({ "tools": [declared], "revision": 1 });
        server.send(json!({ "requestId": "t", "declareTools": declare }).to_string());
        server.send(submit("r1", "what time is it?"));
        server.wait_event("FrontendToolCallRequested");
        let result = json!({ "toolCallId": "call_a", "result": { "t": 1 } });
        server.send(json!({ "requestId": "1", "toolResult": result }).to_string());
        assert_eq!(server.wait_done("r1"), "ok");
        assert_eq!(server.turn("r2", "thanks"), "ok");
        server.finish();
        let messages = |number| provider.wait_request(number).body["messages"].clone();
        let (second, third) = (messages(2), messages(3));
        let answer = &second[1];
        assert_eq!(answer["role"], "assistant", "{second}");
        let mut reasoning = answer.as_object().expect("an object").clone();
        reasoning.retain(|name, _| !matches!(name.as_str(), "role" | "content" | "tool_calls"));
        assert_eq!(Value::from(reasoning), expected, "{second}");
        assert_eq!(&third[1], answer);
    }
}

#[test]
fn a_prompt_may_be_an_image_alone() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let request = OPENAI.with_image_alone();
    let content = request["messages"][0]["content"].as_array().expect("parts");
    assert_eq!(content.len(), 1, "{request}");
    assert_eq!(content[0]["type"], "image_url", "{request}");
}
