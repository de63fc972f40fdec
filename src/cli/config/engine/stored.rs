//! The provider of a stored conversation: its address, and which key goes there.

use super::{
    CommonVariables, OLLAMA_HOST, OWN_KEY_VARIABLE, ProviderChoice, not_blank, ollama_settings,
    settings, variable, variables_of_name,
};
use crate::cli::EngineName;
use crate::cli::config::resume::is_marked;
use crate::cli::session::EngineArgs;
use crate::conversation::choices::OriginKey;
use crate::engine::{is_same_address, ollama, shown_address};
use crate::support::secret::Secret;
use anyhow::{Result, ensure};
use clap::ValueEnum;

/// The key with which a stored conversation is resumed at `base_url`: the one that it had, or one that is
/// meant for that address.
///
/// # Errors
/// If it had a key, and none of those here is one of these.
pub(super) fn stored_key(
    stored: &OriginKey,
    base_url: Option<&str>,
    common: CommonVariables,
) -> Result<Option<Secret>> {
    let url = base_url.unwrap_or(common.own_address);
    let general = not_blank(variable("DUOLOGUE_BASE_URL")?);
    let of_provider = not_blank(variable(common.base_url)?);
    let is_named =
        [&general, &of_provider].into_iter().flatten().any(|it| is_same_address(it, url));
    let is_own = is_same_origin(url, common.own_address);
    let names = [OWN_KEY_VARIABLE].into_iter().chain(common.keys.iter().copied());
    let mut meant = None;
    for name in names {
        let Some(key) = variable(name)?.as_deref().and_then(Secret::new) else { continue };
        if let OriginKey::Variable(mark) = stored
            && is_marked(mark, &key, url)
        {
            return Ok(Some(key));
        }
        let is_elsewhere = name == OWN_KEY_VARIABLE && general.is_some();
        if is_named || is_own && !is_elsewhere {
            meant.get_or_insert(key);
        }
    }
    ensure!(
        meant.is_some() || *stored == OriginKey::Nowhere,
        "the key that the conversation had for {} is not here, and no other key is sent there: set it in \
         {} again, or give --base-url with the address that the key in the environment is for",
        shown_address(url),
        common.keys.first().copied().unwrap_or(OWN_KEY_VARIABLE)
    );
    Ok(meant)
}

/// The base URL and the key of the provider that `choice` leads to; `None` for the built-in engine.
///
/// # Errors
/// If a variable can't be used.
pub(in crate::cli::config) fn provider_of(
    choice: &ProviderChoice,
    args: &EngineArgs,
    engine: &str,
) -> Result<Option<(String, Option<Secret>)>> {
    let engine = EngineName::from_str(engine, false).ok();
    let Some(common) = engine.and_then(variables_of_name) else { return Ok(None) };
    let settings = match common.base_url {
        OLLAMA_HOST => ollama_settings(choice, args)?,
        _ => settings(choice, args, common)?,
    };
    let base_url = settings.base_url.unwrap_or_else(|| common.own_address.to_owned());
    Ok(Some((base_url, settings.key)))
}

/// The address that the provider's variable names for this engine, or else the provider's own; and the
/// provider's own.
///
/// # Errors
/// If the variable can't be used.
pub(in crate::cli::config) fn addresses(
    engine: EngineName,
) -> Result<(Option<String>, &'static str)> {
    let Some(common) = variables_of_name(engine) else { return Ok((None, "")) };
    let named = not_blank(variable(common.base_url)?).map(|text| match common.base_url {
        OLLAMA_HOST => ollama::base_url(&text),
        _ => text,
    });
    Ok((Some(named.unwrap_or_else(|| common.own_address.to_owned())), common.own_address))
}

/// Whether two addresses have the same scheme, host and port.
pub(super) fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |text: &str| url::Url::parse(text.trim()).ok().map(|url| url.origin());
    origin(one).is_some_and(|one| Some(one) == origin(other))
}
