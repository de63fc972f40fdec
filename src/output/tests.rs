//! Runs with tools in every format for one answer.

use super::{Beginning, Envelope, EnvelopeData, Format, JsonStream, Layout, Text};
use crate::conversation::event::Usage;
use crate::protocol::constants::code;
use crate::protocol::proto::chat::{
    ChatProviderCallFinished, ChatProviderCallStarted, ChatTextPatch, ChatToolCallRequested,
    ChatToolExecutionStarted, ChatToolResultReady, UsageInfo,
};
use crate::protocol::proto::extract::{
    AnswerRejected, ExtractionFinished, LineRejected, ObjectExtracted,
};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::wire::{self, Body};
use crate::session::{ExitCode, Uptime};
use serde_json::{Value, json};

fn requested(id: &str, input: &str) -> crate::protocol::any::Any {
    let (tool_call_id, tool_name) = (id.to_owned(), "clock".to_owned());
    let input = input.to_owned();
    ChatToolCallRequested { tool_call_id, tool_name, input, ..Default::default() }.into()
}

fn executing(id: &str, input: &str) -> crate::protocol::any::Any {
    let (tool_call_id, tool_name) = (id.to_owned(), "clock".to_owned());
    let input = input.to_owned();
    ChatToolExecutionStarted { tool_call_id, tool_name, input, ..Default::default() }.into()
}

fn call_started() -> crate::protocol::any::Any {
    ChatProviderCallStarted::default().into()
}

fn call_finished(input_tokens: i32, output_tokens: i32) -> crate::protocol::any::Any {
    let usage = Some(UsageInfo { input_tokens, output_tokens, ..Default::default() });
    ChatProviderCallFinished { usage, ..Default::default() }.into()
}

fn text(text: &str) -> crate::protocol::any::Any {
    ChatTextPatch { text: text.to_owned(), ..Default::default() }.into()
}

fn object(json: &str) -> crate::protocol::any::Any {
    ObjectExtracted { json: json.to_owned(), ..Default::default() }.into()
}

fn returned(id: &str, status: &str) -> crate::protocol::any::Any {
    let (tool_call_id, tool_name) = (id.to_owned(), "clock".to_owned());
    let (status, result) = (status.to_owned(), "noon".to_owned());
    ChatToolResultReady { tool_call_id, tool_name, status, result, ..Default::default() }.into()
}

/// What `format` writes for these payloads, ten milliseconds apart.
fn written(mut format: Format, payloads: Vec<crate::protocol::any::Any>) -> String {
    let mut out = Vec::new();
    let session = crate::protocol::id::SessionId::new("mine").expect("a name");
    let mut now = Uptime::default();
    for payload in payloads {
        now.0 += 10;
        let event = wire::ui_event(crate::protocol::id::Ordinal(now.0), payload);
        let frame = wire::frame(&session, None, event);
        format.frame(now, &frame, &mut out).expect("it has a JSON form");
    }
    format.end(now, ExitCode::Ok, &mut out).expect("it has a JSON form");
    String::from_utf8(out).expect("UTF-8")
}

/// The type and payload of each event written for these payloads.
fn events(payloads: Vec<crate::protocol::any::Any>) -> Vec<(String, Value)> {
    let stream = Format::JsonStream(Box::new(JsonStream::new(Beginning::default(), false)));
    let out = written(stream, payloads);
    let events = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let typed = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.map(|event| (typed(&event), event["payload"].clone())).collect()
}

/// The document for these payloads.
fn document(answer: EnvelopeData, payloads: Vec<crate::protocol::any::Any>) -> Value {
    let envelope = Envelope::new(Layout::Json, answer, serde_json::Map::new());
    let mut format = Format::Envelope(Box::new(envelope));
    format.usage(Usage { reasoning_tokens: Some(2), ..Usage::default() });
    format.usage(Usage { reasoning_tokens: None, ..Usage::default() });
    format.usage(Usage { reasoning_tokens: Some(3), ..Usage::default() });
    serde_json::from_str(&written(format, payloads)).expect("JSON")
}

/// The document of a run that fails after these payloads.
fn failed(answer: EnvelopeData, payloads: Vec<crate::protocol::any::Any>) -> Value {
    let mut envelope = Envelope::new(Layout::Json, answer, serde_json::Map::new());
    let session = crate::protocol::id::SessionId::new("mine").expect("a name");
    let ordinal = crate::protocol::id::Ordinal(1);
    let events = payloads.into_iter().map(|payload| wire::ui_event(ordinal, payload));
    let error = ErrorFrame { code: code::RUN_FAILED.to_owned(), ..ErrorFrame::default() };
    for body in events.chain([Body::Error(error)]) {
        envelope.frame(&wire::frame(&session, None, body)).expect("it has a JSON form");
    }
    let mut out = Vec::new();
    envelope.end(Uptime::default(), ExitCode::RunFailed, &mut out).expect("it has a JSON form");
    serde_json::from_slice(&out).expect("JSON")
}

/// Two provider calls with words each, and two tool calls between them.
fn a_loop() -> Vec<crate::protocol::any::Any> {
    vec![
        call_started(),
        text("Let me "),
        text("look."),
        requested("1", "{}"),
        requested("2", "{}"),
        call_finished(10, 3),
        executing("1", "{}"),
        returned("2", "error"),
        returned("1", "success"),
        call_started(),
        text("It is "),
        text("noon."),
        call_finished(20, 4),
    ]
}

#[test]
fn tools_start_and_end_in_the_stream() {
    let written = events(vec![
        requested("1", "{\"zone\":\"UTC\"}"),
        requested("2", "{}"),
        executing("1", "{\"zone\":\"UTC\"}"),
        returned("1", "success"),
        executing("2", "{}"),
        returned("2", "error"),
        returned("3", "success"),
    ]);
    let started = |id: &str, parameters: Value| {
        let payload = json!({ "tool": "clock", "toolId": id, "parameters": parameters });
        ("tool_started".to_owned(), payload)
    };
    let completed = |id: &str, success: bool| {
        let completed =
            json!({ "tool": "clock", "toolId": id, "success": success, "duration": 10 });
        ("tool_completed".to_owned(), completed)
    };
    let mut failed = completed("2", false);
    failed.1["error"] = "noon".into();
    let done = json!({ "exitCode": 0, "duration": 70, "toolsUsed": ["clock"], "success": true });
    let expected = [
        started("1", json!({ "zone": "UTC" })),
        completed("1", true),
        started("2", json!({})),
        failed,
        ("done".to_owned(), done),
    ];
    assert_eq!(written, expected);
}

#[test]
fn a_call_that_never_ran_starts_and_fails_at_once() {
    let written = events(vec![requested("1", "{}"), returned("1", "error")]);
    let kinds: Vec<_> = written.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["tool_started", "tool_completed", "done"]);
    assert_eq!((&written[1].1["duration"], &written[1].1["success"]), (&json!(0), &json!(false)));
    assert_eq!(written[2].1["toolsUsed"], json!([]));
}

#[test]
fn the_texts_of_two_calls_are_on_two_lines() {
    assert_eq!(written(Format::Text(Text::default()), a_loop()), "Let me look.\nIt is noon.\n");
    let deltas = events(a_loop()).into_iter().filter(|(kind, _)| kind == "text_delta");
    let deltas: String =
        deltas.map(|(_, payload)| payload["content"].as_str().expect("text").to_owned()).collect();
    assert_eq!(deltas, "Let me look.\nIt is noon.");
    for (before, after, both) in
        [("a\n", "b", "a\nb\n"), ("a", "\nb", "a\nb\n"), ("", "b", "b\n"), ("a", "", "a\n")]
    {
        let calls = vec![call_started(), text(before), call_started(), text(""), text(after)];
        assert_eq!(written(Format::Text(Text::default()), calls), both, "{before:?} {after:?}");
    }
}

#[test]
fn a_document_has_the_tool_calls_and_the_usage_of_all_provider_calls() {
    let document = document(EnvelopeData::Text(String::new()), a_loop());
    assert_eq!(document["data"], "Let me look.\nIt is noon.");
    let usage = json!({ "inputTokens": 30, "outputTokens": 7, "reasoningTokens": 5 });
    assert_eq!(document["meta"]["usage"], usage);
    let calls = json!([
        { "id": "1", "name": "clock", "input": "{}", "success": true },
        { "id": "2", "name": "clock", "input": "{}", "success": false, "error": "noon" },
    ]);
    assert_eq!(document["meta"]["tool_calls"], calls);
}

#[test]
fn values_are_those_of_the_last_call() {
    let mut calls = a_loop();
    calls.insert(3, object("1"));
    calls.push(object("2"));
    assert_eq!(document(EnvelopeData::Objects(Vec::new()), calls.clone())["data"], json!([2]));
    assert_eq!(document(EnvelopeData::Document(None, String::new()), calls)["data"], json!(2));
    let without = document(EnvelopeData::Document(None, String::new()), a_loop());
    assert_eq!(without["data"], "It is noon.");
}

/// Text before a tool call is a part of an answer that never came; a rejected answer is whole.
#[test]
fn the_text_of_an_earlier_call_is_truncated_if_the_next_one_fails() {
    let rejected = || AnswerRejected::default().into();
    for (payloads, is_truncated) in [
        (vec![call_finished(1, 1), call_started()], true),
        (vec![rejected(), call_started()], false),
        (vec![rejected(), call_started(), text("")], false),
        (vec![rejected(), call_started(), text("It")], true),
    ] {
        let payloads = [vec![call_started(), text("Let me look.")], payloads].concat();
        let document = failed(EnvelopeData::Document(None, String::new()), payloads);
        assert_eq!(document["meta"]["truncated"], is_truncated, "{document}");
        assert!(document["data"].is_string(), "{document}");
    }
}

/// A block scalar would not do: libyaml and yaml.v3 refuse one whose first line begins with a tab.
#[test]
fn a_text_that_begins_with_a_tab_is_quoted_in_yaml() {
    let yaml = |answer: EnvelopeData, payload| {
        let envelope = Envelope::new(Layout::Yaml, answer, serde_json::Map::new());
        written(Format::Envelope(Box::new(envelope)), vec![call_started(), payload])
    };
    for words in ["\tx\n\ty", "\n\tfunc main() {}", " \n\tx\n"] {
        let alone = yaml(EnvelopeData::Text(String::new()), text(words));
        assert!(alone.contains("\ndata: \""), "{alone}");
        let listed = object(&json!([words]).to_string());
        let listed = yaml(EnvelopeData::Document(None, String::new()), listed);
        assert!(listed.contains("- \""), "{listed}");
        let read = |yaml: &str| serde_saphyr::from_str::<Value>(yaml).expect("YAML");
        assert_eq!(
            (&read(&alone)["data"], &read(&listed)["data"]),
            (&json!(words), &json!([words]))
        );
    }
    let block = yaml(EnvelopeData::Text(String::new()), text("x\n\ty"));
    assert!(block.contains("\ndata: |"), "{block}");
}

/// The number of messages that nothing was found.
#[test]
fn values_of_earlier_calls_are_none_that_were_found() {
    let finished = |objects, truncated| -> crate::protocol::any::Any {
        ExtractionFinished { objects, truncated, ..Default::default() }.into()
    };
    let earlier = vec![call_started(), object("1"), call_finished(1, 1), call_started()];
    for (payloads, is_reported) in [
        (vec![finished(1, false)], true),
        (vec![finished(1, true)], false),
        (vec![text("2"), object("2"), finished(2, false)], false),
    ] {
        let payloads = [earlier.clone(), payloads].concat();
        let document = document(EnvelopeData::Objects(Vec::new()), payloads.clone());
        let warned = document["warnings"].as_array().expect("a list").len();
        assert_eq!(warned, usize::from(is_reported), "{document}");
        let is_warning =
            |(kind, payload): &(String, Value)| kind == "status" && payload["status"] == "warning";
        let warnings = events(payloads).into_iter().filter(is_warning);
        assert_eq!(warnings.count(), usize::from(is_reported));
    }
}

/// The number of a line says nothing where the values are of another text.
#[test]
fn rejected_lines_are_those_of_the_last_call() {
    let rejected = |reason: &str| -> crate::protocol::any::Any {
        LineRejected { line: 1, reason: reason.to_owned(), ..Default::default() }.into()
    };
    let earlier = (0..150).map(|_| rejected("earlier"));
    let mut payloads = vec![call_started()];
    payloads.extend(earlier);
    payloads.extend([call_started(), text("last\n2\n"), rejected("last"), object("2")]);
    let document = document(EnvelopeData::Objects(Vec::new()), payloads);
    let expected = json!([{ "code": "line_rejected", "line": 1, "message": "last" }]);
    assert_eq!(document["warnings"], expected);
}

/// What there was of an answer when the run failed is kept; a call that succeeds without text has no values.
#[test]
fn values_of_an_earlier_call_stay_if_the_next_one_fails() {
    let rejected = || LineRejected { line: 2, ..Default::default() }.into();
    let earlier = vec![call_started(), text("1\nprose"), object("1"), rejected(), call_started()];
    let check = |document: Value, expected: Value, warnings: usize, is_truncated: bool| {
        let warned = document["warnings"].as_array().map(Vec::len);
        assert_eq!((&document["data"], warned), (&expected, Some(warnings)), "{document}");
        assert_eq!(document["meta"]["truncated"], is_truncated, "{document}");
        assert_eq!(document["meta"]["total"], expected.as_array().map_or(0, Vec::len));
    };
    let objects = || EnvelopeData::Objects(Vec::new());
    check(failed(objects(), earlier.clone()), json!([1]), 1, true);
    check(
        document(objects(), [earlier.clone(), vec![call_finished(1, 1)]].concat()),
        json!([]),
        0,
        false,
    );
    check(failed(objects(), [earlier, vec![text("2")]].concat()), json!([]), 0, false);
}

#[test]
fn parameters_are_an_object_whatever_the_model_wrote() {
    for input in ["[1]", "5", "{\"a\":", "null", "{\"a\":1,\"a\":2}"] {
        let written = events(vec![requested("1", input), executing("1", input)]);
        assert_eq!(written[0].1["parameters"], json!({ "input": input }));
    }
    for input in ["", " \n"] {
        let written = events(vec![requested("1", input), executing("1", input)]);
        assert_eq!(written[0].1["parameters"], json!({}));
    }
    let stream = Format::JsonStream(Box::new(JsonStream::new(Beginning::default(), false)));
    let input = "{\"z\": 12345678901234567890123,\n\"a\": 1.10}";
    let written = written(stream, vec![executing("1", input)]);
    let parameters = "\"parameters\":{\"z\":12345678901234567890123,\"a\":1.10}";
    assert!(written.lines().next().is_some_and(|line| line.contains(parameters)), "{written}");
}
