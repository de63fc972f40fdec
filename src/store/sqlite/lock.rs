//! One process writes a session. The lock is the system's, on a file beside the database, and so ends
//! with the process that holds it, however that ends. The file is never removed: another process might
//! hold a lock on one that is no more. Its text only informs.

use crate::protocol::id::SessionId;
use crate::store::error::StoreError;
use crate::support::files::lock_within;
use crate::support::terminal::escape_control;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a lock is waited for: a child that another thread of the holder is just starting may have
/// it a moment longer.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(100);

/// Bytes of the text in a lock file that are read.
const HOLDER_BYTES_MAX: u64 = 512;

/// Locks a session of the database at `path` until what it returns is dropped.
pub(super) fn lock(path: &Path, session: &SessionId) -> Result<File, StoreError> {
    let failed = |source| {
        let (path, action) = (path.to_owned(), "locked");
        StoreError::Io { path, action, source }
    };
    let (mut file, is_new) = open(path, session).map_err(failed)?;
    lock_within(&file, LOCK_WAIT_MAX).map_err(|error| match error {
        TryLockError::WouldBlock => {
            StoreError::Locked { holder: holder(&file), address: String::new() }
        }
        TryLockError::Error(source) => failed(source),
    })?;
    // What it says is for people; a lock without it is as good.
    if file.metadata().is_ok_and(|about| is_own(&about, path)) {
        file.set_len(0).and_then(|()| writeln!(file, "{}", own_name())).ok();
    }
    if is_new {
        give_to_owner(&file, path);
    }
    Ok(file)
}

/// Sessions of a database that processes hold.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) count: u64,
    /// Who holds them, of some.
    pub(super) names: Vec<String>,
    /// Locks that this user may not open, as those of another one.
    pub(super) foreign: u64,
}

/// The sessions of the database at `path` that are locked now, with `names_max` of their holders. Makes
/// no lock, and follows no symbolic link.
pub(super) fn held(path: &Path, names_max: usize) -> io::Result<Held> {
    let folder = folder(path);
    let mut held = Held::default();
    let about = folder.symlink_metadata();
    if about.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(held);
    }
    if about?.is_symlink() {
        return Err(refused(&folder, "it is a symbolic link"));
    }
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        if matches!(opened, Err(Errno::ACCESS)) {
            held.foreign += 1;
            continue;
        }
        let file = File::from(opened.map_err(|error| unusable(&path, error.into()))?);
        // Shared, and only for a moment: a process that wants the session waits longer than that.
        if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            held.count += 1;
            if held.names.len() < names_max {
                held.names.push(holder(&file));
            }
        }
    }
    Ok(held)
}

/// Opens the lock file of a session of `database`, and makes it and its folder where they are missing. Others may be
/// allowed to write where the database is: no symbolic link is followed, and only a regular file is a
/// lock. `true`: the lock file is new.
fn open(database: &Path, session: &SessionId) -> io::Result<(File, bool)> {
    let folder = &folder(database);
    let is_new = match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        made => made.map(|()| true).map_err(|error| unusable(folder, error))?,
    };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let folder_fd = opened.map_err(|error| unusable(folder, error.into()))?;
    if is_new {
        give_to_owner(&folder_fd, database);
    }
    let name = HEXLOWER.encode(digest(&SHA256, session.as_str().as_bytes()).as_ref());
    let name = format!("{name}.lock");
    // To open a pipe or a device must not wait.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(&folder_fd, &name, flags, Mode::RUSR | Mode::WUSR);
    let (opened, is_new) = match open(flags | OFlags::EXCL) {
        Err(Errno::EXIST) => (open(flags), false),
        made => (made, true),
    };
    let path = folder.join(&name);
    let file = File::from(opened.map_err(|error| unusable(&path, error.into()))?);
    match file.metadata()?.is_file() {
        true => Ok((file, is_new)),
        false => Err(refused(&path, "it is not a regular file")),
    }
}

/// Gives what root has just made to the owner of the database, as SQLite does with its log: the owner could not use
/// the session any more.
fn give_to_owner(made: impl AsFd, database: &Path) {
    if !geteuid().is_root() {
        return;
    }
    // Where that can't be done, as on some network file systems, the lock is one of root.
    if let Ok(about) = database.metadata() {
        fchown(made, Some(about.uid()), Some(about.gid())).ok();
    }
}

/// Why a lock file or its folder can't be opened.
fn unusable(path: &Path, error: io::Error) -> io::Error {
    let about = path.symlink_metadata();
    if about.as_ref().is_ok_and(Metadata::is_symlink) {
        return refused(path, "it is a symbolic link");
    }
    let is_foreign = about.is_ok_and(|about| about.uid() != geteuid().as_raw());
    let advice = if is_foreign { "; it belongs to another user: change that (chown)" } else { "" };
    let path = escape_control(&path.display().to_string());
    io::Error::new(error.kind(), format!("its lock {path} can't be opened: {error}{advice}"))
}

fn refused(path: &Path, what: &str) -> io::Error {
    let path = escape_control(&path.display().to_string());
    io::Error::other(format!(
        "its lock {path} is not used, as {what}; remove that, or keep the store in a folder that only \
         you can write"
    ))
}

/// The lock is ours, or what root has given to the owner of the database, and has no other name under which it is
/// something else.
fn is_own(about: &Metadata, database: &Path) -> bool {
    let own = geteuid();
    let is_given = || own.is_root() && database.metadata().is_ok_and(|it| it.uid() == about.uid());
    about.is_file() && about.nlink() == 1 && (about.uid() == own.as_raw() || is_given())
}

/// The folder of a database's lock files.
fn folder(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".locks");
    path.with_file_name(name)
}

/// Who holds a lock, by its file.
fn holder(file: &File) -> String {
    let mut text = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut text) {
        Ok(1..) => text.trim().escape_default().to_string(),
        Ok(0) | Err(_) => "it is not known which".to_owned(),
    }
}

/// This process, for people who look for the holder of a session.
pub(in crate::store) fn own_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap_or_else(|_| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
    format!("process {} on {}, since {now}", std::process::id(), host.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    #[test]
    fn a_lock_that_can_not_be_opened_is_named() {
        let folder = TestFolder::new();
        let path = folder.path("store");
        let session = SessionId::new("s").expect("an id");
        drop(lock(&path, &session).expect("a lock"));
        let locks = folder.path("store.locks");
        let made = fs::read_dir(&locks).expect("a folder").next().expect("a lock");
        let made = made.expect("a lock").path();
        fs::remove_file(&made).expect("our file");
        fs::create_dir(&made).expect("a folder in its place");
        let error = lock(&path, &session).expect_err("it is no file").to_string();
        let expected =
            format!("the store {} can't be locked: its lock {} ", path.display(), made.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}
