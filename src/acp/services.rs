//! What the command line gives this front end: the settings of each conversation, and what belongs to a
//! folder.

use super::options::{Effort, Model};
use crate::host::HostSettings;
use crate::protocol::id::SessionId;
use crate::session::approval::ApprovalMode;
use crate::store::Library;
use crate::task::prompt::NamedPrompt;
use crate::tool::config::ServerConfig;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes the settings of a conversation. May read files and stores.
pub(crate) type Opener = Arc<dyn Fn(Opening) -> anyhow::Result<Opened> + Send + Sync>;

/// Makes the prompt of a command file in a folder, of the line that names it with its flags; `None` if
/// there is none.
pub(crate) type Prompts =
    Arc<dyn Fn(&Path, &str) -> Result<Option<NamedPrompt>, String> + Send + Sync>;

/// What this front end needs of the others.
pub(crate) struct Services {
    pub(crate) opener: Opener,
    pub(crate) prompts: Prompts,
    /// The stored conversations, if they are stored.
    pub(crate) library: Option<Library>,
    /// Bytes that a line of the client may have.
    pub(crate) line_bytes_max: usize,
}

/// A conversation that is to be opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) session: SessionId,
    /// Whether it is stored already, and goes on.
    pub(crate) goes_on: bool,
    pub(crate) folder: PathBuf,
    /// The client's MCP servers, beside those that are configured.
    pub(crate) servers: Vec<ServerConfig>,
}

/// The settings of a conversation.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) host: HostSettings,
    /// The models that can be chosen; the first one answers.
    pub(crate) models: Vec<Model>,
    pub(crate) effort: Effort,
    /// What happens to tool calls for which there is no rule. The host asks about each of them.
    pub(crate) approval: ApprovalMode,
    pub(crate) commands: Vec<CommandFile>,
    /// What the person should know before the first answer.
    pub(crate) notices: Vec<String>,
}

/// A command file that a prompt can begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandFile {
    pub(crate) name: String,
    pub(crate) about: String,
    /// Its flags and arguments.
    pub(crate) takes: String,
}
