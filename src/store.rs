//! Keeps conversations: one plain thread owns the databases, writes what sessions record, and loads
//! what they go on with.
//!
//! `Worker` is the thread as the host sees it; what it does with a request is in `session_stores`. A
//! `Store` is one database of one kind: another kind is another variant.

mod batch;
mod codec;
mod copies;
mod error;
mod file_url;
mod inspection;
mod library;
mod place;
mod postgres;
mod reading;
mod row;
mod search;
mod session_stores;
mod sqlite;
#[cfg(test)]
pub(crate) mod testing;
mod words;
mod worker;

pub(crate) use copies::{NotAdded, add_session};
pub(crate) use inspection::{Inspected, Inspection, Tables};
pub(crate) use library::{Conversation, Deleted, Library, Listing, Summary, ambiguous, shown_ids};
pub use place::{StorePlace, StoreSettings};
pub use postgres::Dsn;
pub(crate) use search::Hit;
pub(crate) use session_stores::{latest_session, stored_choices};
pub(crate) use words::Phrases;
pub(crate) use worker::{Report, Request, Worker};

use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use batch::Batch;
use error::StoreError;
use postgres::Postgres;
use reading::{Reading, Sink};
use sqlite::{Sqlite, sessions};
use std::collections::BTreeSet;

/// A database that keeps conversations.
#[derive(Debug)]
enum Store {
    /// A file.
    Sqlite(Box<Sqlite>),
    /// A database on a server.
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the store, and makes it if it may be new.
    fn open(place: &StorePlace, may_be_new: bool, fault: FailPoint) -> Result<Self, StoreError> {
        match place {
            StorePlace::Sqlite(path) => {
                Ok(Self::Sqlite(Box::new(Sqlite::open(path, may_be_new, fault)?)))
            }
            StorePlace::Postgres(dsn) => {
                let opened = Postgres::open(dsn, may_be_new, fault)?;
                Ok(Self::Postgres(Box::new(opened)))
            }
        }
    }

    /// Checks that a session can begin here.
    fn check_writable(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_writable(),
            // Its tables were found or made when it was opened.
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Locks the session, until the store is dropped.
    fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.claim(session),
            Self::Postgres(postgres) => postgres.claim(session),
        }
    }

    /// Whether something is stored of the session.
    fn has(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.has(session),
            Self::Postgres(postgres) => Ok(postgres.has(session)?),
        }
    }

    /// Reads the log of the session.
    fn load(&mut self, session: &SessionId, sink: Sink) -> Result<Reading, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.load(session, sink),
            Self::Postgres(postgres) => Ok(postgres.load(session, sink)?),
        }
    }

    /// Writes `batch` atomically; syncs it (fsync) if it ends a turn.
    fn write(
        &mut self,
        session: &SessionId,
        batch: &Batch,
        folder: &str,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(session, batch, folder),
            Self::Postgres(postgres) => Ok(postgres.write(session, batch, folder)?),
        }
    }

    /// A turn has ended, and its batch is reported: runs the checkpoint that would delay the next batch.
    fn settle(&mut self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.settle(),
            // The server does that by itself.
            Self::Postgres(_) => {}
        }
    }

    /// The session is idle: checkpoints and truncates the write-ahead log.
    fn tidy(&mut self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.tidy(),
            // The server does that by itself.
            Self::Postgres(_) => {}
        }
    }

    /// The session of this folder that was changed last.
    fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.latest(folder),
            Self::Postgres(postgres) => Ok(postgres.latest(folder)?),
        }
    }

    /// Opens a store that there is, for reading only.
    fn look(place: &StorePlace) -> Result<Self, StoreError> {
        match place {
            StorePlace::Sqlite(path) => Ok(Self::Sqlite(Box::new(sessions::open(path)?))),
            StorePlace::Postgres(_) => Self::open(place, false, FailPoint::default()),
        }
    }

    /// What was chosen in a session, as far as that is cached.
    fn choices(&mut self, session: &SessionId) -> Result<Option<Choices>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.choices(session),
            Self::Postgres(postgres) => Ok(postgres.choices(session)?),
        }
    }

    /// All sessions, in no order, and what could not be read of them.
    fn summaries(&mut self) -> Result<(Vec<Summary>, Option<String>), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sessions::summaries(sqlite),
            Self::Postgres(postgres) => Ok((postgres.summaries()?, None)),
        }
    }

    /// The sessions in which all of these words may be; `None` if that is only known by reading them.
    fn with_words(&mut self, terms: &[String]) -> Result<Option<BTreeSet<String>>, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(postgres) => Ok(Some(postgres.with_words(terms)?)),
        }
    }

    /// Deletes a session that was claimed. `false`: the store still has text of it.
    fn delete(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sessions::delete(sqlite, session),
            Self::Postgres(postgres) => {
                postgres.delete(session)?;
                Ok(true)
            }
        }
    }
}
