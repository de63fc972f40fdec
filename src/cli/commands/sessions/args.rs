//! Arguments of `sessions`.

use crate::cli::commands::args::TextOutputArgs;
use crate::cli::store::{chosen, default_place, dsn, place};
use crate::store::{Library, Namespace, OpenMode, StorePlace, StoreSettings};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Span;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Help summary of `sessions`.
pub(crate) const SESSIONS_ABOUT: &str =
    "List, print, export, search, rename, fork, import and delete stored conversations";

/// Examples in the help of `sessions`.
pub(crate) const SESSIONS_EXAMPLES: &str = "  duologue sessions list
  duologue sessions show 3f0c9a
  duologue sessions export 3f0c9a --format markdown > chat.md
  duologue sessions search 'connection refused'
  duologue sessions rename 3f0c9a 'Ports in use'
  duologue sessions fork 3f0c9a --turns 2
  duologue sessions import recorded.jsonl
  duologue sessions delete 3f0c9a --store chat.db
  duologue sessions delete --older-than 90d --dry-run";

/// Arguments of `sessions`.
#[derive(Args, Debug)]
pub struct SessionsArgs {
    /// What is done.
    #[command(subcommand)]
    pub action: SessionsAction,
}

/// What is done with stored conversations.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List the sessions of a store, the one that was used last first
    List(ListArgs),
    /// Print a conversation for people; with --output json the entities of its snapshot
    Show(ShowArgs),
    /// Print a conversation as protocol lines, Markdown, JSON or HTML
    Export(ExportArgs),
    /// Find words in all conversations of a store
    Search(SearchArgs),
    /// Give a session a title in place of its first prompt
    Rename(RenameArgs),
    /// Copy a conversation, or its first turns, to a new session, and print its id
    Fork(ForkArgs),
    /// Make a session of recorded protocol lines, and print its id
    Import(ImportArgs),
    /// Delete sessions, so that nothing of them is left in the files or tables of the store
    Delete(DeleteArgs),
}

/// Arguments of `sessions list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Id or title of the session, or the beginning of one that no other session has
    #[arg(value_name = "ID")]
    pub id: String,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Id or title of the session, or the beginning of one that no other session has
    #[arg(value_name = "ID")]
    pub id: String,

    /// Format of the export
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ExportFormat,

    /// With jsonl: an event with model, times and cost of each turn, which the published protocol does not have
    #[arg(long)]
    pub turn_summaries: bool,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Lines of the protocol: hello, and a snapshot of the whole conversation
    #[default]
    Jsonl,
    /// Markdown, for people
    Markdown,
    /// One JSON object: the session and its entities
    Json,
    /// A page that needs no other file
    Html,
}

/// Arguments of `sessions search`.
#[derive(Args, Debug)]
pub struct SearchArgs {
    /// Words that must all be in a message; case does not matter
    #[arg(value_name = "WORDS", required = true, num_args = 1..)]
    pub words: Vec<String>,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions rename`.
#[derive(Args, Debug)]
pub struct RenameArgs {
    /// Id or title of the session, or the beginning of one that no other session has
    #[arg(value_name = "ID")]
    pub id: String,

    /// The title
    #[arg(value_name = "TITLE")]
    pub title: String,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions fork`.
#[derive(Args, Debug)]
pub struct ForkArgs {
    /// Id or title of the session, or the beginning of one that no other session has
    #[arg(value_name = "ID")]
    pub id: String,

    /// Copy the turns up to this one; without it, all turns that have ended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub turns: Option<u32>,

    /// Id of the new session; without it, one is generated
    #[arg(long = "as", value_name = "NEW_ID")]
    pub new_id: Option<String>,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// File with the lines; - for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,

    /// Id of the new session; without it, that of the recorded one
    #[arg(long = "as", value_name = "ID")]
    pub new_id: Option<String>,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `sessions delete`.
#[derive(Args, Debug)]
pub struct DeleteArgs {
    /// Ids of the sessions
    #[arg(value_name = "ID", required_unless_present = "older_than", num_args = 1..)]
    pub ids: Vec<String>,

    /// Delete all sessions that nobody has used for so long, as 90d, 12h, 2w or 6mo; not those that a process has open
    #[arg(long, value_name = "AGE", value_parser = age, conflicts_with = "ids")]
    pub older_than: Option<Span>,

    /// Print the sessions that would be deleted, and delete none
    #[arg(long)]
    pub dry_run: bool,

    /// The store.
    #[command(flatten)]
    pub places: Places,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Where the sessions are.
#[derive(Args, Debug)]
pub struct Places {
    /// The store with the sessions: a file, or a database of PostgreSQL; by default that of chat,
    /// duologue/sessions.db in $XDG_DATA_HOME (else ~/.local/share)
    #[arg(long, env = "DUOLOGUE_STORE", value_name = "PATH|DSN", value_parser = place, hide_env_values = true)]
    pub store: Option<StorePlace>,

    /// A file that holds the sessions, instead of --store
    #[arg(long, env = "DUOLOGUE_TURNS_DB", value_name = "PATH", value_parser = place, hide_env_values = true)]
    pub turns_db: Option<StorePlace>,

    /// A database that holds the sessions, instead of --store
    #[arg(long, env = "DUOLOGUE_TURNS_DSN", value_name = "DSN", value_parser = dsn, hide_env_values = true)]
    pub turns_dsn: Option<StorePlace>,

    /// A file that holds the sessions beside --turns-db, instead of --store
    #[arg(long, env = "DUOLOGUE_TIMELINE_DB", value_name = "PATH", value_parser = place, hide_env_values = true)]
    pub timeline_db: Option<StorePlace>,

    /// A database that holds the sessions beside --turns-db, instead of --store
    #[arg(long, env = "DUOLOGUE_TIMELINE_DSN", value_name = "DSN", value_parser = dsn, hide_env_values = true)]
    pub timeline_dsn: Option<StorePlace>,
}

impl Places {
    /// The sessions there, or in the default store if no store is named: none if that is not made yet.
    ///
    /// # Errors
    /// If a place is named twice, or can't be used.
    pub(crate) fn library(&self) -> Result<Library, String> {
        let mut places = self.stores()?;
        if self.all()?.is_empty() {
            // Nobody has named it, so it may be missing, as where HOME is /dev/null. One that can't be looked at is
            // not: opening it says why.
            let is_missing = |path: &Path| match path.try_exists() {
                Ok(exists) => !exists,
                Err(error) => error.kind() == io::ErrorKind::NotADirectory,
            };
            places.retain(|place| place.path().is_some_and(|path| !is_missing(path)));
        }
        Ok(Library::new(places))
    }

    /// The stores that are named, or the default one.
    fn stores(&self) -> Result<Vec<StorePlace>, String> {
        let named = self.all()?;
        if !named.is_empty() {
            return Ok(named);
        }
        let default = default_place().ok_or(
            "no store is named, and there is no default one, as neither XDG_DATA_HOME nor HOME is set; name one \
             with --store PATH or --store DSN, or set DUOLOGUE_STORE",
        )?;
        Ok(vec![default])
    }

    /// The names of the stores, for a message about them.
    pub(super) fn shown(&self) -> String {
        let stores = self.stores().unwrap_or_default();
        stores.iter().map(StorePlace::to_string).collect::<Vec<_>>().join(" or ")
    }

    /// Why a list of all sessions there is empty.
    pub(super) fn nothing(&self) -> String {
        let is_default = self.all().is_ok_and(|named| named.is_empty());
        let stored = match is_default {
            true => {
                "; chat stores its conversations there, and exec those of --session and --continue"
            }
            false => "",
        };
        format!("there are no sessions in {}{stored}", self.shown())
    }

    /// The stores of a new session of `folder`.
    ///
    /// # Errors
    /// If a place is named twice, or can't be used.
    pub(super) fn settings(&self, folder: String) -> Result<StoreSettings, String> {
        let (places, mode, namespace) = (self.stores()?, OpenMode::New, Namespace::default());
        Ok(StoreSettings { places, mode, folder, lock_wait: Duration::ZERO, namespace })
    }

    /// The stores that are named.
    ///
    /// # Errors
    /// If a place is named twice, or can't be used.
    pub(crate) fn all(&self) -> Result<Vec<StorePlace>, String> {
        let turns = chosen(&self.store, &self.turns_db, &self.turns_dsn, "turns")?;
        let timeline = chosen(&self.store, &self.timeline_db, &self.timeline_dsn, "timeline")?;
        Ok(StorePlace::distinct(turns, timeline))
    }
}

/// Reads a span of time with its unit. Nobody means minutes, and who writes 6m for months would lose nearly everything.
fn age(text: &str) -> Result<Span, String> {
    const EXPECTED: &str = "it is no time with its unit, such as 90d, 12h, 2w or 6mo";
    let span = text.parse::<Span>().ok().filter(|span| span.is_positive()).ok_or(EXPECTED)?;
    if span.get_minutes() != 0 || span.get_seconds() != 0 || span.get_milliseconds() != 0 {
        return Err(format!("{EXPECTED}; m is for minutes, and hours are the smallest unit"));
    }
    Ok(span)
}
