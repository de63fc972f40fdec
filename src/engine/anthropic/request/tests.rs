//! What a conversation becomes in a request.

use super::*;
use crate::conversation::event::{ProviderData, ToolCall};
use crate::engine::anthropic::generation::ignored_settings;
use crate::engine::provider::testing::{
    attachment, call, conversation, data, look, refusal, says, spec, user,
};
use crate::protocol::attachment::Content;
use serde_json::{Value, json};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn sent(messages: &[Message<'_>], tools: &[ToolSpec]) -> String {
    let spec = CallSpec { tools: tools.into(), ..CallSpec::default() };
    String::from_utf8(body("m", &spec, messages).expect("serializes")).expect("UTF-8")
}

/// The request without cache marks.
fn unmarked(messages: &[Message<'_>], tools: &[ToolSpec]) -> Value {
    serde_json::from_str(&sent(messages, tools).replace(MARK, "")).expect("JSON")
}

#[test]
fn a_conversation_takes_the_form_of_the_interface() {
    let (a, b) = (call("a"), call("b:1"));
    let messages = conversation(&a, &b);
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
                { "type": "tool_use", "id": "b_1_34340f0e82d75a34", "name": "look",
                  "input": { "unreadable_arguments": "{\"ci" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "sun" },
                { "type": "tool_result", "tool_use_id": "b_1_34340f0e82d75a34", "content": "no", "is_error": true },
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

/// "The final block in an assistant message cannot be `thinking`."
#[test]
fn an_answer_does_not_end_with_its_reasoning() {
    let blocks = json!([
        { "type": "text", "bytes": 5 },
        { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "eHg" },
    ]);
    let own = data("anthropic", "m", blocks);
    let content = |text: &'static str| {
        let (text, calls) = (text.into(), Vec::new());
        let answer = Message::Assistant { text, calls, provider_data: Some(&own) };
        unmarked(&[user("q"), answer, user("next")], &[])["messages"][1]["content"].clone()
    };
    assert_eq!(content("Hello"), json!([{ "type": "text", "text": "Hello" }]));
    // Reasoning before a text that was added to the answer stays.
    assert_eq!(content("Hello!").as_array().map(Vec::len), Some(4));
}

/// "When `thinking` is enabled, a final `assistant` message must start with a thinking block": another
/// model, or one without a budget, may have begun the round of tools.
#[test]
fn a_budget_for_reasoning_waits_for_an_answer_that_begins_with_reasoning() {
    let tool = call("a");
    let blocks =
        json!([{ "type": "thinking", "thinking": "t", "signature": "s" }, { "type": "tool_use" }]);
    let own = data("anthropic", "m", blocks);
    let mut spec = spec(&json!({ "reasoning_budget": 2_048 }), &[], None);
    let mut thinking = |provider_data, is_answered: bool| {
        let calls = vec![(&tool, "{}")];
        let mut messages = vec![
            user("q"),
            Message::Assistant { text: "".into(), calls, provider_data },
            Message::Tool { tool: &tool, result: "42".into(), images: &[], is_error: false },
        ];
        messages.extend(is_answered.then(|| [says("done"), user("next")]).into_iter().flatten());
        spec.tools = [look()].into();
        let body = body("m", &spec, &messages).expect("serializes");
        serde_json::from_slice::<Value>(&body).expect("JSON")["thinking"]["type"].clone()
    };
    assert_eq!(thinking(Some(&own), false), "enabled");
    assert_eq!(thinking(None, false), Value::Null);
    assert_eq!(thinking(None, true), "enabled");
}

/// Without interleaved thinking, Claude reasons at the begin of a turn alone.
#[test]
fn a_turn_that_began_with_reasoning_keeps_its_budget_to_its_end() {
    let (first, second) = (call("a"), call("b"));
    let blocks =
        json!([{ "type": "thinking", "thinking": "t", "signature": "s" }, { "type": "tool_use" }]);
    let own = data("anthropic", "m", blocks);
    let spec = spec(&json!({ "reasoning_budget": 2_048 }), &[look()], None);
    let thinking = |reasoned: Option<&ProviderData>| {
        let called = |tool, provider_data| {
            let calls = vec![(tool, "{}")];
            Message::Assistant { text: "".into(), calls, provider_data }
        };
        let result = |tool| {
            let result = "42".into();
            Message::Tool { tool, result, images: &[], is_error: false }
        };
        let messages = [
            user("q"),
            called(&first, reasoned),
            result(&first),
            called(&second, None),
            result(&second),
        ];
        let body = body("m", &spec, &messages).expect("serializes");
        serde_json::from_slice::<Value>(&body).expect("JSON")["thinking"]["type"].clone()
    };
    assert_eq!(thinking(Some(&own)), "enabled");
    assert_eq!(thinking(None), Value::Null);
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
                messages.push(Message::Tool {
                    tool: &tool,
                    result: "42".into(),
                    images: &[],
                    is_error: false,
                });
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
    assert_eq!(marks(&[user("a")], &[look()]), ["/tools/0", "/messages/0/content/0"]);
    let messages = [Message::System("s"), user("a"), says("b"), user("c"), says("d"), user("e")];
    let expected = ["/system/0", "/messages/2/content/0", "/messages/4/content/0"];
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

/// The members of a request that settings decide.
fn asked_for(settings: &Value) -> Value {
    let body = body("m", &spec(settings, &[], None), &[user("q")]).expect("serializes");
    let mut body: Value = serde_json::from_slice(&body).expect("JSON");
    let members = body.as_object_mut().expect("an object");
    for name in ["model", "stream", "messages"] {
        assert!(members.shift_remove(name).is_some(), "{name}");
    }
    body
}

#[test]
fn settings_have_their_places() {
    let all = json!({ "temperature": 0.5, "top_p": 0.9, "max_tokens": 5000, "stop": ["END"], "seed": 7,
        "reasoning_effort": "high", "reasoning_budget": 2048 });
    let expected = json!({ "max_tokens": 5000,
        "stop_sequences": ["END"], "thinking": { "type": "enabled", "budget_tokens": 2048 },
        "output_config": { "effort": "high" } });
    assert_eq!(asked_for(&all), expected);
    let sampled = json!({ "max_tokens": 32_000, "temperature": 0.5, "top_p": 0.9 });
    assert_eq!(asked_for(&json!({ "temperature": 0.5, "top_p": 0.9 })), sampled);
    let disabled = json!({ "max_tokens": 32_000, "thinking": { "type": "disabled" } });
    let minimal = json!({ "max_tokens": 32_000, "output_config": { "effort": "low" } });
    for (settings, expected) in [
        (json!({}), json!({ "max_tokens": 32_000 })),
        (json!({ "reasoning_effort": "none" }), disabled.clone()),
        (json!({ "reasoning_budget": 0 }), disabled),
        (json!({ "reasoning_effort": "minimal" }), minimal),
    ] {
        assert_eq!(asked_for(&settings), expected, "{settings}");
    }
    // The limit is larger than the budget, which it counts, too.
    let large = asked_for(&json!({ "reasoning_budget": 40_000 }));
    assert_eq!(large["max_tokens"], 48_192);
}

/// "`thinking.type.disabled` is not supported for this model."
#[test]
fn a_model_that_always_thinks_does_so_as_little_as_it_can() {
    let sent = |model: &str, settings: &Value| {
        let body = body(model, &spec(settings, &[], None), &[user("q")]).expect("serializes");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        (body["thinking"].clone(), body["output_config"]["effort"].clone())
    };
    let (none, zero) = (json!({ "reasoning_effort": "none" }), json!({ "reasoning_budget": 0 }));
    let both = json!({ "reasoning_effort": "high", "reasoning_budget": 0 });
    for settings in [&none, &zero, &both] {
        for model in ["claude-fable-5", "claude-mythos-preview", "anthropic/claude-Fable-5.1"] {
            assert_eq!(sent(model, settings), (Value::Null, json!("low")), "{model} {settings}");
        }
    }
    for settings in [&none, &zero] {
        let disabled = json!({ "type": "disabled" });
        assert_eq!(sent("claude-opus-5", settings), (disabled, Value::Null), "{settings}");
    }
    let hidden = json!({ "reasoning_effort": "none", "reasoning_summary": "none" });
    let omitted = json!({ "type": "adaptive", "display": "omitted" });
    assert_eq!(sent("claude-fable-5", &hidden), (omitted, json!("low")));
    let high = json!({ "reasoning_effort": "high" });
    assert_eq!(sent("claude-fable-5", &high), (Value::Null, json!("high")));
}

/// "`budget_tokens` must be less than `max_tokens`."
#[test]
fn a_limit_that_the_budget_uses_up_is_refused_before_anything_is_sent() {
    let of = |model: &str, settings: Value| body(model, &spec(&settings, &[], None), &[user("q")]);
    for max_tokens in [1, 1_500, 2_000] {
        let why = refusal(of("m", json!({ "reasoning_budget": 2_000, "max_tokens": max_tokens })));
        assert!(why.contains(&format!("below max_tokens ({max_tokens})")), "{why}");
    }
    let settings = json!({ "reasoning_budget": 2_000, "max_tokens": 2_001 });
    assert!(of("m", settings).is_ok());
    // Newer models take no budget, and 0 is none.
    let settings = json!({ "reasoning_budget": 2_000, "max_tokens": 1_500 });
    assert!(of("claude-sonnet-5", settings).is_ok());
    assert!(of("m", json!({ "reasoning_budget": 0, "max_tokens": 1 })).is_ok());
}

/// "Thinking isn't compatible with `temperature` modifications"; `top_p` may be from 0.95 to 1.
#[test]
fn sampling_that_the_provider_refuses_with_reasoning_is_left_out_with_a_warning() {
    let places = |settings: &Value| {
        let body = asked_for(settings);
        let is_sent = |name: &&str| body.get(*name).is_some();
        let sent = ["temperature", "top_p"].into_iter().filter(is_sent).collect::<Vec<_>>();
        let spec = spec(settings, &[], None);
        (sent, ignored_settings("m", &spec.settings))
    };
    for (budget, temperature, top_p, sent, ignored) in [
        (2_000, 0.2, 0.9, vec![], vec!["temperature", "top_p"]),
        (2_000, 1.0, 0.95, vec!["temperature", "top_p"], vec![]),
        (0, 0.2, 0.9, vec!["temperature", "top_p"], vec![]),
    ] {
        let settings =
            json!({ "reasoning_budget": budget, "temperature": temperature, "top_p": top_p });
        assert_eq!(places(&settings), (sent, ignored), "{settings}");
    }
}

/// "Final assistant content cannot end with trailing whitespace", and no reasoning goes before it.
#[test]
fn an_answer_that_the_model_goes_on_with_ends_with_a_word() {
    let spec = spec(&json!({ "reasoning_budget": 2_048 }), &[], None);
    let sent = body("m", &spec, &[user("q"), says("The answer is \n")]).expect("serializes");
    let sent: Value = serde_json::from_slice(&sent).expect("JSON");
    assert_eq!(sent["messages"][1]["content"][0]["text"], "The answer is");
    assert_eq!(sent["thinking"], Value::Null);
}

#[test]
fn messages_with_only_an_instruction_between_them_are_one() {
    let messages = [user("q"), says("one"), Message::System("be brief"), says("two"), user("and?")];
    let sent = unmarked(&messages, &[]);
    let roles: Vec<_> = sent["messages"].as_array().expect("a list").iter().collect();
    assert_eq!(roles.len(), 3, "{sent}");
    assert_eq!(roles[1]["content"].as_array().map(Vec::len), Some(2), "{sent}");
}

#[test]
fn a_schema_is_the_format_where_model_and_schema_are_known_to_fit() {
    let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let open = json!({ "type": "object", "properties": {} });
    for (model, structured, schema, is_native) in [
        ("claude-sonnet-5", Value::Null, &closed, true),
        ("claude-sonnet-5", Value::Null, &open, false),
        ("claude-sonnet-5", json!("prompt"), &closed, false),
        ("claude-3-5-sonnet", Value::Null, &closed, false),
        ("m", Value::Null, &closed, false),
        ("m", json!("native"), &open, true),
    ] {
        let spec = spec(&json!({ "structured": structured }), &[], Some(schema));
        let body = body(model, &spec, &[user("q")]).expect("serializes");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let format = json!({ "format": { "type": "json_schema", "schema": schema } });
        assert_eq!(body.get("output_config"), is_native.then_some(&format), "{model} {schema}");
        let instruction = body["system"][0]["text"].as_str();
        let is_asked = instruction.is_some_and(|text| text.contains("JSON Schema"));
        assert_eq!(is_asked, !is_native, "{model} {schema}");
    }
}

#[test]
fn attachments_stand_before_the_text_and_carry_the_mark_where_there_is_none() {
    let bytes = || Content::Data(b"abc".as_slice().into());
    let url = || Content::Url("https://example.com/a".to_owned());
    let attachments = [
        attachment("image/png", bytes()),
        attachment("image/png", url()),
        attachment("application/pdf", bytes()),
        attachment("application/pdf", url()),
        attachment("text/plain", bytes()),
    ];
    let base64 =
        |media_type: &str| json!({ "type": "base64", "media_type": media_type, "data": "YWJj" });
    let from_url = json!({ "type": "url", "url": "https://example.com/a" });
    let expected = json!([
        { "type": "image", "source": base64("image/png") },
        { "type": "image", "source": from_url },
        { "type": "document", "source": base64("application/pdf"), "title": "it" },
        { "type": "document", "source": from_url, "title": "it" },
        { "type": "text", "text": "<file name=\"it\">\nabc\n</file>" },
        { "type": "text", "text": "look" },
    ]);
    let sent_blocks =
        |messages: &[Message<'_>]| unmarked(messages, &[])["messages"][0]["content"].clone();
    assert_eq!(sent_blocks(&[Message::user("look", &attachments)]), expected);
    for count in 1..=attachments.len() {
        let message = Message::user("", &attachments[..count]);
        let alone = sent_blocks(std::slice::from_ref(&message));
        assert_eq!(alone.as_array().map(Vec::len), Some(count));
        assert_eq!(sent(&[message], &[]).matches(MARK).count(), 1, "{count}");
    }
}

#[test]
fn an_attachment_of_another_kind_is_refused_before_anything_is_sent() {
    let bytes = || Content::Data(b"abc".as_slice().into());
    let url = || Content::Url("https://example.com/a".to_owned());
    for (media_type, content) in [
        ("image/tiff", bytes()),
        ("audio/wav", bytes()),
        ("application/zip", bytes()),
        ("", url()),
        ("text/plain", url()),
    ] {
        let attachments = [attachment(media_type, content)];
        let why = refusal(body("m", &CallSpec::default(), &[Message::user("look", &attachments)]));
        assert!(why.contains("\"it\"") && why.contains("Anthropic"), "{why}");
    }
}

#[test]
fn an_error_of_a_tool_has_words() {
    let tool = call("a");
    let result = |text: &str, is_error: bool| {
        let message =
            Message::Tool { tool: &tool, result: text.to_owned().into(), images: &[], is_error };
        unmarked(&[message], &[])["messages"][0]["content"][0].clone()
    };
    assert_eq!(result(" ", true)["content"], NO_ERROR_TEXT);
    assert_eq!(result("no", true)["content"], "no");
    assert_eq!(
        result("", false),
        json!({ "type": "tool_result", "tool_use_id": "a", "content": "" })
    );
}

/// "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
#[test]
fn a_tool_with_another_name_of_a_parameter_is_refused() {
    let tool = |name: &str| {
        let inner = json!({ "type": "object", "properties": { "$odd key": {} } });
        let schema = json!({ "type": "object", "properties": { "inner": inner, name: {} } });
        let Value::Object(schema) = schema else { unreachable!() };
        ToolSpec { input_schema: schema.into(), ..look() }
    };
    for name in ["city", "filter.id", "_a-1", &"x".repeat(64)] {
        assert_eq!(tool_fault(&tool(name)), None, "{name}");
    }
    for name in ["$filter", "user name", "", "filter[id]", "st\u{e4}dte", &"x".repeat(65)] {
        let why = tool_fault(&tool(name)).expect("a fault");
        assert!(why.contains(&format!("{name:?} is not 1 to 64 letters")), "{why}");
    }
}
