//! Tools that the client of a session runs: what goes to the model and comes back, and what becomes
//! of a call that the client does not answer.

use crate::frames::{Frame, cancel, errors, finished_text, shutdown, snapshot, submit};
use crate::interface::Interface;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, Server, echo, openai};
use serde_json::{Value, json};

/// A call of a tool by the echo engine, and its answer after that.
const SCRIPT: &str = concat!(
    r#"{"reasoning":"I need the time.","text":"Let me look.","#,
    r#""tools":[{"name":"get_time","arguments":{"city":"Berlin"}},{"name":"get_time","arguments":{"city":"Lima"}}]}"#,
    "\n",
    r#"{"text":"Noon and morning."}"#,
    "\n"
);

pub(crate) fn declare(id: &str) -> String {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tool =
        json!({ "name": "get_time", "description": "The local time.", "inputSchema": schema });
    json!({ "requestId": id, "declareTools": { "tools": [tool], "revision": 1 } }).to_string()
}

pub(crate) fn result(id: &str, call: &str, result: Value) -> String {
    json!({ "requestId": id, "toolResult": { "toolCallId": call, "result": result } }).to_string()
}

/// An answer of a provider that calls tools: (id, name, arguments).
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Vec<Step> {
    let delta = |(index, (id, name, arguments)): (usize, &(&str, &str, &str))| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
    let deltas: Vec<Value> = calls.iter().enumerate().map(delta).collect();
    let chunk = json!({ "choices": [{ "delta": { "tool_calls": deltas } }] });
    vec![Step::Event(chunk.to_string()), Step::Finish("tool_calls", None), Step::Done]
}

/// A server whose engine plays [`SCRIPT`], and the folder that holds it.
pub(crate) fn scripted(args: &[&str]) -> (Folder, Server) {
    let folder = Folder::new();
    std::fs::write(folder.path("script"), SCRIPT).expect("a file");
    let script = folder.name("script");
    let args = [&["--echo-script", &script], args].concat();
    let server = echo(&args).start();
    (folder, server)
}

/// Declares the tool, submits, and waits until both calls of the script wait for the client.
pub(crate) fn asked(server: &mut Server) {
    server.send(declare("tools"));
    assert_eq!(server.wait_done("tools"), "ok");
    server.send(submit("run", "what time is it?"));
    for call in ["call_1", "call_2"] {
        let asked = server.wait_event("FrontendToolCallRequested");
        assert_eq!(asked.payload("toolCallId"), call);
    }
}

fn results(frames: &[Frame]) -> Vec<(&str, &str, &str)> {
    let ready = frames.iter().filter(|frame| frame.is_event("ChatToolResultReady"));
    ready
        .map(|frame| {
            (frame.payload("toolCallId"), frame.payload("status"), frame.payload("result"))
        })
        .collect()
}

/// As some models and servers write them.
#[test]
fn arguments_that_are_an_object_within_a_string_are_that_object() {
    let written = json!({ "city": "Lima" }).to_string();
    let encoded = json!(written).to_string();
    let provider = Provider::start(vec![
        calls(&[("call_1", "get_time", encoded.as_str())]),
        says("It is noon."),
    ]);
    let mut server = openai(&provider, &[]).start();
    server.send(declare("tools"));
    assert_eq!(server.wait_done("tools"), "ok");
    server.send(submit("run", "what time is it?"));
    let asked = server.wait_event("FrontendToolCallRequested");
    assert_eq!(asked.0["uiEvent"]["payload"]["input"], json!({ "city": "Lima" }), "{asked:?}");
    server.send(result("first", "call_1", json!({ "time": "12:00" })));
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    let sent = provider.wait_request(2).body["messages"].clone();
    let said = sent.as_array().expect("messages").iter().find(|it| it["role"] == "assistant");
    let call = &said.expect("an answer")["tool_calls"][0]["function"];
    assert_eq!(call["arguments"], written, "{sent}");
}

#[test]
fn results_in_any_order_bring_the_run_on() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    server.send(result("second", "call_2", json!({ "time": "07:00" })));
    assert_eq!(server.wait_done("second"), "ok");
    server.send(result("first", "call_1", json!({ "time": "12:00" })));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let expected = [
        ("call_2", "success", r#"{"time":"07:00"}"#),
        ("call_1", "success", r#"{"time":"12:00"}"#),
    ];
    assert_eq!(results(&frames), expected);
    assert_eq!(finished_text(&frames, "run"), "Let me look.Noon and morning.");
}

#[test]
fn a_provider_gets_the_tools_and_the_results_in_the_order_of_the_calls() {
    let first = calls(&[("a", "get_time", r#"{"city":"Berlin"}"#), ("b", "get_time", "{}")]);
    let provider = Provider::start(vec![first, says("Done.")]);
    let mut server = openai(&provider, &[]).start();
    server.send(declare("tools"));
    server.send(submit("run", "what time is it?"));
    server.wait_event("FrontendToolCallRequested");
    server.send(result("2", "b", json!({ "t": 2 })));
    server.send(result("1", "a", json!({ "t": 1 })));
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    let bodies: Vec<Value> = (1..=2).map(|number| provider.wait_request(number).body).collect();
    let tool = &bodies[0]["tools"][0]["function"];
    assert_eq!(tool["name"], "get_time");
    assert_eq!(tool["parameters"]["properties"]["city"]["type"], "string");
    assert_eq!(bodies[0]["tools"], bodies[1]["tools"]);
    let messages = bodies[1]["messages"].as_array().expect("messages");
    let [.., assistant, a, b] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(assistant["tool_calls"][0]["id"], "a");
    assert_eq!(*a, json!({ "role": "tool", "tool_call_id": "a", "content": r#"{"t":1}"# }));
    assert_eq!(*b, json!({ "role": "tool", "tool_call_id": "b", "content": r#"{"t":2}"# }));
}

/// As where the call was what the user wanted. An answer without a call is none without a text.
#[test]
fn a_model_may_have_nothing_to_add_to_a_result() {
    const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };
    let silent = || vec![Step::Finish("stop", Some((3, 0))), Step::Done];
    let thought = [vec![Step::Reasoning("hm".to_owned())], silent()].concat();
    for silent in [silent(), thought] {
        let called = calls(&[("a", "get_time", "{}")]);
        OPENAI.check_silence_after_results(called, "a", silent);
    }
    // One of the tools did what it was called for.
    let called = calls(&[("a", "get_time", "{}"), ("b", "no_such", "{}")]);
    OPENAI.check_silence_after_results(called, "a", silent());
    let provider = Provider::start(vec![silent(), says("late")]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r1", "hi"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "r1"), ["run_failed"]);
}

/// Nothing that the user wanted was done, and nobody said so.
#[test]
fn a_model_has_something_to_say_about_results_that_are_all_errors() {
    let silent = vec![Step::Finish("stop", Some((3, 0))), Step::Done];
    let called = calls(&[("a", "no_such", "{}"), ("b", "nor_this", "{}")]);
    let provider = Provider::start(vec![called, silent]);
    let mut server = openai(&provider, &[]).start();
    server.send(declare("tools"));
    assert_eq!(server.wait_done("tools"), "ok");
    assert_eq!(server.turn("r1", "hi"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "r1"), ["run_failed"]);
    assert!(results(&frames).iter().all(|(_, status, _)| *status == "error"), "{frames:?}");
    assert_eq!(provider.requests(), 2);
}

/// An object with this many levels of arrays and objects.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
}

/// What was taken as JSON, and is stored in binary, is read again, however many messages each level is there.
#[test]
fn a_result_that_is_nested_as_deep_as_a_request_may_be_is_there_when_the_session_goes_on() {
    let folder = Folder::new();
    std::fs::write(folder.path("script"), SCRIPT).expect("a file");
    let (script, store) = (folder.name("script"), folder.name("store"));
    let stored = ["--store", &store, "--session-id", "s"];
    let mut server = echo(&[&stored[..], &["--echo-script", &script]].concat()).start();
    asked(&mut server);
    for (id, call, levels) in [("one", "call_1", 33), ("two", "call_2", 120)] {
        server.send(result(id, call, nested(levels)));
        assert_eq!(server.wait_done(id), "ok");
    }
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
    let mut server = echo(&[&stored[..], &["--resume"]].concat()).start();
    assert_eq!(server.turn("next", "and now?"), "ok");
    let frames = server.finish().frames;
    assert!(errors(&frames, "").is_empty(), "{frames:?}");
}

/// A client may read frames with another implementation of protobuf.
#[test]
fn a_call_that_is_nested_too_deep_for_readers_of_protobuf_is_refused() {
    let deep = nested(31).to_string();
    let provider = Provider::start(vec![calls(&[("a", "get_time", &deep)]), says("Done.")]);
    let mut server = openai(&provider, &["--tool-timeout-ms", "1000"]).start();
    server.send(declare("tools"));
    server.send(submit("run", "what time is it?"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert!(!frames.iter().any(|frame| frame.is_event("FrontendToolCallRequested")));
    let [("a", "error", why)] = results(&frames)[..] else { panic!("{:?}", results(&frames)) };
    assert!(why.contains("more than 30 arrays and objects deep"), "{why}");
}

/// Such a reader gets the frames of other clients' requests, too.
#[test]
fn events_leave_out_what_is_nested_too_deep_for_readers_of_protobuf() {
    let (_folder, mut server) = scripted(&[]);
    for (id, levels, is_shown) in [("flat", 30, true), ("deep", 31, false)] {
        let tool = json!({ "name": "get_time", "inputSchema": nested(levels) });
        server.send(json!({ "requestId": id, "declareTools": { "tools": [tool] } }).to_string());
        let updated = server.wait_event("FrontendToolManifestUpdated");
        let tool = &updated.0["uiEvent"]["payload"]["tools"][0];
        assert_eq!(
            (&tool["name"], tool.get("inputSchema").is_some()),
            (&json!("get_time"), is_shown)
        );
        assert_eq!(server.wait_done(id), "ok");
    }
    server.send(submit("run", "what time is it?"));
    for call in ["call_1", "call_2"] {
        assert_eq!(server.wait_event("FrontendToolCallRequested").payload("toolCallId"), call);
    }
    for (call, levels, is_shown) in [("call_1", 30, true), ("call_2", 31, false)] {
        server.send(result(call, call, nested(levels)));
        let received = server.wait_event("FrontendToolResultReceived");
        assert_eq!(received.payload("toolCallId"), call);
        assert_eq!(received.0["uiEvent"]["payload"].get("result").is_some(), is_shown, "{levels}");
    }
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let texts: Vec<_> = results(&frames).into_iter().map(|(_, _, text)| text.to_owned()).collect();
    assert_eq!(texts, [nested(30).to_string(), nested(31).to_string()], "the model gets all of it");
}

/// The message to the client has floats alone.
#[test]
fn a_call_whose_integer_the_client_would_get_rounded_is_refused() {
    let first = calls(&[("a", "get_time", r#"{"city":9007199254740993}"#)]);
    let provider = Provider::start(vec![first, says("Done.")]);
    let mut server = openai(&provider, &["--tool-timeout-ms", "1000"]).start();
    server.send(declare("tools"));
    server.send(submit("run", "what time is it?"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert!(!frames.iter().any(|frame| frame.is_event("FrontendToolCallRequested")));
    let [("a", "error", why)] = results(&frames)[..] else { panic!("{:?}", results(&frames)) };
    assert!(why.contains("the integer 9007199254740993 in its arguments"), "{why}");
}

#[test]
fn an_answer_to_no_open_call_is_an_error_and_changes_nothing() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    server.send(result("unknown", "call_9", json!({})));
    server.send(result("good", "call_1", json!({})));
    server.send(result("twice", "call_1", json!({})));
    server.send(result("other", "call_2", json!({})));
    assert_eq!(server.wait_done("run"), "ok");
    server.send(result("late", "call_2", json!({})));
    assert_eq!(server.wait_done("late"), "failed");
    let frames = server.finish().frames;
    for id in ["unknown", "twice", "late"] {
        assert_eq!(errors(&frames, id), ["unknown_tool_call"], "{id}");
    }
    assert_eq!(results(&frames).len(), 2);
}

#[test]
fn an_error_of_the_client_reaches_the_model_and_the_run_goes_on() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    let failed = json!({ "requestId": "1", "toolResult":
        { "toolCallId": "call_1", "status": "error", "error": "no such city" } });
    server.send(failed.to_string());
    server.send(result("2", "call_2", json!({})));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert_eq!(results(&frames)[0], ("call_1", "error", "no such city"));
}

#[test]
fn a_cancel_closes_the_calls_that_wait() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    server.send(cancel("stop"));
    assert_eq!(server.wait_done("run"), "stopped");
    server.send(result("late", "call_1", json!({})));
    assert_eq!(server.wait_done("late"), "failed");
    let frames = server.finish().frames;
    assert_eq!(results(&frames).len(), 2);
    assert!(results(&frames).iter().all(|(_, status, _)| *status == "error"));
}

#[test]
fn the_end_of_input_closes_the_calls_that_wait_and_the_run_ends() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    server.close_stdin();
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let all = results(&frames);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(_, _, text)| text.contains("input has ended")), "{all:?}");
}

#[test]
fn a_shutdown_waits_for_the_client() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    server.send(shutdown("bye"));
    server.send(result("1", "call_1", json!({})));
    server.send(result("2", "call_2", json!({})));
    assert_eq!(server.wait_done("run"), "ok");
    assert_eq!(server.wait_done("bye"), "shutdown");
    server.finish();
}

#[test]
fn a_list_that_cannot_be_used_leaves_the_last_one() {
    let (_folder, mut server) = scripted(&[]);
    server.send(declare("good"));
    for (id, tools) in [
        ("name", json!([{ "name": "not a name" }])),
        ("twice", json!([{ "name": "a" }, { "name": "a" }])),
        ("backend", json!([{ "name": "a", "mode": "TOOL_EXECUTION_MODE_BACKEND" }])),
        ("schema", json!([{ "name": "a", "inputSchema": { "type": "array" } }])),
    ] {
        server.send(json!({ "requestId": id, "declareTools": { "tools": tools } }).to_string());
        assert_eq!(server.wait_done(id), "failed");
    }
    server.send(submit("run", "go"));
    server.wait_event("FrontendToolCallRequested");
    server.send(snapshot("look"));
    server.send(result("1", "call_1", json!({})));
    server.send(result("2", "call_2", json!({})));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    for id in ["name", "twice", "backend", "schema"] {
        assert_eq!(errors(&frames, id), ["invalid_tools"], "{id}");
    }
    let look = frames.iter().find(|frame| frame.is_snapshot() && frame.id() == "look");
    let entities = look.expect("a snapshot").0["snapshot"]["entities"].clone();
    let entities = entities.as_array().expect("entities");
    let calls: Vec<_> = entities.iter().filter(|entity| entity["kind"] == "ChatToolCall").collect();
    assert_eq!(calls[0]["payload"]["status"], "executing");
    assert_eq!(calls[0]["payload"]["input"], r#"{"city":"Berlin"}"#);
}

/// The event repeats the whole list, and what it repeats has to have a JSON form.
#[test]
fn a_list_is_refused_for_a_tool_that_it_does_not_offer() {
    let (_folder, mut server) = scripted(&[]);
    asked(&mut server);
    let unusable = [
        ("mode", json!({ "name": "b", "mode": 99 })),
        ("nameless", json!({})),
        ("schema", json!({ "name": "b", "inputSchema": { "type": "array" } })),
    ];
    for (id, tool) in &unusable {
        let tools = json!([{ "name": "a", "available": true }, tool]);
        server.send(json!({ "requestId": id, "declareTools": { "tools": tools } }).to_string());
        assert_eq!(server.wait_done(id), "failed", "{id}");
    }
    server.send(result("1", "call_1", json!({})));
    server.send(result("2", "call_2", json!({})));
    assert_eq!(server.wait_done("run"), "ok");
    let backend = json!([
        { "name": "a", "available": true },
        { "name": "b", "mode": "TOOL_EXECUTION_MODE_BACKEND" },
    ]);
    server.send(json!({ "requestId": "good", "declareTools": { "tools": backend } }).to_string());
    assert_eq!(server.wait_done("good"), "ok");
    let frames = server.finish().frames;
    for (id, _) in unusable {
        assert_eq!(errors(&frames, id), ["invalid_tools"], "{id}");
    }
}

#[test]
fn bad_arguments_and_unknown_tools_are_results_that_the_model_reads() {
    let first = calls(&[("a", "get_time", r#"{"city"#), ("b", "get_tme", "{}")]);
    let provider = Provider::start(vec![first, says("Sorry.")]);
    let mut server = openai(&provider, &[]).start();
    server.send(declare("tools"));
    server.send(submit("run", "what time is it?"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let all = results(&frames);
    assert!(all[0].2.contains("not valid JSON"), "{all:?}");
    assert!(all[1].2.contains("The tools are: get_time"), "{all:?}");
    let body = provider.wait_request(2).body;
    let messages = body["messages"].as_array().expect("messages");
    let sent = messages.iter().filter(|message| message["role"] == "tool");
    assert_eq!(sent.count(), 2);
}

#[test]
fn extensions_are_named_and_turned_on_by_requests() {
    let mut server = echo(&["--extensions", "approvals,steer"]).start();
    let hello = server.wait("hello", |frame| frame.0.get("hello").is_some());
    let capabilities = hello.0["hello"]["capabilities"].as_array().expect("a list").clone();
    for name in ["approvals", "steer"] {
        assert!(capabilities.contains(&json!(name)), "{capabilities:?}");
    }
    let enable = |id: &str, names: Value| {
        json!({ "requestId": id, "enable": { "extensions": names } }).to_string()
    };
    server.send(enable("good", json!(["tool-servers", "client-tools"])));
    assert_eq!(server.wait_done("good"), "ok");
    server.send(enable("bad", json!(["tool-servers", "telepathy"])));
    assert_eq!(server.wait_done("bad"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "bad"), ["unknown_extension"]);
}
