//! One value on each line.

use super::*;

#[track_caller]
fn check_whole(answer: &str, expected: &[&str]) {
    check(&Extractor::new(ResponseType::Jsonl, None), answer, false, expected);
}

#[track_caller]
fn check_cut_off(answer: &str, expected: &[&str]) {
    check(&Extractor::new(ResponseType::Jsonl, None), answer, true, expected);
}

#[test]
fn valid_lines() {
    check_whole("{\"a\":1}\n{\"b\": 2}\n", &["0 @1: {\"a\":1}", "1 @2: {\"b\": 2}"]);
    check_whole("{\"a\":1}\n{\"b\": 2}", &["0 @1: {\"a\":1}", "1 @2: {\"b\": 2}"]);
}

/// Some providers report an incomplete answer as complete. A line that has ended is complete.
#[test]
fn the_last_line_may_end_too_early_whatever_the_provider_says() {
    let cut = "rejected @2: cut off: the answer ends before the value does";
    let eof = "rejected @2: not JSON: the text ends where a value is expected (byte 5)";
    for (answer, expected, is_cut_off) in [
        ("{}\n{\"a\":", cut, true),
        ("{}\n{\"a\": \r", cut, true),
        ("{}\n{\"a\":\n", eof, false),
        ("{}\n{\"a\":\n1", eof, false),
        (
            "{}\n{\"a\":]",
            "rejected @2: not JSON: a value is missing, or is text without double quotes (byte 6)",
            false,
        ),
    ] {
        let mut extractor = Extractor::new(ResponseType::Jsonl, None);
        let mut found = extractor.push(answer);
        assert!(!extractor.is_cut_off(), "{answer} goes on");
        found.extend(extractor.finish(false));
        assert_eq!(shown(&found)[1], expected, "{answer}");
        assert_eq!(extractor.is_cut_off(), is_cut_off, "{answer}");
    }
    let mut whole = Extractor::new(ResponseType::Jsonl, None);
    whole.push("{}\n{}");
    whole.finish(true);
    assert!(!whole.is_cut_off(), "between two values");
}

#[test]
fn an_answer_without_lines() {
    for answer in ["", "\n", " \n\t\n", "```\n```", "\u{feff}"] {
        check_whole(answer, &[]);
        check_cut_off(answer, &[]);
    }
}

#[test]
fn blank_lines_are_skipped_and_counted() {
    check_whole("\n\n{}\n\r\n \t\n[]\n\n", &["0 @3: {}", "1 @6: []"]);
}

#[test]
fn fences_are_skipped_and_counted() {
    check_whole("```json\n{}\n```\n  ```\n[]\n```jsonl x", &["0 @2: {}", "1 @5: []"]);
}

/// A fence may be on the line of a value. Text after it that is no JSON is the name of a language, or an attribute.
#[test]
fn a_value_on_the_line_of_a_fence_counts() {
    check_whole("```json {\"a\":1}\n{\"a\":2}\n```", &["0 @1: {\"a\":1}", "1 @2: {\"a\":2}"]);
    check_whole("```json\n{\"a\":1}\n{\"a\":2}```", &["0 @2: {\"a\":1}", "1 @3: {\"a\":2}"]);
    check_whole("````jsonl\n[1] ````\n", &["0 @2: [1]"]);
    for line in ["```{\"a\":1}```", "``` {\"a\":1}", "```JSON{\"a\":1} ```", "{\"a\":1} ```\r"] {
        check_whole(line, &["0 @1: {\"a\":1}"]);
    }
    for scalar in ["12", "null", "\"a `b` ```c\""] {
        check_whole(&format!("```json {scalar}\n"), &[&format!("0 @1: {scalar}")]);
    }
    let attributes = ["```{.json}", "```js {1,3}", "```json title=\"a.json\"", "``````", "```a```"];
    for line in attributes {
        check_whole(line, &[]);
    }
    check_whole(
        "```json {\"a\":}",
        &["rejected @1: not JSON: a value is missing, or is text without double quotes (byte 6)"],
    );
    let cut = "rejected @1: cut off: the answer ends before the value does";
    check_cut_off("```json {\"a\":", &[cut]);
    check_cut_off("{\"a\":\"```", &[cut]);
}

/// The text of a provider call may be followed by that of another one.
#[test]
fn a_line_may_be_finished_before_the_answer() {
    let mut extractor = Extractor::new(ResponseType::Jsonl, None);
    assert_eq!(extractor.push("{}\n[1]").len(), 1);
    let found: Vec<_> = extractor.finish_line(false).into_iter().collect();
    assert_eq!(shown(&found), ["1 @2: [1]"]);
    assert_eq!(extractor.finish_line(false), None);
    extractor.begin_again();
    assert_eq!(shown(&extractor.push("[2]\n")), ["2 @1: [2]"]);
    extractor.push("12");
    let cut = "rejected @2: cut off: the answer ends before the value does";
    assert_eq!(shown(&extractor.finish_line(true).into_iter().collect::<Vec<_>>()), [cut]);
    let mut document = Extractor::new(ResponseType::Json, None);
    document.push("[");
    assert_eq!(document.finish_line(false), None);
    document.push("]");
    assert_eq!(shown(&document.finish(false)), ["0 @1: []"]);
}

#[test]
fn lines_may_end_as_they_like() {
    check_whole("{}\r\n[]\r\n\"a\"\r", &["0 @1: {}", "1 @2: []", "2 @3: \"a\""]);
    check_whole("\u{feff}{}\n\u{a0}\t [] \u{2003}\n", &["0 @1: {}", "1 @2: []"]);
    check_whole("[1,\r 2]\n", &["0 @1: [1,2]"]);
}

#[test]
fn a_bad_line_costs_only_itself() {
    let answer = "{\"a\":1}\nHere is more:\n{\"b\":2}\n{\"c\":}\n{} {}\n{'d':4}\n{\"e\":5}\n{\n}\n";
    let expected = [
        "0 @1: {\"a\":1}",
        "rejected @2: not JSON: a value is missing, or is text without double quotes (byte 1)",
        "1 @3: {\"b\":2}",
        "rejected @4: not JSON: a value is missing, or is text without double quotes (byte 6)",
        "rejected @5: not JSON: more text follows after the value (byte 4)",
        "rejected @6: not JSON: the name of a member must be in double quotes (byte 2)",
        "2 @7: {\"e\":5}",
        "rejected @8: not JSON: the text ends inside an object: a } is missing (byte 1)",
        "rejected @9: not JSON: a value is missing, or is text without double quotes (byte 1)",
    ];
    check_whole(answer, &expected);
}

#[test]
fn a_line_that_is_cut_off_costs_only_itself() {
    const CUT: &str = "rejected @2: cut off: the answer ends before the value does";
    let line = "{\"a\":[1.5e3,\"\\u00e9\",true,null,{\"b\":\"c\"}]}";
    for cut in 1..line.len() {
        check_cut_off(&format!("[]\n{}", &line[..cut]), &["0 @1: []", CUT]);
    }
    check_cut_off(&format!("[]\n{line}"), &["0 @1: []", &format!("1 @2: {line}")]);
    for line in ["tru", "nul", "\"a", "-", "1.", "1e", "[", "{\"", "\"\\u12"] {
        check_cut_off(&format!("[]\n{line}"), &["0 @1: []", CUT]);
    }
    check_cut_off(
        "I",
        &["rejected @1: not JSON: a value is missing, or is text without double quotes (byte 1)"],
    );
}

#[test]
fn a_number_may_have_been_cut_and_other_values_not() {
    check_whole("12", &["0 @1: 12"]);
    check_cut_off("12\n", &["0 @1: 12"]);
    check_cut_off("12", &["rejected @1: cut off: the answer ends before the value does"]);
    for value in ["true", "null", "\"12\"", "[12]", "{\"a\":12}"] {
        check_cut_off(value, &[&format!("0 @1: {value}")]);
    }
}

#[test]
fn values_stand_as_they_were_written() {
    let values = [
        "12345678901234567890123",
        "1.10",
        "-0",
        "1E2",
        "{\"z\":1, \"a\" : 0.30000000000000001,\"é\":\"\\u00e9\\/\u{2028}\"}",
        "\"type\"",
        "null",
        "[ ]",
    ];
    for value in values {
        check_whole(&format!("  {value} \n"), &[&format!("0 @1: {value}")]);
    }
}

#[test]
fn the_kind_is_a_string_named_type() {
    check_whole(r#"{"type":"a\u0062"}"#, &[r#"0 @1 ab: {"type":"a\u0062"}"#]);
    for value in [r#"{"type":1}"#, r#"{"type":null}"#, r#"{"Type":"a"}"#, r#"[{"type":"a"}]"#] {
        check_whole(value, &[&format!("0 @1: {value}")]);
    }
}

#[test]
fn what_readers_take_differently_is_no_json() {
    for line in [
        r#"{"a":1,"a":1}"#,
        r#"[{"a":1,"\u0061":2}]"#,
        r#""\ud800""#,
        "NaN",
        "1e999",
        "\"a\tb\"",
        "[1,]",
        "01",
        "{} // ok",
    ] {
        let found = extracted(Extractor::new(ResponseType::Jsonl, None), [line], false);
        let [Found::Rejected { line: 1, reason: Reason::NotJson { .. } }] = found.as_slice() else {
            panic!("{line}: {found:?}");
        };
    }
}

#[test]
fn depth_is_limited() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    check_whole(&nested(127), &[&format!("0 @1: {}", nested(127))]);
    for line in [nested(128), nested(1_000_000), "{\"a\":".repeat(100_000)] {
        let found = extracted(Extractor::new(ResponseType::Jsonl, None), [&*line, "\n1\n"], false);
        let [Found::Rejected { reason, .. }, Found::Value { .. }] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(reason.to_string().contains("more than 127 lists"), "{reason}");
    }
}

#[test]
fn errors_are_short() {
    let line = format!(
        "{{\"{0}\":1,\"{0}\":1}}\n",
        "é\u{7f}\"".escape_default().to_string().repeat(100_000)
    );
    let found = extracted(Extractor::new(ResponseType::Jsonl, None), [&*line], false);
    let [Found::Rejected { reason, .. }] = found.as_slice() else { panic!("{}", found.len()) };
    assert!(reason.to_string().len() < 300, "{reason}");
}

/// Each byte is examined once, however small the pieces are; a line that is too long is not held.
#[test]
fn a_line_has_a_limit() {
    const PIECE: &str = "................................";
    let too_long = Reason::TooLong { bytes_max: LINE_BYTES_MAX };
    for more in [0, PIECE.len(), 2 * LINE_BYTES_MAX] {
        let mut extractor = Extractor::new(ResponseType::Jsonl, None);
        assert_eq!(extractor.push("[0]\n \t\"").len(), 1);
        let inside = LINE_BYTES_MAX - PIECE.len() + more;
        let pieces = std::iter::repeat_n(PIECE, inside / PIECE.len());
        assert!(pieces.flat_map(|piece| extractor.push(piece)).next().is_none());
        assert!(extractor.push(&PIECE[2..]).is_empty());
        let found = extractor.push("\"\n[2]\n");
        let [long, Found::Value { line: 3, .. }] = found.as_slice() else { panic!("{found:?}") };
        if more == 0 {
            let Found::Value { line: 2, json, .. } = long else { panic!("{long:?}") };
            assert_eq!(json.len(), LINE_BYTES_MAX);
        } else {
            assert_eq!(*long, Found::Rejected { line: 2, reason: too_long.clone() });
        }
    }
}
