//! Selects the engines of a conversation from options, variables and profiles.

mod key;

mod names;

mod stored;

use stored::is_same_origin;
pub(super) use stored::{addresses, provider_of};

use super::not_blank;
use super::profile::ProfileValues;
use crate::cli::foreign::provider::TypedKeys;
use crate::cli::session::EngineArgs;
use crate::cli::{self, EngineName, ProviderArgs};
use crate::command_file::is_stdin;
use crate::conversation::choices::OriginKey;
use crate::engine::anthropic::{self, Anthropic};
use crate::engine::echo::Echo;
use crate::engine::gemini::{self, Gemini};
use crate::engine::ollama::{self, Ollama};
use crate::engine::openai::{self, OpenAi, Settings};
use crate::engine::responses::Responses;
use crate::engine::{CallSettings, Engine, KeySource, SettingNames, TlsRoots, is_same_address};
use crate::support::secret::Secret;
use anyhow::{Result, anyhow, bail, ensure};
pub(crate) use key::KeyOrigin;
use key::{key_of_options, key_of_profile, variables_of_name};
use serde_json::Map;
use std::collections::BTreeMap;
use std::env::VarError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Variable that holds the key of whichever provider is used; it has precedence over the provider's.
const OWN_KEY_VARIABLE: &str = "DUOLOGUE_API_KEY";

/// Variables from which other programs read the settings of a provider, too.
#[derive(Clone, Copy, Debug)]
struct CommonVariables {
    /// The first that is set counts.
    keys: &'static [&'static str],
    base_url: &'static str,
    /// The address that the provider itself has.
    own_address: &'static str,
    /// The names of the settings on the command line.
    names: &'static SettingNames,
}

const OPENAI_VARIABLES: CommonVariables = CommonVariables {
    keys: &["OPENAI_API_KEY"],
    base_url: "OPENAI_BASE_URL",
    own_address: openai::DEFAULT_BASE_URL,
    names: &names::OPENAI,
};

const ANTHROPIC_VARIABLES: CommonVariables = CommonVariables {
    keys: &["ANTHROPIC_API_KEY"],
    base_url: "ANTHROPIC_BASE_URL",
    own_address: anthropic::DEFAULT_BASE_URL,
    names: &names::ANTHROPIC,
};

/// The second is Google's name for the key of any of its services: it does not choose the engine.
const GEMINI_VARIABLES: CommonVariables = CommonVariables {
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    base_url: "GEMINI_BASE_URL",
    own_address: gemini::DEFAULT_BASE_URL,
    names: &names::GEMINI,
};

const OLLAMA_VARIABLES: CommonVariables = CommonVariables {
    keys: &["OLLAMA_API_KEY"],
    base_url: OLLAMA_HOST,
    own_address: ollama::DEFAULT_BASE_URL,
    names: &names::OLLAMA,
};

/// Ollama's variable for its address, which may leave out most of it.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// Shown when no provider is configured.
pub(crate) const ECHO_ANSWERS: &str = "no provider is configured, so the built-in echo engine answers; to talk to a model run \
     `duologue profiles init`, or set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or --base-url and --model";

/// The choice of a provider by options, variables and a profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderChoice {
    engine: Option<EngineName>,
    model: Option<String>,
    base_url: Option<String>,
    /// A key that has precedence over the provider's own variable.
    key: Option<KeyChoice>,
    /// Keys of options, each in place of the provider's variable.
    typed_keys: TypedKeys,
    tls_roots: TlsRoots,
    /// The provider is the one that the profile means, so that its headers are for it.
    is_of_profile: bool,
    /// The keys of options are for whatever address is chosen, also that of the profile.
    sends_typed_key: bool,
    /// The address, if there is one, is the profile's: another provider's variable has no key for it.
    is_address_of_profile: bool,
    /// The key that a stored conversation had at this address.
    stored_key: Option<OriginKey>,
    /// The profile has a key, headers or members of the body, which are for its own provider: no
    /// address comes from a variable.
    has_own_additions: bool,
}

/// A key, or where it is got when a call needs it.
#[derive(Clone, Debug)]
enum KeyChoice {
    /// The value of the variable of this name.
    Variable(Secret, String),
    /// The file of the profile has it.
    InProfile(Secret),
    Got(KeySource),
}

impl KeyChoice {
    /// What names the key, for people.
    fn named_by(&self) -> &str {
        match self {
            Self::Variable(_, name) => name,
            Self::InProfile(_) | Self::Got(_) => "the key that is named",
        }
    }
}

impl ProviderChoice {
    /// The initial choice of a conversation: options and variables, then `profile`.
    ///
    /// # Errors
    /// If a variable or a key can't be used.
    pub(crate) fn initial(args: &ProviderArgs, profile: &ProfileValues) -> Result<Self> {
        let (engine, base_url) = args.address(profile.engine);
        let base_url = not_blank(base_url);
        let is_its_address = match (&base_url, &profile.base_url) {
            (None, _) => true,
            (Some(typed), Some(url)) => is_same_address(typed, url),
            (Some(_), None) => false,
        };
        let is_its_provider = is_its_address && (engine.is_none() || engine == profile.engine);
        let typed = key_of_options(args)?;
        let general = variable(OWN_KEY_VARIABLE)?.as_deref().and_then(Secret::new);
        ensure!(
            !profile.is_engine_foreign
                || engine.is_some()
                || (typed.is_none() && general.is_none() && base_url.is_none()),
            "the profile's engine comes from a file of the project that you have not trusted, and \
             would get a key or an address that is meant for another provider; choose the engine \
             with --engine, or trust the file with `duologue profiles trust`"
        );
        // The key of a profile belongs to its provider, and goes to no other.
        let of_profile = profile.key.as_ref().filter(|_| is_its_provider).map(key_of_profile);
        let has_own = match engine.or(profile.engine).map(variables_of_name) {
            Some(common) => common.is_some_and(|common| args.typed_keys.of(common.keys).is_some()),
            None => args.typed_keys.all().next().is_some(),
        };
        let key = match (typed, of_profile) {
            (Some(typed), _) => Some(typed),
            (None, _) if has_own => None,
            (None, Some(key)) => Some(key?),
            // Chosen among all variables, by the address.
            (None, None) if args.stored_key.is_some() => None,
            (None, None) => {
                general.map(|key| KeyChoice::Variable(key, OWN_KEY_VARIABLE.to_owned()))
            }
        };
        Ok(Self {
            is_address_of_profile: base_url.is_none(),
            stored_key: args.stored_key.clone(),
            has_own_additions: is_its_provider && profile.has_additions(),
            engine: engine.or(profile.engine),
            model: not_blank(args.model.clone()).or_else(|| profile.model.clone()),
            base_url: base_url.or_else(|| profile.base_url.clone()),
            key,
            tls_roots: tls_roots(args),
            is_of_profile: is_its_provider,
            // Typed together with the profile, the key is for its address.
            sends_typed_key: true,
            typed_keys: args.typed_keys.clone(),
        })
    }

    /// The choice of a request: `profile` alone. The general key belongs to the provider that the
    /// conversation begins with.
    ///
    /// # Errors
    /// If a key can't be used.
    pub(crate) fn other(args: &ProviderArgs, profile: &ProfileValues) -> Result<Self> {
        let key = profile.key.as_ref().map(key_of_profile).transpose()?;
        Ok(Self {
            engine: profile.engine,
            model: profile.model.clone(),
            base_url: profile.base_url.clone(),
            key,
            typed_keys: args.typed_keys.clone(),
            sends_typed_key: false,
            tls_roots: tls_roots(args),
            is_of_profile: true,
            is_address_of_profile: true,
            stored_key: None,
            has_own_additions: profile.has_additions(),
        })
    }

    /// The engine of that name, with the settings of the environment.
    pub(crate) fn named(args: &ProviderArgs, engine: EngineName) -> Self {
        Self {
            engine: Some(engine),
            base_url: args.addresses.of(engine).map(|(_, url)| url.to_owned()),
            typed_keys: args.typed_keys.clone(),
            tls_roots: tls_roots(args),
            ..Self::default()
        }
    }

    /// The settings of `profile` as far as the provider may have them: its headers and members of the
    /// body may hold a key, and go to its own provider alone.
    pub(crate) fn settings_of(&self, profile: &ProfileValues) -> CallSettings {
        let settings = profile.settings.clone();
        match self.is_of_profile {
            true => settings,
            false => without_additions(settings),
        }
    }

    /// Whether the profile names an address that is neither the provider's own nor that of its
    /// variable, so that the key in the provider's variable is not meant for it.
    fn is_address_of_others(&self, common: CommonVariables) -> Result<bool> {
        let Some(url) = self.base_url.as_deref().filter(|_| self.is_address_of_profile) else {
            return Ok(false);
        };
        let of_variable = not_blank(variable(common.base_url)?);
        let of_variable = of_variable.map(|text| match common.base_url {
            OLLAMA_HOST => ollama::base_url(&text),
            _ => text,
        });
        let is_meant = is_same_origin(url, common.own_address)
            || of_variable.is_some_and(|known| is_same_address(url, &known));
        Ok(!is_meant)
    }

    /// The model that answers where none is named; blank if there is none.
    pub(crate) fn default_model(name: EngineName) -> &'static str {
        match name {
            EngineName::Openai | EngineName::Responses => openai::DEFAULT_MODEL,
            EngineName::Anthropic => anthropic::DEFAULT_MODEL,
            EngineName::Gemini => gemini::DEFAULT_MODEL,
            EngineName::Echo | EngineName::Ollama => "",
        }
    }

    /// The variable in which other programs look for the key of the engine, too.
    pub(crate) fn key_variable(name: EngineName) -> Option<&'static str> {
        variables_of_name(name).and_then(|common| common.keys.first().copied())
    }

    /// Variables with the keys of other providers than that of `chosen`, which are set, and the engines that use them.
    ///
    /// # Errors
    /// If a variable can't be used.
    pub(crate) fn unused_keys(chosen: EngineName) -> Result<Vec<(&'static str, EngineName)>> {
        let engines = [EngineName::Openai, EngineName::Anthropic, EngineName::Gemini].into_iter();
        let own = Self::key_variable(chosen);
        let keys = engines.filter_map(|engine| Some((Self::key_variable(engine)?, engine)));
        let mut unused = Vec::new();
        for (name, engine) in keys.filter(|(name, _)| Some(*name) != own) {
            if variable(name)?.as_deref().and_then(Secret::new).is_some() {
                unused.push((name, engine));
            }
        }
        Ok(unused)
    }

    /// Why no key can be had, as far as is known without getting it: for `hello` and `doctor`.
    ///
    /// # Errors
    /// If the file of the key can't be used, its program is not found, or its variable is not set.
    pub(crate) fn check_key(&self) -> Result<(), String> {
        match &self.key {
            Some(KeyChoice::Got(source)) => source.check(&names::GENERAL),
            Some(KeyChoice::Variable(..) | KeyChoice::InProfile(_)) | None => Ok(()),
        }
    }

    /// Whether the profile names the address.
    pub(super) fn has_address_of_profile(&self) -> bool {
        self.is_address_of_profile && self.base_url.is_some()
    }

    /// Whether the profile, an option or a file has the key.
    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }
}

/// `settings` without those for one provider alone.
pub(super) fn without_additions(settings: CallSettings) -> CallSettings {
    CallSettings { extra_body: Map::new(), extra_headers: BTreeMap::new(), ..settings }
}

fn tls_roots(args: &ProviderArgs) -> TlsRoots {
    match args.tls_roots {
        cli::TlsRoots::Builtin => TlsRoots::Builtin,
        cli::TlsRoots::System => TlsRoots::System,
    }
}

/// The engine, and a note for the user about how it was chosen.
///
/// # Errors
/// If a variable or a file that the engine reads can't be used.
pub(crate) fn engine(
    choice: &ProviderChoice,
    args: &EngineArgs,
    notices: &mut Vec<&'static str>,
) -> Result<Arc<dyn Engine>> {
    let name = match choice.engine {
        Some(name) => name,
        None => match default_engine(choice, args)? {
            Some(default) => default.name,
            None => {
                notices.push(ECHO_ANSWERS);
                EngineName::Echo
            }
        },
    };
    Ok(match name {
        EngineName::Echo => Arc::new(Echo {
            delay: Duration::from_millis(args.echo_delay_ms),
            reasoning: args.echo_reasoning,
            answer: text_file("--echo-answer", args.echo_answer.as_deref())?,
            script: text_file("--echo-script", args.echo_script.as_deref())?,
            names: &names::GENERAL,
        }),
        EngineName::Openai => Arc::new(OpenAi::new(settings(choice, args, OPENAI_VARIABLES)?)),
        EngineName::Responses => {
            Arc::new(Responses::new(settings(choice, args, OPENAI_VARIABLES)?))
        }
        EngineName::Anthropic => {
            Arc::new(Anthropic::new(settings(choice, args, ANTHROPIC_VARIABLES)?))
        }
        EngineName::Gemini => Arc::new(Gemini::new(settings(choice, args, GEMINI_VARIABLES)?)),
        EngineName::Ollama => Arc::new(Ollama::new(ollama_settings(choice, args)?)),
    })
}

/// An engine that nothing names.
#[derive(Clone, Debug)]
pub(crate) struct DefaultEngine {
    pub(crate) name: EngineName,
    /// The variable, option or setting that decides for it.
    pub(crate) by: String,
}

/// The engine that the settings are for where nothing names one; `None` if one is named, or no provider is configured.
/// The key of Anthropic or Gemini alone chooses its engine only where no other setting names a provider: a key must not
/// go to a server that it is not for.
///
/// # Errors
/// If a variable can't be used.
pub(crate) fn default_engine(
    choice: &ProviderChoice,
    args: &EngineArgs,
) -> Result<Option<DefaultEngine>> {
    if choice.engine.is_some() {
        return Ok(None);
    }
    let openai = settings(choice, args, OPENAI_VARIABLES)?;
    let anthropic = settings(choice, args, ANTHROPIC_VARIABLES)?;
    let by_key = |common: CommonVariables| {
        let typed = choice.typed_keys.of(common.keys).map(|(option, _)| option);
        typed.or(common.keys.first().copied()).unwrap_or_default().to_owned()
    };
    let of_openai = if choice.base_url.is_some() {
        Some("the base URL".to_owned())
    } else if openai.base_url.is_some() {
        Some(OPENAI_VARIABLES.base_url.to_owned())
    } else if let Some(key) = &choice.key {
        Some(key.named_by().to_owned())
    } else {
        openai.key.is_some().then(|| by_key(OPENAI_VARIABLES))
    };
    let default = |name, by| Ok(Some(DefaultEngine { name, by }));
    if let Some(by) = of_openai {
        return default(EngineName::Openai, by);
    }
    if anthropic.key.is_some() {
        return default(EngineName::Anthropic, by_key(ANTHROPIC_VARIABLES));
    }
    let gemini_key = GEMINI_VARIABLES.keys.first().map_or(Ok(None), |name| variable(name))?;
    let gemini_key = gemini_key.as_deref().and_then(Secret::new);
    if gemini_key.or(choice.typed_key(GEMINI_VARIABLES)).is_some() {
        return default(EngineName::Gemini, by_key(GEMINI_VARIABLES));
    }
    if openai.model.is_some() {
        return default(EngineName::Openai, "the model".to_owned());
    }
    Ok(None)
}

/// The settings of a provider whose variables are `common`; the choice has precedence.
fn settings(
    choice: &ProviderChoice,
    args: &EngineArgs,
    common: CommonVariables,
) -> Result<Settings> {
    // An address that the profile does not name is another provider for the headers of the profile.
    let of_variable = match choice.has_own_additions {
        true => None,
        false => not_blank(variable(common.base_url)?),
    };
    let (key, key_source) = match choice.key.clone() {
        Some(KeyChoice::Variable(key, _) | KeyChoice::InProfile(key)) => (Some(key), None),
        Some(KeyChoice::Got(source)) => (None, Some(source)),
        None if let Some(stored) = &choice.stored_key => {
            (choice.key_of_stored(stored, common)?, None)
        }
        None if choice.is_address_of_others(common)? => {
            (choice.typed_key(common).filter(|_| choice.sends_typed_key), None)
        }
        None => (choice.own_key(common)?, None),
    };
    let key_place = choice.key_place(common);
    Ok(Settings {
        base_url: choice.base_url.clone().or(of_variable),
        model: choice.model.clone(),
        key,
        key_source,
        key_place,
        tls_roots: choice.tls_roots,
        connect_timeout: Duration::from_millis(args.connect_timeout_ms),
        idle_timeout: Duration::from_millis(args.idle_timeout_ms),
        total_timeout: args.total_timeout(),
        retries: args.retries,
        names: common.names,
    })
}

/// The settings of Ollama, whose variable for its address may leave out most of it.
fn ollama_settings(choice: &ProviderChoice, args: &EngineArgs) -> Result<Settings> {
    let settings = settings(choice, args, OLLAMA_VARIABLES)?;
    let base_url = match (&choice.base_url, &settings.base_url) {
        (None, Some(host)) => Some(ollama::base_url(host)),
        (_, base_url) => base_url.clone(),
    };
    Ok(Settings { base_url, ..settings })
}

/// A file that the echo engine reads, which must exist before the run starts. It is not opened:
/// opening a named pipe would block.
fn text_file(option: &str, path: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    ensure!(!is_stdin(path), "{option} can't be standard input; name a file");
    let shown = path.display();
    let about = path.metadata().map_err(|error| {
        anyhow!("{option}: {shown} can't be read: {error}; check its name and who may read it")
    })?;
    ensure!(about.is_file(), "{option}: {shown} is not a regular file; name a text file");
    Ok(Some(path.to_owned()))
}

/// A variable that is not an option. Its value may be a secret and is never shown.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{name} can't be used: it is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::missing::OF_PROVIDERS;
    use crate::cli::{help, tips};
    use crate::engine::replay;
    use clap::ValueEnum;

    /// The lists of providers that the compiler does not know.
    #[test]
    fn each_engine_is_in_every_list() {
        let help = help::after("rpc");
        for engine in EngineName::value_variants() {
            let Some(common) = variables_of_name(*engine) else { continue };
            for variable in common.keys.iter().chain([&common.base_url]) {
                assert!(OF_PROVIDERS.contains(variable), "cli/config/missing: {variable}");
                assert!(help.contains(variable), "cli/help: {variable}");
            }
            let key = ProviderChoice::key_variable(*engine).expect("a variable");
            // A server of Ollama needs no key.
            if *engine != EngineName::Ollama {
                assert!(ECHO_ANSWERS.contains(key), "{key}");
                assert!(tips::KEY_TIP.contains(key), "cli/tips: {key}");
            }
            let name = engine.to_possible_value().expect("a name");
            let name = name.get_name();
            let is_read = replay::ENGINES.iter().any(|(engine, _)| *engine == name);
            assert!(is_read, "engine/replay, and with it tests/streams: {name}");
        }
    }
}
