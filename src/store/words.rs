//! Words of a conversation, found by SQLite's full-text search (FTS5). The index is in memory, and of
//! one conversation at a time: nothing of what is searched is kept anywhere.

use rusqlite::Connection;

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
