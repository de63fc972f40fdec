//! What can go wrong with a store.

use super::postgres::PostgresError;
use crate::protocol::wire::{ClientError, Code};
use std::io;
use std::path::PathBuf;

/// Why a store can't do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("another process holds the session: {0}; end that process, or use another session id")]
    Locked(String),
    #[error(
        "the session {0} is not in the store, so there is nothing to resume; check --session-id, or \
         leave --resume out to begin it"
    )]
    Missing(String),
    #[error(
        "the session {0} is in the store already; add --resume to go on with it, or choose another \
         session id"
    )]
    Exists(String),
    #[error(
        "the store {} has format {found}, and this program knows formats up to {known}; use a newer \
         version of this program", path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{} is a database of another program; name another file", .0.display())]
    NotAStore(PathBuf),
    #[error("the store {} can't be {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error("the store can't be read or written: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error("a message of the store can't be read: {0}")]
    Message(#[from] prost::DecodeError),
}

impl StoreError {
    /// The error of a client whose session can't begin because of this.
    pub(super) fn client_error(&self) -> ClientError {
        let code = match self {
            Self::Locked(_) => Code::SessionLocked,
            Self::Missing(_)
            | Self::Exists(_)
            | Self::Newer { .. }
            | Self::NotAStore(_)
            | Self::Io { .. }
            | Self::Sqlite(_)
            | Self::Postgres(_)
            | Self::Message(_) => Code::StoreFailed,
        };
        ClientError { code, message: self.to_string(), detail: String::new(), terminal: true }
    }

    /// The database is damaged: what can be read of it is read, and nothing is written.
    pub(super) fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure};
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(DatabaseCorrupt | NotADatabase | SystemIoFailure)
            ),
            Self::Message(_) => true,
            Self::Locked(_)
            | Self::Missing(_)
            | Self::Exists(_)
            | Self::Newer { .. }
            | Self::NotAStore(_)
            | Self::Postgres(_)
            | Self::Io { .. } => false,
        }
    }

    /// There is no store yet at the place that is named.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Postgres(PostgresError::Absent(_)) => true,
            Self::Postgres(_)
            | Self::Locked(_)
            | Self::Missing(_)
            | Self::Exists(_)
            | Self::Newer { .. }
            | Self::NotAStore(_)
            | Self::Sqlite(_)
            | Self::Message(_) => false,
        }
    }
}
