//! A store in a file of SQLite.

mod inspect;
mod load;
mod lock;
mod network;
pub(super) mod path;
mod rows;
mod schema;
pub(super) mod sessions;
mod wal;
mod write;

pub(super) use inspect::inspect;
pub(super) use lock::own_name;

use super::error::{DAMAGED, StoreError};
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use crate::support::lock;
use crate::support::terminal::escape_control;
use path as file_path;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};
pub(super) use wal::LogLoss;
use wal::OpenLog;

/// How long another process that writes the same file is waited for.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Time between two attempts to open a file that another process makes or has locked.
const OPENING_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of the write-ahead log that stay on the disk after a checkpoint: the log's header, and 1018
/// pages with theirs, so that SQLite does not cut it within a page.
const LOG_BYTES_KEPT: i64 = 32 + 1018 * (24 + 4096);

/// Pages of the write-ahead log after which SQLite runs a checkpoint within a commit: 16 MiB.
const LOG_PAGES_MAX: i64 = 4096;

/// About how many bytes are written before a checkpoint between two turns, for which nobody waits.
const LOG_BYTES_DUE: u64 = 4 * 1024 * 1024;

/// About what a transaction writes besides the bytes that it adds.
pub(super) const TRANSACTION_BYTES: u64 = 48 * 1024;

/// KiB of pages that are kept in memory: a turn with a long text changes more than SQLite's 2 MiB.
const CACHE_KIB: i64 = 4096;

/// Statements that are kept prepared.
const STATEMENTS_MAX: usize = 32;

/// Where the index of ids may be damaged, a session is searched in the table, from either end.
const SEARCHES: [&str; 2] = [
    "SELECT key FROM sessions NOT INDEXED WHERE id = ? ORDER BY key LIMIT 1",
    "SELECT key FROM sessions NOT INDEXED WHERE id = ? ORDER BY key DESC LIMIT 1",
];

/// A file of SQLite.
#[derive(Debug)]
pub(super) struct Sqlite {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    /// Each commit is synced (fsync), and so survives a loss of power.
    pub(super) is_full: bool,
    /// About how many bytes are in the write-ahead log.
    pub(super) logged: u64,
    /// Its tables are there; they may be missing in a file that is only read, while another process makes the store,
    /// or after one that was to make it was killed: then there are no sessions.
    has_tables: bool,
    /// What is wrong with the file: it is only read, as far as it can be.
    pub(super) damage: Option<String>,
    /// What is missing in its log.
    pub(super) log_loss: Option<LogLoss>,
    /// Dropped after the connection.
    _log: OpenLog,
    /// The device and the number of the file, by which it is known whether it is still there.
    pub(super) file: Option<(u64, u64)>,
    pub(super) fault: FailPoint,
}

/// A session that this process holds in a file.
#[derive(Debug)]
pub(super) struct LockedSession {
    /// The row of the session, if there is one.
    key: Option<i64>,
    _lock: File,
}

impl Sqlite {
    /// Opens the file, and makes it if it may be new.
    pub(super) fn open(
        path: &Path,
        may_be_new: bool,
        fault: FailPoint,
    ) -> Result<Self, StoreError> {
        let path = &*file_path::resolve(path)?;
        make(path, may_be_new)?;
        let log = OpenLog::new(path);
        // A damaged file is only read, so that this does not end the attempt.
        let may_write = file_path::check_access(path, Access::READ_OK | Access::WRITE_OK);
        let journal = Journal::of(path);
        let until = Instant::now() + BUSY_WAIT_MAX;
        let opened = loop {
            let left = until.saturating_duration_since(Instant::now());
            match connect(path, journal, left) {
                // Not all of what SQLite does here waits by itself.
                Err(error) if error.is_busy() && !left.is_zero() => sleep(OPENING_INTERVAL),
                opened => break opened,
            }
        };
        let (connection, damage) = match opened {
            Ok(connection) => {
                may_write?;
                (connection, None)
            }
            Err(error) if error.is_no_database() && !file_path::was_store(path) => {
                return Err(StoreError::NotADatabase(path.to_owned()));
            }
            Err(error) if error.is_damage() => (salvage(path)?, Some(error.to_string())),
            Err(error) => {
                may_write?;
                return Err(unwritable_folder(path)
                    .filter(|_| error.is_unwritable())
                    .unwrap_or(error));
            }
        };
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let path = path.to_owned();
        let (file, is_full, logged) = (file_path::identity(&path), false, 0);
        let log_loss = log.loss;
        let has_tables = true;
        Ok(Self {
            connection,
            path,
            is_full,
            logged,
            has_tables,
            damage,
            log_loss,
            _log: log,
            file,
            fault,
        })
    }

    /// Checks that the file is not damaged: a damaged one is only read.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        let Some(damage) = &self.damage else { return Ok(()) };
        let source = io::Error::other(format!("{DAMAGED}: {damage}"));
        Err(StoreError::Io { path: self.path.clone(), action: "written", source })
    }

    pub(super) fn claim(&self, session: &SessionId) -> Result<LockedSession, StoreError> {
        Ok(LockedSession { key: None, _lock: lock::lock(&self.path, session)? })
    }

    pub(super) fn has(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.has_tables && self.key_of(session)?.is_some())
    }

    /// The key of a session. Where the index of ids is damaged the table itself is searched, from either end, and the
    /// file is only read from then on.
    fn key_of(&mut self, session: &SessionId) -> Result<Option<i64>, StoreError> {
        match self.allow_damage(find(&self.connection, session))? {
            Ok(found) if found.is_some() || self.damage.is_none() => return Ok(found),
            Ok(_) => {}
            Err(error) => {
                self.damage.get_or_insert_with(|| error.to_string());
            }
        }
        let search = |sql: &str| {
            let found = self.connection.query_row(sql, [session.as_str()], |row| row.get(0));
            found.optional()
        };
        let [first, last] = SEARCHES;
        Ok(search(first).or_else(|_| search(last))?)
    }

    /// The session of this folder that was changed last, of those in which something was said.
    pub(super) fn latest(&mut self, folder: &str) -> Result<Option<SessionId>, StoreError> {
        let sql = "SELECT id FROM sessions WHERE folder = ? AND turns > 0 \
                   ORDER BY changed DESC, key DESC LIMIT 1";
        let found = self.connection.query_row(sql, [folder], |row| row.get::<_, String>(0));
        Ok(found.optional()?.and_then(|id| SessionId::new(&id)))
    }

    /// Checks that what was written is in the file of that name: SQLite also writes one that was
    /// removed.
    pub(super) fn check_place(&self) -> Result<(), StoreError> {
        match self.file.is_some() && file_path::identity(&self.path) != self.file {
            true => Err(StoreError::Gone(self.path.clone())),
            false => Ok(()),
        }
    }

    /// Runs a checkpoint if the write-ahead log has become long, as far as no other process reads it: the
    /// batch that ended a turn is reported, so that only the next one, of any session, waits for this.
    pub(super) fn settle(&mut self) {
        if self.logged < LOG_BYTES_DUE {
            return;
        }
        self.logged = 0;
        let copied = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = copied {
            tracing::debug!(%error, "the log of the store was not copied");
        }
    }

    /// Checkpoints and truncates the write-ahead log, unless another process uses it just now: the next
    /// batch must not wait for that.
    pub(super) fn tidy(&mut self) {
        let connection = &self.connection;
        let emptied = connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .and_then(|()| connection.busy_timeout(BUSY_WAIT_MAX));
        self.logged = 0;
        if let Err(error) = emptied {
            tracing::debug!(%error, "the log of the store was not emptied");
            connection.busy_timeout(BUSY_WAIT_MAX).ok();
        }
    }

    /// From here on, commits are synced (fsync) and survive a loss of power, or only a crash of this
    /// process.
    pub(super) fn sync(&mut self, is_full: bool) -> Result<(), StoreError> {
        if self.is_full != is_full {
            let how = if is_full { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", how)?;
            self.is_full = is_full;
        }
        Ok(())
    }
}

/// The row of a session.
fn find(connection: &Connection, session: &SessionId) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT key FROM sessions WHERE id = ?";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([session.as_str()], |row| row.get(0)).optional()?)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Makes the file and its folder, which only their owner can read. SQLite gives its log the mode of
/// the file.
fn make(path: &Path, may_be_new: bool) -> Result<(), StoreError> {
    let failed = |action| {
        let path = path.to_owned();
        move |source| StoreError::Io { path, action, source }
    };
    let about = path.metadata();
    if let Ok(about) = &about {
        file_path::check_kind(path, about)?;
        file_path::check_names(path, about)?;
    }
    if !may_be_new {
        let about = about.map_err(failed("opened"))?;
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
    // Made by somebody else, who had no reason to keep it from others.
    if about.is_ok_and(|about| about.len() == 0) {
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed("kept private"))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        // A file that is there is not opened here: to close it again would free the locks that another
        // conversation of this process has on it (fcntl(2)).
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop).map_err(failed("opened")),
    }
}

/// How changes are kept until they are in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journal {
    /// In a log, whose index is in memory that processes share.
    Log,
    /// What was there before is kept in a file until the change is done: processes of several machines
    /// share no memory.
    Rollback,
}

impl Journal {
    /// The journal of a store at `path`; warns if it is a place where changes may be lost.
    fn of(path: &Path) -> Self {
        if !network::is_remote(path) {
            return Self::Log;
        }
        if is_known(path) {
            return Self::Rollback;
        }
        tracing::warn!(
            path = %escape_control(&path.display().to_string()),
            "the store is on a network file system, where locks and writes can be lost; each write is \
             slower there, and only one machine should use the store; keep it on a local disk"
        );
        Self::Rollback
    }

    fn word(self) -> &'static str {
        match self {
            Self::Log => "wal",
            Self::Rollback => "delete",
        }
    }
}

/// Whether something was said of the file already: it is opened again and again while a session is waited for.
fn is_known(path: &Path) -> bool {
    static KNOWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    !lock(&KNOWN).insert(path.to_owned())
}

/// Opens the file for writing; another process that has locked it is waited for.
fn connect(path: &Path, journal: Journal, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(wait)?;
    // Before anything is changed in a file that may not be ours.
    schema::check(&connection, path)?;
    let mode = connection.pragma_update_and_check(None, "journal_mode", journal.word(), |row| {
        row.get::<_, String>(0)
    })?;
    if mode != journal.word() {
        tracing::warn!(
            path = %escape_control(&path.display().to_string()), mode,
            "the store keeps its changes in another way than it was asked to, as its file system or \
             another process has it; writing may be slower"
        );
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    schema::create(&mut connection, path)?;
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    Ok(connection)
}

/// Why SQLite can't make its files beside the database, if nothing can be made there.
fn unwritable_folder(path: &Path) -> Option<StoreError> {
    let error = io::Error::from(access(path.parent()?, Access::WRITE_OK).err()?);
    let why = format!("SQLite makes files beside it, and its folder can't be written: {error}");
    let source = io::Error::new(error.kind(), why);
    Some(StoreError::Io { path: path.to_owned(), action: "written", source })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    /// A connection to a store with a log holds a lock on its file as long as it is open.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_locks_of_another_conversation_of_this_process_stay() {
        use std::os::unix::fs::MetadataExt;
        let folder = TestFolder::new();
        let path = folder.path("store");
        let first = Sqlite::open(&path, true, FailPoint::default()).expect("a store");
        let of_file = format!(":{} ", path.metadata().expect("a file").ino());
        let locks = || {
            let all = std::fs::read_to_string("/proc/locks").expect("a list");
            all.lines().filter(|line| line.contains(&of_file)).count()
        };
        assert_eq!(locks(), 1);
        make(&path, true).expect("it is there");
        assert_eq!(locks(), 1);
        drop(first);
    }

    #[test]
    fn a_store_is_made_with_either_kind_of_journal() {
        let folder = TestFolder::new();
        let path = folder.path("store");
        make(&path, true).expect("a file");
        for journal in [Journal::Rollback, Journal::Log, Journal::Rollback] {
            let connection = connect(&path, journal, BUSY_WAIT_MAX).expect("a store");
            let mode = connection
                .pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))
                .expect("a word");
            assert_eq!(mode, journal.word());
        }
    }
}
