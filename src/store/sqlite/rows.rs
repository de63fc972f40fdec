//! The rows of a log one by one: one that SQLite can't read is left out, and those after it are read.

use super::Sqlite;
use super::load::row_of;
use crate::store::error::StoreError;
use crate::store::reading::Reading;
use rusqlite::{OptionalExtension, Row};

const ROWS: &str = "SELECT number, first, last, sealed, previous, hash, events FROM log \
     WHERE session = ?1 AND number > ?2 ORDER BY number";
const ROW: &str = "SELECT number, first, last, sealed, previous, hash, events FROM log \
     WHERE session = ?1 AND number = ?2";
const NUMBERS: &str = "SELECT number FROM log WHERE session = ?1 AND number > ?2 ORDER BY number";
const NUMBERS_BACK: &str =
    "SELECT number FROM log WHERE session = ?1 AND number > ?2 ORDER BY number DESC";

impl Sqlite {
    /// Gives `reading` the rows of a session in order, and notes those that SQLite can't read.
    ///
    /// # Errors
    /// If SQLite reports one that is no damage.
    pub(super) fn each_row(&self, session: i64, reading: &mut Reading) -> Result<(), StoreError> {
        let mut last = 0;
        let whole = self.scan(ROWS, (session, 0), |row| {
            last = row.get(0)?;
            take(reading, row);
            Ok(())
        });
        let Err(error) = self.allow_damage(whole)? else { return Ok(()) };
        reading.unread().why(&error);
        // SQLite reads nothing after what it can't read; but it finds what it is asked for.
        let mut statement = self.connection.prepare_cached(ROW)?;
        for number in self.numbers((session, last), reading) {
            let taken = statement.query_row((session, number), |row| {
                take(reading, row);
                Ok(())
            });
            if let Err(error) = taken.optional() {
                reading.unread().left_out(1, &error);
            }
        }
        Ok(())
    }

    /// The numbers of the rows after one, in order, as far as they are found from either end.
    fn numbers(&self, place: (i64, i64), reading: &mut Reading) -> Vec<i64> {
        let mut first = Vec::new();
        let from_start = self.scan(NUMBERS, place, |row| {
            first.push(row.get(0)?);
            Ok(())
        });
        if from_start.is_ok() {
            return first;
        }
        reading.unread().has_more = true;
        let until = first.last().copied().unwrap_or(place.1);
        let mut rest: Vec<i64> = Vec::new();
        // What is found before an error counts.
        self.scan(NUMBERS_BACK, (place.0, until), |row| {
            rest.push(row.get(0)?);
            Ok(())
        })
        .ok();
        first.extend(rest.into_iter().rev());
        first
    }

    /// Gives `take` rows in order, up to the first error.
    fn scan(
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

fn take(reading: &mut Reading, row: &Row<'_>) {
    match row_of(row) {
        Ok(row) => reading.row(&row),
        Err(error) => reading.unread().left_out(1, &error),
    }
}
