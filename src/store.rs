//! Stores conversations. A database is open once in a process, however many conversations store in it.
//!
//! `session_store` is the store as the host of one conversation sees it. A `database` has one thread that writes it
//! (`writer`), batches of several sessions in one transaction; `opening` locks and loads sessions, in a few
//! threads (`loader`) that read beside it. A `Store` is one connection to one kind of database: another kind is
//! another variant.

mod batch;
mod codec;
mod copies;
mod counts;
mod database;
mod error;
mod file_url;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod inspection;
mod library;
mod loader;
mod opening;
mod place;
mod postgres;
mod reading;
mod row;
mod search;
mod session_store;
mod sqlite;
#[cfg(test)]
pub(crate) mod stepped;
#[cfg(test)]
pub(crate) mod testing;
mod words;
mod writer;

pub(crate) use copies::{NotAdded, add_session};
#[cfg(feature = "serve")]
pub(crate) use counts::COUNTS;
#[cfg(feature = "serve")]
pub(crate) use error::AWAY;
pub(crate) use error::LOCKED_ADVICE;
#[cfg(feature = "serve")]
pub(crate) use error::{EXISTS, HELD_BY};
pub(crate) use inspection::{Checked, Inspected, Inspection, Tables};
#[cfg(feature = "serve")]
pub(crate) use inspection::{FileFault, fault_of_file};
pub(crate) use library::{
    Conversation, Deleted, GENERATED_PREFIX, Library, Listing, Summary, ambiguous, shown_ids,
};
pub(crate) use opening::{latest_session, stored_choices};
pub use place::{Namespace, OpenMode, StorePlace, StoreSettings};
pub use postgres::Dsn;
#[cfg(feature = "serve")]
pub(crate) use postgres::{HEARTBEAT_MAX, advertise, taken_sessions};
pub(crate) use search::Hit;
pub(crate) use session_store::{Report, Request, SessionStore};
pub(crate) use sqlite::now_ms;
pub(crate) use words::Phrases;

use crate::conversation::choices::Choices;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use batch::Batch;
pub(crate) use batch::title_of;
use error::StoreError;
#[cfg(feature = "serve")]
use library::Part;
use postgres::{LeasedSession, OwnProcess, Postgres, PostgresError};
use reading::{Reading, Sink};
use sqlite::{LockedSession, LogLoss, Sqlite, sessions};
use std::collections::BTreeSet;

/// A connection to a database that stores conversations.
#[derive(Debug)]
enum Store {
    /// A file.
    Sqlite(Box<Sqlite>),
    /// A database on a server.
    Postgres(Box<Postgres>),
}

/// What the first connection to a file finds, and one that is opened later can't find out any more.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    /// What is missing in its log.
    log_loss: Option<LogLoss>,
    /// The device and the number of the file.
    file: Option<(u64, u64)>,
}

/// A session that this process holds, so that no other one writes it.
#[derive(Debug)]
enum Claim {
    Locked(LockedSession),
    Leased(Box<LeasedSession>),
}

impl Claim {
    /// Releases the session without a connection to its store: as soon as that can be done.
    fn abandon(self, process: &OwnProcess) {
        match self {
            // Unlocked by being dropped.
            Self::Locked(_) => {}
            Self::Leased(leased) => leased.abandon(process),
        }
    }
}

/// A batch of a session that was claimed.
#[derive(Debug)]
struct Item<'a> {
    session: &'a SessionId,
    /// The folder that a new session belongs to.
    folder: &'a str,
    batch: &'a Batch,
    claim: &'a mut Claim,
}

impl Item<'_> {
    fn locked(&mut self) -> Option<&mut LockedSession> {
        match self.claim {
            Claim::Locked(locked) => Some(locked),
            Claim::Leased(_) => None,
        }
    }

    fn leased(&mut self) -> Option<&mut LeasedSession> {
        match self.claim {
            Claim::Leased(leased) => Some(leased),
            Claim::Locked(_) => None,
        }
    }
}

impl Store {
    /// Opens the store, and makes it if it may be new.
    fn open(
        place: &StorePlace,
        may_be_new: bool,
        process: &OwnProcess,
        fault: FailPoint,
    ) -> Result<Self, StoreError> {
        match place {
            StorePlace::Sqlite(path) => {
                Ok(Self::Sqlite(Box::new(Sqlite::open(path, may_be_new, fault)?)))
            }
            StorePlace::Postgres(dsn) => {
                let opened = Postgres::open(dsn, may_be_new, process.clone(), fault)?;
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

    fn condition(&self) -> Condition {
        match self {
            Self::Sqlite(sqlite) => Condition { log_loss: sqlite.log_loss, file: sqlite.file },
            Self::Postgres(_) => Condition::default(),
        }
    }

    /// Takes over what the first connection has found.
    fn note(&mut self, condition: Condition) {
        match self {
            Self::Sqlite(sqlite) => sqlite.log_loss = condition.log_loss,
            Self::Postgres(_) => {}
        }
    }

    /// Claims the session for this process.
    fn claim(&mut self, session: &SessionId) -> Result<Claim, StoreError> {
        Ok(match self {
            Self::Sqlite(sqlite) => Claim::Locked(sqlite.claim(session)?),
            Self::Postgres(postgres) => Claim::Leased(Box::new(postgres.claim(session)?)),
        })
    }

    /// Checks that no process has the session. In a file none gets it as long as the claim is kept; a server is only
    /// asked, as a process that was stopped for a while would lose its lease to this one.
    fn check_free(&mut self, session: &SessionId) -> Result<Option<Claim>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => Ok(Some(Claim::Locked(sqlite.claim(session)?))),
            Self::Postgres(postgres) => match postgres.is_held(session)? {
                true => Err(StoreError::Failed("another process has the session".to_owned())),
                false => Ok(None),
            },
        }
    }

    /// Checks that no other process has the lease of a session, without asking for one. The lock of a file is cheap to
    /// ask for, which a claim does.
    fn check_lease(&mut self, session: &SessionId) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(postgres) => postgres.check_lease(session),
        }
    }

    /// Releases sessions, so that other processes can claim them.
    fn release(&mut self, claims: Vec<Claim>) {
        let mut all = Vec::new();
        for claim in claims {
            match claim {
                // Unlocked by being dropped.
                Claim::Locked(_) => {}
                Claim::Leased(leased) => all.push(*leased),
            }
        }
        match self {
            Self::Sqlite(_) => {}
            Self::Postgres(postgres) => postgres.release(&all),
        }
    }

    /// This process has no session in the store any more.
    fn leave(&mut self) {
        match self {
            Self::Sqlite(_) => {}
            Self::Postgres(postgres) => postgres.leave(),
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

    /// Takes the next batch of a session, which `write` then writes.
    fn stage(&mut self, item: &mut Item<'_>) {
        match self {
            Self::Sqlite(_) => {}
            Self::Postgres(postgres) => {
                let Item { session, folder, batch, .. } = *item;
                if let Some(leased) = item.leased() {
                    postgres.stage(leased, session, batch, folder);
                }
            }
        }
    }

    /// Writes batches that were staged, each atomically; syncs (fsync) those that end a turn. Together they are
    /// one transaction; a session that can't be written fails alone.
    fn write(&mut self, all: &mut [Item<'_>]) -> Vec<Result<(), StoreError>> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(all),
            Self::Postgres(postgres) => postgres.write(all),
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
            StorePlace::Postgres(_) => {
                Self::open(place, false, &OwnProcess::default(), FailPoint::default())
            }
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

    /// Like `summaries`, but the sizes of a server's sessions are 0, because it has to add them up.
    fn titles(&mut self) -> Result<(Vec<Summary>, Option<String>), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sessions::summaries(sqlite),
            Self::Postgres(postgres) => Ok((postgres.titles()?, None)),
        }
    }

    /// One session of the list; `None` if it is not there.
    fn summary(&mut self, session: &SessionId) -> Result<Option<Summary>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => sessions::summary_of(sqlite, session),
            Self::Postgres(postgres) => Ok(postgres.summary(session)?),
        }
    }

    /// A part of the list, or more, in no order. A file has the sizes of its sessions, so that all are read at once.
    #[cfg(feature = "serve")]
    fn newest(&mut self, part: &Part) -> Result<Vec<Summary>, StoreError> {
        match self {
            Self::Sqlite(sqlite) => Ok(sessions::summaries(sqlite)?.0),
            Self::Postgres(postgres) => Ok(postgres.newest(part)?),
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
    fn delete(&mut self, session: &SessionId, claim: &Claim) -> Result<bool, StoreError> {
        match (self, claim) {
            (Self::Sqlite(sqlite), _) => sessions::delete(sqlite, session),
            (Self::Postgres(postgres), Claim::Leased(leased)) => {
                postgres.delete(leased)?;
                Ok(true)
            }
            (Self::Postgres(_), Claim::Locked(_)) => Err(PostgresError::Unclaimed.into()),
        }
    }
}
