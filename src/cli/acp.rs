//! Options of the front end for editors.

use super::SessionArgs;
use clap::Args;

/// Options of `acp`.
#[derive(Args, Debug)]
pub struct AcpArgs {
    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}
