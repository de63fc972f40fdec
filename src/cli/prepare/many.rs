//! What is decided before the first conversation where a client begins conversations: for `acp` and `serve`.

use super::{Reason, system};
use crate::cli::SessionArgs;
use crate::cli::log::{self, Flush};
use crate::cli::store::DefaultStore;
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

/// Settles the options of all conversations and starts the log. `why` says why an option that is about one of them
/// is not for `command`.
pub(super) fn begin(
    session: &mut SessionArgs,
    (command, why): (&str, &str),
    store: DefaultStore,
) -> Result<Option<Flush>, Reason> {
    let typed = &session.calls.typed;
    if let Some((_, option)) = OF_OTHERS.iter().find(|(id, _)| typed.iter().any(|it| it == id)) {
        return Err(anyhow!("{option} is not for `{command}`: {why}; leave it out").into());
    }
    // Variables are for other commands as well.
    (session.session_id, session.history, session.debug_events_jsonl) = (None, None, None);
    session.settle_store(store)?;
    system::read(session)?;
    Ok(log::start(session.log_level, session.log_file.as_deref())?)
}
