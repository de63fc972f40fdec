//! The stores of one session: where its turns are kept and where its timeline is, which may be one
//! place.

use super::error::StoreError;
use super::part::{Part, restored};
use super::place::{StorePlace, StoreSettings};
use super::{Roles, Store};
use crate::chat::choices::Choices;
use crate::chat::record::{Record, Restored};
use crate::protocol::id::{Ordinal, SessionId};
use crate::support::fail_point::FailPoint;

/// Attempts to write a batch to a database that another program has locked. Each attempt lasts for the
/// database's own timeout, so that a backup or a vacuum of half a minute does not end the storing.
const WRITES_MAX: u32 = 6;

/// The stores of a session.
#[derive(Debug)]
pub(super) struct SessionStores {
    settings: StoreSettings,
    fault: FailPoint,
    /// Those that are open.
    stores: Vec<(Store, Roles)>,
    /// The session that this process holds.
    session: Option<SessionId>,
}

impl SessionStores {
    pub(super) fn new(settings: StoreSettings, fault: FailPoint) -> Self {
        Self { settings, fault, stores: Vec::new(), session: None }
    }

    /// Opens the databases.
    pub(super) fn prepare(&mut self) -> Result<(), StoreError> {
        if !self.stores.is_empty() {
            return Ok(());
        }
        let mut stores = Vec::new();
        let mut faults = Some(std::mem::take(&mut self.fault));
        for (place, roles) in self.places() {
            // What is to go on is never made anew.
            let may_be_new = !(self.settings.resumes && roles.turns);
            let fault = faults.take().unwrap_or_default();
            let store = Store::open(place, may_be_new, fault)?;
            if !self.settings.resumes {
                store.check_writable()?;
            }
            stores.push((store, roles));
        }
        self.stores = stores;
        Ok(())
    }

    /// Locks the session; loads it if it goes on.
    pub(super) fn open(&mut self, session: SessionId) -> Result<Option<Box<Restored>>, StoreError> {
        let resumes = self.settings.resumes;
        self.prepare().map_err(|error| missing(error, resumes, &session))?;
        for (store, _) in &mut self.stores {
            // Before anything is read: what another process writes would be missed.
            store.claim(&session)?;
            if !resumes && store.has(&session)? {
                return Err(StoreError::Exists(session.as_str().to_owned()));
            }
        }
        let loaded = match resumes {
            true => Some(load(&session, &mut self.stores)?),
            false => None,
        };
        self.session = Some(session);
        Ok(loaded)
    }

    /// Writes records, in each of the stores atomically.
    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), StoreError> {
        // A session whose first request names it begins here.
        if self.session.is_none()
            && let Some(Record::Start(start)) = batch.first()
        {
            self.open(start.session.clone())?;
        }
        let Some(session) = &self.session else { return Ok(()) };
        for (store, roles) in &mut self.stores {
            let folder = &self.settings.folder;
            patiently(|| store.write(session, batch, (*roles, folder)))?;
        }
        Ok(())
    }

    /// Checkpoints write-ahead logs that have become long. A failure is ignored: the next checkpoint
    /// covers it.
    pub(super) fn settle(&mut self) {
        self.stores.iter_mut().for_each(|(store, _)| store.settle());
    }

    /// Checkpoints and truncates the write-ahead logs of an idle session. A failure is ignored: the next
    /// checkpoint covers it.
    pub(super) fn tidy(&mut self) {
        self.stores.iter_mut().for_each(|(store, _)| store.tidy());
    }

    fn places(&self) -> Vec<(&StorePlace, Roles)> {
        let StoreSettings { turns, timeline, .. } = &self.settings;
        match (turns, timeline) {
            (Some(turns), Some(timeline)) if turns.is_same(timeline) => {
                vec![(turns, Roles { turns: true, timeline: true })]
            }
            (turns, timeline) => {
                let turns = turns.iter().map(|it| (it, Roles { turns: true, timeline: false }));
                let timeline = timeline.iter();
                let timeline = timeline.map(|it| (it, Roles { turns: false, timeline: true }));
                turns.chain(timeline).collect()
            }
        }
    }
}

/// Retries a write that failed because another program has locked the database.
fn patiently(mut write: impl FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    for _ in 1..WRITES_MAX {
        match write() {
            Err(error) if error.is_busy() => {
                tracing::warn!("another program has locked the store, so what is new waits");
            }
            written => return written,
        }
    }
    write()
}

/// A store that there is not holds no session.
fn missing(error: StoreError, resumes: bool, session: &SessionId) -> StoreError {
    if error.is_absence() && resumes {
        return StoreError::Missing(session.as_str().to_owned());
    }
    error
}

fn load(session: &SessionId, stores: &mut [(Store, Roles)]) -> Result<Box<Restored>, StoreError> {
    let mut whole = Part::default();
    for (store, roles) in stores {
        let part = store.load(session, *roles)?;
        if roles.turns {
            check_found(session, &part)?;
        }
        whole.add(part);
    }
    Ok(Box::new(restored(session.clone(), whole)))
}

/// Checks that the turns of the session are in a store that is to go on with them.
fn check_found(session: &SessionId, part: &Part) -> Result<(), StoreError> {
    let session = session.as_str().to_owned();
    match (part.is_there, &part.loss) {
        (true, _) if part.is_without_turns => Err(StoreError::Elsewhere(session)),
        (true, _) if part.ordinal > Ordinal::RESUMABLE_MAX => Err(StoreError::Exhausted(session)),
        (true, _) => Ok(()),
        (false, None) => Err(StoreError::Missing(session)),
        (false, Some(loss)) => Err(StoreError::Unreadable { session, reason: loss.reason.clone() }),
    }
}

/// The session of `folder` that was changed last.
///
/// # Errors
/// If the store can't be read, for a person.
pub(crate) fn latest_session(
    place: &StorePlace,
    folder: &str,
) -> Result<Option<SessionId>, String> {
    let store = Store::open(place, false, FailPoint::default());
    match store.and_then(|mut store| store.latest(folder)) {
        Ok(latest) => Ok(latest),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// What was chosen in a session, without the rest of it; `None` if the store can't say: it reports why
/// when the session is opened.
pub(crate) fn stored_choices(place: &StorePlace, session: &SessionId) -> Option<Choices> {
    let read = Store::look(place).and_then(|mut store| store.choices(session));
    read.inspect_err(|error| tracing::debug!(%error, "what was chosen is not known yet")).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    /// What SQLite reports, with the number of attempts until it does not.
    fn tried(code: i32, failures: u32) -> (Result<(), String>, u32) {
        let mut attempts = 0;
        let result = patiently(|| {
            attempts += 1;
            match attempts > failures {
                true => Ok(()),
                false => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()),
            }
        });
        (result.map_err(|error| error.to_string()), attempts)
    }

    #[test]
    fn a_lock_is_waited_for_and_nothing_else() {
        assert_eq!(tried(ffi::SQLITE_BUSY, 0), (Ok(()), 1));
        assert_eq!(tried(ffi::SQLITE_BUSY, WRITES_MAX - 1), (Ok(()), WRITES_MAX));
        let (result, attempts) = tried(ffi::SQLITE_BUSY, u32::MAX);
        let why = result.expect_err("it stays locked");
        assert!(attempts == WRITES_MAX && why.contains("another program keeps it locked"), "{why}");
        let (result, attempts) = tried(ffi::SQLITE_FULL, 1);
        assert!(attempts == 1 && !result.expect_err("no room").contains("locked"));
    }
}
