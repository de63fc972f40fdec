//! The settings of the chosen profile, and the list of profiles.

use crate::cli::tools::ProfileTools;
use crate::cli::{EngineName, ProfileFiles, ProviderArgs};
use crate::engine::CallSettings;
use crate::profile::files::Places;
use crate::profile::trust::Trusted;
use crate::profile::{Item, KeyFrom, Layer, Profiles, Resolved, Sourced};
use anyhow::{Result, anyhow, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The profile of a named file that is used where none is chosen.
const DEFAULT: &str = "default";

/// The settings of a profile, as far as they are not about tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileValues {
    pub(super) engine: Option<EngineName>,
    /// The engine comes from a file of a project that is not trusted.
    pub(super) is_engine_foreign: bool,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) key: Option<KeyFrom>,
    pub(super) system: Option<String>,
    /// Tokens of the most that the model can be sent.
    pub(super) context_tokens: Option<u64>,
    pub(super) agents_file: bool,
    pub(super) settings: CallSettings,
    pub(super) tools: ProfileTools,
}

/// Reads the files of profiles that exist; warns of what is ignored in them.
///
/// # Errors
/// If one of them can't be used.
pub(crate) fn read(named: &ProfileFiles) -> Result<Profiles> {
    let places = Places::find(&named.profile_registries, &named.folder);
    let trusted = || {
        Trusted::load().unwrap_or_else(|error| {
            tracing::warn!("no file of a project is trusted: {error:#}");
            Trusted::default()
        })
    };
    Ok(Profiles::read(places.read(trusted)?, places.home.as_deref())?)
}

/// Like [`read`] if the options choose a profile; otherwise there are none, and no file is read.
///
/// # Errors
/// If a file can't be used.
pub(crate) fn read_if_named(args: &ProviderArgs) -> Result<Profiles> {
    match name(args) {
        Some(_) => read(&args.registries),
        None => Ok(Profiles::default()),
    }
}

/// The name of the profile that the options choose.
pub(crate) fn name(args: &ProviderArgs) -> Option<&str> {
    args.profile.as_deref().map(str::trim).filter(|name| !name.is_empty())
}

/// Chooses the default profile of the files, if nothing else chooses a provider; without one, the
/// profile called `default` in a file that was named: so Pinocchio does it.
///
/// # Errors
/// If a file can't be used, or its default is missing: another provider would get the conversation.
pub(crate) fn choose_default(args: &mut ProviderArgs) -> Result<()> {
    if !may_be_default(args) || args.has_stored {
        return Ok(());
    }
    let profiles = read(&args.registries)?;
    if let Some(ignored) = profiles.ignored_default() {
        tracing::warn!("{ignored}");
    }
    args.profile = match profiles.default_profile()? {
        Some((name, _)) => Some(name.to_owned()),
        None => {
            let is_named = profiles.layer(DEFAULT) == Some(Layer::Named);
            is_named.then(|| DEFAULT.to_owned()).or(args.profile.take())
        }
    };
    Ok(())
}

/// What files of a project have and is left out, as they are not trusted: of the chosen profile, and of the default if
/// that may be used. For a person who sees no log.
pub(super) fn left_out(args: &ProviderArgs, may_be_default: bool) -> Vec<String> {
    let Ok(profiles) = read(&args.registries) else { return Vec::new() };
    let default = profiles.ignored_default().filter(|_| may_be_default);
    let resolved = name(args).and_then(|name| profiles.resolve(name).ok());
    let of_profile = resolved.iter().flat_map(Resolved::warnings);
    default.into_iter().chain(of_profile).collect()
}

/// Whether the default profile may be used: no option and no variable chooses a provider.
pub(crate) fn may_be_default(args: &ProviderArgs) -> bool {
    let has_address = args.base_url.as_ref().is_some_and(|url| !url.trim().is_empty());
    let has_key = args.key_command.is_some() || args.key_file.is_some();
    let has_engine = args.engine.is_some() || args.addresses.engine().is_some();
    name(args).is_none() && !has_engine && !has_address && !has_key
}

/// The profile that the options choose, of those in `profiles`; nothing if they choose none.
///
/// # Errors
/// If there is none of that name, or it can't be used.
pub(crate) fn chosen(args: &ProviderArgs, profiles: &Profiles) -> Result<ProfileValues> {
    let Some(name) = name(args) else { return Ok(ProfileValues::default()) };
    profiles.warnings().for_each(|warning| tracing::warn!("{warning}"));
    ensure!(
        !args.is_profile_stored || profiles.layer(name).is_some(),
        "the session was begun with the profile `{name}`, which is gone; name another with --profile, or \
         --engine, --base-url and --model"
    );
    let resolved = profiles.resolve(name)?;
    resolved.warnings().for_each(|warning| tracing::warn!("{warning}"));
    ProfileValues::of(&resolved)
}

/// The models that `profiles` name.
pub(crate) fn models(profiles: &Profiles) -> BTreeSet<String> {
    let resolved = profiles.names().into_iter().filter_map(|name| profiles.resolve(name).ok());
    resolved.filter_map(|profile| ProfileValues::of(&profile).ok()?.model).collect()
}

impl ProfileValues {
    /// The settings of `profile`.
    ///
    /// # Errors
    /// If it can't be used.
    pub(crate) fn of(profile: &Resolved) -> Result<Self> {
        if let Some(refusal) = profile.refusal() {
            return Err(refusal.into());
        }
        let mut values = Self::default();
        let mut headers = serde_json::Map::new();
        for value in &profile.values {
            values.add(value, &mut headers)?;
        }
        if !headers.is_empty() {
            let set = values.settings.set("extra_headers", &Value::Object(headers));
            set.map_err(|why| anyhow!("the profile `{}`: {why}", profile.name))?;
        }
        Ok(values)
    }

    /// The values of a provider alone, with its key.
    pub(crate) fn of_provider(
        engine: EngineName,
        base_url: Option<String>,
        key: Option<KeyFrom>,
    ) -> Self {
        Self { engine: Some(engine), base_url, key, ..Self::default() }
    }

    /// Its settings of tools.
    pub(crate) fn into_tools(self) -> ProfileTools {
        self.tools
    }

    /// Whether it has what is for its own provider alone.
    pub(super) fn has_additions(&self) -> bool {
        let CallSettings { extra_body, extra_headers, .. } = &self.settings;
        self.key.is_some() || !extra_body.is_empty() || !extra_headers.is_empty()
    }

    /// Whether it names a provider: by an engine, an address or a key.
    pub(super) fn has_provider(&self) -> bool {
        self.engine.is_some() || self.base_url.is_some() || self.key.is_some()
    }

    /// The names of what it has and what does not apply when a conversation switches to it.
    pub(super) fn unused_by_switch(&self) -> Vec<&'static str> {
        let ProfileTools { servers, approval, allow, deny } = &self.tools;
        let CallSettings { extra_body, extra_headers, .. } = &self.settings;
        let unused = [
            ("system", self.system.is_some()),
            ("agents-file", self.agents_file),
            ("mcp", !servers.is_empty()),
            ("approval", approval.is_some()),
            ("allow", !allow.is_empty()),
            ("deny", !deny.is_empty()),
            ("extra-headers", !self.has_provider() && !extra_headers.is_empty()),
            ("extra_body", !self.has_provider() && !extra_body.is_empty()),
        ];
        unused.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }

    fn add(
        &mut self,
        Sourced { item, origin }: &Sourced,
        headers: &mut serde_json::Map<String, Value>,
    ) -> Result<()> {
        match item.clone() {
            Item::Engine(name) => {
                let place = format!("{}:{}", origin.file.display(), origin.line);
                self.engine = Some(engine_name(&name).map_err(|why| anyhow!("{place}: {why}"))?);
                self.is_engine_foreign = !origin.is_trusted;
            }
            Item::Model(model) => self.model = Some(model),
            Item::BaseUrl(url) => self.base_url = Some(url),
            Item::Key(from) => self.key = Some(from),
            Item::System(text) => self.system = Some(text),
            Item::ContextTokens(tokens) => self.context_tokens = Some(tokens),
            Item::AgentsFile(is_added) => self.agents_file = is_added,
            Item::Setting { name, value } => {
                // Checked when the file was read.
                self.settings.set(&name, &value).map_err(|why| anyhow!(why))?;
            }
            Item::Header { name, value } => {
                headers.insert(name, json!(value.expose()));
            }
            Item::Server { name, members } => self.tools.servers.push((name, members)),
            Item::Approval(mode) => self.tools.approval = Some(mode),
            Item::Allow(globs) => self.tools.allow.extend(globs),
            Item::Deny(globs) => self.tools.deny.extend(globs),
            // The values of that profile are listed beside it.
            Item::Inherits(_) => {}
        }
        Ok(())
    }
}

fn engine_name(name: &str) -> Result<EngineName, String> {
    EngineName::from_str(name, false).map_err(|_| {
        let known = EngineName::value_variants().iter().filter_map(EngineName::to_possible_value);
        let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
        format!("there is no engine {name:?}; name one of {}", known.join(", "))
    })
}
