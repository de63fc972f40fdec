//! One process writes a session. The lock is the system's, on a file beside the database, and so ends
//! with the process that holds it, however that ends. The file is never removed: another process might
//! hold a lock on one that is no more. Its text only informs.

use super::error::StoreError;
use crate::protocol::id::SessionId;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a lock is waited for: a child that another thread of the holder is just starting may have
/// it a moment longer.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(100);

/// Time between two attempts.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of the text in a lock file that are read.
const HOLDER_BYTES_MAX: u64 = 512;

/// Locks a session of the database at `path` until what it returns is dropped.
pub(super) fn lock(path: &Path, session: &SessionId) -> Result<File, StoreError> {
    let failed = |source| {
        let (path, action) = (path.to_owned(), "locked");
        StoreError::Io { path, action, source }
    };
    let folder = folder(path);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let name = HEXLOWER.encode(digest(&SHA256, session.as_str().as_bytes()).as_ref());
    let path_of_lock = folder.join(format!("{name}.lock"));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path_of_lock).map_err(failed)?;
    let until = Instant::now() + LOCK_WAIT_MAX;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(holder(&path_of_lock))),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    // What it says is for people; a lock without it is as good.
    file.set_len(0).and_then(|()| writeln!(file, "{}", own_name())).ok();
    Ok(file)
}

/// The folder of a database's lock files.
fn folder(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".locks");
    path.with_file_name(name)
}

/// Who holds a lock, by its file.
fn holder(path: &Path) -> String {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(HOLDER_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(1..) => text.trim().escape_default().to_string(),
        Ok(0) | Err(_) => "it is not known which".to_owned(),
    }
}

/// This process, for people who look for the holder of a session.
pub(super) fn own_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap_or_else(|_| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
    format!("process {} on {}, since {now}", std::process::id(), host.trim())
}
