//! Copies of the conversation in its store.

use crate::protocol::id::{Ids, SessionId};
use crate::store::{Library, NotAdded, OpenMode, StorePlace, StoreSettings, add_session};
use crate::tui::model::Copied;
use std::time::Duration;

/// Copies stored conversations.
#[derive(Clone, Debug)]
pub(crate) struct Forker {
    library: Library,
    settings: StoreSettings,
}

impl Forker {
    /// Copies sessions of these stores, which are not opened yet. The copies belong to `folder`.
    pub(crate) fn new(places: Vec<StorePlace>, folder: String) -> Self {
        let library = Library::new(places.clone());
        let settings = StoreSettings {
            places,
            mode: OpenMode::New,
            folder,
            lock_wait: Duration::ZERO,
            namespace: Default::default(),
        };
        Self { library, settings }
    }

    /// Copies the turns of `session` that have ended.
    ///
    /// # Errors
    /// If it can't be read or written, for a person.
    pub(super) fn copy(self, session: &str) -> Result<Copied, String> {
        let gone = || "this conversation is not in the store, so it was not copied".to_owned();
        let session = SessionId::new(session).ok_or_else(gone)?;
        let found = self.library.ended_turns(&session)?.ok_or_else(gone)?;
        let omission = found.omission();
        if let Some(loss) = found.loss {
            return Err(format!(
                "a part of this conversation can't be read, so it was not copied: {loss}; duologue \
                 sessions fork copies the rest"
            ));
        }
        let mut ids = Ids::new(uuid::Uuid::new_v4().as_u128());
        let copy = ids.session();
        match add_session(self.settings, &copy, found.copy, &mut ids) {
            Ok(()) => Ok(Copied { session: copy.as_str().to_owned(), omission }),
            Err(NotAdded::Exists) => {
                Err(format!("the store has a session {} already", copy.as_str()))
            }
            Err(NotAdded::Locked(why) | NotAdded::Failed(why)) => {
                Err(format!("the copy can't be stored: {why}"))
            }
        }
    }
}
