//! Queries on all sessions of a database of PostgreSQL, and the deletion of one.

use super::check_id;
use super::error::PostgresError;
use super::lease::{LeasedSession, Leases};
use super::link::{Statement, Value, begin_reading};
use super::load::small;
use super::pending::quoted;
use super::{Core, Postgres};
use crate::protocol::id::SessionId;
#[cfg(feature = "serve")]
use crate::store::library::Part;
use crate::store::library::Summary;
use crate::store::words;
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// Attempts to delete a session while other sessions begin to use the same attachments.
const DELETIONS_MAX: u32 = 5;

/// Sessions that one statement goes through: those of a large database take longer than one may.
const SESSIONS_AT_ONCE: i64 = 500;

const SUMMARIES: &str =
    "SELECT key, id, title, folder, turns - dropped_turns, created_ms, updated_ms, changed";

/// Bytes of all that is stored of a session. The server goes through its log for that.
const SIZE: &str = "( \
     octet_length(start) \
     + (SELECT coalesce(sum(octet_length(events)), 0) FROM duologue.log WHERE session = key) \
     + (SELECT coalesce(sum(octet_length(data)), 0) FROM duologue.session_blobs \
        JOIN duologue.blobs USING (sha256) WHERE session = key) \
     )::bigint";

/// The sessions after one of them, in the order of their keys.
const NEXT: &str =
    "(SELECT * FROM duologue.sessions WHERE key > $1 ORDER BY key LIMIT $2) AS s ORDER BY key";

/// The sessions of a part of the list. Only these are summed up.
#[cfg(feature = "serve")]
const PART: &str = "(SELECT * FROM duologue.sessions WHERE starts_with(id, $1) = $2 \
     AND (updated_ms < $3 OR updated_ms = $3 AND id COLLATE \"C\" < $4) \
     ORDER BY updated_ms DESC, id COLLATE \"C\" DESC LIMIT $5) AS part";

/// Whether a session has all of the words, has something that is not in the index yet, or its words were split by
/// other rules.
const HAS_WORDS: &str = "s.word_rules <> $4 OR \
     NOT EXISTS (SELECT 1 FROM unnest($3) AS quoted(term) WHERE NOT EXISTS ( \
         SELECT 1 FROM duologue.words w \
         WHERE w.session = s.key AND w.terms @@ quoted.term::tsquery)) \
     OR EXISTS (SELECT 1 FROM duologue.log l WHERE l.session = s.key AND NOT l.sealed)";

/// Attachments of the session. They are deleted with it unless another one has them.
const BLOBS_OF: &str = "SELECT sha256 FROM duologue.session_blobs b \
     JOIN duologue.sessions s ON s.key = b.session WHERE s.id = $1 ORDER BY sha256";

/// The rows of other tables go with it.
const DELETE_SESSION: &str = "DELETE FROM duologue.sessions WHERE id = $1";

const DELETE_BLOBS: &str = "DELETE FROM duologue.blobs WHERE sha256 = ANY($1) AND NOT EXISTS \
     (SELECT 1 FROM duologue.session_blobs b WHERE b.sha256 = blobs.sha256)";

/// The tables that a deletion leaves dead rows in.
const VACUUM: [&str; 5] = [
    "VACUUM duologue.sessions",
    "VACUUM duologue.log",
    "VACUUM duologue.words",
    "VACUUM duologue.session_blobs",
    "VACUUM duologue.blobs",
];

impl Postgres {
    /// All sessions, in no order.
    pub(in crate::store) fn summaries(&mut self) -> Result<Vec<Summary>, PostgresError> {
        self.all_summaries(SIZE)
    }

    /// All sessions, in no order, without their sizes.
    pub(in crate::store) fn titles(&mut self) -> Result<Vec<Summary>, PostgresError> {
        self.all_summaries("0::bigint")
    }

    fn all_summaries(&mut self, size: &str) -> Result<Vec<Summary>, PostgresError> {
        let sql = format!("{SUMMARIES}, {size} FROM {NEXT}");
        Ok(self.all(&sql, &[])?.iter().map(summary).collect())
    }

    /// One session of them.
    pub(in crate::store) fn summary(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Summary>, PostgresError> {
        check_id(session)?;
        let id = session.as_str();
        let found = self.summaries_of("duologue.sessions WHERE id = $1", &[(&id, Type::TEXT)])?;
        Ok(found.into_iter().next())
    }

    /// A part of them, in no order.
    #[cfg(feature = "serve")]
    pub(in crate::store) fn newest(&mut self, part: &Part) -> Result<Vec<Summary>, PostgresError> {
        let Part { prefix, is_prefixed, before: (at, id), max } = part;
        let max = i64::try_from(*max).unwrap_or(i64::MAX);
        let values: [Value<'_>; 5] = [
            (prefix, Type::TEXT),
            (is_prefixed, Type::BOOL),
            (at, Type::INT8),
            (id, Type::TEXT),
            (&max, Type::INT8),
        ];
        self.summaries_of(PART, &values)
    }

    fn summaries_of(
        &mut self,
        which: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Summary>, PostgresError> {
        let Self { core, reactor } = self;
        let sql = format!("{SUMMARIES}, {SIZE} FROM {which}");
        let ask = async |core: &mut Core| {
            let link = core.link().await?;
            // With a time limit: the server would go on for nobody.
            link.run(&begin_reading(0)).await?;
            let rows = link.rows(&sql, values).await?;
            link.run("COMMIT").await?;
            Ok(rows)
        };
        let rows = reactor.run(core.retried(ask))?;
        Ok(rows.iter().map(summary).collect())
    }

    /// The rows of a statement about all sessions, which goes through [`NEXT`] of them; its first column is their keys.
    fn all(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, PostgresError> {
        let Self { core, reactor } = self;
        let ask = async |core: &mut Core| {
            let link = core.link().await?;
            link.run(&begin_reading(0)).await?;
            let (mut all, mut after) = (Vec::new(), i64::MIN);
            loop {
                let rows = {
                    let part: [Value<'_>; 2] =
                        [(&after, Type::INT8), (&SESSIONS_AT_ONCE, Type::INT8)];
                    link.rows(sql, &[&part[..], values].concat()).await?
                };
                let Some(last) = rows.last() else { break };
                after = last.get(0);
                all.extend(rows);
            }
            link.run("COMMIT").await?;
            Ok(all)
        };
        reactor.run(core.retried(ask))
    }

    /// The sessions that may have all of these words: all that have them, and perhaps others.
    pub(in crate::store) fn with_words(
        &mut self,
        terms: &[String],
    ) -> Result<BTreeSet<String>, PostgresError> {
        let terms: Vec<String> = terms.iter().map(|term| quoted(term)).collect();
        let values: [Value<'_>; 2] = [(&terms, Type::TEXT_ARRAY), (&words::RULES, Type::INT8)];
        let rows = self.all(&format!("SELECT key, id, {HAS_WORDS} FROM {NEXT}"), &values)?;
        Ok(rows.iter().filter(|row| row.get(2)).map(|row| row.get(1)).collect())
    }

    /// Deletes a session that was claimed.
    pub(in crate::store) fn delete(&mut self, leased: &LeasedSession) -> Result<(), PostgresError> {
        self.reactor.run(self.core.delete(leased))
    }
}

fn summary(row: &Row) -> Summary {
    Summary {
        id: row.get(1),
        title: row.get(2),
        folder: row.get(3),
        turns: small(row.get(4)),
        created_ms: row.get(5),
        updated_ms: row.get(6),
        changed: row.get(7),
        bytes: u64::try_from(row.get::<_, i64>(8)).unwrap_or_default(),
        store: 0,
    }
}

impl Core {
    async fn delete(&mut self, leased: &LeasedSession) -> Result<(), PostgresError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let deleted = self.delete_once(leased).await;
            let Err(error) = deleted else { break };
            self.link = None;
            // Another session began to use an attachment while it was deleted.
            let is_race = error.has_code(&[SqlState::FOREIGN_KEY_VIOLATION])
                || error.has_code(&[SqlState::T_R_DEADLOCK_DETECTED]);
            if !is_race || attempts >= DELETIONS_MAX {
                return Err(error);
            }
        }
        let link = self.link().await?;
        for vacuum in VACUUM {
            // Only its owner may; the server does it later by itself.
            if let Err(error) = link.run(vacuum).await {
                tracing::debug!(%error, "the space of what was deleted is not freed yet");
                break;
            }
        }
        Ok(())
    }

    async fn delete_once(&mut self, leased: &LeasedSession) -> Result<(), PostgresError> {
        let link = self.link().await?;
        let id = &*leased.session;
        let lease = Leases::of([leased].into_iter());
        let hashes: Vec<String> = {
            let rows = link.rows(BLOBS_OF, &[(&id, Type::TEXT)]).await?;
            rows.iter().map(|row| row.get(0)).collect()
        };
        let statements = [
            lease.held(),
            Statement { sql: DELETE_SESSION, values: vec![(&id, Type::TEXT)] },
            Statement { sql: DELETE_BLOBS, values: vec![(&hashes, Type::TEXT_ARRAY)] },
        ];
        let counts = link.send("SET LOCAL synchronous_commit = on", &statements, 0).await?;
        if counts.first() != Some(&1) {
            return Err(leased.lost(link).await);
        }
        link.run("COMMIT").await
    }
}
