//! `acp`: what is decided before the first message of the editor.

use super::{Prepared, Reason, system};
use crate::cli::store::DefaultStore;
use crate::cli::{AcpArgs, config, log};
use anyhow::anyhow;

/// Options that are about one conversation, or about another protocol.
const OF_OTHERS: [(&str, &str); 6] = [
    ("session", "--session"),
    ("session_id", "--session-id"),
    ("resume", "--resume"),
    ("continues", "--continue"),
    ("history", "--history"),
    ("debug_events_jsonl", "--debug-events-jsonl"),
];

/// Prepares `acp`. No configuration is read before the editor has begun.
pub(super) fn run(mut args: AcpArgs) -> Result<Prepared, Reason> {
    let session = &mut args.session;
    let typed = &session.calls.typed;
    if let Some((_, option)) = OF_OTHERS.iter().find(|(id, _)| typed.iter().any(|it| it == id)) {
        let why = "the editor begins conversations and goes on with them";
        return Err(anyhow!("{option} is not for `acp`: {why}; leave it out").into());
    }
    // Variables are for other commands as well.
    (session.session_id, session.history, session.debug_events_jsonl) = (None, None, None);
    session.settle_store(DefaultStore::OfAll)?;
    system::read(session)?;
    let log = log::start(session.log_level, session.log_file.as_deref())?;
    Ok(Prepared::Acp(Box::new(config::acp::services(args)?), log))
}
