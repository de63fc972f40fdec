//! One document.

use super::*;

#[track_caller]
fn check_whole(answer: &str, expected: &[&str]) {
    check(&Extractor::new(ResponseType::Json, None), answer, false, expected);
}

#[test]
fn alone() {
    check_whole("{\"a\":1}", &["0 @1: {\"a\":1}"]);
    check_whole("\n \r\n[1,\n 2]\n\n", &["0 @3: [1,2]"]);
    check_whole("{\"type\": \"x\"}\n", &["0 @1 x: {\"type\": \"x\"}"]);
}

/// The place of an error is the byte that is in the way, also where that is a line feed.
#[test]
fn a_line_feed_in_a_string_is_the_last_byte_of_its_line() {
    let reason = "not JSON: a string contains a control character; write a line feed as \\n";
    check_whole("{\"a\":\"x\ny\"}", &[&format!("invalid @1: {reason} (byte 8)")]);
    check_whole("```json\n{\"a\":\n\"x\ny\"}\n```", &[&format!("invalid @3: {reason} (byte 3)")]);
}

#[test]
fn several_lines_come_out_on_one() {
    let answer = "{\r\n  \"z\" : 1.10,\n\t\"a \\\" \\\\\" : \" b\\n\\\\\",\n  \"n\": 12345678901234567890123\n}";
    let json = r#"{"z":1.10,"a \" \\":" b\n\\","n":12345678901234567890123}"#;
    check_whole(answer, &[&format!("0 @1: {json}")]);
}

#[test]
fn in_a_block() {
    check_whole("```json\n{\n\"a\": 1}\n```", &["0 @2: {\"a\":1}"]);
    check_whole("```\n[]\n```\n\n", &["0 @2: []"]);
    check_whole("  ```JSON\r\n\r\n[]\r\n  ```\r\n", &["0 @3: []"]);
    check_whole("```json\n[]", &["0 @2: []"]);
    check_whole("\"```json\\n1\\n```\"", &["0 @1: \"```json\\n1\\n```\""]);
}

#[test]
fn text_around_a_block_is_passed_over() {
    const PROSE: &str = "ignored: text outside of the block that holds the document";
    let first = format!("rejected @2: {PROSE}");
    check_whole("\nHere it is:\n```json\n[]\n```\nEnjoy!", &[&first, "0 @4: []"]);
    let last = format!("rejected @4: {PROSE}");
    check_whole("```json\n[]\n```\nEnjoy!", &[&last, "0 @2: []"]);
    let other = format!("rejected @2: {PROSE}");
    check_whole("```rust\nx\n```\n```json\n[]\n```", &[&other, "0 @5: []"]);
    let before = format!("rejected @1: {PROSE}");
    check_whole("Sure! Here: ```json\n{\"a\":1}\n``` Enjoy!", &[&before, "0 @2: {\"a\":1}"]);
    check_whole("It is ```1```:\n```json\n[]\n```", &[&before, "0 @3: []"]);
    let second = format!("rejected @5: {PROSE}");
    check_whole("```\n1\n```\n```\n2\n```", &[&second, "0 @2: 1"]);
}

#[test]
fn a_fence_may_be_on_a_line_of_the_document() {
    check_whole("```json\n{\"a\":1}```", &["0 @2: {\"a\":1}"]);
    check_whole("```json\n{\n\"a\":1} ```\n", &["0 @2: {\"a\":1}"]);
    check_whole("```\n[\"a\"]```\n", &["0 @2: [\"a\"]"]);
    check_whole("```json\n12```", &["0 @2: 12"]);
    for line in ["```json {\"a\":1} ```", "```{\"a\":1}```", "```json {\"a\":1}\n```"] {
        check_whole(line, &["0 @1: {\"a\":1}"]);
    }
    check_whole("```json {\"a\":\n1}\n```", &["0 @1: {\"a\":1}"]);
    let prose = "rejected @2: ignored: text outside of the block that holds the document";
    check_whole("```json {\"a\":1} ```\nEnjoy!", &[prose, "0 @1: {\"a\":1}"]);
    check_whole("```{.json}\n[]\n```", &["0 @2: []"]);
    check_whole("```json title=\"a\"\n[]\n```", &["0 @2: []"]);
}

/// The program that asks may have begun the answer with an opening fence.
#[test]
fn a_fence_may_only_close() {
    for answer in ["{\"a\":1}\n```", "{\"a\":1}```\n", "\n{\"a\":\n1}\n```\n\n"] {
        let line = 1 + u64::from(answer.starts_with('\n'));
        check_whole(answer, &[&format!("0 @{line}: {{\"a\":1}}")]);
    }
    check_whole("12\n```", &["0 @1: 12"]);
    let prose = "rejected @3: ignored: text outside of the block that holds the document";
    check_whole("{\"a\":1}\n```\nEnjoy!", &[prose, "0 @1: {\"a\":1}"]);
    let wrong =
        "invalid @1: not JSON: a value is missing, or is text without double quotes (byte 6)";
    check_whole("{\"a\":x}\n```", &[wrong]);
}

#[test]
fn blocks_of_other_things_are_passed_over() {
    const PROSE: &str = "ignored: text outside of the block that holds the document";
    let first = format!("rejected @1: {PROSE}");
    check_whole("Ran:\n```bash\nls\n```\n{\"a\":1}", &[&first, "0 @5: {\"a\":1}"]);
    let second = format!("rejected @4: {PROSE}");
    check_whole("{\"a\":1}\n\n```bash\nls\n```", &[&second, "0 @1: {\"a\":1}"]);
    let inside = format!("rejected @2: {PROSE}");
    check_whole("```bash\nls\n```\n```\n[]\n```", &[&inside, "0 @5: []"]);
    // A marked block is the document whatever else there is.
    check_whole("[1]\n```json\n[]\n```", &[&first, "0 @3: []"]);
    // Which of two others is meant is not clear.
    let wrong =
        "invalid @3: not JSON: a value is missing, or is text without double quotes (byte 1)";
    check_whole("[1]\n```bash\nls\n```\n[2]", &[&first, wrong]);
}

#[test]
fn lines_of_other_text_may_surround_it() {
    const PROSE: &str = "ignored: text outside of the block that holds the document";
    let first = format!("rejected @1: {PROSE}");
    let last = format!("rejected @2: {PROSE}");
    check_whole("Sure!\n{\"a\":\n1}\nEnjoy!", &[&first, "0 @2: {\"a\":1}"]);
    check_whole("{\"a\":1}\nEnjoy!", &[&last, "0 @1: {\"a\":1}"]);
    check_whole("Look:\n```py\nx\n```\nIt is\n[1]\n", &[&first, "0 @6: [1]"]);
    // A block that is JSON is rather the document, and of two nobody knows which.
    check_whole("It is\n[1]\n```\n2\n```", &[&first, "0 @4: 2"]);
    let wrong =
        "invalid @1: not JSON: a value is missing, or is text without double quotes (byte 1)";
    check_whole("It is\n[1]\n[2]", &[wrong]);
    // A part of a document that is not valid is no document.
    let broken = "invalid @3: not JSON: expected `,` or `]` (byte 1)";
    check_whole("[\n{\"a\":1}\noops\n]", &[broken]);
    check_whole("It is\n{\"a\":1} or so", &[wrong]);
}

#[test]
fn a_fence_may_be_of_tildes() {
    check_whole("~~~json\n{\"a\":1}\n~~~", &["0 @2: {\"a\":1}"]);
    check_whole("~~~~\n[]\n~~~~\n", &["0 @2: []"]);
    let prose = "rejected @3: ignored: text outside of the block that holds the document";
    check_whole("~~~\n```\nx\n~~~\n```json\n1\n```", &[prose, "0 @6: 1"]);
}

/// A longer fence holds blocks of its own: in Markdown they are the answer's, in another language a quotation.
#[test]
fn a_fence_is_closed_by_one_that_is_as_long() {
    const PROSE: &str = "ignored: text outside of the block that holds the document";
    let draft = "```json\n{\"draft\":1}\n```\n";
    let second = format!("rejected @3: {PROSE}");
    let answer = format!("````text\n{draft}````\nThe answer:\n{{\"a\":2}}");
    check_whole(&answer, &[&second, "0 @7: {\"a\":2}"]);
    check_whole(&format!("````text\n{draft}````"), &["0 @3: {\"draft\":1}"]);
    for name in ["markdown", "md", ""] {
        let third = format!("rejected @6: {PROSE}");
        let answer = format!("````{name}\n{draft}```json\n2\n```\n````\n");
        check_whole(&answer, &[&third, "0 @3: {\"draft\":1}"]);
        let last = format!("rejected @6: {PROSE}");
        check_whole(
            &format!("````{name}\n{draft}````\n{{\"b\":2}}"),
            &[&last, "0 @3: {\"draft\":1}"],
        );
    }
    check_whole("````\n[]\n````", &["0 @2: []"]);
    check_whole(
        "~~~~~text\n~~~\n[1]\n~~~\n~~~~~\n```json\n2\n```",
        &[&format!("rejected @3: {PROSE}"), "0 @7: 2"],
    );
    // Models close a block of JSON with a shorter fence, too.
    for opening in ["````json", "````"] {
        check_whole(&format!("{opening}\n{{\"a\":1}}\n```\n"), &["0 @2: {\"a\":1}"]);
        check_whole(&format!("{opening}\n{{\"a\":1}}```"), &["0 @2: {\"a\":1}"]);
    }
    // And blocks of other things before the document.
    for (answer, document) in [
        ("````python\nprint(1)\n```\n{\"a\":1}", "0 @4: {\"a\":1}"),
        ("````bash\nls\n```\nThe answer:\n```json\n{\"a\":1}\n```", "0 @6: {\"a\":1}"),
        ("~~~~python\nx\n~~~\n{\"a\":1}", "0 @4: {\"a\":1}"),
        ("````bash\nls\n```\nThen:\n````bash\npwd\n```\n{\"a\":1}", "0 @8: {\"a\":1}"),
    ] {
        let first = format!("rejected @2: {PROSE}");
        check_whole(answer, &[&first, document]);
    }
}

#[test]
fn what_is_no_document() {
    check_whole("", &["invalid @1: the answer is empty, but a JSON document is required"]);
    check_whole("```\n```", &["invalid @2: the answer is empty, but a JSON document is required"]);
    check_whole(
        "Here: {}",
        &["invalid @1: not JSON: a value is missing, or is text without double quotes (byte 1)"],
    );
    check_whole(
        "\n{}\n\n{}",
        &["invalid @4: not JSON: more text follows after the value (byte 1)"],
    );
    check_whole(
        "{\"a\":\n\n  x}",
        &["invalid @3: not JSON: a value is missing, or is text without double quotes (byte 3)"],
    );
    check_whole(
        "```json\n[1,\n```",
        &["invalid @2: not JSON: the text ends where a value is expected (byte 3)"],
    );
}

/// A closed block is complete; a document without a block may be incomplete.
#[test]
fn a_document_may_end_too_early_whatever_the_provider_says() {
    let cut = |line| format!("invalid @{line}: cut off: the answer ends before the value does");
    check_whole("{\"a\":\n\n", &[&cut(1)]);
    check_whole("```json\n[1,\n 2", &[&cut(3)]);
    check_whole("12", &["0 @1: 12"]);
    let mut extractor = Extractor::new(ResponseType::Json, None);
    extractor.push("[");
    extractor.finish(false);
    assert!(extractor.is_cut_off());
}

#[test]
fn cut_off() {
    let json = Extractor::new(ResponseType::Json, None);
    let cut = "cut off: the answer ends before the value does";
    check(&json, "[1,\n2", true, &[&format!("invalid @2: {cut}")]);
    check(&json, "", true, &[&format!("invalid @1: {cut}")]);
    check(&json, "12", true, &[&format!("invalid @1: {cut}")]);
    check(&json, "```json\n{\"a\":1}\n", true, &["0 @2: {\"a\":1}"]);
    check(&json, "{\"a\":1}", true, &["0 @1: {\"a\":1}"]);
    // It may be a fence in a string.
    check(&json, "```json\n{\"a\":\"```", true, &[&format!("invalid @2: {cut}")]);
    check(&json, "{\"a\":\"```", true, &[&format!("invalid @1: {cut}")]);
    check(&json, "Here it is:\n```\n", true, &[&format!("invalid @3: {cut}")]);
}

#[test]
fn a_document_has_a_limit() {
    let long = " ".repeat(DOCUMENT_BYTES_MAX);
    let found = extracted(Extractor::new(ResponseType::Json, None), ["[", &long, "]"], false);
    let reason = Reason::TooLong { bytes_max: DOCUMENT_BYTES_MAX };
    assert_eq!(found, [Found::Invalid { line: 1, reason }]);
}
