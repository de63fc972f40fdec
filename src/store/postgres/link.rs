//! A connection to a PostgreSQL server. Everything that is asked over it has a time limit, and every
//! statement is unnamed, as a pooler between us and the server may give each transaction another
//! connection.

use super::address::{Address, Server};
use super::error::PostgresError;
use super::tls::Connector;
use futures_util::future::try_join_all;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, Row};
use uuid::Uuid;

/// How long a connection may take to be made, unless the address says it.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a connection may take to be made where another server is tried after it: a process that holds a session
/// must be connected again before its lease ends.
const CONNECT_EARLIER_MAX: Duration = Duration::from_secs(3);

/// How long an answer may take. The server gives up a little earlier, so that it reports why.
const ANSWER_MAX: Duration = Duration::from_secs(11);

/// Bytes that are sent or received in a second at least: what is large may take longer.
const BYTES_PER_SECOND_MIN: u64 = 128 * 1024;

/// Bytes of values up to which statements are sent without waiting for an answer between them. More are copied
/// one statement after the other.
const AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

/// How much earlier that is.
const SERVER_EARLIER: Duration = Duration::from_secs(1);

/// How long a transaction of a process that was stopped or has lost its connection keeps its locks.
const IDLE_LIMIT: &str = "SET LOCAL idle_in_transaction_session_timeout = 10000; ";

/// How long an answer may take if so many bytes are sent or expected.
fn answer_max(bytes: usize) -> Duration {
    let seconds = u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_SECOND_MIN;
    ANSWER_MAX + Duration::from_secs(seconds)
}

/// How long the server works on one statement of a transaction. It counts from the first part of the statement to
/// the last part of its answer, so what is on the way in between is in it.
pub(super) fn work_limit(bytes: usize) -> String {
    let limit = answer_max(bytes).saturating_sub(SERVER_EARLIER);
    format!("SET LOCAL statement_timeout = {}; ", limit.as_millis())
}

/// Begins a transaction that writes statements with so many bytes. It has the default isolation of PostgreSQL,
/// whatever the server's configuration says: with a stricter one a heartbeat would be in the way of each batch.
pub(super) fn begin(bytes: usize) -> String {
    format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}{IDLE_LIMIT}", work_limit(bytes))
}

/// Begins a transaction that only reads, at one moment, and expects so many bytes at once.
pub(super) fn begin_reading(bytes: usize) -> String {
    let limit = work_limit(bytes);
    format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {limit}{IDLE_LIMIT}")
}

/// A value of a statement, and its type in the database.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// A statement with its values.
#[derive(Clone)]
pub(super) struct Statement<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value<'a>>,
}

/// The number of rows of a statement that was sent.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<u64, Error>> + 'a>>;

/// A connection.
pub(super) struct Link {
    client: Client,
    address: Address,
    connection: JoinHandle<()>,
}

impl Link {
    /// Connects to the first of the servers that can be used. Each has a time limit of its own: one that is silent must
    /// not take that of the next.
    pub(super) async fn open(address: &Address) -> Result<Self, PostgresError> {
        let connector = Connector::new(address).await.map_err(PostgresError::Address)?;
        let mut failed = PostgresError::Address("it names no server".to_owned());
        for server in in_turn(address) {
            let ways = match ways(address, &server).await {
                Ok(ways) => ways,
                Err(error) => {
                    failed = error;
                    continue;
                }
            };
            let is_only = address.servers.len() == 1 && ways.len() == 1;
            let limit = if is_only { CONNECT_MAX } else { CONNECT_EARLIER_MAX };
            let limit = address.config.get_connect_timeout().copied().unwrap_or(limit);
            for way in ways {
                match Self::connect(address, &way, connector.clone(), limit).await {
                    Ok(link) => return Ok(link),
                    Err(error) => failed = error,
                }
            }
        }
        Err(failed)
    }

    async fn connect(
        address: &Address,
        way: &Config,
        connector: Connector,
        limit: Duration,
    ) -> Result<Self, PostgresError> {
        let connected = timeout(limit, way.connect(connector)).await;
        let silent = |_| PostgresError::Silent { place: address.to_string(), limit };
        let (client, connection) =
            connected.map_err(silent)?.map_err(|error| PostgresError::of(address, &error))?;
        // What ends it is reported to the caller that waits for an answer.
        let connection = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { client, address: address.clone(), connection })
    }

    /// The database, for people.
    pub(super) fn place(&self) -> String {
        self.address.to_string()
    }

    /// Runs statements without values.
    pub(super) async fn run(&self, sql: &str) -> Result<(), PostgresError> {
        self.answer(self.client.batch_execute(sql)).await
    }

    /// The rows of a statement.
    pub(super) async fn rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        self.large_rows(sql, values, 0).await
    }

    /// The rows of a statement that have up to so many bytes. The transaction must leave the server as much time.
    pub(super) async fn large_rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
        bytes: usize,
    ) -> Result<Vec<Row>, PostgresError> {
        self.within(answer_max(bytes), self.client.query_typed(sql, values)).await
    }

    /// The only row of a statement, if there is one.
    pub(super) async fn row(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, PostgresError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement; gives the number of its rows.
    pub(super) async fn execute(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, PostgresError> {
        self.answer(self.client.execute_typed(sql, values)).await
    }

    /// Begins a transaction that writes, with these settings, and sends the statements; without waiting for an answer
    /// between them, unless they are large. Gives the number of rows of each. `bytes` is about what their values take.
    pub(super) async fn send(
        &self,
        settings: &str,
        statements: &[Statement<'_>],
        bytes: usize,
    ) -> Result<Vec<u64>, PostgresError> {
        let mut answers: Vec<Answer<'_>> = Vec::new();
        answers.push(Box::pin(async {
            self.client.batch_execute(&format!("{}{settings}", begin(bytes))).await?;
            Ok(0)
        }));
        for Statement { sql, values } in statements {
            answers.push(Box::pin(self.client.execute_typed(sql, values)));
        }
        let sending = async {
            if bytes <= AT_ONCE_BYTES_MAX {
                return try_join_all(answers).await;
            }
            let mut counts = Vec::new();
            for answer in answers {
                counts.push(answer.await?);
            }
            Ok(counts)
        };
        let mut counts = self.within(answer_max(bytes), sending).await?;
        counts.remove(0);
        Ok(counts)
    }

    async fn answer<T>(
        &self,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PostgresError> {
        self.within(answer_max(0), asking).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PostgresError> {
        let address = &self.address;
        match timeout(limit, asking).await {
            Ok(answer) => answer.map_err(|error| PostgresError::of(address, &error)),
            Err(_) => Err(PostgresError::Silent { place: address.to_string(), limit }),
        }
    }
}

/// The servers in the order in which they are tried.
fn in_turn(address: &Address) -> Vec<Server> {
    let mut servers = address.servers.clone();
    if address.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        servers.sort_by_cached_key(|_| Uuid::new_v4());
    }
    servers
}

/// The ways to a server: one for each of the numbers of its name.
async fn ways(address: &Address, server: &Server) -> Result<Vec<Config>, PostgresError> {
    let common = &address.config;
    let (Some(Host::Tcp(name)), None) = (&server.host, server.ip) else {
        return Ok(vec![server.config(common, server.ip)]);
    };
    let place = || address.to_string();
    let silent = |_| PostgresError::Silent { place: place(), limit: CONNECT_MAX };
    let looked = timeout(CONNECT_MAX, lookup_host((&**name, server.port))).await.map_err(silent)?;
    let unknown = |error| PostgresError::Unreachable {
        place: place(),
        why: format!("the address of {name} was not found: {error}"),
    };
    let mut ways = address.ways(server, looked.map_err(unknown)?.map(|found| found.ip()));
    if common.get_load_balance_hosts() == LoadBalanceHosts::Random {
        ways.sort_by_cached_key(|_| Uuid::new_v4());
    }
    Ok(ways)
}

impl Drop for Link {
    /// The server ends the transaction that is open.
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.address)
    }
}

/// A runtime for one thread. Connections are only read while something is awaited.
#[derive(Debug)]
pub(super) struct Reactor(Option<Runtime>);

impl Reactor {
    pub(super) fn new() -> Result<Self, PostgresError> {
        let built = Builder::new_current_thread().enable_io().enable_time().build();
        Ok(Self(Some(built.map_err(PostgresError::Runtime)?)))
    }

    /// Waits for `work`.
    pub(super) fn run<T>(
        &self,
        work: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, PostgresError> {
        match &self.0 {
            Some(runtime) => runtime.block_on(work),
            None => Err(PostgresError::Runtime(std::io::ErrorKind::NotConnected.into())),
        }
    }
}

impl Drop for Reactor {
    /// A look-up of a name that goes on must not hold up the end of the process.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_may_take_longer_and_the_server_gives_up_earlier() {
        assert_eq!(answer_max(0), ANSWER_MAX);
        assert_eq!(answer_max(100 * 128 * 1024), ANSWER_MAX + Duration::from_secs(100));
        for begun in [begin, begin_reading] {
            assert!(begun(0).contains("SET LOCAL statement_timeout = 10000; "));
            assert!(begun(100 * 128 * 1024).contains("SET LOCAL statement_timeout = 110000; "));
        }
    }
}
