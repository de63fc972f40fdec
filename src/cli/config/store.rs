//! Where the conversation is stored, and which session it is.

use crate::cli::SessionArgs;
use crate::cli::store::StoreArgs;
use crate::protocol::id::SessionId;
use crate::store::{
    GENERATED_PREFIX, Library, OpenMode, StorePlace, StoreSettings, ambiguous, latest_session,
};
use crate::support::terminal::escape_control;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

/// The store of a conversation and its session id, as far as they are given.
///
/// # Errors
/// If the options contradict each other, or there is no session to resume.
pub(super) fn store(args: &SessionArgs) -> Result<(Option<StoreSettings>, Option<SessionId>)> {
    let named = session_id(args)?;
    let options = &args.store;
    let mode = options.mode();
    let lock_wait = Duration::from_millis(options.lock_wait_ms);
    let places = options.places().map_err(|why| anyhow!(why))?;
    let word = match mode {
        OpenMode::New if places.is_empty() => return Ok((None, named)),
        OpenMode::New => {
            let folder = folder(args)?;
            let namespace = options.namespace.clone();
            return Ok((Some(StoreSettings { places, mode, folder, lock_wait, namespace }), named));
        }
        OpenMode::Either => "--session",
        OpenMode::Resume if options.resume => "--resume",
        OpenMode::Resume => "--continue",
    };
    ensure!(
        !places.is_empty(),
        "{word} needs the store of the session; name it with --store, or set DUOLOGUE_STORE{}",
        if options.no_store { " (DUOLOGUE_NO_STORE turns the default one off)" } else { "" }
    );
    ensure!(
        args.history.is_none(),
        "--history begins with other messages than those that are stored, with which {word} goes on; leave one \
         of them out"
    );
    let folder = folder(args)?;
    let session = match (options.continues, named) {
        (false, Some(named)) => named,
        (false, None) => {
            bail!("--resume needs the session to go on with; name it with --session-id")
        }
        (true, Some(_)) => bail!(
            "--continue goes on with the last session of this folder, and --session-id names another; \
             leave one of them out, or use --resume with --session-id"
        ),
        (true, None) => match latest(&places, &folder)? {
            Some(latest) => latest,
            None => bail!(
                "there is no session of this folder in the store {}; leave --continue out to begin one",
                shown(&places)
            ),
        },
    };
    let namespace = options.namespace.clone();
    Ok((Some(StoreSettings { places, mode, folder, lock_wait, namespace }), Some(session)))
}

/// The default store, if the conversation is stored there and it is not made yet. One that can't be looked at may be.
fn unmade(options: &StoreArgs) -> Option<&Path> {
    let place = options.store.as_ref().filter(|_| options.is_default);
    let path = place.and_then(StorePlace::path);
    path.filter(|path| matches!(path.try_exists(), Ok(false)))
}

/// Reports where the conversation is stored if nobody has named a place, when the file is made. Editors show warnings
/// as errors, and have sessions as a matter of course: `is_editor`.
pub(super) fn announce(options: &StoreArgs, is_editor: bool) {
    // What resumes makes no store: without one there is no session to go on with.
    let begins = options.mode() != OpenMode::Resume;
    let Some(path) = unmade(options).filter(|_| begins) else { return };
    let path = escape_control(&path.display().to_string());
    if is_editor {
        return tracing::info!("sessions are stored in {path}, which is made now");
    }
    tracing::warn!(
        "conversations of chat, --continue and --session are stored in {path}, which is made now; --no-store \
         leaves one out, and DUOLOGUE_STORE names another place"
    );
}

/// Completes what a person has typed of a session that goes on: the beginning of its id or title, and where no session
/// of this folder can be continued, one begins.
///
/// # Errors
/// If several ids begin so, or the store can't be read.
pub(super) fn complete(args: &mut SessionArgs) -> Result<()> {
    let places = args.store.places().unwrap_or_default();
    if args.store.continues && args.session_id.is_none() && !places.is_empty() {
        if latest(&places, &folder(args)?)?.is_none() {
            args.store.continues = false;
            if unmade(&args.store).is_none() {
                tracing::warn!(
                    "there is no session of this folder in the store {}, so a new one begins",
                    escape_control(&shown(&places))
                );
            }
        }
        return Ok(());
    }
    complete_id(args, places)
}

/// Puts the whole id of the session to resume in the place of its beginning or its title, if no other session
/// has it. What can't be read is left to the store, which reports why when it is opened.
fn complete_id(args: &mut SessionArgs, places: Vec<StorePlace>) -> Result<()> {
    let named = session_id(args)?;
    if args.store.session.is_some()
        && let Some(named) = &named
        && let Some(whole) = generated(named.as_str())
        && Library::new(places.clone()).has(&whole) == Ok(true)
    {
        args.session_id = Some(whole.as_str().to_owned());
        return Ok(());
    }
    let may_be_short = args.store.resume && !places.is_empty();
    let Some(named) = named.filter(|_| may_be_short) else { return Ok(()) };
    let library = Library::new(places);
    if library.has(&named) != Ok(false) {
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
            "no session has the id {typed}; the only one whose id or title begins so goes on: {whole}"
        );
        args.session_id = Some(id.clone());
    }
    Ok(())
}

/// The generated id with this UUID, which is all that an envelope of `--json-stream` has of it.
fn generated(uuid: &str) -> Option<SessionId> {
    Uuid::try_parse(uuid).ok()?;
    SessionId::new(&format!("{GENERATED_PREFIX}{uuid}"))
}

/// The session of the folder in the first of these places that has one.
fn latest(places: &[StorePlace], folder: &str) -> Result<Option<SessionId>> {
    for place in places {
        if let Some(latest) = latest_session(place, folder).map_err(|error| anyhow!(error))? {
            return Ok(Some(latest));
        }
    }
    Ok(None)
}

fn shown(places: &[StorePlace]) -> String {
    places.iter().map(StorePlace::to_string).collect::<Vec<_>>().join(" or ")
}

/// Whether the session goes on with what is stored, as far as that is known before it is locked.
pub(super) fn goes_on(store: Option<&StoreSettings>, session: Option<&SessionId>) -> bool {
    let Some((store, session)) = store.zip(session) else { return false };
    match store.mode {
        OpenMode::New => false,
        OpenMode::Resume => true,
        OpenMode::Either => {
            let stored = store.namespace.stored(session);
            Library::new(store.places.clone()).has(&stored) == Ok(true)
        }
    }
}

fn folder(args: &SessionArgs) -> Result<String> {
    let folder = args.folder.path().context("the current folder can't be found")?;
    // The folder of a process is one without links: an editor's is the same one under another name.
    let is_named = args.folder.other().is_some();
    let resolved = is_named.then(|| folder.canonicalize().ok()).flatten();
    let folder = resolved.unwrap_or(folder);
    Ok(folder.display().to_string())
}

fn session_id(args: &SessionArgs) -> Result<Option<SessionId>> {
    let Some(typed) = &args.session_id else { return Ok(None) };
    let option = if args.store.session.is_some() { "--session" } else { "--session-id" };
    let id = SessionId::parse(typed);
    let id = id.with_context(|| format!("{option} is too long; choose a shorter one"))?;
    ensure!(id.is_some(), "{option} is blank; name the session or leave it out");
    Ok(id)
}
