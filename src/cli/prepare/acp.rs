//! `acp`: what is decided before the first message of the editor.

use super::many::{self, Many};
use super::{Prepared, Reason};
use crate::cli::store::DefaultStore;
use crate::cli::{AcpArgs, config};

/// Prepares `acp`. No configuration is read before the editor has begun.
pub(super) fn run(mut args: AcpArgs) -> Result<Prepared, Reason> {
    let log = many::begin(&mut args.session, Many::Acp, DefaultStore::OfAll)?;
    Ok(Prepared::Acp(Box::new(config::acp::services(args)?), log))
}
