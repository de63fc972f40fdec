//! `duologue sessions fork`: a new session with the turns of another one.

use super::args::ForkArgs;
use super::new::{Maker, typed_id};
use super::{Failure, library, named};
use crate::cli::commands::envelope::Error;
use crate::support::terminal::escape_control;

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
    if let Some(loss) = found.loss {
        maker.is_partial = true;
        maker.warn("store_degraded", loss);
    }
    let last = found.copy.turns.last().map_or(0, |turn| turn.number);
    if let Some(wanted) = args.turns.filter(|wanted| *wanted > last) {
        return maker.refuse(no_turn(&args.id, wanted, last));
    }
    let until = args.turns.unwrap_or(last);
    found.copy.turns.retain(|turn| turn.number <= until);
    maker.make(&new, found.copy)
}

fn no_turn(id: &str, wanted: u32, last: u32) -> Error {
    let id = escape_control(id);
    let message = format!(
        "the session {id} has no turn {wanted} that has ended; the last one is {last}, so choose a \
         number up to that, or leave --turns out"
    );
    Error { code: "no_such_turn", class: None, detail: message.clone(), message }
}
