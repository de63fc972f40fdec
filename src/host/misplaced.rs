//! Misplaced members of a submit, which look like settings and are none, for people who write clients.
//! Unknown members are ignored, so the answer would come with other settings than its client thinks.

use crate::engine::CallSettings;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Longer lines are not searched: it would cost as much as reading them.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Members of a submit beside the settings of the call.
const CHOICES: [&str; 3] = ["model", "profile", "engine"];

/// A request line, as far as it matters here.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    submit: BTreeMap<Cow<'a, str>, IgnoredAny>,
}

/// The members of the submit in `line` that look like settings and are in the wrong place, and were
/// not in `known` before.
pub(super) fn members(line: &[u8], known: &mut BTreeSet<String>) -> Vec<String> {
    if line.len() > LINE_BYTES_MAX {
        return Vec::new();
    }
    let Ok(Line { submit }) = serde_json::from_slice(line) else { return Vec::new() };
    let names = submit.into_keys().map(Cow::into_owned);
    let is_setting =
        |name: &String| CHOICES.contains(&name.as_str()) || CallSettings::is_name(name);
    names.filter(is_setting).filter(|name| known.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_beside_the_prompt_is_found_once() {
        let mut known = BTreeSet::new();
        let mut check = |line: &str, expected: &[&str]| {
            assert_eq!(members(line.as_bytes(), &mut known), expected, "{line}");
        };
        check(r#"{"submit":{"prompt":"hi","settings":{"temperature":1}}}"#, &[]);
        check(
            r#"{"submit":{"prompt":"hi","temperature":1,"maxTokens":5,"x":1}}"#,
            &["maxTokens", "temperature"],
        );
        check(r#"{"submit":{"prompt":"hi","temperature":1,"model":"m"}}"#, &["model"]);
        check(r#"{"cancel":{"model":"m"}}"#, &[]);
        check("no JSON", &[]);
    }
}
