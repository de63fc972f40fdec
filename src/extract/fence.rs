//! Code fences, and JSON on the line of a fence: models write `{"a":1}` there as well as on a line of its own.

use super::lines::{trimmed_end, trimmed_start};
use serde::de::IgnoredAny;

/// The beginning of a line that opens or closes a code block.
pub(super) const FENCE: &str = "```";

/// The other one that Markdown has. No JSON text has a line that begins with it.
const TILDES: &str = "~~~";

/// The fence at the beginning of a line, without the white space before it, and what follows it.
pub(super) fn at_start(line: &str) -> Option<(&'static str, &str)> {
    [FENCE, TILDES].into_iter().find_map(|fence| Some((fence, line.strip_prefix(fence)?)))
}

/// The text after the characters of a fence at its beginning, however many.
pub(super) fn after_run<'t>(fence: &str, text: &'t str) -> &'t str {
    text.trim_start_matches(if fence == TILDES { '~' } else { '`' })
}

/// The JSON of a line; `None` if it is a fence without any, or blank.
pub(super) fn json_of(line: &str) -> Option<&str> {
    let text = without_closing(line);
    match at_start(text) {
        Some((_, info)) => json_at(info).map(|at| &info[at..]),
        None => Some(text).filter(|text| !text.is_empty()),
    }
}

/// The text without a fence at its end, and without the white space before that. A fence is never the end of a
/// JSON text.
pub(super) fn without_closing(text: &str) -> &str {
    let text = trimmed_end(text);
    if text.ends_with(FENCE) { trimmed_end(text.trim_end_matches('`')) } else { text }
}

/// The word after an opening fence, the name of a language.
pub(super) fn word(info: &str) -> &str {
    let info = unfenced(info);
    let is_end = |character: char| character.is_whitespace() || "{[\"".contains(character);
    info.split(is_end).next().unwrap_or_default()
}

/// Where JSON begins after an opening fence: at once, or after the name of a language. Other text there is an
/// attribute of the block, as `{.json}` or `title="a"`.
pub(super) fn json_at(info: &str) -> Option<usize> {
    let whole = unfenced(info);
    let after = trimmed_start(&whole[word(info).len()..]);
    let json = [whole, after].into_iter().find(|text| may_be_json(without_closing(text)))?;
    Some(info.len() - json.len())
}

/// A fence may have more than three characters.
fn unfenced(info: &str) -> &str {
    trimmed_start(info.trim_start_matches(['`', '~']))
}

/// Whether a text is a JSON value, or the first line of an object or an array.
fn may_be_json(text: &str) -> bool {
    let begins = |open: char, next: &[char]| {
        let rest = text.strip_prefix(open).map(trimmed_start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(next))
    };
    begins('{', &['"', '}']) || begins('[', &['{', '[', '"', ']']) || is_value(text)
}

/// Whether a text is a JSON value.
pub(super) fn is_value(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
