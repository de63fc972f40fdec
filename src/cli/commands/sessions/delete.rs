//! `duologue sessions delete`.

use super::args::DeleteArgs;
use super::{Failure, Out, degraded, library, message, missing, not_found, session_id};
use crate::cli::commands::FOUND;
use crate::cli::commands::envelope::{Envelope, Error};
use crate::protocol::constants::command_code;
use crate::store::{Deleted, Library, shown_ids};
use crate::support::terminal::escape_control;
use jiff::{Span, Zoned};

/// The output of `sessions delete`.
struct Report {
    is_json: bool,
    /// Lists the sessions and deletes none (`--dry-run`).
    is_dry: bool,
    envelope: Envelope,
    out: Out,
    /// The first of the errors.
    error: Option<Error>,
}

/// Deletes sessions. One that can't be deleted does not stop the others.
pub(super) fn delete(args: &DeleteArgs) -> Result<u8, Failure> {
    let library = library(&args.places)?;
    let is_json = args.output.is_json();
    let (envelope, out) = (Envelope::new(), Out::new()?);
    let mut report = Report { is_json, is_dry: args.dry_run, envelope, out, error: None };
    match &args.older_than {
        Some(age) => delete_unused(&library, age, &mut report)?,
        None => delete_named(&library, &args.ids, &mut report)?,
    }
    report.finish()
}

fn delete_named(library: &Library, ids: &[String], report: &mut Report) -> Result<(), Failure> {
    for id in ids {
        let deleted = match session_id(id) {
            Some(session) if report.is_dry => library.has(&session).map(|has| match has {
                true => Deleted::Whole,
                false => Deleted::Missing,
            }),
            Some(session) => library.delete(&session),
            None => Ok(Deleted::Missing),
        };
        match deleted {
            Ok(Deleted::Missing) => {
                let alike = library.beginning_with(id).unwrap_or_default().ids;
                report.fail(not_there(id, &alike));
            }
            deleted => report.add(id, deleted)?,
        }
    }
    Ok(())
}

/// Deletes the sessions that were written last before the time that `age` ago was; or only names them.
fn delete_unused(library: &Library, age: &Span, report: &mut Report) -> Result<(), Failure> {
    let since_ms = before_now(age)?;
    let listing = library.titles().map_err(Failure::Store)?;
    for loss in listing.losses {
        degraded(&mut report.envelope, loss, &mut report.error);
    }
    let unused = listing.sessions.into_iter().filter(|session| session.updated_ms < since_ms);
    for id in unused.map(|session| session.id) {
        let Some(session) = session_id(&id) else { continue };
        let deleted = match report.is_dry {
            true => library.is_unused(&session, since_ms).map(|is| is.then_some(Deleted::Whole)),
            false => library.delete_unused(&session, since_ms),
        };
        match deleted {
            // Somebody uses it again, or another process has deleted it meanwhile.
            Ok(None | Some(Deleted::Missing)) => {}
            Ok(Some(deleted)) => report.add(&id, Ok(deleted))?,
            Err(why) => report.add(&id, Err(why))?,
        }
    }
    Ok(())
}

/// The time that `age` ago was, in milliseconds since 1970.
fn before_now(age: &Span) -> Result<i64, Failure> {
    let time = Zoned::now().checked_sub(*age);
    let time = time
        .map_err(|_| Failure::Usage(format!("{age} ago is before the time that calendars have")))?;
    Ok(time.timestamp().as_millisecond())
}

impl Report {
    /// Tells what became of a session that was there.
    fn add(&mut self, id: &str, deleted: Result<Deleted, String>) -> Result<(), Failure> {
        match deleted {
            Err(why) => {
                self.fail(not_deleted(id, why));
                return Ok(());
            }
            Ok(Deleted::ButLog) => {
                let warning = but_log(id);
                message(&format!("warning: {warning}"));
                self.envelope.warn("store_in_use", warning);
            }
            Ok(Deleted::Whole | Deleted::Missing) => {}
        }
        if self.is_json {
            return self.envelope.push(&id, &mut self.out);
        }
        let what = if self.is_dry { "would delete" } else { "deleted" };
        self.out.line(&format!("{what} {}", escape_control(id)))
    }

    fn fail(&mut self, error: Error) {
        message(&error.message);
        self.error.get_or_insert(error);
    }

    fn finish(mut self) -> Result<u8, Failure> {
        if self.is_json {
            self.envelope.finish(self.error.as_ref(), None, &mut self.out)?;
        }
        self.out.flush()?;
        Ok(if self.error.is_some() { FOUND } else { 0 })
    }
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
