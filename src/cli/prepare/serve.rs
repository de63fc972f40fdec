//! `serve`: what is decided before the first client.

use super::{Prepared, Reason, many};
use crate::cli::store::DefaultStore;
use crate::cli::{ServeArgs, config};

/// Prepares `serve`.
pub(super) fn run(mut args: ServeArgs) -> Result<Prepared, Reason> {
    let why = "clients begin conversations and go on with them";
    let log = many::begin(&mut args.session, ("serve", why), DefaultStore::Unused)?;
    Ok(Prepared::Fleet(Box::new(config::serve::services(args)?), log))
}
