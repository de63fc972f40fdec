//! What the bytes of an answer become, however they are cut.

use super::*;
use crate::engine::ErrorClass;
use crate::engine::provider::testing;
use crate::support::secret::Secret;
use serde_json::json;

const KEY: &str = "sk-ant-secret/123456";

testing::response_tests!(AnthropicReader, KEY);

fn event(event: Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn start() -> String {
    event(json!({ "type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 3, "cache_creation_input_tokens": 10,
                   "cache_read_input_tokens": 100, "output_tokens": 1 },
    } }))
}

fn open(index: u64, block: Value) -> String {
    event(json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(index: u64, delta: Value) -> String {
    event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn close(index: u64) -> String {
    event(json!({ "type": "content_block_stop", "index": index }))
}

fn text(index: u64, pieces: &[&str]) -> String {
    let deltas =
        pieces.iter().map(|text| delta(index, json!({ "type": "text_delta", "text": text })));
    let start = open(index, json!({ "type": "text", "text": "" }));
    start + &deltas.collect::<String>() + &close(index)
}

fn thinking(index: u64, text: &str, signature: &str) -> String {
    open(index, json!({ "type": "thinking", "thinking": "", "signature": "" }))
        + &delta(index, json!({ "type": "thinking_delta", "thinking": text }))
        + &delta(index, json!({ "type": "signature_delta", "signature": signature }))
        + &close(index)
}

fn tool(index: u64, id: &str, pieces: &[&str]) -> String {
    let piece = |json| delta(index, json!({ "type": "input_json_delta", "partial_json": json }));
    open(index, json!({ "type": "tool_use", "id": id, "name": "look", "input": {} }))
        + &pieces.iter().map(piece).collect::<String>()
        + &close(index)
}

fn ending(reason: &str) -> String {
    event(json!({ "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 9 } }))
}

fn stop() -> String {
    event(json!({ "type": "message_stop" }))
}

const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// Reasoning that is shown and reasoning that is not, a text, and two parallel calls.
fn long_answer() -> String {
    start()
        + PING
        + &thinking(0, "hm \u{1F600}", "c2ln")
        + &open(1, json!({ "type": "redacted_thinking", "data": "eHg" }))
        + &close(1)
        + &text(2, &["Let me ", "", "lo\u{f6}k."])
        + PING
        + &tool(3, "toolu_a", &["", "{\"city\":", " \"Rome\"}"])
        + &tool(4, "toolu_b", &[])
        + &ending("tool_use")
        + &stop()
}

const LONG_ANSWER: &str = concat!(
    "<thinking>hm \u{1F600} <text>Let me lo\u{f6}k. +toolu_a:look [toolu_a]{\"city\": \"Rome\"} !toolu_a ",
    "+toolu_b:look [toolu_b]{} !toolu_b 113/9 END \"tool_use\" tool_calls ",
    "[{\"type\":\"thinking\",\"thinking\":\"hm \u{1F600}\",\"signature\":\"c2ln\"},",
    "{\"type\":\"redacted_thinking\",\"data\":\"eHg\"},{\"type\":\"text\",\"bytes\":13},",
    "{\"type\":\"tool_use\"},{\"type\":\"tool_use\"}]",
);

#[test]
fn an_answer_is_read_in_order_however_it_arrives() {
    check(
        &(start() + &text(0, &["a", "b"]) + &ending("end_turn") + &stop()),
        r#"<text>ab 113/9 END "end_turn" completed"#,
    );
    check(&long_answer(), LONG_ANSWER);
    check(&long_answer().replace('\n', "\r\n"), LONG_ANSWER);
}

/// Wherever an answer is cut, what came of it is a beginning of the whole, and the error is typed.
#[test]
fn a_cut_answer_is_never_a_success() {
    let (body, failures) = (long_answer(), failures());
    // The last event is whole without the blank line after it.
    let whole_bytes = body.trim_end().len();
    for (end, classes) in [
        (BodyEnd::Marked, [ErrorClass::MalformedStream; 2]),
        (BodyEnd::Connection, [ErrorClass::Network, ErrorClass::MalformedStream]),
    ] {
        let new = || AnthropicReader::new(&failures, end);
        testing::check_cuts(new, &body, whole_bytes, |_, failure| classes.contains(&failure.class));
    }
    let cut = start() + &text(0, &["a"]);
    let (_, result) = read_pieces(&[cut.as_bytes()], BodyEnd::Connection);
    assert_eq!(result.expect_err("it is cut").class, ErrorClass::Network);
    assert_eq!(read(&[&body.as_bytes()[..whole_bytes]]), LONG_ANSWER);
}

/// As servers in between have them, which translate another interface.
#[test]
fn text_and_reasoning_under_one_index_and_nulls_are_read() {
    let say = |text: &str| delta(0, json!({ "type": "text_delta", "text": text }));
    let think = |text: &str| delta(0, json!({ "type": "thinking_delta", "thinking": text }));
    let begin = |block: Value| start() + &open(0, block);
    let rest = close(0) + &ending("end_turn") + &stop();
    // Servers that sign nothing may want it back.
    let expected = r#"<thinking>hm <text>a 113/9 END "end_turn" completed [{"type":"thinking","thinking":"hm","signature":""},{"type":"text","bytes":1}]"#;
    let body = begin(json!({ "type": "text", "text": "" }))
        + &think("h")
        + &think("m")
        + &say("a")
        + &rest;
    check(&body, expected);
    let body = begin(json!({ "type": "thinking", "thinking": null, "signature": null }))
        + &think("hm")
        + &delta(0, json!({ "type": "signature_delta", "signature": null }))
        + &say("a")
        + &rest;
    check(&body, expected);
    let body = begin(json!({ "type": "text", "text": null })) + &say("a") + &rest;
    check(&body, r#"<text>a 113/9 END "end_turn" completed"#);
}

/// As LiteLLM sends the answers of a model behind Responses.
#[test]
fn a_block_that_is_not_announced_is_read() {
    let say = |index, text: &str| delta(index, json!({ "type": "text_delta", "text": text }));
    let think = delta(0, json!({ "type": "thinking_delta", "thinking": "hm" }));
    let rest = close(1) + &ending("end_turn") + &stop();
    check(
        &(start() + &say(1, "a") + &say(1, "b") + &rest),
        r#"<text>ab 113/9 END "end_turn" completed"#,
    );
    let expected = r#"<thinking>hm <text>a 113/9 END "end_turn" completed [{"type":"thinking","thinking":"hm","signature":""},{"type":"text","bytes":1}]"#;
    check(&(start() + &think + &close(0) + &say(1, "a") + &rest), expected);
}

#[test]
fn every_stop_reason_has_its_class() {
    for (reason, class) in [
        ("end_turn", "completed"),
        ("stop_sequence", "completed"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("weather", "other"),
    ] {
        let body = start() + &text(0, &["a"]) + &ending(reason) + &stop();
        check(&body, &format!("<text>a 113/9 END {reason:?} {class}"));
    }
    // A refusal may have no text; an answer that ends well has some.
    check(&(start() + &ending("refusal") + &stop()), r#"113/9 END "refusal" content_filter"#);
    check(
        &(start() + &ending("end_turn") + &stop()),
        r#"113/9 END "end_turn" completed FAILED provider"#,
    );
    let reasoned = start() + &thinking(0, "hm", "") + &ending("end_turn") + &stop();
    check(
        &reasoned,
        r#"<thinking>hm 113/9 END "end_turn" completed [{"type":"thinking","thinking":"hm","signature":""}] FAILED provider"#,
    );
}

#[test]
fn only_the_end_mark_ends_an_answer() {
    let body = start() + &text(0, &["a"]);
    check(&(body.clone() + &ending("end_turn")), "<text>a FAILED malformed_stream");
    check(&(body.clone() + &stop()), "<text>a FAILED malformed_stream");
    check(
        &(body.clone() + &ending("end_turn") + "data: [DONE]\n\n"),
        "<text>a FAILED malformed_stream",
    );
    // What follows it is not read.
    let after = body + &ending("end_turn") + &stop() + "data: {\n\n";
    assert_eq!(read(&[after.as_bytes()]), r#"<text>a 113/9 END "end_turn" completed"#);
    for nothing in ["", "\r\n\r\n", "<!DOCTYPE html>\n<html>\n</html>\n", PING] {
        check(nothing, "FAILED malformed_stream");
    }
}

#[test]
fn what_is_not_known_is_skipped() {
    let body = start()
        + &event(json!({ "type": "weather", "index": { "a": 1 } }))
        + ": comment\n\ndata:\n\ndata: ping\n\n"
        + &open(0, json!({ "type": "server_tool_use", "id": "s", "name": "n", "input": {} }))
        + &delta(0, json!({ "type": "input_json_delta", "partial_json": "{" }))
        + &close(0)
        + &open(1, json!({ "type": "text", "text": "", "citations": [] }))
        + &delta(1, json!({ "type": "citations_delta", "citation": {} }))
        + &delta(1, json!({ "type": "text_delta", "text": "a", "more": [1] }))
        + &close(1)
        + &close(7)
        + &ending("end_turn")
        + &stop();
    check(&body, r#"<text>a 113/9 END "end_turn" completed"#);
}

/// As servers in between have them. No text depends on either.
#[test]
fn a_signature_without_its_reasoning_and_an_end_of_nothing_fail_no_answer() {
    let signature = || delta(0, json!({ "type": "signature_delta", "signature": "c2ln" }));
    let counts = json!({ "output_tokens": 12.0 });
    let body = start()
        + &open(0, json!({ "type": "text", "text": "a" }))
        + &signature()
        + &close(0)
        + &signature()
        + &ending("end_turn")
        + &event(json!({ "type": "message_delta", "delta": null, "usage": counts }))
        + &stop();
    check(&body, r#"<text>a 113/12 END "end_turn" completed"#);
}

#[test]
fn what_is_wrong_is_a_typed_error() {
    let begun = || start() + &open(0, json!({ "type": "text", "text": "a" }));
    for wrong in [
        start(),
        delta(3, json!({ "type": "input_json_delta", "partial_json": "b" })),
        delta(0, json!({ "type": "input_json_delta", "partial_json": "b" })),
        delta(0, json!({ "type": "text_delta" })),
        delta(0, json!({ "type": "text_delta", "text": 1 })),
        event(json!({ "type": "content_block_stop" })),
        "data: {\"index\":0}\n\n".to_owned(),
        "data: {\n\n".to_owned(),
        open(1, json!({ "type": "tool_use", "id": "t", "name": "", "input": {} })),
    ] {
        check(&(begun() + &wrong + &stop()), "<text>a FAILED malformed_stream");
    }
    // Before there is anything, it is merely said twice.
    let twice = start() + &start() + &text(0, &["a"]) + &ending("end_turn") + &stop();
    check(&twice, r#"<text>a 113/9 END "end_turn" completed"#);
}

#[test]
fn an_error_report_has_the_class_of_its_word() {
    let report = |kind: &str, message: &str| {
        event(json!({ "type": "error", "error": { "type": kind, "message": message } }))
    };
    for (kind, message, class) in [
        ("overloaded_error", "Overloaded", "provider"),
        ("api_error", "Internal", "provider"),
        ("timeout_error", "slow", "provider"),
        ("rate_limit_error", "slow down", "rate_limited"),
        ("billing_error", "no credit", "rate_limited"),
        ("authentication_error", "bad key", "auth"),
        ("permission_error", "not yours", "auth"),
        ("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum", "context_overflow"),
        ("invalid_request_error", "Your credit balance is too low", "rate_limited"),
        ("invalid_request_error", "bad", "provider"),
        ("weather", "rain", "provider"),
    ] {
        let body = start() + &text(0, &["a"]) + &report(kind, message);
        check(&body, &format!("<text>a FAILED {class}"));
    }
    check(
        "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}",
        "FAILED provider",
    );
    check("data: {\"error\":{\"message\":\"by a proxy\",\"code\":429}}\n\n", "FAILED rate_limited");
    check("event: error\ndata: out of memory\n\n", "FAILED provider");
    let body = report("authentication_error", &format!("invalid key {KEY}"));
    let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
    let error = result.expect_err("a report").into_error();
    assert!(!error.message.contains(KEY) && !error.detail.contains(KEY), "{error:?}");
}

#[test]
fn the_token_counts_of_an_answer_that_fails_are_known() {
    let failures = failures();
    let mut answer = AnthropicReader::new(&failures, BodyEnd::Marked);
    let overloaded = event(json!({ "type": "error", "error": { "type": "overloaded_error" } }));
    let mut events = Vec::new();
    answer.push((start() + &overloaded).as_bytes(), &mut events).expect_err("a report");
    let counts = |usage: Usage| (usage.input_tokens, usage.output_tokens);
    assert_eq!(answer.take_usage().map(counts), Some((113, 1)));
    // They are given once.
    assert_eq!(answer.take_usage(), None);
}

#[test]
fn an_answer_in_one_document_is_read_too() {
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
            { "type": "text", "text": "a" },
            { "type": "tool_use", "id": "t", "name": "look", "input": { "x": 1 } },
        ],
        "usage": { "input_tokens": 3, "output_tokens": 2 },
    });
    let expected = concat!(
        r#"<thinking>hm <text>a +t:look [t]{"x":1} !t 3/2 END "tool_use" tool_calls "#,
        r#"[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","bytes":1},{"type":"tool_use"}]"#,
    );
    check(&whole.to_string(), expected);
}

#[test]
fn missing_and_doubled_ids_are_made_up() {
    let body = start()
        + &tool(0, "", &["1"])
        + &tool(1, "t", &["2"])
        + &tool(2, "t", &["3"])
        + &ending("tool_use")
        + &stop();
    let expected = concat!(
        "+call_0:look [call_0]1 !call_0 +t:look [t]2 !t +call_2:look [call_2]3 !call_2 ",
        r#"113/9 END "tool_use" tool_calls"#,
    );
    check(&body, expected);
}

#[test]
fn the_key_is_not_in_the_words_of_a_call() {
    let body = start() + &tool(0, KEY, &[]) + &ending(&format!("odd {KEY}")) + &stop();
    let body = body.replace("look", KEY);
    assert!(!read(&[body.as_bytes()]).contains(KEY));
    check_offered(&body);
}

#[test]
fn an_answer_is_bounded() {
    let long = "x".repeat(1024 * 1024);
    let signature = delta(0, json!({ "type": "signature_delta", "signature": long }));
    let begun = start() + &open(0, json!({ "type": "thinking" }));
    let pieces: Vec<&[u8]> =
        [begun.as_bytes()].into_iter().chain((0..17).map(|_| signature.as_bytes())).collect();
    assert_eq!(read(&pieces), "FAILED malformed_stream");
    let calls: String = (0..300).map(|index| tool(index, &format!("t{index}"), &[])).collect();
    assert!(read(&[start().as_bytes(), calls.as_bytes()]).ends_with("FAILED malformed_stream"));
}

#[test]
fn keep_alive_messages_bring_the_answer_no_further() {
    let failures = failures();
    let mut answer = AnthropicReader::new(&failures, BodyEnd::Marked);
    let mut events = Vec::new();
    answer.push(start().as_bytes(), &mut events).expect("reads");
    let progress = answer.progress();
    answer.push(PING.repeat(3).as_bytes(), &mut events).expect("reads");
    answer.push(event(json!({ "type": "weather" })).as_bytes(), &mut events).expect("reads");
    assert_eq!(answer.progress(), progress);
    answer.push(close(0).as_bytes(), &mut events).expect("reads");
    assert!(answer.progress() > progress);
}

#[test]
fn a_character_that_was_cut_between_two_events_is_whole() {
    let body = start() + &text(0, &["aFIRST", "SECONDb"]) + &ending("end_turn") + &stop();
    let body = body.replace("FIRST", "\\ud83d").replace("SECOND", "\\ude00");
    let words = read(&[body.as_bytes()]);
    assert!(words.starts_with("<text>a\u{1F600}b "), "{words}");
}
