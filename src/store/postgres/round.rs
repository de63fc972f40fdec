//! Batches of several sessions, one of each, as the statements that write them. What most batches are, new rows of
//! the log with their words and a change of the row of the session, is written by three statements for all sessions: a
//! statement costs the server more than a row. Pure.

use super::link::{Statement, Value};
use super::payloads::{Payload, Payloads};
use super::pending::{Pending, Words};
use crate::store::row::NewRow;
use tokio_postgres::types::Type;

const ROWS: &str = "INSERT INTO duologue.log(session, number, first, last, sealed, previous, hash, \
     events) SELECT s.key, it.number, it.first, it.last, it.sealed, it.previous, it.hash, it.events \
     FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
          AS it(session, number, first, last, sealed, previous, hash, events) \
     JOIN duologue.sessions s ON s.id = it.session";
const WORDS: &str = "INSERT INTO duologue.words(session, number, terms) \
     SELECT s.key, it.number, it.terms::tsvector FROM unnest($1, $2, $3) \
          AS it(session, number, terms) JOIN duologue.sessions s ON s.id = it.session";
/// The time of the last write does not go back with the clock, unless it is more than a day ahead: then the clock was
/// wrong before.
const CHANGED: &str = "UPDATE duologue.sessions s SET updated_ms = CASE \
         WHEN it.at_ms > 0 AND s.updated_ms > it.at_ms + 86400000 THEN it.at_ms \
         ELSE greatest(s.updated_ms, it.at_ms) END, \
     changed = CASE WHEN it.is_marked THEN nextval('duologue.fences') ELSE s.changed END, \
     last = greatest(s.last, it.last), \
     turns = greatest(s.turns, it.turns), \
     title = CASE WHEN it.title IS NOT NULL \
             AND (s.title = '' OR s.turns <= s.dropped_turns + it.dropped_turns) \
         THEN it.title ELSE s.title END, \
     dropped_turns = s.dropped_turns + it.dropped_turns, \
     choices = coalesce(it.choices, s.choices), \
     rows = it.rows, head = it.head, writer = it.writer, batch = it.batch \
     FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS it( \
         session, at_ms, is_marked, last, turns, dropped_turns, title, choices, rows, head, writer, \
         batch) \
     WHERE s.id = it.session";

/// Batches of several sessions, one of each.
#[derive(Default)]
pub(super) struct Round<'a> {
    /// The statements that only one batch needs.
    own: Vec<Statement<'a>>,
    words: AllWords<'a>,
    rows: Rows<'a>,
    changes: Changes<'a>,
    /// The server syncs one of them before it confirms it.
    pub(super) is_synced: bool,
    /// About what they take.
    pub(super) bytes: usize,
}

/// Words of rows, column by column.
#[derive(Default)]
struct AllWords<'a> {
    sessions: Vec<&'a str>,
    numbers: Vec<i64>,
    terms: Vec<&'a str>,
}

/// Rows of the log, column by column.
#[derive(Default)]
struct Rows<'a> {
    sessions: Vec<&'a str>,
    numbers: Vec<i64>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    are_sealed: Vec<bool>,
    previous: Vec<&'a [u8]>,
    hashes: Vec<&'a [u8]>,
    events: Payloads,
}

/// Changes of the rows of sessions, column by column.
#[derive(Default)]
struct Changes<'a> {
    sessions: Vec<&'a str>,
    at_ms: Vec<i64>,
    are_marked: Vec<bool>,
    lasts: Vec<i64>,
    turns: Vec<i64>,
    dropped_turns: Vec<i64>,
    titles: Vec<Option<&'a str>>,
    choices: Vec<Option<&'a [u8]>>,
    rows: Vec<i64>,
    heads: Vec<&'a [u8]>,
    writers: Vec<i64>,
    batches: Vec<i64>,
}

impl<'a> Round<'a> {
    /// Adds a batch of a session that has none in it yet, for the lease with this number; `is_there`: the session
    /// has a row.
    pub(super) fn add(&mut self, pending: &'a Pending, fence: i64, is_there: bool) {
        self.own.extend(pending.own_statements(is_there));
        pending.words.iter().for_each(|words| self.words.add(&pending.session, words));
        pending.rows.iter().for_each(|row| self.rows.add(&pending.session, row));
        self.changes.add(pending, fence);
        self.is_synced |= pending.is_synced;
        self.bytes += pending.bytes;
    }

    /// How many batches it has.
    pub(super) fn batches(&self) -> usize {
        self.changes.sessions.len()
    }

    /// The statements that write it. The last one has a row for each of the batches.
    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let mut all = self.own.clone();
        if !self.words.sessions.is_empty() {
            all.push(Statement { sql: WORDS, values: self.words.values() });
        }
        if !self.rows.sessions.is_empty() {
            all.push(Statement { sql: ROWS, values: self.rows.values() });
        }
        all.push(Statement { sql: CHANGED, values: self.changes.values() });
        all
    }
}

impl<'a> AllWords<'a> {
    fn add(&mut self, session: &'a str, Words { number, terms }: &'a Words) {
        self.sessions.push(session);
        self.numbers.push(*number);
        self.terms.push(terms);
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.numbers, Type::INT8_ARRAY),
            (&self.terms, Type::TEXT_ARRAY),
        ]
    }
}

impl<'a> Rows<'a> {
    fn add(&mut self, session: &'a str, row: &'a NewRow) {
        let NewRow { head, hash, events } = row;
        self.sessions.push(session);
        self.numbers.push(head.number);
        self.firsts.push(head.first);
        self.lasts.push(head.last);
        self.are_sealed.push(head.is_sealed);
        self.previous.push(head.previous.as_bytes());
        self.hashes.push(hash.as_bytes());
        self.events.0.push(Payload::Message(events.clone()));
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.numbers, Type::INT8_ARRAY),
            (&self.firsts, Type::INT8_ARRAY),
            (&self.lasts, Type::INT8_ARRAY),
            (&self.are_sealed, Type::BOOL_ARRAY),
            (&self.previous, Type::BYTEA_ARRAY),
            (&self.hashes, Type::BYTEA_ARRAY),
            (&self.events, Type::BYTEA_ARRAY),
        ]
    }
}

impl<'a> Changes<'a> {
    fn add(&mut self, pending: &'a Pending, fence: i64) {
        self.sessions.push(&pending.session);
        self.at_ms.push(pending.at_ms);
        self.are_marked.push(pending.is_marked);
        self.lasts.push(pending.last);
        self.turns.push(pending.turns);
        self.dropped_turns.push(pending.dropped_turns);
        self.titles.push(pending.title.as_deref());
        self.choices.push(pending.choices.as_deref());
        self.rows.push(pending.row_count);
        self.heads.push(&pending.head);
        self.writers.push(fence);
        self.batches.push(pending.number);
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.at_ms, Type::INT8_ARRAY),
            (&self.are_marked, Type::BOOL_ARRAY),
            (&self.lasts, Type::INT8_ARRAY),
            (&self.turns, Type::INT8_ARRAY),
            (&self.dropped_turns, Type::INT8_ARRAY),
            (&self.titles, Type::TEXT_ARRAY),
            (&self.choices, Type::BYTEA_ARRAY),
            (&self.rows, Type::INT8_ARRAY),
            (&self.heads, Type::BYTEA_ARRAY),
            (&self.writers, Type::INT8_ARRAY),
            (&self.batches, Type::INT8_ARRAY),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_all_turns_are_one_statement() {
        let words = |number| Words { number, terms: String::from("'a' 'b'") };
        let pending = |session: &str| {
            let mut pending = Pending::empty(1, Vec::new(), false);
            pending.session = session.to_owned();
            pending.words = (1..=3).map(words).collect();
            pending
        };
        let (one, two) = (pending("one"), pending("two"));
        let mut round = Round::default();
        round.add(&one, 1, true);
        round.add(&two, 2, true);
        let sql: Vec<_> = round.statements().iter().map(|it| it.sql).collect();
        assert_eq!(sql, [WORDS, CHANGED]);
        assert_eq!(round.words.sessions, ["one", "one", "one", "two", "two", "two"]);
        assert_eq!(round.words.numbers, [1, 2, 3, 1, 2, 3]);
    }
}
