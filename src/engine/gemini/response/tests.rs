//! What the bytes of an answer become, however they are cut.

use super::*;
use crate::engine::ErrorClass;
use crate::engine::provider::retry::Retry;
use crate::engine::provider::testing;
use crate::support::secret::Secret;
use serde_json::json;

const KEY: &str = "AIza-secret/123456";

testing::response_tests!(GeminiReader, KEY);

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\r\n\r\n")
}

/// The next parts of an answer, and token counts so far.
fn chunk(parts: Value) -> Value {
    json!({
        "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "usageMetadata": { "promptTokenCount": 12, "totalTokenCount": 12,
                           "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": 12 }] },
        "modelVersion": "m", "responseId": "r",
    })
}

/// A last chunk, with a finish reason and all token counts.
fn last(parts: Value, reason: &str) -> Value {
    let mut last = chunk(parts);
    last["candidates"][0]["finishReason"] = reason.into();
    last["usageMetadata"] = json!({ "promptTokenCount": 12, "candidatesTokenCount": 4,
        "thoughtsTokenCount": 30, "totalTokenCount": 46 });
    last
}

fn stream(chunks: &[Value]) -> String {
    chunks.iter().map(event).collect()
}

fn call(name: &str, args: Value) -> Value {
    json!({ "functionCall": { "name": name, "args": args } })
}

/// Reasoning, a text in pieces, and two parallel calls, of which the first is signed.
fn long_answer() -> String {
    let mut signed = call("look", json!({ "city": "Rome", "n": 1.5 }));
    signed["thoughtSignature"] = "c2ln".into();
    let mut with_id = call("look", json!({}));
    with_id["functionCall"]["id"] = "f-2".into();
    stream(&[
        chunk(json!([{ "text": "hm \u{1F600}", "thought": true }])),
        chunk(json!([{ "text": "Let me " }])),
        chunk(json!([{ "text": "lo\u{f6}k.", "thoughtSignature": "dGV4dA==" }])),
        chunk(json!([signed])),
        last(json!([with_id, { "text": "", "thoughtSignature": "ZW5k" }]), "STOP"),
    ])
}

const LONG_ANSWER: &str = concat!(
    "<thought>hm \u{1F600} <text>Let me lo\u{f6}k. ",
    "+call_0:look [call_0]{\"city\":\"Rome\",\"n\":1.5} !call_0 +f-2:look [f-2]{} !f-2 ",
    "12/34 END \"STOP\" tool_calls ",
    "[{\"part\":\"text\",\"bytes\":7},{\"part\":\"text\",\"bytes\":6,\"signature\":\"dGV4dA==\"},",
    "{\"part\":\"call\",\"signature\":\"c2ln\"},{\"part\":\"call\",\"id\":\"f-2\"},",
    "{\"part\":\"text\",\"bytes\":0,\"signature\":\"ZW5k\"}]",
);

#[test]
fn an_answer_is_read_in_order_however_it_arrives() {
    check(
        &stream(&[chunk(json!([{ "text": "a" }])), last(json!([{ "text": "b" }]), "STOP")]),
        r#"<text>ab 12/34 END "STOP" completed"#,
    );
    check(&long_answer(), LONG_ANSWER);
    check(&long_answer().replace("\r\n", "\n"), LONG_ANSWER);
    // The reason may come in an object of its own, without content, as may the token counts.
    let end = json!({ "candidates": [{ "finishReason": "STOP", "index": 0 }] });
    let counts = json!({ "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 2 } });
    check(
        &stream(&[chunk(json!([{ "text": "a" }])), end, counts]),
        r#"<text>a 1/2 END "STOP" completed"#,
    );
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
        let new = || GeminiReader::new(&failures, end);
        testing::check_cuts(new, &body, whole_bytes, |_, failure| classes.contains(&failure.class));
    }
    assert_eq!(read(&[&body.as_bytes()[..whole_bytes]]), LONG_ANSWER);
}

#[test]
fn every_finish_reason_has_its_class() {
    for (reason, class) in [
        ("STOP", "completed"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("LANGUAGE", "other"),
        ("MALFORMED_FUNCTION_CALL", "other"),
        ("WEATHER", "other"),
    ] {
        let body = stream(&[last(json!([{ "text": "a" }]), reason)]);
        check(&body, &format!("<text>a 12/34 END {reason:?} {class}"));
    }
    let imitated = stream(&[last(json!([call("look", json!({}))]), "FUNCTION_CALL")]);
    assert!(read(&[imitated.as_bytes()]).contains(r#"END "FUNCTION_CALL" tool_calls"#));
    // A refusal may have no text; an answer that ends well has some.
    let empty = |reason: &str| stream(&[last(json!([]), reason)]);
    check(&empty("SAFETY"), r#"12/34 END "SAFETY" content_filter"#);
    check(&empty("MAX_TOKENS"), r#"12/34 END "MAX_TOKENS" max_tokens"#);
    check(&empty("LANGUAGE"), r#"12/34 END "LANGUAGE" other FAILED provider"#);
    let reasoned = stream(&[last(json!([{ "text": "hm", "thought": true }]), "STOP")]);
    check(&reasoned, r#"<thought>hm 12/34 END "STOP" completed FAILED provider"#);
}

/// Nothing was shown, and the model may write something else the next time.
#[test]
fn an_answer_that_is_empty_by_chance_may_be_asked_for_again() {
    let empty = |reason: &str| {
        let mut last = last(json!([]), reason);
        last["candidates"][0]["finishMessage"] = "Malformed function call: print(".into();
        stream(&[last])
    };
    for (reason, detail) in [
        ("STOP", r#"finish reason "STOP""#),
        (
            "MALFORMED_FUNCTION_CALL",
            r#"finish reason "MALFORMED_FUNCTION_CALL": Malformed function call: print("#,
        ),
        (
            "UNEXPECTED_TOOL_CALL",
            r#"finish reason "UNEXPECTED_TOOL_CALL": Malformed function call: print("#,
        ),
    ] {
        check(&empty(reason), "FAILED provider");
        let (_, result) = read_pieces(&[empty(reason).as_bytes()], BodyEnd::Marked);
        let failure = result.expect_err("it is empty");
        assert_eq!(failure.retry, Retry::Backoff, "{reason}");
        assert_eq!(failure.into_error().detail, detail);
    }
    // What was shown would be shown again.
    let reasoned = stream(&[last(json!([{ "text": "hm", "thought": true }]), "STOP")]);
    let (_, result) = read_pieces(&[reasoned.as_bytes()], BodyEnd::Marked);
    assert_eq!(result.expect_err("it has no text").retry, Retry::Never);
}

/// As a model for pictures answers: the next picture would cost as much, and could not be shown either.
#[test]
fn an_answer_that_cannot_be_shown_is_not_asked_for_again() {
    let failures = failures();
    for part in [
        json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } }),
        json!({ "fileData": { "fileUri": "https://example.com/a" } }),
        json!({ "executableCode": { "language": "PYTHON", "code": "1" } }),
        json!({ "codeExecutionResult": { "outcome": "OUTCOME_OK" } }),
    ] {
        let body = stream(&[chunk(json!([part])), last(json!([]), "STOP")]);
        let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
        let failure = result.expect_err("it has no text");
        assert_eq!((failure.class, failure.retry), (ErrorClass::Provider, Retry::Never), "{body}");
        assert!(failure.message().contains("can't show"), "{failure:?}");
        let new = || {
            let mut reader = GeminiReader::new(&failures, BodyEnd::Marked);
            reader.response_mut().set_follows_results(true);
            reader
        };
        testing::check(new, &body, r#"12/34 END "STOP" completed"#);
    }
}

/// A call may have been the answer. It is asked for again as long as it may be empty by chance.
#[test]
fn an_answer_to_results_may_be_empty() {
    let empty = stream(&[last(json!([]), "STOP")]);
    let reasoned = stream(&[last(json!([{ "text": "hm", "thought": true }]), "STOP")]);
    let failures = failures();
    for (body, is_last_attempt, expected) in [
        (&empty, false, "FAILED provider"),
        (&empty, true, r#"12/34 END "STOP" completed"#),
        (&reasoned, false, r#"<thought>hm 12/34 END "STOP" completed"#),
    ] {
        let new = || {
            let mut reader = GeminiReader::new(&failures, BodyEnd::Marked);
            reader.response_mut().set_follows_results(true);
            reader.response_mut().set_last_attempt(is_last_attempt);
            reader
        };
        testing::check(new, body, expected);
    }
}

#[test]
fn a_prompt_that_is_blocked_is_a_refusal() {
    for reason in ["SAFETY", "PROHIBITED_CONTENT", "WEATHER"] {
        let blocked = json!({
            "promptFeedback": { "blockReason": reason, "safetyRatings": [] },
            "usageMetadata": { "promptTokenCount": 9 },
        });
        let expected = format!("9/0 END {reason:?} content_filter");
        check(&event(&blocked), &expected);
        check(&blocked.to_string(), &expected);
    }
    let feedback = json!({ "promptFeedback": { "safetyRatings": [] } });
    check(
        &stream(&[feedback, last(json!([{ "text": "a" }]), "STOP")]),
        r#"<text>a 12/34 END "STOP" completed"#,
    );
}

#[test]
fn only_a_finish_reason_ends_an_answer() {
    let body = stream(&[chunk(json!([{ "text": "a" }]))]);
    check(&body, "<text>a FAILED malformed_stream");
    check(&(body.clone() + "data: [DONE]\n\n"), "<text>a FAILED malformed_stream");
    let unspecified = stream(&[last(json!([]), "FINISH_REASON_UNSPECIFIED")]);
    check(&(body + &unspecified), "<text>a FAILED malformed_stream");
    for nothing in ["", "\r\n\r\n", "<!DOCTYPE html>\n<html>\n</html>\n", "data: ping\n\n"] {
        check(nothing, "FAILED malformed_stream");
    }
}

/// A connection that stays open after the end must not hold up the answer.
#[test]
fn after_a_finish_reason_an_answer_may_be_complete() {
    let completeness = |chunks: &[Value]| {
        let failures = failures();
        let mut answer = GeminiReader::new(&failures, BodyEnd::Marked);
        answer.push(stream(chunks).as_bytes(), &mut Vec::new()).expect("an answer");
        (answer.completeness(), answer.is_done())
    };
    let text = || chunk(json!([{ "text": "a" }]));
    let stop = || last(json!([]), "STOP");
    let counts = json!({ "usageMetadata": { "promptTokenCount": 1 } });
    assert_eq!(completeness(&[text()]), (Completeness::Open, false));
    assert_eq!(completeness(&[text(), stop()]), (Completeness::Settled, false));
    assert_eq!(completeness(&[text(), stop(), counts]), (Completeness::Settled, false));
    assert_eq!(completeness(&[stop()]), (Completeness::Likely, false));
    assert_eq!(completeness(&[text(), stop(), text()]), (Completeness::Likely, false));
    // What came after the reason counts.
    check(
        &stream(&[last(json!([{ "text": "a" }]), "STOP"), chunk(json!([{ "text": "b" }]))]),
        r#"<text>ab 12/12 END "STOP" completed"#.replace("12/12", "12/0").as_str(),
    );
    // Half an event after the end changes nothing.
    check(
        &(stream(&[last(json!([{ "text": "a" }]), "STOP")]) + "data: {\"usageMeta"),
        r#"<text>a 12/34 END "STOP" completed"#,
    );
}

/// A reason that more text follows ends no answer that may be broken off, and hides no error.
#[test]
fn text_after_a_finish_reason_may_be_broken_off() {
    let (text, stop) = (chunk(json!([{ "text": "b" }])), last(json!([{ "text": "a" }]), "STOP"));
    let class = |chunks: &[&Value], tail: &str| {
        let body = chunks.iter().map(|chunk| event(chunk)).collect::<String>() + tail;
        let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Connection);
        result.err().map(|failure| failure.class)
    };
    assert_eq!(class(&[&stop, &text], ""), Some(ErrorClass::Network));
    assert_eq!(class(&[&stop, &text], "data: [DONE]\n\n"), None);
    assert_eq!(class(&[&stop, &text, &stop], ""), None);
    assert_eq!(class(&[&stop], ""), None);
    let limited = r#"data: {"error":{"code":429,"message":"no"}}"#;
    assert_eq!(class(&[&stop, &text], limited), Some(ErrorClass::RateLimited));
    assert_eq!(class(&[&stop, &stop], limited), Some(ErrorClass::RateLimited));
    assert_eq!(class(&[&stop], limited), None);
}

#[test]
fn what_is_not_known_is_skipped() {
    let odd_parts = json!([
        { "executableCode": { "language": "PYTHON", "code": "1" } },
        { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
        { "text": "a", "videoMetadata": {} },
        {},
    ]);
    let body = event(&json!({ "weather": { "index": 1 } }))
        + ": comment\n\ndata:\n\ndata: ping\n\n"
        + &event(&json!({ "candidates": null, "usageMetadata": null, "error": null }))
        + &event(&json!({ "candidates": [] }))
        + &event(&json!({ "candidates": [{ "content": { "role": "model" } }] }))
        + &event(&last(odd_parts, "STOP"))
        + "data: [DONE]\n\n";
    check(&body, r#"<text>a 12/34 END "STOP" completed"#);
}

#[test]
fn what_is_wrong_is_a_typed_error() {
    let begun = || event(&chunk(json!([{ "text": "a" }])));
    for wrong in [
        event(&chunk(json!([{ "text": 1 }]))),
        event(&chunk(json!([{ "functionCall": { "args": {} } }]))),
        event(&chunk(json!({}))),
        event(&json!({ "candidates": "none" })),
        "data: {\n\n".to_owned(),
        "data: [{]\n\n".to_owned(),
    ] {
        check(&(begun() + &wrong), "<text>a FAILED malformed_stream");
    }
}

#[test]
fn an_error_report_is_read_in_each_of_its_forms() {
    let report = |code: u16, status: &str| json!({ "error": { "code": code, "message": "no", "status": status } });
    let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
    for (code, status, class) in [
        (429, "RESOURCE_EXHAUSTED", "rate_limited"),
        (503, "UNAVAILABLE", "provider"),
        (403, "PERMISSION_DENIED", "auth"),
        (400, "INVALID_ARGUMENT", "provider"),
    ] {
        let report = report(code, status);
        let list = json!([report]);
        let begun = event(&chunk(json!([{ "text": "a" }])));
        for form in [
            event(&report),
            event(&list),
            format!("{report}\n"),
            pretty(&report),
            pretty(&list),
            pretty(&list).replace("[\n", "[").replace("  {", "{"),
            format!("event: error\ndata: {report}\n\n"),
        ] {
            check(&(begun.clone() + &form), &format!("<text>a FAILED {class}"));
        }
        for form in [pretty(&report), list.to_string(), event(&report)] {
            check(&form, &format!("FAILED {class}"));
        }
        let word_alone = json!({ "error": { "message": "no", "status": status } });
        check(&(begun + &event(&word_alone)), &format!("<text>a FAILED {class}"));
    }
    check("event: error\ndata: out of memory\n\n", "FAILED provider");
    let body = event(&json!({ "error": { "code": 400, "message": format!("bad key {KEY}") } }));
    let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
    let error = result.expect_err("a report").into_error();
    assert!(!error.message.contains(KEY) && !error.detail.contains(KEY), "{error:?}");
}

/// Servers that don't stream, or stream a list, answer with the same objects.
#[test]
fn an_answer_in_one_document_or_in_a_list_is_read_too() {
    let whole = last(json!([{ "text": "a" }, call("look", json!({ "x": 1 }))]), "STOP");
    let expected = r#"<text>a +call_0:look [call_0]{"x":1} !call_0 12/34 END "STOP" tool_calls"#;
    check(&whole.to_string(), expected);
    let first = chunk(json!([{ "text": "a" }]));
    let second = last(json!([{ "text": "b" }]), "STOP");
    let expected = r#"<text>ab 12/34 END "STOP" completed"#;
    check(&format!("[{first}\n,\r\n{second}\n]\n"), expected);
    assert_eq!(read(&[format!("[{first}\n,\r\n").as_bytes()]), "FAILED malformed_stream");
}

#[test]
fn calls_without_arguments_or_ids_get_them() {
    let nameless = json!([
        { "functionCall": { "name": "look" } },
        { "functionCall": { "name": "look", "args": null, "id": "" } },
        { "functionCall": { "name": "look", "args": {}, "id": "call_0" } },
    ]);
    let body = event(&last(nameless, "STOP"));
    let expected = concat!(
        "+call_0:look [call_0]{} !call_0 +call_1:look [call_1]{} !call_1 ",
        "+call_2:look [call_2]{} !call_2 12/34 END \"STOP\" tool_calls ",
        r#"[{"part":"call"},{"part":"call"},{"part":"call","id":"call_0"}]"#,
    );
    check(&body, expected);
}

#[test]
fn the_key_is_not_in_the_words_of_a_call() {
    let call = json!([{ "functionCall": { "name": KEY, "id": KEY, "args": {} } }]);
    let body = event(&last(call, &format!("odd {KEY}")));
    assert!(!read(&[body.as_bytes()]).contains(KEY));
    check_offered(&body);
}

#[test]
fn an_answer_is_bounded() {
    let long = "x".repeat(1024 * 1024);
    let signed = event(&chunk(json!([{ "text": "", "thoughtSignature": long }])));
    let body = signed.repeat(17);
    assert_eq!(read(&[body.as_bytes()]), "FAILED malformed_stream");
    let calls: Vec<_> = (0..300).map(|_| call("look", json!({}))).collect();
    let body = event(&last(json!(calls), "STOP"));
    assert!(read(&[body.as_bytes()]).ends_with("FAILED malformed_stream"));
}

#[test]
fn a_character_that_was_cut_between_two_events_is_whole() {
    let first = chunk(json!([{ "text": "aFIRST" }]));
    let body = stream(&[first, last(json!([{ "text": "SECONDb" }]), "STOP")]);
    let body = body.replace("FIRST", "\\ud83d").replace("SECOND", "\\ude00");
    let words = read(&[body.as_bytes()]);
    assert!(words.starts_with("<text>a\u{1F600}b "), "{words}");
}
