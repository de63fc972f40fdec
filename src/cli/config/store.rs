//! Where the conversation is stored, and which session it is.

use crate::cli::SessionArgs;
use crate::protocol::id::SessionId;
use crate::store::{StorePlace, StoreSettings, latest_session};
use anyhow::{Context, Result, anyhow, bail, ensure};

/// The store of a conversation and its session id, as far as they are given.
///
/// # Errors
/// If the options don't fit each other, or there is no session to go on with.
pub(super) fn store(args: &SessionArgs) -> Result<(Option<StoreSettings>, Option<SessionId>)> {
    let named = session_id(args)?;
    let options = &args.store;
    let resumes = options.resume || options.continues;
    let (turns, timeline) = options.places().map_err(|why| anyhow!(why))?;
    if !resumes {
        if turns.is_none() && timeline.is_none() {
            return Ok((None, named));
        }
        let folder = folder()?;
        return Ok((Some(StoreSettings { turns, timeline, resumes, folder }), named));
    }
    let word = if options.resume { "--resume" } else { "--continue" };
    let Some(place) = &turns else {
        bail!(
            "{word} needs a store with the turns of the session; name it with --store, --turns-db or \
             --turns-dsn"
        );
    };
    ensure!(
        args.history.is_none(),
        "{word} goes on with the messages that are stored, and --history begins with others; leave \
         one of them out"
    );
    let folder = folder()?;
    let session = match (options.resume, named) {
        (true, Some(named)) => named,
        (true, None) => {
            bail!("--resume needs the session to go on with; name it with --session-id")
        }
        (false, Some(_)) => bail!(
            "--continue goes on with the last session of this folder, and --session-id names another; \
             leave one of them out, or use --resume with --session-id"
        ),
        (false, None) => latest(place, &folder)?,
    };
    Ok((Some(StoreSettings { turns, timeline, resumes, folder }), Some(session)))
}

fn latest(place: &StorePlace, folder: &str) -> Result<SessionId> {
    let latest = latest_session(place, folder).map_err(|error| anyhow!(error))?;
    latest.with_context(|| {
        format!(
            "there is no session of this folder in the store {place}; leave --continue out to begin \
             one"
        )
    })
}

fn folder() -> Result<String> {
    let folder = std::env::current_dir().context("the current folder can't be found")?;
    Ok(folder.display().to_string())
}

fn session_id(args: &SessionArgs) -> Result<Option<SessionId>> {
    let Some(typed) = &args.session_id else { return Ok(None) };
    let id = SessionId::parse(typed).context("--session-id is too long; choose a shorter one")?;
    ensure!(id.is_some(), "--session-id is blank; name the session or leave it out");
    Ok(id)
}
