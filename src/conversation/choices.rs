//! The model and tools that the client of a session has chosen, and the configuration of its process.
//! A resumed session starts with both.

use crate::protocol::proto::frontendtools::FrontendToolManifestCommand;
use serde_json::{Map, Value};

/// The client's choices and the configuration of the process, which a resumed session starts with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choices {
    /// The model that the client switched to.
    pub model: Option<ChosenModel>,
    /// The tools that the client declared.
    pub tools: Option<FrontendToolManifestCommand>,
    /// The configuration of the process; `None` if it is unknown.
    pub origin: Option<Origin>,
}

/// The configuration of a process: its engine, and the sources of its tools. Holds no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The profile; empty for none.
    pub profile: String,
    /// Files of profiles that were named beside those that are found.
    pub registries: Vec<String>,
    /// The engine.
    pub engine: String,
    /// The model.
    pub model: String,
    /// The address of the provider.
    pub address: OriginAddress,
    /// Where its key came from.
    pub key: OriginKey,
    /// Where the tools came from.
    pub tools: OriginTools,
}

/// The address of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginAddress {
    /// The base URL, without login, and without a query that may be a key.
    pub base_url: String,
    /// Something was left out of it.
    pub is_partial: bool,
    /// The host, as events name it.
    pub host: String,
    /// The profile names it.
    pub is_of_profile: bool,
}

/// Where the key of a provider came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OriginKey {
    /// There was none, or the profile has it.
    #[default]
    Nowhere,
    /// A variable: a mark by which the key is recognized.
    Variable(String),
    /// A file with the key.
    File(String),
    /// A command. Its arguments may be keys, so it is not stored.
    Command,
}

/// Where tools came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginTools {
    /// Files of servers.
    pub configs: Vec<String>,
    /// Servers that were named one by one, without those whose command or address may hold a key.
    pub servers: Vec<String>,
    /// Some of them were left out.
    pub is_partial: bool,
    /// What happens to calls for which no rule decides; empty for the default.
    pub approval: String,
    /// Rules on tools that are never called.
    pub deny: Vec<String>,
}

/// A model that a session was switched to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChosenModel {
    /// The profile; empty for none.
    pub profile: String,
    /// The engine.
    pub engine: String,
    /// The host of the provider.
    pub host: String,
    /// The model; empty for that of the profile or the engine.
    pub model: String,
    /// Settings that were chosen with it. Headers and members of the body may hold a key, and are never
    /// among them.
    pub settings: Map<String, Value>,
    /// Some of the settings were left out.
    pub is_partial: bool,
}
