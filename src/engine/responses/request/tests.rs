//! What a conversation becomes in a request.

use super::*;
use crate::engine::provider::media::{attached, linked};
use crate::engine::provider::testing::{self, call, data, look, says, user};
use serde_json::{Value, json};

fn sent(messages: &[Message<'_>], tools: &[ToolSpec]) -> String {
    let spec = CallSpec { tools: tools.into(), ..CallSpec::default() };
    String::from_utf8(body_of(messages, "m", &spec).expect("serializes")).expect("UTF-8")
}

/// The request of a call with these settings, and with a schema.
fn sent_with(settings: &Value, schema: Option<Value>, messages: &[Message<'_>]) -> Value {
    let spec = testing::spec(settings, &[], schema.as_ref());
    let body = body_of(messages, "m", &spec).expect("serializes");
    serde_json::from_slice(&body).expect("JSON")
}

fn json_of(messages: &[Message<'_>], tools: &[ToolSpec]) -> Value {
    serde_json::from_str(&sent(messages, tools)).expect("JSON")
}

fn said_by(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

/// `EasyInputMessage`, which strict servers take, too.
fn answered(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

#[test]
fn a_conversation_takes_the_form_of_the_interface() {
    let (a, b) = (call("a"), call("b"));
    let messages = [
        Message::System("be brief"),
        Message::System("be kind"),
        user("q\u{2028}\u{0}"),
        Message::Assistant {
            text: "Let me look.".into(),
            calls: vec![(&a, r#" {"city": "Rome"} "#), (&b, "{\"ci")],
            provider_data: None,
        },
        Message::Tool { tool: &a, result: "sun".into(), images: &[], is_error: false },
        Message::Tool { tool: &b, result: "".into(), images: &[], is_error: true },
        Message::System("be exact"),
        says("done"),
        user("thanks"),
    ];
    let called = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": arguments });
    let returned = |id: &str, output: &str| json!({ "type": "function_call_output", "call_id": id, "output": output });
    let expected = json!({
        "model": "m",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "tools": [{ "type": "function", "name": "look", "description": "Looks.", "strict": false,
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } } } }],
        "instructions": "be brief\n\nbe kind",
        "input": [
            said_by("user", "input_text", "q\u{2028}\u{0}"),
            answered("Let me look."),
            called("a", r#" {"city": "Rome"} "#),
            called("b", r#"{"unreadable_arguments":"{\"ci"}"#),
            returned("a", "sun"),
            returned("b", ""),
            said_by("system", "input_text", "be exact"),
            answered("done"),
            said_by("user", "input_text", "thanks"),
        ],
    });
    assert_eq!(json_of(&messages, &[look()]), expected);
    let bare = json_of(&[user("q")], &[]);
    assert!(bare.get("tools").is_none() && bare.get("instructions").is_none(), "{bare}");
}

#[test]
fn reasoning_goes_back_in_its_place_to_the_model_that_wrote_it() {
    let reasoning = |encrypted: &str| {
        json!({ "type": "reasoning", "id": format!("rs_{encrypted}"), "summary": [],
                "encrypted_content": encrypted })
    };
    let text = |bytes: usize| json!({ "type": "text", "bytes": bytes, "phase": "commentary" });
    let items = json!([
        reasoning("1"), reasoning("2"), text(3), reasoning("3"), { "type": "text", "bytes": 2 },
        { "type": "call" }, reasoning("4"), { "type": "call" }, reasoning("5"),
    ]);
    let (a, b) = (call("a"), call("b"));
    let input = |data: &ProviderData, text: &str, calls: &[&ToolCall]| {
        let calls = calls.iter().map(|tool| (*tool, "{}")).collect();
        let answer =
            Message::Assistant { text: text.to_owned().into(), calls, provider_data: Some(data) };
        let mut input = json_of(&[answer], &[])["input"].clone();
        // The phase apart, to compare the rest.
        let phases: Vec<Value> = input
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .filter_map(|item| item.as_object_mut()?.shift_remove("phase"))
            .collect();
        (input, phases)
    };
    let says = |text: &str| answered(text);
    let called = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": "{}" });
    let own = data("responses", "m", items.clone());
    // The last reasoning has nothing after it, and is refused alone.
    let whole = json!([
        reasoning("1"),
        reasoning("2"),
        says("one"),
        reasoning("3"),
        says("tw"),
        called("a"),
        reasoning("4"),
        called("b"),
    ]);
    assert_eq!(input(&own, "onetw", &[&a, &b]), (whole, vec![json!("commentary")]));
    // What was added to the answer follows it; what was left out of it takes no reasoning along.
    assert_eq!(input(&own, "onetw!", &[&a, &b]).0[8], says("!"));
    let blank = json!([
        reasoning("1"),
        reasoning("2"),
        reasoning("3"),
        called("a"),
        reasoning("4"),
        called("b"),
    ]);
    assert_eq!(input(&own, "", &[&a, &b]).0, blank);
    // Not what another model or engine wrote, or what belongs to another answer.
    let plain = json!([says("onetw"), called("a"), called("b")]);
    for other in [
        data("responses", "other", items.clone()),
        data("openai", "m", items.clone()),
        data("responses", "m", json!({ "odd": 1 })),
    ] {
        assert_eq!(input(&other, "onetw", &[&a, &b]), (plain.clone(), Vec::new()), "{other:?}");
    }
    assert_eq!(input(&own, "onetw", &[&a]).0, json!([says("onetw"), called("a")]));
}

#[test]
fn reasoning_that_is_not_encrypted_goes_back_as_it_came() {
    let content = json!([{ "type": "reasoning_text", "text": "hm" }]);
    let reasoned = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "content": content });
    let own = data("responses", "m", json!([reasoned, { "type": "call" }]));
    let tool = call("a");
    let answer = Message::Assistant {
        text: "".into(),
        calls: vec![(&tool, "{}")],
        provider_data: Some(&own),
    };
    assert_eq!(json_of(&[answer], &[])["input"][0], reasoned);
}

#[test]
fn names_and_ids_of_calls_take_the_patterns_of_the_interface() {
    let mut tool = call(&"x".repeat(65));
    tool.name = "functions.look".to_owned();
    let calls = vec![(&tool, "{}")];
    let answer = Message::Assistant { text: "".into(), calls, provider_data: None };
    let result = Message::Tool { tool: &tool, result: "1".into(), images: &[], is_error: false };
    let input = json_of(&[answer, result], &[])["input"].clone();
    assert_eq!(input[0]["name"], "functions_look");
    assert_eq!(input[0]["call_id"].as_str().map(str::len), Some(64));
    assert_eq!(input[0]["call_id"], input[1]["call_id"]);
}

/// OpenAI answers with status 400 where a model that doesn't reason is asked for its reasoning.
#[test]
fn a_model_that_does_not_reason_is_not_asked_for_it() {
    let body = body("gpt-4o-mini", &CallSpec::default()).expect("serializes");
    assert!(!String::from_utf8_lossy(&body).contains("include"));
}

/// Each turn begins with the bytes of the one before: the provider reads them from its cache.
#[test]
fn a_turn_begins_with_all_bytes_of_the_turn_before() {
    let tool = call("a");
    let reasoned = data(
        "responses",
        "m",
        json!([{ "type": "reasoning", "summary": [], "encrypted_content": "s" }, { "type": "call" }]),
    );
    let mut messages = vec![Message::System("be brief")];
    let mut before = String::new();
    for turn in 0..8 {
        messages.push(user("question"));
        for result in [false, true] {
            if result {
                messages.push(Message::Assistant {
                    text: "".into(),
                    calls: vec![(&tool, "{\"a\": [1, 2]}")],
                    provider_data: Some(&reasoned),
                });
                messages.push(Message::Tool {
                    tool: &tool,
                    result: "42".into(),
                    images: &[],
                    is_error: false,
                });
            }
            let now = sent(&messages, &[look()]);
            let shared = before.strip_suffix("]}").unwrap_or_default();
            assert!(now.starts_with(shared), "turn {turn}:\n{before}\n{now}");
            before = now;
        }
        messages.push(says("answer"));
    }
}

#[test]
fn settings_have_the_names_of_the_interface() {
    let settings = json!({
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "reasoning_effort": "low",
        "stop": ["END"], "seed": 7, "reasoning_budget": 10, "reasoning_summary": "auto",
    });
    let sent = sent_with(&settings, None, &[user("q")]);
    let expected = json!({
        "model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 100,
        "reasoning": { "effort": "low", "summary": "auto" },
        "input": [said_by("user", "input_text", "q")],
    });
    assert_eq!(sent, expected);
    let mut all = CallSettings::default();
    assert!(ignored_settings("m", &all).is_empty());
    for (name, value) in settings.as_object().expect("an object") {
        all.set(name, value).expect("a setting");
    }
    assert_eq!(ignored_settings("m", &all), ["stop", "seed", "reasoning_budget"]);
    let reasoning = |summary: &str| {
        let settings = json!({ "reasoning_summary": summary });
        sent_with(&settings, None, &[user("q")]).get("reasoning").cloned()
    };
    assert_eq!(reasoning("detailed"), Some(json!({ "summary": "detailed" })));
    assert_eq!(reasoning("none"), None);
}

#[test]
fn a_schema_is_sent_as_the_format_or_in_the_instructions() {
    let open = json!({ "type": "object", "properties": { "a": {} } });
    let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } },
        "required": ["a"], "additionalProperties": false });
    let list = json!({ "type": "array" });
    let messages = [Message::System("be brief"), user("q")];
    for (schema, is_strict) in [(&open, false), (&closed, true)] {
        let sent = sent_with(&json!({}), Some(schema.clone()), &messages);
        let format = json!({ "type": "json_schema", "name": "answer", "schema": schema,
            "strict": is_strict });
        assert_eq!(sent["text"]["format"], format);
        assert_eq!(sent["instructions"], "be brief");
    }
    // OpenAI takes nothing but objects.
    for (settings, schema) in [(json!({ "structured": "prompt" }), open), (json!({}), list.clone())]
    {
        let sent = sent_with(&settings, Some(schema.clone()), &messages);
        assert!(sent.get("text").is_none(), "{sent}");
        let instructions = sent["instructions"].as_str().expect("a text");
        assert!(instructions.starts_with("be brief\n\n"), "{instructions}");
        assert!(instructions.ends_with(&schema.to_string()), "{instructions}");
    }
    let sent = sent_with(&json!({ "structured": "native" }), Some(list), &messages);
    assert_eq!(sent["text"]["format"]["schema"]["type"], "array");
}

#[test]
fn images_and_files_stand_before_the_text() {
    let attachments = [
        attached("image/png", "a.png", b"abc"),
        linked("image/jpeg", "https://h/b.jpg"),
        attached("application/pdf", "c.pdf", b"abc"),
        linked("application/pdf", "https://h/d.pdf"),
        attached("text/plain", "e.txt", b"hi"),
    ];
    let sent = json_of(&[Message::user("what is it?", &attachments)], &[]);
    let expected = json!([
        { "type": "input_image", "image_url": "data:image/png;base64,YWJj", "detail": "auto" },
        { "type": "input_image", "image_url": "https://h/b.jpg", "detail": "auto" },
        { "type": "input_file", "filename": "c.pdf",
          "file_data": "data:application/pdf;base64,YWJj" },
        { "type": "input_file", "file_url": "https://h/d.pdf" },
        { "type": "input_text", "text": "<file name=\"e.txt\">\nhi\n</file>" },
        { "type": "input_text", "text": "what is it?" },
    ]);
    assert_eq!(sent["input"][0]["content"], expected);
    let alone = json_of(&[Message::user("", &attachments[..1])], &[]);
    assert_eq!(alone["input"][0]["content"].as_array().map(Vec::len), Some(1));
    let sound = [attached("audio/wav", "a.wav", b"abc")];
    let refused = body_of(&[Message::user("q", &sound)], "m", &CallSpec::default());
    assert!(matches!(refused, Err(Refused::Unsupported(_))), "{refused:?}");
}
