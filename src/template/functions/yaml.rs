//! YAML as Go's `yaml.v3` writes it: <https://pkg.go.dev/gopkg.in/yaml.v3>. Indented by four
//! spaces, with sorted keys.

use crate::template::format::{general, quoted};
use crate::yaml::YamlError;
use regex::Regex;
use serde_json::Value as Json;
use std::sync::LazyLock;

/// Spaces per level.
const LEVEL: usize = 4;

/// Strings that YAML 1.1 or 1.2 reads as another type.
static NO_STRING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let sources = [
        r"",
        r"~|null|Null|NULL|<<",
        r"true|True|TRUE|false|False|FALSE",
        r"y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?",
        r"[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[bB][01_]+|[-+]?0[oO]?[0-7_]+",
        r"[-+]?\.(inf|Inf|INF)|\.nan|\.NaN|\.NAN",
        r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?",
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ]+[0-9]{1,2}:[0-9]{2}:[0-9]{2}.*)?",
    ];
    Regex::new(&format!("^({})$", sources.join("|"))).ok()
});

/// The value of a YAML text.
pub(super) fn read(text: &str) -> Result<Json, String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|why| {
        let fault = YamlError::of(&why);
        let place = fault.line.map(|line| format!(", line {line},")).unwrap_or_default();
        format!("the text{place} {}", fault.predicate())
    })
}

/// A value as a document, which ends with a line break.
pub(super) fn written(value: &Json) -> String {
    let mut out = String::new();
    write(&mut out, value, 0, LEVEL);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value at `indent`; a text of several lines is indented to `inner`.
fn write(out: &mut String, value: &Json, indent: usize, inner: usize) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&number_of(number)),
        Json::String(text) => write_text(out, text, inner),
        Json::Array(items) if items.is_empty() => out.push_str("[]"),
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                next_line(out, indent, index);
                out.push_str("- ");
                write(out, item, indent + 2, indent + 2);
            }
        }
        Json::Object(members) if members.is_empty() => out.push_str("{}"),
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            for (index, (key, member)) in members.into_iter().enumerate() {
                next_line(out, indent, index);
                write_text(out, &key.replace('\n', " "), 0);
                write_member(out, member, indent);
            }
        }
    }
}

fn write_member(out: &mut String, member: &Json, indent: usize) {
    out.push(':');
    let inner = LEVEL * ((indent + LEVEL) / LEVEL);
    let is_block = match member {
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    };
    if is_block {
        out.push('\n');
        out.push_str(&" ".repeat(inner));
    } else {
        out.push(' ');
    }
    write(out, member, inner, inner);
}

/// The first item is on the current line.
fn next_line(out: &mut String, indent: usize, index: usize) {
    if index == 0 {
        return;
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&" ".repeat(indent));
}

fn number_of(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.is_sign_negative() => format!("-{}", general(-float, None)),
        Some(float) => general(float, None),
        None => number.to_string(),
    }
}

fn write_text(out: &mut String, text: &str, inner: usize) {
    let is_other = NO_STRING.as_ref().is_some_and(|no_string| no_string.is_match(text));
    let is_plain_printed = text.chars().all(|char| char == '\n' || !char.is_control());
    if text.contains('\n') && is_plain_printed && !text.contains(" \n") && inner > 0 {
        write_lines(out, text, inner);
    } else if is_other || !is_plain_printed || text.contains('\n') {
        out.push_str(&quoted(text));
    } else if is_plain(text) {
        out.push_str(text);
    } else {
        out.push_str(&format!("'{}'", text.replace('\'', "''")));
    }
}

/// A text of several lines, as a literal block.
fn write_lines(out: &mut String, text: &str, inner: usize) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push_str(&LEVEL.to_string());
    }
    let lines = text.strip_suffix('\n').unwrap_or(text);
    if lines.len() == text.len() {
        out.push('-');
    } else if lines.is_empty() || lines.ends_with('\n') {
        out.push('+');
    }
    for line in lines.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(inner));
            out.push_str(line);
        }
    }
    if lines.len() < text.len() {
        out.push('\n');
    }
}

/// Whether a string needs no quotes.
fn is_plain(text: &str) -> bool {
    let is_indicator = text.starts_with(|char| "#,[]{}&*!|>'\"%@`".contains(char));
    let mut rest = text.chars();
    let is_key = rest.next().is_some_and(|first| "-?:".contains(first))
        && rest.next().is_none_or(char::is_whitespace);
    !is_indicator
        && !is_key
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
}
