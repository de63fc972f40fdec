//! What the bytes of an answer become, however they are cut.

use super::*;
use crate::engine::ErrorClass;
use crate::engine::provider::testing;
use crate::support::secret::Secret;
use serde_json::json;

const KEY: &str = "sk-proj-secret/123456";

testing::response_tests!(ResponsesReader, KEY);

fn event(event: Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn start() -> String {
    let response = json!({ "object": "response", "status": "in_progress", "output": [] });
    ["created", "in_progress"]
        .map(|kind| event(json!({ "type": format!("response.{kind}"), "response": response })))
        .concat()
}

fn added(index: u64, item: Value) -> String {
    event(json!({ "type": "response.output_item.added", "output_index": index, "item": item }))
}

fn done(index: u64, item: Value) -> String {
    event(json!({ "type": "response.output_item.done", "output_index": index, "item": item }))
}

/// A delta of this kind: `output_text`, `function_call_arguments` …
fn delta(kind: &str, index: u64, text: &str) -> String {
    event(json!({
        "type": format!("response.{kind}.delta"), "item_id": "i", "output_index": index,
        "content_index": 0, "delta": text, "obfuscation": "xx",
    }))
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [part(text)] })
}

fn text(index: u64, pieces: &[&str]) -> String {
    let begun = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [] });
    let announced = json!({ "output_index": index, "content_index": 0, "part": part("") });
    let mut stream = added(index, begun);
    for kind in ["added", "done"] {
        let mut event_of = announced.clone();
        event_of["type"] = format!("response.content_part.{kind}").into();
        if kind == "done" {
            let deltas = pieces.iter().map(|piece| delta("output_text", index, piece));
            stream += &deltas.collect::<String>();
            let repeated = json!({ "type": "response.output_text.done", "output_index": index,
                "content_index": 0, "text": pieces.concat() });
            stream += &event(repeated);
        }
        stream += &event(event_of);
    }
    stream + &done(index, message(&pieces.concat()))
}

fn reasoning_item(summary: &[&str], encrypted: &str) -> Value {
    let parts = summary.iter().map(|text| json!({ "type": "summary_text", "text": text }));
    json!({ "type": "reasoning", "id": "rs_1", "summary": parts.collect::<Vec<_>>(),
        "encrypted_content": encrypted })
}

fn reasoning(index: u64, summary: &[&str], encrypted: &str) -> String {
    let pieces = (0u64..).zip(summary).map(|(number, text)| {
        event(json!({
            "type": "response.reasoning_summary_text.delta", "output_index": index,
            "summary_index": number, "delta": text,
        }))
    });
    // What it holds when it begins is not what has to be sent back.
    added(index, reasoning_item(&[], "early"))
        + &pieces.collect::<String>()
        + &done(index, reasoning_item(summary, encrypted))
}

fn call_item(id: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": id, "name": "look",
        "arguments": arguments })
}

fn tool(index: u64, id: &str, pieces: &[&str]) -> String {
    let deltas = pieces.iter().map(|piece| delta("function_call_arguments", index, piece));
    let repeated = json!({ "type": "response.function_call_arguments.done",
        "output_index": index, "arguments": pieces.concat() });
    added(index, call_item(id, ""))
        + &deltas.collect::<String>()
        + &event(repeated)
        + &done(index, call_item(id, &pieces.concat()))
}

fn usage() -> Value {
    json!({ "input_tokens": 113, "output_tokens": 9,
        "input_tokens_details": { "cached_tokens": 100 },
        "output_tokens_details": { "reasoning_tokens": 5 } })
}

fn ending(output: &[Value]) -> String {
    event(json!({ "type": "response.completed", "response": {
        "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "output": output, "usage": usage(),
    } }))
}

fn incomplete(reason: &str) -> String {
    event(json!({ "type": "response.incomplete", "response": {
        "status": "incomplete", "incomplete_details": { "reason": reason }, "usage": usage(),
    } }))
}

const PING: &str = "event: keepalive\ndata: {\"type\": \"keepalive\", \"sequence_number\": 4}\n\n";

/// Reasoning, a comment, two parallel calls, with all of it repeated at the end.
fn long_answer() -> String {
    let mut comment = message("Let me lo\u{f6}k.");
    comment["phase"] = "commentary".into();
    let output = [
        reasoning_item(&["hm \u{1F600}", "so"], "c2ln"),
        comment.clone(),
        call_item("call_a", "{\"city\": \"Rome\"}"),
        call_item("call_b", "{}"),
    ];
    start()
        + &reasoning(0, &["hm \u{1F600}", "so"], "c2ln")
        + PING
        + &text(1, &["Let me ", "", "lo\u{f6}k."]).replace(
            &format!("{}\n\n", done(1, message("Let me lo\u{f6}k.")).trim_end()),
            &done(1, comment),
        )
        + &tool(2, "call_a", &["{\"city\":", " \"Rome\"}"])
        + &tool(3, "call_b", &["{}"])
        + &ending(&output)
}

const LONG_ANSWER: &str = concat!(
    "<summary>hm \u{1F600}\n\nso <text>Let me lo\u{f6}k. +call_a:look ",
    "[call_a]{\"city\": \"Rome\"} !call_a +call_b:look [call_b]{} !call_b 113/9 ",
    "END \"completed\" tool_calls ",
    "[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm \u{1F600}\"},",
    "{\"type\":\"summary_text\",\"text\":\"so\"}],\"encrypted_content\":\"c2ln\",\"id\":\"rs_1\"},",
    "{\"type\":\"text\",\"bytes\":13,\"phase\":\"commentary\"},{\"type\":\"call\"},{\"type\":\"call\"}]",
);

#[test]
fn an_answer_is_read_in_order_however_it_arrives() {
    check(
        &(start() + &text(0, &["a", "b"]) + &ending(&[message("ab")])),
        r#"<text>ab 113/9 END "completed" completed"#,
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
        let new = || ResponsesReader::new(&failures, end);
        testing::check_cuts(new, &body, whole_bytes, |_, failure| classes.contains(&failure.class));
    }
    assert_eq!(read(&[&body.as_bytes()[..whole_bytes]]), LONG_ANSWER);
    let cut = start() + &text(0, &["a"]);
    let (_, result) = read_pieces(&[cut.as_bytes()], BodyEnd::Connection);
    assert_eq!(result.expect_err("it is cut").class, ErrorClass::Network);
}

#[test]
fn every_end_has_its_class() {
    for (reason, class) in [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "content_filter"),
        ("max_messages", "other"),
        ("weather", "other"),
    ] {
        let body = start() + &text(0, &["a"]) + &incomplete(reason);
        check(&body, &format!("<text>a 113/9 END {reason:?} {class}"));
    }
    let bare = json!({ "type": "response.incomplete", "response": {} });
    let expected = r#"<text>a END "incomplete" max_tokens"#;
    check(&(start() + &text(0, &["a"]) + &event(bare)), expected);
    let nulls = json!({ "type": "response.incomplete", "response": {
        "status": "incomplete", "incomplete_details": null } });
    check(&(start() + &text(0, &["a"]) + &event(nulls)), expected);
    // Some servers have one end event for every answer.
    let cut = json!({ "type": "response.completed", "response": {
        "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } } });
    let expected = r#"<text>a END "max_output_tokens" max_tokens"#;
    check(&(start() + &text(0, &["a"]) + &event(cut)), expected);
    let done = |status: Value| {
        let response = json!({ "status": status, "usage": usage() });
        start()
            + &text(0, &["a"])
            + &event(json!({ "type": "response.done", "response": response }))
    };
    check(&done(json!("completed")), r#"<text>a 113/9 END "completed" completed"#);
    check(&done(Value::Null), r#"<text>a 113/9 END "completed" completed"#);
    check(&done(json!("cancelled")), "<text>a FAILED provider");
    check(&done(json!("failed")), "<text>a FAILED provider");
    check(&done(json!("in_progress")), "<text>a FAILED malformed_stream");
    let cancelled = event(json!({ "type": "response.cancelled", "response": {} }));
    check(&(start() + &text(0, &["a"]) + &cancelled), "<text>a FAILED provider");
    // An answer that ends well says something.
    check(&(start() + &ending(&[])), r#"113/9 END "completed" completed FAILED provider"#);
    let reasoned = start() + &reasoning(0, &["hm"], "") + &ending(&[]);
    check(&reasoned, r#"<summary>hm 113/9 END "completed" completed FAILED provider"#);
    check(
        &(start() + &incomplete("content_filter")),
        r#"113/9 END "content_filter" content_filter"#,
    );
}

#[test]
fn a_refusal_is_an_answer() {
    let refusal =
        json!({ "type": "message", "content": [{ "type": "refusal", "refusal": "No." }] });
    let streamed = start()
        + &added(0, json!({ "type": "message", "content": [] }))
        + &delta("refusal", 0, "No.")
        + &done(0, refusal.clone())
        + &ending(std::slice::from_ref(&refusal));
    check(&streamed, r#"<text>No. 113/9 END "completed" completed"#);
    check(
        &(start() + &done(0, refusal) + &ending(&[])),
        r#"<text>No. 113/9 END "completed" completed"#,
    );
}

/// As some servers send them, without pieces.
#[test]
fn what_comes_only_as_a_whole_part_is_read() {
    let arguments = |arguments: Value| {
        event(json!({ "type": "response.function_call_arguments.done", "output_index": 0,
            "arguments": arguments }))
    };
    let call = start() + &added(0, call_item("a", "")) + &arguments(json!("{\"q\":1}"));
    let expected = r#"+a:look [a]{"q":1} !a 113/9 END "completed" tool_calls"#;
    check(&(call.clone() + &ending(&[])), expected);
    check(&(call + &done(0, call_item("a", "")) + &ending(&[])), expected);
    let object = start() + &added(0, call_item("a", "")) + &arguments(json!({ "q": 1 }));
    check(&(object + &arguments(Value::Null) + &ending(&[])), expected);
    let part_done = |index: u64, field: &str, text: Value| {
        let kind = if field == "text" { "output_text" } else { field };
        event(json!({ "type": format!("response.{kind}.done"), "output_index": index,
            "content_index": 0, field: text }))
    };
    let said = r#"<text>ab 113/9 END "completed" completed"#;
    let begun = start() + &added(0, json!({ "type": "message", "content": [] }));
    let first = part_done(0, "text", json!("a"));
    let both = begun.clone() + &first + &part_done(0, "refusal", json!("b"));
    check(&(both.clone() + &ending(&[])), said);
    check(&(both + &done(0, message("ab")) + &ending(&[message("ab")])), said);
    check(&(begun.clone() + &first + &done(0, message("ab")) + &ending(&[])), said);
    check(&(start() + &part_done(0, "text", json!("ab")) + &ending(&[])), said);
    let pieces = begun + &delta("output_text", 0, "ab") + &part_done(0, "text", json!("ab"));
    check(&(pieces + &part_done(0, "text", Value::Null) + &ending(&[])), said);
    // Several messages, of which none or only the first has pieces.
    let second = part_done(1, "text", json!("b"));
    let wholes = start() + &first + &second;
    check(&(wholes.clone() + &ending(&[])), said);
    check(&(wholes + &ending(&[message("a"), message("b")])), said);
    let without_part = start() + &delta("output_text", 0, "a") + &done(0, message("a"));
    check(&(without_part + &second + &ending(&[])), said);
    // Pieces and whole parts that are numbered in two ways, or not at all.
    let piece = json!({ "type": "response.output_text.delta", "delta": "ab" });
    let whole = json!({ "type": "response.output_text.done", "text": "ab" });
    let with = |event: &Value, name: &str, value: Value| {
        let mut event = event.clone();
        event[name] = value;
        event
    };
    let piece_at_1 = event(with(&piece, "output_index", json!(1)));
    let whole_at_1 = event(with(&whole, "output_index", json!(1)));
    let unnumbered = event(with(&whole, "output_index", Value::Null));
    let unrefused = event(with(&whole, "refusal", Value::Null));
    let (piece, whole) = (event(piece), event(whole));
    let (added_at_1, done_at_1) = (added(1, message("")), done(1, message("ab")));
    for pieces in [
        [&piece, &whole_at_1].as_slice(),
        &[&piece_at_1, &whole],
        &[&piece, &unnumbered],
        &[&piece, &unrefused],
        &[&added_at_1, &piece, &whole_at_1],
        &[&added_at_1, &piece, &done_at_1],
        &[&added_at_1, &piece, &whole_at_1, &done_at_1],
        &[&piece, &done_at_1],
        &[&piece, &whole_at_1, &done_at_1],
    ] {
        let pieces: String = pieces.iter().map(|piece| piece.as_str()).collect();
        check(&(start() + &pieces + &ending(&[message("ab")])), said);
    }
    let call = start() + &added(0, call_item("a", ""));
    let unnumbered = json!({ "type": "response.function_call_arguments.done",
        "output_index": null, "arguments": "{\"q\":1}" });
    check(&(call + &event(unnumbered) + &ending(&[])), expected);
}

#[test]
fn a_part_without_pieces_may_stand_beside_one_that_has_some() {
    let text_event = |kind: &str, number: Value, field: &str, text: &str| {
        event(json!({ "type": format!("response.output_text.{kind}"), "output_index": 0,
            "content_index": number, field: text }))
    };
    let piece = |number: Value, text: &str| text_event("delta", number, "delta", text);
    let whole = |number: u64, text: &str| text_event("done", number.into(), "text", text);
    let pieces = [piece(json!(0), "a"), piece(json!(1), "b")].concat();
    let wholes = [whole(0, "a"), whole(1, "b")].concat();
    let unnumbered = [piece(Value::Null, "a"), piece(json!("x"), "b")].concat();
    let begun = added(0, json!({ "type": "message", "content": [] }));
    let rest = done(0, json!({ "type": "message", "content": [part("a"), part("b")] }));
    for parts in [
        piece(json!(0), "a") + &wholes,
        piece(json!(0), "a") + &wholes + &whole(1, "b"),
        whole(0, "a") + &piece(json!(1), "b") + &whole(1, "b"),
        pieces + &wholes,
        // It is not known which parts these pieces are of.
        unnumbered + &wholes,
    ] {
        let said = r#"<text>ab 113/9 END "completed" completed"#;
        check(&(start() + &begun + &parts + &rest + &ending(&[])), said);
        check(&(start() + &parts + &ending(&[])), said);
    }
}

#[test]
fn only_the_last_event_ends_an_answer() {
    let body = start() + &text(0, &["a"]);
    check(&body, "<text>a FAILED malformed_stream");
    check(&(body.clone() + "data: [DONE]\n\n"), "<text>a FAILED malformed_stream");
    // What follows it is not read.
    let after = body + &ending(&[]) + "data: {\n\n";
    assert_eq!(read(&[after.as_bytes()]), r#"<text>a 113/9 END "completed" completed"#);
    for nothing in ["", "\r\n\r\n", "<!DOCTYPE html>\n<html>\n</html>\n", PING] {
        check(nothing, "FAILED malformed_stream");
    }
    // An answer of another interface.
    let chat =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
    check(chat, "FAILED malformed_stream");
}

#[test]
fn what_is_not_known_is_skipped() {
    let search = json!({ "type": "web_search_call", "id": "ws", "status": "completed" });
    let body = start()
        + &event(json!({ "type": "response.weather", "output_index": { "a": 1 } }))
        + ": comment\n\ndata:\n\ndata: ping\n\n"
        + PING
        + &added(0, search.clone())
        + &delta("output_text", 0, "x")
        + &delta("function_call_arguments", 0, "x")
        + &delta("reasoning_text", 0, "x")
        + &event(json!({ "type": "response.web_search_call.searching", "output_index": 0 }))
        + &done(0, search.clone())
        + &text(1, &["a"])
        + &ending(&[search, message("a")]);
    check(&body, r#"<text>a 113/9 END "completed" completed"#);
}

#[test]
fn what_is_wrong_is_a_typed_error() {
    let begun = || start() + &added(0, message("")) + &delta("output_text", 0, "a");
    for wrong in [
        delta("function_call_arguments", 0, "b"),
        delta("function_call_arguments", 3, "b"),
        event(json!({ "type": "response.output_text.delta", "output_index": 0 })),
        event(json!({ "type": "response.output_text.delta", "output_index": 0, "delta": 1 })),
        event(json!({ "type": "response.output_item.added", "output_index": 0 })),
        event(json!({ "type": "response.completed" })),
        "data: {\"index\":0}\n\n".to_owned(),
        "data: {\n\n".to_owned(),
        added(1, json!({ "type": "function_call", "call_id": "t", "name": "", "arguments": "" })),
        done(1, json!({ "type": "function_call", "call_id": "t", "arguments": "{}" })),
    ] {
        check(&(begun() + &wrong + &ending(&[])), "<text>a FAILED malformed_stream");
    }
}

#[test]
fn an_error_report_has_the_class_of_its_word() {
    let failed = |error: Value| {
        event(
            json!({ "type": "response.failed", "response": { "status": "failed", "error": error } }),
        )
    };
    for (code, message, class) in [
        ("server_error", "oh", "provider"),
        ("server_is_overloaded", "busy", "provider"),
        ("rate_limit_exceeded", "slow down", "rate_limited"),
        ("insufficient_quota", "no credit", "rate_limited"),
        ("invalid_prompt", "bad", "provider"),
        ("context_length_exceeded", "too long", "context_overflow"),
        ("image_too_large", "bad", "provider"),
        ("invalid_api_key", "bad key", "auth"),
        ("weather", "rain", "provider"),
    ] {
        let error = json!({ "code": code, "message": message });
        let flat = json!({ "type": "error", "code": code, "message": message, "param": null });
        let nested = json!({ "type": "error", "sequence_number": 2, "error": error });
        for report in [failed(error), event(flat), event(nested)] {
            let body = start() + &text(0, &["a"]) + &report;
            let expected = format!("<text>a FAILED {class}");
            // However it is cut is tried with one of the words.
            match code {
                "weather" => check(&body, &expected),
                _ => assert_eq!(read(&[body.as_bytes()]), expected, "{body}"),
            }
        }
    }
    check("{\"error\":{\"message\":\"x\",\"type\":\"server_error\"}}", "FAILED provider");
    check("data: {\"error\":{\"message\":\"by a proxy\",\"code\":429}}\n\n", "FAILED rate_limited");
    check("event: error\ndata: out of memory\n\n", "FAILED provider");
    let body =
        failed(json!({ "code": "invalid_api_key", "message": format!("invalid key {KEY}") }));
    let (_, result) = read_pieces(&[body.as_bytes()], BodyEnd::Marked);
    let error = result.expect_err("a report").into_error();
    assert!(!error.message.contains(KEY) && !error.detail.contains(KEY), "{error:?}");
}

#[test]
fn the_token_counts_of_an_answer_that_fails_are_known() {
    let failures = failures();
    let mut answer = ResponsesReader::new(&failures, BodyEnd::Marked);
    let failed = json!({ "type": "response.failed", "response": {
        "status": "failed", "error": { "code": "server_error" }, "usage": usage() } });
    let body = start() + &event(failed);
    answer.push(body.as_bytes(), &mut Vec::new()).expect_err("a report");
    let counts = |usage: Usage| (usage.input_tokens, usage.output_tokens);
    assert_eq!(answer.take_usage().map(counts), Some((113, 9)));
}

/// Servers that speak the interface after their own fashion: the last event, or an item's, has all.
#[test]
fn what_has_no_event_of_its_own_is_taken_from_where_it_is_repeated() {
    let output = || {
        [
            reasoning_item(&["hm"], "c2ln"),
            message("a"),
            call_item("t", "{}"),
            json!({ "type": "function_call", "call_id": "u", "name": "look", "arguments": { "x": 1 } }),
        ]
    };
    let all = concat!(
        r#"<summary>hm <text>a +t:look [t]{} !t +u:look [u]{"x":1} !u 113/9 END "completed" tool_calls "#,
        r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"#,
        r#""encrypted_content":"c2ln","id":"rs_1"},{"type":"text","bytes":1},{"type":"call"},{"type":"call"}]"#,
    );
    check(&(start() + &ending(&output())), all);
    let items = (0..).zip(output()).map(|(index, item)| done(index, item));
    check(&(start() + &items.collect::<String>() + &ending(&output())), all);
    let document = json!({ "object": "response", "status": "completed", "output": output(), "usage": usage() });
    check(&document.to_string(), all);
    // Text without its message, then calls at the end alone.
    let bare =
        start() + &delta("output_text", 0, "a") + &tool(1, "t", &["{}"]) + &ending(&output());
    let some = r#"<text>a +t:look [t]{} !t +u:look [u]{"x":1} !u 113/9 END "completed" tool_calls"#;
    check(&bare, some);
    // Arguments as the item began with them.
    let early = start() + &added(0, call_item("t", "[1]")) + &ending(&[]);
    check(&early, r#"+t:look [t][1] !t 113/9 END "completed" tool_calls"#);
}

#[test]
fn items_without_numbers_follow_one_another() {
    let without = |stream: String| stream.replace("\"output_index\":0,", "");
    let body = without(
        start()
            + &reasoning(0, &["hm"], "c2ln")
            + &text(0, &["a"])
            + &tool(0, "t", &["{}"])
            + &ending(&[]),
    );
    assert!(!body.contains("output_index"), "{body}");
    let expected = concat!(
        r#"<summary>hm <text>a +t:look [t]{} !t 113/9 END "completed" tool_calls "#,
        r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"#,
        r#""encrypted_content":"c2ln","id":"rs_1"},{"type":"text","bytes":1},{"type":"call"}]"#,
    );
    check(&body, expected);
}

#[test]
fn an_index_that_is_null_is_that_of_the_first() {
    for (kind, name, source) in [
        ("reasoning_summary_text", "summary_index", "summary"),
        ("reasoning_text", "content_index", "reasoning_text"),
    ] {
        let mut piece = json!({ "type": format!("response.{kind}.delta"), "delta": "hm" });
        piece["output_index"] = Value::Null;
        piece[name] = Value::Null;
        let body = start() + &event(piece) + &text(1, &["a"]) + &ending(&[]);
        check(&body, &format!(r#"<{source}>hm <text>a 113/9 END "completed" completed"#));
    }
}

#[test]
fn reasoning_that_comes_in_two_forms_is_shown_once() {
    let item = json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "s" }],
        "content": [{ "type": "reasoning_text", "text": "long" }] });
    let body = start()
        + &added(0, json!({ "type": "reasoning", "summary": [] }))
        + &delta("reasoning_text", 0, "long")
        + &delta("reasoning_summary_text", 0, "s")
        + &done(0, item.clone())
        + &text(1, &["a"])
        + &ending(&[]);
    // What has no encrypted form goes back as it is.
    let data = concat!(
        r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"#,
        r#""content":[{"type":"reasoning_text","text":"long"}]},{"type":"text","bytes":1}]"#,
    );
    let expected =
        format!(r#"<reasoning_text>long <text>a 113/9 END "completed" completed {data}"#);
    check(&body, &expected);
    check(
        &(start() + &done(0, item) + &text(1, &["a"]) + &ending(&[])),
        &format!(r#"<summary>s <text>a 113/9 END "completed" completed {data}"#),
    );
}

#[test]
fn reasoning_goes_back_in_one_form_or_not_at_all() {
    let content = json!([{ "type": "reasoning_text", "text": "hm" }]);
    let read = |mut item: Value| {
        item["type"] = "reasoning".into();
        let body = start() + &done(0, item) + &text(1, &["a"]) + &ending(&[]);
        let read = read(&[body.as_bytes()]);
        let (_, data) = read.split_once(r#" END "completed" completed"#).expect("an end");
        data.trim().to_owned()
    };
    // As vLLM sends it.
    let vllm = json!({ "id": "rs_1", "summary": [], "content": content, "encrypted_content": null,
                       "status": "completed" });
    let expected = json!([
        { "type": "reasoning", "summary": [], "content": content, "id": "rs_1" },
        { "type": "text", "bytes": 1 },
    ]);
    assert_eq!(serde_json::from_str::<Value>(&read(vllm)).expect("JSON"), expected);
    let both = read(json!({ "summary": [], "content": content, "encrypted_content": "c2ln" }));
    assert!(both.contains("c2ln") && !both.contains("hm"), "{both}");
    for nothing in [json!([]), json!(null), json!("hm")] {
        assert_eq!(read(json!({ "summary": [], "content": nothing })), "", "{nothing}");
    }
}

#[test]
fn missing_and_doubled_ids_are_made_up() {
    let body = start()
        + &tool(0, "", &["1"])
        + &tool(1, "t", &["2"])
        + &tool(2, "t", &["3"])
        + &ending(&[]);
    let expected = concat!(
        "+call_0:look [call_0]1 !call_0 +t:look [t]2 !t +call_2:look [call_2]3 !call_2 ",
        r#"113/9 END "completed" tool_calls"#,
    );
    check(&body, expected);
}

#[test]
fn the_key_is_not_in_the_words_of_a_call() {
    let body = start() + &tool(0, KEY, &["{}"]) + &incomplete(&format!("odd {KEY}"));
    let body = body.replace("look", KEY);
    assert!(!read(&[body.as_bytes()]).contains(KEY));
    check_offered(&body);
}

#[test]
fn an_answer_is_bounded() {
    let long = "x".repeat(6 * 1024 * 1024);
    let events: Vec<String> = (0..3).map(|index| reasoning(index, &[], &long)).collect();
    let pieces: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    assert_eq!(read(&pieces), "FAILED malformed_stream");
    let calls: String = (0..300).map(|index| tool(index, &format!("t{index}"), &[])).collect();
    assert!(read(&[start().as_bytes(), calls.as_bytes()]).ends_with("FAILED malformed_stream"));
}

#[test]
fn keep_alive_messages_bring_the_answer_no_further() {
    let failures = failures();
    let mut answer = ResponsesReader::new(&failures, BodyEnd::Marked);
    let mut events = Vec::new();
    answer.push(start().as_bytes(), &mut events).expect("reads");
    let progress = answer.progress();
    answer.push(PING.repeat(3).as_bytes(), &mut events).expect("reads");
    answer.push(start().as_bytes(), &mut events).expect("reads");
    answer.push(event(json!({ "type": "weather" })).as_bytes(), &mut events).expect("reads");
    assert_eq!(answer.progress(), progress);
    answer.push(delta("output_text", 0, "a").as_bytes(), &mut events).expect("reads");
    assert!(answer.progress() > progress);
}

#[test]
fn a_character_that_was_cut_between_two_events_is_whole() {
    let body = start() + &text(0, &["aFIRST", "SECONDb"]) + &ending(&[]);
    let body = body.replace("FIRST", "\\ud83d").replace("SECOND", "\\ude00");
    let words = read(&[body.as_bytes()]);
    assert!(words.starts_with("<text>a\u{1F600}b "), "{words}");
}
