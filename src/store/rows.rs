//! The rows of a session one by one: one that can't be read is left out, and those after it are read.

use super::error::StoreError;
use super::sqlite::Sqlite;
use rusqlite::{OptionalExtension, Row};
use std::fmt;

/// A table in which each row of a session has a number.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) number: &'static str,
    /// What is read of a row after its number.
    pub(super) columns: &'static str,
}

/// Rows that could not be read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    rows: u64,
    /// There may be more, whose numbers are not known.
    has_more: bool,
    /// The first error, for people.
    why: Option<String>,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_deref().unwrap_or_default();
        match (self.rows, self.has_more) {
            (0, _) => write!(f, "an unknown number of its records can't be read ({why})"),
            (1, false) => write!(f, "one of its records can't be read ({why})"),
            (rows, false) => write!(f, "{rows} of its records can't be read ({why})"),
            (rows, true) => write!(f, "{rows} of its records, or more, can't be read ({why})"),
        }
    }
}

impl Unread {
    pub(super) fn is_nothing(&self) -> bool {
        self.why.is_none()
    }

    fn why(&mut self, error: &StoreError) {
        self.why.get_or_insert_with(|| error.to_string());
    }

    /// Rows that SQLite gave, and whose messages can't be read.
    pub(super) fn left_out(&mut self, rows: u64, error: &StoreError) {
        self.rows += rows;
        self.why(error);
    }

    /// Nothing is read after an error.
    pub(super) fn stopped(&mut self, error: &StoreError) {
        self.has_more = true;
        self.why(error);
    }

    fn note(&mut self, taken: Result<(), StoreError>) {
        if let Err(error) = taken {
            self.left_out(1, &error);
        }
    }
}

impl Sqlite {
    /// Gives `take` the rows of a session after a number, in order, and notes those that it or SQLite
    /// can't read.
    ///
    /// # Errors
    /// If SQLite reports one that is no damage.
    pub(super) fn each(
        &self,
        table: &Table,
        (session, after): (i64, i64),
        unread: &mut Unread,
        mut take: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Table { name, number, columns } = table;
        let select = format!("SELECT {number}, {columns} FROM {name} WHERE session = ?1");
        let mut last = after;
        let in_order = format!("{select} AND {number} > ?2 ORDER BY {number}");
        let whole = self.scan(&in_order, (session, after), |row| {
            last = row.get(0)?;
            unread.note(take(row));
            Ok(())
        });
        match whole {
            Err(error) if self.is_damage(&error) => unread.why(&error),
            whole => return whole,
        }
        // SQLite reads nothing after what it can't read; but it finds what it is asked for.
        let one = format!("{select} AND {number} = ?2");
        let mut statement = self.connection.prepare_cached(&one)?;
        for key in self.numbers(table, (session, last), unread) {
            let taken = statement.query_row((session, key), |row| Ok(take(row))).optional();
            unread.note(taken.map_err(StoreError::from).and_then(|it| it.unwrap_or(Ok(()))));
        }
        Ok(())
    }

    /// Whether it may be that the rest can be read: in a damaged file, after any error.
    fn is_damage(&self, error: &StoreError) -> bool {
        error.is_damage() || self.damage.is_some()
    }

    /// The numbers of the rows after one, in order, as far as they are found from either end.
    fn numbers(&self, table: &Table, place: (i64, i64), unread: &mut Unread) -> Vec<i64> {
        let Table { name, number, .. } = table;
        let sql = format!(
            "SELECT {number} FROM {name} WHERE session = ?1 AND {number} > ?2 ORDER BY {number}"
        );
        let mut first = Vec::new();
        let from_start = self.scan(&sql, place, |row| {
            first.push(row.get(0)?);
            Ok(())
        });
        if from_start.is_ok() {
            return first;
        }
        unread.has_more = true;
        let until = first.last().copied().unwrap_or(place.1);
        let mut rest: Vec<i64> = Vec::new();
        // What is found before an error counts.
        self.scan(&format!("{sql} DESC"), (place.0, until), |row| {
            rest.push(row.get(0)?);
            Ok(())
        })
        .ok();
        first.extend(rest.into_iter().rev());
        first
    }

    /// Gives `take` rows in order, up to the first error.
    pub(super) fn scan(
        &self,
        sql: &str,
        (session, after): (i64, i64),
        mut take: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((session, after))?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }
}
