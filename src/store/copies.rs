//! Sessions that begin with the conversation of another one, or with one that frames have shown.

use super::database::ask;
use super::error::{DAMAGED, StoreError};
use super::library::Library;
use super::place::{StorePlace, StoreSettings};
use super::reading::{Known, Sink};
use super::session_store::SessionStore;
use crate::conversation::copy::{CopiedTurns, open_turn};
use crate::protocol::id::{Ids, SessionId};
use crate::session::ends_of_cut_off;

/// The turns of a session that have ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) copy: CopiedTurns,
    /// A turn after them has no end yet, or is not known to have been cut off, and is not among them.
    pub(crate) goes_on: bool,
    /// What could not be read, for people.
    pub(crate) loss: Option<String>,
}

impl Ended {
    /// Which turn was left out, and why, for people.
    pub(crate) fn omission(&self) -> Option<String> {
        let number = self.copy.turns.len().saturating_add(1);
        let why = "has no end yet, or its process can't be asked; it was not copied";
        self.goes_on.then(|| format!("turn {number} {why}"))
    }
}

/// Why a session was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAdded {
    /// The store has a session of this id.
    Exists,
    /// Another process holds a session of this id, of which nothing is stored yet: who, and what to do, for a person.
    Locked(String),
    /// Why the store can't be written, for a person.
    Failed(String),
}

impl Library {
    /// The turns of a session that have ended; `None` if there is no such session. Its process may continue
    /// meanwhile. A turn without an end whose process has ended is stopped, as when the session is resumed.
    ///
    /// # Errors
    /// If the store can't be read, for a person.
    pub(crate) fn ended_turns(&self, session: &SessionId) -> Result<Option<Ended>, String> {
        let found = self.turns(session, false)?;
        if !found.as_ref().is_some_and(|found| found.goes_on) {
            return Ok(found);
        }
        // Read again: until here another process may have gone on with it.
        self.while_free(session, || self.turns(session, true)).unwrap_or(Ok(found))
    }

    /// The turns of a session; `is_cut_off`: a turn without an end is ended.
    fn turns(&self, session: &SessionId, is_cut_off: bool) -> Result<Option<Ended>, String> {
        let all = || Sink::Events(Known::default(), Vec::new());
        let reading = self.read(session, all).map_err(|error| error.to_string())?;
        if !reading.is_there() && reading.loss.is_none() {
            return Ok(None);
        }
        let loss = reading.loss.map(|loss| loss.reason);
        let (Some(start), Sink::Events(_, mut events)) = (reading.start, reading.sink) else {
            return Ok(Some(Ended { copy: CopiedTurns::default(), goes_on: false, loss }));
        };
        let mut goes_on = false;
        if let Some(open) = open_turn(&events) {
            goes_on = !is_cut_off;
            let ends = if is_cut_off { ends_of_cut_off(&start, &events, open) } else { Vec::new() };
            events.extend(ends);
        }
        Ok(Some(Ended { copy: CopiedTurns::of_log(start, events), goes_on, loss }))
    }
}

/// Makes a session that begins with `copy`.
///
/// # Errors
/// If there is one of this id already, or the store can't be written.
pub(crate) fn add_session(
    settings: StoreSettings,
    session: &SessionId,
    copy: CopiedTurns,
    ids: &mut Ids,
) -> Result<(), NotAdded> {
    let (places, stored) = (settings.places.clone(), settings.namespace.stored(session));
    let written = SessionStore::add(settings, session, copy.records(session, ids));
    written.map_err(|error| {
        let is_locked = matches!(error, StoreError::Locked { .. });
        // One that is open elsewhere is claimed in vain; to try again later would not help.
        if matches!(error, StoreError::Exists(_)) || is_locked && is_in(&places, &stored) {
            NotAdded::Exists
        } else if is_locked {
            NotAdded::Locked(error.to_string())
        } else {
            NotAdded::Failed(with_way_out(error.to_string()))
        }
    })
}

/// Why a session was not made, with what a person can do where the store is damaged.
fn with_way_out(why: String) -> String {
    match why.contains(DAMAGED) {
        true => format!(
            "{why}; `duologue sessions export ID | duologue sessions import - --store OTHER` makes a copy in another \
             store"
        ),
        false => why,
    }
}

/// Whether one of the stores has a session, as far as they can be read.
fn is_in(places: &[StorePlace], stored: &SessionId) -> bool {
    places.iter().any(|place| ask(place, |store| store.has(stored)).unwrap_or_default())
}
