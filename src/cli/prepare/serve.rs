//! `serve`: what is decided before the first client.

use super::{Prepared, Reason, system};
use crate::cli::store::DefaultStore;
use crate::cli::{ServeArgs, config, log};
use anyhow::anyhow;

/// Options that are about one conversation.
const OF_OTHERS: [(&str, &str); 6] = [
    ("session", "--session"),
    ("session_id", "--session-id"),
    ("resume", "--resume"),
    ("continues", "--continue"),
    ("history", "--history"),
    ("debug_events_jsonl", "--debug-events-jsonl"),
];

/// Prepares `serve`.
pub(super) fn run(mut args: ServeArgs) -> Result<Prepared, Reason> {
    let session = &mut args.session;
    let typed = &session.calls.typed;
    if let Some((_, option)) = OF_OTHERS.iter().find(|(id, _)| typed.iter().any(|it| it == id)) {
        let why = "clients begin conversations and go on with them";
        return Err(anyhow!("{option} is not for `serve`: {why}; leave it out").into());
    }
    // Variables are for other commands as well.
    (session.session_id, session.history, session.debug_events_jsonl) = (None, None, None);
    session.settle_store(DefaultStore::Unused)?;
    system::read(session)?;
    let log = log::start(session.log_level, session.log_file.as_deref())?;
    Ok(Prepared::Fleet(Box::new(config::serve::services(args)?), log))
}
