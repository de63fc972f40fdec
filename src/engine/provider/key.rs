//! A key that is not known at the start: a program prints it, a file holds it, or its variable is not set. It is got
//! when the first call needs it, off the loop, in bounded time and memory. Nothing that is read or printed here is
//! shown but what the program writes to standard error, without the lines that may be keys.

mod program;

use super::settings::SettingNames;
use crate::support::files::{is_private, read_named};
use crate::support::lock;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::yaml;
use program::{COMMAND_TIMEOUT, printed};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for reading the file.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a file with a key, and of the output of a program.
const KEY_BYTES_MAX: usize = 64 * 1024;

/// Mode bits of a file that somebody can execute.
const EXECUTABLE: u32 = 0o111;

/// Where the C library looks for programs if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Where a key comes from when a call needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The first line that a program prints: its name and its arguments. It is run without a shell.
    Command(Vec<String>),
    /// The first line of a file that its owner alone can read.
    File(PathBuf),
    /// The variable of this name of the process's environment.
    Variable(String),
}

impl KeySource {
    /// Checks that the program or the file exists, without running or reading it, or that the variable is set.
    ///
    /// # Errors
    /// If the program is not found, the file is missing or is not private, or the variable is not set: the message for
    /// people.
    pub(in crate::engine) fn look(&self, names: &SettingNames) -> Result<(), NoKey> {
        match self {
            Self::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                match is_program(program, std::env::var_os("PATH").as_deref()) {
                    true => Ok(()),
                    false => Err(NoKey::new(format!(
                        "the program of the key command, `{}`, is not found, so no call gets a key; \
                         install it, or correct {}",
                        escape_control(program),
                        names.key_command
                    ))),
                }
            }
            Self::File(path) => {
                let about = path.metadata();
                let about = about.map_err(|error| unreadable(path, &error.to_string(), names))?;
                checked(path, &about, names)
            }
            Self::Variable(name) => in_variable(name).map(drop),
        }
    }

    /// Like [`KeySource::look`], with an error for people.
    ///
    /// # Errors
    /// As [`KeySource::look`].
    pub(crate) fn check(&self, names: &SettingNames) -> Result<(), String> {
        self.look(names).map_err(|NoKey { message, .. }| message)
    }
}

/// Whether a program of that name is found as the system finds it: by its path, or in `folders`.
fn is_program(name: &str, folders: Option<&OsStr>) -> bool {
    let is_executable =
        |path: &Path| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & EXECUTABLE != 0);
    if name.contains('/') {
        return is_executable(Path::new(name));
    }
    std::env::split_paths(folders.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .any(|folder| is_executable(&folder.join(name)))
}

/// The key of an engine, fetched when it is first needed and then cached.
#[derive(Debug)]
pub(in crate::engine) struct Key {
    source: Option<KeySource>,
    names: &'static SettingNames,
    cached: Mutex<Option<Secret>>,
    /// Held while the key is got, so that it is got once for all who wait.
    getting: tokio::sync::Mutex<()>,
}

/// Why there is no key. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct NoKey {
    /// What happened and what to do.
    pub(in crate::engine) message: String,
    pub(in crate::engine) detail: String,
}

impl NoKey {
    fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { detail: message.clone(), message }
    }
}

impl Key {
    /// The key `known`, or one that is got from `source`, which has precedence.
    pub(in crate::engine) fn new(
        known: Option<Secret>,
        source: Option<KeySource>,
        names: &'static SettingNames,
    ) -> Self {
        let cached = Mutex::new(known.filter(|_| source.is_none()));
        Self { source, names, cached, getting: tokio::sync::Mutex::default() }
    }

    /// Whether there is a key, as far as is known without getting it.
    pub(in crate::engine) fn is_configured(&self) -> bool {
        self.source.is_some() || self.cached().is_some()
    }

    /// The key, if it has been got.
    pub(in crate::engine) fn known(&self) -> Option<Secret> {
        self.cached().clone()
    }

    /// The cached key, or one that is fetched from the source; `None` if no key is configured. Dropping
    /// the future kills the program that prints the key.
    ///
    /// # Errors
    /// If it can't be got. The next call tries again.
    pub(in crate::engine) async fn get(&self) -> Result<Option<Secret>, NoKey> {
        let Some(source) = &self.source else { return Ok(self.known()) };
        let _getting = self.getting.lock().await;
        if let Some(key) = self.known() {
            return Ok(Some(key));
        }
        let key = match source {
            KeySource::Command(words) => printed(words, COMMAND_TIMEOUT, self.names).await?,
            KeySource::File(path) => in_file(path, self.names).await?,
            KeySource::Variable(name) => in_variable(name)?,
        };
        *self.cached() = Some(key.clone());
        Ok(Some(key))
    }

    /// Another key in the place of `refused`, which the provider no longer takes: it may have been
    /// changed since it was got. `None` if there is no other.
    pub(in crate::engine) async fn renewed(&self, refused: &Secret) -> Option<Secret> {
        self.source.as_ref()?;
        self.cached().take_if(|key| key == refused);
        let got = self.get().await.inspect_err(|why| tracing::warn!("{}", why.message));
        got.ok().flatten().filter(|key| key != refused)
    }

    fn cached(&self) -> MutexGuard<'_, Option<Secret>> {
        lock(&self.cached)
    }
}

async fn in_file(path: &Path, names: &SettingNames) -> Result<Secret, NoKey> {
    let (done, read) = oneshot::channel();
    let owned = path.to_owned();
    let work = move || drop(done.send(read_named(&owned, KEY_BYTES_MAX)));
    threads::spawn("key-file", work)
        .map_err(|error| no_key_in(path, &format!("could not be read ({error})")))?;
    let read = match timeout(FILE_TIMEOUT, read).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) => return Err(no_key_in(path, "could not be read")),
        Err(_) => return Err(no_key_in(path, "could not be read in time")),
    };
    let (text, about) = read.map_err(|error| unreadable(path, &error.to_string(), names))?;
    checked(path, &about, names)?;
    first_line(text.as_bytes()).map_err(|()| no_key_in(path, "holds no key in its first line"))
}

fn in_variable(name: &str) -> Result<Secret, NoKey> {
    let key = std::env::var(name).ok().as_deref().and_then(Secret::new);
    key.ok_or_else(|| {
        NoKey::new(format!(
            "the variable {name}, which is to hold the profile's key, is not set or empty; set it"
        ))
    })
}

fn no_key_in(path: &Path, why: &str) -> NoKey {
    let shown = escape_control(&path.display().to_string());
    NoKey::new(format!(
        "the key can't be had: the key file {shown} {why}; nothing was sent to the provider"
    ))
}

fn unreadable(path: &Path, error: &str, names: &SettingNames) -> NoKey {
    no_key_in(path, &format!("can't be read ({error}); check {}", names.key_file))
}

/// Checks that the key in the file is known to its owner alone.
fn checked(path: &Path, about: &Metadata, names: &SettingNames) -> Result<(), NoKey> {
    let is_pipe = about.file_type().is_fifo();
    if !about.is_file() && !is_pipe {
        return Err(unreadable(path, "it is not a regular file", names));
    }
    // What is in a pipe is read once, and by its own reader.
    if is_pipe || is_private(about) {
        return Ok(());
    }
    let shown = escape_control(&path.display().to_string());
    let why = format!(
        "can be read by other users, so its key may be known to them; run `chmod 600 {shown}`, and \
         think of getting a new key"
    );
    Err(no_key_in(path, &why))
}

/// The key in the first line. Password managers print a password first, and notes after it.
fn first_line(bytes: &[u8]) -> Result<Secret, ()> {
    let text = String::from_utf8_lossy(bytes);
    yaml::without_mark(&text).lines().next().and_then(Secret::new).ok_or(())
}

#[cfg(test)]
mod tests;
