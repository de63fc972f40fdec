//! Where conversations are stored, as an option names it.

use super::file_url;
use super::postgres::Dsn;
use super::sqlite::path;
use crate::protocol::id::SessionId;
use crate::support::files;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Schemes that are taken for those of an address also without `//` behind them.
const DATABASES: [&str; 8] =
    ["file", "jdbc", "mariadb", "mysql", "postgres", "postgresql", "sqlite", "sqlite3"];

/// Which stores a conversation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Where the log is stored: in all of them.
    pub places: Vec<StorePlace>,
    /// Whether the session begins or goes on.
    pub mode: OpenMode,
    /// The folder that a new session belongs to.
    pub folder: String,
    /// How long a session that another process holds is waited for.
    pub lock_wait: Duration,
    /// Whose session it is, where tenants share the stores.
    pub namespace: Namespace,
}

/// The sessions of a tenant in stores that several share. Their ids in the store begin with the tenant, so that
/// no other one finds them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Namespace(Option<Arc<str>>);

/// What the stored ids of tenants begin with.
const OF_TENANTS: &str = "tenant:";

/// The tenant of a stored session; empty if it belongs to none.
pub(super) fn tenant_of(stored: &SessionId) -> &str {
    let named = stored.as_str().strip_prefix(OF_TENANTS);
    named.and_then(|rest| rest.split_once('/')).map_or("", |(tenant, _)| tenant)
}

impl Namespace {
    /// The sessions of the tenant of this name, which has no slash.
    pub fn of_tenant(name: &str) -> Self {
        Self((!name.is_empty()).then(|| name.into()))
    }

    /// The name of the tenant; empty for the sessions that belong to none.
    pub fn tenant(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// What the stored ids of these sessions begin with, or if `false` what none of them begins with.
    #[cfg(feature = "serve")]
    pub(super) fn prefix(&self) -> (String, bool) {
        match &self.0 {
            None => (OF_TENANTS.to_owned(), false),
            Some(tenant) => (format!("{OF_TENANTS}{tenant}/"), true),
        }
    }

    /// The id under which a session is stored.
    pub(crate) fn stored(&self, session: &SessionId) -> SessionId {
        let Some(tenant) = &self.0 else { return session.clone() };
        let stored = format!("{OF_TENANTS}{tenant}/{}", session.as_str());
        SessionId::new(&stored).unwrap_or_else(|| session.clone())
    }

    /// The id of a stored session as its tenant knows it; `None` if it belongs to another one.
    pub(crate) fn shown<'a>(&self, stored: &'a str) -> Option<&'a str> {
        let Some(tenant) = &self.0 else {
            return (!stored.starts_with(OF_TENANTS)).then_some(stored);
        };
        stored.strip_prefix(OF_TENANTS)?.strip_prefix(&**tenant)?.strip_prefix('/')
    }
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It begins; one that is stored already is an error.
    New,
    /// It goes on with what is stored; one of which nothing is stored is an error.
    Resume,
    /// It goes on with what is stored, and begins if nothing is. Which of the two is decided under its lock.
    Either,
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
    /// A database of PostgreSQL, named by its address in either form, or a file, named by a URL of
    /// SQLite's.
    ///
    /// # Errors
    /// If there is none. Whether it can be used is found out later, as an error of the command line
    /// would repeat it with its password.
    pub(crate) fn of_dsn(text: &str) -> Result<Self, String> {
        if let Some(Ok(path)) = file_url::path(text) {
            return Ok(Self::Sqlite(path));
        }
        let dsn = Dsn::new(text).ok_or("it is empty; name a database")?;
        Ok(Self::Postgres(dsn))
    }

    /// The place as it can be typed again, without a password; `None` if the address can't be read.
    pub(crate) fn without_password(&self) -> Option<TypedPlace> {
        match self {
            // It is typed in another folder, perhaps.
            Self::Sqlite(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
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
            Self::Sqlite(path) => {
                check_name(path)?;
                files::check_home(path).map_err(|error| error.to_string())
            }
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

    /// The places for the turns and for the timeline, each once.
    pub(crate) fn distinct(turns: Option<Self>, timeline: Option<Self>) -> Vec<Self> {
        let mut places: Vec<Self> = turns.into_iter().collect();
        let other = timeline.filter(|other| !places.iter().any(|place| place.is_same(other)));
        places.extend(other);
        places
    }

    /// Whether both are one store, however they are named.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sqlite(one), Self::Sqlite(other)) => path::is_same(one, other),
            (Self::Postgres(one), Self::Postgres(other)) => one == other,
            (Self::Sqlite(_), Self::Postgres(_)) | (Self::Postgres(_), Self::Sqlite(_)) => false,
        }
    }
}

/// Checks that what is typed for a file is not meant for something else. The error does not repeat it:
/// an address may have a password in it.
fn check_name(path: &Path) -> Result<(), String> {
    let text = path.to_string_lossy();
    if text.ends_with('/') {
        return Err(format!("{text} names a folder, as it ends with a slash; name a file in it"));
    }
    if let Some(Err(why)) = file_url::path(&text) {
        return Err(why);
    }
    let begins = scheme(&text).map(|scheme| format!("{scheme}://"));
    match begins.or_else(|| database(&text).map(|scheme| format!("{scheme}:"))) {
        Some(begins) => Err(format!(
            "addresses that begin with {begins} are not known; name a file by its path, or a \
             database of PostgreSQL as postgres://USER@HOST/DATABASE (a file of such a name is \
             ./{begins}…)"
        )),
        None => Ok(()),
    }
}

/// The scheme of a text that begins as the address of a database without `//`.
fn database(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    DATABASES.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(scheme)
}

/// The scheme of a text in the form of a URL (RFC 3986, section 3.1).
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

impl FromStr for StorePlace {
    type Err = String;

    /// A path, a URL of SQLite's, or the address of a database of PostgreSQL as a URL. A URL that can't
    /// be used is an error of `StorePlace::check`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty; name a file or a database".to_owned());
        }
        if let Some(dsn) = Dsn::url(text) {
            return Ok(Self::Postgres(dsn));
        }
        let of_url = file_url::path(text).and_then(Result::ok);
        Ok(Self::Sqlite(of_url.unwrap_or_else(|| PathBuf::from(text))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_taken_for_the_name_of_a_file() {
        let place = |text: &str| text.parse::<StorePlace>().expect("a place");
        for text in ["POSTGRES://ada@db/chat", "Postgresql://ada@db/chat", "postgres://ada@db/chat"]
        {
            assert_eq!(place(text).to_string(), "postgres://db/chat", "{text}");
            assert_eq!(place(text).check(), Ok(()), "{text}");
        }
        for text in [
            "sqlite:///s.db",
            "SQLite://s.db",
            "mysql://u:s3cret@h/x",
            "sqlite:s.db",
            "postgres:s3cret",
            "PostgreSQL:x",
            "File:s.db",
        ] {
            let why = place(text).check().expect_err("no place");
            assert!(why.contains("not known") && !why.contains("s3cret"), "{why}");
        }
        for (text, path) in [("file:///s.db", "/s.db"), ("file:s.db?cache=shared", "s.db")] {
            assert_eq!(place(text), StorePlace::Sqlite(PathBuf::from(path)));
            assert_eq!(place(text).check(), Ok(()), "{text}");
        }
        for (text, expected) in [("file:x?mode=memory", "in memory"), ("file:x?vfs=s3cret", "vfs")]
        {
            let why = place(text).check().expect_err("no place");
            assert!(why.contains(expected) && !why.contains("s3cret"), "{why}");
        }
        for text in ["s.db", "./sqlite://x", "./file:x?y", ":memory:", "a:b", "é://x", "://x"] {
            assert_eq!(place(text), StorePlace::Sqlite(PathBuf::from(text)));
            assert_eq!(place(text).check(), Ok(()), "{text}");
        }
        assert!(place("stores/").check().expect_err("a folder").contains("name a file in it"));
    }
}
