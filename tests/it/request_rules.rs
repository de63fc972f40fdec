//! The rules for requests find what breaks them: good requests with one fault each.

use crate::rules::broken_rules;
use serde_json::{Value, json};

/// A good request: where it goes, what it is, and what may be wrong with it.
struct Case {
    path: &'static str,
    host: &'static str,
    good: Value,
    /// The place of a fault, what stands there (nothing, if it is null), and a part of the rule.
    faults: Vec<(&'static str, Value, &'static str)>,
}

/// `body` with `value` at the place `pointer`, or without what is there if `value` is null.
fn changed(body: &Value, pointer: &str, value: &Value) -> Value {
    let mut body = body.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let place = body.pointer_mut(parent).expect("a place");
    if let Value::Object(members) = place {
        if value.is_null() {
            members.shift_remove(name).expect("a member");
        } else {
            members.insert(name.to_owned(), value.clone());
        }
    } else {
        let items = place.as_array_mut().expect("a list or an object");
        let at: usize = name.parse().expect("a number");
        if value.is_null() {
            items.remove(at);
        } else if at == items.len() {
            items.push(value.clone());
        } else {
            items[at] = value.clone();
        }
    }
    body
}

fn check(case: &Case) {
    let Case { path, host, good, faults } = case;
    let found = broken_rules(path, host, good);
    assert!(found.is_empty(), "{path} at {host}: {found:?}");
    for (pointer, value, rule) in faults {
        let bad = changed(good, pointer, value);
        let found = broken_rules(path, host, &bad);
        assert!(found.iter().any(|it| it.contains(rule)), "{path} {pointer} {value}: {found:?}");
    }
}

#[test]
fn chat_completions_with_a_fault_are_found() {
    let call = |id: &str| {
        json!({ "id": id, "type": "function",
                "function": { "name": "look", "arguments": "{}" } })
    };
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "" });
    let request = |a: &str, b: &str| {
        json!({ "tools": [{ "function": { "name": "look" } }], "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": null, "tool_calls": [call(a), call(b)] },
            result(b),
            result(a),
            { "role": "assistant", "content": "noon" },
            { "role": "user", "content": [{ "type": "text", "text": "and?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,eA==" } }] },
        ] })
    };
    let user = json!({ "role": "user", "content": "x" });
    let faults = vec![
        ("/tools/1", json!({ "function": { "name": "look" } }), "unique"),
        ("/tools/0/function/name", json!("a.b"), "pattern"),
        ("/messages/0/content", json!(" "), "not blank"),
        ("/messages/1/content", json!(""), "not blank"),
        ("/messages/1/role", json!("person"), "no such role"),
        ("/messages/6/content/1/type", json!("picture"), "no such part"),
        ("/messages/6/content/1/image_url/url", json!(""), "not blank"),
        ("/messages/2/tool_calls/0/function/name", json!("functions.look"), "pattern"),
        ("/messages/2/tool_calls/0/function/arguments", json!("[1]"), "text of an object"),
        ("/messages/2/tool_calls/0/type", json!("f"), "a call is of a function"),
        ("/messages/2/tool_calls/0/id", json!("x".repeat(65)), "pattern"),
        ("/messages/2/tool_calls/0/id", json!("b"), "unique"),
        ("/messages/2/tool_calls", json!([]), "a text or calls"),
        ("/messages/3", Value::Null, "the results of all calls follow"),
        ("/messages/3", user.clone(), "the results of all calls follow"),
        ("/messages/3/tool_call_id", json!("c"), "that of a call just before it"),
        ("/messages/3/content", json!([]), "a result is a text"),
        ("/messages/5/content", Value::Null, "a text or calls"),
        ("/messages/6", Value::Null, "the last one"),
        ("/messages/7", user.clone(), "alternate"),
        ("/messages/6/content", json!([]), "there are parts"),
        ("/messages/6/content/0/text", json!("\n"), "not blank"),
        ("/messages", json!([]), "the last one"),
    ];
    let (path, host) = ("/v1/chat/completions", "127.0.0.1:80");
    check(&Case { path, host, good: request("a", "b"), faults });
    let faults = vec![
        ("/messages/2/tool_calls/0/id", json!("call_abcd"), "the id of a call"),
        ("/messages/5", Value::Null, "no user follows a result"),
        ("/stream_options", json!({ "include_usage": true }), "Mistral takes none"),
        ("/messages/6/role", json!("assistant"), "an answer at the end has `prefix`"),
    ];
    let host = "api.mistral.ai";
    check(&Case { path, host, good: request("aaaaaaaa1", "aaaaaaaa2"), faults });
}

#[test]
fn responses_with_a_fault_are_found() {
    let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": "{}" });
    let result = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "" });
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,eA==" });
    let seen =
        |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": [image] });
    let said = |role: &str| json!({ "role": role, "content": "hi" });
    let part = json!({ "type": "output_text", "text": "hi" });
    let good = json!({ "tools": [{ "name": "look" }], "input": [
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] },
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" },
        call("a"),
        said("assistant"),
        call("b"),
        seen("b"),
        result("a"),
        said("assistant"),
        said("user"),
    ] });
    let faults = vec![
        ("/tools/0/name", json!(""), "pattern"),
        ("/input/0/content/0/text", json!(""), "not blank"),
        ("/input/0/content/0/type", json!("output_text"), "of the input"),
        ("/input/0/content", json!([]), "there are parts"),
        ("/input/1/id", Value::Null, "a reasoning has an id"),
        ("/input/1/summary", Value::Null, "a reasoning has a summary"),
        ("/input/1/encrypted_content", Value::Null, "a reasoning has its content"),
        ("/input/2", said("user"), "what the model wrote follows"),
        ("/input/2/call_id", json!("x".repeat(65)), "has its length"),
        ("/input/2/call_id", json!("b"), "unique"),
        ("/input/2/name", json!("a b"), "pattern"),
        ("/input/2/arguments", json!("{"), "text of an object"),
        ("/input/3", said("user"), "the results of all calls follow"),
        ("/input/3/content", json!([part]), "has id, status and annotations"),
        ("/input/3/content", json!(""), "not blank"),
        ("/input/6", said("assistant"), "the results of all calls follow"),
        ("/input/6", Value::Null, "the results of all calls follow"),
        ("/input/5/call_id", json!("c"), "that of a call before it"),
        ("/input/6/output", Value::Null, "a result is a text"),
        ("/input/5/output", json!([]), "there are parts"),
        ("/input/5/output/0/type", json!("image"), "of the input"),
        ("/input/5/output/0/image_url", json!(""), "not blank"),
        ("/input/8", Value::Null, "the last one"),
        ("/input/8", json!({ "type": "odd" }), "no such item"),
    ];
    check(&Case { path: "/v1/responses", host: "h", good, faults });
}

#[test]
fn messages_with_a_fault_are_found() {
    let said = |text: &str| json!({ "type": "text", "text": text });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "look", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "" });
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "eA==" });
    let image = json!({ "type": "image", "source": source });
    let seen = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": [image] });
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "s" });
    let message = |role: &str, content: Value| json!({ "role": role, "content": content });
    let good = json!({
        "model": "claude-opus-4-6",
        "max_tokens": 2_000,
        "thinking": { "type": "enabled", "budget_tokens": 1_024 },
        "tools": [{ "name": "look" }],
        "system": [said("be brief")],
        "messages": [
            message("user", json!([said("hi")])),
            message("assistant", json!([said("noon")])),
            message("user", json!([said("and?")])),
            message("assistant", json!([thinking, said("well"), call("a"), call("b")])),
            message("user", json!([seen("b"), result("a"), said("now?")])),
        ],
    });
    let failed =
        json!({ "type": "tool_result", "tool_use_id": "b", "content": "", "is_error": true });
    let faults = vec![
        ("/max_tokens", Value::Null, "there is a limit"),
        ("/max_tokens", json!(1_024), "below the limit"),
        ("/thinking/budget_tokens", json!(1), "from 1,024"),
        ("/temperature", json!(0.2), "with thinking it is not changed"),
        ("/top_p", json!(0.9), "with thinking it is 0.95 at least"),
        ("/messages/5", message("assistant", json!([said("well ")])), "no white space at its end"),
        ("/messages/5", message("assistant", json!([said("well")])), "no answer stands last"),
        ("/tools/0/name", json!("a.b"), "pattern"),
        ("/system/0/text", json!(""), "not blank"),
        ("/messages/0", Value::Null, "from the user on"),
        ("/messages/1", Value::Null, "alternate"),
        ("/messages/0/content", json!([]), "has content"),
        ("/messages/0/content/0/text", json!(" "), "not blank"),
        ("/messages/0/content/0/type", json!("thinking"), "no such block of a user"),
        ("/messages/1/content/0/type", json!("image"), "no such block in an answer"),
        ("/messages/1/content/1", thinking.clone(), "the final block is no thinking"),
        ("/messages/1/content/1", call("c"), "the results of all calls follow"),
        ("/messages/3/content/0/signature", json!(""), "signed"),
        ("/messages/3/content/0", Value::Null, "begins with thinking"),
        ("/messages/3/content/0/cache_control", json!({}), "no mark"),
        ("/messages/3/content/0/thinking", Value::Null, "has a text"),
        ("/messages/3/content/0", json!({ "type": "redacted_thinking" }), "has its data"),
        ("/messages/3/content/2/id", json!("a:1"), "the id of a call"),
        ("/messages/3/content/2/id", json!("b"), "unique"),
        ("/messages/3/content/2/name", json!("a.b"), "the name of a called tool"),
        ("/messages/3/content/2/input", json!("{}"), "arguments are an object"),
        ("/messages/4/content/0", failed, "not blank"),
        ("/messages/4/content/0/is_error", json!(true), "not blank"),
        ("/messages/4/content/1/content", json!(1), "a text or blocks"),
        ("/messages/4/content/0/content", json!([]), "has blocks"),
        ("/messages/4/content/0/content/0/type", json!("video"), "no such block in a result"),
        ("/messages/4/content/0/content/0/source/media_type", json!("image/bmp"), "a known type"),
        ("/messages/4/content/0", Value::Null, "the results of all calls follow"),
        ("/messages/4/content/0/tool_use_id", json!("c"), "that of a call just before it"),
        ("/messages/4/content/0", said("no"), "results come first"),
        ("/messages/4", Value::Null, "the last one"),
    ];
    let path = "/v1/messages";
    check(&Case { path, host: "h", good: good.clone(), faults });
    let marked = |text: &str| json!({ "type": "text", "text": text, "cache_control": {} });
    let marks: Vec<_> = ["1", "2", "3", "4", "5"].map(marked).into();
    let bad = changed(&good, "/system", &json!(marks));
    assert_eq!(broken_rules(path, "h", &bad), ["cache_control: there are four at most"]);
}

#[test]
fn contents_with_a_fault_are_found() {
    let said = |text: &str| json!({ "text": text });
    let call = |id: &str| json!({ "functionCall": { "id": id, "name": "look", "args": {} } });
    let signed = |id: &str| {
        let mut part = call(id);
        part["thoughtSignature"] = json!("s");
        part
    };
    let result = |id: &str| json!({ "functionResponse": { "id": id, "name": "look", "response": { "output": "" } } });
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "eA==" } });
    let seen = |id: &str| {
        let mut part = result(id);
        part["functionResponse"]["parts"] = json!([image]);
        part
    };
    let content = |role: &str, parts: Value| json!({ "role": role, "parts": parts });
    let good = json!({
        "tools": [{ "functionDeclarations": [{ "name": "look" }] }],
        "systemInstruction": { "parts": [said("be brief")] },
        "contents": [
            content("user", json!([said("hi")])),
            content("model", json!([said("noon"), { "text": "", "thoughtSignature": "s" }])),
            content("user", json!([said("and?")])),
            content("model", json!([signed("a"), call("b")])),
            content("user", json!([result("a"), seen("b")])),
        ],
    });
    let faults = vec![
        ("/tools/0/functionDeclarations/0/name", json!("a b"), "pattern"),
        ("/systemInstruction/parts/0/text", json!(""), "not blank"),
        ("/contents/0", Value::Null, "an answer follows the user"),
        ("/tools/0/functionDeclarations/0/name", json!("2look"), "begins with a letter"),
        ("/contents/0/role", json!("person"), "no such role"),
        ("/contents/0/parts", json!([]), "has parts"),
        ("/contents/0/parts/0/text", json!(""), "not blank"),
        ("/contents/0/parts/0/thought", json!(true), "only an answer"),
        ("/contents/0/parts/0", json!({}), "of one kind"),
        ("/contents/2", Value::Null, "an answer follows the user"),
        ("/contents/3/parts/0/thoughtSignature", Value::Null, "is signed"),
        ("/contents/3/parts/0/functionCall/name", json!("2look"), "the name of a tool"),
        ("/contents/3/parts/0/functionCall/args", json!([]), "are objects"),
        ("/contents/3/parts/0/functionCall/id", json!("c"), "in the order"),
        ("/contents/3/parts/1", Value::Null, "each call has its result"),
        ("/contents/4/parts/1/functionResponse/parts/0", said("a cat"), "is an image"),
        ("/contents/4/parts/0", Value::Null, "each call has its result"),
        ("/contents/4", Value::Null, "the last one"),
    ];
    let path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    check(&Case { path, host: "h", good: good.clone(), faults });
    // Models before it need no signature.
    let unsigned = changed(&good, "/contents/3/parts/0/thoughtSignature", &Value::Null);
    let older = "/models/gemini-2.5-pro:streamGenerateContent";
    let found = broken_rules(older, "h", &unsigned);
    assert_eq!(found, ["contents[4]: older models take no images in a result"]);
    let beside = changed(&unsigned, "/contents/4/parts/1", &result("b"));
    let beside = changed(&beside, "/contents/4/parts/2", &image);
    assert!(broken_rules(older, "h", &beside).is_empty());
}

#[test]
fn chats_of_ollama_with_a_fault_are_found() {
    let call = |name: &str| json!({ "function": { "name": name, "arguments": {} } });
    let result = |name: &str| json!({ "role": "tool", "tool_name": name, "content": "" });
    let seen = json!({ "role": "tool", "tool_name": "hear", "content": "", "images": ["eA=="] });
    let good = json!({ "tools": [{ "function": { "name": "look" } }], "messages": [
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "", "images": ["eA=="] },
        { "role": "assistant", "content": "", "tool_calls": [call("look"), call("hear")] },
        result("look"),
        seen,
        { "role": "assistant", "content": "noon" },
        { "role": "user", "content": "and?" },
    ] });
    let faults = vec![
        ("/tools/0/function/name", json!("a b"), "pattern"),
        ("/messages/0/content", json!(""), "not blank"),
        ("/messages/1/images", json!([]), "not blank"),
        ("/messages/1/role", json!("model"), "no such role"),
        ("/messages/2/tool_calls", json!([]), "a text or calls"),
        ("/messages/2/tool_calls/0/function/name", json!("a.b"), "pattern"),
        ("/messages/2/tool_calls/0/function/arguments", json!("{}"), "an object"),
        ("/messages/3", Value::Null, "in the order of their calls"),
        ("/messages/4", Value::Null, "the results of all calls follow"),
        ("/messages/3/content", Value::Null, "a result is a text"),
        ("/messages/4/images/0", json!(""), "not blank"),
        ("/messages/5/images", json!(["eA=="]), "prompts and results have images"),
        ("/messages/6", Value::Null, "the last one"),
        ("/messages/7", json!({ "role": "user", "content": "x" }), "alternate"),
    ];
    check(&Case { path: "/api/chat", host: "h", good, faults });
}

#[test]
fn other_requests_have_no_rules() {
    assert!(broken_rules("/v1/models", "h", &Value::Null).is_empty());
}
