//! A store in a file of SQLite.

use super::error::StoreError;
use super::{lock, schema};
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long another process that writes the same file is waited for.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Attempts to open a file while another process makes it.
const OPENINGS_MAX: u32 = 20;

/// Bytes of the log that stay on the disk after it was copied into the database.
const LOG_BYTES_KEPT: i64 = 4 * 1024 * 1024;

/// Statements that are kept prepared.
const STATEMENTS_MAX: usize = 32;

/// A file of SQLite.
#[derive(Debug)]
pub(super) struct Sqlite {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    /// Row of the session that is written, if there is one.
    pub(super) key: Option<i64>,
    /// Each commit is made to survive a loss of power.
    pub(super) is_full: bool,
    /// What is wrong with the file: it is only read, as far as it can be.
    pub(super) damage: Option<String>,
    /// Its log was cut in the middle of a page.
    pub(super) is_torn: bool,
    pub(super) fault: FailPoint,
    /// Holds the session; last, so that it is freed after the database is closed.
    pub(super) lock: Option<File>,
}

impl Sqlite {
    /// Opens the file, and makes it if it may be new.
    pub(super) fn open(
        path: &Path,
        may_be_new: bool,
        fault: FailPoint,
    ) -> Result<Self, StoreError> {
        let is_torn = is_log_torn(path);
        make(path, may_be_new)?;
        let mut attempts = 0;
        let opened = loop {
            attempts += 1;
            match connect(path) {
                Err(StoreError::Sqlite(error)) if is_busy(&error) && attempts < OPENINGS_MAX => {}
                opened => break opened,
            }
        };
        let (connection, damage) = match opened {
            Ok(connection) => (connection, None),
            Err(error) if error.is_damage() => (salvage(path)?, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let path = path.to_owned();
        let (key, is_full, lock) = (None, false, None);
        Ok(Self { connection, path, key, is_full, damage, is_torn, fault, lock })
    }

    pub(super) fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        self.lock = Some(lock::lock(&self.path, session)?);
        Ok(())
    }

    pub(super) fn has(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.find(session)?.is_some())
    }

    /// The row of a session.
    pub(super) fn find(&self, session: &SessionId) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT key FROM sessions WHERE id = ?";
        let found = self.connection.query_row(sql, [session.as_str()], |row| row.get(0));
        Ok(found.optional()?)
    }

    pub(super) fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, StoreError> {
        let sql =
            "SELECT id FROM sessions WHERE folder = ? ORDER BY updated_ms DESC, key DESC LIMIT 1";
        let found = self.connection.query_row(sql, params![folder], |row| row.get::<_, String>(0));
        Ok(found.optional()?.and_then(|id| SessionId::new(&id)))
    }

    /// From here on, commits survive a loss of power, or only a crash of this process.
    pub(super) fn sync(&mut self, is_full: bool) -> Result<(), StoreError> {
        if self.is_full != is_full {
            let how = if is_full { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", how)?;
            self.is_full = is_full;
        }
        Ok(())
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Makes the file and its folder, which only their owner can read. SQLite gives its log the mode of
/// the file.
fn make(path: &Path, may_be_new: bool) -> Result<(), StoreError> {
    let failed = |action| {
        let path = path.to_owned();
        move |source| StoreError::Io { path, action, source }
    };
    if !may_be_new {
        let about = path.metadata().map_err(failed("opened"))?;
        // A file without a byte holds nothing, and is not made a store of.
        if about.len() == 0 {
            let source = io::Error::new(io::ErrorKind::NotFound, "it is empty");
            return Err(failed("resumed")(source));
        }
        return Ok(());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(failed("made"))?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(drop).map_err(failed("opened"))
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    // Before anything is changed in a file that may not be ours.
    schema::check(&connection, path)?;
    let mode = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    if mode != "wal" {
        tracing::warn!(
            path = %path.display(), mode,
            "the store is on a file system on which its log can't be shared; writing is slower"
        );
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    schema::migrate(&mut connection, path)?;
    Ok(connection)
}

/// Opens a damaged file for reading what can be read. SQLite opens one that is too short only if its
/// schema may be written, which a connection for reading never does.
fn salvage(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    connection.pragma_update(None, "writable_schema", true)?;
    Ok(connection)
}

/// Whether the log beside the file ends in the middle of a page: it was cut.
fn is_log_torn(path: &Path) -> bool {
    /// Bytes of the log's header, and of the header of each page in it.
    const HEADER_BYTES: u64 = 32;
    const PAGE_HEADER_BYTES: u64 = 24;
    /// SQLite's own size of a page, which this program does not change.
    const PAGE_BYTES: u64 = 4096;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push("-wal");
    let bytes = path.with_file_name(name).metadata().map_or(0, |about| about.len());
    match bytes.checked_sub(HEADER_BYTES) {
        Some(pages) => pages % (PAGE_HEADER_BYTES + PAGE_BYTES) != 0,
        None => bytes != 0,
    }
}
