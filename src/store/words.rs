//! Words of conversations: those that a database keeps of a text, and whether a text has those of a search.
//!
//! Texts are split into words here, by `split`, before a database sees them, so that a search in a file and
//! one in a database find the same.

mod find;
mod split;

use crate::protocol::any::Any;
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::SnapshotEntity;
pub(crate) use find::Phrases;
use find::each_term;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The rules by which words are split here: a database keeps them with the words.
pub(super) const RULES: i64 = 2;

/// Bytes of a word that a database keeps; PostgreSQL takes up to 2046.
const TERM_BYTES_MAX: usize = 255;

/// Bytes of the words that are kept together; PostgreSQL takes up to a million.
const TERMS_BYTES_MAX: usize = 256 * 1024;

/// What is searched of an entity.
pub(super) struct Said<'a> {
    /// The role, or the name of the tool.
    pub(super) by: &'a str,
    /// Of arguments and results in JSON, the names and texts in them.
    pub(super) text: Cow<'a, str>,
    pub(super) ids: Option<&'a CorrelationInfo>,
}

/// What is searched of a payload that is whole.
pub(super) fn said(payload: &Any) -> Option<Said<'_>> {
    if let Any::ChatMessageEntity(it) = payload {
        return Some(Said {
            by: &it.role,
            text: Cow::Borrowed(&it.text),
            ids: it.correlation.as_ref(),
        });
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(Said {
            by: &it.tool_name,
            text: plain(&it.input),
            ids: it.correlation.as_ref(),
        });
    }
    let Any::ToolResultEntity(it) = payload else { return None };
    Some(Said { by: &it.tool_name, text: plain(&it.result), ids: it.correlation.as_ref() })
}

/// The texts in JSON, as they are without its escapes; or what is no JSON as it is.
fn plain(text: &str) -> Cow<'_, str> {
    let begins = |text: &str| text.trim_start().starts_with(['{', '[', '"']);
    let read = begins(text).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    let Some(value) = read else { return Cow::Borrowed(text) };
    let mut lines = String::new();
    add_lines(&value, &mut lines);
    Cow::Owned(lines)
}

/// Adds the names and values in `value`, a line for each. JSON that is read here is not nested deeply.
fn add_lines(value: &Value, lines: &mut String) {
    let mut add = |text: &str| {
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(text);
    };
    match value {
        Value::Null => {}
        Value::Bool(value) => add(&value.to_string()),
        Value::Number(value) => add(&value.to_string()),
        Value::String(value) => add(value),
        Value::Array(values) => values.iter().for_each(|value| add_lines(value, lines)),
        Value::Object(members) => {
            for (name, value) in members {
                if !lines.is_empty() {
                    lines.push('\n');
                }
                lines.push_str(name);
                add_lines(value, lines);
            }
        }
    }
}

/// The words of what is searched in a state, in parts of a limited size.
pub(super) fn terms_of(state: impl Iterator<Item = SnapshotEntity>) -> Vec<Vec<String>> {
    let mut all = BTreeSet::new();
    for payload in state.filter_map(|entity| entity.payload) {
        if let Any::Shared(shared) = &payload {
            add_terms(shared.text(), &mut all);
        } else if let Some(said) = said(&payload.into_whole()) {
            add_terms(&said.text, &mut all);
        }
    }
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut room = 0;
    for term in all {
        if room < term.len() {
            parts.push(Vec::new());
            room = TERMS_BYTES_MAX;
        }
        room -= term.len();
        parts.last_mut().into_iter().for_each(|part| part.push(term.clone()));
    }
    parts
}

/// The words in texts, as a database keeps them, each once.
pub(super) fn terms<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut terms = BTreeSet::new();
    texts.for_each(|text| add_terms(text, &mut terms));
    terms.into_iter().collect()
}

fn add_terms(text: &str, terms: &mut BTreeSet<String>) {
    each_term(text, |term| {
        let term = &term[..term.floor_char_boundary(TERM_BYTES_MAX)];
        if !terms.contains(term) {
            terms.insert(term.to_owned());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_is_searched_without_its_escapes() {
        let text = r#"{"path":"a\nzebra","caf\u00e9":[1.5,true,null,"\t\"x\""]}"#;
        assert_eq!(plain(text), "path\na\nzebra\ncaf\u{e9}\n1.5\ntrue\n\t\"x\"");
        for other in ["", "plain\\nzebra", "{not JSON", "12 monkeys", r#"{"a":1} {"#] {
            assert_eq!(plain(other), other);
        }
    }

    #[test]
    fn the_words_that_a_database_keeps_are_those_that_a_search_finds() {
        let found = terms(["The FOX's Größe", "the ☃ 42"].into_iter());
        assert_eq!(found, ["42", "fox", "grosse", "s", "the"]);
        let long = "é".repeat(4000);
        assert_eq!(terms([long.as_str()].into_iter()), ["e".repeat(TERM_BYTES_MAX)]);
        assert!(terms(["", "☃"].into_iter()).is_empty());
    }
}
