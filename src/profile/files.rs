//! Finds and reads the files of profiles: the I/O, without the parsing.

use super::item::{Layer, Origin};
use super::trust::Trusted;
use super::{FILE_BYTES_MAX, ProfileError};
use crate::support::files::{WorkFolder, read_limited, user_folder};
use crate::tool::config::Protected;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The administrator's file.
const SYSTEM_FILE: &str = "/etc/duologue/profiles.yaml";

/// The user's file, in the folder of configurations.
const USER_FILE: &str = "duologue/profiles.yaml";

/// The file of a project, in its folder.
pub(crate) const PROJECT_FILE: &str = ".duologue/profiles.yaml";

/// The first bytes of an SQLite database: <https://www.sqlite.org/fileformat.html#the_database_header>.
const SQLITE_START: &[u8; 16] = b"SQLite format 3\0";

/// Mode bits of a file that users other than its owner can read or write.
const OPEN_TO_OTHERS: u32 = 0o077;

/// A file of profiles as it was read.
#[derive(Debug)]
pub(crate) struct ProfileFile {
    pub(crate) layer: Layer,
    pub(crate) path: Arc<Path>,
    /// The text of the file, which may hold a key.
    pub(crate) text: Protected,
    /// It is the person's own, or trusted.
    pub(crate) is_trusted: bool,
    /// Other users can read it.
    pub(crate) is_open_to_others: bool,
}

/// Where files of profiles are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Each layer and its file, in order. A named file must exist.
    pub(crate) files: Vec<(Layer, PathBuf)>,
    /// The user's own folder.
    pub(crate) home: Option<PathBuf>,
}

impl ProfileFile {
    /// The place of an item in `line`.
    pub(super) fn origin(&self, line: u32) -> Origin {
        let (layer, is_trusted) = (self.layer, self.is_trusted);
        Origin { layer, file: Arc::clone(&self.path), line, is_trusted }
    }
}

impl Places {
    /// The places for the working folder and the environment, and the files `named` by the person.
    /// Looks for the project's file, and reads none.
    pub(crate) fn find(named: &[PathBuf], working: &WorkFolder) -> Self {
        let mut files = vec![(Layer::System, PathBuf::from(SYSTEM_FILE))];
        let variable = |name: &str| std::env::var_os(name);
        let user = user_folder("XDG_CONFIG_HOME", ".config", variable);
        files.extend(user.map(|folder| (Layer::User, folder.join(USER_FILE))));
        let project = working.path().ok().and_then(|folder| project_file(&folder));
        files.extend(project.map(|path| (Layer::Project, path)));
        files.extend(named.iter().map(|path| (Layer::Named, path.clone())));
        Self { files, home: home(variable) }
    }

    /// The user's own file, which may not exist yet.
    pub(crate) fn user(&self) -> Option<&Path> {
        self.files.iter().find(|(layer, _)| *layer == Layer::User).map(|(_, path)| path.as_path())
    }

    /// The files that exist, as `trusted` says of those of a project.
    ///
    /// # Errors
    /// If one can't be read, or a named one is missing.
    pub(crate) fn read(
        &self,
        trusted: impl Fn() -> Trusted,
    ) -> Result<Vec<ProfileFile>, ProfileError> {
        let mut read = Vec::new();
        for (layer, path) in &self.files {
            let (text, mode) = match read_limited(path, FILE_BYTES_MAX) {
                Ok((text, about)) => (text, about.mode()),
                Err(error) if *layer != Layer::Named && is_missing(&error) => continue,
                // It can't be trusted, and must not take the person's own profiles with it.
                Err(error) if *layer == Layer::Project => {
                    tracing::warn!("{}; it is left out", unreadable(path, &error));
                    continue;
                }
                Err(error) => return Err(unreadable(path, &error)),
            };
            let is_trusted = match layer {
                Layer::System | Layer::User | Layer::Named => true,
                Layer::Project => trusted().has(path, &text),
            };
            let is_open_to_others = mode & OPEN_TO_OTHERS != 0;
            let (layer, path) = (*layer, Arc::from(path.as_path()));
            let text = Protected::new(text);
            read.push(ProfileFile { layer, path, text, is_trusted, is_open_to_others });
        }
        Ok(read)
    }
}

fn home(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The file of the project that `folder` is part of: that of the nearest folder that has one.
fn project_file(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(PROJECT_FILE)).find(|path| path.is_file())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether it is a database of SQLite, as in which Pinocchio can keep profiles.
fn is_database(path: &Path) -> bool {
    let mut start = [0; SQLITE_START.len()];
    // A named pipe is not opened, which would wait for its writer.
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let is_read = file.is_some_and(|mut file| file.read_exact(&mut start).is_ok());
    is_read && start == *SQLITE_START
}

fn unreadable(path: &Path, error: &io::Error) -> ProfileError {
    let message = match is_database(path) {
        true => {
            "it is a database, and profiles are read from YAML files; write its profiles as YAML"
                .to_owned()
        }
        false => format!(
            "the file of profiles can't be read: {error}; correct it, or remove it if it is not needed"
        ),
    };
    ProfileError { file: Some(path.to_owned()), line: None, message }
}
