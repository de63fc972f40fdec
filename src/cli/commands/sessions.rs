//! `duologue sessions`: stored conversations, listed, printed, exported, searched, renamed, copied, imported
//! and deleted.

pub(crate) mod args;
mod delete;
mod export;
mod html;
mod import;
mod list;
mod markdown;
mod message;
mod new;
mod rename;
mod search;
mod show;
mod words;

use super::document::error;
use super::envelope::{Envelope, Error};
use super::output::{Failure, Out, message, nothing, status};
use crate::protocol::constants::command_code;
use crate::protocol::id::SessionId;
use crate::store::{Conversation, Library, ambiguous};
use crate::support::terminal::escape_control;
use args::{Places, SessionsAction, SessionsArgs};

/// Runs the subcommand of `args`; returns the exit status.
pub fn sessions(args: &SessionsArgs) -> u8 {
    status(match &args.action {
        SessionsAction::List(args) => reported(list::list(args), args.output.is_json()),
        SessionsAction::Show(args) => reported(show::show(args), args.output.is_json()),
        SessionsAction::Export(args) => reported(export::export(args), args.output.is_json()),
        SessionsAction::Search(args) => reported(search::search(args), args.output.is_json()),
        SessionsAction::Rename(args) => reported(rename::rename(args), args.output.is_json()),
        SessionsAction::Fork(args) => reported(new::fork(args), args.output.is_json()),
        SessionsAction::Import(args) => reported(import::import(args), args.output.is_json()),
        SessionsAction::Delete(args) => reported(delete::delete(args), args.output.is_json()),
    })
}

/// A reader of JSON gets the error of a wrong command line, or of a store that can't be read, as JSON too.
fn reported(result: Result<u8, Failure>, is_json: bool) -> Result<u8, Failure> {
    match result {
        Err(failure @ (Failure::Usage(_) | Failure::Store(_))) if is_json => {
            let mut out = Out::new()?;
            Envelope::new().finish(Some(&error(&failure)), None, &mut out)?;
            out.flush()?;
            Err(failure)
        }
        result => result,
    }
}

/// The sessions of the store.
fn library(places: &Places) -> Result<Library, Failure> {
    places.library().map_err(Failure::Usage)
}

/// The messages of the session that `typed` names, or the error.
fn conversation(places: &Places, typed: &str) -> Result<Result<Conversation, Error>, Failure> {
    let library = library(places)?;
    let found = named(&library, typed, |session| library.conversation(session))?;
    if let Some(loss) = found.as_ref().ok().and_then(|it| it.loss.as_ref()) {
        message(&format!("warning: {}", escape_control(loss)));
    }
    Ok(found)
}

/// Applies `find` to the session whose id or title `typed` is, or is the beginning of; or the error.
fn named<T>(
    library: &Library,
    typed: &str,
    find: impl Fn(&SessionId) -> Result<Option<T>, String>,
) -> Result<Result<T, Error>, Failure> {
    let exact = session_id(typed).map(|session| find(&session)).transpose();
    if let Some(found) = exact.map_err(Failure::Store)?.flatten() {
        return Ok(Ok(found));
    }
    let ids = library.beginning_with(typed).map_err(Failure::Store)?.ids;
    let [id] = &ids[..] else {
        return Ok(Err(if ids.is_empty() {
            not_found(missing(typed))
        } else {
            several(typed, &ids)
        }));
    };
    let found = session_id(id).map(|session| find(&session)).transpose();
    let found = found.map_err(Failure::Store)?.flatten();
    Ok(found.ok_or_else(|| not_found(missing(typed))))
}

/// Reports a loss; `first` is the error of the first one.
fn degraded(envelope: &mut Envelope, loss: String, first: &mut Option<Error>) {
    message(&format!("warning: {}", escape_control(&loss)));
    first.get_or_insert_with(|| partial(&loss));
    envelope.warn(command_code::STORE_DEGRADED, loss);
}

/// The error of a document whose data is only what could be read: its status is 1, too.
fn partial(loss: &str) -> Error {
    let message = "not all of the store could be read".to_owned();
    Error { code: command_code::STORE_DEGRADED, class: None, message, detail: loss.to_owned() }
}

fn session_id(id: &str) -> Option<SessionId> {
    SessionId::parse(id).ok().flatten()
}

/// The error of a session that is not in the store.
fn not_found(message: String) -> Error {
    Error { code: command_code::SESSION_NOT_FOUND, class: None, detail: message.clone(), message }
}

/// The error of a beginning that several ids have.
fn several(typed: &str, ids: &[String]) -> Error {
    let message = ambiguous(typed, ids);
    Error { code: command_code::AMBIGUOUS_SESSION, class: None, detail: message.clone(), message }
}

/// Why there is no session of this id, for people.
fn missing(id: &str) -> String {
    let id = escape_control(id);
    format!("the session {id} is not in the store; `duologue sessions list` lists the sessions")
}

/// The exit status for a conversation that was printed.
fn status_of(conversation: &Conversation) -> u8 {
    if conversation.loss.is_some() { super::FOUND } else { 0 }
}
