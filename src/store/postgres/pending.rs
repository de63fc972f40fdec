//! A batch as the statements that write it into PostgreSQL: one for each table, however many rows it
//! has. Pure.

use super::link::{Statement, Value};
use super::payloads::{Payload, Payloads};
use crate::protocol::id::SessionId;
use crate::protocol::pieces::Pieces;
use crate::store::batch::{Batch, Change, RowChanges};
use crate::store::sqlite::now_ms;
use crate::store::words;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

/// The messages of patches, which are removed when their run ends.
static PATCHES: &[&str] = &[
    "pinocchio.chatapp.v1.ChatTextPatch",
    "pinocchio.chatapp.v1.ChatReasoningPatch",
    "pinocchio.chatapp.v1.ChatToolArgumentsPatch",
];

const SESSION: &str = "INSERT INTO duologue.sessions(id, title, folder, created_ms, updated_ms, \
     last_ordinal, turns, preamble, writer, batch, digest, word_rules) \
     VALUES ($1, '', $2, $3, $3, 0, 0, $4, 0, 0, '', $5)";
const EVENTS: &str = "INSERT INTO duologue.events(session, ordinal, turn, call, name, payload, at_ms) \
     SELECT s.key, it.ordinal, it.turn, it.call, it.name, it.payload, $7 \
     FROM duologue.sessions s, \
          unnest($2, $3, $4, $5, $6) AS it(ordinal, turn, call, name, payload) \
     WHERE s.id = $1";
const STATES: &str = "INSERT INTO duologue.states(session, ordinal, payload) \
     SELECT s.key, it.ordinal, it.payload \
     FROM duologue.sessions s, unnest($2, $3) AS it(ordinal, payload) WHERE s.id = $1";
const STEPS: &str = "INSERT INTO duologue.steps(session, ordinal, turn, payload) \
     SELECT s.key, it.ordinal, it.turn, it.payload \
     FROM duologue.sessions s, unnest($2, $3, $4) AS it(ordinal, turn, payload) WHERE s.id = $1";
/// With a timeline in another place, the end of a turn may be stored here and not there. The run is closed
/// when the session goes on, and its turn ends again.
const TURNS: &str = "INSERT INTO duologue.turns(session, ordinal, turn, payload) \
     SELECT s.key, it.ordinal, it.turn, it.payload \
     FROM duologue.sessions s, unnest($2, $3, $4) AS it(ordinal, turn, payload) WHERE s.id = $1 \
     ON CONFLICT (session, turn) DO UPDATE \
     SET ordinal = excluded.ordinal, payload = excluded.payload";
const DROP_STEPS: &str = "DELETE FROM duologue.steps USING duologue.sessions s \
     WHERE s.id = $1 AND steps.session = s.key AND steps.turn = ANY($2)";
/// No event before the last state is looked at.
const DROP_PATCHES: &str = "DELETE FROM duologue.events USING duologue.sessions s \
     WHERE s.id = $1 AND events.session = s.key AND events.turn = ANY($2) \
     AND events.name = ANY($3) AND events.ordinal > coalesce( \
     (SELECT max(st.ordinal) FROM duologue.states st WHERE st.session = s.key), 0)";
const BLOBS: &str = "INSERT INTO duologue.blobs(sha256, data) \
     SELECT * FROM unnest($2, $3) ON CONFLICT DO NOTHING";
const BLOBS_OF: &str = "INSERT INTO duologue.session_blobs(session, sha256) \
     SELECT s.key, it.sha256 FROM duologue.sessions s, unnest($2) AS it(sha256) \
     WHERE s.id = $1 ON CONFLICT DO NOTHING";
const WORDS: &str = "INSERT INTO duologue.words(session, ordinal, terms) \
     SELECT s.key, $2, array_to_tsvector($3) FROM duologue.sessions s WHERE s.id = $1";
const CHANGED: &str = "UPDATE duologue.sessions SET updated_ms = greatest(updated_ms, $2), \
     changed = nextval('duologue.fences'), \
     last_ordinal = greatest(last_ordinal, $3), turns = greatest(turns, $4), \
     title = CASE WHEN title = '' OR turns <= dropped_turns + $9 THEN $5 ELSE title END, \
     writer = $6, batch = $7, digest = $8, \
     dropped_turns = dropped_turns + $9, turn_rows = turn_rows + $10, \
     state_rows = state_rows + $11, \
     tail_rows = CASE WHEN $12 THEN 0 ELSE tail_rows END + $13, \
     step_rows = CASE WHEN $14 THEN 0 ELSE step_rows END + $15, \
     drop_rows = drop_rows + $16 WHERE id = $1";
/// A turn that ended before, and ends again, is one row.
const REPLACED: &str = "UPDATE duologue.sessions s SET turn_rows = turn_rows - \
     (SELECT count(*) FROM duologue.turns t WHERE t.session = s.key AND t.turn = ANY($2)) \
     WHERE id = $1";
const MESSAGES: &str = "INSERT INTO duologue.session_messages(session, name, payload) \
     SELECT s.key, it.name, it.payload \
     FROM duologue.sessions s, unnest($2, $3) AS it(name, payload) WHERE s.id = $1 \
     ON CONFLICT (session, name) DO UPDATE SET payload = excluded.payload";

/// A batch that a crash of the server might still undo.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its place among the batches of the lease, from 1.
    pub(super) number: i64,
    /// A hash of its content: with the number it makes a retried write idempotent.
    pub(super) digest: Vec<u8>,
    /// The server syncs it before it confirms it.
    pub(super) is_synced: bool,
    pub(super) bytes: usize,
    session: String,
    folder: String,
    preamble: Vec<u8>,
    columns: Columns,
    last: i64,
    turns: i64,
    title: String,
    dropped_turns: i64,
    rows: RowChanges,
    /// Names and contents of the messages that the session has one of.
    messages: (Vec<&'static str>, Vec<Vec<u8>>),
    at_ms: i64,
}

/// The rows of a batch, column by column.
#[derive(Debug, Default)]
struct Columns {
    events: Events,
    states: Rows,
    steps: Rows,
    turns: Rows,
    /// Turns whose steps are removed.
    drops: Vec<i64>,
    /// Turns whose patches are removed.
    patch_drops: Vec<i64>,
    hashes: Vec<String>,
    blobs: Payloads,
    words: Vec<Words>,
}

#[derive(Debug, Default)]
struct Events {
    ordinals: Vec<i64>,
    turns: Vec<Option<i64>>,
    calls: Vec<Option<i64>>,
    names: Vec<&'static str>,
    payloads: Payloads,
}

/// Messages that a session has one of, by name.
type Messages = BTreeMap<&'static str, Vec<u8>>;

/// `turns` is empty for states.
#[derive(Debug, Default)]
struct Rows {
    ordinals: Vec<i64>,
    turns: Vec<i64>,
    payloads: Payloads,
}

/// Words of the entities of a state.
#[derive(Debug)]
struct Words {
    ordinal: i64,
    terms: Vec<String>,
}

impl Pending {
    pub(super) fn new(session: &SessionId, number: i64, batch: Batch<'_>, folder: &str) -> Self {
        let Batch { preamble, changes, last, turns, title, ends_turn, .. } = batch;
        let (columns, digest, bytes) = Columns::of(changes, &batch.messages, last);
        Self {
            number,
            digest,
            is_synced: ends_turn,
            bytes,
            session: session.as_str().to_owned(),
            // PostgreSQL has no text with a zero character.
            folder: folder.replace('\0', ""),
            preamble,
            columns,
            last,
            turns: turns.into(),
            title: title.replace('\0', ""),
            dropped_turns: batch.dropped_turns,
            rows: batch.rows,
            messages: batch.messages.into_iter().unzip(),
            at_ms: now_ms(),
        }
    }

    /// Whether it is synced. What is not synced survives a crash of this process; what a crash of the
    /// server undoes of it is written again.
    pub(super) fn durability(&self) -> &'static str {
        match self.is_synced {
            true => "SET LOCAL synchronous_commit = on",
            false => "SET LOCAL synchronous_commit = off",
        }
    }

    /// The statements that write it, for the lease with this number. The last one changes the row of
    /// the session.
    pub(super) fn statements<'a>(&'a self, fence: &'a i64, is_there: bool) -> Vec<Statement<'a>> {
        let Columns { events, states, steps, turns, drops, patch_drops, hashes, blobs, words } =
            &self.columns;
        let mut all = Vec::new();
        let mut add = |sql, values: &[Value<'a>]| {
            let session: Value<'a> = (&self.session, Type::TEXT);
            let values = [&[session], values].concat();
            all.push(Statement { sql, values });
        };
        if !is_there {
            let (folder, preamble) =
                ((&self.folder as _, Type::TEXT), (&self.preamble as _, Type::BYTEA));
            let rules: Value<'a> = (&words::RULES, Type::INT8);
            add(SESSION, &[folder, (&self.at_ms, Type::INT8), preamble, rules]);
        }
        if !patch_drops.is_empty() {
            add(DROP_PATCHES, &[ints(patch_drops), (&PATCHES as _, Type::TEXT_ARRAY)]);
        }
        if !events.ordinals.is_empty() {
            add(EVENTS, &events.values(&self.at_ms));
        }
        if !states.ordinals.is_empty() {
            add(STATES, &[ints(&states.ordinals), payloads(&states.payloads)]);
        }
        for Words { ordinal, terms } in words {
            add(WORDS, &[(ordinal, Type::INT8), (terms, Type::TEXT_ARRAY)]);
        }
        if !drops.is_empty() {
            add(DROP_STEPS, &[ints(drops)]);
        }
        if !turns.turns.is_empty() {
            add(REPLACED, &[ints(&turns.turns)]);
        }
        for (sql, rows) in [(STEPS, steps), (TURNS, turns)] {
            if !rows.ordinals.is_empty() {
                add(sql, &[ints(&rows.ordinals), ints(&rows.turns), payloads(&rows.payloads)]);
            }
        }
        if !hashes.is_empty() {
            let hashes: Value<'a> = (hashes, Type::TEXT_ARRAY);
            add(BLOBS, &[hashes.clone(), payloads(blobs)]);
            add(BLOBS_OF, &[hashes]);
        }
        if !self.messages.0.is_empty() {
            let (names, payloads) = &self.messages;
            add(MESSAGES, &[(names as _, Type::TEXT_ARRAY), (payloads as _, Type::BYTEA_ARRAY)]);
        }
        let RowChanges { turns, states, tail, steps, drops } = &self.rows;
        let changed = [
            (&self.at_ms as _, Type::INT8),
            (&self.last as _, Type::INT8),
            (&self.turns as _, Type::INT8),
            (&self.title as _, Type::TEXT),
            (fence as _, Type::INT8),
            (&self.number as _, Type::INT8),
            (&self.digest as _, Type::BYTEA),
            (&self.dropped_turns as _, Type::INT8),
            (turns as _, Type::INT8),
            (states as _, Type::INT8),
            (&tail.is_reset as _, Type::BOOL),
            (&tail.added as _, Type::INT8),
            (&steps.is_reset as _, Type::BOOL),
            (&steps.added as _, Type::INT8),
            (drops as _, Type::INT8),
        ];
        add(CHANGED, &changed);
        all
    }
}

fn ints(values: &Vec<i64>) -> Value<'_> {
    (values, Type::INT8_ARRAY)
}

fn payloads(values: &Payloads) -> Value<'_> {
    (values, Type::BYTEA_ARRAY)
}

impl Events {
    /// Removes the patches of a turn.
    fn drop_patches(&mut self, turn: u32) {
        let rows = self.turns.iter().zip(&self.names);
        let is_patch = |(of, name): (&Option<i64>, &&str)| {
            *of == Some(i64::from(turn)) && PATCHES.contains(name)
        };
        let kept: Vec<bool> = rows.map(|row| !is_patch(row)).collect();
        retain(&mut self.ordinals, &kept);
        retain(&mut self.turns, &kept);
        retain(&mut self.calls, &kept);
        retain(&mut self.names, &kept);
        retain(&mut self.payloads.0, &kept);
    }

    fn values<'a>(&'a self, at_ms: &'a i64) -> [Value<'a>; 6] {
        [
            ints(&self.ordinals),
            (&self.turns, Type::INT8_ARRAY),
            (&self.calls, Type::INT8_ARRAY),
            (&self.names, Type::TEXT_ARRAY),
            payloads(&self.payloads),
            (at_ms, Type::INT8),
        ]
    }
}

impl Rows {
    fn add(&mut self, ordinal: i64, turn: u32, payload: Pieces) {
        self.ordinals.push(ordinal);
        self.turns.push(turn.into());
        self.payloads.0.push(Payload::Message(payload));
    }

    /// Removes the rows of a turn.
    fn drop_turn(&mut self, turn: u32) {
        let kept: Vec<bool> = self.turns.iter().map(|it| *it != i64::from(turn)).collect();
        retain(&mut self.ordinals, &kept);
        retain(&mut self.turns, &kept);
        retain(&mut self.payloads.0, &kept);
    }
}

fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next().copied().unwrap_or_default());
}

impl Columns {
    /// The columns of these changes, a hash of their content, and their size.
    fn of(changes: Vec<Change<'_>>, messages: &Messages, last: i64) -> (Self, Vec<u8>, usize) {
        let mut columns = Self::default();
        let mut content = Content(Context::new(&SHA256), 0);
        content.add(b"last", last, &Pieces::default());
        for (name, payload) in messages {
            content.add(name.as_bytes(), 0, &Pieces::from(payload.clone()));
        }
        for change in changes {
            columns.add(change, &mut content);
        }
        (columns, content.0.finish().as_ref().to_vec(), content.1)
    }

    fn add(&mut self, change: Change<'_>, content: &mut Content) {
        match change {
            Change::Event { ordinal, place, content: event } => {
                let Some((name, payload)) = event.message() else { return };
                content.add(name.as_bytes(), ordinal, &payload);
                self.events.ordinals.push(ordinal);
                self.events.turns.push(place.map(|(turn, _)| turn.into()));
                self.events.calls.push(place.map(|(_, call)| call.into()));
                self.events.names.push(name);
                self.events.payloads.0.push(Payload::Message(payload));
            }
            Change::DropPatches { turn } => {
                content.add(b"patches", turn.into(), &Pieces::default());
                self.events.drop_patches(turn);
                self.patch_drops.push(turn.into());
            }
            Change::State { ordinal, content: state } => {
                let payload = state.whole();
                content.add(b"state", ordinal, &payload);
                let terms = words::terms_of(state.entities()).into_iter();
                self.words.extend(terms.map(|terms| Words { ordinal, terms }));
                self.states.ordinals.push(ordinal);
                self.states.payloads.0.push(Payload::Message(payload));
            }
            Change::Step { ordinal, turn, content: step } => {
                let Some(payload) = step.message() else { return };
                content.add(b"step", ordinal, &payload);
                self.steps.add(ordinal, turn, payload);
            }
            Change::DropSteps { turn } => {
                content.add(b"drop", turn.into(), &Pieces::default());
                self.steps.drop_turn(turn);
                self.drops.push(turn.into());
            }
            Change::Turn { ordinal, turn, content: ended } => {
                let payload = ended.whole();
                content.add(b"turn", ordinal, &payload);
                self.turns.add(ordinal, turn, payload);
            }
            Change::Blob { sha256, data } => {
                content.add(sha256.as_bytes(), 0, &Pieces::default());
                content.1 += data.len();
                self.hashes.push(sha256);
                self.blobs.0.push(Payload::Data(data));
            }
        }
    }
}

/// The content of a batch: its hash, and its size so far.
struct Content(Context, usize);

impl Content {
    fn add(&mut self, kind: &[u8], number: i64, payload: &Pieces) {
        for part in [kind, &number.to_be_bytes()] {
            self.begin(part.len());
            self.0.update(part);
        }
        self.begin(payload.size());
        payload.iter().for_each(|piece| self.0.update(piece));
    }

    /// A part has its length before it, so that two contents can't look the same.
    fn begin(&mut self, size: usize) {
        self.0.update(&size.to_be_bytes());
        self.1 += size;
    }
}

#[cfg(test)]
mod tests;
