//! `duologue sessions delete`.

use super::args::DeleteArgs;
use super::{Failure, Out, library, message, missing, not_found, session_id};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::{Envelope, Error};
use crate::protocol::constants::command_code;
use crate::store::{Deleted, shown_ids};
use crate::support::terminal::escape_control;

/// Deletes sessions. One that can't be deleted does not stop the others.
pub(super) fn delete(args: &DeleteArgs) -> Result<u8, Failure> {
    let library = library(&args.places)?;
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    let mut first: Option<Error> = None;
    for id in &args.ids {
        let deleted = match session_id(id) {
            Some(session) => library.delete(&session),
            None => Ok(Deleted::Missing),
        };
        let error = match deleted {
            Ok(Deleted::Whole) => None,
            Ok(Deleted::ButLog) => {
                let warning = but_log(id);
                message(&format!("warning: {warning}"));
                envelope.warn("store_in_use", warning);
                None
            }
            Ok(Deleted::Missing) => {
                Some(not_there(id, &library.beginning_with(id).unwrap_or_default().ids))
            }
            Err(why) => Some(not_deleted(id, why)),
        };
        match error {
            None if args.output.is_json() => envelope.push(id, &mut out)?,
            None => out.line(&format!("deleted {}", escape_control(id)))?,
            Some(error) => {
                message(&error.message);
                first.get_or_insert(error);
            }
        }
    }
    if args.output.is_json() {
        envelope.finish(first.as_ref(), None, &mut out)?;
    }
    out.flush()?;
    Ok(if first.is_some() { FOUND } else { 0 })
}

fn not_deleted(id: &str, why: String) -> Error {
    let message = format!("the session {} was not deleted: {why}", escape_control(id));
    Error { code: command_code::NOT_DELETED, class: None, message, detail: why }
}

/// A beginning of an id is no name for a session that is deleted: whoever deletes a session twice would
/// delete another one.
fn not_there(id: &str, alike: &[String]) -> Error {
    let mut message = missing(id);
    match alike {
        [] => {}
        [one] => {
            let one = escape_control(one);
            message += &format!("; {one} begins so, and is deleted only by its whole id");
        }
        [_, _, ..] => {
            let (count, ids) = (alike.len(), shown_ids(alike));
            message += &format!(
                "; the ids of {count} sessions begin so, and each is deleted only by its whole id: {ids}"
            );
        }
    }
    not_found(message)
}

fn but_log(id: &str) -> String {
    format!(
        "the session {} is deleted, but another process uses the store, and its log may still have \
         the text; it is overwritten when the last of these processes ends",
        escape_control(id)
    )
}
