//! Whether a session could begin in a file: looks, and changes nothing in it.

use super::{lock, network, path as file_path, schema, sessions, wal};
use crate::store::error::StoreError;
use crate::store::inspection::{Checked, HOLDERS_MAX, Inspection, Tables};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::{Access, access};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another program that has locked the file is waited for.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);

const SESSIONS: &str = "SELECT count(*) FROM sessions";

/// Looks whether a session could begin in the file at `path`, which need not be there; `reads`: and whether those that
/// are there are whole.
pub(in crate::store) fn inspect(path: &Path, reads: bool) -> Result<Inspection, StoreError> {
    let path = &*file_path::resolve(path)?;
    let failed = |action| {
        let path = path.to_owned();
        move |source| StoreError::Io { path, action, source }
    };
    let is_remote = network::is_remote(path);
    let about = match path.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let unfit = |why: io::Error| StoreError::Unfit {
                path: path.to_owned(),
                action: "made",
                why: why.to_string(),
            };
            check_makeable(path).map_err(unfit)?;
            return Ok(Inspection { is_remote, ..Inspection::default() });
        }
        Err(error) => return Err(failed("opened")(error)),
    };
    file_path::check_kind(path, &about)?;
    file_path::check_names(path, &about)?;
    let folder = path.parent().unwrap_or(path);
    // SQLite makes files beside it.
    for place in [path, folder] {
        access(place, Access::WRITE_OK).map_err(io::Error::from).map_err(failed("written"))?;
    }
    let held = lock::held(path, HOLDERS_MAX).map_err(failed("locked"))?;
    // A connection that may write would take what is left of a damaged log into the database.
    let log = wal::OpenLog::new(path);
    let loss = log.loss;
    let is_log_torn = loss == Some(wal::LogLoss::Torn);
    if let Some(loss) = loss.filter(|_| !is_log_torn) {
        let why = io::Error::other(format!("its log {loss}, so that changes are missing"));
        return Err(failed("used")(why));
    }
    let tables = tables(path).map_err(|error| match error.is_no_database() {
        true if !file_path::was_store(path) => StoreError::NotADatabase(path.to_owned()),
        _ => error,
    })?;
    let tables = tables.map(|tables| {
        let checked = if reads { sessions::check(path) } else { Checked::default() };
        let (held, holders, foreign_locks) = (held.count, held.names, held.foreign);
        Tables { held, holders, foreign_locks, checked, ..tables }
    });
    Ok(Inspection { tables, is_remote, is_log_torn })
}

/// Checks that a file can be made: its folder, or the nearest above it that is there, can be written.
fn check_makeable(path: &Path) -> io::Result<()> {
    let mut folders = path.ancestors().skip(1).map(Path::to_path_buf);
    let nearest = folders.find(|folder| folder.symlink_metadata().is_ok());
    let nearest = nearest.unwrap_or_else(|| PathBuf::from("/"));
    if !nearest.is_dir() {
        return Err(io::Error::other(format!("{} is not a folder", nearest.display())));
    }
    access(&nearest, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// The tables in the file; `None` if there are none yet. A transaction that writes is begun and taken
/// back, which fails where the file is locked or can't be written.
fn tables(path: &Path) -> Result<Option<Tables>, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_WAIT_MAX)?;
    let sessions = match schema::check(&connection, path)? {
        false => None,
        true => Some(connection.query_row(SESSIONS, [], |row| row.get::<_, i64>(0))?),
    };
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.rollback()?;
    Ok(sessions.map(|sessions| {
        let sessions = u64::try_from(sessions).unwrap_or_default();
        Tables { format: schema::FORMAT, sessions, ..Tables::default() }
    }))
}
