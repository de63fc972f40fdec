//! `serve`: what is decided before the first client.

use super::many::{self, Many};
use super::{Prepared, Reason};
use crate::cli::store::DefaultStore;
use crate::cli::{ServeArgs, config};

/// Prepares `serve`.
pub(super) fn run(mut args: ServeArgs) -> Result<Prepared, Reason> {
    let log = many::begin(&mut args.session, Many::Serve, DefaultStore::Unused)?;
    Ok(Prepared::Fleet(Box::new(config::serve::services(args)?), log))
}
