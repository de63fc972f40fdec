//! What a conversation becomes in a request.

use super::*;
use crate::conversation::event::ProviderData;
use crate::conversation::tool::ToolSpec;
use crate::engine::provider::testing::{attachment, call, refusal, spec, user};
use crate::protocol::attachment::Content as Source;
use serde_json::json;
use std::sync::Arc;

fn look() -> ToolSpec {
    let Value::Object(schema) = json!({ "type": "object", "properties": {} }) else { panic!() };
    ToolSpec { name: "look".into(), description: "Looks.".into(), input_schema: Arc::new(schema) }
}

fn sent(spec: &CallSpec, messages: &[Message<'_>]) -> Value {
    serde_json::from_slice(&body("m", spec, messages).expect("serializes")).expect("JSON")
}

#[test]
fn a_conversation_takes_the_form_of_the_interface() {
    let (a, b) = (call("a"), call("b"));
    let json = r#"{"thinking":"hm"}"#;
    let own = ProviderData {
        engine: "ollama".into(),
        host: "h".into(),
        model: "m".into(),
        json: json.into(),
    };
    let other = ProviderData {
        engine: "ollama".into(),
        host: "h".into(),
        model: "other".into(),
        json: json.into(),
    };
    let messages = [
        Message::System("be brief"),
        user("q\u{2028}\u{0}"),
        Message::Assistant {
            text: "".into(),
            calls: vec![(&a, r#"{"city": "Rome", "n": 1.50}"#), (&b, "{\"ci")],
            provider_data: Some(&own),
        },
        Message::Tool { tool: &a, result: "sun".into(), images: &[], is_error: false },
        Message::Tool { tool: &b, result: "no".into(), images: &[], is_error: true },
        Message::Assistant { text: "done".into(), calls: Vec::new(), provider_data: Some(&other) },
        user("thanks"),
    ];
    let spec = spec(&json!({}), &[look()], None);
    let expected = json!({
        "model": "m",
        "stream": true,
        "tools": [{ "type": "function", "function": { "name": "look", "description": "Looks.",
            "parameters": { "type": "object", "properties": {} } } }],
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "q\u{2028}\u{0}" },
            { "role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                { "id": "a", "function": { "name": "look", "arguments": { "city": "Rome", "n": 1.5 } } },
                { "id": "b", "function": { "name": "look",
                  "arguments": { "unreadable_arguments": "{\"ci" } } },
            ] },
            { "role": "tool", "content": "sun", "tool_name": "look", "tool_call_id": "a" },
            { "role": "tool", "content": "no", "tool_name": "look", "tool_call_id": "b" },
            { "role": "assistant", "content": "done" },
            { "role": "user", "content": "thanks" },
        ],
    });
    assert_eq!(sent(&spec, &messages), expected);
}

/// Each turn begins with the bytes of the one before: the server has read the rest already.
#[test]
fn a_turn_begins_with_the_bytes_of_the_turn_before() {
    let spec = spec(&json!({ "temperature": 0, "seed": 1 }), &[look()], None);
    let tool = call("a");
    let mut messages = vec![Message::System("be brief")];
    let mut before = String::new();
    for turn in 0..8 {
        messages.push(user("question"));
        let now = String::from_utf8(body("m", &spec, &messages).expect("serializes"));
        let now = now.expect("UTF-8");
        let shared = before.strip_suffix("]}").unwrap_or_default();
        assert!(now.starts_with(shared), "turn {turn}:\n{before}\n{now}");
        before = now;
        messages.push(Message::Assistant {
            text: "".into(),
            calls: vec![(&tool, "{\"a\": [1, 2]}")],
            provider_data: None,
        });
        messages.push(Message::Tool {
            tool: &tool,
            result: "42".into(),
            images: &[],
            is_error: false,
        });
    }
}

#[test]
fn settings_have_their_places() {
    let all = json!({ "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "stop": ["END"], "seed": 7,
        "reasoning_effort": "low" });
    let request = sent(&spec(&all, &[], None), &[user("q")]);
    let options = json!({ "temperature": 0.5, "top_p": 0.9, "num_predict": 100, "stop": ["END"],
        "seed": 7 });
    assert_eq!(request["options"], options);
    let think = |model: &str, effort: &str| {
        let spec = spec(&json!({ "reasoning_effort": effort }), &[], None);
        let body = body(model, &spec, &[user("q")]).expect("serializes");
        serde_json::from_slice::<Value>(&body).expect("JSON")["think"].clone()
    };
    for (effort, level) in [("minimal", "low"), ("medium", "medium"), ("max", "high")] {
        assert_eq!(think("gpt-oss:20b", effort), level);
        assert_eq!(think("qwen3", effort), true, "it has no levels");
    }
    for model in ["gpt-oss:20b", "qwen3"] {
        assert_eq!(think(model, "none"), false);
    }
    let plain = sent(&CallSpec::default(), &[user("q")]);
    for name in ["options", "think", "format", "tools"] {
        assert_eq!(plain.get(name), None, "{name}");
    }
}

#[test]
fn a_schema_is_the_format_unless_the_model_is_to_get_it() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let messages = [Message::System("be brief"), user("q")];
    let native = sent(&spec(&json!({}), &[], Some(&schema)), &messages);
    assert_eq!(native["format"], schema);
    assert_eq!(native["messages"].as_array().map(Vec::len), Some(2));
    let prompt = spec(&json!({ "structured": "prompt" }), &[], Some(&schema));
    let prompt = sent(&prompt, &messages);
    assert_eq!(prompt.get("format"), None);
    let instruction = &prompt["messages"][1];
    assert_eq!(instruction["role"], "system");
    assert!(instruction["content"].as_str().is_some_and(|text| text.contains("JSON Schema")));
    assert_eq!(prompt["messages"][2]["content"], "q");
}

#[test]
fn images_and_texts_go_along_and_nothing_else() {
    let bytes = || Source::Data(b"abc".as_slice().into());
    let attachments = [attachment("image/png", bytes()), attachment("text/plain", bytes())];
    let request = sent(&CallSpec::default(), &[Message::user("look", &attachments)]);
    let expected = json!([{ "role": "user", "images": ["YWJj"],
        "content": "<file name=\"it\">\nabc\n</file>\n\nlook" }]);
    assert_eq!(request["messages"], expected);
    let url = || Source::Url("https://example.com/a".to_owned());
    for (media_type, content) in
        [("image/png", url()), ("text/plain", url()), ("application/pdf", bytes()), ("", bytes())]
    {
        let attachments = [attachment(media_type, content)];
        let why = refusal(body("m", &CallSpec::default(), &[Message::user("look", &attachments)]));
        assert!(why.contains("\"it\"") && why.contains("Ollama"), "{why}");
    }
}
