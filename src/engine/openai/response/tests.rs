//! What bytes of an answer become, however they are cut.

use super::*;
use crate::engine::ErrorClass;
use crate::engine::SettingNames;
use crate::support::secret::Secret;

const KEY: &str = "sk-secret/123456";

/// Reads a body that arrives in `pieces`, and describes its events; adjacent texts are joined.
fn read(pieces: &[&[u8]]) -> String {
    read_to(BodyEnd::Marked, pieces)
}

fn read_to(end: BodyEnd, pieces: &[&[u8]]) -> String {
    let failures =
        Failures::new(&SettingNames::FIELDS, Secret::new(KEY).as_ref(), "http://host", "m");
    let mut answer = OpenAiReader::new(&failures, end);
    let mut events = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        if result.is_ok() {
            result = answer.push(piece, &mut events);
        }
    }
    result = match result {
        Ok(()) => answer.end("text/plain", &mut events),
        Err(failure) => {
            answer.flush(&mut events);
            Err(failure)
        }
    };
    let mut reported = String::new();
    let mut last = String::new();
    for event in &events {
        let (head, text) = described(event);
        if head != last || !(head.starts_with('<') || head.starts_with('[')) {
            reported += &format!(" {head}");
        }
        reported += &text;
        last = head;
    }
    if let Err(failure) = result {
        reported += &format!(" FAILED {}", failure.class.as_str());
    }
    reported.trim_start().to_owned()
}

fn described(event: &EngineEvent) -> (String, String) {
    match event {
        EngineEvent::Text(text) => ("<text>".into(), text.clone()),
        EngineEvent::Reasoning { source, text } => (format!("<{source}>"), text.clone()),
        EngineEvent::ToolCallStarted(tool) => (format!("+{}", tool.name), String::new()),
        EngineEvent::ToolArguments { id, text } => (format!("[{}]", id.0), text.clone()),
        EngineEvent::ToolCallRequested { id } => (format!("!{}", id.0), String::new()),
        EngineEvent::Usage(usage) => {
            (format!("{}/{}", usage.input_tokens, usage.output_tokens), String::new())
        }
        EngineEvent::CallFinished { stop_reason, class, .. } => {
            (format!("END {stop_reason:?} {}", class.as_str()), String::new())
        }
        EngineEvent::CallStarted
        | EngineEvent::ContextTokens(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::ResponseStarted
        | EngineEvent::RetryStarted(_) => (format!("{event:?}"), String::new()),
    }
}

/// `body` is read as `expected`, whole, split at every byte, and byte by byte.
fn check_bytes(body: &[u8], expected: &str) {
    let shown = String::from_utf8_lossy(body);
    assert_eq!(read(&[body]), expected, "{shown} whole");
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(read(&[left, right]), expected, "{shown} split at {at}");
    }
    assert_eq!(read(&body.chunks(1).collect::<Vec<_>>()), expected, "{shown} byte by byte");
}

fn check(body: &str, expected: &str) {
    check_bytes(body.as_bytes(), expected);
}

fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn delta(delta: &str) -> String {
    event(&format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#))
}

fn text(text: &str) -> String {
    delta(&format!(r#"{{"content":"{text}"}}"#))
}

fn stop(reason: &str) -> String {
    event(&format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#))
}

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
const END: &str = "data: [DONE]\n\n";

#[test]
fn a_stream_is_reported_in_order() {
    let body = delta(r#"{"role":"assistant","content":""}"#)
        + ": keep-alive\n\n"
        + &delta(r#"{"reasoning_content":"hm"}"#)
        + &text("a")
        + &text("b")
        + &stop("stop")
        + &event(USAGE)
        + END;
    let expected = r#"<reasoning_content>hm <text>ab 3/2 END "stop" completed"#;
    check(&body, expected);
    // Some servers write each number so.
    check(&body.replace(":3,", ":3.0,").replace(":2}", ":2.0}"), expected);
}

/// Models whose template the server does not know write their reasoning into the text.
#[test]
fn a_think_tag_at_the_beginning_is_reasoning() {
    let end = stop("stop") + END;
    let words = "<think>\nMaybe {}\n</think>\n{\"a\": 2}";
    let escaped = |text: &str| text.replace('\n', "\\n").replace('"', "\\\"");
    let expected = "<think>Maybe {}\n <text>{\"a\": 2} END \"stop\" completed";
    check(&(text(&escaped(words)) + &end), expected);
    let by_character: String = words.chars().map(|c| text(&escaped(&c.to_string()))).collect();
    assert_eq!(read(&[(by_character + &end).as_bytes()]), expected);
    // Nothing is lost of a text that is no tag in the end, and its place is before the calls.
    check(&(text("<thi") + &end), r#"<text><thi END "stop" completed"#);
    let call = delta(
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{}"}}]}"#,
    );
    let expected = "<text>\n +look [c]{} !c END \"tool_calls\" tool_calls";
    assert_eq!(read(&[(text("\\n") + &call + &stop("tool_calls") + END).as_bytes()]), expected);
}

/// A text may begin with the tag and be no reasoning.
#[test]
fn a_think_tag_that_is_no_reasoning_is_answer() {
    let end = stop("stop") + END;
    let reasoned = delta(r#"{"reasoning_content":"hm"}"#);
    check(
        &(reasoned.clone() + &text("<think>a") + &end),
        r#"<reasoning_content>hm <text><think>a END "stop" completed"#,
    );
    check(
        &(reasoned + &text("<think>a</think>b") + &end),
        r#"<reasoning_content>hm <text><think>a</think>b END "stop" completed"#,
    );
    // A tag that is not closed by the end of all that the model says.
    check(&(text("<think>a") + &end), r#"<think>a <text><think>a END "stop" completed"#);
    check(&(text("<think> ") + &end), r#"END "stop" completed FAILED provider"#);
    check(&(text("<think>a") + &stop("length") + END), r#"<think>a END "length" max_tokens"#);
}

#[test]
fn every_reason_has_its_class() {
    for (reason, class) in [
        ("stop", "completed"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("weather", "other"),
    ] {
        check(&(text("a") + &stop(reason) + END), &format!("<text>a END {reason:?} {class}"));
    }
}

#[test]
fn an_end_needs_a_reason_or_a_mark() {
    check(&(text("a") + &stop("stop")), r#"<text>a END "stop" completed"#);
    check(&(text("a") + END), r#"<text>a END "" completed"#);
    check(&(text("a") + &stop("stop") + "data: {\"cho"), r#"<text>a END "stop" completed"#);
    check(&text("a"), "<text>a FAILED malformed_stream");
    check(&(text("a") + "data: [DO"), "<text>a FAILED malformed_stream");
    check(END, "FAILED malformed_stream");
    check("", "FAILED malformed_stream");
    check("\r\n\r\n", "FAILED malformed_stream");
    check("<!DOCTYPE html>\n<html>\n</html>\n", "FAILED malformed_stream");
    check(&event(USAGE), "FAILED malformed_stream");
}

#[test]
fn what_follows_the_mark_is_not_read() {
    check(&(text("a") + &stop("stop") + END + "data: {\n\n"), r#"<text>a END "stop" completed"#);
}

#[test]
fn characters_cut_between_deltas_are_joined() {
    let body = text(r"a\ud83d") + &text(r"\ude00b") + &text(r"\ud83d") + END;
    check(&body, "<text>a\u{1F600}b\u{FFFD} END \"\" completed");
    let cut = text("X") + &text("Y") + END;
    let mut bytes = Vec::new();
    for byte in cut.bytes() {
        match byte {
            b'X' => bytes.extend(b"a\xF0\x9F"),
            b'Y' => bytes.extend(b"\x98\x80b"),
            byte => bytes.push(byte),
        }
    }
    check_bytes(&bytes, "<text>a\u{1F600}b END \"\" completed");
    let broken = text(r"a\ud83d") + "data: {\n\n";
    check(&broken, "<text>a\u{FFFD} FAILED malformed_stream");
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let limited = r#"{"error":{"message":"slow","code":429},"choices":[{"delta":{"content":"b"},"finish_reason":"error"}]}"#;
    check(&(text("a") + &event(limited) + END), "<text>ab FAILED rate_limited");
    check(&event(r#"{"error":"gone"}"#), "FAILED provider");
    check(&format!("event: error\n{}", event(r#"{"message":"x"}"#)), "FAILED provider");
    check("event: error\ndata: text\n\n", "FAILED provider");
    let inside = r#"{"choices":[{"delta":{},"error":{"code":401}}]}"#;
    check(&event(inside), "FAILED auth");
    for reason in BROKEN_OFF {
        check(&(text("a") + &stop(reason) + END), "<text>a FAILED provider");
    }
    let headline = r#"{"error":"Too Many Requests","message":"used up","statusCode":429}"#;
    check(&event(headline), "FAILED rate_limited");
    let minimax =
        r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#;
    check(&event(minimax), "FAILED rate_limited");
    check(&(event(r#"{"error":null}"#) + &text("a") + END), r#"<text>a END "" completed"#);
}

/// As a gateway reports what its own accounting met.
#[test]
fn an_error_after_the_end_of_an_answer_undoes_nothing() {
    let failed = r#"{"error":{"message":"usage log failed","code":500}}"#;
    for report in [
        event(failed),
        event(r#"{"error":"usage log failed"}"#),
        event(r#"{"object":"error","message":"usage log failed","code":500}"#),
        event(&format!("[{failed}]")),
        format!("event: error\n{}", event("usage log failed")),
    ] {
        let ended = text("a") + &stop("stop") + &report;
        check(&(ended.clone() + &event(USAGE) + END), r#"<text>a 3/2 END "stop" completed"#);
        check(&ended, r#"<text>a END "stop" completed"#);
        // Where the answer may go on, or was broken off, the report counts.
        check(&(text("a") + &report + &stop("stop")), "<text>a FAILED provider");
        check(&(text("a") + &stop("error") + &report), "<text>a FAILED provider");
    }
    let with_more = r#"{"error":{"code":500},"choices":[{"delta":{"content":"b"}}]}"#;
    check(&(text("a") + &stop("stop") + &event(with_more)), "<text>ab FAILED provider");
}

/// However a server reports an error, before output, after it, or in place of the answer.
#[test]
fn an_error_object_in_the_stream_ends_it() {
    let vllm = r#"{"object":"error","message":"died","type":"InternalServerError","param":null,"code":500}"#;
    check(&(text("a") + &event(vllm) + END), "<text>a FAILED provider");
    check(&(event(vllm) + END), "FAILED provider");
    let long = r#"{"object":"error","message":"maximum context length is 5","type":"BadRequestError","code":400}"#;
    check(long, "FAILED context_overflow");
    check(&(event(long) + END), "FAILED context_overflow");
    let detail = r#"{"detail":"Internal Server Error"}"#;
    check(&(text("a") + &event(detail) + END), "<text>a FAILED provider");
    check(detail, "FAILED provider");
    check(&(text("a") + "{\"error\":{\"code\":401}}\n\n" + END), "<text>a FAILED auth");
    check(&(text("a") + "{\n \"error\":\n {\"code\":401}\n}\n"), "<text>a FAILED auth");
    check(
        &(text("a") + "error: {\"code\":429,\"message\":\"x\"}\n\n"),
        "<text>a FAILED rate_limited",
    );
    check(
        &(text("a") + &event(r#"{"choices":[],"message":"x","code":7}"#) + END),
        "<text>a FAILED provider",
    );
}

#[test]
fn an_end_mark_alone_is_not_enough_where_an_event_was_not_understood() {
    let odd = event(r#"{"failure":"out of memory"}"#);
    check(&(text("a") + &odd + END), "<text>a FAILED malformed_stream");
    check(
        &(text("a") + "data: Internal Server Error\n\n" + END),
        "<text>a FAILED malformed_stream",
    );
    check(&(odd.clone() + &text("a") + &stop("stop") + END), r#"<text>a END "stop" completed"#);
    let known = event(r#"{"choices":[],"prompt_filter_results":[]}"#);
    check(&(known + &text("a") + END), r#"<text>a END "" completed"#);
}

#[test]
fn an_unreadable_event_ends_it() {
    check(&(text("a") + "data: {oops}\n\n"), "<text>a FAILED malformed_stream");
    check(&(text("a") + &delta(r#"{"content":{}}"#)), "<text>a FAILED malformed_stream");
}

#[test]
fn a_tool_call_is_reported_once_its_arguments_are_whole() {
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a"}}]}"#;
    let more = r#"{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]}"#;
    let body = delta(call) + &delta(more) + &stop("tool_calls") + &event(USAGE) + END;
    check(&body, r#"+f [c]{"a":1} !c 3/2 END "tool_calls" tool_calls"#);
    check(&(delta(call) + END), r#"+f [c]{"a !c END "" tool_calls"#);
    check(&delta(call), r#"+f [c]{"a FAILED malformed_stream"#);
    let nameless = delta(r#"{"tool_calls":[{"index":0,"id":"c"}]}"#);
    check(&(nameless + END), "FAILED malformed_stream");
}

#[test]
fn words_of_the_provider_are_shown_without_the_key() {
    let call = delta(&format!(
        r#"{{"tool_calls":[{{"id":"c-{KEY}","function":{{"name":"f-{KEY}","arguments":"{KEY}"}}}}]}}"#
    ));
    check(
        &(call + &stop(r"x sk-secret\/123456") + END),
        &format!("+f-[redacted] [c-[redacted]]{KEY} !c-[redacted] END \"x [redacted]\" other"),
    );
    let odd = stop("x sk-secret%2F123456");
    check(&(text("a") + &odd + END), "<text>a END \"x [redacted]\" other");
    let failures =
        Failures::new(&SettingNames::FIELDS, Secret::new("stop").as_ref(), "http://host", "m");
    let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
    let mut events = Vec::new();
    answer.push((text("a") + &stop("stop")).as_bytes(), &mut events).expect("reads");
    answer.end("", &mut events).expect("finished");
    assert_eq!(described(&events[1]).0, "END \"stop\" completed");
}

#[test]
fn words_of_the_provider_are_bounded() {
    let long = "\u{e9}".repeat(1_000);
    let call =
        delta(&format!(r#"{{"tool_calls":[{{"id":"{long}","function":{{"name":"{long}"}}}}]}}"#));
    let body = call + &stop(&long) + END;
    let (id, word) = ("\u{e9}".repeat(512), "\u{e9}".repeat(100));
    let reported = format!("+{word} !{id} END {word:?} other");
    assert_eq!(read(&[body.as_bytes()]), reported);
}

#[test]
fn halves_of_characters_fail_no_answer() {
    let call = delta(r#"{"tool_calls":[{"id":"\udc00","function":{"name":"\ud83d"}}]}"#);
    let body = text("a") + &call + &stop(r"\ud83d") + END;
    check(&body, "<text>a +\u{FFFD} !\u{FFFD} END \"\u{FFFD}\" other");
    check(&event(r#"{"error":{"message":"\ud83d","code":401}}"#), "FAILED auth");
    let reported = event(r#"{"message":"\ud83d","code":401}"#);
    check(&format!("event: error\n{reported}"), "FAILED auth");
}

#[test]
fn a_key_that_the_end_of_an_answer_cuts_is_not_quoted_in_part() {
    let failures =
        Failures::new(&SettingNames::FIELDS, Secret::new(KEY).as_ref(), "http://host", "m");
    for head in ["data: {\"error\":\"bad ", "event: error\ndata: bad ", "{\"error\":\"bad "] {
        for cut_bytes in 1..KEY.len() {
            let mut events = Vec::new();
            let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
            let body = format!("{head}{}", &KEY[..KEY.len() - cut_bytes]);
            answer.push(body.as_bytes(), &mut events).expect("not an event yet");
            let error = answer.end("", &mut events).expect_err("half a body").into_error();
            assert!(error.detail.ends_with("bad "), "{error:?}");
            assert!(!error.message.contains("sk"), "{error:?}");
        }
    }
}

#[test]
fn a_whole_answer_is_read_like_a_stream() {
    let whole = r#"{"id":"x","object":"chat.completion","choices":[{"index":0,
        "message":{"role":"assistant","content":"ab","reasoning":"hm"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    check(whole, r#"<reasoning>hm <text>ab 3/2 END "stop" completed"#);
    check(r#"{"error":{"message":"x","code":"invalid_api_key"}}"#, "FAILED auth");
    check(r#"{"choices":[{"message":{"content":"a"}}]}"#, r#"<text>a END "" completed"#);
    check(r#"{"hello":1}"#, "FAILED malformed_stream");
    check(r#"{"choices":[{"message"#, "FAILED malformed_stream");
}

#[test]
fn an_event_without_end_is_not_held_for_ever() {
    let failures = Failures::new(&SettingNames::FIELDS, None, "", "");
    let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
    let mut events = Vec::new();
    answer.push(text("a").as_bytes(), &mut events).expect("fits");
    let failure = answer.push(&vec![b'x'; sse::EVENT_BYTES_MAX + 1], &mut events);
    assert_eq!(failure.expect_err("too long").class, ErrorClass::MalformedStream);
    assert_eq!(events, [EngineEvent::Text("a".into())]);
}

#[test]
fn text_after_a_finish_reason_is_read() {
    let with_stop = |said: &str| {
        let delta = format!(r#"{{"content":"{said}"}}"#);
        event(&format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":"stop"}}]}}"#))
    };
    check(&(with_stop("a") + &with_stop("b") + END), r#"<text>ab END "stop" completed"#);
    check(&(stop("stop") + &text("a") + &stop("length")), r#"<text>a END "length" max_tokens"#);
    let reasoned = delta(r#"{"reasoning":"hm"}"#) + &stop("stop") + &text("a") + END;
    check(&reasoned, r#"<reasoning>hm <text>a END "stop" completed"#);
}

#[test]
fn a_finish_reason_that_means_nothing_ends_no_answer_that_may_be_broken_off() {
    let with_stop = |said: &str| {
        let delta = format!(r#"{{"content":"{said}"}}"#);
        event(&format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":"stop"}}]}}"#))
    };
    let body = with_stop("a") + &with_stop("b");
    let to_close = |body: &str| read_to(BodyEnd::Connection, &[body.as_bytes()]);
    assert_eq!(to_close(&body), "<text>ab FAILED network");
    assert_eq!(to_close(&(body.clone() + END)), r#"<text>ab END "stop" completed"#);
    assert_eq!(to_close(&with_stop("a")), r#"<text>a END "stop" completed"#);
    assert_eq!(to_close(&(text("a") + &stop("stop"))), r#"<text>a END "stop" completed"#);
    let cut_off = delta(r#"{"reasoning":"hm"}"#) + &stop("length");
    assert_eq!(to_close(&cut_off), r#"<reasoning>hm END "length" max_tokens"#);
    check(&body, r#"<text>ab END "stop" completed"#);
    // The last event counts, also without the blank line after it.
    let limited = r#"data: {"error":{"message":"slow","code":429}}"#;
    check(&(body.clone() + limited), "<text>ab FAILED rate_limited");
    check(&(body + "data: {\"cho"), "<text>ab FAILED malformed_stream");
    let both = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}],"error":{"code":429}}"#;
    check(&(text("a") + both), "<text>a FAILED rate_limited");
    check(&(text("a") + &stop("stop") + limited), r#"<text>a END "stop" completed"#);
}

#[test]
fn an_answer_with_nothing_to_show_is_an_error() {
    check(&(stop("stop") + END), r#"END "stop" completed FAILED provider"#);
    check(&(text("") + &stop("stop")), r#"END "stop" completed FAILED provider"#);
    let reasoned = delta(r#"{"reasoning":"hm"}"#) + &stop("stop") + &event(USAGE) + END;
    check(&reasoned, r#"<reasoning>hm 3/2 END "stop" completed FAILED provider"#);
    let whole = r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#;
    check(whole, r#"END "stop" completed FAILED provider"#);
    // That it was cut off is reported by its class.
    check(&(stop("length") + END), r#"END "length" max_tokens"#);
    check(&(stop("content_filter") + END), r#"END "content_filter" content_filter"#);
    check(&(text(" ") + END), r#"<text>  END "" completed"#);
}

#[test]
fn a_stream_without_deltas_is_read() {
    let piece = |field: &str| event(&format!(r#"{{"choices":[{{"index":0,{field}}}]}}"#));
    let messages = piece(r#""message":{"content":"a"}"#) + &piece(r#""message":{"content":"b"}"#);
    check(&(messages + &stop("stop")), r#"<text>ab END "stop" completed"#);
    let texts = piece(r#""text":"a""#) + &piece(r#""text":"b""#) + &stop("stop");
    check(&texts, r#"<text>ab END "stop" completed"#);
    let repeated = text("a")
        + &text("b")
        + &piece(r#""delta":{},"message":{"content":"ab"},"finish_reason":"stop""#)
        + END;
    check(&repeated, r#"<text>ab END "stop" completed"#);
}

#[test]
fn a_legacy_function_call_is_a_tool_call() {
    let call = delta(r#"{"function_call":{"name":"f","arguments":""}}"#)
        + &delta(r#"{"function_call":{"arguments":"{}"}}"#)
        + &stop("function_call");
    check(&call, r#"+f [call_0]{} !call_0 END "function_call" tool_calls"#);
}

#[test]
fn data_that_is_no_json_is_ignored_and_counted() {
    let pings = "data: ping\n\n: x\n\ndata:\n\ndata: 7\n\ndata: []\n\n";
    check(&(pings.to_owned() + &text("a") + pings + END), "<text>a FAILED malformed_stream");
    check(&(text("a") + pings + &stop("stop") + END), r#"<text>a END "stop" completed"#);
    check(pings, "FAILED malformed_stream");
    check(&event(r#"[{"error":{"message":"x","code":429}}]"#), "FAILED rate_limited");
    let failures =
        Failures::new(&SettingNames::FIELDS, Secret::new(KEY).as_ref(), "http://host", "m");
    let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
    let body = format!("data: no {KEY}\n\n{pings}");
    answer.push(body.as_bytes(), &mut Vec::new()).expect("nothing unreadable");
    assert_eq!(answer.response().ignored(), 4);
    let error = answer.end("", &mut Vec::new()).expect_err("no answer").into_error();
    assert!(
        error.detail.ends_with(r#"not understood: 4, the first: "no [redacted]""#),
        "{error:?}"
    );
}

#[test]
fn a_choice_that_was_not_asked_for_is_no_part_of_the_answer() {
    let other = |reason: &str| {
        event(&format!(
            r#"{{"choices":[{{"index":1,"delta":{{"content":"x"}},"finish_reason":{reason}}}]}}"#
        ))
    };
    let body = other("null") + &text("a") + &other("\"stop\"") + &text("b") + &stop("stop");
    check(&(body + &other("null")), r#"<text>ab END "stop" completed"#);
}

#[test]
fn what_only_keeps_the_connection_alive_is_no_progress() {
    let failures = Failures::new(&SettingNames::FIELDS, None, "http://host", "m");
    let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
    let role = delta(r#"{"role":"assistant"}"#);
    for (bytes, is_progress) in [
        (": ping\n\n", false),
        ("data: ping\n\n", false),
        ("data:\n\n", false),
        ("event: ping\ndata: {}\n\n", false),
        (role.as_str(), true),
        (role.as_str(), false),
        (&text("a"), true),
        (&text(""), false),
        ("data: {\"choices\":", true),
        ("[]}\n\n", false),
        (&event(USAGE), true),
        (&event(USAGE), false),
        (&stop("stop"), true),
        (&stop("stop"), false),
        (&event(r#"{"usage":{"prompt_tokens":9}}"#), false),
    ] {
        let before = answer.progress();
        answer.push(bytes.as_bytes(), &mut Vec::new()).expect("reads");
        assert_eq!(answer.progress() > before, is_progress, "{bytes}");
    }
}

/// What DeepSeek, OpenRouter and vLLM want back is collected, however the answer arrives.
#[test]
fn the_reasoning_to_send_back_is_that_of_the_response() {
    let chunk = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let text = chunk(r#"{"content":"a"}"#);
    let by_name = [r#"{"reasoning_content":"h\u00f6"}"#, r#"{"reasoning_content":"m"}"#].map(chunk);
    let by_name = by_name.concat() + &text + end;
    let details = [
        r#"{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}"#,
        r#"{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"eHg=","index":1}]}"#,
    ];
    let details = details.map(chunk).concat() + &text + end;
    let plain = chunk(r#"{"reasoning":"hm"}"#) + &text + end;
    let whole = concat!(
        r#"{"choices":[{"finish_reason":"stop","message":"#,
        r#"{"content":"a","reasoning_content":"h\u00f6m"}}]}"#
    );
    let detailed = concat!(
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0},"#,
        r#"{"type":"reasoning.encrypted","data":"eHg=","index":1}]}"#
    );
    for (body, expected) in [
        (by_name.as_str(), Some("{\"reasoning_content\":\"h\u{f6}m\"}")),
        (whole, Some("{\"reasoning_content\":\"h\u{f6}m\"}")),
        (&details, Some(detailed)),
        (&plain, Some("{\"reasoning\":\"hm\"}")),
    ] {
        let bytes = body.as_bytes();
        for at in 0..=bytes.len() {
            let data = data_of(&[&bytes[..at], &bytes[at..]]);
            assert_eq!(data.as_deref(), expected, "{body} split at {at}");
        }
    }
}

fn data_of(pieces: &[&[u8]]) -> Option<String> {
    let failures = Failures::new(&SettingNames::FIELDS, None, "http://host", "m");
    let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
    let mut events = Vec::new();
    for piece in pieces {
        answer.push(piece, &mut events).expect("reads");
    }
    answer.end("text/plain", &mut events).expect("ends");
    events
        .into_iter()
        .find_map(|event| match event {
            EngineEvent::CallFinished { provider_data, .. } => provider_data,
            EngineEvent::CallStarted
            | EngineEvent::Reasoning { .. }
            | EngineEvent::Text(_)
            | EngineEvent::ToolCallStarted(_)
            | EngineEvent::ToolArguments { .. }
            | EngineEvent::ToolCallRequested { .. }
            | EngineEvent::Usage(_)
            | EngineEvent::ContextTokens(_)
            | EngineEvent::RetryScheduled(_)
            | EngineEvent::ResponseStarted
            | EngineEvent::RetryStarted(_) => None,
        })
        .map(|data| data.json.to_string())
}

/// What must go back with the calls of an answer.
#[test]
fn signatures_and_long_ids_of_calls_are_kept() {
    let failures =
        Failures::new(&SettingNames::FIELDS, Secret::new(KEY).as_ref(), "http://host", "m");
    let data = |calls: &serde_json::Value| {
        let delta = serde_json::json!({ "tool_calls": calls }).to_string();
        let body = self::delta(&delta) + &stop("tool_calls") + END;
        let mut answer = OpenAiReader::new(&failures, BodyEnd::Marked);
        let mut events = Vec::new();
        answer.push(body.as_bytes(), &mut events).expect("an answer");
        answer.end("text/plain", &mut events).expect("an answer");
        let Some(EngineEvent::CallFinished { provider_data, .. }) = events.pop() else {
            panic!("{events:?}")
        };
        provider_data.map(|data| data.json.to_string())
    };
    let function = |name: &str| serde_json::json!({ "name": name, "arguments": "{}" });
    let extra = serde_json::json!({ "google": { "thought_signature": "c2ln" } });
    let long = format!("call_1__thought__{}", "x".repeat(3_000));
    let calls = serde_json::json!([
        { "index": 0, "id": "a", "function": function("f"), "extra_content": extra },
        { "index": 1, "id": long, "function": function("g") },
    ]);
    let expected = serde_json::json!({ "calls": [{ "extra_content": extra }, { "id": long }] });
    assert_eq!(data(&calls), Some(expected.to_string()));
    let plain = serde_json::json!([{ "index": 0, "id": "a", "function": function("f") }]);
    assert_eq!(data(&plain), None);
}
