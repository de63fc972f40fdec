//! Options of the front end for editors.

use super::SessionArgs;
use clap::Args;
use std::num::NonZeroU64;

/// Options of `acp`.
#[derive(Args, Debug)]
pub struct AcpArgs {
    /// Tokens that the model can be sent; the editor then shows how much of that is in use
    #[arg(long, env = "DUOLOGUE_CONTEXT_SIZE", value_name = "TOKENS")]
    pub context_size: Option<NonZeroU64>,

    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}
