//! Words of a conversation, found by SQLite's full-text search (FTS5). The index is in memory, and of
//! one conversation at a time: nothing of what is searched is kept in a file.
//!
//! Texts are split into words here, by `split`, before an index or a database sees them, so that both
//! find the same.

mod split;

use crate::protocol::any::Any;
use crate::protocol::proto::rpc::SnapshotFrame;
use rusqlite::Connection;
use split::{Word, composed, split};
use std::collections::BTreeSet;

/// The rules by which words are split here: a database keeps them with the words.
pub(super) const RULES: i64 = 1;

/// Bytes of a word that a database keeps; PostgreSQL takes up to 2046.
const TERM_BYTES_MAX: usize = 255;

/// Bytes of the words that are kept together; PostgreSQL takes up to a million.
const TERMS_BYTES_MAX: usize = 256 * 1024;

/// Characters that a snippet has before the words, and from there on.
const BEFORE_CHARS_MAX: usize = 30;
const AFTER_CHARS_MAX: usize = 80;

/// An index of texts, which have numbers from 0.
#[derive(Debug)]
pub(crate) struct WordIndex<'a> {
    index: Connection,
    texts: Vec<&'a str>,
}

/// A text in which the words are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) number: usize,
    /// The part of it around the words.
    pub(crate) snippet: String,
}

/// What is indexed are words with spaces between them, which this tokenizer leaves as they are.
const TABLE: &str = "CREATE VIRTUAL TABLE pages USING fts5(words, tokenize = 'ascii')";
const ADD: &str = "INSERT INTO pages(rowid, words) VALUES (?, ?)";
const FIND: &str = "SELECT rowid FROM pages WHERE pages MATCH ? ORDER BY rowid";

/// The words of what is searched in a state, in parts of a limited size.
pub(super) fn terms_of(state: &SnapshotFrame) -> Vec<Vec<String>> {
    let texts = state.entities.iter();
    let texts = texts.filter_map(|entity| text(entity.payload.clone()?.into_whole()));
    let texts: Vec<String> = texts.collect();
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut room = 0;
    for term in terms(texts.iter().map(String::as_str)) {
        if room < term.len() {
            parts.push(Vec::new());
            room = TERMS_BYTES_MAX;
        }
        room -= term.len();
        parts.last_mut().into_iter().for_each(|part| part.push(term.clone()));
    }
    parts
}

/// What is searched of an entity.
fn text(payload: Any) -> Option<String> {
    if let Any::ChatMessageEntity(it) = payload {
        return Some(it.text.clone());
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(it.input.clone());
    }
    let Any::ToolResultEntity(it) = payload else { return None };
    Some(it.result.clone())
}

/// The words in texts, as a database keeps them, each once.
pub(super) fn terms<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut terms = BTreeSet::new();
    for text in texts {
        for mut word in split(&composed(text)) {
            word.term.truncate(word.term.floor_char_boundary(TERM_BYTES_MAX));
            terms.insert(word.term);
        }
    }
    terms.into_iter().collect()
}

impl<'a> WordIndex<'a> {
    /// An index of these texts.
    ///
    /// # Errors
    /// If SQLite reports one, for a person.
    pub(crate) fn new(texts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        Self::filled(texts.collect()).map_err(|error| failed(&error))
    }

    fn filled(texts: Vec<&'a str>) -> Result<Self, rusqlite::Error> {
        let mut index = Connection::open_in_memory()?;
        index.execute_batch(TABLE)?;
        let transaction = index.transaction()?;
        for (number, text) in texts.iter().enumerate() {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            let words = spaced(&split(&composed(text)));
            transaction.prepare_cached(ADD)?.execute((number, words))?;
        }
        transaction.commit()?;
        Ok(Self { index, texts })
    }

    /// The texts in which all of `words` are. What one of them is split into must follow each other.
    ///
    /// # Errors
    /// If SQLite reports one, for a person.
    pub(crate) fn find(&self, words: &[String]) -> Result<Vec<Page>, String> {
        let phrases: Vec<Vec<Word>> = words.iter().map(|word| split(&composed(word))).collect();
        let phrases: Vec<_> = phrases.into_iter().filter(|phrase| !phrase.is_empty()).collect();
        if phrases.is_empty() {
            return Ok(Vec::new());
        }
        // A quoted text has no operators, and a word no quotes.
        let quoted = phrases.iter().map(|phrase| format!("\"{}\"", spaced(phrase)));
        let query = quoted.collect::<Vec<_>>().join(" ");
        let numbers = self.matching(&query).map_err(|error| failed(&error))?;
        let pages = numbers.into_iter().filter_map(|number| {
            let text = self.texts.get(number)?;
            Some(Page { number, snippet: snippet(text, &phrases) })
        });
        Ok(pages.collect())
    }

    fn matching(&self, query: &str) -> Result<Vec<usize>, rusqlite::Error> {
        let mut statement = self.index.prepare_cached(FIND)?;
        let rows = statement.query_map([query], |row| {
            Ok(usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX))
        });
        rows?.collect()
    }
}

/// Words with spaces between them.
fn spaced(words: &[Word]) -> String {
    words.iter().map(|word| word.term.as_str()).collect::<Vec<_>>().join(" ")
}

/// The part of `text` around the first place of one of the phrases.
fn snippet(text: &str, phrases: &[Vec<Word>]) -> String {
    let text = composed(text);
    let words = split(&text);
    let is_at = |at: usize, phrase: &[Word]| {
        let found = words[at..].iter().map(|word| &word.term);
        words.len() - at >= phrase.len() && found.zip(phrase).all(|(one, other)| *one == other.term)
    };
    let found = (0..words.len()).find(|at| phrases.iter().any(|phrase| is_at(*at, phrase)));
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
    let (start, head) = if earliest == 0 { (0, "") } else { (first, "…") };
    let (end, tail) = match last {
        _ if latest == text.len() => (latest, ""),
        Some(word) => (word.end, "…"),
        None => (latest, "…"),
    };
    format!("{head}{}{tail}", &text[start..end])
}

fn failed(error: &rusqlite::Error) -> String {
    format!("the conversations can't be searched: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_a_database_keeps_are_those_that_an_index_finds() {
        let found = terms(["The FOX's Größe", "the ☃ 42"].into_iter());
        assert_eq!(found, ["42", "fox", "grosse", "s", "the"]);
        let long = "é".repeat(4000);
        assert_eq!(terms([long.as_str()].into_iter()), ["e".repeat(TERM_BYTES_MAX)]);
        assert!(terms(["", "☃"].into_iter()).is_empty());
    }

    #[test]
    fn words_are_found_whatever_they_contain() {
        let texts = ["The quick brown fox", "Größe und FOX", "say \"NOT\" AND so on", "東京タワー"];
        let index = WordIndex::new(texts.into_iter()).expect("an index");
        let find = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            let found = index.find(&words).expect("a search");
            found.into_iter().map(|page| page.number).collect::<Vec<_>>()
        };
        assert_eq!(find(&["fox"]), [0, 1]);
        assert_eq!(find(&["fox", "quick"]), [0]);
        assert_eq!(find(&["quick brown"]), [0]);
        assert_eq!(find(&["brown quick"]), [0; 0]);
        assert_eq!(find(&["größe"]), [1]);
        assert_eq!(find(&["京タ"]), [3]);
        assert_eq!(find(&["京ワ"]), [0; 0]);
        for word in ["\"NOT\"", "AND", "not*", "(and", "text:and"] {
            assert!(find(&[word]).len() <= 1, "{word}");
        }
        assert_eq!(find(&["\""]), [0; 0]);
    }

    #[test]
    fn a_snippet_is_the_part_around_the_words() {
        let check = |text: &str, word: &str, expected: &str| {
            let index = WordIndex::new([text].into_iter()).expect("an index");
            let found = index.find(&[word.to_owned()]).expect("a search");
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].snippet, expected);
        };
        check("a short one", "SHORT", "a short one");
        let long = format!("{}needle {}", "before ".repeat(20), "after ".repeat(20));
        let (head, tail) = ("…before before before before ", "needle after after after after ");
        let rest = "after after after after after after after after…";
        check(&long, "needle", &format!("{head}{tail}{rest}"));
        let chinese = format!("{}模型{}", "前".repeat(99), "后".repeat(99));
        let expected = format!("…{}模型{}…", "前".repeat(30), "后".repeat(78));
        check(&chinese, "模型", &expected);
    }
}
