//! Settings of a chat: those of a conversation whose client is a person.

use super::{Plan, PromptRequest, not_blank, stdin};
use crate::chat::transcript::Preamble;
use crate::cli::{FinalSnapshot, Mode, OnBusy, PatchFields, PatchMode, SessionArgs};
use crate::host::HostSettings;
use crate::protocol::command::Extension;
use crate::stdio::Settings;
use crate::store::Library;
use crate::tui::Opening;
use anyhow::Result;

/// What a person can do and wants to know.
const EXTENSIONS: [Extension; 10] = [
    Extension::Approvals,
    Extension::Attachments,
    Extension::Edit,
    Extension::Retries,
    Extension::Steer,
    Extension::Store,
    Extension::SwitchModel,
    Extension::TargetedCancel,
    Extension::ToolServers,
    Extension::Usage,
];

/// Settings of the first conversation. Opens the debug file.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub(crate) fn chat(session: &SessionArgs, preamble: Preamble) -> Result<Settings> {
    let mut session = session.clone();
    session.on_busy = OnBusy::Queue;
    session.patch_mode = PatchMode::Append;
    session.patch_fields = PatchFields::Full;
    session.final_snapshot = Some(FinalSnapshot::None);
    session.store.backend_events = false;
    session.extensions.extend(EXTENSIONS);
    let requests = stdin(&session)?;
    let request = PromptRequest { preamble, ..PromptRequest::default() };
    Plan { command: "chat", mode: Mode::Server, session, request }.settings(requests)
}

/// Settings of another conversation in the same chat.
///
/// # Errors
/// If an option, or the file it names, can't be used any more.
pub(crate) fn another(session: &SessionArgs, opening: &Opening) -> Result<HostSettings> {
    let mut session = session.clone();
    // The file goes on.
    session.debug_events_jsonl = None;
    session.history = None;
    session.store.continues = false;
    match opening {
        Opening::New { system } => {
            session.session_id = None;
            session.store.resume = false;
            session.system = system.clone().or(session.system);
        }
        Opening::Stored { session: id } => {
            session.session_id = Some(id.clone());
            session.store.resume = true;
            session.system = None;
        }
    }
    Ok(chat(&session, Preamble::default())?.host)
}

/// The stored conversations, if there is a store.
pub(crate) fn library(session: &SessionArgs) -> Option<Library> {
    let store = &session.store;
    let turns = store.turns_db.clone().or_else(|| store.store.clone());
    let timeline = store.timeline_db.clone().or_else(|| store.store.clone());
    (turns.is_some() || timeline.is_some()).then(|| Library::new(turns, timeline))
}

/// The command that goes on with the session `id`; `None` if what the model needs is not stored.
pub(crate) fn resume(session: &SessionArgs, id: &str) -> Option<String> {
    let store = &session.store;
    store.turns_db.as_ref().or(store.store.as_ref())?;
    let places = [
        ("--store", &store.store),
        ("--turns-db", &store.turns_db),
        ("--timeline-db", &store.timeline_db),
    ];
    let mut words = vec!["duologue".to_owned(), "chat".to_owned()];
    for (option, place) in places {
        if let Some(place) = place {
            words.extend([option.to_owned(), place.to_string()]);
        }
    }
    words.extend(["--session-id".to_owned(), id.to_owned(), "--resume".to_owned()]);
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

/// The system prompt, as far as options say it.
pub(crate) fn system(session: &SessionArgs, preamble: &Preamble) -> Option<String> {
    preamble.system.clone().or_else(|| not_blank(session.system.clone()))
}
