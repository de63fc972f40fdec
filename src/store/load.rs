//! Loads a session from a file of SQLite: what can be read of it, in order, without what can't.

use super::Roles;
use super::error::StoreError;
use super::part::Part;
use super::rows::{Table, Unread};
use super::sqlite::Sqlite;
use super::states::UnreadStates;
use super::turn::{Blobs, hashes_of_step, hashes_of_turn};
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::{StoredStep, StoredTurn};
use prost::Message;
use rusqlite::OptionalExtension;

/// Before all numbers.
const ANY: i64 = -1;

const STATES: Table = Table { name: "states", number: "ordinal", columns: "payload" };
const EVENTS: &str = "SELECT ordinal, turn, call, name, payload FROM events \
     WHERE session = ? AND ordinal > ? ORDER BY ordinal";
const TURNS: Table = Table { name: "turns", number: "turn", columns: "payload" };
const STEPS: Table = Table { name: "steps", number: "ordinal", columns: "turn, payload" };

/// A session's row.
struct SessionRow {
    key: i64,
    ordinal: i64,
    turns: u32,
    preamble: Vec<u8>,
}

impl Sqlite {
    pub(super) fn load(&mut self, session: &SessionId, roles: Roles) -> Result<Part, StoreError> {
        let mut part = Part::default();
        if let Some(damage) = &self.damage {
            part.lost(self.damaged(damage), true);
        }
        if let Some(loss) = self.log_loss {
            let path = self.path.display();
            let reason =
                format!("the log of the store {path} {loss}: what was written last is missing");
            part.lost(reason, false);
        }
        // All of it as it was at one moment.
        self.connection.execute_batch("BEGIN")?;
        let read = self.read(session, roles, &mut part);
        self.connection.execute_batch("COMMIT").ok();
        match read {
            // Nothing in a damaged file is as it should be.
            Err(error) if error.is_damage() || self.damage.is_some() => {
                part.lost(self.damaged(&error.to_string()), true);
            }
            read => read?,
        }
        Ok(part)
    }

    fn damaged(&self, damage: &str) -> String {
        let path = self.path.display();
        format!(
            "the store {path} is damaged: {damage}; what could be read was loaded, and the file is \
             left as it is"
        )
    }

    fn read(
        &mut self,
        session: &SessionId,
        roles: Roles,
        part: &mut Part,
    ) -> Result<(), StoreError> {
        let Some(row) = self.row(session)? else { return Ok(()) };
        self.key = Some(row.key);
        part.begin(row.ordinal, row.turns, &row.preamble)?;
        // Each on its own: what is lost of one need not be lost of the other.
        let mut unread = Unread::default();
        let turns = if roles.turns { self.turns(row.key, part, &mut unread) } else { Ok(()) };
        let timeline =
            if roles.timeline { self.timeline(row.key, part, &mut unread) } else { Ok(()) };
        if !unread.is_nothing() {
            part.lost(self.damaged(&unread.to_string()), true);
        }
        turns.and(timeline)
    }

    fn row(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let sql = "SELECT key, last_ordinal, turns, preamble FROM sessions WHERE id = ?";
        let row = self.connection.query_row(sql, [session.as_str()], |row| {
            Ok(SessionRow {
                key: row.get(0)?,
                ordinal: row.get(1)?,
                turns: row.get(2)?,
                preamble: row.get(3)?,
            })
        });
        Ok(row.optional()?)
    }

    /// What people see: the states at the ends of runs, and the events after the last of them.
    fn timeline(&self, key: i64, part: &mut Part, unread: &mut Unread) -> Result<(), StoreError> {
        let read = self.each(&STATES, (key, ANY), unread, |row| {
            part.state(row.get(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
            Ok(())
        });
        // What was read before an error counts.
        if let Err(UnreadStates { count, why }) = part.end_states() {
            unread.left_out(count, &why.into());
        }
        read?;
        // Only up to the first that can't be read: without it, those after it say something else.
        let read = self.scan(EVENTS, (key, part.shown_until()), |row| {
            let place: (Option<u32>, Option<u32>) = (row.get(1)?, row.get(2)?);
            Ok(part.event(row.get(0)?, place, &row.get::<_, String>(3)?, row.get(4)?)?)
        });
        match read {
            Err(error) if !error.is_busy() => unread.stopped(&error),
            read => read?,
        }
        // What is damaged is reported as such.
        if unread.is_nothing() {
            part.check_end(&self.path.display());
        }
        Ok(())
    }

    /// What the model is sent: the turns that have ended, and the steps of those that were cut off.
    fn turns(&self, key: i64, part: &mut Part, unread: &mut Unread) -> Result<(), StoreError> {
        let mut blobs = Blobs::new();
        let ended = self.each(&TURNS, (key, ANY), unread, |row| {
            let stored = StoredTurn::decode(row.get_ref(1)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_turn(&stored) {
                self.blob(hash, &mut blobs)?;
            }
            part.turn(row.get(0)?, stored, &blobs);
            Ok(())
        });
        let steps = self.each(&STEPS, (key, ANY), unread, |row| {
            let step = StoredStep::decode(row.get_ref(2)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_step(&step) {
                self.blob(hash, &mut blobs)?;
            }
            part.step(row.get(1)?, step);
            Ok(())
        });
        // Also after an error: turns that were dropped stay dropped.
        part.end_turns(&blobs);
        ended.and(steps)
    }

    /// Reads bytes of an attachment, once.
    fn blob(&self, hash: &str, blobs: &mut Blobs) -> Result<(), StoreError> {
        if blobs.contains_key(hash) {
            return Ok(());
        }
        let sql = "SELECT data FROM blobs WHERE sha256 = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        let data = statement.query_row([hash], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        blobs.insert(hash.to_owned(), data.unwrap_or_default().into());
        Ok(())
    }
}
