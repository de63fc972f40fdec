//! The stores of one session: one, or two that hold the same log. Each batch goes to the one and then to the
//! other, so that a crash can come between; the next process completes the shorter one.

use super::Store;
use super::batch::{Batch, Tail};
use super::error::StoreError;
use super::place::{StorePlace, StoreSettings};
use super::reading::{Known, Reading, Sink};
use crate::conversation::choices::Choices;
use crate::conversation::log::{Record, Restored};
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
    stores: Vec<OpenStore>,
    /// The session that this process holds.
    session: Option<SessionId>,
}

/// A store, and the end of the session's log in it.
#[derive(Debug)]
struct OpenStore {
    store: Store,
    tail: Tail,
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
        let StoreSettings { places, resumes, .. } = &self.settings;
        let mut stores = Vec::new();
        let mut fault = Some(std::mem::take(&mut self.fault));
        for place in places {
            // The only one is never made anew for a session that is resumed from it.
            let may_be_new = !resumes || places.len() > 1;
            let store = Store::open(place, may_be_new, fault.take().unwrap_or_default())?;
            if !resumes {
                store.check_writable()?;
            }
            stores.push(OpenStore { store, tail: Tail::default() });
        }
        self.stores = stores;
        Ok(())
    }

    /// Locks the session; loads it if it goes on.
    pub(super) fn open(&mut self, session: SessionId) -> Result<Option<Box<Restored>>, StoreError> {
        let resumes = self.settings.resumes;
        self.prepare().map_err(|error| missing(error, resumes, &session))?;
        for OpenStore { store, .. } in &mut self.stores {
            // Before anything is read: what another process writes would be missed.
            store.claim(&session)?;
            if !resumes && store.has(&session)? {
                return Err(StoreError::Exists(session.as_str().to_owned()));
            }
        }
        let loaded = match resumes {
            true => Some(self.load(&session)?),
            false => None,
        };
        self.session = Some(session);
        Ok(loaded)
    }

    /// Appends records to the log, in each of the stores atomically.
    pub(super) fn write(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        // A session whose first request names it begins here.
        if self.session.is_none()
            && let Some(Record::Start(start)) = records.first()
        {
            self.open(start.session.clone())?;
        }
        let Some(session) = &self.session else { return Ok(()) };
        let folder = &self.settings.folder;
        let Some((last, others)) = self.stores.split_last_mut() else { return Ok(()) };
        for other in others {
            other.write(session, records.clone(), folder)?;
        }
        last.write(session, records, folder)
    }

    fn load(&mut self, session: &SessionId) -> Result<Box<Restored>, StoreError> {
        let mut readings = Vec::new();
        for open in &mut self.stores {
            let mut reading = open.store.load(session, Sink::Fold(Box::default()))?;
            open.tail = std::mem::take(&mut reading.tail);
            readings.push(reading);
        }
        let best = best(&readings);
        let mut whole = readings.swap_remove(best);
        check_found(session, &whole)?;
        if let Some(other) = readings.pop()
            && let Some(reason) = self.complete(session, (best, &whole), (1 - best, &other))?
        {
            whole.lost(reason, false);
        }
        whole.restored().map(Box::new).ok_or(StoreError::Missing(session.as_str().to_owned()))
    }

    /// Appends to the other of two stores what only the best has; gives what the person should know. One that
    /// is damaged, or has another conversation, is left alone from here on.
    fn complete(
        &mut self,
        session: &SessionId,
        (best, whole): (usize, &Reading),
        (other, part): (usize, &Reading),
    ) -> Result<Option<String>, StoreError> {
        let place = |at: usize| self.settings.places[at].to_string();
        let (best_place, other_place) = (place(best), place(other));
        if let Some(loss) = part.loss.as_ref().filter(|loss| loss.is_closed) {
            self.stores.remove(other);
            return Ok(Some(format!("{}; only {best_place} is written from here on", loss.reason)));
        }
        let sealed = |at: usize| self.stores[at].tail.sealed();
        let known = Known { last: part.last, sealed: part.is_there().then(|| sealed(other)) };
        let is_behind = !part.is_there() || part.last < whole.last;
        let is_same = sealed(best) == sealed(other);
        let own = part.loss.as_ref().map(|loss| loss.reason.clone());
        if !is_behind && is_same {
            return Ok(own);
        }
        let all = self.stores[best].store.load(session, Sink::Events(known, Vec::new()))?;
        if all.is_other || !is_behind {
            self.stores.remove(other);
            return Ok(Some(format!(
                "the stores {best_place} and {other_place} have different conversations of the session; \
                 that of {best_place} goes on, and {other_place} is left as it is"
            )));
        }
        let (start, Sink::Events(_, events)) = (all.start, all.sink) else { return Ok(own) };
        let start = start.filter(|_| !part.is_there()).map(|start| Record::Start(Box::new(start)));
        let records = start.into_iter().chain(events.into_iter().map(Record::Event)).collect();
        let folder = &self.settings.folder;
        self.stores[other].write(session, records, folder)?;
        let had = match part.is_there() {
            true => format!("had the session up to event {} only", part.last.0),
            false => "did not have the session".to_owned(),
        };
        Ok(Some(format!(
            "the store {other_place} {had}; it was completed from {best_place}, up to event {}",
            whole.last.0
        )))
    }

    /// Checkpoints write-ahead logs that have become long. A failure is ignored: the next checkpoint
    /// covers it.
    pub(super) fn settle(&mut self) {
        self.stores.iter_mut().for_each(|open| open.store.settle());
    }

    /// Checkpoints and truncates the write-ahead logs of an idle session. A failure is ignored: the next
    /// checkpoint covers it.
    pub(super) fn tidy(&mut self) {
        self.stores.iter_mut().for_each(|open| open.store.tidy());
    }
}

impl OpenStore {
    fn write(
        &mut self,
        session: &SessionId,
        records: Vec<Record>,
        folder: &str,
    ) -> Result<(), StoreError> {
        let batch = Batch::of(&mut self.tail, records);
        if batch.is_empty() {
            return Ok(());
        }
        patiently(|| self.store.write(session, &batch, folder))
    }
}

/// Which of these is whole, or else not damaged, and has the most events.
fn best(readings: &[Reading]) -> usize {
    let rank = |at: &usize| {
        let Reading { last, loss, .. } = &readings[*at];
        let is_damaged = loss.as_ref().is_some_and(|loss| loss.is_closed);
        (readings[*at].is_there(), !is_damaged, loss.is_none(), *last)
    };
    (0..readings.len()).rev().max_by_key(rank).unwrap_or_default()
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

/// Checks that the session is in a store that is to go on with it.
fn check_found(session: &SessionId, reading: &Reading) -> Result<(), StoreError> {
    let id = session.as_str().to_owned();
    match (reading.is_there(), &reading.loss) {
        (true, _) if reading.last > Ordinal::RESUMABLE_MAX => Err(StoreError::Exhausted(id)),
        (true, _) => Ok(()),
        (false, None) => Err(StoreError::Missing(id)),
        (false, Some(loss)) => {
            Err(StoreError::Unreadable { session: id, reason: loss.reason.clone() })
        }
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

/// What was chosen in a session; `None` if the store can't say: it reports why when the session is opened. The
/// store has it apart from the log, of which it is made where it is not there.
pub(crate) fn stored_choices(place: &StorePlace, session: &SessionId) -> Option<Choices> {
    let read = Store::look(place).and_then(|mut store| match store.choices(session)? {
        Some(cached) => Ok(Some(cached)),
        None => {
            let folded = store.load(session, Sink::Fold(Box::default()))?.restored();
            Ok(folded.map(|restored| (*restored.projections.choices).clone()))
        }
    });
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
