//! What a conversation becomes in a request.

use super::*;
use crate::conversation::event::{ProviderData, ToolCall};
use crate::engine::provider::media::{attached, linked};
use crate::engine::provider::testing::{self, says, user};
use crate::protocol::id::ToolCallId;
use serde_json::{Value, json};

fn call(id: &str) -> ToolCall {
    ToolCall { id: ToolCallId(id.into()), name: "f".into() }
}

fn text_of(messages: &[Message<'_>], spec: &CallSpec, server: Server) -> String {
    String::from_utf8(body_of(messages, "m", spec, server).expect("serializes")).expect("UTF-8")
}

fn sent(messages: &[Message<'_>], spec: &CallSpec) -> Value {
    serde_json::from_str(&text_of(messages, spec, Server::Other)).expect("JSON")
}

fn spec(settings: &Value, schema: Option<Value>) -> CallSpec {
    testing::spec(settings, &[], schema.as_ref())
}

#[test]
fn messages_take_openai_form() {
    let tool = call("c1");
    let messages = [
        Message::System("be brief"),
        user("a\u{2028}\u{0}\u{1F600}"),
        Message::Assistant {
            text: "".into(),
            calls: vec![(&tool, r#"{"x":1}"#)],
            provider_data: None,
        },
        Message::Tool { tool: &tool, result: "out".into(), images: &[], is_error: false },
        says("done"),
    ];
    let expected = json!({
        "model": "m",
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "a\u{2028}\u{0}\u{1F600}" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function",
                  "function": { "name": "f", "arguments": "{\"x\":1}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "out" },
            { "role": "assistant", "content": "done" },
        ],
    });
    assert_eq!(sent(&messages, &CallSpec::default()), expected);
}

#[test]
fn reasoning_goes_back_to_the_model_that_wrote_it_as_it_came() {
    let answer = |engine: &str, model: &str, data: &Value| {
        let data = ProviderData {
            engine: engine.into(),
            host: "h".into(),
            model: model.into(),
            json: data.to_string().into(),
        };
        let tool = call("c1");
        let answer = Message::Assistant {
            text: "".into(),
            calls: vec![(&tool, "{}")],
            provider_data: Some(&data),
        };
        sent(&[answer], &CallSpec::default())["messages"][0].clone()
    };
    let plain = answer("anthropic", "m", &json!({ "reasoning_content": "hm" }));
    assert!(plain.get("reasoning_content").is_none(), "{plain}");
    assert_eq!(answer("openai", "other", &json!({ "reasoning_content": "hm" })), plain);
    assert_eq!(answer("openai", "m", &json!([1])), plain);
    let content = answer("openai", "m", &json!({ "reasoning_content": "hm" }));
    assert_eq!(content["reasoning_content"], "hm");
    assert_eq!(content["tool_calls"], plain["tool_calls"]);
    let details = json!([{ "type": "reasoning.encrypted", "data": "eHg=", "index": 0 }]);
    let with_details = answer("openai", "m", &json!({ "reasoning_details": details }));
    assert_eq!(with_details["reasoning_details"], details);
    let think = json!({ "think": "<think>\nhm\n</think>\n\n" });
    let with_think = answer("openai", "m", &think);
    assert_eq!(with_think["content"], think["think"]);
    assert!(with_think.get("think").is_none(), "{with_think}");
    assert_eq!(answer("openai", "other", &think), plain);
}

#[test]
fn settings_have_the_names_of_the_server() {
    let settings = json!({
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "reasoning_effort": "low",
        "stop": ["END"], "seed": 7, "reasoning_budget": 10, "reasoning_summary": "auto",
    });
    let spec = spec(&settings, None);
    let mut expected = json!({
        "model": "m", "stream": true, "stream_options": { "include_usage": true },
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "reasoning_effort": "low",
        "stop": ["END"], "seed": 7,
        "messages": [{ "role": "user", "content": "q" }],
    });
    assert_eq!(sent(&[user("q")], &spec), expected);
    let members = expected.as_object_mut().expect("an object");
    let limit = members.shift_remove("max_tokens").expect("a limit");
    members.insert("max_completion_tokens".to_owned(), limit);
    let own: Value =
        serde_json::from_str(&text_of(&[user("q")], &spec, Server::OpenAi)).expect("JSON");
    assert_eq!(own, expected);
    let ignored = ["reasoning_budget", "reasoning_summary"];
    assert_eq!(ignored_settings("m", &spec.settings), ignored);
    assert!(ignored_settings("m", &CallSettings::default()).is_empty());
    // What a model refuses is not sent to it.
    let refused = ignored_settings("o3", &spec.settings);
    assert_eq!(refused, ["temperature", "top_p", "stop", "reasoning_budget", "reasoning_summary"]);
    let body = body("o3", &spec, Server::OpenAi).expect("serializes");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(["temperature", "top_p", "stop"].iter().all(|name| body.get(name).is_none()), "{body}");
    assert_eq!(body["reasoning_effort"], "low");
}

#[test]
fn a_schema_is_sent_in_its_field_or_in_the_instructions() {
    let open = json!({ "type": "object", "properties": { "a": {} } });
    let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } },
        "required": ["a"], "additionalProperties": false });
    let list = json!({ "type": "array" });
    let messages = [Message::System("be brief"), user("q")];
    for (schema, is_strict) in [(&open, false), (&closed, true)] {
        let sent = sent(&messages, &spec(&json!({}), Some(schema.clone())));
        let format = json!({ "type": "json_schema",
            "json_schema": { "name": "answer", "schema": schema, "strict": is_strict } });
        assert_eq!(sent["response_format"], format);
        assert_eq!(sent["messages"][0]["content"], "be brief");
    }
    // OpenAI takes nothing but objects.
    for (settings, schema) in [(json!({ "structured": "prompt" }), open), (json!({}), list.clone())]
    {
        let spec = spec(&settings, Some(schema.clone()));
        for (messages, start) in [(&messages[..], "be brief\n\n"), (&messages[1..], "Answer ")] {
            let sent = sent(messages, &spec);
            assert!(sent.get("response_format").is_none(), "{sent}");
            assert_eq!(sent["messages"][0]["role"], "system");
            let instructions = sent["messages"][0]["content"].as_str().expect("a text");
            assert!(instructions.starts_with(start), "{instructions}");
            assert!(instructions.ends_with(&schema.to_string()), "{instructions}");
            assert_eq!(sent["messages"][1]["content"], "q");
        }
    }
    let native = sent(&messages, &spec(&json!({ "structured": "native" }), Some(list)));
    assert_eq!(native["response_format"]["json_schema"]["schema"]["type"], "array");
}

#[test]
fn images_and_files_come_before_the_text() {
    let attachments = [
        attached("image/png", "a.png", b"abc"),
        linked("image/jpeg", "https://h/b.jpg"),
        attached("application/pdf", "c.pdf", b"abc"),
        attached("text/plain", "e.txt", b"hi"),
    ];
    let image =
        |url: &str| json!({ "type": "image_url", "image_url": { "url": url, "detail": "auto" } });
    let with_text = sent(&[Message::user("what is it?", &attachments)], &CallSpec::default());
    let expected = json!([
        image("data:image/png;base64,YWJj"),
        image("https://h/b.jpg"),
        { "type": "file",
          "file": { "filename": "c.pdf", "file_data": "data:application/pdf;base64,YWJj" } },
        { "type": "text", "text": "<file name=\"e.txt\">\nhi\n</file>" },
        { "type": "text", "text": "what is it?" },
    ]);
    assert_eq!(with_text["messages"][0]["content"], expected);
    let alone = sent(&[Message::user("", &attachments[..1])], &CallSpec::default());
    assert_eq!(alone["messages"][0]["content"], json!([image("data:image/png;base64,YWJj")]));
    for attachment in
        [attached("audio/wav", "a.wav", b"abc"), linked("application/pdf", "https://h/d.pdf")]
    {
        let messages = [Message::user("q", std::slice::from_ref(&attachment))];
        let refused = body_of(&messages, "m", &CallSpec::default(), Server::OpenAi);
        assert!(matches!(refused, Err(Refused::Unsupported(_))), "{refused:?}");
    }
}

/// The messages of a request to `server` for `model` with the results of two calls, of which `data` was stored.
fn with_call_data(model: &str, server: Server, ids: [&str; 2], data: &Value) -> Value {
    let data = ProviderData {
        engine: "openai".into(),
        host: "h".into(),
        model: "gemini-3-pro".into(),
        json: data.to_string().into(),
    };
    let tools = ids.map(call);
    let mut messages = vec![Message::Assistant {
        text: "".into(),
        calls: tools.iter().map(|tool| (tool, "{}")).collect(),
        provider_data: Some(&data),
    }];
    let result = |tool| Message::Tool { tool, result: "r".into(), images: &[], is_error: false };
    messages.extend(tools.iter().map(result));
    let body = body_of(&messages, model, &CallSpec::default(), server).expect("serializes");
    let mut body: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(body["messages"][0].get("calls").is_none(), "{body}");
    body["messages"].take()
}

#[test]
fn signatures_of_calls_go_back_with_them() {
    let extra = json!({ "google": { "thought_signature": "c2ln" } });
    let data = json!({ "calls": [{ "extra_content": extra }, {}] });
    for server in [Server::Google, Server::Other] {
        let messages = with_call_data("gemini-3-pro", server, ["a", "b"], &data);
        let calls = &messages[0]["tool_calls"];
        assert_eq!(calls[0]["extra_content"], extra);
        assert!(calls[1].get("extra_content").is_none(), "{calls}");
    }
    // Of another model, and of a server that refuses it.
    let unsigned = json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
    for (model, server, expected) in [
        ("google/gemini-3.1-flash", Server::Google, Some(&unsigned)),
        ("gemini-2.5-pro", Server::Google, None),
        ("meta/llama", Server::Google, None),
        ("gemini-3.1-flash", Server::Other, None),
        ("gemini-3-pro", Server::Mistral, None),
        ("gemini-3-pro", Server::OpenAi, None),
    ] {
        let messages = with_call_data(model, server, ["a", "b"], &data);
        assert_eq!(messages[0]["tool_calls"][0].get("extra_content"), expected, "{model}");
    }
    // It is not that of these calls.
    let other = json!({ "calls": [{ "extra_content": extra }] });
    let messages = with_call_data("gemini-3-pro", Server::Other, ["a", "b"], &other);
    assert!(messages[0]["tool_calls"][0].get("extra_content").is_none(), "{messages}");
}

#[test]
fn a_long_id_goes_back_to_the_server_that_gave_it_as_it_came() {
    let own = format!("call_1__thought__{}", "x".repeat(3_000));
    let short = &own[..1_024];
    let data = json!({ "calls": [{ "id": own }, {}] });
    let ids = |model: &str, server: Server| {
        let messages = with_call_data(model, server, [short, "b"], &data);
        let id = messages[0]["tool_calls"][0]["id"].clone();
        assert_eq!(messages[1]["tool_call_id"], id);
        assert_eq!(messages[2]["tool_call_id"], "b");
        id.as_str().expect("a text").to_owned()
    };
    assert_eq!(ids("gemini-3-pro", Server::Other), own);
    assert_eq!(ids("other", Server::Other).len(), 64);
    assert_eq!(ids("gemini-3-pro", Server::OpenAi).len(), 40);
}

/// Each turn begins with the bytes of the one before: servers read them from their caches.
#[test]
fn a_turn_begins_with_every_byte_of_the_turn_before() {
    let tool = call("a");
    let image = [attached("image/png", "a.png", b"abc")];
    let data = json!({ "reasoning_content": "hm" }).to_string();
    let data = ProviderData {
        engine: "openai".into(),
        host: "h".into(),
        model: "m".into(),
        json: data.as_str().into(),
    };
    let schema = json!({ "type": "object", "properties": {} });
    let spec = spec(&json!({ "temperature": 0.5 }), Some(schema));
    let mut messages = vec![Message::System("be brief")];
    let mut before = String::new();
    for turn in 0..8 {
        messages.push(Message::user("question", &image));
        for result in [false, true] {
            if result {
                messages.push(Message::Assistant {
                    text: "".into(),
                    calls: vec![(&tool, "{\"a\": [1, 2]}")],
                    provider_data: Some(&data),
                });
                messages.push(Message::Tool {
                    tool: &tool,
                    result: "42".into(),
                    images: &[],
                    is_error: false,
                });
            }
            let now = text_of(&messages, &spec, Server::OpenAi);
            let shared = before.strip_suffix("]}").unwrap_or_default();
            assert!(now.starts_with(shared), "turn {turn}:\n{before}\n{now}");
            before = now;
        }
        messages.push(says("answer"));
    }
}

#[test]
fn a_server_is_known_by_its_host() {
    for (host, server) in [
        ("api.openai.com", Server::OpenAi),
        ("eu.api.openai.com", Server::OpenAi),
        ("us.api.openai.com:443", Server::OpenAi),
        ("api.openai.com.example", Server::Other),
        ("myapi.openai.com", Server::Other),
        ("api.mistral.ai", Server::Mistral),
        ("mistral.ai:8443", Server::Mistral),
        ("mine.openai.azure.com", Server::Azure),
        ("mine.services.ai.azure.com", Server::Azure),
        ("mine.openai.azure.us", Server::Azure),
        ("mine.openai.azure.cn:443", Server::Azure),
        ("mine.openai.azure.us.example", Server::Other),
        ("generativelanguage.googleapis.com", Server::Google),
        ("us-central1-aiplatform.googleapis.com", Server::Google),
        ("mistral.ai.example", Server::Other),
        ("notmistral.ai", Server::Other),
        ("[::1]:8080", Server::Other),
        ("", Server::Other),
    ] {
        assert_eq!(Server::at(host), server, "{host}");
    }
}

/// It refuses any other name for the seed.
#[test]
fn mistral_gets_the_seed_under_its_own_name() {
    let spec = spec(&json!({ "seed": 7 }), None);
    let seeds = |server: Server| {
        let body = text_of(&[user("hi")], &spec, server);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        json!([body["seed"], body["random_seed"]])
    };
    assert_eq!(seeds(Server::Mistral), json!([null, 7]));
    assert_eq!(seeds(Server::OpenAi), json!([7, null]));
    assert_eq!(seeds(Server::Other), json!([7, null]));
}

/// "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9", and "Unexpected role 'user'
/// after role 'tool'".
#[test]
fn mistral_gets_ids_of_nine_characters_and_an_answer_after_results() {
    let tool = call("call_1");
    let messages = [
        user("hi"),
        Message::Assistant { text: "".into(), calls: vec![(&tool, "{}")], provider_data: None },
        Message::Tool { tool: &tool, result: "out".into(), images: &[], is_error: false },
        user("and?"),
    ];
    let sent = |server: Server| -> Value {
        let text = text_of(&messages, &CallSpec::default(), server);
        serde_json::from_str(&text).expect("JSON")
    };
    let own = sent(Server::Mistral);
    let id = own["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert!(id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric()), "{own}");
    assert_eq!(own["messages"][2]["tool_call_id"], id);
    assert_eq!(own["messages"][3], json!({ "role": "assistant", "content": BRIDGE }));
    assert_eq!(own["messages"][4]["content"], "and?");
    assert_eq!(sent(Server::Other)["messages"][3]["content"], "and?");
}

#[test]
fn mistral_gets_no_stream_options_and_reasoning_models_of_openai_get_their_limit() {
    let spec = spec(&json!({ "max_tokens": 9 }), None);
    let sent = |model: &str, server: Server| -> Value {
        let body = body_of(&[user("hi")], model, &spec, server).expect("serializes");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        json!([body["stream_options"], body["max_tokens"], body["max_completion_tokens"]])
    };
    let options = json!({ "include_usage": true });
    assert_eq!(sent("mistral-small-latest", Server::Mistral), json!([null, 9, null]));
    assert_eq!(sent("o3-mini", Server::Azure), json!([options, null, 9]));
    assert_eq!(sent("gpt-4o", Server::Azure), json!([options, 9, null]));
    assert_eq!(sent("openai/o3-mini", Server::Other), json!([options, null, 9]));
    assert_eq!(sent("marco-o1", Server::Other), json!([options, 9, null]));
    assert_eq!(sent("gpt-4o", Server::Other), json!([options, 9, null]));
    assert_eq!(sent("gpt-4o", Server::OpenAi), json!([options, null, 9]));
}
