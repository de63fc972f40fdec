//! What is decided before the first conversation where a client begins conversations: for `acp` and `serve`.

use super::{Reason, system};
use crate::cli::SessionArgs;
use crate::cli::log::{self, Flush};
use crate::cli::store::DefaultStore;
use anyhow::bail;
use clap::Arg;

/// Options that are about one conversation.
const OF_ONE: [(&str, &str); 6] = [
    ("session", "--session"),
    ("session_id", "--session-id"),
    ("resume", "--resume"),
    ("continues", "--continue"),
    ("history", "--history"),
    ("debug_events_jsonl", "--debug-events-jsonl"),
];

/// Options that are about the frames of this program, which an editor does not get.
const OF_FRAMES: [(&str, &str); 7] = [
    ("on_busy", "--on-busy"),
    ("extensions", "--extensions"),
    ("events", "--events"),
    ("patch_mode", "--patch-mode"),
    ("patch_fields", "--patch-fields"),
    ("final_snapshot", "--final-snapshot"),
    ("backend_events", "--backend-events"),
];

/// A command whose clients begin conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    Acp,
    #[cfg(feature = "serve")]
    Serve,
}

impl Many {
    fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            #[cfg(feature = "serve")]
            Self::Serve => "serve",
        }
    }

    /// Why an option that is about one conversation is refused.
    fn begins(self) -> &'static str {
        match self {
            Self::Acp => "the editor begins conversations and goes on with them",
            #[cfg(feature = "serve")]
            Self::Serve => "clients begin conversations and go on with them",
        }
    }

    /// The options that are refused, and why.
    fn refused(self) -> Vec<(&'static [(&'static str, &'static str)], &'static str)> {
        let of_one = (&OF_ONE[..], self.begins());
        match self {
            Self::Acp => {
                let why = "it is about the frames of `rpc`, which an editor does not get";
                vec![of_one, (&OF_FRAMES[..], why)]
            }
            #[cfg(feature = "serve")]
            Self::Serve => vec![of_one],
        }
    }

    /// `arg`, which is not offered if it is refused.
    pub(crate) fn offered(self, arg: Arg) -> Arg {
        let ids = self.refused().into_iter().flat_map(|(options, _)| options);
        let is_refused = ids.into_iter().any(|(id, _)| arg.get_id() == id);
        if is_refused { arg.hide(true) } else { arg }
    }

    /// # Errors
    /// If an option was typed that is refused.
    fn check(self, typed: &[String]) -> Result<(), anyhow::Error> {
        for (options, why) in self.refused() {
            let found = options.iter().find(|(id, _)| typed.iter().any(|it| it == id));
            if let Some((_, option)) = found {
                bail!("{option} is not for `{}`: {why}; leave it out", self.name());
            }
        }
        Ok(())
    }
}

/// Settles the options of all conversations and starts the log.
pub(super) fn begin(
    session: &mut SessionArgs,
    command: Many,
    store: DefaultStore,
) -> Result<Option<Flush>, Reason> {
    command.check(&session.calls.typed)?;
    // Variables are for other commands as well.
    (session.session_id, session.history, session.debug_events_jsonl) = (None, None, None);
    session.settle_store(store)?;
    system::read(session)?;
    let (level, file) = (session.log_level, session.log_file.as_deref());
    Ok(match command {
        Many::Acp => log::start(level, file)?,
        #[cfg(feature = "serve")]
        Many::Serve => log::start_without_words(level, file)?,
    })
}
