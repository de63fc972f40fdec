//! `duologue sessions rename`: the title that a session has in lists.

use super::args::RenameArgs;
use super::{Failure, Out, library, message, named};
use crate::cli::commands::envelope::{Envelope, Error};
use crate::cli::commands::{FOUND, args::TextOutputArgs};
use crate::cli::shell;
use crate::engine::echo::Echo;
use crate::host::HostSettings;
use crate::host::memory::Conversation;
use crate::protocol::command::Command;
use crate::protocol::constants::command_code;
use crate::protocol::id::SessionId;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Frames;
use crate::session::Rules;
use crate::store::{OpenMode, StoreSettings};
use crate::support::terminal::escape_control;

/// Gives a session another title.
pub(super) fn rename(args: &RenameArgs) -> Result<u8, Failure> {
    let words: Vec<_> = args.title.split_whitespace().collect();
    let title = escape_control(&words.join(" "));
    if title.is_empty() {
        return Err(Failure::Usage("the title is blank; write one after the id".to_owned()));
    }
    let library = library(&args.places)?;
    let found = named(&library, &args.id, |session| {
        Ok(library.conversation(session)?.map(|_| session.clone()))
    })?;
    let renamed = match found {
        Ok(session) => renamed(args, session, title)?,
        Err(error) => Err(error),
    };
    report(&args.output, renamed)
}

/// Resumes the session as a conversation does, so that its log goes on with the new title.
fn renamed(
    args: &RenameArgs,
    session: SessionId,
    title: String,
) -> Result<Result<SessionId, Error>, Failure> {
    // The session keeps its own folder.
    let store = args.places.settings(String::new()).map_err(Failure::Usage)?;
    let settings = HostSettings {
        store: Some(StoreSettings { mode: OpenMode::Resume, ..store }),
        rules: Rules {
            session: Some(session.clone()),
            // Nothing is asked, so the model that was chosen stays as it is.
            is_model_typed: true,
            ..Rules::default()
        },
        ..HostSettings::new(Echo::default())
    };
    let runtime = shell::runtime()
        .map_err(|error| Failure::Usage(format!("events can't be waited for: {error}")))?;
    Ok(match runtime.block_on(held(settings, title)) {
        None => Ok(session),
        Some(ErrorFrame { message, detail, .. }) => {
            let id = escape_control(session.as_str());
            let message = format!("the session {id} was not renamed: {message}");
            Err(Error { code: command_code::NOT_RENAMED, class: None, message, detail })
        }
    })
}

/// Holds the conversation as long as it takes; returns its first error.
async fn held(settings: HostSettings, title: String) -> Option<ErrorFrame> {
    let mut conversation = Conversation::start(settings);
    // They wait for the store, and what comes after an error is refused.
    conversation.request(Command::Rename(title)).ok();
    conversation.shutdown().ok();
    let mut first = None;
    while let Some(line) = conversation.next_frame().await {
        if let Some(Frames::Error(error)) = line.frame {
            first.get_or_insert(error);
        }
    }
    first
}

fn report(output: &TextOutputArgs, renamed: Result<SessionId, Error>) -> Result<u8, Failure> {
    let (mut envelope, mut out) = (Envelope::new(), Out::new()?);
    if let Err(error) = &renamed {
        message(&error.message);
    }
    if output.is_json() {
        if let Ok(session) = &renamed {
            envelope.push(&session.as_str(), &mut out)?;
        }
        envelope.finish(renamed.as_ref().err(), None, &mut out)?;
    } else if let Ok(session) = &renamed {
        out.line(&format!("renamed {}", escape_control(session.as_str())))?;
    }
    out.flush()?;
    Ok(if renamed.is_err() { FOUND } else { 0 })
}
