//! What a conversation becomes in a request.

use super::*;
use crate::engine::StructuredMode;
use crate::engine::provider::testing::{
    attachment, call, conversation, data, look, refusal, says, spec, user,
};
use crate::protocol::attachment::Content as Source;
use serde_json::{Value, json};

/// A model that reasons at levels.
const NEW: &str = "gemini-3.8-flash";

fn sent(model: &str, spec: &CallSpec, messages: &[Message<'_>]) -> Value {
    let body = body(model, spec, messages).expect("serializes");
    serde_json::from_slice(&body).expect("JSON")
}

fn contents(model: &str, messages: &[Message<'_>]) -> Value {
    sent(model, &CallSpec::default(), messages)["contents"].clone()
}

#[test]
fn a_conversation_takes_the_form_of_the_interface() {
    let (a, b) = (call("a"), call("b"));
    let messages = conversation(&a, &b);
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "be brief" }, { "text": "be exact" }] },
        "tools": [{ "functionDeclarations": [{
            "name": "look", "description": "Looks.",
            "parametersJsonSchema": { "type": "object", "properties": { "city": { "type": "string" } } },
        }] }],
        "generationConfig": { "thinkingConfig": { "includeThoughts": true } },
        "contents": [
            { "role": "user", "parts": [{ "text": "q\u{2028}\u{0}" }] },
            { "role": "model", "parts": [
                { "text": "Let me look." },
                { "functionCall": { "name": "look", "args": { "city": "Rome", "n": 1.5 } },
                  "thoughtSignature": NO_SIGNATURE },
                { "functionCall": { "name": "look", "args": { "unreadable_arguments": "{\"ci" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "look", "response": { "output": "sun" } } },
                { "functionResponse": { "name": "look", "response": { "error": "no" } } },
            ] },
            { "role": "user", "parts": [{ "text": "and?" }] },
            { "role": "model", "parts": [{ "text": "done" }] },
            { "role": "user", "parts": [{ "text": "thanks" }] },
        ],
    });
    let spec = spec(&json!({}), &[look()], None);
    assert_eq!(sent(NEW, &spec, &messages), expected);
    // The arguments are sent as the model wrote them.
    let bytes = body(NEW, &spec, &messages).expect("serializes");
    let text = String::from_utf8(bytes).expect("UTF-8");
    assert!(text.contains(r#""args":{"city": "Rome", "n": 1.50}"#), "{text}");
    // Older models want no signatures.
    let old = contents("gemini-2.5-pro", &messages);
    assert_eq!(old[1]["parts"][1].get("thoughtSignature"), None);
}

#[test]
fn signatures_go_back_in_their_places_to_the_model_that_wrote_them() {
    let parts = json!([
        { "part": "thought", "text": "hm", "signature": "dGg=" },
        { "part": "text", "bytes": 3 },
        { "part": "text", "bytes": 2, "signature": "dHg=" },
        { "part": "call", "signature": "Y2FsbA==" },
        { "part": "call", "id": "f-2" },
        { "part": "text", "bytes": 0, "signature": "ZW5k" },
    ]);
    let (a, b) = (call("call_0-2"), call("f-2"));
    let conversation = |data: &ProviderData, text: &str, calls: &[&ToolCall]| {
        let results = calls.iter();
        let results = results.map(|tool| Message::Tool {
            tool,
            result: "r".into(),
            images: &[],
            is_error: false,
        });
        let results: Vec<_> = results.collect();
        let calls = calls.iter().map(|tool| (*tool, "{}")).collect();
        let text = text.to_owned().into();
        let answer = Message::Assistant { text, calls, provider_data: Some(data) };
        let messages: Vec<_> = [user("q"), answer].into_iter().chain(results).collect();
        contents(NEW, &messages)
    };
    let own = data("gemini", NEW, parts.clone());
    let whole = conversation(&own, "onetw", &[&a, &b]);
    let expected = json!([
        { "text": "hm", "thought": true, "thoughtSignature": "dGg=" },
        { "text": "one" },
        { "text": "tw", "thoughtSignature": "dHg=" },
        { "functionCall": { "name": "look", "args": {} }, "thoughtSignature": "Y2FsbA==" },
        { "functionCall": { "id": "f-2", "name": "look", "args": {} } },
        { "text": "", "thoughtSignature": "ZW5k" },
    ]);
    assert_eq!(whole[1]["parts"], expected);
    // Results have the provider's own ids, which those of the transcript may differ from.
    assert_eq!(whole[2]["parts"][0]["functionResponse"].get("id"), None);
    assert_eq!(whole[2]["parts"][1]["functionResponse"]["id"], "f-2");
    // What was added to the answer follows it; a signature stays where its text was left out.
    let more = conversation(&own, "onetw!", &[&a, &b]);
    assert_eq!(more[1]["parts"][6], json!({ "text": "!" }));
    let blank = conversation(&own, "", &[&a, &b]);
    assert_eq!(blank[1]["parts"][1], json!({ "text": "", "thoughtSignature": "dHg=" }));
    // Not what another model or engine wrote, or what belongs to another answer.
    let plain = json!([
        { "text": "onetw" },
        { "functionCall": { "name": "look", "args": {} }, "thoughtSignature": NO_SIGNATURE },
        { "functionCall": { "name": "look", "args": {} } },
    ]);
    for other in [
        data("gemini", "other", parts.clone()),
        data("anthropic", NEW, parts.clone()),
        data("gemini", NEW, json!({ "odd": 1 })),
    ] {
        assert_eq!(conversation(&other, "onetw", &[&a, &b])[1]["parts"], plain, "{other:?}");
    }
    let one_call = conversation(&own, "onetw", &[&a])[1]["parts"].clone();
    assert_eq!(one_call.as_array().map(Vec::len), Some(2), "{one_call}");
}

/// Each turn begins with the bytes of the one before: the provider reads the rest from its cache.
#[test]
fn a_turn_begins_with_the_bytes_of_the_turn_before() {
    let tool = call("a");
    let signed = data("gemini", NEW, json!([{ "part": "call", "id": "f", "signature": "s" }]));
    let spec = spec(&json!({ "temperature": 0.5, "max_tokens": 9 }), &[look()], None);
    let mut messages = vec![Message::System("be brief")];
    let mut before = String::new();
    for turn in 0..8 {
        messages.push(user("question"));
        for result in [false, true] {
            if result {
                messages.push(Message::Assistant {
                    text: "".into(),
                    calls: vec![(&tool, "{\"a\": [1, 2]}")],
                    provider_data: Some(&signed),
                });
                messages.push(Message::Tool {
                    tool: &tool,
                    result: "42".into(),
                    images: &[],
                    is_error: false,
                });
            }
            let now = body(NEW, &spec, &messages).expect("serializes");
            let now = String::from_utf8(now).expect("UTF-8");
            let shared = before.strip_suffix("]}").unwrap_or_default();
            assert!(now.starts_with(shared), "turn {turn}:\n{before}\n{now}");
            before = now;
        }
        messages.push(says("answer"));
    }
}

#[test]
fn settings_have_their_places() {
    let config = |model: &str, settings: Value| {
        sent(model, &spec(&settings, &[], None), &[user("q")])["generationConfig"].clone()
    };
    let all = json!({ "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "stop": ["END"], "seed": 7,
        "reasoning_effort": "low" });
    let expected = json!({ "temperature": 0.5, "topP": 0.9, "maxOutputTokens": 100,
        "stopSequences": ["END"], "seed": 7,
        "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "low" } });
    assert_eq!(config(NEW, all.clone()), expected);
    assert_eq!(config("gemini-2.0-flash", all).get("thinkingConfig"), None);
    let thinking = |model: &str, settings: Value| config(model, settings)["thinkingConfig"].clone();
    let budget =
        |tokens: u32, shown: bool| json!({ "includeThoughts": shown, "thinkingBudget": tokens });
    let old = "gemini-2.5-flash";
    for model in [NEW, old] {
        let both = json!({ "reasoning_budget": 512, "reasoning_effort": "high" });
        assert_eq!(thinking(model, both), budget(512, true));
    }
    assert_eq!(thinking(old, json!({ "reasoning_effort": "medium" })), budget(8_192, true));
    assert_eq!(
        thinking(old, json!({ "reasoning_effort": "odd" })),
        json!({ "includeThoughts": true })
    );
    let level = |level: &str| json!({ "includeThoughts": true, "thinkingLevel": level });
    assert_eq!(thinking(NEW, json!({ "reasoning_effort": "max" })), level("high"));
    let hidden = json!({ "reasoning_effort": "low", "reasoning_summary": "none" });
    let expected = json!({ "includeThoughts": false, "thinkingLevel": "low" });
    assert_eq!(thinking(NEW, hidden), expected);
}

/// Models with levels always reason, and so does Gemini 2.5 Pro; which level is the lowest depends on the model, and
/// Google refuses a request with one that is lower.
#[test]
fn no_effort_is_the_lowest_that_a_model_takes() {
    let thinking = |model: &str, effort: &str| {
        let settings = match effort {
            "0" => json!({ "reasoning_budget": 0, "reasoning_effort": "high" }),
            effort => json!({ "reasoning_effort": effort }),
        };
        let sent = sent(model, &spec(&settings, &[], None), &[user("q")]);
        sent["generationConfig"]["thinkingConfig"].clone()
    };
    for model in ["gemini-2.5-flash", "gemini-2.5-flash-lite"] {
        let expected = json!({ "includeThoughts": false, "thinkingBudget": 0 });
        assert_eq!(
            [thinking(model, "none"), thinking(model, "0")],
            [(); 2].map(|()| expected.clone())
        );
    }
    for model in ["gemini-2.5-pro", "models/gemini-2.5-pro-preview-06-05"] {
        let expected = json!({ "includeThoughts": true, "thinkingBudget": 128 });
        assert_eq!(
            [thinking(model, "none"), thinking(model, "0")],
            [(); 2].map(|()| expected.clone())
        );
    }
    for (model, level) in [
        ("gemini-flash-latest", "low"),
        ("gemini-3.8-flash", "low"),
        ("models/gemini-3.7-flash", "low"),
        ("gemini-3.1-pro-preview", "low"),
        ("m", "low"),
        ("gemini-3-flash-preview", "minimal"),
        ("gemini-3.5-flash", "minimal"),
        ("Gemini-3.6-Flash", "minimal"),
        ("gemini-3.1-flash-lite", "minimal"),
        ("gemini-flash-lite-latest", "minimal"),
    ] {
        let expected = json!({ "includeThoughts": true, "thinkingLevel": level });
        for effort in ["none", "minimal", "0"] {
            assert_eq!(thinking(model, effort), expected, "{model} {effort}");
        }
    }
}

#[test]
fn a_schema_has_a_field_of_its_own_where_the_model_takes_it() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let request = |model: &str, settings: Value, tools: &[ToolSpec]| {
        sent(model, &spec(&settings, tools, Some(&schema)), &[user("q")])
    };
    let is_native = |request: &Value| {
        let config = &request["generationConfig"];
        let is_native = config["responseJsonSchema"] == schema;
        assert_eq!(config["responseMimeType"] == "application/json", is_native, "{request}");
        let instruction = request["systemInstruction"]["parts"][0]["text"].as_str();
        assert_eq!(instruction.is_none_or(|text| !text.contains("JSON Schema")), is_native);
        is_native
    };
    assert!(is_native(&request(NEW, json!({}), &[])));
    assert!(is_native(&request(NEW, json!({}), &[look()])));
    assert!(is_native(&request("gemini-2.5-pro", json!({}), &[])));
    assert!(!is_native(&request("gemini-2.5-pro", json!({}), &[look()])));
    let prompt = spec(&json!({ "structured": "prompt" }), &[], Some(&schema));
    assert_eq!(prompt.settings.structured, Some(StructuredMode::Prompt));
    assert!(!is_native(&sent(NEW, &prompt, &[user("q")])));
}

#[test]
fn attachments_stand_before_the_text() {
    let bytes = || Source::Data(b"abc".as_slice().into());
    let url = || Source::Url("https://example.com/a".to_owned());
    let attachments = [
        attachment("image/png", bytes()),
        attachment("application/pdf", bytes()),
        attachment("audio/wav", bytes()),
        attachment("image/jpeg", url()),
        attachment("text/plain", bytes()),
    ];
    let sent = contents(NEW, &[Message::user("look", &attachments)]);
    let inline =
        |mime_type: &str| json!({ "inlineData": { "mimeType": mime_type, "data": "YWJj" } });
    let expected = json!([
        inline("image/png"),
        inline("application/pdf"),
        inline("audio/wav"),
        { "fileData": { "mimeType": "image/jpeg", "fileUri": "https://example.com/a" } },
        { "text": "<file name=\"it\">\nabc\n</file>" },
        { "text": "look" },
    ]);
    assert_eq!(sent, json!([{ "role": "user", "parts": expected }]));
    let alone = contents(NEW, &[Message::user("", &attachments[..1])]);
    assert_eq!(alone[0]["parts"], json!([inline("image/png")]));
}

#[test]
fn an_attachment_of_another_kind_is_refused_before_anything_is_sent() {
    for (media_type, content) in [
        ("application/zip", Source::Data(b"PK".as_slice().into())),
        ("", Source::Url("https://example.com/a".to_owned())),
    ] {
        let attachments = [attachment(media_type, content)];
        let why = refusal(body(NEW, &CallSpec::default(), &[Message::user("look", &attachments)]));
        assert!(why.contains("\"it\"") && why.contains("Gemini"), "{why}");
    }
}
