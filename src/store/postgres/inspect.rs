//! Whether a session could begin in a database: looks, and changes nothing in it.

use super::error::PostgresError;
use super::link::{Link, Reactor, Value};
use super::process::heartbeat_max_ms;
use super::{Dsn, addressed, schema};
use crate::store::inspection::{HOLDERS_MAX, Inspection, Tables};
use tokio_postgres::types::Type;

/// Why nothing can be written, as far as the server knows it by itself.
const UNWRITABLE: &str = "SELECT CASE \
     WHEN pg_is_in_recovery() THEN 'the server is a standby, which only reads' \
     WHEN current_setting('transaction_read_only')::boolean \
         THEN 'the database is set to read only' \
     WHEN to_regnamespace('duologue') IS NULL \
          AND NOT has_database_privilege(current_database(), 'CREATE') \
         THEN 'the user may not make a schema in it (GRANT CREATE ON DATABASE)' \
     WHEN to_regnamespace('duologue') IS NOT NULL \
          AND NOT has_schema_privilege('duologue', 'USAGE') \
         THEN 'the user may not use its schema duologue (GRANT USAGE ON SCHEMA)' \
     WHEN NOT has_schema_privilege(to_regnamespace('duologue'), 'CREATE') \
          AND NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'duologue') \
         THEN 'the user may not make tables in its schema duologue (GRANT CREATE ON SCHEMA)' END";

/// Why the user can't write the tables, where they exist; NULL if the user can.
/// `migrations`, the list of formats, is only read, and was read before.
const TABLES_UNWRITABLE: &str = "SELECT CASE \
     WHEN EXISTS (SELECT 1 FROM pg_class t, \
              unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed(privilege) \
          WHERE t.relnamespace = 'duologue'::regnamespace AND t.relkind = 'r' \
          AND t.relname <> 'migrations' AND NOT has_table_privilege(t.oid, needed.privilege)) \
         THEN 'the user may not write its tables (GRANT SELECT, INSERT, UPDATE, DELETE ON ALL \
              TABLES IN SCHEMA duologue)' \
     WHEN NOT has_sequence_privilege('duologue.fences', 'USAGE') \
         THEN 'the user may not number its leases (GRANT USAGE ON ALL SEQUENCES IN SCHEMA \
              duologue)' END";

const SESSIONS: &str = "SELECT count(*) FROM duologue.sessions";

/// Each process once, with all sessions that are held.
const HOLDERS: &str = "SELECT sum(count(*)) OVER ()::bigint, p.holder FROM duologue.leases l \
     JOIN duologue.processes p ON p.id = l.process \
     WHERE p.heartbeat_at > clock_timestamp() - $2 * interval '1 millisecond' \
     AND p.heartbeat_at < clock_timestamp() + $2 * interval '1 millisecond' \
     GROUP BY p.id, p.holder ORDER BY p.holder LIMIT $1";

/// Looks whether a session could begin in the database that `dsn` names.
pub(in crate::store) fn inspect(dsn: &Dsn) -> Result<Inspection, PostgresError> {
    let address = addressed(dsn)?;
    let place = address.to_string();
    Reactor::new()?.run(async {
        let link = Link::open(&address).await?;
        check(&link, UNWRITABLE, &place).await?;
        let Some(format) = schema::format(&link, &address).await? else {
            return Ok(Inspection::default());
        };
        check(&link, TABLES_UNWRITABLE, &place).await?;
        let sessions = link.row(SESSIONS, &[]).await?;
        let limit = i64::try_from(HOLDERS_MAX).unwrap_or(i64::MAX);
        let heartbeat = heartbeat_max_ms();
        let values: [Value<'_>; 2] = [(&limit, Type::INT8), (&heartbeat, Type::FLOAT8)];
        let holders = link.rows(HOLDERS, &values).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        let tables = Tables {
            format,
            sessions: sessions.map_or(0, |row| count(row.get(0))),
            held: holders.first().map_or(0, |row| count(row.get(0))),
            holders: holders.iter().map(|row| row.get(1)).collect(),
            ..Tables::default()
        };
        Ok(Inspection { tables: Some(tables), ..Inspection::default() })
    })
}

/// Runs a query that gives the reason why nothing can be written, or NULL.
async fn check(link: &Link, sql: &str, place: &str) -> Result<(), PostgresError> {
    let row = link.row(sql, &[]).await?;
    match row.and_then(|row| row.get::<_, Option<String>>(0)) {
        Some(why) => Err(PostgresError::Unwritable { place: place.to_owned(), why }),
        None => Ok(()),
    }
}
