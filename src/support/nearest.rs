//! The known name that a misspelt one is most likely meant to be.

use strsim::osa_distance;

/// Characters of a word that is compared; a longer one is no misspelt name.
const CHARS_MAX: usize = 64;

/// Characters of a word of which one may be wrong.
const CHARS_PER_FAULT: usize = 3;

/// The one of `known` that is most like `word`, if one is like it; the first of several.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().nth(CHARS_MAX).is_some() {
        return None;
    }
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let word = lower(word);
    let faults_max = (word.chars().count() / CHARS_PER_FAULT).max(1);
    // Characters that are missing, too many, wrong, or swapped with the next one.
    let faults = |name: &str| osa_distance(&word, &lower(name));
    let compared = known.into_iter().map(|name| (faults(name), name));
    let like = compared.filter(|(faults, name)| *faults <= faults_max && *faults < name.len());
    like.min_by_key(|(faults, _)| *faults).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_few_faults_is_found() {
        let known = ["prompt", "system-prompt", "settings", "schema", "PATH", "a"];
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, known), expected, "{word}");
        };
        check("prompts", Some("prompt"));
        check("pormpt", Some("prompt"));
        check("sistem-pront", Some("system-prompt"));
        check("Setings", Some("settings"));
        check("PAHT", Some("PATH"));
        check("x", None);
        check("", None);
        check("description", None);
        check(&"prompt".repeat(20), None);
    }
}
