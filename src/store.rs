//! Keeps conversations: one plain thread owns the databases, writes what sessions record, and loads
//! what they go on with.
//!
//! `Worker` is the thread as the host sees it; what it does with a request is in `session_stores`. A
//! `Store` is one database of one kind: another kind is another variant.

mod batch;
mod content;
mod copies;
mod error;
mod file_url;
mod inspection;
mod joined;
mod library;
mod load;
mod lock;
mod log_file;
mod network;
mod origin;
mod part;
mod path;
mod place;
mod postgres;
mod reader;
mod rows;
mod schema;
mod search;
mod session_stores;
mod sqlite;
mod states;
#[cfg(test)]
pub(crate) mod testing;
mod turn;
mod words;
mod worker;
mod write;

pub(crate) use copies::{NotAdded, add_session};
pub(crate) use inspection::{Inspected, Inspection, Tables};
pub(crate) use library::{Conversation, Deleted, Library, Listing, Summary, ambiguous, shown_ids};
pub use place::{StorePlace, StoreSettings};
pub use postgres::Dsn;
pub(crate) use search::Hit;
pub(crate) use session_stores::{latest_session, stored_choices};
pub(crate) use words::Phrases;
pub(crate) use worker::{Report, Request, Worker};

use crate::chat::choices::Choices;
use crate::chat::record::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use error::StoreError;
use part::Part;
use postgres::Postgres;
use search::Search;
use sqlite::Sqlite;
use std::collections::BTreeSet;

/// A database that keeps conversations.
#[derive(Debug)]
enum Store {
    /// A file.
    Sqlite(Box<Sqlite>),
    /// A database on a server.
    Postgres(Box<Postgres>),
}

/// What a store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Roles {
    /// It keeps what the model is sent next.
    turns: bool,
    /// It keeps what people see.
    timeline: bool,
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

    /// What is stored of the session that was claimed.
    fn load(&mut self, session: &SessionId, roles: Roles) -> Result<Part, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.load(session, roles),
            Self::Postgres(postgres) => Ok(postgres.load(session, roles)?),
        }
    }

    /// What is stored of the session that people see, with what `search` finds in it.
    fn search(&mut self, session: &SessionId, search: Search) -> Result<Part, StoreError> {
        let (roles, part) = (Roles { turns: false, timeline: true }, Part::searching(search));
        match self {
            Self::Sqlite(sqlite) => sqlite.load_into(session, roles, part),
            Self::Postgres(postgres) => Ok(postgres.search(session, part)?),
        }
    }

    /// Writes `batch` atomically; syncs it (fsync) if it ends a turn.
    fn write(
        &mut self,
        session: &SessionId,
        batch: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(session, batch, (roles, folder)),
            Self::Postgres(postgres) => Ok(postgres.write(session, batch, (roles, folder))?),
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

    /// Opens a store that there is, for reading only unless it has an older format.
    fn look(place: &StorePlace) -> Result<Self, StoreError> {
        match place {
            StorePlace::Sqlite(path) => Ok(Self::Sqlite(Box::new(reader::open(path)?))),
            StorePlace::Postgres(_) => Self::open(place, false, FailPoint::default()),
        }
    }

    /// What was chosen in a session; `None` if it is not there.
    fn choices(&mut self, session: &SessionId) -> Result<Option<Choices>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.choices(session),
            Self::Postgres(postgres) => Ok(postgres.choices(session)?),
        }
    }

    /// All sessions, in no order, and what could not be read of them.
    fn summaries(&mut self) -> Result<(Vec<Summary>, Option<String>), StoreError> {
        match self {
            Self::Sqlite(sqlite) => reader::summaries(sqlite),
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
            Self::Sqlite(sqlite) => reader::delete(sqlite, session),
            Self::Postgres(postgres) => {
                postgres.delete(session)?;
                Ok(true)
            }
        }
    }
}
