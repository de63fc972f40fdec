//! Where conversations are stored, as an option names it.

use super::path;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Which stores a conversation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Keeps what the model is sent next.
    pub turns: Option<StorePlace>,
    /// Keeps what people see.
    pub timeline: Option<StorePlace>,
    /// The session goes on with what is stored of it.
    pub resumes: bool,
    /// The folder that a new session belongs to.
    pub folder: String,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// A file of SQLite.
    Sqlite(PathBuf),
}

impl StorePlace {
    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
        }
    }

    /// Whether both are one store, however they are named.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sqlite(one), Self::Sqlite(other)) => path::is_same(one, other),
        }
    }
}

impl FromStr for StorePlace {
    type Err = String;

    /// A path.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_address = ["postgres://", "postgresql://"].iter().any(|it| text.starts_with(it));
        match text {
            "" => Err("it is empty; name a file".to_owned()),
            _ if is_address => Err("this program has no PostgreSQL yet; name a file".to_owned()),
            path => Ok(Self::Sqlite(PathBuf::from(path))),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
        }
    }
}
