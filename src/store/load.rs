//! Loads a session from a file of SQLite: what can be read of it, in order, without what can't.

use super::Roles;
use super::error::StoreError;
use super::part::{Part, RowNumbers, SessionRow};
use super::rows::{Table, Unread};
use super::sqlite::Sqlite;
use super::states::UnreadStates;
use super::turn::{Blobs, hashes_of_step, hashes_of_turn};
use crate::chat::choices::Choices;
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

const SESSION: &str = "SELECT key, last_ordinal, turns, preamble, turn_rows, state_rows, tail_rows, \
     step_rows, drop_rows FROM sessions WHERE id = ?";
const MESSAGES: &str = "SELECT name, payload FROM session_messages WHERE session = ?";

impl Sqlite {
    pub(super) fn load(&mut self, session: &SessionId, roles: Roles) -> Result<Part, StoreError> {
        self.load_into(session, roles, Part::default())
    }

    /// Loads into `part`, which may be one that is searched.
    pub(super) fn load_into(
        &mut self,
        session: &SessionId,
        roles: Roles,
        mut part: Part,
    ) -> Result<Part, StoreError> {
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

    pub(super) fn damaged(&self, damage: &str) -> String {
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
        let Some(key) = self.row(session, part)? else { return Ok(()) };
        self.key = Some(key);
        // Each on its own: what is lost of one need not be lost of the other.
        let mut unread = Unread::default();
        let turns = if roles.turns { self.turns(key, part, &mut unread) } else { Ok(()) };
        let timeline = if roles.timeline { self.timeline(key, part, &mut unread) } else { Ok(()) };
        if unread.is_nothing() {
            part.check_rows(roles, &self.path.display());
        } else {
            part.lost(self.damaged(&unread.to_string()), true);
        }
        turns.and(timeline)
    }

    /// Reads the row of the session; gives its key.
    fn row(&self, session: &SessionId, part: &mut Part) -> Result<Option<i64>, StoreError> {
        let mut statement = self.connection.prepare_cached(SESSION)?;
        let mut rows = statement.query([session.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        part.begin(&SessionRow {
            ordinal: row.get(1)?,
            turns: row.get(2)?,
            preamble: row.get_ref(3)?.as_blob().unwrap_or_default(),
            rows: RowNumbers {
                turns: row.get(4)?,
                states: row.get(5)?,
                tail: row.get(6)?,
                steps: row.get(7)?,
                drops: row.get(8)?,
            },
        })?;
        Ok(Some(row.get(0)?))
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
        let mut lost_blobs = 0;
        let ended = self.each(&TURNS, (key, ANY), unread, |row| {
            part.found.turns += 1;
            let stored = StoredTurn::decode(row.get_ref(1)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_turn(&stored) {
                lost_blobs += self.blob(hash, &mut blobs)?;
            }
            part.turn(row.get(0)?, stored, &blobs);
            Ok(())
        });
        let steps = self.each(&STEPS, (key, ANY), unread, |row| {
            part.found_step(row.get(1)?);
            let step = StoredStep::decode(row.get_ref(2)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_step(&step) {
                lost_blobs += self.blob(hash, &mut blobs)?;
            }
            part.step(row.get(1)?, step);
            Ok(())
        });
        // Also after an error: turns that were dropped stay dropped.
        part.end_turns(&blobs);
        part.lost_blobs = lost_blobs;
        ended.and(steps).and(self.messages(key, part, unread))
    }

    /// What was chosen in a session; `None` if it is not there.
    pub(super) fn choices(&mut self, session: &SessionId) -> Result<Option<Choices>, StoreError> {
        let Some(key) = self.find(session)? else { return Ok(None) };
        let mut part = Part::default();
        self.messages(key, &mut part, &mut Unread::default())?;
        Ok(Some(part.choices))
    }

    /// The messages that the session has one of.
    fn messages(&self, key: i64, part: &mut Part, unread: &mut Unread) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(MESSAGES)?;
        let mut rows = statement.query([key])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let payload = row.get_ref(1)?.as_blob().unwrap_or_default();
            if let Err(error) = part.message(&name, payload) {
                unread.left_out(1, &error.into());
            }
        }
        Ok(())
    }

    /// Reads bytes of an attachment, once; gives how many there were not.
    fn blob(&self, hash: &str, blobs: &mut Blobs) -> Result<i64, StoreError> {
        if blobs.contains_key(hash) {
            return Ok(0);
        }
        let sql = "SELECT data FROM blobs WHERE sha256 = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        let data = statement.query_row([hash], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let lost = i64::from(data.is_none());
        blobs.insert(hash.to_owned(), data.unwrap_or_default().into());
        Ok(lost)
    }
}
