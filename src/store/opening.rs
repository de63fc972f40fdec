//! Opens a session in its databases: claims it, and loads it if it goes on. A session may have two databases that
//! hold the same log. Each batch goes to the one and then to the other, so that a crash can come between; the next
//! process completes the shorter one.

use super::batch::Tail;
use super::database::{Database, SessionNumber, ask};
use super::error::StoreError;
use super::loader::{Connections, Done, Step};
use super::place::{OpenMode, StorePlace, StoreSettings};
use super::postgres::OwnProcess;
use super::reading::{Known, Reading, Sink};
use super::writer::Attached;
use super::{Claim, Condition, Store};
use crate::conversation::choices::Choices;
use crate::conversation::log::{Record, Restored};
use crate::protocol::id::{Ordinal, SessionId};
use crate::support::fail_point::FailPoint;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A session that is to be opened.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) settings: Arc<StoreSettings>,
    pub(super) number: SessionNumber,
    /// Lives as long as the conversation.
    pub(super) conversation: Weak<()>,
    /// Trips where a batch is taken, for tests.
    pub(super) fault: FailPoint,
}

/// A database that can be used.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) database: Arc<Database>,
    pub(super) condition: Condition,
}

/// A session that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// The databases that store it.
    pub(super) databases: Vec<Arc<Database>>,
    /// What it goes on with.
    pub(super) restored: Option<Box<Restored>>,
}

/// How long a session is waited for that another process holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    until: Instant,
    /// Another process held the session when it was asked for.
    has_begun: bool,
}

impl Wait {
    pub(super) fn of(limit: Duration) -> Self {
        Self { until: Instant::now() + limit, has_begun: false }
    }

    /// Whether the session may be opened later, after that error. A server that is being started again says nothing
    /// of who holds the session.
    fn goes_on_after(&self, error: &StoreError) -> bool {
        let is_held = matches!(error, StoreError::Locked { .. });
        (is_held || self.has_begun && error.is_away()) && Instant::now() < self.until
    }
}

/// A session in one of its databases.
struct Part {
    prepared: Prepared,
    /// `None` once it is attached to its writer.
    claim: Option<Claim>,
    /// The end of its log.
    tail: Tail,
}

/// Opens the databases.
pub(super) fn prepare(
    settings: &StoreSettings,
    fault: FailPoint,
) -> Result<Vec<Prepared>, StoreError> {
    let StoreSettings { places, mode, .. } = settings;
    // The only one is never made anew for a session that is resumed from it.
    let may_be_new = *mode != OpenMode::Resume || places.len() > 1;
    let is_written = *mode == OpenMode::New;
    let mut fault = Some(fault);
    let mut all = Vec::new();
    for place in places {
        let database = Database::of(place)?;
        let condition =
            database.prepare(may_be_new, is_written, fault.take().unwrap_or_default())?;
        all.push(Prepared { database, condition });
    }
    Ok(all)
}

impl Opening {
    /// Opens the session once no other process holds it, if that comes in time, and has `report` report it.
    pub(super) fn open_later(
        self,
        session: SessionId,
        prepared: Vec<Prepared>,
        wait: Wait,
        report: impl FnOnce(&Self, Result<Opened, StoreError>) -> Done + Send + 'static,
        connections: &mut Connections,
    ) -> Step {
        let is_free = match wait.has_begun {
            true => are_free(&session, &prepared, connections),
            false => Ok(()),
        };
        match is_free.and_then(|()| self.open(&session, prepared.clone(), connections)) {
            Err(error) if wait.goes_on_after(&error) && self.conversation.strong_count() > 0 => {
                let wait = Wait { has_begun: true, ..wait };
                Step::Later(Box::new(move |connections| {
                    self.open_later(session, prepared, wait, report, connections)
                }))
            }
            opened => {
                drop(prepared);
                Step::Done(report(&self, opened))
            }
        }
    }

    /// Claims the session, loads it if it goes on, and attaches it to the writers of its databases.
    pub(super) fn open(
        &self,
        session: &SessionId,
        prepared: Vec<Prepared>,
        connections: &mut Connections,
    ) -> Result<Opened, StoreError> {
        let mut parts = Vec::new();
        let loaded = self.load(session, prepared, &mut parts, connections);
        if loaded.is_ok() {
            parts.iter_mut().for_each(|part| self.attach(session, part, &self.settings.folder));
        } else {
            parts.drain(..).for_each(|part| self.leave(part, connections));
        }
        let databases: Vec<_> = parts.into_iter().map(|it| it.prepared.database).collect();
        // The conversation has ended meanwhile, and could not release what was not attached yet.
        if self.conversation.strong_count() == 0 {
            databases.iter().for_each(|it| it.clone().detach(self.number, None));
        }
        Ok(Opened { databases, restored: loaded? })
    }

    /// Has the writer of a database write the session, if it does not yet: to this folder if it is new there.
    fn attach(&self, session: &SessionId, part: &mut Part, folder: &str) {
        let Part { prepared, claim, tail } = part;
        let Some(claim) = claim.take() else { return };
        let (session, folder) = (session.clone(), folder.to_owned());
        let (tail, fault, is_failed) = (std::mem::take(tail), self.fault.clone(), false);
        let attached = Attached { session, folder, claim, tail, fault, is_failed };
        prepared.database.attach(self.number, attached);
    }

    /// Releases the session in a database that does not store it from here on.
    fn leave(&self, Part { prepared, claim, .. }: Part, connections: &mut Connections) {
        if let Some(claim) = claim
            && let Ok(store) = connections.to(&prepared)
        {
            store.release(vec![claim]);
        }
        prepared.database.detach(self.number, None);
    }

    fn load(
        &self,
        session: &SessionId,
        prepared: Vec<Prepared>,
        parts: &mut Vec<Part>,
        connections: &mut Connections,
    ) -> Result<Option<Box<Restored>>, StoreError> {
        let mode = self.settings.mode;
        // What is to go on is missed when it is loaded.
        let mut is_there = mode == OpenMode::Resume;
        let mut writable = Ok(());
        for prepared in prepared {
            let store = connections.to(&prepared)?;
            // Before anything is read: what another process writes would be missed.
            let claim = Some(store.claim(session)?);
            let found = if is_there { Ok(true) } else { store.has(session) };
            writable = writable.and(store.check_writable());
            parts.push(Part { prepared, claim, tail: Tail::default() });
            is_there = found?;
        }
        if !is_there {
            return writable.map(|()| None);
        }
        if mode == OpenMode::New {
            return Err(StoreError::Exists(session.as_str().to_owned()));
        }
        let mut readings = Vec::new();
        for Part { prepared, tail, .. } in &mut *parts {
            let store = connections.to(prepared)?;
            let mut reading = store.load(session, Sink::Fold(Box::default()))?;
            *tail = std::mem::take(&mut reading.tail);
            readings.push(reading);
        }
        let best = best(&readings);
        let mut whole = readings.swap_remove(best);
        check_found(session, &whole)?;
        if let Some(other) = readings.pop()
            && let Some(reason) =
                self.complete(session, parts, (best, &whole), &other, connections)?
        {
            whole.lost(reason, false);
        }
        let missing = || StoreError::Missing(session.as_str().to_owned());
        Ok(Some(whole.restored().map(Box::new).ok_or_else(missing)?))
    }

    /// Appends to the other of two stores what only the best has; gives what the person should know. One that
    /// is damaged, or has another conversation, is left alone from here on.
    fn complete(
        &self,
        session: &SessionId,
        parts: &mut Vec<Part>,
        (best, whole): (usize, &Reading),
        part: &Reading,
        connections: &mut Connections,
    ) -> Result<Option<String>, StoreError> {
        let other = 1 - best;
        let place = |at: usize| self.settings.places[at].to_string();
        let (best_place, other_place) = (place(best), place(other));
        if let Some(loss) = part.loss.as_ref().filter(|loss| loss.is_closed) {
            self.leave(parts.remove(other), connections);
            return Ok(Some(format!("{}; only {best_place} is written from here on", loss.reason)));
        }
        let sealed = |at: usize| parts[at].tail.sealed();
        let known = Known { last: part.last, sealed: part.is_there().then(|| sealed(other)) };
        let is_behind = !part.is_there() || part.last < whole.last;
        let is_same = sealed(best) == sealed(other);
        let own = part.loss.as_ref().map(|loss| loss.reason.clone());
        if !is_behind && is_same {
            return Ok(own);
        }
        let store = connections.to(&parts[best].prepared)?;
        let all = store.load(session, Sink::Events(known, Vec::new()))?;
        if all.is_other || !is_behind {
            self.leave(parts.remove(other), connections);
            return Ok(Some(format!(
                "the stores {best_place} and {other_place} have different conversations of the session; \
                 that of {best_place} goes on, and {other_place} is left as it is"
            )));
        }
        let summary = store.summary(session)?;
        let folder = summary.map_or_else(|| self.settings.folder.clone(), |it| it.folder);
        let (start, Sink::Events(_, events)) = (all.start, all.sink) else { return Ok(own) };
        let start = start.filter(|_| !part.is_there()).map(|start| Record::Start(Box::new(start)));
        let records = start.into_iter().chain(events.into_iter().map(Record::Event)).collect();
        self.attach(session, &mut parts[other], &folder);
        if let Err(error) = write(&parts[other].prepared.database, self.number, records) {
            self.leave(parts.remove(other), connections);
            return Ok(Some(format!(
                "the store {other_place} has not all of the session and could not be completed: {error}; \
                 only {best_place} is written from here on"
            )));
        }
        let had = match part.is_there() {
            true => format!("had the session up to event {} only", part.last.0),
            false => "did not have the session".to_owned(),
        };
        Ok(Some(format!(
            "the store {other_place} {had}; it was completed from {best_place}, up to event {}",
            whole.last.0
        )))
    }
}

/// Checks that no other process has the lease of a session. It writes nothing, so that a session can be waited for all
/// day: to ask for a lease has a server sync its disk.
fn are_free(
    session: &SessionId,
    prepared: &[Prepared],
    connections: &mut Connections,
) -> Result<(), StoreError> {
    prepared.iter().try_for_each(|it| connections.to(it)?.check_lease(session))
}

/// Appends records to the log of a session that is attached, and waits until they are stored.
fn write(
    database: &Database,
    number: SessionNumber,
    records: Vec<Record>,
) -> Result<(), StoreError> {
    let (reply, replied) = oneshot::channel();
    database.write(number, records, None, reply);
    let written = replied.blocking_recv().map_err(|_| StoreError::Defect)?;
    written.map_err(StoreError::Failed)
}

/// The best of these.
fn best(readings: &[Reading]) -> usize {
    (0..readings.len()).rev().max_by_key(|at| readings[*at].rank()).unwrap_or_default()
}

/// The error of a session whose databases can't be opened: a store that there is not holds no session.
pub(super) fn missing(error: StoreError, mode: OpenMode, session: &SessionId) -> StoreError {
    if error.is_absence() && mode == OpenMode::Resume {
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
    let store = Store::open(place, false, &OwnProcess::default(), FailPoint::default());
    match store.and_then(|mut store| store.latest(folder)) {
        Ok(latest) => Ok(latest),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// What was chosen in a session; `None` if the store can't say: it reports why when the session is opened. The
/// store has it apart from the log, of which it is made where it is not there.
pub(crate) fn stored_choices(place: &StorePlace, session: &SessionId) -> Option<Choices> {
    let read = ask(place, |store| match store.choices(session)? {
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
    use crate::store::postgres::PostgresError;

    #[test]
    fn a_server_that_starts_again_ends_no_wait_and_is_waited_for_by_none_that_has_not_begun() {
        let begun = |limit| Wait { has_begun: true, ..Wait::of(limit) };
        let (long, none) = (Duration::from_secs(600), Duration::ZERO);
        let held = || StoreError::Locked { holder: String::new(), address: String::new() };
        let away = || {
            StoreError::from(PostgresError::Unreachable {
                place: String::new(),
                why: String::new(),
            })
        };
        assert!(Wait::of(long).goes_on_after(&held()) && !Wait::of(none).goes_on_after(&held()));
        assert!(begun(long).goes_on_after(&away()) && !begun(none).goes_on_after(&away()));
        assert!(!Wait::of(long).goes_on_after(&away()));
        assert!(!begun(long).goes_on_after(&StoreError::Missing(String::new())));
    }
}
