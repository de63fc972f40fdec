//! The system prompt of a run that is printed and not asked.

use super::profile;
use super::resume;
use super::store::{complete, goes_on, store};
use super::system::system_prompt;
use crate::cli::{Mode, SessionArgs};
use anyhow::Result;

/// The system prompt that a run with `args` would have: `of_request`, else that of the options, else that of the
/// profile. Warns if the run would go on with a stored session, whose messages are not read.
///
/// # Errors
/// If an option, or a file of profiles, can't be used.
pub(crate) fn printed_system(
    of_request: Option<String>,
    args: &mut SessionArgs,
    mode: Mode,
) -> Result<Option<String>> {
    if !mode.is_protocol() {
        complete(args)?;
    }
    let (store, session) = store(args)?;
    resume::go_on(args, store.as_ref(), session.as_ref())?;
    profile::choose_default(&mut args.provider)?;
    let profiles = profile::read_if_named(&args.provider)?;
    let profile = profile::chosen(&args.provider, &profiles)?;
    let goes_on = goes_on(store.as_ref(), session.as_ref());
    if goes_on {
        tracing::warn!(
            "--print-prompt leaves out what is stored of the session: its messages, and the system prompt that \
             it began with; `duologue sessions show` prints them"
        );
    }
    Ok(system_prompt(of_request, args, &profile, goes_on))
}
