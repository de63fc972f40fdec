//! A connection to a PostgreSQL server. Everything that is asked over it has a time limit, and every
//! statement is unnamed, as a pooler between us and the server may give each transaction another
//! connection.

use super::address::Address;
use super::error::PostgresError;
use super::tls::Connector;
use futures_util::future::try_join_all;
use std::pin::Pin;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long an answer may take. The server gives up a little earlier, so that it reports why.
const ANSWER_MAX: Duration = Duration::from_secs(11);

/// Bytes that are sent in a second at least: a large batch may take longer.
const BYTES_PER_SECOND_MIN: u64 = 128 * 1024;

/// Bytes of values up to which statements are sent without waiting for an answer between them. More are copied
/// one statement after the other.
const AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

/// How long the server works on one statement, and how long a transaction of a process that was
/// stopped or has lost its connection keeps its locks.
pub(super) const LIMITS: &str = "SET LOCAL statement_timeout = 10000; \
     SET LOCAL idle_in_transaction_session_timeout = 10000; ";

/// Begins a transaction that writes. It has the default isolation of PostgreSQL, whatever the server's
/// configuration says: with a stricter one a heartbeat would be in the way of each batch.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SET LOCAL statement_timeout = 10000; \
     SET LOCAL idle_in_transaction_session_timeout = 10000; ";

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
    pub(super) async fn open(address: &Address) -> Result<Self, PostgresError> {
        let connector = Connector::new(address).await.map_err(PostgresError::Address)?;
        let connecting = address.config.connect(connector);
        let connected = timeout(CONNECT_MAX, connecting).await;
        let silent = |_| PostgresError::Silent { place: address.to_string(), limit: CONNECT_MAX };
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
        self.answer(self.client.query_typed(sql, values)).await
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

    /// Begins a transaction with `begin`, and sends the statements; without waiting for an answer between
    /// them, unless they are large. Gives the number of rows of each. `bytes` is about what their values take.
    pub(super) async fn send(
        &self,
        begin: &str,
        statements: &[Statement<'_>],
        bytes: usize,
    ) -> Result<Vec<u64>, PostgresError> {
        let mut answers: Vec<Answer<'_>> = Vec::new();
        answers.push(Box::pin(async {
            self.client.batch_execute(begin).await?;
            Ok(0)
        }));
        for Statement { sql, values } in statements {
            answers.push(Box::pin(self.client.execute_typed(sql, values)));
        }
        let seconds = u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_SECOND_MIN;
        let limit = ANSWER_MAX + Duration::from_secs(seconds);
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
        let mut counts = self.within(limit, sending).await?;
        counts.remove(0);
        Ok(counts)
    }

    async fn answer<T>(
        &self,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PostgresError> {
        self.within(ANSWER_MAX, asking).await
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
