//! Options about storing conversations, and which store a command has that names none.

use super::SessionArgs;
use super::numbers::whole;
use crate::store::{Namespace, OpenMode, StorePlace};
use crate::support::files::user_folder;
use anyhow::{Result, bail, ensure};
use clap::Args;
use clap::builder::BoolishValueParser;

/// Longest wait for a session that another process holds: a day.
const LOCK_WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Options about storing conversations.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreArgs {
    /// Store the conversation in this file, which is made if it does not exist, or in this database of
    /// PostgreSQL (postgres://USER@HOST/DATABASE). One prompt that belongs to no session is stored only if
    /// this option is typed
    #[arg(long, env = "DUOLOGUE_STORE", value_name = "PATH|DSN", value_parser = place, hide_env_values = true)]
    pub store: Option<StorePlace>,

    /// Store the conversation in this file instead of --store, beside that of --timeline-db
    #[arg(long, env = "DUOLOGUE_TURNS_DB", value_name = "PATH", value_parser = place, hide_env_values = true)]
    pub turns_db: Option<StorePlace>,

    /// Store the conversation in this database of PostgreSQL instead of --store
    #[arg(long, env = "DUOLOGUE_TURNS_DSN", value_name = "DSN", value_parser = dsn, hide_env_values = true)]
    pub turns_dsn: Option<StorePlace>,

    /// Store the conversation in this file instead of --store, beside that of --turns-db
    #[arg(long, env = "DUOLOGUE_TIMELINE_DB", value_name = "PATH", value_parser = place, hide_env_values = true)]
    pub timeline_db: Option<StorePlace>,

    /// Store the conversation in this database of PostgreSQL instead of --store
    #[arg(long, env = "DUOLOGUE_TIMELINE_DSN", value_name = "DSN", value_parser = dsn, hide_env_values = true)]
    pub timeline_dsn: Option<StorePlace>,

    /// Do not store the conversation; the variable turns off the default store alone, which chat and
    /// sessions of exec and run-command have: duologue/sessions.db in $XDG_DATA_HOME (else ~/.local/share)
    #[arg(long, env = "DUOLOGUE_NO_STORE", value_parser = BoolishValueParser::new())]
    pub no_store: bool,

    /// Go on with the session of this name, or begin it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "continues"])]
    pub session: Option<String>,

    /// Go on with the stored session that --session-id names
    #[arg(long)]
    pub resume: bool,

    /// Go on with the session of this folder that was used last
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    pub continues: bool,

    /// Wait up to this long for a session that another process holds
    #[arg(long, env = "DUOLOGUE_LOCK_WAIT_MS", value_name = "MS", default_value_t = 0, value_parser = whole::<u64>(0..=LOCK_WAIT_MS_MAX))]
    pub lock_wait_ms: u64,

    /// Also write each event as it is stored, as a backendEvent frame before its uiEvent
    #[arg(long, env = "DUOLOGUE_BACKEND_EVENTS", value_parser = BoolishValueParser::new())]
    pub backend_events: bool,

    /// The store is the default one.
    #[arg(skip)]
    pub is_default: bool,

    /// Whose sessions these are, of the tenants of a node.
    #[arg(skip)]
    pub namespace: Namespace,
}

/// Which conversations of a command are stored in the default store, if no store is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStore {
    /// None: a program says where.
    Unused,
    /// Those that go on. What a variable names is also for sessions alone.
    OfSessions,
    /// All.
    OfAll,
}

impl SessionArgs {
    /// Settles where the conversation is stored: at the place that is named, in the default store, or nowhere.
    ///
    /// # Errors
    /// If the options contradict each other.
    pub(crate) fn settle_store(&mut self, default: DefaultStore) -> Result<()> {
        let is_typed = |id: &str| self.calls.typed.iter().any(|typed| typed == id);
        let store = &mut self.store;
        // The variable names a session for commands that go on with none of their own.
        if store.continues && !is_typed("session_id") {
            self.session_id = None;
        }
        if let Some(name) = &store.session {
            ensure!(
                !is_typed("session_id"),
                "--session and --session-id both name the session; leave one of them out"
            );
            self.session_id = Some(name.clone());
        }
        let goes_on = store.mode() != OpenMode::New;
        let is_plain = default == DefaultStore::OfSessions && !goes_on && self.session_id.is_none();
        if is_plain && !is_typed("store") {
            store.store = None;
        }
        if store.no_store && is_typed("no_store") {
            if goes_on || store.named().iter().any(|(id, place)| place.is_some() && is_typed(id)) {
                bail!(
                    "--no-store stores nothing, and another option needs a store; leave one of them out"
                );
            }
            let backend_events = store.backend_events;
            *store = StoreArgs { no_store: true, backend_events, ..StoreArgs::default() };
        }
        let has_default = match default {
            DefaultStore::Unused => false,
            DefaultStore::OfSessions => goes_on,
            DefaultStore::OfAll => true,
        };
        let is_named = store.named().iter().any(|(_, place)| place.is_some());
        if has_default && !is_named && !store.no_store {
            store.store = default_place();
            store.is_default = store.store.is_some();
        }
        Ok(())
    }
}

impl StoreArgs {
    /// Whether the session begins or goes on.
    pub(crate) fn mode(&self) -> OpenMode {
        match self.session {
            Some(_) => OpenMode::Either,
            None if self.resume || self.continues => OpenMode::Resume,
            None => OpenMode::New,
        }
    }

    /// The places that options name, by the ids of these.
    pub(crate) fn named(&self) -> [(&'static str, &Option<StorePlace>); 5] {
        [
            ("store", &self.store),
            ("turns_db", &self.turns_db),
            ("turns_dsn", &self.turns_dsn),
            ("timeline_db", &self.timeline_db),
            ("timeline_dsn", &self.timeline_dsn),
        ]
    }

    /// Where the conversation is stored, each place once.
    ///
    /// # Errors
    /// If one of them is named twice, or can't be used.
    pub(crate) fn places(&self) -> Result<Vec<StorePlace>, String> {
        let turns = chosen(&self.store, &self.turns_db, &self.turns_dsn, "turns")?;
        let timeline = chosen(&self.store, &self.timeline_db, &self.timeline_dsn, "timeline")?;
        Ok(StorePlace::distinct(turns, timeline))
    }
}

/// Where conversations are stored if no place is named: a file of the user; `None` without a folder for it.
pub(crate) fn default_place() -> Option<StorePlace> {
    let folder = user_folder("XDG_DATA_HOME", ".local/share", |name| std::env::var_os(name))?;
    Some(StorePlace::Sqlite(folder.join("duologue/sessions.db")))
}

/// One of the two places of a conversation: its own if it is named, else that of --store.
pub(crate) fn chosen(
    of_all: &Option<StorePlace>,
    file: &Option<StorePlace>,
    database: &Option<StorePlace>,
    part: &str,
) -> Result<Option<StorePlace>, String> {
    if file.is_some() && database.is_some() {
        return Err(format!(
            "--{part}-db and --{part}-dsn name the same place in two ways; leave one of them out"
        ));
    }
    let place = file.as_ref().or(database.as_ref()).or(of_all.as_ref());
    if let Some(Err(why)) = place.map(StorePlace::check) {
        return Err(format!("the store can't be used: {why}"));
    }
    Ok(place.cloned())
}

/// The store that a value names.
pub(crate) fn place(text: &str) -> Result<StorePlace, String> {
    text.parse()
}

/// The database that a value names.
pub(crate) fn dsn(text: &str) -> Result<StorePlace, String> {
    StorePlace::of_dsn(text)
}
