//! What can be known of a store without a session: for `doctor`, and for a node that begins.

use super::error::StoreError;
use super::place::StorePlace;
use super::{postgres, sqlite};

/// Names of processes that hold sessions which are given.
pub(super) const HOLDERS_MAX: usize = 5;

/// A place that options name as a store.
#[derive(Clone, Debug)]
pub(crate) struct Inspected {
    /// The file or the database, without a password.
    pub(crate) place: String,
    /// What was found; `None` if it was not looked at, because it is on a server.
    pub(crate) found: Option<Result<Inspection, String>>,
}

/// A store that can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// The tables, if there are any: without them the first session makes them.
    pub(crate) tables: Option<Tables>,
    /// The store is made so that writes are slower and locks may be lost.
    pub(crate) is_remote: bool,
    /// Its log ends within a page: changes are missing if that was so in another file of which it is a copy.
    pub(crate) is_log_torn: bool,
}

/// The tables of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Their format.
    pub(crate) format: i64,
    pub(crate) sessions: u64,
    /// How many sessions other processes hold now.
    pub(crate) held: u64,
    /// Some of these processes.
    pub(crate) holders: Vec<String>,
    /// How many sessions have locks that only another user of the system can open.
    pub(crate) foreign_locks: u64,
    /// What was found in the logs of sessions.
    pub(crate) checked: Checked,
}

/// The sessions of a file whose logs were read, those that were written last first, as long as there was time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) sessions: u64,
    /// The ids of those of which something is missing, or was changed.
    pub(crate) damaged: Vec<String>,
}

/// Looks whether a session could begin in the store at `place`, and changes nothing there. A store on
/// a server is looked at only if `connects`; the sessions in a file are read if `reads`, for some seconds.
pub(super) fn inspect(place: &StorePlace, connects: bool, reads: bool) -> Inspected {
    let found = match place {
        StorePlace::Sqlite(path) => Some(sqlite::inspect(path, reads)),
        StorePlace::Postgres(dsn) if connects => {
            Some(postgres::inspect(dsn).map_err(StoreError::from))
        }
        StorePlace::Postgres(_) => None,
    };
    let found = found.map(|found| found.map_err(|error| error.to_string()));
    Inspected { place: place.to_string(), found }
}

/// What is wrong with the file of a store, for people, with the name of that file.
#[cfg(feature = "serve")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileFault {
    /// Another place has to be named.
    Lasting(String),
    /// It may be used once its disk, its permissions or what has locked it allow that, and be read meanwhile.
    Passing(String),
}

/// What is wrong with the file at `place`; `None` if nothing is, and for a database on a server.
#[cfg(feature = "serve")]
pub(crate) fn fault_of_file(place: &StorePlace) -> Option<FileFault> {
    let error = sqlite::inspect(place.path()?, false).err()?;
    let is_nameless = matches!(error, StoreError::Sqlite(_));
    let why = if is_nameless { format!("{place}: {error}") } else { error.to_string() };
    Some(if error.is_lasting() { FileFault::Lasting(why) } else { FileFault::Passing(why) })
}
