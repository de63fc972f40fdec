//! What a command file says about the provider and its calls: typed options win over it, and it wins
//! over variables and the profile.

use crate::cli::{EngineName, SessionArgs};
use crate::command_file::CommandFile;
use clap::ValueEnum;

/// Puts what `file` says into `args`; returns what is ignored of it, for people.
pub(super) fn apply(file: &CommandFile, args: &mut SessionArgs) -> Option<String> {
    args.calls.of_file = file.settings.clone();
    let of_file = file.engine.as_deref();
    let engine = of_file.and_then(|name| EngineName::from_str(name, false).ok());
    let provider = &mut args.provider;
    // A key or an address that is named otherwise is not for the engine of a file.
    let is_address_of_others = provider.addresses.engine().is_some()
        && engine.is_none_or(|engine| provider.addresses.of(engine).is_none());
    let is_chosen = provider.engine.is_some()
        || is_address_of_others
        || provider.profile.is_some()
        || provider.base_url.is_some()
        || provider.key_command.is_some()
        || provider.key_file.is_some()
        || std::env::var_os("DUOLOGUE_API_KEY").is_some_and(|key| !key.is_empty());
    if !is_chosen {
        provider.engine = engine;
    }
    if provider.engine.is_some() && engine.is_some() && provider.engine != engine {
        let name = of_file.unwrap_or_default();
        return Some(format!(
            "the file is written for the engine {name}, and another one is chosen: its engine and \
             its model are ignored"
        ));
    }
    if !args.calls.typed.iter().any(|id| id == "model") && file.model.is_some() {
        provider.model.clone_from(&file.model);
    }
    None
}
