//! Loads a session from PostgreSQL, as it was at one moment.

use super::Core;
use super::error::PostgresError;
use super::link::{LIMITS, Link};
use crate::protocol::id::SessionId;
use crate::protocol::proto::store::{StoredStep, StoredTurn};
use crate::store::Roles;
use crate::store::part::Part;
use crate::store::turn::{Blobs, hashes_of_step, hashes_of_turn};
use prost::{DecodeError, Message};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

const SESSION: &str =
    "SELECT key, last_ordinal, turns, preamble FROM duologue.sessions WHERE id = $1";
const TURNS: &str = "SELECT turn, payload FROM duologue.turns WHERE session = $1 ORDER BY turn";
const STEPS: &str = "SELECT turn, payload FROM duologue.steps WHERE session = $1 ORDER BY ordinal";
const BLOBS: &str = "SELECT sha256, data FROM duologue.blobs WHERE sha256 = ANY($1)";
const STATES: &str =
    "SELECT ordinal, payload FROM duologue.states WHERE session = $1 ORDER BY ordinal";
const EVENTS: &str = "SELECT ordinal, turn, call, name, payload FROM duologue.events \
     WHERE session = $1 AND ordinal > $2 ORDER BY ordinal";

impl Core {
    pub(super) async fn load(
        &mut self,
        session: &SessionId,
        roles: Roles,
    ) -> Result<Part, PostgresError> {
        let place = self.address.to_string();
        let link = self.link().await?;
        link.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {LIMITS}")).await?;
        let mut part = Part::default();
        let Some(row) = link.row(SESSION, &[(&session.as_str(), Type::TEXT)]).await? else {
            link.run("COMMIT").await?;
            return Ok(part);
        };
        let key: i64 = row.get(0);
        let mut read = part.begin(row.get(1), small(row.get(2)), row.get(3));
        if roles.turns {
            read = read.and(turns(link, key, &mut part).await?);
        }
        if roles.timeline {
            read = read.and(timeline(link, key, &mut part, &place).await?);
        }
        if let Err(error) = read {
            let reason = format!(
                "a message in the store {place} can't be read: {error}; what could be read was loaded, \
                 and nothing is changed in the store"
            );
            part.lost(reason, true);
        }
        link.run("COMMIT").await?;
        self.is_there = true;
        Ok(part)
    }
}

/// What people see: the states at the ends of runs, and the events after the last of them.
async fn timeline(
    link: &Link,
    key: i64,
    part: &mut Part,
    place: &str,
) -> Result<Result<(), DecodeError>, PostgresError> {
    for row in link.rows(STATES, &[(&key, Type::INT8)]).await? {
        part.state(row.get(0), row.get(1));
    }
    let states_read = part.end_states().map_err(|unread| unread.why);
    let until = part.shown_until();
    for row in link.rows(EVENTS, &[(&key, Type::INT8), (&until, Type::INT8)]).await? {
        let number = |column| row.get::<_, Option<i64>>(column).map(small);
        let place = (number(1), number(2));
        if let Err(error) = part.event(row.get(0), place, row.get(3), row.get(4)) {
            return Ok(Err(error));
        }
    }
    if states_read.is_ok() {
        part.check_end(&place);
    }
    Ok(states_read)
}

/// What the model is sent: the turns that have ended, and the steps of those that were cut off.
async fn turns(
    link: &Link,
    key: i64,
    part: &mut Part,
) -> Result<Result<(), DecodeError>, PostgresError> {
    let ended = link.rows(TURNS, &[(&key, Type::INT8)]).await?;
    let (ended, turns_read) = decoded::<StoredTurn>(&ended);
    let steps = link.rows(STEPS, &[(&key, Type::INT8)]).await?;
    let (steps, steps_read) = decoded::<StoredStep>(&steps);
    let of_turns = ended.iter().flat_map(|(_, stored)| hashes_of_turn(stored));
    let of_steps = steps.iter().flat_map(|(_, stored)| hashes_of_step(stored));
    let hashes: BTreeSet<&str> = of_turns.chain(of_steps).collect();
    let hashes: Vec<&str> = hashes.into_iter().collect();
    let blobs = match hashes.as_slice() {
        [] => Blobs::new(),
        _ => blobs(link, &hashes).await?,
    };
    for (number, stored) in ended {
        part.turn(number, stored, &blobs);
    }
    for (number, step) in steps {
        part.step(number, step);
    }
    part.end_turns(&blobs);
    Ok(turns_read.and(steps_read))
}

async fn blobs(link: &Link, hashes: &[&str]) -> Result<Blobs, PostgresError> {
    let rows = link.rows(BLOBS, &[(&hashes, Type::TEXT_ARRAY)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get::<_, Vec<u8>>(1).into())).collect())
}

/// The messages of rows, up to the first that can't be read.
fn decoded<M: Message + Default>(rows: &[Row]) -> (Vec<(u32, M)>, Result<(), DecodeError>) {
    let mut messages = Vec::new();
    for row in rows {
        match M::decode(row.get::<_, &[u8]>(1)) {
            Ok(message) => messages.push((small(row.get(0)), message)),
            Err(error) => return (messages, Err(error)),
        }
    }
    (messages, Ok(()))
}

/// The number of a turn or call, which was written from one of this size.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
