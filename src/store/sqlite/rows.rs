//! The rows of a log one by one: one that SQLite can't read is left out, and those after it are read.

use super::Sqlite;
use super::load::row_of;
use crate::store::error::StoreError;
use crate::store::reading::Reading;
use rusqlite::Row;
use std::collections::BTreeMap;

const ROWS: &str = "SELECT number, first, last, sealed, previous, hash, events FROM log \
     WHERE session = ?1 AND number > ?2 ORDER BY number";
const ROW: &str = "SELECT number, first, last, sealed, previous, hash, events FROM log \
     WHERE key = ?1 AND number = ?2";

/// Numbers and keys of rows in the index, and in the table itself, each from either end.
const IN_INDEX: [&str; 2] = [
    "SELECT number, key FROM log WHERE session = ?1 AND number > ?2 ORDER BY number",
    "SELECT number, key FROM log WHERE session = ?1 AND number > ?2 ORDER BY number DESC",
];
const IN_TABLE: [&str; 2] = [
    "SELECT number, key FROM log NOT INDEXED WHERE session = ?1 AND number > ?2 ORDER BY key",
    "SELECT number, key FROM log NOT INDEXED WHERE session = ?1 AND number > ?2 ORDER BY key DESC",
];

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
        for (number, key) in self.keys((session, last), reading) {
            let taken = statement.query_row((key, number), |row| {
                take(reading, row);
                Ok(())
            });
            if let Err(error) = taken {
                reading.unread().left_out(1, &error);
            }
        }
        Ok(())
    }

    /// The keys of the rows after one, by their numbers: as far as they are found in the index or in the table, of
    /// which one may be whole.
    fn keys(&self, place: (i64, i64), reading: &mut Reading) -> BTreeMap<i64, i64> {
        let mut keys = BTreeMap::new();
        let mut find = |way: [&str; 2]| {
            way.iter().any(|sql| {
                // What is found before an error counts.
                let found = self.scan(sql, place, |row| {
                    keys.insert(row.get(0)?, row.get(1)?);
                    Ok(())
                });
                found.is_ok()
            })
        };
        let (of_index, of_table) = (find(IN_INDEX), find(IN_TABLE));
        reading.unread().has_more |= !of_index && !of_table;
        keys
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
