//! What one document of an answer is read as.

use super::*;

/// `json` decodes to `expected`: reasoning with its field, text, tool deltas, reason, usage.
fn check(json: &str, expected: &str) {
    let chunk = decode(json.as_bytes()).expect(json);
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut seen = Vec::new();
    let usage = chunk.usage();
    if let Some(choice) = chunk.choice {
        let reason = choice.finish_reason().map(str::to_owned);
        let said = choice.piece(Shape::Piece, &mut false);
        let (field, reasoning) = said.reasoning();
        if !reasoning.is_empty() {
            seen.push(format!("{field}={}", lossy(reasoning)));
        }
        seen.extend(said.text().iter().filter(|t| !t.is_empty()).map(|t| lossy(t)));
        seen.extend(said.tool_calls().into_iter().map(|tool| {
            let arguments = lossy(tool.arguments());
            format!("{:?} {:?} {:?} {arguments}", tool.index(), tool.id(), tool.name())
        }));
        seen.extend(reason.map(|reason| format!("!{reason}")));
    }
    if let Some(Usage { input_tokens, output_tokens, cached_tokens, .. }) = usage {
        seen.push(format!("{input_tokens}/{output_tokens}/{cached_tokens}"));
    }
    if !chunk.error.is_null() {
        seen.push(chunk.error.to_string());
    }
    assert_eq!(seen.join(", "), expected, "{json}");
}

fn check_delta(delta: &str, expected: &str) {
    check(&format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#), expected);
}

#[test]
fn text_comes_as_a_string_null_or_parts() {
    check_delta(r#"{"role":"assistant","content":"a\n\u00e9"}"#, "a\n\u{e9}");
    check_delta(r#"{"content":null}"#, "");
    check_delta(r#"{"content":""}"#, "");
    check_delta(r#"{"content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]}"#, "ab");
    check_delta(r#"{"content":null,"refusal":"no"}"#, "no");
    check_delta("null", "");
    check_delta("{}", "");
}

#[test]
fn arguments_may_be_an_object() {
    let calls = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"a":1}}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}"#;
    let expected = r#"Some(0) Some("a") Some("f") {"a":1}, Some(1) Some("b") Some("g") {}"#;
    check_delta(calls, expected);
    check(&format!(r#"{{"choices":[{{"message":{calls}}}]}}"#), expected);
    let old = r#"{"function_call":{"name":"f","arguments":{"a":1}}}"#;
    check_delta(old, r#"Some(0) None Some("f") {"a":1}"#);
    let long = r#"{"a":12345678901234567890123,"b":1.10}"#;
    let old = format!(r#"{{"function_call":{{"name":"f","arguments":{long}}}}}"#);
    check_delta(&old, &format!(r#"Some(0) None Some("f") {long}"#));
}

/// As Cloudflare sends a token that reads as a number or a truth value.
#[test]
fn a_piece_of_a_text_may_be_a_number_or_a_truth_value() {
    check_delta(r#"{"content":6}"#, "6");
    check_delta(r#"{"content":-1.5}"#, "-1.5");
    check_delta(r#"{"content":true}"#, "true");
    check_delta(r#"{"reasoning_content":7,"content":"a"}"#, "reasoning_content=7, a");
    check_delta(r#"{"reasoning":8}"#, "reasoning=8");
    for written in ["1.10", "12345678901234567890123", "1e999", "-0", "false"] {
        check_delta(&format!(r#"{{"content":{written}}}"#), written);
        check(&format!(r#"{{"choices":[{{"text": {written} }}]}}"#), written);
    }
    check(r#"{"choices":[{"text":9}]}"#, "9");
    check(r#"{"choices":[{"message":{"content":10}}]}"#, "10");
}

/// As Tencent's servers and others have them beside a text.
#[test]
fn a_call_of_nothing_is_no_call() {
    for nothing in [
        r#""function_call":{"name":"","arguments":""},"tool_calls":[]"#,
        r#""function_call":{}"#,
        r#""function_call":"""#,
        r#""tool_calls":[null]"#,
        r#""tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"","arguments":""}}]"#,
        r#""tool_calls":[{"index":0,"id":null,"function":null}]"#,
    ] {
        check_delta(&format!(r#"{{"content":"a",{nothing}}}"#), "a");
        check_delta(&format!("{{{nothing}}}"), "");
        let repeated = format!(r#"{{"choices":[{{"delta":{{{nothing}}},"text":"a"}}]}}"#);
        check(&repeated, "a");
    }
    let named = r#"{"function_call":{"name":""},"tool_calls":[{"index":0,"id":"a"}]}"#;
    check_delta(named, r#"Some(0) Some("a") None "#);
}

#[test]
fn reasoning_is_taken_once_with_its_field() {
    check_delta(r#"{"reasoning_content":"a","content":null}"#, "reasoning_content=a");
    check_delta(r#"{"reasoning":"a"}"#, "reasoning=a");
    check_delta(r#"{"reasoning":"a","reasoning_content":"a"}"#, "reasoning_content=a");
    check_delta(r#"{"reasoning_content":"","reasoning":"a"}"#, "reasoning=a");
    check_delta(r#"{"reasoning_text":"a","reasoning_opaque":"b"}"#, "reasoning_text=a");
    check(r#"{"choices":[{"message":{"reasoning_text":"a"}}]}"#, "reasoning_text=a");
    check_delta(r#"{"reasoning_content":null,"reasoning":"a","content":"b"}"#, "reasoning=a, b");
}

#[test]
fn thinking_among_the_parts_of_a_content_is_reasoning() {
    let thinks = r#"{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":true}"#;
    check_delta(&format!(r#"{{"content":[{thinks}]}}"#), "thinking=hm");
    check_delta(
        &format!(r#"{{"content":[{thinks},{{"type":"text","text":"a"}}]}}"#),
        "thinking=hm, a",
    );
    check_delta(r#"{"content":[{"type":"thinking","thinking":"hm"}]}"#, "thinking=hm");
    check_delta(r#"{"content":[{"type":"thinking","thinking":[]}]}"#, "");
    check_delta(&format!(r#"{{"content":[{thinks}],"reasoning":"hm"}}"#), "reasoning=hm");
    let whole = format!(r#"{{"choices":[{{"message":{{"content":[{thinks}]}}}}]}}"#);
    check(&whole, "thinking=hm");
}

#[test]
fn tool_calls_may_leave_out_what_they_have_sent_before() {
    let first = r#"{"tool_calls":[{"index":0,"id":"c","type":"function",
                   "function":{"name":"f","arguments":""}},
                   {"function":{"arguments":"{}"}},{"index":"x","id":7,"function":null}]}"#;
    // The last one holds nothing.
    let expected = r#"Some(0) Some("c") Some("f") , None None None {}"#;
    check_delta(first, expected);
    check_delta(r#"{"tool_calls":null}"#, "");
}

#[test]
fn the_end_tells_reason_and_usage() {
    check(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "!stop");
    check(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#, "a");
    let usage = r#"{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}"#;
    check(&format!(r#"{{"choices":[],"usage":{usage}}}"#), "3/2/0");
    check(&format!(r#"{{"choices":null,"usage":{usage}}}"#), "3/2/0");
    check(&format!(r#"{{"usage":{usage}}}"#), "3/2/0");
    // Where Moonshot and Groq have them, if there are none at the top.
    let end = format!(r#"{{"delta":{{}},"finish_reason":"stop","usage":{usage}}}"#);
    check(&format!(r#"{{"choices":[{end}]}}"#), "!stop, 3/2/0");
    check(&format!(r#"{{"choices":[],"usage":null,"x_groq":{{"usage":{usage}}}}}"#), "3/2/0");
    let other = r#"{"prompt_tokens":8,"completion_tokens":1}"#;
    check(&format!(r#"{{"choices":[{end}],"usage":{other}}}"#), "!stop, 8/1/0");
    check(r#"{"choices":[{"delta":{},"usage":"x"}],"x_groq":[1]}"#, "");
    let details = r#"{"prompt_tokens":99999999999,"prompt_tokens_details":{"cached_tokens":1}}"#;
    check(&format!(r#"{{"usage":{details}}}"#), "2147483647/0/1");
    check(r#"{"usage":null}"#, "");
    check(r#"{"usage":{"prompt_tokens":"x","prompt_tokens_details":[]}}"#, "");
}

#[test]
fn what_is_not_needed_may_be_anything() {
    check(r#"{"id":[1],"object":{},"model":null,"created":"x","x_groq":{"id":"\ud83d"}}"#, "");
    check(r#"{"choices":[{"index":"x","logprobs":1,"delta":{"role":[],"audio":2}},7]}"#, "");
    check(r#"{"choices":[null]}"#, "");
    check(r#"{"error":"x"}"#, r#""x""#);
    check(r#"{"error":{"message":"x"},"choices":[]}"#, r#"{"message":"x"}"#);
}

#[test]
fn half_a_character_is_kept_as_bytes() {
    let decode = |json: &[u8]| {
        let said =
            decode(json).expect("decodes").choice.expect("choice").piece(Shape::Piece, &mut false);
        said.content.text.0
    };
    assert_eq!(decode(br#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#), b"a\xED\xA0\xBD");
    assert_eq!(decode(b"{\"choices\":[{\"delta\":{\"content\":\"\xF0\x9F\"}}]}"), b"\xF0\x9F");
}

#[test]
fn half_a_character_in_a_word_is_replaced() {
    let call = r#"{"id":"c\udc00","function":{"name":"\ud83df","arguments":"\ud83d\ude00"}}"#;
    let expected = "None Some(\"c\u{FFFD}\") Some(\"\u{FFFD}f\") \u{1F600}";
    check_delta(&format!(r#"{{"tool_calls":[{call}],"\udc00":1}}"#), expected);
    check(r#"{"choices":[{"finish_reason":"s\ud83d"}]}"#, "!s\u{FFFD}");
    check(r#"{"error":{"message":"\ud83d"}}"#, "{\"message\":\"\u{FFFD}\"}");
}

#[test]
fn what_is_needed_must_be_readable() {
    for json in [
        "",
        "{",
        "[]",
        "null",
        "7",
        r#"{"choices":{}}"#,
        r#"{"choices":[{"delta":{"content":{}}}]}"#,
        r#"{"choices":[{"delta":{"content":"a}}]}"#,
        r#"{"choices":[]} x"#,
    ] {
        assert!(decode(json.as_bytes()).is_err(), "{json}");
    }
    let deep = format!(r#"{{"x":{}}}"#, "[".repeat(100_000));
    assert!(decode(deep.as_bytes()).is_err());
}

#[test]
fn a_choice_that_was_not_asked_for_is_ignored_wherever_it_stands() {
    let other = r#"{"index":1,"delta":{"content":"other"},"finish_reason":"length"}"#;
    let first = r#"{"index":0,"delta":{"content":"a"}}"#;
    check(&format!(r#"{{"choices":[{other},{first}]}}"#), "a");
    check(&format!(r#"{{"choices":[{first},{other}]}}"#), "a");
    check(&format!(r#"{{"choices":[{other}]}}"#), "");
    check(&format!(r#"{{"choices":[null,{other},{first},7]}}"#), "a");
}

#[test]
fn message_text_and_function_call_stand_in_for_a_delta() {
    check(r#"{"choices":[{"message":{"content":"a","reasoning":"b"}}]}"#, "reasoning=b, a");
    check(r#"{"choices":[{"text":"a","index":0}]}"#, "a");
    check(r#"{"choices":[{"delta":{},"message":{"content":"a"}}]}"#, "a");
    check(r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"all a"}}]}"#, "a");
    check_delta(
        r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
        r#"Some(0) None Some("f") {}"#,
    );
    check_delta(r#"{"function_call":null}"#, "");
}

#[test]
fn what_a_message_repeats_of_the_deltas_is_ignored() {
    let mut by_delta = false;
    let mut said = |json: &str| {
        let choice = decode(json.as_bytes()).expect("decodes").choice.expect("a choice");
        choice.piece(Shape::Piece, &mut by_delta).content.text.0
    };
    assert_eq!(said(r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"a"}}]}"#), b"a");
    assert_eq!(said(r#"{"choices":[{"delta":{},"message":{"content":"a"}}]}"#), b"");
}
