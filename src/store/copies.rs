//! Sessions that begin with the conversation of another one, or with one that frames have shown.

use super::error::StoreError;
use super::library::Library;
use super::part::Part;
use super::place::StoreSettings;
use super::session_stores::SessionStores;
use super::states::remove_dropped;
use crate::chat::copy::CopiedTurns;
use crate::chat::entities::{Entities, Shown};
use crate::protocol::any::Any;
use crate::protocol::id::{Ids, SessionId};
use crate::support::fail_point::FailPoint;

/// The turns of a session that have ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) copy: CopiedTurns,
    /// What could not be read, for people.
    pub(crate) loss: Option<String>,
}

/// Why a session was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAdded {
    /// The store has a session of this id.
    Exists,
    /// Why the store can't be written, for a person.
    Failed(String),
}

impl Library {
    /// The turns of a session that have ended; `None` if there is no such session. Its process may go on
    /// meanwhile.
    ///
    /// # Errors
    /// If the store can't be read, for a person.
    pub(crate) fn ended_turns(&self, session: &SessionId) -> Result<Option<Ended>, String> {
        let part = self.load(session).map_err(|error| error.to_string())?;
        if !part.is_there && part.loss.is_none() {
            return Ok(None);
        }
        Ok(Some(ended(part, self.keeps_turns())))
    }
}

fn ended(part: Part, has_turns: bool) -> Ended {
    let Part { preamble, entities, entities_until, mut transcript, open_turns, .. } = part;
    let (choices, loss) = (part.choices, part.loss);
    let loss = loss.map(|loss| loss.reason);
    let mut entities = entities;
    remove_dropped(&mut entities);
    for entity in &mut entities {
        entity.payload = entity.payload.take().map(Any::into_whole);
    }
    let shown = Shown { entities, ordinal: entities_until.0, ..Entities::default().finish() };
    let copy = CopiedTurns::of_shown(shown);
    transcript.retain(|number, _| !open_turns.contains(number));
    let copy = if has_turns { copy.with_turns((preamble, choices), transcript) } else { copy };
    Ended { copy, loss }
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
    let mut stores = SessionStores::new(settings, FailPoint::default());
    let opened = stores.open(session.clone());
    let written = opened.and_then(|_| stores.write(&copy.records(session, ids)));
    written.map_err(|error| match matches!(error, StoreError::Exists(_)) {
        true => NotAdded::Exists,
        false => NotAdded::Failed(error.to_string()),
    })
}
