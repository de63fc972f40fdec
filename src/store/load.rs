//! Loads a session: what can be read of it, in order, up to the first thing that can't.

use super::Roles;
use super::error::StoreError;
use super::sqlite::Sqlite;
use super::states::States;
use super::turn::{Blobs, OpenTurn, hashes_of_step, hashes_of_turn, preamble, turn};
use crate::chat::record::{Loss, Restored, StoredEvent};
use crate::chat::transcript::{Preamble, Turn};
use crate::protocol::any::Any;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::store::{StoredPreamble, StoredStep, StoredTurn};
use prost::Message;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one store has of a session.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The session is in the store.
    pub(super) is_there: bool,
    ordinal: Ordinal,
    turns: u32,
    pub(super) preamble: Preamble,
    pub(super) entities: Vec<SnapshotEntity>,
    pub(super) entities_until: Ordinal,
    tail: Vec<StoredEvent>,
    pub(super) transcript: BTreeMap<u32, Arc<Turn>>,
    /// The turns of the transcript that go on or were cut off.
    pub(super) open_turns: BTreeSet<u32>,
    pub(super) loss: Option<Loss>,
}

/// A session's row.
struct SessionRow {
    key: i64,
    ordinal: Ordinal,
    turns: u32,
    preamble: Vec<u8>,
}

impl Part {
    /// Takes in what another store has.
    pub(super) fn add(&mut self, other: Self) {
        self.ordinal = self.ordinal.max(other.ordinal);
        self.turns = self.turns.max(other.turns);
        if self.preamble == Preamble::default() {
            self.preamble = other.preamble;
        }
        self.entities.extend(other.entities);
        self.entities_until = self.entities_until.max(other.entities_until);
        self.tail.extend(other.tail);
        self.transcript.extend(other.transcript);
        self.open_turns.extend(other.open_turns);
        self.loss = self.loss.take().or(other.loss);
    }

    fn lost(&mut self, reason: String, is_closed: bool) {
        self.loss.get_or_insert(Loss { reason, is_closed });
    }
}

/// The session of these parts.
pub(super) fn restored(session: SessionId, whole: Part) -> Restored {
    Restored {
        session,
        ordinal: whole.ordinal,
        turns: whole.turns,
        preamble: whole.preamble,
        entities: whole.entities,
        entities_until: whole.entities_until,
        tail: whole.tail,
        transcript: whole.transcript.into_values().collect(),
        loss: whole.loss,
    }
}

impl Sqlite {
    pub(super) fn load(&mut self, session: &SessionId, roles: Roles) -> Result<Part, StoreError> {
        let mut part = Part::default();
        if let Some(damage) = &self.damage {
            part.lost(self.damaged(damage), true);
        }
        if self.is_torn {
            let path = self.path.display();
            let reason = format!(
                "the log of the store {path} ends in the middle of a page: what was written last may \
                 be missing"
            );
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
        part.is_there = true;
        (part.ordinal, part.turns) = (row.ordinal, row.turns);
        part.preamble = preamble(StoredPreamble::decode(&*row.preamble)?);
        // Each on its own: what is lost of one need not be lost of the other.
        let turns = if roles.turns { self.turns(row.key, part) } else { Ok(()) };
        let timeline = if roles.timeline { self.timeline(row.key, part) } else { Ok(()) };
        turns.and(timeline)
    }

    fn row(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let sql = "SELECT key, last_ordinal, turns, preamble FROM sessions WHERE id = ?";
        let row = self.connection.query_row(sql, [session.as_str()], |row| {
            Ok(SessionRow {
                key: row.get(0)?,
                ordinal: ordinal(row, 1)?,
                turns: row.get(2)?,
                preamble: row.get(3)?,
            })
        });
        Ok(row.optional()?)
    }

    /// What people see: the states at the ends of runs, and the events after the last of them.
    fn timeline(&self, key: i64, part: &mut Part) -> Result<(), StoreError> {
        let sql = "SELECT ordinal, payload FROM states WHERE session = ? ORDER BY ordinal";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([key])?;
        let mut states = States::default();
        let mut read = Ok(());
        // What was read before a fault counts.
        loop {
            match rows.next() {
                Ok(Some(row)) => states.add(ordinal(row, 0)?, row.get_ref(1)?.as_blob().ok()),
                Ok(None) => break,
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
        states.finish(part)?;
        read?;
        let sql = "SELECT ordinal, turn, call, name, payload FROM events \
                   WHERE session = ? AND ordinal > ? ORDER BY ordinal";
        let mut statement = self.connection.prepare_cached(sql)?;
        let until = i64::try_from(part.entities_until.0).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![key, until])?;
        let mut last = part.entities_until;
        while let Some(row) = rows.next()? {
            let event = event(row)?;
            last = event.ordinal;
            part.tail.push(event);
        }
        if last < part.ordinal {
            let path = self.path.display();
            part.lost(format!("events after {} are missing in the store {path}", last.0), false);
        }
        Ok(())
    }

    /// What the model is sent: the turns that have ended, and the steps of those that were cut off.
    fn turns(&self, key: i64, part: &mut Part) -> Result<(), StoreError> {
        let sql = "SELECT turn, payload FROM turns WHERE session = ? ORDER BY turn";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([key])?;
        let mut blobs = Blobs::new();
        while let Some(row) = rows.next()? {
            let stored = StoredTurn::decode(row.get_ref(1)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_turn(&stored) {
                self.blob(hash, &mut blobs)?;
            }
            part.transcript.insert(row.get(0)?, Arc::new(turn(stored, &blobs)));
        }
        let sql = "SELECT turn, payload FROM steps WHERE session = ? ORDER BY ordinal";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([key])?;
        let mut open: BTreeMap<u32, OpenTurn> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let step = StoredStep::decode(row.get_ref(1)?.as_blob().unwrap_or_default())?;
            for hash in hashes_of_step(&step) {
                self.blob(hash, &mut blobs)?;
            }
            open.entry(row.get(0)?).or_default().add(step);
        }
        part.open_turns = open.keys().copied().collect();
        let cut_off = open.into_iter();
        part.transcript
            .extend(cut_off.map(|(number, open)| (number, Arc::new(turn(open.cut_off(), &blobs)))));
        Ok(())
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

fn event(row: &Row<'_>) -> Result<StoredEvent, StoreError> {
    let turn: Option<u32> = row.get(1)?;
    let call: Option<u32> = row.get(2)?;
    let payload = Any::of_message(&row.get::<_, String>(3)?, row.get(4)?)?;
    Ok(StoredEvent { ordinal: ordinal(row, 0)?, place: turn.zip(call), payload })
}

fn ordinal(row: &Row<'_>, column: usize) -> Result<Ordinal, rusqlite::Error> {
    Ok(Ordinal(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default()))
}
