//! What is wrong with a YAML document, for people: the library's words speak to programmers.

use super::DEPTH_MAX;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

pub(super) const ALIASES: &str =
    "it is too large once its aliases are followed; repeat less by them";

/// What the words of the library's scanner, which has no other way to tell, mean.
const MEANINGS: [(&str, &str); 2] = [
    (
        "mapping values are not allowed",
        "there is a `: ` in a text without quotes; put the text in quotes",
    ),
    ("tabs disallowed", "it is indented by a tab; use blanks"),
];

/// What is wrong and what to do, as a fragment, without the place, which is told on its own.
pub(super) fn of(error: &Error) -> String {
    let error = error.without_snippet();
    if let Error::DuplicateMappingKey { key, .. } = error {
        let name = key.as_deref().map(|key| format!(" `{key}`")).unwrap_or_default();
        return format!(
            "the key{name} stands here for the second time in one map; keep one of them"
        );
    }
    if let Error::UnknownAnchor { .. } = error {
        return "an alias has no anchor before it; put a text that begins with `*` in quotes"
            .to_owned();
    }
    if let Error::NonFiniteFloat { .. } = error {
        return "infinity and not-a-number can't be used; give a number, or put it in quotes"
            .to_owned();
    }
    if let Error::RecursiveReferencesRequireWeakTypes { .. } = error {
        return "an anchor holds an alias of itself; take the alias out".to_owned();
    }
    if let Error::AliasReplayLimitExceeded { .. } = error {
        return ALIASES.to_owned();
    }
    if let Error::Budget { breach, .. } = error {
        return limit(breach);
    }
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return depth();
    }
    let meaning = MEANINGS.iter().find(|(words, _)| text.starts_with(words));
    let end = text.rfind(" at line ").unwrap_or(text.len());
    meaning.map_or_else(|| text[..end].to_owned(), |(_, meaning)| (*meaning).to_owned())
}

fn limit(breach: &BudgetBreach) -> String {
    if let BudgetBreach::Depth { .. } = breach {
        return depth();
    }
    "it holds more than is read; make it smaller, or use JSON".to_owned()
}

fn depth() -> String {
    format!("more than {DEPTH_MAX} lists and maps are inside each other; make it flatter")
}
