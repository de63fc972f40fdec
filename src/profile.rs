//! Profiles: named settings of a conversation, in YAML files that lie over one another.
//!
//! A file is found and read ([`files`]), its text becomes items with their lines ([`read`];
//! [`pinocchio`] for the forms of another program), and the items of all files that name a profile
//! become one list of values, each with its origin ([`Profiles::resolve`]). What a file of a project
//! may not say until the person trusts it ([`trust`]) is withheld there. [`add`] writes a new profile
//! into the text of a file.

pub(crate) mod add;
pub(crate) mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod item;
mod pinocchio;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
pub(crate) mod trust;

pub(crate) use item::{Item, KeyFrom, Layer, Origin, Sourced};
pub(crate) use pinocchio::{engine_of, setting_of};
pub(crate) use resolve::{Profiles, Resolved};

use std::path::PathBuf;
use thiserror::Error;

/// Bytes of a file of profiles.
pub(crate) const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Profiles in one file.
const PROFILES_MAX: usize = 1_000;

/// Profiles that inherit one from another.
const INHERITED_MAX: usize = 16;

/// A file of profiles, or a profile, that can't be used. Never holds a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{message}", place(.file.as_ref(), *.line))]
pub(crate) struct ProfileError {
    /// The file, if it is one of them.
    pub(crate) file: Option<PathBuf>,
    /// The line, from 1, if it is known.
    pub(crate) line: Option<u32>,
    /// What is wrong, what it means and what to do.
    pub(crate) message: String,
}

fn place(file: Option<&PathBuf>, line: Option<u32>) -> String {
    let Some(file) = file else { return String::new() };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}: ", file.display())
}

impl ProfileError {
    fn new(message: impl Into<String>) -> Self {
        Self { file: None, line: None, message: message.into() }
    }

    fn at(origin: &Origin, message: impl Into<String>) -> Self {
        let file = Some(origin.file.to_path_buf());
        Self { file, line: Some(origin.line), message: message.into() }
    }
}
