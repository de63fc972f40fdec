//! The tools of servers, a call of one, and what servers report.

use crate::protocol::attachment::Attachment;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The name of an MCP server: its key in `mcpServers`, or made from its command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// A tool of a server, as the server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// The server's own name for it, with which it is called.
    pub name: String,
    /// What it does; the server's text.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub input_schema: Arc<Map<String, Value>>,
}

/// A resource that a server lists: something to read, under an address of the server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerResource {
    /// Its address, which only its server can read.
    pub uri: String,
    /// Its name; the server's text, as the rest.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type; empty if the server names none.
    pub media_type: String,
}

/// A prompt that a server offers to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPrompt {
    /// Its name, with which it is asked for.
    pub name: String,
    /// What it is for; the server's text.
    pub description: String,
    /// Its arguments, in the server's order.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a server's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is; the server's text.
    pub description: String,
    /// The prompt is not made without it.
    pub is_required: bool,
}

/// A prompt as a server has made it of its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledPrompt {
    /// The text; may be empty if something is attached.
    pub text: String,
    /// What goes with it.
    pub attachments: Vec<Attachment>,
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerCall {
    /// The server.
    pub server: ServerName,
    /// The server's own name for the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Hash of the tool's definition when the model called it.
    pub definition: u64,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It is being started.
    Starting,
    /// Its tools can be called.
    Ready,
    /// It could not be started. It may be tried again from time to time, which nobody waits for.
    Failed {
        /// Why, for people.
        reason: String,
    },
    /// It ended, and is started again soon.
    Gone {
        /// Why, for people.
        reason: String,
    },
}

/// A server's new state.
#[derive(Clone, Debug)]
pub struct ServerChange {
    /// The server.
    pub server: ServerName,
    /// Its state.
    pub state: ServerState,
    /// All its tools; they replace those that it had.
    pub tools: Arc<[ServerTool]>,
}

impl ServerName {
    /// The name `text`; `None` if it is empty.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The name `text`, or one for a server without any.
    pub(crate) fn or_default(text: &str) -> Self {
        Self(if text.is_empty() { "server" } else { text }.to_owned())
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
