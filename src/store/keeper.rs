//! The stores of one session: where its turns are kept and where its timeline is, which may be one
//! place.

use super::error::StoreError;
use super::part::{Part, restored};
use super::place::{StorePlace, StoreSettings};
use super::{Roles, Store};
use crate::chat::record::{Record, Restored};
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;

/// The stores of a session.
#[derive(Debug)]
pub(super) struct Keeper {
    settings: StoreSettings,
    fault: FailPoint,
    open: Option<Open>,
}

/// A session that this process holds.
#[derive(Debug)]
struct Open {
    session: SessionId,
    stores: Vec<(Store, Roles)>,
}

impl Keeper {
    pub(super) fn new(settings: StoreSettings, fault: FailPoint) -> Self {
        Self { settings, fault, open: None }
    }

    /// Locks the session; loads it if it goes on.
    pub(super) fn open(&mut self, session: SessionId) -> Result<Option<Box<Restored>>, StoreError> {
        let resumes = self.settings.resumes;
        let mut stores = Vec::new();
        let mut faults = Some(std::mem::take(&mut self.fault));
        for (place, roles) in self.places() {
            // What is to go on is never made anew.
            let may_be_new = !(resumes && roles.turns);
            let fault = faults.take().unwrap_or_default();
            let mut store = Store::open(place, may_be_new, fault)
                .map_err(|error| missing(error, resumes, &session))?;
            // Before anything is read: what another process writes would be missed.
            store.claim(&session)?;
            if !resumes && store.has(&session)? {
                return Err(StoreError::Exists(session.as_str().to_owned()));
            }
            stores.push((store, roles));
        }
        let loaded = match resumes {
            true => Some(load(&session, &mut stores)?),
            false => None,
        };
        self.open = Some(Open { session, stores });
        Ok(loaded)
    }

    /// Stores records; in each of the stores all of them or none.
    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), StoreError> {
        // A session whose first request names it begins here.
        if self.open.is_none()
            && let Some(Record::Start(start)) = batch.first()
        {
            self.open(start.session.clone())?;
        }
        let Some(Open { session, stores }) = &mut self.open else { return Ok(()) };
        for (store, roles) in stores {
            store.write(session, batch, (*roles, &self.settings.folder))?;
        }
        Ok(())
    }

    fn places(&self) -> Vec<(&StorePlace, Roles)> {
        let StoreSettings { turns, timeline, .. } = &self.settings;
        match (turns, timeline) {
            (Some(turns), Some(timeline)) if turns == timeline => {
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

/// A store that there is not holds no session.
fn missing(error: StoreError, resumes: bool, session: &SessionId) -> StoreError {
    if let StoreError::Io { source, .. } = &error
        && source.kind() == std::io::ErrorKind::NotFound
        && resumes
    {
        return StoreError::Missing(session.as_str().to_owned());
    }
    error
}

fn load(session: &SessionId, stores: &mut [(Store, Roles)]) -> Result<Box<Restored>, StoreError> {
    let mut whole = Part::default();
    for (store, roles) in stores {
        let part = store.load(session, *roles)?;
        if roles.turns && !part.is_there && part.loss.is_none() {
            return Err(StoreError::Missing(session.as_str().to_owned()));
        }
        whole.add(part);
    }
    Ok(Box::new(restored(session.clone(), whole)))
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
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}
