//! `duologue sessions`: stored conversations, listed, printed, exported, searched, copied, imported and
//! deleted.

pub(crate) mod args;
mod delete;
mod export;
mod fork;
mod import;
mod list;
mod markdown;
mod message;
mod new;
mod search;
mod show;

use super::envelope::{Envelope, Error};
use super::output::{Failure, Out, message, status};
use crate::protocol::id::SessionId;
use crate::protocol::words::code;
use crate::store::{Conversation, Library};
use crate::support::terminal::escape_control;
use args::{Places, SessionsAction, SessionsArgs};

/// Does what `args` name; returns the exit status.
pub fn sessions(args: &SessionsArgs) -> u8 {
    status(match &args.action {
        SessionsAction::List(args) => reported(list::list(args), args.output.is_json()),
        SessionsAction::Show(args) => reported(show::show(args), args.output.is_json()),
        SessionsAction::Export(args) => export::export(args),
        SessionsAction::Search(args) => reported(search::search(args), args.output.is_json()),
        SessionsAction::Fork(args) => reported(fork::fork(args), args.output.is_json()),
        SessionsAction::Import(args) => reported(import::import(args), args.output.is_json()),
        SessionsAction::Delete(args) => reported(delete::delete(args), args.output.is_json()),
    })
}

/// A reader of JSON gets the error of a store that can't be read as JSON too.
fn reported(result: Result<u8, Failure>, is_json: bool) -> Result<u8, Failure> {
    match result {
        Err(Failure::Usage(why)) if is_json => {
            message(&why);
            let (code, class) = (code::STORE_FAILED, None);
            let error = Error { code, class, detail: why.clone(), message: why };
            let mut out = Out::new()?;
            Envelope::new().finish(Some(&error), None, &mut out)?;
            out.flush()?;
            Ok(super::USAGE)
        }
        result => result,
    }
}

/// The sessions of the store that is named.
fn library(places: &Places) -> Result<Library, Failure> {
    places.library().map_err(Failure::Usage)?.ok_or_else(|| {
        let why = "no store is named, so there are no sessions to look at; name one with --store \
                   PATH or --store DSN, or set DUOLOGUE_STORE";
        Failure::Usage(why.to_owned())
    })
}

/// What was said in the session `id`. `None` if it is not there.
fn conversation(places: &Places, id: &str) -> Result<Option<Conversation>, Failure> {
    let library = library(places)?;
    let Some(session) = session_id(id) else { return Ok(None) };
    let conversation = library.conversation(&session).map_err(Failure::Usage)?;
    if let Some(loss) = conversation.as_ref().and_then(|it| it.loss.as_ref()) {
        message(&format!("warning: {}", escape_control(loss)));
    }
    Ok(conversation)
}

/// Reports what could not be read.
fn degraded(envelope: &mut Envelope, loss: String) {
    message(&format!("warning: {}", escape_control(&loss)));
    envelope.warn("store_degraded", loss);
}

fn session_id(id: &str) -> Option<SessionId> {
    SessionId::parse(id).ok().flatten()
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
