//! Keeps conversations: one plain thread owns the databases, writes what sessions record, and loads
//! what they go on with.
//!
//! [`Worker`] is the thread as the host sees it; what it does with a request is in `keeper`. A
//! [`Store`] is one database of one kind: another kind is another variant.

mod batch;
mod error;
mod keeper;
mod library;
mod load;
mod lock;
mod log_file;
mod part;
mod path;
mod place;
mod reader;
mod rows;
mod schema;
mod sqlite;
mod turn;
mod words;
mod worker;
mod write;

pub(crate) use keeper::latest_session;
pub(crate) use library::{Conversation, Deleted, Library, Summary};
pub use place::{StorePlace, StoreSettings};
pub(crate) use words::{Page, WordIndex};
pub(crate) use worker::{Report, Request, Worker};

use crate::chat::record::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use error::StoreError;
use part::Part;
use sqlite::Sqlite;

/// A database that keeps conversations.
#[derive(Debug)]
enum Store {
    /// A file.
    Sqlite(Sqlite),
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
            StorePlace::Sqlite(path) => Sqlite::open(path, may_be_new, fault).map(Self::Sqlite),
        }
    }

    /// Checks that a session can begin here.
    fn check_writable(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_writable(),
        }
    }

    /// Locks the session, until the store is dropped.
    fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.claim(session),
        }
    }

    /// Whether something is stored of the session.
    fn has(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.has(session),
        }
    }

    /// What is stored of the session that was claimed.
    fn load(&mut self, session: &SessionId, roles: Roles) -> Result<Part, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.load(session, roles),
        }
    }

    /// Stores all of `batch` or nothing; if it ends a turn, so that it survives a loss of power.
    fn write(
        &mut self,
        session: &SessionId,
        batch: &[Record],
        (roles, folder): (Roles, &str),
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(session, batch, (roles, folder)),
        }
    }

    /// The session of this folder that was changed last.
    fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.latest(folder),
        }
    }
}
