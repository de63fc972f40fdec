//! The items of a profile, and their origins.

use crate::session::approval::ApprovalMode;
use crate::support::named::named_enum;
use crate::support::secret::Secret;
use crate::tool::config::Protected;
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One setting of a profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Engine(String),
    Model(String),
    /// The base URL of the provider.
    BaseUrl(String),
    /// Where the key comes from.
    Key(KeyFrom),
    /// The system prompt.
    System(String),
    /// Tokens of the most that the model can be sent.
    ContextTokens(u64),
    /// Whether the project's AGENTS.md is added to the system prompt.
    AgentsFile(bool),
    /// A setting of every call.
    Setting {
        name: String,
        value: Value,
    },
    /// A header of every request.
    Header {
        name: String,
        /// Its value, which may be a key.
        value: Protected,
    },
    /// An MCP server.
    Server {
        name: String,
        /// Its members, as in `mcpServers`.
        members: Map<String, Value>,
    },
    /// The decision on a tool call for which there is no rule.
    Approval(ApprovalMode),
    /// Tools that run without a question.
    Allow(Vec<String>),
    /// Tools that never run.
    Deny(Vec<String>),
    /// The profile whose values come first. Only among what is withheld: else those values are there.
    Inherits(String),
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyFrom {
    /// An environment variable.
    Variable(String),
    /// The output of a program: its name and its arguments.
    Command(Vec<String>),
    File(PathBuf),
    /// The file of the profile itself, as in files of Pinocchio.
    Here(Secret),
}

named_enum! {
    /// Which of the files that lie over one another: later ones win.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Layer {
        /// The administrator's.
        System = "system",
        User = "user",
        /// The file of the folder in which the user works. Another person may have written it.
        Project = "project",
        /// Named on the command line or by a variable.
        Named = "named",
    }
}

/// The place of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) layer: Layer,
    pub(crate) file: Arc<Path>,
    /// The line, from 1.
    pub(crate) line: u32,
    /// The person's own, or trusted by the person.
    pub(crate) is_trusted: bool,
}

/// An item and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sourced {
    pub(crate) item: Item,
    /// Its place.
    pub(crate) origin: Origin,
}

impl Item {
    /// The item's name in a file. Of two items with the same name the later one wins.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Engine(_) => "engine".to_owned(),
            Self::Model(_) => "model".to_owned(),
            Self::BaseUrl(_) => "base-url".to_owned(),
            Self::Key(KeyFrom::Variable(_)) => "key-variable".to_owned(),
            Self::Key(KeyFrom::Command(_)) => "key-command".to_owned(),
            Self::Key(KeyFrom::File(_)) => "key-file".to_owned(),
            Self::Key(KeyFrom::Here(_)) => "key".to_owned(),
            Self::System(_) => "system".to_owned(),
            Self::ContextTokens(_) => "context-tokens".to_owned(),
            Self::AgentsFile(_) => "agents-file".to_owned(),
            Self::Setting { name, .. } => format!("settings.{name}"),
            Self::Header { name, .. } => format!("extra-headers.{name}"),
            Self::Server { name, .. } => format!("mcp.{name}"),
            Self::Approval(_) => "approval".to_owned(),
            Self::Allow(_) => "allow".to_owned(),
            Self::Deny(_) => "deny".to_owned(),
            Self::Inherits(_) => "inherits".to_owned(),
        }
    }

    /// Whether `other` takes the place of this item. Lists of rules add up.
    pub(super) fn is_replaced_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(_), Self::Key(_)) => true,
            (Self::Allow(_), Self::Allow(_)) | (Self::Deny(_), Self::Deny(_)) => false,
            (Self::Header { name, .. }, Self::Header { name: other, .. }) => {
                name.eq_ignore_ascii_case(other)
            }
            (one, other) => one.name() == other.name(),
        }
    }

    /// The item as it may be shown, without anything that may be a key.
    pub(crate) fn shown(&self) -> Value {
        match self {
            Self::Engine(text) | Self::Model(text) | Self::System(text) | Self::Inherits(text) => {
                json!(text)
            }
            Self::BaseUrl(url) => json!(crate::engine::shown_address(url)),
            Self::Key(from) => json!(from.to_string()),
            Self::ContextTokens(tokens) => json!(tokens),
            Self::AgentsFile(is_added) => json!(is_added),
            Self::Setting { value, .. } => value.clone(),
            Self::Header { .. } => json!("[not shown]"),
            Self::Server { members, .. } => json!(server(members)),
            Self::Approval(mode) => json!(mode.name()),
            Self::Allow(globs) | Self::Deny(globs) => json!(globs),
        }
    }
}

/// The program or the host of a server, without arguments and path, which may hold keys.
fn server(members: &Map<String, Value>) -> String {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    match (text("command"), text("url")) {
        (Some(command), _) => format!("command {command}"),
        (None, Some(url)) => {
            let host = url::Url::parse(url).ok();
            let host = host.as_ref().and_then(url::Url::host_str);
            format!("url of {}", host.unwrap_or("no host"))
        }
        (None, None) => "nothing to start".to_owned(),
    }
}

/// Not with the words of a command after the first: one of them may be a key.
impl fmt::Display for KeyFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::Command(words) => {
                write!(f, "the output of {}", words.first().map_or("", String::as_str))
            }
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Here(_) => f.write_str("[not shown]"),
        }
    }
}
