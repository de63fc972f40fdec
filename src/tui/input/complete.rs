//! What the tab key completes: the names of commands, and of files after `@`. Pure: the files of a folder
//! are listed elsewhere.

use crate::tui::commands::Name;

/// What stands before the cursor and can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The beginning of a command, with its slash.
    Command { start: usize, part: String },
    /// The beginning of a path after `@`.
    File { start: usize, part: String },
}

/// Ways to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// Where in the text they begin.
    pub(crate) start: usize,
    /// Whole words, in order.
    pub(crate) words: Vec<String>,
}

impl Completion {
    /// What can be completed at the end of `before`, the text before the cursor.
    pub(crate) fn of(before: &str) -> Option<Self> {
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Some(Self::Command { start: 0, part: before.to_owned() });
        }
        let start = before.rfind(char::is_whitespace);
        let start =
            start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let part = before[start..].strip_prefix('@')?;
        Some(Self::File { start: start + 1, part: part.to_owned() })
    }
}

impl Candidates {
    /// The commands that begin with `part`.
    pub(crate) fn commands(start: usize, part: &str) -> Self {
        let words = Name::ALL.into_iter().map(|name| format!("/{}", name.as_str()));
        Self { start, words: words.filter(|word| word.starts_with(part)).collect() }
    }

    /// What all of them begin with; with a space after the only one, unless it is a folder.
    pub(crate) fn common(&self) -> Option<String> {
        let first = self.words.first()?;
        if self.words.len() == 1 {
            let end = if first.ends_with('/') { "" } else { " " };
            return Some(format!("{first}{end}"));
        }
        let shared = |a: &str, b: &str| {
            let pairs = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
            pairs.map(|(char, _)| char.len_utf8()).sum::<usize>()
        };
        let length = self.words.iter().map(|word| shared(first, word)).min()?;
        Some(first[..length].to_owned())
    }
}

/// The paths after `@` in a prompt, in order: up to the next white space, or between quotes.
pub(crate) fn mentions(prompt: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_start = true;
    for (at, char) in prompt.char_indices() {
        if char == '@' && is_start {
            let rest = &prompt[at + 1..];
            let path = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => rest.split(char::is_whitespace).next(),
            };
            found.extend(path.filter(|path| !path.is_empty()).map(str::to_owned));
        }
        is_start = char.is_whitespace();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_files_are_completed_where_they_stand() {
        let check =
            |before: &str, expected| assert_eq!(Completion::of(before), expected, "{before}");
        let command = |part: &str| Some(Completion::Command { start: 0, part: part.to_owned() });
        let file = |start, part: &str| Some(Completion::File { start, part: part.to_owned() });
        check("/he", command("/he"));
        check("/model gp", None);
        check("@", file(1, ""));
        check("see @src/ma", file(5, "src/ma"));
        check("mail me@example.com", None);
        check("plain", None);
    }

    #[test]
    fn what_candidates_share_is_completed() {
        let check = |words: &[&str], expected: Option<&str>| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(Candidates { start: 0, words }.common().as_deref(), expected);
        };
        check(&[], None);
        check(&["/help"], Some("/help "));
        check(&["src/"], Some("src/"));
        check(&["main.rs", "main.py"], Some("main."));
        check(&["é1", "è2"], Some(""));
        assert_eq!(Candidates::commands(0, "/sa").words, ["/save"]);
    }

    #[test]
    fn paths_are_found_at_the_start_of_words() {
        assert_eq!(mentions("@a.txt and me@b.c, @\"c d.txt\" @"), ["a.txt", "c d.txt"]);
    }
}
