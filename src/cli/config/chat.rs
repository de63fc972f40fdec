//! Settings of a chat: those of a conversation whose client is a person.

use super::store::{complete, store};
use super::system::appended;
use super::{Plan, PromptRequest, not_blank, profile, resume, stdin};
use crate::cli::store::StoreArgs;
use crate::cli::{FinalSnapshot, Mode, OnBusy, PatchFields, PatchMode, ProfileFiles, SessionArgs};
use crate::conversation::transcript::Preamble;
use crate::host::HostSettings;
use crate::protocol::command::Extension;
use crate::protocol::constants::capability::QUEUE;
use crate::session::compaction::CompactMode;
use crate::stdio::Settings;
use crate::store::{Library, OpenMode};
use crate::support::lock;
use crate::support::shell_words;
use crate::support::terminal::escape_control;
use crate::tui::{Forker, GoingOn, NextConversation, Opener, Opening, ProfileNames};
use anyhow::Result;
use std::sync::{Arc, Mutex};

/// The extensions that a chat turns on.
const EXTENSIONS: [Extension; 14] = [
    Extension::Approvals,
    Extension::Attachments,
    Extension::Compaction,
    Extension::Edit,
    Extension::Heartbeats,
    Extension::Resources,
    Extension::Retries,
    Extension::Steer,
    Extension::Store,
    Extension::SwitchModel,
    Extension::TargetedCancel,
    Extension::ToolProgress,
    Extension::ToolServers,
    Extension::Usage,
];

/// Settings of the first conversation; `is_attended`: a person is at a terminal. Opens the debug file.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub(crate) fn chat(
    session: &SessionArgs,
    preamble: Preamble,
    is_attended: bool,
) -> Result<Settings> {
    let queue = (session.on_busy != OnBusy::Queue).then_some(QUEUE);
    let mut settings = of_person("chat", session, preamble, is_attended, EXTENSIONS.to_vec())?;
    settings.debug_file = settings.debug_file.map(|file| file.hiding(queue));
    // The chat shows a compaction and has no question about it: a run would wait for a decision that nobody makes.
    let compaction = &mut settings.host.rules.compaction;
    if compaction.mode == Some(CompactMode::Ask) {
        compaction.mode = Some(CompactMode::Auto);
    }
    Ok(settings)
}

/// Settings of a conversation whose client is a front end for a person, which needs `own_extensions`.
///
/// # Errors
/// If an option, or the file it names, can't be used.
pub(super) fn of_person(
    command: &'static str,
    session: &SessionArgs,
    preamble: Preamble,
    is_attended: bool,
    own_extensions: Vec<Extension>,
) -> Result<Settings> {
    let mut session = session.clone();
    session.on_busy = OnBusy::Queue;
    session.events = None;
    session.patch_mode = PatchMode::Append;
    session.patch_fields = PatchFields::Full;
    session.final_snapshot = Some(FinalSnapshot::None);
    session.store.backend_events = false;
    let requests = stdin(&session)?;
    let request = PromptRequest { preamble, ..PromptRequest::default() };
    let plan = Plan {
        command,
        mode: Mode::Server,
        is_attended,
        has_client: false,
        session,
        own_extensions,
        request,
    };
    plan.settings(requests)
}

/// The options of the conversation that goes on.
#[derive(Clone, Debug)]
pub(crate) struct CurrentArgs(Arc<Mutex<SessionArgs>>);

impl CurrentArgs {
    /// The options of the first conversation.
    pub(crate) fn new(first: SessionArgs) -> Self {
        Self(Arc::new(Mutex::new(first)))
    }

    pub(crate) fn get(&self) -> SessionArgs {
        lock(&self.0).clone()
    }

    fn set(&self, args: SessionArgs) {
        *lock(&self.0) = args;
    }
}

/// What makes the settings of other conversations in a chat that was started with `session`. A new one inherits those
/// of the conversation that goes on.
pub(crate) fn opener(session: SessionArgs, current: CurrentArgs) -> Opener {
    Arc::new(move |opening| {
        let base = match opening {
            Opening::New { .. } => current.get(),
            Opening::Stored { .. } | Opening::Copied { .. } => session.clone(),
        };
        let (host, used) = another(base, opening)?;
        let current = current.clone();
        Ok(NextConversation { host, on_begin: Box::new(move || current.set(used)) })
    })
}

/// Settings of another conversation, and the options that they are made of.
///
/// # Errors
/// If an option, or the file it names, can't be used any more.
fn another(mut session: SessionArgs, opening: &Opening) -> Result<(HostSettings, SessionArgs)> {
    // The debug file stays open.
    session.debug_events_jsonl = None;
    session.history = None;
    session.store.continues = false;
    match opening {
        Opening::New { system } => {
            session.session_id = None;
            (session.store.session, session.store.resume) = (None, false);
            session.system = system.clone().or(session.system);
        }
        Opening::Stored { session: id } | Opening::Copied { session: id } => {
            session.session_id = Some(id.clone());
            (session.store.session, session.store.resume) = (None, true);
            session.system = None;
            session.append_system.clear();
        }
    }
    go_on(&mut session)?;
    // Whether the provider's configuration is complete was decided for the first conversation.
    let settings = chat(&session, Preamble::default(), true)?.host;
    Ok((settings, session))
}

/// Merges the settings of a stored conversation into `session`, as [`chat`] does for itself.
///
/// # Errors
/// If it can't be resumed with these settings, or the store can't be named so.
pub(crate) fn go_on(session: &mut SessionArgs) -> Result<()> {
    complete(session)?;
    let (store, id) = store(session)?;
    resume::go_on(session, store.as_ref(), id.as_ref())
}

/// Leaves a default store out that can't be used, which nobody has asked for: the chat is held without it. Returns
/// a warning for the person.
pub(crate) fn check_default(store: &mut StoreArgs) -> Option<String> {
    let (true, OpenMode::New, Some(place)) = (store.is_default, store.mode(), &store.store) else {
        return None;
    };
    let inspected = Library::new(vec![place.clone()]).inspect(false);
    let why = inspected.into_iter().find_map(|it| it.found?.err())?;
    (store.store, store.is_default) = (None, false);
    Some(format!("this conversation is not stored: {}", escape_control(&why)))
}

/// The stored conversations, if there is a store.
pub(crate) fn library(session: &SessionArgs) -> Option<Library> {
    let places = session.store.places().ok()?;
    (!places.is_empty()).then(|| Library::new(places).of_default(session.store.is_default))
}

/// Lists the names of the profiles in all their files.
pub(crate) fn profiles(registries: ProfileFiles) -> ProfileNames {
    Arc::new(move || {
        let profiles = profile::read(&registries).map_err(|error| format!("{error:#}"))?;
        Ok(profiles.names().into_iter().map(str::to_owned).collect())
    })
}

/// Copies conversations; `None` without a store.
pub(crate) fn forker(session: &SessionArgs) -> Option<Forker> {
    let places = session.store.places().ok().filter(|places| !places.is_empty())?;
    let folder = std::env::current_dir().ok()?;
    Some(Forker::new(places, folder.display().to_string()))
}

/// The command that resumes the session `id`; `None` if it is not stored.
pub(crate) fn resume(store: &StoreArgs, id: &str) -> Option<GoingOn> {
    let mut words = vec!["duologue".to_owned(), "chat".to_owned()];
    let mut needs_password = false;
    for (id, place) in store.named() {
        if let Some(place) = place.as_ref().filter(|_| !store.is_default) {
            let typed = place.without_password()?;
            needs_password |= typed.had_password;
            let option = format!("--{}", id.replace('_', "-"));
            // A file that was named by a URL is shown by its path.
            let is_file = place.path().is_some();
            let option = option
                .strip_suffix("-dsn")
                .filter(|_| is_file)
                .map_or_else(|| option.clone(), |part| format!("{part}-db"));
            words.extend([option, typed.text]);
        }
    }
    if store.named().iter().all(|(_, place)| place.is_none()) {
        return None;
    }
    // A name that begins with a dash would be read as an option.
    match id.starts_with('-') {
        true => words.push(format!("--session={id}")),
        false => words.extend(["--session".to_owned(), id.to_owned()]),
    }
    let command = shell_words::joined(words.iter().map(String::as_str))?;
    Some(GoingOn { command, needs_password })
}

/// The system prompt, as far as options say it.
pub(crate) fn system(session: &SessionArgs, preamble: &Preamble) -> Option<String> {
    let system = preamble.system.clone().or_else(|| not_blank(session.system.clone()));
    appended(system, session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StorePlace;

    fn going_on(
        store: Option<&str>,
        turns: Option<&str>,
        timeline: Option<&str>,
    ) -> Option<GoingOn> {
        let store = StoreArgs {
            store: store.map(|text| text.parse().expect("a place")),
            turns_dsn: turns.map(|text| StorePlace::of_dsn(text).expect("a place")),
            timeline_dsn: timeline.map(|text| StorePlace::of_dsn(text).expect("a place")),
            ..StoreArgs::default()
        };
        resume(&store, "an id")
    }

    #[test]
    fn how_to_go_on_is_said_without_a_password() {
        let check = |store, turns, timeline, options: &str, needs_password: bool| {
            let command = format!("duologue chat {options} --session 'an id'");
            let going_on = going_on(store, turns, timeline);
            assert_eq!(going_on, Some(GoingOn { command, needs_password }));
        };
        check(Some("/n/chat.db"), None, None, "--store /n/chat.db", false);
        let typed = "postgres://ann:s3cret@db.example.com:5433/notes?sslmode=require";
        let shown = "'postgres://ann@/notes?host=db.example.com&port=5433&sslmode=require'";
        check(Some(typed), None, None, &format!("--store {shown}"), true);
        let typed = "host=/run/pg user=ann password='s3cret word' dbname=notes";
        let shown = "'postgres://ann@/notes?host=%2Frun%2Fpg'";
        let options = format!("--turns-dsn {shown} --timeline-dsn {shown}");
        check(None, Some(typed), Some(typed), &options, true);
        check(
            Some("postgres://db.example.com/?user=ann&password=s3cret"),
            None,
            None,
            "--store 'postgres://ann@/?host=db.example.com'",
            true,
        );
        let options = "--timeline-dsn 'postgres://ann@/?host=db.example.com'";
        check(None, None, Some("host=db.example.com user=ann"), options, false);
        assert_eq!(going_on(None, None, None), None, "no store");
        let place = Some("/home/ann/.local/share/duologue/sessions.db".parse().expect("a place"));
        let default = StoreArgs { store: place, is_default: true, ..StoreArgs::default() };
        let command = "duologue chat --session s".to_owned();
        assert_eq!(resume(&default, "s"), Some(GoingOn { command, needs_password: false }));
    }
}
