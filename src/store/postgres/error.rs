//! What can go wrong with a PostgreSQL server.

use super::address::Address;
use std::error::Error;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// Why a store in PostgreSQL can't do what it was asked for. No text has a password in it.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum PostgresError {
    #[error("the address of the store can't be used: {0}")]
    Address(String),
    #[error(
        "the store {place} can't be reached: {why}; {advice}", advice = advice(why)
    )]
    Unreachable { place: String, why: String },
    #[error("the store {place} did not answer within {limit:?}")]
    Silent { place: String, limit: Duration },
    #[error("the server of the store {place} reports: {message}")]
    Server { place: String, code: SqlState, message: String },
    #[error("the store {0} has no sessions yet")]
    Absent(String),
    #[error(
        "the store {place} has format {found}, and this program knows formats up to {known}; use a \
         newer version of this program"
    )]
    Newer { place: String, found: i64, known: i64 },
    #[error(
        "the store {place} has format {found}, of an early version that was not released, and this \
         program reads format {known}; name another database, and keep this one for the version that \
         made it"
    )]
    Older { place: String, found: i64, known: i64 },
    #[error(
        "the store {place} has the encoding {found}, in which not every text can be stored; name a database \
         with UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)"
    )]
    Encoding { place: String, found: String },
    #[error("the schema `duologue` of {0} is of another program; name another database")]
    Foreign(String),
    #[error(
        "another process took over the session, as the store had not heard of this one for more than \
         {limit:?}: {holder}"
    )]
    Lost { limit: Duration, holder: String },
    #[error(
        "the server of the store {0} has lost what it had confirmed, as after a restore or a change of \
         servers"
    )]
    Forgotten(String),
    #[error("the store {place} can't be written: {why}")]
    Unwritable { place: String, why: String },
    #[error(
        "the id of the session has a zero character, which PostgreSQL can't store; choose another id"
    )]
    ZeroInId,
    #[error("the session was not locked before it was written")]
    Unclaimed,
    #[error("the system can't wait for the server: {0}")]
    Runtime(std::io::Error),
    #[error("planted fault")]
    Planted,
}

/// What the connection library says first if TLS is at fault.
const TLS_FAULT: &str = "TLS handshake";

/// What a person can do about a server that can't be reached.
fn advice(why: &str) -> &'static str {
    if why.contains(TLS_FAULT) {
        "a server on another machine must have a certificate that is trusted, unless sslmode in its address \
         (PGSSLMODE) says otherwise: sslrootcert names an authority of your own, and sslmode=disable does without TLS \
         in a network of your own"
    } else {
        "check its address and password, and that the server runs"
    }
}

impl PostgresError {
    /// What the connection library reports, without the passwords.
    pub(super) fn of(address: &Address, error: &tokio_postgres::Error) -> Self {
        let place = address.to_string();
        let clean =
            |text: String| address.passwords().fold(text, |text, password| password.redact(&text));
        match error.as_db_error() {
            Some(reported) => {
                let message = match reported.hint() {
                    Some(hint) => format!("{} ({hint})", reported.message()),
                    None => reported.message().to_owned(),
                };
                Self::Server { place, code: reported.code().clone(), message: clean(message) }
            }
            None => {
                let mut why = error.to_string();
                let mut source = error.source();
                while let Some(deeper) = source {
                    why += &format!(": {deeper}");
                    source = deeper.source();
                }
                Self::Unreachable { place, why: clean(why) }
            }
        }
    }

    /// There is no answer: what else is asked would wait for one as long.
    pub(in crate::store) fn is_silence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Silent { .. })
    }

    /// It may be over in a moment, with another connection.
    pub(super) fn is_passing(&self) -> bool {
        self.is_silence() || matches!(self, Self::Server { code, .. } if is_passing(code))
    }

    /// The connection was cut or not made: the server ends or starts, is full, or the network is at fault.
    pub(in crate::store) fn is_cut(&self) -> bool {
        let of_server = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::IDLE_SESSION_TIMEOUT,
            // What the network kept back came too late for the server.
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ];
        matches!(self, Self::Unreachable { .. })
            || self.has_code(&of_server)
            || matches!(self, Self::Server { code, .. } if is_of_connection(code))
    }

    /// The server can't read what it keeps (class XX).
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Server { code, .. } if code.code().starts_with("XX"))
    }

    /// The server reports this state.
    pub(super) fn has_code(&self, of: &[SqlState]) -> bool {
        matches!(self, Self::Server { code, .. } if of.contains(code))
    }
}

/// The server ends, starts, is overloaded, or has broken off a transaction (PostgreSQL's manual,
/// appendix A).
fn is_passing(code: &SqlState) -> bool {
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::QUERY_CANCELED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        // An attachment that was there was deleted with the last other session that had it.
        SqlState::FOREIGN_KEY_VIOLATION,
    ];
    passing.contains(code) || is_of_connection(code)
}

/// Class 08 is about connections.
fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "serve")]
    #[test]
    fn a_server_that_is_away_is_known_by_its_error() {
        let place = || "postgres://localhost".to_owned();
        let (why, message) = (String::new(), String::new());
        let away = [
            PostgresError::Unreachable { place: place(), why },
            PostgresError::Silent { place: place(), limit: Duration::ZERO },
            PostgresError::Server { place: place(), code: SqlState::CANNOT_CONNECT_NOW, message },
        ];
        for error in away {
            let words = crate::store::error::AWAY;
            assert!(words.iter().any(|it| error.to_string().contains(it)), "{error}");
        }
    }

    #[test]
    fn a_fault_of_tls_is_told_apart_from_a_server_that_does_not_run() {
        let said = |why: &str| {
            let (place, why) = ("postgres://db".to_owned(), why.to_owned());
            PostgresError::Unreachable { place, why }.to_string()
        };
        let tls = said("error performing TLS handshake: server does not support TLS");
        assert!(tls.contains("PGSSLMODE") && !tls.contains("password"), "{tls}");
        let away = said("error connecting to server: Connection refused (os error 111)");
        assert!(away.contains("that the server runs") && !away.contains("PGSSLMODE"), "{away}");
    }

    #[test]
    fn only_what_may_be_over_in_a_moment_is_tried_again() {
        let server = |code: SqlState| {
            let (place, message) = (String::new(), String::new());
            PostgresError::Server { place, code, message }.is_passing()
        };
        for code in
            ["57P01", "57P02", "57P03", "57P05", "08006", "40P01", "53300", "25006", "23503"]
        {
            assert!(server(SqlState::from_code(code)), "{code}");
        }
        for code in ["28P01", "3D000", "42501", "23505", "53100", "XX001"] {
            assert!(!server(SqlState::from_code(code)), "{code}");
        }
        let limit = Duration::from_secs(1);
        assert!(PostgresError::Silent { place: String::new(), limit }.is_passing());
        assert!(!PostgresError::Silent { place: String::new(), limit }.is_cut());
        assert!(!PostgresError::Lost { limit, holder: String::new() }.is_passing());
    }
}
