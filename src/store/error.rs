//! What can go wrong with a store.

use super::postgres::PostgresError;
use crate::protocol::constants::SESSION_NOT_FOUND;
use crate::protocol::wire::{ClientError, Code};
use crate::support::files::{DESCRIPTORS_ADVICE, is_out_of_descriptors};
use crate::support::threads::NoThread;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_READONLY_ROLLBACK;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// What a person can do about a session that another process holds; the end of that error's message.
pub(crate) const LOCKED_ADVICE: &str =
    "; try again once that process has ended, or name another session";

/// Files that SQLite opens for a store: the database, its log, the index of that, and their folder.
const STORE_FILES: usize = 4;

/// Files that the rest of the process may have had open at that moment, and has closed since.
const OTHER_FILES: usize = 16;

/// Words in the errors of a file that is damaged, and so is not written.
pub(super) const DAMAGED: &str = "it is damaged";

/// What the error of a session says that is to begin and is stored already.
pub(crate) const EXISTS: &str = "is in the store already";

/// Words in the errors of a database server that may answer in a moment, or at another node.
#[cfg(feature = "serve")]
pub(crate) const AWAY: [&str; 3] =
    ["can't be reached: ", " did not answer within ", "the server of the store "];

/// What the detail of the error about a session begins with that a node of a fleet holds; its address follows.
pub(crate) const HELD_BY: &str = "held by the node ";

/// Why a store can't do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("another process holds the session: {holder}{advice}", advice = LOCKED_ADVICE)]
    Locked {
        holder: String,
        /// Where the session is reached; empty if it is not.
        address: String,
    },
    #[error(
        "the session {0} is not in the store, so there is nothing to resume; check --session-id, or \
         leave --resume out to begin it, or name it with --session, which does either"
    )]
    Missing(String),
    #[error(
        "the session {session} was not found in what can be read of the store, so it is not resumed: \
         {reason}"
    )]
    Unreadable { session: String, reason: String },
    #[error(
        "the session {0} can't go on: an event that was imported into it has a number that leaves no room \
         for more; `duologue sessions export` still has what was said, and a new session can begin with it"
    )]
    Exhausted(String),
    #[error(
        "the store {} was removed or replaced while it was in use, so what was stored of this \
         conversation is lost with it", .0.display()
    )]
    Gone(PathBuf),
    #[error(
        "the session {0} {exists}; name it with --session to go on with it, or choose another --session-id",
        exists = EXISTS
    )]
    Exists(String),
    #[error(
        "the store {} has format {found}, and this program knows formats up to {known}; use a newer \
         version of this program", path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error(
        "the store {} has format {found}, of an early version that was not released, and this program \
         reads format {known}; name another file, and keep this one for the version that made it",
        path.display()
    )]
    Older { path: PathBuf, found: i64, known: i64 },
    #[error("{} is a database of another program; name another file", .0.display())]
    NotAStore(PathBuf),
    #[error("{} is no store, and no database of any program; name another file", .0.display())]
    NotADatabase(PathBuf),
    #[error("{0}")]
    Failed(String),
    #[error(
        "another process has written to the session, or has deleted it, while this one had it open, which \
         happens if the folder of locks beside the store (PATH.locks) is removed; what is stored stays as \
         it is, and a new process goes on with that"
    )]
    Overtaken,
    #[error("the store met a defect of this program; please report it")]
    Defect,
    #[error("the conversation can't be stored: {0}")]
    NoThread(NoThread),
    /// Nothing that comes with time makes this a place for a store.
    #[error("the store {} can't be {action}: {why}", path.display())]
    Unfit { path: PathBuf, action: &'static str, why: String },
    #[error("the store {} can't be {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error("the store can't be read or written: {}", explained(.0))]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl StoreError {
    /// The error of a client whose session can't begin because of this.
    pub(super) fn client_error(&self) -> ClientError {
        let code = if let Self::Locked { .. } = self {
            Code::SessionLocked
        } else if let Self::Defect = self {
            Code::Internal
        } else {
            Code::StoreFailed
        };
        let detail = if let Self::Missing(_) = self {
            SESSION_NOT_FOUND.to_owned()
        } else if let Self::Locked { address, .. } = self
            && !address.is_empty()
        {
            format!("{HELD_BY}{address}")
        } else {
            String::new()
        };
        ClientError { code, message: self.to_string(), detail, terminal: true }
    }

    /// What SQLite reports, if it is that.
    fn of_sqlite(&self) -> Option<&rusqlite::Error> {
        if let Self::Sqlite(error) = self { Some(error) } else { None }
    }

    /// Another program has locked the file; a little later it may be free. In PostgreSQL it is tried again
    /// where its connection is.
    pub(super) fn is_busy(&self) -> bool {
        self.of_sqlite().is_some_and(is_busy)
    }

    /// The database is damaged: what can be read of it is read, and nothing is written.
    pub(super) fn is_damage(&self) -> bool {
        self.of_sqlite().is_some_and(is_damage)
    }

    /// SQLite finds no database in the file.
    pub(super) fn is_no_database(&self) -> bool {
        let code = self.of_sqlite().and_then(rusqlite::Error::sqlite_error_code);
        code == Some(ErrorCode::NotADatabase)
    }

    /// A change of the file was cut off, and a connection that only reads can't take it back.
    pub(super) fn is_half_changed(&self) -> bool {
        let code = self.of_sqlite().and_then(rusqlite::Error::sqlite_error);
        code.is_some_and(|error| error.extended_code == SQLITE_READONLY_ROLLBACK)
    }

    /// SQLite can't make a file that it needs beside the database.
    pub(super) fn is_unwritable(&self) -> bool {
        self.of_sqlite().is_some_and(|error| {
            let code = error.sqlite_error_code();
            matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
                || is_without_index(error)
        })
    }

    /// The server of the store does not answer.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.is_silence() || error.is_cut())
    }

    /// Another place has to be named: no disk that is mended, and no permission, makes a store of what is there.
    #[cfg(feature = "serve")]
    pub(super) fn is_lasting(&self) -> bool {
        let is_foreign = matches!(self, Self::NotAStore(_) | Self::NotADatabase(_));
        let is_other_format = matches!(self, Self::Newer { .. } | Self::Older { .. });
        is_foreign || is_other_format || matches!(self, Self::Unfit { .. })
    }

    /// There is no store yet at the place that is named.
    pub(super) fn is_absence(&self) -> bool {
        let is_not_found = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        matches!(self, Self::Io { source, .. } if is_not_found(source))
            || matches!(self, Self::Postgres(PostgresError::Absent(_)))
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The index of the log can't be made: most often the disk is full.
fn is_without_index(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    const OF_INDEX: [i32; 3] = [SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE];
    error.sqlite_error().is_some_and(|error| OF_INDEX.contains(&error.extended_code))
}

/// There is no room: SQLite reports only a disk without a free block by its own code.
fn is_without_room(error: &rusqlite::Error) -> bool {
    is_without_index(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Something can't be written: SQLite reports a quota and a limit on the size of files as an error of the disk.
fn is_unwritten(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE};
    const UNWRITTEN: [i32; 3] = [SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE];
    error.sqlite_error().is_some_and(|error| UNWRITTEN.contains(&error.extended_code))
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ};
    // A file that is too short, or that its disk can't read. A disk that can't be written is no damage.
    const UNREADABLE: [i32; 3] =
        [SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ];
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
        || is_wrong_value(error)
        || error.sqlite_error().is_some_and(|error| UNREADABLE.contains(&error.extended_code))
}

/// A row has a value that was never written there.
fn is_wrong_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error;
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnType(..)
    )
}

/// What SQLite reports, with the cause where it has another one than people expect.
fn explained(error: &rusqlite::Error) -> String {
    if is_busy(error) {
        return format!(
            "another program keeps it locked ({error}); end what that program does with it"
        );
    }
    if is_without_room(error) {
        return format!(
            "its disk may be full, a quota used up, or a limit on the size of files too low ({error}); make room \
             there"
        );
    }
    if is_unwritten(error) {
        return format!(
            "its disk may be full or failing, a quota used up, or a limit on the size of files too low ({error}); \
             make room there, or check the disk"
        );
    }
    if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) {
        return format!(
            "{DAMAGED} ({error}); if an older copy has taken its place, the log beside it (-wal) belongs to the \
             file before it: remove that, and copy again"
        );
    }
    if error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        && let Err(cause) = descriptors_of_a_store()
        && is_out_of_descriptors(&cause)
    {
        return format!("{error}: {cause}; {DESCRIPTORS_ADVICE}");
    }
    error.to_string()
}

/// Opens as many files at once as a store needs beside others: SQLite says that it can't open one, and not why.
fn descriptors_of_a_store() -> io::Result<()> {
    let opened: Vec<_> = (0..STORE_FILES + OTHER_FILES)
        .map(|_| File::open("/dev/null"))
        .collect::<Result<_, _>>()?;
    drop(opened);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn a_write_that_fails_has_its_likely_cause() {
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_SHMSIZE,
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let shown = StoreError::from(error).to_string();
            assert!(shown.contains("a limit on the size of files too low"), "{code}: {shown}");
            // A disk that is dying fails so, too.
            let may_fail = ![ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE].contains(&code);
            assert_eq!(shown.contains("full or failing"), may_fail, "{code}: {shown}");
            assert_eq!(shown.ends_with("make room there"), !may_fail, "{code}: {shown}");
        }
        let read = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_READ), None);
        assert!(!explained(&read).contains("quota"));
    }
}
