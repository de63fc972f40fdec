//! Writes batches of records into a file of SQLite: all of one or nothing.

use super::Roles;
use super::batch::{Batch, Change, RowChanges};
use super::content::Content;
use super::error::StoreError;
use super::joined::joinable;
use super::sqlite::{Sqlite, TRANSACTION_BYTES, now_ms};
use crate::chat::record::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use rusqlite::blob::{Blob, ZeroBlob};
use rusqlite::{MAIN_DB, Params, ToSql, Transaction, TransactionBehavior, params};

const EVENT: &str = "INSERT INTO events(session, ordinal, turn, call, name, payload, at_ms) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?7, ?6)";
const STATE: &str = "INSERT INTO states(session, ordinal, payload) VALUES (?, ?, ?)";
const STEP: &str = "INSERT INTO steps(session, ordinal, turn, payload) VALUES (?, ?, ?, ?)";
const TURN: &str = "INSERT INTO turns(session, turn, ordinal, payload) VALUES (?, ?, ?, ?)";
/// With a timeline in another place, the end of a turn may be stored here and not there. The run is closed
/// when the session goes on, and its turn ends again.
const DROP_TURN: &str =
    "DELETE FROM turns WHERE session = ? AND turn = ? RETURNING length(payload)";
const DROP_STEPS: &str =
    "DELETE FROM steps WHERE session = ? AND turn = ? RETURNING length(payload)";
/// No event before the last state is looked at.
const DROP_PATCHES: &str = "DELETE FROM events WHERE session = ?1 AND turn = ?2 AND name IN ( \
     'pinocchio.chatapp.v1.ChatTextPatch', 'pinocchio.chatapp.v1.ChatReasoningPatch', \
     'pinocchio.chatapp.v1.ChatToolArgumentsPatch') AND ordinal > coalesce( \
     (SELECT max(ordinal) FROM states WHERE session = ?1), 0) RETURNING length(payload)";
const LOOSE: &str = "SELECT loose_states FROM sessions WHERE key = ?";
const LAST_STATES: &str =
    "SELECT ordinal, length(payload) FROM states WHERE session = ? ORDER BY ordinal DESC LIMIT ?";
const STATES_BETWEEN: &str =
    "SELECT payload FROM states WHERE session = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal";
const DROP_STATES: &str = "DELETE FROM states WHERE session = ? AND ordinal BETWEEN ? AND ?";
const BLOB: &str = "INSERT OR IGNORE INTO blobs(sha256, data) VALUES (?, ?)";
const BLOB_OF: &str = "INSERT OR IGNORE INTO session_blobs(session, sha256) VALUES (?, ?)";
const SESSION: &str = "INSERT INTO sessions(id, title, folder, created_ms, updated_ms, \
     last_ordinal, turns, preamble, changed) \
     VALUES (?, '', ?, ?, ?, 0, 0, ?, (SELECT coalesce(max(changed), 0) + 1 FROM sessions))";
const CHANGED: &str = "UPDATE sessions SET updated_ms = max(updated_ms, ?2), \
     changed = CASE WHEN changed < (SELECT max(changed) FROM sessions) \
     THEN (SELECT max(changed) + 1 FROM sessions) ELSE changed END, \
     last_ordinal = max(last_ordinal, ?3), \
     turns = max(turns, ?4), title = CASE \
     WHEN title = '' OR turns <= dropped_turns + ?8 THEN ?5 ELSE title END, \
     bytes = bytes + ?6, loose_states = loose_states + ?7, state_rows = state_rows + ?7, \
     dropped_turns = dropped_turns + ?8, turn_rows = turn_rows + ?9, \
     tail_rows = CASE WHEN ?10 THEN 0 ELSE tail_rows END + ?11, \
     step_rows = CASE WHEN ?12 THEN 0 ELSE step_rows END + ?13, \
     drop_rows = drop_rows + ?14 WHERE key = ?1";
const JOINED: &str =
    "UPDATE sessions SET loose_states = 0, state_rows = state_rows - ?2 WHERE key = ?1";
const DROP_MESSAGE: &str =
    "DELETE FROM session_messages WHERE session = ? AND name = ? RETURNING length(payload)";
const MESSAGE: &str = "INSERT INTO session_messages(session, name, payload) VALUES (?, ?, ?)";

/// Bytes of a content above which no copy of it is made to write it.
const WHOLE_BYTES_MAX: usize = 1024 * 1024;

/// States that are kept each on its own before they are joined: what loading reads grows with one row for
/// so many turns.
const LOOSE_STATES_MAX: i64 = 128;

impl Sqlite {
    /// Writes a batch for a session that was claimed.
    pub(super) fn write(
        &mut self,
        session: &SessionId,
        records: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), StoreError> {
        let batch = Batch::of(records, roles);
        // The end of a turn survives a loss of power, and with it all that was written before.
        self.sync(batch.ends_turn)?;
        let key = match self.key {
            Some(key) => Some(key),
            None => self.find(session)?,
        };
        let behavior = TransactionBehavior::Immediate;
        let Self { connection, fault, .. } = self;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let mut writing = Writing {
            transaction: &transaction,
            fault,
            session: 0,
            at_ms: now_ms(),
            bytes: 0,
            grown: 0,
            replaced: 0,
        };
        writing.session = match key {
            Some(key) => key,
            None => writing.begin(session, &batch, folder)?,
        };
        for change in &batch.changes {
            writing.change(change)?;
        }
        for (name, payload) in &batch.messages {
            writing.message(name, payload)?;
        }
        writing.changed(&batch)?;
        let (key, grown) = (writing.session, writing.grown);
        transaction.commit()?;
        self.key = Some(key);
        self.logged += grown + TRANSACTION_BYTES;
        if batch.ends_turn { self.check_place() } else { Ok(()) }
    }
}

/// A batch on its way into the database.
struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    fault: &'a mut FailPoint,
    session: i64,
    at_ms: i64,
    /// By how much the size of the session changes.
    bytes: i64,
    /// Bytes that are added.
    grown: u64,
    /// Turns that ended before, and end again.
    replaced: i64,
}

impl Writing<'_> {
    /// Runs a statement that writes; gives the number of rows that it changed.
    fn run(&mut self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.step_fault()?;
        Ok(self.transaction.prepare_cached(sql)?.execute(values)?)
    }

    /// Runs a statement that deletes rows and gives the size of each; gives their number.
    fn delete(&mut self, sql: &str, values: impl Params) -> Result<i64, StoreError> {
        self.step_fault()?;
        let mut statement = self.transaction.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            self.bytes -= row.get::<_, i64>(0)?;
            count += 1;
        }
        Ok(count)
    }

    fn step_fault(&mut self) -> Result<(), StoreError> {
        if self.fault.is_tripped() {
            return Err(rusqlite::Error::InvalidParameterName("planted fault".to_owned()).into());
        }
        Ok(())
    }

    fn grows(&mut self, bytes: usize) {
        self.grown += bytes as u64;
        self.bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// Adds the session; gives its row.
    fn begin(
        &mut self,
        session: &SessionId,
        batch: &Batch<'_>,
        folder: &str,
    ) -> Result<i64, StoreError> {
        let at_ms = self.at_ms;
        self.grows(batch.preamble.len());
        self.run(SESSION, (session.as_str(), folder, at_ms, at_ms, &batch.preamble))?;
        Ok(self.transaction.last_insert_rowid())
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), StoreError> {
        let session = self.session;
        match change {
            Change::Event { ordinal, place, content } => {
                let (turn, call) = (place.map(|it| it.0), place.map(|it| it.1));
                let Some((name, payload)) = content.message() else { return Ok(()) };
                let at_ms = self.at_ms;
                let values: [&dyn ToSql; 6] = [&session, ordinal, &turn, &call, &name, &at_ms];
                self.row(EVENT, &values, payload.into_vec())?;
            }
            Change::DropPatches { turn } => {
                self.delete(DROP_PATCHES, (session, turn))?;
            }
            Change::State { ordinal, content } => {
                self.content(("states", STATE), &[&session, ordinal], content)?;
            }
            Change::Step { ordinal, turn, content } => {
                let Some(payload) = content.message() else { return Ok(()) };
                self.row(STEP, &[&session, ordinal, turn], payload.into_vec())?;
            }
            Change::DropSteps { turn } => {
                self.delete(DROP_STEPS, (session, turn))?;
            }
            Change::Turn { ordinal, turn, content } => {
                self.replaced += self.delete(DROP_TURN, (session, turn))?;
                self.content(("turns", TURN), &[&session, turn, ordinal], content)?;
            }
            Change::Blob { sha256, data } => {
                self.blob(sha256, data)?;
                if self.run(BLOB_OF, (session, sha256))? > 0 {
                    self.grows(data.len());
                }
            }
        }
        Ok(())
    }

    /// Adds a row with these values and, as the last, a payload. SQLite copies what it is given and makes a
    /// row of the copy: the payload is freed in between.
    fn row(
        &mut self,
        sql: &str,
        values: &[&dyn ToSql],
        payload: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.step_fault()?;
        self.grows(payload.len());
        let mut statement = self.transaction.prepare_cached(sql)?;
        for (number, value) in (1..).zip(values) {
            statement.raw_bind_parameter(number, value)?;
        }
        statement.raw_bind_parameter(values.len() + 1, &payload)?;
        drop(payload);
        statement.raw_execute()?;
        Ok(())
    }

    /// Adds a row whose last column has a content. A large one is written part by part into its place.
    fn content(
        &mut self,
        (table, sql): (&str, &str),
        numbers: &[&dyn ToSql],
        content: &Content<'_>,
    ) -> Result<(), StoreError> {
        let (mut parts, mut first, mut size) = (content.parts(), Vec::new(), 0);
        while size <= WHOLE_BYTES_MAX
            && let Some(part) = parts.next()
        {
            size += part.size();
            first.push(part);
        }
        if size <= WHOLE_BYTES_MAX {
            let mut whole = Vec::with_capacity(size);
            first.iter().for_each(|part| part.write_to(&mut whole));
            return self.row(sql, numbers, whole);
        }
        drop(first);
        size += parts.map(|part| part.size()).sum::<usize>();
        self.grows(size);
        let zeros = ZeroBlob(size as u64);
        self.run(sql, &*[numbers, &[&zeros as &dyn ToSql]].concat())?;
        let mut place = self.place((table, "payload"))?;
        let mut written = 0;
        for part in content.parts() {
            for piece in part.iter() {
                place.write_all_at(piece, written)?;
                written += piece.len();
            }
        }
        Ok(place.close()?)
    }

    /// Adds bytes that an attachment needs, unless they are there.
    fn blob(&mut self, sha256: &str, data: &[u8]) -> Result<(), StoreError> {
        if data.len() <= WHOLE_BYTES_MAX {
            self.run(BLOB, (sha256, data))?;
            return Ok(());
        }
        if self.run(BLOB, (sha256, ZeroBlob(data.len() as u64)))? > 0 {
            let mut place = self.place(("blobs", "data"))?;
            place.write_all_at(data, 0)?;
            place.close()?;
        }
        Ok(())
    }

    /// The place of the zeros in the row that was added last.
    fn place(&self, (table, column): (&str, &str)) -> Result<Blob<'_>, StoreError> {
        let row = self.transaction.last_insert_rowid();
        Ok(self.transaction.blob_open(MAIN_DB, table, column, row, false)?)
    }

    /// A message that the session has one of, in the place of an earlier one.
    fn message(&mut self, name: &str, payload: &[u8]) -> Result<(), StoreError> {
        self.delete(DROP_MESSAGE, (self.session, name))?;
        self.grows(payload.len());
        self.run(MESSAGE, (self.session, name, payload))?;
        Ok(())
    }

    /// The row of the session.
    fn changed(&mut self, batch: &Batch<'_>) -> Result<(), StoreError> {
        let Batch { last, turns, title, dropped_turns, .. } = batch;
        let RowChanges { turns: turn_rows, states, tail, steps, drops } = batch.rows;
        let (session, at_ms, bytes) = (self.session, self.at_ms, self.bytes);
        let turn_rows = turn_rows - self.replaced;
        let values = params![
            session,
            at_ms,
            last,
            turns,
            title,
            bytes,
            states,
            dropped_turns,
            turn_rows,
            tail.is_reset,
            tail.added,
            steps.is_reset,
            steps.added,
            drops,
        ];
        self.run(CHANGED, values)?;
        if states > 0 { self.join_states() } else { Ok(()) }
    }

    /// Joins the states that were not joined yet, once there are many: the entities of one come after
    /// those of the other, so that a tombstone still comes after what it removes.
    fn join_states(&mut self) -> Result<(), StoreError> {
        let loose: i64 =
            self.transaction.prepare_cached(LOOSE)?.query_row([self.session], |row| row.get(0))?;
        if loose < LOOSE_STATES_MAX {
            return Ok(());
        }
        let mut statement = self.transaction.prepare_cached(LAST_STATES)?;
        let rows =
            statement.query_map((self.session, loose), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut sizes: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
        drop(statement);
        sizes.reverse();
        let mut fewer = 0;
        for group in joinable(&sizes) {
            self.join(group.first().map_or(0, |it| it.0), group.last().map_or(0, |it| it.0))?;
            fewer += i64::try_from(group.len()).unwrap_or(i64::MAX) - 1;
        }
        self.run(JOINED, (self.session, fewer))?;
        Ok(())
    }

    /// Joins the states from one ordinal to another.
    fn join(&mut self, first: i64, last: i64) -> Result<(), StoreError> {
        // Messages of protobuf that follow each other are one message, with the fields of all.
        let mut joined: Vec<u8> = Vec::new();
        let mut statement = self.transaction.prepare_cached(STATES_BETWEEN)?;
        let mut rows = statement.query((self.session, first, last))?;
        while let Some(row) = rows.next()? {
            joined.extend_from_slice(row.get_ref(0)?.as_blob().unwrap_or_default());
        }
        drop(rows);
        drop(statement);
        self.run(DROP_STATES, (self.session, first, last))?;
        self.run(STATE, (self.session, last, joined))?;
        Ok(())
    }
}
