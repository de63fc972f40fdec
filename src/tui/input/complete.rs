//! What the word before the cursor may become: a command, or the name of a file after `@`. Pure: files are
//! listed elsewhere.

use crate::tui::commands::Name;

/// The text before the cursor that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The beginning of a command, with its slash.
    Command { start: usize, part: String },
    /// The beginning of the name of a profile after `/profile`.
    Profile { start: usize, part: String },
    /// The beginning of a path after `@`.
    File { start: usize, part: String },
}

/// Candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// Where in the text they begin.
    pub(crate) start: usize,
    /// The text that they complete.
    pub(crate) part: String,
    /// Whole words, the best first.
    pub(crate) words: Vec<String>,
    /// So many of the first of them begin with the text: the tab key writes what these have in common.
    begun: usize,
    /// The word that the arrow keys have chosen.
    pub(crate) selected: Option<usize>,
}

impl Completion {
    /// What can be completed at the end of `before`, the text before the cursor.
    pub(crate) fn of(before: &str) -> Option<Self> {
        let is_name = before.starts_with('/') && !before.starts_with("//");
        if is_name && !before.contains(char::is_whitespace) {
            return Some(Self::Command { start: 0, part: before.to_owned() });
        }
        if let Some(part) = before.strip_prefix("/profile ").filter(|part| !part.contains(' ')) {
            return Some(Self::Profile { start: before.len() - part.len(), part: part.to_owned() });
        }
        let last = scanned(before).pop()?;
        let part = &before[last.start..];
        // A name with spaces may have no quotes yet.
        let may_go_on = last.reaches_end || !part.starts_with('"') && !part.contains('\n');
        may_go_on.then(|| Self::File { start: last.start, part: part.to_owned() })
    }
}

impl Candidates {
    pub(crate) fn new(start: usize, part: String, words: Vec<String>) -> Self {
        let begins = |word: &&String| bare(word).starts_with(bare(&part));
        let begun = words.iter().take_while(begins).count();
        Self { start, part, words, begun, selected: None }
    }

    /// Adds words that match the text in another way.
    pub(crate) fn with_others(mut self, others: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(others);
        self
    }

    /// The commands that `part` matches, and the command files of these names, the best first.
    pub(crate) fn commands(start: usize, part: &str, prompts: &[String]) -> Self {
        let own = Name::ALL.into_iter().map(|name| name.as_str().to_owned());
        let names = own.chain(prompts.iter().cloned());
        let pattern = part.trim_start_matches('/');
        let mut found: Vec<_> =
            names.filter_map(|name| Some((fuzzy(pattern, &name)?, format!("/{name}")))).collect();
        found.sort_by_key(|(cost, _)| *cost);
        Self::new(start, part.to_owned(), found.into_iter().map(|(_, word)| word).collect())
    }

    /// What is written in place of the text: the only candidate, with a space after it unless it is a folder, or
    /// what those that begin with the text have in common.
    pub(crate) fn completed(&self) -> Option<String> {
        let mut begun = self.words.iter().take(self.begun);
        let Some(first) = begun.next() else {
            let [only] = self.words.as_slice() else { return None };
            return Some(ended(only));
        };
        let shared = |a: &str, b: &str| {
            let pairs = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
            pairs.map(|(char, _)| char.len_utf8()).sum::<usize>()
        };
        let Some(length) = begun.map(|word| shared(first, word)).min() else {
            return Some(ended(first));
        };
        Some(first[..length].to_owned())
    }

    /// The arrow keys choose another word; false if there is none in that direction.
    pub(crate) fn select(&mut self, forward: bool) -> bool {
        let last = self.words.len().saturating_sub(1);
        self.selected = match (self.selected, forward) {
            (None, false) => return false,
            (None, true) => Some(0),
            (Some(at), true) => Some((at + 1).min(last)),
            (Some(at), false) => at.checked_sub(1),
        };
        true
    }

    /// Chooses the first word that begins with the text, unless the text is a whole word already, or no more than its
    /// first character.
    pub(crate) fn select_begun(&mut self) {
        let part = bare(&self.part);
        let is_whole = self.words.iter().any(|word| bare(word).trim_end_matches('"') == part);
        let begins = self.begun > 0 && !matches!(part, "" | "/");
        if self.selected.is_none() && begins && !is_whole {
            self.selected = Some(0);
        }
    }

    /// The chosen word as it is written.
    pub(crate) fn chosen(&self) -> Option<String> {
        self.words.get(self.selected?).map(|word| ended(word))
    }
}

/// A path without its opening quote.
fn bare(word: &str) -> &str {
    word.strip_prefix('"').unwrap_or(word)
}

/// A word after which the next one begins; a folder goes on.
fn ended(word: &str) -> String {
    if word.ends_with('/') { word.to_owned() } else { format!("{word} ") }
}

/// How far `text` is from `pattern`, in any case; `None` if it lacks one of its characters, in their order. The
/// beginning and then any part of the last name of a path come first, then any part, then scattered characters, the
/// fewer pieces the better.
pub(crate) fn fuzzy(pattern: &str, text: &str) -> Option<usize> {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.starts_with(&pattern) || text.starts_with(&pattern) {
        return Some(0);
    }
    if last.contains(&pattern) {
        return Some(1);
    }
    if text.contains(&pattern) {
        return Some(2);
    }
    let mut chars = text.chars();
    let mut pieces = 2;
    for wanted in pattern.chars() {
        let skipped = chars.position(|char| char == wanted)?;
        pieces += usize::from(skipped > 0);
    }
    Some(pieces)
}

/// Characters before an `@` that begins the name of a file, besides white space.
const OPENING: [char; 9] = ['(', '[', '{', '"', '\'', '`', '“', '‘', '«'];

/// Characters after the name of a file that may belong to the sentence around it.
const CLOSING: [char; 18] =
    ['?', ',', '.', ':', ';', '!', ')', ']', '}', '"', '\'', '`', '”', '’', '»', '…', '。', '、'];

/// A path after `@`.
struct Mention {
    /// Where the path begins, with its quote if it has one.
    start: usize,
    path: String,
    /// The path ends at the end of the text, so that it may be incomplete.
    reaches_end: bool,
}

/// The paths after `@` in a prompt, in order: up to the next white space, or between quotes.
pub(crate) fn mentions(prompt: &str) -> Vec<String> {
    let paths = scanned(prompt).into_iter().map(|mention| mention.path);
    paths.filter(|path| !path.is_empty()).collect()
}

/// The names that a mention may mean, the longest first: punctuation at its end may belong to the sentence.
pub(crate) fn meanings(mention: &str) -> impl Iterator<Item = &str> {
    let names = std::iter::successors(Some(mention), |name| name.strip_suffix(CLOSING));
    names.filter(|name| !name.is_empty())
}

/// A path as it is written after `@`, with quotes if it needs them. A folder stays open for completion.
pub(crate) fn quoted(path: &str, is_quoted: bool) -> String {
    if !is_quoted {
        return path.to_owned();
    }
    let end = if path.ends_with('/') { "" } else { "\"" };
    format!("\"{}{end}", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a path needs quotes.
pub(crate) fn needs_quotes(path: &str) -> bool {
    path.contains(char::is_whitespace) || path.starts_with('"') || path.ends_with(CLOSING)
}

/// What `part`, a path as it is written after `@`, means: quotes and the backslashes in them are removed.
pub(crate) fn unquoted(part: &str) -> String {
    part.strip_prefix('"').map_or_else(|| part.to_owned(), |rest| in_quotes(rest).0)
}

/// The mentions in `text`. All of it is looked at with each key, so what is between them is passed at once.
fn scanned(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut read = 0;
    while let Some(length) = text[read..].find('@') {
        let start = read + length + 1;
        let before = text[read..start - 1].chars().next_back();
        // Right after another mention none begins.
        let may_begin = match before {
            Some(char) => char.is_whitespace() || OPENING.contains(&char),
            None => read == 0,
        };
        read = start;
        if may_begin {
            let (mention, length) = mention(&text[start..], start);
            found.push(mention);
            read += length;
        }
    }
    found
}

/// The mention at the beginning of `rest`, and how much of it is not looked at again.
fn mention(rest: &str, start: usize) -> (Mention, usize) {
    if let Some(quoted) = rest.strip_prefix('"') {
        let (path, end) = in_quotes(quoted);
        // A quote that is not closed may be no quote, so what follows it may be mentions.
        let length = 1 + end.unwrap_or(0);
        return (Mention { start, path, reaches_end: end.is_none() }, length);
    }
    let path = rest.split(char::is_whitespace).next().unwrap_or_default();
    let reaches_end = path.len() == rest.len();
    (Mention { start, path: path.to_owned(), reaches_end }, path.len())
}

/// The text up to the closing quote, and the place after it; `None`: there is none. A backslash makes a quote
/// or a backslash part of the name.
fn in_quotes(text: &str) -> (String, Option<usize>) {
    let mut path = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (path, Some(at + 1)),
            '\\' => {
                let escaped = chars.next_if(|(_, next)| matches!(next, '"' | '\\'));
                path.push(escaped.map_or(char, |(_, next)| next));
            }
            char => path.push(char),
        }
    }
    (path, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is found is what is found by one character after the other.
        #[test]
        fn no_mention_is_overlooked(text in "[@\"ab\\\\( \n]{0,24}") {
            let (mut starts, mut at, mut may_begin) = (Vec::new(), 0, true);
            while let Some(char) = text[at..].chars().next() {
                at += char.len_utf8();
                let begins = char == '@' && may_begin;
                may_begin = !begins && (char.is_whitespace() || OPENING.contains(&char));
                if begins {
                    starts.push(at);
                    at += mention(&text[at..], at).1;
                }
            }
            let found: Vec<_> = scanned(&text).iter().map(|mention| mention.start).collect();
            prop_assert_eq!(found, starts);
        }
    }

    #[test]
    fn commands_and_files_are_completed_where_they_stand() {
        let check =
            |before: &str, expected| assert_eq!(Completion::of(before), expected, "{before}");
        let command = |part: &str| Some(Completion::Command { start: 0, part: part.to_owned() });
        let file = |start, part: &str| Some(Completion::File { start, part: part.to_owned() });
        check("/he", command("/he"));
        check("//he", None);
        check("/model gp", None);
        let profile = |part: &str| Some(Completion::Profile { start: 9, part: part.to_owned() });
        check("/profile ", profile(""));
        check("/profile sm", profile("sm"));
        check("@", file(1, ""));
        check("see @src/ma", file(5, "src/ma"));
        check("see (@ma", file(6, "ma"));
        check("see @\"my no", file(5, "\"my no"));
        check("see @\"my notes\"", None);
        check("see @\"my notes\" and", None);
        check("see @my no", file(5, "my no"));
        check("see @a.txt and @my notes.t", file(16, "my notes.t"));
        check("see @a.txt\nand", None);
        check("mail me@example.com", None);
        check("plain", None);
    }

    #[test]
    fn what_candidates_share_is_completed() {
        let check = |part: &str, words: &[&str], expected: Option<&str>| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let found = Candidates::new(0, part.to_owned(), words);
            assert_eq!(found.completed().as_deref(), expected, "{part}");
        };
        check("x", &[], None);
        check("/h", &["/help"], Some("/help "));
        check("s", &["src/"], Some("src/"));
        check("m", &["main.rs", "main.py"], Some("main."));
        check("", &["é1", "è2"], Some(""));
        check("main", &["main.rs", "src/domain.rs"], Some("main.rs "));
        check("my", &["\"my notes.txt\"", "\"my list.txt\""], Some("\"my "));
        check("mr", &["src/main.rs"], Some("src/main.rs "));
        check("mr", &["src/main.rs", "src/mir.rs"], None);
        // A file in the folder is no reason not to complete the name of the folder.
        let folder = Candidates::new(0, "sub".to_owned(), vec!["sub/".to_owned()]);
        let folder = folder.with_others(["\"sub/my notes.txt\"".to_owned()]);
        assert_eq!(folder.completed().as_deref(), Some("sub/"));
    }

    #[test]
    fn what_matches_better_comes_first() {
        assert_eq!(Candidates::commands(0, "/sa", &[]).words, ["/save"]);
        assert_eq!(Candidates::commands(0, "/", &[]).words.len(), Name::ALL.len());
        let prompts = ["summarize".to_owned()];
        assert_eq!(Candidates::commands(0, "/sum", &prompts).words[..1], ["/summarize"]);
        assert_eq!(Candidates::commands(0, "/e", &[]).words[..2], ["/export", "/edit"]);
        let mut paths = ["src/shell/main.rs", "docs/domain.md", "main.rs", "m/a/i/n", "x.rs"];
        paths.sort_by_key(|path| fuzzy("MAIN", path).unwrap_or(usize::MAX));
        assert_eq!(paths, ["src/shell/main.rs", "main.rs", "docs/domain.md", "m/a/i/n", "x.rs"]);
        assert_eq!(fuzzy("niam", "main"), None);
    }

    #[test]
    fn the_arrow_keys_choose_a_word_or_none() {
        let mut found = Candidates::new(0, String::new(), vec!["a/".to_owned(), "b".to_owned()]);
        assert!(!found.select(false) && found.chosen().is_none());
        assert!(found.select(true));
        assert_eq!(found.chosen().as_deref(), Some("a/"));
        assert!(found.select(true) && found.select(true));
        assert_eq!(found.chosen().as_deref(), Some("b "));
        assert!(found.select(false) && found.select(false) && !found.select(false));
    }

    #[test]
    fn paths_are_found_at_the_start_of_words() {
        let check = |text, expected: &[&str]| assert_eq!(mentions(text), expected, "{text}");
        check("@a.txt and me@b.c, @\"c d.txt\" @", &["a.txt", "c d.txt"]);
        check("(@a.txt) '@b' @\"c @d\"", &["a.txt)", "b'", "c @d"]);
        check(r#"@"say \"hi\" \\ \n.txt"?"#, &[r#"say "hi" \ \n.txt"#]);
        check("@\"open @a", &["open @a", "a"]);
    }

    #[test]
    fn punctuation_after_a_name_may_belong_to_the_sentence() {
        let check = |mention, expected: &[&str]| {
            assert_eq!(meanings(mention).collect::<Vec<_>>(), expected, "{mention}");
        };
        check("a.txt", &["a.txt"]);
        check("a.txt?\")", &["a.txt?\")", "a.txt?\"", "a.txt?", "a.txt"]);
        check("..", &["..", "."]);
    }

    #[test]
    fn a_quoted_path_is_read_as_it_was() {
        for path in ["a b", r#"say "hi"."#, r"a\ b\", "\"x", "dir with space/"] {
            let quoted = quoted(path, needs_quotes(path));
            assert!(quoted.starts_with('"'), "{quoted}");
            assert_eq!(mentions(&format!("@{quoted}")), [path]);
            assert_eq!(unquoted(&quoted), path);
        }
        assert_eq!(quoted("plain.txt", needs_quotes("plain.txt")), "plain.txt");
    }
}
