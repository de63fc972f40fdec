//! Options about storing conversations.

use crate::store::StorePlace;
use clap::Args;
use clap::builder::BoolishValueParser;

/// Options about storing conversations.
#[derive(Args, Clone, Debug)]
pub struct StoreArgs {
    /// Store the conversation in this file, which is made if it does not exist
    #[arg(long, env = "DUOLOGUE_STORE", value_name = "PATH", value_parser = place)]
    pub store: Option<StorePlace>,

    /// Store what the model is sent next in this file, instead of --store
    #[arg(long, env = "DUOLOGUE_TURNS_DB", value_name = "PATH", value_parser = place)]
    pub turns_db: Option<StorePlace>,

    /// Store what people see in this file, instead of --store
    #[arg(long, env = "DUOLOGUE_TIMELINE_DB", value_name = "PATH", value_parser = place)]
    pub timeline_db: Option<StorePlace>,

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

/// The store that a value names.
fn place(text: &str) -> Result<StorePlace, String> {
    text.parse()
}
