//! Functions that write and read other formats: JSON, YAML, base64, base32.

use super::{Call, Function, function, yaml};
use crate::template::value::Value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::BASE32;
use serde_json::Value as Json;

pub(super) const FUNCTIONS: &[Function] = &[
    function("toJson", (1, 1), |call| json(call, false, true)),
    function("toRawJson", (1, 1), |call| json(call, false, false)),
    function("toPrettyJson", (1, 1), |call| json(call, true, true)),
    function("fromJson", (1, 1), from_json),
    function("toYaml", (1, 1), |call| {
        let value = call.heap.give(call.arg(0))?;
        Ok(Value::text(yaml::written(&value)))
    }),
    function("fromYaml", (1, 1), |call| {
        let read = yaml::read(call.text(0)?)?;
        call.heap.take(&read)
    }),
    function("b64enc", (1, 1), |call| Ok(Value::text(STANDARD.encode(call.text(0)?.as_bytes())))),
    function("b64dec", (1, 1), |call| {
        let bytes = STANDARD.decode(call.text(0)?.as_bytes());
        let bytes = bytes.map_err(|why| format!("this is not base64: {why}"))?;
        String::from_utf8(bytes).map(Value::text).map_err(|_| "what it holds is no UTF-8".into())
    }),
    function("b32enc", (1, 1), |call| Ok(Value::text(BASE32.encode(call.text(0)?.as_bytes())))),
    function("b32dec", (1, 1), |call| {
        let bytes = BASE32.decode(call.text(0)?.as_bytes());
        let bytes = bytes.map_err(|why| format!("this is not base32: {why}"))?;
        String::from_utf8(bytes).map(Value::text).map_err(|_| "what it holds is no UTF-8".into())
    }),
];

/// JSON as Go's `encoding/json` writes it; `<`, `>` and `&` as escapes if `is_escaped`.
fn json(call: &mut Call<'_>, is_pretty: bool, is_escaped: bool) -> Result<Value, String> {
    let value = call.heap.give(call.arg(0))?;
    let mut out = String::new();
    write(&mut out, &value, is_pretty.then_some(0), is_escaped);
    Ok(Value::text(out))
}

/// Writes a value; with the level of its lines, on several.
fn write(out: &mut String, value: &Json, level: Option<usize>, is_escaped: bool) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&go_number(number)),
        Json::String(text) => write_text(out, text, is_escaped),
        Json::Array(items) => {
            let items = items.iter().map(|item| (None, item));
            write_parts(out, ('[', ']'), items, level, is_escaped);
        }
        Json::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, member)| (Some(key.as_str()), member)).collect();
            members.sort_by_key(|(key, _)| *key);
            write_parts(out, ('{', '}'), members.into_iter(), level, is_escaped);
        }
    }
}

fn write_parts<'j>(
    out: &mut String,
    (open, close): (char, char),
    parts: impl Iterator<Item = (Option<&'j str>, &'j Json)>,
    level: Option<usize>,
    is_escaped: bool,
) {
    let line = |out: &mut String, level: Option<usize>| {
        if let Some(level) = level {
            out.push('\n');
            out.push_str(&"  ".repeat(level));
        }
    };
    out.push(open);
    let inside = level.map(|level| level + 1);
    let mut is_first = true;
    for (key, part) in parts {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        line(out, inside);
        if let Some(key) = key {
            write_text(out, key, is_escaped);
            out.push_str(if level.is_some() { ": " } else { ":" });
        }
        write(out, part, inside, is_escaped);
    }
    if !is_first {
        line(out, level);
    }
    out.push(close);
}

fn write_text(out: &mut String, text: &str, is_escaped: bool) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if is_escaped => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            '\0'..=' ' | '\u{2028}' | '\u{2029}' if char != ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

/// Go writes a float without its fraction if it has none, and with an exponent below 1e-6 and from
/// 1e21 on.
fn go_number(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) {
        let text = format!("{float:e}");
        return if float.abs() >= 1.0 { text.replace('e', "e+") } else { text };
    }
    float.to_string()
}

/// Numbers are floats, as in Go; text that is no JSON is an error, where sprig gives nothing.
fn from_json(call: &mut Call<'_>) -> Result<Value, String> {
    let read: Json =
        serde_json::from_str(call.text(0)?).map_err(|why| format!("this is not JSON: {why}"))?;
    call.heap.take_floats(&read)
}
