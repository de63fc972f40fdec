//! What is wrong with a YAML document, for people: the library's words speak to programmers.

use super::DEPTH_MAX;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

pub(super) const ALIASES: &str =
    "it is too large once its aliases are followed; repeat less by them";

/// What the words of the library's scanner, which has no other way to tell, mean. The first that is
/// found counts.
const MEANINGS: [(&str, &str); 24] = [
    (
        "mapping values are not allowed",
        "there is a `: ` in a text without quotes; put the text in quotes",
    ),
    (
        "illegal placement of ':'",
        "there is a `: ` in a text without quotes; put the text in quotes",
    ),
    ("tabs disallowed", TAB),
    ("found a tab", TAB),
    ("multiline quoted scalar", UNCLOSED),
    ("found unexpected document indicator", UNCLOSED),
    ("unclosed quote", UNCLOSED),
    ("misplaced bracket", "a bracket is closed that was not opened; put the text in quotes"),
    ("flow construct", "a list or map in brackets goes on here; indent it more"),
    ("parsing a flow sequence", BRACKETS),
    ("parsing a flow mapping", BRACKETS),
    ("implicit flow mapping", BRACKETS),
    ("block collection, did not find", INDENTED),
    ("block mapping", INDENTED),
    ("block sequence", INDENTED),
    ("invalid indentation", INDENTED),
    ("mapping keys are not allowed", INDENTED),
    ("simple key expected", "a name without a `: ` after it stands among names with values"),
    (
        "scanning a block scalar",
        "only signs such as |, |- or >2 may stand here; the text begins in the next line",
    ),
    (
        "parsing a quoted scalar",
        "a \\ in double quotes begins no escape; write \\\\, or use single quotes",
    ),
    (
        "invalid trailing content",
        "more text follows a text in quotes; put all of it in one pair of quotes",
    ),
    ("directive", "a line that begins with % is for the reader of YAML; put the text in quotes"),
    ("anchor", "a text that begins with & or * must be in quotes"),
    ("tag", "a text that begins with ! must be in quotes"),
];

const TAB: &str = "it is indented by a tab; use blanks";

const UNCLOSED: &str =
    "unclosed quote: a text has none at its end, or goes on in a line that is not indented";

const BRACKETS: &str = "a list or map in brackets lacks a comma, or its closing bracket";

const INDENTED: &str =
    "this line is not a part of what stands above it; check how far it is indented";

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
    let end = text.rfind(" at line ").unwrap_or(text.len());
    if let Some(sign) = text[..end].strip_prefix("unexpected character: `") {
        let sign = sign.trim_end_matches('\'');
        return format!("a text can't begin with {sign}; put it in quotes");
    }
    if text[..end].strip_prefix("invalid ").is_some_and(is_number) {
        return "its tag says that it is a number, and it is none".to_owned();
    }
    let meaning = MEANINGS.iter().find(|(words, _)| text[..end].contains(words));
    meaning.map_or_else(|| text[..end].to_owned(), |(_, meaning)| (*meaning).to_owned())
}

/// A type of numbers, as Rust names it.
fn is_number(kind: &str) -> bool {
    kind.starts_with(['i', 'u', 'f']) && kind[1..].chars().all(|char| char.is_ascii_digit())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// What the library's words must not be seen of.
    const JARGON: [&str; 8] =
        ["scalar", "parsing", "scanning", "flow", "block mapping", "token", "indicator", "u64"];

    #[test]
    fn a_fault_is_named_in_plain_words() {
        let check = |text: &str, expected: &str| {
            let error = serde_saphyr::from_str::<Value>(text).expect_err(text);
            let message = of(&error);
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!JARGON.iter().any(|word| message.contains(word)), "{text}: {message}");
        };
        check("a: \"b\n", "unclosed quote");
        check("a: 'b\nc: d\n", "unclosed quote");
        check("a: }\n", "a bracket is closed");
        check("a: [b\n  c: d]\n", "`: ` in a text without quotes");
        check("a: [b: c d: e]\n", "lacks a comma");
        check("a: - b\n", "check how far it is indented");
        check("a: {b: c d: e}\n", "lacks a comma");
        check("a: |\n  b\n c\n", "check how far it is indented");
        check("a: b\n- c\n", "check how far it is indented");
        check("a: >-x\n", "the text begins in the next line");
        check("a: \"\\q\"\n", "begins no escape");
        check("a: \"b\" c\n", "one pair of quotes");
        check("a: @b\n", "a text can't begin with @");
        check("a: %b\n", "a text can't begin with %");
        check("`a`: b\n", "a text can't begin with `");
        check("%YAML 9\n---\na: b\n", "a line that begins with %");
        check("a: !!int x\n", "and it is none");
        check("a: & b\n", "must be in quotes");
        check("a: !<b\n", "must be in quotes");
    }
}
