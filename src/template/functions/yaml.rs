//! YAML as Go's `yaml.v3` writes it: <https://pkg.go.dev/gopkg.in/yaml.v3>. Indented by four
//! spaces, with sorted keys.

mod order;

use crate::template::format::{general, quoted};
use crate::template::time;
use crate::template::types::{IntType, MapType};
use crate::template::value::{Heap, MapId, Value, check_levels};
use crate::yaml::YamlError;
use regex::Regex;
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};

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
pub(super) fn written(heap: &mut Heap, value: &Value) -> Result<String, String> {
    let mut writer = Writer { heap, out: String::new() };
    writer.value(value, Place { indent: 0, inner: LEVEL, level: 0 })?;
    let mut out = writer.out;
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(out)
}

/// Where a value is written.
#[derive(Clone, Copy)]
struct Place {
    indent: usize,
    /// The indentation of a text of several lines.
    inner: usize,
    /// Lists and maps around it.
    level: usize,
}

struct Writer<'h> {
    heap: &'h mut Heap,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, place: Place) -> Result<(), String> {
        check_levels(place.level)?;
        self.heap.visit()?;
        match value {
            Value::Nil | Value::Error(None) => self.out.push_str("null"),
            Value::Bool(truth) => self.out.push_str(if *truth { "true" } else { "false" }),
            Value::Named(IntType::Uint64, number) => {
                self.out.push_str(&number.cast_unsigned().to_string());
            }
            Value::Int(number) | Value::Named(_, number) => self.out.push_str(&number.to_string()),
            Value::Float(number) => self.out.push_str(&float(*number)),
            Value::Text(text) | Value::Error(Some(text)) => {
                self.heap.charge(text.len())?;
                write_text(&mut self.out, text, place.inner);
            }
            // Not a text, so it needs no quotes.
            Value::Time(at) => self.out.push_str(&time::rfc3339(at)),
            Value::Version(version) => write_text(&mut self.out, &version.to_string(), place.inner),
            Value::List(items) if items.is_empty() => self.out.push_str("[]"),
            Value::List(items) => {
                let Place { indent, level, .. } = place;
                for (index, item) in items.iter().enumerate() {
                    next_line(&mut self.out, indent, index);
                    self.out.push_str("- ");
                    let inner = indent + 2;
                    self.value(item, Place { indent: inner, inner, level: level + 1 })?;
                }
            }
            Value::Map(id) if self.heap.read(*id).is_empty() => self.out.push_str("{}"),
            Value::Map(id) => self.members(*id, place)?,
        }
        Ok(())
    }

    fn members(&mut self, id: MapId, place: Place) -> Result<(), String> {
        let mut members = self.heap.members(id)?;
        if id.kind() != MapType::IntKeys {
            members.sort_by(|(one, _), (other, _)| order::natural(one, other));
        }
        for (index, (key, member)) in members.into_iter().enumerate() {
            next_line(&mut self.out, place.indent, index);
            if let Value::Int(number) = id.key(Arc::clone(&key)) {
                self.out.push_str(&number.to_string());
            } else {
                self.heap.charge(key.len())?;
                write_text(&mut self.out, &key, 0);
            }
            self.member(&member, place)?;
        }
        Ok(())
    }

    fn member(&mut self, member: &Value, Place { indent, level, .. }: Place) -> Result<(), String> {
        self.out.push(':');
        let inner = LEVEL * ((indent + LEVEL) / LEVEL);
        let is_block = match member {
            Value::List(items) => !items.is_empty(),
            Value::Map(id) => !self.heap.read(*id).is_empty(),
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Named(..)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::Version(_)
            | Value::Error(_) => false,
        };
        if is_block {
            self.out.push('\n');
            self.out.push_str(&" ".repeat(inner));
        } else {
            self.out.push(' ');
        }
        self.value(member, Place { indent: inner, inner, level: level + 1 })
    }
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

fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = if number.is_infinite() { ".inf".to_owned() } else { general(number.abs(), None) };
    format!("{sign}{size}")
}

/// Writes a text, or a key, which is on one line and has no indentation in it.
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
