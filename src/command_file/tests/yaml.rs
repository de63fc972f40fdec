//! YAML as yaml.v3 reads it.

use super::parse;
use crate::yaml::{Layout, Node, to_json};
use serde_json::{Value, json};

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(to_json(text).map_err(|error| error.message), Ok(expected.clone()), "{text}");
    let node = Node::parse(text).map(|node| node.json()).map_err(|error| error.message);
    assert_eq!(node, Ok(expected), "{text}");
}

#[test]
fn plain_values() {
    check("[yes, no, on, off, y, n]", json!(["yes", "no", "on", "off", "y", "n"]));
    check("[true, True, FALSE]", json!([true, true, false]));
    check("[null, ~, Null]", json!([null, null, null]));
    check("[0777, 0o17, 0x1F, 0b11, 1_000, -5]", json!([511, 15, 31, 3, 1000, -5]));
    check("[1.5, 1e3, .5]", json!([1.5, 1000.0, 0.5]));
    check(
        "['1', \"2\", 1.2.3, 12:30, 2024-01-31]",
        json!(["1", "2", "1.2.3", "12:30", "2024-01-31"]),
    );
    check("1: a\ntrue: b\n", json!({"1": "a", "true": "b"}));
    check("{\"a\": [1, {\"b\": null}]}", json!({"a": [1, {"b": null}]}));
}

#[test]
fn anchors_and_merge_keys() {
    check(
        "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}",
        json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
    );
    check(
        "a: &x {p: 1}\nb: &y {q: 2}\nc: {<<: [*x, *y]}",
        json!({"a": {"p": 1}, "b": {"q": 2}, "c": {"p": 1, "q": 2}}),
    );
    check("a: &t |\n  text\nb: *t", json!({"a": "text\n", "b": "text\n"}));
}

#[test]
fn forms_of_files() {
    check("\u{feff}a: 1", json!({"a": 1}));
    check("a: |\r\n  one\r\n  two\r\nb: 2\r\n", json!({"a": "one\ntwo\n", "b": 2}));
    check("---\na: 1\n...\n", json!({"a": 1}));
    check("# nothing\n", Value::Null);
}

/// The expectations are what Go's yaml.v3 3.0.1 gives for each text.
#[test]
fn a_block_at_the_end_has_no_line_feed_that_the_text_lacks() {
    let table = [
        ("a: |\n  one", "one"),
        ("a: |+\n  one", "one"),
        ("a: |-\n  one", "one"),
        ("a: >\n  one\n  two", "one two"),
        ("a: >-\n  one", "one"),
        ("a: |\n  one\n", "one\n"),
        ("a: |\n  one\n\n", "one\n"),
        ("a: |+\n  one\n\n", "one\n\n"),
        ("a: |\n  one\n  ", "one\n"),
        ("a: |+\n  one\n  ", "one\n"),
        ("a: |+\n  one\n ", "one\n"),
        ("a: |\n  one\n   ", "one\n "),
        ("a: |\n  one ", "one "),
        ("a: |\n  one\t", "one\t"),
        ("a: |\r\n  one", "one"),
        ("a: |2\n   one", " one"),
        ("a: |2+\n   one", " one"),
        ("a: |+2\n   one", " one"),
        ("a: >\n  one\n   two", "one\n two"),
        ("a: &x |\n  one", "one"),
        ("a: !!str |\n  one", "one"),
        ("a: | # a | b > c\n  one", "one"),
        ("'a': |\n  one\n # two", "one\n"),
        ("a: |\n\n  one\n  # two", "\none\n# two"),
        ("a: |\n  b: |\n    c", "b: |\n  c"),
        ("a: |", ""),
        ("a: |\n", ""),
        ("a: |\n  one\n...", "one\n"),
        ("a: |\n  one\n---\nb: |\n  two", "one\n"),
        ("a: x |\n  one", "x | one"),
        ("a: \"|\n  one\"", "| one"),
    ];
    for (text, expected) in table {
        check(text, json!({ "a": expected }));
    }
    check("- a\n- |\n  one", json!(["a", "one"]));
    check("? |\n  one", json!({"one": null}));
    check("b: \"x |\"\na: |\n  é", json!({"b": "x |", "a": "é"}));
    check("|\n one", json!("one"));
    check("--- |\n one", json!("one"));
}

#[test]
fn the_first_document_counts() {
    check("a: 1\n---\nb: 2\n", json!({"a": 1}));
    check("---\na: 1\n---\nb: 2", json!({"a": 1}));
    check("a: 1\n...\n{[", json!({"a": 1}));
    check("# x\n---\n\na: 1\n# y\n---\n", json!({"a": 1}));
    check("%YAML 1.1\n---\na: 1\n---\nb: 1", json!({"a": 1}));
    check("---\n---\na: 2\n", Value::Null);
    check("a: |\n  ---\n  b\n---\nc: |\n x", json!({"a": "---\nb\n"}));
    check("a: 1\n---b: 2\n", json!({"a": 1, "---b": 2}));
    let error = to_json("a: 1\n]").expect_err("no document marker");
    assert_eq!(error.line, Some(2), "{}", error.message);
}

#[test]
fn scalars_become_texts_as_they_are_written() {
    let text = "name: 1.50\nshort: yes\nlong: 0777\nprompt: true\nsystem-prompt: !!str 12\n";
    let file = parse(text).expect("a file");
    assert_eq!(
        (file.name.as_str(), file.short.as_str(), file.long.as_str()),
        ("1.50", "yes", "0777")
    );
    assert_eq!(file.prompt.map(|prompt| prompt.template).as_deref(), Some("true"));
    assert_eq!(file.system_prompt.map(|prompt| prompt.template).as_deref(), Some("12"));
}

/// Where the lines of `a` are.
#[track_caller]
fn layout(text: &str, expected: Layout) {
    for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
        let node = Node::parse(&text).map_err(|error| error.message).expect("YAML");
        assert_eq!(node.get("a").map(|value| value.layout), Some(expected), "{text:?}");
    }
}

#[test]
fn lines_of_texts() {
    layout("x: 1\na: |\n  one\n  two\n", Layout::Lines(3));
    layout("a: |\n\n\n  one\n", Layout::Lines(2));
    layout("a: |-\n  one\n", Layout::Lines(2));
    layout("a: |2+ # why\n    one\n", Layout::Lines(2));
    layout("é: ü\na: |\n  one\n", Layout::Lines(3));
    layout("a: &t |\n  one\n", Layout::Lines(2));
    layout("a: !!str |\n  one\n", Layout::Lines(2));
    layout("a: >\n  one\n  two\n", Layout::Folded(2));
    layout("a: >-\n\n  one\n", Layout::Folded(2));
    layout("a: one\n", Layout::One(1));
    layout("a: one\n  two\n", Layout::Folded(1));
    layout("a:\n  one\n", Layout::One(2));
    layout("a: 'one'\n", Layout::One(1));
    layout("a: \"one\\ntwo\"\n", Layout::One(1));
    layout("a: \"one\n  two\"\n", Layout::Folded(1));
    layout("b: &t |\n  one\na: *t\n", Layout::Lines(2));
}

#[test]
fn faults() {
    let deep = "[".repeat(40);
    let steps = "- ".repeat(40);
    let table = [
        ("a: 1\nb: 2\na: 3", Some(3), "the key `a` occurs a second time"),
        ("a:\n\tb: 1", Some(2), "it is indented by a tab; use spaces"),
        ("a: b: c", Some(1), "there is a `: ` in a text without quotes"),
        ("a: [1", Some(1), "unclosed bracket"),
        ("a: 'b", Some(1), "unclosed quote"),
        ("a: *x", Some(1), "an alias has no anchor before it"),
        ("a: .inf", Some(1), "infinity and NaN can't be used"),
        ("a: &a [*a]", Some(1), "an anchor contains an alias of itself"),
        (&deep, Some(1), "more than 32 lists and maps are nested"),
        (&steps, Some(1), "more than 32 lists and maps are nested"),
    ];
    for (text, line, message) in table {
        let error = Node::parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {}", error.message);
        assert!(error.message.contains(message), "{text}: {}", error.message);
        assert!(!error.message.contains(" at line "), "{text}: {}", error.message);
        let error = to_json(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {}", error.message);
    }
}
