//! `acp`: what is decided before the first message of the editor.

use super::{Prepared, Reason, many};
use crate::cli::store::DefaultStore;
use crate::cli::{AcpArgs, config};

/// Prepares `acp`. No configuration is read before the editor has begun.
pub(super) fn run(mut args: AcpArgs) -> Result<Prepared, Reason> {
    let why = "the editor begins conversations and goes on with them";
    let log = many::begin(&mut args.session, ("acp", why), DefaultStore::OfAll)?;
    Ok(Prepared::Acp(Box::new(config::acp::services(args)?), log))
}
