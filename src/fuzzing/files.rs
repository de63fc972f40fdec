//! Files that people write: YAML, command files, templates, schemas, lists of servers.

use crate::command_file::CommandFile;
use crate::extract::{Extractor, Found, ResponseType, Schema};
use crate::protocol::json;
use crate::support::cuts::text_cuts;
use crate::template::{Missing, OUTPUT_BYTES_MAX, Template, Types, Values};
use crate::tool::config::Servers;
use crate::yaml::{self, Kind, Layout, Node};
use jiff::{Zoned, civil, tz::TimeZone};
use serde_json::{Value, json};
use std::path::Path;

/// What makes a template give another text each time.
const RANDOM: [&str; 3] = ["rand", "uuid", "shuffle"];

pub(super) fn yaml(text: &str) {
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
    match Node::parse(text) {
        Ok(node) => check_node(&node, u32::try_from(lines).unwrap_or(u32::MAX)),
        Err(error) => assert!(!error.message.is_empty()),
    }
    if let Ok(value) = yaml::deserialize::<Value>(text) {
        assert!(serde_json::to_string(&value).is_ok());
    }
}

/// Each value is on a line of the file.
fn check_node(node: &Node, lines: u32) {
    let is_line = |line: u32| (1..=lines).contains(&line);
    let (Layout::Lines(first) | Layout::One(first) | Layout::Folded(first)) = node.layout;
    assert!(is_line(node.line) && is_line(first), "{:?} of {lines}: {node:?}", node.layout);
    match &node.kind {
        Kind::Nothing | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => {}
        Kind::List(items) => items.iter().for_each(|item| check_node(item, lines)),
        Kind::Map(entries) => {
            entries
                .iter()
                .flat_map(|(key, value)| [key, value])
                .for_each(|it| check_node(it, lines));
        }
    }
}

pub(super) fn command_file(text: &str) {
    let file = match CommandFile::parse(Path::new("dir/cmd.yaml"), text) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    drop(clap::Command::new("duologue").args(file.clap_args()));
    let render = || file.render(Values::default(), &now(), Missing::Shown);
    let rendered = render();
    assert!(is_random(text) || rendered == render());
}

pub(super) fn template(text: &str) {
    let values = json!({ "name": "World", "n": 3, "x": 1.5, "yes": true, "list": ["a", 1, null],
        "map": { "b": { "c": "d" }, "a": [] }, "nothing": null });
    let template = match Template::parse("main", text, &values) {
        Ok(template) => template,
        Err(error) => return assert!(!error.message.is_empty()),
    };
    let render = || template.render(&values, &Types::default(), &now());
    let rendered = render();
    assert!(is_random(text) || rendered == render());
    match rendered {
        Ok(text) => assert!(text.len() <= OUTPUT_BYTES_MAX),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn is_random(text: &str) -> bool {
    RANDOM.iter().any(|word| text.contains(word))
}

/// A Sunday afternoon.
fn now() -> Zoned {
    civil::date(2026, 11, 22).at(14, 30, 5, 0).to_zoned(TimeZone::UTC).expect("a date")
}

/// A schema, and after its first line the answer that it is for.
pub(super) fn schema(text: &str) {
    let (schema, answer) = text.split_once('\n').unwrap_or((text, ""));
    let schema = json::read::<Value>(schema).ok().and_then(|it| Schema::compile(&it).ok());
    for response in [ResponseType::Json, ResponseType::Jsonl] {
        for is_cut_off in [false, true] {
            let [whole, others @ ..] = text_cuts(answer).map(|pieces| {
                let mut extractor = Extractor::new(response, schema.clone());
                let mut found: Vec<_> = pieces.iter().flat_map(|it| extractor.push(it)).collect();
                found.extend(extractor.finish(is_cut_off));
                (found, extractor.tally(), extractor.is_cut_off())
            });
            for other in others {
                assert_eq!(other, whole);
            }
            whole.0.iter().for_each(|found| check_found(found, schema.as_ref()));
        }
    }
}

/// A value that was found is JSON on one line, which is found in the same way again.
fn check_found(found: &Found, schema: Option<&Schema>) {
    let Found::Value { json, .. } = found else { return };
    assert!(!json.contains(['\n', '\r']), "{json:?}");
    let mut again = Extractor::new(ResponseType::Jsonl, schema.cloned());
    again.push(json);
    let found = again.finish(false);
    let [Found::Value { json: same, .. }] = &found[..] else { panic!("{found:?} in {json}") };
    assert_eq!(same, json);
}

/// A file of MCP servers. What variables hold is in no error.
pub(super) fn mcp_servers(text: &str) {
    const SECRET: &str = "sk-secret/123456";
    let mut servers = Servers::default();
    if let Err(error) = servers.add_file(text, &|_| Some(SECRET.to_owned())) {
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    let warned = servers.warnings.iter().any(|warning| warning.contains(SECRET));
    assert!(!warned, "{:?}", servers.warnings);
}
