//! Finds words in a text as it is read, without a list of its words: texts may have many megabytes. Pure.

use super::split::{Word, composed, has_no_spaces, split};
use std::collections::VecDeque;
use unicode_normalization::char::is_combining_mark;

/// Characters that a snippet has before the words, and from there on.
const BEFORE_CHARS_MAX: usize = 30;
const AFTER_CHARS_MAX: usize = 80;

/// Bytes of the text on either side of the words of which a snippet is made.
const AROUND_BYTES_MAX: usize = 4 * 1024;

/// Bytes of a text with other characters than ASCII that are split into words at once.
const PART_BYTES: usize = 64 * 1024;

/// What is searched: all of these phrases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phrases(Vec<Phrase>);

/// Words that follow each other.
#[derive(Clone, Debug)]
struct Phrase {
    terms: Vec<String>,
    /// For each number of words that match: how many of them match still if the next word does not (Knuth,
    /// Morris and Pratt).
    fallbacks: Vec<usize>,
}

impl Phrases {
    /// All of `words`. What one of them is split into must follow each other.
    pub(crate) fn new(words: &[String]) -> Self {
        let phrases = words.iter().map(|word| {
            let words = split(&composed(word));
            words.into_iter().map(|word| word.term).collect::<Vec<_>>()
        });
        Self(phrases.filter(|terms| !terms.is_empty()).map(Phrase::new).collect())
    }

    /// The part of `text` around the words, if all are in it.
    pub(crate) fn find(&self, text: &str) -> Option<String> {
        let at = self.place(text)?;
        let mut start = text.floor_char_boundary(at.saturating_sub(AROUND_BYTES_MAX));
        if start > 0 {
            // Not in the middle of a word.
            let space = text[start..at].find(|char: char| char.is_ascii_whitespace());
            start = space.map_or(start, |space| start + space);
        }
        let end = text.ceil_char_boundary((at + AROUND_BYTES_MAX).min(text.len()));
        Some(self.snippet(&text[start..end], (start == 0, end == text.len())))
    }

    /// About where the first of the phrases is.
    fn place(&self, text: &str) -> Option<usize> {
        let mut matching = Matching::new(&self.0);
        for part in Parts(text, 0) {
            if matching.is_complete() {
                break;
            }
            part.each_word(|start, word| matching.word(start.min(text.len()), word));
        }
        matching.is_complete().then_some(matching.first)
    }

    /// The part of `text` around the first place of one of the phrases. `text` may be the first or the last
    /// part of what is searched.
    fn snippet(&self, text: &str, (is_first, is_last): (bool, bool)) -> String {
        let text = composed(text);
        let words = split(&text);
        let is_at = |at: usize, phrase: &Phrase| {
            let found = words[at..].iter().map(|word| &word.term);
            let is_whole = words.len() - at >= phrase.terms.len();
            is_whole && found.zip(&phrase.terms).all(|(one, other)| one == other)
        };
        let found = (0..words.len()).find(|at| self.0.iter().any(|phrase| is_at(*at, phrase)));
        let Some(at) = found.and_then(|at| words.get(at)).map(|word| word.start) else {
            return text.chars().take(AFTER_CHARS_MAX).collect();
        };
        let before = text[..at].char_indices().rev().nth(BEFORE_CHARS_MAX - 1);
        let after = text[at..].char_indices().nth(AFTER_CHARS_MAX);
        // Cut between words.
        let earliest = before.map_or(0, |(start, _)| start);
        let latest = after.map_or(text.len(), |(end, _)| at + end);
        let first = words.iter().find(|word| word.start >= earliest).map_or(at, |word| word.start);
        let last = words.iter().rev().find(|word| word.end <= latest && word.start >= at);
        let (start, head) = if earliest == 0 && is_first { (0, "") } else { (first, "…") };
        let (end, tail) = match last {
            _ if latest == text.len() && is_last => (latest, ""),
            Some(word) => (word.end, "…"),
            None => (latest, "…"),
        };
        format!("{head}{}{tail}", &text[start..end])
    }
}

/// The rest of a text, and how much of it came before. It is read in parts, so that there is no list of all
/// its words.
struct Parts<'a>(&'a str, usize);

/// A part of a text: words of ASCII, and what follows them.
struct Part<'a> {
    at: usize,
    ascii: &'a str,
    other: &'a str,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let Self(text, at) = *self;
        if text.is_empty() {
            return None;
        }
        let (ascii, rest) = text.split_at(ascii_words_end(text));
        let (other, rest) = rest.split_at(part_end(rest));
        *self = Self(rest, at + ascii.len() + other.len());
        Some(Part { at, ascii, other })
    }
}

impl Part<'_> {
    /// Gives `take` the words, each with about its place. Those of ASCII have capitals.
    fn each_word(&self, mut take: impl FnMut(usize, &str)) {
        let Self { at, ascii, other } = self;
        each_ascii_word(ascii, |start, word| take(at + start, word));
        for Word { start, term, .. } in split(&composed(other)) {
            take(at + ascii.len() + start, &term);
        }
    }
}

/// Gives `take` the words of a text by which it is searched.
pub(super) fn each_term(text: &str, mut take: impl FnMut(&str)) {
    for part in Parts(text, 0) {
        part.each_word(|_, word| match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => take(&word.to_ascii_lowercase()),
            false => take(word),
        });
    }
}

impl Phrase {
    fn new(terms: Vec<String>) -> Self {
        let mut fallbacks = vec![0];
        let mut matched = 0;
        for term in terms.iter().skip(1) {
            while matched > 0 && terms[matched] != *term {
                matched = fallbacks[matched - 1];
            }
            matched += usize::from(terms[matched] == *term);
            fallbacks.push(matched);
        }
        Self { terms, fallbacks }
    }

    /// How many words match after the next word, if so many matched before it.
    fn next(&self, mut matched: usize, word: &str) -> usize {
        loop {
            // What is searched has no capitals.
            if self.terms[matched].eq_ignore_ascii_case(word) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.fallbacks[matched - 1];
        }
    }
}

/// A search that goes on: how many words of each phrase match so far.
struct Matching<'a> {
    phrases: Vec<(&'a Phrase, usize)>,
    /// Where the last words begin, as many as the longest phrase has.
    starts: VecDeque<usize>,
    longest: usize,
    /// Phrases that were not found yet.
    missing: usize,
    /// Where the first of those begins that were found.
    first: usize,
}

impl<'a> Matching<'a> {
    fn new(phrases: &'a [Phrase]) -> Self {
        let longest = phrases.iter().map(|phrase| phrase.terms.len()).max().unwrap_or_default();
        let missing = phrases.len();
        let phrases = phrases.iter().map(|phrase| (phrase, 0)).collect();
        Self { phrases, starts: VecDeque::new(), longest, missing, first: usize::MAX }
    }

    /// Every phrase was found; where there is none, nothing ever is.
    fn is_complete(&self) -> bool {
        self.missing == 0 && !self.phrases.is_empty()
    }

    fn word(&mut self, start: usize, word: &str) {
        if self.starts.len() == self.longest {
            self.starts.pop_front();
        }
        self.starts.push_back(start);
        for (phrase, matched) in &mut self.phrases {
            let length = phrase.terms.len();
            if *matched == length {
                continue;
            }
            *matched = phrase.next(*matched, word);
            if *matched == length {
                self.missing -= 1;
                let begin =
                    self.starts.len().checked_sub(length).and_then(|at| self.starts.get(at));
                self.first = self.first.min(begin.copied().unwrap_or(start));
            }
        }
    }
}

/// The end of the words at the beginning of `text` that are ASCII, whatever follows them.
fn ascii_words_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let Some(other) = bytes.iter().position(|byte| !byte.is_ascii()) else { return text.len() };
    // The last of them may go on with what follows.
    let last = bytes[..other].iter().rposition(|byte| !byte.is_ascii_alphanumeric());
    last.map_or(0, |last| last + 1)
}

/// The end of the first part of `text` that is split into words by itself: words never go on after it.
fn part_end(text: &str) -> usize {
    let mut before = '\0';
    for (at, char) in text.char_indices() {
        let ends = char.is_ascii_whitespace()
            || at >= PART_BYTES && (is_no_word(before) || stands_alone(char) || is_no_word(char));
        if ends && at > 0 {
            return at;
        }
        before = char;
    }
    text.len()
}

fn is_no_word(char: char) -> bool {
    char.is_ascii() && !char.is_ascii_alphanumeric()
}

/// A letter that is a word, and that is no part of the letter before it as those of Korean are.
fn stands_alone(char: char) -> bool {
    has_no_spaces(char) && !is_combining_mark(char) && !matches!(char, '\u{1100}'..='\u{11ff}')
}

/// Gives `take` the words of a text of ASCII, each with its place.
fn each_ascii_word(text: &str, mut take: impl FnMut(usize, &str)) {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(start) = bytes[end..].iter().position(u8::is_ascii_alphanumeric) {
        let start = end + start;
        let length = bytes[start..].iter().position(|byte| !byte.is_ascii_alphanumeric());
        end = length.map_or(bytes.len(), |length| start + length);
        take(start, &text[start..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn phrases(words: &[&str]) -> Phrases {
        Phrases::new(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_found_whatever_they_contain() {
        let texts = ["The quick brown fox", "Größe und FOX", "say \"NOT\" AND so on", "東京タワー"];
        let find = |words: &[&str]| {
            let phrases = phrases(words);
            let found = (0..).zip(texts).filter(|(_, text)| phrases.find(text).is_some());
            found.map(|(number, _)| number).collect::<Vec<u32>>()
        };
        assert_eq!(find(&["fox"]), [0, 1]);
        assert_eq!(find(&["fox", "quick"]), [0]);
        assert_eq!(find(&["quick brown"]), [0]);
        assert_eq!(find(&["brown quick"]), [0; 0]);
        assert_eq!(find(&["größe"]), [1]);
        assert_eq!(find(&["京タ"]), [3]);
        assert_eq!(find(&["京ワ"]), [0; 0]);
        assert_eq!(find(&["own"]), [0; 0]);
        for word in ["\"NOT\"", "AND", "not*", "(and", "text:and"] {
            assert!(find(&[word]).len() <= 1, "{word}");
        }
        assert_eq!(find(&["\""]), [0; 0]);
        assert_eq!(find(&[]), [0; 0]);
    }

    #[test]
    fn a_snippet_is_the_part_around_the_words() {
        let check = |text: &str, word: &str, expected: &str| {
            assert_eq!(phrases(&[word]).find(text).as_deref(), Some(expected), "{text}");
        };
        check("a short one", "SHORT", "a short one");
        let (head, tail) = ("…before before before before ", "needle after after after after ");
        let rest = "after after after after after after after after…";
        for many in [20, 20_000] {
            let long = format!("{}needle {}", "before ".repeat(many), "after ".repeat(many));
            check(&long, "needle", &format!("{head}{tail}{rest}"));
        }
        for many in [99, 99_000] {
            let chinese = format!("{}模型{}", "前".repeat(many), "后".repeat(many));
            let expected = format!("…{}模型{}…", "前".repeat(30), "后".repeat(78));
            check(&chinese, "模型", &expected);
        }
    }

    /// What is a word does not depend on where a text is cut into parts, and a phrase may begin again in
    /// itself.
    #[test]
    fn a_search_finds_what_a_list_of_all_words_has() {
        let piece = prop::sample::select(vec![
            "a",
            "b",
            "a b",
            "A",
            "é",
            "e\u{301}",
            "\u{301}",
            "ß",
            "東",
            "京",
            "각",
            "\u{1100}\u{1161}",
            "\u{ad}",
            " ",
            "\n",
            ".",
            "_",
            "☃",
            "ｶﾞ",
            "9",
            "<\u{338}",
        ]);
        let text = |max| prop::collection::vec(piece.clone(), 0..max).prop_map(|it| it.concat());
        proptest!(|(long in text(30), word in text(5))| {
            let terms = |text: &str| {
                split(&composed(text)).into_iter().map(|word| word.term).collect::<Vec<_>>()
            };
            let (all, wanted) = (terms(&long), terms(&word));
            let expected = !wanted.is_empty() && all.windows(wanted.len()).any(|it| it == wanted);
            let mut each = Vec::new();
            each_term(&long, |term| each.push(term.to_owned()));
            prop_assert_eq!(&each, &all, "{:?}", long);
            let found = phrases(&[&word]).find(&long);
            prop_assert_eq!(found.is_some(), expected, "{:?} in {:?}", word, long);
        });
    }
}
