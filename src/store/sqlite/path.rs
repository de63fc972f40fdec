//! Where the file of a store is: one path for one file, however it is named. SQLite and the locks of
//! sessions keep files beside it, which must be the same for all processes.

use crate::store::error::StoreError;
use rustix::fs::{Access, access};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};

/// Bytes of the header of a database, what it begins with, and three numbers in it that are the same in each
/// (<https://www.sqlite.org/fileformat2.html#the_database_header>).
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const FRACTIONS: [u8; 3] = [64, 32, 32];

/// Symbolic links that are followed one after the other, as many as Linux follows.
const LINKS_MAX: u32 = 40;

/// The absolute path of the file, without symbolic links. The file and its folders need not be there.
pub(in crate::store) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    try_resolve(path).map_err(|source| match source.kind() == ErrorKind::NotADirectory {
        true => unfit(path, source.to_string()),
        false => StoreError::Io { path: path.to_owned(), action: "opened", source },
    })
}

/// Whether both name one file, which need not be there.
pub(in crate::store) fn is_same(one: &Path, other: &Path) -> bool {
    match (try_resolve(one), try_resolve(other)) {
        (Ok(one), Ok(other)) => one == other,
        // Neither can be opened.
        (Err(_), _) | (_, Err(_)) => one == other,
    }
}

fn try_resolve(path: &Path) -> io::Result<PathBuf> {
    // Never relative: SQLite gives names like `:memory:` and `file:x` a meaning of their own.
    let mut path = path::absolute(path)?;
    for _ in 0..LINKS_MAX {
        match path.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path);
        };
        match path.read_link() {
            // Its file is not there yet.
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(try_resolve(folder)?.join(name)),
        }
    }
    Err(io::Error::other("it is a symbolic link that leads back to itself"))
}

/// Checks what is at `path`, before it is opened: to open a pipe would wait for its other end.
pub(super) fn check_kind(path: &Path, about: &Metadata) -> Result<(), StoreError> {
    let what = match about.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "it is a folder; name a file in it",
        _ => "it is not a regular file; name another file",
    };
    Err(unfit(path, what.to_owned()))
}

/// Checks that this process may read the file, or write it: SQLite's own errors name no file. It is not opened for
/// that, as to close it would release the locks that this process has on it (fcntl(2)).
pub(super) fn check_access(path: &Path, wanted: Access) -> Result<(), StoreError> {
    let action = if wanted.contains(Access::WRITE_OK) { "written" } else { "read" };
    let path = path.to_owned();
    access(&path, wanted).map_err(|error| StoreError::Io { path, action, source: error.into() })
}

/// Checks that a file that is written has no other name: SQLite keeps a log for each name, so that
/// what is written under one of them would be lost under the other.
pub(super) fn check_names(path: &Path, about: &Metadata) -> Result<(), StoreError> {
    let names = about.nlink();
    if names <= 1 {
        return Ok(());
    }
    let what = format!(
        "the file has {names} names (hard links), and what is written under one of them would be lost \
         under the others; keep one name, or copy the file"
    );
    Err(unfit(path, what))
}

/// Whether the file at `path`, in which SQLite finds no database, may be a store that is damaged. Only for such a
/// file: to close it frees the locks that this process has on it (fcntl(2)).
pub(super) fn was_store(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut beginning));
    if read.is_err() {
        return true;
    }
    // Where a disk has lost the beginning, there are zeros.
    let is_lost = beginning.iter().all(|byte| *byte == 0);
    let has_fractions = beginning.get(21..24) == Some(&FRACTIONS[..]);
    let has_locks = path.with_added_extension("locks").is_dir();
    is_lost || has_fractions || beginning.starts_with(MAGIC) || has_locks
}

/// What makes the file at `path` another one than one that had its name before: its device and its
/// number.
pub(in crate::store) fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}

fn unfit(path: &Path, why: String) -> StoreError {
    StoreError::Unfit { path: path.to_owned(), action: "opened", why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_that_this_process_may_not_open_is_named() {
        let folder = TestFolder::new();
        let path = folder.path("store");
        fs::write(&path, "").expect("a file");
        let both = Access::READ_OK | Access::WRITE_OK;
        assert!(check_access(&path, both).is_ok());
        // Root may.
        if rustix::process::geteuid().is_root() {
            return;
        }
        for (mode, wanted, action) in [(0o000, Access::READ_OK, "read"), (0o444, both, "written")] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("our file");
            let error = check_access(&path, wanted).expect_err("no permission").to_string();
            let expected = format!("the store {} can't be {action}: ", path.display());
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn one_file_has_one_path() {
        let folder = TestFolder::new();
        fs::create_dir(folder.path("real")).expect("a folder");
        symlink("real", folder.path("link")).expect("a link");
        symlink("link/store", folder.path("early")).expect("a link to a file that is not there");
        symlink("loop", folder.path("loop")).expect("a link");
        let real = folder.path("real/store");
        for is_there in [false, true] {
            if is_there {
                fs::write(&real, "").expect("a file");
            }
            for name in ["real/store", "./link/store", "early", "link/../real/./store"] {
                assert_eq!(try_resolve(&folder.path(name)).expect(name), real, "{is_there}");
            }
            assert!(is_same(&folder.path("early"), &folder.path("link/store")));
            assert!(!is_same(&real, &folder.path("real/other")));
        }
        assert_eq!(try_resolve(&folder.path("a/b")).expect("new"), folder.path("a/b"));
        assert!(try_resolve(&folder.path("loop")).is_err());
        let own = try_resolve(Path::new(":memory:")).expect("a name like any other");
        assert!(own.is_absolute() && own.ends_with(":memory:"), "{own:?}");
    }
}
