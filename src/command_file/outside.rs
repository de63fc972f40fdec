//! I/O of command files: files, standard input and the clock. No other part of command files does
//! I/O.

use super::parse::TOO_LARGE;
use super::{CommandFile, FILE_BYTES_MAX, FileError};
use crate::support::files::{FileId, WorkFolder};
use jiff::Zoned;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Largest file or standard input named by a flag, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest total of all of them, in bytes.
const TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Names of standard input. The program has moved its own away from descriptor 0.
const STDIN: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether the path is a name of standard input, which this program has made private.
pub fn is_stdin(path: &Path) -> bool {
    STDIN.iter().any(|stdin| path == Path::new(stdin))
}

/// Access to files, standard input and the clock for the values of flags.
pub struct Outside<'a> {
    stdin: Option<&'a mut dyn FnMut() -> io::Result<Vec<u8>>>,
    now: Zoned,
    left: usize,
    files: Vec<(PathBuf, FileId)>,
    key_value_files: Vec<String>,
    folder: WorkFolder,
}

/// The content of a file or of standard input.
pub(super) struct Contents {
    /// Its path as it was typed; `-` for standard input.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// Metadata, if it is a file.
    pub(super) file: Option<FileFacts>,
}

/// Metadata of a file.
pub(super) struct FileFacts {
    /// Unless it is a pipe or a device.
    id: Option<FileId>,
    pub(super) absolute: PathBuf,
    /// Path relative to the current folder.
    pub(super) relative: PathBuf,
    pub(super) modified: Option<SystemTime>,
    /// Permissions as `ls -l` prints them.
    pub(super) mode: u32,
}

impl CommandFile {
    /// Reads the command file at `path`. The error says what is wrong, where, and what to do.
    ///
    /// # Errors
    /// If the file can't be read, is longer than the limit, or is not a command file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let error = |message| FileError { path: path.to_owned(), line: None, message };
        let limit = FILE_BYTES_MAX.saturating_add(1);
        let bytes = File::open(path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let bytes = bytes.map_err(|cause| {
            error(format!(
                "the command file can't be read: {cause}; check its name and who may read it"
            ))
        })?;
        if bytes.len() >= limit {
            return Err(error(TOO_LARGE.to_owned()));
        }
        let text = String::from_utf8(bytes).map_err(|cause| {
            let at = cause.utf8_error().valid_up_to();
            error(format!("it is not UTF-8 from byte {at} on; convert it to UTF-8"))
        })?;
        Self::parse(path, &text)
    }
}

impl<'a> Outside<'a> {
    /// Access to the real system. `stdin` reads all of standard input and is called at most once;
    /// it should read at most [`VALUE_BYTES_MAX`] bytes plus one, which is then reported as too
    /// large.
    pub fn new(stdin: &'a mut dyn FnMut() -> io::Result<Vec<u8>>) -> Self {
        Self {
            stdin: Some(stdin),
            now: Zoned::now(),
            left: TOTAL_BYTES_MAX,
            files: Vec::new(),
            key_value_files: Vec::new(),
            folder: WorkFolder::default(),
        }
    }

    /// Like `new`, with paths that are relative to `folder`.
    pub(crate) fn below(self, folder: WorkFolder) -> Self {
        Self { folder, ..self }
    }

    /// Like `new`, where standard input held the command file: nothing is left of it.
    pub(crate) fn without_stdin(self) -> Self {
        Self { stdin: None, ..self }
    }

    /// Like `new`, for a given instant (for tests).
    #[cfg(test)]
    pub(super) fn at(self, now: Zoned) -> Self {
        Self { now, ..self }
    }

    /// The regular files that were read.
    pub(crate) fn files(self) -> Vec<(PathBuf, FileId)> {
        self.files
    }

    /// The paths after `@` of which keys and values were read.
    pub(crate) fn key_value_files(self) -> Vec<String> {
        self.key_value_files
    }

    /// Like `read`, for the path after `@` in the place of keys and values.
    pub(super) fn read_key_values(&mut self, path: &str) -> Result<Contents, String> {
        self.key_value_files.push(path.to_owned());
        self.read(Path::new(path))
    }

    /// The time.
    pub(super) fn now(&self) -> &Zoned {
        &self.now
    }

    /// Reads the file at `path`, or standard input for `-` and its other names. An error is a
    /// fragment of a message.
    pub(super) fn read(&mut self, path: &Path) -> Result<Contents, String> {
        if path.as_os_str().is_empty() {
            return Err("the name of the file is empty; name one, or leave the flag out".to_owned());
        }
        let contents =
            if is_stdin(path) { self.read_stdin()? } else { read_file(path, &self.folder)? };
        let id = contents.file.as_ref().and_then(|file| file.id);
        self.files.extend(id.map(|id| (path.to_owned(), id)));
        if contents.bytes.len() > VALUE_BYTES_MAX {
            return Err(too_large(path, VALUE_BYTES_MAX));
        }
        match self.left.checked_sub(contents.bytes.len()) {
            Some(left) => self.left = left,
            None => {
                let limit = TOTAL_BYTES_MAX / (1024 * 1024);
                return Err(format!(
                    "with {} all files together have more than {limit} MiB; give fewer or shorter ones",
                    path.display()
                ));
            }
        }
        Ok(contents)
    }

    fn read_stdin(&mut self) -> Result<Contents, String> {
        let Some(stdin) = self.stdin.take() else {
            let message = "standard input (-) is already read for another flag or file; \
                 it can be read once, so put one of the two into a file";
            return Err(message.to_owned());
        };
        let bytes = stdin().map_err(|error| format!("standard input can't be read: {error}"))?;
        Ok(Contents { name: "-".to_owned(), bytes, file: None })
    }
}

fn read_file(path: &Path, working: &WorkFolder) -> Result<Contents, String> {
    let name = path.display();
    let place = working.join(path);
    let file = File::open(&place).map_err(|error| unreadable(&name, &error))?;
    let facts = file.metadata().map_err(|error| unreadable(&name, &error))?;
    if facts.is_dir() {
        return Err(format!("{name} is a folder; name a file in it"));
    }
    // A pipe has no length, and a file may grow.
    let limit = u64::try_from(VALUE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    if facts.len() >= limit {
        return Err(too_large(path, VALUE_BYTES_MAX));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(&name, &error))?;
    let absolute = std::path::absolute(&place).unwrap_or(place);
    let folder = working.path().unwrap_or_default();
    Ok(Contents {
        name: name.to_string(),
        file: Some(FileFacts {
            id: FileId::of(&facts),
            relative: relative(&absolute, &folder),
            absolute,
            modified: facts.modified().ok(),
            mode: facts.permissions().mode(),
        }),
        bytes,
    })
}

fn unreadable(name: &dyn Display, error: &io::Error) -> String {
    let hint = if error.kind() == io::ErrorKind::NotFound {
        "; check its name, which is relative to the current folder"
    } else {
        "; check the file and its permissions"
    };
    format!("{name} can't be read: {error}{hint}")
}

fn too_large(path: &Path, limit: usize) -> String {
    let limit = limit / (1024 * 1024);
    format!("{} has more than {limit} MiB; give a shorter one", path.display())
}

/// The path from `folder` to `path`, as Go's `filepath.Rel` returns it.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Path::new(".."));
    let way: PathBuf =
        up.chain(path.components().skip(shared).map(|part| Path::new(part.as_os_str()))).collect();
    if way.as_os_str().is_empty() { PathBuf::from(".") } else { way }
}
