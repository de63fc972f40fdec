//! The command files of `examples/extract`, with answers as models give them.

use super::*;

macro_rules! example {
    ($name:literal, $answer:literal) => {
        (
            include_str!(concat!("../../../examples/extract/", $name, ".yaml")),
            include_str!(concat!("../../../examples/extract/answers/", $answer)),
        )
    };
}

/// Extracts according to the command file, whose schema is at its end and is JSON.
fn found(command: &str, answer: &str, is_cut_off: bool) -> Vec<Found> {
    let (head, schema) = command.split_once("\nschema:\n").expect("a schema");
    let (_, response) = head.rsplit_once("\nresponse-type: ").expect("a response type");
    let schema = Schema::compile(&serde_json::from_str(schema).expect("JSON")).expect("a schema");
    let response = ResponseType::named(response).expect("a response type");
    extracted(Extractor::new(response, Some(schema)), [answer], is_cut_off)
}

/// The types of the values, which must be the only results.
fn kinds(found: &[Found]) -> Vec<&str> {
    found.iter().map(kind).collect()
}

fn kind(found: &Found) -> &str {
    match found {
        Found::Value { kind, .. } => kind.as_deref().unwrap_or_default(),
        Found::Rejected { .. } | Found::Invalid { .. } => panic!("{found:?}"),
    }
}

#[test]
fn every_line_is_found() {
    for (command, answer) in [
        example!("extract-definitions", "extract-definitions.jsonl"),
        example!("extract-relationships", "extract-relationships.jsonl"),
        example!("extract-topics", "extract-topics.jsonl"),
        example!("extract-rows", "extract-rows.jsonl"),
        example!("agent-kg-extract", "agent-kg-extract.jsonl"),
        example!("ontology-extract", "ontology-extract.jsonl"),
    ] {
        let lines: Vec<(u64, &str)> = (1..).zip(answer.lines()).collect();
        let found = found(command, answer, false);
        assert_eq!(kinds(&found).len(), lines.len());
        for (found, (number, text)) in found.iter().zip(lines) {
            let Found::Value { line, json, .. } = found else { panic!("{found:?}") };
            assert_eq!((*line, &**json), (number, text));
        }
    }
}

#[test]
fn kinds_are_distinguished() {
    let (command, answer) = example!("agent-kg-extract", "agent-kg-extract.jsonl");
    let expected = ["definition", "relationship", "definition", "relationship"];
    assert_eq!(kinds(&found(command, answer, false)), expected);
    let (command, answer) = example!("ontology-extract", "ontology-extract.jsonl");
    let expected = ["entity", "entity", "relationship", "attribute"];
    assert_eq!(kinds(&found(command, answer, false)), expected);
    let what = "rejected @1: does not match the schema: unknown type \"definition\"; it must be one \
                of \"entity\", \"relationship\", \"attribute\"";
    let (_, other) = example!("agent-kg-extract", "agent-kg-extract.jsonl");
    assert_eq!(shown(&found(command, other, false))[0], what);
}

#[test]
fn a_fenced_answer() {
    let (command, answer) = example!("extract-definitions", "extract-definitions-fenced.txt");
    assert_eq!(kinds(&found(command, answer, false)).len(), 3);
}

/// An array that is cut off loses all its items; lines keep the complete ones.
#[test]
fn a_truncated_answer() {
    let (command, answer) = example!("extract-definitions", "extract-definitions-truncated.txt");
    let lines = found(command, answer, true);
    assert_eq!(kinds(&lines[..2]).len(), 2);
    assert_eq!(lines[2..], [Found::Rejected { line: 3, reason: Reason::CutOff }]);
    let (_, array) = example!("extract-definitions", "extract-definitions-array.txt");
    let document = |answer: &str, is_cut_off| {
        extracted(Extractor::new(ResponseType::Json, None), [answer], is_cut_off)
    };
    assert_eq!(kinds(&document(array, false)).len(), 1);
    let cut = &array[..array.rfind("mitochondria").expect("a third object")];
    assert_eq!(document(cut, true), [Found::Invalid { line: 4, reason: Reason::CutOff }]);
}
