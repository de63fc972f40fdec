//! Words of a conversation, found by SQLite's full-text search (FTS5). The index is in memory, and of
//! one conversation at a time: nothing of what is searched is kept in a file.
//!
//! A database that keeps words of its own, to find the conversations worth searching, keeps the words
//! that FTS5 sees, so that both find the same.

use crate::protocol::any::Any;
use crate::protocol::proto::rpc::SnapshotFrame;
use rusqlite::Connection;

/// Bytes of a word that a database keeps; PostgreSQL takes up to 2046.
const TERM_BYTES_MAX: usize = 255;

/// Bytes of the words that are kept together; PostgreSQL takes up to a million.
const TERMS_BYTES_MAX: usize = 256 * 1024;

/// An index of texts, which have numbers from 0.
#[derive(Debug)]
pub(crate) struct WordIndex(Connection);

/// A text in which the words are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) number: usize,
    /// The part of it around the words.
    pub(crate) snippet: String,
}

const TABLE: &str = "CREATE VIRTUAL TABLE pages USING fts5(text)";
const ADD: &str = "INSERT INTO pages(rowid, text) VALUES (?, ?)";
/// A snippet has at most 16 words.
const FIND: &str = "SELECT rowid, snippet(pages, 0, '', '', '…', 16) FROM pages WHERE pages MATCH ? \
     ORDER BY rowid";

/// All words of the index.
const VOCABULARY: &str = "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, pages, row)";
const TERMS: &str = "SELECT term FROM temp.vocabulary ORDER BY term";

/// The words of what is searched in a state, in parts of a limited size. Words that can't be found are
/// left out.
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

/// The words in texts, as an index sees them, each once.
pub(super) fn terms<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let index = WordIndex::filled(texts);
    let mut terms = index.and_then(|index| index.terms()).unwrap_or_default();
    for term in &mut terms {
        let end =
            (0..=TERM_BYTES_MAX.min(term.len())).rev().find(|end| term.is_char_boundary(*end));
        term.truncate(end.unwrap_or_default());
    }
    terms.dedup();
    terms
}

impl WordIndex {
    /// An index of these texts.
    ///
    /// # Errors
    /// If SQLite reports one, for a person.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        Self::filled(texts).map_err(|error| failed(&error))
    }

    fn filled<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Self, rusqlite::Error> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(TABLE)?;
        let transaction = connection.transaction()?;
        for (number, text) in texts.enumerate() {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            transaction.prepare_cached(ADD)?.execute((number, text))?;
        }
        transaction.commit()?;
        Ok(Self(connection))
    }

    fn terms(&self) -> Result<Vec<String>, rusqlite::Error> {
        self.0.execute_batch(VOCABULARY)?;
        let mut statement = self.0.prepare(TERMS)?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// The texts in which all of `words` are.
    ///
    /// # Errors
    /// If SQLite reports one, for a person.
    pub(crate) fn find(&self, words: &[String]) -> Result<Vec<Page>, String> {
        // A quoted text has no operators.
        let quoted = words.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\"")));
        let query = quoted.collect::<Vec<_>>().join(" ");
        self.matching(&query).map_err(|error| failed(&error))
    }

    fn matching(&self, query: &str) -> Result<Vec<Page>, rusqlite::Error> {
        let mut statement = self.0.prepare_cached(FIND)?;
        let rows = statement.query_map([query], |row| {
            let number = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
            Ok(Page { number, snippet: row.get(1)? })
        });
        rows?.collect()
    }
}

fn failed(error: &rusqlite::Error) -> String {
    format!("the conversations can't be searched: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_index_are_those_that_it_finds() {
        let found = terms(["The FOX's Größe", "the ☃ 42"].into_iter());
        assert_eq!(found, ["42", "fox", "große", "s", "the"]);
        let long = "é".repeat(4000);
        assert_eq!(terms([long.as_str()].into_iter()), ["e".repeat(TERM_BYTES_MAX)]);
        assert!(terms(["", "☃"].into_iter()).is_empty());
    }

    #[test]
    fn words_are_found_whatever_they_contain() {
        let texts = ["The quick brown fox", "Größe und FOX", "say \"NOT\" AND so on"];
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
        for word in ["\"NOT\"", "AND", "not*", "(and", "text:and"] {
            assert!(find(&[word]).len() <= 1, "{word}");
        }
        assert_eq!(find(&["\""]), [0; 0]);
    }
}
