//! What the bytes of an answer become, however they are cut.

use super::*;
use crate::engine::ErrorClass;
use crate::engine::provider::testing;
use crate::support::secret::Secret;
use serde_json::{Value, json};

const KEY: &str = "ollama-secret/123456";

testing::response_tests!(OllamaReader, KEY);

fn line(message: Value) -> String {
    let message = json!({ "model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false });
    format!("{message}\n")
}

fn says(text: &str) -> String {
    line(json!({ "role": "assistant", "content": text }))
}

fn thinks(text: &str) -> String {
    line(json!({ "role": "assistant", "content": "", "thinking": text }))
}

fn calls(calls: Value) -> String {
    line(json!({ "role": "assistant", "content": "", "tool_calls": calls }))
}

fn last(reason: &str) -> String {
    let last = json!({ "model": "m", "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": reason, "total_duration": 9_000_000_000_u64,
        "prompt_eval_count": 26, "eval_count": 9 });
    format!("{last}\n")
}

/// Reasoning, a text, and two parallel calls.
fn long_answer() -> String {
    let first =
        json!({ "function": { "name": "look", "arguments": { "city": "Rome", "n": 1.5 } } });
    let second =
        json!({ "id": "call_x", "function": { "index": 1, "name": "look", "arguments": {} } });
    thinks("hm ")
        + &thinks("\u{1F600}")
        + &says("Let me ")
        + &says("lo\u{f6}k.")
        + &calls(json!([first, second]))
        + &last("stop")
}

const LONG_ANSWER: &str = concat!(
    "<thinking>hm \u{1F600} <text>Let me lo\u{f6}k. ",
    "+call_0:look [call_0]{\"city\":\"Rome\",\"n\":1.5} !call_0 +call_x:look [call_x]{} !call_x ",
    "26/9 END \"stop\" tool_calls {\"thinking\":\"hm \u{1F600}\"}",
);

#[test]
fn an_answer_is_read_in_order_however_it_arrives() {
    check(&(says("a") + &says("b") + &last("stop")), r#"<text>ab 26/9 END "stop" completed"#);
    check(&long_answer(), LONG_ANSWER);
    check(&long_answer().replace('\n', "\r\n\n"), LONG_ANSWER);
    // What follows the last line is not read.
    let after = says("a") + &last("stop") + "{\n";
    check(&after, r#"<text>a 26/9 END "stop" completed"#);
}

#[test]
fn a_think_tag_at_the_beginning_is_reasoning_and_kept_as_it_came() {
    let expected = |data: &str| format!(r#"<think>hm <text>a 26/9 END "stop" completed {data}"#);
    check(
        &(says("<think>\nhm</think>\n\na") + &last("stop")),
        &expected(r#"{"think":"<think>\nhm</think>\n\n"}"#),
    );
    check(
        &(says("<thi") + &says("nk>hm</th") + &says("ink>\n") + &says("a") + &last("stop")),
        &expected(r#"{"think":"<think>hm</think>\n"}"#),
    );
    // Two that are no reasoning.
    let thought = thinks("hm") + &says("<think>a") + &last("stop");
    check(&thought, r#"<thinking>hm <text><think>a 26/9 END "stop" completed {"thinking":"hm"}"#);
    let unclosed = says("<think>a") + &last("stop");
    check(&unclosed, r#"<think>a <text><think>a 26/9 END "stop" completed"#);
    check(&(says("<thi") + &last("stop")), r#"<text><thi 26/9 END "stop" completed"#);
}

#[test]
fn tokens_from_the_cache_are_counted() {
    let counted = |more: &str| {
        let body =
            says("a") + &last("stop").replace("\"eval_count\"", &format!("{more}\"eval_count\""));
        let (events, read) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
        read.expect("an answer");
        let usage = events.into_iter().find_map(|event| {
            let EngineEvent::Usage(usage) = event else { return None };
            Some(usage)
        });
        let usage = usage.expect("token counts");
        (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    };
    assert_eq!(counted(""), (26, 0, 9), "older servers don't say");
    assert_eq!(counted("\"prompt_eval_cached_count\":16,"), (26, 16, 9));
    assert_eq!(counted("\"prompt_eval_cached_count\":16.0,"), (26, 16, 9));
}

/// The answer has been shown by then.
#[test]
fn token_counts_of_another_form_fail_no_answer() {
    for (counts, expected) in
        [("26.0", "26/9 "), ("-1", "0/9 "), ("\"many\"", "0/9 "), ("null", "0/9 ")]
    {
        let body = says("a") + &last("stop").replace("26", counts);
        check(&body, &format!(r#"<text>a {expected}END "stop" completed"#));
    }
}

/// Wherever an answer is cut, what came of it is a beginning of the whole, and the error is typed.
#[test]
fn a_cut_answer_is_never_a_success() {
    let (body, failures) = (long_answer(), failures());
    // The last line is whole without its end.
    let whole_bytes = body.trim_end().len();
    for (end, class) in
        [(BodyEnd::Marked, ErrorClass::MalformedStream), (BodyEnd::Connection, ErrorClass::Network)]
    {
        let new = || OllamaReader::new(&failures, end);
        testing::check_cuts(new, &body, whole_bytes, |bytes, failure| {
            failure.class == if bytes == 0 { ErrorClass::MalformedStream } else { class }
        });
    }
    assert_eq!(read(&[&body.as_bytes()[..whole_bytes]]), LONG_ANSWER);
}

#[test]
fn every_reason_has_its_class() {
    for (reason, class) in [
        ("stop", "completed"),
        ("length", "max_tokens"),
        ("load", "other"),
        ("unload", "other"),
        ("weather", "other"),
    ] {
        check(&(says("a") + &last(reason)), &format!("<text>a 26/9 END {reason:?} {class}"));
    }
    check(&(says("a") + "{\"done\":true}\n"), r#"<text>a END "" completed"#);
    check(&last("length"), r#"26/9 END "length" max_tokens"#);
    check(&last("load"), r#"26/9 END "load" other FAILED provider"#);
    let reasoned = thinks("hm") + &last("stop");
    let data = r#"{"thinking":"hm"}"#;
    check(&reasoned, &format!("<thinking>hm 26/9 END \"stop\" completed {data} FAILED provider"));
}

#[test]
fn what_is_no_answer_is_a_typed_error() {
    check(&says("a"), "<text>a FAILED malformed_stream");
    for nothing in ["", " \n\n", "<!DOCTYPE html>\n", "data: {\"choices\":[]}\n\n", "{}\n"] {
        check(nothing, "FAILED malformed_stream");
    }
    for wrong in [
        "{\n".to_owned(),
        line(json!({ "content": 1 })),
        line(json!("text")),
        calls(json!([{ "function": { "arguments": {} } }])),
        calls(json!([{ "name": "look" }])),
    ] {
        check(&(says("a") + &wrong + &last("stop")), "<text>a FAILED malformed_stream");
    }
}

#[test]
fn what_is_not_known_is_skipped() {
    let body = "ping\n".to_owned()
        + "{\"status\":\"loading\"}\n"
        + "{\"message\":null,\"done\":false,\"error\":null}\n"
        + &line(
            json!({ "role": "assistant", "content": null, "thinking": null, "tool_calls": null }),
        )
        + &line(json!({ "content": "a", "images": ["AA=="], "weather": 1 }))
        + &last("stop");
    check(&body, r#"<text>a 26/9 END "stop" completed"#);
}

#[test]
fn an_error_may_come_as_a_line_of_its_own() {
    for (error, class) in [
        (json!("an error was encountered while running the model"), "provider"),
        (json!({ "message": "slow down", "code": 429 }), "rate_limited"),
        (json!({ "message": "no", "code": 401 }), "auth"),
    ] {
        let report = json!({ "error": error }).to_string();
        check(&report, &format!("FAILED {class}"));
        check(&(says("a") + &report + "\n"), &format!("<text>a FAILED {class}"));
    }
    let body = json!({ "error": format!("bad key {KEY}"), "done": "odd" }).to_string();
    let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
    let error = result.expect_err("a report").into_error();
    assert_eq!(error.class, ErrorClass::Provider);
    assert!(!error.message.contains(KEY) && !error.detail.contains(KEY), "{error:?}");
}

#[test]
fn calls_without_arguments_or_ids_get_them() {
    let nameless = json!([
        { "function": { "name": "look" } },
        { "id": "", "function": { "name": "look", "arguments": null } },
    ]);
    let body = calls(nameless) + &last("stop");
    let expected = concat!(
        "+call_0:look [call_0]{} !call_0 +call_1:look [call_1]{} !call_1 ",
        r#"26/9 END "stop" tool_calls"#,
    );
    check(&body, expected);
    let key = calls(json!([{ "id": KEY, "function": { "name": KEY } }])) + &last(KEY);
    assert!(!read(&[key.as_bytes()]).contains(KEY));
    check_offered(&key);
}

#[test]
fn an_answer_is_bounded() {
    let thought = thinks(&"x".repeat(1024 * 1024)).repeat(17);
    assert!(read(&[thought.as_bytes()]).ends_with("FAILED malformed_stream"));
    let many = vec![json!({ "function": { "name": "look" } }); 300];
    let many = calls(json!(many)) + &last("stop");
    assert!(read(&[many.as_bytes()]).ends_with("FAILED malformed_stream"));
    let long = vec![b'{'; 9 * 1024 * 1024];
    assert_eq!(read(&[&long]), "FAILED malformed_stream");
}

#[test]
fn a_character_that_was_cut_between_two_events_is_whole() {
    let body = says("aFIRST") + &says("SECONDb") + &last("stop");
    let body = body.replace("FIRST", "\\ud83d").replace("SECOND", "\\ude00");
    let words = read(&[body.as_bytes()]);
    assert!(words.starts_with("<text>a\u{1F600}b "), "{words}");
}
