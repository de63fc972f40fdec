//! Where conversations are stored, as an option names it.

use super::path;
use super::postgres::Dsn;
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
    /// A database of PostgreSQL.
    Postgres(Dsn),
}

/// A place as an option can name it, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedPlace {
    pub(crate) text: String,
    /// A password was left out.
    pub(crate) had_password: bool,
}

impl StorePlace {
    /// A database of PostgreSQL, named by its address in either form.
    ///
    /// # Errors
    /// If there is none. Whether it can be used is found out later, as an error of the command line
    /// would repeat it with its password.
    pub(crate) fn of_dsn(text: &str) -> Result<Self, String> {
        let dsn = Dsn::new(text).ok_or("it is empty; name a database")?;
        Ok(Self::Postgres(dsn))
    }

    /// The place as it can be typed again, without a password; `None` if the address can't be read.
    pub(crate) fn without_password(&self) -> Option<TypedPlace> {
        match self {
            Self::Sqlite(path) => {
                Some(TypedPlace { text: path.display().to_string(), had_password: false })
            }
            Self::Postgres(dsn) => dsn.without_password(),
        }
    }

    /// Checks what can be known of the place before it is opened.
    ///
    /// # Errors
    /// If it can't be used, for a person.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(dsn) => dsn.address(&|_| None).map(drop),
        }
    }

    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }

    /// Whether both are one store, however they are named.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sqlite(one), Self::Sqlite(other)) => path::is_same(one, other),
            (Self::Postgres(one), Self::Postgres(other)) => one == other,
            (Self::Sqlite(_), Self::Postgres(_)) | (Self::Postgres(_), Self::Sqlite(_)) => false,
        }
    }
}

impl FromStr for StorePlace {
    type Err = String;

    /// A path, or the address of a database of PostgreSQL as a URL.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, Dsn::url(text)) {
            ("", _) => Err("it is empty; name a file or a database".to_owned()),
            (_, Some(dsn)) => Ok(Self::Postgres(dsn)),
            (path, None) => Ok(Self::Sqlite(PathBuf::from(path))),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(dsn) => dsn.fmt(f),
        }
    }
}
