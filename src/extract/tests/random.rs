//! Random answers.

use super::*;
use crate::extract::document::on_one_line;
use crate::protocol::json::DEPTH_MAX;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

/// A line that is a value, as it is and as it is extracted.
fn valid_line() -> impl Strategy<Value = String> {
    let values =
        ["{}", "[1, 2]", "\"é\\n\"", "null", "{\"type\":\"a\",\"b\":[{}]}", "-1.50e3", "1"];
    prop::sample::select(values.to_vec()).prop_map(str::to_owned)
}

/// A line that is not a value.
fn other_line() -> impl Strategy<Value = String> {
    let lines = ["", " ", "```", "```json", "Sure!", "{", "}", "{\"a\":", "[1,,]", "\u{2028}", "`"];
    prop_oneof![
        prop::sample::select(lines.to_vec()).prop_map(str::to_owned),
        "[a-zA-Zé`{:,]{2,9}"
            .prop_filter("no value", |line| { serde_json::from_str::<Value>(line).is_err() }),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let around = prop::sample::select(vec!["", " ", "\t", "\r", "\u{a0}"]);
    (around.clone(), prop_oneof![valid_line(), other_line()], around)
        .prop_map(|(before, line, after)| format!("{before}{line}{after}"))
}

/// Splits a text at these places, or next to them.
fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.sort_unstable();
    let starts = [0].into_iter().chain(cuts.clone());
    starts.zip(cuts.iter().copied().chain([text.len()])).map(|(a, b)| &text[a..b]).collect()
}

/// The values of an answer and their lines, found in the simplest way.
fn reference(answer: &str, is_cut_off: bool) -> Vec<(u64, String)> {
    let last = answer.split('\n').count() as u64;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(answer.split('\n')) {
        let line = line.trim();
        if line.starts_with("```") {
            continue;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Number(_)) if is_cut_off && number == last => {}
            Ok(_) => found.push((number, line.to_owned())),
            Err(_) => {}
        }
    }
    found
}

fn values(found: &[Found]) -> Vec<(u64, String)> {
    let value = |found: &Found| match found {
        Found::Value { line, json, .. } => Some((*line, json.clone())),
        Found::Rejected { .. } | Found::Invalid { .. } => None,
    };
    found.iter().filter_map(value).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ \"\\\\\n\r\té{}`a]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[ \"\\\\é`a]{0,4}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// A schema of many keywords and references, most of which mean something.
fn schema() -> impl Strategy<Value = Value> {
    let references = ["#", "#/$defs/a", "#/$defs/b", "#x", "y", "y#", "z#/a", "#/properties/a", ""];
    let keys = prop::sample::select(vec!["$ref", "$dynamicRef", "$recursiveRef"]);
    let names = prop::sample::select(vec!["$id", "$anchor", "$dynamicAnchor", "id"]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec!["object", "array", "string"]).prop_map(|of| json!({"type": of})),
        (keys, prop::sample::select(references.to_vec())).prop_map(|(key, to)| json!({key: to})),
        (names, prop::sample::select(vec!["x", "y", "z"]))
            .prop_map(|(key, name)| json!({key: name})),
        prop::sample::select(vec!["^a*$", "(", "[^b]{2,}"]).prop_map(|of| json!({"pattern": of})),
        any_json().prop_map(|value| json!({"const": value})),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let one = ["not", "if", "then", "else", "items", "contains", "additionalProperties"];
        let more = ["unevaluatedProperties", "unevaluatedItems", "propertyNames"];
        let one = prop::sample::select([&one[..], &more[..]].concat());
        let many = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let named = prop::sample::select(vec!["properties", "$defs", "dependentSchemas"]);
        let object = prop::collection::hash_map("[ab]", inner.clone(), 1..3);
        let part = prop_oneof![
            (one, inner.clone()).prop_map(|(key, of)| json!({key: of})),
            (many, vec(inner, 1..3)).prop_map(|(key, of)| json!({key: of})),
            (named, object).prop_map(|(key, of)| json!({key: of})),
        ];
        vec(part, 1..4).prop_map(|parts| {
            parts
                .iter()
                .filter_map(Value::as_object)
                .flatten()
                .map(|(key, of)| (key.clone(), of.clone()))
                .collect()
        })
    })
}

proptest! {
    /// Each is refused or works: none recurses for ever, or deeper than the stack.
    #[test]
    fn any_schema_with_any_value(schema in schema(), value in any_json()) {
        let deep = (0..DEPTH_MAX).fold(json!(1), |inner, _| json!({"a": inner}));
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        for value in [value, deep] {
            let brief = compiled.check(&value, usize::MAX);
            prop_assert_eq!(compiled.check(&value, value.to_string().len()).is_ok(), brief.is_ok());
        }
    }

    #[test]
    fn lines_are_those_of_the_reference(
        lines in vec(line(), 0..12),
        cuts in vec(any::<usize>(), 0..12),
        is_cut_off: bool,
    ) {
        let answer = lines.join("\n");
        let lines = Extractor::new(ResponseType::Jsonl, None);
        let found = extracted(lines.clone(), [&*answer], is_cut_off);
        prop_assert_eq!(values(&found), reference(&answer, is_cut_off));
        prop_assert_eq!(extracted(lines, pieces(&answer, &cuts), is_cut_off), found);
    }

    #[test]
    fn other_lines_cost_no_valid_one(
        lines in vec((valid_line(), vec(other_line(), 0..4)), 0..8),
        is_cut_off: bool,
    ) {
        let mut answer = String::new();
        for (valid, others) in &lines {
            for line in others.iter().chain([valid]) {
                answer += line;
                answer.push('\n');
            }
        }
        let found = extracted(Extractor::new(ResponseType::Jsonl, None), [&*answer], is_cut_off);
        let found: Vec<String> = values(&found).into_iter().map(|(_, json)| json).collect();
        let valid: Vec<String> = lines.into_iter().map(|(valid, _)| valid).collect();
        prop_assert_eq!(found, valid);
    }

    #[test]
    fn any_text_in_any_pieces(text in "(?s).{0,60}", cuts in vec(any::<usize>(), 0..6), is_cut_off: bool) {
        for response in [ResponseType::Text, ResponseType::Json, ResponseType::Jsonl] {
            let extractor = Extractor::new(response, None);
            let found = extracted(extractor.clone(), [&*text], is_cut_off);
            prop_assert_eq!(extracted(extractor, pieces(&text, &cuts), is_cut_off), found);
        }
    }

    #[test]
    fn documents_come_out_on_one_line(value in any_json(), is_fenced: bool) {
        let pretty = serde_json::to_string_pretty(&value).expect("JSON");
        let compact = value.to_string();
        let expected = if pretty.contains('\n') { compact } else { pretty.clone() };
        prop_assert_eq!(&on_one_line(&pretty), &expected);
        let answer = if is_fenced { format!("```json\n{pretty}\n```\n") } else { pretty };
        let found = extracted(Extractor::new(ResponseType::Json, None), [&*answer], false);
        prop_assert_eq!(values(&found), [(1 + u64::from(is_fenced), expected)]);
    }
}
