//! Where the conversation is stored, and which session it is.

use crate::cli::SessionArgs;
use crate::protocol::id::SessionId;
use crate::store::{Library, OpenMode, StorePlace, StoreSettings, ambiguous, latest_session};
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, anyhow, bail, ensure};

/// The store of a conversation and its session id, as far as they are given.
///
/// # Errors
/// If the options contradict each other, or there is no session to resume.
pub(super) fn store(args: &SessionArgs) -> Result<(Option<StoreSettings>, Option<SessionId>)> {
    let named = session_id(args)?;
    let options = &args.store;
    let resumes = options.resume || options.continues;
    let places = options.places().map_err(|why| anyhow!(why))?;
    if !resumes {
        if places.is_empty() {
            return Ok((None, named));
        }
        let folder = folder()?;
        return Ok((Some(StoreSettings { places, mode: OpenMode::New, folder }), named));
    }
    let word = if options.resume { "--resume" } else { "--continue" };
    ensure!(!places.is_empty(), "{word} needs the store of the session; name it with --store");
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
        (false, None) => latest(&places, &folder)?,
    };
    Ok((Some(StoreSettings { places, mode: OpenMode::Resume, folder }), Some(session)))
}

/// Puts the whole id of the session to resume in the place of its beginning, if no other stored id begins
/// so. What can't be read is left to the store, which reports why when it is opened.
///
/// # Errors
/// If several ids begin so.
pub(super) fn complete_id(args: &mut SessionArgs) -> Result<()> {
    let places = args.store.places().unwrap_or_default();
    let named = session_id(args)?;
    let may_be_short = args.store.resume && !places.is_empty();
    let Some(named) = named.filter(|_| may_be_short) else { return Ok(()) };
    let library = Library::new(places);
    if library.has(&named) != Some(false) {
        return Ok(());
    }
    let typed = named.as_str();
    // Where some ids can't be read, another one may begin so.
    let alike = library.beginning_with(typed).ok().filter(|alike| !alike.is_partial);
    let ids = alike.unwrap_or_default().ids;
    ensure!(ids.len() <= 1, "--session-id: {}", ambiguous(typed, &ids));
    if let [id] = &ids[..] {
        let (typed, whole) = (escape_control(typed), escape_control(id));
        tracing::warn!(
            "no session has the id {typed}; the only one that begins so goes on: {whole}"
        );
        args.session_id = Some(id.clone());
    }
    Ok(())
}

/// The session of the folder in the first of these places that has one.
fn latest(places: &[StorePlace], folder: &str) -> Result<SessionId> {
    for place in places {
        if let Some(latest) = latest_session(place, folder).map_err(|error| anyhow!(error))? {
            return Ok(latest);
        }
    }
    let names: Vec<_> = places.iter().map(StorePlace::to_string).collect();
    bail!(
        "there is no session of this folder in the store {}; leave --continue out to begin one",
        names.join(" or ")
    )
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
