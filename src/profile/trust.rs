//! Which files of projects the person trusts: remembered by path and by the SHA-256 of the content,
//! so that a file that changes loses its trust.

use crate::support::files::{lock_folder_of, read_limited, replace, user_folder};
use anyhow::{Context, Result, anyhow, ensure};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The list, in the folder of states.
const LIST_FILE: &str = "duologue/trusted-profiles.json";

const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Mode bits with which others could add to the list.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The list of trusted files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trusted {
    /// The digests of the contents, by path.
    files: BTreeMap<PathBuf, String>,
}

impl Trusted {
    /// The list of this user; empty if there is none, or if others can write it.
    ///
    /// # Errors
    /// If it can't be read.
    pub(crate) fn load() -> Result<Self> {
        match list_file() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    /// Writes the list as `change` makes it of the one that is there. Another process that changes the list waits.
    ///
    /// # Errors
    /// If the list can't be read or written, or `change` fails. Then it stays as it is.
    pub(crate) fn change(change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let path = list_file();
        let path = path.context("there is no place for the list of trusted files; set HOME")?;
        let context = || format!("the list of trusted files, {}", path.display());
        let _lock = lock_folder_of(&path).with_context(context)?;
        let mut trusted = Self::load_from(&path)?;
        change(&mut trusted)?;
        trusted.save(&path).with_context(context)
    }

    fn load_from(path: &Path) -> Result<Self> {
        let shown = path.display();
        let (text, about) = match read_limited(path, LIST_BYTES_MAX) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(anyhow!("the list of trusted files, {shown}: {error}")),
        };
        let user = rustix::process::geteuid().as_raw();
        ensure!(
            about.mode() & WRITABLE_BY_OTHERS == 0 && about.uid() == user,
            "the list of trusted files, {shown}, can be written by other users, so nothing in it \
             counts; check it, then run `chmod 600 {shown}`"
        );
        let read = serde_json::from_str(&text);
        read.with_context(|| format!("the list of trusted files, {shown}; remove it to begin anew"))
    }

    /// Whether the file at `path` is trusted with this content.
    pub(crate) fn has(&self, path: &Path, text: &str) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.files.get(&path).is_some_and(|known| *known == digest_of(text))
    }

    /// Trusts the file at `path` with this content.
    ///
    /// # Errors
    /// If its path can't be determined or is not UTF-8, the encoding of the list.
    pub(crate) fn add(&mut self, path: &Path, text: &str) -> Result<()> {
        let path = path.canonicalize()?;
        ensure!(path.to_str().is_some(), "its path is not UTF-8; rename it");
        self.files.insert(path, digest_of(text));
        Ok(())
    }

    /// Trusts the file at `path` no more; returns whether it was trusted. The file may be gone.
    pub(crate) fn remove(&mut self, path: &Path) -> bool {
        let path = path.canonicalize().or_else(|_| std::path::absolute(path));
        path.is_ok_and(|path| self.files.remove(&path).is_some())
    }

    /// Writes the list, readable and writable by its user alone.
    fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(replace(path, text.as_bytes())?)
    }
}

fn list_file() -> Option<PathBuf> {
    let folder = user_folder("XDG_STATE_HOME", ".local/state", |name| std::env::var_os(name));
    folder.map(|folder| folder.join(LIST_FILE))
}

fn digest_of(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
