//! The known name that a misspelt one is most likely meant to be.

/// Characters of a word that is compared; a longer one is no misspelt name.
const CHARS_MAX: usize = 64;

/// Characters of a word of which one may be wrong.
const CHARS_PER_FAULT: usize = 3;

/// The one of `known` that is most like `word`, if one is like it; the first of several.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let chars = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    if word.chars().nth(CHARS_MAX).is_some() {
        return None;
    }
    let word = chars(word);
    let faults_max = (word.len() / CHARS_PER_FAULT).max(1);
    let compared = known.into_iter().map(|name| (faults(&word, &chars(name)), name));
    let like = compared.filter(|(faults, name)| *faults <= faults_max && *faults < name.len());
    like.min_by_key(|(faults, _)| *faults).map(|(_, name)| name)
}

/// How many characters are missing, too many, wrong, or swapped with the next one (the optimal string alignment
/// distance).
fn faults(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, char) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(char != wanted);
            let mut least = replaced.min(last[column + 1] + 1).min(line[column] + 1);
            let is_swapped =
                row > 0 && column > 0 && one[row - 1] == *wanted && *char == other[column - 1];
            if is_swapped {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied().unwrap_or_default()
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
