//! A session that a command makes: its id, and how it is reported. `duologue sessions fork` makes one with
//! the turns of another.

use super::args::{ForkArgs, Places};
use super::{Failure, Out, library, message, named, partial};
use crate::cli::commands::envelope::{Envelope, Error};
use crate::cli::commands::{FOUND, LATER};
use crate::conversation::copy::CopiedTurns;
use crate::protocol::constants::{code, command_code};
use crate::protocol::id::{Ids, SessionId};
use crate::store::{NotAdded, add_session};
use crate::support::terminal::escape_control;

/// The settings of a session that a command makes.
pub(super) struct Maker<'a> {
    pub(super) places: &'a Places,
    pub(super) is_json: bool,
    pub(super) ids: Ids,
    pub(super) envelope: Envelope,
    /// The source could be read only in part: the error of the document, beside the new session.
    pub(super) partial: Option<Error>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(places: &'a Places, is_json: bool) -> Self {
        let ids = Ids::new(uuid::Uuid::new_v4().as_u128());
        Self { places, is_json, ids, envelope: Envelope::new(), partial: None }
    }

    /// A warning for people and programs.
    pub(super) fn warn(&mut self, code: &'static str, warning: String) {
        message(&format!("warning: {}", escape_control(&warning)));
        self.envelope.warn(code, warning);
    }

    /// Makes the session and prints its id; returns the exit status.
    pub(super) fn make(mut self, session: &SessionId, copy: CopiedTurns) -> Result<u8, Failure> {
        let folder = std::env::current_dir().map_err(|error| {
            Failure::Usage(format!("the current folder can't be found: {error}"))
        })?;
        let settings =
            self.places.settings(folder.display().to_string()).map_err(Failure::Usage)?;
        match add_session(settings, session, copy, &mut self.ids) {
            Ok(()) => {}
            Err(NotAdded::Exists) => return self.refuse(exists(session)),
            Err(NotAdded::Locked(why)) => {
                self.refuse(locked(why))?;
                return Ok(LATER);
            }
            Err(NotAdded::Failed(why)) => return Err(Failure::Store(why)),
        }
        let mut out = Out::new()?;
        if self.is_json {
            self.envelope.push(&session.as_str(), &mut out)?;
            self.envelope.finish(self.partial.as_ref(), None, &mut out)?;
        } else {
            out.line(&escape_control(session.as_str()))?;
        }
        out.flush()?;
        Ok(if self.partial.is_some() { FOUND } else { 0 })
    }

    /// Reports why there is no new session; returns the exit status.
    pub(super) fn refuse(self, error: Error) -> Result<u8, Failure> {
        message(&error.message);
        if self.is_json {
            let mut out = Out::new()?;
            self.envelope.finish(Some(&error), None, &mut out)?;
            out.flush()?;
        }
        Ok(FOUND)
    }
}

/// The id that was typed for a new session.
pub(super) fn typed_id(typed: &str) -> Result<SessionId, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("--as {why}"));
    SessionId::parse(typed)
        .map_err(|_| wrong("is too long; choose a shorter id"))?
        .ok_or_else(|| wrong("is blank; name the new session or leave it out"))
}

fn exists(session: &SessionId) -> Error {
    let id = escape_control(session.as_str());
    let message = format!("the session {id} is in the store already; name another id with --as");
    Error { code: command_code::SESSION_EXISTS, class: None, detail: message.clone(), message }
}

fn locked(message: String) -> Error {
    Error { code: code::SESSION_LOCKED, class: None, detail: message.clone(), message }
}

/// Copies the turns of a session that have ended, or the first of them.
pub(super) fn fork(args: &ForkArgs) -> Result<u8, Failure> {
    let library = library(&args.places)?;
    let mut maker = Maker::new(&args.places, args.output.is_json());
    let new = match &args.new_id {
        Some(typed) => typed_id(typed)?,
        None => maker.ids.session(),
    };
    let mut found = match named(&library, &args.id, |session| library.ended_turns(session))? {
        Ok(found) => found,
        Err(error) => return maker.refuse(error),
    };
    let omission = found.omission();
    if let Some(loss) = found.loss {
        maker.partial = Some(partial(&loss));
        maker.warn(command_code::STORE_DEGRADED, loss);
    }
    let count = u32::try_from(found.copy.turns.len()).unwrap_or(u32::MAX);
    if let Some(warning) = omission.filter(|_| args.turns.is_none()) {
        maker.warn(command_code::TURN_GOES_ON, warning);
    }
    if let Some(wanted) = args.turns.filter(|wanted| *wanted > count) {
        return maker.refuse(no_turn(&args.id, wanted, count));
    }
    let wanted = args.turns.and_then(|wanted| usize::try_from(wanted).ok());
    found.copy.turns.truncate(wanted.unwrap_or(usize::MAX));
    maker.make(&new, found.copy)
}

fn no_turn(id: &str, wanted: u32, count: u32) -> Error {
    let id = escape_control(id);
    let message = format!(
        "the session {id} has no turn {wanted} that has ended, as the last one is {count}; choose a number \
         up to that, or leave --turns out"
    );
    Error { code: command_code::NO_SUCH_TURN, class: None, detail: message.clone(), message }
}
