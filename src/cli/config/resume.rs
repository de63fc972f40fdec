//! A stored conversation is resumed with its provider, its model and its tool servers. Typed
//! options win over that, and that wins over variables.

use super::engine::{ProviderChoice, addresses, provider_of};
use super::profile;
use crate::cli::tools::{Approval, ToolOptions};
use crate::cli::{EngineName, ModelOfFile, ModelOption, ProviderArgs, SessionArgs};
use crate::conversation::choices::{Origin, OriginAddress, OriginKey, OriginTools};
use crate::engine::{Engine, shown_address};
use crate::protocol::id::SessionId;
use crate::store::{OpenMode, StorePlace, StoreSettings, stored_choices};
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use data_encoding::HEXLOWER;
use ring::hmac;
use std::path::{Path, PathBuf};

/// Bytes of a key's mark: enough to recognize the key, far too few to say anything of it.
const MARK_BYTES: usize = 4;

/// Characters of a word from which on it may be a key.
const KEY_CHARS_MIN: usize = 20;

/// Parts of words that name keys.
const KEY_NAMES: [&str; 6] = ["key", "token", "secret", "password", "auth", "bearer"];

/// Parameters of a base URL that are no keys.
const PLAIN_PARAMETERS: [&str; 1] = ["api-version"];

/// Merges the settings of the session of `store` into `args`; typed options win.
///
/// # Errors
/// If it can't be resumed so.
pub(super) fn go_on(
    args: &mut SessionArgs,
    store: Option<&StoreSettings>,
    session: Option<&SessionId>,
) -> Result<()> {
    let resumed = store.filter(|store| store.mode != OpenMode::New && !args.provider.has_stored);
    let Some((store, session)) = resumed.zip(session) else { return Ok(()) };
    let stored = store.namespace.stored(session);
    let of_place = |place: &_| stored_choices(place, &stored).and_then(|choices| choices.origin);
    let found = store.places.iter().find_map(|place| Some((place, of_place(place)?)));
    let Some((place, origin)) = found else { return Ok(()) };
    args.provider.has_stored = true;
    args.provider.settle_address();
    provider(&mut args.provider, &origin)?;
    // A database may be written by others, and what is in it is run as a program.
    let is_own = matches!(place, StorePlace::Sqlite(_));
    let are_typed =
        !args.tools.servers.mcp.is_empty() || args.calls.typed.iter().any(|id| id == "mcp_config");
    if !are_typed {
        servers(&mut args.tools, &origin.tools, is_own);
    }
    rules(&mut args.tools, &origin.tools, is_own);
    Ok(())
}

fn provider(args: &mut ProviderArgs, origin: &Origin) -> Result<()> {
    let is_typed = |option| args.typed.contains(&option);
    let engine = EngineName::from_str(&origin.engine, false).ok();
    let other_engine = is_typed(ModelOption::Engine) && args.engine != engine;
    if is_typed(ModelOption::Profile) || other_engine || engine.is_none() {
        return Ok(());
    }
    // Typed, also the engine that the profile had takes its place.
    if is_typed(ModelOption::Engine) && is_profile_gone(args, origin) {
        return Ok(());
    }
    let (has_model, has_address) = (is_typed(ModelOption::Model), is_typed(ModelOption::BaseUrl));
    let OriginAddress { base_url, is_partial, is_of_profile, .. } = &origin.address;
    args.profile = Some(origin.profile.clone()).filter(|name| !name.is_empty());
    args.is_profile_stored = args.profile.is_some();
    args.registries.profile_registries.extend(registries(origin));
    args.engine = engine.filter(|_| !is_of_profile || is_typed(ModelOption::Engine));
    if !has_model && !takes_model_of_file(args, engine) {
        args.model = Some(origin.model.clone()).filter(|model| !model.is_empty());
    }
    if has_address {
        return Ok(());
    }
    let of_environment = args.base_url.take();
    let Some(engine) = engine.filter(|engine| !is_of_profile && *engine != EngineName::Echo) else {
        return Ok(());
    };
    let (named, own) = addresses(engine)?;
    let is_it = |url: &str| shown_address(url) == shown_address(base_url);
    if of_environment.as_deref().or(named.as_deref()).is_some_and(is_it) {
        // It has the key that is meant for it, and the parts that are not stored.
        args.base_url = of_environment;
        return key(args, &origin.key, false);
    }
    // The key of a profile without an address is for the provider's own.
    if args.profile.is_some() && is_it(own) {
        return Ok(());
    }
    ensure!(
        !is_partial,
        "the conversation had an address at {base_url} with a part that may be a key and is not stored; \
         give --base-url with the whole address"
    );
    args.base_url = Some(base_url.clone());
    key(args, &origin.key, true)
}

/// The files of profiles that the conversation was begun with, beside those that are found.
fn registries(origin: &Origin) -> impl Iterator<Item = PathBuf> {
    origin.registries.iter().map(PathBuf::from)
}

/// Whether the profile of the conversation is in no file any more.
fn is_profile_gone(args: &ProviderArgs, origin: &Origin) -> bool {
    let mut files = args.registries.clone();
    files.profile_registries.extend(registries(origin).filter(|path| path.is_file()));
    let profiles = profile::read(&files);
    !origin.profile.is_empty()
        && profiles.is_ok_and(|profiles| profiles.layer(&origin.profile).is_none())
}

/// Chooses the model of the command file, as if it was typed, if the file is not written for another engine
/// than that of the conversation; returns whether it is chosen.
fn takes_model_of_file(args: &mut ProviderArgs, engine: Option<EngineName>) -> bool {
    let Some(ModelOfFile { model, engine: of_file }) = args.model_of_file.take() else {
        return false;
    };
    let other = of_file.filter(|of_file| Some(*of_file) != engine);
    if let Some(name) = other.and_then(|other| other.to_possible_value()) {
        tracing::warn!(
            "the command file names the model {} of the engine {}, and the conversation goes on with \
             another engine: its own model answers; give --engine and --model to change that",
            escape_control(&model),
            name.get_name()
        );
        return false;
    }
    args.model = Some(model);
    args.typed.insert(ModelOption::Model);
    true
}

/// The key of the conversation; `is_stored`: for an address that the environment does not name.
fn key(args: &mut ProviderArgs, origin: &OriginKey, is_stored: bool) -> Result<()> {
    if args.key_file.is_some() || args.key_command.is_some() {
        return Ok(());
    }
    ensure!(
        *origin != OriginKey::Command,
        "the key of the conversation came from a command, which is not stored; give --key-command again"
    );
    if let OriginKey::File(path) = origin {
        args.key_file = Some(PathBuf::from(path));
    }
    args.stored_key = is_stored.then(|| origin.clone());
    Ok(())
}

fn servers(args: &mut ToolOptions, origin: &OriginTools, is_own: bool) {
    let OriginTools { configs, servers, is_partial, .. } = origin;
    let (found, missing): (Vec<_>, Vec<_>) =
        configs.iter().map(PathBuf::from).partition(|path| path.is_file());
    for path in missing {
        let path = path.display();
        tracing::warn!(
            "the conversation had the tool servers of {path}, which is not there any more; it goes on \
             without them"
        );
    }
    let had_servers = !found.is_empty() || !servers.is_empty();
    if had_servers && !is_own {
        tracing::warn!(
            "the conversation had tool servers, and they are not started, because others may write the \
             database that names them; give --mcp or --mcp-config again"
        );
        args.servers.mcp_config = Vec::new();
        return;
    }
    if *is_partial {
        tracing::warn!(
            "the conversation had a tool server whose command or address may hold a key, so it is not \
             stored; give --mcp again to have it"
        );
    }
    args.servers.mcp_config = found;
    args.servers.mcp.clone_from(servers);
}

/// Which calls may run, also of servers that are typed. Others than this person may have allowed them in a database
/// that others write.
fn rules(args: &mut ToolOptions, origin: &OriginTools, is_own: bool) {
    let OriginTools { configs, servers, approval, deny, .. } = origin;
    if is_own || (configs.is_empty() && servers.is_empty()) {
        args.approval = args.approval.or_else(|| Approval::from_str(approval, false).ok());
    }
    args.deny.extend(deny.iter().cloned());
}

/// The stored form of the choice of this process.
///
/// # Errors
/// If a variable can't be used.
pub(super) fn origin(
    args: &SessionArgs,
    choice: &ProviderChoice,
    engine: &dyn Engine,
) -> Result<Origin> {
    let provider = provider_of(choice, &args.engines, engine.name())?;
    let (base_url, is_partial) =
        provider.as_ref().map_or_else(Default::default, |(url, _)| storable(url));
    let key = match (&args.provider.key_command, &args.provider.key_file) {
        (Some(_), _) => OriginKey::Command,
        (None, Some(path)) => OriginKey::File(absolute(path)),
        // That of a profile comes from there again.
        (None, None) if choice.has_key() && profile::name(&args.provider).is_some() => {
            OriginKey::Nowhere
        }
        (None, None) => match provider {
            Some((url, Some(key))) => OriginKey::Variable(mark(&key, &url)),
            Some((_, None)) | None => OriginKey::Nowhere,
        },
    };
    let registries = &args.provider.registries.profile_registries;
    Ok(Origin {
        profile: profile::name(&args.provider).unwrap_or_default().to_owned(),
        registries: registries.iter().map(|path| absolute(path)).collect(),
        engine: engine.name().to_owned(),
        model: engine.model().to_owned(),
        address: OriginAddress {
            base_url,
            is_partial,
            host: engine.provider(),
            is_of_profile: choice.has_address_of_profile(),
        },
        key,
        tools: origin_of_tools(&args.tools),
    })
}

fn origin_of_tools(args: &ToolOptions) -> OriginTools {
    let servers: Vec<_> =
        args.servers.mcp.iter().filter(|text| !may_hold_key(text)).cloned().collect();
    let approval = args.approval.and_then(|mode| mode.to_possible_value());
    OriginTools {
        configs: args.servers.mcp_config.iter().map(|path| absolute(path)).collect(),
        is_partial: servers.len() < args.servers.mcp.len(),
        servers,
        approval: approval.map(|value| value.get_name().to_owned()).unwrap_or_default(),
        deny: args.deny.clone(),
    }
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

/// A base URL without what may be a key, and whether something was left out.
fn storable(base_url: &str) -> (String, bool) {
    let shown = shown_address(base_url);
    let Ok(url) = url::Url::parse(base_url.trim()) else { return (shown, true) };
    let has_login = !url.username().is_empty() || url.password().is_some();
    let is_plain = url.query_pairs().all(|(name, _)| PLAIN_PARAMETERS.contains(&&*name));
    match url.query().filter(|query| is_plain && !query.is_empty()) {
        Some(query) => (format!("{shown}?{query}"), has_login),
        None => (shown, has_login || !is_plain),
    }
}

/// Whether the command or the address of a server may hold a key: a word like one, or a name of one.
fn may_hold_key(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_like_key = |word: &str| {
        let is_of_key =
            |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '+' | '=');
        word.len() >= KEY_CHARS_MIN
            && word.chars().all(is_of_key)
            && word.contains(|char: char| char.is_ascii_digit())
    };
    KEY_NAMES.iter().any(|name| lower.contains(name))
        || text.contains("://") && text.contains(['@', '?'])
        || text.split(|char: char| char.is_whitespace() || "/:,'\"".contains(char)).any(is_like_key)
}

/// A mark by which `key` is recognized at `base_url`, and nowhere else. It does not say the key.
fn mark(key: &Secret, base_url: &str) -> String {
    marked(key, base_url, &uuid::Uuid::new_v4().simple().to_string())
}

/// Whether `mark` is that of `key` at `base_url`.
pub(super) fn is_marked(mark: &str, key: &Secret, base_url: &str) -> bool {
    mark.split_once('-').is_some_and(|(salt, _)| marked(key, base_url, salt) == mark)
}

fn marked(key: &Secret, base_url: &str, salt: &str) -> String {
    let shown = shown_address(base_url);
    let code = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
    let code = hmac::sign(&code, format!("{salt} {shown}").as_bytes());
    let bytes = code.as_ref().get(..MARK_BYTES).unwrap_or_default();
    format!("{salt}-{}", HEXLOWER.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_recognized_at_its_own_address() {
        let key = |text: &str| Secret::new(text).expect("a key");
        let mark = mark(&key("sk-one"), "https://h/v1/");
        assert!(!mark.contains("sk-one"));
        assert!(is_marked(&mark, &key("sk-one"), "https://h/v1"));
        assert!(!is_marked(&mark, &key("sk-two"), "https://h/v1"));
        assert!(!is_marked(&mark, &key("sk-one"), "https://other/v1"));
        assert!(!is_marked("", &key("sk-one"), "https://h/v1"));
    }

    #[test]
    fn an_address_is_stored_without_what_may_be_a_key() {
        let check = |url: &str, expected: &str, is_partial: bool| {
            assert_eq!(storable(url), (expected.to_owned(), is_partial), "{url}");
        };
        check("https://h/v1/", "https://h/v1", false);
        check("https://h/d?api-version=1", "https://h/d?api-version=1", false);
        check("https://h/d?api-version=1&key=s3cret", "https://h/d", true);
        check("https://ann:s3cret@h/v1", "https://h/v1", true);
    }

    #[test]
    fn a_server_is_stored_unless_it_may_hold_a_key() {
        for text in [
            "npx -y @modelcontextprotocol/server-everything",
            "uvx time --zone Europe/Berlin",
            "https://h/mcp",
        ] {
            assert!(!may_hold_key(text), "{text}");
        }
        for text in [
            "server --api-key abc",
            "server sk-0123456789abcdefghij",
            "https://h/mcp?k=1",
            "https://u:p@h/mcp",
            "env TOKEN=1 server",
        ] {
            assert!(may_hold_key(text), "{text}");
        }
    }
}
