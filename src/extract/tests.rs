use super::*;
use serde_json::json;

/// What is found in an answer, one short text for each.
fn shown(found: &[Found]) -> Vec<String> {
    let show = |found: &Found| match found {
        Found::Value { index, line, kind, json } => {
            let kind = kind.as_ref().map(|kind| format!(" {kind}")).unwrap_or_default();
            format!("{index} @{line}{kind}: {json}")
        }
        Found::Rejected { line, reason } => format!("rejected @{line}: {reason}"),
        Found::Invalid { line, reason } => format!("invalid @{line}: {reason}"),
    };
    found.iter().map(show).collect()
}

/// All that is found; the same, however the answer is cut.
#[track_caller]
fn extracted(extractor: &Extractor, answer: &str, is_cut_off: bool) -> Vec<Found> {
    let mut whole = extractor.clone();
    let mut found = whole.push(answer);
    found.extend(whole.finish(is_cut_off));
    let mut pieces = extractor.clone();
    let mut again = Vec::new();
    for character in answer.chars() {
        again.extend(pieces.push(character.encode_utf8(&mut [0; 4])));
    }
    again.extend(pieces.finish(is_cut_off));
    assert_eq!(again, found, "in pieces");
    assert_eq!(pieces.tally(), whole.tally());
    assert!(pieces.finish(false).is_empty() && pieces.push("1\n").is_empty(), "after the end");
    found
}

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).expect("a schema")
}

#[track_caller]
fn check(extractor: &Extractor, is_cut_off: bool, answer: &str, expected: &[&str]) {
    let found = extracted(extractor, answer, is_cut_off);
    assert_eq!(shown(&found), expected, "{answer}");
}

/// Lines of any value, of an answer that is whole.
#[track_caller]
fn check_lines(answer: &str, expected: &[&str]) {
    check(&Extractor::new(ResponseType::Jsonl, None), false, answer, expected);
}

#[test]
fn valid_lines() {
    check_lines("{\"a\":1}\n{\"b\": 2}\n", &["0 @1: {\"a\":1}", "1 @2: {\"b\": 2}"]);
}

#[test]
fn mixed_types() {
    let schema = compiled(&json!({"oneOf": [
        {
            "type": "object",
            "properties": {"type": {"const": "a"}, "x": {"type": "string"}},
            "required": ["type", "x"],
        },
        {"type": "object", "properties": {"type": {"const": "b"}}, "required": ["type"]},
    ]}));
    let lines = Extractor::new(ResponseType::Jsonl, Some(schema));
    let no = |line: u64, what: &str| format!("rejected @{line}: does not match the schema: {what}");
    let answer = concat!(
        "{\"type\":\"a\",\"x\":1}\n{\"type\":\"c\"}\n{\"type\":\"a\"}\n",
        "{\"type\":\"b\"}\n{\"t\":1}\n3\n"
    );
    let expected = [
        no(1, "1 is not of type \"string\" (at /x)"),
        no(2, "unknown type \"c\"; it must be one of \"a\", \"b\""),
        no(3, "\"x\" is a required property"),
        "0 @4 b: {\"type\":\"b\"}".to_owned(),
        no(5, "no type; it must be one of \"a\", \"b\""),
        no(6, "not an object with a type; it must be one of \"a\", \"b\""),
    ];
    check(&lines, false, answer, &expected.each_ref().map(String::as_str));
}
