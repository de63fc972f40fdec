//! Files made to do harm: refused, or read, soon and in little memory.

use super::{parse, run};
use crate::yaml::{Node, deserialize, to_json};
use proptest::prelude::*;
use serde_json::Value;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// What reading may take, also on a busy machine and without optimization.
const SOON: Duration = Duration::from_secs(20);

/// The error for this text, read in all ways; `ok` if there is none.
fn read(text: &str) -> [String; 3] {
    let start = Instant::now();
    let shown = |error: Option<String>| error.unwrap_or_else(|| "ok".to_owned());
    let found = [
        shown(Node::parse(text).err().map(|error| error.message)),
        shown(to_json(text).err().map(|error| error.message)),
        shown(parse(text).err()),
    ];
    assert!(start.elapsed() < SOON, "it took {:?}", start.elapsed());
    found
}

#[test]
fn depth() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")] {
        let text = open.repeat(100_000) + &close.repeat(100_000);
        for error in read(&text) {
            assert_ne!(error, "ok", "{open}");
        }
    }
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for text in [deep(32), "{a: ".repeat(32) + &"}".repeat(32), "- ".repeat(32)] {
        assert!(to_json(&text).is_ok() && Node::parse(&text).is_ok(), "{text}");
    }
    assert!(to_json(&deep(33)).is_err());
}

#[test]
fn aliases() {
    // Ten of ten of ten …
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{items}]").expect("written");
    }
    // One long text, many times.
    let long = format!("a: &a {}\nb: [{}*a]\n", "x".repeat(500_000), "*a, ".repeat(20_000));
    // Merges of merges.
    let mut merges = "a0: &a0 {x: 1, y: 2}\n".to_owned();
    for level in 1..2_000 {
        writeln!(merges, "a{level}: &a{level} {{<<: *a{}, k{level}: 1}}", level - 1)
            .expect("written");
    }
    for text in [bomb, long, merges] {
        for error in read(&text) {
            assert_ne!(error, "ok", "{}", &text[..40]);
        }
    }
}

#[test]
fn anchors_within_anchors() {
    let nested = |levels: usize| {
        let open: String = (0..levels).map(|level| format!("&a{level} [")).collect();
        format!("{open}{}{}", "a, ".repeat(40_000), "]".repeat(levels))
    };
    // A copy for each anchor around the items.
    assert_eq!(deserialize::<Value>(&nested(2)).map_err(|error| error.message).err(), None);
    let error = deserialize::<Value>(&nested(20)).expect_err("too large");
    let message =
        "exceeds a limit: it is too large with its anchors and aliases; use fewer of them";
    assert_eq!(error.predicate(), message);
    let error = deserialize::<Value>(&"[".repeat(40)).expect_err("too deep");
    let message = "exceeds a limit: more than 32 lists and maps are nested; nest them less deeply";
    assert_eq!(error.predicate(), message);
}

#[test]
fn size() {
    let ten = 10 * 1024 * 1024;
    let quoted = format!("prompt: \"{}\"", "x".repeat(ten));
    let block = format!("prompt: |\n{}", "  xxxxxxx\n".repeat(ten / 10));
    for text in [quoted, block] {
        let [node, json, file] = read(&text);
        assert_eq!((node.as_str(), json.as_str()), ("ok", "ok"));
        assert!(file.contains("it has more than 1 MiB"), "{file}");
    }
    let one_line = format!("prompt: hi\nx: [{}]", "a, ".repeat(30_000));
    let lines = format!("prompt: hi\nx:\n{}", "- a\n\n".repeat(5_000));
    let keys: String = (0..3_000).map(|number| format!("k{number}: 1\n")).collect();
    for text in [one_line, lines, format!("prompt: hi\n{keys}")] {
        assert_eq!(read(&text), ["ok", "ok", "ok"]);
    }
}

#[test]
fn nonsense() {
    let texts = [
        "\0",
        "\u{feff}",
        "\u{feff}\u{feff}a: 1",
        "%YAML 9.9\n---\na: 1",
        "%",
        "---\n---",
        "!!binary x",
        "prompt: !!binary /w==",
        "prompt: !foo a",
        "? [a, b]\n: c\nprompt: x",
        "&a [*a]",
        "*a",
        "- - - -",
        "a: b: c",
        "prompt: \"\\ud800\"",
        "prompt: \"\\x",
        "'",
        "|",
        "prompt: |9\n  a",
        "<<: 1\nprompt: a",
        "<<: *a",
        "prompt: >\n\n\n",
        "flags: [[[[",
        "flags: [{name: {a: b}, type: [1]}]\nprompt: a",
        "\t",
        "a:\u{85}b",
        "{]",
        "prompt: a\r\rb: c",
        "messages: [{}, {text: }, {role: user, text: {}}]",
    ];
    for text in texts {
        // Whatever comes of it, nothing panics.
        read(text);
    }
}

/// A file with something of everything.
const SAMPLE: &str = "\
# A comment
name: &n sample
short: 'It''s \\'
flags:
  - {name: a, type: int, default: 0x1F, shortFlag: a}
  - name: b
    type: choiceList
    choices: [x, \"y\\u00e9\"]
    default: [x]
  - &c {name: c, type: keyValue, default: {k: v}}
  - {<<: *c, name: d, required: no}
arguments:
  - {name: e, type: stringList}
system-prompt: >-
  Be
   kind.

messages:
  - |2

    {{ if .a }}{{ .a }}{{ end }}
  - {role: assistant, content: *n}
schema: {type: object}
";

#[test]
fn the_sample_is_sound() {
    assert!(run(SAMPLE, &["e"]).is_ok(), "{:?}", run(SAMPLE, &["e"]));
}

proptest! {
    /// Neither chance nor a slip of the hand makes it panic.
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", at in 0..SAMPLE.len(), cut in 0_usize..20) {
        parse(&text).ok();
        let end = (at + cut).min(SAMPLE.len());
        let slip: String = text.chars().take(3).collect();
        if let (Some(before), Some(after)) = (SAMPLE.get(..at), SAMPLE.get(end..)) {
            run(&format!("{before}{slip}{after}"), &["e"]).ok();
            run(&format!("{before}{after}"), &[]).ok();
        }
    }
}
