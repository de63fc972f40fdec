//! Loads a session from PostgreSQL, as it was at one moment.

use super::Core;
use super::error::PostgresError;
use super::link::{LIMITS, Link};
use crate::chat::choices::Choices;
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::{StoredStep, StoredTurn};
use crate::store::Roles;
use crate::store::part::{Part, RowNumbers, SessionRow};
use crate::store::rows::Unread;
use crate::store::states::UnreadStates;
use crate::store::turn::{Blobs, hashes_of_step, hashes_of_turn};
use prost::{DecodeError, Message};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

const SESSION: &str = "SELECT key, last_ordinal, turns, preamble, turn_rows, state_rows, tail_rows, \
     step_rows, drop_rows FROM duologue.sessions WHERE id = $1";
const MESSAGES: &str = "SELECT name, payload FROM duologue.session_messages WHERE session = $1";
const TURNS: &str = "SELECT turn, payload FROM duologue.turns WHERE session = $1 ORDER BY turn";
const STEPS: &str = "SELECT turn, payload FROM duologue.steps WHERE session = $1 ORDER BY ordinal";
const BLOBS: &str = "SELECT sha256, data FROM duologue.blobs WHERE sha256 = ANY($1)";
const STATES: &str =
    "SELECT ordinal, payload FROM duologue.states WHERE session = $1 ORDER BY ordinal";
const STATE_ORDINALS: &str =
    "SELECT ordinal FROM duologue.states WHERE session = $1 ORDER BY ordinal";
const STATE: &str = "SELECT payload FROM duologue.states WHERE session = $1 AND ordinal = $2";
const EVENTS: &str = "SELECT ordinal, turn, call, name, payload FROM duologue.events \
     WHERE session = $1 AND ordinal > $2 ORDER BY ordinal";

impl Core {
    pub(super) async fn load(
        &mut self,
        session: &SessionId,
        roles: Roles,
        mut part: Part,
    ) -> Result<Part, PostgresError> {
        let place = self.address.to_string();
        let link = self.link().await?;
        link.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {LIMITS}")).await?;
        let Some(row) = link.row(SESSION, &[(&session.as_str(), Type::TEXT)]).await? else {
            link.run("COMMIT").await?;
            return Ok(part);
        };
        let key: i64 = row.get(0);
        let mut unread = Unread::default();
        let begun = part.begin(&SessionRow {
            ordinal: row.get(1),
            turns: small(row.get(2)),
            preamble: row.get(3),
            rows: RowNumbers {
                turns: row.get(4),
                states: row.get(5),
                tail: row.get(6),
                steps: row.get(7),
                drops: row.get(8),
            },
        });
        note(&mut unread, begun);
        if roles.turns {
            turns(link, key, &mut part, &mut unread).await?;
        }
        if roles.timeline {
            timeline(link, key, &mut part, &mut unread).await?;
        }
        if unread.is_nothing() {
            if roles.timeline {
                part.check_end(&place);
            }
            part.check_rows(roles, &place);
        } else {
            let reason = format!(
                "the store {place} is damaged: {unread}; what could be read was loaded, and nothing is \
                 changed in the store"
            );
            part.lost(reason, true);
        }
        link.run("COMMIT").await?;
        self.is_there = true;
        Ok(part)
    }
}

impl Core {
    /// What was chosen in a session; `None` if it is not there.
    pub(super) async fn choices(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Choices>, PostgresError> {
        let link = self.link().await?;
        let sql = "SELECT key FROM duologue.sessions WHERE id = $1";
        let Some(row) = link.row(sql, &[(&session.as_str(), Type::TEXT)]).await? else {
            return Ok(None);
        };
        let key: i64 = row.get(0);
        let mut part = Part::default();
        for row in link.rows(MESSAGES, &[(&key, Type::INT8)]).await? {
            note(&mut Unread::default(), part.message(row.get(0), row.get(1)));
        }
        Ok(Some(part.choices))
    }
}

/// Counts a row that can't be read.
fn note(unread: &mut Unread, read: Result<(), DecodeError>) {
    if let Err(error) = read {
        unread.left_out(1, &error.into());
    }
}

/// What people see: the states at the ends of runs, and the events after the last of them.
async fn timeline(
    link: &Link,
    key: i64,
    part: &mut Part,
    unread: &mut Unread,
) -> Result<(), PostgresError> {
    if part.is_search() {
        // One by one: none of them is kept.
        for row in link.rows(STATE_ORDINALS, &[(&key, Type::INT8)]).await? {
            let ordinal: i64 = row.get(0);
            let values = [(&key as _, Type::INT8), (&ordinal as _, Type::INT8)];
            if let Some(row) = link.row(STATE, &values).await? {
                part.state(ordinal, row.get(0));
            }
        }
    } else {
        for row in link.rows(STATES, &[(&key, Type::INT8)]).await? {
            part.state(row.get(0), row.get(1));
        }
    }
    if let Err(UnreadStates { count, why }) = part.end_states() {
        unread.left_out(count, &why.into());
    }
    let until = part.shown_until();
    // Only up to the first that can't be read: without it, those after it say something else.
    for row in link.rows(EVENTS, &[(&key, Type::INT8), (&until, Type::INT8)]).await? {
        let number = |column| row.get::<_, Option<i64>>(column).map(small);
        let place = (number(1), number(2));
        if let Err(error) = part.event(row.get(0), place, row.get(3), row.get(4)) {
            unread.stopped(&error.into());
            break;
        }
    }
    Ok(())
}

/// What the model is sent: the turns that have ended, and the steps of those that were cut off.
async fn turns(
    link: &Link,
    key: i64,
    part: &mut Part,
    unread: &mut Unread,
) -> Result<(), PostgresError> {
    let ended = link.rows(TURNS, &[(&key, Type::INT8)]).await?;
    part.found.turns = i64::try_from(ended.len()).unwrap_or(i64::MAX);
    let ended = decoded::<StoredTurn>(&ended, unread);
    let steps = link.rows(STEPS, &[(&key, Type::INT8)]).await?;
    steps.iter().for_each(|row| part.found_step(small(row.get(0))));
    let steps = decoded::<StoredStep>(&steps, unread);
    let of_turns = ended.iter().flat_map(|(_, stored)| hashes_of_turn(stored));
    let of_steps = steps.iter().flat_map(|(_, stored)| hashes_of_step(stored));
    let hashes: BTreeSet<&str> = of_turns.chain(of_steps).collect();
    let hashes: Vec<&str> = hashes.into_iter().collect();
    let blobs = match hashes.as_slice() {
        [] => Blobs::new(),
        _ => blobs(link, &hashes).await?,
    };
    part.lost_blobs = i64::try_from(hashes.len() - blobs.len()).unwrap_or(i64::MAX);
    for (number, stored) in ended {
        part.turn(number, stored, &blobs);
    }
    for (number, step) in steps {
        part.step(number, step);
    }
    part.end_turns(&blobs);
    for row in link.rows(MESSAGES, &[(&key, Type::INT8)]).await? {
        note(unread, part.message(row.get(0), row.get(1)));
    }
    Ok(())
}

async fn blobs(link: &Link, hashes: &[&str]) -> Result<Blobs, PostgresError> {
    let rows = link.rows(BLOBS, &[(&hashes, Type::TEXT_ARRAY)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get::<_, Vec<u8>>(1).into())).collect())
}

/// The messages of rows, without those that can't be read.
fn decoded<M: Message + Default>(rows: &[Row], unread: &mut Unread) -> Vec<(u32, M)> {
    let decoded = rows.iter().filter_map(|row| match M::decode(row.get::<_, &[u8]>(1)) {
        Ok(message) => Some((small(row.get(0)), message)),
        Err(error) => {
            unread.left_out(1, &error.into());
            None
        }
    });
    decoded.collect()
}

/// The number of a turn or call, which was written from one of this size.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
