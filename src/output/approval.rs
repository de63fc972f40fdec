//! Questions about tool calls that a person answers in lines.

use crate::protocol::command::Decision;

/// The call of `tool` that a person is asked about; `server` is empty for a tool of none.
pub(crate) fn request(tool: &str, server: &str, input: &str) -> String {
    let from = if server.is_empty() { String::new() } else { format!(" of {server}") };
    format!("{tool}{from} asks to run with {input}")
}

/// The decision that a line is the word for. The text after a no is its reason.
pub(crate) fn decision(line: &str) -> Option<Decision> {
    let line = line.trim();
    let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Decision::AllowOnce),
        "a" | "always" if rest.is_empty() => Some(Decision::AllowSession),
        "n" | "no" => Some(Decision::Deny { reason: rest.to_owned() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_for_it_is_a_permission() {
        let deny = |reason: &str| Some(Decision::Deny { reason: reason.to_owned() });
        assert_eq!(decision(" Y\n"), Some(Decision::AllowOnce));
        assert_eq!(decision("always\n"), Some(Decision::AllowSession));
        for denied in ["n\n", "no", "n,"] {
            assert_eq!(decision(denied), deny(""), "{denied:?}");
        }
        for denied in ["n Not now.\n", "NO: Not now.", "no, Not now."] {
            assert_eq!(decision(denied), deny("Not now."), "{denied:?}");
        }
        for unknown in ["", "\n", "yy", "maybe", "y n"] {
            assert_eq!(decision(unknown), None, "{unknown:?}");
        }
    }
}
