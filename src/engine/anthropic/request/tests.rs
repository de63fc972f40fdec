//! What a conversation becomes in a request.

use super::*;
use crate::chat::event::{ProviderData, ToolCall};
use crate::protocol::id::ToolCallId;
use serde_json::json;
use std::sync::Arc;

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn call(id: &str) -> ToolCall {
    ToolCall { id: ToolCallId(id.into()), name: "look".into() }
}

fn look() -> ToolSpec {
    let schema = json!({ "properties": { "city": { "type": "string" } }, "oneOf": [{}] });
    let Value::Object(schema) = schema else { panic!("no object") };
    ToolSpec { name: "look".into(), description: "Looks.".into(), input_schema: Arc::new(schema) }
}

fn data(engine: &'static str, model: &str, blocks: Value) -> ProviderData {
    ProviderData { engine, model: model.into(), json: blocks.to_string().into() }
}

fn user(text: &str) -> Message<'_> {
    Message::user(text, &[])
}

fn says(text: &str) -> Message<'_> {
    Message::Assistant { text: text.into(), calls: Vec::new(), provider_data: None }
}

fn sent(messages: &[Message<'_>], tools: &[ToolSpec]) -> String {
    String::from_utf8(body("m", messages, tools).expect("serializes")).expect("UTF-8")
}

/// The request without cache marks.
fn unmarked(messages: &[Message<'_>], tools: &[ToolSpec]) -> Value {
    serde_json::from_str(&sent(messages, tools).replace(MARK, "")).expect("JSON")
}

#[test]
fn a_conversation_takes_the_form_of_the_interface() {
    let (a, b) = (call("a"), call("b:1"));
    let messages = [
        Message::System("be brief"),
        user("q\u{2028}\u{0}"),
        Message::Assistant {
            text: "Let me look.".into(),
            calls: vec![(&a, r#" {"city": "Rome", "n": 1.50} "#), (&b, "{\"ci")],
            provider_data: None,
        },
        Message::Tool { tool: &a, result: "sun".into(), is_error: false },
        Message::Tool { tool: &b, result: "".into(), is_error: false },
        user("and?"),
        Message::System("be exact"),
        says("done"),
        says(" "),
        user("thanks"),
    ];
    let expected = json!({
        "model": "m",
        "max_tokens": 32_000,
        "stream": true,
        "tools": [{ "name": "look", "description": "Looks.", "input_schema": {
            "type": "object", "properties": { "city": { "type": "string" } },
        } }],
        "system": [{ "type": "text", "text": "be brief" }, { "type": "text", "text": "be exact" }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "q\u{2028}\u{0}" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Let me look." },
                { "type": "tool_use", "id": "a", "name": "look", "input": { "city": "Rome", "n": 1.5 } },
                { "type": "tool_use", "id": "b_1", "name": "look",
                  "input": { "unreadable_arguments": "{\"ci" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "sun" },
                { "type": "tool_result", "tool_use_id": "b_1", "content": "" },
                { "type": "text", "text": "and?" },
            ] },
            { "role": "assistant", "content": [{ "type": "text", "text": "done" }] },
            { "role": "user", "content": [{ "type": "text", "text": "thanks" }] },
        ],
    });
    assert_eq!(unmarked(&messages, &[look()]), expected);
    // The arguments are sent as the model wrote them.
    assert!(sent(&messages, &[]).contains(r#""input":{"city": "Rome", "n": 1.50}"#));
}

#[test]
fn reasoning_goes_back_in_its_place_to_the_model_that_wrote_it() {
    let blocks = json!([
        { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "eHg" },
        { "type": "text", "bytes": 3 },
        { "type": "thinking", "thinking": "", "signature": "Mg==" },
        { "type": "text", "bytes": 2 },
        { "type": "tool_use" },
        { "type": "thinking", "thinking": "3", "signature": "Mw==" },
        { "type": "tool_use" },
    ]);
    let (a, b) = (call("a"), call("b"));
    let content = |data: &ProviderData, text: &str, calls: &[&ToolCall]| {
        let calls = calls.iter().map(|tool| (*tool, "{}")).collect();
        let answer =
            Message::Assistant { text: text.to_owned().into(), calls, provider_data: Some(data) };
        let messages = [user("q"), answer, user("next")];
        unmarked(&messages, &[])["messages"][1]["content"].clone()
    };
    let tool_use = |id: &str| json!({ "type": "tool_use", "id": id, "name": "look", "input": {} });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let own = data("anthropic", "m", blocks.clone());
    let whole = json!([
        { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "eHg" },
        text("one"),
        { "type": "thinking", "thinking": "", "signature": "Mg==" },
        text("tw"),
        tool_use("a"),
        { "type": "thinking", "thinking": "3", "signature": "Mw==" },
        tool_use("b"),
    ]);
    assert_eq!(content(&own, "onetw", &[&a, &b]), whole);
    // What was added to the answer follows it, and what was left out of it is left out.
    assert_eq!(content(&own, "onetw!", &[&a, &b])[8], text("!"));
    let blank = content(&own, "", &[&a, &b]);
    assert_eq!(blank.as_array().map(Vec::len), Some(6), "{blank}");
    // Not what another model or engine wrote, or what belongs to another answer.
    let plain = json!([text("onetw"), tool_use("a"), tool_use("b")]);
    for other in [
        data("anthropic", "other", blocks.clone()),
        data("openai", "m", blocks.clone()),
        data("anthropic", "m", json!({ "odd": 1 })),
    ] {
        assert_eq!(content(&other, "onetw", &[&a, &b]), plain, "{other:?}");
    }
    assert_eq!(content(&own, "onetw", &[&a]), json!([text("onetw"), tool_use("a")]));
}

/// Each turn begins with the bytes of the one before, but for the marks: the provider reads the rest
/// from its cache.
#[test]
fn a_turn_begins_with_the_bytes_of_the_turn_before() {
    let tool = call("a");
    let reasoned = data(
        "anthropic",
        "m",
        json!([{ "type": "thinking", "thinking": "t", "signature": "s" }, { "type": "tool_use" }]),
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
                messages.push(Message::Tool { tool: &tool, result: "42".into(), is_error: false });
            }
            let now = sent(&messages, &[look()]);
            assert!((2..=3).contains(&now.matches(MARK).count()), "{now}");
            let now = now.replace(MARK, "");
            let shared = before.strip_suffix("]}").unwrap_or_default();
            assert!(now.starts_with(shared), "turn {turn}:\n{before}\n{now}");
            before = now;
        }
        messages.push(says("answer"));
    }
}

#[test]
fn the_cache_is_marked_after_what_stays_and_at_the_last_two_prompts() {
    let marks = |messages: &[Message<'_>], tools: &[ToolSpec]| -> Vec<String> {
        let body: Value = serde_json::from_str(&sent(messages, tools)).expect("JSON");
        let mut found = Vec::new();
        collect_marks("", &body, &mut found);
        found
    };
    assert_eq!(marks(&[user("a")], &[]), ["/messages/0/content/0"]);
    assert_eq!(marks(&[user("a")], &[look()]), ["/messages/0/content/0", "/tools/0"]);
    let messages = [Message::System("s"), user("a"), says("b"), user("c"), says("d"), user("e")];
    let expected = ["/messages/2/content/0", "/messages/4/content/0", "/system/0"];
    assert_eq!(marks(&messages, &[look()]), expected);
}

/// The places in `value` that carry a mark.
fn collect_marks(place: &str, value: &Value, found: &mut Vec<String>) {
    if value.get("cache_control").is_some() {
        found.push(place.to_owned());
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                collect_marks(&format!("{place}/{name}"), field, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_marks(&format!("{place}/{index}"), item, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
