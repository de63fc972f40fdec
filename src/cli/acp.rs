//! Options of the front end for editors.

use super::SessionArgs;
use super::prepare::many::Many;
use clap::Args;

/// Options of `acp`.
#[derive(Args, Debug)]
#[command(mut_args(|arg| Many::Acp.offered(arg)))]
pub struct AcpArgs {
    /// Options of every conversation.
    #[command(flatten)]
    pub session: SessionArgs,
}
