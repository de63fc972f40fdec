//! Options about storing conversations.

use crate::store::StorePlace;
use clap::Args;
use clap::builder::BoolishValueParser;

/// Options about storing conversations.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreArgs {
    /// Store the conversation in this file, which is made if it does not exist, or in this database of
    /// PostgreSQL (postgres://USER@HOST/DATABASE)
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

    /// Go on with the stored session that --session-id names
    #[arg(long)]
    pub resume: bool,

    /// Go on with the session of this folder that was used last
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    pub continues: bool,

    /// Also write each event as it is stored, as a backendEvent frame before its uiEvent
    #[arg(long, env = "DUOLOGUE_BACKEND_EVENTS", value_parser = BoolishValueParser::new())]
    pub backend_events: bool,
}

impl StoreArgs {
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
