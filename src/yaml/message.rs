//! Messages for errors in a YAML document, as the library's messages are written for programmers.

use super::DEPTH_MAX;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

pub(super) const ALIASES: &str = "it is too large with its anchors and aliases; use fewer of them";

/// Messages for the texts of the library's scanner, which reports errors only as text. The first
/// match is used.
const MEANINGS: [(&str, &str); 25] = [
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
    ("simple key expected", "a name without a `: ` after it is among names with values"),
    (
        "scanning a block scalar",
        "only signs such as |, |- or >2 are allowed here; the text begins in the next line",
    ),
    (
        "parsing a quoted scalar",
        "the \\ in double quotes is not a valid escape; write \\\\, or use single quotes",
    ),
    (
        "invalid trailing content",
        "more text follows a text in quotes; put all of it in one pair of quotes",
    ),
    ("directive", "a line that begins with % is a YAML directive; put the text in quotes"),
    ("anchor", "a text that begins with & or * must be in quotes"),
    ("tag", "a text that begins with ! must be in quotes"),
    (
        "cannot deserialize null into string",
        "a key is empty or null; write the key, in quotes if it is one of the texts null and ~",
    ),
];

const TAB: &str = "it is indented by a tab; use spaces";

const UNCLOSED: &str =
    "unclosed quote: a quoted text is not closed, or continues in a line that is not indented";

const BRACKETS: &str = "a list or map in brackets lacks a comma, or its closing bracket";

const INDENTED: &str = "this line does not continue what is above it; check its indentation";

const TOO_DEEP: &str = "recursion limit exceeded";

/// The error and its solution, as a fragment, without the place, which is reported separately.
pub(super) fn of(error: &Error) -> String {
    let error = error.without_snippet();
    if let Error::DuplicateMappingKey { key, .. } = error {
        let name = key.as_deref().map(|key| format!(" `{key}`")).unwrap_or_default();
        return format!("the key{name} occurs a second time in one map; keep one of them");
    }
    if let Error::UnknownAnchor { .. } = error {
        return "an alias has no anchor before it; put a text that begins with `*` in quotes"
            .to_owned();
    }
    if let Error::NonFiniteFloat { .. } = error {
        return "infinity and NaN can't be used; give a number, or put it in quotes".to_owned();
    }
    if let Error::RecursiveReferencesRequireWeakTypes { .. } = error {
        return "an anchor contains an alias of itself; remove the alias".to_owned();
    }
    if let Error::AliasReplayLimitExceeded { .. } = error {
        return ALIASES.to_owned();
    }
    if let Error::Budget { breach, .. } = error {
        return limit(breach);
    }
    let text = error.to_string();
    if text.starts_with(TOO_DEEP) {
        return depth();
    }
    let end = text.rfind(" at line ").unwrap_or(text.len());
    if let Some(sign) = text[..end].strip_prefix("unexpected character: `") {
        let sign = sign.trim_end_matches('\'');
        return format!("a text can't begin with {sign}; put it in quotes");
    }
    if text[..end].strip_prefix("invalid ").is_some_and(is_number) {
        return "its tag says that it is a number, but it is not".to_owned();
    }
    let meaning = MEANINGS.iter().find(|(words, _)| text[..end].contains(words));
    meaning.map_or_else(|| text[..end].to_owned(), |(_, meaning)| (*meaning).to_owned())
}

/// Whether the document exceeds a limit; it may be valid then.
pub(super) fn is_limit(error: &Error) -> bool {
    let error = error.without_snippet();
    matches!(error, Error::AliasReplayLimitExceeded { .. } | Error::Budget { .. })
        || error.to_string().starts_with(TOO_DEEP)
}

/// A number type, by its name in Rust.
fn is_number(kind: &str) -> bool {
    kind.starts_with(['i', 'u', 'f']) && kind[1..].chars().all(|char| char.is_ascii_digit())
}

fn limit(breach: &BudgetBreach) -> String {
    if let BudgetBreach::Depth { .. } = breach {
        return depth();
    }
    "it is larger than the limit; make it smaller, or use JSON".to_owned()
}

fn depth() -> String {
    format!("more than {DEPTH_MAX} lists and maps are nested; nest them less deeply")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Jargon of the library that must not appear in messages.
    const JARGON: [&str; 10] = [
        "scalar",
        "parsing",
        "scanning",
        "flow",
        "block mapping",
        "token",
        "indicator",
        "u64",
        "Option<",
        "deserialize",
    ];

    #[test]
    fn a_fault_is_named_in_plain_words() {
        let check = |text: &str, expected: &str| {
            let error = serde_saphyr::from_str::<Value>(text).expect_err(text);
            let message = of(&error);
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!JARGON.iter().any(|word| message.contains(word)), "{text}: {message}");
        };
        check("a: \"b\n", "unclosed quote");
        check("~: b\n", "a key is empty or null");
        check("a: {null: b}\n", "a key is empty or null");
        check("? \n: b\n", "a key is empty or null");
        check("a: 'b\nc: d\n", "unclosed quote");
        check("a: }\n", "a bracket is closed");
        check("a: [b\n  c: d]\n", "`: ` in a text without quotes");
        check("a: [b: c d: e]\n", "lacks a comma");
        check("a: - b\n", "check its indentation");
        check("a: {b: c d: e}\n", "lacks a comma");
        check("a: |\n  b\n c\n", "check its indentation");
        check("a: b\n- c\n", "check its indentation");
        check("a: >-x\n", "the text begins in the next line");
        check("a: \"\\q\"\n", "not a valid escape");
        check("a: \"b\" c\n", "one pair of quotes");
        check("a: @b\n", "a text can't begin with @");
        check("a: %b\n", "a text can't begin with %");
        check("`a`: b\n", "a text can't begin with `");
        check("%YAML 9\n---\na: b\n", "a line that begins with %");
        check("a: !!int x\n", "but it is not");
        check("a: & b\n", "must be in quotes");
        check("a: !<b\n", "must be in quotes");
    }
}
