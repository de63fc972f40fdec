//! Options about the provider: which one, where, with which key, and the profile that says so.

use super::foreign::provider::{TypedAddresses, TypedKeys};
use super::texts::not_blank;
use super::{EngineName, config};
use crate::conversation::choices::OriginKey;
use crate::support::files::WorkFolder;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum, ValueHint};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options about the provider.
#[derive(Args, Clone, Debug, Default)]
pub struct ProviderArgs {
    /// Engine that answers. By default anthropic or gemini if ANTHROPIC_API_KEY or GEMINI_API_KEY is
    /// set and neither another key nor a base URL is, else openai if a key, a base URL or a model is
    /// set, else echo
    #[arg(
        help_heading = "Provider options",
        long,
        alias = "ai-api-type",
        env = "DUOLOGUE_ENGINE",
        value_enum
    )]
    pub engine: Option<EngineName>,

    /// Model of the provider; the default for OpenAI itself is gpt-4o-mini, for Anthropic itself
    /// claude-sonnet-5, for Google itself gemini-flash-latest
    #[arg(
        help_heading = "Provider options",
        long,
        short,
        alias = "ai-engine",
        env = "DUOLOGUE_MODEL",
        value_parser = not_blank,
        add = ArgValueCandidates::new(models)
    )]
    pub model: Option<String>,

    /// Base URL of the provider, for example http://localhost:11434/v1
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_BASE_URL",
        value_name = "URL",
        value_parser = not_blank,
        hide_env_values = true
    )]
    pub base_url: Option<String>,

    /// Use the settings of this profile; `duologue profiles` lists them
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_PROFILE",
        value_name = "NAME",
        value_parser = not_blank,
        add = ArgValueCandidates::new(names),
        help = "Use the settings of this profile; `duologue profiles` lists them"
    )]
    pub profile: Option<String>,

    /// Where profiles are.
    #[command(flatten)]
    pub registries: ProfileFiles,

    /// Get the key from the first line that this command prints: a command line, without a shell
    #[arg(
        help_heading = "Provider options",
        long,
        value_name = "COMMAND",
        conflicts_with = "key_file"
    )]
    pub key_command: Option<String>,

    /// Get the key from the first line of this file, which only its owner may read
    #[arg(help_heading = "Provider options", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,

    /// Addresses as Pinocchio takes them.
    #[command(flatten)]
    pub addresses: TypedAddresses,

    /// Keys as Pinocchio takes them.
    #[command(flatten)]
    pub typed_keys: TypedKeys,

    /// Root certificates that are trusted
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_TLS_ROOTS",
        value_name = "WHICH",
        value_enum,
        default_value_t
    )]
    pub tls_roots: TlsRoots,

    /// The options that choose a model and were typed; variables do not count.
    #[arg(skip)]
    pub typed: BTreeSet<ModelOption>,

    /// The model that a command file names, if no typed option names one.
    #[arg(skip)]
    pub model_of_file: Option<ModelOfFile>,

    /// The key that a stored conversation had, if its address is the one here.
    #[arg(skip)]
    pub stored_key: Option<OriginKey>,

    /// The options include those of a stored conversation already.
    #[arg(skip)]
    pub has_stored: bool,

    /// The profile is the one that a stored conversation was begun with.
    #[arg(skip)]
    pub is_profile_stored: bool,
}

/// The model that a command file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOfFile {
    /// Its name.
    pub model: String,
    /// The engine that the file is written for, if it says so.
    pub engine: Option<EngineName>,
}

/// An option that chooses a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelOption {
    /// `--engine`.
    Engine,
    /// `--model`.
    Model,
    /// `--base-url`.
    BaseUrl,
    /// `--profile`.
    Profile,
}

impl ModelOption {
    /// All of them, each with its id.
    pub(super) const ALL: [(Self, &str); 4] = [
        (Self::Engine, "engine"),
        (Self::Model, "model"),
        (Self::BaseUrl, "base_url"),
        (Self::Profile, "profile"),
    ];
}

impl ProviderArgs {
    /// The engine and the base URL, of which the address of a provider may decide both. `of_profile` is
    /// the engine if no option chooses it.
    pub(crate) fn address(
        &self,
        of_profile: Option<EngineName>,
    ) -> (Option<EngineName>, Option<String>) {
        let known = self.engine.or(of_profile);
        let engine = known.or_else(|| self.addresses.engine());
        match engine.and_then(|engine| self.own_address(engine)) {
            Some((_, url)) if known.is_none() => (engine, Some(url.to_owned())),
            Some((_, url)) => (self.engine, Some(url.to_owned())),
            None => (self.engine, self.base_url.clone()),
        }
    }

    /// The option with an address for `engine` alone, and that address. A typed --base-url is for any
    /// engine, and wins.
    pub(crate) fn own_address(&self, engine: EngineName) -> Option<(&'static str, &str)> {
        let is_general = self.base_url.is_some() && self.typed.contains(&ModelOption::BaseUrl);
        self.addresses.of(engine).filter(|_| !is_general)
    }

    /// Puts the address of the provider among the options, where no profile can have the engine.
    pub(super) fn settle_address(&mut self) {
        if self.profile.is_some() || self.addresses.engine().is_none() {
            return;
        }
        let (engine, base_url) = self.address(None);
        if engine != self.engine {
            self.engine = engine;
            self.typed.insert(ModelOption::Engine);
        }
        if base_url != self.base_url {
            self.base_url = base_url;
            self.typed.insert(ModelOption::BaseUrl);
        }
    }

    /// Notes whether a model was chosen in what was typed.
    pub(super) fn note_typed(&mut self, typed: &ArgMatches) {
        let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
        let options = ModelOption::ALL.into_iter().filter(|(_, id)| is_typed(id));
        self.typed = options.map(|(option, _)| option).collect();
    }
}

/// Files of profiles beside those that are found.
#[derive(Args, Clone, Debug, Default)]
pub struct ProfileFiles {
    /// Read profiles from these files, too; later ones win
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_PROFILE_REGISTRIES",
        value_name = "FILES",
        value_delimiter = ',',
        value_parser = OsStringValueParser::new().try_map(registry),
        value_hint = ValueHint::FilePath
    )]
    pub profile_registries: Vec<PathBuf>,

    /// The folder whose project may have one.
    #[arg(skip)]
    pub folder: WorkFolder,
}

/// The file in a source of profiles, which Pinocchio writes with its kind before it.
pub(super) fn registry(source: OsString) -> Result<PathBuf, String> {
    let Some(text) = source.to_str() else { return Ok(source.into()) };
    if text.starts_with("sqlite:") || text.starts_with("sqlite-dsn:") {
        return Err(
            "it is a database, and profiles are read from YAML files; write its profiles as \
                    YAML, and name that file"
                .to_owned(),
        );
    }
    let path = text.strip_prefix("yaml://").or(text.strip_prefix("yaml:")).unwrap_or(text);
    match path.is_empty() && path != text {
        true => Err("it names no file; write one after yaml:".to_owned()),
        false => Ok(path.into()),
    }
}

/// The names of the profiles, for completions.
pub(super) fn names() -> Vec<CompletionCandidate> {
    names_in(&ProfileFiles::default())
}

/// The names of the profiles, those in `files` included.
pub(super) fn names_in(files: &ProfileFiles) -> Vec<CompletionCandidate> {
    let profiles = config::profile::read(files).unwrap_or_default();
    profiles.names().into_iter().map(CompletionCandidate::new).collect()
}

/// The models that profiles name, for completions.
fn models() -> Vec<CompletionCandidate> {
    models_in(&ProfileFiles::default())
}

/// The models that profiles name, those in `files` included.
pub(super) fn models_in(files: &ProfileFiles) -> Vec<CompletionCandidate> {
    let profiles = config::profile::read(files).unwrap_or_default();
    config::profile::models(&profiles).into_iter().map(CompletionCandidate::new).collect()
}

/// Root certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TlsRoots {
    /// Mozilla's, which are built in, and those of SSL_CERT_FILE
    #[default]
    Builtin,
    /// The system's, or in their place those of SSL_CERT_FILE or SSL_CERT_DIR
    System,
}
