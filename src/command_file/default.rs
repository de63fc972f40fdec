//! Reads the default of a flag: checks its type and converts it to a value for templates.

use super::date;
use super::flag::Type;
use crate::yaml::{Kind, Node};
use serde_json::Value;

/// Reads the default of a flag of this type and these choices. `None` if it is null; an error is a
/// fragment of a message.
///
/// For types whose values name files, the default is the content itself, as in glazed: the default
/// of a `stringFromFile` is the text.
pub(super) fn read(node: &Node, kind: Type, choices: &[String]) -> Result<Option<Value>, String> {
    if node.is_nothing() {
        return Ok(None);
    }
    let value = match kind {
        Type::String | Type::Secret | Type::StringFromFile | Type::StringFromFiles => text(node),
        Type::Int => int(node),
        Type::Float => float(node),
        Type::Bool => truth(node),
        Type::Choice => choice(node, choices),
        Type::ChoiceList => list(node, |item| choice(item, choices)),
        Type::StringList | Type::StringListFromFile | Type::StringListFromFiles => list(node, text),
        Type::IntList => list(node, int),
        Type::FloatList => list(node, float),
        Type::Date => date(node),
        Type::File => Err(NO_FILE.to_owned()),
        Type::FileList => list(node, |_| Err(NO_FILE.to_owned())),
        Type::ObjectFromFile => object(node),
        Type::ObjectListFromFile | Type::ObjectListFromFiles => list(node, object),
        Type::KeyValue => texts(node),
    };
    value.map(Some)
}

const NO_FILE: &str =
    "a file can't be a default; leave the default out and name the file on the command line";

fn wrong(node: &Node, expected: &str) -> String {
    format!("the default is {}, and the type requires {expected}", node.what())
}

fn text(node: &Node) -> Result<Value, String> {
    if let Kind::Text(text) = &node.kind {
        return Ok(Value::from(text.as_str()));
    }
    let hint = if node.text().is_some() { "; put it in quotes to make it a string" } else { "" };
    Err(format!("{}{hint}", wrong(node, "a string")))
}

fn int(node: &Node) -> Result<Value, String> {
    if let Kind::Int(value) = node.kind {
        return Ok(Value::from(value));
    }
    // As in glazed, 3.0 is an integer. Up to 2^53 a float holds every integer.
    if let Kind::Float(value) = node.kind
        && value.fract() == 0.0
        && value.abs() < 9_007_199_254_740_992.0
    {
        return Ok(Value::from(value as i64));
    }
    Err(wrong(node, "an integer"))
}

fn float(node: &Node) -> Result<Value, String> {
    if let Kind::Float(value) = node.kind {
        return Ok(Value::from(value));
    }
    if let Kind::Int(value) = node.kind {
        return Ok(Value::from(value as f64));
    }
    Err(wrong(node, "a number"))
}

/// Accepts only YAML 1.2's `true` and `false`: yaml.v3 reads a default without knowing its type,
/// and then YAML 1.1's words are strings.
fn truth(node: &Node) -> Result<Value, String> {
    if let Kind::Bool(value) = node.kind {
        return Ok(Value::from(value));
    }
    Err(wrong(node, "true or false"))
}

fn date(node: &Node) -> Result<Value, String> {
    match node.text() {
        Some(text) if date::is_date(text) => Ok(Value::from(text)),
        Some(text) => Err(format!("the default `{text}` is not {}", date::EXPECTED)),
        None => Err(wrong(node, date::EXPECTED)),
    }
}

fn choice(node: &Node, choices: &[String]) -> Result<Value, String> {
    let text = node.text().ok_or_else(|| wrong(node, "one of the choices"))?;
    if choices.iter().any(|choice| choice == text) {
        return Ok(Value::from(text));
    }
    Err(format!("the default `{text}` is not one of the choices: {}", choices.join(", ")))
}

fn list(node: &Node, item: impl Fn(&Node) -> Result<Value, String>) -> Result<Value, String> {
    node.list().ok_or_else(|| wrong(node, "a list"))?.iter().map(item).collect()
}

fn object(node: &Node) -> Result<Value, String> {
    if let Kind::Map(_) = node.kind {
        return Ok(node.json());
    }
    Err(wrong(node, "a map"))
}

fn texts(node: &Node) -> Result<Value, String> {
    let entries = node.map().ok_or_else(|| wrong(node, "a map of strings"))?;
    let entry = |(key, value): &(Node, Node)| match (key.text(), value.text()) {
        (Some(key), Some(value)) => Ok((key.to_owned(), Value::from(value))),
        _ => Err("the default must have a string for each key".to_owned()),
    };
    entries.iter().map(entry).collect()
}
